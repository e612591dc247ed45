// `k <= n` in a dot product's loop: the last turn reads one element beyond the array.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void row_sums(const float *a, float *y, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = 0; k <= columns; k++) sum += a[row * columns + k];  // BUG
  y[row] = sum;
}

int main(void) {
  static float a[40 * 25];
  float y[40], *da, *dy;
  for (int i = 0; i < 1000; i++) a[i] = 1;
  cudaMalloc(&da, sizeof a);
  cudaMalloc(&dy, sizeof y);
  cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);
  row_sums<<<1, 64>>>(da, dy, 40, 25);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  printf("%g\n", y[39]);
  cudaFree(da);
  cudaFree(dy);
}
