/* cub/warp/warp_scan.cuh - lane l gets the combination of what the lanes up to l, or before l, have. -*- c++ -*- */
#ifndef SIMT_CUB_WARP_SCAN
#define SIMT_CUB_WARP_SCAN

#include "cub/warp/warp_reduce.cuh"

namespace cub {

namespace details {

template <class T, class Op>
struct WarpScanPost {
  T value, inclusive, exclusive, total; /* exclusive: of the first lane, not set */
  const Op *op;
};

template <class T, class Op>
SIMT_UNSEEN void warp_scan_complete(unsigned lanes, void *const posts[]) {
  Op op = *((WarpScanPost<T, Op> *)posts[__builtin_ctz(lanes)])->op;
  T running = ((WarpScanPost<T, Op> *)posts[__builtin_ctz(lanes)])->value;
  bool first = true;
  for (unsigned rest = lanes; rest; rest &= rest - 1, first = false) {
    WarpScanPost<T, Op> *post = (WarpScanPost<T, Op> *)posts[__builtin_ctz(rest)];
    if (!first) {
      T value = post->value;
      post->exclusive = running;
      running = op(running, value);
    }
    post->inclusive = running;
  }
  for (unsigned rest = lanes; rest; rest &= rest - 1)
    ((WarpScanPost<T, Op> *)posts[__builtin_ctz(rest)])->total = running;
}

}  // namespace details

template <class T, int logical_threads = 32, int unused_arch = 0>
class WarpScan {
 public:
  typedef details::TempStorage TempStorage;

  WarpScan() {}
  explicit WarpScan(TempStorage &) {}

  SIMT_INLINE void InclusiveSum(T input, T &output, SIMT_SITE) {
    InclusiveScan(input, output, cub::Sum(), SIMT_PASS_SITE);
  }
  SIMT_INLINE void InclusiveSum(T input, T &output, T &total, SIMT_SITE) {
    InclusiveScan(input, output, cub::Sum(), total, SIMT_PASS_SITE);
  }
  SIMT_INLINE void ExclusiveSum(T input, T &output, SIMT_SITE) {
    ExclusiveScan(input, output, T(), cub::Sum(), SIMT_PASS_SITE);
  }
  SIMT_INLINE void ExclusiveSum(T input, T &output, T &total, SIMT_SITE) {
    ExclusiveScan(input, output, T(), cub::Sum(), total, SIMT_PASS_SITE);
  }

  template <class Op>
  SIMT_INLINE void InclusiveScan(T input, T &output, Op op, SIMT_SITE) {
    output = meet(input, op, SIMT_PASS_SITE).inclusive;
  }
  template <class Op>
  SIMT_INLINE void InclusiveScan(T input, T &output, Op op, T &total, SIMT_SITE) {
    auto post = meet(input, op, SIMT_PASS_SITE);
    output = post.inclusive;
    total = post.total;
  }
  template <class Op, std::enable_if_t<std::is_invocable_v<Op &, T, T>, int> = 0>
  SIMT_INLINE void ExclusiveScan(T input, T &output, Op op, SIMT_SITE) { /* first lane: not set */
    T total;
    ExclusiveScan(input, output, op, total, SIMT_PASS_SITE);
  }
  template <class Op, std::enable_if_t<std::is_invocable_v<Op &, T, T>, int> = 0>
  SIMT_INLINE void ExclusiveScan(T input, T &output, Op op, T &total, SIMT_SITE) {
    auto post = meet(input, op, SIMT_PASS_SITE);
    if (!first_lane()) output = post.exclusive;
    total = post.total;
  }
  template <class Op>
  SIMT_INLINE void ExclusiveScan(T input, T &output, T initial, Op op, SIMT_SITE) {
    T total;
    ExclusiveScan(input, output, initial, op, total, SIMT_PASS_SITE);
  }
  /* The total does not contain the initial value. */
  template <class Op>
  SIMT_INLINE void ExclusiveScan(T input, T &output, T initial, Op op, T &total, SIMT_SITE) {
    auto post = meet(input, op, SIMT_PASS_SITE);
    output = first_lane() ? initial : (T)op(initial, post.exclusive);
    total = post.total;
  }
  template <class Op>
  SIMT_INLINE void Scan(T input, T &inclusive, T &exclusive, Op op, SIMT_SITE) {
    auto post = meet(input, op, SIMT_PASS_SITE);
    inclusive = post.inclusive;
    if (!first_lane()) exclusive = post.exclusive;
  }
  template <class Op>
  SIMT_INLINE void Scan(T input, T &inclusive, T &exclusive, T initial, Op op, SIMT_SITE) {
    auto post = meet(input, op, SIMT_PASS_SITE);
    inclusive = op(initial, post.inclusive);
    exclusive = first_lane() ? initial : (T)op(initial, post.exclusive);
  }
  SIMT_INLINE T Broadcast(T input, unsigned source, SIMT_SITE) {
    unsigned mask = details::logical_warp(logical_threads);
    return simt::shuffle<simt::SHUFFLE_INDEX>(mask, input, (unsigned)__builtin_ctz(mask) + source, 32,
                                              "cub::WarpScan::Broadcast", SIMT_PASS_SITE);
  }

 private:
  static bool first_lane() { return simt_thread_rank() % SIMT_WARP_SIZE % logical_threads == 0; }

  template <class Op>
  static SIMT_INLINE details::WarpScanPost<T, Op> meet(T input, const Op &op, const char *file, int line) {
    details::WarpScanPost<T, Op> post;
    post.value = input;
    post.op = &op;
    simt_warp_rendezvous(details::logical_warp(logical_threads), &post, details::warp_scan_complete<T, Op>,
                         "cub::WarpScan", file, line);
    return post;
  }
};

}  // namespace cub

#endif /* SIMT_CUB_WARP_SCAN */
