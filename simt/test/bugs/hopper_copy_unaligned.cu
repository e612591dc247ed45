// A tensor copy to a tile that begins 64 bytes behind a multiple of 128.
// mode: plain
// expect: tma_load() to shared address
// expect-text: it must be a multiple of 128 bytes
// env: SIMT_CAPABILITY=9.0
#include <cuda.h>
#include <simt/hopper.h>
#include <stdint.h>
#include <stdio.h>

__global__ void load(const __grid_constant__ CUtensorMap map) {
  __shared__ __align__(128) unsigned char tile[256];
  __shared__ uint64_t full;
  uint32_t barrier = simt::shared_address(&full);
  simt::mbarrier_init(barrier, 1);
  simt::tma_load(simt::shared_address(tile + 64), &map, 0, 0, barrier);  // BUG
}

int main(void) {
  enum { SIDE = 24 };  // half precision: rows of 48 bytes
  void *squares;
  cudaMalloc(&squares, SIDE * SIDE * 2);
  cuuint64_t elements[2] = {SIDE, SIDE}, row_bytes = SIDE * 2;
  cuuint32_t box[2] = {8, 4}, every[2] = {1, 1};
  CUtensorMap map;
  CUresult made = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, squares, elements, &row_bytes, box,
                                         every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                         CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made == CUDA_SUCCESS) load<<<1, 1>>>(map);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
