// cudaMemcpyAsync() returns at once; the host reads its result before it waits for the stream.
// mode: lazy-inspect
// expect: missing synchronisation
#include <stdio.h>

__global__ void fill(int *x) { x[threadIdx.x] = threadIdx.x; }

int main(void) {
  int *x, *dx;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMallocHost((void **)&x, 32 * sizeof(int));
  cudaMalloc(&dx, 32 * sizeof(int));
  for (int i = 0; i < 32; i++) x[i] = -1;
  fill<<<1, 32, 0, stream>>>(dx);
  cudaMemcpyAsync(x, dx, 32 * sizeof(int), cudaMemcpyDeviceToHost, stream);
  printf("%d\n", x[5]);  // BUG
  cudaStreamSynchronize(stream);
  cudaFree(dx);
  cudaFreeHost(x);
  cudaStreamDestroy(stream);
}
