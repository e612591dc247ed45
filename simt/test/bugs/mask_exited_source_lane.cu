// All take the last lane's value, but that lane has returned: on a GPU they get anything.
// mode: plain inspect
// expect: mask
#include <stdio.h>

__global__ void subtract_last(int *x, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  x[i] -= __shfl_sync(0xffffffff, x[i], 31);  // BUG
}

int main(void) {
  int x[20], *dx;
  for (int i = 0; i < 20; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  subtract_last<<<1, 32>>>(dx, 20);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[0]);
}
