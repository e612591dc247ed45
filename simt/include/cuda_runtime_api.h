/* cuda_runtime_api.h - the functions of the CUDA runtime, for C and C++. cuda_runtime.h adds C++'s templates.
 *
 * Calls in C++ know where they stand: those that allocate, copy or queue are wrappers whose last two parameters are the
 * caller's file and line, for diagnoses. Functions that programs pass around (cudaFree as a deleter) are plain ones.
 * Both the CUDA 12 and the CUDA 13 form of a function are accepted where C++'s overloading allows it.
 */
#ifndef __CUDA_RUNTIME_API_H__
#define __CUDA_RUNTIME_API_H__

#include <stddef.h>

#include "driver_types.h"
#include "host_defines.h"
#include "library_types.h"

#define CUDART_VERSION 13000
#ifndef CUDA_VERSION
#define CUDA_VERSION 13000
#endif
#define __CUDART_API_VERSION CUDART_VERSION

#ifdef __cplusplus
#define SIMT_DEFAULT(value) = value
extern "C" {
#else
#define SIMT_DEFAULT(value)
#endif

/* ---- errors ---- */

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
cudaError_t cudaSetValidDevices(int *devices, int count);
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int device, int peer);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config);
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaGetDeviceFlags(unsigned int *flags);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaCtxResetPersistingL2Cache(void);
cudaError_t cudaThreadSynchronize(void);
cudaError_t cudaThreadExit(void);

/* ---- memory ---- */

cudaError_t cudaFree(void *pointer);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags);
cudaError_t cudaHostGetFlags(unsigned int *flags, void *host);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);
cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol);
cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol);

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, size_t width,
                            size_t height SIMT_DEFAULT(0), unsigned int flags SIMT_DEFAULT(0));
cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                              unsigned int flags SIMT_DEFAULT(0));
cudaError_t cudaFreeArray(cudaArray_t array);

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t count);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);

/* CUDA 13's forms; CUDA 12's, with a device's number for the location, are C++ overloads below. */
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream SIMT_DEFAULT(0));
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location);
cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, enum cudaMemRangeAttribute attribute, const void *pointer,
                                     size_t bytes);

/* ---- streams ---- */

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags SIMT_DEFAULT(0));
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue *value);
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue *value);
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t bytes SIMT_DEFAULT(0),
                                     unsigned int flags SIMT_DEFAULT(cudaMemAttachSingle));

/* ---- events ---- */

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                     size_t count, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaMemsetParams *parameters);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                 size_t count, const struct cudaHostNodeParams *parameters);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                  size_t count);
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                       size_t count, cudaGraph_t child);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags SIMT_DEFAULT(0));
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags SIMT_DEFAULT(0));
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream);

/* ---- kernels ---- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config);
cudaError_t cudaFuncSetSharedMemConfig(const void *function, enum cudaSharedMemConfig config);
cudaError_t cudaFuncGetName(const char **name, const void *function);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                          size_t dynamic_shared);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size,
                                                                   size_t dynamic_shared, unsigned int flags);
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const cudaLaunchConfig_t *config);
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int block_size);
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream);
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                        size_t shared_bytes, cudaStream_t stream);
/* Of the driver's functions: cuTensorMapEncodeTiled(). */
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned int version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments);

/* Between processes: refused. */
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer);
cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags);
cudaError_t cudaIpcCloseMemHandle(void *pointer);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle);

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

/* nvcc --default-stream per-thread: NULL is then each host thread's own stream. */
void simt_default_stream_per_thread(void);
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
__attribute__((constructor)) static void simt_choose_default_stream(void) { simt_default_stream_per_thread(); }
#endif

/* How the header tells where a call stands: remembered for the next call of this thread. */
void simt_at(const char *file, int line);
/* For cudaLaunchKernel(), which has no more than an address: how to start the kernel there. */
typedef cudaError_t SimtLauncher(const void *function, const char *name, dim3 grid, dim3 block, void **arguments,
                                 size_t shared_bytes, cudaStream_t stream, int cooperative, const char *file, int line);
void simt_register_kernel(const void *function, SimtLauncher *launcher);
/* "scale", of a kernel's address, or "kernel" where the program has no symbols. */
const char *simt_kernel_name(const void *function);
/* A __device__ or __constant__ variable. */
typedef struct SimtSymbol {
  const void *address;
  size_t bytes; /* 0: not known (an array declared without its length) */
  int is_const; /* the rewriter leaves constants where the compiler puts them; they may be read only */
} SimtSymbol;
cudaError_t simt_symbol_address(void **pointer, size_t *bytes, const SimtSymbol *symbol);
cudaError_t simt_copy_to_symbol(const SimtSymbol *symbol, const void *from, size_t bytes, size_t offset,
                                enum cudaMemcpyKind kind, cudaStream_t stream, int async);
cudaError_t simt_copy_from_symbol(void *to, const SimtSymbol *symbol, size_t bytes, size_t offset,
                                  enum cudaMemcpyKind kind, cudaStream_t stream, int async);
int simt_is_symbol(const void *address);
/* A variable that the linker's sections do not have; `keyword` is its __device__, __constant__ or __managed__. */
void simt_register_symbol(const void *address, size_t bytes, const char *keyword);
/* The block size with which most threads are resident; `shared` gives the dynamic shared memory of a block size. */
cudaError_t simt_best_block_size(int *grid, int *block, const void *function,
                                 size_t (*shared)(void *context, int block), void *context, int limit);

#ifdef __cplusplus
}
#endif

/* ---- calls that know where they stand ---- */

/* In C the function itself. In C++ that one is tucked away in a namespace, and `name` is a wrapper. */
#ifdef __cplusplus
#define SIMT_LIST(...) __VA_ARGS__
#define SIMT_LOCATED(name, parameters, arguments)                                                                   \
  namespace simt_api {                                                                                              \
  extern "C" cudaError_t name(SIMT_LIST parameters);                                                                \
  }                                                                                                                 \
  inline cudaError_t name(SIMT_LIST parameters, const char *file = __builtin_FILE(), int line = __builtin_LINE()) { \
    simt_at(file, line);                                                                                            \
    return simt_api::name arguments;                                                                                \
  }
#else
#define SIMT_LOCATED(name, parameters, arguments) cudaError_t name parameters;
#endif

/* clang-format off */
SIMT_LOCATED(cudaMalloc, (void **pointer, size_t bytes), (pointer, bytes))
SIMT_LOCATED(cudaMallocHost, (void **pointer, size_t bytes), (pointer, bytes))
SIMT_LOCATED(cudaHostAlloc, (void **pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
SIMT_LOCATED(cudaMallocManaged, (void **pointer, size_t bytes, unsigned int flags SIMT_DEFAULT(cudaMemAttachGlobal)),
             (pointer, bytes, flags))
SIMT_LOCATED(cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height),
             (pointer, pitch, width, height))
SIMT_LOCATED(cudaMalloc3D, (struct cudaPitchedPtr * pointer, struct cudaExtent extent), (pointer, extent))
SIMT_LOCATED(cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream), (pointer, bytes, stream))
SIMT_LOCATED(cudaMallocFromPoolAsync, (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
             (pointer, bytes, pool, stream))
SIMT_LOCATED(cudaHostRegister, (void *pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))

SIMT_LOCATED(cudaMemcpy, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind), (to, from, bytes, kind))
SIMT_LOCATED(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
             cudaStream_t stream SIMT_DEFAULT(0)), (to, from, bytes, kind, stream))
SIMT_LOCATED(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes),
             (to, to_device, from, from_device, bytes))
SIMT_LOCATED(cudaMemcpyPeerAsync, (void *to, int to_device, const void *from, int from_device, size_t bytes,
             cudaStream_t stream SIMT_DEFAULT(0)), (to, to_device, from, from_device, bytes, stream))
SIMT_LOCATED(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
             enum cudaMemcpyKind kind), (to, to_pitch, from, from_pitch, width, height, kind))
SIMT_LOCATED(cudaMemcpy2DAsync, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
             size_t height, enum cudaMemcpyKind kind, cudaStream_t stream SIMT_DEFAULT(0)),
             (to, to_pitch, from, from_pitch, width, height, kind, stream))
SIMT_LOCATED(cudaMemcpy3D, (const struct cudaMemcpy3DParms *copy), (copy))
SIMT_LOCATED(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *copy, cudaStream_t stream SIMT_DEFAULT(0)),
             (copy, stream))
SIMT_LOCATED(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t bytes, size_t offset SIMT_DEFAULT(0),
             enum cudaMemcpyKind kind SIMT_DEFAULT(cudaMemcpyHostToDevice)), (symbol, from, bytes, offset, kind))
SIMT_LOCATED(cudaMemcpyToSymbolAsync, (const void *symbol, const void *from, size_t bytes, size_t offset,
             enum cudaMemcpyKind kind, cudaStream_t stream SIMT_DEFAULT(0)),
             (symbol, from, bytes, offset, kind, stream))
SIMT_LOCATED(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t bytes, size_t offset SIMT_DEFAULT(0),
             enum cudaMemcpyKind kind SIMT_DEFAULT(cudaMemcpyDeviceToHost)), (to, symbol, bytes, offset, kind))
SIMT_LOCATED(cudaMemcpyFromSymbolAsync, (void *to, const void *symbol, size_t bytes, size_t offset,
             enum cudaMemcpyKind kind, cudaStream_t stream SIMT_DEFAULT(0)), (to, symbol, bytes, offset, kind, stream))

SIMT_LOCATED(cudaMemset, (void *pointer, int value, size_t bytes), (pointer, value, bytes))
SIMT_LOCATED(cudaMemsetAsync, (void *pointer, int value, size_t bytes, cudaStream_t stream SIMT_DEFAULT(0)),
             (pointer, value, bytes, stream))
SIMT_LOCATED(cudaMemset2D, (void *pointer, size_t pitch, int value, size_t width, size_t height),
             (pointer, pitch, value, width, height))
SIMT_LOCATED(cudaMemset2DAsync, (void *pointer, size_t pitch, int value, size_t width, size_t height,
             cudaStream_t stream SIMT_DEFAULT(0)), (pointer, pitch, value, width, height, stream))
SIMT_LOCATED(cudaMemset3D, (struct cudaPitchedPtr pointer, int value, struct cudaExtent extent),
             (pointer, value, extent))
SIMT_LOCATED(cudaMemset3DAsync, (struct cudaPitchedPtr pointer, int value, struct cudaExtent extent,
             cudaStream_t stream SIMT_DEFAULT(0)), (pointer, value, extent, stream))

SIMT_LOCATED(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream SIMT_DEFAULT(0)), (event, stream))
SIMT_LOCATED(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream SIMT_DEFAULT(0),
             unsigned int flags SIMT_DEFAULT(0)), (event, stream, flags))
SIMT_LOCATED(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t start, cudaEvent_t stop),
             (milliseconds, start, stop))
SIMT_LOCATED(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data), (stream, function, data))
SIMT_LOCATED(cudaStreamAddCallback, (cudaStream_t stream, cudaStreamCallback_t callback, void *data,
             unsigned int flags), (stream, callback, data, flags))
SIMT_LOCATED(cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream), (executable, stream))
/* clang-format on */

#ifdef __cplusplus

/* ---- the forms of CUDA 11 and 12 ---- */

inline struct cudaMemLocation simt_location(int device) {
  struct cudaMemLocation location;
  location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  location.id = device == cudaCpuDeviceId ? 0 : device;
  return location;
}

inline cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device, cudaStream_t stream = 0) {
  return cudaMemPrefetchAsync(pointer, bytes, simt_location(device), 0u, stream);
}

inline cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, int device) {
  return cudaMemAdvise(pointer, bytes, advice, simt_location(device));
}

inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, cudaGraphNode_t *error_node,
                                        char *log, size_t size) {
  if (error_node) *error_node = 0;
  if (log && size) log[0] = 0;
  return cudaGraphInstantiate(executable, graph, 0ull);
}

inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t *error_node,
                                       enum cudaGraphExecUpdateResult *result) {
  cudaGraphExecUpdateResultInfo info;
  cudaError_t error = cudaGraphExecUpdate(executable, graph, &info);
  if (error_node) *error_node = info.errorNode;
  if (result) *result = info.result;
  return error;
}

#endif

/* ---- small structures ---- */

static inline struct cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  struct cudaExtent extent;
  extent.width = width;
  extent.height = height;
  extent.depth = depth;
  return extent;
}

static inline struct cudaPos make_cudaPos(size_t x, size_t y, size_t z) {
  struct cudaPos position;
  position.x = x;
  position.y = y;
  position.z = z;
  return position;
}

static inline struct cudaPitchedPtr make_cudaPitchedPtr(void *pointer, size_t pitch, size_t xsize, size_t ysize) {
  struct cudaPitchedPtr pitched;
  pitched.ptr = pointer;
  pitched.pitch = pitch;
  pitched.xsize = xsize;
  pitched.ysize = ysize;
  return pitched;
}

static inline struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                                 enum cudaChannelFormatKind kind) {
  struct cudaChannelFormatDesc format;
  format.x = x;
  format.y = y;
  format.z = z;
  format.w = w;
  format.f = kind;
  return format;
}

#endif /* __CUDA_RUNTIME_API_H__ */
