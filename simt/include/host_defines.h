/* host_defines.h - CUDA's keywords, as the three kinds of compilation see them.
 *
 * .cu file on its way to the rewriter (SIMT_REWRITTEN): each keyword is a macro that yields itself. It reaches the
 * rewriter unchanged, and `#ifdef __device__` holds, as it does under nvcc.
 * .c or .cpp file that g++ compiles directly: there are no kernels in it, so the keywords vanish.
 * __restrict__, __inline__ and __volatile__ are g++'s own.
 */
#ifndef __HOST_DEFINES_H__
#define __HOST_DEFINES_H__

#ifdef SIMT_REWRITTEN
#define __global__ __global__
#define __device__ __device__
#define __host__ __host__
#define __shared__ __shared__
#define __constant__ __constant__
#define __managed__ __managed__
#define __grid_constant__ __grid_constant__
#define __forceinline__ __forceinline__
#define __noinline__ __noinline__
#define __launch_bounds__(...) __launch_bounds__(__VA_ARGS__)
#define __maxnreg__(...) __maxnreg__(__VA_ARGS__)
#define __cluster_dims__(...) __cluster_dims__(__VA_ARGS__)
#define __block_size__(...) __block_size__(__VA_ARGS__)
#else
#define __global__
#define __device__
#define __host__
#define __shared__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ /* may stand inside __attribute__((..)): nothing is the only text that fits both places */
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __block_size__(...)
#endif

#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __device_builtin__
#define __cudart_builtin__
#define __no_return__ __attribute__((noreturn))
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDART_CB
#define CUDAAPI
#define CUDA_CB

#endif /* __HOST_DEFINES_H__ */
