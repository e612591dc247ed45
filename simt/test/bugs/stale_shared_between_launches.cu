// One kernel fills shared memory, the next launch expects it still there.
// mode: inspect
// expect: uninitialised read
#include <stdio.h>

__device__ int *shared_table() {
  __shared__ int s_table[64];
  return s_table;
}

__global__ void build() { shared_table()[threadIdx.x] = 3 * threadIdx.x; }

__global__ void use(int *y) {
  y[threadIdx.x] = shared_table()[threadIdx.x];  // BUG
}

int main(void) {
  int y[64], *dy;
  cudaMalloc(&dy, sizeof y);
  build<<<1, 64>>>();
  use<<<1, 64>>>(dy);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  printf("%d\n", y[5]);
  cudaFree(dy);
}
