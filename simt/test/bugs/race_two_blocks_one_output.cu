// The block's first element is computed with the wrong stride, so neighbouring blocks write the same elements.
// mode: inspect
// expect: data race
// expect-text: between blocks
#include <stdio.h>

__global__ void label(int *out) {
  int first = blockIdx.x * (blockDim.x / 2);  // should be blockIdx.x * blockDim.x
  out[first + threadIdx.x] = blockIdx.x;      // BUG
}

int main(void) {
  int out[256], *dout;
  cudaMalloc(&dout, sizeof out);
  cudaMemset(dout, 0, sizeof out);
  label<<<4, 64>>>(dout);
  cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
  printf("%d\n", out[40]);
  cudaFree(dout);
}
