/* adam.cuh - Adam and AdamW on all tensors of a network.
 *
 *   g       = grad + weight_decay * w                          Adam: L2 regularization
 *   first   = beta1 * first  + (1 - beta1) * g                 AdamW: g = grad, and w = w - lr * weight_decay * w
 *   second  = beta2 * second + (1 - beta2) * g * g
 *   w       = w - lr * (c1 * first) / (c2 * sqrt(second) + epsilon)
 *
 * c1 = 1 / (1 - beta1^t) and c2 = 1 / sqrt(1 - beta2^t) correct the bias of means that started at 0; they are the same
 * for all parameters, and the host computes them (step_values() of common/nn/op.h). Four arrays are read, three of them
 * written: 28 bytes per parameter.
 *
 *   adam_each           one launch per tensor, one thread per parameter
 *   adam_table          one launch with a table of the tensors (lesson 1)
 *   adam_table_float4   16 bytes per access
 *   adam_flat           all tensors lie in one array: common/nn/optimizers/elementwise.cuh, as networks use it
 *
 * The CPU twin is adam_update_cpu() of common/nn/optimizers/adam.cuh.
 */
#ifndef PHASE4_TRAINING_ADAM_CUH
#define PHASE4_TRAINING_ADAM_CUH

#include "common/nn/optimizers/adam.cuh"
#include "phase4_training/01_sgd/multi_tensor.cuh"

/* a (n), cut into tensors by tensor_begin(); the slots are first and second */
typedef void AdamLauncher(OptimizerArrays<2> a, int tensors, size_t n, AdamRule rule, StepValues step);

/* ---------------------------------------------------------------------------------------------------------------- */
/* One launch per tensor */

static __global__ void adam_each_kernel(OptimizerArrays<2> a, size_t n, float decay, AdamRule rule, StepValues step) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float w = a.w[i], grad = a.grad[i], old_first = a.slot[0][i], old_second = a.slot[1][i];
  float g = grad, kept = w;
  // >>> exercise adamw_decay: the weight decay acts on g, or, where rule.decoupled, on kept: by the first two formulas
  // hint: L2 regularization adds decay * w to the gradient, so that it also passes through both means
  // hint: decoupled, the weight loses the share step.lr * decay of itself, and the gradient stays as it is
  // hint: if (rule.decoupled) kept = w - step.lr * decay * w; else g = grad + decay * w;
  if (rule.decoupled)
    kept = w - step.lr * decay * w;
  else
    g = grad + decay * w;
  // <<< exercise
  // >>> exercise adam_step: the new first and second into a.new_slot[0][i] and [1][i], the new weight into a.new_w[i]
  // hint: both are running means: of g, with rule.beta1 and rule.rest1 = 1 - beta1, and of g * g, with beta2 and rest2
  // hint: the step is step.lr times the corrected first, step.first * first, over the root of the corrected second
  // hint: step.second corrects the root: a.new_w[i] = kept - ... / (sqrtf(second) * step.second + rule.epsilon);
  const float first = rule.beta1 * old_first + rule.rest1 * g;
  const float second = rule.beta2 * old_second + rule.rest2 * (g * g);
  a.new_slot[0][i] = first;
  a.new_slot[1][i] = second;
  a.new_w[i] = kept - step.lr * step.first * first / (sqrtf(second) * step.second + rule.epsilon);
  // <<< exercise
}

static inline void adam_each(OptimizerArrays<2> a, int tensors, size_t n, AdamRule rule, StepValues step) {
  for (int i = 0; i < tensors; i++) {
    const size_t begin = tensor_begin(n, tensors, i), length = tensor_begin(n, tensors, i + 1) - begin;
    if (length == 0) continue;
    adam_each_kernel<<<(unsigned)((length + TENSOR_BLOCK - 1) / TENSOR_BLOCK), TENSOR_BLOCK>>>(
        optimizer_arrays_from(a, (ptrdiff_t)begin), length, i < tensors_weights(tensors) ? rule.weight_decay : 0, rule,
        step);
    CUDA_CHECK_LAUNCH();
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One launch */

static inline void adam_table(OptimizerArrays<2> a, int tensors, size_t n, AdamRule rule, StepValues step) {
  tensor_table_step(a, tensors, n, rule, step);
}

static inline void adam_table_float4(OptimizerArrays<2> a, int tensors, size_t n, AdamRule rule, StepValues step) {
  tensor_table_float4_step(a, tensors, n, rule, step);
}

static inline void adam_flat(OptimizerArrays<2> a, int tensors, size_t n, AdamRule rule, StepValues step) {
  tensors_flat_step(a, tensors, n, rule, step);
}

#endif /* PHASE4_TRAINING_ADAM_CUH */
