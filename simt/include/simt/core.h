/* core.h - the contract between a kernel, as the rewriter leaves it, and the runtime that executes it. C and C++.
 *
 * A block runs wholly on one OS thread. Its CUDA threads run one after the other on one stack; a thread that has to
 * wait (a barrier, a shuffle) keeps that stack, a *fibre*, and the next thread goes on with another one. Everything a
 * device header offers stands on five ways to wait:
 *
 *     simt_block_barrier()     until every thread of the block that has not returned is here
 *     simt_warp_rendezvous()   until the lanes of a mask are here; the last one computes for all
 *     simt_wait_until()        until a condition holds that another thread will make true
 *     simt_grid_barrier()      until every block of a cooperative launch is here
 *     simt_yield()             let another thread go first
 *
 * `what`, `file` and `line` name the call in the student's source: SIMT_SITE declares them as defaulted parameters and
 * SIMT_PASS_SITE hands them on, so that a report names the kernel's line and not this header's.
 */
#ifndef SIMT_CORE_H
#define SIMT_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "driver_types.h"
#include "vector_types.h"

#define SIMT_WARP_SIZE 32
#define SIMT_MAX_BLOCK_THREADS 1024
#define SIMT_STATIC_SHARED_LIMIT (48 * 1024)
#define SIMT_OPT_IN_SHARED_MOST (227 * 1024) /* of any capability; simt_shared_limit() is the present one's */

#define SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define SIMT_PASS_SITE file, line

#ifdef __cplusplus
extern "C" {
#endif

/* Where thread-local variables are, __shared__ arrays among them: in a program at a fixed distance from the thread's
 * register, which is fast; in a shared library, which is loaded later, the place has to be looked up. */
#ifdef SIMT_SHARED_LIBRARY
#define SIMT_TLS __attribute__((tls_model("local-dynamic"), visibility("hidden")))
#else
#define SIMT_TLS __attribute__((tls_model("local-exec")))
#endif

/* Where the running thread is. The names are CUDA's. The inspector's compiler pass skips what is const. */
#ifdef SIMT_INSPECT
#define SIMT_COORDINATE extern __thread const
#else
#define SIMT_COORDINATE extern __thread
#endif
#ifndef SIMT_RUNTIME
SIMT_COORDINATE uint3 threadIdx SIMT_TLS;
SIMT_COORDINATE uint3 blockIdx SIMT_TLS;
#ifdef SIMT_INSPECT /* gcc instruments reads of constants of a class with constructors, as dim3 is */
SIMT_COORDINATE uint3 blockDim SIMT_TLS;
SIMT_COORDINATE uint3 gridDim SIMT_TLS;
#else
SIMT_COORDINATE dim3 blockDim SIMT_TLS;
SIMT_COORDINATE dim3 gridDim SIMT_TLS;
#endif
#endif

/* Asynchronous copies: the bytes at `shared` are taken away again, until this thread waits for all but its last `prior`
 * batches. */
void simt_pipeline_begin(void); /* a block */
void simt_pipeline_hold(void *shared, size_t bytes);
void simt_pipeline_commit(void);
void simt_pipeline_wait(size_t prior);

/* Every thread of the block that has not returned arrives; gives the number of them whose `predicate` was not 0. */
int simt_block_barrier(int predicate, const char *what, const char *file, int line);

/* The lanes of `mask` that have not returned arrive, each with a pointer to something of its own (usually a struct on
 * its stack). When all are here complete(lanes, posts) runs once, with the lanes that came and posts[lane] of each;
 * then all go on. Lanes meet when mask and `complete` are the same. NULL for `complete`: only meet. */
typedef void SimtComplete(unsigned lanes, void *const posts[SIMT_WARP_SIZE]);
void simt_warp_rendezvous(unsigned mask, void *post, SimtComplete *complete, const char *what, const char *file,
                          int line);

/* Returns once ready(context) is not 0; it is asked again whenever another thread has had its turn. */
void simt_wait_until(int (*ready)(void *context), void *context, const char *what, const char *file, int line);

/* Every thread of every block arrives. Only in a cooperative launch, where each block has an OS thread. */
void simt_grid_barrier(const char *file, int line);
int simt_grid_is_cooperative(void);

/* Another thread of the block goes first: for a loop that retries. */
void simt_yield(void);

/* Ends the launch: prints `format` with kernel, block, thread and site; the launch and all later calls give `error`. */
void simt_kernel_fault(cudaError_t error, const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 4, 5)));
/* The warp operation that the running thread completes reads from lanes that take no part, or from such lanes alone.
 * Those that have returned, or that the block does not have, the mask may name, as long as others are read, too. */
void simt_shuffle_from_outside(unsigned sources, int alone);

int simt_in_kernel(void);        /* 0 in host code */
unsigned simt_thread_rank(void); /* 0 .. threads of the block - 1, x fastest */
unsigned simt_active_mask(void); /* the lanes that __activemask() may count on */
void *simt_dynamic_shared(void); /* the launch's third parameter, 1024-byte aligned */
size_t simt_dynamic_shared_size(void);
unsigned long long simt_clock(void); /* nanoseconds, monotonic */

#ifdef SIMT_INSPECT
/* An atomic operation of `bytes` at `address` is about to be done by code that the inspector does not see. */
void simt_inspect_atomic(const void *address, size_t bytes);
/* A plain access by such code (a vector load in a header, memcpy in a kernel, ...). */
void simt_inspect_read(const void *address, size_t bytes);
void simt_inspect_write(const void *address, size_t bytes);
/* __threadfence() and its kin. other_blocks: it orders for them, too. */
void simt_inspect_fence(int other_blocks);
/* What follows, up to simt_inspect_continue(), a header does for other threads, whose memory it may read. */
void *simt_inspect_pause(void);
void simt_inspect_continue(void *paused);
#else
#define simt_inspect_atomic(address, bytes) ((void)0)
#define simt_inspect_read(address, bytes) ((void)0)
#define simt_inspect_write(address, bytes) ((void)0)
#define simt_inspect_fence(other_blocks) ((void)0)
#define simt_inspect_pause() NULL
#define simt_inspect_continue(paused) ((void)(paused))
#endif

/* ---- launching; used by launch.h ---- */

/* What a loop over the threads of a block needs, in one cache line. Threads start in the order 0, 1, 2 ... of
 * `index`. */
typedef struct SimtThreads {
  int next, count, finished; /* the next to start; in the block; returned */
  int waiting;               /* blocked in one of the five ways */
  const uint3 *index;        /* threadIdx in order of start */
  const uint16_t *rank;      /* order of start -> thread rank */
  unsigned char *state;      /* by rank; SIMT_DONE is stored here when a thread returns */
  int running;               /* its rank */
} SimtThreads;
enum {
  SIMT_UNSTARTED,
  SIMT_RUNNING,
  SIMT_READY,
  SIMT_AT_BARRIER,
  SIMT_AT_WARP,
  SIMT_AT_CONDITION,
  SIMT_AT_GRID,
  SIMT_DONE
};

/* Linked above the __shared__ arrays (above.c). */
extern __thread char simt_above_shared[8192] SIMT_TLS;

extern __thread SimtThreads simt_threads SIMT_TLS;

/* A thread has returned while others of its block wait: it may be the one they wait for. */
void simt_thread_returned(int rank);

typedef struct SimtKernel {
  const char *name, *file; /* as written at the launch */
  int line;
  uint3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
  int cooperative;
  void (*run_threads)(const void *arguments); /* starts the block's threads until none is left to start */
  const void *arguments;                      /* the kernel's arguments; copied byte by byte, as the driver does */
  size_t arguments_size;
  const void *const *pointers; /* argument_count of them: the argument if it is an object pointer, else NULL; of who
                                  launches, and gone when a queued kernel runs */
  int argument_count;
  const size_t *places; /* argument_count + 1: where each begins in `arguments`, and the end; NULL without inspector */
  uint32_t submitted;   /* the inspector's time when it was queued; 0: it was not */
  int device;           /* that was current at the launch; simt_launch() sets it */
  uint3 cluster;        /* its blocks; 0: the launch is not in clusters */
} SimtKernel;

/* The kernel was declared with __cluster_dims__(x, y, z). */
void simt_register_cluster(const void *kernel, unsigned x, unsigned y, unsigned z);

/* Checks, then runs the grid, or queues it (lazy streams). The error is also kept for cudaGetLastError(). */
cudaError_t simt_launch(const SimtKernel *kernel);

#ifdef __cplusplus
}
#endif

#endif /* SIMT_CORE_H */
