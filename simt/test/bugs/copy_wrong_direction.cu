// Results are fetched with cudaMemcpyHostToDevice.
// mode: plain inspect
// expect: wrong direction
#include <stdio.h>

__global__ void fill(int *x) { x[threadIdx.x] = threadIdx.x; }

int main(void) {
  int x[32] = {0}, *dx;
  cudaMalloc(&dx, sizeof x);
  fill<<<1, 32>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyHostToDevice);  // BUG
  printf("%d %s\n", x[5], cudaGetErrorString(cudaGetLastError()));
  cudaFree(dx);
}
