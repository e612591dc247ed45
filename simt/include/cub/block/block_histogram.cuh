/* cub/block/block_histogram.cuh - counts the items of a block in bins of shared memory. -*- c++ -*- */
#ifndef SIMT_CUB_BLOCK_HISTOGRAM
#define SIMT_CUB_BLOCK_HISTOGRAM

#include "cub/util_type.cuh"

namespace cub {

enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

template <class T, int block_x, int items, int bins, BlockHistogramAlgorithm algorithm = BLOCK_HISTO_SORT,
          int block_y = 1, int block_z = 1, int unused_arch = 0>
class BlockHistogram {
 public:
  typedef details::TempStorage TempStorage;

  BlockHistogram() {}
  explicit BlockHistogram(TempStorage &) {}

  /* Needs a barrier before the first count. */
  template <class Counter>
  SIMT_INLINE void InitHistogram(Counter histogram[bins]) {
    for (int i = (int)simt_thread_rank(); i < bins; i += block_x * block_y * block_z) histogram[i] = 0;
  }
  template <class Counter>
  SIMT_INLINE void Composite(T (&input)[items], Counter histogram[bins]) {
    for (int i = 0; i < items; i++) __atomic_fetch_add(&histogram[(size_t)input[i]], 1, __ATOMIC_RELAXED);
  }
  template <class Counter>
  SIMT_INLINE void Histogram(T (&input)[items], Counter histogram[bins], SIMT_SITE) {
    InitHistogram(histogram);
    simt_block_barrier(0, "cub::BlockHistogram", SIMT_PASS_SITE);
    Composite(input, histogram);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_HISTOGRAM */
