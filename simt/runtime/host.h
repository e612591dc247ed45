/* host.h - what the files of the host side (error, site, memory, pool, copy, stream, graph, device, kernel) know of
 * each other. */
#ifndef SIMT_HOST_H
#define SIMT_HOST_H

#include "runtime.h"

#include "api.h"
#include "cuda_runtime_api.h"
#include "hooks.h"

/* Where the program called the present API function: as told by the header's wrapper (simt_at), else the return
 * address. To be read once, first thing. */
#define SIMT_CALLER simt_caller(__builtin_return_address(0))
SimtSite simt_caller(const void *return_address);

int simt_same_site(SimtSite a, SimtSite b);
/* "=== simt: KIND: CALL at FILE:LINE: ..." on stderr, once for each kind and place. */
void simt_report_call(const char *kind, const char *call, SimtSite site, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Gives up an API function while the device is lost. */
#define RETURN_IF_STICKY \
  if (simt_error_pending() != cudaSuccess) return simt_error(cudaSuccess)

void simt_error_reset(void); /* error.c: cudaDeviceReset() */

/* memory.c */
/* `device`: whose it is to be, where it is device memory. */
cudaError_t simt_allocate(void **pointer, size_t bytes, SimtMemoryKind kind, int device, const char *call,
                          SimtSite site);
cudaError_t simt_deallocate(void *pointer, const char *call, SimtSite site); /* device or managed memory */
void simt_memory_reset(int device, SimtSite site); /* frees all that is left of its memory, and the host's */
size_t simt_memory_total(void);                    /* bytes of each device */
/* The i-th group of variables: 1 when it has __device__ or __constant__ ones, 0 when not, -1 when there are fewer. */
int simt_symbol_section(int i, char **start, size_t *size);
/* The pool that a live allocation came from, NULL for none; -1: there is no allocation that begins there. */
int simt_memory_pool(void *pointer, cudaMemPool_t *pool, size_t *bytes);
void simt_memory_set_pool(void *pointer, cudaMemPool_t pool);
/* Whose variable an address is: of the program's __device__, __constant__ or __managed__ ones. */
SimtMemoryKind simt_symbol_kind(const void *address);
int simt_device_may_use(SimtMemoryKind kind);
int simt_host_may_use(SimtMemoryKind kind);

/* stream.c */

/* Something a stream has to do, with its context behind it. */
typedef struct Work {
  void (*run)(void *context);
  void *context; /* 64-byte aligned, its own */
  size_t size;
  const char *what, *file; /* for reports */
  int line;
} Work;

Work simt_work_copy(const Work *work);
void simt_work_free(Work *work);

/* Waits for all that was submitted to `stream`; for the legacy stream, to every stream that blocks on it. */
cudaError_t simt_stream_finish(cudaStream_t stream);
int simt_stream_captures(cudaStream_t stream);
/* The error of a call that may not be made while a stream captures; cudaSuccess otherwise. */
cudaError_t simt_forbidden_in_capture(void);
void simt_streams_reset(void);

/* copy.c. Whether queued work is a copy, and if so, whether it writes or, with `reads`, reads the byte at `address`. */
int simt_is_copy(const Work *work);
int simt_copy_touches(const Work *work, const void *address, int reads);
/* cudaMemset() of elements of 1, 2 or 4 bytes, for graphs. */
cudaError_t simt_memset_elements(const struct cudaMemsetParams *parameters, cudaStream_t stream);

/* graph.c. A capture collects the work of its streams, in the order of the calls, in a graph. */
void simt_graph_append(cudaGraph_t graph, const Work *work);
cudaGraph_t simt_graph_new(void);
/* A stream that only writes down in the graph what is submitted to it. */
cudaStream_t simt_recorder_open(cudaGraph_t graph);
void simt_recorder_close(cudaStream_t stream);

/* devices.c */
cudaError_t simt_check_device(int device); /* that there is such a device */
void simt_peers_reset(int device);
/* Between the two the program's __device__ and __constant__ variables have the values of `device`. */
void simt_symbols_lock(int device);
void simt_symbols_unlock(void);

/* launch.c: this host thread's next launch is in clusters of so many blocks */
void simt_launch_in_clusters(uint3 blocks);

/* kernel.c */
/* The __shared__ variable at a distance from simt_above_shared, which all OS threads have: where it begins, its size. 0
 * where there is none, or the program has no symbols. */
int simt_static_variable(ptrdiff_t from_above, ptrdiff_t *low, size_t *bytes);
void simt_kernels_reset(void);

#endif /* SIMT_HOST_H */
