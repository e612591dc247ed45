/* losses.cuh - the error of a network as one number, and the gradient of that number.
 *
 *   x, t (n)   output of the network and target; the loss is the mean over all n, dx its gradient
 *
 *   mean squared error          (x - t)^2                           dx = 2 (x - t) / n
 *   binary cross-entropy        -t log(x) - (1 - t) log(1 - x)      dx = (x - t) / (x (1 - x)) / n     x, t in 0..1
 *     with logits, of sigmoid(x): max(x, 0) - x t + log(1 + exp(-|x|))     dx = (sigmoid(x) - t) / n   t in 0..1
 *   hinge                       max(0, 1 - t x)                     dx = (t x < 1 ? -t : 0) / n        t is -1 or 1
 *
 *   p (batch,classes), labels (batch)   probabilities and the right class; the mean is over the batch
 *
 *   cross-entropy               -log p[b][label]                    dp = -1 / (batch p[b][label]) at the label, else 0
 *
 * A probability that has been rounded to 0 has an infinite logarithm and an infinite gradient. As in PyTorch, the
 * binary cross-entropy clamps the logarithm at -100 and the divisor at 1e-12; the digits are lost nevertheless. The
 * forms that take logits avoid the problem: here for two classes, in softmax_cross_entropy.cuh for many. A NaN in x
 * makes the loss NaN.
 *
 * A mean over n is a sum to which every block contributes. atomicAdd would add the contributions in the order in which
 * blocks finish, so the last digits would change from run to run. Here each block stores its sum in a place of its own,
 * and one block of a second kernel adds them in a fixed order. Sums are kept in double: one addition per four floats
 * takes no time beside their loads.
 *
 *   *_cpu                  plain loops, in double
 *   loss_forward_tree      one float per step of a thread; a tree in shared memory, with one barrier per level
 *   loss_forward_shuffle   the tree uses shuffles within each warp
 *   loss_forward           four floats per step
 *   loss_backward_scalar, loss_backward           one float, four floats per thread
 *   loss_separate, loss_fused                     both directions in two kernels, and in one that reads x and t once
 *   cross_entropy_separate   clears dp, then sets one element per row
 *   cross_entropy_fused      writes each element once; the loss is added up at the same time
 *
 * The block sums lie in a static array: two of these functions must not run at the same time (in two streams).
 */
#ifndef PHASE1_BUILDING_BLOCKS_LOSSES_CUH
#define PHASE1_BUILDING_BLOCKS_LOSSES_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference: total (1), dx (n) or dp (batch,classes); NULL where it is not wanted */

template <typename T>
static inline void mse_cpu(T *total, T *dx, const T *x, const T *t, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double difference = (double)x[i] - t[i];
    sum += difference * difference;
    if (dx != NULL) dx[i] = (T)(2 * difference / n);
  }
  if (total != NULL) *total = (T)(sum / n);
}

template <typename T>
static inline void bce_cpu(T *total, T *dx, const T *x, const T *t, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double p = x[i], log_p = log(p), log_rest = log1p(-p), width = p * (1 - p);
    if (log_p < -100) log_p = -100;
    if (log_rest < -100) log_rest = -100;
    if (width < 1e-12) width = 1e-12;
    sum -= t[i] * log_p + (1 - (double)t[i]) * log_rest;
    if (dx != NULL) dx[i] = (T)((p - t[i]) / width / n);
  }
  if (total != NULL) *total = (T)(sum / n);
}

template <typename T>
static inline void bce_logits_cpu(T *total, T *dx, const T *x, const T *t, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double e = exp(-fabs((double)x[i])), sigmoid = (x[i] < 0 ? e : 1) / (1 + e);
    sum += (x[i] > 0 ? x[i] : 0) - (double)x[i] * t[i] + log1p(e);
    if (dx != NULL) dx[i] = (T)((sigmoid - t[i]) / n);
  }
  if (total != NULL) *total = (T)(sum / n);
}

template <typename T>
static inline void hinge_cpu(T *total, T *dx, const T *x, const T *t, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    T margin = t[i] * x[i]; /* in T: the side of the bend on which an element lies must not depend on the precision */
    if (!(margin >= 1)) sum += 1 - (double)t[i] * x[i];
    if (dx != NULL) dx[i] = margin >= 1 ? 0 : (T)(-(double)t[i] / n);
  }
  if (total != NULL) *total = (T)(sum / n);
}

template <typename T>
static inline void cross_entropy_cpu(T *total, T *dp, const T *p, const int *labels, int batch, int classes) {
  double sum = 0;
  for (int b = 0; b < batch; b++) {
    double right = p[(size_t)b * classes + labels[b]];
    sum -= log(right);
    for (int c = 0; c < classes && dp != NULL; c++)
      dp[(size_t)b * classes + c] = c == labels[b] ? (T)(-1 / (batch * right)) : 0;
  }
  if (total != NULL) *total = (T)(sum / batch);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One element */

typedef enum LossKind { LOSS_MSE, LOSS_BCE, LOSS_BCE_LOGITS, LOSS_HINGE } LossKind;

static __device__ float bce_logits_one(float x, float t) {
  float loss = 0;
  // >>> exercise loss_bce_logits: -t log(s) - (1 - t) log(1 - s) with s = sigmoid(x), also for x = 100 and x = -100
  // hint: -log(sigmoid(x)) = log(1 + exp(-x)), and -log(1 - sigmoid(x)) = log(1 + exp(-x)) + x
  // hint: so it is x - x t + log(1 + exp(-x)); where exp(-x) overflows, log(1 + exp(-x)) = log(1 + exp(x)) - x helps
  // hint: loss = fmaxf(x, 0) - x * t + log1pf(expf(-fabsf(x)));
  loss = fmaxf(x, 0.0f) - x * t + log1pf(expf(-fabsf(x)));
  // <<< exercise
  return loss;
}

static __device__ float bce_logits_slope_one(float x, float t) {
  float e = expf(-fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e) - t;
}

/* Not fmaxf(): it returns -100 for NaN and -100. */
static __device__ float bce_log(float log_p) { return log_p < -100.0f ? -100.0f : log_p; }

/* The loss of one element, and n times its dx. */
template <LossKind KIND>
static __device__ float loss_one(float x, float t) {
  switch (KIND) { /* known to the compiler */
    case LOSS_MSE:
      return (x - t) * (x - t);
    case LOSS_BCE:
      return -t * bce_log(logf(x)) - (1.0f - t) * bce_log(log1pf(-x));
    case LOSS_BCE_LOGITS:
      return bce_logits_one(x, t);
    default:
      return t * x >= 1.0f ? 0.0f : 1.0f - t * x;
  }
}

template <LossKind KIND>
static __device__ float loss_slope_one(float x, float t) {
  switch (KIND) {
    case LOSS_MSE:
      return 2.0f * (x - t);
    case LOSS_BCE: /* faster than `/`, and within 2 units in the last place */
      return __fdividef(x - t, fmaxf(x * (1.0f - x), 1e-12f));
    case LOSS_BCE_LOGITS:
      return bce_logits_slope_one(x, t);
    default:
      return t * x >= 1.0f ? 0.0f : -t;
  }
}

template <LossKind KIND>
static __device__ float loss_four(float4 x, float4 t) {
  return (loss_one<KIND>(x.x, t.x) + loss_one<KIND>(x.y, t.y)) + (loss_one<KIND>(x.z, t.z) + loss_one<KIND>(x.w, t.w));
}

template <LossKind KIND>
static __device__ float4 loss_slope_four(float4 x, float4 t, float scale) {
  return make_float4(loss_slope_one<KIND>(x.x, t.x) * scale, loss_slope_one<KIND>(x.y, t.y) * scale,
                     loss_slope_one<KIND>(x.z, t.z) * scale, loss_slope_one<KIND>(x.w, t.w) * scale);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Sums */

enum { LOSS_BLOCK = 256, LOSS_WARPS = LOSS_BLOCK / 32, LOSS_BLOCKS = 16384 };

static __device__ double loss_sums[LOSS_BLOCKS]; /* one per block */
static __device__ unsigned loss_sums_done;       /* how many are written, while cross_entropy_fused_kernel runs */

/* The sum over a block of LOSS_BLOCK threads, in thread 0. */
static __device__ double loss_block_sum_tree(double sum) {
  __shared__ double sums[LOSS_BLOCK];
  int i = threadIdx.x;
  sums[i] = sum;
  for (int half = LOSS_BLOCK / 2; half > 0; half /= 2) {
    __syncthreads();
    if (i < half) sums[i] += sums[i + half];
  }
  return i == 0 ? sums[0] : 0;
}

static __device__ double loss_block_sum(double sum) {
  __shared__ double sums[LOSS_WARPS]; /* one for each warp */
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // >>> exercise loss_block_sum: the sum over the block, in thread 0, by shuffles within each warp
  // hint: __shfl_xor_sync(0xffffffffu, sum, 16) is the `sum` of the lane 16 places away; after 16, 8, 4, 2, 1 all agree
  // hint: lane 0 of each warp stores its sum in sums[warp]; then a barrier; then warp 0 adds up the LOSS_WARPS sums
  // hint: in warp 0: sum = lane < LOSS_WARPS ? sums[lane] : 0; and the same five steps
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < LOSS_WARPS ? sums[lane] : 0;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  }
  // <<< exercise
  return sum;
}

/* One block computes total (1), the mean over n, from the blocks' sums, always in the same order. Each thread has 16
 * loads in flight: loaded one after the other, 16384 sums took an eighth of the time of the kernel before. */
static __device__ void loss_add_up(float *total, size_t n, unsigned blocks) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < blocks; i += 16 * LOSS_BLOCK) {
    double part[16];
#pragma unroll
    for (unsigned j = 0; j < 16; j++) { /* __ldcg() reads L2: other blocks of this kernel may have written the sums */
      unsigned at = i + j * LOSS_BLOCK;
      part[j] = at < blocks ? __ldcg(&loss_sums[at]) : 0;
    }
#pragma unroll
    for (int j = 0; j < 16; j++) sum += part[j];
  }
  sum = loss_block_sum(sum);
  if (threadIdx.x == 0) *total = (float)(sum / n);
}

static __global__ void loss_total_kernel(float *total, size_t n, unsigned blocks) { loss_add_up(total, n, blocks); }

/* Returns true in the last of `blocks` blocks that call this function; it then sees what the others wrote before their
 * calls. A call takes one or two microseconds, less than a second kernel. But 16384 blocks wait for one another at the
 * counter (30 us on an H200). */
static __device__ bool loss_block_is_last(unsigned blocks) {
  bool last = false;
  if (threadIdx.x == 0) {
    __threadfence();                                             /* the sum must be visible before the count */
    last = atomicInc(&loss_sums_done, blocks - 1) == blocks - 1; /* wraps around to 0 */
    __threadfence();
  }
  return __syncthreads_or(last); /* all threads get thread 0's answer */
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels. The first 4 * quads floats are read as float4, the rest one by one; quads is 0 if the arrays are not
 * aligned. */

template <LossKind KIND, bool TREE>
static __global__ void loss_forward_scalar_kernel(const float *x, const float *t, size_t n) {
  size_t first = (size_t)blockIdx.x * LOSS_BLOCK + threadIdx.x, step = (size_t)gridDim.x * LOSS_BLOCK;
  double sum = 0;
  for (size_t i = first; i < n; i += step) sum += loss_one<KIND>(x[i], t[i]);
  sum = TREE ? loss_block_sum_tree(sum) : loss_block_sum(sum);
  if (threadIdx.x == 0) loss_sums[blockIdx.x] = sum;
}

template <LossKind KIND>
static __global__ void __launch_bounds__(LOSS_BLOCK)
    loss_forward_kernel(const float *x, const float *t, size_t n, size_t quads) {
  size_t first = (size_t)blockIdx.x * LOSS_BLOCK + threadIdx.x, step = (size_t)gridDim.x * LOSS_BLOCK;
  double sum = 0;
#pragma unroll 4 /* so that eight loads are in flight at once */
  for (size_t i = first; i < quads; i += step) sum += loss_four<KIND>(((const float4 *)x)[i], ((const float4 *)t)[i]);
  for (size_t i = 4 * quads + first; i < n; i += step) sum += loss_one<KIND>(x[i], t[i]);
  sum = loss_block_sum(sum);
  if (threadIdx.x == 0) loss_sums[blockIdx.x] = sum;
}

template <LossKind KIND>
static __global__ void loss_backward_scalar_kernel(float *dx, const float *x, const float *t, size_t n, float scale) {
  size_t i = (size_t)blockIdx.x * LOSS_BLOCK + threadIdx.x;
  if (i < n) dx[i] = loss_slope_one<KIND>(x[i], t[i]) * scale;
}

/* One thread per quad; the same threads take the rest, one float each. */
template <LossKind KIND>
static __global__ void loss_backward_kernel(float *dx, const float *x, const float *t, size_t n, size_t quads,
                                            float scale) {
  size_t i = (size_t)blockIdx.x * LOSS_BLOCK + threadIdx.x;
  if (i < quads) ((float4 *)dx)[i] = loss_slope_four<KIND>(((const float4 *)x)[i], ((const float4 *)t)[i], scale);
  size_t rest = 4 * quads + i;
  if (rest < n) dx[rest] = loss_slope_one<KIND>(x[rest], t[rest]) * scale;
}

template <LossKind KIND>
static __global__ void __launch_bounds__(LOSS_BLOCK)
    loss_fused_kernel(float *dx, const float *x, const float *t, size_t n, size_t quads, float scale) {
  size_t first = (size_t)blockIdx.x * LOSS_BLOCK + threadIdx.x, step = (size_t)gridDim.x * LOSS_BLOCK;
  double sum = 0;
  for (size_t i = first; i < quads; i += step) {
    float4 a = ((const float4 *)x)[i], b = ((const float4 *)t)[i];
    sum += loss_four<KIND>(a, b);
    ((float4 *)dx)[i] = loss_slope_four<KIND>(a, b, scale);
  }
  for (size_t i = 4 * quads + first; i < n; i += step) {
    sum += loss_one<KIND>(x[i], t[i]);
    dx[i] = loss_slope_one<KIND>(x[i], t[i]) * scale;
  }
  sum = loss_block_sum(sum);
  if (threadIdx.x == 0) loss_sums[blockIdx.x] = sum;
}

/* One thread per row adds its loss and, if CLEARED is not NULL, stores its one gradient. Blocks 0..blocks - 1 share the
 * rows. */
static __device__ void cross_entropy_rows(float *cleared, const float *p, const int *labels, int batch, int classes,
                                          unsigned block, unsigned blocks) {
  double sum = 0;
  for (int b = block * LOSS_BLOCK + threadIdx.x; b < batch; b += blocks * LOSS_BLOCK) {
    size_t at = (size_t)b * classes + labels[b];
    sum -= logf(p[at]);
    if (cleared != NULL) cleared[at] = -1.0f / (batch * p[at]);
  }
  sum = loss_block_sum(sum);
  if (threadIdx.x == 0) loss_sums[block] = sum;
}

static __global__ void cross_entropy_rows_kernel(float *cleared, const float *p, const int *labels, int batch,
                                                 int classes) {
  cross_entropy_rows(cleared, p, labels, batch, classes, blockIdx.x, gridDim.x);
}

/* Blocks (x, b) share row b of dp, and then the rows that follow at steps of the grid's height. Every element is
 * written once. The first `adders` blocks of the grid also add up the loss while the others write. */
static __global__ void __launch_bounds__(LOSS_BLOCK)
    cross_entropy_fused_kernel(float *total, float *dp, const float *p, const int *labels, int batch, int classes,
                               unsigned adders) {
  unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  if (block < adders) {
    cross_entropy_rows(NULL, p, labels, batch, classes, block, adders);
    if (loss_block_is_last(adders)) loss_add_up(total, (size_t)batch, adders);
  }
  for (int b = blockIdx.y; b < batch; b += gridDim.y) {
    int label = labels[b];
    float *row = dp + (size_t)b * classes;
    for (int c = 4 * (blockIdx.x * LOSS_BLOCK + threadIdx.x); c < classes; c += 4 * gridDim.x * LOSS_BLOCK) {
      // >>> exercise cross_entropy_fill: columns c..c + 3 of row b of dp: -1 / (batch p[b][label]) at the label, else 0
      // hint: a row begins at a multiple of 16 bytes only if classes is a multiple of 4; then a float4 can be stored
      // hint: read p[b][label] only if c <= label && label < c + 4: only one thread of the row needs it
      // hint: make float values[4] first; then either one float4, or up to four floats while c + j < classes
      float values[4] = {0, 0, 0, 0};
      if (c <= label && label < c + 4)
        for (int j = 0; j < 4; j++)
          if (c + j == label) values[j] = -1.0f / (batch * p[(size_t)b * classes + label]);
      if ((uintptr_t)row % sizeof(float4) == 0 && c + 3 < classes) {
        *(float4 *)(row + c) = make_float4(values[0], values[1], values[2], values[3]);
      } else {
        for (int j = 0; j < 4; j++)
          if (c + j < classes) row[c + j] = values[j];
      }
      // <<< exercise
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers. All arrays, also total (1), lie on the GPU. */

static inline unsigned loss_blocks(size_t threads) { return (unsigned)((threads + LOSS_BLOCK - 1) / LOSS_BLOCK); }

/* The number of blocks for a grid-stride loop of `steps` steps in all, two or more per thread. A few blocks per
 * multiprocessor would keep it busy, but many balance the load better: on an H200, with arrays of 256 MB, 16384 blocks
 * are 7 % faster than 1024. */
static inline unsigned loss_walking_blocks(size_t steps) {
  unsigned blocks = loss_blocks((steps + 1) / 2);
  return blocks < (unsigned)LOSS_BLOCKS ? blocks : (unsigned)LOSS_BLOCKS;
}

static inline size_t loss_quads(const void *a, const void *b, const void *c, size_t n) {
  return ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % sizeof(float4) == 0 ? n / 4 : 0;
}

static inline void loss_total(float *total, size_t n, unsigned blocks) {
  loss_total_kernel<<<1, LOSS_BLOCK>>>(total, n, blocks);
  CUDA_CHECK_LAUNCH();
}

template <LossKind KIND>
static inline void loss_forward_tree(float *total, const float *x, const float *t, size_t n) {
  unsigned blocks = loss_walking_blocks(n);
  loss_forward_scalar_kernel<KIND, true><<<blocks, LOSS_BLOCK>>>(x, t, n);
  CUDA_CHECK_LAUNCH();
  loss_total(total, n, blocks);
}

template <LossKind KIND>
static inline void loss_forward_shuffle(float *total, const float *x, const float *t, size_t n) {
  unsigned blocks = loss_walking_blocks(n);
  loss_forward_scalar_kernel<KIND, false><<<blocks, LOSS_BLOCK>>>(x, t, n);
  CUDA_CHECK_LAUNCH();
  loss_total(total, n, blocks);
}

template <LossKind KIND>
static inline void loss_forward(float *total, const float *x, const float *t, size_t n) {
  size_t quads = loss_quads(x, t, NULL, n);
  unsigned blocks = loss_walking_blocks(quads > 0 ? quads : n);
  loss_forward_kernel<KIND><<<blocks, LOSS_BLOCK>>>(x, t, n, quads);
  CUDA_CHECK_LAUNCH();
  loss_total(total, n, blocks);
}

template <LossKind KIND>
static inline void loss_backward_scalar(float *dx, const float *x, const float *t, size_t n) {
  loss_backward_scalar_kernel<KIND><<<loss_blocks(n), LOSS_BLOCK>>>(dx, x, t, n, 1.0f / n);
  CUDA_CHECK_LAUNCH();
}

template <LossKind KIND>
static inline void loss_backward(float *dx, const float *x, const float *t, size_t n) {
  size_t quads = loss_quads(dx, x, t, n);
  loss_backward_kernel<KIND><<<loss_blocks(quads > 0 ? quads : n), LOSS_BLOCK>>>(dx, x, t, n, quads, 1.0f / n);
  CUDA_CHECK_LAUNCH();
}

template <LossKind KIND>
static inline void loss_separate(float *total, float *dx, const float *x, const float *t, size_t n) {
  loss_forward<KIND>(total, x, t, n);
  loss_backward<KIND>(dx, x, t, n);
}

template <LossKind KIND>
static inline void loss_fused(float *total, float *dx, const float *x, const float *t, size_t n) {
  size_t quads = loss_quads(dx, x, t, n);
  unsigned blocks = loss_walking_blocks(quads > 0 ? quads : n);
  loss_fused_kernel<KIND><<<blocks, LOSS_BLOCK>>>(dx, x, t, n, quads, 1.0f / n);
  CUDA_CHECK_LAUNCH();
  loss_total(total, n, blocks);
}

/* Both directions in one pass, as in training. */
static inline void mse_gpu(float *total, float *dx, const float *x, const float *t, size_t n) {
  loss_fused<LOSS_MSE>(total, dx, x, t, n);
}
static inline void bce_gpu(float *total, float *dx, const float *x, const float *t, size_t n) {
  loss_fused<LOSS_BCE>(total, dx, x, t, n);
}
static inline void bce_logits_gpu(float *total, float *dx, const float *x, const float *t, size_t n) {
  loss_fused<LOSS_BCE_LOGITS>(total, dx, x, t, n);
}
static inline void hinge_gpu(float *total, float *dx, const float *x, const float *t, size_t n) {
  loss_fused<LOSS_HINGE>(total, dx, x, t, n);
}

static inline void cross_entropy_separate(float *total, float *dp, const float *p, const int *labels, int batch,
                                          int classes) {
  unsigned blocks = loss_walking_blocks((size_t)batch);
  CUDA_CHECK(cudaMemsetAsync(dp, 0, (size_t)batch * classes * sizeof *dp));
  cross_entropy_rows_kernel<<<blocks, LOSS_BLOCK>>>(dp, p, labels, batch, classes);
  CUDA_CHECK_LAUNCH();
  loss_total(total, (size_t)batch, blocks);
}

/* gridDim.y is at most 65535: with more rows, a block takes several. batch and classes are at most 2^30. Each thread
 * has two steps; one block per 256 rows adds up the loss. */
static inline void cross_entropy_fused(float *total, float *dp, const float *p, const int *labels, int batch,
                                       int classes) {
  dim3 grid(loss_blocks(((size_t)classes + 7) / 8), (unsigned)(batch < 65535 ? batch : 65535));
  unsigned adders = loss_blocks((size_t)batch);
  if (adders > (unsigned)LOSS_BLOCKS) adders = (unsigned)LOSS_BLOCKS;
  cross_entropy_fused_kernel<<<grid, LOSS_BLOCK>>>(total, dp, p, labels, batch, classes, adders);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_LOSSES_CUH */
