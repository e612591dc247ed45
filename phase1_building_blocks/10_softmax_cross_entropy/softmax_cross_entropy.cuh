/* softmax_cross_entropy.cuh - scores, probabilities and loss in one operation that cannot overflow.
 *
 *   logits (B,C), labels (B), each 0..C-1
 *   probabilities (B,C):  p[b][c] = exp(x[b][c] - max) / sum,   sum = exp(x[b][0] - max) + ... + exp(x[b][C-1] - max)
 *   losses (B):           -log p[b][label] = log(sum) - (x[b][label] - max)
 *   dlogits (B,C):        (p - onehot(label)) * scale;  scale = 1/B makes it the gradient of the mean loss
 *
 * Subtracting the row's maximum changes nothing in exact arithmetic, and then exp() is at most 1. The loss is computed
 * from the sum and not from p, which may have underflowed to 0: log(0) would make the loss of a very wrong answer
 * infinite. A logit of -inf gives p = 0; NaN, +inf, or a row of nothing but -inf give NaN. A label outside 0..C-1 gives
 * the loss NaN, and nothing is read outside the arrays.
 *
 *   softmax_cross_entropy_*_cpu       plain loops, the sum in double
 *   softmax_cross_entropy_*_cpu_fast  float throughout, large batches shared among threads
 *   softmax_cross_entropy_*_gpu       one warp per row; score: one block, a tree
 *
 * Training needs losses and dlogits, but not p. The derivative of the loss with respect to x[c] is p[c] - 1 at the
 * label and p[c] elsewhere; the (C,C) Jacobian of the softmax is not needed. So one kernel can read every logit once
 * and write every gradient once; dlogits may be the array of the logits.
 *
 *   softmax_cross_entropy_separate   forward, which stores p, and backward: logits are read three times, p once
 *   softmax_cross_entropy_online     one block per row: maximum and sum in one pass, then a second pass: two reads
 *   softmax_cross_entropy_shared     the row is kept in shared memory: one read
 *   softmax_cross_entropy_quads      copied there asynchronously, 16 bytes at a time, with all copies in flight at once
 *   softmax_cross_entropy_fused      streaming stores; rows up to 1024 in the registers of a warp
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

#include <cuda_pipeline_primitives.h>

#include "common/check.h"
#include "common/shared_memory_limit.cuh"
#include "phase1_building_blocks/08_softmax/row_reduce.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum { SOFTMAX_BLOCK = 128, SOFTMAX_SCORE_BLOCK = 256 };

/* One warp per row: its 32 lanes stride over the classes and reduce by a butterfly of shuffles, after which each lane
 * holds the result. Lanes beyond the classes contribute -inf to the maximum and 0 to the sum. */
static __global__ void softmax_cross_entropy_forward_kernel(float *losses, float *probabilities, const float *logits,
                                                            const int *labels, int batch, int classes) {
  int b = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; /* threads, 32 * batch of them, can be more than 2^32 */
  int lane = threadIdx.x % 32;
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

/* One block; each thread takes one row at a time; then a tree in shared memory: always the same order, no atomics. */
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
/* Launchers: all arrays, also totals, lie on the GPU. */

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

/* ---------------------------------------------------------------------------------------------------------------- */
/* Losses and dlogits in one kernel. Block b takes row b. */

/* The label's logit; NaN for a label outside the classes, so that the loss is NaN. */
static __device__ __forceinline__ float softmax_cross_entropy_at(const float *x, int label, int classes) {
  return label >= 0 && label < classes ? x[label] : NAN;
}

/* The loss and the factor that turns exp(x - max) into p * scale. */
static __device__ __forceinline__ float softmax_cross_entropy_loss(MaxSum row, float at_label) {
  float loss = 0;
  // >>> exercise cross_entropy_loss: -log(p) of the label, from its logit, the row's maximum and sum of exp(x - max)
  // hint: p = exp(at_label - row.max) / row.sum; but for a logit far below the maximum p is 0, and log(0) is -inf
  // hint: the logarithm of a quotient is a difference, and log(exp(a)) is a: no intermediate result can underflow
  // hint: loss = logf(row.sum) - (at_label - row.max);
  loss = logf(row.sum) - (at_label - row.max);
  // <<< exercise
  return loss;
}

template <int T>
static __global__ void __launch_bounds__(T)
    softmax_cross_entropy_online_kernel(float *losses, float *dlogits, const float *logits, const int *labels,
                                        float scale, int classes) {
  const float *x = logits + (size_t)blockIdx.x * classes;
  float *dx = dlogits + (size_t)blockIdx.x * classes;
  int label = labels[blockIdx.x];
  float at_label = softmax_cross_entropy_at(x, label, classes); /* before dx is written: dx may be x */
  MaxSum row = max_sum_make(-INFINITY, 0);
  for (int c = threadIdx.x; c < classes; c += T) row = max_sum_add(row, x[c]);
  row = row_max_sum<T>(row);
  if (threadIdx.x == 0) losses[blockIdx.x] = softmax_cross_entropy_loss(row, at_label);
  float factor = scale / row.sum;
  for (int c = threadIdx.x; c < classes; c += T) dx[c] = expf(x[c] - row.max) * factor - (c == label ? scale : 0.0f);
}

/* Each thread reads back only what it stored itself, so no barrier is needed: shared memory serves as 200 KiB of
 * additional registers. */
template <int T>
static __global__ void __launch_bounds__(T)
    softmax_cross_entropy_shared_kernel(float *losses, float *dlogits, const float *logits, const int *labels,
                                        float scale, int classes) {
  extern __shared__ float4 softmax_row[];
  float *kept = (float *)softmax_row;
  const float *x = logits + (size_t)blockIdx.x * classes;
  float *dx = dlogits + (size_t)blockIdx.x * classes;
  int label = labels[blockIdx.x];
  float at_label = softmax_cross_entropy_at(x, label, classes);
  MaxSum row = max_sum_make(-INFINITY, 0);
#pragma unroll 8
  for (int c = threadIdx.x; c < classes; c += T) {
    kept[c] = x[c];
    row = max_sum_add(row, kept[c]);
  }
  row = row_max_sum<T>(row);
  if (threadIdx.x == 0) losses[blockIdx.x] = softmax_cross_entropy_loss(row, at_label);
  float factor = scale / row.sum;
#pragma unroll 8
  for (int c = threadIdx.x; c < classes; c += T) dx[c] = expf(kept[c] - row.max) * factor - (c == label ? scale : 0.0f);
}

/* Quad q of a row holds its floats 4 q - shift and the next three. `shift` is the offset of the row's beginning from a
 * multiple of 128 bytes, so that quads lie at multiples of 16 bytes and the 32 quads that a warp writes are four whole
 * lines: writing parts of lines is slow. At the ends of the row some floats of a quad, or all, lie outside the row. */
enum { SOFTMAX_LINE = 32 }; /* floats: 128 bytes */

/* Starts the copy of quad q of the row x into shared memory; floats outside the row become -inf, whose exp() is 0. */
static __device__ __forceinline__ void softmax_fetch_quad(float4 *kept, const float *x, int shift, int classes, int q) {
  int c = 4 * q - shift;
  // >>> exercise cross_entropy_fetch: kept[q] = x[c] ... x[c + 3], as 16 bytes if all are in the row; -inf outside
  // hint: __pipeline_memcpy_async(to, from, 16) copies without registers while the thread goes on; the caller waits
  // hint: at the ends each of the four floats is copied alone, if 0 <= c + j and c + j < classes
  // hint: ((float *)&kept[q])[j] = c + j >= 0 && c + j < classes ? x[c + j] : -INFINITY;
  if (c >= 0 && c + 3 < classes) {
    __pipeline_memcpy_async(&kept[q], x + c, sizeof *kept);
  } else {
    float *at = (float *)&kept[q];
    for (int j = 0; j < 4; j++) at[j] = c + j >= 0 && c + j < classes ? x[c + j] : -INFINITY;
  }
  // <<< exercise
}

/* STREAMED: stores dlogits with __stcs(), a hint to the L2 cache to evict them before the logits of other blocks.
 * logits and dlogits must have the same offset from a multiple of 16 bytes (rows_alike()), to be split in the same way.
 *
 * Otherwise __stwb() is used, the default kind of store. If it were written `*(float4 *)(dx + c) = v`, nvcc would see
 * that both branches store the same floats, merge them, and split the float4 into four stores: 776 us for 4096 rows of
 * 50257 on an H200, where `shared` takes 718 and the streamed float4 421. */
template <int T, bool STREAMED>
static __global__ void __launch_bounds__(T)
    softmax_cross_entropy_quads_kernel(float *losses, float *dlogits, const float *logits, const int *labels,
                                       float scale, int classes) {
  extern __shared__ float4 softmax_row[];
  const float *x = logits + (size_t)blockIdx.x * classes;
  float *dx = dlogits + (size_t)blockIdx.x * classes;
  int shift = (int)((uintptr_t)dx / sizeof(float) % SOFTMAX_LINE), quads = (shift + classes + 3) / 4;
  for (int q = threadIdx.x; q < quads; q += T) softmax_fetch_quad(softmax_row, x, shift, classes, q);
  __pipeline_commit();
  int label = labels[blockIdx.x];
  float at_label = softmax_cross_entropy_at(x, label, classes);
  __pipeline_wait_prior(0); /* for this thread's own copies: it reads no others */

  MaxSum row = max_sum_make(-INFINITY, 0); /* four elements at a time: 5 exp() instead of 8 */
  for (int q = threadIdx.x; q < quads; q += T) {
    float4 v = softmax_row[q];
    float max = fmaxf(row.max, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w))), finite = max == -INFINITY ? 0.0f : max;
    row.sum = row.sum * expf(row.max - finite) +
              ((expf(v.x - finite) + expf(v.y - finite)) + (expf(v.z - finite) + expf(v.w - finite)));
    row.max = max;
  }
  row = row_max_sum<T>(row);
  if (threadIdx.x == 0) losses[blockIdx.x] = softmax_cross_entropy_loss(row, at_label);

  float factor = scale / row.sum;
#pragma unroll 4
  for (int q = threadIdx.x; q < quads; q += T) {
    float4 v = softmax_row[q];
    int c = 4 * q - shift, j = label - c;
    v.x = expf(v.x - row.max) * factor - (j == 0 ? scale : 0.0f);
    v.y = expf(v.y - row.max) * factor - (j == 1 ? scale : 0.0f);
    v.z = expf(v.z - row.max) * factor - (j == 2 ? scale : 0.0f);
    v.w = expf(v.w - row.max) * factor - (j == 3 ? scale : 0.0f);
    if (c >= 0 && c + 3 < classes) {
      if (STREAMED)
        __stcs((float4 *)(dx + c), v);
      else
        __stwb((float4 *)(dx + c), v);
    } else {
      const float part[4] = {v.x, v.y, v.z, v.w};
      for (int i = 0; i < 4; i++)
        if (c + i >= 0 && c + i < classes) dx[c + i] = part[i];
    }
  }
}

/* One warp per row, which it keeps in its registers: up to 32 * EACH classes. */
template <int EACH>
static __global__ void __launch_bounds__(SOFTMAX_BLOCK)
    softmax_cross_entropy_warp_kernel(float *losses, float *dlogits, const float *logits, const int *labels,
                                      float scale, int batch, int classes) {
  int b = blockIdx.x * (SOFTMAX_BLOCK / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (b >= batch) return; /* the whole warp */
  const float *x = logits + (size_t)b * classes;
  float *dx = dlogits + (size_t)b * classes;
  int label = labels[b];
  float at_label = softmax_cross_entropy_at(x, label, classes);
  float v[EACH], max = -INFINITY, sum = 0;
#pragma unroll
  for (int i = 0; i < EACH; i++) v[i] = lane + 32 * i < classes ? x[lane + 32 * i] : -INFINITY;
  __syncwarp(); /* all lanes must have read x before one of them writes dx, which may be x */
#pragma unroll
  for (int i = 0; i < EACH; i++) max = fmaxf(max, v[i]);
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    v[i] = expf(v[i] - max);
    sum += v[i];
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) losses[b] = softmax_cross_entropy_loss(max_sum_make(max, sum), at_label);
  float factor = scale / sum;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int c = lane + 32 * i;
    // >>> exercise cross_entropy_gradient: dx[c] = (p[c] - onehot(label)[c]) * scale, if there is a class c
    // hint: p[c] is exp(x[c] - max) / sum, and v[i] has become exp(x[c] - max)
    // hint: factor is scale / sum, computed once; `scale` is subtracted at the label
    // hint: if (c < classes) dx[c] = v[i] * factor - (c == label ? scale : 0.0f);
    if (c < classes) dx[c] = v[i] * factor - (c == label ? scale : 0.0f);
    // <<< exercise
  }
}

enum { SOFTMAX_ROW_BLOCK = 1024, SOFTMAX_SHORT_ROW_BLOCK = 256, SOFTMAX_SHORT_ROW = 8192, SOFTMAX_WARP_ROW = 1024 };

/* Both kernels; dlogits holds p in between: only this version cannot work in place. */
static inline void softmax_cross_entropy_separate(float *losses, float *dlogits, const float *logits, const int *labels,
                                                  float scale, int batch, int classes) {
  softmax_cross_entropy_forward_gpu(losses, dlogits, logits, labels, batch, classes);
  softmax_cross_entropy_backward_gpu(dlogits, dlogits, labels, scale, batch, classes);
}

static inline void softmax_cross_entropy_online(float *losses, float *dlogits, const float *logits, const int *labels,
                                                float scale, int batch, int classes) {
  if (classes > SOFTMAX_SHORT_ROW)
    softmax_cross_entropy_online_kernel<SOFTMAX_ROW_BLOCK>
        <<<batch, SOFTMAX_ROW_BLOCK>>>(losses, dlogits, logits, labels, scale, classes);
  else
    softmax_cross_entropy_online_kernel<SOFTMAX_SHORT_ROW_BLOCK>
        <<<batch, SOFTMAX_SHORT_ROW_BLOCK>>>(losses, dlogits, logits, labels, scale, classes);
  CUDA_CHECK_LAUNCH();
}

typedef void SoftmaxRowKernel(float *losses, float *dlogits, const float *logits, const int *labels, float scale,
                              int classes);

/* More than 48 KiB of shared memory must be requested, once per kernel. */
static inline void softmax_launch_rows(SoftmaxRowKernel *kernel, int threads, size_t bytes, float *losses,
                                       float *dlogits, const float *logits, const int *labels, float scale, int batch,
                                       int classes) {
  if (bytes > 48 * 1024)
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  kernel<<<batch, threads, bytes>>>(losses, dlogits, logits, labels, scale, classes);
  CUDA_CHECK_LAUNCH();
}

/* Rows that do not fit into shared memory are read twice. */
static inline void softmax_cross_entropy_shared(float *losses, float *dlogits, const float *logits, const int *labels,
                                                float scale, int batch, int classes) {
  size_t bytes = (size_t)classes * sizeof(float);
  if (bytes > shared_limit_beside(1024))
    softmax_cross_entropy_online(losses, dlogits, logits, labels, scale, batch, classes);
  else if (classes > SOFTMAX_SHORT_ROW)
    softmax_launch_rows(softmax_cross_entropy_shared_kernel<SOFTMAX_ROW_BLOCK>, SOFTMAX_ROW_BLOCK, bytes, losses,
                        dlogits, logits, labels, scale, batch, classes);
  else
    softmax_launch_rows(softmax_cross_entropy_shared_kernel<SOFTMAX_SHORT_ROW_BLOCK>, SOFTMAX_SHORT_ROW_BLOCK, bytes,
                        losses, dlogits, logits, labels, scale, batch, classes);
}

template <bool STREAMED>
static inline void softmax_cross_entropy_rows(float *losses, float *dlogits, const float *logits, const int *labels,
                                              float scale, int batch, int classes) {
  size_t bytes = ((size_t)classes + SOFTMAX_LINE + 2) / 4 * sizeof(float4);
  if (!rows_alike(logits, dlogits) || bytes > shared_limit_beside(1024))
    softmax_cross_entropy_shared(losses, dlogits, logits, labels, scale, batch, classes);
  else if (classes > SOFTMAX_SHORT_ROW)
    softmax_launch_rows(softmax_cross_entropy_quads_kernel<SOFTMAX_ROW_BLOCK, STREAMED>, SOFTMAX_ROW_BLOCK, bytes,
                        losses, dlogits, logits, labels, scale, batch, classes);
  else
    softmax_launch_rows(softmax_cross_entropy_quads_kernel<SOFTMAX_SHORT_ROW_BLOCK, STREAMED>, SOFTMAX_SHORT_ROW_BLOCK,
                        bytes, losses, dlogits, logits, labels, scale, batch, classes);
}

static inline void softmax_cross_entropy_quads(float *losses, float *dlogits, const float *logits, const int *labels,
                                               float scale, int batch, int classes) {
  softmax_cross_entropy_rows<false>(losses, dlogits, logits, labels, scale, batch, classes);
}

template <int EACH>
static inline void softmax_cross_entropy_warps(float *losses, float *dlogits, const float *logits, const int *labels,
                                               float scale, int batch, int classes) {
  int rows = SOFTMAX_BLOCK / 32; /* of a block */
  softmax_cross_entropy_warp_kernel<EACH>
      <<<(batch + rows - 1) / rows, SOFTMAX_BLOCK>>>(losses, dlogits, logits, labels, scale, batch, classes);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_cross_entropy_fused(float *losses, float *dlogits, const float *logits, const int *labels,
                                               float scale, int batch, int classes) {
  if (classes > SOFTMAX_WARP_ROW)
    softmax_cross_entropy_rows<true>(losses, dlogits, logits, labels, scale, batch, classes);
  else if (classes > 512)
    softmax_cross_entropy_warps<32>(losses, dlogits, logits, labels, scale, batch, classes);
  else if (classes > 256)
    softmax_cross_entropy_warps<16>(losses, dlogits, logits, labels, scale, batch, classes);
  else if (classes > 128)
    softmax_cross_entropy_warps<8>(losses, dlogits, logits, labels, scale, batch, classes);
  else if (classes > 32)
    softmax_cross_entropy_warps<4>(losses, dlogits, logits, labels, scale, batch, classes);
  else
    softmax_cross_entropy_warps<1>(losses, dlogits, logits, labels, scale, batch, classes);
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_CUH */
