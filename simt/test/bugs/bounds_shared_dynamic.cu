// The launch asks for 64 bytes of dynamic shared memory where it meant 64 floats.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void reverse(float *x) {
  extern __shared__ float s_copy[];
  int t = threadIdx.x;
  s_copy[t] = x[t];  // BUG
  __syncthreads();
  x[t] = s_copy[63 - t];
}

int main(void) {
  float x[64], *dx;
  for (int i = 0; i < 64; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  reverse<<<1, 64, 64>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[0]);
  cudaFree(dx);
}
