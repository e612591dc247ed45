// A thread's own array of 8 filled with 9 elements.
// mode: inspect
// expect: out of bounds
// also: illegal address
#include <stdio.h>

__global__ void smallest_of_nine(const float *x, float *y) {
  float window[8];
  for (int k = 0; k <= 8; k++) window[k] = x[threadIdx.x + k];  // BUG
  float smallest = window[0];
  for (int k = 1; k < 8; k++) smallest = fminf(smallest, window[k]);
  y[threadIdx.x] = smallest;
}

int main(void) {
  float x[64], *dx, *dy;
  for (int i = 0; i < 64; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  smallest_of_nine<<<1, 32>>>(dx, dy);
  cudaMemcpy(x, dy, 32 * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%g\n", x[0]);
  cudaFree(dx);
  cudaFree(dy);
}
