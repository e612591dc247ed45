// `y += a * x` into memory that nobody set: fresh device memory is often zero, until it is not.
// mode: inspect
// expect: uninitialised read
#include <stdio.h>

__global__ void axpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];  // BUG
}

int main(void) {
  float x[256], *dx, *dy;
  for (int i = 0; i < 256; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  axpy<<<2, 128>>>(2, dx, dy, 256);
  cudaMemcpy(x, dy, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[1]);
  cudaFree(dx);
  cudaFree(dy);
}
