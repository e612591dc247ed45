// Block 0 leaves the address of its shared array in global memory and block 1 follows it, into memory that is its own.
// mode: inspect
// expect: uninitialised read
#include <stdio.h>

__device__ int *of_block_0;

__global__ void share() {
  __shared__ int s_value[32];
  if (blockIdx.x == 0) {
    s_value[threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 0) of_block_0 = s_value;
  }
}

__global__ void follow(int *y) {
  __shared__ int s_value[32];
  if (y == nullptr) s_value[threadIdx.x] = 0;
  y[threadIdx.x] = of_block_0[threadIdx.x];  // BUG
}

int main(void) {
  int y[32], *dy;
  cudaMalloc(&dy, sizeof y);
  share<<<1, 32>>>();
  follow<<<1, 32>>>(dy);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  printf("%d\n", y[5]);
  cudaFree(dy);
}
