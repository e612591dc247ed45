/* order.c - what orders the accesses of different blocks, and of threads without a barrier: fences and atomic
 * operations, as CUDA's memory model has it.
 *
 * An atomic operation by itself orders nothing: it changes its own object at once, and other blocks may see that long
 * before they see what its thread wrote earlier. Neither does a volatile access. It takes two fences:
 *
 *     block A:  x = 1;  __threadfence();  atomicAdd(&ready, 1);
 *     block B:  while (atomicAdd(&ready, 0) == 0) {}  __threadfence();  y = x;
 *
 * A fence publishes what its thread did before, and what came before that by a barrier: the whole block's accesses
 * before the last __syncthreads(), its warp's before __syncwarp(). The next atomic operation, or volatile write,
 * leaves that at its object: a *release*. Who operates on the object after that has *observed* it, and has *seen* it
 * from its next fence on; barriers hand both on to the block. Where all threads fence and then meet, one of them may
 * signal for all, of a block as of a warp. Operations with an order (cuda::atomic) carry their own fences. A volatile
 * or atomic read is not delayed by what the caches hold: for it, observed is enough, as in the CUDA guide's sum by the
 * last block.
 *
 * __threadfence_block() does all this for the threads of its own block alone (Reach).
 *
 * Releases are numbered, and objects are not told apart beyond that: who has observed release n has observed all
 * before it. Threads that synchronise with somebody else through another object may race unseen, but no correct
 * program is accused.
 */
#include "parts.h"

static uint32_t epoch; /* when the launch began, or its last grid barrier: nothing before matters */

/* ---- which block ran at a time ---- */

typedef struct Turn {
  uint32_t time; /* when it began */
  unsigned long long block;
  struct { /* the block's last atomic operations in the turn, on different objects; the latest first */
    uint32_t time;
    uintptr_t object;
  } signal[OBJECTS];
} Turn;
static Turn *turns;
static size_t turn_count, turn_room;

/* The turn of a time: index + 1. */
static size_t turn_at(uint32_t time) {
  size_t low = 0, high = turn_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (turns[middle].time <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

unsigned long long simt_block_at(uint32_t time) {
  size_t turn = turn_at(time);
  return turn ? turns[turn - 1].block : UINT64_MAX;
}

void simt_race_turn(const Inspector *in) {
  if (turn_count == turn_room) {
    turn_room = turn_room ? 2 * turn_room : 1024;
    turns = realloc(turns, turn_room * sizeof *turns);
    if (!turns) abort();
  }
  turns[turn_count++] = (Turn){.time = ++simt_race_clock, .block = in->block_number};
}

void simt_order_signal(uintptr_t object) {
  Turn *t = &turns[turn_count - 1];
  int i = 0;
  while (i < OBJECTS - 1 && t->signal[i].object && t->signal[i].object != object) i++;
  memmove(t->signal + 1, t->signal, (size_t)i * sizeof t->signal[0]);
  t->signal[0].object = object;
  t->signal[0].time = simt_race_clock;
}

static void observe(Inspector *in, uintptr_t object) {
  int i = 0;
  while (i < OBJECTS - 1 && in->observed_object[i] && in->observed_object[i] != object) i++;
  memmove(in->observed_object + 1, in->observed_object, (size_t)i * sizeof in->observed_object[0]);
  in->observed_object[0] = object;
}

/* ---- maps from a number to a number ---- */

typedef struct Map { /* emptied at each launch */
  struct {
    uint64_t key, value;
    uint32_t epoch;
  } * slot;
  size_t room, used;
} Map;

static uint64_t *map_at(Map *m, uint64_t key) {
  if (2 * m->used >= m->room) {
    Map bigger = {.room = m->room ? 2 * m->room : 256};
    bigger.slot = calloc(bigger.room, sizeof *bigger.slot);
    if (!bigger.slot) abort();
    for (size_t i = 0; i < m->room; i++)
      if (m->slot[i].epoch == epoch) *map_at(&bigger, m->slot[i].key) = m->slot[i].value;
    free(m->slot);
    *m = bigger;
  }
  size_t i = simt_mix(key) & (m->room - 1);
  while (m->slot[i].epoch == epoch && m->slot[i].key != key) i = (i + 1) & (m->room - 1);
  if (m->slot[i].epoch != epoch) {
    m->slot[i].epoch = epoch;
    m->slot[i].key = key;
    m->slot[i].value = 0;
    m->used++;
  }
  return &m->slot[i].value;
}

static uint64_t map_get(const Map *m, uint64_t key) {
  if (!m->used) return 0;
  size_t i = simt_mix(key) & (m->room - 1);
  for (; m->slot[i].epoch == epoch; i = (i + 1) & (m->room - 1))
    if (m->slot[i].key == key) return m->slot[i].value;
  return 0;
}

/* ---- fences ---- */

typedef struct Fence { /* of lanes of a warp, the last one before a barrier */
  uint32_t time;
  uint32_t lanes;
  int warp;
  Reach reach;
  uint32_t earlier; /* one of the same block: index + 1 */
} Fence;
static Fence *fences;
static uint32_t fence_count, fence_room;
static Map last_fence; /* block -> index + 1 */

/* In the order of their times, which was_fenced() counts on: only the newest may become later. */
static void remember_fence(Inspector *in, uint32_t lanes, Reach reach) {
  uint64_t *newest = map_at(&last_fence, in->block_number);
  Fence *last = *newest ? &fences[*newest - 1] : NULL;
  if (last && last->warp == in->warp && last->lanes == lanes && last->reach == reach && last->time > in->barrier_time) {
    last->time = simt_race_clock;
    return;
  }
  if (fence_count == fence_room) {
    fence_room = fence_room ? 2 * fence_room : 1024;
    fences = realloc(fences, fence_room * sizeof *fences);
    if (!fences) abort();
  }
  fences[fence_count] = (Fence){simt_race_clock, lanes, in->warp, reach, (uint32_t)*newest};
  *newest = ++fence_count;
}

/* The thread has done a fence after `time` and before `end`. */
static int was_fenced(unsigned long long block, int rank, uint32_t time, uint32_t end, Reach reach) {
  for (uint64_t i = map_get(&last_fence, block); i; i = fences[i - 1].earlier) {
    const Fence *f = &fences[i - 1];
    if (f->time <= time) return 0;
    if (f->reach < reach || f->time >= end || f->warp != rank / SIMT_WARP_SIZE) continue;
    if (f->lanes >> rank % SIMT_WARP_SIZE & 1) return 1;
  }
  return 0;
}

/* The lane's last __syncwarp() since the block's last barrier; its time is 0 if there was none. */
static Sync last_sync(const Inspector *in, int rank) {
  const WarpView *view = &in->warp_view[rank / SIMT_WARP_SIZE];
  for (unsigned i = view->syncs; i > 0 && i + MAX_SYNCS > view->syncs; i--)
    if (view->sync[(i - 1) % MAX_SYNCS].lanes >> rank % SIMT_WARP_SIZE & 1) return view->sync[(i - 1) % MAX_SYNCS];
  return (Sync){0, 0};
}

/* What the lane has done is before what it does next, for those who will see it. */
static void publish_before(Inspector *in, int rank, Reach reach) {
  Fenced now = {simt_race_clock, in->barrier_time, last_sync(in, rank)};
  for (Reach r = OWN_BLOCK; r <= reach; r++) in->lanes[rank].fence[r] = now;
}

/* What the lane has observed is before what it does next. */
static void see(Inspector *in, Lane *lane, Reach reach) {
  for (Reach r = OWN_BLOCK; r <= reach; r++) {
    if (lane->observed > lane->seen[r]) lane->seen[r] = lane->observed;
    if (in->block_observed > lane->seen[r]) lane->seen[r] = in->block_observed;
    if (lane->seen[r] > in->most_seen[r]) in->most_seen[r] = lane->seen[r];
  }
}

void simt_order_fence(Inspector *in, uint32_t lanes, Reach reach) {
  simt_race_clock++;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    int rank = in->warp * SIMT_WARP_SIZE + __builtin_ctz(rest);
    publish_before(in, rank, reach);
    see(in, &in->lanes[rank], reach);
  }
  remember_fence(in, lanes, reach);
}

/* ---- releases ---- */

typedef struct Release {
  unsigned long long block;
  uint64_t when; /* count of releases */
  uint32_t time; /* of the atomic operation */
  /* Accesses that their own threads had fenced by then are there: the block's last barrier before it, and the last
   * __syncwarp() with its thread. */
  uint32_t meeting;
  Sync warp_meeting;
  /* Of its thread, the accesses before the fence; of the whole block, those before the barrier, and of some lanes of
   * its warp those before the __syncwarp() that came before the fence. */
  Fenced by[REACHES];
  int rank;
  uint32_t earlier; /* the block's release before this one: index + 1 */
} Release;
static Release *releases;
static uint32_t release_count, release_room;
static uint64_t now_released;
static Map last_release; /* block -> index + 1 */
static Map objects;      /* address of an atomic object -> when it was released last */

static void release(Inspector *in, int rank, uintptr_t object) {
  const Lane *lane = &in->lanes[rank];
  uint64_t *last = map_at(&last_release, in->block_number);
  const Release *r = *last ? &releases[*last - 1] : NULL;
  Sync met = last_sync(in, rank);
  now_released++;
  if (!r || r->rank != rank || r->by[OWN_BLOCK].time != lane->fence[OWN_BLOCK].time || r->meeting != in->barrier_time ||
      r->warp_meeting.time != met.time) {
    if (release_count == release_room) {
      release_room = release_room ? 2 * release_room : 1024;
      releases = realloc(releases, release_room * sizeof *releases);
      if (!releases) abort();
    }
    releases[release_count] = (Release){.block = in->block_number,
                                        .when = now_released,
                                        .time = simt_race_clock,
                                        .meeting = in->barrier_time,
                                        .warp_meeting = met,
                                        .by = {lane->fence[OWN_BLOCK], lane->fence[OTHER_BLOCKS]},
                                        .rank = rank,
                                        .earlier = (uint32_t)*last};
    *last = ++release_count;
  }
  *map_at(&objects, object) = now_released;
}

/* The access came before a __syncwarp() that its thread passed with the one that released. */
static int before_sync(const Release *r, Sync sync, int rank, uint32_t time) {
  return time < sync.time && rank / SIMT_WARP_SIZE == r->rank / SIMT_WARP_SIZE &&
         (sync.lanes >> rank % SIMT_WARP_SIZE & 1);
}

static int covers(const Release *r, int rank, uint32_t time, Reach reach) {
  const Fenced *f = &r->by[reach];
  if (f->time && (time < f->barrier || (rank == r->rank && time < f->time) || before_sync(r, f->sync, rank, time)))
    return 1;
  int met = before_sync(r, r->warp_meeting, rank, time);
  return was_fenced(r->block, rank, time, met ? r->warp_meeting.time : r->meeting, reach);
}

int simt_order_published(unsigned long long block, int rank, uint32_t time, uint64_t seen, Reach reach) {
  if (!seen) return 0;
  for (uint64_t i = map_get(&last_release, block); i && releases[i - 1].time > time; i = releases[i - 1].earlier) {
    const Release *r = &releases[i - 1];
    if (r->when <= seen && covers(r, rank, time, reach)) return 1;
  }
  return 0;
}

void simt_order_atomic(Inspector *in, int rank, uintptr_t object, unsigned access) {
  Lane *lane = &in->lanes[rank];
  if (access & SIMT_ACCESS_RELEASE) {
    simt_race_clock++;
    publish_before(in, rank, OTHER_BLOCKS);
  }
  if (!(access & SIMT_ACCESS_BLIND)) {
    uint64_t when = map_get(&objects, object);
    observe(in, object);
    if (when > lane->observed) lane->observed = when;
    if (when > in->most_observed) in->most_observed = when;
    if (access & SIMT_ACCESS_ACQUIRE) see(in, lane, OTHER_BLOCKS);
  }
  if (!(access & SIMT_ACCESS_WRITE)) return;
  simt_order_signal(object);
  if (lane->fence[OWN_BLOCK].time) release(in, rank, object);
}

/* ---- events ---- */

static void forget(uint32_t time) {
  epoch = time;
  release_count = fence_count = 0;
  last_release.used = last_fence.used = objects.used = 0;
}

void simt_order_launch(uint32_t time) {
  forget(time);
  turn_count = 0;
}

void simt_order_grid(uint32_t time) { forget(time); }

void simt_order_block(Inspector *in) {
  simt_race_turn(in);
  in->block_observed = in->most_observed = 0;
  for (Reach r = OWN_BLOCK; r <= OTHER_BLOCKS; r++) in->block_seen[r] = in->most_seen[r] = 0;
  memset(in->observed_object, 0, sizeof in->observed_object);
}

void simt_order_barrier(Inspector *in) {
  for (Reach r = OWN_BLOCK; r <= OTHER_BLOCKS; r++) in->block_seen[r] = in->most_seen[r];
  in->block_observed = in->most_observed;
}

void simt_order_warp(Inspector *in, int warp, unsigned lanes) {
  Lane *lane = &in->lanes[warp * SIMT_WARP_SIZE];
  uint64_t seen[REACHES] = {0, 0}, observed = 0;
  for (unsigned rest = lanes; rest; rest &= rest - 1) {
    const Lane *l = &lane[__builtin_ctz(rest)];
    for (Reach r = OWN_BLOCK; r <= OTHER_BLOCKS; r++)
      if (l->seen[r] > seen[r]) seen[r] = l->seen[r];
    if (l->observed > observed) observed = l->observed;
  }
  for (unsigned rest = observed ? lanes : 0; rest; rest &= rest - 1) {
    memcpy(lane[__builtin_ctz(rest)].seen, seen, sizeof seen);
    lane[__builtin_ctz(rest)].observed = observed;
  }
}

/* ---- what is missing ---- */

/* The block has signalled by an operation on `object`, after `time`. */
static int has_signalled(unsigned long long block, uint32_t time, uintptr_t object) {
  size_t turn = turn_at(time);
  for (size_t i = turn ? turn - 1 : 0; i < turn_count; i++)
    for (int s = 0; s < OBJECTS && turns[i].block == block; s++)
      if (turns[i].signal[s].object == object && turns[i].signal[s].time >= time) return 1;
  return 0;
}

SimtMissing simt_order_missing(const Inspector *in, int reader, unsigned long long block, int rank, uint32_t time,
                               uintptr_t *object) {
  const Lane *lane = &in->lanes[reader];
  uint64_t observed = lane->observed > in->block_observed ? lane->observed : in->block_observed;
  uint64_t seen = lane->seen[OWN_BLOCK] > in->block_seen[OWN_BLOCK] ? lane->seen[OWN_BLOCK] : in->block_seen[OWN_BLOCK];
  *object = 0;
  for (int i = 0; i < OBJECTS && in->observed_object[i] && !*object; i++)
    if (has_signalled(block, time, in->observed_object[i])) *object = in->observed_object[i];
  if (!*object) return SIMT_NO_SIGNAL;
  if (simt_order_published(block, rank, time, seen, OWN_BLOCK)) return SIMT_NARROW_FENCE;
  return simt_order_published(block, rank, time, observed, OTHER_BLOCKS) ? SIMT_NO_FENCE_BEHIND : SIMT_NO_FENCE_BEFORE;
}
