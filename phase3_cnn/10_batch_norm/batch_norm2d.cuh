/* batch_norm2d.cuh - batch normalisation of pictures (Ioffe, Szegedy, 2015), as PyTorch's BatchNorm2d computes it.
 *
 *     t = (x - mean[c]) inv_std[c]      y = gamma[c] t + beta[c]      inv_std = 1 / sqrt(variance + epsilon)
 *
 *     x, y, z, dx, dy, dz (N,C,H,W)     gamma, beta, mean, inv_std, running mean and variance (C)
 *
 * In training, mean and variance are those of the batch, over the M = N H W values of a channel, and the running
 * statistics move towards them by BATCH_NORM_MOMENTUM; the running variance takes the unbiased one, with M - 1. In
 * evaluation the running statistics are used. What follows batch norm in a network can be part of it (`after`):
 *
 *     BATCH_NORM_ALONE       y = gamma t + beta
 *     BATCH_NORM_RELU        y = relu(gamma t + beta)
 *     BATCH_NORM_ADD_RELU    y = relu(gamma t + beta + z), where a residual block ends
 *
 * backward, with g = dy where y > 0, else 0 (BATCH_NORM_ALONE: g = dy):
 *
 *     dbeta = sum g     dgamma = sum g t     dx = gamma inv_std (g - dbeta / M - t dgamma / M)     dz = g
 *
 * With BATCH_NORM_RELU, y > 0 is computed again from x. With BATCH_NORM_ADD_RELU that would need z, too: forward keeps
 * one bit per value, `passed`. A NaN stays a NaN, as in activations.cuh, and its gradient passes.
 *
 *   batch_norm2d_*_cpu        plain loops, sums in double, one channel per thread: the definition
 *   batch_norm2d_*_cpu_fast   one pass for the statistics, vectors       (batch_norm2d_cpu_fast.cuh)
 *   batch_norm2d_*_naive      one block per channel                      (batch_norm2d_ladder.cuh)
 *   batch_norm2d_*_welford    one pass for the statistics
 *   batch_norm2d_*_slices     many blocks per channel, two kernels
 *   batch_norm2d_*_gpu        the channel stays on the chip, one kernel  (batch_norm2d_on_chip.cuh)
 *
 * All take one struct of arrays. batch_norm2d_nhwc.cuh has the same for arrays (N,H,W,C).
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_CUH
#define PHASE3_CNN_BATCH_NORM2D_CUH

#include "phase3_cnn/10_batch_norm/batch_norm2d_arrays.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_cpu_fast.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_on_chip.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU */

/* Where value i, of N H W, of channel c lies. */
static inline size_t batch_norm2d_index(BatchNorm2dShape s, int c, size_t i) {
  return (i / s.pixels * s.c + c) * s.pixels + i % s.pixels;
}

/* One value. fmaf() rounds once: every version computes the same sign, so the ReLU passes the same values. */
static inline float batch_norm2d_apply(const BatchNorm2d *b, int c, float mean, float inv_std, size_t at) {
  float y = fmaf(b->x[at] - mean, b->gamma[c] * inv_std, b->beta[c]);
  if (b->after == BATCH_NORM_ADD_RELU) y += b->z[at];
  return b->after != BATCH_NORM_ALONE && y < 0 ? 0 : y; /* false for NaN, so NaN stays */
}

/* x, z, gamma, beta, old_mean, old_var -> y, mean, inv_std, passed, new_mean, new_var */
static inline void batch_norm2d_forward_cpu(const BatchNorm2d *b) {
  const BatchNorm2dShape s = b->shape;
  const size_t m = batch_norm2d_count(s), words = batch_norm2d_words(s);
#pragma omp parallel for schedule(static)
  for (int c = 0; c < s.c; c++) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < m; i++) sum += b->x[batch_norm2d_index(s, c, i)];
    const double mean = sum / (double)m;
    for (size_t i = 0; i < m; i++) {
      const double d = b->x[batch_norm2d_index(s, c, i)] - mean;
      squares += d * d;
    }
    b->mean[c] = (float)mean;
    b->inv_std[c] = (float)(1 / sqrt(squares / (double)m + (double)BATCH_NORM_EPSILON));
    if (b->new_mean) b->new_mean[c] = batch_norm2d_track(b->old_mean[c], (float)mean);
    // >>> hidden batch_norm_running_variance
    if (b->new_var) b->new_var[c] = batch_norm2d_track(b->old_var[c], (float)(squares / (double)(m - 1)));
    // <<< hidden
    for (size_t i = 0; i < words && b->after == BATCH_NORM_ADD_RELU; i++) b->passed[c * words + i] = 0;
    for (size_t i = 0; i < m; i++) {
      const size_t at = batch_norm2d_index(s, c, i);
      const float y = batch_norm2d_apply(b, c, b->mean[c], b->inv_std[c], at);
      if (b->after == BATCH_NORM_ADD_RELU && !(y <= 0)) b->passed[c * words + i / 32] |= 1u << i % 32;
      b->y[at] = y;
    }
  }
}

/* x, z, gamma, beta, old_mean, old_var -> y */
static inline void batch_norm2d_evaluate_cpu(const BatchNorm2d *b) {
  const BatchNorm2dShape s = b->shape;
#pragma omp parallel for schedule(static)
  for (int c = 0; c < s.c; c++) {
    const float inv_std = 1 / sqrtf(b->old_var[c] + BATCH_NORM_EPSILON);
    for (size_t i = 0; i < batch_norm2d_count(s); i++) {
      const size_t at = batch_norm2d_index(s, c, i);
      b->y[at] = batch_norm2d_apply(b, c, b->old_mean[c], inv_std, at);
    }
  }
}

/* dy of value i of channel c where the ReLU passed it, else 0. */
static inline float batch_norm2d_passed_cpu(const BatchNorm2d *b, int c, size_t i, size_t at) {
  int passed = 1;
  if (b->after == BATCH_NORM_RELU) passed = !(batch_norm2d_apply(b, c, b->mean[c], b->inv_std[c], at) <= 0);
  if (b->after == BATCH_NORM_ADD_RELU) passed = b->passed[c * batch_norm2d_words(b->shape) + i / 32] >> i % 32 & 1;
  return passed ? b->dy[at] : 0;
}

/* dy, x, gamma, beta, mean, inv_std, passed -> dx, dz, dgamma, dbeta */
static inline void batch_norm2d_backward_cpu(const BatchNorm2d *b) {
  const BatchNorm2dShape s = b->shape;
  const size_t m = batch_norm2d_count(s);
#pragma omp parallel for schedule(static)
  for (int c = 0; c < s.c; c++) {
    const float mean = b->mean[c], inv_std = b->inv_std[c];
    double sum = 0, product = 0;
    for (size_t i = 0; i < m; i++) {
      const size_t at = batch_norm2d_index(s, c, i);
      const float g = batch_norm2d_passed_cpu(b, c, i, at);
      sum += g;
      product += (double)g * ((b->x[at] - mean) * inv_std);
      if (b->dz) b->dz[at] = g;
    }
    if (b->dgamma) {
      b->dbeta[c] = (float)sum;
      b->dgamma[c] = (float)product;
    }
    const float share = (float)(sum / (double)m), slope = (float)(product / (double)m);
    for (size_t i = 0; b->dx && i < m; i++) {
      const size_t at = batch_norm2d_index(s, c, i);
      // >>> hidden batch_norm_backward_dx
      const float g = batch_norm2d_passed_cpu(b, c, i, at), t = (b->x[at] - mean) * inv_std;
      b->dx[at] = b->gamma[c] * inv_std * (g - share - t * slope);
      // <<< hidden
    }
  }
}

#endif /* PHASE3_CNN_BATCH_NORM2D_CUH */
