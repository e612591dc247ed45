/* cub/device/device_for.cuh - a function for each index or element. -*- c++ -*-
 *
 * Here, unlike the other device-wide algorithms, each call has a CUDA thread of its own. */
#ifndef SIMT_CUB_DEVICE_FOR
#define SIMT_CUB_DEVICE_FOR

#include "cub/util_device.cuh"

namespace cub {

struct DeviceFor {
  template <class Count, class Function>
  static cudaError_t Bulk(Count count, Function function, cudaStream_t stream = 0, SIMT_SITE) {
    return run(
        "cub::DeviceFor::Bulk", (size_t)count, [=](Count i) { Function(function)(i); }, stream, SIMT_PASS_SITE);
  }
  template <class Count, class Function>
  static cudaError_t Bulk(void *storage, size_t &bytes, Count count, Function function, cudaStream_t stream = 0,
                          SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return Bulk(count, function, stream, SIMT_PASS_SITE);
  }
  template <class Iterator, class Function>
  static cudaError_t ForEach(Iterator first, Iterator last, Function function, cudaStream_t stream = 0, SIMT_SITE) {
    return run(
        "cub::DeviceFor::ForEach", (size_t)(last - first), [=](size_t i) { Function(function)(Iterator(first)[i]); },
        stream, SIMT_PASS_SITE);
  }
  template <class Iterator, class Count, class Function>
  static cudaError_t ForEachN(Iterator first, Count count, Function function, cudaStream_t stream = 0, SIMT_SITE) {
    return ForEach(first, first + count, function, stream, SIMT_PASS_SITE);
  }

 private:
  template <class Function>
  static cudaError_t run(const char *name, size_t count, Function function, cudaStream_t stream, const char *file,
                         int line) {
    if (count == 0) return cudaSuccess;
    return simt::kern(name, file, line,
                      [=](size_t n) {
                        size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
                        if (i < n) function(i);
                      })
        .cfg(dim3((unsigned)((count + 255) / 256)), dim3(256), 0, stream)
        .run(count);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_FOR */
