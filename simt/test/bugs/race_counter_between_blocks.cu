// One thread of each block counts its block with ++: no two threads of a block collide, only blocks do.
// mode: inspect
// expect: data race
// expect-text: between blocks
#include <stdio.h>

__device__ int blocks_done;

__global__ void work(float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 2 * x[i];
  __syncthreads();
  if (threadIdx.x == 0) blocks_done++;  // BUG
}

int main(void) {
  float *dx;
  int done = 0;
  cudaMalloc(&dx, 512 * sizeof(float));
  cudaMemset(dx, 0, 512 * sizeof(float));
  cudaMemcpyToSymbol(blocks_done, &done, sizeof done);
  work<<<8, 64>>>(dx);
  cudaMemcpyFromSymbol(&done, blocks_done, sizeof done);
  printf("%d\n", done);
  cudaFree(dx);
}
