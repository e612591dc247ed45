/* cub/device/device_scan.cuh - element i becomes the combination of the elements up to i, or before i. -*- c++ -*- */
#ifndef SIMT_CUB_DEVICE_SCAN
#define SIMT_CUB_DEVICE_SCAN

#include "cub/util_device.cuh"

namespace cub {

struct DeviceScan {
  template <class In, class Out, class Count>
  static cudaError_t ExclusiveSum(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0,
                                  SIMT_SITE) {
    return scan<true, false>("cub::DeviceScan::ExclusiveSum", storage, bytes, in, out, cub::Sum(),
                             details::value_of<In>(), (size_t)count, stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Count>
  static cudaError_t InclusiveSum(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0,
                                  SIMT_SITE) {
    return scan<false, true>("cub::DeviceScan::InclusiveSum", storage, bytes, in, out, cub::Sum(),
                             details::value_of<In>(), (size_t)count, stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Op, class T, class Count>
  static cudaError_t ExclusiveScan(void *storage, size_t &bytes, In in, Out out, Op op, T initial, Count count,
                                   cudaStream_t stream = 0, SIMT_SITE) {
    return scan<true, false>("cub::DeviceScan::ExclusiveScan", storage, bytes, in, out, op, initial, (size_t)count,
                             stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Op, class Count>
  static cudaError_t InclusiveScan(void *storage, size_t &bytes, In in, Out out, Op op, Count count,
                                   cudaStream_t stream = 0, SIMT_SITE) {
    return scan<false, true>("cub::DeviceScan::InclusiveScan", storage, bytes, in, out, op, details::value_of<In>(),
                             (size_t)count, stream, SIMT_PASS_SITE);
  }
  template <class In, class Out, class Op, class T, class Count>
  static cudaError_t InclusiveScanInit(void *storage, size_t &bytes, In in, Out out, Op op, T initial, Count count,
                                       cudaStream_t stream = 0, SIMT_SITE) {
    return scan<true, true>("cub::DeviceScan::InclusiveScanInit", storage, bytes, in, out, op, initial, (size_t)count,
                            stream, SIMT_PASS_SITE);
  }

  /* In place. */
  template <class Data, class Count, std::enable_if_t<std::is_integral_v<Count>, int> = 0>
  static cudaError_t ExclusiveSum(void *storage, size_t &bytes, Data data, Count count, cudaStream_t stream = 0,
                                  SIMT_SITE) {
    return ExclusiveSum(storage, bytes, data, data, count, stream, SIMT_PASS_SITE);
  }
  template <class Data, class Count, std::enable_if_t<std::is_integral_v<Count>, int> = 0>
  static cudaError_t InclusiveSum(void *storage, size_t &bytes, Data data, Count count, cudaStream_t stream = 0,
                                  SIMT_SITE) {
    return InclusiveSum(storage, bytes, data, data, count, stream, SIMT_PASS_SITE);
  }

  /* Beginning anew with each run of equal keys. */
  template <class Keys, class In, class Out, class Count, class Equal = Equality>
  static cudaError_t ExclusiveSumByKey(void *storage, size_t &bytes, Keys keys, In in, Out out, Count count,
                                       Equal equal = Equal(), cudaStream_t stream = 0, SIMT_SITE) {
    return by_key<false>("cub::DeviceScan::ExclusiveSumByKey", storage, bytes, keys, in, out, cub::Sum(),
                         details::value_of<In>(), (size_t)count, equal, stream, SIMT_PASS_SITE);
  }
  template <class Keys, class In, class Out, class Count, class Equal = Equality>
  static cudaError_t InclusiveSumByKey(void *storage, size_t &bytes, Keys keys, In in, Out out, Count count,
                                       Equal equal = Equal(), cudaStream_t stream = 0, SIMT_SITE) {
    return by_key<true>("cub::DeviceScan::InclusiveSumByKey", storage, bytes, keys, in, out, cub::Sum(),
                        details::value_of<In>(), (size_t)count, equal, stream, SIMT_PASS_SITE);
  }
  template <class Keys, class In, class Out, class Op, class T, class Count, class Equal = Equality>
  static cudaError_t ExclusiveScanByKey(void *storage, size_t &bytes, Keys keys, In in, Out out, Op op, T initial,
                                        Count count, Equal equal = Equal(), cudaStream_t stream = 0, SIMT_SITE) {
    return by_key<false>("cub::DeviceScan::ExclusiveScanByKey", storage, bytes, keys, in, out, op, initial,
                         (size_t)count, equal, stream, SIMT_PASS_SITE);
  }
  template <class Keys, class In, class Out, class Op, class Count, class Equal = Equality>
  static cudaError_t InclusiveScanByKey(void *storage, size_t &bytes, Keys keys, In in, Out out, Op op, Count count,
                                        Equal equal = Equal(), cudaStream_t stream = 0, SIMT_SITE) {
    return by_key<true>("cub::DeviceScan::InclusiveScanByKey", storage, bytes, keys, in, out, op,
                        details::value_of<In>(), (size_t)count, equal, stream, SIMT_PASS_SITE);
  }

 private:
  template <bool has_initial, bool inclusive, class In, class Out, class Op, class T>
  static cudaError_t scan(const char *name, void *storage, size_t &bytes, In in, Out out, Op op, T initial,
                          size_t count, cudaStream_t stream, const char *file, int line) {
    typedef details::result_of<Op, T, details::value_of<In>> Result;
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        name, stream, file, line,
        [=](auto from, auto to) {
          auto combine = op;
          Result running = (Result)initial;
          for (size_t i = 0; i < count; i++) {
            details::value_of<In> item = from[i]; /* `to` may be `from` */
            if (!inclusive) to[i] = running;
            running = i == 0 && !has_initial ? (Result)item : (Result)combine(running, item);
            if (inclusive) to[i] = running;
          }
        },
        in, out);
  }

  template <bool inclusive, class Keys, class In, class Out, class Op, class T, class Equal>
  static cudaError_t by_key(const char *name, void *storage, size_t &bytes, Keys keys, In in, Out out, Op op, T initial,
                            size_t count, Equal equal, cudaStream_t stream, const char *file, int line) {
    typedef details::result_of<Op, T, details::value_of<In>> Result;
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        name, stream, file, line,
        [=](auto k, auto from, auto to) {
          auto combine = op;
          auto same = equal;
          Result running = (Result)initial;
          for (size_t i = 0; i < count; i++) {
            bool first = i == 0 || !same(k[i - 1], k[i]);
            details::value_of<In> item = from[i];
            if (first) running = (Result)initial;
            if (!inclusive) to[i] = running;
            running = first && inclusive ? (Result)item : (Result)combine(running, item);
            if (inclusive) to[i] = running;
          }
        },
        keys, in, out);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_SCAN */
