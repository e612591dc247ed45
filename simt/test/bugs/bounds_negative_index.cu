// The left neighbour of the first element lies before the allocation.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void difference(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] - x[i - 1];  // BUG
}

int main(void) {
  float x[300], *dx, *dy;
  for (int i = 0; i < 300; i++) x[i] = i * i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  difference<<<3, 128>>>(dx, dy, 300);
  cudaMemcpy(x, dy, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[299]);
  cudaFree(dx);
  cudaFree(dy);
}
