/* clangd_cuda.h - what an editor's clangd needs before it reads CUDA, with or without CUDA's toolkit:
 *
 *     clang++ -x cuda --cuda-host-only -nocudainc -nocudalib -Xclang -fcuda-allow-variadic-functions
 *             -isystem simt/include -include learn/clangd_cuda.h FILE
 *
 * clang knows kernel<<<...>>>() itself. All other functions are for the host and the device alike, as the emulator
 * takes them. Which of the two may call a function is checked by nvcc and simtcc.
 */
#ifndef LEARN_CLANGD_CUDA_H
#define LEARN_CLANGD_CUDA_H

#ifdef __CUDA__ /* a C file may be given the same options */

#define __CLANG_CUDA_WRAPPERS_NEW /* clang's own <new> expects the toolkit's headers */
/* clang declares some functions of these headers itself, for the host only: so the headers stand above the pragma. */
#include <malloc.h>
#include <stdlib.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define __builtin_cpu_supports(name) 1 /* clang 14 refuses names of processors that g++ knows */
#pragma clang force_cuda_host_device begin

#include "host_defines.h"
#undef __global__
#define __global__ __attribute__((global))
#define SIMT_REWRITTEN 1 /* from here on as simtcc has it */
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_VER_BUILD__ 0

#include "driver_types.h"
#include "vector_types.h"

/* What clang calls for <<<...>>>: the first before CUDA 9.2, the second since. */
extern "C" cudaError_t cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0);
extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0);

#include "cuda_runtime.h"

#endif
#endif /* LEARN_CLANGD_CUDA_H */
