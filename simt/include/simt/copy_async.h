/* copy_async.h - what stands for the hardware's asynchronous copies: the threads of a group copy, each its share, at
 * once.
 *
 * A program that forgets to wait gets away with it for what the same thread copied; the inspector sees the accesses,
 * and reports a race for what another one did.
 */
#ifndef SIMT_COPY_ASYNC_H
#define SIMT_COPY_ASYNC_H

#include <stddef.h>
#include <stdint.h>

#include "simt/core.h"
#include "simt/scope.h"
#include "simt/warp.h"

namespace simt {

template <class Unit>
SIMT_INLINE void copy_units(void *destination, const void *source, size_t bytes, size_t rank, size_t threads) {
  for (size_t i = rank; i < bytes / sizeof(Unit); i += threads) ((Unit *)destination)[i] = ((const Unit *)source)[i];
}

/* One unit, of which the last `zeros` bytes become 0: one store of the warp, whichever of its lanes have zeros. */
template <class Unit>
SIMT_INLINE void copy_filled(void *destination, const void *source, size_t zeros) {
  Unit unit = Unit();
  if (zeros == 0)
    unit = *(const Unit *)source;
  else
    for (size_t i = 0; i < sizeof unit - zeros; i++) ((unsigned char *)&unit)[i] = ((const unsigned char *)source)[i];
  *(Unit *)destination = unit;
}

/* The share of thread `rank` of `threads`, in the widest accesses that the addresses allow, as cp.async has them. */
SIMT_INLINE void copy_share(void *destination, const void *source, size_t bytes, size_t rank, size_t threads) {
  size_t alignment = (size_t)(uintptr_t)destination | (size_t)(uintptr_t)source | bytes;
  if (alignment % 16 == 0)
    copy_units<uint4>(destination, source, bytes, rank, threads);
  else if (alignment % 8 == 0)
    copy_units<uint2>(destination, source, bytes, rank, threads);
  else if (alignment % 4 == 0)
    copy_units<unsigned>(destination, source, bytes, rank, threads);
  else
    copy_units<unsigned char>(destination, source, bytes, rank, threads);
}

}  // namespace simt

#endif /* SIMT_COPY_ASYNC_H */
