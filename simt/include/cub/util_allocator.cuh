/* cub/util_allocator.cuh - CachingDeviceAllocator; here it caches nothing. -*- c++ -*- */
#ifndef SIMT_CUB_UTIL_ALLOCATOR
#define SIMT_CUB_UTIL_ALLOCATOR

#include "cub/util_type.cuh"

namespace cub {

struct CachingDeviceAllocator {
  CachingDeviceAllocator(bool = false, bool = false) {}
  CachingDeviceAllocator(unsigned, unsigned = 1, unsigned = 0xffffffffu, size_t = (size_t)-1, bool = false,
                         bool = false) {}

  cudaError_t DeviceAllocate(void **pointer, size_t bytes, cudaStream_t = 0, SIMT_SITE) {
    return cudaMalloc(pointer, bytes, SIMT_PASS_SITE);
  }
  cudaError_t DeviceAllocate(int, void **pointer, size_t bytes, cudaStream_t = 0, SIMT_SITE) {
    return cudaMalloc(pointer, bytes, SIMT_PASS_SITE);
  }
  cudaError_t DeviceFree(void *pointer) { return cudaFree(pointer); }
  cudaError_t DeviceFree(int, void *pointer) { return cudaFree(pointer); }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

}  // namespace cub

#endif /* SIMT_CUB_UTIL_ALLOCATOR */
