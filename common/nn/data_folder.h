/* data_folder.h - --data=NAME or --data=FOLDER: an entry of the table, or files in the format of one.
 *
 *     const DataSource *data;
 *     char folder[PATH_MAX] = "";                   // becomes that of the files, where a folder was named
 *     if (data_choose("faces/", &data, folder, &err) != 0) die("%s", err.message);
 *
 * IDX files (train-images-idx3-ubyte and so on, raw or gzipped) have images of one channel and any size; the number of
 * classes is the highest training label and one. Of CIFAR's binary files both versions are known.
 */
#ifndef COMMON_NN_DATA_FOLDER_H
#define COMMON_NN_DATA_FOLDER_H

#include "common/nearest.h"
#include "common/nn/data_set.h"

enum { DATA_IDX_CLASSES = 256, DATA_TITLE = 64 };

/* The folder of IDX files that was chosen; a program has one data set. */
static char data_idx_title[DATA_TITLE];
static DataSource data_idx;

static inline int data_load_idx(const char *directory, DataSplit split, DataSet *set, Error *err) {
  MnistSet read;
  if (mnist_load_classes(directory, split == DATA_TRAIN ? "train" : "t10k", data_idx.classes, &read, err) != 0)
    return -1;
  if (read.count > INT_MAX) {
    mnist_free(&read);
    return error_set(err, "%s: more than %d images", directory, INT_MAX);
  }
  data_from_mnist(set, &read);
  set->classes = data_idx.classes;
  return 0;
}

/* Shape and classes of the files: the header of the images, and all labels. */
static inline int data_open_idx(const char *folder, Error *err) {
  char path[PATH_MAX];
  IdxArray images, labels;
  memset(&images, 0, sizeof images);
  if ((size_t)snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte", folder) >= sizeof path - 8)
    return error_set(err, "%.80s...: the path is too long", folder);
  if (idx_read(path, &labels, err) != 0) return -1;
  int highest = 0;
  for (size_t i = 0; i < labels.count; i++) highest = labels.data[i] > highest ? labels.data[i] : highest;
  idx_free(&labels);
  snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", folder);
  if (access(path, R_OK) != 0) strcat(path, ".gz");
  gzFile in = gzopen(path, "rb");
  if (in == NULL) return error_set(err, "cannot open %s: %s", path, strerror(errno));
  const int status = idx_read_header(in, path, &images, err);
  gzclose(in);
  if (status != 0) return -1;
  if (images.rank != 3 || images.shape[1] < 1 || images.shape[2] < 1 || images.shape[1] > MNIST_MAX_SIDE ||
      images.shape[2] > MNIST_MAX_SIDE)
    return error_set(err, "%s: images of 1 to %d pixels in height and width are expected, in 3 dimensions", path,
                     MNIST_MAX_SIDE);
  const char *last = strrchr(folder, '/');
  snprintf(data_idx_title, sizeof data_idx_title, "%.60s", last && last[1] ? last + 1 : folder);
  const DataSource source = {"idx",
                             data_idx_title,
                             "images",
                             shape3(1, (int)images.shape[1], (int)images.shape[2]),
                             highest + 1,
                             NULL,
                             {NULL, NULL},
                             data_load_idx,
                             data_thing_from_image};
  data_idx = source;
  return 0;
}

static inline int data_has(const char *folder, const char *name) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

/* What lies in a folder. */
static inline int data_recognise(const char *folder, const DataSource **data, Error *err) {
  if (data_has(folder, "data_batch_1.bin")) {
    *data = &data_cifar10;
  } else if (data_has(folder, "train.bin")) {
    *data = &data_cifar100;
  } else if (data_has(folder, "train-images-idx3-ubyte") || data_has(folder, "train-images-idx3-ubyte.gz")) {
    *data = &data_idx;
    return data_open_idx(folder, err);
  } else {
    return error_set(err,
                     "%s holds no training images: train-images-idx3-ubyte (or .gz), data_batch_1.bin of CIFAR-10 "
                     "or train.bin of CIFAR-100 is expected",
                     folder);
  }
  return 0;
}

/* A name of the table, in which - is as good as _. */
static inline const DataSource *data_source_typed(const char *typed) {
  char name[64];
  if ((size_t)snprintf(name, sizeof name, "%s", typed) >= sizeof name) return NULL;
  for (char *c = name; *c; c++)
    if (*c == '-') *c = '_';
  return data_source_named(name);
}

/* What was typed is not the name of a data set. `path`: the folder that it could be, which cannot be used for the
 * reason `why`, an errno. */
static inline int data_refuse(const char *typed, const char *path, int why, Error *err) {
  const char *expected = "mnist, fashion_mnist, cifar10 or cifar100 is expected, or a folder of files in their formats";
  const char *names[DATA_SOURCES], *nearest;
  if (typed[0] == '\0') return error_set(err, "%s", expected);
  if (why == ENOTDIR) return error_set(err, "%s is not a folder; %s", path, expected);
  if (why != ENOENT) return error_set(err, "%s: %s; %s", path, strerror(why), expected);
  if (strchr(typed, '/')) return error_set(err, "the folder %s was not found; %s", path, expected);
  error_set(err, "no data set has this name, and the folder %s was not found; %s", path, expected);
  for (int i = 0; i < DATA_SOURCES; i++) names[i] = data_source_at(i)->name;
  nearest = nearest_name(typed, names, DATA_SOURCES);
  return nearest ? error_advise(err, "do you mean %s?", nearest) : -1;
}

/* `folder` stays as it is where a name was typed. -1 also where nothing of this name is known. */
static inline int data_choose(const char *typed, const DataSource **data, char folder[PATH_MAX], Error *err) {
  char path[PATH_MAX] = "";
  struct stat info;
  const DataSource *named = data_source_typed(typed);
  if (named) {
    *data = named;
    return 0;
  }
  if (typed[0] && user_path(typed, path, sizeof path, err) != 0) return -1;
  if (typed[0] == '\0' || stat(path, &info) != 0) return data_refuse(typed, path, errno, err);
  if (!S_ISDIR(info.st_mode)) return data_refuse(typed, path, ENOTDIR, err);
  for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--) path[end - 1] = '\0';
  memcpy(folder, path, sizeof path);
  return data_recognise(path, data, err);
}

#endif /* COMMON_NN_DATA_FOLDER_H */
