/* bulk_store.c - tensor copies from shared to global memory, in groups of the thread that starts them; and
 * barriers by number, which their kernels use beside __syncthreads().
 *
 * A store reads shared memory some time before its thread has waited for it: here at the wait (hopper.h says when
 * else).
 */
#include "hopper.h"

#include "host.h"

typedef struct BulkStore {
  struct BulkStore *next; /* of the block */
  TensorMap map;
  int place[TENSOR_RANKS];
  const char *from;
  uint32_t at;
  int rank; /* of its thread */
  unsigned group;
  const char *file;
  int line;
} BulkStore;

void simt_bulk_stores_begin(Hopper *h) {
  for (BulkStore *s = h->stores, *next; s; s = next) {
    next = s->next;
    free(s);
  }
  h->stores = NULL;
  h->last_store = &h->stores;
  memset(h->store_groups, 0, sizeof h->store_groups);
  memset(h->named, 0, sizeof h->named);
}

void simt_tensor_store(const void *map, int rank, const int *place, uint32_t from, const char *file, int line) {
  BulkStore store = {.at = from, .rank = simt_worker ? simt_current_rank() : 0, .file = file, .line = line};
  simt_need_hopper("tma_store()", file, line);
  simt_read_map(map, rank, &store.map, "tma_store()", file, line);
  Hopper *h = simt_hopper(simt_worker);
  size_t bytes = simt_tensor_box_bytes(&store.map);
  memcpy(store.place, place, (size_t)rank * sizeof *place);
  if (from % 128)
    simt_kernel_fault(cudaErrorMisalignedAddress, file, line,
                      "tma_store() from shared address 0x%x: it must be a multiple of 128 bytes", from);
  store.from = from >> SIMT_RANK_SHIFT ? NULL : simt_shared_bytes(simt_worker, from, bytes);
  if (!store.from)
    simt_kernel_fault(cudaErrorIllegalAddress, file, line,
                      "tma_store(): %zu bytes at shared address 0x%x are not all in dynamic shared memory or in one "
                      "__shared__ variable of the block",
                      bytes, from);
  TELL_INSPECTOR(counted(__builtin_return_address(0), SIMT_BULK_COPIES, 1));
  TELL_INSPECTOR(counted(__builtin_return_address(0), SIMT_BULK_BYTES, simt_tensor_inside_bytes(&store.map, place)));
  TELL_INSPECTOR(async_reads(__builtin_return_address(0), store.from, bytes));
  if (simt_happens_early(simt_worker)) {
    simt_tensor_write(&store.map, store.place, store.from, store.at);
    return;
  }
  store.group = h->store_groups[store.rank];
  BulkStore *kept = malloc(sizeof *kept);
  if (!kept) abort();
  *kept = store;
  if (!h->last_store) h->last_store = &h->stores;
  *h->last_store = kept;
  h->last_store = &kept->next;
}

void simt_bulk_commit(const char *file, int line) {
  simt_need_hopper("tma_store_commit()", file, line);
  simt_hopper(simt_worker)->store_groups[simt_current_rank()]++;
}

/* Until at most the last `pending` groups of this thread are under way. */
void simt_bulk_wait(unsigned pending, const char *file, int line) {
  simt_need_hopper("tma_store_wait()", file, line);
  Hopper *h = simt_hopper(simt_worker);
  int rank = simt_current_rank();
  BulkStore **at = &h->stores;
  while (*at) {
    BulkStore *s = *at;
    if (s->rank != rank || s->group + pending >= h->store_groups[rank]) {
      at = &s->next;
      continue;
    }
    simt_tensor_write(&s->map, s->place, s->from, s->at);
    *at = s->next;
    free(s);
  }
  h->last_store = at;
}

void simt_bulk_stores_end(Worker *w) {
  const BulkStore *s = w->hopper->stores;
  if (!s || atomic_load(&w->job->failed)) return;
  simt_report_block(
      "tma_store_commit(), and tma_store_wait() before the thread returns: until then the shared memory must "
      "stay",
      "bulk copies: a tma_store() was under way from the shared memory of a block whose threads had all "
      "returned; it began at %s:%d",
      s->file, s->line);
  if (simt_settings.strict) atomic_store(&w->job->failed, (int)cudaErrorLaunchFailure);
}

/* ---- barriers by number ---- */

typedef struct Wait {
  const NamedBarrier *barrier;
  unsigned phase;
} Wait;

static int ready(void *context) {
  const Wait *wait = context;
  return wait->barrier->phase != wait->phase;
}

void simt_named_barrier(int number, int threads, int wait, const void *words, const char *file, int line) {
  const char *what = wait ? "named_barrier_sync" : "named_barrier_arrive";
  if (!simt_worker) simt_need_hopper(what, file, line);
  Worker *w = simt_worker;
  Hopper *h = simt_hopper(w);
  if (number < 0 || number >= SIMT_NAMED_BARRIERS || threads < SIMT_WARP_SIZE || threads % SIMT_WARP_SIZE)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "%s(%d, %d): expected a number from 0 to 15, and whole warps", what, number, threads);
  NamedBarrier *b = &h->named[number];
  if (words) h->named_words = words;
  if (b->arrived && b->threads != threads)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line, "%s(%d, %d): others wait there for %d threads", what,
                      number, threads, b->threads);
  Wait awaited = {b, b->phase};
  b->threads = threads;
  if (++b->arrived == threads) {
    b->arrived = 0;
    b->phase++;
  }
  if (!wait) return;
  w->own_conditions++;
  simt_wait_until(ready, &awaited, "named_barrier_sync()", file, line);
  w->own_conditions--;
}
