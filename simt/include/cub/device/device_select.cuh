/* cub/device/device_select.cuh - the elements that are wanted, in their order. -*- c++ -*- */
#ifndef SIMT_CUB_DEVICE_SELECT
#define SIMT_CUB_DEVICE_SELECT

#include "cub/util_device.cuh"

namespace cub {

struct DeviceSelect {
  template <class In, class Out, class Selected, class Count, class Predicate>
  static cudaError_t If(void *storage, size_t &bytes, In in, Out out, Selected selected_out, Count count,
                        Predicate wanted, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceSelect::If", stream, SIMT_PASS_SITE,
        [=](auto from, auto to, auto selected) {
          auto want = wanted;
          size_t found = 0;
          for (size_t i = 0; i < (size_t)count; i++) {
            details::value_of<In> item = from[i];
            if (want(item)) to[found++] = item;
          }
          *selected = (details::stored_in<Selected, size_t>)found;
        },
        in, out, selected_out);
  }
  template <class In, class Flags, class Out, class Selected, class Count>
  static cudaError_t Flagged(void *storage, size_t &bytes, In in, Flags flags, Out out, Selected selected_out,
                             Count count, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceSelect::Flagged", stream, SIMT_PASS_SITE,
        [=](auto from, auto flag, auto to, auto selected) {
          size_t found = 0;
          for (size_t i = 0; i < (size_t)count; i++)
            if (flag[i]) to[found++] = from[i];
          *selected = (details::stored_in<Selected, size_t>)found;
        },
        in, flags, out, selected_out);
  }
  /* The first of each run of equal elements. */
  template <class In, class Out, class Selected, class Count>
  static cudaError_t Unique(void *storage, size_t &bytes, In in, Out out, Selected selected_out, Count count,
                            cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceSelect::Unique", stream, SIMT_PASS_SITE,
        [=](auto from, auto to, auto selected) {
          size_t found = 0;
          details::value_of<In> last = details::value_of<In>();
          for (size_t i = 0; i < (size_t)count; i++) {
            details::value_of<In> item = from[i];
            if (i == 0 || !(item == last)) to[found++] = item;
            last = item;
          }
          *selected = (details::stored_in<Selected, size_t>)found;
        },
        in, out, selected_out);
  }
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Selected, class Count>
  static cudaError_t UniqueByKey(void *storage, size_t &bytes, Keys keys, Values values, KeysOut keys_out,
                                 ValuesOut values_out, Selected selected_out, Count count, cudaStream_t stream = 0,
                                 SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceSelect::UniqueByKey", stream, SIMT_PASS_SITE,
        [=](auto k, auto v, auto k_out, auto v_out, auto selected) {
          size_t found = 0;
          details::value_of<Keys> last = details::value_of<Keys>();
          for (size_t i = 0; i < (size_t)count; i++) {
            details::value_of<Keys> key = k[i];
            if (i == 0 || !(key == last)) {
              k_out[found] = key;
              v_out[found++] = v[i];
            }
            last = key;
          }
          *selected = (details::stored_in<Selected, size_t>)found;
        },
        keys, values, keys_out, values_out, selected_out);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_SELECT */
