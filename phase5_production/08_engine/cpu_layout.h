/* cpu_layout.h - how the CPU's kernels of inference store activations: blocks of 16 channels, with a border of zeros.
 *
 *     x (N, blocks, H + 2 border, W + 2 border, 16)     blocks = ceil(C / 16)
 *
 * The 16 channels of a pixel lie side by side. They are one vector of AVX-512, two of AVX2, four of SSE: a kernel
 * loads, pools and stores whole vectors whatever the width of an image is. The pixels of a row follow each other,
 * and so do the rows of a block, so a window of an image is read in nearly the order in which it lies in memory.
 * (N,H,W,C) has the channels of a pixel together as well, but there neighbouring pixels are C floats apart: for the
 * usual powers of two they fall into the same few sets of the cache.
 *
 * The border is the padding of the convolution that reads the array: no kernel asks whether a tap lies in the image.
 * Who writes an array writes zeros there. Channels beyond C are zeros, too, and stay zeros: the weights for them are.
 *
 * Features (N,F), the input of a linear layer, are an array with H = W = 1 and without border: (N, F rounded up to 16).
 */
#ifndef PHASE5_PRODUCTION_CPU_LAYOUT_H
#define PHASE5_PRODUCTION_CPU_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CPU_BLOCK = 16 }; /* channels */

/* Of one image: the number of images is an argument of each call. */
typedef struct CpuShape {
  int c, h, w, border;
} CpuShape;

static inline CpuShape cpu_shape(int c, int h, int w, int border) {
  CpuShape shape = {c, h, w, border};
  return shape;
}

static inline int cpu_blocks(CpuShape s) { return (s.c + CPU_BLOCK - 1) / CPU_BLOCK; }
static inline size_t cpu_row(CpuShape s) { return (size_t)(s.w + 2 * s.border) * CPU_BLOCK; }      /* elements */
static inline size_t cpu_plane(CpuShape s) { return (size_t)(s.h + 2 * s.border) * cpu_row(s); }   /* elements */
static inline size_t cpu_count(CpuShape s) { return (size_t)cpu_blocks(s) * cpu_plane(s); }        /* elements */
static inline size_t cpu_first(CpuShape s) { return (size_t)s.border * (cpu_row(s) + CPU_BLOCK); } /* pixel (0,0) */

/* x (N,C,H,W) -> y in blocks, and back. threads: at most so many work. */
void cpu_pack(float *y, const float *x, CpuShape shape, int n, int threads);
void cpu_unpack(float *x, const float *y, CpuShape shape, int n, int threads);

/* Zeros in the border of n images. */
void cpu_border_clear(float *y, CpuShape shape, int n);

/* "avx512", "avx2" or "portable": the kernels that this process runs. NULL: the best that the processor has; another
 * name: that one, for tests and the benchmark. Returns NULL where the processor lacks it. */
const char *cpu_kernels(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* PHASE5_PRODUCTION_CPU_LAYOUT_H */
