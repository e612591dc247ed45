// A megabyte of local array in each thread: more than any thread's stack.
// mode: plain
// expect: stack overflow
#include <stdio.h>

__global__ void median(const float *x, float *y, int n) {
  float window[262144];
  for (int k = 0; k < n; k++) window[(k * 97) % 262144] = x[k];  // BUG
  __syncthreads();
  y[threadIdx.x] = window[threadIdx.x];
}

int main(void) {
  float *dx, *dy;
  cudaMalloc(&dx, 4096 * sizeof(float));
  cudaMalloc(&dy, 32 * sizeof(float));
  cudaMemset(dx, 0, 4096 * sizeof(float));
  median<<<1, 32>>>(dx, dy, 4096);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
