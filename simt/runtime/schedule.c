/* schedule.c - how one OS thread runs the threads of a block.
 *
 * A GPU holds all threads of a block at once and issues a warp's next instruction whenever it can. Here the threads run
 * one after the other, on one stack, until one of them has to wait. The waiting thread keeps that stack (a fibre),
 * and the next thread starts on another. When everybody it waits for has arrived, it is READY, and its fibre goes on
 * in its turn. So a kernel without barriers never switches, and one with barriers switches once for each thread and
 * barrier.
 *
 * Nothing interrupts a thread: it runs until it waits or returns. What a kernel gets wrong by relying on an order shows
 * when SIMT_ORDER turns the order round.
 */
#include "runtime.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "hooks.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

__thread uint3 threadIdx SIMT_TLS;
__thread uint3 blockIdx SIMT_TLS;
__thread dim3 blockDim SIMT_TLS;
__thread dim3 gridDim SIMT_TLS;
__thread SimtThreads simt_threads SIMT_TLS;
__thread Worker *simt_worker;

enum { START_ONE = -1, NOBODY = -2 }; /* pick() */

uint64_t simt_mix(uint64_t number) { /* splitmix64's finaliser */
  number += 0x9e3779b97f4a7c15u;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
  number = (number ^ number >> 27) * 0x94d049bb133111ebu;
  return number ^ number >> 31;
}

static unsigned next_random(Worker *w) { return (unsigned)simt_mix(w->order_seed++); }

int simt_in_kernel(void) { return simt_worker != NULL; }

int simt_current_rank(void) { return simt_threads.running; }

unsigned simt_thread_rank(void) { return (unsigned)simt_current_rank(); }

void *simt_dynamic_shared(void) { return simt_worker ? simt_worker->dynamic_shared : NULL; }

size_t simt_dynamic_shared_size(void) { return simt_worker ? simt_worker->job->kernel->shared_bytes : 0; }

int simt_grid_is_cooperative(void) { return simt_worker && simt_worker->job->kernel->cooperative; }

unsigned long long simt_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

/* ---- fibres ---- */

static void fibre_main(void);

/* The tops of the stacks lie 0 .. 47 steps of two cache lines apart: at equal distances of 2^n they would share cache
 * sets, and a switch among 1024 of them would cost four times as much. */
static void reset_fibre(Fibre *f) {
  size_t offset = (size_t)(f->colour * 7 % 48) * 128;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(f->stack, SIMT_STACK_BYTES);
#endif
  f->fake_stack = NULL;
  f->stack_pointer = simt_new_stack(f->stack, SIMT_STACK_BYTES - offset, fibre_main);
}

enum { FIBRES_AT_ONCE = 32 };

/* Below each stack lies a page that may not be touched: too deep a recursion stops there (watchdog.c explains it). */
static void add_fibres(Worker *w) {
  size_t guard = (size_t)sysconf(_SC_PAGESIZE), step = SIMT_STACK_BYTES + guard;
  char *slab = mmap(NULL, FIBRES_AT_ONCE * step, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  Fibre *fibres = calloc(FIBRES_AT_ONCE, sizeof *fibres);
  Fibre **all = realloc(w->fibres, (size_t)(w->fibre_count + FIBRES_AT_ONCE) * sizeof *all);
  if (slab == MAP_FAILED || !fibres || !all) {
    fprintf(stderr, "=== simt: out of memory for the stacks of a block's threads (%s)\n", strerror(errno));
    abort();
  }
  w->fibres = all;
  for (int i = FIBRES_AT_ONCE - 1; i >= 0; i--) {
    Fibre *f = &fibres[i];
    mprotect(slab + (size_t)i * step, guard, PROT_NONE);
    f->stack = slab + (size_t)i * step + guard;
    f->colour = w->fibre_count + i;
#if defined(__SANITIZE_THREAD__)
    f->tsan = __tsan_create_fiber(0);
#endif
    reset_fibre(f);
    w->fibres[w->fibre_count + i] = f;
    f->next = w->idle;
    w->idle = f;
  }
  w->fibre_count += FIBRES_AT_ONCE;
}

static Fibre *take_idle(Worker *w) {
  if (!w->idle) add_fibres(w);
  Fibre *f = w->idle;
  w->idle = f->next;
  return f;
}

/* After a block that was given up, or on another OS thread: every stack begins anew. */
static void reset_fibres(Worker *w) {
  w->idle = NULL;
  for (int i = w->fibre_count - 1; i >= 0; i--) {
    reset_fibre(w->fibres[i]);
    w->fibres[i]->next = w->idle;
    w->idle = w->fibres[i];
  }
}

static inline void note_progress(Worker *w) {
  atomic_store_explicit(&w->progress, atomic_load_explicit(&w->progress, memory_order_relaxed) + 1,
                        memory_order_relaxed);
}

/* From the running fibre, which goes on where *here will be, to where another one was left. */
static inline void switch_to(Worker *w, void **here, Fibre *to, void *there) {
  Fibre *from = w->fibre;
  w->fibre = to;
  TELL_INSPECTOR(stack(to->stack));
  note_progress(w);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from->fake_stack, to->stack,
                                 to == &w->scheduler ? w->scheduler_bytes : SIMT_STACK_BYTES);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to->tsan, 0);
#endif
  (void)from;
  simt_switch(here, there, w->barrier_result);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

/* ---- who goes next ---- */

/* Code of a header that runs for others: the inspector does not look at it. */
static int ask(int (*ready)(void *), void *context) {
  if (!SIMT_INSPECTED) return ready(context);
  void *seen = simt_hooks.pause();
  int answer = ready(context);
  simt_hooks.resume(seen);
  return answer;
}

static int find_ready(Worker *w, int from, int to) {
  if (!w->conditions) {
    const unsigned char *found = from < to ? memchr(w->state + from, SIMT_READY, (size_t)(to - from)) : NULL;
    return found ? (int)(found - w->state) : NOBODY;
  }
  for (int r = from; r < to; r++)
    if (w->state[r] == SIMT_READY ||
        (w->state[r] == SIMT_AT_CONDITION && ask(w->threads[r].ready, w->threads[r].context)))
      return r;
  return NOBODY;
}

/* In ring order after `rank`, within [first, last). */
static int find_ready_after(Worker *w, int rank, int first, int last) {
  if (rank + 1 < last && w->state[rank + 1] == SIMT_READY) return rank + 1;
  int found = find_ready(w, rank + 1, last);
  return found >= 0 ? found : find_ready(w, first, rank + 1 < last ? rank + 1 : last);
}

static int find_ready_anywhere(Worker *w, int rank) {
  int count = simt_threads.count;
  if (rank + 1 < count && w->state[rank + 1] == SIMT_READY && simt_settings.order == SIMT_FORWARD) return rank + 1;
  switch (simt_settings.order) {
    case SIMT_FORWARD:
      break;
    case SIMT_REVERSE:
      for (int i = 1; i <= count && !w->conditions; i++) {
        int r = rank - i < 0 ? rank - i + count : rank - i;
        if (w->state[r] == SIMT_READY) return r;
      }
      break;
    case SIMT_RANDOM:
      rank = (int)(next_random(w) % (unsigned)count);
      break;
  }
  return find_ready_after(w, rank, 0, count);
}

/* The thread to go on with after `rank` has begun to wait: a rank, START_ONE, or NOBODY. A thread that waits for its
 * warp lets its warp go first. */
static int pick(Worker *w, int rank, int for_warp) {
  if (SIMT_INSPECTED && simt_hooks.inspecting()) return simt_hooks.pick(w->state[rank] == SIMT_READY);
  int unstarted = simt_threads.next < simt_threads.count;
  if (for_warp) {
    int warp = rank / SIMT_WARP_SIZE, first = warp * SIMT_WARP_SIZE, last = first + SIMT_WARP_SIZE;
    if (last > simt_threads.count) last = simt_threads.count;
    if (unstarted && w->rank_by_start[simt_threads.next] / SIMT_WARP_SIZE == warp) return START_ONE;
    int found = find_ready_after(w, rank, first, last);
    if (found >= 0) return found;
  }
  return unstarted ? START_ONE : find_ready_anywhere(w, rank);
}

static void report_deadlock(Worker *w) {
  simt_report_block(
      w->own_conditions
          ? "a phase of an mbarrier ends when all its arrivals and all announced bytes have come: compare them with "
            "mbarrier_init() and the copies, see that each wait names the parity of its phase, and that a stage is "
            "released in every round"
      : w->at_barrier && w->conditions == 0
          ? "a barrier waits for every thread of the block that has not returned, a warp operation for every lane of "
            "its mask: take the barrier out of the branch, or give the warp operation the mask of the lanes that come"
          : "each group waits for another one, or for lanes that went elsewhere: see that all lanes of a mask reach "
            "the "
            "same operation, and that whoever is waited for still arrives",
      "deadlock: no thread of the block can go on");
  simt_give_up(cudaErrorLaunchTimeout);
}

static void let_other_blocks(void) {
  TELL_INSPECTOR(give_turn());
  sched_yield();
  TELL_INSPECTOR(take_turn());
}

/* Waits for other blocks to make a condition true; in a launch of one block nobody will. */
static int pick_patiently(Worker *w, int rank, int for_warp) {
  int next = w->preferred - 1;
  w->preferred = 0;
  if (next >= 0) return next;
  next = pick(w, rank, for_warp);
  if (next != NOBODY || !w->conditions) return next;
  if (w->conditions == w->own_conditions && !w->cluster) return next; /* no other block can help */
  double limit = w->job->blocks == 1 ? 0.2 : simt_settings.watchdog;
  unsigned long long start = simt_clock();
  while ((next = pick(w, rank, for_warp)) == NOBODY) {
    let_other_blocks();
    if (limit > 0 && (double)(simt_clock() - start) * 1e-9 > limit) break;
    if (atomic_load(&w->job->failed)) simt_abort_block();
  }
  return next;
}

static void resume(Worker *w, int rank) {
  if (w->state[rank] == SIMT_AT_CONDITION) w->conditions--;
  w->state[rank] = SIMT_RUNNING;
  simt_threads.running = rank;
  simt_threads.waiting--;
  threadIdx = w->index_by_rank[rank];
}

/* The stacks of a block's threads do not fit into the first cache, but mostly they go on in order: what the one after
 * the next will touch is fetched while the next one runs. */
static inline void prefetch_after(Worker *w, int next) {
  enum { LINES = 4 };
  if (next + 2 >= SIMT_MAX_BLOCK_THREADS) return;
  const char *top = w->threads[next + 1].stack_pointer;
  for (int i = 0; i < LINES; i++) __builtin_prefetch(top + 64 * i, 1);
  __builtin_prefetch(&w->threads[next + 2], 1);
}

/* The stack that the next thread will start on, if one is to start. */
static inline void prefetch_idle(const Worker *w) {
  enum { LINES = 5 };
  const Fibre *f = w->idle;
  if (!f) return;
  const char *top = f->stack_pointer;
  for (int i = 0; i < LINES; i++) __builtin_prefetch(top + 64 - 64 * i, 1);
  __builtin_prefetch(f->next);
}

/* The present thread waits; returns when it goes on. */
static __attribute__((noinline)) void wait_here(Worker *w, int rank, int state, int for_warp) {
  w->state[rank] = (unsigned char)state;
  w->threads[rank].fibre = w->fibre;
  w->used = 1;
  simt_threads.waiting++;
  if (state == SIMT_AT_CONDITION) w->conditions++;
  int next = pick_patiently(w, rank, for_warp);
  if (next == NOBODY) report_deadlock(w);
  if (next >= 0) {
    resume(w, next);
    prefetch_after(w, next);
  }
  if (next == START_ONE) {
    Fibre *fresh = take_idle(w);
    switch_to(w, &w->threads[rank].stack_pointer, fresh, fresh->stack_pointer);
  } else if (next != rank) {
    switch_to(w, &w->threads[rank].stack_pointer, w->threads[next].fibre, w->threads[next].stack_pointer);
  }
}

#if defined(SIMT_WAIT) && !defined(SIMT_INSPECT) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SIMT_QUICK /* nobody looks at every switch */

/* What wait_here() mostly comes to, in a few instructions. The present thread will go on at `here`. */
static inline __attribute__((always_inline)) void leave(Worker *w, int rank, int state, void *here) {
  Thread *t = &w->threads[rank];
  w->state[rank] = (unsigned char)state;
  t->stack_pointer = here;
  t->fibre = w->fibre;
  note_progress(w);
}

/* The next thread in order goes on: where; NULL: it is not so simple. */
static inline __attribute__((always_inline)) void *let_next_go_on(Worker *w, int rank, int state, int for_warp,
                                                                  void *here) {
  int next = rank + 1;
  if (next >= simt_threads.count || w->state[next] != SIMT_READY || simt_settings.order != SIMT_FORWARD ||
      (for_warp && next % SIMT_WARP_SIZE == 0))
    return NULL;
  leave(w, rank, state, here);
  w->state[next] = SIMT_RUNNING;
  w->fibre = w->threads[next].fibre;
  simt_threads.running = next;
  threadIdx = w->index_by_rank[next];
  prefetch_after(w, next);
  return w->threads[next].stack_pointer;
}

/* The next thread starts. */
static inline __attribute__((always_inline)) void *let_next_start(Worker *w, int rank, int state, int for_warp,
                                                                  void *here) {
  Fibre *fresh = w->idle;
  int next = simt_threads.next;
  if (next >= simt_threads.count || !fresh ||
      (for_warp && w->rank_by_start[next] / SIMT_WARP_SIZE != rank / SIMT_WARP_SIZE))
    return NULL;
  leave(w, rank, state, here);
  w->used = 1;
  w->fibre = fresh;
  w->idle = fresh->next;
  simt_threads.waiting++;
  prefetch_idle(w);
  return fresh->stack_pointer;
}

/* Where that is not enough. */
static __attribute__((noinline)) SimtGoOn wait_slowly(Worker *w, int rank, int state, void *here) {
  int for_warp = state == SIMT_AT_WARP;
  void *there = let_next_start(w, rank, state, for_warp, here);
  if (!there) {
    wait_here(w, rank, state, for_warp);
    there = here;
  }
  return (SimtGoOn){there, w->barrier_result};
}
#endif

/* ---- what an inspector does with the threads ---- */

int simt_condition_holds(Worker *w, int rank) { return ask(w->threads[rank].ready, w->threads[rank].context); }

void simt_lockstep_switch(int rank, int next, uintptr_t *stack_low) {
  Worker *w = simt_worker;
  Fibre *to;
  void *there;
  w->threads[rank].fibre = w->fibre;
  w->used = 1;
  if (next == START_ONE) {
    simt_threads.waiting++;
    to = take_idle(w);
    there = to->stack_pointer;
  } else {
    if (w->state[next] == SIMT_AT_CONDITION) w->conditions--;
    w->state[next] = SIMT_RUNNING;
    simt_threads.running = next;
    threadIdx = w->index_by_rank[next];
    to = w->threads[next].fibre;
    there = w->threads[next].stack_pointer;
  }
  w->fibre = to;
  *stack_low = (uintptr_t)to->stack;
  simt_switch(&w->threads[rank].stack_pointer, there, w->barrier_result);
}

static void note_site(Thread *t, const char *what, const char *file, int line) {
  t->what = what;
  t->file = file;
  t->line = line;
}

/* Every thread in `state` is READY. */
static void release(Worker *w, int state) {
  unsigned char *s = w->state;
  for (int r = 0; r < simt_threads.count; r++) s[r] = s[r] == state ? SIMT_READY : s[r];
}

/* The thread after `rank`, where it is clear that pick() would take it. */
static inline int next_in_order(const Worker *w, int rank) {
  int clear =
      simt_threads.next == simt_threads.count && rank + 1 < simt_threads.count && simt_settings.order == SIMT_FORWARD;
  return clear && w->state[rank + 1] == SIMT_READY ? rank + 1 : NOBODY;
}

/* A loop over threads has none left to start: others go on, or the block is done. */
static void fibre_main(void) {
#if defined(__SANITIZE_ADDRESS__) /* the first switch to this stack; later ones end in switch_to() */
  __sanitizer_finish_switch_fiber(simt_worker->fibre->fake_stack, NULL, NULL);
#endif
  for (;;) {
    Worker *w = simt_worker;
    w->job->kernel->run_threads(w->job->kernel->arguments);
    Fibre *own = w->fibre, *to = &w->scheduler;
    void *there = to->stack_pointer;
    int rank = simt_current_rank();
    if (SIMT_INSPECTED && (w->at_barrier | w->at_grid | (int)w->warps[rank / SIMT_WARP_SIZE].open))
      simt_thread_returned(rank);
    if (simt_threads.finished < simt_threads.count) {
      int next = SIMT_INSPECTED ? simt_hooks.next() : next_in_order(w, rank);
      if (next == NOBODY) next = pick_patiently(w, simt_current_rank(), 0);
      if (next == NOBODY) report_deadlock(w);
      if (next == START_ONE) continue; /* on this stack */
      resume(w, next);
      to = w->threads[next].fibre;
      there = w->threads[next].stack_pointer;
    }
    own->next = w->idle;
    w->idle = own;
    if (!SIMT_INSPECTED) prefetch_after(w, simt_current_rank());
    switch_to(w, &own->stack_pointer, to, there);
  }
}

/* ---- the five ways to wait ---- */

static __attribute__((noinline, noreturn)) void refuse_host(const char *what, const char *file, int line) {
  fprintf(stderr, "=== simt: %s called by host code, %s:%d: it exists only inside a kernel\n", what, file, line);
  abort();
}

static inline Worker *worker_of_kernel(const char *what, const char *file, int line) {
  if (!simt_worker) refuse_host(what, file, line);
  return simt_worker;
}

static void warn_divergence(const char *format, const char *what) {
  simt_report_block(
      "move the barrier to where every thread of the block passes exactly once: CUDA leaves the behaviour "
      "undefined otherwise, even where today's GPUs go on",
      format, what);
  if (simt_settings.strict) simt_give_up(cudaErrorLaunchTimeout);
}

static void open_barrier(Worker *w) {
  if (simt_threads.finished > 0)
    warn_divergence("barrier divergence: threads have returned while others of the block wait at %s",
                    w->threads[w->first_at_barrier].what);
  w->barrier_result = w->barrier_predicates;
  w->barrier_predicates = w->at_barrier = 0;
  TELL_INSPECTOR(block_barrier());
  release(w, SIMT_AT_BARRIER);
}

/* All have come; `rank` is the last. */
static __attribute__((noinline)) int last_at_barrier(Worker *w, int rank) {
  open_barrier(w);
  w->state[rank] = SIMT_RUNNING;
  TELL_INSPECTOR(passed());
  return w->barrier_result;
}

/* One that has come is not the first: is it at the same place? */
static __attribute__((noinline)) void compare_barriers(Worker *w, int rank) {
  const Thread *t = &w->threads[rank], *first = &w->threads[w->first_at_barrier];
  if (first->line == t->line && (first->file == t->file || strcmp(first->file, t->file) == 0)) return;
  w->state[rank] = SIMT_AT_BARRIER; /* for the report */
  warn_divergence("barrier divergence: threads of one block wait at different calls of %s", t->what);
}

#if defined(SIMT_QUICK)
static __attribute__((noinline)) SimtGoOn barrier_slowly(Worker *w, int rank, void *here) {
  compare_barriers(w, rank);
  if (w->at_barrier == simt_threads.count - simt_threads.finished) return (SimtGoOn){here, last_at_barrier(w, rank)};
  return wait_slowly(w, rank, SIMT_AT_BARRIER, here);
}

static __attribute__((used)) SimtGoOn barrier_quickly(int predicate, const char *what, const char *file, int line,
                                                      long unused, long unused_too, void *here) {
  (void)unused, (void)unused_too;
  Worker *w = worker_of_kernel(what, file, line);
  int rank = simt_current_rank();
  Thread *t = &w->threads[rank];
  note_site(t, what, file, line);
  w->barrier_predicates += predicate != 0;
  if (w->at_barrier++ == 0) w->first_at_barrier = rank;
  const Thread *first = &w->threads[w->first_at_barrier];
  if (first->line != line || first->file != file || w->at_barrier == simt_threads.count - simt_threads.finished)
    return barrier_slowly(w, rank, here);
  void *there = let_next_go_on(w, rank, SIMT_AT_BARRIER, 0, here);
  return there ? (SimtGoOn){there, w->barrier_result} : wait_slowly(w, rank, SIMT_AT_BARRIER, here);
}
SIMT_WAIT("simt_block_barrier", "barrier_quickly");
#else
int simt_block_barrier(int predicate, const char *what, const char *file, int line) {
  Worker *w = worker_of_kernel(what, file, line);
  int rank = simt_current_rank();
  note_site(&w->threads[rank], what, file, line);
  TELL_INSPECTOR(sync_point());
  w->barrier_predicates += predicate != 0;
  if (w->at_barrier++ == 0)
    w->first_at_barrier = rank;
  else
    compare_barriers(w, rank);
  if (w->at_barrier == simt_threads.count - simt_threads.finished) return last_at_barrier(w, rank);
  wait_here(w, rank, SIMT_AT_BARRIER, 0);
  return w->barrier_result;
}
#endif

/* The lanes of a warp that have returned, or that the block does not have. */
static __attribute__((noinline)) unsigned find_exited_lanes(Worker *w, int warp) {
  Warp *state = &w->warps[warp];
  int first = warp * SIMT_WARP_SIZE, lanes = simt_threads.count - first;
  unsigned exited = lanes < SIMT_WARP_SIZE ? ~0u << lanes : 0;
#if defined(__SSE2__)
  const __m128i done = _mm_set1_epi8(SIMT_DONE), *bytes = (const __m128i *)(w->state + first);
  exited |= (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(bytes), done));
  exited |= (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(bytes + 1), done)) << 16;
#else
  for (int lane = 0; lane < SIMT_WARP_SIZE && lane < lanes; lane++)
    exited |= (unsigned)(w->state[first + lane] == SIMT_DONE) << lane;
#endif
  state->exited = exited;
  state->exited_at = simt_threads.finished;
  return exited;
}

static inline unsigned exited_lanes(Worker *w, int warp) {
  const Warp *state = &w->warps[warp];
  return state->exited_at == simt_threads.finished ? state->exited : find_exited_lanes(w, warp);
}

/* All lanes of the meeting are here: compute, and let them go on. */
static __attribute__((noinline)) void close_meeting(Worker *w, int warp, Meeting *m) {
  if (m->complete) {
    void *seen = SIMT_INSPECTED ? simt_hooks.pause() : NULL;
    m->complete(m->arrived, m->posts);
    TELL_INSPECTOR(resume(seen));
  }
  TELL_INSPECTOR(warp_meeting(warp, m->arrived, m->complete == NULL));
  w->warps[warp].open &= ~(1u << (m - w->meetings[warp]));
  unsigned char *state = w->state + warp * SIMT_WARP_SIZE;
  if (m->arrived == ~0u) { /* the usual case, in a few instructions */
    for (int lane = 0; lane < SIMT_WARP_SIZE; lane++)
      state[lane] = state[lane] == SIMT_AT_WARP ? SIMT_READY : state[lane];
    return;
  }
  for (unsigned left = m->arrived; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    if (state[lane] == SIMT_AT_WARP) state[lane] = SIMT_READY;
  }
}

static __attribute__((noinline, noreturn)) void fault_mask(Worker *w, int rank, unsigned mask) {
  w->state[rank] = SIMT_AT_WARP;
  simt_report_block(
      "a lane may call it only if its own bit is set: take the mask from __ballot_sync() or "
      "__activemask() of the lanes that come here, or 0xffffffff where the whole warp does",
      "mask: lane %d calls %s with mask 0x%08x, which does not contain it", rank % SIMT_WARP_SIZE,
      w->threads[rank].what, mask);
  simt_give_up(cudaErrorLaunchFailure);
}

/* The meeting of the lanes of `mask` for `complete`, which is a new one if none has come yet. */
static Meeting *find_meeting(Worker *w, int warp, unsigned mask, SimtComplete *complete) {
  Meeting *meetings = w->meetings[warp];
  unsigned *all_open = &w->warps[warp].open;
  for (unsigned open = *all_open; open; open &= open - 1) {
    Meeting *m = &meetings[__builtin_ctz(open)];
    if (m->mask == mask && m->complete == complete) return m;
  }
  int index = __builtin_ctz(~*all_open);
  *all_open |= 1u << index;
  meetings[index].mask = mask;
  meetings[index].complete = complete;
  meetings[index].arrived = 0;
  return &meetings[index];
}

/* 1: all lanes have come. */
static int arrive_at_meeting(Worker *w, int rank, unsigned mask, void *post, SimtComplete *complete) {
  int warp = rank / SIMT_WARP_SIZE, lane = rank % SIMT_WARP_SIZE;
  if (!(mask >> lane & 1)) fault_mask(w, rank, mask);
  w->used = 1;
  TELL_INSPECTOR(sync_point());
  Meeting *m = find_meeting(w, warp, mask, complete);
  m->posts[lane] = post;
  m->arrived |= 1u << lane;
  if (m->arrived != (mask & ~exited_lanes(w, warp))) return 0;
  close_meeting(w, warp, m);
  TELL_INSPECTOR(passed());
  return 1;
}

#if defined(SIMT_QUICK)
static __attribute__((noinline)) SimtGoOn last_at_meeting(Worker *w, int warp, Meeting *m, void *here) {
  close_meeting(w, warp, m);
  return (SimtGoOn){here, 0};
}

static __attribute__((noinline)) SimtGoOn meet_slowly(Worker *w, int rank, unsigned mask, void *post,
                                                      SimtComplete *complete, void *here) {
  if (arrive_at_meeting(w, rank, mask, post, complete)) return (SimtGoOn){here, 0};
  void *there = let_next_go_on(w, rank, SIMT_AT_WARP, 1, here);
  return there ? (SimtGoOn){there, w->barrier_result} : wait_slowly(w, rank, SIMT_AT_WARP, here);
}

/* Quick for a lane that is not the first to come, if no other meeting of the warp is under way. */
static __attribute__((used)) SimtGoOn meet_quickly(unsigned mask, void *post, SimtComplete *complete, const char *what,
                                                   const char *file, int line, void *here) {
  Worker *w = worker_of_kernel(what, file, line);
  unsigned rank = (unsigned)simt_current_rank(), warp = rank / SIMT_WARP_SIZE, lane = rank % SIMT_WARP_SIZE;
  const Warp *state = &w->warps[warp];
  Meeting *m = w->meetings[warp];
  note_site(&w->threads[rank], what, file, line);
  w->threads[rank].mask = mask;
  if (!(state->open & 1) || m->mask != mask || m->complete != complete || !(mask >> lane & 1) ||
      state->exited_at != simt_threads.finished)
    return meet_slowly(w, (int)rank, mask, post, complete, here);
  m->posts[lane] = post;
  m->arrived |= 1u << lane;
  if (m->arrived == (mask & ~state->exited)) return last_at_meeting(w, (int)warp, m, here);
  void *there = let_next_go_on(w, (int)rank, SIMT_AT_WARP, 1, here);
  return there ? (SimtGoOn){there, w->barrier_result} : wait_slowly(w, (int)rank, SIMT_AT_WARP, here);
}
SIMT_WAIT("simt_warp_rendezvous", "meet_quickly");
#else
void simt_warp_rendezvous(unsigned mask, void *post, SimtComplete *complete, const char *what, const char *file,
                          int line) {
  Worker *w = worker_of_kernel(what, file, line);
  int rank = simt_current_rank();
  note_site(&w->threads[rank], what, file, line);
  w->threads[rank].mask = mask;
  if (!arrive_at_meeting(w, rank, mask, post, complete)) wait_here(w, rank, SIMT_AT_WARP, 1);
}
#endif

void simt_wait_until(int (*ready)(void *context), void *context, const char *what, const char *file, int line) {
  Worker *w = worker_of_kernel(what, file, line);
  int rank = simt_current_rank();
  Thread *t = &w->threads[rank];
  int waited = 0;
  TELL_INSPECTOR(sync_point());
  while (!ask(ready, context)) {
    waited = 1;
    note_site(t, what, file, line);
    t->ready = ready;
    t->context = context;
    wait_here(w, rank, SIMT_AT_CONDITION, 0);
  }
  if (!waited) TELL_INSPECTOR(passed());
}

void simt_yield(void) {
  Worker *w = simt_worker;
  if (!w) return;
  /* The lanes of a warp stay together while they can. */
  if (SIMT_INSPECTED && simt_hooks.inspecting() && !simt_hooks.spins()) return;
  int rank = simt_current_rank();
  note_site(&w->threads[rank], "an atomic operation or __nanosleep()", "", 0);
  TELL_INSPECTOR(sync_point());
  /* Whoever it waits for is in another block? */
  if (simt_threads.count == 1 + simt_threads.finished || atomic_load_explicit(&w->job->crowded, memory_order_relaxed))
    let_other_blocks();
  wait_here(w, rank, SIMT_READY, 0);
}

void simt_let_run(int rank) {
  Worker *w = simt_worker;
  int self = simt_current_rank();
  if (rank == self) return;
  if (SIMT_INSPECTED && simt_hooks.inspecting()) {
    simt_hooks.prefer(rank);
    return;
  }
  w->preferred = 1 + rank;
  wait_here(w, self, SIMT_READY, 0);
}

/* All threads of the block are at the grid barrier: the block waits for the other blocks. One that has returned will
 * never come, and a GPU waits for it for ever. */
static void meet_grid(Worker *w) {
  Job *job = w->job;
  unsigned long long returned = 0;
  w->at_grid = 0;
  TELL_INSPECTOR(grid_arrive());
  pthread_mutex_lock(&job->grid_lock);
  unsigned long long phase = job->grid_phase;
  job->grid_arrived++;
  for (;;) {
    if (phase != job->grid_phase || atomic_load(&job->failed)) break;
    if (job->grid_arrived == job->grid_blocks_left) {
      returned = job->blocks - job->grid_blocks_left;
      job->grid_arrived = 0;
      job->grid_phase++;
      pthread_cond_broadcast(&job->grid_changed);
      TELL_INSPECTOR(grid_barrier());
      break;
    }
    atomic_store(&w->in_block, 0); /* the watchdog looks at blocks that run */
    pthread_cond_wait(&job->grid_changed, &job->grid_lock);
    atomic_store(&w->in_block, 1);
  }
  pthread_mutex_unlock(&job->grid_lock);
  TELL_INSPECTOR(take_turn());
  if (returned) {
    unsigned char *own = &w->state[simt_current_rank()];
    if (*own == SIMT_RUNNING) *own = SIMT_AT_GRID; /* for the report */
    simt_report_block("let every block come to every grid.sync(), also those without work",
                      "deadlock: %llu of %llu blocks have returned, the others wait at grid.sync()", returned,
                      job->blocks);
    simt_give_up(cudaErrorLaunchTimeout);
  }
  if (atomic_load(&job->failed)) simt_abort_block();
  release(w, SIMT_AT_GRID);
}

void simt_grid_barrier(const char *file, int line) {
  Worker *w = worker_of_kernel("grid.sync()", file, line);
  int rank = simt_current_rank();
  if (!w->job->kernel->cooperative)
    simt_kernel_fault(cudaErrorLaunchFailure, file, line,
                      "grid.sync() in a kernel that was launched with <<<>>>: only cudaLaunchCooperativeKernel() makes "
                      "sure that all blocks run at once");
  note_site(&w->threads[rank], "grid.sync()", file, line);
  TELL_INSPECTOR(sync_point());
  w->at_grid++;
  if (w->at_grid == simt_threads.count - simt_threads.finished) {
    w->state[rank] = SIMT_RUNNING;
    meet_grid(w);
    TELL_INSPECTOR(passed());
    return;
  }
  wait_here(w, rank, SIMT_AT_GRID, 0);
}

void simt_thread_returned(int rank) {
  Worker *w = simt_worker;
  int warp = rank / SIMT_WARP_SIZE;
  for (unsigned open = w->warps[warp].open; open; open &= open - 1) {
    int index = __builtin_ctz(open);
    Meeting *m = &w->meetings[warp][index];
    if (m->arrived && m->arrived == (m->mask & ~exited_lanes(w, warp))) close_meeting(w, warp, m);
  }
  int left = simt_threads.count - simt_threads.finished;
  if (w->at_barrier && w->at_barrier == left) open_barrier(w);
  if (w->at_grid && w->at_grid == left) meet_grid(w);
}

/* CUDA promises no more than the calling lane. The inspector runs the lanes of a warp in step and knows the others. */
unsigned simt_active_mask(void) {
  unsigned together = SIMT_INSPECTED ? simt_hooks.active_mask() : 0;
  return together ? together : 1u << (simt_current_rank() % SIMT_WARP_SIZE);
}

/* ---- a block ---- */

static void make_order(Worker *w, uint3 shape, uint64_t seed) {
  SimtOrder order = SIMT_INSPECTED ? SIMT_FORWARD : simt_settings.order; /* within a block the inspector decides */
  int same = w->ordered_for.x == shape.x && w->ordered_for.y == shape.y && w->ordered_for.z == shape.z;
  if (same && order != SIMT_RANDOM) return;
  int count = (int)(shape.x * shape.y * shape.z);
  for (int r = 0; r < count && !same; r++) {
    unsigned rank = (unsigned)r;
    w->index_by_rank[r] = (uint3){rank % shape.x, rank / shape.x % shape.y, rank / shape.x / shape.y};
  }
  for (int i = 0; i < count; i++) w->rank_by_start[i] = (uint16_t)(order == SIMT_REVERSE ? count - 1 - i : i);
  if (order == SIMT_RANDOM) {
    w->order_seed = (unsigned)seed;
    for (int i = count - 1; i > 0; i--) {
      int j = (int)(next_random(w) % (unsigned)(i + 1));
      uint16_t swap = w->rank_by_start[i];
      w->rank_by_start[i] = w->rank_by_start[j];
      w->rank_by_start[j] = swap;
    }
  }
  for (int i = 0; i < count; i++) w->index_by_start[i] = w->index_by_rank[w->rank_by_start[i]];
  w->ordered_for = shape;
}

#if defined(__SANITIZE_ADDRESS__) /* which wants the exact size */
static void reserve_dynamic_shared(Worker *w, size_t bytes) {
  if (bytes == w->dynamic_shared_size) return;
  free(w->dynamic_shared);
  void *memory = NULL;
  if (posix_memalign(&memory, 1024, bytes) != 0) abort();
  memset(memory, 0xA5, bytes);
  w->dynamic_shared = memory;
  w->dynamic_shared_size = bytes;
}
#else
/* As much as any kernel may ask for: one that asks for too little, or nothing, writes into that and not into tables of
 * ours. What lies on both sides may not be touched. */
static void reserve_dynamic_shared(Worker *w, size_t bytes) {
  enum { ALL = SIMT_OPT_IN_SHARED_MOST + 1024, GUARD = 1 << 20 };
  if (!w->dynamic_shared) {
    char *memory = mmap(NULL, ALL + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + GUARD, ALL, PROT_READ | PROT_WRITE) != 0) {
      fprintf(stderr, "=== simt: out of memory for a block's shared memory (%s)\n", strerror(errno));
      abort();
    }
    w->dynamic_shared = memory + GUARD;
    w->dynamic_shared_size = simt_shared_limit();
  }
  if (bytes <= w->dynamic_shared_set) return;
  memset(w->dynamic_shared + w->dynamic_shared_set, 0xA5, bytes - w->dynamic_shared_set);
  w->dynamic_shared_set = bytes;
}
#endif

void simt_run_block(Worker *w, Job *job, unsigned long long block) {
  const SimtKernel *k = job->kernel;
  unsigned long long plane = (unsigned long long)k->grid.x * k->grid.y;
  blockIdx = (uint3){(unsigned)(block % k->grid.x), (unsigned)(block % plane / k->grid.x), (unsigned)(block / plane)};
  gridDim = (dim3){k->grid.x, k->grid.y, k->grid.z};
  blockDim = (dim3){k->block.x, k->block.y, k->block.z};
  make_order(w, k->block, simt_settings.seed ^ simt_mix(job->number * 0x10001ull + block));
  reserve_dynamic_shared(w, k->shared_bytes);

  int count = (int)(k->block.x * k->block.y * k->block.z);
  simt_threads = (SimtThreads){0, count, 0, 0, w->index_by_start, w->rank_by_start, w->state, 0};
  memset(w->state, SIMT_UNSTARTED, (size_t)count);
  if (w->used) {
    memset(w->warps, 0, sizeof w->warps);
    w->conditions = w->at_barrier = w->barrier_predicates = w->at_grid = 0;
    w->used = 0;
  }
  for (int i = 0; i <= (count - 1) / SIMT_WARP_SIZE; i++) w->warps[i].exited_at = -1;

  w->job = job;
  simt_worker = w;
  simt_pipeline_begin();
  simt_hopper_block_begin(w);
  TELL_INSPECTOR(block_begin(block));
  atomic_store_explicit(&w->blocks, atomic_load_explicit(&w->blocks, memory_order_relaxed) + 1, memory_order_relaxed);
  atomic_store_explicit(&w->in_block, 1, memory_order_relaxed);
  w->fibre = &w->scheduler;
  Fibre *first = take_idle(w);
  switch_to(w, &w->scheduler.stack_pointer, first, first->stack_pointer);
  atomic_store_explicit(&w->in_block, 0, memory_order_relaxed);
  simt_hopper_block_end(w);
  TELL_INSPECTOR(block_end());
  simt_worker = NULL;
  if (w->aborted) {
    reset_fibres(w);
    w->aborted = 0;
    w->used = 1;
  }
}

void simt_give_up(cudaError_t error) {
  int expected = 0;
  atomic_compare_exchange_strong(&simt_worker->job->failed, &expected, (int)error);
  simt_abort_block();
}

void simt_abort_block(void) {
  Worker *w = simt_worker;
  w->aborted = 1;
  switch_to(w, &w->fibre->stack_pointer, &w->scheduler, w->scheduler.stack_pointer);
  __builtin_unreachable();
}

/* ---- workers ---- */

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static Worker *spare;

Worker *simt_worker_open(void) {
  pthread_mutex_lock(&spare_lock);
  Worker *w = spare;
  if (w) spare = w->next;
  pthread_mutex_unlock(&spare_lock);
  if (!w) {
    w = aligned_alloc(_Alignof(Worker), sizeof *w);
    if (!w) abort();
    memset(w, 0, sizeof *w);
    w->used = 1;
  } else {
    reset_fibres(w); /* they may hold addresses of the former OS thread's variables */
  }
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attributes;
  void *lowest = NULL;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &lowest, &w->scheduler_bytes);
    pthread_attr_destroy(&attributes);
  }
  w->scheduler.stack = lowest;
#endif
#if defined(__SANITIZE_THREAD__)
  w->scheduler.tsan = __tsan_get_current_fiber();
#endif
  w->os_thread = pthread_self();
  simt_watch(w);
  return w;
}

void simt_worker_close(Worker *w) {
  simt_unwatch(w);
  pthread_mutex_lock(&spare_lock);
  w->next = spare;
  spare = w;
  pthread_mutex_unlock(&spare_lock);
}
