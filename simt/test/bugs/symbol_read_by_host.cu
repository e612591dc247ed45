// The host prints a __device__ variable directly: it sees its own copy, never the kernel's value.
// mode: inspect
// expect: device memory
#include <stdio.h>

__device__ int found;

__global__ void search(const int *x, int wanted) {
  if (x[threadIdx.x] == wanted) atomicAdd(&found, 1);
}

int main(void) {
  int x[32], *dx;
  for (int i = 0; i < 32; i++) x[i] = i % 4;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  search<<<1, 32>>>(dx, 3);
  cudaDeviceSynchronize();
  printf("%d\n", found);  // BUG
  cudaFree(dx);
}
