// The kernel gets the array from malloc() instead of its copy on the device.
// mode: plain inspect
// expect: host pointer
#include <stdio.h>
#include <stdlib.h>

__global__ void square(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= x[i];
}

int main(void) {
  float *x = (float *)malloc(100 * sizeof(float)), *dx;
  for (int i = 0; i < 100; i++) x[i] = i;
  cudaMalloc(&dx, 100 * sizeof(float));
  cudaMemcpy(dx, x, 100 * sizeof(float), cudaMemcpyHostToDevice);
  square<<<1, 128>>>(x, 100);  // BUG
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
  free(x);
}
