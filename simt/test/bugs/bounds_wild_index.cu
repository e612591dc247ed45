// Millions of accesses far outside: the launch ends after the first 20,000, or the diagnosis would take minutes.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void add(float *x, int n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (int turn = 0; turn < 1000; turn++) x[1000 * i + n + turn] += 1;  // BUG
}

int main(void) {
  float *dx;
  int n = 1 << 16;
  cudaMalloc(&dx, n * sizeof *dx);
  cudaMemset(dx, 0, n * sizeof *dx);
  add<<<256, 256>>>(dx, n);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
