/* nv_atomics.h - __nv_atomic_fetch_add() and its kin, which take an order and a scope. C++.
 *
 * Each is what atomicAdd() and its kin are: sequentially consistent for the whole system, which is more than any order
 * and scope ask for. The caller's types decide: what the address points to, the value converts to.
 */
#ifndef SIMT_NV_ATOMICS_H
#define SIMT_NV_ATOMICS_H

#ifdef __cplusplus

#include <string.h>

#include <type_traits>

#include "atomics.h"
#include "intrinsics.h"

enum {
  __NV_ATOMIC_RELAXED = __ATOMIC_RELAXED,
  __NV_ATOMIC_CONSUME = __ATOMIC_CONSUME,
  __NV_ATOMIC_ACQUIRE = __ATOMIC_ACQUIRE,
  __NV_ATOMIC_RELEASE = __ATOMIC_RELEASE,
  __NV_ATOMIC_ACQ_REL = __ATOMIC_ACQ_REL,
  __NV_ATOMIC_SEQ_CST = __ATOMIC_SEQ_CST
};
enum {
  __NV_THREAD_SCOPE_THREAD,
  __NV_THREAD_SCOPE_BLOCK,
  __NV_THREAD_SCOPE_CLUSTER,
  __NV_THREAD_SCOPE_DEVICE,
  __NV_THREAD_SCOPE_SYSTEM
};

#define SIMT_ORDER int order, int scope = __NV_THREAD_SCOPE_SYSTEM
#define SIMT_VALUE std::remove_cv_t<T>

/* *address = expression of `old` and `operand`. */
#define SIMT_NV_ATOMIC(name, expression)                                                                  \
  template <class T>                                                                                      \
  SIMT_ATOMIC SIMT_VALUE __nv_atomic_fetch_##name(T *address, SIMT_VALUE value, SIMT_ORDER) {             \
    typedef SIMT_VALUE V;                                                                                 \
    (void)order, (void)scope;                                                                             \
    simt_inspect_atomic((const void *)address, sizeof(T));                                                \
    return simt::atomic_update((volatile V *)address, value,                                              \
                               [](V old, V operand) SIMT_ATOMIC_UNSEEN -> V { return (V)(expression); }); \
  }                                                                                                       \
  template <class T>                                                                                      \
  SIMT_ATOMIC void __nv_atomic_##name(T *address, SIMT_VALUE value, SIMT_ORDER) {                         \
    __nv_atomic_fetch_##name(address, value, order, scope);                                               \
  }
SIMT_NV_ATOMIC(add, old + operand)
SIMT_NV_ATOMIC(sub, old - operand)
SIMT_NV_ATOMIC(and, old &operand)
SIMT_NV_ATOMIC(or, old | operand)
SIMT_NV_ATOMIC(xor, old ^ operand)
SIMT_NV_ATOMIC(min, old < operand ? old : operand)
SIMT_NV_ATOMIC(max, old > operand ? old : operand)
#undef SIMT_NV_ATOMIC

template <class T>
SIMT_ATOMIC SIMT_VALUE __nv_atomic_exchange_n(T *address, SIMT_VALUE value, SIMT_ORDER) {
  typedef SIMT_VALUE V;
  (void)order, (void)scope;
  simt_inspect_atomic((const void *)address, sizeof(T));
  return simt::atomic_update((volatile V *)address, value,
                             [](V, V operand) SIMT_ATOMIC_UNSEEN -> V { return operand; });
}
template <class T>
SIMT_ATOMIC void __nv_atomic_exchange(T *address, T *value, T *result, SIMT_ORDER) {
  *result = __nv_atomic_exchange_n(address, *value, order, scope);
}

template <class T>
SIMT_ATOMIC SIMT_VALUE __nv_atomic_load_n(T *address, SIMT_ORDER) {
  typedef SIMT_VALUE V;
  typedef typename simt::AtomicWord<sizeof(T)>::type Word;
  (void)order, (void)scope;
  simt_inspect_atomic((const void *)address, sizeof(T));
  Word word = __atomic_load_n((volatile Word *)address, __ATOMIC_SEQ_CST);
  simt::nothing_changed(); /* it may be a turn of a loop that waits */
  V value;
  memcpy((void *)&value, &word, sizeof value);
  return value;
}
template <class T>
SIMT_ATOMIC void __nv_atomic_load(T *address, SIMT_VALUE *result, SIMT_ORDER) {
  *result = __nv_atomic_load_n(address, order, scope);
}
template <class T>
SIMT_ATOMIC void __nv_atomic_store_n(T *address, SIMT_VALUE value, SIMT_ORDER) {
  __nv_atomic_exchange_n(address, value, order, scope);
}
template <class T>
SIMT_ATOMIC void __nv_atomic_store(T *address, T *value, SIMT_ORDER) {
  __nv_atomic_exchange_n(address, *value, order, scope);
}

/* Gives whether it was *expected, which becomes what was there if not. */
template <class T>
SIMT_ATOMIC bool __nv_atomic_compare_exchange_n(T *address, T *expected, SIMT_VALUE value, bool weak, int order,
                                                int failure_order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  typedef typename simt::AtomicWord<sizeof(T)>::type Word;
  (void)weak, (void)order, (void)failure_order, (void)scope;
  simt_inspect_atomic((const void *)address, sizeof(T));
  Word compare, next;
  memcpy(&compare, (const void *)expected, sizeof compare);
  memcpy(&next, (const void *)&value, sizeof next);
  Word old = simt::atomic_compare_exchange((volatile Word *)address, compare, next);
  if (old == compare) return true;
  memcpy((void *)expected, &old, sizeof old);
  return false;
}
template <class T>
SIMT_ATOMIC bool __nv_atomic_compare_exchange(T *address, T *expected, T *value, bool weak, int order,
                                              int failure_order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return __nv_atomic_compare_exchange_n(address, expected, *value, weak, order, failure_order, scope);
}

SIMT_ATOMIC void __nv_atomic_thread_fence(SIMT_ORDER) {
  (void)order;
  if (scope == __NV_THREAD_SCOPE_BLOCK)
    __threadfence_block();
  else if (scope != __NV_THREAD_SCOPE_THREAD)
    __threadfence();
}

#undef SIMT_ORDER
#undef SIMT_VALUE

#endif /* __cplusplus */

#endif /* SIMT_NV_ATOMICS_H */
