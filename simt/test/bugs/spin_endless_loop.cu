// The loop's counter never reaches its end: i *= 2 from 0.
// mode: plain
// env: SIMT_WATCHDOG=0.3
// expect: watchdog
#include <stdio.h>

__global__ void powers(volatile int *x, int n) {
  for (int i = threadIdx.x; i < n; i *= 2) x[i] = i;  // BUG
}

int main(void) {
  int *dx;
  cudaMalloc(&dx, 64 * sizeof(int));
  powers<<<1, 32>>>(dx, 64);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
