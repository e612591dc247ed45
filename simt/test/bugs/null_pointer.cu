// An optional output that was never allocated is written all the same.
// mode: plain inspect
// expect: null pointer
#include <stdio.h>

__global__ void relu(const float *x, float *y, float *mask) {
  int i = threadIdx.x;
  y[i] = x[i] > 0 ? x[i] : 0;
  mask[i] = x[i] > 0;  // BUG
}

int main(void) {
  float *dx, *dy;
  cudaMalloc(&dx, 32 * sizeof(float));
  cudaMalloc(&dy, 32 * sizeof(float));
  cudaMemset(dx, 0, 32 * sizeof(float));
  relu<<<1, 32>>>(dx, dy, nullptr);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
