/* cub/block/block_reduce.cuh - one value of each thread is combined to one for the block. -*- c++ -*-
 *
 * Only thread 0 gets the result. The others get their own value back, so that a program which forgets this shows it.
 */
#ifndef SIMT_CUB_BLOCK_REDUCE
#define SIMT_CUB_BLOCK_REDUCE

#include "cub/thread/thread_operators.cuh"

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
  BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};

namespace details {

template <class T, class Op>
struct ReducePost : simt::BlockPost {
  T value;
  const Op *op;
  int valid; /* the first `valid` threads count */
};

/* Neighbours first, so that the order of the operands is kept and sums of floats stay exact. */
template <class T, class Op>
SIMT_UNSEEN void reduce_complete(simt::BlockPost **posts, int count) {
  ReducePost<T, Op> **post = (ReducePost<T, Op> **)posts;
  if (count > post[0]->valid) count = post[0]->valid;
  Op op = *post[0]->op;
  for (int step = 1; step < count; step *= 2)
    for (int i = 0; i + step < count; i += 2 * step) {
      T a = post[i]->value, b = post[i + step]->value;
      post[i]->value = op(a, b);
    }
}

}  // namespace details

template <class T, int block_x, BlockReduceAlgorithm algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int block_y = 1,
          int block_z = 1, int unused_arch = 0>
class BlockReduce {
 public:
  typedef details::TempStorage TempStorage;

  BlockReduce() : storage_(nullptr) {}
  explicit BlockReduce(TempStorage &storage) : storage_(&storage) {}

  template <class Op>
  SIMT_INLINE T Reduce(T input, Op op, int num_valid, SIMT_SITE) {
    details::ReducePost<T, Op> post;
    post.value = input;
    post.op = &op;
    post.valid = num_valid;
    details::meet(&post, details::reduce_complete<T, Op>, storage_, "cub::BlockReduce", SIMT_PASS_SITE);
    return simt_thread_rank() == 0 ? post.value : input;
  }
  template <class Op>
  SIMT_INLINE T Reduce(T input, Op op, SIMT_SITE) {
    return Reduce(input, op, block_x * block_y * block_z, SIMT_PASS_SITE);
  }
  template <int items, class Op>
  SIMT_INLINE T Reduce(T (&inputs)[items], Op op, SIMT_SITE) {
    T partial = inputs[0];
    for (int i = 1; i < items; i++) partial = op(partial, inputs[i]);
    return Reduce(partial, op, SIMT_PASS_SITE);
  }
  SIMT_INLINE T Sum(T input, SIMT_SITE) { return Reduce(input, cub::Sum(), SIMT_PASS_SITE); }
  SIMT_INLINE T Sum(T input, int num_valid, SIMT_SITE) { return Reduce(input, cub::Sum(), num_valid, SIMT_PASS_SITE); }
  template <int items>
  SIMT_INLINE T Sum(T (&inputs)[items], SIMT_SITE) {
    return Reduce(inputs, cub::Sum(), SIMT_PASS_SITE);
  }

 private:
  TempStorage *storage_;
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_REDUCE */
