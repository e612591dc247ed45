// Lane 31 takes part in a shuffle whose mask, (1 << 31) - 1, leaves it out.
// mode: plain inspect
// expect: mask
#include <stdio.h>

__global__ void rotate(int *x) {
  int lane = threadIdx.x;
  x[lane] = __shfl_sync((1u << 31) - 1, x[lane], (lane + 1) % 31);  // BUG
}

int main(void) {
  int x[32], *dx;
  for (int i = 0; i < 32; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  rotate<<<1, 32>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[0]);
}
