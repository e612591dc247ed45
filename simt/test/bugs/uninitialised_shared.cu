// Shared bins that start with whatever the last block left there: nobody zeroes them.
// mode: inspect
// expect: uninitialised read
// expect-text: s_bin
#include <stdio.h>

__global__ void histogram(const unsigned char *x, int *bins) {
  __shared__ int s_bin[8];
  atomicAdd(&s_bin[x[threadIdx.x] % 8], 1);  // BUG
  __syncthreads();
  if (threadIdx.x < 8) bins[threadIdx.x] = s_bin[threadIdx.x];
}

int main(void) {
  unsigned char x[64], *dx;
  int bins[8], *dbins;
  for (int i = 0; i < 64; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dbins, sizeof bins);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  histogram<<<1, 64>>>(dx, dbins);
  cudaMemcpy(bins, dbins, sizeof bins, cudaMemcpyDeviceToHost);
  printf("%d\n", bins[0]);
  cudaFree(dx);
  cudaFree(dbins);
}
