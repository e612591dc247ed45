/* cub/block/block_load.cuh - a block reads a tile of memory, several items for each thread. -*- c++ -*- */
#ifndef SIMT_CUB_BLOCK_LOAD
#define SIMT_CUB_BLOCK_LOAD

#include "cub/block/block_exchange.cuh"

namespace cub {

enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,         /* thread t reads its own items, one after the other */
  BLOCK_LOAD_STRIPED,        /* items t, t + threads, .., and keeps them so */
  BLOCK_LOAD_VECTORIZE,      /* as DIRECT, in wide accesses */
  BLOCK_LOAD_TRANSPOSE,      /* reads striped, which coalesces, then exchanges */
  BLOCK_LOAD_WARP_TRANSPOSE, /* the same within each warp */
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};

template <class T, int items, class Iterator>
SIMT_INLINE void LoadDirectBlocked(int thread, Iterator from, T (&to)[items]) {
  for (int i = 0; i < items; i++) to[i] = from[thread * items + i];
}
template <class T, int items, class Iterator>
SIMT_INLINE void LoadDirectBlocked(int thread, Iterator from, T (&to)[items], int valid) {
  for (int i = 0; i < items; i++)
    if (thread * items + i < valid) to[i] = from[thread * items + i];
}
template <class T, class Default, int items, class Iterator>
SIMT_INLINE void LoadDirectBlocked(int thread, Iterator from, T (&to)[items], int valid, Default otherwise) {
  for (int i = 0; i < items; i++) to[i] = thread * items + i < valid ? (T)from[thread * items + i] : (T)otherwise;
}
template <int threads, class T, int items, class Iterator>
SIMT_INLINE void LoadDirectStriped(int thread, Iterator from, T (&to)[items]) {
  for (int i = 0; i < items; i++) to[i] = from[thread + i * threads];
}
template <int threads, class T, int items, class Iterator>
SIMT_INLINE void LoadDirectStriped(int thread, Iterator from, T (&to)[items], int valid) {
  for (int i = 0; i < items; i++)
    if (thread + i * threads < valid) to[i] = from[thread + i * threads];
}
template <int threads, class T, class Default, int items, class Iterator>
SIMT_INLINE void LoadDirectStriped(int thread, Iterator from, T (&to)[items], int valid, Default otherwise) {
  for (int i = 0; i < items; i++) to[i] = thread + i * threads < valid ? (T)from[thread + i * threads] : (T)otherwise;
}

template <class T, int block_x, int items, BlockLoadAlgorithm algorithm = BLOCK_LOAD_DIRECT, int block_y = 1,
          int block_z = 1, int unused_arch = 0>
class BlockLoad {
 public:
  typedef details::TempStorage TempStorage;

  BlockLoad() : storage_(nullptr) {}
  explicit BlockLoad(TempStorage &storage) : storage_(&storage) {}

  template <class Iterator>
  SIMT_INLINE void Load(Iterator from, T (&to)[items], SIMT_SITE) {
    load(from, to, threads * items, nullptr, SIMT_PASS_SITE);
  }
  /* The first `valid` items of the tile exist; the others are not set. */
  template <class Iterator>
  SIMT_INLINE void Load(Iterator from, T (&to)[items], int valid, SIMT_SITE) {
    load(from, to, valid, nullptr, SIMT_PASS_SITE);
  }
  template <class Iterator, class Default>
  SIMT_INLINE void Load(Iterator from, T (&to)[items], int valid, Default otherwise, SIMT_SITE) {
    T value = (T)otherwise;
    load(from, to, valid, &value, SIMT_PASS_SITE);
  }

 private:
  static constexpr int threads = block_x * block_y * block_z;
  TempStorage *storage_;

  template <class Iterator>
  SIMT_INLINE void load(Iterator from, T (&to)[items], int valid, const T *otherwise, const char *file, int line) {
    constexpr details::Arrangement arrangement =
        algorithm == BLOCK_LOAD_DIRECT || algorithm == BLOCK_LOAD_VECTORIZE    ? details::BLOCKED
        : algorithm == BLOCK_LOAD_STRIPED || algorithm == BLOCK_LOAD_TRANSPOSE ? details::STRIPED
                                                                               : details::WARP_STRIPED;
    int thread = (int)simt_thread_rank();
    for (int i = 0; i < items; i++) {
      size_t where = details::place(arrangement, threads, items, thread, i);
      if (where < (size_t)valid)
        to[i] = from[where];
      else if (otherwise)
        to[i] = *otherwise;
    }
    if (arrangement != details::BLOCKED && algorithm != BLOCK_LOAD_STRIPED)
      details::exchange(to, to, nullptr, arrangement, details::BLOCKED, storage_, "cub::BlockLoad", file, line);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_LOAD */
