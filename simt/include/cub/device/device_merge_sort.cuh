/* cub/device/device_merge_sort.cuh - sorts by a comparison; equal elements keep their order. -*- c++ -*- */
#ifndef SIMT_CUB_DEVICE_MERGE_SORT
#define SIMT_CUB_DEVICE_MERGE_SORT

#include "cub/util_device.cuh"
#include "cub/util_sort.cuh"

namespace cub {

struct DeviceMergeSort {
  template <class Keys, class Count, class Less>
  static cudaError_t SortKeys(void *storage, size_t &bytes, Keys keys, Count count, Less less, cudaStream_t stream = 0,
                              SIMT_SITE) {
    return sort("cub::DeviceMergeSort::SortKeys", storage, bytes, keys, NullValues(), (size_t)count, less, stream,
                SIMT_PASS_SITE);
  }
  template <class Keys, class Values, class Count, class Less>
  static cudaError_t SortPairs(void *storage, size_t &bytes, Keys keys, Values values, Count count, Less less,
                               cudaStream_t stream = 0, SIMT_SITE) {
    return sort("cub::DeviceMergeSort::SortPairs", storage, bytes, keys, values, (size_t)count, less, stream,
                SIMT_PASS_SITE);
  }
  template <class Keys, class Count, class Less>
  static cudaError_t StableSortKeys(void *storage, size_t &bytes, Keys keys, Count count, Less less,
                                    cudaStream_t stream = 0, SIMT_SITE) {
    return sort("cub::DeviceMergeSort::StableSortKeys", storage, bytes, keys, NullValues(), (size_t)count, less, stream,
                SIMT_PASS_SITE);
  }
  template <class Keys, class Values, class Count, class Less>
  static cudaError_t StableSortPairs(void *storage, size_t &bytes, Keys keys, Values values, Count count, Less less,
                                     cudaStream_t stream = 0, SIMT_SITE) {
    return sort("cub::DeviceMergeSort::StableSortPairs", storage, bytes, keys, values, (size_t)count, less, stream,
                SIMT_PASS_SITE);
  }
  template <class In, class Out, class Count, class Less>
  static cudaError_t SortKeysCopy(void *storage, size_t &bytes, In in, Out out, Count count, Less less,
                                  cudaStream_t stream = 0, SIMT_SITE) {
    if (storage) {
      cudaError_t error = details::submit(
          "cub::DeviceMergeSort::SortKeysCopy", stream, SIMT_PASS_SITE,
          [=](auto from, auto to) {
            for (size_t i = 0; i < (size_t)count; i++) to[i] = from[i];
          },
          in, out);
      if (error != cudaSuccess) return error;
    }
    return sort("cub::DeviceMergeSort::SortKeysCopy", storage, bytes, out, NullValues(), (size_t)count, less, stream,
                SIMT_PASS_SITE);
  }

 private:
  template <class Keys, class Values, class Less>
  static cudaError_t sort(const char *name, void *storage, size_t &bytes, Keys keys, Values values, size_t count,
                          Less comparison, cudaStream_t stream, const char *file, int line) {
    typedef details::value_of<Keys> Key;
    typedef details::value_of<Values> Value;
    constexpr bool pairs = !std::is_same_v<Values, NullValues>;
    size_t key_bytes = (count * sizeof(Key) + 255) / 256 * 256;
    cudaError_t error;
    if (details::only_asks(storage, bytes, key_bytes + (pairs ? count * sizeof(Value) : 0) + 256, &error)) return error;
    Key *other_keys = (Key *)(((size_t)storage + 255) / 256 * 256);
    Value *other_values = (Value *)((char *)other_keys + key_bytes);
    return details::submit(
        name, stream, file, line,
        [=](auto k, auto v, Key *k_other, Value *v_other) {
          details::merge_sort_pairs(k, v, k_other, v_other, count, comparison);
        },
        keys, values, other_keys, other_values);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_MERGE_SORT */
