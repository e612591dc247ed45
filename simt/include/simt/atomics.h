/* atomics.h - atomicAdd() and its kin, for every type that CUDA has them for, with their _block and _system forms. C++.
 *
 * Really atomic: blocks run on several OS threads. Ordering is sequentially consistent, which is more than CUDA
 * promises; on x86-64 it costs nothing. _block and _system are the same as the plain form.
 *
 * An operation that changed nothing is most likely one turn of a loop that waits for another thread (a lock, a flag).
 * It may be a thread of the same block, which cannot run before this one gives way: every eighth such turn does.
 */
#ifndef SIMT_ATOMICS_H
#define SIMT_ATOMICS_H

#ifdef __cplusplus

#include <string.h>

#include "core.h"

/* The inspector is told of the operation at the caller's line; the accesses that carry it out are out of its sight. */
#if defined(SIMT_INSPECT) && defined(__clang__)
#define SIMT_ATOMIC_UNSEEN __attribute__((no_sanitize("thread", "undefined", "coverage")))
#define SIMT_ATOMIC_BODY SIMT_ATOMIC_UNSEEN static __attribute__((noinline))
#elif defined(SIMT_INSPECT)
#define SIMT_ATOMIC_UNSEEN __attribute__((no_sanitize_thread, no_sanitize_undefined, no_sanitize_coverage))
#define SIMT_ATOMIC_BODY SIMT_ATOMIC_UNSEEN static __attribute__((noinline))
#else
#define SIMT_ATOMIC_UNSEEN
#define SIMT_ATOMIC_BODY static inline __attribute__((always_inline))
#endif
#define SIMT_ATOMIC static inline __attribute__((always_inline))

namespace simt {

template <size_t bytes>
struct AtomicWord;
template <>
struct AtomicWord<2> {
  typedef unsigned short type;
};
template <>
struct AtomicWord<4> {
  typedef unsigned type;
};
template <>
struct AtomicWord<8> {
  typedef unsigned long long type;
};

inline unsigned turns_in_vain;

SIMT_ATOMIC_BODY void nothing_changed(void) {
  if (__atomic_add_fetch(&turns_in_vain, 1, __ATOMIC_RELAXED) % 8 == 0) simt_yield();
}

/* *address = next(*address, operand); gives the old value. */
template <class T, class Next>
SIMT_ATOMIC_BODY T atomic_update(volatile T *address, T operand, Next next) {
  typedef typename AtomicWord<sizeof(T)>::type Word;
  volatile Word *word = (volatile Word *)address;
  Word before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
  T old, value;
  do {
    memcpy((void *)&old, &before, sizeof old);
    value = next(old, operand);
    memcpy(&after, (const void *)&value, sizeof after);
  } while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old;
}

template <class T>
SIMT_ATOMIC_BODY T atomic_add(volatile T *address, T value) {
  return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
SIMT_ATOMIC_BODY T atomic_and(volatile T *address, T value) {
  return __atomic_fetch_and(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
SIMT_ATOMIC_BODY T atomic_or(volatile T *address, T value) {
  return __atomic_fetch_or(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
SIMT_ATOMIC_BODY T atomic_xor(volatile T *address, T value) {
  return __atomic_fetch_xor(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
SIMT_ATOMIC_BODY T atomic_exchange(volatile T *address, T value) {
  T old = __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);
  if (__builtin_expect(old == value, 0)) nothing_changed();
  return old;
}
template <class T>
SIMT_ATOMIC_BODY T atomic_compare_exchange(volatile T *address, T compare, T value) {
  T old = compare;
  __atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  if (__builtin_expect(old != compare || value == compare, 0)) nothing_changed();
  return old;
}

template <class T>
static inline __attribute__((always_inline)) T looked(T old, bool only) {
  if (only) nothing_changed();
  return old;
}

}  // namespace simt

/* One operation under its three names. */
#define SIMT_ATOMIC_NAME(name, T, action)                  \
  SIMT_ATOMIC T name(volatile T *address, T value) {       \
    simt_inspect_atomic((const void *)address, sizeof(T)); \
    return action;                                         \
  }
#define SIMT_ATOMIC_FUNCTION(name, T, action) \
  SIMT_ATOMIC_NAME(name, T, action)           \
  SIMT_ATOMIC_NAME(name##_block, T, action)   \
  SIMT_ATOMIC_NAME(name##_system, T, action)
#define SIMT_ATOMIC_NEXT(T, expression) [](T old, T operand) SIMT_ATOMIC_UNSEEN -> T { return expression; }
#define SIMT_ATOMIC_UPDATE(name, T, expression) \
  SIMT_ATOMIC_FUNCTION(name, T, simt::atomic_update(address, value, SIMT_ATOMIC_NEXT(T, expression)))

/* A constant 0 added: the kernel only looked. */
#define SIMT_ATOMIC_LOOK(action) simt::looked(action, __builtin_constant_p(value) && value == 0)

#define SIMT_ATOMIC_INTEGER(T)                                                         \
  SIMT_ATOMIC_FUNCTION(atomicAnd, T, simt::atomic_and(address, value))                 \
  SIMT_ATOMIC_FUNCTION(atomicOr, T, SIMT_ATOMIC_LOOK(simt::atomic_or(address, value))) \
  SIMT_ATOMIC_FUNCTION(atomicXor, T, simt::atomic_xor(address, value))                 \
  SIMT_ATOMIC_UPDATE(atomicMin, T, old < operand ? old : operand)                      \
  SIMT_ATOMIC_UPDATE(atomicMax, T, old > operand ? old : operand)
SIMT_ATOMIC_INTEGER(int)
SIMT_ATOMIC_INTEGER(unsigned)
SIMT_ATOMIC_INTEGER(long long)
SIMT_ATOMIC_INTEGER(unsigned long long)

#define SIMT_ATOMIC_ADD(T) SIMT_ATOMIC_FUNCTION(atomicAdd, T, SIMT_ATOMIC_LOOK(simt::atomic_add(address, value)))
SIMT_ATOMIC_ADD(int)
SIMT_ATOMIC_ADD(unsigned)
SIMT_ATOMIC_ADD(unsigned long long)
SIMT_ATOMIC_UPDATE(atomicAdd, float, old + operand)
SIMT_ATOMIC_UPDATE(atomicAdd, double, old + operand)
SIMT_ATOMIC_FUNCTION(atomicSub, int, simt::atomic_add(address, (int)(0u - (unsigned)value)))
SIMT_ATOMIC_FUNCTION(atomicSub, unsigned, simt::atomic_add(address, 0u - value))
SIMT_ATOMIC_UPDATE(atomicInc, unsigned, old >= operand ? 0 : old + 1)
SIMT_ATOMIC_UPDATE(atomicDec, unsigned, old == 0 || old > operand ? operand : old - 1)

#define SIMT_ATOMIC_COMPARE_NAME(name, T)                          \
  SIMT_ATOMIC T name(volatile T *address, T compare, T value) {    \
    simt_inspect_atomic((const void *)address, sizeof(T));         \
    return simt::atomic_compare_exchange(address, compare, value); \
  }
#define SIMT_ATOMIC_COMPARE(T)                 \
  SIMT_ATOMIC_COMPARE_NAME(atomicCAS, T)       \
  SIMT_ATOMIC_COMPARE_NAME(atomicCAS_block, T) \
  SIMT_ATOMIC_COMPARE_NAME(atomicCAS_system, T)
#define SIMT_ATOMIC_EXCHANGE(T) SIMT_ATOMIC_FUNCTION(atomicExch, T, simt::atomic_exchange(address, value))
SIMT_ATOMIC_EXCHANGE(int)
SIMT_ATOMIC_EXCHANGE(unsigned)
SIMT_ATOMIC_EXCHANGE(unsigned long long)
SIMT_ATOMIC_UPDATE(atomicExch, float, ((void)old, operand))
SIMT_ATOMIC_COMPARE(unsigned short)
SIMT_ATOMIC_COMPARE(int)
SIMT_ATOMIC_COMPARE(unsigned)
SIMT_ATOMIC_COMPARE(unsigned long long)

/* Vectors of float are added element by element, each atomically, as on the GPU. */
#define SIMT_ATOMIC_ADD_VECTOR(name)                                                                              \
  SIMT_ATOMIC float2 name(float2 *address, float2 v) { return {name(&address->x, v.x), name(&address->y, v.y)}; } \
  SIMT_ATOMIC float4 name(float4 *address, float4 v) {                                                            \
    return {name(&address->x, v.x), name(&address->y, v.y), name(&address->z, v.z), name(&address->w, v.w)};      \
  }
SIMT_ATOMIC_ADD_VECTOR(atomicAdd)
SIMT_ATOMIC_ADD_VECTOR(atomicAdd_block)
SIMT_ATOMIC_ADD_VECTOR(atomicAdd_system)

#undef SIMT_ATOMIC_INTEGER
#undef SIMT_ATOMIC_ADD
#undef SIMT_ATOMIC_ADD_VECTOR
#undef SIMT_ATOMIC_COMPARE_NAME
#undef SIMT_ATOMIC_COMPARE
#undef SIMT_ATOMIC_EXCHANGE

#endif /* __cplusplus */

#endif /* SIMT_ATOMICS_H */
