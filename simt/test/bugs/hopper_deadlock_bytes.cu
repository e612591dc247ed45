// The copy brings 128 bytes, and 256 are announced: the phase never ends.
// mode: plain inspect
// expect: deadlock
// expect-text: 128 announced bytes are missing
// env: SIMT_CAPABILITY=9.0
#include <simt/hopper.h>
#include <stdint.h>
#include <stdio.h>

__global__ void copy(int *y, const int *x) {
  __shared__ __align__(16) int s[32];
  __shared__ uint64_t full;
  uint32_t barrier = simt::shared_address(&full);
  if (threadIdx.x == 0) {
    simt::mbarrier_init(barrier, 1);
    simt::mbarrier_init_fence();
    simt::mbarrier_arrive_expect(barrier, 256);
    simt::bulk_load(simt::shared_address(s), x, 128, barrier);
  }
  __syncthreads();
  simt::mbarrier_wait(barrier, 0);  // BUG
  y[threadIdx.x] = s[threadIdx.x];
}

int main(void) {
  int *x, *y;
  cudaMalloc(&x, 128);
  cudaMalloc(&y, 128);
  cudaMemset(x, 0, 128);
  copy<<<1, 32>>>(y, x);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
