/* batch_norm2d_arrays.cuh - the shape and the arrays of a batch norm (batch_norm2d.cuh), for all its versions. */
#ifndef PHASE3_CNN_BATCH_NORM2D_ARRAYS_CUH
#define PHASE3_CNN_BATCH_NORM2D_ARRAYS_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/check.h"
#include "common/error.h"
#include "phase3_cnn/10_batch_norm/batch_norm2d_fold_filter.cuh" /* BATCH_NORM_EPSILON */

#define BATCH_NORM_MOMENTUM 0.1f

/* Pixels: H W. */
typedef struct BatchNorm2dShape {
  int n, c, pixels;
} BatchNorm2dShape;

typedef enum BatchNorm2dAfter { BATCH_NORM_ALONE, BATCH_NORM_RELU, BATCH_NORM_ADD_RELU } BatchNorm2dAfter;

/* The arrays of one batch norm; each function says which it reads and writes. The running statistics may be updated in
 * place: new_mean == old_mean. */
typedef struct BatchNorm2d {
  BatchNorm2dShape shape;
  BatchNorm2dAfter after;
  const float *x, *z, *gamma, *beta; /* z: with BATCH_NORM_ADD_RELU */
  const float *old_mean, *old_var;   /* running statistics */
  float *new_mean, *new_var;         /* NULL: they are not updated */
  float *y;
  float *mean, *inv_std; /* of the batch: written by forward, read by backward */
  uint32_t *passed;      /* (C, batch_norm2d_words()): bit i % 32 of word i / 32, y > 0; with BATCH_NORM_ADD_RELU */
  const float *dy;
  float *dx, *dz;        /* NULL: not wanted */
  float *dgamma, *dbeta; /* both NULL: not wanted */
  float *workspace;      /* batch_norm2d_workspace_floats() of the version */
} BatchNorm2d;

/* Values of a channel. */
static inline __host__ __device__ size_t batch_norm2d_count(BatchNorm2dShape s) { return (size_t)s.n * s.pixels; }

/* Words of `passed` for a channel. */
static inline __host__ __device__ size_t batch_norm2d_words(BatchNorm2dShape s) {
  return (batch_norm2d_count(s) + 31) / 32;
}

/* -1 where a channel has one value: its variance is 0. */
static inline int batch_norm2d_shape_check(BatchNorm2dShape s, Error *err) {
  if (s.n < 1 || s.c < 1 || s.pixels < 1)
    return error_set(err, "batch norm of %d images of %d channels and %d pixels: at least 1 of each is expected", s.n,
                     s.c, s.pixels);
  if (batch_norm2d_count(s) > 1) return 0;
  return error_set(
      err,
      "batch norm in training got the shape (1,%d,1,1), which is 1 value per channel; expected at least 2, "
      "because the variance of one value is 0; use a batch of 2 or more images",
      s.c);
}

/* The running statistic after a batch whose own is `value`. */
static inline float batch_norm2d_track(float running, float value) {
  return running + BATCH_NORM_MOMENTUM * (value - running);
}

#endif /* PHASE3_CNN_BATCH_NORM2D_ARRAYS_CUH */
