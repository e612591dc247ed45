/* simd.h - sixteen floats at a time on any CPU, without intrinsics.
 *
 * `vfloat` is GCC's vector extension: + and * work on all sixteen lanes, a scalar is broadcast. CPU_CLONES compiles a
 * function three times (AVX-512, AVX2 with FMA, the baseline) and the program picks at start what the processor has, so
 * one binary is fast everywhere. Everything such a function calls must be inlined into it: mark that SIMD_INLINE.
 */
#ifndef COMMON_SIMD_H
#define COMMON_SIMD_H

#include <stddef.h>

enum { SIMD_WIDTH = 16 };

typedef float vfloat __attribute__((vector_size(4 * SIMD_WIDTH), aligned(4), may_alias));

#define SIMD_INLINE static inline __attribute__((always_inline))

/* The resolver that picks a clone runs before a sanitizer is set up, so sanitized builds use the baseline. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(NN_NO_CLONES)
#define CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPU_CLONES
#endif

SIMD_INLINE float vfloat_sum(vfloat v) {
  float lanes[SIMD_WIDTH];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (int width = SIMD_WIDTH / 2; width > 0; width /= 2)
    for (int i = 0; i < width; i++) lanes[i] += lanes[i + width];
  return lanes[0];
}

#endif /* COMMON_SIMD_H */
