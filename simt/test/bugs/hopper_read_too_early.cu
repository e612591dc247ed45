// A thread reads what a bulk copy brings, and nobody has waited for the mbarrier.
// mode: inspect
// expect: uninitialised read
// expect-text: wait for the mbarrier at which it counts
// also: bulk copies
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
    simt::mbarrier_arrive_expect(barrier, 128);
    simt::bulk_load(simt::shared_address(s), x, 128, barrier);
  }
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];  // BUG
}

int main(void) {
  int *x, *y;
  cudaMalloc(&x, 128);
  cudaMalloc(&y, 128);
  cudaMemset(x, 0, 128);
  copy<<<1, 32>>>(y, x);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
