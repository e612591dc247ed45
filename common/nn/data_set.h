/* data_set.h - labelled images in memory, and a table of where they come from.
 *
 *     DataSet train;
 *     if (data_load(&data_mnist, "", DATA_TRAIN, &train, &err) != 0) die("%s", err.message);  // "": Bazel's
 *     DataNorm norm;
 *     if (data_statistics(&train, &norm, &err) != 0) die("%s", err.message);
 *     data_free(&train);
 *
 * A set has images of any (C,H,W) as bytes, any number of classes, and names for them. Its pixels are scaled to 0..1
 * and normalised by mean and standard deviation of each channel of the training set.
 */
#ifndef COMMON_NN_DATA_SET_H
#define COMMON_NN_DATA_SET_H

#include "common/cifar.h"
#include "common/image.h"
#include "common/mnist.h"
#include "common/nn/op.h"
#include "common/philox.h"
#include "common/runfiles.h"

enum { DATA_MAX_CHANNELS = 4, DATA_FOLDERS = 2 };
enum { DATA_SPLIT_STREAM = 0x5911 }; /* of the random numbers that choose the validation images */

/* samples (count,C,H,W), labels (count). Memory of malloc(). */
typedef struct DataSet {
  Shape shape;
  int count, classes;
  uint8_t *samples;
  int *labels;
} DataSet;

/* Per channel, of pixels scaled to 0..1. */
typedef struct DataNorm {
  int channels;
  float mean[DATA_MAX_CHANNELS], stddev[DATA_MAX_CHANNELS];
} DataNorm;

typedef enum DataSplit { DATA_TRAIN, DATA_TEST } DataSplit;

/* Where a set comes from: an entry of the table. */
typedef struct DataSource {
  const char *name, *title; /* "fashion_mnist", "Fashion-MNIST" */
  const char *things;       /* what is classified: "digits" */
  Shape shape;
  int classes;
  const char *const *class_names;   /* NULL: their numbers */
  const char *folder[DATA_FOLDERS]; /* relative: of the runfiles; absolute: of the distribution's package; or NULL.
                                       None: the user names it */
  int (*load)(const char *directory, DataSplit split, DataSet *set, Error *err);
  int (*from_image)(const Image *image, Shape shape, uint8_t *sample, Error *err); /* a picture in the set's form */
} DataSource;

static inline void data_free(DataSet *set) {
  free(set->samples);
  free(set->labels);
  memset(set, 0, sizeof *set);
}

/* The sets of MNIST's format; takes over `from`. */
static inline void data_from_mnist(DataSet *set, MnistSet *from) {
  memset(set, 0, sizeof *set);
  set->shape = shape3(1, from->height, from->width);
  set->count = (int)from->count;
  set->classes = MNIST_CLASSES;
  set->samples = from->images;
  set->labels = (int *)xmalloc(from->count * sizeof *set->labels);
  for (size_t i = 0; i < from->count; i++) set->labels[i] = from->labels[i];
  from->images = NULL;
  mnist_free(from);
}

static inline int data_load_mnist(const char *directory, DataSplit split, DataSet *set, Error *err) {
  MnistSet read;
  if (mnist_load(directory, split == DATA_TRAIN ? "train" : "t10k", &read, err) != 0) return -1;
  if (read.count > INT_MAX) {
    mnist_free(&read);
    return error_set(err, "%s: more than %d images", directory, INT_MAX);
  }
  data_from_mnist(set, &read);
  return 0;
}

static inline int data_digit_from_image(const Image *gray, Shape shape, uint8_t *sample, Error *err) {
  (void)shape;
  return mnist_from_image(gray, sample, err);
}

/* One channel of a picture, scaled to fit and centred; what is bright at its border is turned into dark. */
static inline int data_thing_from_image(const Image *gray, Shape shape, uint8_t *sample, Error *err) {
  const int height = shape.dim[1], width = shape.dim[2];
  const double scale = fmin((double)height / gray->height, (double)width / gray->width);
  int h = (int)lround(scale * gray->height), w = (int)lround(scale * gray->width);
  (void)err;
  h = h < 1 ? 1 : h;
  w = w < 1 ? 1 : w;
  const int bright = mnist_border_median(gray, 0) > 127, top = (height - h) / 2, left = (width - w) / 2;
  uint8_t *scaled = (uint8_t *)xmalloc((size_t)h * w);
  image_scale_gray(gray, 0, 0, gray->width, gray->height, scaled, w, h);
  memset(sample, 0, (size_t)height * width);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      const uint8_t value = scaled[y * w + x];
      sample[(top + y) * width + left + x] = bright ? (uint8_t)(255 - value) : value;
    }
  free(scaled);
  return 0;
}

/* One of the two sets of CIFAR. The names of its classes become those of the folder's file, where there is one. */
static inline int data_load_cifar(const char *directory, const CifarKind *kind, DataSplit split, const char **names,
                                  char (*read)[CIFAR_NAME], DataSet *set, Error *err) {
  CifarSet from;
  if (cifar_load(directory, kind, split == DATA_TRAIN, &from, err) != 0) return -1;
  const int named = cifar_load_names(directory, kind, read, err);
  if (named < 0 || from.count > INT_MAX) {
    cifar_free(&from);
    return named < 0 ? -1 : error_set(err, "%s: more than %d images", directory, INT_MAX);
  }
  for (int i = 0; i < kind->classes && named; i++) names[i] = read[i];
  set->shape = shape3(3, CIFAR_SIDE, CIFAR_SIDE);
  set->count = (int)from.count;
  set->classes = kind->classes;
  set->samples = from.images;
  set->labels = (int *)xmalloc(from.count * sizeof *set->labels);
  for (size_t i = 0; i < from.count; i++) set->labels[i] = from.labels[i];
  from.images = NULL;
  cifar_free(&from);
  return 0;
}

/* The square in the middle of a colour picture, scaled to the set's size, plane by plane. */
static inline int data_photo_from_image(const Image *rgb, Shape shape, uint8_t *sample, Error *err) {
  const int side = rgb->width < rgb->height ? rgb->width : rgb->height, height = shape.dim[1], width = shape.dim[2];
  const size_t pixels = (size_t)rgb->width * rgb->height;
  (void)err;
  Image plane = image_new(rgb->width, rgb->height, 1);
  for (int c = 0; c < shape.dim[0]; c++) {
    for (size_t i = 0; i < pixels; i++) plane.pixels[i] = rgb->pixels[i * rgb->channels + c];
    image_scale_gray(&plane, (rgb->width - side) / 2, (rgb->height - side) / 2, side, side,
                     sample + (size_t)c * height * width, width, height);
  }
  image_free(&plane);
  return 0;
}

/* ----------------------------------------------------------------------------------------------------------- table */

/* Until the names of a folder take their places. */
static const char *data_cifar10_names[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                           "dog",      "frog",       "horse", "ship", "truck"};
static const char *data_cifar100_names[] = {
    "apple",      "aquarium_fish", "baby",         "bear",       "beaver",      "bed",         "bee",
    "beetle",     "bicycle",       "bottle",       "bowl",       "boy",         "bridge",      "bus",
    "butterfly",  "camel",         "can",          "castle",     "caterpillar", "cattle",      "chair",
    "chimpanzee", "clock",         "cloud",        "cockroach",  "couch",       "crab",        "crocodile",
    "cup",        "dinosaur",      "dolphin",      "elephant",   "flatfish",    "forest",      "fox",
    "girl",       "hamster",       "house",        "kangaroo",   "keyboard",    "lamp",        "lawn_mower",
    "leopard",    "lion",          "lizard",       "lobster",    "man",         "maple_tree",  "motorcycle",
    "mountain",   "mouse",         "mushroom",     "oak_tree",   "orange",      "orchid",      "otter",
    "palm_tree",  "pear",          "pickup_truck", "pine_tree",  "plain",       "plate",       "poppy",
    "porcupine",  "possum",        "rabbit",       "raccoon",    "ray",         "road",        "rocket",
    "rose",       "sea",           "seal",         "shark",      "shrew",       "skunk",       "skyscraper",
    "snail",      "snake",         "spider",       "squirrel",   "streetcar",   "sunflower",   "sweet_pepper",
    "table",      "tank",          "telephone",    "television", "tiger",       "tractor",     "train",
    "trout",      "tulip",         "turtle",       "wardrobe",   "whale",       "willow_tree", "wolf",
    "woman",      "worm"};

static inline int data_load_cifar10(const char *directory, DataSplit split, DataSet *set, Error *err) {
  static char read[10][CIFAR_NAME];
  return data_load_cifar(directory, &cifar10, split, data_cifar10_names, read, set, err);
}

static inline int data_load_cifar100(const char *directory, DataSplit split, DataSet *set, Error *err) {
  static char read[100][CIFAR_NAME];
  return data_load_cifar(directory, &cifar100, split, data_cifar100_names, read, set, err);
}

static const char *const data_fashion_names[MNIST_CLASSES] = {"t-shirt", "trouser", "pullover", "dress", "coat",
                                                              "sandal",  "shirt",   "sneaker",  "bag",   "boot"};

static const DataSource data_mnist = {"mnist",
                                      "MNIST",
                                      "digits",
                                      {3, {1, MNIST_SIDE, MNIST_SIDE, 0}},
                                      MNIST_CLASSES,
                                      NULL,
                                      {"third_party/data/mnist", NULL},
                                      data_load_mnist,
                                      data_digit_from_image};
static const DataSource data_fashion_mnist = {"fashion_mnist",
                                              "Fashion-MNIST",
                                              "clothes",
                                              {3, {1, MNIST_SIDE, MNIST_SIDE, 0}},
                                              MNIST_CLASSES,
                                              data_fashion_names,
                                              {"third_party/data/fashion_mnist", "/usr/share/datasets/fashion-mnist"},
                                              data_load_mnist,
                                              data_thing_from_image};

static const DataSource data_cifar10 = {"cifar10",
                                        "CIFAR-10",
                                        "objects",
                                        {3, {3, CIFAR_SIDE, CIFAR_SIDE, 0}},
                                        10,
                                        data_cifar10_names,
                                        {NULL, NULL},
                                        data_load_cifar10,
                                        data_photo_from_image};
static const DataSource data_cifar100 = {"cifar100",
                                         "CIFAR-100",
                                         "objects",
                                         {3, {3, CIFAR_SIDE, CIFAR_SIDE, 0}},
                                         100,
                                         data_cifar100_names,
                                         {NULL, NULL},
                                         data_load_cifar100,
                                         data_photo_from_image};

enum { DATA_SOURCES = 4 };

static inline const DataSource *data_source_at(int i) {
  static const DataSource *const table[DATA_SOURCES] = {&data_mnist, &data_fashion_mnist, &data_cifar10,
                                                        &data_cifar100};
  return i >= 0 && i < DATA_SOURCES ? table[i] : NULL;
}

/* NULL when there is none of this name. */
static inline const DataSource *data_source_named(const char *name) {
  const DataSource *source;
  for (int i = 0; (source = data_source_at(i)) != NULL; i++)
    if (strcmp(source->name, name) == 0) return source;
  return NULL;
}

/* ------------------------------------------------------------------------------------------------------- reading it */

/* The folder that the user named, or the first of the source's that is there. */
static inline int data_folder(const DataSource *source, const char *named, char *out, size_t size, Error *err) {
  Error missed;
  if (named[0] != '\0') {
    if ((size_t)snprintf(out, size, "%s", named) >= size)
      return error_set(err, "%.80s...: the path is too long", named);
    return 0;
  }
  if (source->folder[0] == NULL)
    return error_set(err, "the files of %s are yours to download; name their folder with --data-dir", source->title);
  for (int i = 0; i < DATA_FOLDERS && source->folder[i]; i++) {
    if (source->folder[i][0] == '/') {
      snprintf(out, size, "%s", source->folder[i]);
      if (access(out, R_OK) == 0) return 0;
    } else if (runfiles_find(source->folder[i], out, size, &missed) == 0) {
      return 0;
    }
  }
  if (source->folder[1] == NULL) return error_set(err, "%s", missed.message);
  return error_set(err, "%s is neither in %s nor in %s; name its folder with --data-dir", source->title,
                   source->folder[0], source->folder[1]);
}

/* -1 when the folder holds something else than the source says. */
static inline int data_load(const DataSource *source, const char *named, DataSplit split, DataSet *set, Error *err) {
  char directory[PATH_MAX];
  memset(set, 0, sizeof *set);
  if (data_folder(source, named, directory, sizeof directory, err) != 0 ||
      source->load(directory, split, set, err) != 0)
    return -1;
  if (shape_equal(set->shape, source->shape)) return 0;
  error_set(err, "%s: the %s images have the shape %s; %s of %s have %s", directory,
            split == DATA_TRAIN ? "training" : "test", shape_text(set->shape).text,
            split == DATA_TRAIN ? "those" : "the training images", source->title, shape_text(source->shape).text);
  data_free(set);
  return -1;
}

/* The first `count` images; all, where there are fewer. */
static inline void data_keep_first(DataSet *set, int count) {
  if (count < set->count) set->count = count;
}

/* The last `held` images of `train` become `test`. */
static inline void data_hold_out(DataSet *train, DataSet *test, int held) {
  const size_t bytes = shape_count(train->shape);
  data_free(test);
  train->count -= held;
  *test = *train;
  test->count = held;
  test->samples = (uint8_t *)xmalloc(held * bytes);
  test->labels = (int *)xmalloc(held * sizeof *test->labels);
  memcpy(test->samples, train->samples + train->count * bytes, held * bytes);
  memcpy(test->labels, train->labels + train->count, held * sizeof *test->labels);
}

/* A share of the images, chosen at random by `seed`, moves from `train` to `part`; both keep their order. -1 where one
 * of the two would have none. */
static inline int data_split(DataSet *train, DataSet *part, double share, uint64_t seed, Error *err) {
  const size_t bytes = shape_count(train->shape);
  const int count = train->count, chosen = (int)lround(share * count);
  memset(part, 0, sizeof *part);
  if (chosen < 1 || chosen >= count)
    return error_set(err, "a share of %g of %d images is %d; at least 1, and not all of them, is expected", share,
                     count, chosen);
  *part = *train;
  part->count = train->count = 0;
  part->samples = (uint8_t *)xmalloc(chosen * bytes);
  part->labels = (int *)xmalloc(chosen * sizeof *part->labels);
  for (int i = 0; i < count; i++) {
    /* each as likely as any other: as many of those that are left as are still wanted */
    const int wanted = chosen - part->count;
    const int moves = philox_below((uint32_t)(count - i), seed, DATA_SPLIT_STREAM, (uint64_t)i) < (uint32_t)wanted;
    DataSet *to = moves ? part : train;
    memmove(to->samples + to->count * bytes, train->samples + i * bytes, bytes);
    to->labels[to->count++] = train->labels[i];
  }
  return 0;
}

/* Mean and standard deviation of each channel; the sums are exact. -1 where all pixels of a channel are equal. */
static inline int data_statistics(const DataSet *set, DataNorm *norm, Error *err) {
  const int channels = set->shape.dim[0];
  const size_t plane = shape_count(set->shape) / channels, n = set->count * plane;
  memset(norm, 0, sizeof *norm);
  if (channels > DATA_MAX_CHANNELS)
    return error_set(err, "the images have %d channels; 1 to %d are possible", channels, DATA_MAX_CHANNELS);
  norm->channels = channels;
  for (int c = 0; c < channels; c++) {
    uint64_t sum = 0, squares = 0;
    for (int i = 0; i < set->count; i++) {
      const uint8_t *pixels = set->samples + ((size_t)i * channels + c) * plane;
      for (size_t j = 0; j < plane; j++) {
        sum += pixels[j];
        squares += (uint64_t)pixels[j] * pixels[j];
      }
    }
    const double mean = (double)sum / (double)n, variance = (double)squares / (double)n - mean * mean;
    norm->mean[c] = (float)(mean / 255);
    norm->stddev[c] = (float)(sqrt(variance > 0 ? variance : 0) / 255);
    if (!(norm->stddev[c] >= 1e-6f))
      return error_set(err, "all pixels of the training images are equal: there is nothing to learn; check --data-dir");
  }
  return 0;
}

/* Training and test set, the first so many images of each, and the statistics of the former. */
static inline int data_load_both(const DataSource *source, const char *named, int train_images, int test_images,
                                 DataSet *train, DataSet *test, DataNorm *norm, Error *err) {
  if (data_load(source, named, DATA_TRAIN, train, err) != 0 || data_load(source, named, DATA_TEST, test, err) != 0)
    return -1;
  data_keep_first(train, train_images);
  data_keep_first(test, test_images);
  return data_statistics(train, norm, err);
}

#endif /* COMMON_NN_DATA_SET_H */
