/* sgd.cuh - stochastic gradient descent with momentum and weight decay, as PyTorch's torch.optim.SGD steps.
 *
 *   velocity = momentum * velocity + (grad + weight_decay * w)
 *   w        = w - lr * velocity
 *
 * The velocity does not contain lr, so that a new learning rate acts on all of it at once. It starts at zero and is a
 * part of a checkpoint. One call updates n floats: a network keeps all its parameters in one array, all gradients in
 * another, all velocities in a third, and those that are not decayed (weight_decay 0) behind the others.
 *
 *   sgd_step_cpu       plain loop
 *   sgd_step_cpu_fast  vectorised by the compiler, large arrays shared among threads
 *   sgd_step_kernel    one thread per parameter
 */
#ifndef PHASE2_MLP_SGD_CUH
#define PHASE2_MLP_SGD_CUH

#include <stddef.h>

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void sgd_step_cpu(T *w, T *velocity, const T *grad, size_t n, T lr, T momentum, T weight_decay) {
  for (size_t i = 0; i < n; i++) {
    // >>> hidden sgd_momentum
    velocity[i] = momentum * velocity[i] + (grad[i] + weight_decay * w[i]);
    w[i] -= lr * velocity[i];
    // <<< hidden
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU fast path */

enum { SGD_CPU_SERIAL = 16384 }; /* below this many floats, waking a second thread costs more than it saves */

static inline void sgd_step_cpu_fast(float *w, float *velocity, const float *grad, size_t n, float lr, float momentum,
                                     float weight_decay) {
#pragma omp parallel for simd schedule(static) if (parallel : n > SGD_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) {
    // >>> hidden sgd_momentum
    float v = momentum * velocity[i] + (grad[i] + weight_decay * w[i]);
    velocity[i] = v;
    w[i] -= lr * v;
    // <<< hidden
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel and launcher */

static __device__ __forceinline__ void sgd_step_one(float *w, float *velocity, const float *grad, size_t i, float lr,
                                                    float momentum, float weight_decay) {
  // >>> exercise sgd_momentum: velocity[i] and w[i] after this step, by the two lines at the top of this file
  // hint: the new velocity is made of the old one, the gradient, and the weight as it was before this step
  // hint: the weight moves by the new velocity; lr stands in the second line only
  // hint: float v = momentum * velocity[i] + (grad[i] + weight_decay * w[i]); velocity[i] = v; and w[i] -= lr * v;
  float v = momentum * velocity[i] + (grad[i] + weight_decay * w[i]);
  velocity[i] = v;
  w[i] -= lr * v;
  // <<< exercise
}

/* Weight decay applies to the first `decayed` floats. `recorded` is NULL, or the learning rate in the GPU's memory:
 * then the launch can be repeated when it has changed. */
static __global__ void sgd_step_kernel(float *w, float *velocity, const float *grad, size_t n, size_t decayed, float lr,
                                       const float *recorded, float momentum, float weight_decay) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (recorded != NULL) lr = *recorded;
  if (i < n) sgd_step_one(w, velocity, grad, i, lr, momentum, i < decayed ? weight_decay : 0);
}

enum { SGD_BLOCK = 256 };

static inline void sgd_step_parts_gpu(float *w, float *velocity, const float *grad, size_t n, size_t decayed, float lr,
                                      const float *recorded, float momentum, float weight_decay) {
  if (n == 0) return;
  unsigned blocks = (unsigned)((n + SGD_BLOCK - 1) / SGD_BLOCK);
  sgd_step_kernel<<<blocks, SGD_BLOCK>>>(w, velocity, grad, n, decayed, lr, recorded, momentum, weight_decay);
  CUDA_CHECK_LAUNCH();
}

/* All are decayed. */
static inline void sgd_step_gpu(float *w, float *velocity, const float *grad, size_t n, float lr, float momentum,
                                float weight_decay) {
  sgd_step_parts_gpu(w, velocity, grad, n, n, lr, NULL, momentum, weight_decay);
}

/* The same into other arrays: w and velocity stay unchanged, for a check that compares before and after. */
static inline void sgd_step_copy(float *next_w, float *next_velocity, const float *w, const float *velocity,
                                 const float *grad, size_t n, float lr, float momentum, float weight_decay) {
  CUDA_CHECK(cudaMemcpyAsync(next_w, w, n * sizeof *w, cudaMemcpyDeviceToDevice));
  CUDA_CHECK(cudaMemcpyAsync(next_velocity, velocity, n * sizeof *velocity, cudaMemcpyDeviceToDevice));
  sgd_step_gpu(next_w, next_velocity, grad, n, lr, momentum, weight_decay);
}

#endif /* PHASE2_MLP_SGD_CUH */
