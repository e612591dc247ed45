/* hopper.h - what the files that emulate instructions of compute capability 9.0 know of each other.
 *
 *   shared_address.c  32-bit addresses of shared memory, also of another block of the cluster
 *   tensor_map.c      tensor maps, and the copy of a box
 *   mbarrier.c        mbarriers, and the copies whose bytes they count
 *   bulk_store.c      copies from shared memory; barriers by number
 *   wgmma.c           products of a warpgroup
 *   cluster.c         clusters: blocks that run at the same time, barriers among them
 *
 * What is asynchronous on a GPU may happen there at any time between its start and the wait for it. Here it happens as
 * late as possible, SIMT_ORDER=reverse: as early, random: now this, now that. Until the wait the destination holds NaN.
 */
#ifndef SIMT_RUNTIME_HOPPER_H
#define SIMT_RUNTIME_HOPPER_H

#include "runtime.h"

#include "api.h"
#include "hooks.h"
#include "simt/hopper.h"
#include "simt/inspector.h"

/* ---- cluster.c ---- */

typedef struct Cluster {
  pthread_mutex_t lock; /* of all mbarriers of its blocks */
  int size;
  unsigned phase, arrived, returned; /* of the cluster's barrier; threads */
  Worker *worker[SIMT_CLUSTER_MOST]; /* by rank; NULL: the block has not begun, or has ended */
} Cluster;

/* Ends the launch where the imaginary GPU is too old for the running thread's instruction. */
void simt_need_hopper(const char *what, const char *file, int line);

static inline void simt_lock_cluster(const Worker *w) {
  if (w->cluster) pthread_mutex_lock(&w->cluster->lock);
}
static inline void simt_unlock_cluster(const Worker *w) {
  if (w->cluster) pthread_mutex_unlock(&w->cluster->lock);
}

/* ---- shared_address.c ---- */

enum { SIMT_RANK_SHIFT = 24 }; /* address >> this: 0, the own block, or 1 + a rank in the cluster */

/* The worker that runs the block that an address belongs to; NULL: there is no such block, or it does not run. */
Worker *simt_owner_of(uint32_t address);
/* `bytes` in the shared memory of `owner`; NULL where they are not all in its dynamic or one static variable. */
void *simt_shared_bytes(const Worker *owner, uint32_t address, size_t bytes);
/* The same offset in another block; NULL for what is not in shared memory. */
void *simt_shared_of(const Worker *owner, const void *own);

/* ---- tensor_map.c ---- */

enum { TENSOR_RANKS = 5 };

/* What CUtensorMap holds. */
typedef struct TensorMap {
  char *address;
  uint64_t magic;
  uint64_t stride[TENSOR_RANKS - 1]; /* bytes, of dimensions 1.. */
  uint32_t size[TENSOR_RANKS];       /* elements, less one: 2^32 are possible */
  uint16_t box[TENSOR_RANKS];
  uint8_t rank, element, swizzle; /* bytes of an element; width of the swizzle in bytes, or 0 */
} TensorMap;

int simt_tensor_map_valid(const TensorMap *map);
size_t simt_tensor_box_bytes(const TensorMap *map);
/* Of the box at `place`, what lies inside of the tensor. */
size_t simt_tensor_inside_bytes(const TensorMap *map, const int *place);
/* Bytes from `address` to the end of the last element. */
size_t simt_tensor_extent(const TensorMap *map);
/* Fills the box at `place` in shared memory: address `at`, which is at `to` in memory. */
void simt_tensor_copy(const TensorMap *map, const int *place, char *to, uint32_t at);
/* Tells the inspector what a copy of the box reads. */
void simt_tensor_tell_reads(const TensorMap *map, const int *place, const void *pc);
/* The way back: what lies inside of the tensor is written. */
void simt_tensor_write(const TensorMap *map, const int *place, const char *from, uint32_t at);
/* Where the byte at an address goes: the swizzle exchanges chunks of 16 bytes. */
static inline uint32_t simt_swizzle(uint32_t address, unsigned width) {
  return width ? address ^ ((address >> 3) & (width - 16)) : address;
}

/* ---- mbarrier.c ---- */

typedef struct Mbarrier Mbarrier;
typedef struct BulkSite { /* where something asynchronous began */
  const char *file;
  int line;
} BulkSite;

/* Where a copy began that is on its way to some of the bytes of the own block. */
int simt_copy_under_way(const Worker *w, const void *shared, size_t bytes, BulkSite *site);

/* ---- wgmma.c ---- */

/* Where a product began that reads some of the bytes of the own block, and for which nobody has waited. */
int simt_product_reads(const Worker *w, const char *to, size_t bytes, BulkSite *site);

/* What the CUtensorMap at `pointer` holds; ends the launch if it is none of this rank, or of memory that is none. */
void simt_read_map(const void *pointer, int rank, TensorMap *map, const char *what, const char *file, int line);

/* ---- a block ---- */

typedef struct Warpgroup Warpgroup;

enum { SIMT_NAMED_BARRIERS = 16 };
typedef struct NamedBarrier {
  int threads, arrived;
  unsigned phase;
} NamedBarrier;

typedef struct Hopper { /* of a worker */
  int used;             /* something in it is not as a new block has it */
  Mbarrier **barriers;
  int barrier_count, barrier_made;
  int copies;                                    /* under way to this block */
  unsigned char arrived[SIMT_MAX_BLOCK_THREADS]; /* at the cluster's barrier: 1 + the phase's parity; 0: not */
  unsigned passed;                               /* 1 + the parity of the phase whose end was seen last */
  int returned;                                  /* threads that the cluster knows to have returned */
  Cluster alone;                                 /* of a block that is in no cluster; its lock is not used */
  Warpgroup *group[SIMT_MAX_BLOCK_THREADS / 128];
  struct BulkStore *stores, **last_store;        /* under way from this block */
  unsigned store_groups[SIMT_MAX_BLOCK_THREADS]; /* of each thread, so far */
  NamedBarrier named[SIMT_NAMED_BARRIERS];
  const char *named_words; /* with the inspector: a word for each of them */
} Hopper;

/* The worker's own, made when it is first asked for. */
Hopper *simt_hopper(Worker *w);
/* Of the threads that wait: what their mbarriers lack, on stderr. */
void simt_describe_mbarriers(Worker *w);
void simt_describe_products(Worker *w);

void simt_mbarriers_begin(Hopper *h);
void simt_mbarriers_end(Worker *w);
void simt_bulk_stores_begin(Hopper *h);
void simt_bulk_stores_end(Worker *w);
void simt_wgmma_begin(Hopper *h);
void simt_wgmma_end(Worker *w);

/* 1: what is asynchronous happens at once, if it can. */
int simt_happens_early(Worker *w);

#endif /* SIMT_RUNTIME_HOPPER_H */
