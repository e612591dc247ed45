/* cub/warp/warp_reduce.cuh - one value of each lane is combined to one for the warp, or for each part of it. -*- c++
 * -*-
 *
 * Only the first lane gets the result (of a segmented reduction: the first of each segment). The others get their own
 * value.
 */
#ifndef SIMT_CUB_WARP_REDUCE
#define SIMT_CUB_WARP_REDUCE

#include "cub/thread/thread_operators.cuh"

namespace cub {

namespace details {

/* The lanes of the logical warp of `size` lanes in which the caller is. */
SIMT_UNSEEN inline unsigned logical_warp(int size) {
  unsigned lane = simt_thread_rank() % SIMT_WARP_SIZE, first = lane / (unsigned)size * (unsigned)size;
  return (size == 32 ? 0xffffffffu : (1u << size) - 1) << first;
}

template <class T, class Op>
struct WarpReducePost {
  T value;
  const Op *op;
  int valid;       /* the first `valid` lanes count */
  bool head, tail; /* of segments */
};

template <class T, class Op>
SIMT_UNSEEN void warp_reduce_complete(unsigned lanes, void *const posts[]) {
  WarpReducePost<T, Op> *post[SIMT_WARP_SIZE];
  int count = 0;
  for (unsigned rest = lanes; rest; rest &= rest - 1)
    post[count++] = (WarpReducePost<T, Op> *)posts[__builtin_ctz(rest)];
  if (count > post[0]->valid) count = post[0]->valid;
  Op op = *post[0]->op;
  for (int first = 0, end; first < count; first = end) { /* a segment at a time */
    for (end = first + 1; end < count && !post[end]->head && !post[end - 1]->tail;) end++;
    for (int step = 1; step < end - first; step *= 2)
      for (int i = first; i + step < end; i += 2 * step) {
        T a = post[i]->value, b = post[i + step]->value;
        post[i]->value = op(a, b);
      }
  }
}

}  // namespace details

template <class T, int logical_threads = 32, int unused_arch = 0>
class WarpReduce {
  static_assert(logical_threads >= 1 && logical_threads <= 32, "a logical warp has 1 to 32 lanes");

 public:
  typedef details::TempStorage TempStorage;

  WarpReduce() {}
  explicit WarpReduce(TempStorage &) {}

  template <class Op>
  SIMT_INLINE T Reduce(T input, Op op, int valid, SIMT_SITE) {
    return reduce(input, op, valid, false, false, SIMT_PASS_SITE);
  }
  template <class Op>
  SIMT_INLINE T Reduce(T input, Op op, SIMT_SITE) {
    return reduce(input, op, logical_threads, false, false, SIMT_PASS_SITE);
  }
  SIMT_INLINE T Sum(T input, SIMT_SITE) { return Reduce(input, cub::Sum(), SIMT_PASS_SITE); }
  SIMT_INLINE T Sum(T input, int valid, SIMT_SITE) { return Reduce(input, cub::Sum(), valid, SIMT_PASS_SITE); }
  SIMT_INLINE T Max(T input, SIMT_SITE) { return Reduce(input, cub::Max(), SIMT_PASS_SITE); }
  SIMT_INLINE T Min(T input, SIMT_SITE) { return Reduce(input, cub::Min(), SIMT_PASS_SITE); }

  template <class Flag, class Op>
  SIMT_INLINE T HeadSegmentedReduce(T input, Flag head, Op op, SIMT_SITE) {
    return segmented(input, op, (bool)head, false, SIMT_PASS_SITE);
  }
  template <class Flag, class Op>
  SIMT_INLINE T TailSegmentedReduce(T input, Flag tail, Op op, SIMT_SITE) {
    return segmented(input, op, false, (bool)tail, SIMT_PASS_SITE);
  }
  template <class Flag>
  SIMT_INLINE T HeadSegmentedSum(T input, Flag head, SIMT_SITE) {
    return segmented(input, cub::Sum(), (bool)head, false, SIMT_PASS_SITE);
  }
  template <class Flag>
  SIMT_INLINE T TailSegmentedSum(T input, Flag tail, SIMT_SITE) {
    return segmented(input, cub::Sum(), false, (bool)tail, SIMT_PASS_SITE);
  }

 private:
  template <class Op>
  static SIMT_INLINE T meet(T input, const Op &op, int valid, bool head, bool tail, const char *file, int line) {
    details::WarpReducePost<T, Op> post = {input, &op, valid, head, tail};
    simt_warp_rendezvous(details::logical_warp(logical_threads), &post, details::warp_reduce_complete<T, Op>,
                         "cub::WarpReduce", file, line);
    return post.value;
  }
  template <class Op>
  static SIMT_INLINE T reduce(T input, const Op &op, int valid, bool head, bool tail, const char *file, int line) {
    T result = meet(input, op, valid, head, tail, file, line);
    return simt_thread_rank() % SIMT_WARP_SIZE % logical_threads == 0 ? result : input;
  }
  template <class Op>
  static SIMT_INLINE T segmented(T input, const Op &op, bool head, bool tail, const char *file, int line) {
    return meet(input, op, logical_threads, head, tail, file, line);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_WARP_REDUCE */
