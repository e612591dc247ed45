/* cub/util_device.cuh - how the device-wide algorithms run: a loop in one CUDA thread, launched on the stream. -*-
 * c++ -*-
 *
 * Like every kernel it obeys the order of its stream and finds a host pointer where a device pointer belongs. The
 * protocol is CUB's: a first call with NULL for the temporary storage only tells how much is needed.
 */
#ifndef SIMT_CUB_UTIL_DEVICE
#define SIMT_CUB_UTIL_DEVICE

#include <limits>

#include "cub/thread/thread_operators.cuh"

namespace cub {

namespace details {

/* Asks only: sets `bytes` and returns true. Else *error tells whether the storage is large enough. */
inline bool only_asks(void *storage, size_t &bytes, size_t needed, cudaError_t *error) {
  if (needed == 0) needed = 1;
  *error = cudaSuccess;
  if (!storage) {
    bytes = needed;
    return true;
  }
  if (bytes < needed) *error = cudaErrorInvalidValue;
  return *error != cudaSuccess;
}

/* Does work(arguments...) in the stream; pointers among the arguments are checked. */
template <class Function, class... Arguments>
inline cudaError_t submit(const char *name, cudaStream_t stream, const char *file, int line, Function work,
                          Arguments... arguments) {
  return simt::kern(name, file, line, work).cfg(dim3(1), dim3(1), 0, stream).run(arguments...);
}

/* The fold of in[0 .. count), count > 0: neighbours first, so that long sums of floats stay exact. */
template <class Sum, class Iterator, class Op>
inline Sum fold(Iterator in, size_t count, Op op) {
  enum { RUN = 64 };
  Sum partial[64];
  size_t full = 0; /* bit l: partial[l] holds the fold of 2^l runs */
  for (size_t start = 0; start < count; start += RUN) {
    Sum sum = (Sum)in[start];
    for (size_t i = start + 1; i < start + RUN && i < count; i++) sum = op(sum, (Sum)in[i]);
    int level = 0;
    for (; full >> level & 1; level++) {
      sum = op(partial[level], sum);
      full &= ~((size_t)1 << level);
    }
    partial[level] = sum;
    full |= (size_t)1 << level;
  }
  int level = __builtin_ctzl(full);
  Sum sum = partial[level];
  for (full &= full - 1; full; full &= full - 1) sum = op(partial[__builtin_ctzl(full)], sum);
  return sum;
}

template <class Op, class A, class B>
using result_of = std::decay_t<std::invoke_result_t<Op &, A, B>>;

template <class T>
constexpr T greatest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}
template <class T>
constexpr T least() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

/* What Iterator's assignments take; a discarding one takes anything. */
template <class Iterator, class Otherwise>
using stored_in = std::conditional_t<std::is_void_v<typename std::iterator_traits<Iterator>::value_type>, Otherwise,
                                     typename std::iterator_traits<Iterator>::value_type>;

}  // namespace details

}  // namespace cub

#endif /* SIMT_CUB_UTIL_DEVICE */
