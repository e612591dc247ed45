// 60 KB of dynamic shared memory without cudaFuncSetAttribute(): the launch fails.
// mode: plain inspect
// expect: launch
// expect-text: cudaFuncSetAttribute
#include <stdio.h>

__global__ void fill(float *y) {
  extern __shared__ float s_row[];
  s_row[threadIdx.x] = threadIdx.x;
  y[threadIdx.x] = s_row[threadIdx.x];
}

int main(void) {
  float *dy;
  cudaMalloc(&dy, 64 * sizeof(float));
  fill<<<1, 64, 60 * 1024>>>(dy);  // BUG
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dy);
}
