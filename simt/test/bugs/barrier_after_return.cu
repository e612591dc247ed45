// The guard `if (i >= n) return;` stands before the barrier, so the last block's idle threads never come to it.
// mode: plain inspect
// expect: barrier divergence
#include <stdio.h>

__global__ void reverse_in_blocks(const int *in, int *out, int n) {
  __shared__ int s_tile[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (i >= n) return;
  s_tile[t] = in[i];
  __syncthreads();  // BUG
  out[i] = s_tile[t < 36 ? 35 - t : t];
}

int main(void) {
  int x[100], *din, *dout;
  for (int i = 0; i < 100; i++) x[i] = i;
  cudaMalloc(&din, sizeof x);
  cudaMalloc(&dout, sizeof x);
  cudaMemcpy(din, x, sizeof x, cudaMemcpyHostToDevice);
  reverse_in_blocks<<<2, 64>>>(din, dout, 100);
  cudaMemcpy(x, dout, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[0]);
}
