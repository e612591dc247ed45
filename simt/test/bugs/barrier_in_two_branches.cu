// Producers and consumers each have their own __syncthreads(): two places, so they do not meet.
// mode: plain inspect
// expect: barrier divergence
#include <stdio.h>

__global__ void produce_and_consume(int *out) {
  __shared__ int s_value[32];
  int t = threadIdx.x;
  if (t < 32) {
    s_value[t] = t * t;
    __syncthreads();  // BUG
  } else {
    __syncthreads();  // BUG-OTHER
    out[t - 32] = s_value[t - 32];
  }
}

int main(void) {
  int out[32], *dout;
  cudaMalloc(&dout, sizeof out);
  cudaMemset(dout, 0, sizeof out);
  produce_and_consume<<<1, 64>>>(dout);
  cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
  printf("%d\n", out[5]);
}
