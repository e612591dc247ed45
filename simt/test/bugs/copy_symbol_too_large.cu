// 16 weights are copied into a constant array of nine.
// mode: plain inspect
// expect: out of bounds
#include <stdio.h>

__constant__ float c_weight[9];

__global__ void weigh(float *y) { y[threadIdx.x] = c_weight[threadIdx.x]; }

int main(void) {
  float weight[16] = {0}, *dy;
  cudaMemcpyToSymbol(c_weight, weight, sizeof weight);  // BUG
  cudaMalloc(&dy, 9 * sizeof(float));
  weigh<<<1, 9>>>(dy);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dy);
}
