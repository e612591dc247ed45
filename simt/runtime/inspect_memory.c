/* inspect_memory.c - whose memory an address is, and whether a thread may do with it what it does.
 *
 * A thread's own stack is dealt with in the hooks. The rest, in the order in which it is asked:
 *   dynamic shared memory   the worker's buffer, as long as the launch asked for
 *   static shared memory    thread-local variables of the program; names and sizes are in its symbol table
 *   device memory           the arena that cudaMalloc() cuts up, pinned and managed memory
 *   __device__, __constant__ variables: sections of the program
 *   constants               the program's read-only data
 * Anything else is a finding.
 */
#include "inspect_parts.h"

#include <sys/mman.h>
#include <unistd.h>

unsigned long simt_object_era = 1;
int simt_writes_unseen;

static Region arena;
/* Outside the arena: sections of variables, managed and pinned allocations. */
enum { MAX_REGIONS = 256 };
static Region extra[MAX_REGIONS];
static int extra_count;
uintptr_t simt_watched_low[3], simt_watched_size[3];
static int lazy;             /* streams */
static int foreign_accesses; /* of the running launch */

extern char __start_simt_device[] __attribute__((weak)), __stop_simt_device[] __attribute__((weak));
extern char __start_simt_bss[] __attribute__((weak)), __stop_simt_bss[] __attribute__((weak));
extern char __start_simt_constant[] __attribute__((weak)), __stop_simt_constant[] __attribute__((weak));
extern char __start_simt_cbss[] __attribute__((weak)), __stop_simt_cbss[] __attribute__((weak));

/* ---- shadow memory ---- */

static void *reserve(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static size_t cell_bytes(const Region *r) { return (r->high - r->low + 3) / 4 * sizeof(Cell); }

static Region *add_region(uintptr_t low, uintptr_t high) {
  if (high <= low || extra_count == MAX_REGIONS) return NULL;
  Region *r = &extra[extra_count++];
  *r = (Region){.low = low & ~(uintptr_t)3, .high = high};
  r->cells = reserve(cell_bytes(r));
  return r;
}

static Region *find_extra(uintptr_t address) {
  for (int i = 0; i < extra_count; i++)
    if (address >= extra[i].low && address < extra[i].high) return &extra[i];
  return NULL;
}

static void watch(int which, uintptr_t start, uintptr_t stop) {
  uintptr_t low = simt_watched_low[which], high = low + simt_watched_size[which];
  if (!low || start < low) low = start;
  if (stop > high) high = stop;
  simt_watched_low[which] = low;
  simt_watched_size[which] = high - low;
}

static void add_section(char *start, char *stop, int judged) {
  if (start == stop) return;
  if (judged) add_region((uintptr_t)start, (uintptr_t)stop);
  watch(1, (uintptr_t)start, (uintptr_t)stop);
}

void simt_memory_open(void) {
  const char *streams = getenv("SIMT_STREAMS");
  char *base;
  size_t size;
  lazy = streams && *streams && strcmp(streams, "eager") != 0;
  simt_memory_arena(&base, &size);
  arena = (Region){.low = (uintptr_t)base, .high = (uintptr_t)base + size};
  arena.cells = reserve(cell_bytes(&arena));
  arena.written = reserve(size / 8 + 8);
  arena.touched = reserve((size >> CHUNK_SHIFT) + 1);
  if (!arena.cells || !arena.touched) {
    arena.cells = NULL;
    simt_note("no address space for the shadow memory: races in device memory are not looked for");
  } else {
    madvise(arena.cells, cell_bytes(&arena), MADV_HUGEPAGE);
  }
  simt_watched_low[0] = arena.low;
  simt_watched_size[0] = size;
  add_section(__start_simt_device, __stop_simt_device, 1);
  add_section(__start_simt_bss, __stop_simt_bss, 1);
  add_section(__start_simt_constant, __stop_simt_constant, 0);
  add_section(__start_simt_cbss, __stop_simt_cbss, 0);
}

/* No access of an earlier launch can race with one of this: their memory is given back when it has become much. */
void simt_memory_launch(void) {
  simt_object_era++;
  foreign_accesses = 0;
  if (arena.cells && simt_race_forget()) {
    madvise(arena.cells, cell_bytes(&arena), MADV_DONTNEED);
    madvise(arena.touched, ((arena.high - arena.low) >> CHUNK_SHIFT) + 1, MADV_DONTNEED);
  }
}

void simt_memory_block(Inspector *in) {
  size_t size;
  uintptr_t low = simt_tls_low(&size) & ~(uintptr_t)3;
  if (in->fixed.low != low) {
    free(in->fixed.cells);
    free(in->fixed.written);
    free(in->fixed.held);
    free(in->fixed.awaited);
    in->fixed = (Region){.low = low, .high = low + size + 4, .shared = 1};
    in->fixed.cells = calloc(size / 4 + 2, sizeof(Cell));
    in->fixed.written = calloc(size / 8 + 2, 1);
  }
  memset(in->fixed.written, 0, size / 8 + 2);
  if (in->fixed.held) {
    memset(in->fixed.held, 0, size / 8 + 2);
    memset(in->fixed.awaited, 0, size / 8 + 2);
  }
  uintptr_t dynamic = (uintptr_t)in->worker->dynamic_shared;
  size_t bytes = in->worker->job->kernel->shared_bytes;
  if (!in->dynamic.cells || in->dynamic.low != dynamic || in->dynamic.high < dynamic + bytes) {
    free(in->dynamic.cells);
    free(in->dynamic.written);
    free(in->dynamic.held);
    free(in->dynamic.awaited);
    in->dynamic = (Region){.low = dynamic, .shared = 1};
    in->dynamic.cells = calloc(bytes / 4 + 2, sizeof(Cell));
    in->dynamic.written = calloc(bytes / 8 + 2, 1);
  } else if (in->dynamic.held) { /* as long as the launch needs: allocated again with the next copy */
    free(in->dynamic.held);
    free(in->dynamic.awaited);
    in->dynamic.held = in->dynamic.awaited = NULL;
  }
  in->dynamic.high = dynamic + bytes;
  memset(in->dynamic.written, 0, bytes / 8 + 2);
}

static int any_written(const Region *r, uintptr_t address, size_t bytes) {
  for (size_t bit = address - r->low; bytes--; bit++)
    if (r->written[bit / 8] >> bit % 8 & 1) return 1;
  return 0;
}

static int all_written(const Region *r, uintptr_t address, size_t bytes) {
  size_t bit = address - r->low;
  while (bytes) {
    if (bit % 64 == 0 && bytes >= 64) {
      uint64_t word;
      memcpy(&word, r->written + bit / 8, sizeof word);
      if (~word) return 0;
      bit += 64;
      bytes -= 64;
      continue;
    }
    size_t some = 8 - bit % 8 < bytes ? 8 - bit % 8 : bytes;
    unsigned mask = ((1u << some) - 1) << bit % 8;
    if ((r->written[bit / 8] & mask) != mask) return 0;
    bit += some;
    bytes -= some;
  }
  return 1;
}

static void set_bits(uint8_t *bits, size_t bit, size_t bytes, int value) {
  while (bytes) {
    if (bit % 8 == 0 && bytes >= 8) {
      memset(bits + bit / 8, value ? 0xff : 0, bytes / 8);
      bit += bytes / 8 * 8;
      bytes %= 8;
      continue;
    }
    size_t some = 8 - bit % 8 < bytes ? 8 - bit % 8 : bytes;
    uint8_t mask = (uint8_t)(((1u << some) - 1) << bit % 8);
    if (value)
      bits[bit / 8] |= mask;
    else
      bits[bit / 8] &= (uint8_t)~mask;
    bit += some;
    bytes -= some;
  }
}

static void set_written(Region *r, uintptr_t address, size_t bytes, int value) {
  set_bits(r->written, address - r->low, bytes, value);
}

/* An asynchronous copy to shared memory began; or has been waited for. */
void simt_inspect_held(void *shared, size_t bytes, int held) {
  Inspector *in = simt_inspector;
  uintptr_t address = (uintptr_t)shared;
  if (!in) return;
  Region *r = address >= in->dynamic.low && address < in->dynamic.high ? &in->dynamic
              : address >= in->fixed.low && address < in->fixed.high   ? &in->fixed
                                                                       : NULL;
  if (!r) return;
  if (!r->held) {
    r->held = calloc((r->high - r->low) / 8 + 2, 1);
    r->awaited = calloc((r->high - r->low) / 8 + 2, 1);
    if (!r->held || !r->awaited) abort();
  }
  set_bits(r->held, address - r->low, bytes, held);
  if (!held) set_bits(r->awaited, address - r->low, bytes, 0);
}

static int in_arena(const void *base) { return (uintptr_t)base >= arena.low && (uintptr_t)base < arena.high; }

/* ---- the heap of kernels ---- */

enum { MAX_HEAP = 65536 };
typedef struct Chunk {
  uintptr_t low;
  size_t size;
} Chunk;
static Chunk *heap; /* no order: kernels allocate little */
static int heap_count;
static Chunk freed[64]; /* the last ones, a ring */
static unsigned freed_count;

void simt_heap_add(uintptr_t address, size_t bytes) {
  if (!heap && !(heap = calloc(MAX_HEAP, sizeof *heap))) abort();
  if (heap_count == MAX_HEAP) return;
  heap[heap_count].low = address;
  heap[heap_count++].size = bytes;
  simt_object_era++;
}

void simt_heap_remove(uintptr_t address) {
  for (int i = heap_count - 1; i >= 0; i--)
    if (heap[i].low == address) {
      freed[freed_count++ % 64] = heap[i];
      heap[i] = heap[--heap_count];
      break;
    }
  simt_object_era++;
}

/* ---- what the host does ---- */

void simt_inspect_allocated(void *base, size_t size, SimtMemoryKind kind) {
  simt_object_era++;
  if (kind == SIMT_DEVICE_MEMORY && in_arena(base) && arena.written) set_written(&arena, (uintptr_t)base, size, 0);
  if (kind != SIMT_DEVICE_MEMORY && lazy) watch(2, (uintptr_t)base, (uintptr_t)base + size);
}

void simt_inspect_freed(void *base, size_t size, SimtMemoryKind kind) {
  (void)size;
  simt_object_era++;
  Region *r = kind == SIMT_DEVICE_MEMORY ? NULL : find_extra((uintptr_t)base);
  if (!r || r->low != (uintptr_t)base) return;
  munmap(r->cells, cell_bytes(r));
  *r = extra[--extra_count];
}

void simt_inspect_host_wrote(void *base, size_t size) {
  if (in_arena(base) && arena.written) set_written(&arena, (uintptr_t)base, size, 1);
}

/* ---- whose memory ---- */

static int of_variable(uintptr_t address, Space space, Region *region, Object *o) {
  const Variable *v = simt_find_variable(address, 0);
  if (!v) return 0;
  *o = (Object){v->low, v->size, space, region, simt_object_era};
  return 1;
}

static int was_on_heap(uintptr_t address) {
  for (int i = 0; i < 64; i++)
    if (address - freed[i].low < freed[i].size) return 1;
  return 0;
}

int simt_find_object(Inspector *in, uintptr_t address, Object *o) {
  SimtMemory memory;
  if (address >= in->dynamic.low && address < in->dynamic.high) {
    *o = (Object){in->dynamic.low, in->dynamic.high - in->dynamic.low, SPACE_SHARED, &in->dynamic, simt_object_era};
    return 1;
  }
  if (address >= in->fixed.low && address < in->fixed.high) {
    const Variable *v = simt_find_shared(address - in->fixed.low, 0);
    if (!v) return 0;
    *o = (Object){in->fixed.low + v->low, v->size, SPACE_SHARED, &in->fixed, simt_object_era};
    if (strncmp(v->name, "_ZGV", 4) == 0) { /* whether an array of a class has been "constructed": C++'s own affair */
      o->space = SPACE_OTHER;
      o->region = NULL;
    }
    return 1;
  }
  if (address < 4096) return 0;
  int live = simt_memory_find((void *)address, &memory);
  Region *region = address >= arena.low && address < arena.high ? &arena : NULL;
  switch (memory.kind) {
    case SIMT_CONSTANT_MEMORY:
      return of_variable(address, SPACE_CONSTANT, NULL, o);
    case SIMT_SYMBOL_MEMORY:
      return of_variable(address, SPACE_GLOBAL, find_extra(address), o);
    case SIMT_UNKNOWN_MEMORY:
      for (int i = 0; i < heap_count; i++)
        if (address - heap[i].low < heap[i].size) {
          *o = (Object){heap[i].low, heap[i].size, SPACE_GLOBAL, NULL, simt_object_era};
          return 1;
        }
      if (!simt_is_read_only(address)) return 0;
      if (of_variable(address, SPACE_CONSTANT, NULL, o)) return 1;
      *o = (Object){address, 16, SPACE_CONSTANT, NULL, simt_object_era}; /* a literal, which has no symbol */
      return 1;
    default:
      break;
  }
  if (!live) return 0;
  if (!region && !(region = find_extra(address)))
    region = add_region((uintptr_t)memory.base, (uintptr_t)memory.base + memory.size);
  *o = (Object){(uintptr_t)memory.base, memory.size, SPACE_GLOBAL, region, simt_object_era};
  return 1;
}

static char *words(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *words(const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  if (vasprintf(&text, format, arguments) < 0) abort();
  va_end(arguments);
  return text;
}

/* "byte 12", "4 bytes past its end", "4 bytes before it" */
static const char *position(uintptr_t address, uintptr_t low, size_t size, char text[64]) {
  if (address < low)
    snprintf(text, 64, "%zu bytes before it", (size_t)(low - address));
  else if (address - low < size)
    snprintf(text, 64, "byte %zu", (size_t)(address - low));
  else
    snprintf(text, 64, "%zu bytes past its end", (size_t)(address - low - size));
  return text;
}

/* The allocation behind, when it is nearer than the one before. */
static void nearer_behind(uintptr_t address, SimtMemory *memory) {
  for (size_t step = 16; step <= 4096; step *= 4) {
    SimtMemory behind;
    if (!simt_memory_find((void *)(address + step), &behind)) continue;
    if (behind.base == memory->base || (uintptr_t)behind.base <= address) return;
    size_t past = address - (uintptr_t)memory->base - memory->size;
    if (!memory->size || (uintptr_t)behind.base - address < past) *memory = behind;
    return;
  }
}

/* Past the last variable of a section lies something of the host's; what was meant is the variable. */
static int behind_device_variable(uintptr_t address) {
  const Variable *v = simt_find_variable(address, 1);
  SimtMemory memory;
  if (!v || address - v->low < v->size || address - v->low - v->size >= 4096) return 0;
  return simt_memory_find((void *)v->low, &memory) && !in_arena((void *)v->low);
}

char *simt_memory_words(Inspector *in, uintptr_t address) {
  char name[256], place[64];
  SimtMemory memory;
  if (in) {
    uintptr_t low = in->dynamic.low, end = low + in->worker->dynamic_shared_size;
    if (address >= low && address < end)
      return words("dynamic shared memory (%zu bytes by the launch), %s", (size_t)(in->dynamic.high - low),
                   position(address, low, in->dynamic.high - low, place));
    const Variable *v;
    if (address >= in->fixed.low && address < in->fixed.high && (v = simt_find_shared(address - in->fixed.low, 1)))
      return words("%s (static shared, %zu bytes), %s", simt_variable_text(v, name, sizeof name), v->size,
                   position(address - in->fixed.low, v->low, v->size, place));
  }
  int live = simt_memory_find((void *)address, &memory);
  if (memory.kind == SIMT_SYMBOL_MEMORY || memory.kind == SIMT_CONSTANT_MEMORY || simt_is_image(address) ||
      behind_device_variable(address)) {
    const Variable *v = simt_find_variable(address, 1);
    const char *kind = memory.kind == SIMT_UNKNOWN_MEMORY ? "a variable of the host" : memory.call;
    if (behind_device_variable(address) && simt_memory_find((void *)v->low, &memory)) kind = memory.call;
    if (v && memory.kind == SIMT_UNKNOWN_MEMORY && simt_is_read_only(address)) kind = "a constant";
    if (v)
      return words("%s (%s, %zu bytes), %s", simt_variable_text(v, name, sizeof name), kind, v->size,
                   position(address, v->low, v->size, place));
    return words("a variable of the host");
  }
  if (memory.kind == SIMT_UNKNOWN_MEMORY) return words("address 0x%lx", (unsigned long)address);
  if (!live && !memory.freed) nearer_behind(address, &memory);
  if (!memory.size) return words("address 0x%lx of device memory, before any allocation", (unsigned long)address);
  char made[600], freed[600];
  simt_memory_text(&memory, made, sizeof made);
  position(address, (uintptr_t)memory.base, memory.size, place);
  if (memory.freed)
    return words("%s, %s; freed by %s", made, place,
                 simt_site_text("cudaFree", memory.freed_site, freed, sizeof freed));
  return words("%s, %s", made, place);
}

/* ---- what is wrong with an access ---- */

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
  simt_note("a kernel made 20,000 accesses outside of all that it may touch: its launch was ended there");
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
  } else if (shared) {
    advice = address >= in->dynamic.high && address - in->dynamic.low < in->worker->dynamic_shared_size
                 ? "the third number of <<<grid, block, bytes>>> is the size of extern __shared__ arrays"
                 : "compare the index with the size of the array";
  } else if (behind_device_variable(address)) {
    advice = "compare the index with the size of the array";
  } else if (!live && memory.kind == SIMT_UNKNOWN_MEMORY && on_a_stack(in, address)) {
    advice = "local variables belong to their thread alone: exchange values through shared memory";
  } else if (!live && memory.kind == SIMT_UNKNOWN_MEMORY && was_on_heap(address)) {
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
          "a GPU stops here: an access of 2, 4, 8 or 16 bytes needs an address that is a multiple of as many");
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
          region->shared ? "no thread of this block has written it: shared memory starts with arbitrary contents"
                         : "nobody has written it since it was allocated: cudaMemset() it, or copy or compute it "
                           "first; a copy or a grid that is too small leaves such a rest");
  }
}

static int any_bit(const uint8_t *bits, size_t bit, size_t bytes) {
  for (; bytes--; bit++)
    if (bits[bit / 8] >> bit % 8 & 1) return 1;
  return 0;
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
          "an asynchronous copy to it is under way: __pipeline_commit() it and wait for it (__pipeline_wait_prior()) "
          "before, "
          "before, and for other threads' copies at a barrier after that");
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

static void count_global(uint64_t *count, const SimtRequest *r, int lanes, int side_by_side) {
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
    return;
  }
  int first = r->access & SIMT_ACCESS_WRITE ? SIMT_GLOBAL_STORE_REQUESTS : SIMT_GLOBAL_LOAD_REQUESTS;
  count[first]++;
  count[first + 1] += (unsigned)sectors;
  count[first + 2] += (unsigned)ideal;
  count[first + 3] += (unsigned)(lanes * r->bytes);
}

static void count_shared(uint64_t *count, const SimtRequest *r, int lanes, int side_by_side) {
  if (r->access & SIMT_ACCESS_ATOMIC) {
    count[SIMT_SHARED_ATOMIC_REQUESTS]++;
    count[SIMT_SHARED_ATOMIC_LANES] += (unsigned)lanes;
    count[SIMT_SHARED_ATOMIC_TURNS] += (unsigned)simt_count_turns(r);
    return;
  }
  int ideal = 1, wavefronts = 1;
  if (!side_by_side || r->bytes > 4) wavefronts = simt_count_wavefronts(r, &ideal);
  int first = r->access & SIMT_ACCESS_WRITE ? SIMT_SHARED_STORE_REQUESTS : SIMT_SHARED_LOAD_REQUESTS;
  count[first]++;
  count[first + 1] += (unsigned)wavefronts;
  count[first + 2] += (unsigned)(wavefronts - ideal);
}

static void count_lanes(const Row *row, Space space, uint32_t lanes, int side_by_side) {
  SimtRequest part;
  const SimtRequest *r = &row->request;
  uint64_t *count = simt_counts(row->site);
  if (lanes != r->mask) { /* few requests are in two spaces at once, or partly out of bounds */
    part = *r;
    part.mask = lanes;
    r = &part;
  }
  if (space == SPACE_GLOBAL) count_global(count, r, __builtin_popcount(lanes), side_by_side);
  if (space == SPACE_SHARED) count_shared(count, r, __builtin_popcount(lanes), side_by_side);
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
    count_lanes(row, row->object.space, lanes, adjacent);
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
    if (of_space[space]) count_lanes(row, space, of_space[space], 0);
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
    Region *r = find_extra(address);
    if (!r) r = add_region((uintptr_t)memory->base, (uintptr_t)memory->base + memory->size);
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
