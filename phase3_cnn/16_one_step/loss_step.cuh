/* loss_step.cuh - all that a training step does with the logits, in one kernel: softmax cross-entropy, its gradient and
 * the sums that the program prints.
 *
 *     probabilities (B,C), losses (B), dlogits (B,C) = scale (probabilities - onehot(labels)) from logits (B,C),
 *     labels (B);  totals[0] += the sum of the losses, totals[1] += how many rows have their largest probability at the
 *     label
 *
 * Launch by launch that are three kernels of a few hundred numbers each. Here it is one block: a warp takes a row at a
 * time, a lane a class; then the warps' sums are added up in a fixed order. LOSS_STEP_ROWS rows of up to 32 classes;
 * larger ones go launch by launch (softmax_cross_entropy.cuh). loss_step_soft_gpu() does the same with smoothed and
 * mixed labels (soft_labels.cuh).
 */
#ifndef PHASE3_CNN_LOSS_STEP_CUH
#define PHASE3_CNN_LOSS_STEP_CUH

#include "phase1_building_blocks/10_softmax_cross_entropy/soft_labels.cuh"

enum { LOSS_STEP_ROWS = 512, LOSS_STEP_CLASSES = 32, LOSS_STEP_WARPS = 32 };

static inline int loss_step_fits(int batch, int classes) {
  return batch <= LOSS_STEP_ROWS && classes <= LOSS_STEP_CLASSES;
}

/* totals: doubles, as in softmax_cross_entropy_score_cpu(). */
static inline void loss_step_cpu(float *losses, float *probabilities, float *dlogits, double *totals,
                                 const float *logits, const int *labels, float scale, int batch, int classes) {
  softmax_cross_entropy_forward_cpu(losses, probabilities, logits, labels, batch, classes);
  softmax_cross_entropy_backward_cpu(dlogits, probabilities, labels, scale, batch, classes);
  softmax_cross_entropy_score_cpu(totals, losses, probabilities, labels, batch, classes);
}

/* The loss of a warp's row with soft labels: lane c holds x[c] - max, and sum is that of exp(x - max). */
static __device__ __forceinline__ float loss_step_soft_loss(SoftLabels soft, float below, float sum, int own, int other,
                                                            int classes) {
  const bool mixes = other >= 0 && other < classes, known = soft_labels_known(soft, own, other, classes);
  const float at_own = __shfl_sync(0xffffffffu, below, known ? own : 0);
  const float at_other = __shfl_sync(0xffffffffu, below, mixes ? other : 0);
  float all = (int)threadIdx.x % 32 < classes ? below : 0;
  for (int step = 16; step > 0; step /= 2) all += __shfl_xor_sync(0xffffffffu, all, step);
  return known ? soft_labels_loss(soft, logf(sum), at_own, at_other, all / classes) : NAN;
}

/* One block of LOSS_STEP_WARPS warps. */
template <bool SOFT>
static __global__ void __launch_bounds__(LOSS_STEP_WARPS * 32)
    loss_step_kernel(float *losses, float *probabilities, float *dlogits, double *totals, const float *logits,
                     const int *labels, SoftLabels soft, float scale, int batch, int classes) {
  __shared__ double sums[2][LOSS_STEP_WARPS];
  if (SOFT) soft = soft_labels_now(soft);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  double loss_sum = 0, correct = 0;
  for (int b = warp; b < batch; b += LOSS_STEP_WARPS) {
    const int place = b * classes + lane, label = labels[b], other_label = SOFT ? labels[batch - 1 - b] : label;
    const float x = lane < classes ? logits[place] : -INFINITY;
    float max = x, best = -1;
    int best_at = lane;
    for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
    float e = expf(x - max), sum = e;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    const float p = e / sum;
    best = p;
    for (int step = 16; step > 0; step /= 2) { /* of equal ones the first */
      const float other = __shfl_xor_sync(0xffffffffu, best, step);
      const int other_at = __shfl_xor_sync(0xffffffffu, best_at, step);
      if (other > best || (other == best && other_at < best_at)) {
        best = other;
        best_at = other_at;
      }
    }
    const bool known = label >= 0 && label < classes;
    const float at_label = __shfl_sync(0xffffffffu, x, known ? label : 0);
    const float loss = SOFT    ? loss_step_soft_loss(soft, x - max, sum, label, other_label, classes)
                       : known ? logf(sum) - (at_label - max)
                               : NAN;
    const float target =
        SOFT ? soft_target<float>(soft, lane, label, other_label, classes) : (lane == label ? 1.0f : 0.0f);
    if (lane < classes) {
      probabilities[place] = p;
      dlogits[place] = scale * (p - target);
    }
    if (lane == 0) losses[b] = loss;
    loss_sum += loss;
    if (SOFT)
      correct += (best_at == label) * (1.0 - soft.share) + (best_at == other_label) * (double)soft.share;
    else
      correct += best_at == label;
  }
  if (lane == 0) {
    sums[0][warp] = loss_sum;
    sums[1][warp] = correct;
  }
  __syncthreads();
  if (threadIdx.x >= 2) return;
  double total = 0;
  for (int w = 0; w < LOSS_STEP_WARPS; w++) total += sums[threadIdx.x][w];
  totals[threadIdx.x] += total;
}

/* Where it does not fit, launch by launch. */
static inline void loss_step_gpu(float *losses, float *probabilities, float *dlogits, double *totals,
                                 const float *logits, const int *labels, float scale, int batch, int classes) {
  if (loss_step_fits(batch, classes)) {
    loss_step_kernel<false><<<1, LOSS_STEP_WARPS * 32>>>(losses, probabilities, dlogits, totals, logits, labels,
                                                         soft_labels(0, 0), scale, batch, classes);
    CUDA_CHECK_LAUNCH();
    return;
  }
  softmax_cross_entropy_forward_gpu(losses, probabilities, logits, labels, batch, classes);
  softmax_cross_entropy_score_gpu(totals, losses, probabilities, labels, batch, classes);
  softmax_cross_entropy_backward_gpu(dlogits, probabilities, labels, scale, batch, classes);
}

static inline void loss_step_soft_gpu(float *losses, float *probabilities, float *dlogits, double *totals,
                                      const float *logits, const int *labels, SoftLabels soft, float scale, int batch,
                                      int classes) {
  if (loss_step_fits(batch, classes)) {
    loss_step_kernel<true><<<1, LOSS_STEP_WARPS * 32>>>(losses, probabilities, dlogits, totals, logits, labels, soft,
                                                        scale, batch, classes);
    CUDA_CHECK_LAUNCH();
    return;
  }
  softmax_cross_entropy_soft_forward_gpu(losses, probabilities, logits, labels, soft, batch, classes);
  softmax_cross_entropy_soft_score_gpu(totals, losses, probabilities, labels, soft, batch, classes);
  softmax_cross_entropy_soft_backward_gpu(dlogits, probabilities, labels, soft, scale, batch, classes);
}

#endif /* PHASE3_CNN_LOSS_STEP_CUH */
