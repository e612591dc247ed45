// The next copy to the stage begins before anybody has waited for the product.
// mode: plain
// expect: bulk_load() overwrites a factor of the product
// env: SIMT_CAPABILITY=9.0
#include <simt/hopper.h>
#include <stdint.h>
#include <stdio.h>

/* Rows along K, no swizzle: chunks of 8 x 8 elements, those that follow along K 1024 bytes apart. */
__device__ uint64_t descriptor(const void *tile) {
  return simt::shared_address(tile) >> 4 | (uint64_t)(1024 >> 4) << 16 | (uint64_t)(128 >> 4) << 32;
}

__global__ void product(float *out, const uint16_t *in) {
  __shared__ __align__(128) uint16_t a[1024], b[1024];
  __shared__ uint64_t full;
  uint32_t barrier = simt::shared_address(&full);
  if (threadIdx.x == 0) {
    simt::mbarrier_init(barrier, 1);
    simt::mbarrier_init_fence();
  }
  __syncthreads();
  float sum[32] = {};
  for (int turn = 0; turn < 2; turn++) {
    if (threadIdx.x == 0) {
      simt::mbarrier_arrive_expect(barrier, 4096);
      simt::bulk_load(simt::shared_address(a), in, 2048, barrier);  // BUG
      simt::bulk_load(simt::shared_address(b), in, 2048, barrier);
    }
    simt::mbarrier_wait(barrier, turn);
    simt::wgmma_fence();
    simt::wgmma(sum, descriptor(a), descriptor(b), true);  // BUG-OTHER
    simt::wgmma_commit();
    __syncthreads();
  }
  simt::wgmma_wait<0>();
  out[threadIdx.x] = sum[3];
}

int main(void) {
  float *out;
  uint16_t *in;
  cudaMalloc(&out, 128 * 4);
  cudaMalloc(&in, 4096);
  cudaMemset(in, 0, 4096);
  product<<<1, 128>>>(out, in);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
