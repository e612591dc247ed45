// The time between two events is asked for before the second one has happened.
// mode: lazy
// expect: not ready
#include <stdio.h>

__global__ void fill(int *x) { x[threadIdx.x] = threadIdx.x; }

int main(void) {
  int *dx;
  float milliseconds = 0;
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cudaMalloc(&dx, 32 * sizeof(int));
  cudaEventRecord(start);
  fill<<<1, 32>>>(dx);
  cudaEventRecord(stop);
  cudaEventElapsedTime(&milliseconds, start, stop);  // BUG
  printf("%g ms\n", milliseconds);
  cudaDeviceSynchronize();
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  cudaFree(dx);
}
