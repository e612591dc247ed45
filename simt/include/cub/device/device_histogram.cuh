/* cub/device/device_histogram.cuh - counts of samples in bins of equal or of given width. -*- c++ -*- */
#ifndef SIMT_CUB_DEVICE_HISTOGRAM
#define SIMT_CUB_DEVICE_HISTOGRAM

#include "cub/util_device.cuh"

namespace cub {

struct DeviceHistogram {
  /* levels - 1 bins of equal width in [lower, upper); samples outside are not counted. */
  template <class In, class Counter, class Level, class Offset>
  static cudaError_t HistogramEven(void *storage, size_t &bytes, In samples, Counter *histogram, int levels,
                                   Level lower, Level upper, Offset count, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceHistogram::HistogramEven", stream, SIMT_PASS_SITE,
        [=](auto from, auto bins) {
          for (int b = 0; b < levels - 1; b++) bins[b] = 0;
          for (size_t i = 0; i < (size_t)count; i++) even(from[i], bins, levels, lower, upper);
        },
        samples, histogram);
  }
  /* Bin b has the samples in [level b, level b + 1). */
  template <class In, class Counter, class Level, class Offset>
  static cudaError_t HistogramRange(void *storage, size_t &bytes, In samples, Counter *histogram, int levels,
                                    const Level *level, Offset count, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    return details::submit(
        "cub::DeviceHistogram::HistogramRange", stream, SIMT_PASS_SITE,
        [=](auto from, auto bins, auto limit) {
          for (int b = 0; b < levels - 1; b++) bins[b] = 0;
          for (size_t i = 0; i < (size_t)count; i++) {
            details::value_of<In> sample = from[i];
            int low = 0, high = levels; /* the last level that is not above the sample */
            while (high - low > 1) {
              int middle = (low + high) / 2;
              if ((Level)sample < limit[middle])
                high = middle;
              else
                low = middle;
            }
            if (low < levels - 1 && !((Level)sample < limit[0])) bins[low]++;
          }
        },
        samples, histogram, level);
  }
  /* Of pixels with `channels` samples each, the first `active` channels. */
  template <int channels, int active, class In, class Counter, class Level, class Offset>
  static cudaError_t MultiHistogramEven(void *storage, size_t &bytes, In samples, Counter *histogram[active],
                                        const int levels[active], const Level lower[active], const Level upper[active],
                                        Offset pixels, cudaStream_t stream = 0, SIMT_SITE) {
    cudaError_t error;
    if (details::only_asks(storage, bytes, 1, &error)) return error;
    for (int c = 0; c < active && error == cudaSuccess; c++) {
      int bins = levels[c];
      Level low = lower[c], high = upper[c];
      error = details::submit(
          "cub::DeviceHistogram::MultiHistogramEven", stream, SIMT_PASS_SITE,
          [=](auto from, auto counts) {
            for (int b = 0; b < bins - 1; b++) counts[b] = 0;
            for (size_t i = 0; i < (size_t)pixels; i++) even(from[i * channels + c], counts, bins, low, high);
          },
          samples, histogram[c]);
    }
    return error;
  }

 private:
  template <class Sample, class Counter, class Level>
  static void even(Sample sample, Counter *bins, int levels, Level lower, Level upper) {
    typedef std::common_type_t<Sample, Level> T;
    if ((T)sample < (T)lower || !((T)sample < (T)upper)) return;
    int bin;
    if constexpr (std::is_integral_v<T>)
      bin = (int)((unsigned long long)((T)sample - (T)lower) * (unsigned long long)(levels - 1) /
                  (unsigned long long)((T)upper - (T)lower));
    else
      bin = (int)(((T)sample - (T)lower) * ((T)(levels - 1) / ((T)upper - (T)lower)));
    bins[bin < levels - 1 ? bin : levels - 2]++;
  }
};

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_HISTOGRAM */
