/* mma.cuh - two tensor core instructions without wmma, so that a program knows which lane holds which element.
 *
 * CUDA does not document which lane holds which element of a wmma fragment. To read or change single elements, a kernel
 * must store the fragment first. PTX, the GPU's assembly language, documents the layout of its fragments. Lane l has
 * group l / 4 and member l % 4.
 *
 *   mma_16x8x16           mma.sync: d (16,8) += a (16,16) b (16,8), bfloat16 factors (mma_16x8x16_half: fp16), float32
 *                           sums. Registers per lane:
 *                           a, 4 with two neighbours of a row each: rows group, group + 8 at columns 2 * member, + 1;
 *                              then the same rows, 8 columns further
 *                           b, 2 with two neighbours of a column each: rows 2 * member, + 1 of column group; then 8
 *                              rows further
 *                           d, 4 floats: row group at columns 2 * member, + 1; then row group + 8
 *   mma_load_matrices     ldmatrix: four matrices of 8 x 8 bfloat16 from shared memory to such registers
 *
 * bfloat16 on tensor cores, with wmma or without, needs compute capability 8.0; see mma_refusal(). Code between
 * #ifdef MMA_BFLOAT16 and #endif is left out when compiling for older GPUs. An emulated GPU has no PTX: there the lanes
 * exchange their elements by shuffles. A float32 sum is rounded after each product there; tensor cores truncate.
 */
#ifndef COMMON_MMA_CUH
#define COMMON_MMA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "common/check.h"
#include "common/error.h"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define MMA_BFLOAT16
#endif

#ifdef SIMT_REWRITTEN
#define MMA_INLINE __noinline__ /* each is many shuffles, and a kernel has hundreds of calls */
#else
#define MMA_INLINE __forceinline__
#endif

/* ldmatrix. `row` of lane l is the address of row l % 8 of matrix l / 8, 16 bytes. The lane gets, in x[i], the elements
 * of matrix i in row group at columns 2 * member, + 1; if TRANSPOSED, those of its transpose. */
template <bool TRANSPOSED>
static __device__ MMA_INLINE void mma_load_matrices(uint32_t (&x)[4], const __nv_bfloat16 *row) {
#ifdef SIMT_REWRITTEN
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  for (int i = 0; i < 4; i++) {
    int from_row = TRANSPOSED ? 2 * member : group, from_col = TRANSPOSED ? group : 2 * member;
    unsigned long long address = (unsigned long long)row;
    const __nv_bfloat16 *first = (const __nv_bfloat16 *)__shfl_sync(0xFFFFFFFF, address, 8 * i + from_row);
    const __nv_bfloat16 *second = (const __nv_bfloat16 *)__shfl_sync(0xFFFFFFFF, address, 8 * i + from_row + 1);
    if (TRANSPOSED)
      x[i] = __bfloat16_as_ushort(first[from_col]) | (uint32_t)__bfloat16_as_ushort(second[from_col]) << 16;
    else
      x[i] = *(const uint32_t *)&first[from_col];
  }
#elif defined MMA_BFLOAT16
  uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
  if (TRANSPOSED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address));
#endif
}

static __device__ MMA_INLINE void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#ifdef SIMT_REWRITTEN
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  for (int k = 0; k < 16; k++) {
    int half = k / 8, holder = k % 8 / 2, shift = k % 2 * 16; /* which register, whose, which half of it */
    float left[2], right[2];
    for (int i = 0; i < 2; i++) {
      left[i] = __uint_as_float(__shfl_sync(0xFFFFFFFF, a[i + 2 * half], 4 * group + holder) >> shift << 16);
      right[i] = __uint_as_float(__shfl_sync(0xFFFFFFFF, half ? b1 : b0, 4 * (2 * member + i) + holder) >> shift << 16);
    }
    for (int i = 0; i < 4; i++) d[i] += left[i / 2] * right[i % 2];
  }
#elif defined MMA_BFLOAT16
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* The same with factors of fp16, __half. */
[[maybe_unused]] static __device__ MMA_INLINE void mma_16x8x16_half(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                                    uint32_t b1) {
#ifdef SIMT_REWRITTEN
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  for (int k = 0; k < 16; k++) {
    int half = k / 8, holder = k % 8 / 2, shift = k % 2 * 16; /* which register, whose, which half of it */
    float left[2], right[2];
    for (int i = 0; i < 2; i++) {
      uint32_t x = __shfl_sync(0xFFFFFFFF, a[i + 2 * half], 4 * group + holder) >> shift;
      uint32_t y = __shfl_sync(0xFFFFFFFF, half ? b1 : b0, 4 * (2 * member + i) + holder) >> shift;
      left[i] = __half2float(__ushort_as_half((unsigned short)x));
      right[i] = __half2float(__ushort_as_half((unsigned short)y));
    }
    for (int i = 0; i < 4; i++) d[i] += left[i / 2] * right[i % 2];
  }
#elif defined MMA_BFLOAT16
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* By type. */
[[maybe_unused]] static __device__ __forceinline__ void mma_16x8x16_of(__nv_bfloat16, float (&d)[4],
                                                                       const uint32_t (&a)[4], uint32_t b0,
                                                                       uint32_t b1) {
  mma_16x8x16(d, a, b0, b1);
}
[[maybe_unused]] static __device__ __forceinline__ void mma_16x8x16_of(__half, float (&d)[4], const uint32_t (&a)[4],
                                                                       uint32_t b0, uint32_t b1) {
  mma_16x8x16_half(d, a, b0, b1);
}

/* Why this GPU has no such instructions; NULL if it has them. If there is no GPU at all, the launch reports that. */
static inline const char *mma_refusal(void) {
#ifndef SIMT_REWRITTEN
  int device, major;
  if (cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    return NULL;
  }
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  if (major < 8) return "bfloat16 on tensor cores needs a GPU of compute capability 8.0 or above";
#endif
  return NULL;
}

/* Launchers call this: on an older GPU their kernels would be empty. */
static inline void mma_require(void) {
  if (mma_refusal() != NULL) die("%s", mma_refusal());
}

#endif /* COMMON_MMA_CUH */
