// A block reads what the block before it writes in the same launch; nothing says that it ran earlier.
// mode: inspect
// expect: data race
// also: uninitialised read
// expect-text: between blocks
#include <stdio.h>

__global__ void difference_of_squares(const float *x, float *square, float *difference) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  square[i] = x[i] * x[i];  // BUG
  __syncthreads();
  difference[i] = i > 0 ? square[i] - square[i - 1] : 0;  // BUG-OTHER
}

int main(void) {
  float x[256], *dx, *dsquare, *ddifference;
  for (int i = 0; i < 256; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dsquare, sizeof x);
  cudaMalloc(&ddifference, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  difference_of_squares<<<4, 64>>>(dx, dsquare, ddifference);
  cudaMemcpy(x, ddifference, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[64]);
  cudaFree(dx);
  cudaFree(dsquare);
  cudaFree(ddifference);
}
