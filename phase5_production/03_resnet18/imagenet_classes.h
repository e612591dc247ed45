/* imagenet_classes.h - the names of a classifier's classes, a line of a text file for each, in the order of the logits.
 *
 * Those of ImageNet come from torchvision's package, python3-torchvision on Debian: the build looks for it, and takes
 * its list (third_party/data/imagenet_classes.bzl). Where it is not installed a class is called by its number.
 */
#ifndef PHASE5_PRODUCTION_IMAGENET_CLASSES_H
#define PHASE5_PRODUCTION_IMAGENET_CLASSES_H

#include "common/runfiles.h"

enum { CLASSES_MOST = 1 << 20, CLASSES_NAME = 200 };

typedef struct ClassNames {
  char **name;
  int count; /* 0: there are none */
} ClassNames;

static inline void class_names_free(ClassNames *names) {
  for (int i = 0; i < names->count; i++) free(names->name[i]);
  free(names->name);
  memset(names, 0, sizeof *names);
}

/* A control character in a name could move the cursor of a terminal. */
static inline void class_name_clean(char *name) {
  for (; *name; name++)
    if ((unsigned char)*name < ' ' || *name == 127) *name = '?';
}

/* The lines of a file. -1: it cannot be read, or has an empty or too long line. */
static inline int class_names_read(const char *path, ClassNames *names, Error *err) {
  memset(names, 0, sizeof *names);
  FILE *file = fopen(path, "r");
  if (file == NULL) return error_set(err, "cannot open %s: %s", path, strerror(errno));
  char *line = NULL;
  size_t room = 0;
  int status = 0;
  for (ssize_t length; status == 0 && (length = getline(&line, &room, file)) >= 0;) {
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = '\0';
    if (length == 0 || length > CLASSES_NAME || names->count == CLASSES_MOST) {
      status =
          error_set(err, "%s:%d: a line has %zd characters; a name of 1 to %d in each of up to %d lines is expected",
                    path, names->count + 1, length, CLASSES_NAME, CLASSES_MOST);
      break;
    }
    names->name = (char **)realloc(names->name, (size_t)(names->count + 1) * sizeof *names->name);
    if (names->name == NULL) die("out of memory");
    class_name_clean(line);
    names->name[names->count++] = strdup(line);
  }
  if (status == 0 && ferror(file)) status = error_set(err, "cannot read %s: %s", path, strerror(errno));
  free(line);
  fclose(file);
  if (status != 0) class_names_free(names);
  return status;
}

/* Of the user's file, or ImageNet's where `path` is "". For another number of classes than the network's: of the user's
 * file -1, of ImageNet's none. */
static inline int class_names_open(const char *path, int classes, ClassNames *names, Error *err) {
  char found[PATH_MAX];
  memset(names, 0, sizeof *names);
  if (path[0] != '\0') {
    if (class_names_read(path, names, err) != 0) return -1;
    if (names->count == classes) return 0;
    error_set(err, "%s has %d names, and the network has %d classes; a line for each class is expected", path,
              names->count, classes);
    class_names_free(names);
    return -1;
  }
  Error none;
  if (runfiles_find("third_party/data/imagenet_classes/imagenet_classes.txt", found, sizeof found, &none) != 0 ||
      class_names_read(found, names, &none) != 0)
    return 0;
  if (names->count != classes) class_names_free(names);
  return 0;
}

/* "tabby", or "class 281". */
static inline const char *class_name(const ClassNames *names, int label, char text[CLASSES_NAME + 1]) {
  if (label < names->count)
    snprintf(text, CLASSES_NAME + 1, "%s", names->name[label]);
  else
    snprintf(text, CLASSES_NAME + 1, "class %d", label);
  return text;
}

#endif /* PHASE5_PRODUCTION_IMAGENET_CLASSES_H */
