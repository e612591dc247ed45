/* cpu_layout.c - packing into blocks of channels, and which processor's kernels run (cpu_layout.h). */
#include "phase5_production/08_engine/cpu_layout.h"

#include <stdbool.h>
#include <string.h>

#include "phase5_production/08_engine/cpu_conv2d_tile.h"
#include "phase5_production/08_engine/cpu_threads.h"

enum { PACK_SMALL = 50000 }; /* numbers: less is done before a second thread has begun */

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

typedef struct PackCall {
  float *to;
  const float *from;
  CpuShape shape;
} PackCall;

/* A block of an image. */
static void pack_plane(void *arg, long task, int thread) {
  const PackCall *call = (const PackCall *)arg;
  const CpuShape s = call->shape;
  const int first = (int)(task % cpu_blocks(s)) * CPU_BLOCK,
            channels = s.c - first < CPU_BLOCK ? s.c - first : CPU_BLOCK;
  const size_t plane = (size_t)s.h * s.w;
  const float *from = call->from + (task / cpu_blocks(s) * s.c + first) * plane;
  float *to = call->to + task * cpu_plane(s);
  (void)thread;
  for (int h = 0; h < s.h; h++) {
    float *at = to + cpu_first(s) + h * cpu_row(s);
    for (int w = 0; w < s.w; w++, at += CPU_BLOCK, from++)
      for (int c = 0; c < CPU_BLOCK; c++) at[c] = c < channels ? from[c * plane] : 0;
  }
}

static void unpack_plane(void *arg, long task, int thread) {
  const PackCall *call = (const PackCall *)arg;
  const CpuShape s = call->shape;
  const int first = (int)(task % cpu_blocks(s)) * CPU_BLOCK,
            channels = s.c - first < CPU_BLOCK ? s.c - first : CPU_BLOCK;
  const size_t plane = (size_t)s.h * s.w;
  float *to = call->to + (task / cpu_blocks(s) * s.c + first) * plane;
  const float *from = call->from + task * cpu_plane(s);
  (void)thread;
  for (int h = 0; h < s.h; h++) {
    const float *at = from + cpu_first(s) + h * cpu_row(s);
    for (int w = 0; w < s.w; w++, at += CPU_BLOCK, to++)
      for (int c = 0; c < channels; c++) to[c * plane] = at[c];
  }
}

static void pack_run(CpuTask run, float *to, const float *from, CpuShape shape, int n, int threads) {
  PackCall call = {to, from, shape};
  cpu_parallel((long)n * cpu_blocks(shape), n * cpu_count(shape) < PACK_SMALL ? 1 : threads, run, &call);
}

void cpu_pack(float *y, const float *x, CpuShape s, int n, int threads) {
  pack_run(pack_plane, y, x, s, n, threads);
  cpu_border_clear(y, s, n);
}

void cpu_unpack(float *x, const float *y, CpuShape s, int n, int threads) {
  pack_run(unpack_plane, x, y, s, n, threads);
}
