/* inspect.h - the inspector: what a profiler and a memory checker would say of a kernel, counted while it is emulated.
 *
 * The .cu file is compiled with gcc's ThreadSanitizer and coverage instrumentation, and linked with our own hooks
 * instead of the sanitizer's library. Every memory access and every basic block of a kernel calls one of them.
 *
 *   hooks.c     the table by which the runtime tells what it does
 *   accesses.c  what the compiler calls: collects the accesses of a warp as requests
 *   lockstep.c  the lanes of a warp go from basic block to basic block together, as on a GPU
 *   flow.c      where lanes that took different branches meet again
 *   count.c     sectors, wavefronts and bank conflicts of one request
 *   memory.c    which memory an address belongs to
 *   judge.c     whether an access is allowed: bounds, alignment, initialisation
 *   race.c      who touched a word before, and whether anything orders the two
 *   order.c     what fences and atomic operations order
 *   hopper.c    what is asynchronous from compute capability 9.0 on: bulk copies, wgmma
 *   symbols.c   places in the program: file and line; names of shared arrays
 *   report.c    collects counts and findings
 *   formats.c   prints them: table, source, JSON, HTML
 *
 * Only one block is inspected at a time, whatever the number of OS threads. The environment's settings:
 *
 *   SIMT_INSPECT_KERNEL=text    only kernels whose name as launched contains it
 *   SIMT_INSPECT_SAMPLE=n       only one block in n; counts are scaled up and marked as estimated
 *   SIMT_INSPECT_LAUNCHES=1     every launch by itself, rather than all launches of a line and shape together
 *   SIMT_INSPECT_MEMORY=MB      the most that is spent on remembering accesses for races (2048)
 *   SIMT_INSPECT_EXIT=code      the exit status of a program with findings (without it: the program's own)
 *   SIMT_INSPECT_HIDE=text      lines of files whose path contains it are not quoted
 */
#ifndef SIMT_INSPECT_H
#define SIMT_INSPECT_H

#include "hooks.h" /* first: the runtime's own view of simt/core.h */

#include "count.h"
#include "simt/inspector.h" /* the results */

/* ---- what the runtime tells and asks: each is described in runtime/hooks.h ---- */

uint32_t simt_inspect_submitted(void);
void simt_inspect_launch_begin(const SimtKernel *kernel);
void simt_inspect_launch_end(const SimtKernel *kernel);
void simt_inspect_block_begin(unsigned long long block);
void simt_inspect_block_end(void);
int simt_inspect_inspecting(void);
int simt_inspect_next(void);
int simt_inspect_pick(int yields);
void simt_inspect_prefer(int rank);
int simt_inspect_spins(void);
void simt_inspect_stack(char *lowest);
void simt_inspect_give_turn(void);
void simt_inspect_take_turn(void);
unsigned simt_inspect_active_mask(void);
void simt_inspect_sync_point(void);
void simt_inspect_passed(void);
void simt_inspect_block_barrier(void);
void simt_inspect_warp_meeting(int warp, unsigned lanes, int sync);
void simt_inspect_grid_arrive(void);
void simt_inspect_grid_barrier(void);
void simt_inspect_allocated(void *base, size_t size, SimtMemoryKind kind);
void simt_inspect_freed(void *base, size_t size, SimtMemoryKind kind);
void simt_inspect_host_wrote(void *base, size_t size);
void simt_inspect_held(void *shared, size_t bytes, int held);
void simt_inspect_bulk_began(Worker *owner, void *shared, size_t bytes);
void simt_inspect_bulk_arrived(Worker *owner, void *shared, size_t bytes);
void simt_inspect_bulk_reads(const void *pc, const void *global, size_t bytes);
void simt_inspect_async_reads(const void *pc, const void *shared, size_t bytes);
void simt_inspect_async_fence(void);
void simt_inspect_counted(const void *pc, int counter, uint64_t more);
int simt_inspect_saw_outside(void);
void simt_inspect_told(const char *text);

/* ---- formats.c ---- */

/* As SIMT_REPORT asks: table, source, json:FILE, html:FILE, none. Called when the program ends. */
void simt_inspect_write_reports(const SimtInspectReport *report);

#endif /* SIMT_INSPECT_H */
