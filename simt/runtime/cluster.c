/* cluster.c - clusters: blocks that run at the same time, each on an OS thread of its own, reach each other's shared
 * memory, and have a barrier in common. A launch without clusters has clusters of one block.
 *
 * As many clusters run at a time as the settings have OS threads for; at least one does.
 */
#include "hopper.h"

#include "host.h"

/* ---- the state of a block ---- */

Hopper *simt_hopper(Worker *w) {
  if (!w->hopper) {
    if (!(w->hopper = calloc(1, sizeof *w->hopper))) abort();
    w->hopper->alone.size = 1;
  }
  w->hopper->used = 1;
  return w->hopper;
}

static void block_begin(Worker *w) {
  Hopper *h = w->hopper;
  if (h && h->used) {
    simt_mbarriers_begin(h);
    simt_bulk_stores_begin(h);
    simt_wgmma_begin(h);
    memset(h->arrived, 0, sizeof h->arrived);
    h->passed = 0;
    h->returned = 0;
    h->alone = (Cluster){.size = 1};
    h->used = 0;
  }
  w->own_conditions = w->preferred = 0;
  w->static_shared = simt_above_shared;
  if (!w->cluster) return;
  simt_lock_cluster(w);
  w->cluster->worker[w->cluster_rank] = w;
  simt_unlock_cluster(w);
}

void simt_hopper_block_begin(Worker *w) {
  if (simt_capability() >= 90) block_begin(w);
}

void simt_hopper_block_end(Worker *w) {
  if (w->cluster) {
    simt_lock_cluster(w);
    w->cluster->worker[w->cluster_rank] = NULL; /* what others start from now on comes too late */
    w->cluster->returned += (unsigned)(simt_threads.count - (w->hopper ? w->hopper->returned : 0));
    simt_unlock_cluster(w);
  }
  if (!w->hopper || !w->hopper->used || w->aborted) return;
  simt_mbarriers_end(w);
  simt_bulk_stores_end(w);
  simt_wgmma_end(w);
}

void simt_need_hopper(const char *what, const char *file, int line) {
  if (!simt_worker) {
    fprintf(stderr, "=== simt: %s called by host code, %s:%d: it exists only inside a kernel\n", what, file, line);
    abort();
  }
  if (simt_capability() >= 90) return;
  simt_kernel_fault(cudaErrorNoKernelImageForDevice, file, line,
                    "%s needs compute capability 9.0; the emulated GPU has 8.0: set SIMT_CAPABILITY=9.0 in the "
                    "environment",
                    what);
}

void simt_describe_waits(Worker *w) {
  if (!w->hopper || !w->hopper->used) return;
  simt_describe_mbarriers(w);
  simt_describe_products(w);
}

/* ---- who and where ---- */

unsigned simt_cluster_blocks(void) { return simt_worker->cluster ? (unsigned)simt_worker->cluster->size : 1; }

unsigned simt_cluster_rank(void) {
  const Worker *w = simt_worker;
  return w->cluster ? (unsigned)w->cluster_rank : 0;
}

uint3 simt_cluster_shape(void) { return simt_worker->cluster ? simt_worker->job->kernel->cluster : (uint3){1, 1, 1}; }

static void check_rank(unsigned rank, const char *file, int line) {
  if (rank >= simt_cluster_blocks())
    simt_kernel_fault(cudaErrorIllegalAddress, file, line,
                      "the shared memory of block %u of a cluster that has %u block%s", rank, simt_cluster_blocks(),
                      simt_cluster_blocks() == 1 ? "" : "s");
}

uint32_t simt_cluster_address(uint32_t address, unsigned rank, const char *file, int line) {
  simt_need_hopper("an address in the cluster", file, line);
  check_rank(rank, file, line);
  return (address & ((1u << SIMT_RANK_SHIFT) - 1)) | (rank + 1) << SIMT_RANK_SHIFT;
}

void *simt_cluster_pointer(const void *pointer, unsigned rank, const char *file, int line) {
  simt_need_hopper("an address in the cluster", file, line);
  check_rank(rank, file, line);
  simt_lock_cluster(simt_worker);
  const Worker *owner = simt_owner_of((rank + 1) << SIMT_RANK_SHIFT);
  simt_unlock_cluster(simt_worker);
  void *there = owner ? simt_shared_of(owner, pointer) : NULL;
  if (!owner)
    simt_kernel_fault(
        cudaErrorIllegalAddress, file, line,
        "block %u of the cluster does not run: it has returned or not begun. Wait at the cluster's barrier "
        "before its shared memory is used, and before it returns",
        rank);
  if (!there)
    simt_kernel_fault(cudaErrorInvalidAddressSpace, file, line,
                      "%p is not in the shared memory of this block: there is no such place in block %u", pointer,
                      rank);
  return there;
}

unsigned simt_cluster_rank_of(const void *pointer, const char *file, int line) {
  Worker *w = simt_worker;
  const char *p = pointer;
  ptrdiff_t low;
  size_t bytes;
  unsigned found = UINT32_MAX;
  simt_need_hopper("whose shared memory it is", file, line);
  simt_lock_cluster(w);
  for (unsigned rank = 0; rank < simt_cluster_blocks(); rank++) {
    const Worker *owner = simt_owner_of((rank + 1) << SIMT_RANK_SHIFT);
    if (owner && ((p >= owner->dynamic_shared && p < owner->dynamic_shared + owner->dynamic_shared_size) ||
                  simt_static_variable(p - owner->static_shared, &low, &bytes)))
      found = rank;
  }
  simt_unlock_cluster(w);
  if (found == UINT32_MAX)
    simt_kernel_fault(cudaErrorInvalidAddressSpace, file, line,
                      "%p is not in the shared memory of a block of the cluster", pointer);
  return found;
}

/* ---- the barrier ---- */

static Cluster *cluster_of(Worker *w) { return w->cluster ? w->cluster : &simt_hopper(w)->alone; }

/* With the lock. Threads that have returned are not waited for. */
static void open_if_complete(Worker *w, Cluster *c) {
  Hopper *h = simt_hopper(w);
  c->returned += (unsigned)(simt_threads.finished - h->returned);
  h->returned = simt_threads.finished;
  if (!c->arrived || c->arrived + c->returned < (unsigned)(simt_threads.count * c->size)) return;
  c->arrived = 0;
  c->phase++;
}

void simt_cluster_arrive(const char *file, int line) {
  Worker *w = simt_worker;
  simt_need_hopper("cluster_arrive()", file, line);
  Cluster *c = cluster_of(w);
  unsigned char *arrived = &simt_hopper(w)->arrived[simt_current_rank()];
  if (*arrived)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "cluster_arrive() a second time, and no cluster_wait() in between");
  simt_lock_cluster(w);
  *arrived = (unsigned char)(1 + c->phase % 2);
  c->arrived++;
  open_if_complete(w, c);
  simt_unlock_cluster(w);
}

typedef struct Wait {
  Worker *worker;
  unsigned phase;
} Wait;

static int ready(void *context) {
  const Wait *wait = context;
  Cluster *c = cluster_of(wait->worker);
  simt_lock_cluster(wait->worker);
  if (c->phase % 2 == wait->phase) open_if_complete(wait->worker, c);
  int ready = c->phase % 2 != wait->phase;
  simt_unlock_cluster(wait->worker);
  return ready;
}

void simt_cluster_wait(const char *file, int line) {
  Worker *w = simt_worker;
  simt_need_hopper("cluster_wait()", file, line);
  Hopper *h = simt_hopper(w);
  unsigned char *arrived = &h->arrived[simt_current_rank()];
  if (!*arrived)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line, "cluster_wait() without cluster_arrive() before it");
  Wait wait = {w, *arrived - 1u};
  w->own_conditions++;
  simt_wait_until(ready, &wait, "cluster_wait()", file, line);
  w->own_conditions--;
  *arrived = 0;
  TELL_INSPECTOR(sync_point());
  if (h->passed != 1 + wait.phase) TELL_INSPECTOR(block_barrier()); /* the first thread of the block to go on */
  h->passed = 1 + wait.phase;
  TELL_INSPECTOR(passed());
}

/* ---- running clusters ---- */

typedef struct Gang { /* OS threads, one for each block of a cluster */
  Job *job;
  Cluster cluster;
  pthread_barrier_t meet;
  unsigned long long next; /* cluster; all of the job: none is left */
} Gang;

typedef struct Member {
  Gang *gang;
  int rank;
  pthread_t thread;
} Member;

/* Of the rank-th block of a cluster. */
static unsigned long long block_number(const SimtKernel *k, unsigned long long cluster, unsigned rank) {
  uint3 c = k->cluster, grid = {k->grid.x / c.x, k->grid.y / c.y, k->grid.z / c.z};
  unsigned long long x = cluster % grid.x * c.x + rank % c.x, y = cluster / grid.x % grid.y * c.y + rank / c.x % c.y,
                     z = cluster / grid.x / grid.y * c.z + rank / c.x / c.y;
  return (z * k->grid.y + y) * k->grid.x + x;
}

static void begin_cluster(Gang *g) {
  unsigned long long clusters = g->job->blocks / (unsigned)g->cluster.size;
  unsigned long long next = atomic_fetch_add(&g->job->dealt, 1);
  g->next = clusters;
  if (next < clusters && !atomic_load(&g->job->failed)) g->next = simt_in_order(g->job, next, clusters);
  g->cluster.phase = g->cluster.arrived = g->cluster.returned = 0;
}

static void *run_member(void *context) {
  Member *m = context;
  Gang *g = m->gang;
  Cluster *c = &g->cluster;
  unsigned long long clusters = g->job->blocks / (unsigned)c->size;
  Worker *w = simt_worker_open();
  w->cluster = c;
  w->cluster_rank = m->rank;
  for (;;) {
    if (m->rank == 0) begin_cluster(g);
    pthread_barrier_wait(&g->meet);
    if (g->next >= clusters) break;
    simt_run_block(w, g->job, block_number(g->job->kernel, g->next, (unsigned)m->rank));
    pthread_barrier_wait(&g->meet);
  }
  w->cluster = NULL;
  simt_worker_close(w);
  return NULL;
}

static void cluster_failed(const char *what) {
  fprintf(stderr, "=== simt: no OS threads for the blocks of a cluster (%s)\n", what);
  abort();
}

void simt_run_clusters(Job *job) {
  uint3 c = job->kernel->cluster;
  int size = (int)(c.x * c.y * c.z), count = simt_settings.threads / size;
  if ((unsigned long long)count > job->blocks / (unsigned)size) count = (int)(job->blocks / (unsigned)size);
  if (count < 1) count = 1;
  Gang *gangs = calloc((size_t)count, sizeof *gangs);
  Member *members = calloc((size_t)(count * size), sizeof *members);
  if (!gangs || !members) abort();
  for (int i = 0; i < count; i++) {
    gangs[i].job = job;
    gangs[i].cluster.size = size;
    pthread_mutex_init(&gangs[i].cluster.lock, NULL);
    if (pthread_barrier_init(&gangs[i].meet, NULL, (unsigned)size) != 0) cluster_failed("pthread_barrier_init");
  }
  for (int i = 0; i < count * size; i++) {
    members[i] = (Member){.gang = &gangs[i / size], .rank = i % size};
    if (pthread_create(&members[i].thread, NULL, run_member, &members[i]) != 0) cluster_failed("pthread_create");
  }
  for (int i = 0; i < count * size; i++) pthread_join(members[i].thread, NULL);
  for (int i = 0; i < count; i++) {
    pthread_barrier_destroy(&gangs[i].meet);
    pthread_mutex_destroy(&gangs[i].cluster.lock);
  }
  free(members);
  free(gangs);
}
