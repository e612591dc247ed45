// A function fills one element more than the thread's array has.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__device__ void fill(float *row, int n) {
  for (int i = 0; i <= n; i++) row[i] = i;  // BUG
}

__global__ void make_rows(float *out, int n) {
  float row[8];
  fill(row, n);
  out[threadIdx.x] = row[threadIdx.x % 8];
}

int main(void) {
  float out[32], *dout;
  cudaMalloc(&dout, sizeof out);
  make_rows<<<1, 32>>>(dout, 8);
  cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
  printf("%g\n", out[3]);
}
