/* cub/util_type.cuh - what CUB's parts share: types, pairs, buffers, and how a block's threads meet. -*- c++ -*-
 *
 * This is not NVIDIA's CUB, but a small stand-in with the same names: the commonest collectives of blocks and warps,
 * each a rendezvous of its threads, and the commonest device-wide algorithms, each a loop in one CUDA thread. Results
 * are the same (sums of floats up to rounding), speed and memory traffic are not: the inspector's figures say nothing
 * about CUB.
 */
#ifndef SIMT_CUB_UTIL_TYPE
#define SIMT_CUB_UTIL_TYPE

#include <cuda_runtime.h>

#include <chrono> /* programs rely on NVIDIA's header for it */
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "simt/block.h"

#define CUB_VERSION 200800
#define CUB_MAJOR_VERSION 2
#define CUB_MINOR_VERSION 8
#define CUB_SUBMINOR_VERSION 0
#define CUB_RUNTIME_FUNCTION
#define CUB_NAMESPACE_BEGIN namespace cub {
#define CUB_NAMESPACE_END }
#define CUB_PTX_WARP_THREADS 32
#define CUB_LOG_WARP_THREADS(unused) 5
#define CUB_WARP_THREADS(unused) 32

namespace cub {

struct NullType {
  NullType() = default;
  template <class T>
  explicit NullType(const T &) {}
  bool operator==(const NullType &) const { return true; }
  bool operator!=(const NullType &) const { return false; }
};

template <class K, class V>
struct KeyValuePair {
  typedef K Key;
  typedef V Value;
  Key key;
  Value value;
  KeyValuePair() = default;
  constexpr KeyValuePair(const Key &k, const Value &v) : key(k), value(v) {}
  bool operator==(const KeyValuePair &other) const { return key == other.key && value == other.value; }
  bool operator!=(const KeyValuePair &other) const { return !(*this == other); }
};

/* Two buffers of which one is current; a sort may leave its result in either. */
template <class T>
struct DoubleBuffer {
  T *d_buffers[2];
  int selector;
  DoubleBuffer() : d_buffers{nullptr, nullptr}, selector(0) {}
  DoubleBuffer(T *current, T *alternate) : d_buffers{current, alternate}, selector(0) {}
  T *Current() { return d_buffers[selector]; }
  T *Alternate() { return d_buffers[selector ^ 1]; }
};

template <int value>
struct Int2Type {
  enum { VALUE = value };
};

template <class T>
struct Uninitialized { /* room for a T in __shared__ memory, without its constructor */
  alignas(T) unsigned char storage[sizeof(T)];
  T &Alias() { return *(T *)storage; }
};

/* What a type's keys are to a radix sort: unsigned words whose order is that of the keys. */
enum Category { NOT_A_NUMBER, SIGNED_INTEGER, UNSIGNED_INTEGER, FLOATING_POINT };

namespace details {
template <size_t bytes>
struct KeyBits {
  typedef void type;
};
template <>
struct KeyBits<1> {
  typedef unsigned char type;
};
template <>
struct KeyBits<2> {
  typedef unsigned short type;
};
template <>
struct KeyBits<4> {
  typedef unsigned int type;
};
template <>
struct KeyBits<8> {
  typedef unsigned long long type;
};
}  // namespace details

template <class T, bool is_number = std::is_arithmetic_v<T>>
struct NumericTraits {
  static constexpr Category CATEGORY = NOT_A_NUMBER;
  enum { PRIMITIVE = false, NULL_TYPE = std::is_same_v<T, NullType> };
};
template <class T>
struct NumericTraits<T, true> {
  typedef typename details::KeyBits<sizeof(T)>::type UnsignedBits;
  static constexpr Category CATEGORY = std::is_floating_point_v<T> ? FLOATING_POINT
                                       : std::is_signed_v<T>       ? SIGNED_INTEGER
                                                                   : UNSIGNED_INTEGER;
  static constexpr UnsignedBits HIGH_BIT = (UnsignedBits)((UnsignedBits)1 << (8 * sizeof(T) - 1));
  static constexpr UnsignedBits MAX_KEY =
      CATEGORY == UNSIGNED_INTEGER ? (UnsignedBits)-1 : (UnsignedBits)(HIGH_BIT - 1);
  static constexpr UnsignedBits LOWEST_KEY = CATEGORY == SIGNED_INTEGER   ? HIGH_BIT
                                             : CATEGORY == FLOATING_POINT ? (UnsignedBits)-1
                                                                          : (UnsignedBits)0;
  enum { PRIMITIVE = true, NULL_TYPE = false };
  static T Max() { return std::numeric_limits<T>::max(); }
  static T Lowest() { return std::numeric_limits<T>::lowest(); }
  /* A negative float's bits are all turned, a positive one's sign is. */
  static UnsignedBits TwiddleIn(UnsignedBits key) {
    if (CATEGORY == UNSIGNED_INTEGER) return key;
    return (UnsignedBits)(CATEGORY == FLOATING_POINT && (key & HIGH_BIT) ? ~key : key ^ HIGH_BIT);
  }
  static UnsignedBits TwiddleOut(UnsignedBits key) {
    if (CATEGORY == UNSIGNED_INTEGER) return key;
    return (UnsignedBits)(CATEGORY == FLOATING_POINT && !(key & HIGH_BIT) ? ~key : key ^ HIGH_BIT);
  }
};
template <class T>
struct Traits : NumericTraits<std::remove_cv_t<T>> {};

namespace details {

template <class Iterator>
using value_of = std::remove_cv_t<std::remove_reference_t<decltype(*std::declval<Iterator &>())>>;

/* CUB's collectives write to their storage before a barrier and read from it after one. This does so with one byte:
 * where a program uses storage again without a __syncthreads() in between, the inspector reports the race. */
struct TempStorage {
  unsigned char mark;
};

SIMT_UNSEEN SIMT_INLINE void write_mark(TempStorage *storage) {
  if (!storage || simt_thread_rank() != 0) return;
  simt_inspect_write(&storage->mark, 1);
}
SIMT_UNSEEN SIMT_INLINE void read_mark(TempStorage *storage) {
  if (!storage) return;
  simt_inspect_read(&storage->mark, 1);
}

/* All threads of the block meet; complete() gets what they posted, in the order of their ranks. */
template <class Post>
SIMT_UNSEEN SIMT_INLINE void meet(Post *post, void (*complete)(simt::BlockPost **, int), TempStorage *storage,
                                  const char *what, const char *file, int line) {
  write_mark(storage);
  simt::block_rendezvous(post, complete, what, file, line);
  read_mark(storage);
}

}  // namespace details

}  // namespace cub

#endif /* SIMT_CUB_UTIL_TYPE */
