/* softmax_cross_entropy_op.cuh - softmax_cross_entropy.cuh as a Loss of common/nn: labels are ints, one per sample; the
 * probabilities are saved for backward and for predictions. In training the labels are smoothed and mixed as the
 * context says (soft_labels.cuh); an evaluation always has the plain loss. */
#ifndef PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_OP_CUH
#define PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_OP_CUH

#include "common/nn/op.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/soft_labels.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy.cuh"

static inline size_t softmax_cross_entropy_targets(Shape x) {
  (void)x;
  return sizeof(int);
}

/* Whether targets are other than labels, and which. */
static inline int softmax_cross_entropy_is_soft(const Context *context) {
  return context->training && (context->label_smoothing > 0 || context->mixup > 0);
}

static inline SoftLabels softmax_cross_entropy_soft(const Context *context) {
  SoftLabels soft = soft_labels(context->label_smoothing, context->mixup > 0 ? context->mixed : 0);
  if (context->mixup > 0 && context->values) soft.share_at = &context->values->mixed;
  return soft;
}

static inline void softmax_cross_entropy_op_forward(const Context *context, float *losses, float *probabilities,
                                                    const float *logits, const void *targets, int batch, Shape shape) {
  const int *labels = (const int *)targets, classes = (int)shape_count(shape);
  const SoftLabels soft = softmax_cross_entropy_soft(context);
  if (softmax_cross_entropy_is_soft(context))
    ON_DEVICE(context->device,
              softmax_cross_entropy_soft_forward_gpu(losses, probabilities, logits, labels, soft, batch, classes),
              softmax_cross_entropy_soft_forward_cpu_fast(losses, probabilities, logits, labels, soft, batch, classes));
  else
    ON_DEVICE(context->device, softmax_cross_entropy_forward_gpu(losses, probabilities, logits, labels, batch, classes),
              softmax_cross_entropy_forward_cpu_fast(losses, probabilities, logits, labels, batch, classes));
}

static inline void softmax_cross_entropy_op_score(const Context *context, double *totals, const float *losses,
                                                  const float *probabilities, const void *targets, int batch,
                                                  Shape shape) {
  const int *labels = (const int *)targets, classes = (int)shape_count(shape);
  const SoftLabels soft = softmax_cross_entropy_soft(context);
  if (softmax_cross_entropy_is_soft(context))
    ON_DEVICE(context->device,
              softmax_cross_entropy_soft_score_gpu(totals, losses, probabilities, labels, soft, batch, classes),
              softmax_cross_entropy_soft_score_cpu(totals, losses, probabilities, labels, soft, batch, classes));
  else
    ON_DEVICE(context->device, softmax_cross_entropy_score_gpu(totals, losses, probabilities, labels, batch, classes),
              softmax_cross_entropy_score_cpu_fast(totals, losses, probabilities, labels, batch, classes));
}

static inline void softmax_cross_entropy_op_backward(const Context *context, float *dlogits, const float *probabilities,
                                                     const float *logits, const void *targets, float scale, int batch,
                                                     Shape shape) {
  (void)logits;
  const int *labels = (const int *)targets, classes = (int)shape_count(shape);
  const SoftLabels soft = softmax_cross_entropy_soft(context);
  if (softmax_cross_entropy_is_soft(context))
    ON_DEVICE(context->device,
              softmax_cross_entropy_soft_backward_gpu(dlogits, probabilities, labels, soft, scale, batch, classes),
              softmax_cross_entropy_soft_backward_cpu(dlogits, probabilities, labels, soft, scale, batch, classes));
  else
    ON_DEVICE(context->device,
              softmax_cross_entropy_backward_gpu(dlogits, probabilities, labels, scale, batch, classes),
              softmax_cross_entropy_backward_cpu_fast(dlogits, probabilities, labels, scale, batch, classes));
}

static const Loss cross_entropy_loss = {"softmax_cross_entropy",
                                        softmax_cross_entropy_targets,
                                        shape_count,
                                        softmax_cross_entropy_op_forward,
                                        softmax_cross_entropy_op_score,
                                        softmax_cross_entropy_op_backward,
                                        0,
                                        NULL,
                                        1};

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_OP_CUH */
