/* inspect.h - the inspector: what a profiler and a memory checker would say of a kernel, counted while it is emulated.
 *
 * The .cu file is compiled with gcc's ThreadSanitizer and coverage instrumentation, and linked with our own hooks
 * instead of the sanitizer's library. Every memory access and every basic block of a kernel calls one of them.
 *
 *   inspect_hooks.c     what the compiler calls: collects the accesses of a warp as requests
 *   inspect_lockstep.c  the lanes of a warp go from basic block to basic block together, as on a GPU
 *   inspect_count.c     sectors, wavefronts, bank conflicts of one request
 *   inspect_memory.c    which memory an address belongs to
 *   inspect_judge.c     whether an access is allowed: bounds, alignment, initialisation
 *   inspect_race.c      who touched a word before, and whether anything orders the two
 *   inspect_order.c     what fences and atomic operations order
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
 *   SIMT_INSPECT_HIDE=text      lines of files whose path contains it are not quoted
 */
#ifndef SIMT_INSPECT_H
#define SIMT_INSPECT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "simt/core.h"
#include "simt/inspector.h" /* the results */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what the scheduler tells ---- */

uint32_t simt_inspect_submitted(void); /* a launch is queued: what the host does from now on is not ordered with it */
void simt_inspect_launch_begin(const SimtKernel *kernel);
void simt_inspect_launch_end(const SimtKernel *kernel);
void simt_inspect_block_begin(unsigned long long block);
void simt_inspect_block_end(void);
int simt_inspecting(void);                                    /* the running block is inspected */
void simt_inspect_held(void *shared, size_t bytes, int held); /* pipeline.c: an asynchronous copy; 0: waited for */
void simt_inspect_block_barrier(void);                        /* all threads of the block have met */
void simt_inspect_warp_meeting(int warp, unsigned lanes, int sync); /* sync: it orders memory, as __syncwarp() does */
void simt_inspect_grid_arrive(void);                                /* the block waits for the others */
void simt_inspect_grid_barrier(void);                               /* all blocks have met */
void simt_inspect_sync_point(void);                                 /* the thread calls an operation that may wait */
void simt_inspect_passed(void);        /* ... and need not wait: the other lanes of its group catch up */
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

static inline SimtExample simt_example_of(const SimtRequest *request, uint32_t racing) {
  SimtExample e = {.lanes = request->mask, .racing = racing, .access = request->access & 7u, .bytes = request->bytes};
  for (int i = 0; i < 32; i++)
    if (request->mask >> i & 1) e.address[i] = request->address[i];
  return e;
}

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
