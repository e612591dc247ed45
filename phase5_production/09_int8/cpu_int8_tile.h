/* cpu_int8_tile.h - one tile of a convolution of int8 numbers (cpu_conv2d_int8.h): what a kernel is told, and the
 * table of kernels. They stand in cpu_int8_body.h, which cpu_int8_avx512vnni.c and its neighbours compile for their
 * vectors.
 */
#ifndef PHASE5_PRODUCTION_CPU_INT8_TILE_H
#define PHASE5_PRODUCTION_CPU_INT8_TILE_H

#include <stdbool.h>
#include <stddef.h>

#include "phase5_production/08_engine/cpu_conv2d_tile.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { INT8_TILE_BLOCKS = 4, INT8_TILE_PIXELS = 14 };

/* By the step from a pixel to the next: stride 1; 2; any; and two rows of y, with stride 1. */
enum { INT8_STEP_ONE, INT8_STEP_TWO, INT8_STEP_ANY, INT8_STEP_ROWS, INT8_STEPS };

/* What an element stands for: its number plus `zero`, a number of least to most. */
typedef struct CpuInt8Kind {
  int zero, least, most;
} CpuInt8Kind;

/* KV blocks of 16 filters, PT pixels of a row of y. Lengths in x are in words of 32 bits, those in y in elements. */
typedef struct CpuInt8Tile {
  void *y;
  const void *added;
  const int32_t *x;
  const int32_t *w; /* (blocks of x, R, S, words, KV, 16) */
  const int32_t *bias;
  const float *scale;
  size_t y_plane, y_step, y_down;
  size_t x_plane, x_row, x_tap, x_step, x_down;
  size_t x_word;                 /* from a word to the next: 1, or, where a pixel has one word, that of the next tap */
  int r, s, blocks, words, last; /* words of a block, and of the last one */
  float middle, added_scale;
  bool relu, to_float;
  CpuInt8Kind x_kind, y_kind, added_kind;
} CpuInt8Tile;

typedef void (*CpuInt8Kernel)(const CpuInt8Tile *tile);

/* A row of y in one block of channels, from the rows of x that its windows have. Lengths in elements. */
typedef struct CpuInt8PoolRow {
  void *y;
  const void *x;
  size_t x_row;
  int rows, width, x_width, kernel, stride, padding;
  int counted; /* what a mean divides by; 0: the pixels that the window has in the image */
  float unit;
  CpuInt8Kind x_kind, y_kind;
} CpuInt8PoolRow;

typedef struct CpuInt8Sum {
  float scale_a, scale_b;
  bool relu;
  CpuInt8Kind a_kind, b_kind, y_kind;
} CpuInt8Sum;

typedef struct CpuInt8Kernels {
  const char *name;
  size_t bytes; /* of an element of x */
  int lanes;    /* sums of a vector */
  int zero;     /* the element that stands for 0 of int8; of uint8 it is 0 */
  int pixels[INT8_TILE_BLOCKS + 1], two_rows;
  CpuInt8Kernel kernel[INT8_STEPS][INT8_TILE_BLOCKS + 1][INT8_TILE_PIXELS + 1];
  CpuInt8Kernel depthwise; /* one pixel; w (R,S,16) of int32 */
  void (*max_row)(const CpuInt8PoolRow *row);
  void (*mean_row)(const CpuInt8PoolRow *row);
  void (*add)(void *y, const void *a, const void *b, size_t count, const CpuInt8Sum *sum); /* whole blocks */
  void (*quantize)(void *y, const float *x, size_t count, float scale, CpuInt8Kind kind);
} CpuInt8Kernels;

extern const CpuInt8Kernels cpu_int8_portable;
#if defined(__x86_64__)
extern const CpuInt8Kernels cpu_int8_avx2, cpu_int8_avxvnni, cpu_int8_avx512, cpu_int8_avx512vnni;
#endif

#ifdef __cplusplus
}
#endif

#endif /* PHASE5_PRODUCTION_CPU_INT8_TILE_H */
