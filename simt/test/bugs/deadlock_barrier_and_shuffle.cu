// The lower half of the warp asks all 32 lanes for a shuffle; the upper half already waits at the block's barrier.
// mode: plain inspect
// expect: deadlock
#include <stdio.h>

__global__ void sum_lower_half(int *x) {
  int t = threadIdx.x, sum = x[t];
  if (t < 16)
    for (int step = 8; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);  // BUG
  __syncthreads();                                                                           // BUG-OTHER
  x[t] = sum;
}

int main(void) {
  int x[32], *dx;
  for (int i = 0; i < 32; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  sum_lower_half<<<1, 32>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[0]);
}
