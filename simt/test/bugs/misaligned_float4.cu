// Rows of 5 floats read as float4: every row but each fourth starts at an address that is no multiple of 16.
// mode: inspect
// expect: misaligned address
#include <stdio.h>

__global__ void first_four(const float *a, float *y) {
  float4 v = *(const float4 *)(a + 5 * threadIdx.x);  // BUG
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}

int main(void) {
  float *da, *dy;
  cudaMalloc(&da, 16 * 5 * sizeof(float));
  cudaMalloc(&dy, 16 * sizeof(float));
  cudaMemset(da, 0, 16 * 5 * sizeof(float));
  first_four<<<1, 16>>>(da, dy);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
