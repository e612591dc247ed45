// A grid-stride loop with a barrier inside: the last round has work for some threads only.
// mode: plain inspect
// expect: barrier divergence
#include <stdio.h>

__global__ void shift(const int *in, int *out, int n) {
  __shared__ int s_tile[64];
  for (int i = threadIdx.x; i < n; i += 64) {
    s_tile[threadIdx.x] = in[i];
    __syncthreads();  // BUG
    out[i] = s_tile[threadIdx.x ^ 1];
    __syncthreads();
  }
}

int main(void) {
  int x[100], *din, *dout;
  for (int i = 0; i < 100; i++) x[i] = i;
  cudaMalloc(&din, sizeof x);
  cudaMalloc(&dout, sizeof x);
  cudaMemcpy(din, x, sizeof x, cudaMemcpyHostToDevice);
  shift<<<1, 64>>>(din, dout, 100);
  cudaMemcpy(x, dout, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[0]);
}
