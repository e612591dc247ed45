/* pool.c - stream-ordered allocation: cudaMallocAsync(), cudaFreeAsync() and the pools they draw on.
 *
 * The memory is there at once; it goes back when the stream gets to the cudaFreeAsync(). A pool only counts.
 */
#include "host.h"

#define POOL_MAGIC 0x9001u

struct CUmemPoolHandle_st {
  unsigned magic;
  int device;
  int reuse[4]; /* cudaMemPoolReuse...: kept, without effect */
  uint64_t threshold, used, most_used;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define FIRST_POOL(n)                                         \
  {                                                           \
    .magic = POOL_MAGIC, .device = n, .reuse = { 0, 1, 1, 1 } \
  }
static struct CUmemPoolHandle_st first_pools[SIMT_DEVICES_MOST] = {FIRST_POOL(0), FIRST_POOL(1), FIRST_POOL(2),
                                                                   FIRST_POOL(3), FIRST_POOL(4), FIRST_POOL(5),
                                                                   FIRST_POOL(6), FIRST_POOL(7)};
static cudaMemPool_t present[SIMT_DEVICES_MOST]; /* NULL: the first */

static cudaMemPool_t pool_of(int device) { return present[device] ? present[device] : &first_pools[device]; }

static int is_pool(cudaMemPool_t pool) { return pool && pool->magic == POOL_MAGIC; }

static void count(cudaMemPool_t pool, size_t bytes, int sign) {
  pthread_mutex_lock(&lock);
  pool->used = sign > 0 ? pool->used + bytes : pool->used - bytes;
  if (pool->used > pool->most_used) pool->most_used = pool->used;
  pthread_mutex_unlock(&lock);
}

static cudaError_t allocate(void **pointer, size_t bytes, cudaMemPool_t pool, const char *call, SimtSite site) {
  RETURN_IF_STICKY;
  if (!pointer || !is_pool(pool)) return simt_error(cudaErrorInvalidValue);
  if (!bytes) {
    *pointer = NULL;
    return cudaSuccess;
  }
  cudaError_t error = simt_allocate(pointer, bytes, SIMT_DEVICE_MEMORY, pool->device, call, site);
  if (error != cudaSuccess) return simt_error(error);
  simt_memory_set_pool(*pointer, pool);
  count(pool, bytes, 1);
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  SimtSite site = SIMT_CALLER;
  unsigned flags;
  cudaError_t error = cudaStreamGetFlags(stream, &flags); /* is it one? */
  return error != cudaSuccess ? error : allocate(pointer, bytes, pool, "cudaMallocFromPoolAsync", site);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream) {
  SimtSite site = SIMT_CALLER;
  unsigned flags;
  cudaError_t error = cudaStreamGetFlags(stream, &flags);
  return error != cudaSuccess ? error
                              : allocate(pointer, bytes, pool_of(simt_stream_device(stream)), "cudaMallocAsync", site);
}

typedef struct Release {
  void *pointer;
  SimtSite site;
} Release;

static void release(void *context) {
  const Release *r = context;
  cudaMemPool_t pool;
  size_t bytes;
  if (simt_memory_pool(r->pointer, &pool, &bytes) == 0 && pool) count(pool, bytes, -1);
  simt_deallocate(r->pointer, "cudaFreeAsync", r->site);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
  Release r = {pointer, SIMT_CALLER};
  cudaMemPool_t pool;
  size_t bytes;
  RETURN_IF_STICKY;
  if (!pointer) return cudaSuccess;
  if (simt_memory_pool(pointer, &pool, &bytes) != 0)
    return simt_error(simt_deallocate(pointer, "cudaFreeAsync", r.site)); /* says why not */
  if (simt_stream_captures(stream)) return cudaSuccess;                   /* a graph keeps what it uses */
  return simt_error(simt_stream_submit(stream, release, &r, sizeof r, "cudaFreeAsync", r.site.file, r.site.line));
}

/* ---- pools ---- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  RETURN_IF_STICKY;
  if (!pool) return simt_error(cudaErrorInvalidValue);
  cudaError_t error = simt_check_device(device);
  if (error == cudaSuccess) *pool = &first_pools[device];
  return error;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
  RETURN_IF_STICKY;
  if (!pool) return simt_error(cudaErrorInvalidValue);
  cudaError_t error = simt_check_device(device);
  if (error == cudaSuccess) *pool = pool_of(device);
  return error;
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  RETURN_IF_STICKY;
  if (simt_check_device(device) != cudaSuccess) return simt_error(cudaErrorInvalidDevice);
  if (!is_pool(pool) || pool->device != device) return simt_error(cudaErrorInvalidValue);
  present[device] = pool;
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties) {
  RETURN_IF_STICKY;
  if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned ||
      properties->location.type != cudaMemLocationTypeDevice)
    return simt_error(cudaErrorInvalidValue);
  if (simt_check_device(properties->location.id) != cudaSuccess) return simt_error(cudaErrorInvalidDevice);
  *pool = malloc(sizeof **pool);
  if (!*pool) return simt_error(cudaErrorMemoryAllocation);
  **pool = (struct CUmemPoolHandle_st){.magic = POOL_MAGIC, .device = properties->location.id, .reuse = {0, 1, 1, 1}};
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  RETURN_IF_STICKY;
  if (!is_pool(pool) || pool == &first_pools[pool->device]) return simt_error(cudaErrorInvalidValue);
  if (present[pool->device] == pool) present[pool->device] = NULL;
  pool->magic = 0; /* kept: allocations may still point to it */
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
  int valid = 1;
  RETURN_IF_STICKY;
  if (!is_pool(pool) || !value) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  if (attribute >= cudaMemPoolReuseFollowEventDependencies && attribute <= cudaMemPoolReuseAllowInternalDependencies)
    pool->reuse[attribute] = *(int *)value;
  else if (attribute == cudaMemPoolAttrReleaseThreshold)
    pool->threshold = *(uint64_t *)value;
  else if ((attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh) &&
           *(uint64_t *)value == 0)
    pool->most_used = pool->used; /* a high water mark can only be reset */
  else
    valid = 0;
  pthread_mutex_unlock(&lock);
  return simt_error(valid ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
  int valid = 1;
  RETURN_IF_STICKY;
  if (!is_pool(pool) || !value) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  if (attribute >= cudaMemPoolReuseFollowEventDependencies && attribute <= cudaMemPoolReuseAllowInternalDependencies)
    *(int *)value = pool->reuse[attribute];
  else if (attribute == cudaMemPoolAttrReleaseThreshold)
    *(uint64_t *)value = pool->threshold;
  else if (attribute == cudaMemPoolAttrReservedMemCurrent || attribute == cudaMemPoolAttrUsedMemCurrent)
    *(uint64_t *)value = pool->used;
  else if (attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh)
    *(uint64_t *)value = pool->most_used;
  else
    valid = 0;
  pthread_mutex_unlock(&lock);
  return simt_error(valid ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t count_of) {
  RETURN_IF_STICKY;
  return simt_error(is_pool(pool) && (access || !count_of) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  (void)keep;
  RETURN_IF_STICKY;
  return simt_error(is_pool(pool) ? cudaSuccess : cudaErrorInvalidValue);
}
