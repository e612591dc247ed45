/* cuda_runtime.h - what every CUDA program includes: the runtime's functions, and in C++ the templates and device code.
 *
 * nvcc includes this file by itself; so does simtcc.
 */
#ifndef __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_H__

#if defined(SIMT_INSPECT) && defined(__CUDACC__)
#include "simt/inspected.h"
#endif

#include "cuda_runtime_api.h"
#include "driver_types.h"
#include "vector_functions.h"
#include "vector_types.h"

#ifdef __cplusplus

#include <tuple>
#include <type_traits>

#include "simt/core.h"
#include "simt/launch.h"
/* Device code. */
#if __has_include("simt/math.h")
#include "simt/math.h"
#endif
#if __has_include("simt/intrinsics.h")
#include "simt/intrinsics.h"
#endif
#if __has_include("simt/atomics.h")
#include "simt/atomics.h"
#include "simt/nv_atomics.h"
#endif
#if __has_include("simt/warp.h")
#include "simt/warp.h"
#endif
#if __has_include("simt/absent.h")
#include "simt/absent.h"
#endif

/* nvcc's programs get these without asking. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- allocation: a T ** is as good as a void ** ---- */

template <class T>
cudaError_t cudaMalloc(T **pointer, size_t bytes, SIMT_SITE) {
  return cudaMalloc((void **)(void *)pointer, bytes, SIMT_PASS_SITE);
}

template <class T>
cudaError_t cudaMallocHost(T **pointer, size_t bytes, unsigned int flags = 0, SIMT_SITE) {
  if (flags == 0) return cudaMallocHost((void **)(void *)pointer, bytes, SIMT_PASS_SITE);
  return cudaHostAlloc((void **)(void *)pointer, bytes, flags, SIMT_PASS_SITE);
}

template <class T>
cudaError_t cudaHostAlloc(T **pointer, size_t bytes, unsigned int flags, SIMT_SITE) {
  return cudaHostAlloc((void **)(void *)pointer, bytes, flags, SIMT_PASS_SITE);
}

template <class T>
cudaError_t cudaMallocManaged(T **pointer, size_t bytes, unsigned int flags = cudaMemAttachGlobal, SIMT_SITE) {
  return cudaMallocManaged((void **)(void *)pointer, bytes, flags, SIMT_PASS_SITE);
}

template <class T>
cudaError_t cudaMallocPitch(T **pointer, size_t *pitch, size_t width, size_t height, SIMT_SITE) {
  return cudaMallocPitch((void **)(void *)pointer, pitch, width, height, SIMT_PASS_SITE);
}

template <class T>
cudaError_t cudaMallocAsync(T **pointer, size_t bytes, cudaStream_t stream, SIMT_SITE) {
  return cudaMallocAsync((void **)(void *)pointer, bytes, stream, SIMT_PASS_SITE);
}

template <class T>
cudaError_t cudaMallocAsync(T **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream, SIMT_SITE) {
  return cudaMallocFromPoolAsync((void **)(void *)pointer, bytes, pool, stream, SIMT_PASS_SITE);
}

template <class T>
cudaError_t cudaMallocFromPoolAsync(T **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream, SIMT_SITE) {
  return cudaMallocFromPoolAsync((void **)(void *)pointer, bytes, pool, stream, SIMT_PASS_SITE);
}

template <class T>
cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned int flags) {
  return cudaHostGetDevicePointer((void **)(void *)device, host, flags);
}

template <class T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  constexpr int bits = (int)sizeof(T) * 8;
  return cudaCreateChannelDesc(bits, 0, 0, 0,
                               std::is_floating_point_v<T> ? cudaChannelFormatKindFloat
                               : std::is_unsigned_v<T>     ? cudaChannelFormatKindUnsigned
                                                           : cudaChannelFormatKindSigned);
}

inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags) {
  return cudaEventCreateWithFlags(event, flags);
}

/* ---- symbols: __device__ and __constant__ variables, by their name ---- */

namespace simt {

/* 0 for an array of unknown length: `extern __constant__ float weights[];` */
template <class T>
struct symbol_size {
  static constexpr size_t bytes = sizeof(T);
};
template <class T>
struct symbol_size<T[]> {
  static constexpr size_t bytes = 0;
};

/* A pointer that is no symbol itself may hold the address of one. */
template <class T>
SimtSymbol symbol(T &variable) {
  const void *address = (const void *)__builtin_addressof(variable);
  if constexpr (std::is_pointer_v<T>) {
    if (!simt_is_symbol(address)) return {(const void *)variable, 0, 0};
  }
  return {address, symbol_size<std::remove_cv_t<T>>::bytes, std::is_const_v<T>};
}

/* template <class T> __constant__ T table[4]: the rewriter makes table<float> into symbol_of<table<float>, 'c'>(). A
 * static variable of a device function is registered without more. */
template <auto &Variable, char Keyword>
struct RegisteredSymbol {
  static inline const bool done = (simt_register_symbol((const void *)&Variable, sizeof Variable,
                                                        Keyword == 'c'   ? "__constant__"
                                                        : Keyword == 'm' ? "__managed__"
                                                                         : "__device__"),
                                   true);
};
template <auto &Variable, char Keyword>
inline __attribute__((always_inline)) auto &symbol_of() {
  (void)&RegisteredSymbol<Variable, Keyword>::done;
  return Variable;
}

}  // namespace simt

template <class T>
cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice, SIMT_SITE) {
  const SimtSymbol s = simt::symbol(symbol);
  simt_at(file, line);
  return simt_copy_to_symbol(&s, from, bytes, offset, kind, 0, 0);
}

template <class T>
cudaError_t cudaMemcpyToSymbolAsync(T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                    cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t stream = 0, SIMT_SITE) {
  const SimtSymbol s = simt::symbol(symbol);
  simt_at(file, line);
  return simt_copy_to_symbol(&s, from, bytes, offset, kind, stream, 1);
}

template <class T>
cudaError_t cudaMemcpyFromSymbol(void *to, T &symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost, SIMT_SITE) {
  const SimtSymbol s = simt::symbol(symbol);
  simt_at(file, line);
  return simt_copy_from_symbol(to, &s, bytes, offset, kind, 0, 0);
}

template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void *to, T &symbol, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t stream = 0,
                                      SIMT_SITE) {
  const SimtSymbol s = simt::symbol(symbol);
  simt_at(file, line);
  return simt_copy_from_symbol(to, &s, bytes, offset, kind, stream, 1);
}

template <class T>
cudaError_t cudaGetSymbolAddress(void **pointer, T &symbol) {
  const SimtSymbol s = simt::symbol(symbol);
  return simt_symbol_address(pointer, nullptr, &s);
}

template <class T>
cudaError_t cudaGetSymbolSize(size_t *size, T &symbol) {
  const SimtSymbol s = simt::symbol(symbol);
  void *address;
  return simt_symbol_address(&address, size, &s);
}

/* ---- kernels by address ---- */

namespace simt {

/* The address of a kernel. As its parameters are known here, it can be launched later from the bare address. */
template <class... Parameters>
const void *kernel_address(void (*kernel)(Parameters...)) {
  simt_register_kernel((const void *)kernel,
                       [](const void *function, const char *name, dim3 grid, dim3 block, void **arguments,
                          size_t shared_bytes, cudaStream_t stream, int cooperative, const char *file, int line) {
                         return launch_pointer((void (*)(Parameters...))function, name, grid, block, arguments,
                                               shared_bytes, stream, cooperative, file, line);
                       });
  return (const void *)kernel;
}
inline const void *kernel_address(const void *kernel) { return kernel; }

/* What the rewriter defines for each kernel that is no template, so that its address alone is enough from the start. */
struct KernelEntry {
  template <class Kernel>
  KernelEntry(Kernel *kernel) {
    kernel_address(kernel);
  }
};

/* cudaLaunchKernelEx() has as many parameters as the kernel; the site hides in the conversion of the first. */
struct LocatedConfig {
  const cudaLaunchConfig_t *config;
  const char *file;
  int line;
  LocatedConfig(const cudaLaunchConfig_t *config, SIMT_SITE) : config(config), file(file), line(line) {}
};

}  // namespace simt

template <class T>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, T *kernel) {
  return cudaFuncGetAttributes(attributes, simt::kernel_address(kernel));
}

template <class T>
cudaError_t cudaFuncSetAttribute(T *kernel, cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(simt::kernel_address(kernel), attribute, value);
}

template <class T>
cudaError_t cudaFuncSetCacheConfig(T *kernel, cudaFuncCache config) {
  return cudaFuncSetCacheConfig(simt::kernel_address(kernel), config);
}

template <class T>
cudaError_t cudaFuncSetSharedMemConfig(T *kernel, cudaSharedMemConfig config) {
  return cudaFuncSetSharedMemConfig(simt::kernel_address(kernel), config);
}

template <class T>
cudaError_t cudaLaunchKernel(T *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes = 0,
                             cudaStream_t stream = 0, SIMT_SITE) {
  simt_at(file, line);
  return cudaLaunchKernel(simt::kernel_address(kernel), grid, block, arguments, shared_bytes, stream);
}

template <class T>
cudaError_t cudaLaunchCooperativeKernel(T *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes = 0,
                                        cudaStream_t stream = 0, SIMT_SITE) {
  simt_at(file, line);
  return cudaLaunchCooperativeKernel(simt::kernel_address(kernel), grid, block, arguments, shared_bytes, stream);
}

template <class T>
cudaError_t cudaLaunchKernelExC(simt::LocatedConfig config, T *kernel, void **arguments) {
  simt_at(config.file, config.line);
  return cudaLaunchKernelExC(config.config, simt::kernel_address(kernel), arguments);
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(simt::LocatedConfig config, void (*kernel)(Parameters...), Arguments &&...arguments) {
  std::tuple<std::remove_cv_t<Parameters>...> copies{(Arguments &&) arguments...};
  return std::apply(
      [&](auto &...copy) {
        void *addresses[] = {(void *)&copy..., nullptr};
        return cudaLaunchKernelExC(config, kernel, addresses);
      },
      copies);
}

/* ---- occupancy ---- */

template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T kernel, int block_size,
                                                          size_t dynamic_shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, simt::kernel_address(kernel), block_size,
                                                       dynamic_shared);
}

template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, T kernel, int block_size,
                                                                   size_t dynamic_shared, unsigned int flags) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, simt::kernel_address(kernel), block_size,
                                                                dynamic_shared, flags);
}

template <class T>
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, T *kernel, const cudaLaunchConfig_t *config) {
  return cudaOccupancyMaxActiveClusters(clusters, simt::kernel_address(kernel), config);
}

template <class T>
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, T *kernel, int blocks, int block_size) {
  return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, simt::kernel_address(kernel), blocks, block_size);
}

template <class T, class Shared>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, T kernel, Shared shared,
                                                           int limit = 0) {
  return simt_best_block_size(
      grid, block, simt::kernel_address(kernel),
      [](void *context, int threads) { return (size_t)(*(Shared *)context)(threads); }, (void *)&shared, limit);
}

template <class T, class Shared>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(int *grid, int *block, T kernel, Shared shared,
                                                                    int limit = 0, unsigned int flags = 0) {
  (void)flags;
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, kernel, shared, limit);
}

template <class T>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, T kernel, size_t dynamic_shared = 0,
                                               int limit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      grid, block, kernel, [=](int) { return dynamic_shared; }, limit);
}

template <class T>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, T kernel, size_t dynamic_shared = 0,
                                                        int limit = 0, unsigned int flags = 0) {
  (void)flags;
  return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, dynamic_shared, limit);
}

#endif /* __cplusplus */

#endif /* __CUDA_RUNTIME_H__ */
