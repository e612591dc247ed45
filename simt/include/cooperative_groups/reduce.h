/* cooperative_groups/reduce.h - reduce(group, value, operation): every thread of the group gets the result.
 *
 * Values are combined as a balanced tree (lane i with i + 16, i + 8, ..), as GPU code does with shuffles: sums of
 * floats are as exact as there, though not always equal to the last bit.
 */
#ifndef SIMT_COOPERATIVE_GROUPS_REDUCE_H
#define SIMT_COOPERATIVE_GROUPS_REDUCE_H

#include "cooperative_groups.h"
#include "simt/scope.h"

namespace cooperative_groups {

template <class T = void>
struct plus {
  T operator()(const T &a, const T &b) const { return a + b; }
};
template <class T = void>
struct less {
  T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};
template <class T = void>
struct greater {
  T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};
template <class T = void>
struct bit_and {
  T operator()(const T &a, const T &b) const { return a & b; }
};
template <class T = void>
struct bit_or {
  T operator()(const T &a, const T &b) const { return a | b; }
};
template <class T = void>
struct bit_xor {
  T operator()(const T &a, const T &b) const { return a ^ b; }
};

template <class Group, class T, class Op>
SIMT_UNSEEN auto reduce(const Group &group, T &&value, Op &&op, SIMT_SITE) -> decltype(op(value, value)) {
  static_assert(!std::is_same_v<Group, thread_block> && !std::is_same_v<Group, grid_group>,
                "reduce() is for tiles and coalesced groups: split the block with tiled_partition<32>(block) first");
  typedef details::plain<decltype(op(value, value))> Result;
  return simt::fold(GroupAccess::mask(group), (Result)value, op, "cooperative_groups::reduce", SIMT_PASS_SITE);
}

/* The group's reduction is stored, or combined with what is there, by one of its threads. */
template <class Group, class T, class Op>
void reduce_store_async(const Group &group, T *destination, T value, Op &&op, SIMT_SITE) {
  T total = reduce(group, value, op, SIMT_PASS_SITE);
  if (group.thread_rank() == 0) *destination = total;
}

namespace details {
template <class Atomic, class T, class Op>
T atomic_update(Atomic &atomic, T value, Op &op) {
  T old = atomic.load();
  while (!atomic.compare_exchange_weak(old, op(old, value))) {
  }
  return old;
}
}  // namespace details

#define SIMT_REDUCE_ASYNC(Atomic)                                                                    \
  template <class Group, class T, cuda::thread_scope scope, class V, class Op>                       \
  void reduce_update_async(const Group &group, Atomic &destination, V &&value, Op &&op, SIMT_SITE) { \
    T total = reduce(group, (T)value, op, SIMT_PASS_SITE);                                           \
    if (group.thread_rank() == 0) details::atomic_update(destination, total, op);                    \
  }                                                                                                  \
  template <class Group, class T, cuda::thread_scope scope, class V, class Op>                       \
  void reduce_store_async(const Group &group, Atomic &destination, V &&value, Op &&op, SIMT_SITE) {  \
    T total = reduce(group, (T)value, op, SIMT_PASS_SITE);                                           \
    if (group.thread_rank() == 0) destination.store(total);                                          \
  }
#define SIMT_COMMA ,
SIMT_REDUCE_ASYNC(cuda::atomic<T SIMT_COMMA scope>)
SIMT_REDUCE_ASYNC(const cuda::atomic_ref<T SIMT_COMMA scope>)
#undef SIMT_COMMA
#undef SIMT_REDUCE_ASYNC

}  // namespace cooperative_groups

#endif /* SIMT_COOPERATIVE_GROUPS_REDUCE_H */
