// The weights are freed and the kernel is launched with them once more.
// mode: inspect
// expect: use after free
#include <stdio.h>

__global__ void scale(const float *weight, float *x) { x[threadIdx.x] *= weight[threadIdx.x]; }

int main(void) {
  float *dweight, *dx;
  cudaMalloc(&dweight, 64 * sizeof(float));
  cudaMalloc(&dx, 64 * sizeof(float));
  cudaMemset(dweight, 0, 64 * sizeof(float));
  cudaMemset(dx, 0, 64 * sizeof(float));
  scale<<<1, 64>>>(dweight, dx);
  cudaFree(dweight);
  scale<<<1, 64>>>(dweight, dx);  // BUG
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
}
