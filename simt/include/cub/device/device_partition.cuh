/* cub/device/device_partition.cuh - the wanted elements to the front, the others to the end in reverse. -*- c++ -*- */
#ifndef SIMT_CUB_DEVICE_PARTITION
#define SIMT_CUB_DEVICE_PARTITION

#include "cub/util_device.cuh"

namespace cub {

struct DevicePartition {
  template <class In, class Out, class Selected, class Count, class Predicate>
  static cudaError_t If(void *storage, size_t &bytes, In in, Out out, Selected selected_out, Count count,
                        Predicate wanted, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DevicePartition::If", stream, SIMT_PASS_SITE,
        [=](auto from, auto to, auto selected) {
          auto want = wanted;
          size_t front = 0, back = (size_t)count;
          for (size_t i = 0; i < (size_t)count; i++) {
            details::value_of<In> item = from[i];
            to[want(item) ? front++ : --back] = item;
          }
          *selected = (details::stored_in<Selected, size_t>)front;
        },
        in, out, selected_out);
  }
  template <class In, class Flags, class Out, class Selected, class Count>
  static cudaError_t Flagged(void *storage, size_t &bytes, In in, Flags flags, Out out, Selected selected_out,
                             Count count, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DevicePartition::Flagged", stream, SIMT_PASS_SITE,
        [=](auto from, auto flag, auto to, auto selected) {
          size_t front = 0, back = (size_t)count;
          for (size_t i = 0; i < (size_t)count; i++) to[flag[i] ? front++ : --back] = from[i];
          *selected = (details::stored_in<Selected, size_t>)front;
        },
        in, flags, out, selected_out);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_PARTITION */
