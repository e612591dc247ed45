/* cub/util_sort.cuh - what the sorts share: keys as unsigned numbers of the same order, and a stable merge sort. -*-
 * c++ -*- */
#ifndef SIMT_CUB_UTIL_SORT
#define SIMT_CUB_UTIL_SORT

#include <stdlib.h>
#include <string.h>

#include "cub/util_type.cuh"

namespace cub {
namespace details {

template <size_t bytes>
struct RadixWord;
template <>
struct RadixWord<1> {
  typedef uint8_t type;
};
template <>
struct RadixWord<2> {
  typedef uint16_t type;
};
template <>
struct RadixWord<4> {
  typedef uint32_t type;
};
template <>
struct RadixWord<8> {
  typedef uint64_t type;
};

/* -0.0f is 0.0f to a sort, too. A type that is no number of C is one in floating point: half and its kin. */
template <class Key>
SIMT_UNSEEN inline typename RadixWord<sizeof(Key)>::type radix_bits(Key key) {
  typedef typename RadixWord<sizeof(Key)>::type Word;
  constexpr Word sign = (Word)((Word)1 << (8 * sizeof(Key) - 1));
  Word bits;
  memcpy(&bits, (const void *)&key, sizeof bits);
  if constexpr (std::is_integral_v<Key> || std::is_enum_v<Key>)
    return std::is_signed_v<Key> ? (Word)(bits ^ sign) : bits;
  if (bits == sign) bits = 0;
  return bits & sign ? (Word)~bits : (Word)(bits | sign);
}

/* The bits [begin, end) of a key, for a descending order the complement. */
template <class Key>
SIMT_UNSEEN inline uint64_t radix_digits(Key key, int begin, int end, bool descending) {
  if (end <= begin) return 0;
  uint64_t bits = (uint64_t)radix_bits(key) >> begin;
  uint64_t mask = end - begin >= 64 ? ~0ull : (1ull << (end - begin)) - 1;
  return (descending ? ~bits : bits) & mask;
}

/* x[0 .. count), by way of scratch[0 .. count). The comparison gets copies on the caller's stack. */
template <class T, class Less>
SIMT_UNSEEN inline void merge_sort(T *x, T *scratch, size_t count, Less less) {
  T *from = x, *to = scratch;
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t first = 0; first < count; first += 2 * width) {
      size_t middle = first + width < count ? first + width : count;
      size_t last = middle + width < count ? middle + width : count;
      size_t i = first, j = middle;
      for (size_t k = first; k < last; k++) {
        bool right = i == middle;
        if (!right && j < last) {
          T a = from[i], b = from[j];
          right = less(b, a);
        }
        to[k] = right ? from[j++] : from[i++];
      }
    }
    T *swap = from;
    from = to;
    to = swap;
  }
  if (from != x)
    for (size_t i = 0; i < count; i++) x[i] = from[i];
}

}  // namespace details

/* The values of a sort of keys alone: reading one, or writing it, does nothing. */
struct NullValues {
  typedef NullType value_type;
  typedef NullType reference;
  typedef NullType *pointer;
  typedef ptrdiff_t difference_type;
  typedef std::random_access_iterator_tag iterator_category;
  NullType operator*() const { return NullType(); }
  NullType operator[](size_t) const { return NullType(); }
};

namespace details {

/* k[0 .. count), and v[] with them: runs of 1, 2, 4 .. are merged into k_other[] and v_other[], and copied back. */
template <class Keys, class Values, class Key, class Value, class Less>
inline void merge_sort_pairs(Keys k, Values v, Key *k_other, Value *v_other, size_t count, Less less) {
  constexpr bool pairs = !std::is_same_v<Values, NullValues>;
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t first = 0; first < count; first += 2 * width) {
      size_t middle = first + width < count ? first + width : count;
      size_t last = middle + width < count ? middle + width : count;
      size_t i = first, j = middle;
      for (size_t to = first; to < last; to++) {
        bool right = i == middle || (j < last && less(k[j], k[i]));
        size_t from = right ? j++ : i++;
        k_other[to] = k[from];
        if constexpr (pairs) v_other[to] = v[from];
      }
    }
    for (size_t i = 0; i < count; i++) {
      k[i] = k_other[i];
      if constexpr (pairs) v[i] = v_other[i];
    }
  }
  (void)v;
  (void)v_other;
}

}  // namespace details
}  // namespace cub

#endif /* SIMT_CUB_UTIL_SORT */
