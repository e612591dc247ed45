// The host prints an element through the device's pointer.
// mode: inspect
// expect: device memory
#include <stdio.h>

__global__ void fill(int *x) { x[threadIdx.x] = threadIdx.x; }

int main(void) {
  int *dx;
  cudaMalloc(&dx, 32 * sizeof(int));
  fill<<<1, 32>>>(dx);
  cudaDeviceSynchronize();
  printf("%d\n", dx[5]);  // BUG
  cudaFree(dx);
}
