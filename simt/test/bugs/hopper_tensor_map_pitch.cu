// Rows of 33 floats: their distance is no multiple of 16 bytes.
// mode: plain
// expect: tensor map: cuTensorMapEncodeTiled at
// expect-text: stride 0 is 132 bytes; expected a multiple of 16
// env: SIMT_CAPABILITY=9.0
#include <cuda.h>
#include <stdio.h>

int main(void) {
  CUtensorMap map;
  float *x;
  cudaMalloc(&x, 33 * 33 * 4);
  cuuint64_t size[] = {33, 33}, pitch[] = {132};
  cuuint32_t box[] = {4, 4}, step[] = {1, 1};
  CUresult result = cuTensorMapEncodeTiled(  // BUG
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, x, size, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  printf("%d\n", (int)result);
}
