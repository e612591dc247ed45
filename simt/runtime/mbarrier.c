/* mbarrier.c - barriers in shared memory that count arrivals and bytes, and the bulk copies that bring the bytes.
 *
 * A phase is complete when as many threads have arrived as mbarrier_init() said, and all announced bytes have come; the
 * next one begins at once. What a barrier's eight bytes hold on a GPU is nobody's business; here they hold a summary
 * of its state, so that it shows when a program writes there.
 *
 * A copy waits at its barrier. When a thread waits for a phase of which nothing but bytes is missing, the copies are
 * done (hopper.h says when else).
 */
#include "hopper.h"

#include "cuda.h"
#include "host.h"

enum { MOST = (1 << 20) - 1 }; /* arrivals, bytes */

typedef struct BulkCopy { /* to one block */
  struct BulkCopy *next;
  TensorMap map; /* rank 0: `bytes` from map.address on */
  int place[TENSOR_RANKS];
  char *to;
  uint32_t at;
  size_t bytes;
  const char *file;
  int line;
} BulkCopy;

struct Mbarrier {
  uint64_t *at, word;
  int expected, pending; /* arrivals: of a phase; that are missing in the present one */
  long long bytes;       /* announced and not here */
  unsigned phase;
  const char *file;        /* of its initialisation */
  int line, rank;          /* and the thread that did it */
  int fenced;              /* that thread has done a mbarrier_init_fence() since */
  BulkCopy *first, **last; /* under way */
};

/* ---- a block's barriers ---- */

static uint64_t word_of(const Mbarrier *b) {
  return (uint64_t)b->phase << 63 | (uint64_t)(b->expected & MOST) << 42 | (uint64_t)(b->pending & MOST) << 21 |
         (uint64_t)(b->bytes & 0x1fffff);
}

static Mbarrier *known(const Worker *owner, const void *at) {
  const Hopper *h = owner->hopper;
  for (int i = 0; h && i < h->barrier_count; i++)
    if (h->barriers[i]->at == at) return h->barriers[i];
  return NULL;
}

int simt_is_mbarrier(const Worker *w, const void *address) {
  const char *named = w->hopper ? w->hopper->named_words : NULL;
  return known(w, address) || (named && (const char *)address >= named &&
                               (const char *)address < named + SIMT_NAMED_BARRIERS * sizeof(uint64_t));
}

static void free_copies(Mbarrier *b) {
  for (BulkCopy *c = b->first, *next; c; c = next) {
    next = c->next;
    free(c);
  }
  b->first = NULL;
  b->last = &b->first;
}

void simt_mbarriers_begin(Hopper *h) {
  for (int i = 0; i < h->barrier_count; i++) free_copies(h->barriers[i]);
  h->barrier_count = h->copies = 0;
}

/* What is wrong with an operation on the barrier. */
typedef enum Fault { RIGHT, NO_BLOCK, NO_SHARED, UNALIGNED, UNKNOWN, OVERWRITTEN, TOO_MANY, TOO_MANY_BYTES } Fault;

/* With the cluster's lock. */
static Fault find(uint32_t address, Worker **owner, Mbarrier **found) {
  *owner = simt_owner_of(address);
  *found = NULL;
  if (!*owner) return NO_BLOCK;
  if (address % 8) return UNALIGNED;
  void *at = simt_shared_bytes(*owner, address, 8);
  if (!at) return NO_SHARED;
  *found = known(*owner, at);
  if (!*found) return UNKNOWN;
  return *(*found)->at == (*found)->word ? RIGHT : OVERWRITTEN;
}

static void fault(Fault f, uint32_t address, const Mbarrier *b, const char *what, const char *file, int line)
    __attribute__((noreturn));
static void fault(Fault f, uint32_t address, const Mbarrier *b, const char *what, const char *file, int line) {
  switch (f) {
    case NO_BLOCK:
      simt_kernel_fault(cudaErrorIllegalAddress, file, line,
                        "%s: block %u of the cluster does not run: it has returned or not begun. cluster_sync() before "
                        "its shared memory is used, and before it returns",
                        what, (address >> SIMT_RANK_SHIFT) - 1);
    case UNALIGNED:
      simt_kernel_fault(cudaErrorMisalignedAddress, file, line,
                        "%s: the mbarrier at shared address 0x%x is not at a multiple of 8 bytes", what, address);
    case NO_SHARED:
      simt_kernel_fault(cudaErrorIllegalAddress, file, line,
                        "%s: 0x%x is not an address in the shared memory of the block; shared_address() gives one of a "
                        "pointer",
                        what, address);
    case OVERWRITTEN:
      simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                        "%s: something else was written over the mbarrier at shared address 0x%x (initialised at "
                        "%s:%d): does an array or a copy reach into it?",
                        what, address, b->file, b->line);
    case TOO_MANY:
      simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                        "%s: the mbarrier at shared address 0x%x gets more than the %d arrivals that a phase expects "
                        "(initialised at %s:%d)",
                        what, address, b->expected, b->file, b->line);
    case TOO_MANY_BYTES:
      simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                        "%s: the mbarrier at shared address 0x%x (initialised at %s:%d) would wait for more than %d "
                        "bytes in a phase",
                        what, address, b->file, b->line, MOST);
    default:
      simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                        "%s: there is no mbarrier at shared address 0x%x: mbarrier_init() by one thread, then "
                        "mbarrier_init_fence() and a barrier of all, before it is used",
                        what, address);
  }
}

static void settle(Mbarrier *b) {
  if (b->pending == 0 && b->bytes == 0) {
    b->phase++;
    b->pending = b->expected;
  }
  *b->at = b->word = word_of(b);
}

/* ---- copies ---- */

static void deliver(Worker *owner, Mbarrier *b, BulkCopy *c) {
  if (c->map.rank)
    simt_tensor_copy(&c->map, c->place, c->to, c->at);
  else
    memcpy(c->to, c->map.address, c->bytes);
  TELL_INSPECTOR(bulk_arrived(owner, c->to, c->bytes));
  b->bytes -= (long long)c->bytes;
  owner->hopper->copies--;
}

/* In the order of their start, or the other way round: a GPU promises none. */
static void deliver_all(Worker *owner, Mbarrier *b) {
  BulkCopy *list = b->first, *reversed = NULL;
  if (simt_settings.order != SIMT_FORWARD) {
    for (BulkCopy *c = list, *next; c; c = next) {
      next = c->next;
      c->next = reversed;
      reversed = c;
    }
    list = reversed;
  }
  b->first = NULL;
  b->last = &b->first;
  for (BulkCopy *c = list, *next; c; c = next) {
    next = c->next;
    deliver(owner, b, c);
    free(c);
  }
  settle(b);
}

/* Nothing but bytes is missing: they come. */
static void bring(Worker *owner, Mbarrier *b) {
  if (b->first && b->pending == 0) deliver_all(owner, b);
}

int simt_happens_early(Worker *w) {
  if (simt_settings.order == SIMT_FORWARD) return 0;
  return simt_settings.order == SIMT_REVERSE || simt_mix(w->order_seed++) % 2;
}

/* ---- operations ---- */

static void fence_barriers(void) {
  const Hopper *h = simt_worker->hopper;
  for (int i = 0; h && i < h->barrier_count; i++)
    if (h->barriers[i]->rank == simt_current_rank()) h->barriers[i]->fenced = 1;
}

void simt_mbarrier_init_fence(const char *file, int line) {
  simt_need_hopper("mbarrier_init_fence()", file, line);
  fence_barriers();
}

/* Whether TMA and other blocks see the barrier as it is. */
static void check_fenced(const Mbarrier *b, const char *what, const char *file, int line) {
  char place[256];
  if (b->fenced) return;
  snprintf(place, sizeof place, "%s:%d", file, line);
  simt_report_running(
      place,
      "mbarrier_init_fence() by the thread that has initialised the mbarriers, before the barrier at "
      "which the others wait for it",
      "mbarrier: %s at %s uses the mbarrier that was initialised at %s:%d, and no mbarrier_init_fence() "
      "has come: TMA and other blocks may not see it",
      what, place, b->file, b->line);
  if (simt_settings.strict) simt_give_up(cudaErrorIllegalInstruction);
}

static Mbarrier *new_barrier(Hopper *h) {
  if (h->barrier_count == h->barrier_made) {
    h->barriers = realloc(h->barriers, (size_t)(h->barrier_made + 1) * sizeof *h->barriers);
    if (!h->barriers || !(h->barriers[h->barrier_made++] = calloc(1, sizeof(Mbarrier)))) abort();
  }
  return h->barriers[h->barrier_count++];
}

uint64_t simt_mbarrier_init(uint32_t barrier, int arrivals, const char *file, int line) {
  Worker *owner;
  Mbarrier *b;
  simt_need_hopper("mbarrier_init()", file, line);
  if (arrivals < 1 || arrivals > MOST)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line, "mbarrier_init() for %d arrivals; expected 1 to %d",
                      arrivals, MOST);
  simt_lock_cluster(simt_worker);
  Fault f = find(barrier, &owner, &b);
  int under_way = f == RIGHT && b->first;
  if (f >= UNKNOWN && owner == simt_worker) {
    Hopper *h = simt_hopper(owner);
    if (!b) b = new_barrier(h);
    under_way = b->first != NULL;
    f = RIGHT;
  }
  if (f == RIGHT && !under_way) {
    *b = (Mbarrier){.at = simt_shared_bytes(owner, barrier, 8),
                    .expected = arrivals,
                    .pending = arrivals,
                    .file = file,
                    .line = line,
                    .rank = simt_current_rank()};
    b->last = &b->first;
    *b->at = b->word = word_of(b);
  }
  simt_unlock_cluster(simt_worker);
  if (under_way)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "mbarrier_init() at shared address 0x%x while copies are under way that count at the mbarrier "
                      "there (initialised at %s:%d)",
                      barrier, b->file, b->line);
  if (f != RIGHT) fault(f, barrier, b, "mbarrier_init()", file, line);
  return b->word;
}

static int complete(uint32_t barrier, unsigned parity, Fault *f, Mbarrier **b) {
  Worker *owner;
  simt_lock_cluster(simt_worker);
  *f = find(barrier, &owner, b);
  if (*f == RIGHT && ((*b)->phase & 1) == (parity & 1)) bring(owner, *b);
  int done = *f == RIGHT && ((*b)->phase & 1) != (parity & 1);
  simt_unlock_cluster(simt_worker);
  return done;
}

typedef struct Wait {
  uint32_t barrier;
  unsigned parity;
  Fault fault;
  Mbarrier *found;
} Wait;

static const char WAIT[] = "mbarrier_wait()";

/* Asked while another thread runs: a fault is left to the thread that waits. */
static int ready(void *context) {
  Wait *wait = context;
  return complete(wait->barrier, wait->parity, &wait->fault, &wait->found) || wait->fault != RIGHT;
}

/* Who waits for the phase that has just ended may go on at once: what this thread does after its arrival, as to read
 * the stage that it has freed, comes later then. */
static void let_waiter_run(const Mbarrier *b, unsigned ended) {
  const Worker *w = simt_worker;
  if (simt_happens_early(simt_worker)) return;
  for (int r = 0; r < simt_threads.count && w->conditions; r++) {
    const Thread *t = &w->threads[r];
    if (w->state[r] != SIMT_AT_CONDITION || t->ready != ready) continue;
    const Wait *wait = t->context;
    if (wait->found != b || wait->parity != ended % 2) continue;
    simt_let_run(r);
    return;
  }
}

void simt_mbarrier_arrive(uint32_t barrier, int arrivals, int bytes, const char *file, int line) {
  const char *what = bytes ? "mbarrier_arrive_expect()" : "mbarrier_arrive()";
  Worker *owner;
  Mbarrier *b;
  simt_need_hopper(what, file, line);
  simt_lock_cluster(simt_worker);
  Fault f = find(barrier, &owner, &b);
  if (f == RIGHT) {
    bring(owner, b);
    if (arrivals > b->pending)
      f = TOO_MANY;
    else if (bytes < 0 || b->bytes + bytes > MOST)
      f = TOO_MANY_BYTES;
  }
  unsigned phase = b ? b->phase : 0, ended = 0;
  if (f == RIGHT) {
    b->bytes += bytes;
    b->pending -= arrivals;
    settle(b);
    ended = b->phase - phase;
  }
  simt_unlock_cluster(simt_worker);
  if (f != RIGHT) fault(f, barrier, b, what, file, line);
  if (owner != simt_worker) check_fenced(b, what, file, line);
  if (ended && owner == simt_worker) let_waiter_run(b, phase);
}

int simt_mbarrier_test(uint32_t barrier, unsigned parity, const char *file, int line) {
  Fault f;
  Mbarrier *b;
  simt_need_hopper("mbarrier_try_wait()", file, line);
  int done = complete(barrier, parity, &f, &b);
  if (f != RIGHT) fault(f, barrier, b, "mbarrier_try_wait()", file, line);
  return done;
}

void simt_mbarrier_wait(uint32_t barrier, unsigned parity, const char *file, int line) {
  Worker *w = simt_worker;
  Wait wait = {barrier, parity, RIGHT, NULL};
  simt_need_hopper(WAIT, file, line);
  TELL_INSPECTOR(counted(__builtin_return_address(0), SIMT_MBARRIER_WAITS, 1));
  if (barrier >> SIMT_RANK_SHIFT)
    simt_kernel_fault(
        cudaErrorInvalidAddressSpace, file, line,
        "mbarrier_wait() for an mbarrier of another block of the cluster: a block waits for its own only");
  if (parity > 1)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line, "mbarrier_wait() for parity %u; expected 0 or 1",
                      parity);
  w->own_conditions++;
  simt_wait_until(ready, &wait, WAIT, file, line);
  w->own_conditions--;
  if (wait.fault != RIGHT) fault(wait.fault, barrier, wait.found, WAIT, file, line);
}

/* ---- what is reported ---- */

static void describe(const Mbarrier *b, uint32_t address, int wanted) {
  fprintf(stderr, "    mbarrier at shared address 0x%x, initialised at %s:%d, is in phase %u", address, b->file,
          b->line, b->phase);
  if (b->pending) fprintf(stderr, "; %d of %d arrivals are missing", b->pending, b->expected);
  if (b->bytes > 0) fprintf(stderr, "; %lld announced bytes are missing", b->bytes);
  if (b->bytes < 0) fprintf(stderr, "; %lld bytes have come that were not announced", -b->bytes);
  if (b->first) fprintf(stderr, "; copies are under way");
  fprintf(stderr, "; waited for: the end of a phase of parity %d\n", wanted);
}

void simt_describe_mbarriers(Worker *w) {
  enum { ENOUGH = 8 };
  struct {
    uint32_t barrier;
    unsigned parity;
  } told[ENOUGH];
  int count = 0;
  if (!w->hopper || !w->hopper->barrier_count) return;
  for (int r = 0; r < simt_threads.count && count < ENOUGH; r++) {
    const Thread *t = &w->threads[r];
    if (w->state[r] != SIMT_AT_CONDITION || t->ready != ready) continue;
    const Wait *wait = t->context;
    int before = 0;
    for (int i = 0; i < count; i++) before |= told[i].barrier == wait->barrier && told[i].parity == wait->parity;
    if (before || !wait->found) continue;
    describe(wait->found, wait->barrier, (int)wait->parity);
    told[count].barrier = wait->barrier;
    told[count++].parity = wait->parity;
  }
}

void simt_mbarriers_end(Worker *w) {
  Hopper *h = w->hopper;
  simt_lock_cluster(w);
  const BulkCopy *c = NULL;
  for (int i = 0; i < h->barrier_count && !c; i++) c = h->barriers[i]->first;
  int copies = h->copies;
  simt_unlock_cluster(w);
  if (!c || atomic_load(&w->job->failed)) return;
  simt_report_block(
      "wait for the mbarrier at which the copies count, before the threads of the block return: another block may get "
      "its shared memory",
      "bulk copies: %d were under way to the shared memory of a block whose threads had all returned; one began at "
      "%s:%d",
      copies, c->file, c->line);
  if (simt_settings.strict) atomic_store(&w->job->failed, (int)cudaErrorLaunchFailure);
}

/* ---- starting a copy ---- */

int simt_copy_under_way(const Worker *w, const void *shared, size_t bytes, BulkSite *site) {
  const char *low = shared;
  int found = 0;
  simt_lock_cluster(w);
  for (int i = 0; w->hopper->copies && i < w->hopper->barrier_count; i++)
    for (const BulkCopy *c = w->hopper->barriers[i]->first; c && !found; c = c->next) {
      found = low < c->to + c->bytes && c->to < low + bytes;
      if (found) *site = (BulkSite){c->file, c->line};
    }
  simt_unlock_cluster(w);
  return found;
}

/* To the place `at` of block `owner`, counted at the mbarrier at `barrier` there. */
static Fault start(Worker *owner, const BulkCopy *copy, uint32_t barrier, Mbarrier **b) {
  Worker *found;
  Fault f = find(barrier, &found, b);
  if (f != RIGHT) return f;
  BulkCopy *c = malloc(sizeof *c);
  if (!c) abort();
  *c = *copy;
  c->next = NULL;
  memset(c->to, SIMT_FILL, c->bytes);
  simt_hopper(owner)->copies++;
  TELL_INSPECTOR(bulk_began(owner, c->to, c->bytes));
  if (simt_happens_early(simt_worker)) {
    deliver(owner, *b, c);
    free(c);
    settle(*b);
  } else {
    *(*b)->last = c;
    (*b)->last = &c->next;
  }
  return RIGHT;
}

static void check_memory(const char *from, size_t bytes, const char *what, const char *file, int line) {
  SimtMemory memory;
  char text[512];
  int live = simt_memory_find(from, &memory);
  if (live && memory.kind != SIMT_UNKNOWN_MEMORY && from + bytes <= (char *)memory.base + memory.size) return;
  if (!live || memory.kind == SIMT_UNKNOWN_MEMORY)
    simt_kernel_fault(cudaErrorIllegalAddress, file, line, "%s from %p, which is no device memory", what,
                      (const void *)from);
  simt_kernel_fault(cudaErrorIllegalAddress, file, line, "%s: %zu bytes from %p on end beyond the %s", what, bytes,
                    (const void *)from, simt_memory_text(&memory, text, sizeof text));
}

/* To each block whose bit is set; 0: to where the addresses say. */
static void start_all(BulkCopy *copy, uint32_t to, uint32_t barrier, unsigned blocks, const char *what) {
  const uint32_t within = (1u << SIMT_RANK_SHIFT) - 1;
  unsigned size = simt_cluster_blocks(), alignment = copy->map.rank ? 128 : 16;
  const char *file = copy->file;
  int line = copy->line;
  if (to % alignment)
    simt_kernel_fault(cudaErrorMisalignedAddress, file, line,
                      "%s to shared address 0x%x: it must be a multiple of %u bytes: __align__(%u)", what, to,
                      alignment, alignment);
  if (blocks >> size)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "%s to the blocks 0x%x of a cluster that has %u: there is none for bit %d", what, blocks, size,
                      31 - __builtin_clz(blocks));
  if (!blocks && to >> SIMT_RANK_SHIFT != barrier >> SIMT_RANK_SHIFT)
    simt_kernel_fault(cudaErrorIllegalAddress, file, line,
                      "%s to one block of the cluster counts at an mbarrier of another: both must be in the same",
                      what);
  for (unsigned rank = 0; rank < (blocks ? size : 1); rank++) {
    if (blocks && !(blocks >> rank & 1)) continue;
    uint32_t there = blocks ? (rank + 1) << SIMT_RANK_SHIFT : to & ~within;
    Mbarrier *b = NULL;
    simt_lock_cluster(simt_worker);
    Worker *owner = simt_owner_of(there);
    copy->at = to & within;
    copy->to = owner ? simt_shared_bytes(owner, copy->at, copy->bytes) : NULL;
    Fault f = !owner ? NO_BLOCK : copy->to ? start(owner, copy, there | (barrier & within), &b) : RIGHT;
    simt_unlock_cluster(simt_worker);
    BulkSite product;
    if (f == RIGHT && copy->to && owner == simt_worker && simt_product_reads(owner, copy->to, copy->bytes, &product))
      simt_kernel_fault(cudaErrorLaunchFailure, file, line,
                        "%s overwrites a factor of the product at %s:%d, which may be running: wgmma_wait(), then an "
                        "mbarrier, tell when the stage is free",
                        what, product.file, product.line);
    if (f == NO_BLOCK) fault(f, there, NULL, what, file, line);
    if (f != RIGHT) fault(f, barrier, b, what, file, line);
    if (b) check_fenced(b, what, file, line);
    if (!copy->to)
      simt_kernel_fault(cudaErrorIllegalAddress, file, line,
                        "%s: %zu bytes at shared address 0x%x are not all in dynamic shared memory (%zu bytes) or in "
                        "one __shared__ variable",
                        what, copy->bytes, copy->at, simt_dynamic_shared_size());
  }
}

void simt_read_map(const void *pointer, int rank, TensorMap *map, const char *what, const char *file, int line) {
  if ((uintptr_t)pointer % SIMT_MAP_ALIGNMENT == 0) memcpy(map, pointer, sizeof *map);
  if ((uintptr_t)pointer % SIMT_MAP_ALIGNMENT != 0 || !simt_tensor_map_valid(map))
    simt_kernel_fault(
        cudaErrorIllegalInstruction, file, line,
        "%s: %p is no tensor map: cuTensorMapEncodeTiled() makes it on the host, and it is a parameter of "
        "the kernel (const __grid_constant__ CUtensorMap)",
        what, pointer);
  if (map->rank != rank)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line, "%s of %d dimensions with a tensor map of %d", what,
                      rank, map->rank);
  check_memory(map->address, simt_tensor_extent(map), what, file, line);
}

void simt_tensor_load(uint32_t to, const void *map, int rank, const int *place, uint32_t barrier, unsigned blocks,
                      const char *file, int line) {
  const char *what = blocks ? "tma_load_multicast()" : "tma_load()";
  BulkCopy copy = {.file = file, .line = line};
  simt_need_hopper(what, file, line);
  simt_read_map(map, rank, &copy.map, what, file, line);
  copy.bytes = simt_tensor_box_bytes(&copy.map);
  memcpy(copy.place, place, (size_t)rank * sizeof *place);
  TELL_INSPECTOR(counted(__builtin_return_address(0), SIMT_BULK_COPIES, 1));
  TELL_INSPECTOR(counted(__builtin_return_address(0), SIMT_BULK_BYTES, simt_tensor_inside_bytes(&copy.map, place)));
  if (SIMT_INSPECTED) simt_tensor_tell_reads(&copy.map, place, __builtin_return_address(0));
  start_all(&copy, to, barrier, blocks, what);
}

void simt_bulk_load(uint32_t to, const void *from, size_t bytes, uint32_t barrier, const char *file, int line) {
  BulkCopy copy = {.map.address = (char *)(uintptr_t)from, .bytes = bytes, .file = file, .line = line};
  simt_need_hopper("bulk_load()", file, line);
  if (bytes == 0 || bytes % 16 || (uintptr_t)from % 16)
    simt_kernel_fault(cudaErrorMisalignedAddress, file, line,
                      "bulk_load() of %zu bytes from %p: both must be multiples of 16", bytes, from);
  check_memory(from, bytes, "bulk_load()", file, line);
  TELL_INSPECTOR(counted(__builtin_return_address(0), SIMT_BULK_COPIES, 1));
  TELL_INSPECTOR(counted(__builtin_return_address(0), SIMT_BULK_BYTES, bytes));
  TELL_INSPECTOR(bulk_reads(__builtin_return_address(0), from, bytes));
  start_all(&copy, to, barrier, 0, "bulk_load()");
}

void simt_async_proxy_fence(const char *file, int line) {
  simt_need_hopper("fence_async_proxy()", file, line);
  fence_barriers();
  TELL_INSPECTOR(async_fence());
}

void simt_tensor_prefetch(const void *map, int rank, const char *file, int line) {
  TensorMap read;
  simt_need_hopper("tma_prefetch()", file, line);
  simt_read_map(map, rank, &read, "tma_prefetch()", file, line);
}
