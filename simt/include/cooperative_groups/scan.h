/* cooperative_groups/scan.h - inclusive_scan() and exclusive_scan(): thread r gets the combination of the values of the
 * threads 0 .. r, or 0 .. r - 1, of its group. The first result of an exclusive scan is T().
 */
#ifndef SIMT_COOPERATIVE_GROUPS_SCAN_H
#define SIMT_COOPERATIVE_GROUPS_SCAN_H

#include "cooperative_groups.h"
#include "cooperative_groups/reduce.h"

namespace cooperative_groups {

namespace details {

template <class T, class Op>
struct ScanLane {
  T value, inclusive, exclusive;
  const Op *op;
};

template <class T, class Op>
SIMT_UNSEEN void scan_complete(unsigned lanes, void *const posts[]) {
  std::decay_t<Op> op = *((ScanLane<T, Op> *)posts[__builtin_ctz(lanes)])->op;
  T running = ((ScanLane<T, Op> *)posts[__builtin_ctz(lanes)])->value;
  int first = 1;
  for (unsigned rest = lanes; rest; rest &= rest - 1, first = 0) {
    ScanLane<T, Op> *lane = (ScanLane<T, Op> *)posts[__builtin_ctz(rest)];
    if (!first) {
      T value = lane->value;
      lane->exclusive = running;
      running = op(running, value);
    }
    lane->inclusive = running;
  }
}

template <class Group, class T, class Op>
SIMT_UNSEEN ScanLane<T, Op> scan(const Group &group, const T &value, const Op &op, const char *what, const char *file,
                                 int line) {
  static_assert(!std::is_same_v<Group, thread_block> && !std::is_same_v<Group, grid_group>,
                "scans are for tiles and coalesced groups: split the block with tiled_partition<32>(block) first");
  ScanLane<T, Op> lane = {value, value, T(), &op};
  simt_warp_rendezvous(GroupAccess::mask(group), &lane, scan_complete<T, Op>, what, file, line);
  return lane;
}

}  // namespace details

template <class Group, class T, class Op>
SIMT_UNSEEN auto inclusive_scan(const Group &group, T &&value, Op &&op, SIMT_SITE) -> decltype(op(value, value)) {
  typedef details::plain<decltype(op(value, value))> Result;
  return details::scan(group, (Result)value, op, "cooperative_groups::inclusive_scan", SIMT_PASS_SITE).inclusive;
}

template <class Group, class T, class Op>
SIMT_UNSEEN auto exclusive_scan(const Group &group, T &&value, Op &&op, SIMT_SITE) -> decltype(op(value, value)) {
  typedef details::plain<decltype(op(value, value))> Result;
  return details::scan(group, (Result)value, op, "cooperative_groups::exclusive_scan", SIMT_PASS_SITE).exclusive;
}

template <class Group, class T>
SIMT_UNSEEN details::plain<T> inclusive_scan(const Group &group, T &&value, SIMT_SITE) {
  return inclusive_scan(group, std::forward<T>(value), plus<details::plain<T>>(), SIMT_PASS_SITE);
}

template <class Group, class T>
SIMT_UNSEEN details::plain<T> exclusive_scan(const Group &group, T &&value, SIMT_SITE) {
  return exclusive_scan(group, std::forward<T>(value), plus<details::plain<T>>(), SIMT_PASS_SITE);
}

/* A scan that goes on from an atomic: one thread adds the group's total to it, and each result has what was there as
 * its first operand. For giving each thread its place in an output. */
#define SIMT_SCAN_UPDATE(Atomic)                                                                                  \
  template <class Group, class T, cuda::thread_scope scope, class V, class Op>                                    \
  T inclusive_scan_update(const Group &group, Atomic &destination, V &&value, Op &&op, SIMT_SITE) {               \
    T mine = inclusive_scan(group, (T)value, op, SIMT_PASS_SITE), start = T();                                    \
    if (group.thread_rank() == group.size() - 1) start = details::atomic_update(destination, mine, op);           \
    return op(group.shfl(start, (int)group.size() - 1, SIMT_PASS_SITE), mine);                                    \
  }                                                                                                               \
  template <class Group, class T, cuda::thread_scope scope, class V, class Op>                                    \
  T exclusive_scan_update(const Group &group, Atomic &destination, V &&value, Op &&op, SIMT_SITE) {               \
    auto mine = details::scan(group, (T)value, op, "cooperative_groups::exclusive_scan_update", SIMT_PASS_SITE);  \
    T start = T();                                                                                                \
    if (group.thread_rank() == group.size() - 1) start = details::atomic_update(destination, mine.inclusive, op); \
    start = group.shfl(start, (int)group.size() - 1, SIMT_PASS_SITE);                                             \
    return group.thread_rank() == 0 ? start : op(start, mine.exclusive);                                          \
  }                                                                                                               \
  template <class Group, class T, cuda::thread_scope scope, class V>                                              \
  T inclusive_scan_update(const Group &group, Atomic &destination, V &&value, SIMT_SITE) {                        \
    return inclusive_scan_update(group, destination, (T)value, plus<T>(), SIMT_PASS_SITE);                        \
  }                                                                                                               \
  template <class Group, class T, cuda::thread_scope scope, class V>                                              \
  T exclusive_scan_update(const Group &group, Atomic &destination, V &&value, SIMT_SITE) {                        \
    return exclusive_scan_update(group, destination, (T)value, plus<T>(), SIMT_PASS_SITE);                        \
  }
#define SIMT_COMMA ,
SIMT_SCAN_UPDATE(cuda::atomic<T SIMT_COMMA scope>)
SIMT_SCAN_UPDATE(const cuda::atomic_ref<T SIMT_COMMA scope>)
#undef SIMT_COMMA
#undef SIMT_SCAN_UPDATE

}  // namespace cooperative_groups

#endif /* SIMT_COOPERATIVE_GROUPS_SCAN_H */
