/* cpu_int8_layout.c - int8 activations in blocks of channels: packing, pooling, sums, and which processor's kernels run
 * (cpu_conv2d_int8.h).
 */
#include <string.h>

#include "phase5_production/08_engine/cpu_threads.h"
#include "phase5_production/09_int8/cpu_int8_plan.h"

enum {
  INT8_LAYOUT_SMALL = 100000, /* elements: less is done before a second thread has begun */
  PIECE = 64,                 /* pixels that are quantised together */
};

/* ------------------------------------------------------------------------------------------ the processor's kernels */

static const CpuInt8Kernels *chosen;

typedef struct Choice {
  const CpuInt8Kernels *kernels;
  bool can;
} Choice;

const char *cpu_int8_kernels(const char *name) {
  const Choice best_first[] = {
#if defined(__x86_64__)
    {&cpu_int8_avx512vnni, __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni")},
    {&cpu_int8_avx512, __builtin_cpu_supports("x86-64-v4")},
    {&cpu_int8_avxvnni, __builtin_cpu_supports("x86-64-v3") && __builtin_cpu_supports("avxvnni")},
    {&cpu_int8_avx2, __builtin_cpu_supports("x86-64-v3")},
#endif
    {&cpu_int8_portable, true}
  };
  for (size_t i = 0; i < sizeof best_first / sizeof *best_first; i++)
    if (best_first[i].can && (name == NULL || strcmp(name, best_first[i].kernels->name) == 0)) {
      __atomic_store_n(&chosen, best_first[i].kernels, __ATOMIC_RELEASE);
      return best_first[i].kernels->name;
    }
  return NULL;
}

const CpuInt8Kernels *cpu_int8_table(void) {
  if (__atomic_load_n(&chosen, __ATOMIC_ACQUIRE) == NULL) cpu_int8_kernels(NULL);
  return __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
}

size_t cpu_int8_bytes(void) { return cpu_int8_table()->bytes; }

/* --------------------------------------------------------------------------------------------------------- packing */

/* zero is 0 unless elements have one byte, so a byte says it. */
void cpu_int8_clear_border(void *y, CpuShape s, int from, int to, size_t bytes, int zero) {
  const size_t row = cpu_row(s) * bytes, side = (size_t)s.border * CPU_BLOCK * bytes;
  char *at = (char *)y;
  if (s.border == 0) return;
  if (from == 0) memset(at, zero, s.border * row);
  if (to == s.h) memset(at + (s.border + (size_t)s.h) * row, zero, s.border * row);
  for (int h = from; h < to; h++) {
    memset(at + (s.border + (size_t)h) * row, zero, side);
    memset(at + (s.border + (size_t)h + 1) * row - side, zero, side);
  }
}

/* Element `at` of x as a byte of int8 or uint8, and back. */
static int8_t int8_get(const void *x, size_t at, int zero) {
  return (int8_t)((cpu_int8_bytes() == 1 ? ((const uint8_t *)x)[at] : ((const int16_t *)x)[at]) - zero);
}

static int int8_number(int8_t byte, bool positive) { return positive ? (uint8_t)byte : byte; }

static void int8_put(void *x, size_t at, int8_t byte, CpuInt8Kind kind) {
  const int element = int8_number(byte, kind.least == 0) + kind.zero;
  if (cpu_int8_bytes() == 1)
    ((uint8_t *)x)[at] = (uint8_t)element;
  else
    ((int16_t *)x)[at] = (int16_t)element;
}

static int int8_threads(CpuShape s, int n, int threads) { return n * cpu_count(s) < INT8_LAYOUT_SMALL ? 1 : threads; }

/* Element c of pixel (h, w) of image i. */
static size_t int8_at(CpuShape s, size_t i, int c, int h, int w) {
  return i * cpu_count(s) + c / CPU_BLOCK * cpu_plane(s) + cpu_first(s) + h * cpu_row(s) + (size_t)w * CPU_BLOCK +
         c % CPU_BLOCK;
}

/* Planes are tasks: block `b` of image `i`, and its place in y. */
static void int8_plane_border(void *y, CpuShape s, size_t plane, int zero) {
  const CpuInt8Kernels *kernels = cpu_int8_table();
  cpu_int8_clear_border((char *)y + plane * cpu_plane(s) * kernels->bytes, s, 0, s.h, kernels->bytes, zero);
}

/* Of all functions below; each takes what it needs. */
typedef struct LayoutCall {
  void *y;
  const void *x, *other;
  CpuShape y_shape, x_shape;
  CpuInt8Kind kind;
  int pitch;
  float scale;
  CpuInt8Pool pool;
  CpuInt8Kind x_kind;
  CpuInt8Sum sum;
} LayoutCall;

static void pack_plane(void *arg, long plane, int thread) {
  const LayoutCall *call = (const LayoutCall *)arg;
  const CpuShape s = call->y_shape;
  const int i = (int)(plane / cpu_blocks(s)), first = (int)(plane % cpu_blocks(s)) * CPU_BLOCK;
  const int8_t *x = (const int8_t *)call->x;
  (void)thread;
  for (int h = 0; h < s.h; h++)
    for (int w = 0; w < s.w; w++)
      for (int c = first; c < first + CPU_BLOCK; c++)
        int8_put(call->y, int8_at(s, i, c, h, w), c < s.c ? x[(((size_t)i * s.h + h) * s.w + w) * call->pitch + c] : 0,
                 call->kind);
  int8_plane_border(call->y, s, plane, call->kind.zero);
}

void cpu_int8_pack(void *y, const int8_t *x, bool positive, CpuShape s, int pitch, int n, int threads) {
  LayoutCall call = {.y = y, .x = x, .y_shape = s, .kind = cpu_int8_kind(positive), .pitch = pitch};
  cpu_parallel((long)n * cpu_blocks(s), int8_threads(s, n, threads), pack_plane, &call);
}

static void unpack_row(void *arg, long row, int thread) {
  const LayoutCall *call = (const LayoutCall *)arg;
  const CpuShape s = call->x_shape;
  (void)thread;
  for (int w = 0; w < s.w; w++)
    for (int c = 0; c < call->pitch; c++)
      ((int8_t *)call->y)[((size_t)row * s.w + w) * call->pitch + c] =
          c < s.c ? int8_get(call->x, int8_at(s, row / s.h, c, (int)(row % s.h), w), call->kind.zero) : 0;
}

void cpu_int8_unpack(int8_t *x, const void *y, bool positive, CpuShape s, int pitch, int n, int threads) {
  LayoutCall call = {.y = x, .x = y, .x_shape = s, .kind = cpu_int8_kind(positive), .pitch = pitch};
  cpu_parallel((long)n * s.h, int8_threads(s, n, threads), unpack_row, &call);
}

/* A row of at most PIECE pixels and 16 channels: quantised along the pixels, and then exchanged. */
static void int8_quantize_piece(const CpuInt8Kernels *kernels, char *to, const float *x, size_t plane, int channels,
                                int width, float scale, CpuInt8Kind kind) {
  float piece[PIECE];
  int16_t row[CPU_BLOCK][PIECE]; /* of bytes or of 16 bits */
  const size_t bytes = kernels->bytes;
  memset(piece, 0, sizeof piece);
  for (int c = 0; c < channels; c++) {
    memcpy(piece, x + c * plane, width * sizeof *piece);
    kernels->quantize(row[c], piece, (size_t)(width + CPU_BLOCK - 1) / CPU_BLOCK * CPU_BLOCK, scale, kind);
  }
  memset(to, kind.zero, width * CPU_BLOCK * bytes);
  for (int c = 0; c < channels; c++)
    for (int w = 0; w < width; w++)
      if (bytes == 1)
        to[w * CPU_BLOCK + c] = ((const char *)row[c])[w];
      else
        ((int16_t *)to)[w * CPU_BLOCK + c] = row[c][w];
}

static void quantize_row(void *arg, long task, int thread) {
  const LayoutCall *call = (const LayoutCall *)arg;
  const CpuInt8Kernels *kernels = cpu_int8_table();
  const CpuShape s = call->y_shape;
  const size_t pixels = (size_t)s.h * s.w, i = task / s.h / cpu_blocks(s);
  const int first = (int)(task / s.h % cpu_blocks(s)) * CPU_BLOCK, h = (int)(task % s.h);
  const int channels = s.c - first < CPU_BLOCK ? s.c - first : CPU_BLOCK;
  (void)thread;
  for (int w = 0; w < s.w; w += PIECE)
    int8_quantize_piece(kernels, (char *)call->y + int8_at(s, i, first, h, w) * kernels->bytes,
                        (const float *)call->x + (i * s.c + first) * pixels + (size_t)h * s.w + w, pixels, channels,
                        s.w - w < PIECE ? s.w - w : PIECE, call->scale, call->kind);
  cpu_int8_clear_border((char *)call->y + (i * cpu_count(s) + first / CPU_BLOCK * cpu_plane(s)) * kernels->bytes, s, h,
                        h + 1, kernels->bytes, call->kind.zero);
}

void cpu_int8_quantize(void *y, const float *x, float scale, bool positive, CpuShape s, int n, int threads) {
  LayoutCall call = {.y = y, .x = x, .y_shape = s, .kind = cpu_int8_kind(positive), .scale = scale};
  cpu_parallel((long)n * cpu_blocks(s) * s.h, int8_threads(s, n, threads), quantize_row, &call);
}

static void dequantize_plane(void *arg, long plane, int thread) {
  const LayoutCall *call = (const LayoutCall *)arg;
  const CpuShape s = call->x_shape;
  float *y = (float *)call->y + plane * s.h * s.w;
  (void)thread;
  for (int h = 0; h < s.h; h++)
    for (int w = 0; w < s.w; w++) {
      const int8_t byte = int8_get(call->x, int8_at(s, plane / s.c, (int)(plane % s.c), h, w), call->kind.zero);
      *y++ = (float)int8_number(byte, call->kind.least == 0) * call->scale;
    }
}

void cpu_int8_dequantize(float *x, const void *y, float scale, bool positive, CpuShape s, int n, int threads) {
  LayoutCall call = {.y = x, .x = y, .x_shape = s, .kind = cpu_int8_kind(positive), .scale = scale};
  cpu_parallel((long)n * s.c, int8_threads(s, n, threads), dequantize_plane, &call);
}

static void quantize_block(void *arg, long plane, int thread) {
  const LayoutCall *call = (const LayoutCall *)arg;
  const CpuInt8Kernels *kernels = cpu_int8_table();
  const CpuShape to = call->y_shape, from = call->x_shape;
  (void)thread;
  for (int h = 0; h < to.h; h++)
    kernels->quantize((char *)call->y + (plane * cpu_plane(to) + cpu_first(to) + h * cpu_row(to)) * kernels->bytes,
                      (const float *)call->x + plane * cpu_plane(from) + cpu_first(from) + h * cpu_row(from),
                      (size_t)to.w * CPU_BLOCK, call->scale, call->kind);
  int8_plane_border(call->y, to, plane, call->kind.zero);
}

void cpu_int8_quantize_blocks(void *y, CpuShape y_shape, const float *x, CpuShape x_shape, float scale, bool positive,
                              int n, int threads) {
  LayoutCall call = {
      .y = y, .x = x, .y_shape = y_shape, .x_shape = x_shape, .kind = cpu_int8_kind(positive), .scale = scale};
  cpu_parallel((long)n * cpu_blocks(y_shape), int8_threads(y_shape, n, threads), quantize_block, &call);
}

/* ---------------------------------------------------------------------------------------------------- pooling, sums */

/* A row of y in a block of channels. */
static void pool_row(void *arg, long task, int thread) {
  const LayoutCall *call = (const LayoutCall *)arg;
  const CpuInt8Kernels *kernels = cpu_int8_table();
  const CpuPool2d *t = &call->pool.window;
  const CpuShape to = call->y_shape, from = call->x_shape;
  const size_t plane = task / to.h;
  const int p = (int)(task % to.h), top = p * t->stride_h - t->padding_h, bottom = top + t->kernel_h;
  const int first = top < 0 ? 0 : top;
  CpuInt8PoolRow row = {.x_row = cpu_row(from), .width = to.w, .x_width = from.w, .unit = call->pool.unit};
  (void)thread;
  row.y = (char *)call->y + (plane * cpu_plane(to) + cpu_first(to) + p * cpu_row(to)) * kernels->bytes;
  row.x = (const char *)call->x + (plane * cpu_plane(from) + cpu_first(from) + first * cpu_row(from)) * kernels->bytes;
  row.rows = (bottom < from.h ? bottom : from.h) - first;
  row.kernel = t->kernel_w;
  row.stride = t->stride_w;
  row.padding = t->padding_w;
  row.counted = t->count_padding ? t->kernel_h * t->kernel_w : 0;
  row.x_kind = call->x_kind;
  row.y_kind = call->kind;
  (t->average ? kernels->mean_row : kernels->max_row)(&row);
  cpu_int8_clear_border((char *)call->y + plane * cpu_plane(to) * kernels->bytes, to, p, p + 1, kernels->bytes,
                        call->kind.zero);
}

void cpu_int8_pool2d_run(void *y, CpuShape y_shape, const void *x, CpuShape x_shape, CpuInt8Pool pool, int n,
                         int threads) {
  LayoutCall call = {.y = y, .x = x, .y_shape = y_shape, .x_shape = x_shape, .pool = pool};
  call.x_kind = cpu_int8_kind(pool.x_positive);
  call.kind = cpu_int8_kind(pool.window.average ? pool.y_positive : pool.x_positive);
  cpu_parallel((long)n * cpu_blocks(x_shape) * y_shape.h, int8_threads(x_shape, n, threads), pool_row, &call);
}

static void add_plane(void *arg, long plane, int thread) {
  const LayoutCall *call = (const LayoutCall *)arg;
  const CpuInt8Kernels *kernels = cpu_int8_table();
  const size_t count = cpu_plane(call->y_shape), at = plane * count * kernels->bytes;
  (void)thread;
  kernels->add((char *)call->y + at, (const char *)call->x + at, (const char *)call->other + at, count, &call->sum);
}

void cpu_int8_add_run(void *y, const void *a, const void *b, CpuShape s, CpuInt8Add add, int n, int threads) {
  LayoutCall call = {.y = y, .x = a, .other = b, .y_shape = s};
  call.sum = (CpuInt8Sum){add.scale_a,
                          add.scale_b,
                          add.relu,
                          cpu_int8_kind(add.a_positive),
                          cpu_int8_kind(add.b_positive),
                          cpu_int8_kind(add.y_positive)};
  cpu_parallel((long)n * cpu_blocks(s), int8_threads(s, n, threads), add_plane, &call);
}
