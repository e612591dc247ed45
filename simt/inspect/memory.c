/* memory.c - whose memory an address is, and where its shadow lies.
 *
 * A thread's own stack is dealt with in the hooks. The rest, in the order in which it is asked:
 *   dynamic shared memory   the worker's buffer, as long as the launch asked for
 *   static shared memory    thread-local variables of the program; names and sizes are in its symbol table
 *   device memory           the arena that cudaMalloc() cuts up, pinned and managed memory
 *   __device__, __constant__ variables: sections of the program
 *   constants               the program's read-only data
 * Anything else is a finding (judge.c).
 */
#include "bits.h"

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
static int lazy; /* streams */

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

Region *simt_region_of(uintptr_t address, const SimtMemory *memory) {
  Region *r = find_extra(address);
  return r ? r : add_region((uintptr_t)memory->base, (uintptr_t)memory->base + memory->size);
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

/* ---- names ---- */

/* "kernel,x,,out" of each kernel, by the rewriter; zeros may lie between them. */
extern const char __start_simt_parameters[] __attribute__((weak)), __stop_simt_parameters[] __attribute__((weak));

typedef struct Named {
  uintptr_t pointer;
  const char *name;
  int length, member; /* member: of the structure with that name */
} Named;
enum { MAX_NAMED = 64 };
static Named parameters[MAX_NAMED], arrays[MAX_NAMED]; /* of the running launch; by simt_inspect_name() */
static int parameter_count, array_count;

/* The kernel's name without its scope and its template's arguments. */
static const char *plain_name(const char *launch, size_t *length) {
  const char *name = launch;
  size_t end = strcspn(launch, "<");
  for (const char *c = launch; c < launch + end; c++)
    if (c[0] == ':' && c[1] == ':') name = c + 2;
  *length = (size_t)(launch + end - name);
  return name;
}

static void find_parameters(const SimtKernel *kernel) {
  size_t length;
  const char *name = plain_name(kernel->name, &length), *known = NULL;
  parameter_count = 0;
  for (const char *at = __start_simt_parameters; at < __stop_simt_parameters; at += strlen(at) + 1) {
    if (strncmp(at, name, length) != 0 || at[length] != ',') continue;
    if (known && strcmp(known, at) != 0) return; /* kernels of one name: which one runs is not known */
    known = at;
  }
  if (!known) return;
  const char *word = known + length;
  for (int i = 0; i < kernel->argument_count && *word && kernel->places; i++) {
    word++;
    int letters = (int)strcspn(word, ",");
    /* A pointer, or the pointers in a structure. */
    size_t at = (kernel->places[i] + sizeof(uintptr_t) - 1) / sizeof(uintptr_t) * sizeof(uintptr_t);
    size_t end = kernel->places[i + 1];
    int member = end - at >= 2 * sizeof(uintptr_t);
    for (; at + sizeof(uintptr_t) <= end && letters && parameter_count < MAX_NAMED; at += sizeof(uintptr_t)) {
      uintptr_t pointer;
      memcpy(&pointer, (const char *)kernel->arguments + at, sizeof pointer);
      if (pointer) parameters[parameter_count++] = (Named){pointer, word, letters, member};
    }
    word += letters;
  }
}

void simt_inspect_name(const void *allocation, const char *name) {
  int i = 0;
  while (i < array_count && arrays[i].pointer != (uintptr_t)allocation) i++;
  if (i == MAX_NAMED) return;
  arrays[i] = (Named){(uintptr_t)allocation, name, (int)strlen(name), 0};
  array_count += i == array_count;
}

/* The parameter that points to the allocation, the last one before the address if there are several; else its own name;
 * else the structure that points to it; NULL. */
static const Named *name_of(const SimtMemory *memory, uintptr_t address, const Named **array) {
  const Named *best = NULL;
  uintptr_t low = (uintptr_t)memory->base;
  *array = NULL;
  for (int i = 0; i < array_count; i++)
    if (arrays[i].pointer == low) *array = &arrays[i];
  for (int i = 0; i < parameter_count; i++) {
    const Named *p = &parameters[i];
    if (p->pointer - low >= memory->size || (p->member && *array)) continue;
    int nearer = p->pointer <= address && (best == NULL || best->pointer > address || p->pointer > best->pointer);
    if (!best || p->member < best->member || (p->member == best->member && nearer)) best = p;
  }
  return best ? best : *array;
}

/* ---- launches ---- */

/* No access of an earlier launch can race with one of this: their memory is given back when it has become much. */
void simt_memory_launch(const SimtKernel *kernel) {
  simt_object_era++;
  find_parameters(kernel);
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
  for (int i = 0; i < array_count; i++)
    if (arrays[i].pointer == (uintptr_t)base) arrays[i--] = arrays[--array_count];
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

int simt_was_on_heap(uintptr_t address) {
  for (int i = 0; i < 64; i++)
    if (address - freed[i].low < freed[i].size) return 1;
  return 0;
}

int simt_is_reachable(const SimtMemory *memory) {
  return memory->kind != SIMT_DEVICE_MEMORY || simt_device_may_access(simt_running_device(), memory->device);
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
  if (in->worker->cluster && simt_find_remote(in, address, o)) return 1;
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
  if (!live || !simt_is_reachable(&memory)) return 0;
  if (!region) region = simt_region_of(address, &memory);
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
int simt_behind_device_variable(uintptr_t address) {
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
      simt_behind_device_variable(address)) {
    const Variable *v = simt_find_variable(address, 1);
    const char *kind = memory.kind == SIMT_UNKNOWN_MEMORY ? "a variable of the host" : memory.call;
    if (simt_behind_device_variable(address) && simt_memory_find((void *)v->low, &memory)) kind = memory.call;
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
  const Named *array, *n = name_of(&memory, address, &array);
  if (!in) n = array; /* the host's doing */
  if (!n) return words("%s, %s", made, place);
  if (array) snprintf(made, sizeof made, "%zu bytes", memory.size); /* where it was allocated is nothing new */
  return words("%.*s (%s), %s", n->length, n->name, made, place);
}
