// A thread changes registers of a between two products, and no wgmma_fence() hands them over.
// mode: plain
// expect: wgmma: the thread has changed the registers of a
// env: SIMT_CAPABILITY=9.0
#include <simt/hopper.h>
#include <stdint.h>
#include <stdio.h>

/* Rows along K, no swizzle: chunks of 8 rows x 16 bytes, those that follow along K 1024 bytes apart. */
__device__ uint64_t descriptor(const void *tile) {
  return simt::shared_address(tile) >> 4 | (uint64_t)(1024 >> 4) << 16 | (uint64_t)(128 >> 4) << 32;
}

__global__ void product(float *out, const uint32_t *in) {
  __shared__ __align__(128) uint32_t b[512];
  for (int i = threadIdx.x; i < 512; i += 128) b[i] = in[i];
  simt::fence_async_proxy();
  __syncthreads();
  float sum[32];
  uint32_t a[4] = {in[0], in[1], in[2], in[3]};
  simt::wgmma_fence();
  simt::wgmma_tf32_registers(sum, a, descriptor(b), false);
  simt::wgmma_commit();
  simt::wgmma_wait<0>();
  a[2] = 1;
  simt::wgmma_tf32_registers(sum, a, descriptor(b), true);  // BUG
  simt::wgmma_commit();
  simt::wgmma_wait<0>();
  out[threadIdx.x] = sum[3];
}

int main(void) {
  float *out;
  uint32_t *in;
  cudaMalloc(&out, 128 * 4);
  cudaMalloc(&in, 2048);
  cudaMemset(in, 0, 2048);
  product<<<1, 128>>>(out, in);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
