// A table of row pointers is copied to the device, the rows themselves stay on the host.
// mode: inspect
// expect: host pointer
#include <stdio.h>
#include <stdlib.h>

__global__ void row_sums(float **row, float *y) {
  float sum = 0;
  for (int k = 0; k < 8; k++) sum += row[threadIdx.x][k];  // BUG
  y[threadIdx.x] = sum;
}

int main(void) {
  float *row[4], **drow, *dy;
  for (int i = 0; i < 4; i++) row[i] = (float *)calloc(8, sizeof(float));
  cudaMalloc(&drow, sizeof row);
  cudaMalloc(&dy, 4 * sizeof(float));
  cudaMemcpy(drow, row, sizeof row, cudaMemcpyHostToDevice);
  row_sums<<<1, 4>>>(drow, dy);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  for (int i = 0; i < 4; i++) free(row[i]);
  cudaFree(drow);
  cudaFree(dy);
}
