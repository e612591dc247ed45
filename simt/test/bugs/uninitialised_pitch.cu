// Rows from cudaMallocPitch indexed as if they had no padding: the second row is read from the first one's padding.
// mode: inspect
// expect: uninitialised read
#include <stdio.h>

__global__ void sum_rows(const float *a, int width, int height, float *y) {
  int row = threadIdx.x;
  if (row >= height) return;
  float sum = 0;
  for (int k = 0; k < width; k++) sum += a[row * width + k];  // BUG
  y[row] = sum;
}

int main(void) {
  float a[4 * 10], y[4], *da, *dy;
  size_t pitch;
  for (int i = 0; i < 40; i++) a[i] = 1;
  cudaMallocPitch((void **)&da, &pitch, 10 * sizeof(float), 4);
  cudaMalloc(&dy, sizeof y);
  cudaMemcpy2D(da, pitch, a, 10 * sizeof(float), 10 * sizeof(float), 4, cudaMemcpyHostToDevice);
  sum_rows<<<1, 32>>>(da, 10, 4, dy);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  printf("%g\n", y[1]);
  cudaFree(da);
  cudaFree(dy);
}
