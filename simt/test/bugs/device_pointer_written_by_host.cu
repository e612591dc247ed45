// The host sets the bias through the device's pointer.
// mode: inspect
// expect: device memory
#include <stdio.h>

__global__ void add_bias(float *x, const float *bias) { x[threadIdx.x] += *bias; }

int main(void) {
  float *dx, *dbias;
  cudaMalloc(&dx, 32 * sizeof(float));
  cudaMalloc(&dbias, sizeof(float));
  cudaMemset(dx, 0, 32 * sizeof(float));
  *dbias = 0.5f;  // BUG
  add_bias<<<1, 32>>>(dx, dbias);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
  cudaFree(dbias);
}
