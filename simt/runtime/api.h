/* api.h - what the host side of the runtime offers to the rest of it: errors, memory, streams, a kernel's shared
 * memory.
 *
 *   error.c   names and texts, the last error of each host thread, the sticky error of the device
 *   memory.c  the imaginary GPU's memory, pinned and managed memory; copies
 *   stream.c  streams, events, graphs
 *   device.c  the device, its limits, kernels' attributes, occupancy
 */
#ifndef SIMT_API_H
#define SIMT_API_H

#include <stddef.h>

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The imaginary GPU: documented in device.c. */
#define SIMT_MULTIPROCESSORS 16 /* unless the environment's SIMT_MULTIPROCESSORS says otherwise */
int simt_multiprocessors(void);
int simt_capability(void); /* 80 or, with SIMT_CAPABILITY=9.0, 90 */
#define SIMT_THREADS_PER_MULTIPROCESSOR 2048
#define SIMT_BLOCKS_PER_MULTIPROCESSOR 32
#define SIMT_SHARED_RESERVED 1024 /* of a multiprocessor's shared memory, for each block */
size_t simt_shared_per_multiprocessor(void);
size_t simt_shared_limit(void); /* of a block that asks for it */
#define SIMT_DEVICE_BYTES ((size_t)16 << 30)

#define SIMT_DEVICES_MOST 8
int simt_device_count(void);   /* the environment's SIMT_DEVICES */
int simt_current_device(void); /* of this host thread, by cudaSetDevice() */
int simt_running_device(void); /* of the kernel that is being executed */
/* 1: kernels of `device` may use memory of `owner`. */
int simt_device_may_access(int device, int owner);

/* ---- errors ---- */

/* Every API function ends in `return simt_error(code);`: keeps an error for cudaGetLastError(), and gives the sticky
 * error instead where there is one. */
cudaError_t simt_error(cudaError_t code);
/* A kernel failed: this call and all later ones give `code`, until cudaDeviceReset(). The first one stays. */
cudaError_t simt_error_sticky(cudaError_t code);
/* The sticky error, or cudaSuccess: functions ask before they do anything. */
cudaError_t simt_error_pending(void);

/* ---- where an API call stands in the program ---- */

typedef struct SimtSite {
  const char *file; /* NULL: not told (a call from a C file, or cudaFree(), whose address is often taken) */
  int line;
  const void *address; /* then: where the call returns to */
} SimtSite;

/* "cudaMalloc at main.cu:12"; only "cudaMalloc" where neither file nor debugging information tells more. */
const char *simt_site_text(const char *call, SimtSite site, char *text, size_t size);

/* ---- memory ---- */

/* Device memory is filled with this when it is handed out (the first SIMT_FILL_LIMIT bytes): as float, half or double
 * it is NaN, as int -1, so that memory read before it is written shows in the results. */
#define SIMT_FILL 0xff
#define SIMT_FILL_LIMIT ((size_t)64 << 20)

typedef enum SimtMemoryKind {
  SIMT_UNKNOWN_MEMORY, /* the host's: stack, malloc, globals; or nobody's */
  SIMT_DEVICE_MEMORY,  /* cudaMalloc */
  SIMT_PINNED_MEMORY,  /* cudaMallocHost, cudaHostAlloc, cudaHostRegister: host and device */
  SIMT_MANAGED_MEMORY, /* cudaMallocManaged, __managed__: host and device */
  SIMT_SYMBOL_MEMORY,  /* __device__ variables */
  SIMT_CONSTANT_MEMORY /* __constant__ variables */
} SimtMemoryKind;

typedef struct SimtMemory {
  SimtMemoryKind kind;
  const char *call; /* that made it: "cudaMalloc" */
  void *base;
  size_t size;   /* as asked for */
  int device;    /* whose it is; SIMT_DEVICE_MEMORY alone */
  SimtSite site; /* of that call */
  int freed;     /* it was freed, and nothing lies there now */
  SimtSite freed_site;
} SimtMemory;

/* Describes the memory that holds `address`. Gives 1 for live memory; 0 for none: `found` is then the nearest
 * allocation (the one freed there lately, or the one that ends before the address in the same arena), or of
 * SIMT_UNKNOWN_MEMORY. O(log of the number of allocations). */
int simt_memory_find(const void *address, SimtMemory *found);

/* 1 when cudaGetSymbolAddress() gave the address of the variable there. Without that, the name of a __device__
 * variable is no device pointer in host code. */
int simt_symbol_has_address(const void *address);

/* Changes with each allocation and each free: what was found stays true as long as it does not. */
unsigned long simt_memory_generation(void);

/* The addresses that device memory comes from. Under AddressSanitizer there is no such range (size 0). */
void simt_memory_arena(char **base, size_t *size);

/* The addresses that pinned and managed memory come from. */
void simt_memory_host_arena(char **base, size_t *size);

/* 1 when host code may read `address`, as far as is known: not device memory. */
int simt_memory_host_may_use(const void *address);

/* "4000 bytes of cudaMalloc at main.cu:12" */
const char *simt_memory_text(const SimtMemory *memory, char *text, size_t size);

/* ---- streams ---- */

/* Does work(context) in the stream's order: now (eager), or at the next synchronisation that waits for it (lazy; during
 * a capture: when the graph is launched). Then `size` bytes of context are copied, 64-byte aligned. `what` ("kernel
 * saxpy", "cudaMemcpyAsync") and the site are for reports. Gives the error of a handle that is no stream; errors of the
 * work itself are sticky. */
cudaError_t simt_stream_submit(cudaStream_t stream, void (*work)(void *context), const void *context, size_t size,
                               const char *what, const char *file, int line);
/* 0 when work for this stream may be done at once, without asking: the default stream, eager, while nobody captures.
 * Else simt_stream_submit() decides, and may copy the context to keep it. */
int simt_stream_defers(cudaStream_t stream);
/* Runs all that is queued, as cudaDeviceSynchronize() does. */
void simt_stream_drain(void);

int simt_streams_are_lazy(void);
/* The device of a stream, the current one for a default stream; -1 where the handle is not a stream. */
int simt_stream_device(cudaStream_t stream);

/* For simt/streams.h, eager: the host waits for all that was submitted to a stream. When lazy, simt_stream_finish() is
 * called and knows. */
void simt_steps_host_waits(cudaStream_t stream);

/* What the inspector asks about order, in lazy mode; eager, all is ordered and nothing pending.
 * The operation that this thread executes: the position-th of a stream; {0, 0} outside of any. */
typedef struct SimtMoment {
  unsigned stream;
  unsigned long position;
} SimtMoment;
SimtMoment simt_stream_moment(void);
/* 1 when the program made certain that `then` had ended before what this thread executes began: by a stream's order, an
 * event, or a host that waited. */
int simt_stream_ordered(SimtMoment then);

typedef struct SimtPending {
  const char *what, *file; /* "cudaMemcpyAsync", or a kernel's name */
  int line;
} SimtPending;
/* Host code reads or writes pinned or managed memory: 1 when something that is still queued may write it (or, if the
 * host writes, read it): the host did not wait for it. */
int simt_stream_pending(const void *address, int host_writes, SimtPending *found);

/* ---- a kernel's shared memory ---- */

/* Bytes of __shared__ variables, from the program's symbol table; 0 when it has none (stripped, or not ELF). */
size_t simt_static_shared(const void *function);
/* The same for the text of a launch, "ns::kernel<float>": the largest among the kernels of that base name. */
size_t simt_static_shared_by_name(const char *launch);
/* What cudaFuncSetAttribute(MaxDynamicSharedMemorySize) allowed for a kernel of that base name; 48 KB less the static
 * size when it was not called. */
size_t simt_max_dynamic_shared_by_name(const char *launch);
/* How many blocks of that many threads and bytes of shared memory the whole device holds at once: the limit of a
 * cooperative launch. */
int simt_resident_blocks(int threads, size_t shared_bytes);

#ifdef __cplusplus
}
#endif

#endif /* SIMT_API_H */
