// The grid is rounded up to whole blocks, but the kernel does not ask whether its element exists.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void add(const float *a, const float *b, float *c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = a[i] + b[i];  // BUG
}

int main(void) {
  float a[900], c[900], *da, *db, *dc;
  for (int i = 0; i < 900; i++) a[i] = i;
  cudaMalloc(&da, sizeof a);
  cudaMalloc(&db, sizeof a);
  cudaMalloc(&dc, sizeof c);
  cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);
  cudaMemcpy(db, a, sizeof a, cudaMemcpyHostToDevice);
  add<<<(900 + 127) / 128, 128>>>(da, db, dc);
  cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost);
  printf("%g\n", c[899]);
  cudaFree(da);
  cudaFree(db);
  cudaFree(dc);
}
