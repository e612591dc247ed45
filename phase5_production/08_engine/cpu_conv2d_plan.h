/* cpu_conv2d_plan.h - what cpu_conv2d_open() makes: shared by the methods (cpu_conv2d.c, cpu_winograd.c). */
#ifndef PHASE5_PRODUCTION_CPU_CONV2D_PLAN_H
#define PHASE5_PRODUCTION_CPU_CONV2D_PLAN_H

#include "phase5_production/08_engine/cpu_conv2d.h"
#include "phase5_production/08_engine/cpu_conv2d_tile.h"
#include "phase5_production/08_engine/cpu_threads.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum CpuMethod { CPU_DIRECT, CPU_DEPTHWISE, CPU_LINEAR, CPU_WINOGRAD } CpuMethod;

/* Filters that a task computes together: blocks of 16, and the blocks of channels that they read. */
typedef struct CpuGroup {
  int first, count;
  int x_first, x_blocks;
  int last;        /* channels of the last one */
  size_t w_offset; /* floats */
} CpuGroup;

struct CpuConv2d {
  Conv2dShape shape;
  CpuShape x, y;
  CpuActivation activation;
  const CpuTileKernels *kernels;
  CpuMethod method;
  int rows, pixels; /* of y; of a linear layer one row, whose pixels are the images */
  int two_rows;     /* tiles take two rows */
  CpuGroup *group;
  int groups;
  CpuTile tile;            /* what is the same in all tiles */
  size_t x_image, y_image; /* floats from an image to the next */
  size_t padded;           /* floats of an image that is copied with its padding first, or 0 */
  int step;                /* CPU_STEP_... */
  float *w, *bias;
  size_t w_count;
  double flops; /* of an image */
};

/* What the division of a convolution depends on: tiles of at most pixels[blocks] pixels of a row of `width`. */
typedef struct CpuTiling {
  const int *pixels; /* by blocks of filters; 0: there are no such tiles */
  int vectors;       /* of sums in a block */
  int width;
  int blocks;        /* that each tile has, if so many are left; 0: the least cost */
  int most_channels; /* of a block of x */
} CpuTiling;

/* Groups of filters, and for each the channels that at least one of its filters reads; w_offset is left 0. */
int cpu_plan_groups(CpuGroup **groups, const Conv2dShape *s, CpuTiling tiling);

/* -1 where x and y are not what the shape says. */
int cpu_conv2d_check(Conv2dShape s, CpuShape x, CpuShape y, Error *err);

/* F(4x4,3x3), in cpu_winograd.c. */
bool cpu_winograd_fits(const CpuConv2d *conv, int n);
void cpu_winograd_pack(CpuConv2d *conv, const float *w);
size_t cpu_winograd_workspace(const CpuConv2d *conv, int n, int threads);
void cpu_winograd_run(const CpuConv2d *conv, float *y, const float *x, const float *added, float *workspace, int n,
                      int threads);

/* The weights that a pass over `count` of them fetches: the pass-th part of those at `from`, or none, which are those
 * at hand. */
static inline const float *cpu_next(const float *at_hand, const float *from, size_t count, int blocks, int pass) {
  return from && pass < blocks ? from + count / blocks * pass : at_hand;
}

void *cpu_alloc(size_t floats); /* at a cache line; ends the program without memory */
void cpu_clear_border_rows(float *y, CpuShape s, int from,
                           int to); /* of a plane: beside these rows, above 0, below h */

#ifdef __cplusplus
}
#endif

#endif /* PHASE5_PRODUCTION_CPU_CONV2D_PLAN_H */
