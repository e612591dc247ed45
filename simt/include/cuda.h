/* cuda.h - what programs use of the CUDA driver's interface: its version, devices, memory, streams, events, on top of the
 * runtime. A program's kernels are part of it, so modules, which hold compiled GPU code, are not offered.
 *
 * CUresult has the runtime's numbers (CUDA_ERROR_INVALID_VALUE is 1, as cudaErrorInvalidValue). There is one context, the
 * device's primary one; programs may create, push and pop contexts as they like.
 */
#ifndef __cuda_cuda_h__
#define __cuda_cuda_h__

#include <stddef.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "simt/not_offered.h"

#ifndef CUDA_VERSION
#define CUDA_VERSION 13000
#endif
#define CUDAAPI
#define CU_STREAM_LEGACY ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

typedef enum cudaError_enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_FILE_NOT_FOUND = 301,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_UNKNOWN = 999
} CUresult;

/* The numbers are those of cudaDevAttr... */
typedef enum CUdevice_attribute_enum {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = 14,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
  CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
  CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
  CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
  CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
  CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
} CUdevice_attribute;

#define SIMT_DRIVER static inline CUresult

/* ---- start, errors ---- */

SIMT_DRIVER cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
SIMT_DRIVER cuDriverGetVersion(int *version) { return (CUresult)cudaDriverGetVersion(version); }
SIMT_DRIVER cuGetErrorString(CUresult error, const char **text) {
  *text = cudaGetErrorString((cudaError_t)error);
  return CUDA_SUCCESS;
}
SIMT_DRIVER cuGetErrorName(CUresult error, const char **name) {
  *name = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : cudaGetErrorName((cudaError_t)error);
  return CUDA_SUCCESS;
}

/* ---- devices and contexts ---- */

SIMT_DRIVER cuDeviceGetCount(int *count) { return (CUresult)cudaGetDeviceCount(count); }
SIMT_DRIVER cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  return (CUresult)cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device);
}
SIMT_DRIVER cuDeviceGet(CUdevice *device, int ordinal) {
  int warp_size;
  *device = ordinal;
  return cuDeviceGetAttribute(&warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE, ordinal);
}
SIMT_DRIVER cuDeviceGetName(char *name, int size, CUdevice device) {
  struct cudaDeviceProp properties;
  CUresult error = (CUresult)cudaGetDeviceProperties(&properties, device);
  if (error == CUDA_SUCCESS && size > 0) {
    strncpy(name, properties.name, (size_t)size - 1);
    name[size - 1] = 0;
  }
  return error;
}
SIMT_DRIVER cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  struct cudaDeviceProp properties;
  CUresult error = (CUresult)cudaGetDeviceProperties(&properties, device);
  if (error == CUDA_SUCCESS) *bytes = properties.totalGlobalMem;
  return error;
}
SIMT_DRIVER cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  CUresult error = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  return error != CUDA_SUCCESS ? error
                               : cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

SIMT_DRIVER cuCtxGetCurrent(CUcontext *context) {
  static char primary;
  *context = (CUcontext)(void *)&primary;
  return CUDA_SUCCESS;
}
SIMT_DRIVER cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CUresult error = (CUresult)cudaSetDevice(device);
  return error != CUDA_SUCCESS ? error : cuCtxGetCurrent(context);
}
SIMT_DRIVER cuDevicePrimaryCtxRelease(CUdevice device) { return (CUresult)cudaSetDevice(device); }
SIMT_DRIVER cuCtxSetCurrent(CUcontext context) {
  (void)context;
  return CUDA_SUCCESS;
}
SIMT_DRIVER cuCtxPushCurrent(CUcontext context) { return cuCtxSetCurrent(context); }
SIMT_DRIVER cuCtxPopCurrent(CUcontext *context) { return cuCtxGetCurrent(context); }
SIMT_DRIVER cuCtxDestroy(CUcontext context) { return cuCtxSetCurrent(context); }
SIMT_DRIVER cuCtxGetDevice(CUdevice *device) { return (CUresult)cudaGetDevice(device); }
SIMT_DRIVER cuCtxSynchronize(void) { return (CUresult)cudaDeviceSynchronize(); }
#ifdef __cplusplus /* CUDA 13 added the second parameter */
static inline CUresult cuCtxCreate(CUcontext *context, unsigned, CUdevice device) {
  return cuDevicePrimaryCtxRetain(context, device);
}
static inline CUresult cuCtxCreate(CUcontext *context, const void *, unsigned, CUdevice device) {
  return cuDevicePrimaryCtxRetain(context, device);
}
#else
#define cuCtxCreate(context, ...) cuDevicePrimaryCtxRetain(context, 0)
#endif

/* ---- memory ---- */

SIMT_DRIVER cuMemGetInfo(size_t *free_bytes, size_t *total) { return (CUresult)cudaMemGetInfo(free_bytes, total); }
SIMT_DRIVER cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  void *memory = NULL;
  CUresult error = bytes ? (CUresult)cudaMalloc(&memory, bytes) : CUDA_ERROR_INVALID_VALUE;
  if (error == CUDA_SUCCESS) *pointer = (CUdeviceptr)(size_t)memory;
  return error;
}
SIMT_DRIVER cuMemFree(CUdeviceptr pointer) { return (CUresult)cudaFree((void *)(size_t)pointer); }
SIMT_DRIVER cuMemAllocHost(void **pointer, size_t bytes) { return (CUresult)cudaMallocHost(pointer, bytes); }
SIMT_DRIVER cuMemFreeHost(void *pointer) { return (CUresult)cudaFreeHost(pointer); }
SIMT_DRIVER cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  return (CUresult)cudaMemcpy((void *)(size_t)to, from, bytes, cudaMemcpyHostToDevice);
}
SIMT_DRIVER cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  return (CUresult)cudaMemcpy(to, (const void *)(size_t)from, bytes, cudaMemcpyDeviceToHost);
}
SIMT_DRIVER cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return (CUresult)cudaMemcpy((void *)(size_t)to, (const void *)(size_t)from, bytes, cudaMemcpyDeviceToDevice);
}
SIMT_DRIVER cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return (CUresult)cudaMemcpyAsync((void *)(size_t)to, from, bytes, cudaMemcpyHostToDevice, stream);
}
SIMT_DRIVER cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return (CUresult)cudaMemcpyAsync(to, (const void *)(size_t)from, bytes, cudaMemcpyDeviceToHost, stream);
}
SIMT_DRIVER cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return (CUresult)cudaMemset((void *)(size_t)to, value, count);
}

/* ---- streams and events ---- */

SIMT_DRIVER cuStreamCreate(CUstream *stream, unsigned flags) {
  return (CUresult)cudaStreamCreateWithFlags(stream, flags);
}
SIMT_DRIVER cuStreamSynchronize(CUstream stream) { return (CUresult)cudaStreamSynchronize(stream); }
SIMT_DRIVER cuStreamQuery(CUstream stream) { return (CUresult)cudaStreamQuery(stream); }
SIMT_DRIVER cuStreamDestroy(CUstream stream) { return (CUresult)cudaStreamDestroy(stream); }
SIMT_DRIVER cuEventCreate(CUevent *event, unsigned flags) { return (CUresult)cudaEventCreateWithFlags(event, flags); }
SIMT_DRIVER cuEventRecord(CUevent event, CUstream stream) { return (CUresult)cudaEventRecord(event, stream); }
SIMT_DRIVER cuEventSynchronize(CUevent event) { return (CUresult)cudaEventSynchronize(event); }
SIMT_DRIVER cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
  return (CUresult)cudaEventElapsedTime(ms, begin, end);
}
SIMT_DRIVER cuEventDestroy(CUevent event) { return (CUresult)cudaEventDestroy(event); }

#undef SIMT_DRIVER

/* ---- modules: compiled GPU code, which nothing here can run ---- */

#define SIMT_NO_MODULES(name)                                                                    \
  SIMT_NOT_OFFERED_FUNCTION(CUresult, name,                                                      \
                            "the emulator has no GPU code to load; compile the kernel into the " \
                            "program and launch it with kernel<<<grid, block>>>()");
SIMT_NO_MODULES(cuModuleLoad)
SIMT_NO_MODULES(cuModuleLoadData)
SIMT_NO_MODULES(cuModuleLoadDataEx)
SIMT_NO_MODULES(cuModuleGetFunction)
SIMT_NO_MODULES(cuModuleGetGlobal)
SIMT_NO_MODULES(cuModuleUnload)
SIMT_NO_MODULES(cuLaunchKernel)
SIMT_NO_MODULES(cuLaunchCooperativeKernel)
SIMT_NO_MODULES(cuLinkCreate)
SIMT_NO_MODULES(cuFuncSetAttribute)
#undef SIMT_NO_MODULES

#endif /* __cuda_cuda_h__ */
