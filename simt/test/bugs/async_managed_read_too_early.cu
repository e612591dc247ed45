// A launch returns at once; the host reads managed memory without cudaDeviceSynchronize().
// mode: lazy-inspect
// expect: missing synchronisation
#include <stdio.h>

__global__ void count_up(int *x) { x[threadIdx.x] += 1; }

int main(void) {
  int *x;
  cudaMallocManaged(&x, 32 * sizeof(int));
  for (int i = 0; i < 32; i++) x[i] = i;
  count_up<<<1, 32>>>(x);
  printf("%d\n", x[5]);  // BUG
  cudaDeviceSynchronize();
  cudaFree(x);
}
