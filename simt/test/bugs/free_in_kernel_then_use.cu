// The buffer on the device's heap is freed one line too early.
// mode: inspect
// expect: use after free
#include <stdio.h>

__global__ void reverse(float *x) {
  float *copy = (float *)malloc(4 * sizeof(float));
  if (!copy) return;
  for (int i = 0; i < 4; i++) copy[i] = x[4 * threadIdx.x + i];
  free(copy);
  for (int i = 0; i < 4; i++) x[4 * threadIdx.x + i] = copy[3 - i];  // BUG
}

int main(void) {
  float *x;
  cudaMalloc(&x, 256 * sizeof(float));
  cudaMemset(x, 0, 256 * sizeof(float));
  reverse<<<1, 64>>>(x);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(x);
}
