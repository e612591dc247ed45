// A total that atomicAdd gathers and nobody set to zero.
// mode: inspect
// expect: uninitialised read
#include <stdio.h>

__global__ void sum(const int *x, int *total) {
  atomicAdd(total, x[blockIdx.x * blockDim.x + threadIdx.x]);  // BUG
}

int main(void) {
  int x[128], total, *dx, *dtotal;
  for (int i = 0; i < 128; i++) x[i] = 1;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dtotal, sizeof total);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  sum<<<2, 64>>>(dx, dtotal);
  cudaMemcpy(&total, dtotal, sizeof total, cudaMemcpyDeviceToHost);
  printf("%d\n", total);
  cudaFree(dx);
  cudaFree(dtotal);
}
