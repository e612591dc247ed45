// Only block 0 builds the table in shared memory; the others hope to find it there, and on one SM they may.
// mode: inspect
// expect: uninitialised read
// expect-text: s_square
#include <stdio.h>

__global__ void look_up(const int *x, int *y) {
  __shared__ int s_square[32];
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  if (blockIdx.x == 0) s_square[t] = t * t;
  __syncthreads();
  y[i] = s_square[x[i] % 32];  // BUG
}

int main(void) {
  int x[128], *dx, *dy;
  for (int i = 0; i < 128; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dy, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  look_up<<<4, 32>>>(dx, dy);
  cudaMemcpy(x, dy, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[35]);
  cudaFree(dx);
  cudaFree(dy);
}
