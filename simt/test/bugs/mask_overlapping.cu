// The two halves of a warp vote with masks that share lanes 12 to 19: neither set can ever be complete.
// mode: plain inspect
// expect: deadlock
// expect-text: mask 0x000fffff
// expect-text: mask 0xfffff000
#include <stdio.h>

__global__ void vote(unsigned *out) {
  int lane = threadIdx.x;
  unsigned mask = lane < 16 ? 0x000fffff : 0xfffff000;
  out[lane] = __ballot_sync(mask, lane % 3 == 0);  // BUG
}

int main(void) {
  unsigned out[32], *dout;
  cudaMalloc(&dout, sizeof out);
  cudaMemset(dout, 0, sizeof out);
  vote<<<1, 32>>>(dout);
  cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
  printf("%x\n", out[0]);
}
