/* inspect.h - the inspector: what a profiler and a memory checker would say of a kernel, counted while it is emulated.
 *
 * The .cu file is compiled with gcc's ThreadSanitizer and coverage instrumentation, and linked with our own hooks
 * instead of the sanitizer's library. Every memory access and every basic block of a kernel calls one of them.
 *
 *   inspect_hooks.c     what the compiler calls: collects the accesses of a warp as requests
 *   inspect_lockstep.c  the lanes of a warp go from basic block to basic block together, as on a GPU
 *   inspect_count.c     sectors, wavefronts, bank conflicts of one request
 *   inspect_memory.c    which memory an address belongs to; bounds, alignment, initialisation
 *   inspect_race.c      who touched a word before, and whether anything orders the two
 *   inspect_symbols.c   sites in the program: file and line; names of shared arrays
 *   inspect_report.c    the results, for the formats; and a plain text
 *
 * Only one block is inspected at a time, whatever the number of OS threads. Settings of the environment:
 *
 *   SIMT_INSPECT_KERNEL=text    only kernels whose name as launched contains it
 *   SIMT_INSPECT_SAMPLE=n       only one block in n; counts are scaled up and marked as estimated
 *   SIMT_INSPECT_LAUNCHES=1     every launch by itself, rather than all launches of a line and shape together
 *   SIMT_INSPECT_MEMORY=MB      the most that is spent on remembering accesses for races (2048)
 *   SIMT_INSPECT_EXIT=code      the exit status of a program with findings (without it: its own)
 */
#ifndef SIMT_INSPECT_H
#define SIMT_INSPECT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "simt/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- results ---- */

typedef enum SimtCounter {
  /* control flow. A step is one basic block executed by a group of lanes of one warp. */
  SIMT_STEPS,
  SIMT_STEP_LANES,       /* lanes in those groups: at most 32 each */
  SIMT_BRANCHES,         /* steps whose block can go on to more than one other */
  SIMT_UNIFORM_BRANCHES, /* of these, the ones that all lanes left for the same block */

  /* device memory. A request is one instruction of one warp; a sector is 32 bytes. */
  SIMT_GLOBAL_LOAD_REQUESTS,
  SIMT_GLOBAL_LOAD_SECTORS,
  SIMT_GLOBAL_LOAD_IDEAL_SECTORS, /* if the bytes asked for lay side by side */
  SIMT_GLOBAL_LOAD_BYTES,         /* asked for by the lanes */
  SIMT_GLOBAL_STORE_REQUESTS,
  SIMT_GLOBAL_STORE_SECTORS,
  SIMT_GLOBAL_STORE_IDEAL_SECTORS,
  SIMT_GLOBAL_STORE_BYTES,
  SIMT_GLOBAL_ATOMIC_REQUESTS,
  SIMT_GLOBAL_ATOMIC_SECTORS,
  SIMT_GLOBAL_ATOMIC_LANES,
  /* lanes that hit the same address go one after the other: the longest queue of each request */
  SIMT_GLOBAL_ATOMIC_TURNS,

  /* shared memory: 32 banks of 4 bytes. A wavefront serves each bank once; conflicts are the wavefronts that would not
   * have been needed. */
  SIMT_SHARED_LOAD_REQUESTS,
  SIMT_SHARED_LOAD_WAVEFRONTS,
  SIMT_SHARED_LOAD_CONFLICTS,
  SIMT_SHARED_STORE_REQUESTS,
  SIMT_SHARED_STORE_WAVEFRONTS,
  SIMT_SHARED_STORE_CONFLICTS,
  SIMT_SHARED_ATOMIC_REQUESTS,
  SIMT_SHARED_ATOMIC_LANES,
  SIMT_SHARED_ATOMIC_TURNS,

  SIMT_CONSTANT_LOAD_REQUESTS,
  SIMT_CONSTANT_LOAD_WORDS, /* different addresses of a request are served one after the other */
  SIMT_LOCAL_LOADS,         /* by single lanes: arrays and spilled variables of a thread */
  SIMT_LOCAL_STORES,

  SIMT_COUNTERS
} SimtCounter;

typedef struct SimtCounterName {
  const char *name;   /* "global_load_sectors" */
  const char *nsight; /* "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", or NULL where Nsight Compute has no equal */
  const char *text;   /* for people */
} SimtCounterName;
extern const SimtCounterName simt_counter_names[SIMT_COUNTERS];

/* A place in the program's source, outside our headers. Unknown: file is "?", line 0. */
typedef struct SimtPlace {
  const char *file, *function;
  int line;
} SimtPlace;

typedef struct SimtLineReport {
  SimtPlace place;
  uint64_t count[SIMT_COUNTERS];
} SimtLineReport;

typedef struct SimtKernelReport {
  const char *name, *file; /* as launched */
  int line;
  uint3 grid, block;
  size_t static_shared, dynamic_shared;
  uint64_t launches, blocks, inspected_blocks;
  int estimated;                 /* counts were scaled up from a sample */
  uint64_t count[SIMT_COUNTERS]; /* of all lines */
  SimtLineReport *lines;         /* by file and line */
  int line_count;
} SimtKernelReport;

typedef enum SimtFindingKind {
  SIMT_DATA_RACE,
  SIMT_OUT_OF_BOUNDS,
  SIMT_USE_AFTER_FREE,
  SIMT_UNINITIALISED_READ,
  SIMT_MISALIGNED,
  SIMT_HOST_POINTER,   /* a kernel uses memory of the host */
  SIMT_DEVICE_POINTER, /* host code uses memory of the device */
  SIMT_NULL_POINTER,
  SIMT_READ_ONLY_WRITE, /* a kernel writes constant memory */
  SIMT_MISSING_SYNC,    /* host code did not wait for a kernel or copy that is still queued */
  SIMT_STREAM_RACE,     /* two streams use the same memory, and nothing orders them */
  SIMT_FINDING_KINDS
} SimtFindingKind;

typedef enum SimtAccessKind {
  SIMT_ACCESS_READ = 0,
  SIMT_ACCESS_WRITE = 1,
  SIMT_ACCESS_ATOMIC = 2,
  SIMT_ACCESS_VOLATILE = 4
} SimtAccessKind;

/* Who did it. */
typedef struct SimtParty {
  SimtPlace place;
  unsigned access; /* SimtAccessKind bits */
  int bytes;
  unsigned long long block; /* linear; UINT64_MAX: unknown */
  uint3 block_index, thread_index;
  int host; /* host code, or a copy */
} SimtParty;

typedef struct SimtFinding {
  SimtFindingKind kind;
  int kernel; /* in the report's kernels, or -1 */
  int parties;
  SimtParty party[2]; /* the later one first */
  const char *scope;  /* races: "between blocks", "between warps of a block", "between lanes of a warp" */
  char *memory;       /* "s_tile (static shared, 4224 bytes), byte 128" */
  char *advice;
  uint64_t occurrences;
} SimtFinding;

typedef struct SimtInspectReport {
  SimtKernelReport *kernels;
  int kernel_count;
  SimtFinding *findings;
  int finding_count;
  uint64_t findings_dropped; /* beyond the most that are kept */
  const char *notes[8];      /* what was not checked, and why */
  int note_count;
} SimtInspectReport;

/* "data race", "out of bounds", ... */
const char *simt_finding_name(SimtFindingKind kind);
/* "reads 4 bytes", "atomically writes 8 bytes", ... */
const char *simt_access_text(unsigned access, int bytes, char *text, size_t size);

/* All that is known so far; valid until the next call. Asks addr2line for the lines: some tenths of a second. */
const SimtInspectReport *simt_inspect_report(void);
/* As SIMT_REPORT says (inspect_formats.c); called when the program ends. */
void simt_inspect_write_reports(const SimtInspectReport *report);

/* ---- what the scheduler tells ---- */

uint32_t simt_inspect_submitted(void); /* a launch is queued: what the host does from now on is not ordered with it */
void simt_inspect_launch_begin(const SimtKernel *kernel);
void simt_inspect_launch_end(const SimtKernel *kernel);
void simt_inspect_block_begin(unsigned long long block);
void simt_inspect_block_end(void);
int simt_inspecting(void);                                          /* the running block is inspected */
void simt_inspect_block_barrier(void);                              /* all threads of the block have met */
void simt_inspect_warp_meeting(int warp, unsigned lanes, int sync); /* sync: it orders memory, as __syncwarp() does */
void simt_inspect_grid_barrier(void);                               /* all blocks have met */
void simt_inspect_sync_point(void);                                 /* the thread calls an operation that may wait */
void simt_inspect_passed(void);        /* ... and need not wait: the other lanes of its group catch up */
void *simt_inspect_pause(void);        /* what follows is not the kernel's doing ... */
void simt_inspect_continue(void *);    /* ... until here */
int simt_inspect_next(void);           /* who goes on when a thread has returned: as simt_inspect_pick() */
int simt_inspect_spins(void);          /* the thread tries the same again and again */
int simt_inspect_pick(int yields);     /* who goes on: a rank, -1 a thread that has not started, -2 nobody */
void simt_inspect_stack(char *lowest); /* the stack that is about to run */
void simt_inspect_give_turn(void);     /* cooperative launches: another block may run ... */
void simt_inspect_take_turn(void);     /* ... until this one's turn comes */
/* As SIMT_REPORT asks: table, source, json:FILE, html:FILE, none (inspect_formats.c). Called when the program ends. */
void simt_inspect_write_reports(const SimtInspectReport *report);

/* ---- one request (inspect_count.c) ---- */

/* The accesses of up to 32 lanes by one instruction: address[lane] counts where the mask has its bit. */
typedef struct SimtRequest {
  uint32_t mask;
  uint16_t bytes; /* of each lane */
  uint8_t access; /* SimtAccessKind bits */
  uintptr_t address[32];
} SimtRequest;

/* Distinct 32-byte sectors; *ideal those that as many bytes would fill side by side, never more than that. */
int simt_count_sectors(const SimtRequest *request, int *ideal);
/* Passes over the 32 banks; *ideal without conflicts. Lanes are served in groups: 32 for up to 4 bytes, 16 for 8, 8
 * for 16. */
int simt_count_wavefronts(const SimtRequest *request, int *ideal);
/* Distinct addresses. */
int simt_count_addresses(const SimtRequest *request);
/* The most lanes with the same address. */
int simt_count_turns(const SimtRequest *request);

#ifdef __cplusplus
}
#endif

#endif /* SIMT_INSPECT_H */
