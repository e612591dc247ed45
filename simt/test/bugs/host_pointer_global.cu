// A global array of the host as a kernel's argument.
// mode: plain inspect
// expect: host pointer
#include <stdio.h>

static float lookup[64];

__global__ void apply(const float *table, float *x) { x[threadIdx.x] = table[threadIdx.x]; }

int main(void) {
  float *dx;
  for (int i = 0; i < 64; i++) lookup[i] = i;
  cudaMalloc(&dx, sizeof lookup);
  apply<<<1, 64>>>(lookup, dx);  // BUG
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
}
