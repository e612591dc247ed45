// The guard says `i <= n`: one thread writes one element beyond the array. cudaMalloc rounds up, so a GPU says nothing.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void fill(float *x, int n, float value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] = value;  // BUG
}

int main(void) {
  float x[1000], *dx;
  cudaMalloc(&dx, sizeof x);
  fill<<<8, 128>>>(dx, 1000, 3);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[999]);
  cudaFree(dx);
}
