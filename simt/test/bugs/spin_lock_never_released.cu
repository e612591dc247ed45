// A lock that its first owner keeps: all others ask for it for ever.
// mode: plain
// env: SIMT_WATCHDOG=0.2
// expect: watchdog
#include <stdio.h>

__device__ int lock;

__global__ void count(int *counter) {
  while (atomicCAS(&lock, 0, 1) != 0) continue;  // BUG
  *counter += 1;
  // atomicExch(&lock, 0) belongs here
}

int main(void) {
  int *dcounter;
  cudaMalloc(&dcounter, sizeof(int));
  cudaMemset(dcounter, 0, sizeof(int));
  count<<<2, 1>>>(dcounter);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
