// The first 20 lanes exchange values with lanes 16 apart: the first four find them in the mask, the others do not.
// mode: plain inspect
// expect: mask
// expect-text: reads from lane 20, which the mask does not contain
#include <stdio.h>

__global__ void exchange(int *out) {
  int lane = threadIdx.x, value = lane;
  if (lane < 20) value = __shfl_sync(0xfffff, value, lane ^ 16);  // BUG
  out[lane] = value;
}

int main(void) {
  int out[32], *dout;
  cudaMalloc(&dout, sizeof out);
  exchange<<<1, 32>>>(dout);
  cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
  printf("%d\n", out[4]);
}
