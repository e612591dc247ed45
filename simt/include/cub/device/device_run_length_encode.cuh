/* cub/device/device_run_length_encode.cuh - runs of equal elements as element and length. -*- c++ -*- */
#ifndef SIMT_CUB_DEVICE_RUN_LENGTH_ENCODE
#define SIMT_CUB_DEVICE_RUN_LENGTH_ENCODE

#include "cub/util_device.cuh"

namespace cub {

struct DeviceRunLengthEncode {
  template <class In, class UniqueOut, class CountsOut, class Runs, class Count>
  static cudaError_t Encode(void *storage, size_t &bytes, In in, UniqueOut unique_out, CountsOut counts_out,
                            Runs runs_out, Count count, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceRunLengthEncode::Encode", stream, SIMT_PASS_SITE,
        [=](auto from, auto unique, auto counts, auto runs) {
          size_t found = 0;
          for (size_t i = 0; i < (size_t)count; found++) {
            details::value_of<In> item = from[i];
            size_t start = i;
            for (i++; i < (size_t)count && item == from[i];) i++;
            unique[found] = item;
            counts[found] = (details::stored_in<CountsOut, size_t>)(i - start);
          }
          *runs = (details::stored_in<Runs, size_t>)found;
        },
        in, unique_out, counts_out, runs_out);
  }
  /* Only runs of two and more, as place and length. */
  template <class In, class OffsetsOut, class LengthsOut, class Runs, class Count>
  static cudaError_t NonTrivialRuns(void *storage, size_t &bytes, In in, OffsetsOut offsets_out, LengthsOut lengths_out,
                                    Runs runs_out, Count count, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceRunLengthEncode::NonTrivialRuns", stream, SIMT_PASS_SITE,
        [=](auto from, auto offsets, auto lengths, auto runs) {
          size_t found = 0;
          for (size_t i = 0; i < (size_t)count;) {
            details::value_of<In> item = from[i];
            size_t start = i;
            for (i++; i < (size_t)count && item == from[i];) i++;
            if (i - start < 2) continue;
            offsets[found] = (details::stored_in<OffsetsOut, size_t>)start;
            lengths[found++] = (details::stored_in<LengthsOut, size_t>)(i - start);
          }
          *runs = (details::stored_in<Runs, size_t>)found;
        },
        in, offsets_out, lengths_out, runs_out);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_RUN_LENGTH_ENCODE */
