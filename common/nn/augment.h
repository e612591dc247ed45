/* augment.h - random changes of training images that leave their class as it is: a table of functions.
 *
 *     augment_named("shift")->apply(augment, device, y, x, batch, shape, &outside, key, index);
 *
 *     x, y (B,C,H,W)   y must not be x        index (B), on the device: which sample of the set each row is
 *
 * What an entry does to a sample is a function of (seed, epoch, number of the sample): the order of the samples, the
 * size of the batch, the device and a stop in between do not matter. CPU and GPU give the same bits: a move copies.
 *
 *   augment_move_cpu, augment_move_gpu    a shift by up to `shift` pixels each way, filled with `outside` (a padded
 *                                         image of which a random part is cropped), and a flip of left and right
 */
#ifndef COMMON_NN_AUGMENT_H
#define COMMON_NN_AUGMENT_H

#include "common/nn/op.h"
#include "common/philox.h"

enum { AUGMENT_STREAM = 0x41554721, AUGMENT_CHANNELS = 4 };

/* The value of each channel beyond the image's border: that of a black pixel, normalised. */
typedef struct AugmentOutside {
  float value[AUGMENT_CHANNELS];
} AugmentOutside;

typedef struct AugmentKey {
  uint64_t seed;
  uint32_t epoch;
} AugmentKey;

typedef struct Augment {
  const char *name, *help;
  int shift; /* pixels, at most */
  int flip;  /* whether half of the images are flipped */
  void (*apply)(const struct Augment *augment, Device device, float *y, const float *x, int batch, Shape shape,
                const AugmentOutside *outside, AugmentKey key, const uint32_t *index);
} Augment;

typedef struct AugmentMove {
  int down, right, flip; /* by how many pixels; flip: before the shift */
} AugmentMove;

PHILOX_FUNCTION AugmentMove augment_move(AugmentKey key, uint32_t sample, int shift, int flip) {
  const PhiloxBlock random = philox4x32(key.seed, AUGMENT_STREAM, (uint64_t)key.epoch << 32 | sample);
  const uint64_t ways = 2 * (uint64_t)shift + 1;
  AugmentMove move;
  move.down = (int)(random.word[0] * ways >> 32) - shift;
  move.right = (int)(random.word[1] * ways >> 32) - shift;
  move.flip = flip && (random.word[2] & 1);
  return move;
}

/* The element of a plane (height, width) that a move brings to (row, column); -1: one beyond its border. */
PHILOX_FUNCTION int augment_source(AugmentMove move, int row, int column, int height, int width) {
  row -= move.down;
  column -= move.right;
  if (row < 0 || row >= height || column < 0 || column >= width) return -1;
  return row * width + (move.flip ? width - 1 - column : column);
}

static inline void augment_move_cpu(float *y, const float *x, int batch, Shape shape, AugmentOutside outside,
                                    AugmentKey key, const uint32_t *index, int shift, int flip) {
  const int channels = shape.dim[0], height = shape.dim[1], width = shape.dim[2];
  const size_t plane = (size_t)height * width;
#pragma omp parallel for schedule(static) if (batch * channels * plane > 16384)
  for (int b = 0; b < batch; b++) {
    const AugmentMove move = augment_move(key, index[b], shift, flip);
    for (int c = 0; c < channels; c++) {
      const float *from = x + ((size_t)b * channels + c) * plane;
      float *to = y + ((size_t)b * channels + c) * plane;
      for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++) {
          const int source = augment_source(move, row, column, height, width);
          to[(size_t)row * width + column] = source < 0 ? outside.value[c] : from[source];
        }
    }
  }
}

#ifdef __CUDACC__
/* One thread per element of y. */
static __global__ void augment_move_kernel(float *y, const float *x, size_t n, int channels, int height, int width,
                                           AugmentOutside outside, AugmentKey key, const uint32_t *index, int shift,
                                           int flip) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int plane = height * width, element = (int)(i % plane), c = (int)(i / plane % channels);
  const size_t b = i / plane / channels;
  const AugmentMove move = augment_move(key, index[b], shift, flip);
  const int source = augment_source(move, element / width, element % width, height, width);
  y[i] = source < 0 ? outside.value[c] : x[i - element + source];
}

static inline void augment_move_gpu(float *y, const float *x, int batch, Shape shape, AugmentOutside outside,
                                    AugmentKey key, const uint32_t *index, int shift, int flip) {
  const size_t n = (size_t)batch * shape_count(shape);
  if (n == 0) return;
  augment_move_kernel<<<(unsigned)((n + 255) / 256), 256>>>(y, x, n, shape.dim[0], shape.dim[1], shape.dim[2], outside,
                                                            key, index, shift, flip);
  CUDA_CHECK_LAUNCH();
}
#endif

static inline void augment_move_apply(const Augment *augment, Device device, float *y, const float *x, int batch,
                                      Shape shape, const AugmentOutside *outside, AugmentKey key,
                                      const uint32_t *index) {
  ON_DEVICE(device, augment_move_gpu(y, x, batch, shape, *outside, key, index, augment->shift, augment->flip),
            augment_move_cpu(y, x, batch, shape, *outside, key, index, augment->shift, augment->flip));
}

static const Augment augment_none = {"none", "the images as they are", 0, 0, NULL};
static const Augment augment_shift = {"shift", "moved by up to 2 pixels", 2, 0, augment_move_apply};
static const Augment augment_flip = {"flip", "half of them flipped, left for right", 0, 1, augment_move_apply};
static const Augment augment_crop = {"crop", "moved by up to 4 pixels, half of them flipped", 4, 1, augment_move_apply};

enum { AUGMENTS = 4 };

static inline const Augment *augment_at(int i) {
  static const Augment *const table[AUGMENTS] = {&augment_none, &augment_shift, &augment_flip, &augment_crop};
  return i >= 0 && i < AUGMENTS ? table[i] : NULL;
}

/* NULL when there is none of this name. */
static inline const Augment *augment_named(const char *name) {
  const Augment *augment;
  for (int i = 0; (augment = augment_at(i)) != NULL; i++)
    if (strcmp(augment->name, name) == 0) return augment;
  return NULL;
}

#endif /* COMMON_NN_AUGMENT_H */
