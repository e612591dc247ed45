// The threads beyond n have returned; the sum still shuffles down from them. What they give is undefined.
// mode: plain inspect
// expect: mask
#include <stdio.h>

__global__ void sum(const int *x, int n, int *total) {
  int i = threadIdx.x;
  if (i >= n) return;
  int sum = x[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);  // BUG
  if (i == 0) *total = sum;
}

int main(void) {
  int x[20], total, *dx, *dtotal;
  for (int i = 0; i < 20; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dtotal, sizeof total);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  sum<<<1, 32>>>(dx, 20, dtotal);
  cudaMemcpy(&total, dtotal, sizeof total, cudaMemcpyDeviceToHost);
  printf("%d\n", total);
}
