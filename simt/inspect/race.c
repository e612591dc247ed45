/* race.c - data races: two threads touch the same word, one of them writes, and nothing orders the two.
 *
 * A clock ticks at every event that may order accesses. Each word remembers its last write and two reads (Trace: time,
 * thread, site). An earlier access is ordered before the present one when
 *   - it was in an earlier launch (with lazy streams: one that the program made sure had ended), or before a grid
 *     barrier;
 *   - it was by the same thread;
 *   - the same block has passed a __syncthreads() since;
 *   - the same warp has passed __syncwarp()s since that lead from the one lane to the other. Shuffles and votes do
 *     not count: in CUDA they order no memory, and lanes that happen to run in step here need not on a GPU;
 *   - it was published by a fence and an atomic operation, and this thread has seen that (order.c).
 * Two atomic operations never race. Writes that leave what was there do no harm, and are not reported. Nor is a plain
 * read that races with atomic operations when threads go on from there to a compare-and-swap of the same word: it was
 * a guess.
 */
#include "bits.h"
#include "parts.h"

uint32_t simt_race_clock = 1;
static uint32_t launch_time = 1; /* or of its last grid barrier */
static uint32_t oldest_time = 1; /* accesses before it are ordered, whatever the stream */
static uint32_t submitted;       /* when the running launch was queued */
static size_t chunks_touched, chunks_most;

/* ---- launches of other streams ---- */

typedef struct Launch {
  uint32_t time; /* when it began */
  int ordered;   /* before the running one */
  SimtMoment moment;
} Launch;
enum { LAUNCHES = 1024 };
static Launch launches[LAUNCHES]; /* the last ones, in a ring */
static unsigned launch_count;

static void order_launches(void) {
  SimtMoment now = simt_stream_moment();
  unsigned first = launch_count > LAUNCHES ? launch_count - LAUNCHES : 0;
  oldest_time = launch_time;
  for (unsigned i = launch_count; i > first && now.stream; i--) {
    Launch *l = &launches[(i - 1) % LAUNCHES];
    l->ordered = simt_stream_ordered(l->moment);
    if (!l->ordered) oldest_time = l->time;
  }
  launches[launch_count++ % LAUNCHES] = (Launch){.time = launch_time, .moment = now};
}

/* An access of an earlier launch, at or after oldest_time. */
static int launch_is_ordered(uint32_t time) {
  unsigned first = launch_count > LAUNCHES ? launch_count - LAUNCHES : 0;
  for (unsigned i = launch_count; i > first; i--)
    if (launches[(i - 1) % LAUNCHES].time <= time) return launches[(i - 1) % LAUNCHES].ordered;
  return 1;
}

/* ---- events ---- */

uint32_t simt_inspect_submitted(void) { return ++simt_race_clock; }

int simt_race_forget(void) {
  if (chunks_touched <= chunks_most / 4) return 0;
  chunks_touched = 0;
  return 1;
}

void simt_race_launch(const SimtKernel *kernel) {
  if (!chunks_most) {
    const char *setting = getenv("SIMT_INSPECT_MEMORY");
    double megabytes = setting && atof(setting) > 0 ? atof(setting) : 2048;
    chunks_most = 1 + (size_t)(megabytes * 1048576 / ((double)(1 << CHUNK_SHIFT) / 4 * sizeof(Cell)));
  }
  launch_time = ++simt_race_clock;
  submitted = kernel->submitted ? kernel->submitted : launch_time;
  order_launches();
  simt_order_launch(launch_time);
}

void simt_race_block(Inspector *in) {
  simt_order_block(in);
  in->block_time = in->barrier_time = simt_race_clock;
}

void simt_race_barrier(Inspector *in) {
  in->barrier_time = ++simt_race_clock;
  simt_order_barrier(in);
  for (int i = 0; i < in->warps; i++) in->warp_view[i].syncs = 0;
}

void simt_race_warp(Inspector *in, int warp, unsigned lanes) {
  WarpView *view = &in->warp_view[warp];
  view->sync[view->syncs++ % MAX_SYNCS] = (Sync){++simt_race_clock, lanes};
  simt_order_warp(in, warp, lanes);
}

void simt_race_grid(void) {
  launch_time = oldest_time = ++simt_race_clock;
  simt_order_grid(launch_time);
}

/* ---- one access against an earlier one ---- */

static int same_block(const Inspector *in, Trace t) {
  if (in->interleaved) return simt_block_at(trace_time(t)) == in->block_number;
  return trace_time(t) >= in->block_time;
}

/* Cheap answers for nearly all accesses: 1, it is ordered. */
static inline int surely_ordered(const Inspector *in, const Region *region, Trace old, int rank) {
  uint32_t time = trace_time(old);
  if (time < oldest_time && !trace_host(old)) return 1;
  if (trace_host(old)) return time < submitted;
  if (region->shared || !in->interleaved) {
    if (time < in->barrier_time && (region->shared || time >= in->block_time)) return 1;
    if (trace_rank(old) == rank && time >= in->block_time) return 1;
    return time < launch_time && launch_is_ordered(time);
  }
  if (time < launch_time) return launch_is_ordered(time);
  return same_block(in, old) && (time < in->barrier_time || trace_rank(old) == rank);
}

/* The syncs of the warp since `time` lead from one lane to the other. */
static int ordered_in_warp(const WarpView *view, uint32_t time, int from, int to) {
  unsigned first = view->syncs > MAX_SYNCS ? view->syncs - MAX_SYNCS : 0, reached = 1u << from;
  if (first && view->sync[first % MAX_SYNCS].time > time) return 1; /* too long ago to tell */
  for (unsigned i = first; i < view->syncs; i++) {
    const Sync *s = &view->sync[i % MAX_SYNCS];
    if (s->time > time && (s->lanes & reached)) reached |= s->lanes;
  }
  return (int)(reached >> to & 1);
}

static int overlap(uintptr_t a, uintptr_t b, unsigned bytes) { return a < b + bytes && b < a + bytes; }

/* The write of `lane` left the bytes as they were. */
static int changed_nothing(const Row *row, int lane) {
  uintptr_t address = row->request.address[lane];
  unsigned bytes = row->request.bytes < 8 ? row->request.bytes : 8;
  uint64_t after = 0;
  if (row->odd >> lane & 1) return 0;
  uint32_t later = row->request.mask & ~(lane == 31 ? ~0u : (2u << lane) - 1);
  for (; later; later &= later - 1) { /* a later lane saw what this one had written */
    int other = __builtin_ctz(later);
    if (row->request.address[other] == address) return row->before[other] == row->before[lane];
    if (overlap(row->request.address[other], address, row->request.bytes)) return 0;
  }
  memcpy(&after, (const void *)address, bytes);
  return after == row->before[lane];
}

/* An asynchronous copy is on its way there: until it is waited for, the bytes are NaN and say nothing of values. */
static int is_held(const Row *row, const Region *region, int lane) {
  return region->held && any_bit(region->held, row->request.address[lane] - region->low, row->request.bytes);
}

int simt_changed_something(const Row *row) {
  for (uint32_t rest = row->request.mask; rest; rest &= rest - 1)
    if (!changed_nothing(row, __builtin_ctz(rest))) return 1;
  return 0;
}

const char *const simt_race_scopes[3] = {"between lanes of a warp", "between warps of a block", "between blocks"};

/* mixed: one of the two is an atomic operation. */
static const char *race_advice(int scope, const Region *region, int same_line, int mixed) {
  static const char *const for_mixed[3] = {
      "only one of the two is atomic: put __syncwarp() between them, or make the other an atomic operation, too",
      "only one of the two is atomic: put __syncthreads() between them, where all threads of the block pass, or make "
      "the other an atomic operation, too",
      "only one of the two is atomic: make the other an atomic operation, too (atomicExch() writes, atomicAdd(p, 0) "
      "reads), or move it to a launch of its own"};
  if (mixed) return for_mixed[scope];
  if (scope == 2)
    return same_line ? "blocks run at the same time, in any order: use atomicAdd() or another atomic operation, or "
                       "give each block its own element"
                     : "no barrier orders the blocks of a launch: split the kernel in two launches, or publish with "
                       "__threadfence() before an atomic operation that the other block waits for";
  if (scope == 0)
    return same_line ? "let one lane write, or use an atomic operation"
                     : "lanes of a warp need not run in step: put __syncwarp() between the two";
  if (same_line) return "let one thread write each element, or use an atomic operation";
  return region->shared ? "put __syncthreads() between the two, where all threads of the block pass"
                        : "let each thread use its own elements; where threads of one block exchange values, put "
                          "__syncthreads() between the two";
}

/* The other block has told this one by an atomic operation, and a fence is missing; NULL: it has not. malloc()ed */
static char *fence_advice(Inspector *in, int rank, unsigned long long block, Trace old) {
  uintptr_t object;
  SimtMissing missing = simt_order_missing(in, rank, block, trace_rank(old), trace_time(old), &object);
  if (missing == SIMT_NO_SIGNAL) return NULL;
  char *advice, *memory = simt_memory_words(in, object);
  static const char *const words[] = {
      [SIMT_NO_FENCE_BEFORE] =
          "__threadfence() between what the first block writes and its atomic operation, and after the "
          "atomic operation by which the other block learns of it",
      [SIMT_NO_FENCE_BEHIND] =
          "__threadfence() also after the atomic operation by which a block learns that the other has written",
      [SIMT_NARROW_FENCE] =
          "__threadfence() instead of __threadfence_block(), which orders for the threads of its own block only"};
  if (asprintf(&advice, "the atomic operations on %s, order nothing by themselves: %s", memory, words[missing]) < 0)
    abort();
  free(memory);
  return advice;
}

/* With host code, or a launch in another stream. */
static void conflict_outside(Inspector *in, const Row *row, int lane, Trace old, unsigned old_access) {
  int host = trace_host(old);
  SimtFindingKind kind = host ? SIMT_MISSING_SYNC : SIMT_STREAM_RACE;
  unsigned site = host ? trace_site(old) : row->site, other = host ? row->site : trace_site(old);
  if (simt_found_before(kind, site, other)) return;
  RaceParty here = {.site = row->site,
                    .rank = in->warp * SIMT_WARP_SIZE + lane,
                    .access = row->request.access & 7,
                    .bytes = row->request.bytes,
                    .block = in->block_number};
  RaceParty there = {.site = trace_site(old),
                     .rank = host ? -1 : trace_rank(old),
                     .access = old_access,
                     .bytes = __builtin_popcount(trace_bytes(old)),
                     .block = UINT64_MAX};
  RaceParty party[2] = {host ? there : here, host ? here : there};
  simt_find(
      kind, 2, party, NULL, simt_memory_words(in, row->request.address[lane]),
      host ? "the kernel may still be running, or not have begun: cudaDeviceSynchronize(), or an event, before host "
             "code touches the memory"
           : "streams run at the same time: cudaEventRecord() after the first and cudaStreamWaitEvent() before the "
             "second "
             "order them, or one stream for both");
}

/* Releases up to which one the access comes after. */
static uint64_t what_is_seen(const Inspector *in, const Lane *lane, unsigned access, Reach reach) {
  uint64_t seen = lane->seen[reach] > in->block_seen[reach] ? lane->seen[reach] : in->block_seen[reach];
  if (!(access & (SIMT_ACCESS_VOLATILE | SIMT_ACCESS_ATOMIC))) return seen;
  if (lane->observed > seen) seen = lane->observed;
  return in->block_observed > seen ? in->block_observed : seen;
}

static int meets(const Inspector *in, const Row *row, const Region *region, int lane, Trace old) {
  int atomic = (row->request.access & SIMT_ACCESS_ATOMIC) != 0;
  return !surely_ordered(in, region, old, in->warp * SIMT_WARP_SIZE + lane) && !(trace_atomic(old) && atomic);
}

/* For the picture of a race: the lanes whose first word another thread has used, and nothing but a fence or
 * __syncwarp(), which are not looked at here, could order the two. */
static uint32_t racing_lanes(const Inspector *in, const Row *row, const Region *region) {
  uint32_t racing = 0;
  for (uint32_t rest = row->request.mask & ~row->odd; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    const Cell *cell = &region->cells[(row->request.address[lane] - region->low) / 4];
    int meeting = meets(in, row, region, lane, cell->write);
    if (row->request.access & SIMT_ACCESS_WRITE)
      meeting |= meets(in, row, region, lane, cell->read[0]) || meets(in, row, region, lane, cell->read[1]);
    if (meeting) racing |= 1u << lane;
  }
  return racing;
}

static void conflict(Inspector *in, const Row *row, const Region *region, int lane, Trace old, unsigned old_access) {
  if (trace_host(old) || (!region->shared && trace_time(old) < launch_time)) {
    conflict_outside(in, row, lane, old, old_access);
    return;
  }
  int rank = in->warp * SIMT_WARP_SIZE + lane, own = region->shared || same_block(in, old);
  unsigned long long block = own ? in->block_number : simt_block_at(trace_time(old));
  int scope = !own ? 2 : trace_rank(old) / SIMT_WARP_SIZE == in->warp ? 0 : 1;
  Reach reach = own ? OWN_BLOCK : OTHER_BLOCKS;
  uint64_t seen = what_is_seen(in, &in->lanes[rank], row->request.access, reach);
  if (scope == 0 && ordered_in_warp(&in->warp_view[in->warp], trace_time(old), trace_rank(old) % SIMT_WARP_SIZE, lane))
    return;
  if (simt_order_published(block, trace_rank(old), trace_time(old), seen, reach)) return;
  if ((row->request.access & SIMT_ACCESS_WRITE) && !is_held(row, region, lane) && changed_nothing(row, lane)) return;
  if (trace_atomic(old) && !(row->request.access & SIMT_ACCESS_WRITE)) {
    in->lanes[rank].guess = row->request.address[lane];
    in->lanes[rank].guess_site = row->site;
  }
  if (simt_race_known(row->site, trace_site(old), simt_race_scopes[scope])) return;
  if (simt_site_flow(trace_site(old))->is_volatile)
    old_access |= SIMT_ACCESS_VOLATILE;
  else if (trace_atomic(old))
    old_access |= SIMT_ACCESS_ATOMIC;
  RaceParty party[2] = {
      {.site = row->site,
       .rank = rank,
       .access = row->request.access & 7,
       .bytes = row->request.bytes,
       .block = in->block_number},
      {.site = trace_site(old),
       .rank = trace_rank(old),
       .access = old_access,
       .bytes = __builtin_popcount(trace_bytes(old)),
       .block = block},
  };
  int same_line = row->site == trace_site(old) && (old_access & SIMT_ACCESS_WRITE);
  int mixed = ((row->request.access ^ old_access) & SIMT_ACCESS_ATOMIC) != 0;
  char *fence = scope == 2 && !same_line && !mixed ? fence_advice(in, rank, block, old) : NULL;
  simt_find(SIMT_DATA_RACE, 2, party, simt_race_scopes[scope], simt_memory_words(in, row->request.address[lane]),
            fence ? fence : race_advice(scope, region, same_line, mixed));
  free(fence);
  simt_find_example(SIMT_DATA_RACE, row->site, trace_site(old), &row->request, racing_lanes(in, row, region));
}

static inline void check(Inspector *in, const Row *row, const Region *region, int lane, Trace old, Trace now,
                         unsigned old_access) {
  if (surely_ordered(in, region, old, trace_rank(now))) return;
  if (!(trace_bytes(old) & trace_bytes(now)) || (trace_atomic(old) && trace_atomic(now))) return;
  conflict(in, row, region, lane, old, old_access);
}

/* Threads that have read the word plainly do an atomic operation on it. */
static void confirm_guesses(Inspector *in, const Row *row, const Region *region, uint32_t lanes) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest), rank = in->warp * SIMT_WARP_SIZE + lane;
    uintptr_t address = row->request.address[lane];
    const Trace *read = region->cells[(address - region->low) / 4].read;
    Lane *l = &in->lanes[rank];
    if (l->guess == address && l->guess_site) simt_site_flow(l->guess_site)->is_guess = 1;
    for (int i = 0; i < 2; i++)
      if (trace_rank(read[i]) == rank && trace_time(read[i]) >= in->barrier_time && !trace_atomic(read[i]))
        simt_site_flow(trace_site(read[i]))->is_guess = 1;
  }
}

/* Of two reads kept, one is of another block while there is one: a write may come from either side. */
static inline void remember_read(const Inspector *in, Cell *cell, Trace now) {
  Trace last = cell->read[0];
  if (trace_rank(last) != trace_rank(now) || trace_time(last) < in->block_time) {
    int foreign =
        cell->read[1] && trace_time(cell->read[1]) < in->block_time && trace_time(cell->read[1]) >= launch_time;
    if (!foreign || trace_time(last) < in->block_time) cell->read[1] = last;
  }
  cell->read[0] = now;
}

static int chunk_may_be_used(Region *region, uintptr_t offset) {
  uint8_t *touched = &region->touched[offset >> CHUNK_SHIFT];
  if (*touched) return 1;
  if (chunks_touched >= chunks_most) {
    simt_note(
        "a kernel touched more device memory than SIMT_INSPECT_MEMORY allows to follow: races there were not looked "
        "for");
    return 0;
  }
  chunks_touched++;
  *touched = 1;
  return 1;
}

/* Plain accesses to whole words, one after the other. */
static void race_words(Inspector *in, Row *row, Region *region, uint32_t lanes, uintptr_t offset) {
  Cell *cell = &region->cells[offset / 4];
  Trace now = make_trace(simt_race_clock, row->site, in->warp * SIMT_WARP_SIZE, 15, 0);
  int writes = row->request.access & SIMT_ACCESS_WRITE, words = row->request.bytes / 4;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    Trace mine = now + ((uint64_t)lane << 6);
    for (int i = 0; i < words; i++, cell++) {
      check(in, row, region, lane, cell->write, mine, SIMT_ACCESS_WRITE);
      if (writes) {
        check(in, row, region, lane, cell->read[0], mine, SIMT_ACCESS_READ);
        check(in, row, region, lane, cell->read[1], mine, SIMT_ACCESS_READ);
        cell->write = mine;
      } else {
        remember_read(in, cell, mine);
      }
    }
  }
}

static int was_read_by(const Inspector *in, const Cell *cell, int rank) {
  return trace_rank(cell->read[0]) == rank && trace_time(cell->read[0]) >= in->block_time;
}

void simt_race_row(Inspector *in, Row *row, Region *region, uint32_t lanes, int side_by_side) {
  unsigned access = row->request.access;
  int writes = access & SIMT_ACCESS_WRITE;
  if (side_by_side && (access & ~(unsigned)SIMT_ACCESS_MEMBER) <= SIMT_ACCESS_WRITE && row->request.bytes % 4 == 0) {
    uintptr_t offset = row->request.address[__builtin_ctz(lanes)] - region->low;
    uintptr_t last = offset + (unsigned)__builtin_popcount(lanes) * row->request.bytes - 1;
    if (offset % 4 == 0 &&
        (!region->touched || (chunk_may_be_used(region, offset) && chunk_may_be_used(region, last)))) {
      race_words(in, row, region, lanes, offset);
      return;
    }
  }
  if (access & SIMT_ACCESS_VOLATILE) simt_site_flow(row->site)->is_volatile = 1;
  if (writes && (access & SIMT_ACCESS_ATOMIC) && !(access & SIMT_ACCESS_BLIND)) confirm_guesses(in, row, region, lanes);
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest), rank = in->warp * SIMT_WARP_SIZE + lane;
    uintptr_t offset = row->request.address[lane] - region->low, end = offset + row->request.bytes;
    int atomic = (access & SIMT_ACCESS_ATOMIC) != 0;
    /* In global memory a volatile access is one as a whole, also without a fence before it: a value that carries its
     * own flag needs none. It publishes nothing else then. A counter is no such value: the thread read it before. */
    if (atomic || ((access & SIMT_ACCESS_VOLATILE) && (!writes || in->lanes[rank].fence[OWN_BLOCK].time))) {
      simt_order_atomic(in, rank, row->request.address[lane], access);
      atomic = 1;
    } else if ((access & SIMT_ACCESS_VOLATILE) && !region->shared &&
               !was_read_by(in, &region->cells[offset / 4], rank)) {
      if (writes) simt_order_signal(row->request.address[lane]);
      atomic = 1;
    }
    if (region->touched && !chunk_may_be_used(region, offset)) continue;
    for (uintptr_t word = offset / 4; word * 4 < end; word++) {
      Cell *cell = &region->cells[word];
      unsigned bytes = 15;
      if (offset > word * 4) bytes &= 15u << (offset - word * 4);
      if (end < word * 4 + 4) bytes &= 15u >> (word * 4 + 4 - end);
      Trace now = make_trace(simt_race_clock, row->site, rank, bytes, atomic);
      check(in, row, region, lane, cell->write, now, SIMT_ACCESS_WRITE);
      if (writes) {
        check(in, row, region, lane, cell->read[0], now, SIMT_ACCESS_READ);
        check(in, row, region, lane, cell->read[1], now, SIMT_ACCESS_READ);
        cell->write = now;
      } else {
        remember_read(in, cell, now);
      }
    }
  }
}
