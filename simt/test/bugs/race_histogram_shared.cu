// A histogram in shared memory counted with ++ instead of atomicAdd.
// mode: inspect
// expect: data race
// expect-text: s_bin
#include <stdio.h>

__global__ void histogram(const unsigned char *text, int n, int *bins) {
  __shared__ int s_bin[16];
  int t = threadIdx.x;
  if (t < 16) s_bin[t] = 0;
  __syncthreads();
  for (int i = t; i < n; i += blockDim.x) s_bin[text[i] & 15]++;  // BUG
  __syncthreads();
  if (t < 16) bins[t] = s_bin[t];
}

int main(void) {
  unsigned char text[1000], *dtext;
  int bins[16], *dbins;
  for (int i = 0; i < 1000; i++) text[i] = i * 7;
  cudaMalloc(&dtext, sizeof text);
  cudaMalloc(&dbins, sizeof bins);
  cudaMemcpy(dtext, text, sizeof text, cudaMemcpyHostToDevice);
  histogram<<<1, 128>>>(dtext, 1000, dbins);
  cudaMemcpy(bins, dbins, sizeof bins, cudaMemcpyDeviceToHost);
  printf("%d\n", bins[0]);
  cudaFree(dtext);
  cudaFree(dbins);
}
