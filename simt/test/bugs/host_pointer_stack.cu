// The result goes to `&sum`, the address of a variable of main().
// mode: plain inspect
// expect: host pointer
#include <stdio.h>

__global__ void sum_of_32(const int *x, int *sum) {
  if (threadIdx.x == 0)
    for (int i = 0; i < 32; i++) *sum += x[i];
}

int main(void) {
  int sum = 0, *dx;
  cudaMalloc(&dx, 32 * sizeof(int));
  cudaMemset(dx, 0, 32 * sizeof(int));
  sum_of_32<<<1, 32>>>(dx, &sum);  // BUG
  printf("%d %s\n", sum, cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
}
