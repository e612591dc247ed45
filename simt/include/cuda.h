/* cuda.h - the few functions of the driver API that simple programs use, on top of the runtime.
 *
 * Results are the runtime's: since CUDA 10.1 both have the same numbers, under names of their own. A context is the
 * device itself. Modules (PTX and cubin files) hold code for a GPU, of which there is none here; loading one gives
 * CUDA_ERROR_NOT_SUPPORTED.
 */
#ifndef __cuda_cuda_h__
#define __cuda_cuda_h__

#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#ifndef CUDA_VERSION
#define CUDA_VERSION 13000
#endif

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

/* The name after CUDA_, and the number. */
// clang-format off
#define SIMT_DRIVER_ERRORS(X) \
  X(SUCCESS, 0) X(ERROR_INVALID_VALUE, 1) X(ERROR_OUT_OF_MEMORY, 2) X(ERROR_NOT_INITIALIZED, 3) \
  X(ERROR_DEINITIALIZED, 4) X(ERROR_PROFILER_DISABLED, 5) X(ERROR_PROFILER_NOT_INITIALIZED, 6) \
  X(ERROR_PROFILER_ALREADY_STARTED, 7) X(ERROR_PROFILER_ALREADY_STOPPED, 8) X(ERROR_STUB_LIBRARY, 34) \
  X(ERROR_CALL_REQUIRES_NEWER_DRIVER, 36) X(ERROR_DEVICE_UNAVAILABLE, 46) X(ERROR_NO_DEVICE, 100) \
  X(ERROR_INVALID_DEVICE, 101) X(ERROR_DEVICE_NOT_LICENSED, 102) X(ERROR_INVALID_IMAGE, 200) \
  X(ERROR_INVALID_CONTEXT, 201) X(ERROR_CONTEXT_ALREADY_CURRENT, 202) X(ERROR_MAP_FAILED, 205) \
  X(ERROR_UNMAP_FAILED, 206) X(ERROR_ARRAY_IS_MAPPED, 207) X(ERROR_ALREADY_MAPPED, 208) \
  X(ERROR_NO_BINARY_FOR_GPU, 209) X(ERROR_ALREADY_ACQUIRED, 210) X(ERROR_NOT_MAPPED, 211) \
  X(ERROR_NOT_MAPPED_AS_ARRAY, 212) X(ERROR_NOT_MAPPED_AS_POINTER, 213) X(ERROR_ECC_UNCORRECTABLE, 214) \
  X(ERROR_UNSUPPORTED_LIMIT, 215) X(ERROR_CONTEXT_ALREADY_IN_USE, 216) X(ERROR_PEER_ACCESS_UNSUPPORTED, 217) \
  X(ERROR_INVALID_PTX, 218) X(ERROR_INVALID_GRAPHICS_CONTEXT, 219) X(ERROR_NVLINK_UNCORRECTABLE, 220) \
  X(ERROR_JIT_COMPILER_NOT_FOUND, 221) X(ERROR_UNSUPPORTED_PTX_VERSION, 222) X(ERROR_JIT_COMPILATION_DISABLED, 223) \
  X(ERROR_UNSUPPORTED_EXEC_AFFINITY, 224) X(ERROR_UNSUPPORTED_DEVSIDE_SYNC, 225) X(ERROR_CONTAINED, 226) \
  X(ERROR_INVALID_SOURCE, 300) X(ERROR_FILE_NOT_FOUND, 301) X(ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302) \
  X(ERROR_SHARED_OBJECT_INIT_FAILED, 303) X(ERROR_OPERATING_SYSTEM, 304) X(ERROR_INVALID_HANDLE, 400) \
  X(ERROR_ILLEGAL_STATE, 401) X(ERROR_LOSSY_QUERY, 402) X(ERROR_NOT_FOUND, 500) X(ERROR_NOT_READY, 600) \
  X(ERROR_ILLEGAL_ADDRESS, 700) X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701) X(ERROR_LAUNCH_TIMEOUT, 702) \
  X(ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, 703) X(ERROR_PEER_ACCESS_ALREADY_ENABLED, 704) \
  X(ERROR_PEER_ACCESS_NOT_ENABLED, 705) X(ERROR_PRIMARY_CONTEXT_ACTIVE, 708) X(ERROR_CONTEXT_IS_DESTROYED, 709) \
  X(ERROR_ASSERT, 710) X(ERROR_TOO_MANY_PEERS, 711) X(ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
  X(ERROR_HOST_MEMORY_NOT_REGISTERED, 713) X(ERROR_HARDWARE_STACK_ERROR, 714) X(ERROR_ILLEGAL_INSTRUCTION, 715) \
  X(ERROR_MISALIGNED_ADDRESS, 716) X(ERROR_INVALID_ADDRESS_SPACE, 717) X(ERROR_INVALID_PC, 718) \
  X(ERROR_LAUNCH_FAILED, 719) X(ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720) X(ERROR_TENSOR_MEMORY_LEAK, 721) \
  X(ERROR_NOT_PERMITTED, 800) X(ERROR_NOT_SUPPORTED, 801) X(ERROR_SYSTEM_NOT_READY, 802) \
  X(ERROR_SYSTEM_DRIVER_MISMATCH, 803) X(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) \
  X(ERROR_MPS_CONNECTION_FAILED, 805) X(ERROR_MPS_RPC_FAILURE, 806) X(ERROR_MPS_SERVER_NOT_READY, 807) \
  X(ERROR_MPS_MAX_CLIENTS_REACHED, 808) X(ERROR_MPS_MAX_CONNECTIONS_REACHED, 809) \
  X(ERROR_MPS_CLIENT_TERMINATED, 810) X(ERROR_CDP_NOT_SUPPORTED, 811) X(ERROR_CDP_VERSION_MISMATCH, 812) \
  X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900) X(ERROR_STREAM_CAPTURE_INVALIDATED, 901) \
  X(ERROR_STREAM_CAPTURE_MERGE, 902) X(ERROR_STREAM_CAPTURE_UNMATCHED, 903) X(ERROR_STREAM_CAPTURE_UNJOINED, 904) \
  X(ERROR_STREAM_CAPTURE_ISOLATION, 905) X(ERROR_STREAM_CAPTURE_IMPLICIT, 906) X(ERROR_CAPTURED_EVENT, 907) \
  X(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908) X(ERROR_TIMEOUT, 909) X(ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910) \
  X(ERROR_EXTERNAL_DEVICE, 911) X(ERROR_INVALID_CLUSTER_SIZE, 912) X(ERROR_FUNCTION_NOT_LOADED, 913) \
  X(ERROR_INVALID_RESOURCE_TYPE, 914) X(ERROR_INVALID_RESOURCE_CONFIGURATION, 915) X(ERROR_KEY_ROTATION, 916) \
  X(ERROR_UNKNOWN, 999)
// clang-format on

#define SIMT_ENUMERATOR_CU(name, number) CUDA_##name = number,
typedef enum cudaError_enum { SIMT_DRIVER_ERRORS(SIMT_ENUMERATOR_CU) } CUresult;
#undef SIMT_ENUMERATOR_CU

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
  CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17,
  CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
  CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
  CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
  CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
  CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
  CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
  CU_DEVICE_ATTRIBUTE_TCC_DRIVER = 35,
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
  CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106
} CUdevice_attribute;

#ifdef __cplusplus
extern "C" {
#endif
/* Says on stderr that `call` is not emulated, and why; gives cudaErrorNotSupported. */
cudaError_t simt_refuse(const char *call, const char *reason);
#ifdef __cplusplus
}
#endif

/* ---- devices and contexts ---- */

static inline CUresult cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
static inline CUresult cuDriverGetVersion(int *version) { return (CUresult)cudaDriverGetVersion(version); }
static inline CUresult cuDeviceGetCount(int *count) { return (CUresult)cudaGetDeviceCount(count); }

static inline CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static inline CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  struct cudaDeviceProp properties;
  if (!name || size < 1) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = (CUresult)cudaGetDeviceProperties(&properties, device);
  if (result != CUDA_SUCCESS) return result;
  int i = 0;
  for (; i < size - 1 && properties.name[i]; i++) name[i] = properties.name[i];
  name[i] = 0;
  return CUDA_SUCCESS;
}

static inline CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  return (CUresult)cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device);
}

static inline CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  CUresult result = (CUresult)cudaDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, device);
  return result != CUDA_SUCCESS ? result
                                : (CUresult)cudaDeviceGetAttribute(minor, cudaDevAttrComputeCapabilityMinor, device);
}

static inline CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  size_t unused;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return (CUresult)cudaMemGetInfo(&unused, bytes);
}

/* CUDA 12's form; CUDA 13's has the parameters of the context before the flags. */
static inline CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device) {
  (void)flags;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = (CUcontext)(uintptr_t)1;
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
#ifdef __cplusplus
typedef struct CUctxCreateParams_st CUctxCreateParams;
static inline CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
                                   CUdevice device) {
  return parameters ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate(context, flags, device);
}
#endif

static inline CUresult cuCtxDestroy(CUcontext context) { return (void)context, CUDA_SUCCESS; }
static inline CUresult cuCtxSetCurrent(CUcontext context) { return (void)context, CUDA_SUCCESS; }
static inline CUresult cuCtxPushCurrent(CUcontext context) { return (void)context, CUDA_SUCCESS; }
static inline CUresult cuCtxGetCurrent(CUcontext *context) { return cuCtxCreate(context, 0, 0); }
static inline CUresult cuCtxPopCurrent(CUcontext *context) {
  return context ? cuCtxCreate(context, 0, 0) : CUDA_SUCCESS;
}
static inline CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return cuCtxCreate(context, 0, device);
}
static inline CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return (void)device, CUDA_SUCCESS; }
static inline CUresult cuCtxGetDevice(CUdevice *device) { return (CUresult)cudaGetDevice(device); }
static inline CUresult cuCtxSynchronize(void) { return (CUresult)cudaDeviceSynchronize(); }

/* NULL, and an error, for a number that is none of the driver's. */
static inline CUresult cuGetErrorName(CUresult result, const char **name) {
#define SIMT_CASE(word, number) \
  case number:                  \
    *name = "CUDA_" #word;      \
    return CUDA_SUCCESS;
  switch ((int)result) {
    SIMT_DRIVER_ERRORS(SIMT_CASE)
    default:
      *name = NULL;
      return CUDA_ERROR_INVALID_VALUE;
  }
#undef SIMT_CASE
}

static inline CUresult cuGetErrorString(CUresult result, const char **text) {
  CUresult known = cuGetErrorName(result, text);
  if (known == CUDA_SUCCESS) *text = cudaGetErrorString((cudaError_t)result);
  return known;
}

/* ---- memory ---- */

static inline CUresult cuMemGetInfo(size_t *free_bytes, size_t *total) {
  return (CUresult)cudaMemGetInfo(free_bytes, total);
}

static inline CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  void *memory = 0;
  CUresult result = bytes ? (CUresult)cudaMalloc(&memory, bytes) : CUDA_ERROR_INVALID_VALUE;
  *pointer = (CUdeviceptr)(uintptr_t)memory;
  return result;
}

static inline CUresult cuMemFree(CUdeviceptr pointer) { return (CUresult)cudaFree((void *)(uintptr_t)pointer); }

static inline CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  return (CUresult)cudaMemcpy((void *)(uintptr_t)to, from, bytes, cudaMemcpyHostToDevice);
}

static inline CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  return (CUresult)cudaMemcpy(to, (const void *)(uintptr_t)from, bytes, cudaMemcpyDeviceToHost);
}

static inline CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return (CUresult)cudaMemcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, cudaMemcpyDeviceToDevice);
}

static inline CUresult cuMemsetD8(CUdeviceptr pointer, unsigned char value, size_t count) {
  return (CUresult)cudaMemset((void *)(uintptr_t)pointer, value, count);
}

/* ---- tensor maps, for TMA: compute capability 9.0 ---- */

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

#ifdef __SANITIZE_ADDRESS__ /* its stack has no larger alignment */
#define SIMT_MAP_ALIGNMENT 16
#else
#define SIMT_MAP_ALIGNMENT 64
#endif
typedef struct CUtensorMap_st {
  cuuint64_t opaque[16] __attribute__((aligned(SIMT_MAP_ALIGNMENT)));
} CUtensorMap;

typedef enum CUtensorMapDataType_enum {
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16,
  CU_TENSOR_MAP_DATA_TYPE_UINT32,
  CU_TENSOR_MAP_DATA_TYPE_INT32,
  CU_TENSOR_MAP_DATA_TYPE_UINT64,
  CU_TENSOR_MAP_DATA_TYPE_INT64,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ
} CUtensorMapDataType;

typedef enum CUtensorMapInterleave_enum {
  CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
  CU_TENSOR_MAP_INTERLEAVE_16B,
  CU_TENSOR_MAP_INTERLEAVE_32B
} CUtensorMapInterleave;

typedef enum CUtensorMapSwizzle_enum {
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B,
  CU_TENSOR_MAP_SWIZZLE_64B,
  CU_TENSOR_MAP_SWIZZLE_128B
} CUtensorMapSwizzle;

typedef enum CUtensorMapL2promotion_enum {
  CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B
} CUtensorMapL2promotion;

typedef enum CUtensorMapFloatOOBfill_enum {
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0, /* zeros */
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
} CUtensorMapFloatOOBfill;

#ifdef __cplusplus
extern "C" {
#endif
/* Describes a tensor of `rank` dimensions, the fastest one first; `stride` has the bytes from one element to the next
 * of the dimensions after the first. A wrong argument is explained on stderr. Not offered: interleaved tensors, NaN
 * outside of the tensor, steps between elements, a box narrower than its swizzle. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box,
                                const cuuint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);
#ifdef __cplusplus
}
#endif

/* ---- modules: there is no GPU code to load ---- */

#define SIMT_NO_MODULES(call)                                                                             \
  return (CUresult)simt_refuse(call,                                                                      \
                               "modules of PTX or machine code need a GPU; compile the kernels into the " \
                               "program")

static inline CUresult cuModuleLoad(CUmodule *module, const char *file) {
  (void)module, (void)file;
  SIMT_NO_MODULES("cuModuleLoad");
}

static inline CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  (void)module, (void)image;
  SIMT_NO_MODULES("cuModuleLoadData");
}

static inline CUresult cuModuleUnload(CUmodule module) { return (void)module, CUDA_ERROR_INVALID_HANDLE; }

static inline CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  (void)function, (void)module, (void)name;
  return CUDA_ERROR_INVALID_HANDLE;
}

static inline CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                                      unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared_bytes,
                                      CUstream stream, void **arguments, void **extra) {
  (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared_bytes, (void)stream;
  (void)arguments, (void)extra;
  return CUDA_ERROR_INVALID_HANDLE;
}

#endif /* __cuda_cuda_h__ */
