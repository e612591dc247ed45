/* scope.h - what the headers under cuda/ share: scopes, and numbers of bytes with a known alignment. */
#ifndef SIMT_SCOPE_H
#define SIMT_SCOPE_H

#include <stddef.h>

namespace cuda {

/* Which threads an atomic, a barrier or a fence is for. Numbers are CUDA's. */
enum thread_scope {
  thread_scope_system = 0,
  thread_scope_device = 10,
  thread_scope_block = 20,
  thread_scope_thread = 30
};

/* A number of bytes of which it is known that it, and the addresses, are multiples of `alignment`. */
template <size_t alignment>
struct aligned_size_t {
  static constexpr size_t align = alignment;
  size_t value;
  constexpr explicit aligned_size_t(size_t bytes) : value(bytes) {}
  constexpr operator size_t() const { return value; }
};

template <class T, thread_scope scope = thread_scope_system>
struct atomic;
template <class T, thread_scope scope = thread_scope_system>
struct atomic_ref;

}  // namespace cuda

#endif /* SIMT_SCOPE_H */
