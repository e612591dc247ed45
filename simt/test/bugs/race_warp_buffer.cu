// Each warp reverses 32 numbers through its own row of shared memory, without __syncwarp() between write and read.
// mode: inspect
// expect: data race
// also: uninitialised read
// expect-text: s_row
#include <stdio.h>

__global__ void reverse_in_warps(int *x) {
  __shared__ int s_row[4][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  s_row[warp][lane] = x[threadIdx.x];       // BUG
  x[threadIdx.x] = s_row[warp][31 - lane];  // BUG-OTHER
}

int main(void) {
  int x[128], *dx;
  for (int i = 0; i < 128; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  reverse_in_warps<<<1, 128>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[0]);
  cudaFree(dx);
}
