/* cpu_int8_body.h - the kernels of cpu_int8_tile.h for vectors of CPU_LANES sums. Each .c file that includes this
 * has set the processor by a pragma, and defines
 *
 *     INT8_ELEMENT           what an element of x is: uint8_t or int16_t
 *     INT8_ZERO              which of them stands for the 0 of int8
 *     INT8_DOT(sum, w, x)    sum + the products of the elements of each lane; vectors of 32 bits
 *     INT8_FMA(a, b, c)      a b + c, rounded once; vectors of floats
 */
#include <math.h>
#include <string.h>

#include "common/simd.h"
#include "phase5_production/09_int8/cpu_int8_tile.h"

typedef int32_t I __attribute__((vector_size(4 * CPU_LANES), aligned(4), may_alias));
typedef float F __attribute__((vector_size(4 * CPU_LANES), aligned(4), may_alias));
typedef INT8_ELEMENT E __attribute__((vector_size(sizeof(INT8_ELEMENT) * CPU_LANES), aligned(1), may_alias));
typedef INT8_ELEMENT B __attribute__((vector_size(sizeof(INT8_ELEMENT) * CPU_BLOCK), aligned(1), may_alias));

enum { INT8_VECTORS = CPU_BLOCK / CPU_LANES, INT8_WORDS = CPU_BLOCK * sizeof(INT8_ELEMENT) / 4 };

SIMD_INLINE I int8_load(const int32_t *from) { return *(const I *)from; }
SIMD_INLINE F int8_select(I mask, F yes, F no) { return (F)((mask & (I)yes) | (~mask & (I)no)); }

/* Elements as numbers, and back. */
SIMD_INLINE I int8_elements(const void *from, int zero) { return __builtin_convertvector(*(const E *)from, I) - zero; }
SIMD_INLINE void int8_store_elements(void *to, I q, int zero) { *(E *)to = __builtin_convertvector(q + zero, E); }

/* The compiler may not join what was computed to here with what follows: a product is rounded, and then the sum. */
#if defined(__x86_64__)
#define INT8_ROUNDED(v) __asm__("" : "+x"(v))
#else
#define INT8_ROUNDED(v) __asm__("" : "+w"(v))
#endif

/* The nearest integer of least to most, halves to even; NaN is 0: int8_byte(). Numbers of this size have no fraction
 * left once 1.5 * 2^23 is added, and the sum is rounded as every sum is. */
SIMD_INLINE I int8_nearest(F x, CpuInt8Kind kind) {
  const F most = (F){0} + (float)kind.most, least = (F){0} + (float)kind.least, large = (F){0} + 12582912.0f;
  x = int8_select(x > most, most, x);
  x = int8_select(x < least, least, x);
  x = (F)((I)x & (x == x));
  F sum = x + large;
  INT8_ROUNDED(sum);
  return (I)sum - (I)large;
}

/* int8_end(): y before it is rounded. */
SIMD_INLINE F int8_scaled(const CpuInt8Tile *t, I sum, F scale, const void *added) {
  F y = __builtin_convertvector(sum, F) * scale;
  INT8_ROUNDED(y);
  if (t->middle != 0) {
    y = __builtin_convertvector(int8_nearest(y, (CpuInt8Kind){0, -128, 127}), F) * t->middle;
    INT8_ROUNDED(y);
  }
  if (added)
    y = INT8_FMA(__builtin_convertvector(int8_elements(added, t->added_kind.zero), F), (F){0} + t->added_scale, y);
  return t->relu ? int8_select(y < 0, (F){0}, y) : y;
}

SIMD_INLINE void int8_finish(const CpuInt8Tile *t, size_t to, I sum, F scale) {
  const F y = int8_scaled(t, sum, scale, t->added ? (const INT8_ELEMENT *)t->added + to : NULL);
  if (t->to_float)
    *(F *)((float *)t->y + to) = y;
  else
    int8_store_elements((INT8_ELEMENT *)t->y + to, int8_nearest(y, t->y_kind), t->y_kind.zero);
}

/* rows: 1, or 2 of pt / 2 pixels each. */
SIMD_INLINE void int8_tile_sums(const CpuInt8Tile *t, I *done, const int kv, const int pt, const size_t step,
                                const int rows) {
  enum { MOST = INT8_TILE_BLOCKS * INT8_VECTORS };
  const int vectors = kv * INT8_VECTORS, width = pt / rows;
  I sum[MOST][INT8_TILE_PIXELS];
#pragma GCC unroll 16
  for (int i = 0; i < vectors; i++)
#pragma GCC unroll 16
    for (int j = 0; j < pt; j++) sum[i][j] = int8_load(t->bias + i * CPU_LANES);
  const int32_t *w = t->w;
  const size_t down = rows == 1 ? 0 : t->x_down;
  for (int b = 0; b < t->blocks; b++) {
    const int words = b + 1 < t->blocks ? t->words : t->last;
    for (int r = 0; r < t->r; r++)
      for (int s = 0; s < t->s; s++) {
        const int32_t *x = t->x + b * t->x_plane + r * t->x_row + s * t->x_tap;
        for (int c = 0; c < words; c++, x += t->x_word, w += kv * CPU_BLOCK) {
          __asm__("" : "+r"(x)); /* cpu_conv2d_body.h says why */
          I weight[MOST];
#pragma GCC unroll 16
          for (int i = 0; i < vectors; i++) weight[i] = int8_load(w + i * CPU_LANES);
#pragma GCC unroll 16
          for (int j = 0; j < pt; j++) {
            const I word = (I){0} + x[j / width * down + j % width * step];
#pragma GCC unroll 16
            for (int i = 0; i < vectors; i++) sum[i][j] = INT8_DOT(sum[i][j], weight[i], word);
          }
        }
      }
  }
#pragma GCC unroll 16
  for (int i = 0; i < vectors; i++)
#pragma GCC unroll 16
    for (int j = 0; j < pt; j++) done[i * pt + j] = sum[i][j];
}

/* From sums to y. A function of its own, and sums by way of memory: it is much code, and short beside the sums. */
SIMD_INLINE void int8_tile_end(const CpuInt8Tile *t, const I *sum, const int vectors, const int width, const int rows) {
  for (int i = 0; i < vectors; i++) {
    const size_t to = i / INT8_VECTORS * t->y_plane + i % INT8_VECTORS * CPU_LANES;
    const F scale = *(const F *)(t->scale + i * CPU_LANES);
    for (int row = 0; row < rows; row++)
      for (int j = 0; j < width; j++) int8_finish(t, to + row * t->y_down + j * t->y_step, *sum++, scale);
  }
}

static __attribute__((noinline)) void int8_tile_finish(const CpuInt8Tile *t, const I *sum, int vectors, int width,
                                                       int rows) {
  if (t->middle == 0 && !t->to_float) { /* the usual ones; the compiler takes what does not change out of the loops */
    CpuInt8Tile usual = *t;
    usual.middle = 0;
    usual.to_float = false;
    int8_tile_end(&usual, sum, vectors, width, rows);
  } else {
    int8_tile_end(t, sum, vectors, width, rows);
  }
}

SIMD_INLINE void int8_tile(const CpuInt8Tile *t, const int kv, const int pt, const size_t step, const int rows) {
  I sum[INT8_TILE_BLOCKS * INT8_VECTORS * INT8_TILE_PIXELS];
  int8_tile_sums(t, sum, kv, pt, step, rows);
  int8_tile_finish(t, sum, kv * INT8_VECTORS, pt / rows, rows);
}

/* One pixel of 16 channels that are independent of each other. x in elements here, as the other lengths. */
static void int8_depthwise(const CpuInt8Tile *t) {
  for (int i = 0; i < CPU_BLOCK; i += CPU_LANES) {
    I sum = int8_load(t->bias + i);
    const int32_t *w = t->w + i;
    for (int r = 0; r < t->r; r++)
      for (int s = 0; s < t->s; s++, w += CPU_BLOCK)
        sum +=
            int8_elements((const INT8_ELEMENT *)t->x + r * t->x_row + s * t->x_tap + i, t->x_kind.zero) * int8_load(w);
    int8_finish(t, i, sum, *(const F *)(t->scale + i));
  }
}

/* Elements are in the order of their numbers, so the largest needs no conversion. */
SIMD_INLINE void int8_largest(INT8_ELEMENT *y, const INT8_ELEMENT *x, size_t row, int h, int w, CpuInt8Kind kind) {
  B result = (B){0} + (INT8_ELEMENT)(kind.least + kind.zero);
  for (int a = 0; a < h; a++)
    for (int b = 0; b < w; b++) {
      const B next = *(const B *)(x + a * row + (size_t)b * CPU_BLOCK), larger = (B)(next > result);
      result = (larger & next) | (~larger & result);
    }
  *(B *)y = result;
}

SIMD_INLINE void int8_pool_row(const CpuInt8PoolRow *row, const bool mean) {
  INT8_ELEMENT *y = (INT8_ELEMENT *)row->y;
  for (int q = 0; q < row->width; q++, y += CPU_BLOCK) {
    const int left = q * row->stride - row->padding, right = left + row->kernel;
    const int from = left < 0 ? 0 : left, columns = (right < row->x_width ? right : row->x_width) - from;
    const INT8_ELEMENT *x = (const INT8_ELEMENT *)row->x + (size_t)from * CPU_BLOCK;
    const float factor = row->unit / (float)(row->counted ? row->counted : row->rows * columns);
    if (!mean) int8_largest(y, x, row->x_row, row->rows, columns, row->x_kind);
    for (int i = 0; i < CPU_BLOCK && mean; i += CPU_LANES) {
      I sum = {0};
      for (int a = 0; a < row->rows; a++)
        for (int b = 0; b < columns; b++)
          sum += int8_elements(x + a * row->x_row + (size_t)b * CPU_BLOCK + i, row->x_kind.zero);
      int8_store_elements(y + i, int8_nearest(__builtin_convertvector(sum, F) * factor, row->y_kind), row->y_kind.zero);
    }
  }
}

static void int8_max_row(const CpuInt8PoolRow *row) { int8_pool_row(row, false); }
static void int8_mean_row(const CpuInt8PoolRow *row) { int8_pool_row(row, true); }

static void int8_add(void *y, const void *a, const void *b, size_t count, const CpuInt8Sum *t) {
  for (size_t i = 0; i < count; i += CPU_LANES) {
    F sum = __builtin_convertvector(int8_elements((const INT8_ELEMENT *)a + i, t->a_kind.zero), F) * t->scale_a;
    INT8_ROUNDED(sum);
    const F other = __builtin_convertvector(int8_elements((const INT8_ELEMENT *)b + i, t->b_kind.zero), F);
    sum = INT8_FMA(other, (F){0} + t->scale_b, sum);
    if (t->relu) sum = int8_select(sum < 0, (F){0}, sum);
    int8_store_elements((INT8_ELEMENT *)y + i, int8_nearest(sum, t->y_kind), t->y_kind.zero);
  }
}

static void int8_quantize(void *y, const float *x, size_t count, float scale, CpuInt8Kind kind) {
  for (size_t i = 0; i < count; i += CPU_LANES)
    int8_store_elements((INT8_ELEMENT *)y + i, int8_nearest(*(const F *)(x + i) / scale, kind), kind.zero);
}

/* A kernel for each tile and each step. */
#define INT8_KERNEL(kv, pt)                                                                                \
  static void int8_tile_##kv##_##pt##_0(const CpuInt8Tile *t) { int8_tile(t, kv, pt, INT8_WORDS, 1); }     \
  static void int8_tile_##kv##_##pt##_1(const CpuInt8Tile *t) { int8_tile(t, kv, pt, 2 * INT8_WORDS, 1); } \
  static void int8_tile_##kv##_##pt##_2(const CpuInt8Tile *t) { int8_tile(t, kv, pt, t->x_step, 1); }
#define INT8_KERNEL_ROWS(kv, pt) \
  static void int8_tile_##kv##_##pt##_3(const CpuInt8Tile *t) { int8_tile(t, kv, pt, INT8_WORDS, 2); }

INT8_KERNELS(INT8_KERNEL)
INT8_KERNELS_ROWS(INT8_KERNEL_ROWS)

#define INT8_NAMES(kv, pt)                                                                                  \
  [INT8_STEP_ONE][kv][pt] = int8_tile_##kv##_##pt##_0, [INT8_STEP_TWO][kv][pt] = int8_tile_##kv##_##pt##_1, \
  [INT8_STEP_ANY][kv][pt] = int8_tile_##kv##_##pt##_2,
#define INT8_NAMES_ROWS(kv, pt) [INT8_STEP_ROWS][kv][pt] = int8_tile_##kv##_##pt##_3,

const CpuInt8Kernels INT8_TABLE = {
    .name = INT8_TABLE_NAME,
    .bytes = sizeof(INT8_ELEMENT),
    .lanes = CPU_LANES,
    .zero = INT8_ZERO,
    .pixels = INT8_WIDEST,
    .two_rows = INT8_TWO_ROWS,
    .kernel = {INT8_KERNELS(INT8_NAMES) INT8_KERNELS_ROWS(INT8_NAMES_ROWS)},
    .depthwise = int8_depthwise,
    .max_row = int8_max_row,
    .mean_row = int8_mean_row,
    .add = int8_add,
    .quantize = int8_quantize,
};
