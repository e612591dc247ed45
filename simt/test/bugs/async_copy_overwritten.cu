// The host fills its buffer for the next batch while the copy of the last one may still read it.
// mode: lazy-inspect
// expect: missing synchronisation
#include <stdio.h>

int main(void) {
  float *x, *dx;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMallocHost((void **)&x, 32 * sizeof(float));
  cudaMalloc(&dx, 64 * sizeof(float));
  for (int batch = 0; batch < 2; batch++) {
    for (int i = 0; i < 32; i++) x[i] = batch + i;  // BUG
    cudaMemcpyAsync(dx + 32 * batch, x, 32 * sizeof(float), cudaMemcpyHostToDevice, stream);
  }
  cudaStreamSynchronize(stream);
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  cudaFree(dx);
  cudaFreeHost(x);
  cudaStreamDestroy(stream);
}
