/* cub/device/device_segmented_reduce.cuh - one value from each segment [begin, end) of many. -*- c++ -*- */
#ifndef SIMT_CUB_DEVICE_SEGMENTED_REDUCE
#define SIMT_CUB_DEVICE_SEGMENTED_REDUCE

#include "cub/util_device.cuh"

namespace cub {

struct DeviceSegmentedReduce {
  template <class In, class Out, class Begin, class End, class Op, class T, class Count>
  static cudaError_t Reduce(void *storage, size_t &bytes, In in, Out out, Count segments, Begin begin, End end, Op op,
                            T initial, cudaStream_t stream = 0, SIMT_SITE) {
    return reduce("cub::DeviceSegmentedReduce::Reduce", storage, bytes, in, out, (size_t)segments, begin, end, op,
                  initial, stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Begin, class End, class Count>
  static cudaError_t Sum(void *storage, size_t &bytes, In in, Out out, Count segments, Begin begin, End end,
                         cudaStream_t stream = 0, SIMT_SITE) {
    typedef details::stored_in<Out, details::value_of<In>> T;
    return reduce("cub::DeviceSegmentedReduce::Sum", storage, bytes, in, out, (size_t)segments, begin, end, cub::Sum(),
                  T(), stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Begin, class End, class Count>
  static cudaError_t Min(void *storage, size_t &bytes, In in, Out out, Count segments, Begin begin, End end,
                         cudaStream_t stream = 0, SIMT_SITE) {
    return reduce("cub::DeviceSegmentedReduce::Min", storage, bytes, in, out, (size_t)segments, begin, end, cub::Min(),
                  details::greatest<details::value_of<In>>(), stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Begin, class End, class Count>
  static cudaError_t Max(void *storage, size_t &bytes, In in, Out out, Count segments, Begin begin, End end,
                         cudaStream_t stream = 0, SIMT_SITE) {
    return reduce("cub::DeviceSegmentedReduce::Max", storage, bytes, in, out, (size_t)segments, begin, end, cub::Max(),
                  details::least<details::value_of<In>>(), stream, SIMT_PASS_SITE);
  }

 private:
  template <class In, class Out, class Begin, class End, class Op, class T>
  static cudaError_t reduce(const char *name, void *storage, size_t &bytes, In in, Out out, size_t segments,
                            Begin begin, End end, Op op, T initial, cudaStream_t stream, const char *file, int line) {
    typedef details::result_of<Op, T, details::value_of<In>> Result;
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        name, stream, file, line,
        [=](auto from, auto to, auto first, auto last) {
          auto combine = op;
          for (size_t s = 0; s < segments; s++) {
            Result result = (Result)initial;
            auto start = first[s];
            auto stop = last[s];
            if (start < stop)
              result = combine(result, details::fold<Result>(from + start, (size_t)(stop - start), combine));
            to[s] = result;
          }
        },
        in, out, begin, end);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_SEGMENTED_REDUCE */
