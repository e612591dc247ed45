// Blocks of 40 x 32 = 1280 threads; the error is never asked for, and the output stays zero.
// mode: plain inspect
// expect: launch
// expect-text: 1280
#include <stdio.h>

__global__ void fill(float *x) { x[threadIdx.y * 40 + threadIdx.x] = 1; }

int main(void) {
  static float x[1280];
  float *dx;
  cudaMalloc(&dx, sizeof x);
  cudaMemset(dx, 0, sizeof x);
  fill<<<1, dim3(40, 32)>>>(dx);  // BUG
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[7]);
  cudaFree(dx);
}
