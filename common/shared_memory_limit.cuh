/* shared_memory_limit.cuh - shared memory beyond 48 KiB per block. A kernel must ask for it before its launch, and how
 * much is there depends on the GPU: 227 KiB on an H200, 163 on an A100, 99 on those of compute capability 8.6, 8.9 and
 * 12.0. So a kernel with large tiles has a twin with smaller ones.
 *
 *   shared_limit         the most that a block may have, in bytes
 *   shared_limit_beside  the most that it may ask for, when the kernel itself declares `used` bytes
 *   shared_limit_ask     for a kernel: that it may be launched with so many bytes
 */
#ifndef COMMON_SHARED_MEMORY_LIMIT_CUH
#define COMMON_SHARED_MEMORY_LIMIT_CUH

#include "common/check.h"
#include "common/error.h"

/* Tests of the twins: a GPU that has no more than this. 0: what it has. */
static int shared_limit_pretended;

static inline int shared_limit(void) {
  int device, bytes; /* of the thread's device; the driver has the number at hand */
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return shared_limit_pretended > 0 && shared_limit_pretended < bytes ? shared_limit_pretended : bytes;
}

static inline size_t shared_limit_beside(int used) { return (size_t)(shared_limit() - used); }

static inline void shared_limit_ask(const void *kernel, int bytes) {
  if (bytes > shared_limit())
    die("a kernel wants %d bytes of shared memory a block; this GPU has %d", bytes, shared_limit());
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

#endif /* COMMON_SHARED_MEMORY_LIMIT_CUH */
