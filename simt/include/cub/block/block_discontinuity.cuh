/* cub/block/block_discontinuity.cuh - marks items that differ from their neighbour. -*- c++ -*- */
#ifndef SIMT_CUB_BLOCK_DISCONTINUITY
#define SIMT_CUB_BLOCK_DISCONTINUITY

#include "cub/thread/thread_operators.cuh"

namespace cub {

namespace details {

template <class T>
struct NeighbourPost : simt::BlockPost {
  T first, last;
  T before, after; /* of the neighbouring threads */
};

template <class T>
SIMT_UNSEEN void neighbour_complete(simt::BlockPost **posts, int count) {
  NeighbourPost<T> **post = (NeighbourPost<T> **)posts;
  for (int i = 0; i < count; i++) {
    if (i > 0) post[i]->before = post[i - 1]->last;
    if (i + 1 < count) post[i]->after = post[i + 1]->first;
  }
}

}  // namespace details

template <class T, int block_x, int block_y = 1, int block_z = 1, int unused_arch = 0>
class BlockDiscontinuity {
 public:
  typedef details::TempStorage TempStorage;

  BlockDiscontinuity() : storage_(nullptr) {}
  explicit BlockDiscontinuity(TempStorage &storage) : storage_(&storage) {}

  /* A head differs from the item before it; the block's first item always does, unless its predecessor is given. */
  template <int items, class Flag, class Op>
  SIMT_INLINE void FlagHeads(Flag (&heads)[items], T (&input)[items], Op differ, SIMT_SITE) {
    flag(heads, (Flag *)nullptr, input, differ, nullptr, nullptr, SIMT_PASS_SITE);
  }
  template <int items, class Flag, class Op>
  SIMT_INLINE void FlagHeads(Flag (&heads)[items], T (&input)[items], Op differ, T predecessor, SIMT_SITE) {
    flag(heads, (Flag *)nullptr, input, differ, &predecessor, nullptr, SIMT_PASS_SITE);
  }
  template <int items, class Flag, class Op>
  SIMT_INLINE void FlagTails(Flag (&tails)[items], T (&input)[items], Op differ, SIMT_SITE) {
    flag((Flag *)nullptr, tails, input, differ, nullptr, nullptr, SIMT_PASS_SITE);
  }
  template <int items, class Flag, class Op>
  SIMT_INLINE void FlagTails(Flag (&tails)[items], T (&input)[items], Op differ, T successor, SIMT_SITE) {
    flag((Flag *)nullptr, tails, input, differ, nullptr, &successor, SIMT_PASS_SITE);
  }
  template <int items, class Flag, class Op>
  SIMT_INLINE void FlagHeadsAndTails(Flag (&heads)[items], Flag (&tails)[items], T (&input)[items], Op differ,
                                     SIMT_SITE) {
    flag(heads, tails, input, differ, nullptr, nullptr, SIMT_PASS_SITE);
  }

 private:
  TempStorage *storage_;

  template <int items, class Flag, class Op>
  SIMT_INLINE void flag(Flag *heads, Flag *tails, T (&input)[items], Op differ, const T *predecessor,
                        const T *successor, const char *file, int line) {
    details::NeighbourPost<T> post;
    post.first = input[0];
    post.last = input[items - 1];
    details::meet(&post, details::neighbour_complete<T>, storage_, "cub::BlockDiscontinuity", file, line);
    bool first = simt_thread_rank() == 0, last = simt_thread_rank() == block_x * block_y * block_z - 1;
    T before = first && predecessor ? *predecessor : post.before, after = last && successor ? *successor : post.after;
    for (int i = 0; heads && i < items; i++)
      heads[i] = (Flag)(i > 0                   ? differ(input[i - 1], input[i])
                        : first && !predecessor ? true
                                                : differ(before, input[0]));
    for (int i = 0; tails && i < items; i++)
      tails[i] = (Flag)(i + 1 < items        ? differ(input[i], input[i + 1])
                        : last && !successor ? true
                                             : differ(input[i], after));
  }
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_DISCONTINUITY */
