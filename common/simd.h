/* simd.h - one binary that uses the vectors of the processor it meets.
 *
 * CPU_CLONES compiles a function three times (AVX-512, AVX2 with FMA, the baseline) and the program picks at start what
 * the processor has. Everything such a function calls must be inlined into it: mark that SIMD_INLINE.
 *
 * Vectors themselves are GCC's extension: `typedef float V4 __attribute__((vector_size(16)))` adds and multiplies lane
 * by lane, and a scalar is broadcast. A vector must be no wider than the clone's registers: GCC 12 copies a wider one
 * through memory, twenty times slower, which is why conv2d.cuh has a version for each width.
 */
#ifndef COMMON_SIMD_H
#define COMMON_SIMD_H

enum { SIMD_WIDTH = 16 }; /* floats in the widest vector, AVX-512's */

#define SIMD_INLINE static inline __attribute__((always_inline))

/* The resolver that picks a clone runs before a sanitizer is set up, so sanitized builds use the baseline. With -march,
 * as simtcc compiles, the program is for one processor: GCC inlines nothing of that into a clone for a lesser one. */
#if defined(__x86_64__) && !defined(__AVX__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(NN_NO_CLONES)
#define CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPU_CLONES
#endif

#endif /* COMMON_SIMD_H */
