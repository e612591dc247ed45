// The launch gives no dynamic shared memory to a kernel that uses 120 KB of it.
// mode: inspect
// expect: out of bounds
// expect-text: dynamic shared memory (0 bytes by the launch)
#include <stdio.h>

__global__ void reverse(int *x, int n) {
  extern __shared__ int s_copy[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s_copy[i] = x[i];  // BUG
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = s_copy[n - 1 - i];
}

int main(void) {
  int n = 30720, x, *dx;
  cudaMalloc(&dx, n * sizeof *dx);
  cudaMemset(dx, 0, n * sizeof *dx);
  reverse<<<1, 256>>>(dx, n);
  cudaMemcpy(&x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  cudaFree(dx);
}
