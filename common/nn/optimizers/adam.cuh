/* adam.cuh - Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019), as torch.optim steps.
 *
 *   first   = beta1 * first  + (1 - beta1) * g               a running mean of the gradient,
 *   second  = beta2 * second + (1 - beta2) * g * g           and of its square
 *   w       = w - lr * (first / (1 - beta1^t)) / (sqrt(second / (1 - beta2^t)) + epsilon)
 *
 * Adam adds weight_decay * w to the gradient, g = grad + weight_decay * w (L2). AdamW leaves the gradient alone, and
 * multiplies w by 1 - lr * weight_decay first: the decay is decoupled from the size of the gradients.
 *
 * Both means start at 0, so after t steps of equal gradients they hold (1 - beta^t) of the mean: the divisions by that
 * correct it. They depend on t alone, so the host computes them, in double (step_values() of op.h); in fp16, where the
 * host does not know how many steps were skipped, one thread of the GPU does (loss_scale.h).
 *
 *   adam_update_cpu   the definition
 *   adam_update_gpu   all parameters in one launch (elementwise.cuh)
 */
#ifndef COMMON_NN_OPTIMIZERS_ADAM_CUH
#define COMMON_NN_OPTIMIZERS_ADAM_CUH

#include "common/nn/optimizers/elementwise.cuh"

/* rest1: 1 - beta1, rounded once. */
typedef struct AdamRule {
  float beta1, rest1, beta2, rest2, epsilon, weight_decay;
  int decoupled;
} AdamRule;

/* t: the number of this step, from 1. */
template <typename T>
static inline void adam_update_cpu(T *w, T *first, T *second, const T *grad, size_t n, size_t decayed, T lr, T beta1,
                                   T beta2, T epsilon, T weight_decay, int decoupled, long t) {
  for (size_t i = 0; i < n; i++) {
    // >>> hidden adam_step
    const T decay = i < decayed ? weight_decay : 0;
    const T g = decoupled ? grad[i] : grad[i] + decay * w[i];
    first[i] = beta1 * first[i] + (1 - beta1) * g;
    second[i] = beta2 * second[i] + (1 - beta2) * g * g;
    const T mean = first[i] / (1 - (T)pow(beta1, t)), square = second[i] / (1 - (T)pow(beta2, t));
    if (decoupled) w[i] -= lr * decay * w[i];
    w[i] -= lr * mean / (sqrt(square) + epsilon);
    // <<< hidden
  }
}

static __host__ __device__ __forceinline__ void optimizer_one(const AdamRule &rule, StepValues step, float decay,
                                                              float grad, float *w, float *slot) {
  // >>> hidden adam_step
  const float g = rule.decoupled ? grad : grad + decay * *w;
  const float first = rule.beta1 * slot[0] + rule.rest1 * g, second = rule.beta2 * slot[1] + rule.rest2 * (g * g);
  slot[0] = first;
  slot[1] = second;
  const float old = rule.decoupled ? *w - step.lr * decay * *w : *w;
  *w = old - step.lr * step.first * first / (sqrtf(second) * step.second + rule.epsilon);
  // <<< hidden
}

static inline AdamRule adam_rule(const Hyper *h, int decoupled) {
  const AdamRule rule = {(float)h->beta1, (float)(1 - h->beta1), (float)h->beta2, (float)(1 - h->beta2),
                         h->epsilon,      h->weight_decay,       decoupled};
  return rule;
}

static inline void adam_update(const Context *context, float *w, float *const *slot, const float *grad, size_t n,
                               size_t decayed, const Hyper *h) {
  optimizer_flat<AdamRule, 2>(context, w, slot, grad, n, decayed, h, adam_rule(h, 0));
}

static inline void adamw_update(const Context *context, float *w, float *const *slot, const float *grad, size_t n,
                                size_t decayed, const Hyper *h) {
  optimizer_flat<AdamRule, 2>(context, w, slot, grad, n, decayed, h, adam_rule(h, 1));
}

static const Optimizer optimizer_adam = {"adam", 2,   {"exp_avg", "exp_avg_sq"}, adam_update, OPTIMIZER_READS_BOTH,
                                         NULL,   NULL};
static const Optimizer optimizer_adamw = {"adamw", 2,   {"exp_avg", "exp_avg_sq"}, adamw_update, OPTIMIZER_READS_BOTH,
                                          NULL,    NULL};

#endif /* COMMON_NN_OPTIMIZERS_ADAM_CUH */
