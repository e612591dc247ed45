// A formatter that does not know CUDA writes << <grid, block >> >. It is a launch.
#include <stdio.h>

__global__ void fill(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;
}

template <int N>
__global__ void add(int *x) {
  x[threadIdx.x] += N;
}

int main() {
  const int n = 64;
  int *x, h[n];
  cudaMalloc(&x, n * sizeof(int));
  // clang-format off
  fill << <(n + 31) / 32, 32 >> > (x, n);
  add<8> << < 1, n >> > (x);
  add < 2 > <<<1, n >>>(x);
  // clang-format on
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(x);
  for (int i = 0; i < n; i++)
    if (h[i] != i + 10) return printf("x[%d] = %d\n", i, h[i]), 1;
  return 0;
}
