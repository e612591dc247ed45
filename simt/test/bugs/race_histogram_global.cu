// A histogram in global memory: threads of one block and of different blocks add to the same bin without atomicAdd.
// mode: inspect
// expect: data race
#include <stdio.h>

__global__ void histogram(const unsigned char *text, int n, int *bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) bins[text[i] % 10] += 1;  // BUG
}

int main(void) {
  unsigned char text[1000], *dtext;
  int bins[10], *dbins;
  for (int i = 0; i < 1000; i++) text[i] = i * 3;
  cudaMalloc(&dtext, sizeof text);
  cudaMalloc(&dbins, sizeof bins);
  cudaMemset(dbins, 0, sizeof bins);
  cudaMemcpy(dtext, text, sizeof text, cudaMemcpyHostToDevice);
  histogram<<<8, 128>>>(dtext, 1000, dbins);
  cudaMemcpy(bins, dbins, sizeof bins, cudaMemcpyDeviceToHost);
  printf("%d\n", bins[0]);
  cudaFree(dtext);
  cudaFree(dbins);
}
