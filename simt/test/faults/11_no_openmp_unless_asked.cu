// #pragma omp without -Xcompiler -fopenmp is nothing: this sum would be a race.
#include <stdio.h>

#ifdef _OPENMP
#error "OpenMP is on, though nobody asked for it"
#endif

__global__ void twice(int *x) { x[threadIdx.x] *= 2; }

int main() {
  int *x, h[32], sum = 0, turns = 0;
#pragma omp parallel for num_threads(4)
  for (int i = 0; i < 32; i++) {
    h[i] = i;
    turns = turns + 1;
  }
  cudaMalloc((void **)&x, sizeof h);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
#pragma omp parallel num_threads(4)
  twice<<<1, 32>>>(x);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(x);
  for (int i = 0; i < 32; i++) sum += h[i];
  printf("sum %d, turns %d\n", sum, turns);
  return sum != 31 * 32 || turns != 32;
}
