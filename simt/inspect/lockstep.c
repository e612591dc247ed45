/* lockstep.c - the lanes of a warp go through the program together, basic block by basic block.
 *
 * The compiler calls __sanitizer_cov_trace_pc() at the beginning of each basic block. There a lane stops, and the
 * next lane of its group executes the block that it has just left. When all have done so the *step* is over: its
 * requests are counted, and the next group is formed of lanes that stand at the same place. Of several places the one
 * in the deepest call goes first, then the one of the lowest rank (flow.c): the lanes that took a detour
 * catch up before the others go on, and they meet where the branches join, as on a GPU, whose compiler lets them wait
 * there for each other.
 *
 * A function's first block needs no stop, since the group that calls it is the group that enters. After it returns the
 * lanes meet again, since they may have parted inside. Nor does a block that is the only one to follow, as long as
 * all of the warp's lanes are together.
 *
 * Lanes that spin (a lock is taken, a flag not yet set) are passed over for some steps, so that the others can do
 * what they are waiting for.
 */
#include "parts.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
  SPIN_STEPS = 32,  /* futile steps before the others go first */
  SPIN_YIELDS = 16, /* or yields at the same object, each after some attempts */
  PATIENCE = 32,    /* steps of the others before a spinning lane is asked again */
  QUANTUM = 20000,  /* steps of a warp before another warp gets its turn, and of a block before another block */
  STUCK = 20000     /* steps that read flags or tried atomics in vain: other blocks have to begin */
};

#define HERE ((uintptr_t)__builtin_return_address(0))

#define NO_CALLS (0xffffull << 48)
#define ONE_CALL (1ull << 48)

static inline uint64_t place_of(uint64_t deep, uintptr_t pc) {
  return deep | (uint64_t)(uint32_t)(pc - simt_text_low) << 16;
}

static inline int depth_of(uint64_t deep) { return (int)((NO_CALLS - deep) >> 48); }

/* The lowest goes first: depth, rank, then address and waits passed. */
static uint64_t turn_of(const Step *s) {
  const SiteFlow *flow = simt_flow_at(s->block);
  uint64_t rank = flow->rank;
  if (!rank) return s->place;
  if (s->fresh && s->from && flow->again != rank && simt_flow_at(s->from)->rank >= rank) /* round a loop */
    rank = simt_flow_at(s->block)->again;
  return s->deep | rank << 32 | (uint32_t)s->place;
}

static inline void begin_lane(Inspector *in, int lane) {
  in->rank = in->warp * SIMT_WARP_SIZE + lane;
  in->lane = lane;
  in->bit = 1u << lane;
  in->cursor = in->position = 0;
  in->self = &in->lanes[in->rank];
}

/* The lanes of the group begin a block; `position` is the number of blocks of this step before it. */
static void begin_block(Inspector *in, uintptr_t block, int position) {
  unsigned site = simt_site_of(block);
  uint64_t *count = simt_counts(site);
  count[SIMT_STEPS]++;
  count[SIMT_STEP_LANES] += (unsigned)__builtin_popcount(in->group);
  if (position < MAX_CHAIN) in->goes_on[position] = in->whole && simt_flow_at(block)->single;
}

/* ---- the end of a step ---- */

static void note_successor(Inspector *in, uintptr_t next) {
  uintptr_t *known = simt_site_flow(simt_site_of(in->block))->next;
  if (known[0] == next || known[1] == next) return;
  if (!known[0])
    known[0] = next;
  else if (!known[1])
    known[1] = next;
}

/* What the step has done is judged, then what orders it before the next. */
static void settle(Inspector *in) {
  if (in->used) simt_flush_rows(in);
  if (in->fenced_for_all) simt_order_fence(in, in->fenced_for_all, OTHER_BLOCKS);
  if (in->fenced & ~in->fenced_for_all) simt_order_fence(in, in->fenced & ~in->fenced_for_all, OWN_BLOCK);
  in->fenced = in->fenced_for_all = 0;
  if (in->async_fenced) {
    simt_race_clock++;
    for (uint32_t rest = in->async_fenced; rest; rest &= rest - 1)
      in->lanes[in->warp * SIMT_WARP_SIZE + __builtin_ctz(rest)].async_fence = simt_race_clock;
    in->async_fenced = 0;
  }
  for (int i = 0; i < in->pending_syncs; i++) simt_race_warp(in, in->pending[i].warp, in->pending[i].lanes);
  in->pending_syncs = 0;
  if (in->pending_barrier) simt_race_barrier(in);
  in->pending_barrier = 0;
}

static void end_step(Inspector *in) {
  settle(in);
  if (in->arrived && in->next.fresh) {
    SiteCounts *counts = simt_site_counts(simt_site_of(in->block));
    counts->left++;
    counts->left_apart += (unsigned)in->split;
  }
  if (in->progressed)
    in->futile = 0;
  else if (in->spun && ++in->futile >= SPIN_STEPS) {
    WarpView *view = &in->warp_view[in->warp];
    view->deferred |= in->group;
    view->patience = PATIENCE;
    in->futile = 0;
  }
  if (in->progressed & CHANGED)
    in->stuck = 0;
  else if ((in->spun || in->progressed) && ++in->stuck % STUCK == 0)
    simt_no_block_ended();
  in->spun = in->progressed = 0;
}

/* ---- the next group ---- */

static unsigned ready_lanes(Worker *w, int warp) {
  int first = warp * SIMT_WARP_SIZE, lanes = simt_threads.count - first;
  unsigned ready = 0, valid = lanes < SIMT_WARP_SIZE ? (1u << lanes) - 1 : ~0u;
#if defined(__SSE2__)
  const __m128i wanted = _mm_set1_epi8(SIMT_READY), *bytes = (const __m128i *)(w->state + first);
  ready |= (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(bytes), wanted));
  ready |= (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(bytes + 1), wanted)) << 16;
#else
  for (int lane = 0; lane < SIMT_WARP_SIZE; lane++) ready |= (unsigned)(w->state[first + lane] == SIMT_READY) << lane;
#endif
  ready &= valid;
  for (int lane = 0; w->conditions && lane < SIMT_WARP_SIZE && lane < lanes; lane++)
    if (w->state[first + lane] == SIMT_AT_CONDITION && simt_condition_holds(w, first + lane)) ready |= 1u << lane;
  return ready;
}

static unsigned lanes_of(const Inspector *in, int warp) {
  int lanes = in->threads - warp * SIMT_WARP_SIZE;
  return lanes < SIMT_WARP_SIZE ? (1u << lanes) - 1 : ~0u;
}

static void form_group(Inspector *in, int warp, unsigned ready) {
  const Lane *lane = &in->lanes[warp * SIMT_WARP_SIZE];
  int whole = warp == in->warp && in->arrived && !in->split && ready == in->group;
  if (!whole) {
    const Step *first = &lane[__builtin_ctz(ready)].now;
    unsigned same = 0;
    for (unsigned rest = ready; rest; rest &= rest - 1) {
      const Step *other = &lane[__builtin_ctz(rest)].now;
      if (other->place == first->place && other->calls == first->calls && other->from == first->from)
        same |= rest & -rest;
    }
    whole = same == ready;
    in->group = ready;
  }
  if (!whole) {
    uint64_t turn[SIMT_WARP_SIZE], lowest = UINT64_MAX;
    for (unsigned rest = ready; rest; rest &= rest - 1) {
      int i = __builtin_ctz(rest);
      turn[i] = turn_of(&lane[i].now);
      if (turn[i] < lowest) {
        lowest = turn[i];
        in->group = 0;
      }
      if (turn[i] == lowest && (!in->group || lane[i].now.calls == lane[__builtin_ctz(in->group)].now.calls))
        in->group |= 1u << i;
    }
  }
  const Step *now = &lane[__builtin_ctz(in->group)].now;
  in->warp = warp;
  in->todo = in->group;
  in->block = now->block;
  in->whole = in->group == lanes_of(in, warp);
  if (now->fresh)
    begin_block(in, now->block, 0);
  else
    in->goes_on[0] = in->whole && simt_flow_at(now->block)->single;
}

static void begin_warp(Inspector *in, int warp) {
  in->warp_view[warp] = (WarpView){.begun = 1};
  in->warp = warp;
  in->group = in->todo = lanes_of(in, warp);
  in->whole = 1;
  in->goes_on[0] = 0;
  in->block = 0;
}

static int takes_turns(const Inspector *in) { return in->interleaved || atomic_load(&in->worker->job->crowded); }

static int choose(Inspector *in) {
  Worker *w = in->worker;
  int first = in->warp;
  if (++in->steps_in_warp > QUANTUM) {
    in->steps_in_warp = 0;
    first++;
  }
  if (in->preferred) first = in->preferred - 1;
  in->preferred = 0;
  if (++in->steps_in_turn > QUANTUM) {
    in->steps_in_turn = 0;
    if (takes_turns(in)) simt_inspect_give_turn(), simt_inspect_take_turn();
    if (atomic_load(&w->job->failed)) simt_abort_block();
  }
  for (int patient = 1; patient >= 0; patient--)
    for (int i = 0; i < in->warps; i++) {
      int warp = (first + i) % in->warps;
      WarpView *view = &in->warp_view[warp];
      if (!view->begun) {
        if (simt_threads.next != warp * SIMT_WARP_SIZE) continue;
        begin_warp(in, warp);
        return 1;
      }
      unsigned ready = ready_lanes(w, warp);
      if (ready && view->deferred) {
        if (patient && view->patience-- > 0)
          ready &= ~view->deferred;
        else
          view->deferred = 0;
      }
      if (!ready) continue;
      if (warp != in->warp) in->steps_in_warp = 0;
      form_group(in, warp, ready);
      return 1;
    }
  return 0;
}

/* A rank, -1 for one that has not started, -2 for nobody. */
static int next_lane(Inspector *in) {
  in->todo &= ~in->bit;
  if (!in->todo) {
    end_step(in);
    int found = choose(in);
    in->arrived = in->split = 0;
    if (!found) {
      in->bit = 0;
      return -2;
    }
  }
  begin_lane(in, __builtin_ctz(in->todo));
  int rank = in->rank;
  if (in->worker->state[rank] != SIMT_UNSTARTED) return rank;
  Lane *lane = in->self;
  lane->now = (Step){.deep = NO_CALLS};
  lane->entered = 1;
  lane->fence[OWN_BLOCK].time = lane->fence[OTHER_BLOCKS].time = 0;
  lane->guess = lane->observed = lane->seen[OWN_BLOCK] = lane->seen[OTHER_BLOCKS] = 0;
  lane->spins_at = 0;
  lane->async_fence = 0;
  return -1;
}

int simt_inspect_next(void) { return simt_inspector ? next_lane(simt_inspector) : -2; }

int simt_inspect_spins(void) {
  Lane *lane = simt_inspector->self;
  if (lane->spins_at != lane->last_atomic) lane->spins = 0;
  lane->spins_at = lane->last_atomic;
  return ++lane->spins >= SPIN_YIELDS;
}

void simt_inspect_prefer(int rank) { simt_inspector->preferred = 1 + rank / SIMT_WARP_SIZE; }

int simt_inspect_pick(int yields) {
  Inspector *in = simt_inspector;
  int rank = in->rank;
  if (yields) {
    WarpView *view = &in->warp_view[in->warp];
    view->deferred |= in->bit;
    view->patience = PATIENCE;
  }
  int next = next_lane(in);
  if (yields && next == rank) { /* only another block can help */
    if (takes_turns(in)) simt_inspect_give_turn(), simt_inspect_take_turn();
  }
  return next;
}

/* The running lane has come to in->self->now: the others of its group execute the step, then the next group does. */
static inline void arrive(Inspector *in) {
  const Step *now = &in->self->now;
  int rank = in->rank;
  if (!in->arrived) {
    in->arrived = 1;
    in->next = *now;
    if (now->fresh) note_successor(in, now->block);
  } else if (now->place != in->next.place || now->calls != in->next.calls) {
    in->split = 1;
    if (now->fresh) note_successor(in, now->block);
  }
  unsigned char *state = in->worker->state;
  state[rank] = SIMT_READY;
  uint32_t todo = in->todo & ~in->bit;
  int next = rank - in->lane + __builtin_ctz(todo | 1u << 31);
  if (todo && state[next] != SIMT_UNSTARTED) { /* as next_lane() */
    in->todo = todo;
    begin_lane(in, __builtin_ctz(todo));
  } else {
    next = next_lane(in);
  }
  if (next == rank)
    state[rank] = SIMT_RUNNING;
  else
    simt_lockstep_switch(rank, next, &in->stack_low);
}

void simt_arrive(Inspector *in) { arrive(in); }

/* ---- what the compiler calls ---- */

void __sanitizer_cov_trace_pc(void) {
  Inspector *in = simt_inspector;
  if (!in) return;
  Lane *lane = in->self;
  uintptr_t pc = HERE;
  lane->now.from = lane->now.block;
  lane->now.block = pc;
  lane->now.place = place_of(lane->now.deep, pc);
  lane->now.fresh = 1;
  if (!lane->entered && !(in->position < MAX_CHAIN && in->goes_on[in->position])) {
    arrive(in);
    return;
  }
  /* No stop: nobody can have gone elsewhere. */
  if (lane->entered) lane->now.from = 0;
  lane->entered = 0;
  in->position++;
  in->block = pc;
  if (in->bit == (in->group & -in->group)) begin_block(in, pc, in->position);
}

void __tsan_func_entry(void *back) {
  Inspector *in = simt_inspector;
  if (!in) return;
  Lane *lane = in->self;
  int depth = depth_of(lane->now.deep);
  lane->entered = 1;
  if (depth > 0 && depth < MAX_CALLS) {
    Call *call = &in->calls[in->rank][depth];
    call->caller = lane->now;
    call->back = (uintptr_t)back;
    lane->now.calls = (lane->now.calls ^ (uint32_t)(uintptr_t)back) * 0x9e3779b1u;
  }
  lane->now.deep -= ONE_CALL;
}

void __tsan_func_exit(void) {
  Inspector *in = simt_inspector;
  if (!in) return;
  Lane *lane = in->self;
  lane->now.deep += ONE_CALL;
  int depth = depth_of(lane->now.deep);
  lane->entered = 0;
  if (depth <= 0 || depth >= MAX_CALLS) return;
  const Call *call = &in->calls[in->rank][depth];
  lane->now = call->caller;
  lane->now.place = place_of(lane->now.deep, call->back);
  lane->now.fresh = 0;
  arrive(in);
}

/* ---- what the scheduler and the headers tell ---- */

void simt_inspect_sync_point(void) {
  Inspector *in = simt_inspector;
  if (!in) return;
  in->self->now.place++;
  in->self->now.fresh = 0;
}

void simt_inspect_passed(void) {
  if (simt_inspector) simt_arrive(simt_inspector);
}

void *simt_inspect_pause(void) {
  Inspector *in = simt_inspector;
  simt_inspector = NULL;
  return in;
}

void simt_inspect_continue(void *in) { simt_inspector = in; }

void simt_inspect_fence(int other_blocks) {
  Inspector *in = simt_inspector;
  if (!in) return;
  in->fenced |= in->bit;
  if (other_blocks) in->fenced_for_all |= in->bit;
  simt_inspect_sync_point();
  arrive(in);
}

void simt_inspect_async_fence(void) {
  Inspector *in = simt_inspector;
  if (!in) return;
  in->async_fenced |= in->bit;
  simt_inspect_sync_point();
  arrive(in);
}

void simt_inspect_stack(char *lowest) {
  if (simt_inspector) simt_inspector->stack_low = (uintptr_t)lowest;
}

void simt_inspect_block_barrier(void) {
  if (simt_inspector) simt_inspector->pending_barrier = 1;
}

void simt_inspect_warp_meeting(int warp, unsigned lanes, int sync) {
  Inspector *in = simt_inspector;
  if (!in || !sync) return;
  if (in->pending_syncs == MAX_SYNCS) return;
  in->pending[in->pending_syncs].warp = warp;
  in->pending[in->pending_syncs++].lanes = lanes;
}

int simt_inspect_inspecting(void) { return simt_inspector != NULL; }

unsigned simt_inspect_active_mask(void) { return simt_inspector ? simt_inspector->group : 0; }

/* ---- turns: of the blocks of a launch one runs at a time; mostly until it has ended ---- */

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static unsigned long next_ticket, now_served;

void simt_inspect_take_turn(void) {
  Inspector *in = simt_inspector;
  if (!in) return;
  pthread_mutex_lock(&turn_lock);
  unsigned long mine = next_ticket++;
  while (now_served != mine) pthread_cond_wait(&turn_changed, &turn_lock);
  pthread_mutex_unlock(&turn_lock);
  if (takes_turns(in)) {
    in->interleaved = 1;
    simt_race_turn(in);
  }
}

void simt_inspect_give_turn(void) {
  if (!simt_inspector) return;
  pthread_mutex_lock(&turn_lock);
  now_served++;
  pthread_cond_broadcast(&turn_changed);
  pthread_mutex_unlock(&turn_lock);
}

/* The last thread to come is still in its step, in which its warp did all since its last stop. */
void simt_inspect_grid_arrive(void) {
  if (simt_inspector) settle(simt_inspector);
  simt_inspect_give_turn();
}

void simt_inspect_grid_barrier(void) {
  if (simt_inspector) simt_race_grid();
}

/* ---- blocks ---- */

static Inspector *spare[64];
static int spares;

void simt_inspect_block_begin(unsigned long long block) {
  Worker *w = simt_worker;
  const SimtKernel *k = w->job->kernel;
  if (!simt_wants_block(block)) return;
  pthread_mutex_lock(&turn_lock);
  Inspector *in = spares ? spare[--spares] : calloc(1, sizeof *in);
  pthread_mutex_unlock(&turn_lock);
  if (!in) abort();
  in->worker = w;
  w->inspector = in;
  if (k->cluster.x) simt_object_era++; /* an object may be in another block of the cluster */
  for (int i = 0; i < SIMT_MAX_BLOCK_THREADS && !w->threads[i].what; i++) w->threads[i].what = "its last step";
  in->interleaved = k->cooperative || k->cluster.x;
  in->block_number = block;
  in->threads = (int)(k->block.x * k->block.y * k->block.z);
  in->warps = (in->threads + SIMT_WARP_SIZE - 1) / SIMT_WARP_SIZE;
  in->arguments_low = (uintptr_t)k->arguments;
  in->arguments_size = k->arguments_size;
  in->used = in->arrived = in->split = in->spun = in->progressed = in->futile = in->stuck = 0;
  in->steps_in_warp = in->steps_in_turn = in->preferred = 0;
  in->pending_barrier = in->pending_syncs = 0;
  in->indexed = 0;
  in->fenced = in->fenced_for_all = in->async_fenced = 0;
  for (int i = 0; i < in->warps; i++) {
    in->warp_view[i].begun = 0;
    in->warp_view[i].working = 0;
  }
  simt_inspector = in;
  simt_inspect_take_turn();
  simt_memory_block(in);
  simt_race_block(in);
  begin_warp(in, 0);
  in->bit = 0;
  next_lane(in); /* the scheduler starts the first thread itself */
}

void simt_inspect_block_end(void) {
  Inspector *in = simt_inspector;
  if (!in) return;
  end_step(in); /* of a block that was given up: what the fault was shows in its last accesses */
  simt_count_work(in);
  in->worker->inspector = NULL;
  simt_inspect_give_turn();
  simt_inspector = NULL;
  pthread_mutex_lock(&turn_lock);
  if (spares < 64)
    spare[spares++] = in;
  else
    free(in);
  pthread_mutex_unlock(&turn_lock);
}
