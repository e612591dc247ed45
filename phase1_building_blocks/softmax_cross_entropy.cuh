/* softmax_cross_entropy.cuh - from scores to probabilities to a loss, in one operation that cannot overflow.
 *
 *   logits (B,C), labels (B), each 0..C-1
 *   probabilities (B,C):  p[b][c] = exp(x[b][c] - max) / sum,   sum = exp(x[b][0] - max) + ... + exp(x[b][C-1] - max)
 *   losses (B):           -log p[b][label] = log(sum) - (x[b][label] - max)
 *   dlogits (B,C):        (p - onehot(label)) * scale;  scale = 1/B makes it the gradient of the mean loss
 *
 * Subtracting the row's maximum changes nothing in exact arithmetic and keeps exp() below 1. The loss is taken from the
 * sum and not from p, which may have underflowed to 0: log(0) would turn a very wrong answer into an infinite loss. A
 * logit of -inf is a class ruled out (p = 0); NaN, +inf, or a row of nothing but -inf give NaN. A label outside 0..C-1
 * gives the loss NaN, and nothing is read outside the arrays.
 *
 *   softmax_cross_entropy_*_cpu       plain loops, the sum in double
 *   softmax_cross_entropy_*_cpu_fast  float throughout, large batches shared among threads
 *   softmax_cross_entropy_*_kernel    a warp for each row; score: one block, a tree
 */
#ifndef PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_CUH
#define PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_CUH

#include <math.h>
#include <stddef.h>

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void softmax_cross_entropy_forward_cpu(T *losses, T *probabilities, const T *logits, const int *labels,
                                                     int batch, int classes) {
  for (int b = 0; b < batch; b++) {
    const T *x = logits + (size_t)b * classes;
    T *p = probabilities + (size_t)b * classes;
    double max = x[0], sum = 0.0;
    for (int c = 1; c < classes; c++)
      if (x[c] > max) max = x[c];
    for (int c = 0; c < classes; c++) sum += exp(x[c] - max);
    for (int c = 0; c < classes; c++) p[c] = (T)(exp(x[c] - max) / sum);
    int label = labels[b];
    losses[b] = label >= 0 && label < classes ? (T)(log(sum) - (x[label] - max)) : (T)NAN;
  }
}

template <typename T>
static inline void softmax_cross_entropy_backward_cpu(T *dlogits, const T *probabilities, const int *labels, T scale,
                                                      int batch, int classes) {
  for (int b = 0; b < batch; b++) {
    for (int c = 0; c < classes; c++) {
      size_t i = (size_t)b * classes + c;
      dlogits[i] = (probabilities[i] - (c == labels[b] ? 1 : 0)) * scale;
    }
  }
}

/* totals[0] += the losses, totals[1] += how many rows have their (first) largest probability at the label. */
static inline void softmax_cross_entropy_score_cpu(double totals[2], const float *losses, const float *probabilities,
                                                   const int *labels, int batch, int classes) {
  for (int b = 0; b < batch; b++) {
    const float *p = probabilities + (size_t)b * classes;
    int best = 0;
    for (int c = 1; c < classes; c++)
      if (p[c] > p[best]) best = c;
    totals[0] += losses[b];
    totals[1] += best == labels[b];
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU fast path */

enum { SOFTMAX_CPU_SERIAL = 4096 }; /* below this many logits, waking a second thread costs more than it saves */

static inline void softmax_cross_entropy_forward_cpu_fast(float *losses, float *probabilities, const float *logits,
                                                          const int *labels, int batch, int classes) {
#pragma omp parallel for schedule(static) if ((size_t)batch * classes > SOFTMAX_CPU_SERIAL)
  for (int b = 0; b < batch; b++) {
    const float *x = logits + (size_t)b * classes;
    float *p = probabilities + (size_t)b * classes;
    float max = x[0], sum = 0.0f;
    for (int c = 1; c < classes; c++)
      if (x[c] > max) max = x[c];
    for (int c = 0; c < classes; c++) {
      p[c] = expf(x[c] - max);
      sum += p[c];
    }
    for (int c = 0; c < classes; c++) p[c] /= sum;
    int label = labels[b];
    losses[b] = label >= 0 && label < classes ? logf(sum) - (x[label] - max) : NAN;
  }
}

/* One pass over a few numbers: the plain loops are as fast as it gets. */
static inline void softmax_cross_entropy_backward_cpu_fast(float *dlogits, const float *probabilities,
                                                           const int *labels, float scale, int batch, int classes) {
  softmax_cross_entropy_backward_cpu(dlogits, probabilities, labels, scale, batch, classes);
}

static inline void softmax_cross_entropy_score_cpu_fast(double totals[2], const float *losses,
                                                        const float *probabilities, const int *labels, int batch,
                                                        int classes) {
  softmax_cross_entropy_score_cpu(totals, losses, probabilities, labels, batch, classes);
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum { SOFTMAX_BLOCK = 128, SOFTMAX_SCORE_BLOCK = 256 };

/* A warp for each row: its 32 lanes stride over the classes and meet in a butterfly, after which each holds the result.
 * Lanes beyond the classes bring -inf to the maximum and 0 to the sum. */
static __global__ void softmax_cross_entropy_forward_kernel(float *losses, float *probabilities, const float *logits,
                                                            const int *labels, int batch, int classes) {
  int b = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (b >= batch) return; /* the whole warp */
  const float *x = logits + (size_t)b * classes;
  float *p = probabilities + (size_t)b * classes;

  float max = -INFINITY, sum = 0.0f;
  for (int c = lane; c < classes; c += 32) max = fmaxf(max, x[c]);
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
  for (int c = lane; c < classes; c += 32) sum += expf(x[c] - max);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  for (int c = lane; c < classes; c += 32) p[c] = expf(x[c] - max) / sum;
  if (lane == 0) {
    int label = labels[b];
    losses[b] = label >= 0 && label < classes ? logf(sum) - (x[label] - max) : NAN;
  }
}

static __global__ void softmax_cross_entropy_backward_kernel(float *dlogits, const float *probabilities,
                                                             const int *labels, float scale, int batch, int classes) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)batch * classes) return;
  int b = (int)(i / classes), c = (int)(i % classes);
  dlogits[i] = (probabilities[i] - (c == labels[b] ? 1.0f : 0.0f)) * scale;
}

/* One block, each thread a row at a time, then a tree in shared memory: always the same order, no atomics. */
static __global__ void softmax_cross_entropy_score_kernel(double *totals, const float *losses,
                                                          const float *probabilities, const int *labels, int batch,
                                                          int classes) {
  __shared__ double loss[SOFTMAX_SCORE_BLOCK], correct[SOFTMAX_SCORE_BLOCK];
  int t = threadIdx.x;
  loss[t] = correct[t] = 0.0;
  for (int b = t; b < batch; b += SOFTMAX_SCORE_BLOCK) {
    const float *p = probabilities + (size_t)b * classes;
    int best = 0;
    for (int c = 1; c < classes; c++)
      if (p[c] > p[best]) best = c;
    loss[t] += losses[b];
    correct[t] += best == labels[b];
  }
  for (int half = SOFTMAX_SCORE_BLOCK / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) {
      loss[t] += loss[t + half];
      correct[t] += correct[t + half];
    }
  }
  if (t == 0) {
    totals[0] += loss[0];
    totals[1] += correct[0];
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers: every array, totals too, lies on the GPU. */

static inline void softmax_cross_entropy_forward_gpu(float *losses, float *probabilities, const float *logits,
                                                     const int *labels, int batch, int classes) {
  int rows = SOFTMAX_BLOCK / 32; /* of a block */
  softmax_cross_entropy_forward_kernel<<<(batch + rows - 1) / rows, SOFTMAX_BLOCK>>>(losses, probabilities, logits,
                                                                                     labels, batch, classes);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_cross_entropy_backward_gpu(float *dlogits, const float *probabilities, const int *labels,
                                                      float scale, int batch, int classes) {
  size_t n = (size_t)batch * classes;
  int grid = (int)((n + SOFTMAX_BLOCK - 1) / SOFTMAX_BLOCK);
  softmax_cross_entropy_backward_kernel<<<grid, SOFTMAX_BLOCK>>>(dlogits, probabilities, labels, scale, batch, classes);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_cross_entropy_score_gpu(double *totals, const float *losses, const float *probabilities,
                                                   const int *labels, int batch, int classes) {
  softmax_cross_entropy_score_kernel<<<1, SOFTMAX_SCORE_BLOCK>>>(totals, losses, probabilities, labels, batch, classes);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_CUH */
