/* conv2d_tensor_hopper.cuh - instructions of compute capability 9.0 that convolution needs besides those of hopper.cuh,
 * one function for each.
 *
 *   pack_two                   two floats, rounded to 16 bits
 *   store_four, cluster_load   16 bytes to shared memory; 16 bytes from that of another block of the cluster
 *   store_matrices_transposed  stmatrix: four matrices of 8 x 8 from registers, each written as its transpose
 *   wgmma<COLS, ...>           sum (64,COLS) = a (64,16) b (16,COLS) + sum, for several COLS; a and b along K or not
 *   wgmma_floats               the same of (64,8) and (8,COLS), TF32, both along K
 */
#ifndef PHASE3_CNN_CONV2D_TENSOR_HOPPER_CUH
#define PHASE3_CNN_CONV2D_TENSOR_HOPPER_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/hopper.cuh"

#ifdef SIMT_REWRITTEN
using simt::store_matrices_transposed;
using simt::store_two_matrices_transposed;

template <bool HALF, int TRANSPOSED_A, int TRANSPOSED_B, int SUMS>
static __device__ __forceinline__ void wgmma(float (&sum)[SUMS], uint64_t a, uint64_t b, int add, SIMT_SITE) {
  simt::wgmma(sum, a, b, add != 0, HALF, TRANSPOSED_A, TRANSPOSED_B, SIMT_PASS_SITE);
}
template <int SUMS>
static __device__ __forceinline__ void wgmma_floats(float (&sum)[SUMS], uint64_t a, uint64_t b, int add, SIMT_SITE) {
  simt::wgmma_tf32(sum, a, b, add, SIMT_PASS_SITE);
}
static __device__ __forceinline__ void store_four(uint32_t at, uint32_t x) {
  *(uint4 *)simt_shared_pointer(at, 16) = make_uint4(x, x, x, x);
}
static __device__ __forceinline__ float4 cluster_load(uint32_t mine, int rank, SIMT_SITE) {
  return *simt::cluster_pointer<float4>(mine, (uint32_t)rank, SIMT_PASS_SITE);
}
static __device__ __forceinline__ uint32_t pack_two(__nv_bfloat16, float low, float high) {
  __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *(uint32_t *)&pair;
}
static __device__ __forceinline__ uint32_t pack_two(__half, float low, float high) {
  __half2 pair = __floats2half2_rn(low, high);
  return *(uint32_t *)&pair;
}
#elif defined(HOPPER_COMPILED)

/* The same 32 bits four times to shared memory. */
static __device__ __forceinline__ void store_four(uint32_t at, uint32_t x) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(x) : "memory");
}

/* Four neighbouring floats at the same place as `mine` in the shared memory of block `rank` of the cluster. */
static __device__ __forceinline__ float4 cluster_load(uint32_t mine, int rank) {
  float4 x;
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n"
      "}\n"
      : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
      : "r"(mine), "r"(rank)
      : "memory");
  return x;
}

/* Two floats as bfloat16, or as half. */
static __device__ __forceinline__ uint32_t pack_two(__nv_bfloat16, float low, float high) {
  uint32_t x;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
  return x;
}
static __device__ __forceinline__ uint32_t pack_two(__half, float low, float high) {
  uint32_t x;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
  return x;
}

/* Lane l gives the address of row l % 8 of matrix l / 8, 16 bytes, and has two neighbours of a row of each matrix, as
 * mma.sync leaves them. The transposes are written. */
static __device__ __forceinline__ void store_matrices_transposed(uint32_t row, uint32_t x0, uint32_t x1, uint32_t x2,
                                                                 uint32_t x3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(x0), "r"(x1),
               "r"(x2), "r"(x3)
               : "memory");
}
static __device__ __forceinline__ void store_two_matrices_transposed(uint32_t row, uint32_t x0, uint32_t x1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(x0), "r"(x1)
               : "memory");
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Starts sum (64,COLS) = a (64,16) b (16,COLS) + `add` sum, factors bfloat16, or half if HALF; float32 sums. Rows of a
 * and columns of b run along K in shared memory, 128 bytes swizzled; with TRANSPOSED_A or TRANSPOSED_B along M or N. */
#define WGMMA_SUM4(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define WGMMA_SUM8(i) WGMMA_SUM4(i), WGMMA_SUM4(i + 4)
#define WGMMA_SUM32(i) WGMMA_SUM8(i), WGMMA_SUM8(i + 8), WGMMA_SUM8(i + 16), WGMMA_SUM8(i + 24)
#define WGMMA_REG32_0                                                                                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_REG32_1                                                                                                \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, " \
  "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA_REG32_2                                                                                                \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, " \
  "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WGMMA_REG8_12 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define WGMMA_REG4_26 ", %104, %105, %106, %107"
#define WGMMA_REG8_13 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define WGMMA_REG4_28 ", %112, %113, %114, %115"
#define WGMMA_REG8_14 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define WGMMA_REG8_15 ", %120, %121, %122, %123, %124, %125, %126, %127"

#define WGMMA_ASM(COLS, TYPE, REGISTERS, A, B, ADD, TA, TB, ...)                                                \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD                                                      \
               ", 0;\n"                                                                                         \
               "wgmma.mma_async.sync.aligned.m64n" #COLS "k16.f32." TYPE "." TYPE " {" REGISTERS "}, " A ", " B \
               ", add, 1, 1, " TA ", " TB ";\n}\n"                                                              \
               : __VA_ARGS__                                                                                    \
               : "l"(a), "l"(b), "r"(add), "n"(TRANSPOSED_A), "n"(TRANSPOSED_B))

#define WGMMA_FLOATS_ASM(COLS, REGISTERS, A, B, ADD, ...)                                              \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD                                             \
               ", 0;\n"                                                                                \
               "wgmma.mma_async.sync.aligned.m64n" #COLS "k8.f32.tf32.tf32 {" REGISTERS "}, " A ", " B \
               ", add, 1, 1;\n}\n"                                                                     \
               : __VA_ARGS__                                                                           \
               : "l"(a), "l"(b), "r"(add))

#define WGMMA_COLS(COLS, REGISTERS, A, B, ADD, TA, TB, ...)                                                           \
  [[maybe_unused]] static __device__ __forceinline__ void wgmma_floats(float(&sum)[COLS / 2], uint64_t a, uint64_t b, \
                                                                       int add) {                                     \
    WGMMA_FLOATS_ASM(COLS, REGISTERS, A, B, ADD, __VA_ARGS__);                                                        \
  }                                                                                                                   \
  template <bool HALF, int TRANSPOSED_A, int TRANSPOSED_B>                                                            \
  static __device__ __forceinline__ void wgmma(float(&sum)[COLS / 2], uint64_t a, uint64_t b, int add) {              \
    if (HALF)                                                                                                         \
      WGMMA_ASM(COLS, "f16", REGISTERS, A, B, ADD, TA, TB, __VA_ARGS__);                                              \
    else                                                                                                              \
      WGMMA_ASM(COLS, "bf16", REGISTERS, A, B, ADD, TA, TB, __VA_ARGS__);                                             \
  }

WGMMA_COLS(64, WGMMA_REG32_0, "%32", "%33", "%34", "%35", "%36", WGMMA_SUM32(0))
WGMMA_COLS(128, WGMMA_REG32_0 WGMMA_REG32_1, "%64", "%65", "%66", "%67", "%68", WGMMA_SUM32(0), WGMMA_SUM32(32))
WGMMA_COLS(192, WGMMA_REG32_0 WGMMA_REG32_1 WGMMA_REG32_2, "%96", "%97", "%98", "%99", "%100", WGMMA_SUM32(0),
           WGMMA_SUM32(32), WGMMA_SUM32(64))
WGMMA_COLS(208, WGMMA_REG32_0 WGMMA_REG32_1 WGMMA_REG32_2 WGMMA_REG8_12, "%104", "%105", "%106", "%107", "%108",
           WGMMA_SUM32(0), WGMMA_SUM32(32), WGMMA_SUM32(64), WGMMA_SUM8(96))
WGMMA_COLS(216, WGMMA_REG32_0 WGMMA_REG32_1 WGMMA_REG32_2 WGMMA_REG8_12 WGMMA_REG4_26, "%108", "%109", "%110", "%111",
           "%112", WGMMA_SUM32(0), WGMMA_SUM32(32), WGMMA_SUM32(64), WGMMA_SUM8(96), WGMMA_SUM4(104))
WGMMA_COLS(232, WGMMA_REG32_0 WGMMA_REG32_1 WGMMA_REG32_2 WGMMA_REG8_12 WGMMA_REG8_13 WGMMA_REG4_28, "%116", "%117",
           "%118", "%119", "%120", WGMMA_SUM32(0), WGMMA_SUM32(32), WGMMA_SUM32(64), WGMMA_SUM8(96), WGMMA_SUM8(104),
           WGMMA_SUM4(112))
WGMMA_COLS(256, WGMMA_REG32_0 WGMMA_REG32_1 WGMMA_REG32_2 WGMMA_REG8_12 WGMMA_REG8_13 WGMMA_REG8_14 WGMMA_REG8_15,
           "%128", "%129", "%130", "%131", "%132", WGMMA_SUM32(0), WGMMA_SUM32(32), WGMMA_SUM32(64), WGMMA_SUM8(96),
           WGMMA_SUM8(104), WGMMA_SUM8(112), WGMMA_SUM8(120))

#endif /* SIMT_REWRITTEN, HOPPER_COMPILED */

#endif /* PHASE3_CNN_CONV2D_TENSOR_HOPPER_CUH */
