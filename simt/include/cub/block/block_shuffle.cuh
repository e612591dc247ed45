/* cub/block/block_shuffle.cuh - items move to a thread some ranks away. -*- c++ -*- */
#ifndef SIMT_CUB_BLOCK_SHUFFLE
#define SIMT_CUB_BLOCK_SHUFFLE

#include "cub/util_type.cuh"

namespace cub {

namespace details {

template <class T>
struct OffsetPost : simt::BlockPost {
  T value, result;
  int distance;
  bool around;
};

template <class T>
SIMT_UNSEEN void offset_complete(simt::BlockPost **posts, int count) {
  OffsetPost<T> **post = (OffsetPost<T> **)posts;
  for (int i = 0; i < count; i++) {
    int from = i + post[i]->distance;
    if (post[i]->around) from = (from % count + count) % count;
    post[i]->result = from >= 0 && from < count ? post[from]->value : post[i]->value;
  }
}

}  // namespace details

template <class T, int block_x, int block_y = 1, int block_z = 1, int unused_arch = 0>
class BlockShuffle {
 public:
  typedef details::TempStorage TempStorage;

  BlockShuffle() : storage_(nullptr) {}
  explicit BlockShuffle(TempStorage &storage) : storage_(&storage) {}

  /* From the thread `distance` ranks further on; without one, the own value. */
  SIMT_INLINE void Offset(T input, T &output, int distance = 1, SIMT_SITE) {
    output = shuffle(input, distance, false, SIMT_PASS_SITE);
  }
  /* The same round the block. */
  SIMT_INLINE void Rotate(T input, T &output, unsigned distance = 1, SIMT_SITE) {
    output = shuffle(input, (int)distance, true, SIMT_PASS_SITE);
  }

 private:
  TempStorage *storage_;

  SIMT_INLINE T shuffle(T input, int distance, bool around, const char *file, int line) {
    details::OffsetPost<T> post;
    post.value = input;
    post.distance = distance;
    post.around = around;
    details::meet(&post, details::offset_complete<T>, storage_, "cub::BlockShuffle", file, line);
    return post.result;
  }
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_SHUFFLE */
