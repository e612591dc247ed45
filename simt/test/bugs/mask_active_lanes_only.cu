// __activemask() in a branch: the lanes of the other branch have no part in it, and the sum lacks theirs.
// mode: plain inspect
// expect: mask
// expect-text: which the mask does not contain
#include <stdio.h>

__global__ void add_up(const int *in, int *out) {
  int lane = threadIdx.x, sum = in[lane];
  if (lane < 20)
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(__activemask(), sum, distance);  // BUG
  out[lane] = sum;
}

int main(void) {
  int out[32], *din, *dout;
  cudaMalloc(&din, sizeof out);
  cudaMalloc(&dout, sizeof out);
  cudaMemset(din, 0, sizeof out);
  add_up<<<1, 32>>>(din, dout);
  cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
  printf("%d\n", out[0]);
}
