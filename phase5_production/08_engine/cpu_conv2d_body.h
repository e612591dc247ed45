/* cpu_conv2d_body.h - the kernels of cpu_conv2d_tile.h for vectors of CPU_LANES floats. Each .c file that includes this
 * has set the processor it compiles for by a pragma: GCC takes a vector apart where a function's target lacks it, so
 * one body for all processors must be compiled once for each.
 */
#include "phase5_production/08_engine/cpu_conv2d_tile.h"

#include <math.h>

#include "common/simd.h"

typedef float V __attribute__((vector_size(4 * CPU_LANES), aligned(4), may_alias));
typedef int M __attribute__((vector_size(4 * CPU_LANES), aligned(4), may_alias));

enum { CPU_VECTORS = CPU_BLOCK / CPU_LANES }; /* in a block of channels */

SIMD_INLINE V cpu_load(const float *from) { return *(const V *)from; }
SIMD_INLINE void cpu_store(float *to, V v) { *(V *)to = v; }

/* min(max(v, least), most); a NaN stays, as the instructions return their second operand then. */
#ifndef CPU_CLIP
SIMD_INLINE V cpu_clip(V v, V least, V most) {
  const M below = v < least;
  v = (V)((below & (M)least) | (~below & (M)v));
  const M above = v > most;
  return (V)((above & (M)most) | (~above & (M)v));
}
#define CPU_CLIP(v, least, most) cpu_clip(v, least, most)
#endif

/* rows: 1, or 2 of pt / 2 pixels each. */
SIMD_INLINE void cpu_tile(const CpuTile *t, const int kv, const int pt, const size_t step, const int rows) {
  enum { MOST = CPU_TILE_BLOCKS * CPU_VECTORS };
  const int vectors = kv * CPU_VECTORS, width = pt / rows;
  V sum[MOST][CPU_TILE_PIXELS];
#pragma GCC unroll 16
  for (int i = 0; i < vectors; i++)
#pragma GCC unroll 16
    for (int j = 0; j < pt; j++) sum[i][j] = cpu_load(t->bias + i * CPU_LANES);
  const float *w = t->w, *next = t->next;
  const size_t down = rows == 1 ? 0 : t->x_down;
  for (int b = 0; b < t->blocks; b++) {
    const int channels = b + 1 < t->blocks ? t->channels : t->last;
    for (int r = 0; r < t->r; r++)
      for (int s = 0; s < t->s; s++) {
        const float *x = t->x + b * t->x_plane + r * t->x_row + s * t->x_tap;
        for (int c = 0; c < channels; c++, x++, w += kv * CPU_BLOCK, next += CPU_BLOCK) {
          __builtin_prefetch(next, 0, 2);
          __asm__(""
                  : "+r"(x)); /* or GCC keeps what the next tap reads again, and has no registers left for the sums */
          V weight[MOST];
#pragma GCC unroll 16
          for (int i = 0; i < vectors; i++) weight[i] = cpu_load(w + i * CPU_LANES);
#pragma GCC unroll 16
          for (int j = 0; j < pt; j++)
#pragma GCC unroll 16
            for (int i = 0; i < vectors; i++) sum[i][j] += weight[i] * x[j / width * down + j % width * step];
        }
      }
  }
  const V least = (V){0} + t->least, most = (V){0} + t->most;
#pragma GCC unroll 16
  for (int i = 0; i < vectors; i++) {
    const size_t to = i / CPU_VECTORS * t->y_plane + i % CPU_VECTORS * CPU_LANES;
#pragma GCC unroll 16
    for (int j = 0; j < pt; j++) {
      const size_t pixel = to + j / width * t->y_down + j % width * t->y_step;
      if (t->added) sum[i][j] += cpu_load(t->added + pixel);
      cpu_store(t->y + pixel, CPU_CLIP(sum[i][j], least, most));
    }
  }
}

/* The channels of a block are independent of each other: as many vectors of sums as there are pixels. */
SIMD_INLINE void cpu_depthwise(const CpuTile *t, const int pt, const size_t step) {
  const V least = (V){0} + t->least, most = (V){0} + t->most;
#pragma GCC unroll 4
  for (int i = 0; i < CPU_BLOCK; i += CPU_LANES) {
    V sum[CPU_DEPTHWISE_PIXELS];
#pragma GCC unroll 16
    for (int j = 0; j < pt; j++) sum[j] = cpu_load(t->bias + i);
    const float *w = t->w + i;
    for (int r = 0; r < t->r; r++) {
      const float *x = t->x + r * t->x_row + i;
      for (int s = 0; s < t->s; s++, w += CPU_BLOCK, x += t->x_tap) {
        const V weight = cpu_load(w);
#pragma GCC unroll 16
        for (int j = 0; j < pt; j++) sum[j] += weight * cpu_load(x + j * step);
      }
    }
    if (t->added)
#pragma GCC unroll 16
      for (int j = 0; j < pt; j++) sum[j] += cpu_load(t->added + i + j * t->y_step);
#pragma GCC unroll 16
    for (int j = 0; j < pt; j++) cpu_store(t->y + i + j * t->y_step, CPU_CLIP(sum[j], least, most));
  }
}

/* One pixel of y from a window of h x w pixels of x. */
SIMD_INLINE void cpu_pool_pixel(float *y, const float *x, size_t row, int h, int w, float scale, const bool average) {
#pragma GCC unroll 4
  for (int i = 0; i < CPU_BLOCK; i += CPU_LANES) {
    V result = (V){0} + (average ? 0 : -INFINITY);
    for (int a = 0; a < h; a++)
      for (int b = 0; b < w; b++) {
        const V next = cpu_load(x + a * row + (size_t)b * CPU_BLOCK + i);
        const M taken = (next > result) | (next != next); /* a NaN is taken, and never replaced by a number */
        if (average)
          result += next;
        else
          result = (V)((taken & (M)next) | (~taken & (M)result));
      }
    if (average) result *= scale;
    cpu_store(y + i, result);
  }
}

SIMD_INLINE void cpu_pool_row(const CpuPoolRow *row, const bool average) {
  float *y = row->y;
  for (int q = 0; q < row->width; q++, y += CPU_BLOCK) {
    const int left = q * row->stride - row->padding, right = left + row->kernel;
    const int from = left < 0 ? 0 : left, columns = (right < row->x_width ? right : row->x_width) - from;
    const float *x = row->x + (size_t)from * CPU_BLOCK;
    const float scale = 1.0f / (row->counted ? row->counted : row->rows * columns);
    if (row->rows == 2 && columns == 2) /* constants, so that the loops are gone */
      cpu_pool_pixel(y, x, row->x_row, 2, 2, scale, average);
    else if (row->rows == 3 && columns == 3)
      cpu_pool_pixel(y, x, row->x_row, 3, 3, scale, average);
    else
      cpu_pool_pixel(y, x, row->x_row, row->rows, columns, scale, average);
  }
}

static void cpu_max_row(const CpuPoolRow *row) { cpu_pool_row(row, false); }
static void cpu_average_row(const CpuPoolRow *row) { cpu_pool_row(row, true); }

static void cpu_add(float *y, const float *a, const float *b, size_t count, float least, float most) {
  for (size_t i = 0; i < count; i += CPU_LANES)
    cpu_store(y + i, CPU_CLIP(cpu_load(a + i) + cpu_load(b + i), (V){0} + least, (V){0} + most));
}

#include "phase5_production/08_engine/cpu_winograd_body.h"

/* A kernel for each tile and each step. */
#define CPU_KERNEL(kv, pt)                                                                          \
  static void cpu_tile_##kv##_##pt##_0(const CpuTile *t) { cpu_tile(t, kv, pt, CPU_BLOCK, 1); }     \
  static void cpu_tile_##kv##_##pt##_1(const CpuTile *t) { cpu_tile(t, kv, pt, 2 * CPU_BLOCK, 1); } \
  static void cpu_tile_##kv##_##pt##_2(const CpuTile *t) { cpu_tile(t, kv, pt, 1, 1); }             \
  static void cpu_tile_##kv##_##pt##_3(const CpuTile *t) { cpu_tile(t, kv, pt, 2, 1); }             \
  static void cpu_tile_##kv##_##pt##_4(const CpuTile *t) { cpu_tile(t, kv, pt, t->x_step, 1); }
#define CPU_KERNEL_ROWS(kv, pt)                                                                 \
  static void cpu_tile_##kv##_##pt##_5(const CpuTile *t) { cpu_tile(t, kv, pt, CPU_BLOCK, 2); } \
  static void cpu_tile_##kv##_##pt##_6(const CpuTile *t) { cpu_tile(t, kv, pt, 2 * CPU_BLOCK, 2); }
#define CPU_DEPTHWISES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define CPU_DEPTHWISE(pt)                                                                       \
  static void cpu_depthwise_##pt##_0(const CpuTile *t) { cpu_depthwise(t, pt, CPU_BLOCK); }     \
  static void cpu_depthwise_##pt##_1(const CpuTile *t) { cpu_depthwise(t, pt, 2 * CPU_BLOCK); } \
  static void cpu_depthwise_##pt##_4(const CpuTile *t) { cpu_depthwise(t, pt, t->x_step); }

CPU_KERNELS(CPU_KERNEL)
CPU_KERNELS_ROWS(CPU_KERNEL_ROWS)
CPU_DEPTHWISES(CPU_DEPTHWISE)

#define CPU_NAMES(kv, pt)                                                                                       \
  [CPU_STEP_BLOCK][kv][pt] = cpu_tile_##kv##_##pt##_0, [CPU_STEP_BLOCKS][kv][pt] = cpu_tile_##kv##_##pt##_1,    \
  [CPU_STEP_PLAIN][kv][pt] = cpu_tile_##kv##_##pt##_2, [CPU_STEP_PLAIN_TWO][kv][pt] = cpu_tile_##kv##_##pt##_3, \
  [CPU_STEP_ANY][kv][pt] = cpu_tile_##kv##_##pt##_4,
#define CPU_NAMES_ROWS(kv, pt) \
  [CPU_STEP_ROWS][kv][pt] = cpu_tile_##kv##_##pt##_5, [CPU_STEP_ROWS_TWO][kv][pt] = cpu_tile_##kv##_##pt##_6,
#define CPU_NAMES_DEPTHWISE(pt)                                                                  \
  [CPU_STEP_BLOCK][pt] = cpu_depthwise_##pt##_0, [CPU_STEP_BLOCKS][pt] = cpu_depthwise_##pt##_1, \
  [CPU_STEP_ANY][pt] = cpu_depthwise_##pt##_4,

const CpuTileKernels CPU_TABLE = {
    .name = CPU_TABLE_NAME,
    .lanes = CPU_LANES,
    .pixels = CPU_WIDEST,
    .two_rows = CPU_TWO_ROWS,
    .kernel = {CPU_KERNELS(CPU_NAMES) CPU_KERNELS_ROWS(CPU_NAMES_ROWS)},
    .depthwise = {CPU_DEPTHWISES(CPU_NAMES_DEPTHWISE)},
    .winograd_input = cpu_winograd_input,
    .winograd_output = cpu_winograd_output,
    .max_row = cpu_max_row,
    .average_row = cpu_average_row,
    .add = cpu_add,
};
