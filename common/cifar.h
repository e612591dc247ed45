/* cifar.h - CIFAR-10 and CIFAR-100 in their binary version: colour pictures of 32 x 32 pixels.
 *
 *     CifarSet train;
 *     if (cifar_load(directory, &cifar10, 1, &train, &err) != 0) die("%s", err.message);
 *     cifar_free(&train);
 *
 * A file is a row of records without a header:
 *
 *     CIFAR-10     label           | 1024 red | 1024 green | 1024 blue                3073 bytes
 *     CIFAR-100    coarse | fine   | 1024 red | 1024 green | 1024 blue                3074 bytes
 *
 * each plane of 32 rows of 32 pixels. The official files are data_batch_1.bin to data_batch_5.bin and test_batch.bin of
 * 10,000 records each, or train.bin of 50,000 and test.bin of 10,000. Any whole number of records is read, so that a
 * set may be shortened. The names of the classes are in batches.meta.txt or fine_label_names.txt, which may be
 * missing.
 * Source: A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
 */
#ifndef COMMON_CIFAR_H
#define COMMON_CIFAR_H

#include "common/error.h"

#include <limits.h>
#include <sys/stat.h>

enum {
  CIFAR_SIDE = 32,
  CIFAR_PIXELS = 3 * CIFAR_SIDE * CIFAR_SIDE,
  CIFAR_MAX_CLASSES = 100,
  CIFAR_MAX_FILES = 5,
  CIFAR_NAME = 32,
  CIFAR_PIECE = 1000 /* records for which memory is asked at a time */
};

/* What is different between the two sets. */
typedef struct CifarKind {
  const char *title, *folder; /* folder: as the official archive unpacks */
  int label_bytes;            /* before the pixels; the last one is the class */
  int coarse_classes;         /* of the first of two label bytes; 0: there is one */
  int classes;
  const char *train[CIFAR_MAX_FILES + 1], *test[CIFAR_MAX_FILES + 1]; /* NULL after the last */
  const char *names_file;
} CifarKind;

static const CifarKind cifar10 = {
    "CIFAR-10",
    "cifar-10-batches-bin",
    1,
    0,
    10,
    {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", NULL},
    {"test_batch.bin", NULL},
    "batches.meta.txt"};
static const CifarKind cifar100 = {"CIFAR-100",        "cifar-100-binary",    2, 20, 100, {"train.bin", NULL},
                                   {"test.bin", NULL}, "fine_label_names.txt"};

/* images (count,3,32,32), labels (count). */
typedef struct CifarSet {
  size_t count;
  unsigned char *images, *labels;
} CifarSet;

static inline void cifar_free(CifarSet *set) {
  free(set->images);
  free(set->labels);
  memset(set, 0, sizeof *set);
}

/* Room for `count` records in all. */
static inline int cifar_grow(CifarSet *set, size_t count, const char *path, Error *err) {
  unsigned char *images = (unsigned char *)realloc(set->images, count * CIFAR_PIXELS);
  if (images) set->images = images;
  unsigned char *labels = (unsigned char *)realloc(set->labels, count);
  if (labels) set->labels = labels;
  if (images && labels) return 0;
  return error_set(err, "%s: out of memory, %zu bytes were asked for", path, count * (CIFAR_PIXELS + 1));
}

static inline int cifar_check_labels(const CifarKind *kind, const unsigned char *label, size_t record, const char *path,
                                     Error *err) {
  const int fine = label[kind->label_bytes - 1];
  if (kind->label_bytes == 2 && label[0] >= kind->coarse_classes)
    return error_set(
        err,
        "%s: the coarse label of record %zu is %d; 0 to %d is expected: the file is damaged, or not of the "
        "binary version of %s, fetch it again",
        path, record, label[0], kind->coarse_classes - 1, kind->title);
  if (fine < kind->classes) return 0;
  return error_set(
      err,
      "%s: the %slabel of record %zu is %d; 0 to %d is expected: the file is damaged, or not of the binary "
      "version of %s, fetch it again",
      path, kind->label_bytes == 2 ? "fine " : "", record, fine, kind->classes - 1, kind->title);
}

/* The records of an open file behind those that the set has. */
static inline int cifar_read_records(FILE *in, const CifarKind *kind, const char *path, CifarSet *set, Error *err) {
  unsigned char label[2];
  const size_t before = set->count, record = (size_t)kind->label_bytes + CIFAR_PIXELS;
  size_t got;
  while ((got = fread(label, 1, (size_t)kind->label_bytes, in)) > 0) {
    const size_t read = set->count - before;
    if ((set->count % CIFAR_PIECE == 0 || read == 0) &&
        cifar_grow(set, (set->count / CIFAR_PIECE + 1) * CIFAR_PIECE, path, err) != 0)
      return -1;
    if (got == (size_t)kind->label_bytes) got += fread(set->images + set->count * CIFAR_PIXELS, 1, CIFAR_PIXELS, in);
    if (ferror(in)) break;
    if (got < record)
      return error_set(
          err,
          "%s has %zu bytes; a whole number of records of %zu bytes is expected: the file is cut short, or "
          "not of the binary version of %s, fetch it again",
          path, read * record + got, record, kind->title);
    if (cifar_check_labels(kind, label, read, path, err) != 0) return -1;
    set->labels[set->count++] = label[kind->label_bytes - 1];
  }
  if (ferror(in)) return error_set(err, "cannot read %s: %s", path, strerror(errno));
  if (set->count > before) return 0;
  return error_set(err, "%s is empty; records of %zu bytes are expected: fetch it again", path, record);
}

/* Appends the records of one file to the set. */
static inline int cifar_read_file(const char *path, const CifarKind *kind, CifarSet *set, Error *err) {
  struct stat info;
  if (stat(path, &info) != 0)
    return error_set(
        err,
        "cannot open %s: %s; name the folder of the binary version of %s, which unpacks as %s and is not the "
        "Python version",
        path, strerror(errno), kind->title, kind->folder);
  if (!S_ISREG(info.st_mode))
    return error_set(err, "%s is a %s; a file of %s is expected", path,
                     S_ISDIR(info.st_mode) ? "directory" : "device or pipe", kind->title);
  FILE *in = fopen(path, "rb");
  if (in == NULL) return error_set(err, "cannot open %s: %s", path, strerror(errno));
  const int status = cifar_read_records(in, kind, path, set, err);
  fclose(in);
  return status;
}

/* Reads the training or the test files of a folder. */
static inline int cifar_load(const char *directory, const CifarKind *kind, int train, CifarSet *set, Error *err) {
  char path[PATH_MAX];
  const char *const *files = train ? kind->train : kind->test;
  memset(set, 0, sizeof *set);
  for (int i = 0; files[i]; i++) {
    if (snprintf(path, sizeof path, "%s/%s", directory, files[i]) >= (int)sizeof path) {
      cifar_free(set);
      return error_set(err, "%.100s...: the name is too long", directory);
    }
    if (cifar_read_file(path, kind, set, err) != 0) {
      cifar_free(set);
      return -1;
    }
  }
  return 0;
}

/* The names of the classes, one on a line; empty lines at the end do not count. 0: there is no such file, and `names`
 * stays as it is; 1: they were read; -1: the file is something else. */
static inline int cifar_load_names(const char *directory, const CifarKind *kind, char names[][CIFAR_NAME], Error *err) {
  char path[PATH_MAX], line[4 * CIFAR_NAME], read[CIFAR_MAX_CLASSES][CIFAR_NAME];
  int count = 0, empty = 0;
  if (snprintf(path, sizeof path, "%s/%s", directory, kind->names_file) >= (int)sizeof path) return 0;
  FILE *in = fopen(path, "r");
  if (in == NULL) return 0;
  while (fgets(line, sizeof line, in)) {
    const size_t length = strcspn(line, "\r\n");
    line[length] = '\0';
    if (length == 0) {
      empty = 1;
      continue;
    }
    if (empty || count == kind->classes || length >= CIFAR_NAME) {
      count = kind->classes + 1;
      break;
    }
    memcpy(read[count++], line, length + 1);
  }
  fclose(in);
  if (count != kind->classes)
    return error_set(
        err,
        "%s: %d lines, each with the name of a class in at most %d characters, are expected; fetch it again, "
        "or remove it",
        path, kind->classes, CIFAR_NAME - 1);
  memcpy(names, read, (size_t)count * sizeof read[0]);
  return 1;
}

#endif /* COMMON_CIFAR_H */
