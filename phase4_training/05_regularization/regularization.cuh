/* regularization.cuh - the kernels behind three regularizers: soft labels in the loss, mixed samples, averaged weights.
 *
 *   losses (B), dlogits (B,C) from logits (B,C), labels (B): softmax cross-entropy against the targets
 *     target[b][c] = (1 - s) ((1 - m) [c = label b] + m [c = label B-1-b]) + s / C
 *
 *   soft_targets    the targets are written as an array, then read by the loss and by the gradient
 *   soft_separate   no such array: each element's target follows from two labels. Loss and gradient are two kernels
 *   soft_fused      one kernel, one warp per row: the logits are read three times, from the cache
 *   soft_registers  the same with the row in the warp's registers: one read (up to 1024 classes, else soft_fused)
 *
 *   y (B,W) from x (B,W): y[b] = (1 - m) x[b] + m x[B-1-b]
 *
 *   mixup_two_passes  the partners are copied to y, then mixed in
 *   mixup_samples     one thread per element, which it reads from both samples
 *   mixup_pairs       one thread per pair of elements: both are read once and written once; y may be x
 *   mixup_gpu         the same, 16 bytes at a time (common/nn/mixup.h, as networks use it)
 *
 *   w, momentum, average (n): a step of SGD, and average += share (w - average)
 *
 *   ema_each   a launch of the average for each tensor
 *   ema_flat   one launch for all tensors (common/nn/average.h, as networks use it)
 *   ema_fused  in the optimizer's kernel, which has the new weight in a register
 *
 * CPU references: softmax_cross_entropy_soft_*_cpu() of soft_labels.cuh, mixup_cpu(), sgd_update_cpu(), average_cpu().
 */
#ifndef PHASE4_TRAINING_REGULARIZATION_CUH
#define PHASE4_TRAINING_REGULARIZATION_CUH

#include "common/nn/average.h"
#include "common/nn/mixup.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/soft_labels.cuh"
#include "phase4_training/01_sgd/sgd.cuh"

enum { REGULARIZATION_BLOCK = 256 };

/* ---------------------------------------------------------------------------------------------------------------- */
/* Soft labels */

typedef void SoftLauncher(float *losses, float *dlogits, const float *logits, const int *labels, SoftLabels soft,
                          float scale, int batch, int classes);

static __global__ void soft_targets_kernel(float *targets, const int *labels, SoftLabels soft, int batch, int classes) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)batch * classes) return;
  const int b = (int)(i / classes), c = (int)(i % classes);
  targets[i] = soft_target<float>(soft, c, labels[b], labels[batch - 1 - b], classes);
}

/* The maximum of a row and the sum of exp(x - max), in all lanes of its warp. */
static __device__ __forceinline__ MaxSum soft_row(const float *x, int classes) {
  float max = -INFINITY, sum = 0;
  for (int c = threadIdx.x % 32; c < classes; c += 32) max = fmaxf(max, x[c]);
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
  for (int c = threadIdx.x % 32; c < classes; c += 32) sum += expf(x[c] - max);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return max_sum_make(max, sum);
}

static __device__ __forceinline__ float soft_warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

/* One warp per row; the targets lie where the gradient goes. */
static __global__ void soft_dense_kernel(float *losses, float *dlogits, const float *logits, float scale, int batch,
                                         int classes) {
  const int b = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (b >= batch) return; /* the whole warp */
  const float *x = logits + (size_t)b * classes;
  float *dx = dlogits + (size_t)b * classes;
  const MaxSum row = soft_row(x, classes);
  float loss = 0;
  for (int c = lane; c < classes; c += 32)
    if (dx[c] > 0) loss += dx[c] * (logf(row.sum) - (x[c] - row.max));
  loss = soft_warp_sum(loss);
  if (lane == 0) losses[b] = loss;
  for (int c = lane; c < classes; c += 32) dx[c] = (expf(x[c] - row.max) / row.sum - dx[c]) * scale;
}

/* Of a row from its logarithm and three values of x - max: at the own label, at the other one, and their mean. */
static __device__ __forceinline__ float soft_loss(SoftLabels soft, float log_sum, float own, float other, float mean) {
  float loss = 0;
  const float s = soft.smoothing, m = soft.share;
  // >>> exercise soft_loss: the sum of target (log_sum - (x - max)) over all classes, without a loop
  // hint: the targets add up to 1, so log_sum comes out of the sum, and what is left is linear in x - max
  // hint: own counts (1 - s) (1 - m), other counts (1 - s) m, and each class s / C: together s times the mean
  // hint: loss = log_sum - (1 - s) * ((1 - m) * own + m * other) - s * mean;
  loss = log_sum - (1 - s) * ((1 - m) * own + m * other) - s * mean;
  // <<< exercise
  return loss;
}

/* dx of class c, whose probability is p. */
static __device__ __forceinline__ float soft_gradient(SoftLabels soft, float p, int c, int own, int other, float scale,
                                                      int classes) {
  float dx = 0;
  const float s = soft.smoothing, m = soft.share;
  // >>> exercise soft_gradient: (p - target) * scale, the target of class c by the formula at the top of this file
  // hint: a class may be the own label, the other label, or both, and it always is one of all
  // hint: target begins with s / classes; (1 - s) * (1 - m) is added at own, (1 - s) * m at other
  // hint: label = (c == own ? 1 - m : 0) + (c == other ? m : 0); dx = (p - (1 - s) * label - s / classes) * scale;
  const float label = (c == own ? 1 - m : 0) + (c == other ? m : 0);
  dx = (p - (1 - s) * label - s / classes) * scale;
  // <<< exercise
  return dx;
}

/* One warp per row, in one kernel. */
static __global__ void soft_fused_kernel(float *losses, float *dlogits, const float *logits, const int *labels,
                                         SoftLabels soft, float scale, int batch, int classes) {
  const int b = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (b >= batch) return; /* the whole warp */
  const float *x = logits + (size_t)b * classes;
  float *dx = dlogits + (size_t)b * classes, all = 0;
  const int own = labels[b], other = labels[batch - 1 - b];
  const MaxSum row = soft_row(x, classes);
  for (int c = lane; c < classes; c += 32) {
    all += x[c] - row.max;
    dx[c] = soft_gradient(soft, expf(x[c] - row.max) / row.sum, c, own, other, scale, classes);
  }
  all = soft_warp_sum(all);
  if (lane == 0) losses[b] = soft_loss(soft, logf(row.sum), x[own] - row.max, x[other] - row.max, all / classes);
}

/* The row in registers: up to 32 * EACH classes. */
template <int EACH>
static __global__ void __launch_bounds__(SOFTMAX_BLOCK)
    soft_registers_kernel(float *losses, float *dlogits, const float *logits, const int *labels, SoftLabels soft,
                          float scale, int batch, int classes) {
  const int b = blockIdx.x * (SOFTMAX_BLOCK / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (b >= batch) return; /* the whole warp */
  const float *x = logits + (size_t)b * classes;
  float *dx = dlogits + (size_t)b * classes, v[EACH], max = -INFINITY, sum = 0, all = 0;
  const int own = labels[b], other = labels[batch - 1 - b];
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    v[i] = lane + 32 * i < classes ? x[lane + 32 * i] : -INFINITY;
    max = fmaxf(max, v[i]);
  }
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    if (lane + 32 * i < classes) all += v[i] - max;
    v[i] = expf(v[i] - max);
    sum += v[i];
  }
  sum = soft_warp_sum(sum);
  all = soft_warp_sum(all);
  if (lane == 0) losses[b] = soft_loss(soft, logf(sum), x[own] - max, x[other] - max, all / classes);
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int c = lane + 32 * i;
    if (c < classes) dx[c] = soft_gradient(soft, v[i] / sum, c, own, other, scale, classes);
  }
}

/* Blocks of SOFTMAX_BLOCK threads, a warp for each row. */
static inline unsigned soft_blocks(int batch) {
  const int rows = SOFTMAX_BLOCK / 32;
  return (unsigned)((batch + rows - 1) / rows);
}

static inline void soft_targets(float *losses, float *dlogits, const float *logits, const int *labels, SoftLabels soft,
                                float scale, int batch, int classes) {
  const size_t n = (size_t)batch * classes;
  soft_targets_kernel<<<(unsigned)((n + REGULARIZATION_BLOCK - 1) / REGULARIZATION_BLOCK), REGULARIZATION_BLOCK>>>(
      dlogits, labels, soft, batch, classes);
  CUDA_CHECK_LAUNCH();
  soft_dense_kernel<<<soft_blocks(batch), SOFTMAX_BLOCK>>>(losses, dlogits, logits, scale, batch, classes);
  CUDA_CHECK_LAUNCH();
}

/* dlogits holds p in between. */
static inline void soft_separate(float *losses, float *dlogits, const float *logits, const int *labels, SoftLabels soft,
                                 float scale, int batch, int classes) {
  softmax_cross_entropy_soft_forward_gpu(losses, dlogits, logits, labels, soft, batch, classes);
  softmax_cross_entropy_soft_backward_gpu(dlogits, dlogits, labels, soft, scale, batch, classes);
}

static inline void soft_fused(float *losses, float *dlogits, const float *logits, const int *labels, SoftLabels soft,
                              float scale, int batch, int classes) {
  soft_fused_kernel<<<soft_blocks(batch), SOFTMAX_BLOCK>>>(losses, dlogits, logits, labels, soft, scale, batch,
                                                           classes);
  CUDA_CHECK_LAUNCH();
}

static inline void soft_registers(float *losses, float *dlogits, const float *logits, const int *labels,
                                  SoftLabels soft, float scale, int batch, int classes) {
  if (classes > SOFTMAX_WARP_ROW)
    soft_fused(losses, dlogits, logits, labels, soft, scale, batch, classes);
  else if (classes > 128)
    soft_registers_kernel<32>
        <<<soft_blocks(batch), SOFTMAX_BLOCK>>>(losses, dlogits, logits, labels, soft, scale, batch, classes);
  else
    soft_registers_kernel<4>
        <<<soft_blocks(batch), SOFTMAX_BLOCK>>>(losses, dlogits, logits, labels, soft, scale, batch, classes);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Mixed samples */

typedef void MixupLauncher(float *y, const float *x, int batch, size_t width, float share, const float *share_at);

/* Blocks (columns, samples) */
static __global__ void mixup_partner_kernel(float *y, const float *x, int batch, size_t width) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y;
  if (i < width) y[b * width + i] = x[(batch - 1 - b) * width + i];
}

static __global__ void mixup_into_kernel(float *y, const float *x, size_t width, float share) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, at = blockIdx.y * width + i;
  if (i < width) y[at] = mixup_one(x[at], y[at], share);
}

static __global__ void mixup_samples_kernel(float *y, const float *x, int batch, size_t width, float share) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y;
  if (i < width) y[b * width + i] = mixup_one(x[b * width + i], x[(batch - 1 - b) * width + i], share);
}

/* Blocks (columns, pairs): of an odd batch the last pair is one sample. */
static __global__ void mixup_pairs_kernel(float *y, const float *x, int batch, size_t width, float share) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y;
  if (i >= width) return;
  // >>> exercise mixup_pair: both samples of pair b, at column i: read x twice, then write y twice; y may be x
  // hint: sample b and its partner, batch - 1 - b, need the same two numbers: read both before you write the first
  // hint: mixup_one(own, other, share) mixes one number; the partner's own is the other's other
  // hint: const size_t two = (batch - 1 - b) * width + i; ... y[two] = mixup_one(second, first, share);
  const size_t one = b * width + i, two = (batch - 1 - b) * width + i;
  const float first = x[one], second = x[two];
  y[one] = mixup_one(first, second, share);
  y[two] = mixup_one(second, first, share);
  // <<< exercise
}

static inline dim3 mixup_grid(size_t width, int rows) {
  return dim3((unsigned)((width + MIXUP_BLOCK - 1) / MIXUP_BLOCK), (unsigned)rows);
}

static inline void mixup_two_passes(float *y, const float *x, int batch, size_t width, float share,
                                    const float *share_at) {
  (void)share_at;
  mixup_partner_kernel<<<mixup_grid(width, batch), MIXUP_BLOCK>>>(y, x, batch, width);
  CUDA_CHECK_LAUNCH();
  mixup_into_kernel<<<mixup_grid(width, batch), MIXUP_BLOCK>>>(y, x, width, share);
  CUDA_CHECK_LAUNCH();
}

static inline void mixup_samples(float *y, const float *x, int batch, size_t width, float share,
                                 const float *share_at) {
  (void)share_at;
  mixup_samples_kernel<<<mixup_grid(width, batch), MIXUP_BLOCK>>>(y, x, batch, width, share);
  CUDA_CHECK_LAUNCH();
}

static inline void mixup_pairs(float *y, const float *x, int batch, size_t width, float share, const float *share_at) {
  (void)share_at;
  mixup_pairs_kernel<<<mixup_grid(width, (batch + 1) / 2), MIXUP_BLOCK>>>(y, x, batch, width, share);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Averaged weights */

/* a (n), cut into tensors by tensor_begin(); the slots are momentum and average */
typedef void EmaLauncher(OptimizerArrays<2> a, int tensors, size_t n, SgdRule rule, StepValues step);

/* A step of SGD whose new weight comes into its average at once. */
typedef struct AveragedSgdRule {
  SgdRule sgd;
  float weight_decay;
} AveragedSgdRule;

static __host__ __device__ __forceinline__ void optimizer_one(const AveragedSgdRule &rule, StepValues step, float decay,
                                                              float grad, float *w, float *slot) {
  optimizer_one(rule.sgd, step, decay, grad, w, slot);
  // >>> exercise ema_update: the new weight *w comes into its average slot[1], by the share step.average
  // hint: the average moves towards the weight by that share of the distance between them
  // hint: slot[1] is read and written, slot[0] is the momentum; the optimizer has changed *w already
  // hint: slot[1] += step.average * (*w - slot[1]);
  slot[1] += step.average * (*w - slot[1]);
  // <<< exercise
}

static __global__ void ema_each_kernel(float *next, const float *average, const float *w, size_t n, float share) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) next[i] = average_one(average[i], w[i], share);
}

/* The arrays of the optimizer alone. */
static inline OptimizerArrays<1> ema_optimizer_arrays(OptimizerArrays<2> a) {
  OptimizerArrays<1> one;
  one.new_w = a.new_w;
  one.new_slot[0] = a.new_slot[0];
  one.w = a.w;
  one.grad = a.grad;
  one.slot[0] = a.slot[0];
  return one;
}

static inline void ema_each(OptimizerArrays<2> a, int tensors, size_t n, SgdRule rule, StepValues step) {
  sgd_flat(ema_optimizer_arrays(a), tensors, n, rule, step);
  for (int i = 0; i < tensors; i++) {
    const size_t begin = tensor_begin(n, tensors, i), length = tensor_begin(n, tensors, i + 1) - begin;
    if (length == 0) continue;
    ema_each_kernel<<<(unsigned)((length + TENSOR_BLOCK - 1) / TENSOR_BLOCK), TENSOR_BLOCK>>>(
        a.new_slot[1] + begin, a.slot[1] + begin, a.new_w + begin, length, step.average);
    CUDA_CHECK_LAUNCH();
  }
}

static inline void ema_flat(OptimizerArrays<2> a, int tensors, size_t n, SgdRule rule, StepValues step) {
  sgd_flat(ema_optimizer_arrays(a), tensors, n, rule, step);
  average_gpu(a.new_slot[1], a.slot[1], a.new_w, n, step.average, NULL);
}

static inline void ema_fused(OptimizerArrays<2> a, int tensors, size_t n, SgdRule rule, StepValues step) {
  const AveragedSgdRule averaged = {rule, rule.weight_decay};
  tensors_flat_step(a, tensors, n, averaged, step);
}

#endif /* PHASE4_TRAINING_REGULARIZATION_CUH */
