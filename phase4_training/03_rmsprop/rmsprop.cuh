/* rmsprop.cuh - RMSprop on all tensors of a network: plain, centred, with momentum.
 *
 *   square   = beta2 * square + (1 - beta2) * g * g            g = grad + weight_decay * w
 *   mean     = beta2 * mean   + (1 - beta2) * g                centred only
 *   size     = sqrt(square - mean * mean) + epsilon            not centred: sqrt(square) + epsilon
 *   momentum = mu * momentum + g / size                        with momentum only
 *   w        = w - lr * momentum                               without: w - lr * g / size
 *
 * KEEPS says which of them there are: RMSPROP_CENTERED, RMSPROP_MOMENTUM, both or neither. What a parameter needs
 * beside w and its gradient is one float, two or three: 20, 28 or 36 bytes move per step.
 *
 *   rmsprop_each           one launch per tensor, one thread per parameter
 *   rmsprop_table          one launch with a table of the tensors (lesson 1)
 *   rmsprop_table_float4   16 bytes per access
 *   rmsprop_flat           all tensors lie in one array: common/nn/optimizers/elementwise.cuh, as networks use it
 *
 * The CPU twin is rmsprop_update_cpu() of common/nn/optimizers/rmsprop.cuh.
 */
#ifndef PHASE4_TRAINING_RMSPROP_CUH
#define PHASE4_TRAINING_RMSPROP_CUH

#include "common/nn/optimizers/rmsprop.cuh"
#include "phase4_training/01_sgd/multi_tensor.cuh"

/* a (n), cut into tensors by tensor_begin(); slots in the order of RmspropRule: square, mean, momentum */
typedef void RmspropLauncher(OptimizerArrays<1> a, int tensors, size_t n, RmspropRule<0> rule, StepValues step);
typedef void RmspropAllLauncher(OptimizerArrays<3> a, int tensors, size_t n,
                                RmspropRule<RMSPROP_CENTERED | RMSPROP_MOMENTUM> rule, StepValues step);

/* ---------------------------------------------------------------------------------------------------------------- */
/* One launch per tensor */

template <int KEEPS, int SLOTS>
static __global__ void rmsprop_each_kernel(OptimizerArrays<SLOTS> a, size_t n, float decay, RmspropRule<KEEPS> rule,
                                           StepValues step) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float w = a.w[i], g = a.grad[i] + decay * w;
  const float square = rule.beta2 * a.slot[0][i] + rule.rest2 * (g * g);
  float size = sqrtf(square) + rule.epsilon;
  a.new_slot[0][i] = square;
  if (KEEPS & RMSPROP_CENTERED) {
    // >>> exercise rmsprop_centered: keep the mean of g in a.slot[1], and make `size` of the variance, which is not < 0
    // hint: the mean is a running one as the square is: rule.beta2 of the old one and rule.rest2 of g
    // hint: square - mean * mean may be a little below 0 by rounding: its root would be NaN
    // hint: size = sqrtf(fmaxf(square - mean * mean, 0)) + rule.epsilon;
    const float mean = rule.beta2 * a.slot[1][i] + rule.rest2 * g;
    a.new_slot[1][i] = mean;
    size = sqrtf(fmaxf(square - mean * mean, 0)) + rule.epsilon;
    // <<< exercise
  }
  float direction = g / size;
  if (KEEPS & RMSPROP_MOMENTUM) {
    const int last = SLOTS - 1;
    direction += rule.momentum * a.slot[last][i];
    a.new_slot[last][i] = direction;
  }
  a.new_w[i] = w - step.lr * direction;
}

template <int KEEPS, int SLOTS>
static inline void rmsprop_each_of(OptimizerArrays<SLOTS> a, int tensors, size_t n, RmspropRule<KEEPS> rule,
                                   StepValues step) {
  for (int i = 0; i < tensors; i++) {
    const size_t begin = tensor_begin(n, tensors, i), length = tensor_begin(n, tensors, i + 1) - begin;
    if (length == 0) continue;
    rmsprop_each_kernel<<<(unsigned)((length + TENSOR_BLOCK - 1) / TENSOR_BLOCK), TENSOR_BLOCK>>>(
        optimizer_arrays_from(a, (ptrdiff_t)begin), length, i < tensors_weights(tensors) ? rule.weight_decay : 0, rule,
        step);
    CUDA_CHECK_LAUNCH();
  }
}

static inline void rmsprop_each(OptimizerArrays<1> a, int tensors, size_t n, RmspropRule<0> rule, StepValues step) {
  rmsprop_each_of<0, 1>(a, tensors, n, rule, step);
}

static inline void rmsprop_all_each(OptimizerArrays<3> a, int tensors, size_t n,
                                    RmspropRule<RMSPROP_CENTERED | RMSPROP_MOMENTUM> rule, StepValues step) {
  rmsprop_each_of<RMSPROP_CENTERED | RMSPROP_MOMENTUM, 3>(a, tensors, n, rule, step);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One launch */

static inline void rmsprop_table(OptimizerArrays<1> a, int tensors, size_t n, RmspropRule<0> rule, StepValues step) {
  tensor_table_step(a, tensors, n, rule, step);
}

static inline void rmsprop_table_float4(OptimizerArrays<1> a, int tensors, size_t n, RmspropRule<0> rule,
                                        StepValues step) {
  tensor_table_float4_step(a, tensors, n, rule, step);
}

static inline void rmsprop_flat(OptimizerArrays<1> a, int tensors, size_t n, RmspropRule<0> rule, StepValues step) {
  tensors_flat_step(a, tensors, n, rule, step);
}

/* Centred, with momentum. */
static inline void rmsprop_all_table(OptimizerArrays<3> a, int tensors, size_t n,
                                     RmspropRule<RMSPROP_CENTERED | RMSPROP_MOMENTUM> rule, StepValues step) {
  tensor_table_float4_step(a, tensors, n, rule, step);
}

static inline void rmsprop_all_flat(OptimizerArrays<3> a, int tensors, size_t n,
                                    RmspropRule<RMSPROP_CENTERED | RMSPROP_MOMENTUM> rule, StepValues step) {
  tensors_flat_step(a, tensors, n, rule, step);
}

#endif /* PHASE4_TRAINING_RMSPROP_CUH */
