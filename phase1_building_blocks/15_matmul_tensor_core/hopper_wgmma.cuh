/* hopper_wgmma.cuh - the forms of wgmma that hopper.cuh offers, which includes this file.
 *
 *     sum (64,N) = a (64,K) b (K,N) + `add` sum          N = 64, 96, 128, 192 or 256
 *
 * A warpgroup starts a product; a thread has N / 2 of its sums, which are float32. Element i of them is in row
 * thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8 and column i / 4 * 8 + thread % 4 * 2 + i % 2.
 *
 *     wgmma_bfloat16<B_MAJOR, A_MAJOR>(sum, a, b, add)      K = 16, bfloat16 factors; a, b: descriptors
 *     wgmma_bfloat16_registers<B_MAJOR>(sum, a, b, add)     a: four registers of each thread
 *     wgmma_half, wgmma_half_registers                      K = 16, float16 factors
 *     wgmma_tf32, wgmma_tf32_registers                      K = 8, float32 factors, whose last 13 bits are ignored
 *     wgmma_fp8, wgmma_fp8_registers                        K = 32, float8 factors with 4 bits of exponent (e4m3)
 *
 * A factor in shared memory lies with its rows along K, K-major, or, of 16 bits only, along the other dimension: M of
 * a, N of b. Register i of a holds 4 bytes of row thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8, from byte
 * thread % 4 * 4 + i / 2 * 16 of its K on, the first element in the lowest bits: of 16 bits, as mma.sync.m16n8k16 has
 * it. Like the sums, the registers of a belong to the tensor cores until the wait.
 */
#ifndef PHASE1_BUILDING_BLOCKS_HOPPER_WGMMA_CUH
#define PHASE1_BUILDING_BLOCKS_HOPPER_WGMMA_CUH

#include <stdint.h>

/* The sums in the text of the instruction, and as operands of the asm statement. */
#define WGMMA_NAMES_32                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_NAMES_48 \
  WGMMA_NAMES_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WGMMA_NAMES_64                                                               \
  WGMMA_NAMES_32                                                                     \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA_NAMES_96                                                               \
  WGMMA_NAMES_64                                                                     \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WGMMA_NAMES_128                                                                          \
  WGMMA_NAMES_96                                                                                 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WGMMA_8(i)                                                                                        \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), \
      "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define WGMMA_SUMS_32 WGMMA_8(0), WGMMA_8(8), WGMMA_8(16), WGMMA_8(24)
#define WGMMA_SUMS_48 WGMMA_SUMS_32, WGMMA_8(32), WGMMA_8(40)
#define WGMMA_SUMS_64 WGMMA_SUMS_32, WGMMA_8(32), WGMMA_8(40), WGMMA_8(48), WGMMA_8(56)
#define WGMMA_SUMS_96 WGMMA_SUMS_64, WGMMA_8(64), WGMMA_8(72), WGMMA_8(80), WGMMA_8(88)
#define WGMMA_SUMS_128 WGMMA_SUMS_96, WGMMA_8(96), WGMMA_8(104), WGMMA_8(112), WGMMA_8(120)

/* One product. `kind` names the shape and the types, `add` the operand that says whether to add, `factors` what comes
 * behind the sums; the operands follow. */
#define WGMMA_ASM(sums, kind, add, factors, ...)                                                   \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add                                         \
               ", 0;\n"                                                                            \
               "wgmma.mma_async.sync.aligned." kind " {" WGMMA_NAMES_##sums "}, " factors ";\n}\n" \
               : WGMMA_SUMS_##sums                                                                 \
               : __VA_ARGS__)

/* Factors of 16 bits. p0, p1 ...: the operands behind the sums. "add, 1, 1": neither factor is negated. */
#define WGMMA_16_BITS(name, type, n, sums, p0, p1, p2, p3, p4, p5, p6)                                                 \
  template <int B_MAJOR, int A_MAJOR = WGMMA_K_MAJOR>                                                                  \
  static __device__ __forceinline__ void name(float(&sum)[sums], uint64_t a, uint64_t b, int add) {                    \
    WGMMA_ASM(sums, "m64n" n "k16.f32." type "." type, p2, p0 ", " p1 ", add, 1, 1, " p3 ", " p4, "l"(a), "l"(b),      \
              "r"(add), "n"(A_MAJOR), "n"(B_MAJOR));                                                                   \
  }                                                                                                                    \
  template <int B_MAJOR>                                                                                               \
  static __device__ __forceinline__ void name##_registers(float(&sum)[sums], const uint32_t(&a)[4], uint64_t b,        \
                                                          int add) {                                                   \
    WGMMA_ASM(sums, "m64n" n "k16.f32." type "." type, p5, "{" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1, " p6, \
              "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(B_MAJOR));                             \
  }

/* Factors of 8 or 32 bits: both K-major. */
#define WGMMA_K_MAJOR_ONLY(name, kind, n, sums, p0, p1, p2, p3, p4, p5, p6)                                         \
  static __device__ __forceinline__ void name(float(&sum)[sums], uint64_t a, uint64_t b, int add) {                 \
    WGMMA_ASM(sums, "m64n" n kind, p2, p0 ", " p1 ", add, 1, 1", "l"(a), "l"(b), "r"(add));                         \
  }                                                                                                                 \
  static __device__ __forceinline__ void name##_registers(float(&sum)[sums], const uint32_t(&a)[4], uint64_t b,     \
                                                          int add) {                                                \
    WGMMA_ASM(sums, "m64n" n kind, p5, "{" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1", "r"(a[0]), "r"(a[1]), \
              "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                                                              \
  }

#define WGMMA_FORMS(...)                                          \
  WGMMA_16_BITS(wgmma_bfloat16, "bf16", __VA_ARGS__)              \
  WGMMA_16_BITS(wgmma_half, "f16", __VA_ARGS__)                   \
  WGMMA_K_MAJOR_ONLY(wgmma_tf32, "k8.f32.tf32.tf32", __VA_ARGS__) \
  WGMMA_K_MAJOR_ONLY(wgmma_fp8, "k32.f32.e4m3.e4m3", __VA_ARGS__)

WGMMA_FORMS("64", 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
WGMMA_FORMS("96", 48, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
WGMMA_FORMS("128", 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
WGMMA_FORMS("192", 96, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
WGMMA_FORMS("256", 128, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

#undef WGMMA_FORMS
#undef WGMMA_K_MAJOR_ONLY
#undef WGMMA_16_BITS
#undef WGMMA_ASM
#undef WGMMA_SUMS_128
#undef WGMMA_SUMS_96
#undef WGMMA_SUMS_64
#undef WGMMA_SUMS_48
#undef WGMMA_SUMS_32
#undef WGMMA_8
#undef WGMMA_NAMES_128
#undef WGMMA_NAMES_96
#undef WGMMA_NAMES_64
#undef WGMMA_NAMES_48
#undef WGMMA_NAMES_32

#endif /* PHASE1_BUILDING_BLOCKS_HOPPER_WGMMA_CUH */
