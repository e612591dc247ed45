/* batch_norm2d.cuh - batch normalisation of pictures (Ioffe, Szegedy, 2015), as PyTorch's BatchNorm2d computes it.
 *
 *     y[n,c,h,w] = gamma[c] * (x[n,c,h,w] - mean[c]) * inv_std[c] + beta[c]      inv_std = 1 / sqrt(variance + epsilon)
 *
 *     x, y (N,C,H,W)   gamma, beta, running_mean, running_var (C)   saved (2,C): mean, inv_std
 *
 * In training, mean and variance are those of the batch, over the M = N H W values of a channel, and the running
 * statistics move towards them by BATCH_NORM_MOMENTUM; the running variance takes the unbiased one, with M - 1. In
 * evaluation the running statistics are used. The variance takes a second pass, around the mean: the difference
 * of two large sums would lose all digits where the mean is large.
 *
 * backward, with t = (x - mean) inv_std:
 *
 *     dbeta = sum dy        dgamma = sum dy t        dx = gamma inv_std (dy - dbeta / M - t dgamma / M)
 *
 *   batch_norm2d_*_cpu      plain loops, sums in double, one thread per channel
 *   batch_norm2d_*_gpu      one block per channel
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_CUH
#define PHASE3_CNN_BATCH_NORM2D_CUH

#include <math.h>
#include <stddef.h>

#define BATCH_NORM_EPSILON 1e-5f
#define BATCH_NORM_MOMENTUM 0.1f

/* Pixels: H W. */
typedef struct BatchNorm2dShape {
  int n, c, pixels;
} BatchNorm2dShape;

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU */

/* Where value i, of N H W, of channel c lies. */
static inline size_t batch_norm2d_index(BatchNorm2dShape s, int c, size_t i) {
  return (i / s.pixels * s.c + c) * s.pixels + i % s.pixels;
}

static inline void batch_norm2d_forward_cpu(float *y, float *saved, float *running_mean, float *running_var,
                                            const float *x, const float *gamma, const float *beta, int training,
                                            BatchNorm2dShape s) {
  const size_t m = (size_t)s.n * s.pixels;
#pragma omp parallel for schedule(static)
  for (int c = 0; c < s.c; c++) {
    double mean = running_mean[c], variance = running_var[c];
    if (training) {
      double sum = 0, squares = 0;
      for (size_t i = 0; i < m; i++) sum += x[batch_norm2d_index(s, c, i)];
      mean = sum / (double)m;
      for (size_t i = 0; i < m; i++) {
        const double d = x[batch_norm2d_index(s, c, i)] - mean;
        squares += d * d;
      }
      variance = squares / (double)m;
      const double unbiased = m > 1 ? squares / (double)(m - 1) : variance;
      running_mean[c] += BATCH_NORM_MOMENTUM * ((float)mean - running_mean[c]);
      running_var[c] += BATCH_NORM_MOMENTUM * ((float)unbiased - running_var[c]);
    }
    const float inv_std = (float)(1 / sqrt(variance + (double)BATCH_NORM_EPSILON));
    saved[c] = (float)mean;
    saved[s.c + c] = inv_std;
    for (size_t i = 0; i < m; i++) {
      const size_t at = batch_norm2d_index(s, c, i);
      y[at] = gamma[c] * ((x[at] - (float)mean) * inv_std) + beta[c];
    }
  }
}

/* dx may be NULL, and so may dgamma and dbeta together. Of a batch in training. */
static inline void batch_norm2d_backward_cpu(float *dx, float *dgamma, float *dbeta, const float *dy, const float *x,
                                             const float *gamma, const float *saved, BatchNorm2dShape s) {
  const size_t m = (size_t)s.n * s.pixels;
#pragma omp parallel for schedule(static)
  for (int c = 0; c < s.c; c++) {
    const float mean = saved[c], inv_std = saved[s.c + c];
    double sum = 0, product = 0;
    for (size_t i = 0; i < m; i++) {
      const size_t at = batch_norm2d_index(s, c, i);
      sum += dy[at];
      product += (double)dy[at] * ((x[at] - mean) * inv_std);
    }
    if (dgamma) {
      dbeta[c] = (float)sum;
      dgamma[c] = (float)product;
    }
    const float share = (float)(sum / (double)m), slope = (float)(product / (double)m);
    for (size_t i = 0; dx && i < m; i++) {
      const size_t at = batch_norm2d_index(s, c, i);
      dx[at] = gamma[c] * inv_std * (dy[at] - share - (x[at] - mean) * inv_std * slope);
    }
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: grid (C), block (BATCH_NORM_BLOCK) */

enum { BATCH_NORM_BLOCK = 256 };

/* The sum of one value per thread, in every thread. */
static __device__ float batch_norm2d_block_sum(float value) {
  __shared__ float part[BATCH_NORM_BLOCK];
  part[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = BATCH_NORM_BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = part[0];
  __syncthreads(); /* the next sum overwrites part */
  return sum;
}

static __device__ size_t batch_norm2d_at(BatchNorm2dShape s, size_t i) {
  return (i / s.pixels * s.c + blockIdx.x) * s.pixels + i % s.pixels;
}

static __global__ void batch_norm2d_forward_kernel(float *y, float *saved, float *running_mean, float *running_var,
                                                   const float *x, const float *gamma, const float *beta, int training,
                                                   BatchNorm2dShape s) {
  const int c = blockIdx.x;
  const size_t m = (size_t)s.n * s.pixels;
  float mean = running_mean[c], variance = running_var[c];
  if (training) {
    float sum = 0, squares = 0;
    for (size_t i = threadIdx.x; i < m; i += BATCH_NORM_BLOCK) sum += x[batch_norm2d_at(s, i)];
    mean = batch_norm2d_block_sum(sum) / (float)m;
    for (size_t i = threadIdx.x; i < m; i += BATCH_NORM_BLOCK) {
      const float d = x[batch_norm2d_at(s, i)] - mean;
      squares += d * d;
    }
    squares = batch_norm2d_block_sum(squares);
    variance = squares / (float)m;
    const float unbiased = m > 1 ? squares / (float)(m - 1) : variance;
    if (threadIdx.x == 0) {
      running_mean[c] += BATCH_NORM_MOMENTUM * (mean - running_mean[c]);
      running_var[c] += BATCH_NORM_MOMENTUM * (unbiased - running_var[c]);
    }
  }
  const float inv_std = 1 / sqrtf(variance + BATCH_NORM_EPSILON), g = gamma[c], b = beta[c];
  if (threadIdx.x == 0) {
    saved[c] = mean;
    saved[s.c + c] = inv_std;
  }
  for (size_t i = threadIdx.x; i < m; i += BATCH_NORM_BLOCK) {
    const size_t at = batch_norm2d_at(s, i);
    y[at] = g * ((x[at] - mean) * inv_std) + b;
  }
}

static __global__ void batch_norm2d_backward_kernel(float *dx, float *dgamma, float *dbeta, const float *dy,
                                                    const float *x, const float *gamma, const float *saved,
                                                    BatchNorm2dShape s) {
  const int c = blockIdx.x;
  const size_t m = (size_t)s.n * s.pixels;
  const float mean = saved[c], inv_std = saved[s.c + c], scale = gamma[c] * inv_std;
  float sum = 0, product = 0;
  for (size_t i = threadIdx.x; i < m; i += BATCH_NORM_BLOCK) {
    const size_t at = batch_norm2d_at(s, i);
    sum += dy[at];
    product += dy[at] * ((x[at] - mean) * inv_std);
  }
  sum = batch_norm2d_block_sum(sum);
  product = batch_norm2d_block_sum(product);
  if (dgamma && threadIdx.x == 0) {
    dbeta[c] = sum;
    dgamma[c] = product;
  }
  if (dx == NULL) return;
  const float share = sum / (float)m, slope = product / (float)m;
  for (size_t i = threadIdx.x; i < m; i += BATCH_NORM_BLOCK) {
    const size_t at = batch_norm2d_at(s, i);
    dx[at] = scale * (dy[at] - share - (x[at] - mean) * inv_std * slope);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void batch_norm2d_forward_gpu(float *y, float *saved, float *running_mean, float *running_var,
                                            const float *x, const float *gamma, const float *beta, int training,
                                            BatchNorm2dShape s) {
  batch_norm2d_forward_kernel<<<s.c, BATCH_NORM_BLOCK>>>(y, saved, running_mean, running_var, x, gamma, beta, training,
                                                         s);
  CUDA_CHECK_LAUNCH();
}

static inline void batch_norm2d_backward_gpu(float *dx, float *dgamma, float *dbeta, const float *dy, const float *x,
                                             const float *gamma, const float *saved, BatchNorm2dShape s) {
  batch_norm2d_backward_kernel<<<s.c, BATCH_NORM_BLOCK>>>(dx, dgamma, dbeta, dy, x, gamma, saved, s);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_BATCH_NORM2D_CUH */
