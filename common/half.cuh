/* half.cuh - arrays of 16 bits (half.h) on the GPU: eight numbers of a run in one access, conversions, sums.
 *
 * T is __nv_bfloat16 or __half. All arithmetic is in float32; a result is rounded once.
 */
#ifndef COMMON_HALF_CUH
#define COMMON_HALF_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/check.h"
#include "common/half.h"

/* Calls function<T>(...) for the type. */
#define HALF_CALL(type, function, ...)      \
  do {                                      \
    if ((type) == DTYPE_FP16)               \
      function<__half>(__VA_ARGS__);        \
    else                                    \
      function<__nv_bfloat16>(__VA_ARGS__); \
  } while (0)

static __device__ __forceinline__ float half_float(__nv_bfloat16 x) { return __bfloat162float(x); }
static __device__ __forceinline__ float half_float(__half x) { return __half2float(x); }
static __device__ __forceinline__ void half_set(__nv_bfloat16 *to, float x) { *to = __float2bfloat16(x); }
static __device__ __forceinline__ void half_set(__half *to, float x) { *to = __float2half(x); }

/* 16 bytes. */
template <typename T>
struct __align__(16) HalfRun {
  T v[HALF_RUN];
};

/* `from` is aligned to 16 bytes. */
template <typename T>
static __device__ __forceinline__ void half_load(float (&x)[HALF_RUN], const T *from) {
  const HalfRun<T> run = *(const HalfRun<T> *)from;
#pragma unroll
  for (int i = 0; i < HALF_RUN; i++) x[i] = half_float(run.v[i]);
}

template <typename T>
static __device__ __forceinline__ void half_store(T *to, const float (&x)[HALF_RUN]) {
  HalfRun<T> run;
#pragma unroll
  for (int i = 0; i < HALF_RUN; i++) half_set(&run.v[i], x[i]);
  *(HalfRun<T> *)to = run;
}

/* Two neighbours; `to` is aligned to 4 bytes. */
static __device__ __forceinline__ void half_store_pair(__nv_bfloat16 *to, float a, float b) {
  *(__nv_bfloat162 *)to = __floats2bfloat162_rn(a, b);
}
static __device__ __forceinline__ void half_store_pair(__half *to, float a, float b) {
  *(__half2 *)to = __floats2half2_rn(a, b);
}

/* ---------------------------------------------------------------------------------------------------------- layout */

enum { HALF_BLOCK = 256 };

static inline unsigned half_blocks(size_t threads) { return (unsigned)((threads + HALF_BLOCK - 1) / HALF_BLOCK); }

/* One thread per run of channels. Neighbouring threads have neighbouring pixels, so that reads of a channel are
 * coalesced; the writes of a warp are runs of 16 bytes, complete cache lines once all runs of a pixel are written. */
template <typename T>
static __global__ void half_from_nchw_kernel(T *y, const float *x, int channels, int pixels, size_t threads) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int runs = (channels + HALF_RUN - 1) / HALF_RUN;
  if (i >= threads) return;
  const int p = (int)(i % pixels), run = (int)(i / pixels % runs);
  const size_t n = i / pixels / runs;
  float v[HALF_RUN];
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) {
    const int c = run * HALF_RUN + e;
    v[e] = c < channels ? x[(n * channels + c) * pixels + p] : 0;
  }
  half_store(y + ((n * pixels + p) * runs + run) * HALF_RUN, v);
}

template <typename T>
static __global__ void half_to_nchw_kernel(float *y, const T *x, int channels, int pixels, size_t threads) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int runs = (channels + HALF_RUN - 1) / HALF_RUN;
  if (i >= threads) return;
  const int p = (int)(i % pixels), run = (int)(i / pixels % runs);
  const size_t n = i / pixels / runs;
  float v[HALF_RUN];
  half_load(v, x + ((n * pixels + p) * runs + run) * HALF_RUN);
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) {
    const int c = run * HALF_RUN + e;
    if (c < channels) y[(n * channels + c) * pixels + p] = v[e];
  }
}

/* x (N,C,pixels) float -> y (N,pixels,half_channels(C)), and back. */
template <typename T>
static inline void half_from_nchw(uint16_t *y, const float *x, int n, int channels, int pixels) {
  const size_t threads = (size_t)n * pixels * (half_channels(channels) / HALF_RUN);
  half_from_nchw_kernel<T><<<half_blocks(threads), HALF_BLOCK>>>((T *)y, x, channels, pixels, threads);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void half_to_nchw(float *y, const uint16_t *x, int n, int channels, int pixels) {
  const size_t threads = (size_t)n * pixels * (half_channels(channels) / HALF_RUN);
  half_to_nchw_kernel<T><<<half_blocks(threads), HALF_BLOCK>>>(y, (const T *)x, channels, pixels, threads);
  CUDA_CHECK_LAUNCH();
}

/* ------------------------------------------------------------------------------------------------------------ sums */

template <typename T>
static __global__ void half_add_kernel(T *y, const T *a, const T *b, size_t runs) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float left[HALF_RUN], right[HALF_RUN];
  if (i >= runs) return;
  half_load(left, a + i * HALF_RUN);
  half_load(right, b + i * HALF_RUN);
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) left[e] += right[e];
  half_store(y + i * HALF_RUN, left);
}

/* y = a + b; y may be one of them. count: a multiple of HALF_RUN. */
template <typename T>
static inline void half_add(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t count) {
  const size_t runs = count / HALF_RUN;
  half_add_kernel<T><<<half_blocks(runs), HALF_BLOCK>>>((T *)y, (const T *)a, (const T *)b, runs);
  CUDA_CHECK_LAUNCH();
}

#endif /* COMMON_HALF_CUH */
