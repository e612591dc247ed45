/* cub/device/device_reduce.cuh - one value from many: sums, extremes, anything. -*- c++ -*- */
#ifndef SIMT_CUB_DEVICE_REDUCE
#define SIMT_CUB_DEVICE_REDUCE

#include "cub/util_device.cuh"

namespace cub {

struct DeviceReduce {
  template <class In, class Out, class Op, class T, class Count>
  static cudaError_t Reduce(void *storage, size_t &bytes, In in, Out out, Count count, Op op, T initial,
                            cudaStream_t stream = 0, SIMT_SITE) {
    return reduce("cub::DeviceReduce::Reduce", storage, bytes, in, out, (size_t)count, op, initial, stream,
                  SIMT_PASS_SITE);
  }
  template <class In, class Out, class Count>
  static cudaError_t Sum(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0,
                         SIMT_SITE) {
    typedef details::stored_in<Out, details::value_of<In>> T;
    return reduce("cub::DeviceReduce::Sum", storage, bytes, in, out, (size_t)count, cub::Sum(), T(), stream,
                  SIMT_PASS_SITE);
  }
  template <class In, class Out, class Count>
  static cudaError_t Min(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0,
                         SIMT_SITE) {
    return reduce("cub::DeviceReduce::Min", storage, bytes, in, out, (size_t)count, cub::Min(),
                  details::greatest<details::value_of<In>>(), stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Count>
  static cudaError_t Max(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0,
                         SIMT_SITE) {
    return reduce("cub::DeviceReduce::Max", storage, bytes, in, out, (size_t)count, cub::Max(),
                  details::least<details::value_of<In>>(), stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Op, class Transform, class T, class Count>
  static cudaError_t TransformReduce(void *storage, size_t &bytes, In in, Out out, Count count, Op op,
                                     Transform transform, T initial, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceReduce::TransformReduce", stream, SIMT_PASS_SITE,
        [=](auto from, auto to) {
          auto combine = op;
          auto change = transform;
          T sum = initial;
          for (size_t i = 0; i < (size_t)count; i++) sum = combine(sum, change(from[i]));
          *to = sum;
        },
        in, out);
  }

  /* The extreme and the first place where it is; of nothing: the worst value, at 1 (as a pair) or 0. */
  template <class In, class Out, class Index, class Count>
  static cudaError_t ArgMin(void *storage, size_t &bytes, In in, Out value_out, Index index_out, Count count,
                            cudaStream_t stream = 0, SIMT_SITE) {
    return extreme<false>(storage, bytes, in, value_out, index_out, (size_t)count, stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Index, class Count>
  static cudaError_t ArgMax(void *storage, size_t &bytes, In in, Out value_out, Index index_out, Count count,
                            cudaStream_t stream = 0, SIMT_SITE) {
    return extreme<true>(storage, bytes, in, value_out, index_out, (size_t)count, stream, SIMT_PASS_SITE);
  }
  template <class In, class T>
  static cudaError_t ArgMin(void *storage, size_t &bytes, In in, KeyValuePair<int, T> *out, int count,
                            cudaStream_t stream = 0, SIMT_SITE) {
    return extreme_pair<false>(storage, bytes, in, out, (size_t)count, stream, SIMT_PASS_SITE);
  }
  template <class In, class T>
  static cudaError_t ArgMax(void *storage, size_t &bytes, In in, KeyValuePair<int, T> *out, int count,
                            cudaStream_t stream = 0, SIMT_SITE) {
    return extreme_pair<true>(storage, bytes, in, out, (size_t)count, stream, SIMT_PASS_SITE);
  }

  /* For each run of equal keys: the key, and the combination of its values. */
  template <class Keys, class UniqueOut, class Values, class Aggregates, class Runs, class Op, class Count>
  static cudaError_t ReduceByKey(void *storage, size_t &bytes, Keys keys, UniqueOut unique_out, Values values,
                                 Aggregates aggregates_out, Runs runs_out, Op op, Count count, cudaStream_t stream = 0,
                                 SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceReduce::ReduceByKey", stream, SIMT_PASS_SITE,
        [=](auto k, auto v, auto unique, auto aggregates, auto runs) {
          auto combine = op;
          size_t found = 0;
          for (size_t i = 0; i < (size_t)count; found++) {
            auto key = details::value_of<Keys>(k[i]);
            details::value_of<Values> sum = v[i];
            for (i++; i < (size_t)count && key == k[i]; i++) sum = combine(sum, v[i]);
            unique[found] = key;
            aggregates[found] = sum;
          }
          *runs = (details::stored_in<Runs, size_t>)found;
        },
        keys, values, unique_out, aggregates_out, runs_out);
  }

 private:
  template <class In, class Out, class Op, class T>
  static cudaError_t reduce(const char *name, void *storage, size_t &bytes, In in, Out out, size_t count, Op op,
                            T initial, cudaStream_t stream, const char *file, int line) {
    typedef details::result_of<Op, T, details::value_of<In>> Result;
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        name, stream, file, line,
        [=](auto from, auto to) {
          auto combine = op;
          Result result = (Result)initial;
          if (count > 0) result = combine(result, details::fold<Result>(from, count, combine));
          *to = result;
        },
        in, out);
  }

  template <bool greatest, class In>
  static size_t place_of_extreme(In in, size_t count) {
    size_t place = 0;
    for (size_t i = 1; i < count; i++)
      if (greatest ? in[place] < in[i] : in[i] < in[place]) place = i;
    return place;
  }

  template <bool greatest, class In, class Out, class Index>
  static cudaError_t extreme(void *storage, size_t &bytes, In in, Out value_out, Index index_out, size_t count,
                             cudaStream_t stream, const char *file, int line) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        greatest ? "cub::DeviceReduce::ArgMax" : "cub::DeviceReduce::ArgMin", stream, file, line,
        [=](auto from, auto value, auto index) {
          typedef details::value_of<In> T;
          size_t place = place_of_extreme<greatest>(from, count);
          *value = count > 0 ? (T)from[place] : greatest ? details::least<T>() : details::greatest<T>();
          *index = (details::stored_in<Index, size_t>)place;
        },
        in, value_out, index_out);
  }

  template <bool greatest, class In, class T>
  static cudaError_t extreme_pair(void *storage, size_t &bytes, In in, KeyValuePair<int, T> *out, size_t count,
                                  cudaStream_t stream, const char *file, int line) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        greatest ? "cub::DeviceReduce::ArgMax" : "cub::DeviceReduce::ArgMin", stream, file, line,
        [=](auto from, auto to) {
          int place = (int)place_of_extreme<greatest>(from, count);
          to->key = count > 0 ? place : 1;
          to->value = count > 0 ? (T)from[place] : greatest ? details::least<T>() : details::greatest<T>();
        },
        in, out);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_REDUCE */
