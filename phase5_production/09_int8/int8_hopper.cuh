/* int8_hopper.cuh - instructions of compute capability 9.0 for products of int8, besides those of hopper.cuh and
 * conv2d_tensor_hopper.cuh.
 *
 *   wgmma_int8<POSITIVE>     sum (64,COLS) = a (64,32) b (32,COLS) + sum, int8 factors along K, those of b uint8 if
 *                            POSITIVE; int32 sums. The instruction has COLS 8, 16, 24, 32, then multiples of 16;
 *                            here are 112, 128, 208, 224, 240, 256
 *   int8_descriptor          of a factor whose rows have 64 or 128 bytes, swizzled
 *   load_matrices_transposed ldmatrix.trans by an address in shared memory
 *   tma_load_multicast_4d    a box to the same place in the shared memory of several blocks of the cluster
 */
#ifndef PHASE5_PRODUCTION_INT8_HOPPER_CUH
#define PHASE5_PRODUCTION_INT8_HOPPER_CUH

#include "common/mma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_tensor_hopper.cuh"

#ifdef SIMT_REWRITTEN
template <bool POSITIVE, int SUMS>
static __device__ __forceinline__ void wgmma_int8(int (&sum)[SUMS], uint64_t a, uint64_t b, int add, SIMT_SITE) {
  if (POSITIVE)
    simt::wgmma_int8_uint8(sum, a, b, add, SIMT_PASS_SITE);
  else
    simt::wgmma_int8(sum, a, b, add, SIMT_PASS_SITE);
}

static __device__ __forceinline__ void load_matrices_transposed(uint32_t (&x)[4], uint32_t row) {
  mma_load_matrices<true>(x, (const __nv_bfloat16 *)simt_shared_pointer(row, 16));
}
static __device__ __forceinline__ void tma_load_multicast_4d(uint32_t to, const CUtensorMap *map, int x, int y, int z,
                                                             int w, uint32_t barrier, uint16_t blocks, SIMT_SITE) {
  const int place[] = {x, y, z, w};
  simt_tensor_load(to, map, 4, place, barrier, blocks, SIMT_PASS_SITE);
}
#elif defined(HOPPER_COMPILED)

static __device__ __forceinline__ void tma_load_multicast_4d(uint32_t to, const CUtensorMap *map, int x, int y, int z,
                                                             int w, uint32_t barrier, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, "
      "%3, %4, %5}], [%6], %7;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "h"(blocks)
      : "memory");
}

static __device__ __forceinline__ void load_matrices_transposed(uint32_t (&x)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(row)
               : "memory");
}

#define WGMMA_INT8_4(i) "+r"(sum[i]), "+r"(sum[i + 1]), "+r"(sum[i + 2]), "+r"(sum[i + 3])
#define WGMMA_INT8_8(i) WGMMA_INT8_4(i), WGMMA_INT8_4(i + 4)
#define WGMMA_INT8_32(i) WGMMA_INT8_8(i), WGMMA_INT8_8(i + 8), WGMMA_INT8_8(i + 16), WGMMA_INT8_8(i + 24)
#define WGMMA_INT8_ASM(COLS, TYPE, REGISTERS, A, B, ADD, ...)                                             \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD                                                \
               ", 0;\n"                                                                                   \
               "wgmma.mma_async.sync.aligned.m64n" #COLS "k32.s32.s8." TYPE " {" REGISTERS "}, " A ", " B \
               ", add;\n}\n"                                                                              \
               : __VA_ARGS__                                                                              \
               : "l"(a), "l"(b), "r"(add))
#define WGMMA_INT8(COLS, REGISTERS, A, B, ADD, ...)                                                         \
  template <bool POSITIVE>                                                                                  \
  static __device__ __forceinline__ void wgmma_int8(int(&sum)[COLS / 2], uint64_t a, uint64_t b, int add) { \
    if (POSITIVE)                                                                                           \
      WGMMA_INT8_ASM(COLS, "u8", REGISTERS, A, B, ADD, __VA_ARGS__);                                        \
    else                                                                                                    \
      WGMMA_INT8_ASM(COLS, "s8", REGISTERS, A, B, ADD, __VA_ARGS__);                                        \
  }

#define WGMMA_REG24_1                                                                                                \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, " \
  "%54, %55"
WGMMA_INT8(112, WGMMA_REG32_0 WGMMA_REG24_1, "%56", "%57", "%58", WGMMA_INT8_32(0), WGMMA_INT8_8(32), WGMMA_INT8_8(40),
           WGMMA_INT8_8(48))
WGMMA_INT8(128, WGMMA_REG32_0 WGMMA_REG32_1, "%64", "%65", "%66", WGMMA_INT8_32(0), WGMMA_INT8_32(32))
WGMMA_INT8(208, WGMMA_REG32_0 WGMMA_REG32_1 WGMMA_REG32_2 WGMMA_REG8_12, "%104", "%105", "%106", WGMMA_INT8_32(0),
           WGMMA_INT8_32(32), WGMMA_INT8_32(64), WGMMA_INT8_8(96))
WGMMA_INT8(224, WGMMA_REG32_0 WGMMA_REG32_1 WGMMA_REG32_2 WGMMA_REG8_12 WGMMA_REG8_13, "%112", "%113", "%114",
           WGMMA_INT8_32(0), WGMMA_INT8_32(32), WGMMA_INT8_32(64), WGMMA_INT8_8(96), WGMMA_INT8_8(104))
WGMMA_INT8(240, WGMMA_REG32_0 WGMMA_REG32_1 WGMMA_REG32_2 WGMMA_REG8_12 WGMMA_REG8_13 WGMMA_REG8_14, "%120", "%121",
           "%122", WGMMA_INT8_32(0), WGMMA_INT8_32(32), WGMMA_INT8_32(64), WGMMA_INT8_8(96), WGMMA_INT8_8(104),
           WGMMA_INT8_8(112))
WGMMA_INT8(256, WGMMA_REG32_0 WGMMA_REG32_1 WGMMA_REG32_2 WGMMA_REG8_12 WGMMA_REG8_13 WGMMA_REG8_14 WGMMA_REG8_15,
           "%128", "%129", "%130", WGMMA_INT8_32(0), WGMMA_INT8_32(32), WGMMA_INT8_32(64), WGMMA_INT8_8(96),
           WGMMA_INT8_8(104), WGMMA_INT8_8(112), WGMMA_INT8_8(120))
#undef WGMMA_INT8
#undef WGMMA_INT8_32
#undef WGMMA_INT8_8
#undef WGMMA_INT8_4
#endif

#ifdef HOPPER_COMPILED
/* Rows of ROW bytes, one behind the other, in the swizzle of that width: eight of them are a group. Bits as
 * wgmma_descriptor() has them; swizzle 1 is 128 bytes, 2 is 64. */
template <int ROW>
static __device__ __forceinline__ uint64_t int8_descriptor(uint32_t address) {
  static_assert(ROW == 64 || ROW == 128, "the swizzles of 64 and of 128 bytes");
  const uint64_t swizzle = ROW == 128 ? 1 : 2, group = 8 * ROW / 16;
  return (uint64_t)((address & 0x3FFFF) >> 4) | group << 32 | swizzle << 62;
}
#endif

#endif /* PHASE5_PRODUCTION_INT8_HOPPER_CUH */
