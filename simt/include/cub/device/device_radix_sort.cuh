/* cub/device/device_radix_sort.cuh - sorts keys, and values with them, by the bits [begin_bit, end_bit) of the keys;
 * equal keys keep their order. -*- c++ -*-
 *
 * A pass for each 8 bits: count, place, move from one buffer to the other. With a DoubleBuffer the passes go back and
 * forth between its two halves; otherwise the temporary storage is the second one.
 */
#ifndef SIMT_CUB_DEVICE_RADIX_SORT
#define SIMT_CUB_DEVICE_RADIX_SORT

#include "cub/util_device.cuh"
#include "cub/util_sort.cuh"

namespace cub {

namespace details {

enum { RADIX_BITS = 8, RADIX = 1 << RADIX_BITS };

inline int radix_passes(int begin, int end) { return end > begin ? (end - begin + RADIX_BITS - 1) / RADIX_BITS : 0; }

/* values may be NULL */
template <class Key, class Value>
inline void radix_pass(const Key *keys, Key *keys_out, const Value *values, Value *values_out, size_t count, int begin,
                       int end, bool descending) {
  size_t start[RADIX] = {};
  for (size_t i = 0; i < count; i++) start[radix_digits(keys[i], begin, end, descending)]++;
  for (size_t d = 0, sum = 0; d < RADIX; d++) {
    size_t n = start[d];
    start[d] = sum;
    sum += n;
  }
  for (size_t i = 0; i < count; i++) {
    Key key = keys[i];
    size_t to = start[radix_digits(key, begin, end, descending)]++;
    keys_out[to] = key;
    if (values) values_out[to] = values[i];
  }
}

/* From keys[] to a (odd number of passes) or b, by turns; with no pass at all, nothing happens. */
template <class Key, class Value>
inline void radix_sort(const Key *keys, Key *a, Key *b, const Value *values, Value *values_a, Value *values_b,
                       size_t count, int begin, int end, bool descending) {
  for (int bit = begin; bit < end; bit += RADIX_BITS) {
    radix_pass(keys, a, values, values_a, count, bit, bit + RADIX_BITS < end ? bit + RADIX_BITS : end, descending);
    Key *key = a;
    Value *value = values_a;
    keys = key;
    if (values) values = value;
    a = b;
    values_a = values_b;
    b = key;
    values_b = value;
  }
}

inline size_t align_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* keys -> keys_out, values -> values_out (NULL: none), of `count` elements, or of each segment [first, last) of them.
 * */
template <class Key, class Value, class Begin, class End>
inline cudaError_t sort_to(const char *name, void *storage, size_t &bytes, const Key *keys, Key *keys_out,
                           const Value *values, Value *values_out, bool pairs, size_t count, size_t segments,
                           Begin first, End last, int begin, int end, bool descending, cudaStream_t stream,
                           const char *file, int line) {
  size_t key_bytes = align_up(count * sizeof(Key)), value_bytes = pairs ? align_up(count * sizeof(Value)) : 0;
  cudaError_t error;
  if (only_asks(storage, bytes, 256 + key_bytes + value_bytes, &error)) return error;
  Key *other_keys = (Key *)align_up((size_t)storage);
  Value *other_values = pairs ? (Value *)(align_up((size_t)storage) + key_bytes) : nullptr;
  return submit(
      name, stream, file, line,
      [=](const Key *k, Key *k_out, const Value *v, Value *v_out, Key *k_other, Value *v_other, auto from, auto to) {
        int passes = radix_passes(begin, end);
        for (size_t s = 0; s < segments; s++) {
          size_t start = (size_t)from[s], n = (size_t)to[s] > start ? (size_t)to[s] - start : 0;
          const Value *v_in = pairs ? v + start : nullptr;
          Value *v_to = pairs ? v_out + start : nullptr, *v_by = pairs ? v_other + start : nullptr;
          if (passes == 0) {
            for (size_t i = 0; i < n; i++) {
              k_out[start + i] = k[start + i];
              if (pairs) v_to[i] = v_in[i];
            }
          } else if (passes % 2 == 1) {
            radix_sort(k + start, k_out + start, k_other + start, v_in, v_to, v_by, n, begin, end, descending);
          } else {
            radix_sort(k + start, k_other + start, k_out + start, v_in, v_by, v_to, n, begin, end, descending);
          }
        }
      },
      keys, keys_out, values, values_out, other_keys, other_values, first, last);
}

template <class Key, class Value, class Begin, class End>
inline cudaError_t sort_within(const char *name, void *storage, size_t &bytes, DoubleBuffer<Key> &keys,
                               DoubleBuffer<Value> *values, size_t segments, Begin first, End last, int begin, int end,
                               bool descending, cudaStream_t stream, const char *file, int line) {
  cudaError_t error;
  if (only_asks(storage, bytes, 1, &error)) return error;
  bool pairs = values != nullptr;
  error = submit(
      name, stream, file, line,
      [=](Key *k, Key *k_other, Value *v, Value *v_other, auto from, auto to) {
        for (size_t s = 0; s < segments; s++) {
          size_t start = (size_t)from[s], n = (size_t)to[s] > start ? (size_t)to[s] - start : 0;
          Value *v_in = pairs ? v + start : nullptr, *v_to = pairs ? v_other + start : nullptr;
          radix_sort((const Key *)k + start, k_other + start, k + start, (const Value *)v_in, v_to, v_in, n, begin, end,
                     descending);
        }
      },
      keys.Current(), keys.Alternate(), pairs ? values->Current() : nullptr, pairs ? values->Alternate() : nullptr,
      first, last);
  if (radix_passes(begin, end) % 2 == 1) {
    keys.selector ^= 1;
    if (pairs) values->selector ^= 1;
  }
  return error;
}

struct One { /* the only segment */
  size_t value;
  size_t operator[](size_t) const { return value; }
};

}  // namespace details

#define SIMT_CUB_SORTS(Class, Name, descending)                                                                        \
  template <class Key, class Count>                                                                                    \
  static cudaError_t SortKeys##Name(void *storage, size_t &bytes, const Key *keys, Key *keys_out, Count count,         \
                                    int begin_bit = 0, int end_bit = 8 * (int)sizeof(Key), cudaStream_t stream = 0,    \
                                    SIMT_SITE) {                                                                       \
    return details::sort_to("cub::" #Class "::SortKeys" #Name, storage, bytes, keys, keys_out, (const char *)nullptr,  \
                            (char *)nullptr, false, (size_t)count, 1, details::One{0}, details::One{(size_t)count},    \
                            begin_bit, end_bit, descending, stream, SIMT_PASS_SITE);                                   \
  }                                                                                                                    \
  template <class Key, class Value, class Count>                                                                       \
  static cudaError_t SortPairs##Name(void *storage, size_t &bytes, const Key *keys, Key *keys_out,                     \
                                     const Value *values, Value *values_out, Count count, int begin_bit = 0,           \
                                     int end_bit = 8 * (int)sizeof(Key), cudaStream_t stream = 0, SIMT_SITE) {         \
    return details::sort_to("cub::" #Class "::SortPairs" #Name, storage, bytes, keys, keys_out, values, values_out,    \
                            true, (size_t)count, 1, details::One{0}, details::One{(size_t)count}, begin_bit, end_bit,  \
                            descending, stream, SIMT_PASS_SITE);                                                       \
  }                                                                                                                    \
  template <class Key, class Count>                                                                                    \
  static cudaError_t SortKeys##Name(void *storage, size_t &bytes, DoubleBuffer<Key> &keys, Count count,                \
                                    int begin_bit = 0, int end_bit = 8 * (int)sizeof(Key), cudaStream_t stream = 0,    \
                                    SIMT_SITE) {                                                                       \
    return details::sort_within("cub::" #Class "::SortKeys" #Name, storage, bytes, keys,                               \
                                (DoubleBuffer<char> *)nullptr, 1, details::One{0}, details::One{(size_t)count},        \
                                begin_bit, end_bit, descending, stream, SIMT_PASS_SITE);                               \
  }                                                                                                                    \
  template <class Key, class Value, class Count>                                                                       \
  static cudaError_t SortPairs##Name(void *storage, size_t &bytes, DoubleBuffer<Key> &keys,                            \
                                     DoubleBuffer<Value> &values, Count count, int begin_bit = 0,                      \
                                     int end_bit = 8 * (int)sizeof(Key), cudaStream_t stream = 0, SIMT_SITE) {         \
    return details::sort_within("cub::" #Class "::SortPairs" #Name, storage, bytes, keys, &values, 1, details::One{0}, \
                                details::One{(size_t)count}, begin_bit, end_bit, descending, stream, SIMT_PASS_SITE);  \
  }

struct DeviceRadixSort {
  SIMT_CUB_SORTS(DeviceRadixSort, , false)
  SIMT_CUB_SORTS(DeviceRadixSort, Descending, true)
};
#undef SIMT_CUB_SORTS

}  // namespace cub

#endif /* SIMT_CUB_DEVICE_RADIX_SORT */
