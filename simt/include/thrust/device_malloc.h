/* thrust/device_malloc.h -*- c++ -*- */
#ifndef SIMT_THRUST_DEVICE_MALLOC
#define SIMT_THRUST_DEVICE_MALLOC

#include "thrust/device_ptr.h"

namespace thrust {

inline device_ptr<void> device_malloc(size_t bytes, SIMT_THRUST_SITE) {
  void *memory = nullptr;
  cudaError_t error = cudaMalloc(&memory, bytes, site.file, site.line);
  if (error != cudaSuccess) throw details::BadAllocation(error);
  return device_ptr<void>(memory);
}
template <class T>
device_ptr<T> device_malloc(size_t count, SIMT_THRUST_SITE) {
  return device_ptr<T>((T *)device_malloc(count * sizeof(T), site).get());
}

}  // namespace thrust

#endif /* SIMT_THRUST_DEVICE_MALLOC */
