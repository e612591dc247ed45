// A barrier of all blocks: thread 0 fences before the block has met, so what the others wrote is not behind its fence.
// mode: inspect
// expect: data race
// expect-text: between blocks
// expect-text: order nothing by themselves: __threadfence() between what
#include <cooperative_groups.h>
#include <stdio.h>

__device__ void meet(unsigned *arrived, unsigned all) {
  if (threadIdx.x == 0) __threadfence();  // belongs behind the barrier
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*(volatile unsigned *)arrived < all) continue;
    __threadfence();
  }
  __syncthreads();
}

__global__ void back_and_forth(float *x, float *y, unsigned *arrived) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = y[i] + i;  // BUG
  meet(arrived, 4);
  y[i] = x[255 - i];  // BUG-OTHER
}

int main(void) {
  float *x, *y;
  unsigned *arrived;
  cudaMalloc(&x, 256 * sizeof *x);
  cudaMalloc(&y, 256 * sizeof *y);
  cudaMalloc(&arrived, sizeof *arrived);
  cudaMemset(y, 0, 256 * sizeof *y);
  cudaMemset(arrived, 0, sizeof *arrived);
  void *arguments[] = {&x, &y, &arrived};
  cudaLaunchCooperativeKernel((void *)back_and_forth, 4, 64, arguments, 0, 0);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(x);
  cudaFree(y);
  cudaFree(arrived);
}
