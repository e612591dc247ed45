// A loop writes one element past its array, where the mbarrier lies.
// mode: plain
// expect: mbarrier_wait(): something else was written over the mbarrier
// env: SIMT_CAPABILITY=9.0
#include <simt/hopper.h>
#include <stdint.h>
#include <stdio.h>

struct Stage {
  int tile[32];
  uint64_t full;
};

__global__ void meet(int n) {
  __shared__ Stage stage;
  uint32_t barrier = simt::shared_address(&stage.full);
  if (threadIdx.x == 0) simt::mbarrier_init(barrier, 1);
  __syncthreads();
  for (int i = threadIdx.x; i <= n; i += 32) ((volatile int *)stage.tile)[i] = i;
  __syncthreads();
  simt::mbarrier_wait(barrier, 1);  // BUG
}

int main(void) {
  meet<<<1, 32>>>(32);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
