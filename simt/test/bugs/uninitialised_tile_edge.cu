// The last tile is not full; its edge is neither loaded nor set to zero, yet the sum runs over all of it.
// mode: inspect
// expect: uninitialised read
// expect-text: s_tile
#include <stdio.h>

__global__ void sum(const float *x, int n, float *total) {
  __shared__ float s_tile[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (i < n) s_tile[t] = x[i];
  __syncthreads();
  if (t == 0) {
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += s_tile[k];  // BUG
    total[blockIdx.x] = sum;
  }
}

int main(void) {
  float x[100], total[2], *dx, *dtotal;
  for (int i = 0; i < 100; i++) x[i] = 1;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dtotal, sizeof total);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  sum<<<2, 64>>>(dx, 100, dtotal);
  cudaMemcpy(total, dtotal, sizeof total, cudaMemcpyDeviceToHost);
  printf("%g\n", total[1]);
  cudaFree(dx);
  cudaFree(dtotal);
}
