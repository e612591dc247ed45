// The name of a __device__ array is passed to cudaMemcpy: on the host it is not the array's address.
// mode: plain inspect
// expect: symbol
#include <stdio.h>

__device__ float table[32];

__global__ void use(float *y) { y[threadIdx.x] = table[threadIdx.x]; }

int main(void) {
  float x[32] = {0}, *dy;
  cudaMalloc(&dy, sizeof x);
  cudaMemset(dy, 0, sizeof x);
  cudaMemcpy(table, x, sizeof x, cudaMemcpyHostToDevice);  // BUG
  use<<<1, 32>>>(dy);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dy);
}
