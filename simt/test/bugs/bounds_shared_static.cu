// 64 threads write into a shared array of 60 elements.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void square(float *x) {
  __shared__ float s_value[60];
  s_value[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x];  // BUG
  __syncthreads();
  if (threadIdx.x < 60) x[threadIdx.x] = s_value[threadIdx.x];
}

int main(void) {
  float x[64], *dx;
  for (int i = 0; i < 64; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  square<<<1, 64>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[59]);
  cudaFree(dx);
}
