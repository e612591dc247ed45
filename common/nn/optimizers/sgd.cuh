/* sgd.cuh - stochastic gradient descent as torch.optim.SGD steps: plain, with momentum, with Nesterov's.
 *
 *   g        = grad + weight_decay * w
 *   momentum = mu * momentum + (1 - dampening) * g           in the first step without (1 - dampening)
 *   w        = w - lr * momentum                             Nesterov: w - lr * (g + mu * momentum)
 *
 * Without momentum (mu = 0) it is w - lr * g, and no slot is needed: 3 floats move per parameter instead of 5. Programs
 * of phase 2 and 3 step by phase 2's sgd, which is the same with momentum alone.
 *
 *   sgd_update_cpu   the definition
 *   sgd_update_gpu   all parameters in one launch (elementwise.cuh)
 */
#ifndef COMMON_NN_OPTIMIZERS_SGD_CUH
#define COMMON_NN_OPTIMIZERS_SGD_CUH

#include "common/nn/optimizers/elementwise.cuh"

/* The settings beside the learning rate and the step. */
typedef struct SgdRule {
  float momentum, weight_decay;
  int nesterov;
} SgdRule;

typedef struct SgdPlainRule {
  float weight_decay;
} SgdPlainRule;

/* momentum may be NULL where mu is 0; share: 1 - dampening, in the first step 1. */
template <typename T>
static inline void sgd_update_cpu(T *w, T *momentum, const T *grad, size_t n, size_t decayed, T lr, T mu, T share,
                                  int nesterov, T weight_decay) {
  for (size_t i = 0; i < n; i++) {
    // >>> hidden sgd_nesterov
    const T g = grad[i] + (i < decayed ? weight_decay : 0) * w[i];
    T direction = g;
    if (momentum != NULL) {
      momentum[i] = mu * momentum[i] + share * g;
      direction = nesterov ? g + mu * momentum[i] : momentum[i];
    }
    w[i] -= lr * direction;
    // <<< hidden
  }
}

static __host__ __device__ __forceinline__ void optimizer_one(const SgdRule &rule, StepValues step, float decay,
                                                              float grad, float *w, float *slot) {
  // >>> hidden sgd_nesterov
  const float g = grad + decay * *w, momentum = rule.momentum * slot[0] + step.share * g;
  slot[0] = momentum;
  *w -= step.lr * (rule.nesterov ? g + rule.momentum * momentum : momentum);
  // <<< hidden
}

static __host__ __device__ __forceinline__ void optimizer_one(const SgdPlainRule &rule, StepValues step, float decay,
                                                              float grad, float *w, float *slot) {
  (void)rule, (void)slot;
  *w -= step.lr * (grad + decay * *w);
}

static inline SgdRule sgd_rule(float momentum, float weight_decay, int nesterov) {
  const SgdRule rule = {momentum, weight_decay, nesterov};
  return rule;
}

static inline SgdPlainRule sgd_plain_rule(float weight_decay) {
  const SgdPlainRule rule = {weight_decay};
  return rule;
}

static inline void sgd_momentum_update(const Context *context, float *w, float *const *slot, const float *grad,
                                       size_t n, size_t decayed, const Hyper *h) {
  optimizer_flat<SgdRule, 1>(context, w, slot, grad, n, decayed, h, sgd_rule(h->momentum, h->weight_decay, 0));
}

static inline void sgd_nesterov_update(const Context *context, float *w, float *const *slot, const float *grad,
                                       size_t n, size_t decayed, const Hyper *h) {
  optimizer_flat<SgdRule, 1>(context, w, slot, grad, n, decayed, h, sgd_rule(h->momentum, h->weight_decay, 1));
}

static inline void sgd_plain_update(const Context *context, float *w, float *const *slot, const float *grad, size_t n,
                                    size_t decayed, const Hyper *h) {
  optimizer_flat<SgdPlainRule, 0>(context, w, slot, grad, n, decayed, h, sgd_plain_rule(h->weight_decay));
}

static const Optimizer optimizer_sgd_momentum = {
    "sgd", 1, {"momentum_buffer"}, sgd_momentum_update, OPTIMIZER_READS_BOTH, NULL, NULL};
static const Optimizer optimizer_sgd_nesterov = {
    "sgd", 1, {"momentum_buffer"}, sgd_nesterov_update, OPTIMIZER_READS_BOTH, NULL, NULL};
static const Optimizer optimizer_sgd_plain = {"sgd", 0, {NULL}, sgd_plain_update, OPTIMIZER_READS_BOTH, NULL, NULL};

#endif /* COMMON_NN_OPTIMIZERS_SGD_CUH */
