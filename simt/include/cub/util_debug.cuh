/* cub/util_debug.cuh - CubDebug(), CubDebugExit(): print a failed call's error. -*- c++ -*- */
#ifndef SIMT_CUB_UTIL_DEBUG
#define SIMT_CUB_UTIL_DEBUG

#include <stdio.h>
#include <stdlib.h>

#include "cub/util_type.cuh"

namespace cub {

inline cudaError_t Debug(cudaError_t error, const char *file, int line) {
  if (error != cudaSuccess)
    fprintf(stderr, "CUDA error %d [%s, %d]: %s\n", error, file, line, cudaGetErrorString(error));
  return error;
}

}  // namespace cub

#define CubDebug(call) cub::Debug((cudaError_t)(call), __FILE__, __LINE__)
#define CubDebugExit(call)            \
  do {                                \
    if (CubDebug(call) != 0) exit(1); \
  } while (0)

#endif /* SIMT_CUB_UTIL_DEBUG */
