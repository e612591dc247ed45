// Thread 1 spins on a flag that thread 0 sets after a barrier; both wait for each other for ever.
// mode: plain
// env: SIMT_WATCHDOG=0.3
// expect: watchdog
#include <stdio.h>

__global__ void hand_over(volatile int *flag, int *x) {
  if (threadIdx.x == 1)
    while (*flag == 0) continue;  // BUG
  __syncthreads();
  if (threadIdx.x == 0) *flag = 1;
  x[threadIdx.x] = 1;
}

int main(void) {
  int *dflag, *dx;
  cudaMalloc(&dflag, sizeof(int));
  cudaMalloc(&dx, 32 * sizeof(int));
  cudaMemset(dflag, 0, sizeof(int));
  hand_over<<<1, 32>>>(dflag, dx);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
