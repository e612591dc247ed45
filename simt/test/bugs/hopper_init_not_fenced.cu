// TMA uses an mbarrier that only the block has seen so far.
// mode: plain
// expect: mbarrier: bulk_load() at
// expect-text: no mbarrier_init_fence() has come
// env: SIMT_CAPABILITY=9.0
#include <simt/hopper.h>
#include <stdint.h>
#include <stdio.h>

__global__ void copy(int *y, const int *x) {
  __shared__ __align__(16) int s[32];
  __shared__ uint64_t full;
  uint32_t barrier = simt::shared_address(&full);
  if (threadIdx.x == 0) {
    simt::mbarrier_init(barrier, 1);  // BUG-OTHER
    simt::mbarrier_arrive_expect(barrier, 128);
    simt::bulk_load(simt::shared_address(s), x, 128, barrier);  // BUG
  }
  __syncthreads();
  simt::mbarrier_wait(barrier, 0);
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
