// A three-point average written over its own input: neighbours may be read before or after they change.
// mode: inspect
// expect: data race
#include <stdio.h>

__global__ void smooth(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) {
    float mean = (x[i - 1] + x[i] + x[i + 1]) / 3;  // BUG-OTHER
    x[i] = mean;                                    // BUG
  }
}

int main(void) {
  float x[500], *dx;
  for (int i = 0; i < 500; i++) x[i] = i % 2;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  smooth<<<4, 128>>>(dx, 500);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[250]);
  cudaFree(dx);
}
