/* cpu_layout.c - packing into blocks of channels, and which processor's kernels run (cpu_layout.h). */
#include "phase5_production/08_engine/cpu_layout.h"

#include <stdbool.h>
#include <string.h>

#include "phase5_production/08_engine/cpu_conv2d_tile.h"

/* ---------------------------------------------------------------------------------------- the processor's kernels */

static const CpuTileKernels *chosen; /* by cpu_kernels(), before others read it */

static bool cpu_can(const char *name) {
#if defined(__x86_64__)
  if (strcmp(name, "avx512") == 0) return __builtin_cpu_supports("x86-64-v4");
  if (strcmp(name, "avx2") == 0) return __builtin_cpu_supports("x86-64-v3");
#endif
  return strcmp(name, "portable") == 0;
}

static const CpuTileKernels *cpu_named(const char *name) {
#if defined(__x86_64__)
  if (strcmp(name, "avx512") == 0) return &cpu_tile_avx512;
  if (strcmp(name, "avx2") == 0) return &cpu_tile_avx2;
#endif
  (void)name;
  return &cpu_tile_portable;
}

const char *cpu_kernels(const char *name) {
  static const char *const best_first[] = {"avx512", "avx2", "portable"};
  for (size_t i = 0; name == NULL && i < sizeof best_first / sizeof *best_first; i++)
    if (cpu_can(best_first[i])) name = best_first[i];
  if (!cpu_can(name)) return NULL;
  const CpuTileKernels *kernels = cpu_named(name);
  __atomic_store_n(&chosen, kernels, __ATOMIC_RELEASE);
  return kernels->name;
}

const CpuTileKernels *cpu_tile_kernels(void) {
  if (__atomic_load_n(&chosen, __ATOMIC_ACQUIRE) == NULL) cpu_kernels(NULL);
  return __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
}

/* --------------------------------------------------------------------------------------------------------- packing */

void cpu_border_clear(float *y, CpuShape s, int n) {
  const size_t row = cpu_row(s), side = (size_t)s.border * CPU_BLOCK, planes = (size_t)n * cpu_blocks(s);
  for (size_t i = 0; i < planes && s.border > 0; i++, y += cpu_plane(s))
    for (int h = 0; h < s.h + 2 * s.border; h++) {
      float *at = y + h * row;
      if (h < s.border || h >= s.h + s.border) {
        memset(at, 0, row * sizeof *at);
      } else {
        memset(at, 0, side * sizeof *at);
        memset(at + row - side, 0, side * sizeof *at);
      }
    }
}

void cpu_pack(float *y, const float *x, CpuShape s, int n, int threads) {
  const int blocks = cpu_blocks(s);
  const size_t plane = (size_t)s.h * s.w;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int task = 0; task < n * blocks; task++) {
    const int image = task / blocks, first = task % blocks * CPU_BLOCK;
    const int channels = s.c - first < CPU_BLOCK ? s.c - first : CPU_BLOCK;
    const float *from = x + ((size_t)image * s.c + first) * plane;
    float *to = y + (size_t)task * cpu_plane(s);
    for (int h = 0; h < s.h; h++) {
      float *at = to + (h + s.border) * cpu_row(s) + s.border * CPU_BLOCK;
      for (int w = 0; w < s.w; w++, at += CPU_BLOCK, from++)
        for (int c = 0; c < CPU_BLOCK; c++) at[c] = c < channels ? from[c * plane] : 0;
    }
  }
  cpu_border_clear(y, s, n);
}

void cpu_unpack(float *x, const float *y, CpuShape s, int n, int threads) {
  const int blocks = cpu_blocks(s);
  const size_t plane = (size_t)s.h * s.w;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int task = 0; task < n * blocks; task++) {
    const int image = task / blocks, first = task % blocks * CPU_BLOCK;
    const int channels = s.c - first < CPU_BLOCK ? s.c - first : CPU_BLOCK;
    float *to = x + ((size_t)image * s.c + first) * plane;
    const float *from = y + (size_t)task * cpu_plane(s);
    for (int h = 0; h < s.h; h++) {
      const float *at = from + (h + s.border) * cpu_row(s) + s.border * CPU_BLOCK;
      for (int w = 0; w < s.w; w++, at += CPU_BLOCK, to++)
        for (int c = 0; c < channels; c++) to[c * plane] = at[c];
    }
  }
}
