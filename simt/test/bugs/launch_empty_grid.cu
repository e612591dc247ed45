// n / 256 blocks for n = 200: none at all.
// mode: plain inspect
// expect: launch
#include <stdio.h>

__global__ void fill(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 1;
}

int main(void) {
  int n = 200;
  float *dx;
  cudaMalloc(&dx, n * sizeof(float));
  cudaMemset(dx, 0, n * sizeof(float));
  fill<<<n / 256, 256>>>(dx, n);  // BUG
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
}
