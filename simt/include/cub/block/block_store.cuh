/* cub/block/block_store.cuh - a block writes a tile of memory, several items for each thread. -*- c++ -*- */
#ifndef SIMT_CUB_BLOCK_STORE
#define SIMT_CUB_BLOCK_STORE

#include "cub/block/block_exchange.cuh"

namespace cub {

enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

template <class T, int items, class Iterator>
SIMT_INLINE void StoreDirectBlocked(int thread, Iterator to, T (&from)[items]) {
  for (int i = 0; i < items; i++) to[thread * items + i] = from[i];
}
template <class T, int items, class Iterator>
SIMT_INLINE void StoreDirectBlocked(int thread, Iterator to, T (&from)[items], int valid) {
  for (int i = 0; i < items; i++)
    if (thread * items + i < valid) to[thread * items + i] = from[i];
}
template <int threads, class T, int items, class Iterator>
SIMT_INLINE void StoreDirectStriped(int thread, Iterator to, T (&from)[items]) {
  for (int i = 0; i < items; i++) to[thread + i * threads] = from[i];
}
template <int threads, class T, int items, class Iterator>
SIMT_INLINE void StoreDirectStriped(int thread, Iterator to, T (&from)[items], int valid) {
  for (int i = 0; i < items; i++)
    if (thread + i * threads < valid) to[thread + i * threads] = from[i];
}

template <class T, int block_x, int items, BlockStoreAlgorithm algorithm = BLOCK_STORE_DIRECT, int block_y = 1,
          int block_z = 1, int unused_arch = 0>
class BlockStore {
 public:
  typedef details::TempStorage TempStorage;

  BlockStore() : storage_(nullptr) {}
  explicit BlockStore(TempStorage &storage) : storage_(&storage) {}

  template <class Iterator>
  SIMT_INLINE void Store(Iterator to, T (&from)[items], SIMT_SITE) {
    store(to, from, threads * items, SIMT_PASS_SITE);
  }
  template <class Iterator>
  SIMT_INLINE void Store(Iterator to, T (&from)[items], int valid, SIMT_SITE) {
    store(to, from, valid, SIMT_PASS_SITE);
  }

 private:
  static constexpr int threads = block_x * block_y * block_z;
  TempStorage *storage_;

  template <class Iterator>
  SIMT_INLINE void store(Iterator to, T (&from)[items], int valid, const char *file, int line) {
    constexpr details::Arrangement arrangement =
        algorithm == BLOCK_STORE_DIRECT || algorithm == BLOCK_STORE_VECTORIZE    ? details::BLOCKED
        : algorithm == BLOCK_STORE_STRIPED || algorithm == BLOCK_STORE_TRANSPOSE ? details::STRIPED
                                                                                 : details::WARP_STRIPED;
    if (arrangement != details::BLOCKED && algorithm != BLOCK_STORE_STRIPED)
      details::exchange(from, from, nullptr, details::BLOCKED, arrangement, storage_, "cub::BlockStore", file, line);
    int thread = (int)simt_thread_rank();
    for (int i = 0; i < items; i++) {
      size_t where = details::place(arrangement, threads, items, thread, i);
      if (where < (size_t)valid) to[where] = from[i];
    }
  }
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_STORE */
