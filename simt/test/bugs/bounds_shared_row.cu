// t[y][33] of a tile with rows of 33: the access stays inside the array and lands in the next row.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void halo(const float *x, float *y) {
  __shared__ float s_tile[8][33];
  int column = threadIdx.x, row = threadIdx.y;
  s_tile[row][column] = x[row * 32 + column];
  if (column == 0) s_tile[row][32] = 0;
  __syncthreads();
  float sum = 0;
  if (row < 7)
    for (int reach = 0; reach <= 2; reach++) sum += s_tile[row][column + reach];  // BUG
  y[row * 32 + column] = sum;
}

int main(void) {
  float x[8 * 32], *dx, *dy;
  for (int i = 0; i < 256; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  halo<<<1, dim3(32, 8)>>>(dx, dy);
  cudaMemcpy(x, dy, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[31]);
  cudaFree(dx);
  cudaFree(dy);
}
