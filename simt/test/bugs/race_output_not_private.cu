// A matrix-vector product splits each row over the threads and lets them all add to the result without atomicAdd.
// mode: inspect
// expect: data race
#include <stdio.h>

__global__ void matvec(const float *a, const float *x, float *y, int columns) {
  int row = blockIdx.x, t = threadIdx.x;
  float sum = 0;
  for (int k = t; k < columns; k += blockDim.x) sum += a[row * columns + k] * x[k];
  y[row] += sum;  // BUG
}

int main(void) {
  static float a[8 * 100];
  float y[8], *da, *dy;
  for (int i = 0; i < 800; i++) a[i] = 1;
  cudaMalloc(&da, sizeof a);
  cudaMalloc(&dy, sizeof y);
  cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);
  cudaMemset(dy, 0, sizeof y);
  matvec<<<8, 64>>>(da, da, dy, 100);
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  printf("%g\n", y[0]);
  cudaFree(da);
  cudaFree(dy);
}
