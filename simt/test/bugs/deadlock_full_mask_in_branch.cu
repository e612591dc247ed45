// A full mask inside a branch that only the even lanes take; the odd ones wait at a __syncwarp() further down.
// mode: plain inspect
// expect: deadlock
#include <stdio.h>

__global__ void max_of_even(int *x) {
  int lane = threadIdx.x, value = x[lane];
  if (lane % 2 == 0) value = max(value, __shfl_xor_sync(0xffffffff, value, 2));  // BUG
  __syncwarp();                                                                  // BUG-OTHER
  x[lane] = value;
}

int main(void) {
  int x[32], *dx;
  for (int i = 0; i < 32; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  max_of_even<<<1, 32>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[0]);
}
