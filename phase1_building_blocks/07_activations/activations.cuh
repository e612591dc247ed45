/* activations.cuh - activation functions of n floats, element by element; n may be 0.
 *
 *   ReLU         y = max(x, 0)                      dx = y > 0 ? dy : 0
 *   leaky ReLU   y = x < 0 ? slope x : x            dx = y < 0 ? slope dy : dy
 *   sigmoid      y = 1 / (1 + exp(-x))              dx = dy y (1 - y)
 *   tanh         y = (exp(x) - exp(-x)) / (exp(x) + exp(-x))    dx = dy (1 - y^2)
 *
 * The backward pass needs only y, so x need not be kept, and both directions may work in place (y == x, dx == dy).
 * A NaN stays a NaN: a network that has diverged should show it.
 *
 * exp(89) is infinite in float, so tanh(89), computed as above, would be inf / inf. The code below only computes
 * exp(-|x|), which is at most 1. Where two nearly equal numbers would be subtracted, it computes the difference
 * directly: expm1(x) is exp(x) - 1, and 1 - y^2 is (1 - y) (1 + y). (A compiler may turn 1 - y * y into one fma(),
 * which rounds once and loses nothing; but not every compiler does.)
 *
 *   *_cpu        plain loops
 *   *_cpu_fast   large arrays are divided among threads; the compiler vectorises all but sigmoid and tanh forward
 *   *_scalar     one float per thread
 *   *_gpu        four floats per thread, loaded at once: a quarter of the requests for the same bytes
 */
#ifndef PHASE1_BUILDING_BLOCKS_ACTIVATIONS_CUH
#define PHASE1_BUILDING_BLOCKS_ACTIVATIONS_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LEAKY_RELU_SLOPE 0.01f

typedef enum Activation { ACTIVATION_RELU, ACTIVATION_LEAKY_RELU, ACTIVATION_SIGMOID, ACTIVATION_TANH } Activation;

enum { ACTIVATIONS = 4 };

/* The name as a user writes it in an option. */
static inline const char *activation_name(Activation kind) {
  static const char *const names[ACTIVATIONS] = {"relu", "leaky_relu", "sigmoid", "tanh"};
  return names[kind];
}

/* Sets *kind to the activation of this name and returns 1; returns 0 if there is none. */
static inline int activation_named(const char *name, Activation *kind) {
  for (int k = 0; k < ACTIVATIONS; k++) {
    *kind = (Activation)k;
    if (strcmp(name, activation_name(*kind)) == 0) return 1;
  }
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void relu_forward_cpu(T *y, const T *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i]; /* the comparison is false for NaN, so NaN stays */
}

/* dx = dy where y > 0 or y is NaN, else 0: the slope at 0 is defined as 0. */
template <typename T>
static inline void relu_backward_cpu(T *dx, const T *dy, const T *y, size_t n) {
  for (size_t i = 0; i < n; i++) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

template <typename T>
static inline void leaky_relu_forward_cpu(T *y, const T *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0 ? LEAKY_RELU_SLOPE * x[i] : x[i];
}

template <typename T>
static inline void leaky_relu_backward_cpu(T *dx, const T *dy, const T *y, size_t n) {
  for (size_t i = 0; i < n; i++) dx[i] = y[i] < 0 ? LEAKY_RELU_SLOPE * dy[i] : dy[i];
}

template <typename T>
static inline void sigmoid_forward_cpu(T *y, const T *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    double e = exp(-fabs((double)x[i]));
    y[i] = (T)(x[i] < 0 ? e / (1 + e) : 1 / (1 + e));
  }
}

template <typename T>
static inline void sigmoid_backward_cpu(T *dx, const T *dy, const T *y, size_t n) {
  for (size_t i = 0; i < n; i++) dx[i] = (T)((double)dy[i] * y[i] * (1 - (double)y[i]));
}

template <typename T>
static inline void tanh_forward_cpu(T *y, const T *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = (T)tanh((double)x[i]);
}

template <typename T>
static inline void tanh_backward_cpu(T *dx, const T *dy, const T *y, size_t n) {
  for (size_t i = 0; i < n; i++) dx[i] = (T)(dy[i] * (1 - (double)y[i]) * (1 + (double)y[i]));
}

/* The kind that a user chose. */
template <typename T>
static inline void activation_forward_cpu(Activation kind, T *y, const T *x, size_t n) {
  switch (kind) {
    case ACTIVATION_RELU:
      return relu_forward_cpu(y, x, n);
    case ACTIVATION_LEAKY_RELU:
      return leaky_relu_forward_cpu(y, x, n);
    case ACTIVATION_SIGMOID:
      return sigmoid_forward_cpu(y, x, n);
    default:
      return tanh_forward_cpu(y, x, n);
  }
}

template <typename T>
static inline void activation_backward_cpu(Activation kind, T *dx, const T *dy, const T *y, size_t n) {
  switch (kind) {
    case ACTIVATION_RELU:
      return relu_backward_cpu(dx, dy, y, n);
    case ACTIVATION_LEAKY_RELU:
      return leaky_relu_backward_cpu(dx, dy, y, n);
    case ACTIVATION_SIGMOID:
      return sigmoid_backward_cpu(dx, dy, y, n);
    default:
      return tanh_backward_cpu(dx, dy, y, n);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU fast path */

enum { /* below this many floats, waking a second thread costs more than it saves */
       RELU_CPU_SERIAL = 16384,
       SIGMOID_CPU_SERIAL = 2048, /* and tanh: they take longer per element */
};

static inline void relu_forward_cpu_fast(float *y, const float *x, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

static inline void relu_backward_cpu_fast(float *dx, const float *dy, const float *y, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) {
    float d = dy[i]; /* read unconditionally: then the compiler can use a select instead of a branch */
    dx[i] = y[i] <= 0 ? 0 : d;
  }
}

static inline void leaky_relu_forward_cpu_fast(float *y, const float *x, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0 ? LEAKY_RELU_SLOPE * x[i] : x[i];
}

static inline void leaky_relu_backward_cpu_fast(float *dx, const float *dy, const float *y, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) {
    float d = dy[i];
    dx[i] = y[i] < 0 ? LEAKY_RELU_SLOPE * d : d;
  }
}

static inline void sigmoid_forward_cpu_fast(float *y, const float *x, size_t n) {
#pragma omp parallel for schedule(static) if (n > SIGMOID_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) {
    float e = expf(-fabsf(x[i]));
    y[i] = (x[i] < 0 ? e : 1.0f) / (1.0f + e);
  }
}

static inline void sigmoid_backward_cpu_fast(float *dx, const float *dy, const float *y, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) dx[i] = dy[i] * y[i] * (1.0f - y[i]);
}

static inline void tanh_forward_cpu_fast(float *y, const float *x, size_t n) {
#pragma omp parallel for schedule(static) if (n > SIGMOID_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) y[i] = tanhf(x[i]);
}

static inline void tanh_backward_cpu_fast(float *dx, const float *dy, const float *y, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) dx[i] = dy[i] * (1.0f - y[i]) * (1.0f + y[i]);
}

/* The kind that a user chose. */
static inline void activation_forward_cpu_fast(Activation kind, float *y, const float *x, size_t n) {
  switch (kind) {
    case ACTIVATION_RELU:
      return relu_forward_cpu_fast(y, x, n);
    case ACTIVATION_LEAKY_RELU:
      return leaky_relu_forward_cpu_fast(y, x, n);
    case ACTIVATION_SIGMOID:
      return sigmoid_forward_cpu_fast(y, x, n);
    default:
      return tanh_forward_cpu_fast(y, x, n);
  }
}

static inline void activation_backward_cpu_fast(Activation kind, float *dx, const float *dy, const float *y, size_t n) {
  switch (kind) {
    case ACTIVATION_RELU:
      return relu_backward_cpu_fast(dx, dy, y, n);
    case ACTIVATION_LEAKY_RELU:
      return leaky_relu_backward_cpu_fast(dx, dy, y, n);
    case ACTIVATION_SIGMOID:
      return sigmoid_backward_cpu_fast(dx, dy, y, n);
    default:
      return tanh_backward_cpu_fast(dx, dy, y, n);
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* One element */

static __device__ float sigmoid_forward_one(float x) {
  float y = 0;
  // >>> exercise activation_sigmoid: y = 1 / (1 + exp(-x)), without an exp() that overflows: y(-90) is 8e-40, not 0
  // hint: exp() of a number <= 0 is at most 1. What is exp(-|x|) for a positive x, and for a negative x?
  // hint: for x < 0, multiply numerator and denominator of 1 / (1 + exp(-x)) by exp(x)
  // hint: float e = expf(-fabsf(x)); then y is e / (1 + e) where x < 0, and 1 / (1 + e) elsewhere
  float e = expf(-fabsf(x));
  y = (x < 0.0f ? e : 1.0f) / (1.0f + e);
  // <<< exercise
  return y;
}

static __device__ float tanh_forward_one(float x) {
  float y = 0;
  // >>> exercise activation_tanh: y = tanh(x), exact to a few units in the last place, from expm1f() of -2 |x|
  // hint: tanh(|x|) = (1 - exp(-2 |x|)) / (1 + exp(-2 |x|)); near 0 the numerator loses its digits to cancellation
  // hint: expm1f(a) is exp(a) - 1 with all digits: with t = expm1f(-2 |x|) the numerator is -t, the denominator 2 + t
  // hint: float t = expm1f(-2 * fabsf(x)); y = copysignf(-t / (2 + t), x);
  float t = expm1f(-2.0f * fabsf(x));
  y = copysignf(__fdividef(-t, 2.0f + t), x); /* 2 instructions; a division that rounds exactly takes ten */
  // <<< exercise
  return y;
}

template <Activation KIND>
static __device__ float activation_forward_one(float x) {
  switch (KIND) { /* KIND is a constant: the compiler keeps one case */
    case ACTIVATION_RELU:
      return x < 0.0f ? 0.0f : x;
    case ACTIVATION_LEAKY_RELU:
      return x < 0.0f ? LEAKY_RELU_SLOPE * x : x;
    case ACTIVATION_SIGMOID:
      return sigmoid_forward_one(x);
    default:
      return tanh_forward_one(x);
  }
}

static __device__ float leaky_relu_backward_one(float dy, float y) {
  float dx = 0;
  // >>> exercise activation_leaky_backward: dx of leaky ReLU, from dy and from y, the result of the forward pass
  // hint: the slope is 1 where x was positive, LEAKY_RELU_SLOPE where it was negative; but x is not here
  // hint: y has the sign of x, because LEAKY_RELU_SLOPE is positive
  // hint: dx = y < 0 ? LEAKY_RELU_SLOPE * dy : dy;
  dx = y < 0.0f ? LEAKY_RELU_SLOPE * dy : dy;
  // <<< exercise
  return dx;
}

static __device__ float tanh_backward_one(float dy, float y) {
  float dx = 0;
  // >>> exercise activation_tanh_backward: dx = dy (1 - y^2), with all its digits where y is nearly 1
  // hint: y^2 is rounded to 24 bits before it is subtracted from 1: with y = 0.9998 only 14 bits are right
  // hint: for y between 0.5 and 1 the difference 1 - y is exact; factor 1 - y^2
  // hint: dx = dy * (1 - y) * (1 + y);
  dx = dy * (1.0f - y) * (1.0f + y);
  // <<< exercise
  return dx;
}

template <Activation KIND>
static __device__ float activation_backward_one(float dy, float y) {
  switch (KIND) {
    case ACTIVATION_RELU:
      return y <= 0.0f ? 0.0f : dy;
    case ACTIVATION_LEAKY_RELU:
      return leaky_relu_backward_one(dy, y);
    case ACTIVATION_SIGMOID:
      return dy * y * (1.0f - y);
    default:
      return tanh_backward_one(dy, y);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

template <Activation KIND>
static __global__ void activation_forward_scalar_kernel(float *y, const float *x, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = activation_forward_one<KIND>(x[i]);
}

template <Activation KIND>
static __global__ void activation_backward_scalar_kernel(float *dx, const float *dy, const float *y, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) dx[i] = activation_backward_one<KIND>(dy[i], y[i]);
}

/* The first 4 * quads floats as float4, the rest one by one; quads is 0 where the arrays are not aligned. There are at
 * least as many threads as quads, and as floats in the rest. */
template <Activation KIND>
static __global__ void activation_forward_kernel(float *y, const float *x, size_t n, size_t quads) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  // >>> exercise activation_quads: quad i of x becomes quad i of y, if there is one; float i of the rest, too
  // hint: ((const float4 *)x)[i] loads four floats in one request; they are its .x, .y, .z and .w
  // hint: the rest begins at float 4 * quads and ends before n: thread i takes float 4 * quads + i
  // hint: if (i < quads) ...; size_t rest = 4 * quads + i; if (rest < n) y[rest] = activation_forward_one<KIND>(...);
  if (i < quads) {
    float4 v = ((const float4 *)x)[i];
    v.x = activation_forward_one<KIND>(v.x);
    v.y = activation_forward_one<KIND>(v.y);
    v.z = activation_forward_one<KIND>(v.z);
    v.w = activation_forward_one<KIND>(v.w);
    ((float4 *)y)[i] = v;
  }
  size_t rest = 4 * quads + i;
  if (rest < n) y[rest] = activation_forward_one<KIND>(x[rest]);
  // <<< exercise
}

template <Activation KIND>
static __global__ void activation_backward_kernel(float *dx, const float *dy, const float *y, size_t n, size_t quads) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < quads) {
    float4 d = ((const float4 *)dy)[i], v = ((const float4 *)y)[i];
    d.x = activation_backward_one<KIND>(d.x, v.x);
    d.y = activation_backward_one<KIND>(d.y, v.y);
    d.z = activation_backward_one<KIND>(d.z, v.z);
    d.w = activation_backward_one<KIND>(d.w, v.w);
    ((float4 *)dx)[i] = d;
  }
  size_t rest = 4 * quads + i;
  if (rest < n) dx[rest] = activation_backward_one<KIND>(dy[rest], y[rest]);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

enum { ACTIVATION_BLOCK = 256 };

static inline unsigned activation_blocks(size_t threads) {
  return (unsigned)((threads + ACTIVATION_BLOCK - 1) / ACTIVATION_BLOCK);
}

template <Activation KIND>
static inline void activation_forward_scalar(float *y, const float *x, size_t n) {
  if (n == 0) return;
  activation_forward_scalar_kernel<KIND><<<activation_blocks(n), ACTIVATION_BLOCK>>>(y, x, n);
  CUDA_CHECK_LAUNCH();
}

template <Activation KIND>
static inline void activation_backward_scalar(float *dx, const float *dy, const float *y, size_t n) {
  if (n == 0) return;
  activation_backward_scalar_kernel<KIND><<<activation_blocks(n), ACTIVATION_BLOCK>>>(dx, dy, y, n);
  CUDA_CHECK_LAUNCH();
}

template <Activation KIND>
static inline void activation_forward(float *y, const float *x, size_t n) {
  if (n == 0) return;
  size_t quads = ((uintptr_t)y | (uintptr_t)x) % sizeof(float4) == 0 ? n / 4 : 0;
  activation_forward_kernel<KIND><<<activation_blocks(quads > 0 ? quads : n), ACTIVATION_BLOCK>>>(y, x, n, quads);
  CUDA_CHECK_LAUNCH();
}

template <Activation KIND>
static inline void activation_backward(float *dx, const float *dy, const float *y, size_t n) {
  if (n == 0) return;
  size_t quads = ((uintptr_t)dx | (uintptr_t)dy | (uintptr_t)y) % sizeof(float4) == 0 ? n / 4 : 0;
  activation_backward_kernel<KIND><<<activation_blocks(quads > 0 ? quads : n), ACTIVATION_BLOCK>>>(dx, dy, y, n, quads);
  CUDA_CHECK_LAUNCH();
}

static inline void relu_forward_gpu(float *y, const float *x, size_t n) {
  activation_forward<ACTIVATION_RELU>(y, x, n);
}
static inline void relu_backward_gpu(float *dx, const float *dy, const float *y, size_t n) {
  activation_backward<ACTIVATION_RELU>(dx, dy, y, n);
}
static inline void leaky_relu_forward_gpu(float *y, const float *x, size_t n) {
  activation_forward<ACTIVATION_LEAKY_RELU>(y, x, n);
}
static inline void leaky_relu_backward_gpu(float *dx, const float *dy, const float *y, size_t n) {
  activation_backward<ACTIVATION_LEAKY_RELU>(dx, dy, y, n);
}
static inline void sigmoid_forward_gpu(float *y, const float *x, size_t n) {
  activation_forward<ACTIVATION_SIGMOID>(y, x, n);
}
static inline void sigmoid_backward_gpu(float *dx, const float *dy, const float *y, size_t n) {
  activation_backward<ACTIVATION_SIGMOID>(dx, dy, y, n);
}
static inline void tanh_forward_gpu(float *y, const float *x, size_t n) {
  activation_forward<ACTIVATION_TANH>(y, x, n);
}
static inline void tanh_backward_gpu(float *dx, const float *dy, const float *y, size_t n) {
  activation_backward<ACTIVATION_TANH>(dx, dy, y, n);
}

/* The kind that a user chose. */
static inline void activation_forward_gpu(Activation kind, float *y, const float *x, size_t n) {
  switch (kind) {
    case ACTIVATION_RELU:
      return relu_forward_gpu(y, x, n);
    case ACTIVATION_LEAKY_RELU:
      return leaky_relu_forward_gpu(y, x, n);
    case ACTIVATION_SIGMOID:
      return sigmoid_forward_gpu(y, x, n);
    default:
      return tanh_forward_gpu(y, x, n);
  }
}

static inline void activation_backward_gpu(Activation kind, float *dx, const float *dy, const float *y, size_t n) {
  switch (kind) {
    case ACTIVATION_RELU:
      return relu_backward_gpu(dx, dy, y, n);
    case ACTIVATION_LEAKY_RELU:
      return leaky_relu_backward_gpu(dx, dy, y, n);
    case ACTIVATION_SIGMOID:
      return sigmoid_backward_gpu(dx, dy, y, n);
    default:
      return tanh_backward_gpu(dx, dy, y, n);
  }
}

#endif /* PHASE1_BUILDING_BLOCKS_ACTIVATIONS_CUH */
