/* mnist.h - MNIST and sets in its format (Fashion-MNIST...), and photographs of digits made to look like them.
 *
 *     MnistSet train;
 *     if (mnist_load(directory, "train", &train, &err) != 0) die("%s", err.message);
 *     float mean, stddev;                               // MNIST: 0.1307 and 0.3081 of pixels scaled to 0..1
 *     mnist_statistics(&train, &mean, &stddev);
 *     mnist_free(&train);
 *
 * A network only knows digits as MNIST shows them: white ink on black, 20 pixels high or wide, the centre of mass in
 * the middle of 28 x 28. mnist_from_image() brings a photograph or drawing into that form; without it accuracy
 * collapses.
 * Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits".
 */
#ifndef COMMON_MNIST_H
#define COMMON_MNIST_H

#include "common/error.h"

#include <math.h>
#include <stdint.h>

#include "common/idx.h"
#include "common/image.h"

enum { MNIST_SIDE = 28, MNIST_CLASSES = 10, MNIST_MAX_SIDE = 1024 };

/* images (count,height,width), 0 for background to 255 for ink; labels (count), 0 to 9. */
typedef struct MnistSet {
  size_t count;
  int height, width;
  unsigned char *images, *labels;
} MnistSet;

static inline void mnist_free(MnistSet *set) {
  free(set->images);
  free(set->labels);
  memset(set, 0, sizeof *set);
}

/* Checks that the arrays form a labelled set. */
static inline int mnist_check(const char *images_path, const IdxArray *images, const char *labels_path,
                              const IdxArray *labels, int classes, Error *err) {
  if (images->rank != 3)
    return error_set(err, "%s has %d dimensions; images need 3: how many, height, width", images_path, images->rank);
  if (labels->rank != 1)
    return error_set(err, "%s has %d dimensions; labels need 1: how many", labels_path, labels->rank);
  if (images->shape[0] != labels->shape[0])
    return error_set(err, "%s holds %zu images, but %s holds %zu labels; the two files do not belong together",
                     images_path, images->shape[0], labels_path, labels->shape[0]);
  if (images->count == 0) return error_set(err, "%s holds no images; fetch it again", images_path);
  if (images->shape[1] > MNIST_MAX_SIDE || images->shape[2] > MNIST_MAX_SIDE)
    return error_set(err, "%s holds images of %zu x %zu pixels; up to %d x %d are read", images_path, images->shape[1],
                     images->shape[2], MNIST_MAX_SIDE, MNIST_MAX_SIDE);
  for (size_t i = 0; i < labels->count; i++)
    if (labels->data[i] >= classes)
      return error_set(err, "%s: label %zu is %d; labels run from 0 to %d, fetch the file again", labels_path, i,
                       labels->data[i], classes - 1);
  return 0;
}

/* Reads DIRECTORY/SPLIT-images-idx3-ubyte and -labels-idx1-ubyte, or the same with .gz; split is "train" or "t10k". */
static inline int mnist_load_classes(const char *directory, const char *split, int classes, MnistSet *set, Error *err) {
  char images_path[PATH_MAX], labels_path[PATH_MAX];
  IdxArray images, labels;
  memset(set, 0, sizeof *set);
  if (snprintf(images_path, PATH_MAX, "%s/%s-images-idx3-ubyte", directory, split) >= PATH_MAX ||
      snprintf(labels_path, PATH_MAX, "%s/%s-labels-idx1-ubyte", directory, split) >= PATH_MAX)
    return error_set(err, "%.100s...: the name is too long", directory);
  if (idx_read(images_path, &images, err) != 0) return -1;
  if (idx_read(labels_path, &labels, err) != 0 ||
      mnist_check(images_path, &images, labels_path, &labels, classes, err) != 0) {
    idx_free(&images);
    idx_free(&labels);
    return -1;
  }
  set->count = images.shape[0];
  set->height = (int)images.shape[1];
  set->width = (int)images.shape[2];
  set->images = images.data;
  set->labels = labels.data;
  return 0;
}

static inline int mnist_load(const char *directory, const char *split, MnistSet *set, Error *err) {
  return mnist_load_classes(directory, split, MNIST_CLASSES, set, err);
}

/* Mean and standard deviation of all pixels scaled to 0..1; the sums are exact. */
static inline void mnist_statistics(const MnistSet *set, float *mean, float *stddev) {
  size_t n = set->count * (size_t)set->height * (size_t)set->width;
  uint64_t sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) {
    sum += set->images[i];
    squares += (uint64_t)set->images[i] * set->images[i];
  }
  double m = (double)sum / (double)n;
  double variance = (double)squares / (double)n - m * m;
  *mean = (float)(m / 255);
  *stddev = (float)(sqrt(variance > 0 ? variance : 0) / 255);
}

/* ---- a picture of a digit, made to look like MNIST ---- */

/* The median, along the picture's border, of the distance to `level`. Half of the border may be ink or shadow. */
static inline int mnist_border_median(const Image *gray, int level) {
  size_t histogram[256] = {0}, total = 0, seen = 0;
  for (int y = 0; y < gray->height; y++)
    for (int x = 0; x < gray->width; x++)
      if (y == 0 || x == 0 || y == gray->height - 1 || x == gray->width - 1) {
        histogram[abs(gray->pixels[(size_t)y * (size_t)gray->width + (size_t)x] - level)]++;
        total++;
      }
  int value = 0;
  while ((seen += histogram[value]) * 2 < total) value++;
  return value;
}

/* Turns a picture into ink, 0 for paper and up to 255: how far each pixel differs from the paper, in the direction,
 * darker or lighter, in which the picture goes farthest from it. What is faint becomes paper: more of it in a
 * photograph, whose paper has noise and shadows, than in a drawing. -1 when there is nothing but paper. */
static inline int mnist_extract_ink(const Image *gray, Image *ink) {
  size_t size = (size_t)gray->width * (size_t)gray->height;
  int paper = mnist_border_median(gray, 0), spread = mnist_border_median(gray, paper), darkest = 255, lightest = 0;
  for (size_t i = 0; i < size; i++) {
    if (gray->pixels[i] < darkest) darkest = gray->pixels[i];
    if (gray->pixels[i] > lightest) lightest = gray->pixels[i];
  }
  int sign = paper - darkest > lightest - paper ? -1 : 1;
  int range = sign < 0 ? paper - darkest : lightest - paper;
  if (range < 32 || range < 4 * spread) return -1;
  int faint = spread == 0 ? range / 16 : range / 4 > 4 * spread ? range / 4 : 4 * spread;
  for (size_t i = 0; i < size; i++) {
    int difference = sign * (gray->pixels[i] - paper);
    ink->pixels[i] = (unsigned char)(difference < faint ? 0 : 255 * difference / range);
  }
  return 0;
}

/* Where to put the first of `size` values so that their centre of mass comes to the middle of MNIST_SIDE; all of them
 * stay inside. `moment` is the sum of index times mass. */
static inline int mnist_center(uint64_t moment, uint64_t mass, int size) {
  int offset = (int)lround(MNIST_SIDE / 2 - (double)moment / (double)mass);
  if (offset > MNIST_SIDE - size) offset = MNIST_SIDE - size;
  return offset < 0 ? 0 : offset;
}

/* Turns a picture of one digit, of any size, dark on light or light on dark, into what MNIST would hold. */
static inline int mnist_from_image(const Image *gray, unsigned char out[MNIST_SIDE * MNIST_SIDE], Error *err) {
  enum { BOX = 20 };
  unsigned char box[BOX * BOX];
  Image ink = image_new(gray->width, gray->height, 1);
  if (mnist_extract_ink(gray, &ink) != 0) {
    image_free(&ink);
    return error_set(err, "no digit was found: the picture is blank, or its ink hardly differs from its paper");
  }

  /* The bounding box of the ink, scaled to fit in BOX x BOX. */
  int left = ink.width, right = -1, top = ink.height, bottom = -1;
  for (int y = 0; y < ink.height; y++)
    for (int x = 0; x < ink.width; x++)
      if (ink.pixels[(size_t)y * (size_t)ink.width + (size_t)x] > 0) {
        if (x < left) left = x;
        if (x > right) right = x;
        if (y < top) top = y;
        bottom = y;
      }
  int width = right - left + 1, height = bottom - top + 1, longest = width > height ? width : height;
  int w = (int)lround((double)BOX * width / longest), h = (int)lround((double)BOX * height / longest);
  if (w < 1) w = 1;
  if (h < 1) h = 1;
  image_scale_gray(&ink, left, top, width, height, box, w, h);
  image_free(&ink);

  uint64_t mass = 0, moment_x = 0, moment_y = 0;
  int strongest = 0;
  for (int i = 0; i < w * h; i++) {
    mass += box[i];
    moment_x += (uint64_t)(i % w) * box[i];
    moment_y += (uint64_t)(i / w) * box[i];
    if (box[i] > strongest) strongest = box[i];
  }
  if (mass == 0) return error_set(err, "no digit was found: its strokes vanish at %d x %d pixels", BOX, BOX);
  int x0 = mnist_center(moment_x, mass, w), y0 = mnist_center(moment_y, mass, h);
  memset(out, 0, MNIST_SIDE * MNIST_SIDE);
  for (int i = 0; i < w * h; i++) /* thin strokes pale when scaled: the strongest point becomes white again */
    out[(y0 + i / w) * MNIST_SIDE + x0 + i % w] = (unsigned char)(box[i] * 255 / strongest);
  return 0;
}

#endif /* COMMON_MNIST_H */
