/* cuda_pipeline_primitives.h - asynchronous copies to shared memory, in C: __pipeline_memcpy_async() and its kin.
 *
 * A copy is done at once; the inspector sees its accesses. Waiting is for this thread's own copies, as on a GPU:
 * __syncthreads() is needed as well before another thread reads them.
 */
#ifndef SIMT_CUDA_PIPELINE_PRIMITIVES_H
#define SIMT_CUDA_PIPELINE_PRIMITIVES_H

#include "simt/copy_async.h"

/* 4, 8 or 16 bytes, of which the last `zeros` become 0. */
SIMT_INLINE void __pipeline_memcpy_async(void *__restrict__ shared, const void *__restrict__ global, size_t bytes,
                                         size_t zeros = 0, SIMT_SITE) {
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes)
    simt_kernel_fault(cudaErrorLaunchFailure, SIMT_PASS_SITE,
                      "__pipeline_memcpy_async() of %zu bytes, %zu of them zero: it copies 4, 8 or 16 bytes", bytes,
                      zeros);
  if (((uintptr_t)shared | (uintptr_t)global) % bytes != 0)
    simt_kernel_fault(cudaErrorMisalignedAddress, SIMT_PASS_SITE,
                      "__pipeline_memcpy_async() of %zu bytes from %p to %p: both must be multiples of %zu", bytes,
                      global, shared, bytes);
  if (zeros == 0) {
    simt::copy_share(shared, global, bytes, 0, 1);
    return;
  }
  unsigned char *to = (unsigned char *)shared;
  const unsigned char *from = (const unsigned char *)global;
  for (size_t i = 0; i < bytes; i++) to[i] = i < bytes - zeros ? from[i] : 0;
}

inline void __pipeline_commit(void) {}
inline void __pipeline_wait_prior(size_t) { __asm__ volatile("" ::: "memory"); }

#endif /* SIMT_CUDA_PIPELINE_PRIMITIVES_H */
