/* elementwise.cuh - what optimizers have in common that treat each parameter by itself: the loop and the kernel.
 *
 * An optimizer is a rule: a struct of its settings, and a function for one parameter, which is the same on the CPU and
 * on the GPU,
 *
 *     optimizer_one(rule, step, decay, grad, &w, slot)       // decay: the weight decay of this parameter; slot (SLOTS)
 *
 *   optimizer_flat_cpu_fast   a loop, large arrays shared among threads
 *   optimizer_flat_gpu        four parameters per thread, each array loaded and stored 16 bytes at a time
 *
 * An optimizer does hardly any arithmetic: it reads w, the gradient and its slots, and writes w and the slots. So its
 * time is that of the bytes, (3 + 2 slots) floats per parameter. A thread has 16 bytes of each array in flight, which
 * keeps the memory busy without a loop. One launch updates all parameters of a network: they lie in one array, those
 * with weight decay first.
 */
#ifndef COMMON_NN_OPTIMIZERS_ELEMENTWISE_CUH
#define COMMON_NN_OPTIMIZERS_ELEMENTWISE_CUH

#include "common/check.h"
#include "common/nn/op.h"

/* Arrays of n floats. The new values may be written over the old ones: new_w may be w, and new_slot[s] slot[s]. */
template <int SLOTS>
struct OptimizerArrays {
  float *new_w, *new_slot[SLOTS > 0 ? SLOTS : 1];
  const float *w, *grad, *slot[SLOTS > 0 ? SLOTS : 1];
};

template <int SLOTS>
static inline OptimizerArrays<SLOTS> optimizer_arrays(float *w, float *const *slot, const float *grad) {
  OptimizerArrays<SLOTS> a;
  memset(&a, 0, sizeof a);
  a.w = a.new_w = w;
  a.grad = grad;
  for (int s = 0; s < SLOTS; s++) a.slot[s] = a.new_slot[s] = slot[s];
  return a;
}

/* The same from element `first` on. */
template <int SLOTS>
static __host__ __device__ __forceinline__ OptimizerArrays<SLOTS> optimizer_arrays_from(OptimizerArrays<SLOTS> a,
                                                                                        ptrdiff_t first) {
  a.w += first;
  a.new_w += first;
  a.grad += first;
  for (int s = 0; s < SLOTS; s++) {
    a.slot[s] += first;
    a.new_slot[s] += first;
  }
  return a;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One parameter, four parameters */

template <typename Rule, int SLOTS>
static __host__ __device__ __forceinline__ void optimizer_single(const Rule &rule, StepValues step,
                                                                 const OptimizerArrays<SLOTS> &a, size_t i,
                                                                 float decay) {
  float w = a.w[i], slot[SLOTS > 0 ? SLOTS : 1];
  for (int s = 0; s < SLOTS; s++) slot[s] = a.slot[s][i];
  optimizer_one(rule, step, decay, a.grad[i], &w, slot);
  a.new_w[i] = w;
  for (int s = 0; s < SLOTS; s++) a.new_slot[s][i] = slot[s];
}

/* Parameters 4 quad to 4 quad + 3, of which those before `decayed` are decayed; the arrays are aligned to 16 bytes. All
 * loads stand before the first store, so that they are in flight together. */
template <typename Rule, int SLOTS>
static __device__ __forceinline__ void optimizer_quad(const Rule &rule, StepValues step,
                                                      const OptimizerArrays<SLOTS> &a, size_t quad, size_t decayed) {
  __align__(16) float w[4], grad[4], slot[SLOTS > 0 ? SLOTS : 1][4];
  *(float4 *)w = ((const float4 *)a.w)[quad];
  *(float4 *)grad = ((const float4 *)a.grad)[quad];
#pragma unroll
  for (int s = 0; s < SLOTS; s++) *(float4 *)slot[s] = ((const float4 *)a.slot[s])[quad];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    float own[SLOTS > 0 ? SLOTS : 1];
#pragma unroll
    for (int s = 0; s < SLOTS; s++) own[s] = slot[s][k];
    optimizer_one(rule, step, 4 * quad + k < decayed ? rule.weight_decay : 0, grad[k], &w[k], own);
#pragma unroll
    for (int s = 0; s < SLOTS; s++) slot[s][k] = own[s];
  }
  ((float4 *)a.new_w)[quad] = *(float4 *)w;
#pragma unroll
  for (int s = 0; s < SLOTS; s++) ((float4 *)a.new_slot[s])[quad] = *(float4 *)slot[s];
}

/* How many floats the arrays begin behind a multiple of 16 bytes; -1 where that differs among them. */
template <int SLOTS>
static __host__ __device__ __forceinline__ int optimizer_misaligned(const OptimizerArrays<SLOTS> &a) {
  const int floats = (int)((uintptr_t)a.w / sizeof(float) % 4);
  int same =
      (int)((uintptr_t)a.new_w / sizeof(float) % 4) == floats && (int)((uintptr_t)a.grad / sizeof(float) % 4) == floats;
  for (int s = 0; s < SLOTS; s++)
    same &= (int)((uintptr_t)a.slot[s] / sizeof(float) % 4) == floats &&
            (int)((uintptr_t)a.new_slot[s] / sizeof(float) % 4) == floats;
  return same ? floats : -1;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU */

enum { OPTIMIZER_CPU_SERIAL = 16384 }; /* below this many floats, waking a second thread costs more than it saves */

template <typename Rule, int SLOTS>
static inline void optimizer_flat_cpu_fast(OptimizerArrays<SLOTS> a, size_t n, size_t decayed, Rule rule,
                                           StepValues step) {
#pragma omp parallel for simd schedule(static) if (parallel : n > OPTIMIZER_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) optimizer_single(rule, step, a, i, i < decayed ? rule.weight_decay : 0);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* GPU */

enum { OPTIMIZER_BLOCK = 256 };

/* The first 4 quads parameters by fours, the rest one by one; quads is 0 where the arrays are not aligned. There are at
 * least as many threads as quads, and as parameters in the rest. `values`: in the GPU's memory, so that the launch can
 * be repeated when they have changed; NULL: `step` holds them. `scale`: where it says that the step is skipped, nothing
 * changes; NULL: it does not. */
template <typename Rule, int SLOTS>
static __global__ void optimizer_flat_kernel(OptimizerArrays<SLOTS> a, size_t n, size_t decayed, size_t quads,
                                             Rule rule, StepValues step, const StepValues *values,
                                             const LossScale *scale) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, rest = 4 * quads + i;
  if (scale != NULL && scale->skips) return;
  if (values != NULL) step = *values;
  if (i < quads) optimizer_quad(rule, step, a, i, decayed);
  if (rest < n) optimizer_single(rule, step, a, rest, rest < decayed ? rule.weight_decay : 0);
}

template <typename Rule, int SLOTS>
static inline void optimizer_flat_gpu(OptimizerArrays<SLOTS> a, size_t n, size_t decayed, Rule rule, StepValues step,
                                      const StepValues *values, const LossScale *scale = NULL) {
  if (n == 0) return;
  const size_t quads = optimizer_misaligned(a) == 0 ? n / 4 : 0, threads = quads > 0 ? quads : n;
  optimizer_flat_kernel<<<(unsigned)((threads + OPTIMIZER_BLOCK - 1) / OPTIMIZER_BLOCK), OPTIMIZER_BLOCK>>>(
      a, n, decayed, quads, rule, step, values, scale);
  CUDA_CHECK_LAUNCH();
}

/* As Optimizer.step() is called. */
template <typename Rule, int SLOTS>
static inline void optimizer_flat(const Context *context, float *w, float *const *slot, const float *grad, size_t n,
                                  size_t decayed, const Hyper *hyper, Rule rule) {
  const OptimizerArrays<SLOTS> a = optimizer_arrays<SLOTS>(w, slot, grad);
  const int given = context->device == DEVICE_CPU && context->values != NULL;
  const StepValues step = given ? *context->values : step_values(hyper->lr, hyper, context->step);
  ON_DEVICE(context->device, optimizer_flat_gpu(a, n, decayed, rule, step, context->values, context->loss_scale),
            optimizer_flat_cpu_fast(a, n, decayed, rule, step));
}

#endif /* COMMON_NN_OPTIMIZERS_ELEMENTWISE_CUH */
