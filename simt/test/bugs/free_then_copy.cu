// The result is copied back after its buffer was freed.
// mode: plain inspect
// expect: use after free
#include <stdio.h>

__global__ void fill(int *x) { x[threadIdx.x] = threadIdx.x; }

int main(void) {
  int x[32], *dx;
  cudaMalloc(&dx, sizeof x);
  fill<<<1, 32>>>(dx);
  cudaFree(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);  // BUG
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
