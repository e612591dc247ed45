/* sgd.cuh - stochastic gradient descent on all tensors of a network: plain, with momentum, with Nesterov's.
 *
 *   g        = grad + weight_decay * w
 *   momentum = mu * momentum + share * g           share = 1 - dampening
 *   w        = w - lr * momentum                   Nesterov: w - lr * (g + mu * momentum)
 *
 * An optimizer reads three arrays, writes two of them, and computes hardly anything: its time is that of 20 bytes per
 * parameter, and of its launches.
 *
 *   sgd_each           one launch per tensor, one thread per parameter
 *   sgd_table          one launch; a table of the tensors is an argument of the kernel
 *   sgd_table_float4   16 bytes per access
 *   sgd_flat           all tensors lie in one array: common/nn/optimizers/elementwise.cuh, as networks use it
 *
 * The CPU twin is sgd_update_cpu() of common/nn/optimizers/sgd.cuh.
 */
#ifndef PHASE4_TRAINING_SGD_CUH
#define PHASE4_TRAINING_SGD_CUH

#include "common/nn/optimizers/sgd.cuh"
#include "phase4_training/01_sgd/multi_tensor.cuh"

/* a (n), cut into tensors by tensor_begin() */
typedef void SgdLauncher(OptimizerArrays<1> a, int tensors, size_t n, SgdRule rule, StepValues step);
typedef void SgdPlainLauncher(OptimizerArrays<0> a, int tensors, size_t n, SgdPlainRule rule, StepValues step);

/* ---------------------------------------------------------------------------------------------------------------- */
/* One launch per tensor */

static __global__ void sgd_each_kernel(OptimizerArrays<1> a, size_t n, float decay, SgdRule rule, StepValues step) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float w = a.w[i], before = a.slot[0][i], grad = a.grad[i];
  // >>> exercise sgd_nesterov: a.new_slot[0][i], the momentum, and a.new_w[i], by the formulas at the top of this file
  // hint: g has the decay of the old weight; the new momentum is made of the old one, `before`, and of step.share * g
  // hint: rule.nesterov chooses the direction: the momentum, or where it would be after one more such gradient
  // hint: a.new_w[i] = w - step.lr * (rule.nesterov ? g + rule.momentum * momentum : momentum);
  const float g = grad + decay * w, momentum = rule.momentum * before + step.share * g;
  a.new_slot[0][i] = momentum;
  a.new_w[i] = w - step.lr * (rule.nesterov ? g + rule.momentum * momentum : momentum);
  // <<< exercise
}

static inline void sgd_each(OptimizerArrays<1> a, int tensors, size_t n, SgdRule rule, StepValues step) {
  for (int i = 0; i < tensors; i++) {
    const size_t begin = tensor_begin(n, tensors, i), length = tensor_begin(n, tensors, i + 1) - begin;
    if (length == 0) continue;
    sgd_each_kernel<<<(unsigned)((length + TENSOR_BLOCK - 1) / TENSOR_BLOCK), TENSOR_BLOCK>>>(
        optimizer_arrays_from(a, (ptrdiff_t)begin), length, i < tensors_weights(tensors) ? rule.weight_decay : 0, rule,
        step);
    CUDA_CHECK_LAUNCH();
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One launch */

static inline void sgd_table(OptimizerArrays<1> a, int tensors, size_t n, SgdRule rule, StepValues step) {
  tensor_table_step(a, tensors, n, rule, step);
}

static inline void sgd_table_float4(OptimizerArrays<1> a, int tensors, size_t n, SgdRule rule, StepValues step) {
  tensor_table_float4_step(a, tensors, n, rule, step);
}

static inline void sgd_flat(OptimizerArrays<1> a, int tensors, size_t n, SgdRule rule, StepValues step) {
  tensors_flat_step(a, tensors, n, rule, step);
}

/* Without momentum: w and grad alone. */
static inline void sgd_plain_table(OptimizerArrays<0> a, int tensors, size_t n, SgdPlainRule rule, StepValues step) {
  tensor_table_float4_step(a, tensors, n, rule, step);
}

static inline void sgd_plain_flat(OptimizerArrays<0> a, int tensors, size_t n, SgdPlainRule rule, StepValues step) {
  tensors_flat_step(a, tensors, n, rule, step);
}

#endif /* PHASE4_TRAINING_SGD_CUH */
