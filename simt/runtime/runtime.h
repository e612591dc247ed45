/* runtime.h - what the parts of the runtime know of each other.
 *
 *   launch.c    checks a launch, deals its blocks to the workers
 *   schedule.c  a worker: runs the threads of a block on fibres until all have returned
 *   report.c    diagnoses: what happened, where every thread is, what to try
 *   watchdog.c  a thread that never ends; faults of the processor inside a kernel
 *
 * The rest (memory, streams, devices, errors) is in api.h.
 */
#ifndef SIMT_RUNTIME_H
#define SIMT_RUNTIME_H

#define SIMT_RUNTIME
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simt/core.h"
#include "switch.h"

#define SIMT_MAX_WARPS (SIMT_MAX_BLOCK_THREADS / SIMT_WARP_SIZE)

/* ---- fibres: a stack on which CUDA threads run ---- */

typedef struct Fibre {
  void *stack_pointer; /* where it goes on, while no thread has it */
  struct Fibre *next;  /* in the list of idle ones */
  char *stack;         /* lowest address; SIMT_STACK_BYTES */
  int colour;          /* tops of stacks are moved apart, or they would all fall into the same cache sets */
  void *fake_stack;    /* AddressSanitizer's */
  void *tsan;          /* ThreadSanitizer's */
} Fibre;

#define SIMT_STACK_BYTES (256 * 1024)

/* ---- the threads of the block that a worker is running ---- */

typedef struct Thread { /* a cache line */
  void *stack_pointer;  /* where it goes on, when it waits */
  Fibre *fibre;
  const char *what, *file;
  int line;
  unsigned mask;               /* SIMT_AT_WARP */
  int (*ready)(void *context); /* SIMT_AT_CONDITION */
  void *context;
} __attribute__((aligned(64))) Thread;

/* Lanes that meet: those of `mask` in the same operation. */
typedef struct Meeting {
  unsigned mask, arrived;
  SimtComplete *complete;
  void *posts[SIMT_WARP_SIZE];
} Meeting;

typedef struct Warp {
  unsigned open;   /* bit i: meetings[i] has begun */
  unsigned exited; /* lanes that have returned, or that the block does not have */
  int exited_at;   /* the block's `finished` when `exited` was computed; -1: never */
} Warp;

struct Job;
struct Hopper;
struct Cluster;

/* An OS thread that runs blocks, one at a time. */
typedef struct Worker {
  struct Job *job;
  Thread threads[SIMT_MAX_BLOCK_THREADS];
  unsigned char state[SIMT_MAX_BLOCK_THREADS];
  Warp warps[SIMT_MAX_WARPS];
  Meeting meetings[SIMT_MAX_WARPS][SIMT_WARP_SIZE];
  uint3 index_by_rank[SIMT_MAX_BLOCK_THREADS]; /* threadIdx */
  uint3 index_by_start[SIMT_MAX_BLOCK_THREADS];
  uint16_t rank_by_start[SIMT_MAX_BLOCK_THREADS];
  uint3 ordered_for; /* the block shape for which the three tables hold */
  unsigned order_seed;

  int used;       /* a thread has waited since the tables were cleared */
  int conditions; /* threads in SIMT_AT_CONDITION */
  int at_barrier, barrier_predicates, barrier_result;
  int first_at_barrier; /* rank */
  int at_grid;

  Fibre *fibre; /* running */
  Fibre *idle;
  Fibre **fibres; /* all */
  int fibre_count;
  Fibre scheduler; /* the OS thread's own stack */
  size_t scheduler_bytes;
  struct Hopper *hopper;   /* hopper.h; NULL: no block has used it */
  struct Cluster *cluster; /* that the block belongs to; NULL: to none */
  int cluster_rank;
  void *inspector;     /* the inspector's view of the running block */
  char *static_shared; /* simt_above_shared of its OS thread */
  int preferred;       /* 1 + the thread that goes on next; 0: as usual */
  int own_conditions;  /* threads whose condition only threads of the block can make true */
  int aborted;         /* the block is given up: its fibres are not to be continued */
  char *dynamic_shared;
  size_t dynamic_shared_size; /* allocated */
  size_t dynamic_shared_set;  /* so many have got their first value, which is nothing useful */

  pthread_t os_thread;
  void *signal_stack;
  atomic_ulong progress; /* counts blocks and switches: a worker whose count stands still is looked at */
  atomic_ulong blocks;   /* begun */
  atomic_int in_block;
  struct Worker *next;
} Worker;

extern __thread Worker *simt_worker; /* NULL outside a kernel */
extern __thread SimtThreads simt_threads SIMT_TLS;
extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;

/* One launch being executed. */
typedef struct Job {
  const SimtKernel *kernel;
  unsigned long long blocks;
  atomic_ullong dealt; /* blocks given to workers */
  atomic_int failed;   /* a cudaError_t: no more blocks are dealt */
  unsigned number;     /* of the launch, for random orders */
  int resident;        /* blocks that a GPU of this kind would run at once */
  atomic_int crowded;  /* more OS threads than processors run it, because its blocks seem to wait for each other */
  /* cooperative launches: blocks meet at grid barriers */
  pthread_mutex_t grid_lock;
  pthread_cond_t grid_changed;
  unsigned long long grid_blocks_left, grid_arrived, grid_phase;
} Job;

typedef enum SimtOrder { SIMT_FORWARD, SIMT_REVERSE, SIMT_RANDOM } SimtOrder;

typedef struct SimtSettings {
  int threads;     /* SIMT_THREADS: OS threads */
  SimtOrder order; /* SIMT_ORDER=forward|reverse|random[:SEED] */
  unsigned seed;
  double watchdog;     /* SIMT_WATCHDOG: seconds of processor time, 0 for never */
  int multiprocessors; /* SIMT_MULTIPROCESSORS: of the imaginary GPU */
  int devices;         /* SIMT_DEVICES: imaginary GPUs */
  int capability;      /* SIMT_CAPABILITY=8.0|9.0: of them, times 10 */
  int strict;          /* SIMT_STRICT=1: what a GPU forgives is a fault, too */
} SimtSettings;
extern SimtSettings simt_settings;

/* schedule.c */
Worker *simt_worker_open(void); /* a new one, or one that was put back */
void simt_worker_close(Worker *worker);
void simt_run_block(Worker *worker, Job *job, unsigned long long block);
void simt_abort_block(void) __attribute__((noreturn)); /* from a kernel's thread */
uint64_t simt_mix(uint64_t number);                    /* a hash, for random orders */
/* For an inspector, which lets the threads of a warp run in step: the thread `rank` is READY, `next` (-1: one that has
 * not started) goes on; *stack_low becomes the lowest address of its stack. */
void simt_lockstep_switch(int rank, int next, uintptr_t *stack_low);
/* The thread `rank`, which waits for a condition that holds now, goes first. */
void simt_let_run(int rank);
int simt_condition_holds(Worker *worker, int rank); /* of a thread in SIMT_AT_CONDITION */

/* cluster.c: what a block needs that uses instructions of compute capability 9.0; a launch in clusters */
void simt_hopper_block_begin(Worker *worker);
void simt_hopper_block_end(Worker *worker);
void simt_run_clusters(Job *job);
void simt_describe_waits(Worker *worker); /* on stderr, of the threads that wait for them: mbarriers, products */
void simt_shared_launch(const SimtKernel *kernel);
int simt_is_mbarrier(const Worker *worker, const void *address);

/* launch.c */
/* The b-th of `count` blocks, or clusters, to run. */
unsigned long long simt_in_order(const Job *job, unsigned long long b, unsigned long long count);
void simt_no_block_ended(void); /* for a while: if the blocks wait for others, these need OS threads */
void simt_ask_launch(int *failed, int *crowded);

/* report.c */
/* One diagnosis of the running block on stderr, "=== simt: ...": what, the kernel, the launch and the block, every
 * thread grouped by where it is, and `advice`. The same `format` is told once for each launch line. `running_at` is
 * the place of the running thread where it is known. */
void simt_report_block(const char *advice, const char *format, ...) __attribute__((format(printf, 2, 3)));
void simt_report_running(const char *running_at, const char *advice, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends the launch with `error`; from a kernel's thread. */
void simt_give_up(cudaError_t error) __attribute__((noreturn));
/* A diagnosis of host code, on stderr: "=== simt: ..." */
void simt_report_host(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "file.cu:12 (function)" of an address in the program, or "0x..."; innermost frame outside our headers. */
const char *simt_where(const void *address, char *text, size_t size);
int simt_current_rank(void);

/* watchdog.c */
void simt_watch(Worker *worker); /* from now on, and handle faults of the processor on this OS thread */
void simt_unwatch(Worker *worker);

#endif /* SIMT_RUNTIME_H */
