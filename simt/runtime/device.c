/* device.c - the imaginary GPU: what it is called, what it has, what it is set to.
 *
 *   compute capability 8.0 (9.0 if SIMT_CAPABILITY says so), 16 multiprocessors of 2048 threads and 32 blocks, warps
 *   of 32
 *   16 GiB of memory, 4 MiB of L2 cache, 64 KiB of constant memory
 *   shared memory 48 KiB a block, 163 KiB for kernels that ask (cudaFuncSetAttribute), 164 KiB a multiprocessor; with
 *   capability 9.0 227 and 228 KiB
 *   65536 registers a block and a multiprocessor; clock64() ticks in nanoseconds, hence 1 GHz
 *   unified addressing, managed memory, cooperative launches, memory pools, graphs; no textures; clusters from
 *   capability 9.0 on
 *   one of them, or SIMT_DEVICES (devices.c), which can all be peers
 *
 * It is of the size of a small GPU of the A100's generation, so that occupancy and limits come out as on real ones.
 * Figures of speed that it reports (clock, bus) mean nothing: it is emulated.
 */
#include "host.h"

#include "cuda.h"

#include <sched.h>
#include <unistd.h>

size_t simt_shared_per_multiprocessor(void) { return simt_capability() >= 90 ? 228 * 1024 : 164 * 1024; }
size_t simt_shared_limit(void) { return simt_shared_per_multiprocessor() - SIMT_SHARED_RESERVED; }

static int cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static void describe(struct cudaDeviceProp *p, int device) {
  char which[32] = "";
  int count = cores() < simt_settings.threads ? cores() : simt_settings.threads;
  memset(p, 0, sizeof *p);
  if (simt_device_count() > 1) snprintf(which, sizeof which, " %d of %d", device, simt_device_count());
  snprintf(p->name, sizeof p->name, "SIMT emulated GPU%s (%d SMs, on %d CPU core%s)", which, simt_multiprocessors(),
           count, count == 1 ? "" : "s");
  memcpy(p->uuid.bytes, "SIMT emulated   ", sizeof p->uuid.bytes);
  p->uuid.bytes[15] = (char)('0' + device);
  p->pciBusID = device;
  p->totalGlobalMem = simt_memory_total();
  p->sharedMemPerBlock = SIMT_STATIC_SHARED_LIMIT;
  p->sharedMemPerBlockOptin = simt_shared_limit();
  p->sharedMemPerMultiprocessor = simt_shared_per_multiprocessor();
  p->reservedSharedMemPerBlock = SIMT_SHARED_RESERVED;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->warpSize = SIMT_WARP_SIZE;
  p->memPitch = 0x7fffffff;
  p->maxThreadsPerBlock = SIMT_MAX_BLOCK_THREADS;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 0x7fffffff;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->totalConstMem = 64 * 1024;
  p->major = simt_capability() / 10;
  p->clusterLaunch = simt_capability() >= 90;
  p->textureAlignment = 512;
  p->texturePitchAlignment = 32;
  p->surfaceAlignment = 512;
  p->multiProcessorCount = simt_multiprocessors();
  p->maxThreadsPerMultiProcessor = SIMT_THREADS_PER_MULTIPROCESSOR;
  p->maxBlocksPerMultiProcessor = SIMT_BLOCKS_PER_MULTIPROCESSOR;
  p->canMapHostMemory = p->managedMemory = p->concurrentManagedAccess = p->directManagedMemAccessFromHost = 1;
  p->concurrentKernels = p->asyncEngineCount = p->deviceOverlap = p->unifiedAddressing = 1;
  p->streamPrioritiesSupported = p->globalL1CacheSupported = p->localL1CacheSupported = 1;
  p->hostNativeAtomicSupported = p->computePreemptionSupported = p->canUseHostPointerForRegisteredMem = 1;
  p->cooperativeLaunch = p->hostRegisterSupported = p->hostRegisterReadOnlySupported = p->memoryPoolsSupported = 1;
  p->unifiedFunctionPointers = 1;
  p->memoryBusWidth = 256;
  p->l2CacheSize = 4 << 20;
  p->persistingL2CacheMaxSize = 3 << 20;
  p->accessPolicyMaxWindowSize = 1 << 20;
  p->clockRate = p->memoryClockRate = 1000000; /* kHz */
  p->singleToDoublePrecisionPerfRatio = 2;
}

/* ---- properties ---- */

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
  RETURN_IF_STICKY;
  if (!properties) return simt_error(cudaErrorInvalidValue);
  cudaError_t error = simt_check_device(device);
  if (error == cudaSuccess) describe(properties, device);
  return error;
}

/* ---- attributes ---- */

static int attribute_of(const struct cudaDeviceProp *p, enum cudaDeviceAttr attribute, int *value) {
#define IS(name, number)    \
  case cudaDevAttr##name:   \
    *value = (int)(number); \
    return 1;
  switch (attribute) {
    IS(MaxThreadsPerBlock, p->maxThreadsPerBlock)
    IS(MaxBlockDimX, p->maxThreadsDim[0])
    IS(MaxBlockDimY, p->maxThreadsDim[1])
    IS(MaxBlockDimZ, p->maxThreadsDim[2])
    IS(MaxGridDimX, p->maxGridSize[0])
    IS(MaxGridDimY, p->maxGridSize[1])
    IS(MaxGridDimZ, p->maxGridSize[2])
    IS(MaxSharedMemoryPerBlock, p->sharedMemPerBlock)
    IS(TotalConstantMemory, p->totalConstMem)
    IS(WarpSize, p->warpSize)
    IS(MaxPitch, p->memPitch)
    IS(MaxRegistersPerBlock, p->regsPerBlock)
    IS(ClockRate, p->clockRate)
    IS(TextureAlignment, p->textureAlignment)
    IS(GpuOverlap, p->deviceOverlap)
    IS(MultiProcessorCount, p->multiProcessorCount)
    IS(KernelExecTimeout, p->kernelExecTimeoutEnabled)
    IS(Integrated, p->integrated)
    IS(CanMapHostMemory, p->canMapHostMemory)
    IS(ComputeMode, p->computeMode)
    IS(MaxTexture1DWidth, 0)
    IS(MaxTexture2DWidth, 0)
    IS(MaxTexture2DHeight, 0)
    IS(MaxTexture3DWidth, 0)
    IS(MaxTexture3DHeight, 0)
    IS(MaxTexture3DDepth, 0)
    IS(SurfaceAlignment, p->surfaceAlignment)
    IS(ConcurrentKernels, p->concurrentKernels)
    IS(EccEnabled, p->ECCEnabled)
    IS(PciBusId, p->pciBusID)
    IS(PciDeviceId, p->pciDeviceID)
    IS(PciDomainId, p->pciDomainID)
    IS(TccDriver, p->tccDriver)
    IS(MemoryClockRate, p->memoryClockRate)
    IS(GlobalMemoryBusWidth, p->memoryBusWidth)
    IS(L2CacheSize, p->l2CacheSize)
    IS(MaxThreadsPerMultiProcessor, p->maxThreadsPerMultiProcessor)
    IS(AsyncEngineCount, p->asyncEngineCount)
    IS(UnifiedAddressing, p->unifiedAddressing)
    IS(TexturePitchAlignment, p->texturePitchAlignment)
    IS(ComputeCapabilityMajor, p->major)
    IS(ComputeCapabilityMinor, p->minor)
    IS(StreamPrioritiesSupported, p->streamPrioritiesSupported)
    IS(GlobalL1CacheSupported, p->globalL1CacheSupported)
    IS(LocalL1CacheSupported, p->localL1CacheSupported)
    IS(MaxSharedMemoryPerMultiprocessor, p->sharedMemPerMultiprocessor)
    IS(MaxRegistersPerMultiprocessor, p->regsPerMultiprocessor)
    IS(ManagedMemory, p->managedMemory)
    IS(IsMultiGpuBoard, p->isMultiGpuBoard)
    IS(MultiGpuBoardGroupID, p->multiGpuBoardGroupID)
    IS(HostNativeAtomicSupported, p->hostNativeAtomicSupported)
    IS(SingleToDoublePrecisionPerfRatio, p->singleToDoublePrecisionPerfRatio)
    IS(PageableMemoryAccess, p->pageableMemoryAccess)
    IS(ConcurrentManagedAccess, p->concurrentManagedAccess)
    IS(ComputePreemptionSupported, p->computePreemptionSupported)
    IS(CanUseHostPointerForRegisteredMem, p->canUseHostPointerForRegisteredMem)
    IS(CooperativeLaunch, p->cooperativeLaunch)
    IS(MaxSharedMemoryPerBlockOptin, p->sharedMemPerBlockOptin)
    IS(CanFlushRemoteWrites, 0)
    IS(HostRegisterSupported, p->hostRegisterSupported)
    IS(PageableMemoryAccessUsesHostPageTables, p->pageableMemoryAccessUsesHostPageTables)
    IS(DirectManagedMemAccessFromHost, p->directManagedMemAccessFromHost)
    IS(MaxBlocksPerMultiprocessor, p->maxBlocksPerMultiProcessor)
    IS(MaxPersistingL2CacheSize, p->persistingL2CacheMaxSize)
    IS(MaxAccessPolicyWindowSize, p->accessPolicyMaxWindowSize)
    IS(ReservedSharedMemoryPerBlock, p->reservedSharedMemPerBlock)
    IS(SparseCudaArraySupported, p->sparseCudaArraySupported)
    IS(HostRegisterReadOnlySupported, p->hostRegisterReadOnlySupported)
    IS(MemoryPoolsSupported, p->memoryPoolsSupported)
    IS(GPUDirectRDMASupported, p->gpuDirectRDMASupported)
    IS(ClusterLaunch, p->clusterLaunch)
    default:
      return 0;
  }
#undef IS
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  struct cudaDeviceProp properties;
  RETURN_IF_STICKY;
  if (!value) return simt_error(cudaErrorInvalidValue);
  cudaError_t error = simt_check_device(device);
  if (error != cudaSuccess) return error;
  describe(&properties, device);
  return simt_error(attribute_of(&properties, attribute, value) ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- settings: kept, and without effect ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const size_t first_limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0}; /* in the order of enum cudaLimit */
enum { LIMITS = sizeof first_limits / sizeof first_limits[0] };
static struct {
  int begun;
  size_t limits[LIMITS];
  enum cudaFuncCache cache;
  enum cudaSharedMemConfig banks;
  unsigned flags;
} settings;

static void settings_begin(void) {
  pthread_mutex_lock(&lock);
  if (settings.begun) return;
  memset(&settings, 0, sizeof settings);
  memcpy(settings.limits, first_limits, sizeof first_limits);
  settings.banks = cudaSharedMemBankSizeFourByte;
  settings.flags = cudaDeviceMapHost;
  settings.begun = 1;
}

static cudaError_t settings_end(int valid, cudaError_t otherwise) {
  pthread_mutex_unlock(&lock);
  return simt_error(valid ? cudaSuccess : otherwise);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  RETURN_IF_STICKY;
  settings_begin();
  if ((unsigned)limit < LIMITS) settings.limits[limit] = value;
  return settings_end((unsigned)limit < LIMITS, cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
  RETURN_IF_STICKY;
  if (!value) return simt_error(cudaErrorInvalidValue);
  settings_begin();
  if ((unsigned)limit < LIMITS) *value = settings.limits[limit];
  return settings_end((unsigned)limit < LIMITS, cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) {
  RETURN_IF_STICKY;
  settings_begin();
  int valid = (unsigned)config <= cudaFuncCachePreferEqual;
  if (valid) settings.cache = config;
  return settings_end(valid, cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config) {
  RETURN_IF_STICKY;
  settings_begin();
  if (config) *config = settings.cache;
  return settings_end(config != NULL, cudaErrorInvalidValue);
}

/* No GPU since compute capability 5.0 has other banks than those of 4 bytes. */
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) {
  RETURN_IF_STICKY;
  return simt_error((unsigned)config <= cudaSharedMemBankSizeEightByte ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config) {
  RETURN_IF_STICKY;
  settings_begin();
  if (config) *config = settings.banks;
  return settings_end(config != NULL, cudaErrorInvalidValue);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  RETURN_IF_STICKY;
  settings_begin();
  int valid = (flags & ~(unsigned)cudaDeviceMask) == 0;
  if (valid) settings.flags = flags | cudaDeviceMapHost;
  return settings_end(valid, cudaErrorInvalidValue);
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags) {
  RETURN_IF_STICKY;
  settings_begin();
  if (flags) *flags = settings.flags;
  return settings_end(flags != NULL, cudaErrorInvalidValue);
}

cudaError_t cudaCtxResetPersistingL2Cache(void) { return simt_check_device(0); }

/* ---- versions, the end ---- */

cudaError_t cudaDriverGetVersion(int *version) {
  if (!version) return simt_error(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }

/* Also out of a sticky error. Streams and events stay valid; memory does not. */
cudaError_t cudaDeviceReset(void) {
  SimtSite site = SIMT_CALLER;
  simt_streams_reset();
  simt_memory_reset(simt_current_device(), site);
  simt_peers_reset(simt_current_device());
  simt_kernels_reset();
  settings_begin();
  settings.begun = 0;
  settings_end(1, cudaSuccess);
  simt_error_reset();
  return cudaSuccess;
}

cudaError_t cudaThreadExit(void) { return cudaDeviceReset(); }

cudaError_t cudaProfilerStart(void) { return simt_check_device(0); }
cudaError_t cudaProfilerStop(void) { return simt_check_device(0); }

/* ---- not emulated ---- */

cudaError_t simt_refuse(const char *call, const char *reason) {
  SimtSite site = SIMT_CALLER;
  simt_report_call("not supported", call, site, "%s", reason);
  return simt_error(cudaErrorNotSupported);
}

/* Between processes. */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer) {
  (void)handle, (void)pointer;
  return simt_error(cudaErrorNotSupported);
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  (void)pointer, (void)handle, (void)flags;
  return simt_error(cudaErrorNotSupported);
}

cudaError_t cudaIpcCloseMemHandle(void *pointer) {
  (void)pointer;
  return simt_error(cudaErrorNotSupported);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event) {
  (void)handle, (void)event;
  return simt_error(cudaErrorNotSupported);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle) {
  (void)event, (void)handle;
  return simt_error(cudaErrorNotSupported);
}
