/* nncuda_cross_entropy.cuh - what PyTorch's cross-entropy has beside the kernels of
 * phase1_building_blocks/10_softmax_cross_entropy: labels of 64 bits, rows to be ignored, the loss as one number.
 *
 *   1. labels   (rows) of 32 or 64 bits become int, LABEL_IGNORED or LABEL_WRONG, and are counted
 *   2. losses (rows) and dlogits (rows,classes), by the lesson's kernels: one pass over the logits
 *   3. the loss; where rows are ignored, which 2. does not know, dlogits is corrected
 *
 * All are launched without knowing what the labels are. The mean is over the rows that count, a number that only the
 * device has: 2. divides by all rows, and 3. multiplies by rows / counted where that is not 1. That is another pass
 * over dlogits, but only for those who ignore rows.
 */
#ifndef PHASE5_PRODUCTION_NNCUDA_CROSS_ENTROPY_CUH
#define PHASE5_PRODUCTION_NNCUDA_CROSS_ENTROPY_CUH

#include <stdint.h>

#include "phase1_building_blocks/10_softmax_cross_entropy/soft_labels.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_kept.cuh"

enum { LABEL_IGNORED = -1, LABEL_WRONG = -2 };
enum { LABELS_BLOCK = 1024, LOSS_BLOCK = 256, LOSS_BLOCKS = 264 };

/* first: the first row with a wrong label; rows, where there is none. */
typedef struct LabelCounts {
  int counted, wrong, first;
} LabelCounts;

template <typename Index>
static __host__ __device__ __forceinline__ int label_of(Index label, int64_t ignored, int classes) {
  int known = LABEL_WRONG;
  // >>> exercise nncuda_label: `known` is the class, LABEL_IGNORED for the label `ignored`, LABEL_WRONG for no class
  // hint: `ignored` may be any number: -100 is PyTorch's, but also a class, whose rows do not count then
  // hint: so it is looked at first; a class is 0 to classes - 1
  // hint: if (label == ignored) known = LABEL_IGNORED; else if (label >= 0 && label < classes) known = (int)label;
  if (label == ignored)
    known = LABEL_IGNORED;
  else if (label >= 0 && label < classes)
    known = (int)label;
  // <<< exercise
  return known;
}

/* One block: labels are few beside logits. */
template <typename Index>
static __global__ void __launch_bounds__(LABELS_BLOCK)
    cross_entropy_labels_kernel(int *to, LabelCounts *counts, const Index *labels, int64_t ignored, int rows,
                                int classes) {
  __shared__ int counted, wrong, first;
  if (threadIdx.x == 0) {
    counted = wrong = 0;
    first = rows;
  }
  __syncthreads();
  int own = 0, own_wrong = 0, own_first = rows;
  for (int row = threadIdx.x; row < rows; row += LABELS_BLOCK) {
    const int label = label_of(labels[row], ignored, classes);
    to[row] = label;
    own += label != LABEL_IGNORED;
    own_wrong += label == LABEL_WRONG;
    if (label == LABEL_WRONG && row < own_first) own_first = row;
  }
  atomicAdd(&counted, own);
  if (own_wrong > 0) {
    atomicAdd(&wrong, own_wrong);
    atomicMin(&first, own_first);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    counts->counted = counted;
    counts->wrong = wrong;
    counts->first = first;
  }
}

template <typename Index>
static inline void cross_entropy_labels(int *to, LabelCounts *counts, const Index *labels, int64_t ignored, int rows,
                                        int classes) {
  cross_entropy_labels_kernel<<<1, LABELS_BLOCK>>>(to, counts, labels, ignored, rows, classes);
  CUDA_CHECK_LAUNCH();
}

/* The losses alone, where no gradient is wanted. Block b takes row b. */
static __global__ void __launch_bounds__(LOSS_BLOCK)
    cross_entropy_loss_kernel(float *losses, const float *logits, const int *labels, SoftLabels soft, int classes) {
  const float *x = logits + (size_t)blockIdx.x * classes;
  MaxSum row = max_sum_make(-INFINITY, 0);
  float all = 0;
  for (int c = threadIdx.x; c < classes; c += LOSS_BLOCK) {
    row = max_sum_add(row, x[c]);
    all += x[c];
  }
  row = row_max_sum<LOSS_BLOCK>(row);
  all = row_sum<LOSS_BLOCK>(all);
  if (threadIdx.x > 0) return;
  const float at_label = softmax_cross_entropy_at(x, labels[blockIdx.x], classes);
  losses[blockIdx.x] = soft_labels_loss(soft, logf(row.sum), at_label - row.max, 0, all / classes - row.max);
}

/* The loss, by block 0; all blocks together correct dlogits (NULL: there is none), row after row. */
static __global__ void __launch_bounds__(LOSS_BLOCK)
    cross_entropy_finish_kernel(float *loss, float *dlogits, int64_t *report, const float *losses, const int *labels,
                                const LabelCounts *counts, int mean, int rows, int classes) {
  const int counted = counts->counted;
  if (blockIdx.x == 0) {
    __shared__ double sums[LOSS_BLOCK];
    double sum = 0;
    for (int row = threadIdx.x; row < rows; row += LOSS_BLOCK)
      if (labels[row] != LABEL_IGNORED) sum += losses[row];
    sums[threadIdx.x] = sum;
    for (int half = LOSS_BLOCK / 2; half > 0; half /= 2) {
      __syncthreads();
      if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) {
      *loss = (float)(mean ? sums[0] / counted : sums[0]);
      if (report != NULL) {
        report[0] = counted;
        report[1] = counts->wrong;
        report[2] = counts->wrong > 0 ? counts->first : -1;
      }
    }
  }
  if (dlogits == NULL || counted == rows) return;
  const float factor = mean ? (float)rows / counted : 1;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float *dx = dlogits + (size_t)row * classes;
    for (int c = threadIdx.x; c < classes; c += LOSS_BLOCK) dx[c] = labels[row] == LABEL_IGNORED ? 0 : dx[c] * factor;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* All that one call needs */

typedef struct CrossEntropy {
  float *loss, *dlogits;
  int64_t *report;
  const float *logits;
  const void *labels;
  int wide, rows, classes, mean; /* wide: labels of 64 bits */
  int64_t ignored;
  float smoothing;
  /* workspace */
  LabelCounts *counts;
  int *known;    /* (rows) */
  float *losses; /* (rows) */
  float *row;    /* (classes), on the CPU */
} CrossEntropy;

static inline void cross_entropy_gpu(const CrossEntropy *e) {
  const SoftLabels soft = soft_labels(e->smoothing, 0);
  const float scale = e->mean ? 1.0f / e->rows : 1;
  if (e->wide)
    cross_entropy_labels(e->known, e->counts, (const int64_t *)e->labels, e->ignored, e->rows, e->classes);
  else
    cross_entropy_labels(e->known, e->counts, (const int32_t *)e->labels, e->ignored, e->rows, e->classes);
  if (e->dlogits == NULL) {
    cross_entropy_loss_kernel<<<e->rows, LOSS_BLOCK>>>(e->losses, e->logits, e->known, soft, e->classes);
    CUDA_CHECK_LAUNCH();
  } else if (e->smoothing == 0) {
    softmax_cross_entropy_kept(e->losses, e->dlogits, e->logits, e->known, scale, e->rows, e->classes);
  } else { /* probabilities lie in dlogits in between: in place, since each kernel's element depends on its own alone */
    cross_entropy_loss_kernel<<<e->rows, LOSS_BLOCK>>>(e->losses, e->logits, e->known, soft, e->classes);
    CUDA_CHECK_LAUNCH();
    softmax_forward_gpu(e->dlogits, e->logits, e->rows, e->classes);
    softmax_cross_entropy_soft_backward_gpu(e->dlogits, e->dlogits, e->known, soft, scale, e->rows, e->classes);
  }
  const int blocks = e->dlogits == NULL ? 1 : e->rows < LOSS_BLOCKS ? e->rows : LOSS_BLOCKS;
  cross_entropy_finish_kernel<<<blocks, LOSS_BLOCK>>>(e->loss, e->dlogits, e->report, e->losses, e->known, e->counts,
                                                      e->mean, e->rows, e->classes);
  CUDA_CHECK_LAUNCH();
}

/* Labels to e->known. */
static inline LabelCounts cross_entropy_labels_cpu(const CrossEntropy *e) {
  LabelCounts counts = {0, 0, e->rows};
  for (int row = 0; row < e->rows; row++) {
    const int64_t label = e->wide ? ((const int64_t *)e->labels)[row] : ((const int32_t *)e->labels)[row];
    e->known[row] = label_of(label, e->ignored, e->classes);
    counts.counted += e->known[row] != LABEL_IGNORED;
    if (e->known[row] == LABEL_WRONG && counts.wrong++ == 0) counts.first = row;
  }
  return counts;
}

static inline void cross_entropy_cpu(const CrossEntropy *e, LabelCounts counts) {
  const SoftLabels soft = soft_labels(e->smoothing, 0);
  const float scale = e->mean ? 1.0f / counts.counted : 1;
  double sum = 0;
  if (e->dlogits == NULL)
    for (int row = 0; row < e->rows; row++)
      softmax_cross_entropy_soft_forward_cpu_fast(e->losses + row, e->row, e->logits + (size_t)row * e->classes,
                                                  e->known + row, soft, 1, e->classes);
  else
    softmax_cross_entropy_soft_forward_cpu_fast(e->losses, e->dlogits, e->logits, e->known, soft, e->rows, e->classes);
  for (int row = 0; row < e->rows; row++) {
    float *dx = e->dlogits == NULL ? NULL : e->dlogits + (size_t)row * e->classes;
    if (e->known[row] != LABEL_IGNORED) sum += e->losses[row];
    if (dx != NULL && e->known[row] == LABEL_IGNORED)
      memset(dx, 0, (size_t)e->classes * sizeof *dx);
    else if (dx != NULL)
      softmax_cross_entropy_soft_backward_cpu(dx, dx, e->known + row, soft, scale, 1, e->classes);
  }
  *e->loss = (float)(e->mean ? sum / counts.counted : sum);
  if (e->report == NULL) return;
  e->report[0] = counts.counted;
  e->report[1] = counts.wrong;
  e->report[2] = counts.wrong > 0 ? counts.first : -1;
}

#endif /* PHASE5_PRODUCTION_NNCUDA_CROSS_ENTROPY_CUH */
