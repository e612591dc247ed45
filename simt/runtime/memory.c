/* memory.c - the imaginary GPU's memory, and the host's pinned and managed memory.
 *
 * Two ranges of addresses are reserved at the first call: 16 GiB that are "the device", and as many for pinned and
 * managed memory; pages cost nothing until they are touched. Each range is cut into segments. A free segment waits in
 * the bin of its size class and joins a free neighbour; all others are in one tree, ordered by address, that answers
 * whose an address is. Host memory that was registered is in the tree, too.
 *
 * Behind each allocation lie at least GUARD bytes of a pattern: a kernel that wrote past the end is found out by
 * cudaFree(). In the inspector's build the gap is a page, and freed memory is not handed out again, so that every use
 * of it can be named. Under AddressSanitizer each allocation is a malloc(), with the sanitizer's own red zones.
 */
#include "host.h"

#include <sys/mman.h>
#include <sys/resource.h>

#define ALIGNMENT 256 /* as cudaMalloc() promises */
#define PITCH 512     /* of rows: cudaMallocPitch() */
#define GUARD (SIMT_INSPECTED ? 4096u : 64u)
#define GUARD_BYTE 0xa5

typedef struct Arena {
  char *base;
  size_t size, used; /* used: with guards */
  struct Segment *bins[64];
} Arena;

typedef struct Segment {
  SimtMemory memory;
  char *start;   /* of the segment; memory.base is there, or further on when it is aligned */
  size_t extent; /* with the guard */
  Arena *arena;  /* NULL: registered host memory, or malloc() */
  int is_free, from_malloc;
  unsigned flags; /* of cudaHostAlloc() */
  cudaMemPool_t pool;
  struct Segment *before, *after;  /* neighbours in the arena */
  struct Segment *next, *previous; /* in the bin */
  struct Segment *left, *right;    /* the tree: a treap by address */
  unsigned weight;
} Segment;

static Arena device, host;
static size_t device_used[SIMT_DEVICES_MOST]; /* of the device arena, which all devices share */
static Segment *tree;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ulong generation;
static int use_malloc; /* AddressSanitizer */

extern void __asan_init(void) __attribute__((weak));
extern int __asan_address_is_poisoned(const volatile void *address) __attribute__((weak));

/* ---- the tree ---- */

static Segment *tree_insert(Segment *root, Segment *s) {
  if (!root) return s;
  Segment **side = s->memory.base < root->memory.base ? &root->left : &root->right;
  Segment *child = *side = tree_insert(*side, s);
  if (child->weight <= root->weight) return root;
  if (side == &root->left) { /* heavier ones go up: that keeps the tree flat */
    root->left = child->right;
    child->right = root;
  } else {
    root->right = child->left;
    child->left = root;
  }
  return child;
}

static Segment *tree_join(Segment *left, Segment *right) {
  if (!left) return right;
  if (!right) return left;
  if (left->weight > right->weight) {
    left->right = tree_join(left->right, right);
    return left;
  }
  right->left = tree_join(left, right->left);
  return right;
}

static void tree_remove(Segment *s) {
  Segment **link = &tree;
  while (*link != s) link = s->memory.base < (*link)->memory.base ? &(*link)->left : &(*link)->right;
  *link = tree_join(s->left, s->right);
  s->left = s->right = NULL;
}

/* The segment that begins last, at or before `address`. */
static Segment *tree_floor(const void *address) {
  Segment *best = NULL;
  for (Segment *s = tree; s;) {
    if ((char *)address < (char *)s->memory.base) {
      s = s->left;
    } else {
      best = s;
      s = s->right;
    }
  }
  return best;
}

static void tree_add(Segment *s) {
  static uint64_t count;
  s->weight = (unsigned)simt_mix(count++);
  s->left = s->right = NULL;
  tree = tree_insert(tree, s);
}

/* Every segment of the tree, in order of address. */
static void tree_walk(Segment *root, void (*visit)(Segment *, void *), void *context) {
  if (!root) return;
  tree_walk(root->left, visit, context);
  visit(root, context);
  tree_walk(root->right, visit, context);
}

/* ---- arenas ---- */

static int bin_of(size_t extent) { return 63 - __builtin_clzl(extent); }

static void bin_add(Segment *s) {
  Segment **bin = &s->arena->bins[bin_of(s->extent)];
  s->is_free = 1;
  s->previous = NULL;
  s->next = *bin;
  if (*bin) (*bin)->previous = s;
  *bin = s;
}

static void bin_remove(Segment *s) {
  s->is_free = 0;
  if (s->next) s->next->previous = s->previous;
  if (s->previous)
    s->previous->next = s->next;
  else
    s->arena->bins[bin_of(s->extent)] = s->next;
}

static void *need(void *memory) {
  if (memory) return memory;
  fputs("=== simt: out of memory for the tables of allocations\n", stderr);
  abort();
}

static void arena_open(Arena *arena, size_t size) {
  for (; size >= (size_t)64 << 20; size /= 2) { /* a limit on address space (ulimit -v) may leave less */
    char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) continue;
#ifdef MADV_HUGEPAGE
    madvise(base, size, MADV_HUGEPAGE); /* one page fault for 2 MiB instead of 512 */
#endif
    Segment *all = need(calloc(1, sizeof *all));
    arena->base = all->start = base;
    arena->size = all->extent = size;
    all->arena = arena;
    bin_add(all);
    return;
  }
}

/* The inspector remembers accesses in six times as many addresses as the device has; a limit on address space must
 * leave room for them, and for the stacks. */
static size_t arena_bytes(void) {
  size_t bytes = SIMT_DEVICE_BYTES;
  struct rlimit limit;
  if (SIMT_INSPECTED && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    while (bytes > limit.rlim_cur / 16) bytes /= 2;
  return bytes;
}

static void open_memory(void) {
  use_malloc = &__asan_init != NULL;
  device.size = SIMT_DEVICE_BYTES * (size_t)simt_device_count();
  host.size = SIMT_DEVICE_BYTES;
  if (use_malloc) return;
  arena_open(&device, arena_bytes() * (size_t)simt_device_count());
  arena_open(&host, arena_bytes());
}

static void memory_begin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_memory);
  pthread_mutex_lock(&lock);
}

static void memory_end(void) { pthread_mutex_unlock(&lock); }

/* The smallest fitting segment of the first bin that surely or possibly fits. */
static Segment *arena_take(Arena *arena, size_t extent) {
  Segment *best = NULL;
  for (int bin = bin_of(extent); bin < 64 && !best; bin++)
    for (Segment *s = arena->bins[bin]; s; s = s->next)
      if (s->extent >= extent && (!best || s->extent < best->extent)) best = s;
  if (!best) return NULL;
  bin_remove(best);
  if (best->extent - extent >= ALIGNMENT) { /* the rest is free again */
    Segment *rest = need(calloc(1, sizeof *rest));
    rest->arena = arena;
    rest->start = best->start + extent;
    rest->extent = best->extent - extent;
    rest->before = best;
    rest->after = best->after;
    if (rest->after) rest->after->before = rest;
    best->after = rest;
    best->extent = extent;
    bin_add(rest);
  }
  arena->used += best->extent;
  return best;
}

/* A segment and the one behind it become one. */
static Segment *join(Segment *s, Segment *behind) {
  s->extent += behind->extent;
  s->after = behind->after;
  if (s->after) s->after->before = s;
  free(behind);
  return s;
}

static void arena_give_back(Segment *s) {
  Segment *before = s->before, *after = s->after;
  s->arena->used -= s->extent;
  if (after && after->is_free) {
    bin_remove(after);
    join(s, after);
  }
  if (before && before->is_free) {
    bin_remove(before);
    s = join(before, s);
  }
  bin_add(s);
}

/* ---- what was freed ---- */

/* The last ones, for reports: whose memory it was, who freed it. */
enum { REMEMBERED = 256 };
static SimtMemory freed[REMEMBERED];
static unsigned freed_count;

static const SimtMemory *freed_find(const void *address) {
  for (unsigned i = 1; i <= REMEMBERED && i <= freed_count; i++) {
    const SimtMemory *m = &freed[(freed_count - i) % REMEMBERED];
    if ((char *)address >= (char *)m->base && (char *)address < (char *)m->base + m->size) return m;
  }
  return NULL;
}

/* With an inspector, freed segments stay in the tree until they take up half of their arena. */
static Segment *quarantine_first, **quarantine_last = &quarantine_first;
static size_t quarantined;

static void quarantine_release(size_t most) {
  while (quarantine_first && quarantined > most) {
    Segment *s = quarantine_first;
    quarantine_first = s->next;
    if (!quarantine_first) quarantine_last = &quarantine_first;
    quarantined -= s->extent;
    tree_remove(s);
    arena_give_back(s);
  }
}

static void quarantine_add(Segment *s) {
  char *from = (char *)(((uintptr_t)s->start + 4095) / 4096 * 4096);
  char *to = (char *)((uintptr_t)(s->start + s->extent) / 4096 * 4096);
  if (to > from) madvise(from, (size_t)(to - from), MADV_DONTNEED);
  s->next = NULL;
  *quarantine_last = s;
  quarantine_last = &s->next;
  quarantined += s->extent;
  quarantine_release(s->arena->size / 2);
}

/* ---- allocations ---- */

static size_t total_of_device(void) { return device.size / (size_t)simt_device_count(); }

static Segment *segment_new(size_t bytes, SimtMemoryKind kind, int owner) {
  Arena *arena = kind == SIMT_DEVICE_MEMORY ? &device : &host;
  size_t extent = (bytes + GUARD + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (bytes > arena->size) return NULL;
  if (kind == SIMT_DEVICE_MEMORY && device_used[owner] + bytes > total_of_device()) return NULL;
  if (use_malloc) {
    void *base;
    if (arena->used + extent > arena->size || posix_memalign(&base, ALIGNMENT, bytes) != 0) return NULL;
    Segment *s = need(calloc(1, sizeof *s));
    s->start = base;
    s->extent = extent;
    s->from_malloc = 1;
    arena->used += extent;
    return s;
  }
  Segment *s = arena_take(arena, extent);
  if (SIMT_INSPECTED && !s && quarantine_first) {
    quarantine_release(0);
    s = arena_take(arena, extent);
  }
  if (s) memset(s->start + bytes, GUARD_BYTE, extent - bytes < GUARD ? extent - bytes : GUARD);
  return s;
}

cudaError_t simt_allocate(void **pointer, size_t bytes, SimtMemoryKind kind, int device, const char *call,
                          SimtSite site) {
  memory_begin();
  Segment *s = segment_new(bytes, kind, device);
  if (!s) {
    memory_end();
    return cudaErrorMemoryAllocation;
  }
  s->memory = (SimtMemory){.kind = kind, .call = call, .base = s->start, .size = bytes, .site = site};
  if (kind == SIMT_DEVICE_MEMORY) {
    s->memory.device = device;
    device_used[s->memory.device] += s->extent;
  }
  s->flags = 0;
  s->pool = NULL;
  tree_add(s);
  atomic_fetch_add(&generation, 1);
  memory_end();
  if (kind == SIMT_DEVICE_MEMORY) memset(s->start, SIMT_FILL, bytes < SIMT_FILL_LIMIT ? bytes : SIMT_FILL_LIMIT);
  TELL_INSPECTOR(allocated(s->start, bytes, kind));
  *pointer = s->start;
  return cudaSuccess;
}

static void check_guard(const Segment *s, const char *call, SimtSite site) {
  char made[512];
  const unsigned char *end = (unsigned char *)s->memory.base + s->memory.size;
  size_t guard = (size_t)((unsigned char *)s->start + s->extent - end), broken = 0;
  if (s->from_malloc || !s->arena) return;
  if (guard > GUARD) guard = GUARD;
  for (size_t i = 0; i < guard; i++)
    if (end[i] != GUARD_BYTE) broken = i + 1;
  if (!broken || (SIMT_INSPECTED && simt_hooks.saw_outside())) return;
  simt_report_call("out of bounds", call, site,
                   "something wrote past the end, up to %zu bytes behind the %s\n"
                   "    try: look for an index that is not compared with the number of elements; "
                   "simtcc --inspect names the line",
                   broken, simt_memory_text(&s->memory, made, sizeof made));
}

/* Takes `s` out of use; with the lock held. */
static void segment_free(Segment *s, SimtSite site) {
  s->memory.freed = 1;
  s->memory.freed_site = site;
  freed[freed_count++ % REMEMBERED] = s->memory;
  atomic_fetch_add(&generation, 1);
  if (s->memory.kind == SIMT_DEVICE_MEMORY) device_used[s->memory.device] -= s->extent;
  if (s->from_malloc) {
    (s->memory.kind == SIMT_DEVICE_MEMORY ? &device : &host)->used -= s->extent;
    tree_remove(s);
    free(s->start);
    free(s);
    return;
  }
  if (SIMT_INSPECTED) {
    quarantine_add(s);
    return;
  }
  tree_remove(s);
  arena_give_back(s);
}

/* A pointer that is not the beginning of a live allocation of the wanted kind. */
static cudaError_t refuse_free(const void *pointer, const char *call, SimtSite site) {
  char what[512], before[512];
  SimtMemory m;
  int live = simt_memory_find(pointer, &m);
  if (m.call) simt_memory_text(&m, what, sizeof what);
  if (!m.call)
    simt_report_call("invalid free", call, site,
                     "%p was not allocated by CUDA\n    try: free() for what malloc() returned", pointer);
  else if (m.freed && pointer == m.base)
    simt_report_call("double free", call, site, "the %s\n    it was freed first by %s", what,
                     simt_site_text(call, m.freed_site, before, sizeof before));
  else if (live && pointer == m.base)
    simt_report_call("invalid free", call, site,
                     "not for the %s\n"
                     "    try: cudaFree() is for cudaMalloc() and cudaMallocManaged(), cudaFreeHost() for "
                     "cudaMallocHost() and cudaHostAlloc(), cudaHostUnregister() for cudaHostRegister()",
                     what);
  else
    simt_report_call("invalid free", call, site,
                     "%p is not the beginning of an allocation; nearest: the %s\n"
                     "    try: keep the pointer that the allocation gave, and free that one",
                     pointer, what);
  return cudaErrorInvalidValue;
}

/* Frees what begins at `pointer`, if its kind is one of the two. */
static cudaError_t deallocate(void *pointer, SimtMemoryKind kind, SimtMemoryKind other, const char *call,
                              SimtSite site) {
  memory_begin();
  Segment *s = tree_floor(pointer);
  int ours = s && s->memory.base == pointer && !s->memory.freed && (s->arena || s->from_malloc) &&
             (s->memory.kind == kind || s->memory.kind == other);
  if (!ours) {
    memory_end();
    return refuse_free(pointer, call, site);
  }
  check_guard(s, call, site);
  TELL_INSPECTOR(freed(s->memory.base, s->memory.size, s->memory.kind));
  segment_free(s, site);
  memory_end();
  return cudaSuccess;
}

/* ---- whose an address is ---- */

/* Variables of the program: the rewriter puts them into these sections, whose ends the linker knows. */
#define SECTION(name) extern char __start_##name[] __attribute__((weak)), __stop_##name[] __attribute__((weak))
SECTION(simt_device);
SECTION(simt_bss);
SECTION(simt_constant);
SECTION(simt_cbss);
SECTION(simt_managed);
SECTION(simt_mbss);

typedef struct Section {
  char *start, *stop;
  SimtMemoryKind kind;
  const char *name;
} Section;

static const Section sections[] = {
    {__start_simt_device, __stop_simt_device, SIMT_SYMBOL_MEMORY, "__device__"},
    {__start_simt_bss, __stop_simt_bss, SIMT_SYMBOL_MEMORY, "__device__"},
    {__start_simt_constant, __stop_simt_constant, SIMT_CONSTANT_MEMORY, "__constant__"},
    {__start_simt_cbss, __stop_simt_cbss, SIMT_CONSTANT_MEMORY, "__constant__"},
    {__start_simt_managed, __stop_simt_managed, SIMT_MANAGED_MEMORY, "__managed__"},
    {__start_simt_mbss, __stop_simt_mbss, SIMT_MANAGED_MEMORY, "__managed__"},
};

/* Variables that are templates: g++ puts them where it likes, and each registers itself before main(). */
static Section *registered;
static int registered_count;

void simt_register_symbol(const void *address, size_t bytes, const char *keyword) {
  Section *more = realloc(registered, (size_t)(registered_count + 1) * sizeof *registered);
  if (!more) return;
  registered = more;
  registered[registered_count++] = (Section){(char *)address, (char *)address + bytes,
                                             strcmp(keyword, "__managed__") == 0    ? SIMT_MANAGED_MEMORY
                                             : strcmp(keyword, "__constant__") == 0 ? SIMT_CONSTANT_MEMORY
                                                                                    : SIMT_SYMBOL_MEMORY,
                                             keyword};
}

int simt_symbol_section(int i, char **start, size_t *size) {
  const int fixed = (int)(sizeof sections / sizeof sections[0]);
  if (i >= fixed + registered_count) return -1;
  const Section *section = i < fixed ? &sections[i] : &registered[i - fixed];
  *start = section->start;
  *size = (size_t)(section->stop - section->start);
  return section->kind != SIMT_MANAGED_MEMORY && *size > 0;
}

static const Section *section_of(const void *address) {
  for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
    if ((char *)address >= sections[i].start && (char *)address < sections[i].stop) return &sections[i];
  for (int i = 0; i < registered_count; i++)
    if ((char *)address >= registered[i].start && (char *)address < registered[i].stop) return &registered[i];
  return NULL;
}

SimtMemoryKind simt_symbol_kind(const void *address) {
  const Section *section = section_of(address);
  return section ? section->kind : SIMT_UNKNOWN_MEMORY;
}

int simt_is_symbol(const void *address) { return section_of(address) != NULL; }

static int in_arena(const Arena *arena, const void *address) {
  return (char *)address >= arena->base && (char *)address < arena->base + arena->size && arena->base;
}

int simt_memory_find(const void *address, SimtMemory *found) {
  const Section *section = section_of(address);
  const SimtMemory *old = NULL;
  int live = 0;
  *found = (SimtMemory){.kind = SIMT_UNKNOWN_MEMORY};
  if (section) {
    *found = (SimtMemory){.kind = section->kind,
                          .call = section->name,
                          .base = section->start,
                          .size = (size_t)(section->stop - section->start)};
    return 1;
  }
  memory_begin();
  const Segment *s = tree_floor(address);
  const Arena *arena = in_arena(&device, address) ? &device : in_arena(&host, address) ? &host : NULL;
  int inside = s && (char *)address < (char *)s->memory.base + s->memory.size;
  int was_ours = arena || (use_malloc && __asan_address_is_poisoned(address));
  int behind = s && arena && (char *)address < s->start + s->extent; /* in the gap behind it */
  if (was_ours && !inside && !behind) old = freed_find(address);
  if (inside) {
    live = !s->memory.freed;
    *found = s->memory;
  } else if (old) {
    *found = *old;
  } else if (arena && s && s->arena == arena) {
    *found = s->memory;
  } else if (arena) { /* before the first allocation */
    *found = (SimtMemory){.kind = arena == &device ? SIMT_DEVICE_MEMORY : SIMT_PINNED_MEMORY, .base = arena->base};
  }
  memory_end();
  return live;
}

unsigned long simt_memory_generation(void) { return atomic_load_explicit(&generation, memory_order_acquire); }

void simt_memory_arena(char **base, size_t *size) {
  memory_begin();
  *base = device.base;
  *size = device.base ? device.size : 0;
  memory_end();
}

void simt_memory_host_arena(char **base, size_t *size) {
  memory_begin();
  *base = host.base;
  *size = host.base ? host.size : 0;
  memory_end();
}

int simt_device_may_use(SimtMemoryKind kind) { return kind != SIMT_UNKNOWN_MEMORY; }

int simt_host_may_use(SimtMemoryKind kind) {
  return kind == SIMT_UNKNOWN_MEMORY || kind == SIMT_PINNED_MEMORY || kind == SIMT_MANAGED_MEMORY;
}

int simt_memory_host_may_use(const void *address) {
  SimtMemory memory;
  simt_memory_find(address, &memory);
  return simt_host_may_use(memory.kind);
}

/* ---- the API ---- */

static cudaError_t allocate(void **pointer, size_t bytes, SimtMemoryKind kind, const char *call, SimtSite site) {
  RETURN_IF_STICKY;
  if (!pointer) return simt_error(cudaErrorInvalidValue);
  cudaError_t error = simt_forbidden_in_capture();
  if (error != cudaSuccess) return simt_error(error);
  if (bytes == 0) {
    *pointer = NULL;
    return cudaSuccess;
  }
  return simt_error(simt_allocate(pointer, bytes, kind, simt_current_device(), call, site));
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  SimtSite site = SIMT_CALLER;
  return allocate(pointer, bytes, SIMT_DEVICE_MEMORY, "cudaMalloc", site);
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
  SimtSite site = SIMT_CALLER;
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) return simt_error(cudaErrorInvalidValue);
  return allocate(pointer, bytes, SIMT_MANAGED_MEMORY, "cudaMallocManaged", site);
}

static cudaError_t allocate_host(void **pointer, size_t bytes, unsigned int flags, const char *call, SimtSite site) {
  if (flags > 7) return simt_error(cudaErrorInvalidValue);
  cudaError_t error = allocate(pointer, bytes, SIMT_PINNED_MEMORY, call, site);
  if (error == cudaSuccess && *pointer) {
    memory_begin();
    tree_floor(*pointer)->flags = flags | cudaHostAllocMapped; /* every pinned byte is, with unified addressing */
    memory_end();
  }
  return error;
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
  SimtSite site = SIMT_CALLER;
  return allocate_host(pointer, bytes, 0, "cudaMallocHost", site);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  SimtSite site = SIMT_CALLER;
  return allocate_host(pointer, bytes, flags, "cudaHostAlloc", site);
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  SimtSite site = SIMT_CALLER;
  if (!pitch || (height && width > ((size_t)1 << 62) / height)) return simt_error(cudaErrorInvalidValue);
  *pitch = (width + PITCH - 1) / PITCH * PITCH;
  return allocate(pointer, *pitch * height, SIMT_DEVICE_MEMORY, "cudaMallocPitch", site);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pointer, struct cudaExtent extent) {
  SimtSite site = SIMT_CALLER;
  if (!pointer) return simt_error(cudaErrorInvalidValue);
  size_t pitch = (extent.width + PITCH - 1) / PITCH * PITCH;
  pointer->pitch = pitch;
  pointer->xsize = extent.width;
  pointer->ysize = extent.height;
  return allocate(&pointer->ptr, pitch * extent.height * extent.depth, SIMT_DEVICE_MEMORY, "cudaMalloc3D", site);
}

cudaError_t cudaFree(void *pointer) {
  SimtSite site = SIMT_CALLER;
  RETURN_IF_STICKY;
  if (!pointer) return cudaSuccess;
  cudaError_t error = simt_forbidden_in_capture();
  if (error != cudaSuccess) return simt_error(error);
  simt_stream_drain(); /* a GPU, too, lets all work end before it takes memory away */
  return simt_error(simt_deallocate(pointer, "cudaFree", site));
}

cudaError_t cudaFreeHost(void *pointer) {
  SimtSite site = SIMT_CALLER;
  RETURN_IF_STICKY;
  if (!pointer) return cudaSuccess;
  simt_stream_drain();
  return simt_error(deallocate(pointer, SIMT_PINNED_MEMORY, SIMT_PINNED_MEMORY, "cudaFreeHost", site));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
  RETURN_IF_STICKY;
  if (!free_bytes || !total) return simt_error(cudaErrorInvalidValue);
  memory_begin();
  *total = total_of_device();
  size_t used = device_used[simt_current_device()];
  *free_bytes = used < *total ? *total - used : 0;
  memory_end();
  return cudaSuccess;
}

size_t simt_memory_total(void) {
  memory_begin();
  size_t total = total_of_device();
  memory_end();
  return total;
}

cudaError_t simt_deallocate(void *pointer, const char *call, SimtSite site) {
  return deallocate(pointer, SIMT_DEVICE_MEMORY, SIMT_MANAGED_MEMORY, call, site);
}

int simt_memory_pool(void *pointer, cudaMemPool_t *pool, size_t *bytes) {
  memory_begin();
  const Segment *s = tree_floor(pointer);
  int found = s && s->memory.base == pointer && !s->memory.freed ? 0 : -1;
  *pool = found == 0 ? s->pool : NULL;
  *bytes = found == 0 ? s->memory.size : 0;
  memory_end();
  return found;
}

void simt_memory_set_pool(void *pointer, cudaMemPool_t pool) {
  memory_begin();
  tree_floor(pointer)->pool = pool;
  memory_end();
}

/* ---- registered host memory ---- */

typedef struct Range {
  char *from, *to;
  int overlaps;
} Range;

static void find_overlap(Segment *s, void *context) {
  Range *range = context;
  if ((char *)s->memory.base < range->to && (char *)s->memory.base + s->memory.size > range->from) range->overlaps = 1;
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags) {
  SimtSite site = SIMT_CALLER;
  RETURN_IF_STICKY;
  if (!pointer || !bytes || flags > 15) return simt_error(cudaErrorInvalidValue);
  Range range = {pointer, (char *)pointer + bytes, 0};
  Segment *s = need(calloc(1, sizeof *s));
  memory_begin();
  tree_walk(tree, find_overlap, &range);
  if (!range.overlaps) {
    s->memory = (SimtMemory){
        .kind = SIMT_PINNED_MEMORY, .call = "cudaHostRegister", .base = pointer, .size = bytes, .site = site};
    s->flags = flags | cudaHostRegisterMapped;
    tree_add(s);
    atomic_fetch_add(&generation, 1);
  }
  memory_end();
  if (range.overlaps) free(s);
  return simt_error(range.overlaps ? cudaErrorHostMemoryAlreadyRegistered : cudaSuccess);
}

cudaError_t cudaHostUnregister(void *pointer) {
  RETURN_IF_STICKY;
  simt_stream_drain();
  memory_begin();
  Segment *s = tree_floor(pointer);
  int registered = s && s->memory.base == pointer && !s->arena && !s->from_malloc;
  if (registered) {
    tree_remove(s);
    free(s);
    atomic_fetch_add(&generation, 1);
  }
  memory_end();
  return simt_error(registered ? cudaSuccess : pointer ? cudaErrorHostMemoryNotRegistered : cudaErrorInvalidValue);
}

cudaError_t cudaHostGetDevicePointer(void **pointer, void *host_pointer, unsigned int flags) {
  SimtMemory memory;
  RETURN_IF_STICKY;
  if (!pointer || !host_pointer || flags) return simt_error(cudaErrorInvalidValue);
  if (!simt_memory_find(host_pointer, &memory) || memory.kind != SIMT_PINNED_MEMORY)
    return simt_error(cudaErrorInvalidValue);
  *pointer = host_pointer; /* unified addressing: one address for both */
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *pointer) {
  RETURN_IF_STICKY;
  memory_begin();
  const Segment *s = tree_floor(pointer);
  int pinned = s && s->memory.kind == SIMT_PINNED_MEMORY && !s->memory.freed &&
               (char *)pointer < (char *)s->memory.base + s->memory.size;
  if (pinned && flags) *flags = s->flags;
  memory_end();
  return simt_error(pinned && flags ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- what a pointer is; advice about managed memory ---- */

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer) {
  SimtMemory memory;
  RETURN_IF_STICKY;
  if (!attributes) return simt_error(cudaErrorInvalidValue);
  int live = simt_memory_find(pointer, &memory);
  memset(attributes, 0, sizeof *attributes);
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = cudaInvalidDeviceId;
  attributes->hostPointer = (void *)pointer;
  if (!live) return cudaSuccess;
  attributes->device = memory.kind == SIMT_DEVICE_MEMORY ? memory.device : simt_current_device();
  attributes->devicePointer = (void *)pointer;
  attributes->type = memory.kind == SIMT_PINNED_MEMORY    ? cudaMemoryTypeHost
                     : memory.kind == SIMT_MANAGED_MEMORY ? cudaMemoryTypeManaged
                                                          : cudaMemoryTypeDevice;
  if (!simt_host_may_use(memory.kind)) attributes->hostPointer = NULL;
  return cudaSuccess;
}

/* The location of a device, or the host, that exists. */
static int known_location(struct cudaMemLocation location) {
  if (location.type == cudaMemLocationTypeDevice) return location.id >= 0 && location.id < simt_device_count();
  return location.type == cudaMemLocationTypeHost || location.type == cudaMemLocationTypeHostNuma ||
         location.type == cudaMemLocationTypeHostNumaCurrent;
}

static int is_managed(const void *pointer, size_t bytes) {
  SimtMemory memory;
  return bytes && simt_memory_find(pointer, &memory) && memory.kind == SIMT_MANAGED_MEMORY &&
         bytes <= memory.size - (size_t)((char *)pointer - (char *)memory.base);
}

/* Emulated device and host share their memory: nothing needs to move. */
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
  (void)stream;
  RETURN_IF_STICKY;
  if (!known_location(location)) return simt_error(cudaErrorInvalidDevice);
  return simt_error(is_managed(pointer, bytes) && flags == 0 ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  RETURN_IF_STICKY;
  int uses_location = advice != cudaMemAdviseSetReadMostly && advice != cudaMemAdviseUnsetReadMostly &&
                      advice != cudaMemAdviseUnsetPreferredLocation;
  if (uses_location && !known_location(location)) return simt_error(cudaErrorInvalidDevice);
  return simt_error(is_managed(pointer, bytes) && advice >= 1 && advice <= 6 ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, enum cudaMemRangeAttribute attribute, const void *pointer,
                                     size_t bytes) {
  RETURN_IF_STICKY;
  if (!data || size < sizeof(int) || !is_managed(pointer, bytes)) return simt_error(cudaErrorInvalidValue);
  memset(data, 0, size);
  if (attribute != cudaMemRangeAttributeReadMostly)
    for (size_t i = 0; i + sizeof(int) <= size; i += sizeof(int)) ((int *)data)[i / sizeof(int)] = cudaInvalidDeviceId;
  return cudaSuccess;
}

/* ---- arrays: they hold textures ---- */

static cudaError_t no_arrays(const char *call, SimtSite site) {
  simt_report_call("not supported", call, site,
                   "CUDA arrays and textures are not emulated\n"
                   "    try: cudaMalloc() or cudaMallocPitch(), and compute the index in the kernel");
  return simt_error(cudaErrorNotSupported);
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, size_t width, size_t height,
                            unsigned int flags) {
  (void)array, (void)format, (void)width, (void)height, (void)flags;
  return no_arrays("cudaMallocArray", SIMT_CALLER);
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                              unsigned int flags) {
  (void)array, (void)format, (void)extent, (void)flags;
  return no_arrays("cudaMalloc3DArray", SIMT_CALLER);
}

cudaError_t cudaFreeArray(cudaArray_t array) { return simt_error(array ? cudaErrorInvalidValue : cudaSuccess); }

/* ---- the end: what was not freed ---- */

typedef struct Live {
  Segment **segments;
  size_t count;
} Live;

static void collect(Segment *s, void *context) {
  Live *live = context;
  if (s->memory.freed) return;
  if ((live->count & (live->count - 1)) == 0)
    live->segments = need(realloc(live->segments, (2 * live->count + 1) * sizeof *live->segments));
  live->segments[live->count++] = s;
}

/* One line for each place that allocated. */
static void report_leaks(Live live) {
  enum { LINES = 20 };
  size_t bytes = 0, lines = 0;
  char text[512];
  for (size_t i = 0; i < live.count; i++) bytes += live.segments[i]->memory.size;
  if (!live.count) return;
  simt_report_host("leak: %zu allocation%s, %zu bytes in all, never freed:", live.count, live.count == 1 ? "" : "s",
                   bytes);
  for (size_t i = 0; i < live.count; i++) {
    const SimtMemory *m = &live.segments[i]->memory;
    size_t here = 0, sum = 0, first = i;
    for (size_t j = 0; j < live.count; j++) {
      if (!simt_same_site(m->site, live.segments[j]->memory.site)) continue;
      if (j < first) first = j;
      here++;
      sum += live.segments[j]->memory.size;
    }
    if (first < i) continue;
    if (++lines > LINES) break;
    fprintf(stderr, "    %zu bytes in %zu allocation%s of %s\n", sum, here, here == 1 ? "" : "s",
            simt_site_text(m->call, m->site, text, sizeof text));
  }
  if (lines > LINES) fputs("    ... and from other places\n", stderr);
}

static int leaks_wanted(void) {
  const char *text = getenv("SIMT_LEAKS");
  return text && *text && strcmp(text, "0") != 0;
}

void simt_memory_reset(int device_of, SimtSite site) {
  Live live = {0};
  memory_begin();
  tree_walk(tree, collect, &live);
  if (leaks_wanted()) report_leaks(live);
  for (size_t i = 0; i < live.count; i++) {
    Segment *s = live.segments[i];
    if (s->memory.kind == SIMT_DEVICE_MEMORY && s->memory.device != device_of) continue;
    if (!s->arena && !s->from_malloc) {
      tree_remove(s);
      free(s);
      continue;
    }
    TELL_INSPECTOR(freed(s->memory.base, s->memory.size, s->memory.kind));
    segment_free(s, site);
  }
  memory_end();
  free(live.segments);
}

/* After all of the program's own handlers and destructors. */
__attribute__((destructor)) static void leaks_at_exit(void) {
  Live live = {0};
  if (!leaks_wanted()) return;
  memory_begin();
  tree_walk(tree, collect, &live);
  report_leaks(live);
  memory_end();
  free(live.segments);
}
