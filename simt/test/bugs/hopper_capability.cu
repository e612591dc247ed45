// An mbarrier on a GPU of compute capability 8.0.
// mode: plain
// expect: the address of shared memory in 32 bits needs compute capability 9.0
// expect-text: SIMT_CAPABILITY=9.0
// env: SIMT_CAPABILITY=8.0
#include <simt/hopper.h>
#include <stdint.h>
#include <stdio.h>

__global__ void begin(void) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) simt::mbarrier_init(simt::shared_address(&barrier), 1);  // BUG
}

int main(void) {
  begin<<<1, 32>>>();
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
