/* host.h - what the files of the host side (error, memory, copy, stream, graph, device, kernel) know of each other. */
#ifndef SIMT_HOST_H
#define SIMT_HOST_H

#include "runtime.h"

#include "api.h"
#include "cuda_runtime_api.h"

/* Where the program called the present API function: as told by the header's wrapper (simt_at), else the return address.
 * To be read once, first thing. */
#define SIMT_CALLER simt_caller(__builtin_return_address(0))
SimtSite simt_caller(const void *return_address);

/* Gives up an API function while the device is lost. */
#define RETURN_IF_STICKY \
  if (simt_error_pending() != cudaSuccess) return simt_error(cudaSuccess)

void simt_error_reset(void); /* error.c: cudaDeviceReset() */

/* memory.c */
cudaError_t simt_allocate(void **pointer, size_t bytes, SimtMemoryKind kind, const char *call, SimtSite site);
void simt_memory_reset(SimtSite site); /* frees all that is left */
/* __device__ and __constant__ variables: 1 when `address` is in one of their sections. */
int simt_is_symbol(const void *address, SimtMemoryKind *kind);
int simt_device_may_use(SimtMemoryKind kind);

/* stream.c */
void simt_streams_reset(void);
/* Waits for all that was submitted to `stream`; for the legacy stream, to every stream that blocks on it. */
cudaError_t simt_stream_finish(cudaStream_t stream);
/* The error of a call that may not be made while a stream captures; cudaSuccess otherwise. */
cudaError_t simt_forbidden_in_capture(void);

/* kernel.c */
void simt_kernels_reset(void);

#endif /* SIMT_HOST_H */
