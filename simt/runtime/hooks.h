/* hooks.h - what the runtime tells an inspector, and asks it: one table, the only join of the two.
 *
 * The inspector (simt/inspect) fills it in and uses the runtime as any caller does; nothing here includes a file of the
 * inspector. Only its build, where SIMT_INSPECT is defined, has an inspector. In every other one the table is empty and
 * SIMT_INSPECTED is 0, so that the compiler leaves out whatever asks for a hook.
 *
 *     TELL_INSPECTOR(block_end());
 *     if (SIMT_INSPECTED && simt_hooks.inspecting()) ...
 */
#ifndef SIMT_HOOKS_H
#define SIMT_HOOKS_H

#include "runtime.h"

#include "api.h"

typedef struct SimtHooks {
  /* ---- launch.c ---- */
  uint32_t (*submitted)(void); /* a launch is queued; gives its SimtKernel.submitted */
  void (*launch_begin)(const SimtKernel *kernel);
  void (*launch_end)(const SimtKernel *kernel);

  /* ---- schedule.c: blocks, and who runs ---- */
  void (*block_begin)(unsigned long long block);
  void (*block_end)(void);
  int (*inspecting)(void);       /* the running block is inspected; next(), pick() and spins() may be called */
  int (*next)(void);             /* who goes on when a thread has returned: as pick(); -2 also for "not inspected" */
  int (*pick)(int yields);       /* who goes on: a rank, -1 a thread that has not started, -2 nobody */
  void (*prefer)(int rank);      /* its warp should go on next */
  int (*spins)(void);            /* the thread tries the same again and again */
  void (*stack)(char *lowest);   /* the stack that is about to run */
  void (*give_turn)(void);       /* another block may run ... */
  void (*take_turn)(void);       /* ... until this one's turn comes */
  unsigned (*active_mask)(void); /* the lanes that execute the present step together; 0: not inspected */

  /* ---- schedule.c: threads that wait ---- */
  void (*sync_point)(void);    /* the thread calls an operation that may wait */
  void (*passed)(void);        /* ... and need not wait: the other lanes of its group catch up */
  void (*block_barrier)(void); /* all threads of the block have met */
  void (*warp_meeting)(int warp, unsigned lanes, int sync); /* sync: it orders memory, as __syncwarp() does */
  void (*grid_arrive)(void);                                /* the block waits for the others */
  void (*grid_barrier)(void);                               /* all blocks have met */
  void *(*pause)(void); /* until resume(): a header's code runs for other threads, whose memory it may read */
  void (*resume)(void *paused);

  /* ---- memory.c, copy.c, pipeline.c, report.c, and the libraries ---- */
  void (*allocated)(void *base, size_t size, SimtMemoryKind kind);
  void (*freed)(void *base, size_t size, SimtMemoryKind kind); /* it is about to be */
  void (*host_wrote)(void *base, size_t size);                 /* a copy, a memset or a library's function */
  void (*held)(void *shared, size_t bytes, int held);          /* by an asynchronous copy; 0: it has been waited for */
  /* ---- mbarrier.c, wgmma.c: what is asynchronous; `owner` runs the block whose shared memory it is ---- */
  void (*bulk_began)(struct Worker *owner, void *shared, size_t bytes);
  void (*bulk_arrived)(struct Worker *owner, void *shared, size_t bytes);
  void (*bulk_reads)(const void *pc, const void *global, size_t bytes);
  void (*async_reads)(const void *pc, const void *shared, size_t bytes); /* wgmma, called at pc, reads a factor */
  void (*async_fence)(void);                                             /* fence.proxy.async of the thread */
  void (*counted)(const void *pc, int counter, uint64_t more);           /* SimtCounter of simt/inspector.h */

  int (*saw_outside)(void);       /* it has found accesses out of bounds, with their lines */
  void (*told)(const char *text); /* a diagnosis was printed: "=== simt: " and this */
} SimtHooks;

#ifdef SIMT_INSPECT
enum { SIMT_INSPECTED = 1 };
extern const SimtHooks simt_hooks; /* simt/inspect/hooks.c */
#else
enum { SIMT_INSPECTED = 0 };
static const SimtHooks simt_hooks = {0};
#endif

#define TELL_INSPECTOR(hook) ((void)(SIMT_INSPECTED ? simt_hooks.hook : (void)0))

#endif /* SIMT_HOOKS_H */
