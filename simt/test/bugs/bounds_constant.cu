// A filter of nine weights in constant memory, indexed as if it were 4 x 4.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__constant__ float c_weight[9];

__global__ void weigh(const float *x, float *y) {
  int t = threadIdx.x;
  y[t] = x[t] * c_weight[t / 4 * 4 + t % 4];  // BUG
}

int main(void) {
  float x[16], *dx, *dy, weight[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
  for (int i = 0; i < 16; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(c_weight, weight, sizeof weight);
  weigh<<<1, 16>>>(dx, dy);
  cudaMemcpy(x, dy, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[8]);
  cudaFree(dx);
  cudaFree(dy);
}
