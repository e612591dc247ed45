// cudaMemcpy's size in elements instead of bytes: a quarter of the array arrives.
// mode: inspect
// expect: uninitialised read
#include <stdio.h>
#define N 256

__global__ void square(float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = x[i] * x[i];  // BUG
}

int main(void) {
  float x[N], *dx;
  for (int i = 0; i < N; i++) x[i] = i;
  cudaMalloc(&dx, N * sizeof(float));
  cudaMemcpy(dx, x, N, cudaMemcpyHostToDevice);
  square<<<2, 128>>>(dx);
  cudaMemcpy(x, dx, N * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%g\n", x[10]);
  cudaFree(dx);
}
