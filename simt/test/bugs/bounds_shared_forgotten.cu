// The kernel uses dynamic shared memory, the launch gives it none.
// mode: inspect
// expect: out of bounds
#include <stdio.h>

__global__ void reverse(int *x) {
  extern __shared__ int s_copy[];
  int t = threadIdx.x;
  s_copy[t] = x[t];  // BUG
  __syncthreads();
  x[t] = s_copy[31 - t];
}

int main(void) {
  int x[32], *dx;
  for (int i = 0; i < 32; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  reverse<<<1, 32>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[0]);
  cudaFree(dx);
}
