// The mbarrier expects a warp, and two arrive.
// mode: plain
// expect: mbarrier_arrive_expect(): the mbarrier
// expect-text: gets more than the 32 arrivals
// env: SIMT_CAPABILITY=9.0
#include <simt/hopper.h>
#include <stdint.h>
#include <stdio.h>

__global__ void meet(void) {
  __shared__ uint64_t met;
  uint32_t barrier = simt::shared_address(&met);
  if (threadIdx.x == 0) simt::mbarrier_init(barrier, 32);
  __syncthreads();
  for (int i = 0; i < 2; i++) {
    simt::mbarrier_arrive_expect(barrier, 16);  // BUG
    __syncwarp();
  }
}

int main(void) {
  meet<<<1, 32>>>();
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
