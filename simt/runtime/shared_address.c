/* shared_address.c - addresses of shared memory in 32 bits, as the instructions of compute capability 9.0 take them.
 *
 *     bits 0 .. 17   the place: from 1024 on dynamic shared memory, behind it the static variables
 *     bits 24 ..     0: of the own block; else 1 + the rank of a block of the cluster
 *
 * A descriptor of wgmma has room for 18 bits, which is what a GPU has, too. The static variables of all kernels are
 * thread-local and lie together, far more than that. So a variable gets its address when it is first asked for in a
 * launch; that is the same in all blocks.
 */
#include "hopper.h"

#include "host.h"

enum { DYNAMIC_AT = 1024, VARIABLES = 64, END = 1 << 18 };

typedef struct Placed {
  ptrdiff_t from_above; /* of simt_above_shared, as in every OS thread */
  size_t bytes;
  uint32_t at;
} Placed;

static struct {
  pthread_mutex_t lock;
  int count;
  uint32_t end;
  Placed variable[VARIABLES];
} placed = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Static variables get their addresses anew. */
void simt_shared_launch(const SimtKernel *kernel) {
  placed.count = 0;
  placed.end = DYNAMIC_AT + ((uint32_t)kernel->shared_bytes + 1023) / 1024 * 1024;
}

/* Rounded so that an alignment in memory, up to 1024, is one of the address. */
static const Placed *place(ptrdiff_t from_above, const char *file, int line) {
  ptrdiff_t low;
  size_t bytes;
  for (int i = 0; i < placed.count; i++)
    if ((size_t)(from_above - placed.variable[i].from_above) < placed.variable[i].bytes) return &placed.variable[i];
  if (!simt_static_variable(from_above, &low, &bytes)) return NULL;
  uintptr_t in_memory = (uintptr_t)(simt_above_shared + low);
  uint32_t at = placed.end + (uint32_t)((in_memory - placed.end) & 1023);
  if (placed.count == VARIABLES || at + bytes > END) {
    pthread_mutex_unlock(&placed.lock);
    simt_kernel_fault(cudaErrorLaunchOutOfResources, file, line,
                      "the kernel takes addresses of more shared memory than the %d KB that a block has", END / 1024);
  }
  placed.end = at + (uint32_t)bytes;
  placed.variable[placed.count] = (Placed){low, bytes, at};
  return &placed.variable[placed.count++];
}

uint32_t simt_shared_address(const void *pointer, const char *file, int line) {
  simt_need_hopper("the address of shared memory in 32 bits", file, line);
  const Worker *w = simt_worker;
  const char *p = pointer;
  if (p >= w->dynamic_shared && p < w->dynamic_shared + w->dynamic_shared_size)
    return DYNAMIC_AT + (uint32_t)(p - w->dynamic_shared);
  pthread_mutex_lock(&placed.lock);
  const Placed *v = place(p - simt_above_shared, file, line);
  uint32_t address = v ? v->at + (uint32_t)(p - simt_above_shared - v->from_above) : 0;
  pthread_mutex_unlock(&placed.lock);
  if (!v)
    simt_kernel_fault(cudaErrorInvalidAddressSpace, file, line,
                      "shared_address(%p): that is not in the shared memory of this block; expected a __shared__ "
                      "variable or extern __shared__ memory",
                      pointer);
  return address;
}

Worker *simt_owner_of(uint32_t address) {
  unsigned rank = address >> SIMT_RANK_SHIFT;
  const Cluster *c = simt_worker->cluster;
  if (!rank) return simt_worker;
  if (!c) return rank == 1 ? simt_worker : NULL;
  return rank <= (unsigned)c->size ? c->worker[rank - 1] : NULL;
}

void *simt_shared_bytes(const Worker *owner, uint32_t address, size_t bytes) {
  uint32_t at = address & ((1u << SIMT_RANK_SHIFT) - 1);
  size_t dynamic = owner->job->kernel->shared_bytes;
  void *found = NULL;
  if (at >= DYNAMIC_AT && at + bytes <= DYNAMIC_AT + dynamic) return owner->dynamic_shared + (at - DYNAMIC_AT);
  pthread_mutex_lock(&placed.lock);
  for (int i = 0; i < placed.count && !found; i++) {
    const Placed *v = &placed.variable[i];
    if (at >= v->at && at + bytes <= v->at + v->bytes) found = owner->static_shared + v->from_above + (at - v->at);
  }
  pthread_mutex_unlock(&placed.lock);
  return found;
}

void *simt_shared_pointer(uint32_t address, size_t bytes) {
  const Worker *owner = simt_capability() >= 90 && simt_worker ? simt_owner_of(address) : NULL;
  if (!owner || owner != simt_worker || address % bytes) return NULL;
  return simt_shared_bytes(owner, address, bytes);
}

void *simt_shared_of(const Worker *owner, const void *own) {
  const Worker *w = simt_worker;
  const char *p = own;
  ptrdiff_t low;
  size_t bytes;
  if (p >= w->dynamic_shared && p < w->dynamic_shared + w->dynamic_shared_size)
    return owner->dynamic_shared + (p - w->dynamic_shared);
  if (!simt_static_variable(p - simt_above_shared, &low, &bytes)) return NULL;
  return owner->static_shared + (p - simt_above_shared);
}
