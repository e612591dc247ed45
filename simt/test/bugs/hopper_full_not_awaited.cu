// The product begins before the copy of its factor has come.
// mode: plain
// expect: wgmma: a copy to its factor a is under way
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
    simt::mbarrier_arrive_expect(barrier, 4096);
    simt::bulk_load(simt::shared_address(a), in, 2048, barrier);  // BUG-OTHER
    simt::bulk_load(simt::shared_address(b), in, 2048, barrier);
  }
  __syncthreads();
  float sum[32] = {};
  simt::wgmma_fence();
  simt::wgmma(sum, descriptor(a), descriptor(b), true);  // BUG
  simt::wgmma_commit();
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
