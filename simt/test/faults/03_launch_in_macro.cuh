// Included by 03_launch_in_macro.cu.
#pragma once
#include <stdio.h>

// clang-format off
#define RUN_ON(grid, block, kernel, ...)                                   \
  do {                                                                     \
    kernel<<<(grid), (block),                                              \
             (block) * sizeof(int)>>>(__VA_ARGS__);                        \
    cudaError_t error_ = cudaGetLastError();                               \
    if (error_ != cudaSuccess) printf("%s\n", cudaGetErrorString(error_)); \
  } while (0)
// clang-format on

template <int N>
__global__ void add_n(int *x) {
  x[threadIdx.x] += N;
}

__global__ void add_loop(int *x, int n) {
  extern __shared__ int s[];
  s[threadIdx.x] = 0;
#pragma unroll 4
  for (int i = 0; i < n; i++) s[threadIdx.x] += i;
  x[threadIdx.x] += s[threadIdx.x];
}
