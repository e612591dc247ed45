/* soft_labels.cuh - softmax cross-entropy with targets between 0 and 1: smoothed labels, and those of mixed samples.
 *
 *   target[b][c]    = (1 - s) ((1 - m) [c = label b] + m [c = label B-1-b]) + s / C          s: smoothing, m: share
 *   losses (B):       the sum over c of target[b][c] (-log p[b][c])
 *   dlogits (B,C):    (p - target) * scale
 *
 * With m = 0 it is PyTorch's cross_entropy(label_smoothing=s) (Szegedy et al., "Rethinking the Inception architecture",
 * 2016); m comes from mixup (common/nn/mixup.h), which mixes sample b with sample B-1-b. No array of targets is needed.
 * The targets of a row add up to 1, so its loss is
 *
 *   log(sum) - (1 - s) ((1 - m) x'[label b] + m x'[label B-1-b]) - s mean(x'),     x' = x - max
 *
 * That is one sum more than without.
 *
 * A row counts as right by 1 - m where the largest probability is at its own label, by m where it is at the other one.
 *
 *   softmax_cross_entropy_soft_*_cpu       plain loops over the targets: the definition
 *   softmax_cross_entropy_soft_*_cpu_fast  float throughout
 *   softmax_cross_entropy_soft_*_gpu       one warp per row; score: one block, a tree
 */
#ifndef PHASE1_BUILDING_BLOCKS_SOFT_LABELS_CUH
#define PHASE1_BUILDING_BLOCKS_SOFT_LABELS_CUH

#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy.cuh"

/* share_at: on the GPU, where a recorded launch reads the share of its step; NULL: `share` is it. */
typedef struct SoftLabels {
  float smoothing, share;
  const float *share_at;
} SoftLabels;

static inline SoftLabels soft_labels(float smoothing, float share) {
  const SoftLabels soft = {smoothing, share, NULL};
  return soft;
}

/* The target of class c in a row whose labels are own and other. */
template <typename T>
static __host__ __device__ __forceinline__ T soft_target(SoftLabels soft, int c, int own, int other, int classes) {
  // >>> hidden soft_gradient
  const T s = soft.smoothing, m = soft.share, label = (c == own ? 1 - m : 0) + (c == other ? m : 0);
  return (1 - s) * label + s / classes;
  // <<< hidden
}

/* Where a share is 0 nobody looks at the other label. */
static __host__ __device__ __forceinline__ int soft_labels_known(SoftLabels soft, int own, int other, int classes) {
  return own >= 0 && own < classes && (soft.share == 0 || (other >= 0 && other < classes));
}

/* The loss of a row from log(sum), x' at both labels and the mean of x'. What counts 0 may be infinite. */
static __host__ __device__ __forceinline__ float soft_labels_loss(SoftLabels soft, float log_sum, float own,
                                                                  float other, float mean) {
  // >>> hidden soft_loss
  const float keep = 1 - soft.smoothing;
  return log_sum - (soft.share < 1 ? keep * (1 - soft.share) * own : 0) -
         (soft.share > 0 ? keep * soft.share * other : 0) - (soft.smoothing > 0 ? soft.smoothing * mean : 0);
  // <<< hidden
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void softmax_cross_entropy_soft_forward_cpu(T *losses, T *probabilities, const T *logits,
                                                          const int *labels, SoftLabels soft, int batch, int classes) {
  softmax_cross_entropy_forward_cpu(losses, probabilities, logits, labels, batch, classes);
  for (int b = 0; b < batch; b++) {
    const T *x = logits + (size_t)b * classes;
    const int own = labels[b], other = labels[batch - 1 - b];
    double max = x[0], sum = 0, loss = 0;
    for (int c = 1; c < classes; c++)
      if (x[c] > max) max = x[c];
    for (int c = 0; c < classes; c++) sum += exp(x[c] - max);
    for (int c = 0; c < classes; c++) {
      const double target = soft_target<double>(soft, c, own, other, classes);
      if (target > 0) loss += target * (log(sum) - (x[c] - max));
    }
    losses[b] = soft_labels_known(soft, own, other, classes) ? (T)loss : (T)NAN;
  }
}

template <typename T>
static inline void softmax_cross_entropy_soft_backward_cpu(T *dlogits, const T *probabilities, const int *labels,
                                                           SoftLabels soft, T scale, int batch, int classes) {
  for (int b = 0; b < batch; b++)
    for (int c = 0; c < classes; c++) {
      const size_t i = (size_t)b * classes + c;
      dlogits[i] = (probabilities[i] - soft_target<T>(soft, c, labels[b], labels[batch - 1 - b], classes)) * scale;
    }
}

static inline void softmax_cross_entropy_soft_score_cpu(double totals[2], const float *losses,
                                                        const float *probabilities, const int *labels, SoftLabels soft,
                                                        int batch, int classes) {
  for (int b = 0; b < batch; b++) {
    const float *p = probabilities + (size_t)b * classes;
    int best = 0;
    for (int c = 1; c < classes; c++)
      if (p[c] > p[best]) best = c;
    totals[0] += losses[b];
    totals[1] += (best == labels[b]) * (1.0 - soft.share) + (best == labels[batch - 1 - b]) * (double)soft.share;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU fast path; the others are as fast as it gets */

static inline void softmax_cross_entropy_soft_forward_cpu_fast(float *losses, float *probabilities, const float *logits,
                                                               const int *labels, SoftLabels soft, int batch,
                                                               int classes) {
#pragma omp parallel for schedule(static) if ((size_t)batch * classes > SOFTMAX_CPU_SERIAL)
  for (int b = 0; b < batch; b++) {
    const float *x = logits + (size_t)b * classes;
    float *p = probabilities + (size_t)b * classes;
    const int own = labels[b], other = labels[batch - 1 - b];
    float max = x[0], sum = 0, all = 0;
    for (int c = 1; c < classes; c++)
      if (x[c] > max) max = x[c];
    for (int c = 0; c < classes; c++) {
      p[c] = expf(x[c] - max);
      sum += p[c];
      all += x[c] - max;
    }
    for (int c = 0; c < classes; c++) p[c] /= sum;
    losses[b] = NAN;
    if (soft_labels_known(soft, own, other, classes))
      losses[b] = soft_labels_loss(soft, logf(sum), x[own] - max, soft.share > 0 ? x[other] - max : 0, all / classes);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

static __device__ __forceinline__ SoftLabels soft_labels_now(SoftLabels soft) {
  if (soft.share_at != NULL) soft.share = *soft.share_at;
  return soft;
}

/* x at the label less the maximum; 0 where the label is out of range. */
static __device__ __forceinline__ float soft_labels_at(const float *x, int label, float max, int classes) {
  return label >= 0 && label < classes ? x[label] - max : 0;
}

/* One warp per row, as softmax_cross_entropy_forward_kernel(); the lanes add up x - max, too. */
static __global__ void softmax_cross_entropy_soft_forward_kernel(float *losses, float *probabilities,
                                                                 const float *logits, const int *labels,
                                                                 SoftLabels soft, int batch, int classes) {
  const int b = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (b >= batch) return; /* the whole warp */
  const float *x = logits + (size_t)b * classes;
  float *p = probabilities + (size_t)b * classes;
  float max = -INFINITY, sum = 0, all = 0;
  for (int c = lane; c < classes; c += 32) max = fmaxf(max, x[c]);
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
  for (int c = lane; c < classes; c += 32) {
    sum += expf(x[c] - max);
    all += x[c] - max;
  }
  for (int step = 16; step > 0; step /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, step);
    all += __shfl_xor_sync(0xffffffffu, all, step);
  }
  for (int c = lane; c < classes; c += 32) p[c] = expf(x[c] - max) / sum;
  if (lane > 0) return;
  const int own = labels[b], other = labels[batch - 1 - b];
  soft = soft_labels_now(soft);
  losses[b] =
      soft_labels_known(soft, own, other, classes)
          ? soft_labels_loss(soft, logf(sum), x[own] - max, soft_labels_at(x, other, max, classes), all / classes)
          : NAN;
}

static __global__ void softmax_cross_entropy_soft_backward_kernel(float *dlogits, const float *probabilities,
                                                                  const int *labels, SoftLabels soft, float scale,
                                                                  int batch, int classes) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)batch * classes) return;
  const int b = (int)(i / classes), c = (int)(i % classes);
  soft = soft_labels_now(soft);
  dlogits[i] = (probabilities[i] - soft_target<float>(soft, c, labels[b], labels[batch - 1 - b], classes)) * scale;
}

/* As softmax_cross_entropy_score_kernel(): one block, then a tree. */
static __global__ void softmax_cross_entropy_soft_score_kernel(double *totals, const float *losses,
                                                               const float *probabilities, const int *labels,
                                                               SoftLabels soft, int batch, int classes) {
  __shared__ double loss[SOFTMAX_SCORE_BLOCK], correct[SOFTMAX_SCORE_BLOCK];
  const int t = threadIdx.x;
  soft = soft_labels_now(soft);
  loss[t] = correct[t] = 0;
  for (int b = t; b < batch; b += SOFTMAX_SCORE_BLOCK) {
    const float *p = probabilities + (size_t)b * classes;
    int best = 0;
    for (int c = 1; c < classes; c++)
      if (p[c] > p[best]) best = c;
    loss[t] += losses[b];
    correct[t] += (best == labels[b]) * (1.0 - soft.share) + (best == labels[batch - 1 - b]) * (double)soft.share;
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

static inline void softmax_cross_entropy_soft_forward_gpu(float *losses, float *probabilities, const float *logits,
                                                          const int *labels, SoftLabels soft, int batch, int classes) {
  const int rows = SOFTMAX_BLOCK / 32; /* of a block */
  softmax_cross_entropy_soft_forward_kernel<<<(batch + rows - 1) / rows, SOFTMAX_BLOCK>>>(losses, probabilities, logits,
                                                                                          labels, soft, batch, classes);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_cross_entropy_soft_backward_gpu(float *dlogits, const float *probabilities,
                                                           const int *labels, SoftLabels soft, float scale, int batch,
                                                           int classes) {
  const size_t n = (size_t)batch * classes;
  softmax_cross_entropy_soft_backward_kernel<<<(unsigned)((n + SOFTMAX_BLOCK - 1) / SOFTMAX_BLOCK), SOFTMAX_BLOCK>>>(
      dlogits, probabilities, labels, soft, scale, batch, classes);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_cross_entropy_soft_score_gpu(double *totals, const float *losses, const float *probabilities,
                                                        const int *labels, SoftLabels soft, int batch, int classes) {
  softmax_cross_entropy_soft_score_kernel<<<1, SOFTMAX_SCORE_BLOCK>>>(totals, losses, probabilities, labels, soft,
                                                                      batch, classes);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFT_LABELS_CUH */
