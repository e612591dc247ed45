// Row and column swapped in a batch: the index lands megabytes beyond the array.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void scale(float *x, int batch, int features) {
  int n = blockIdx.y, f = blockIdx.x * blockDim.x + threadIdx.x;
  if (f < features && n < batch) x[f * 65536 + n] *= 2;  // BUG
}

int main(void) {
  float *dx;
  cudaMalloc(&dx, 16 * 100 * sizeof(float));
  cudaMemset(dx, 0, 16 * 100 * sizeof(float));
  scale<<<dim3(1, 16), 128>>>(dx, 16, 100);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
}
