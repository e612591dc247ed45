/* cuda_pipeline_primitives.h - asynchronous copies to shared memory, in C: __pipeline_memcpy_async() and its kin.
 *
 * What is copied is there when its thread has waited for it; before that there is NaN. Another thread may read it after
 * that and a __syncthreads(), as on a GPU. The inspector sees a copy's accesses where it is issued.
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
  if (bytes == 16)
    simt::copy_filled<uint4>(shared, global, zeros);
  else if (bytes == 8)
    simt::copy_filled<uint2>(shared, global, zeros);
  else
    simt::copy_filled<unsigned>(shared, global, zeros);
  simt_pipeline_hold(shared, bytes);
}

inline void __pipeline_commit(void) { simt_pipeline_commit(); }
inline void __pipeline_wait_prior(size_t prior) { simt_pipeline_wait(prior); }

#endif /* SIMT_CUDA_PIPELINE_PRIMITIVES_H */
