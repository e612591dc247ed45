/* rmsprop.cuh - RMSprop (Hinton's lecture, 2012), as torch.optim.RMSprop steps: plain, centred, with momentum.
 *
 *   g        = grad + weight_decay * w
 *   square   = beta2 * square + (1 - beta2) * g * g                 PyTorch calls beta2 alpha
 *   mean     = beta2 * mean   + (1 - beta2) * g                     centred only
 *   size     = sqrt(square - mean * mean) + epsilon                 not centred: sqrt(square) + epsilon
 *   momentum = mu * momentum + g / size                             with momentum only
 *   w        = w - lr * momentum                                    without: w - lr * g / size
 *
 * square - mean * mean is a variance, and not negative; rounded it may be, where the gradient hardly changes, and the
 * root of that is NaN. So it is 0 at least. There are as many slots as are needed: 5 floats move per parameter, 7, or
 * 9.
 *
 *   rmsprop_update_cpu   the definition
 *   rmsprop_update_gpu   all parameters in one launch (elementwise.cuh)
 */
#ifndef COMMON_NN_OPTIMIZERS_RMSPROP_CUH
#define COMMON_NN_OPTIMIZERS_RMSPROP_CUH

#include "common/nn/optimizers/elementwise.cuh"

/* What it keeps beside the square: bits. The slots stand in this order: square, mean, momentum. */
enum { RMSPROP_CENTERED = 1, RMSPROP_MOMENTUM = 2 };

template <int KEEPS>
struct RmspropRule {
  float beta2, rest2, epsilon, momentum, weight_decay;
};

/* mean is NULL where it is not centred, momentum where mu is 0. */
template <typename T>
static inline void rmsprop_update_cpu(T *w, T *square, T *mean, T *momentum, const T *grad, size_t n, size_t decayed,
                                      T lr, T beta2, T epsilon, T mu, T weight_decay) {
  for (size_t i = 0; i < n; i++) {
    // >>> hidden rmsprop_centered
    const T g = grad[i] + (i < decayed ? weight_decay : 0) * w[i];
    square[i] = beta2 * square[i] + (1 - beta2) * g * g;
    T variance = square[i];
    if (mean != NULL) {
      mean[i] = beta2 * mean[i] + (1 - beta2) * g;
      variance -= mean[i] * mean[i];
    }
    T direction = g / (sqrt(variance < 0 ? 0 : variance) + epsilon);
    if (momentum != NULL) direction = momentum[i] = mu * momentum[i] + direction;
    w[i] -= lr * direction;
    // <<< hidden
  }
}

template <int KEEPS>
static __host__ __device__ __forceinline__ void optimizer_one(const RmspropRule<KEEPS> &rule, StepValues step,
                                                              float decay, float grad, float *w, float *slot) {
  // >>> hidden rmsprop_centered
  const float g = grad + decay * *w;
  float variance = rule.beta2 * slot[0] + rule.rest2 * (g * g);
  slot[0] = variance;
  if (KEEPS & RMSPROP_CENTERED) {
    const float mean = rule.beta2 * slot[1] + rule.rest2 * g;
    slot[1] = mean;
    variance -= mean * mean;
    variance = variance < 0 ? 0 : variance; /* false for NaN, so NaN stays */
  }
  float direction = g / (sqrtf(variance) + rule.epsilon);
  if (KEEPS & RMSPROP_MOMENTUM) {
    float *momentum = &slot[KEEPS & RMSPROP_CENTERED ? 2 : 1];
    direction = *momentum = rule.momentum * *momentum + direction;
  }
  *w -= step.lr * direction;
  // <<< hidden
}

template <int KEEPS>
static inline RmspropRule<KEEPS> rmsprop_rule(const Hyper *h) {
  const RmspropRule<KEEPS> rule = {(float)h->beta2, (float)(1 - h->beta2), h->epsilon, h->momentum, h->weight_decay};
  return rule;
}

/* Slots: the square, and what it keeps beside. */
template <int KEEPS>
struct RmspropSlots {
  enum { COUNT = 1 + (KEEPS & 1) + (KEEPS >> 1) };
};

template <int KEEPS>
static inline void rmsprop_update(const Context *context, float *w, float *const *slot, const float *grad, size_t n,
                                  size_t decayed, const Hyper *h) {
  optimizer_flat<RmspropRule<KEEPS>, RmspropSlots<KEEPS>::COUNT>(context, w, slot, grad, n, decayed, h,
                                                                 rmsprop_rule<KEEPS>(h));
}

/* By what it keeps. */
static const Optimizer optimizer_rmsprop[] = {
    {"rmsprop", 1, {"square_avg"}, rmsprop_update<0>, OPTIMIZER_READS_BOTH, NULL, NULL},
    {"rmsprop", 2, {"square_avg", "grad_avg"}, rmsprop_update<RMSPROP_CENTERED>, OPTIMIZER_READS_BOTH, NULL, NULL},
    {"rmsprop",
     2,
     {"square_avg", "momentum_buffer"},
     rmsprop_update<RMSPROP_MOMENTUM>,
     OPTIMIZER_READS_BOTH,
     NULL,
     NULL},
    {"rmsprop",
     3,
     {"square_avg", "grad_avg", "momentum_buffer"},
     rmsprop_update<RMSPROP_CENTERED | RMSPROP_MOMENTUM>,
     OPTIMIZER_READS_BOTH,
     NULL,
     NULL},
};

#endif /* COMMON_NN_OPTIMIZERS_RMSPROP_CUH */
