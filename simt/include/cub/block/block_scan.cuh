/* cub/block/block_scan.cuh - thread t gets the combination of what the threads up to t, or before t, have. -*- c++
 * -*- */
#ifndef SIMT_CUB_BLOCK_SCAN
#define SIMT_CUB_BLOCK_SCAN

#include "cub/thread/thread_operators.cuh"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

namespace details {

template <class T, class Op>
struct ScanPost : simt::BlockPost {
  T value, inclusive, exclusive, total; /* exclusive: not set for thread 0 */
  const Op *op;
};

template <class T, class Op>
SIMT_UNSEEN void scan_complete(simt::BlockPost **posts, int count) {
  ScanPost<T, Op> **post = (ScanPost<T, Op> **)posts;
  Op op = *post[0]->op;
  T running = post[0]->value;
  post[0]->inclusive = running;
  for (int i = 1; i < count; i++) {
    T value = post[i]->value;
    post[i]->exclusive = running;
    running = op(running, value);
    post[i]->inclusive = running;
  }
  for (int i = 0; i < count; i++) post[i]->total = running;
}

template <class T>
struct BroadcastPost : simt::BlockPost {
  T value;
};

template <class T>
SIMT_UNSEEN void broadcast_complete(simt::BlockPost **posts, int count) {
  BroadcastPost<T> **post = (BroadcastPost<T> **)posts;
  for (int i = 1; i < count; i++) post[i]->value = post[0]->value;
}

/* Whether Callback is a functor that gets the block's total and returns what comes before the block. */
template <class Callback, class T>
constexpr bool is_prefix = std::is_invocable_v<Callback &, T> && !std::is_convertible_v<Callback, T>;

}  // namespace details

template <class T, int block_x, BlockScanAlgorithm algorithm = BLOCK_SCAN_RAKING, int block_y = 1, int block_z = 1,
          int unused_arch = 0>
class BlockScan {
 public:
  typedef details::TempStorage TempStorage;

  BlockScan() : storage_(nullptr) {}
  explicit BlockScan(TempStorage &storage) : storage_(&storage) {}

  /* One item a thread. The prefix callback is called by the threads of the first warp with the block's total; what
   * thread 0 gets from it comes before the first item. */
  SIMT_INLINE void ExclusiveSum(T input, T &output, SIMT_SITE) {
    ExclusiveScan(input, output, T(), cub::Sum(), SIMT_PASS_SITE);
  }
  SIMT_INLINE void ExclusiveSum(T input, T &output, T &total, SIMT_SITE) {
    ExclusiveScan(input, output, T(), cub::Sum(), total, SIMT_PASS_SITE);
  }
  template <class Callback, std::enable_if_t<details::is_prefix<Callback, T>, int> = 0>
  SIMT_INLINE void ExclusiveSum(T input, T &output, Callback &callback, SIMT_SITE) {
    ExclusiveScan(input, output, cub::Sum(), callback, SIMT_PASS_SITE);
  }
  SIMT_INLINE void InclusiveSum(T input, T &output, SIMT_SITE) {
    InclusiveScan(input, output, cub::Sum(), SIMT_PASS_SITE);
  }
  SIMT_INLINE void InclusiveSum(T input, T &output, T &total, SIMT_SITE) {
    InclusiveScan(input, output, cub::Sum(), total, SIMT_PASS_SITE);
  }
  template <class Callback, std::enable_if_t<details::is_prefix<Callback, T>, int> = 0>
  SIMT_INLINE void InclusiveSum(T input, T &output, Callback &callback, SIMT_SITE) {
    InclusiveScan(input, output, cub::Sum(), callback, SIMT_PASS_SITE);
  }

  template <class Op>
  SIMT_INLINE void ExclusiveScan(T input, T &output, T initial, Op op, SIMT_SITE) {
    T total;
    ExclusiveScan(input, output, initial, op, total, SIMT_PASS_SITE);
  }
  /* The total does not contain the initial value. */
  template <class Op>
  SIMT_INLINE void ExclusiveScan(T input, T &output, T initial, Op op, T &total, SIMT_SITE) {
    T in[1] = {input}, out[1];
    scan(in, out, op, &initial, false, &total, SIMT_PASS_SITE);
    output = out[0];
  }
  template <class Op, std::enable_if_t<std::is_invocable_v<Op &, T, T>, int> = 0>
  SIMT_INLINE void ExclusiveScan(T input, T &output, Op op, SIMT_SITE) { /* thread 0: not set */
    T total;
    ExclusiveScan(input, output, op, total, SIMT_PASS_SITE);
  }
  template <class Op, std::enable_if_t<std::is_invocable_v<Op &, T, T>, int> = 0>
  SIMT_INLINE void ExclusiveScan(T input, T &output, Op op, T &total, SIMT_SITE) {
    T in[1] = {input}, out[1] = {output};
    scan(in, out, op, nullptr, false, &total, SIMT_PASS_SITE);
    output = out[0];
  }
  template <class Op, class Callback, std::enable_if_t<details::is_prefix<Callback, T>, int> = 0>
  SIMT_INLINE void ExclusiveScan(T input, T &output, Op op, Callback &callback, SIMT_SITE) {
    T in[1] = {input}, out[1];
    scan_after(in, out, op, callback, false, SIMT_PASS_SITE);
    output = out[0];
  }
  template <class Op>
  SIMT_INLINE void InclusiveScan(T input, T &output, Op op, SIMT_SITE) {
    T total;
    InclusiveScan(input, output, op, total, SIMT_PASS_SITE);
  }
  template <class Op>
  SIMT_INLINE void InclusiveScan(T input, T &output, Op op, T &total, SIMT_SITE) {
    T in[1] = {input}, out[1];
    scan(in, out, op, nullptr, true, &total, SIMT_PASS_SITE);
    output = out[0];
  }
  template <class Op, class Callback, std::enable_if_t<details::is_prefix<Callback, T>, int> = 0>
  SIMT_INLINE void InclusiveScan(T input, T &output, Op op, Callback &callback, SIMT_SITE) {
    T in[1] = {input}, out[1];
    scan_after(in, out, op, callback, true, SIMT_PASS_SITE);
    output = out[0];
  }

  /* Several consecutive items a thread. */
  template <int items>
  SIMT_INLINE void ExclusiveSum(T (&input)[items], T (&output)[items], SIMT_SITE) {
    ExclusiveScan(input, output, T(), cub::Sum(), SIMT_PASS_SITE);
  }
  template <int items>
  SIMT_INLINE void ExclusiveSum(T (&input)[items], T (&output)[items], T &total, SIMT_SITE) {
    ExclusiveScan(input, output, T(), cub::Sum(), total, SIMT_PASS_SITE);
  }
  template <int items, class Callback, std::enable_if_t<details::is_prefix<Callback, T>, int> = 0>
  SIMT_INLINE void ExclusiveSum(T (&input)[items], T (&output)[items], Callback &callback, SIMT_SITE) {
    scan_after(input, output, cub::Sum(), callback, false, SIMT_PASS_SITE);
  }
  template <int items>
  SIMT_INLINE void InclusiveSum(T (&input)[items], T (&output)[items], SIMT_SITE) {
    InclusiveScan(input, output, cub::Sum(), SIMT_PASS_SITE);
  }
  template <int items>
  SIMT_INLINE void InclusiveSum(T (&input)[items], T (&output)[items], T &total, SIMT_SITE) {
    InclusiveScan(input, output, cub::Sum(), total, SIMT_PASS_SITE);
  }
  template <int items, class Callback, std::enable_if_t<details::is_prefix<Callback, T>, int> = 0>
  SIMT_INLINE void InclusiveSum(T (&input)[items], T (&output)[items], Callback &callback, SIMT_SITE) {
    scan_after(input, output, cub::Sum(), callback, true, SIMT_PASS_SITE);
  }
  template <int items, class Op>
  SIMT_INLINE void ExclusiveScan(T (&input)[items], T (&output)[items], T initial, Op op, SIMT_SITE) {
    T total;
    scan(input, output, op, &initial, false, &total, SIMT_PASS_SITE);
  }
  template <int items, class Op>
  SIMT_INLINE void ExclusiveScan(T (&input)[items], T (&output)[items], T initial, Op op, T &total, SIMT_SITE) {
    scan(input, output, op, &initial, false, &total, SIMT_PASS_SITE);
  }
  template <int items, class Op, std::enable_if_t<std::is_invocable_v<Op &, T, T>, int> = 0>
  SIMT_INLINE void ExclusiveScan(T (&input)[items], T (&output)[items], Op op, SIMT_SITE) {
    T total;
    scan(input, output, op, nullptr, false, &total, SIMT_PASS_SITE);
  }
  template <int items, class Op, class Callback, std::enable_if_t<details::is_prefix<Callback, T>, int> = 0>
  SIMT_INLINE void ExclusiveScan(T (&input)[items], T (&output)[items], Op op, Callback &callback, SIMT_SITE) {
    scan_after(input, output, op, callback, false, SIMT_PASS_SITE);
  }
  template <int items, class Op>
  SIMT_INLINE void InclusiveScan(T (&input)[items], T (&output)[items], Op op, SIMT_SITE) {
    T total;
    scan(input, output, op, nullptr, true, &total, SIMT_PASS_SITE);
  }
  template <int items, class Op>
  SIMT_INLINE void InclusiveScan(T (&input)[items], T (&output)[items], Op op, T &total, SIMT_SITE) {
    scan(input, output, op, nullptr, true, &total, SIMT_PASS_SITE);
  }
  template <int items, class Op, class Callback, std::enable_if_t<details::is_prefix<Callback, T>, int> = 0>
  SIMT_INLINE void InclusiveScan(T (&input)[items], T (&output)[items], Op op, Callback &callback, SIMT_SITE) {
    scan_after(input, output, op, callback, true, SIMT_PASS_SITE);
  }

 private:
  TempStorage *storage_;

  /* Scans this thread's items, with `before` (NULL: nothing) in front of them. */
  template <int items, class Op>
  static void scan_items(T (&input)[items], T (&output)[items], Op op, const T *before, bool inclusive) {
    T running = before ? *before : input[0];
    for (int i = 0; i < items; i++) {
      T item = input[i]; /* output may be input */
      T next = i == 0 && !before ? item : op(running, item);
      if (inclusive)
        output[i] = next;
      else if (i > 0 || before)
        output[i] = running;
      running = next;
    }
  }

  template <int items, class Op>
  SIMT_INLINE void scan(T (&input)[items], T (&output)[items], Op op, const T *initial, bool inclusive, T *total,
                        const char *file, int line) {
    details::ScanPost<T, Op> post;
    meet(input, post, op, file, line);
    bool first = simt_thread_rank() == 0;
    T before = first ? input[0] : post.exclusive;
    if (initial) before = first ? *initial : op(*initial, post.exclusive);
    scan_items(input, output, op, first && !initial ? nullptr : &before, inclusive);
    *total = post.total;
  }

  template <int items, class Op, class Callback>
  SIMT_INLINE void scan_after(T (&input)[items], T (&output)[items], Op op, Callback &callback, bool inclusive,
                              const char *file, int line) {
    details::ScanPost<T, Op> post;
    meet(input, post, op, file, line);
    details::BroadcastPost<T> prefix;
    if (simt_thread_rank() < SIMT_WARP_SIZE) prefix.value = callback(post.total);
    details::meet(&prefix, details::broadcast_complete<T>, nullptr, "cub::BlockScan", file, line);
    T before = simt_thread_rank() == 0 ? prefix.value : op(prefix.value, post.exclusive);
    scan_items(input, output, op, &before, inclusive);
  }

  template <int items, class Op>
  SIMT_INLINE void meet(T (&input)[items], details::ScanPost<T, Op> &post, Op &op, const char *file, int line) {
    post.value = input[0];
    for (int i = 1; i < items; i++) post.value = op(post.value, input[i]);
    post.op = &op;
    details::meet(&post, details::scan_complete<T, Op>, storage_, "cub::BlockScan", file, line);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_SCAN */
