// A recursion without an end for negative numbers.
// mode: plain inspect
// expect: stack overflow
#include <stdio.h>

__device__ __noinline__ int digits(volatile int *x, int n) { return n == 0 ? *x : 1 + digits(x, n - 10) + *x; }  // BUG

__global__ void count_digits(int *x) { x[0] = digits(x, 25); }

int main(void) {
  int *dx;
  cudaMalloc(&dx, sizeof(int));
  cudaMemset(dx, 0, sizeof(int));
  count_digits<<<1, 1>>>(dx);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
