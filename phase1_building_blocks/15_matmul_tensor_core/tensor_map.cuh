/* tensor_map.cuh - tensor maps, which describe to TMA an array in global memory and the boxes that are copied. */
#ifndef PHASE1_BUILDING_BLOCKS_TENSOR_MAP_CUH
#define PHASE1_BUILDING_BLOCKS_TENSOR_MAP_CUH

#include <cuda.h>
#include <stdio.h>

#include "common/check.h"
#include "common/error.h"

/* The tensor map of x, `rank` dimensions (at most 5), the contiguous one first: size[i] elements along dimension i,
 * pitch[i] bytes from one to the next along dimension i + 1, boxes of box[i] elements. Boxes have the 128-byte swizzle
 * unless told otherwise, and are zero outside of the array. x and the pitches are multiples of 16 bytes. The driver
 * makes the map; its library need not be linked, since the runtime finds the function. */
static inline CUtensorMap tensor_map(const void *x, CUtensorMapDataType type, int rank, const cuuint64_t *size,
                                     const cuuint64_t *pitch, const cuuint32_t *box,
                                     CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B) {
  typedef CUresult Encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                          const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                          CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  static Encode *encode;
  if (encode == NULL) {
    void *found = NULL;
    cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION >= 12050
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status));
#else
    CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &status));
#endif
    if (status != cudaDriverEntryPointSuccess || found == NULL)
      die("tensor_map: this driver has no cuTensorMapEncodeTiled(): it needs one for CUDA 12");
    encode = (Encode *)found;
  }
  CUtensorMap map;
  const cuuint32_t step[5] = {1, 1, 1, 1, 1};
  CUresult status =
      encode(&map, type, (cuuint32_t)rank, (void *)x, size, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    char sizes[160] = "";
    for (int i = 0, at = 0; i < rank; i++)
      at += snprintf(sizes + at, sizeof sizes - at, "%s%llu in boxes of %u", i > 0 ? ", " : "",
                     (unsigned long long)size[i], (unsigned)box[i]);
    die("tensor_map: the driver makes no map of type %d, %s: error %d", (int)type, sizes, (int)status);
  }
  return map;
}

#endif /* PHASE1_BUILDING_BLOCKS_TENSOR_MAP_CUH */
