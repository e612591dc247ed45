// NULL, 0 and nullptr among the arguments: a null pointer where a pointer is wanted, a number elsewhere.
#include <stdio.h>
#include <stdlib.h>

__global__ void kernel(const float *mask, int n, size_t offset, float *out) {
  out[threadIdx.x] = (mask ? mask[threadIdx.x] : 1.0f) + n + offset;
}

template <class T>
__global__ void fill(T *out, T value) {
  out[threadIdx.x] += value + (sizeof(value) == 4 ? 0 : 100);
}

int main() {
  float *x, h[32];
  cudaMalloc((void **)&x, sizeof h);
  kernel<<<1, 32>>>(NULL, 0, 0, x);
  kernel<<<1, 32, 0, NULL>>>(nullptr, 1, 0, x);
  kernel<<<1, 32, 0, 0>>>(0, 2, 0, x);
  fill<<<1, 32>>>((int *)x, 0);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(x);
  for (int i = 0; i < 32; i++)
    if (h[i] != 3) return printf("x[%d] = %g\n", i, h[i]), 1;
  return 0;
}
