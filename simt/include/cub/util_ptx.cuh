/* cub/util_ptx.cuh - LaneId() and its kin. -*- c++ -*- */
#ifndef SIMT_CUB_UTIL_PTX
#define SIMT_CUB_UTIL_PTX

#include "cub/util_type.cuh"

namespace cub {

inline unsigned LaneId() { return simt_thread_rank() % SIMT_WARP_SIZE; }
inline unsigned WarpId() { return simt_thread_rank() / SIMT_WARP_SIZE; }
inline int RowMajorTid(int, int, int) { return (int)simt_thread_rank(); }
inline unsigned LaneMaskLt() { return (1u << LaneId()) - 1; }
inline unsigned LaneMaskLe() { return (2u << LaneId()) - 1; }
inline unsigned LaneMaskGt() { return ~LaneMaskLe(); }
inline unsigned LaneMaskGe() { return ~LaneMaskLt(); }
template <int logical_threads, class T>
T ShuffleIndex(T input, int source, unsigned mask, SIMT_SITE) {
  return simt::shuffle<simt::SHUFFLE_INDEX>(mask, input, (unsigned)source, logical_threads, "cub::ShuffleIndex",
                                            SIMT_PASS_SITE);
}

}  // namespace cub

#endif /* SIMT_CUB_UTIL_PTX */
