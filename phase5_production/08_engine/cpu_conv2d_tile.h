/* cpu_conv2d_tile.h - one tile of a convolution's outputs (cpu_conv2d.h): what a kernel is told, and the table of
 * kernels.
 *
 * The kernels stand in cpu_conv2d_body.h, which cpu_conv2d_avx512.c, ..._avx2.c and ..._portable.c compile for their
 * vectors.
 */
#ifndef PHASE5_PRODUCTION_CPU_CONV2D_TILE_H
#define PHASE5_PRODUCTION_CPU_CONV2D_TILE_H

#include <stdbool.h>

#include "phase5_production/08_engine/cpu_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CPU_TILE_BLOCKS = 4, CPU_TILE_PIXELS = 14, CPU_TILE_STEPS = 7, CPU_DEPTHWISE_PIXELS = 7 };

/* KV blocks of 16 filters, PT pixels of a row of y. Steps are in floats. */
typedef struct CpuTile {
  float *y;           /* first block of filters, first pixel */
  const float *added; /* of y's shape, or NULL */
  const float *x;     /* what the first tap of the first pixel reads */
  const float *w;     /* (blocks of x, R, S, channels, KV, 16) */
  const float *bias;  /* (KV,16) */
  const float *next; /* what comes after w: a line of 16 floats is fetched into the L2 cache for each channel and tap */
  size_t y_plane;    /* from a block of filters to the next */
  size_t y_step;     /* from a pixel to the next: 16, or, of a linear layer, the features of an image */
  size_t x_plane;    /* from a block of channels to the next */
  size_t x_row, x_tap;              /* from a tap to the next, down and right */
  size_t x_step;                    /* from a pixel to the next: the stride */
  size_t x_down, y_down;            /* from a row of y to the next */
  int r, s, blocks, channels, last; /* channels of a block, and of the last one */
  float least, most;
} CpuTile;

/* Lists of kernels: X(blocks, pixels) for each width. */
#define CPU_TILES_6(X, kv) X(kv, 1) X(kv, 2) X(kv, 3) X(kv, 4) X(kv, 5) X(kv, 6)
#define CPU_TILES_14(X, kv) \
  CPU_TILES_6(X, kv) X(kv, 7) X(kv, 8) X(kv, 9) X(kv, 10) X(kv, 11) X(kv, 12) X(kv, 13) X(kv, 14)
#define CPU_TILES_TWO_ROWS(X, kv) X(kv, 2) X(kv, 4) X(kv, 6) X(kv, 8) X(kv, 10) X(kv, 12) X(kv, 14)

typedef void (*CpuTileKernel)(const CpuTile *tile);

/* Kernels by the step from a pixel to the next: a constant one makes each pixel's address a constant offset. Those of
 * two rows have half of their pixels in the next row of y: narrow images fill a tile with two rows. */
enum {
  CPU_STEP_BLOCK,     /* 16 floats: stride 1 */
  CPU_STEP_BLOCKS,    /* 32: stride 2 */
  CPU_STEP_PLAIN,     /* 1: stride 1, plain (N,C,H,W) */
  CPU_STEP_PLAIN_TWO, /* 2 */
  CPU_STEP_ANY,
  CPU_STEP_ROWS,     /* two rows: 16 */
  CPU_STEP_ROWS_TWO, /* two rows: 32 */
};

/* A row of y, in one block of channels, from the rows of x that its windows have in the image. */
typedef struct CpuPoolRow {
  float *y;
  const float *x; /* pixel 0 of the first row */
  size_t x_row;
  int rows, width, x_width;
  int kernel, stride, padding; /* of columns */
  int counted;                 /* what a mean divides by; 0: the pixels that the window has in the image */
} CpuPoolRow;

enum { CPU_WINOGRAD_TILE = 4, CPU_WINOGRAD_POINTS = 36 };

/* F(4x4,3x3) of a tile in one block of channels or filters. */
typedef struct CpuWinogradTile {
  const float *x; /* its first element; rows, columns: how many there are */
  size_t x_row;
  float *points; /* 36 times 16 floats, `point` floats apart */
  size_t point;
  float *y; /* rows, columns: how many of the 4 x 4 are stored */
  const float *added, *bias;
  size_t y_row;
  int rows, columns;
  float least, most;
} CpuWinogradTile;

typedef struct CpuTileKernels {
  const char *name;
  int lanes;                       /* floats of a vector */
  int pixels[CPU_TILE_BLOCKS + 1]; /* by the number of blocks: the widest tile; 0: none */
  int two_rows;                    /* how many blocks the tiles of two rows have; 0: there are none */
  CpuTileKernel kernel[CPU_TILE_STEPS][CPU_TILE_BLOCKS + 1][CPU_TILE_PIXELS + 1];
  CpuTileKernel depthwise[CPU_TILE_STEPS][CPU_DEPTHWISE_PIXELS + 1]; /* one block, w (R,S,16) */
  void (*winograd_input)(const CpuWinogradTile *tile);
  void (*winograd_output)(const CpuWinogradTile *tile);
  void (*max_row)(const CpuPoolRow *row);
  void (*average_row)(const CpuPoolRow *row);
  void (*add)(float *y, const float *a, const float *b, size_t count, float least, float most); /* whole blocks */
} CpuTileKernels;

extern const CpuTileKernels cpu_tile_portable;
#if defined(__x86_64__)
extern const CpuTileKernels cpu_tile_avx2, cpu_tile_avx512;
#endif

/* The chosen ones (cpu_kernels()). */
const CpuTileKernels *cpu_tile_kernels(void);

#ifdef __cplusplus
}
#endif

#endif
