/* loss_scale.h - dynamic loss scaling for fp16 (Micikevicius et al., "Mixed precision training", 2018).
 *
 * The smallest number of fp16 is 6e-8: most gradients of a network are smaller where they pass backward through it, and
 * would be 0. So the loss's gradient is multiplied by a scale S, and with it every gradient behind it; the gradients of
 * the weights, float32, are divided by S. S is a power of two, so that neither rounds. It must not be too large: above
 * 65504 a number becomes infinite. Nobody knows the right S, which changes as the network learns. It is found by
 * trying:
 *
 *     a gradient is not finite      the step changes nothing: no weight, no slot of the optimizer; S is halved
 *     2000 steps in a row are fine  S is doubled
 *
 * Three kernels per step: the loss's gradient times S; all gradients divided by S and checked; one thread that computes
 * S for the next step and StepValues of this one. S and what it counts lie in the device's memory, and the optimizer's
 * kernels look there whether to change anything. The host waits for nothing, and launches the same kernels in every
 * step, so that a step can be a CUDA graph.
 *
 * A skipped step does not count either where a formula has the number t of the step: in Adam's bias corrections and in
 * the average of the weights. So it is in PyTorch, whose GradScaler does not call the optimizer then. The host does not
 * know t. For the schedule of the learning rate the step counts.
 */
#ifndef COMMON_NN_LOSS_SCALE_H
#define COMMON_NN_LOSS_SCALE_H

#include <math.h>

#include "common/nn/op.h"

#define LOSS_SCALE_FIRST 65536.0f
#define LOSS_SCALE_LEAST 1.0f
#define LOSS_SCALE_MOST 16777216.0f /* 2^24 */
enum { LOSS_SCALE_INTERVAL = 2000, LOSS_SCALE_BLOCK = 256, LOSS_SCALE_BLOCKS = 528 };

/* Whether a float is a number: its exponent is not all ones. */
static inline
#ifdef __CUDACC__
    __host__ __device__
#endif
    int
    loss_scale_finite(float x) {
  return fabsf(x) <= 3.402823466e38f; /* false for NaN */
}

/* The state after a step that found `overflow` as it is. */
static inline
#ifdef __CUDACC__
    __host__ __device__
#endif
    void
    loss_scale_next(LossScale *s) {
  s->steps++;
  // >>> hidden loss_scale_update
  if (s->overflow) {
    s->event[s->skipped % LOSS_SCALE_EVENTS].step = s->steps;
    s->event[s->skipped % LOSS_SCALE_EVENTS].scale = s->scale;
    s->skipped++;
    s->scale = fmaxf(s->scale / 2, LOSS_SCALE_LEAST);
    s->good = 0;
  } else if (++s->good == LOSS_SCALE_INTERVAL) {
    s->scale = fminf(s->scale * 2, LOSS_SCALE_MOST);
    s->good = 0;
  }
  // <<< hidden
  s->skips = s->overflow;
  s->overflow = 0;
}

/* Before loss_scale_next(): what is read in this step. In a skipped one the average of the weights stays; before the
 * first step that is not skipped it is the weights. */
static inline
#ifdef __CUDACC__
    __host__ __device__
#endif
    void
    loss_scale_values(LossScale *s, float lr, const Hyper *hyper) {
  const int32_t taken = s->steps - s->skipped;
  s->values = step_values(lr, hyper, taken);
  if (s->overflow) s->values.average = taken > 0 ? 0 : 1;
}

/* ------------------------------------------------------------------------------------------------------------- CPU */

static inline void loss_scale_multiply_cpu(float *dx, size_t n, const LossScale *s) {
  for (size_t i = 0; i < n; i++) dx[i] *= s->scale;
}

/* g / scale; whether one of them is not finite. */
static inline void loss_scale_divide_cpu(float *g, size_t n, LossScale *s) {
  const float inverse = 1 / s->scale;
  int overflow = 0;
#pragma omp parallel for schedule(static) reduction(| : overflow) if (n > 65536)
  for (size_t i = 0; i < n; i++) {
    g[i] *= inverse;
    overflow |= !loss_scale_finite(g[i]);
  }
  s->overflow |= overflow;
}

/* values: where the learning rate is; NULL: hyper has it. */
static inline void loss_scale_next_cpu(LossScale *s, const Hyper *hyper, const StepValues *values) {
  loss_scale_values(s, values != NULL ? values->lr : hyper->lr, hyper);
  loss_scale_next(s);
}

/* ------------------------------------------------------------------------------------------------------------- GPU */

#ifdef __CUDACC__
#include "common/check.h"

static __global__ void loss_scale_multiply_kernel(float *dx, size_t n, const LossScale *s) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) dx[i] *= s->scale;
}

/* Every thread that finds a number that is not finite writes the same 1. */
static __global__ void loss_scale_divide_kernel(float *g, size_t n, LossScale *s) {
  const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x, step = (size_t)gridDim.x * blockDim.x;
  const float inverse = 1 / s->scale;
  // >>> hidden loss_scale_check
  int overflow = 0;
  for (size_t i = first; i < n; i += step) {
    g[i] *= inverse;
    overflow |= !loss_scale_finite(g[i]);
  }
  if (overflow) s->overflow = 1;
  // <<< hidden
}

/* values: in the GPU's memory, so that the launch can be repeated. */
static __global__ void loss_scale_next_kernel(LossScale *s, Hyper hyper, const StepValues *values) {
  loss_scale_values(s, values != NULL ? values->lr : hyper.lr, &hyper);
  loss_scale_next(s);
}

static inline void loss_scale_multiply_gpu(float *dx, size_t n, const LossScale *s) {
  if (n == 0) return;
  loss_scale_multiply_kernel<<<(unsigned)((n + LOSS_SCALE_BLOCK - 1) / LOSS_SCALE_BLOCK), LOSS_SCALE_BLOCK>>>(dx, n, s);
  CUDA_CHECK_LAUNCH();
}

static inline void loss_scale_divide_gpu(float *g, size_t n, LossScale *s) {
  const size_t all = (n + LOSS_SCALE_BLOCK - 1) / LOSS_SCALE_BLOCK;
  const unsigned blocks = all < LOSS_SCALE_BLOCKS ? (unsigned)all : (unsigned)LOSS_SCALE_BLOCKS;
  if (n == 0) return;
  loss_scale_divide_kernel<<<blocks, LOSS_SCALE_BLOCK>>>(g, n, s);
  CUDA_CHECK_LAUNCH();
}

static inline void loss_scale_next_gpu(LossScale *s, const Hyper *hyper, const StepValues *values) {
  loss_scale_next_kernel<<<1, 1>>>(s, *hyper, values);
  CUDA_CHECK_LAUNCH();
}
#endif

#endif /* COMMON_NN_LOSS_SCALE_H */
