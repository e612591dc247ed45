// The sums are set, and no wgmma_fence() hands them over.
// mode: plain
// expect: wgmma: no wgmma_fence() came before
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
  for (int i = threadIdx.x; i < 1024; i += 128) a[i] = b[i] = in[i];
  simt::fence_async_proxy();
  __syncthreads();
  float sum[32] = {};
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
