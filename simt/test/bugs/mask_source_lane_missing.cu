// A shuffle among the even lanes that reads lane 7: the value of a lane that does not take part is undefined.
// mode: plain inspect
// expect: mask
#include <stdio.h>

__global__ void broadcast(int *x) {
  int lane = threadIdx.x;
  if (lane % 2 == 0) x[lane] = __shfl_sync(0x55555555, x[lane], 7);  // BUG
}

int main(void) {
  int x[32], *dx;
  for (int i = 0; i < 32; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  broadcast<<<1, 32>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[0]);
}
