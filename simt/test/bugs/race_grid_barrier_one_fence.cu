// A barrier of all blocks: what they wrote is out, but who has waited may read what it had read before (from its L1).
// mode: inspect
// expect: data race
// expect-text: between blocks
// expect-text: order nothing by themselves: __threadfence() also after
#include <cooperative_groups.h>
#include <stdio.h>

__device__ void meet(unsigned *arrived, unsigned all) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*(volatile unsigned *)arrived < all) continue;
    // __threadfence() belongs here, too
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
