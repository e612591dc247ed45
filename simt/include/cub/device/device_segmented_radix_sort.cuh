/* cub/device/device_segmented_radix_sort.cuh - sorts each segment [begin, end) for itself. -*- c++ -*- */
#ifndef SIMT_CUB_DEVICE_SEGMENTED_RADIX_SORT
#define SIMT_CUB_DEVICE_SEGMENTED_RADIX_SORT

#include "cub/device/device_radix_sort.cuh"

namespace cub {

#define SIMT_CUB_SORTS(Class, Name, descending)                                                                       \
  template <class Key, class Begin, class End>                                                                        \
  static cudaError_t SortKeys##Name(void *storage, size_t &bytes, const Key *keys, Key *keys_out, int count,          \
                                    int segments, Begin first, End last SIMT_CUB_BITS, cudaStream_t stream = 0,       \
                                    SIMT_SITE) {                                                                      \
    return details::sort_to("cub::" #Class "::SortKeys" #Name, storage, bytes, keys, keys_out, (const char *)nullptr, \
                            (char *)nullptr, false, (size_t)count, (size_t)segments, first, last, SIMT_CUB_RANGE,     \
                            descending, stream, SIMT_PASS_SITE);                                                      \
  }                                                                                                                   \
  template <class Key, class Value, class Begin, class End>                                                           \
  static cudaError_t SortPairs##Name(void *storage, size_t &bytes, const Key *keys, Key *keys_out,                    \
                                     const Value *values, Value *values_out, int count, int segments, Begin first,    \
                                     End last SIMT_CUB_BITS, cudaStream_t stream = 0, SIMT_SITE) {                    \
    return details::sort_to("cub::" #Class "::SortPairs" #Name, storage, bytes, keys, keys_out, values, values_out,   \
                            true, (size_t)count, (size_t)segments, first, last, SIMT_CUB_RANGE, descending, stream,   \
                            SIMT_PASS_SITE);                                                                          \
  }

struct DeviceSegmentedRadixSort {
#define SIMT_CUB_BITS , int begin_bit = 0, int end_bit = 8 * (int)sizeof(Key)
#define SIMT_CUB_RANGE begin_bit, end_bit
  SIMT_CUB_SORTS(DeviceSegmentedRadixSort, , false)
  SIMT_CUB_SORTS(DeviceSegmentedRadixSort, Descending, true)
#undef SIMT_CUB_BITS
#undef SIMT_CUB_RANGE
};

struct DeviceSegmentedSort {
#define SIMT_CUB_BITS
#define SIMT_CUB_RANGE 0, 8 * (int)sizeof(Key)
  SIMT_CUB_SORTS(DeviceSegmentedSort, , false)
  SIMT_CUB_SORTS(DeviceSegmentedSort, Descending, true)
#undef SIMT_CUB_BITS
#undef SIMT_CUB_RANGE
};
#undef SIMT_CUB_SORTS

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_SEGMENTED_RADIX_SORT */
