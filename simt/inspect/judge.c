/* judge.c - one request of a warp: whether its lanes may do what they do, and how often it counts. Also what
 * host code does with the device's memory. */
#include "bits.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- what is wrong with an access ---- */

static int foreign_accesses; /* of the running launch */

void simt_judge_launch(void) { foreign_accesses = 0; }

static RaceParty party_of(const Inspector *in, const Row *row, int lane) {
  return (RaceParty){.site = row->site,
                     .rank = in->warp * SIMT_WARP_SIZE + lane,
                     .access = row->request.access & 7,
                     .bytes = row->request.bytes,
                     .block = in->block_number};
}

static void found(Inspector *in, const Row *row, int lane, SimtFindingKind kind, char *memory, const char *advice) {
  RaceParty party[2] = {party_of(in, row, lane)};
  simt_find(kind, 1, party, NULL, memory, advice);
}

static int readable(uintptr_t address) {
  unsigned char resident;
  long page = sysconf(_SC_PAGESIZE);
  return mincore((void *)(address & ~(uintptr_t)(page - 1)), (size_t)page, &resident) == 0;
}

static int on_a_stack(const Inspector *in, uintptr_t address) {
  for (int i = 0; i < in->worker->fibre_count; i++)
    if (address - (uintptr_t)in->worker->fibres[i]->stack < SIMT_STACK_BYTES) return 1;
  return 0;
}

/* A GPU stops at some of these accesses. Here the launch goes on, so that other faults are found, too, but not for
 * ever. */
static void count_foreign(const Inspector *in) {
  enum { MOST = 20000 };
  if (++foreign_accesses < MOST) return;
  simt_note("a kernel made 20,000 accesses to memory that it may not use: its launch was ended there");
  if (in->worker->fibre != &in->worker->scheduler) simt_give_up(cudaErrorIllegalAddress);
}

/* An address that belongs to nothing the kernel may touch. */
static void judge_foreign(Inspector *in, const Row *row, int lane) {
  uintptr_t address = row->request.address[lane];
  if (address - in->arguments_low < in->arguments_size) return;
  count_foreign(in);
  SimtMemory memory;
  SimtFindingKind kind = SIMT_OUT_OF_BOUNDS;
  const char *advice = "compare the index with the number of elements before the access";
  int live = simt_memory_find((void *)address, &memory);
  int shared = (address >= in->fixed.low && address < in->fixed.high) ||
               address - in->dynamic.low < in->worker->dynamic_shared_size;
  if (address < 4096) {
    kind = SIMT_NULL_POINTER;
    advice = "was its cudaMalloc() checked, and the pointer passed to the kernel?";
  } else if (memory.freed) {
    kind = SIMT_USE_AFTER_FREE;
    advice = "free it after the last kernel that uses it has ended";
  } else if (live && !simt_is_reachable(&memory)) {
    kind = SIMT_WRONG_DEVICE;
    advice = "cudaDeviceEnablePeerAccess(), with the device that runs the kernel current, or cudaMemcpyPeer()";
  } else if (shared) {
    advice = address >= in->dynamic.high && address - in->dynamic.low < in->worker->dynamic_shared_size
                 ? "the third number of <<<grid, block, bytes>>> is the size of extern __shared__ arrays"
                 : "compare the index with the size of the array";
  } else if (simt_behind_device_variable(address)) {
    advice = "compare the index with the size of the array";
  } else if (!live && memory.kind == SIMT_UNKNOWN_MEMORY && on_a_stack(in, address)) {
    advice = "a local variable belongs to one thread: exchange values through shared memory";
  } else if (!live && memory.kind == SIMT_UNKNOWN_MEMORY && simt_was_on_heap(address)) {
    kind = SIMT_USE_AFTER_FREE;
    advice = "a thread of a kernel has freed it (free() or delete): move that behind the last access";
  } else if (!live && memory.kind == SIMT_UNKNOWN_MEMORY && readable(address)) {
    kind = SIMT_HOST_POINTER;
    advice = "a kernel cannot reach the host's memory: copy the data with cudaMemcpy(), also what a struct points to";
  }
  if (!simt_found_before(kind, row->site, 0)) found(in, row, lane, kind, simt_memory_words(in, address), advice);
}

static void judge_alignment(Inspector *in, const Row *row, uint32_t lanes) {
  unsigned bytes = row->request.bytes;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    uintptr_t address = row->request.address[lane];
    if (!(address & (bytes - 1))) continue;
    if (simt_found_before(SIMT_MISALIGNED, row->site, 0)) continue;
    found(in, row, lane, SIMT_MISALIGNED, simt_memory_words(in, address),
          "a GPU stops here: an access of 2, 4, 8 or 16 bytes needs an address that is a multiple of its size");
  }
}

/* The unset bytes of a struct may be copied with the others. */
static void judge_reads(Inspector *in, const Row *row, Region *region, uint32_t lanes) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    uintptr_t address = row->request.address[lane];
    if (any_written(region, address, row->request.bytes)) continue;
    if (simt_found_before(SIMT_UNINITIALISED_READ, row->site, 0)) continue;
    found(in, row, lane, SIMT_UNINITIALISED_READ, simt_memory_words(in, address),
          region->shared ? "no thread of this block has written it so far, and shared memory starts with arbitrary "
                           "contents: is a __syncthreads() missing before this line, or is this part never filled?"
                         : "nobody has written it since it was allocated: cudaMemset() it, or copy or compute it "
                           "first; a copy or a grid that is too small leaves such a rest, or a wait for the blocks "
                           "that write it is missing");
  }
}

/* Shared memory that asynchronous copies are on their way to. A write there is such a copy, or as good as lost. */
static void judge_held(Inspector *in, const Row *row, Region *r, uint32_t lanes, int writes) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    size_t at = row->request.address[lane] - r->low, bytes = row->request.bytes;
    if (!any_bit(r->held, at, bytes)) continue;
    if (writes) {
      set_bits(r->awaited, at, bytes, 1);
      continue;
    }
    if (!any_bit(r->awaited, at, bytes) || simt_found_before(SIMT_UNINITIALISED_READ, row->site, 0)) continue;
    found(in, row, lane, SIMT_UNINITIALISED_READ, simt_memory_words(in, row->request.address[lane]),
          r->bulk
              ? "an asynchronous copy to it is under way: wait for the mbarrier at which it counts (mbarrier_wait())"
              : "an asynchronous copy to it is under way: __pipeline_commit() it and wait for it "
                "(__pipeline_wait_prior()) before, and for other threads' copies at a barrier after that");
  }
}

static void judge_lanes(Inspector *in, Row *row, const Object *o, uint32_t lanes, int side_by_side) {
  Region *region = o->region;
  unsigned access = row->request.access, bytes = row->request.bytes;
  int writes = access & SIMT_ACCESS_WRITE;
  int reads = !writes || ((access & SIMT_ACCESS_ATOMIC) && !(access & SIMT_ACCESS_BLIND));
  uintptr_t first = row->request.address[__builtin_ctz(lanes)];
  if (writes && o->space == SPACE_CONSTANT && !simt_found_before(SIMT_READ_ONLY_WRITE, row->site, 0))
    found(in, row, __builtin_ctz(lanes), SIMT_READ_ONLY_WRITE, simt_memory_words(in, first),
          "constant memory is written by the host, with cudaMemcpyToSymbol()");
  if (!region) return;
  if (region->held) judge_held(in, row, region, lanes, writes);
  if (region->written) {
    if (reads && !(access & SIMT_ACCESS_MEMBER) && (region->shared || !simt_writes_unseen) &&
        !(side_by_side && all_written(region, first, bytes * (unsigned)__builtin_popcount(lanes))))
      judge_reads(in, row, region, lanes);
    if (writes && side_by_side)
      set_written(region, first, bytes * (unsigned)__builtin_popcount(lanes), 1);
    else if (writes)
      for (uint32_t rest = lanes; rest; rest &= rest - 1)
        set_written(region, row->request.address[__builtin_ctz(rest)], bytes, 1);
  }
  if (region->cells) simt_race_row(in, row, region, lanes, side_by_side);
}

/* ---- counts ---- */

/* Gives the sectors that would not have been needed; of atomic operations none. */
static int count_global(uint64_t *count, const SimtRequest *r, int lanes, int side_by_side) {
  int ideal, sectors;
  if (side_by_side) {
    uintptr_t first = r->address[__builtin_ctz(r->mask)], bytes = (unsigned)lanes * r->bytes;
    sectors = (int)((first + bytes - 1) / 32 - first / 32) + 1;
    ideal = (int)(bytes + 31) / 32;
  } else {
    sectors = simt_count_sectors(r, &ideal);
  }
  if (r->access & SIMT_ACCESS_ATOMIC) {
    count[SIMT_GLOBAL_ATOMIC_REQUESTS]++;
    count[SIMT_GLOBAL_ATOMIC_SECTORS] += (unsigned)sectors;
    count[SIMT_GLOBAL_ATOMIC_LANES] += (unsigned)lanes;
    count[SIMT_GLOBAL_ATOMIC_TURNS] += (unsigned)simt_count_turns(r);
    return 0;
  }
  int first = r->access & SIMT_ACCESS_WRITE ? SIMT_GLOBAL_STORE_REQUESTS : SIMT_GLOBAL_LOAD_REQUESTS;
  count[first]++;
  count[first + 1] += (unsigned)sectors;
  count[first + 2] += (unsigned)ideal;
  count[first + 3] += (unsigned)(lanes * r->bytes);
  return sectors - ideal;
}

/* Gives the conflicts. */
static int count_shared(uint64_t *count, const SimtRequest *r, int lanes, int side_by_side) {
  if (r->access & SIMT_ACCESS_ATOMIC) {
    count[SIMT_SHARED_ATOMIC_REQUESTS]++;
    count[SIMT_SHARED_ATOMIC_LANES] += (unsigned)lanes;
    count[SIMT_SHARED_ATOMIC_TURNS] += (unsigned)simt_count_turns(r);
    return 0;
  }
  int ideal = 1, wavefronts = 1;
  if (!side_by_side || r->bytes > 4) wavefronts = simt_count_wavefronts(r, &ideal);
  int first = r->access & SIMT_ACCESS_WRITE ? SIMT_SHARED_STORE_REQUESTS : SIMT_SHARED_LOAD_REQUESTS;
  count[first]++;
  count[first + 1] += (unsigned)wavefronts;
  count[first + 2] += (unsigned)(wavefronts - ideal);
  return wavefronts - ideal;
}

static void count_lanes(Inspector *in, const Row *row, Space space, uint32_t lanes, int side_by_side) {
  SimtRequest part;
  const SimtRequest *r = &row->request;
  if (space == SPACE_SHARED && simt_is_mbarrier(in->worker, (void *)r->address[__builtin_ctz(lanes)])) return;
  SiteCounts *counts = simt_site_counts(row->site);
  uint64_t *count = counts->count;
  int waste = 0;
  if (lanes != r->mask) { /* few requests are in two spaces at once, or partly out of bounds */
    part = *r;
    part.mask = lanes;
    r = &part;
  }
  if (space == SPACE_GLOBAL) {
    waste = count_global(count, r, __builtin_popcount(lanes), side_by_side);
    in->warp_view[in->warp].working |= lanes;
  }
  if (space == SPACE_SHARED) waste = count_shared(count, r, __builtin_popcount(lanes), side_by_side);
  if (waste > counts->waste) {
    counts->waste = waste;
    if (!counts->worst && !(counts->worst = malloc(sizeof *counts->worst))) abort();
    *counts->worst = simt_example_of(r, 0);
    for (int i = 0; space == SPACE_SHARED && i < 32; i++) /* banks as they are where the array begins in the first */
      if (lanes >> i & 1) counts->worst->address[i] -= row->object.low;
  }
  if (space == SPACE_CONSTANT) {
    count[SIMT_CONSTANT_LOAD_REQUESTS]++;
    count[SIMT_CONSTANT_LOAD_WORDS] += (unsigned)simt_count_addresses(r);
  }
}

/* Lanes in ascending order at ascending addresses without a gap. */
static int side_by_side(const SimtRequest *r) {
  uintptr_t next = r->address[__builtin_ctz(r->mask)];
  for (uint32_t rest = r->mask; rest; rest &= rest - 1, next += r->bytes)
    if (r->address[__builtin_ctz(rest)] != next) return 0;
  return 1;
}

void simt_judge_row(Inspector *in, Row *row) {
  SimtRequest *r = &row->request;
  uint32_t lanes = r->mask, of_space[4] = {0};
  int adjacent = side_by_side(r);
  uintptr_t addresses = r->address[__builtin_ctz(lanes)];
  for (uint32_t rest = adjacent ? 0 : lanes; rest; rest &= rest - 1) addresses |= r->address[__builtin_ctz(rest)];
  if ((addresses & (r->bytes - 1u)) && (r->bytes & (r->bytes - 1)) == 0) judge_alignment(in, row, lanes);
  if (!row->odd) { /* all lanes are inside one object */
    count_lanes(in, row, row->object.space, lanes, adjacent);
    judge_lanes(in, row, &row->object, lanes, adjacent);
    return;
  }
  uint32_t left = lanes;
  while (left) {
    Object o = row->object;
    uint32_t same = left & ~row->odd;
    if (!same) {
      int lane = __builtin_ctz(left);
      uintptr_t address = r->address[lane];
      if (!simt_find_object(in, address, &o) || address + r->bytes > o.low + o.size) {
        judge_foreign(in, row, lane);
        left &= left - 1;
        continue;
      }
      for (uint32_t rest = left; rest; rest &= rest - 1)
        if (r->address[__builtin_ctz(rest)] - o.low <= o.size - r->bytes) same |= rest & -rest;
    }
    judge_lanes(in, row, &o, same, 0);
    of_space[o.space] |= same;
    left &= ~same;
  }
  for (Space space = SPACE_GLOBAL; space <= SPACE_CONSTANT; space++)
    if (of_space[space]) count_lanes(in, row, space, of_space[space], 0);
}

/* ---- host code ---- */

/* Host code uses memory that a queued operation may use, too. That of a copy is known; what a kernel does will be seen
 * when it runs, if the access is remembered until then. */
static void judge_early(uintptr_t address, int bytes, unsigned access, uintptr_t pc, const SimtMemory *memory) {
  SimtPending pending;
  int writes = (access & SIMT_ACCESS_WRITE) != 0;
  if (!simt_stream_pending((void *)address, writes, &pending)) return;
  unsigned site = simt_site_of(pc);
  if (strncmp(pending.what, "cuda", 4) != 0) {
    Region *r = simt_region_of(address, memory);
    if (!r || !r->cells) return;
    for (uintptr_t word = (address - r->low) / 4; word * 4 < address - r->low + (unsigned)bytes; word++) {
      Trace trace = make_trace(simt_race_clock, site, 0, 15, 0) | 1;
      *(writes ? &r->cells[word].write : &r->cells[word].read[0]) = trace;
    }
    return;
  }
  if (simt_found_before(SIMT_MISSING_SYNC, site, 0)) return;
  RaceParty party[2] = {{.site = site, .rank = -1, .access = access & 7, .bytes = bytes},
                        {.rank = -1,
                         .access = writes ? SIMT_ACCESS_READ : SIMT_ACCESS_WRITE,
                         .place = {pending.file ? pending.file : "?", pending.what, pending.line}}};
  simt_find(SIMT_MISSING_SYNC, pending.file ? 2 : 1, party, NULL, simt_memory_words(NULL, address),
            "the copy may not be done yet: cudaStreamSynchronize(), or an event, before host code touches the buffer");
}

void simt_judge_host(uintptr_t address, int bytes, unsigned access, uintptr_t pc) {
  SimtMemory memory;
  simt_memory_find((void *)address, &memory);
  if (memory.kind == SIMT_PINNED_MEMORY || memory.kind == SIMT_MANAGED_MEMORY)
    judge_early(address, bytes, access, pc, &memory);
  if (memory.kind != SIMT_DEVICE_MEMORY && memory.kind != SIMT_SYMBOL_MEMORY && memory.kind != SIMT_CONSTANT_MEMORY)
    return;
  unsigned site = simt_site_of(pc);
  if (access & SIMT_ACCESS_WRITE) simt_inspect_host_wrote((void *)address, (size_t)bytes); /* one finding is enough */
  if (simt_found_before(SIMT_DEVICE_POINTER, site, 0)) return;
  RaceParty party[2] = {{.site = site, .rank = -1, .access = access & 7, .bytes = bytes}};
  simt_find(SIMT_DEVICE_POINTER, 1, party, NULL, simt_memory_words(NULL, address),
            memory.kind == SIMT_DEVICE_MEMORY
                ? "host code cannot reach device memory: copy it with cudaMemcpy() first, or use cudaMallocManaged()"
                : "host code cannot reach a __device__ or __constant__ variable: cudaMemcpyFromSymbol() copies it");
}
