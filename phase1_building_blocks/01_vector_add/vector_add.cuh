/* vector_add.cuh - c (n) = a (n) + b (n), the smallest complete kernel. n is at least 1.
 *
 * Each float is used once, so memory bandwidth is the only limit: 12 bytes move per addition, and the time to beat is
 * that of copying as many bytes.
 *
 *   vector_add_cpu      a loop
 *   vector_add          one thread per element: the grid replaces the loop, an `if` replaces its bound
 *   vector_add_stride   as many threads as the GPU holds at a time; each takes every stride-th element; the stride is
 *                       the number of threads in the grid, so any n works with any grid
 *   vector_add_float4   four floats at a time: a quarter of the load and store instructions, more bytes in flight
 */
#ifndef PHASE1_BUILDING_BLOCKS_VECTOR_ADD_CUH
#define PHASE1_BUILDING_BLOCKS_VECTOR_ADD_CUH

#include <stddef.h>
#include <stdint.h>

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void vector_add_cpu(float *c, const float *a, const float *b, size_t n) {
  for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

static __global__ void vector_add_kernel(float *c, const float *a, const float *b, size_t n) {
  // >>> exercise vector_add_index: find this thread's element and add it, unless it lies past the end
  // hint: blockIdx.x is the block's number, blockDim.x the threads per block, threadIdx.x the thread within its block
  // hint: size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; numbers the threads of all blocks
  // hint: the last block has threads past the end of the arrays: if (i < n) c[i] = a[i] + b[i];
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
  // <<< exercise
}

static __global__ void vector_add_stride_kernel(float *c, const float *a, const float *b, size_t n) {
  // >>> exercise vector_add_stride: add this thread's first element and every stride-th one after it
  // hint: the first element is the one of vector_add_kernel; the stride is the number of threads in the whole grid
  // hint: the grid has gridDim.x blocks of blockDim.x threads
  // hint: for (size_t i = first; i < n; i += stride) c[i] = a[i] + b[i];
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = first; i < n; i += stride) c[i] = a[i] + b[i];
  // <<< exercise
}

/* The first 4 * quads floats as float4, the rest one by one. */
static __global__ void vector_add_float4_kernel(float *c, const float *a, const float *b, size_t n, size_t quads) {
  // >>> hidden vector_add_stride
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = first; i < quads; i += stride) {
    float4 x = ((const float4 *)a)[i], y = ((const float4 *)b)[i];
    ((float4 *)c)[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
  for (size_t i = 4 * quads + first; i < n; i += stride) c[i] = a[i] + b[i];
  // <<< hidden
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

enum { VECTOR_ADD_BLOCK = 256 };

static inline void vector_add(float *c, const float *a, const float *b, size_t n) {
  unsigned grid = 1;
  // >>> exercise vector_add_grid: launch enough blocks of VECTOR_ADD_BLOCK threads for n elements
  // hint: n / VECTOR_ADD_BLOCK rounds down, which leaves the last elements without a thread
  // hint: a division rounds up when the divisor less one is added first
  // hint: grid = (n + VECTOR_ADD_BLOCK - 1) / VECTOR_ADD_BLOCK;
  grid = (unsigned)((n + VECTOR_ADD_BLOCK - 1) / VECTOR_ADD_BLOCK);
  // <<< exercise
  vector_add_kernel<<<grid, VECTOR_ADD_BLOCK>>>(c, a, b, n);
  CUDA_CHECK_LAUNCH();
}

/* As many blocks as the GPU holds at a time, or fewer if `threads` threads need fewer. */
static inline unsigned vector_add_resident_blocks(size_t threads) {
  int device, multiprocessors, threads_each;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&threads_each, cudaDevAttrMaxThreadsPerMultiProcessor, device));
  size_t needed = (threads + VECTOR_ADD_BLOCK - 1) / VECTOR_ADD_BLOCK;
  size_t resident = (size_t)multiprocessors * (threads_each / VECTOR_ADD_BLOCK);
  return (unsigned)(needed < resident ? needed : resident);
}

static inline void vector_add_stride(float *c, const float *a, const float *b, size_t n) {
  vector_add_stride_kernel<<<vector_add_resident_blocks(n), VECTOR_ADD_BLOCK>>>(c, a, b, n);
  CUDA_CHECK_LAUNCH();
}

/* One thread per float4, so that the kernel's loop runs once: on an H200, new blocks that replace finished ones keep
 * the memory busier than blocks that stay and loop. */
static inline void vector_add_float4(float *c, const float *a, const float *b, size_t n) {
  /* A float4 must begin at a multiple of 16 bytes. Arrays of cudaMalloc do; one that begins inside another may not. */
  size_t quads = ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % sizeof(float4) == 0 ? n / 4 : 0;
  size_t threads = quads > 0 ? quads : n;
  unsigned grid = (unsigned)((threads + VECTOR_ADD_BLOCK - 1) / VECTOR_ADD_BLOCK);
  vector_add_float4_kernel<<<grid, VECTOR_ADD_BLOCK>>>(c, a, b, n, quads);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_VECTOR_ADD_CUH */
