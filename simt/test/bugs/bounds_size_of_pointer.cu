// cudaMalloc(&dx, sizeof dx) allocates the eight bytes of a pointer, not the array's.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void count_up(int *x) {
  x[threadIdx.x] = threadIdx.x;  // BUG
}

int main(void) {
  int *dx;
  cudaMalloc(&dx, sizeof dx);
  count_up<<<1, 32>>>(dx);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
}
