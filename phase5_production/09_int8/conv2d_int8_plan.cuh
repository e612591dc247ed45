/* conv2d_int8_plan.cuh - how conv2d_int8_wgmma.cuh cuts a convolution into tiles and copies.
 *
 * Boxes, pitches, planes and taps are those of conv2d_nhwc_plan.cuh. What differs:
 *
 *   rows     a pixel's row in shared memory has 128 channels of 1 byte; where the input has at most 64, it has 64
 *   tiles    one tile is 64 filters of `pixels` sums. The two groups of four warps that multiply have a tile each, in
 *            turns: while one rounds and stores its sums, the other one has the tensor cores
 *   weights  where those of 64 filters fit beside the rest they stay in shared memory, all of them: a block
 *            computes tiles of these filters alone, and only pixels are copied. Otherwise they pass through a ring,
 *            and two blocks, a cluster, have tiles of the same filters: each copies half of the weights, to both.
 *            An H200's L2 cache gives each multiprocessor some 20 bytes per clock when all of them read, and int8
 *            products need more
 *   widths   wgmma has 8, 16, 24, 32, and then multiples of 16 columns of integers
 *   staging  outputs leave through shared memory, 64 bytes for each pixel; what is added comes in the same way
 */
#ifndef PHASE5_PRODUCTION_CONV2D_INT8_PLAN_CUH
#define PHASE5_PRODUCTION_CONV2D_INT8_PLAN_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_plan.cuh"

enum {
  CONV2D_INT8_RUN = 16,     /* channels and filters are multiples of it: TMA copies 16 bytes */
  CONV2D_INT8_STAGES = 24,  /* of weights or pixels, at most */
  CONV2D_INT8_RING = 12,    /* of weights that pass */
  CONV2D_INT8_TOGETHER = 3, /* taps of weights that pass whose products are started together */
  CONV2D_INT8_STORE = 64,   /* bytes of a pixel's outputs in shared memory: one for each filter of a tile */
};

/* Bytes of one staging buffer; there are two. */
static inline int conv2d_int8_staging(const Conv2dNhwcPlan *plan) {
  const int store = plan->tile_images * plan->image_rows * plan->pitch;
  return ((store > plan->pixels ? store : plan->pixels) + 15) / 16 * 16 * CONV2D_INT8_STORE;
}

/* Rows of channels of a tap; stages of weights of a tile. */
static inline __host__ __device__ int conv2d_int8_rows(const Conv2dNhwcPlan *plan) {
  return (plan->channels + plan->row_channels - 1) / plan->row_channels;
}
static inline __host__ __device__ int conv2d_int8_tile_stages(const Conv2dNhwcPlan *plan) {
  int taps = 0;
  for (int c = 0; c < plan->first_chunk[1]; c++) taps += plan->chunk[c].taps;
  return taps * conv2d_int8_rows(plan);
}

/* Whether the weights stay. */
static inline __host__ __device__ bool conv2d_int8_stays(const Conv2dNhwcPlan *plan) {
  return plan->weight_stages == conv2d_int8_tile_stages(plan);
}

/* Taps whose products are started together. Two such sets are under way, so of weights that pass half of the ring at
 * most. */
static inline __host__ __device__ int conv2d_int8_together(const Conv2dNhwcPlan *plan) {
  if (conv2d_int8_stays(plan)) return CONV2D_NHWC_TAPS;
  return plan->weight_stages / 2 < CONV2D_INT8_TOGETHER ? plan->weight_stages / 2 : CONV2D_INT8_TOGETHER;
}

/* Blocks that share the weights that pass: 1 or 2. */
static inline __host__ __device__ int conv2d_int8_team(const Conv2dNhwcPlan *plan) {
  return conv2d_int8_stays(plan) || plan->tiles < 2 * plan->tiles_filters ? 1 : 2;
}

/* Tiles of a team: those of both blocks, one tile of pixels beside the other, perhaps beyond the last. */
static inline __host__ __device__ int conv2d_int8_team_tiles(const Conv2dNhwcPlan *plan) {
  const int team = conv2d_int8_team(plan), pixel_tiles = plan->tiles / plan->tiles_filters;
  return (pixel_tiles + team - 1) / team * plan->tiles_filters;
}

/* Blocks of the grid. Where weights stay, a multiple of the blocks of filters: then a block's tiles have the same
 * ones. */
static inline int conv2d_int8_blocks(const Conv2dNhwcPlan *plan, int multiprocessors) {
  if (!conv2d_int8_stays(plan)) {
    const int team = conv2d_int8_team(plan), tiles = conv2d_int8_team_tiles(plan), most = multiprocessors / team;
    return (tiles < most ? tiles : most) * team;
  }
  const int each = multiprocessors / plan->tiles_filters, pixel_tiles = plan->tiles / plan->tiles_filters;
  return (each < pixel_tiles ? each : pixel_tiles) * plan->tiles_filters;
}

enum { CONV2D_INT8_L2_BYTES = 20, CONV2D_INT8_END = 600, CONV2D_INT8_SUM = 10 }; /* per clock; clocks of a tile's end */

/* Clocks of an H200, roughly: of each row of channels and tap the products, or its copies if these take longer. Two
 * groups in turns hide the end of a tile behind the products of the next, unless it takes longer than these. */
static inline double conv2d_int8_cost(const Conv2dNhwcPlan *plan, int multiprocessors) {
  const double box = (double)plan->box_rows * plan->tile_images * plan->pitch * plan->row_channels;
  const double end = CONV2D_INT8_END + CONV2D_INT8_SUM * plan->pixels;
  const int blocks = conv2d_int8_blocks(plan, multiprocessors);
  double clocks = 100;
  for (int c = 0; c < plan->first_chunk[1]; c++) {
    const int taps = plan->chunk[c].taps;
    const double products = plan->row_channels / 32 * plan->pixels / 2.0 * taps;
    const double weights = conv2d_int8_stays(plan) ? 0 : (double)CONV2D_NHWC_BLOCK * plan->row_channels * taps;
    const double copies = (box + weights / conv2d_int8_team(plan)) / CONV2D_INT8_L2_BYTES;
    clocks += conv2d_int8_rows(plan) * (products > copies ? products : copies);
  }
  const double rounds = (plan->tiles + blocks - 1) / blocks, turn = clocks > end ? clocks : (clocks + end) / 2;
  return (rounds - 1) * turn + clocks + end;
}

/* Stages in what shared memory has left. -1: it does not fit. */
static inline int conv2d_int8_plan_stages(Conv2dNhwcPlan *plan, int multiprocessors) {
  const int buffer = plan->buffer_rows * plan->row_channels, weights = CONV2D_NHWC_BLOCK * plan->row_channels;
  const int rest = CONV2D_NHWC_SHARED - 2 * conv2d_int8_staging(plan), all = conv2d_int8_tile_stages(plan);
  const int most = plan->chunk[0].taps == 1 ? 6 : 4;
  for (plan->pixel_stages = most; plan->pixel_stages >= 2; plan->pixel_stages--) {
    if (plan->tiles_filters > multiprocessors || all > CONV2D_INT8_STAGES) break;
    if (rest - plan->pixel_stages * buffer < all * weights) continue;
    plan->weight_stages = all;
    return 0;
  }
  plan->pixel_stages = most > 3 ? most - 1 : most;
  while (plan->pixel_stages > 2 && rest - plan->pixel_stages * buffer < 4 * weights) plan->pixel_stages--;
  const int left = (rest - plan->pixel_stages * buffer) / weights;
  plan->weight_stages = left < CONV2D_INT8_RING ? left : CONV2D_INT8_RING;
  if (plan->weight_stages >= all) plan->weight_stages = all - 1; /* these do not stay */
  return rest < plan->pixel_stages * buffer || plan->weight_stages < 2 ? -1 : 0;
}

/* Completes a plan whose tile is chosen. -1: it does not fit. */
static inline int conv2d_int8_plan_tile(Conv2dNhwcPlan *plan, const Conv2dNhwcReach *reach, int plane_rows,
                                        int plane_cols, int multiprocessors) {
  const bool whole = plan->tile_cols == plan->cols, several = plan->tile_images > 1;
  int pitch = 0, image_rows = 0, high = 0, most_shift = 0;
  for (int i = 0; i < plan->first_chunk[1]; i++) {
    const Conv2dNhwcReach *r = &reach[i];
    const int p = whole ? conv2d_nhwc_pitch(plan->tile_cols, r->col_low, r->col_high, plane_cols)
                        : plan->tile_cols + r->col_high - r->col_low;
    const int h = conv2d_nhwc_pitch(plan->tile_rows, r->row_low, r->row_high, plane_rows);
    if (p > pitch) pitch = p;
    if (h > image_rows) image_rows = h;
    if (r->row_high - r->row_low > high) high = r->row_high - r->row_low;
  }
  plan->pitch = pitch;
  plan->image_rows = several ? image_rows : plan->tile_rows;
  plan->box_rows = several ? image_rows : plan->tile_rows + high;
  const int sums = ((plan->tile_images - 1) * plan->image_rows + plan->tile_rows - 1) * pitch + plan->tile_cols;
  if (pitch > 256 || plan->box_rows > 256 || sums > plan->pixels) return -1;
  for (int i = 0; i < plan->first_chunk[1]; i++) {
    const int shift = (reach[i].row_high - reach[i].row_low) * pitch + reach[i].col_high - reach[i].col_low;
    if (shift > most_shift) most_shift = shift;
  }
  const int box = plan->box_rows * plan->tile_images * pitch, read = most_shift + plan->pixels;
  plan->buffer_rows = ((read > box ? read : box) + 15) / 16 * 16; /* the swizzle repeats every 8 rows */

  plan->tiles_filters = (plan->filters + CONV2D_NHWC_BLOCK - 1) / CONV2D_NHWC_BLOCK;
  plan->tiles_images = (plan->images + plan->tile_images - 1) / plan->tile_images;
  plan->tiles_rows = (plan->rows + plan->tile_rows - 1) / plan->tile_rows;
  plan->tiles_cols = (plan->cols + plan->tile_cols - 1) / plan->tile_cols;
  plan->tiles = plan->tiles_filters * plan->tiles_images * plan->tiles_rows * plan->tiles_cols;
  if (conv2d_int8_plan_stages(plan, multiprocessors) != 0) return -1;
  plan->cost = conv2d_int8_cost(plan, multiprocessors);
  return 0;
}

/* Tries all tiles with one box for all taps of a plane, or with one for each tap. `best` has the best plan so far, or
 * cost 0. pixels: only so many sums; 0: any. */
static inline void conv2d_int8_plan_boxes(Conv2dNhwcPlan *best, Conv2dShape s, bool shared_box, int pixels,
                                          int multiprocessors) {
  static const int widths[] = {112, 128, 208, 224, 240, 256};
  const int in_h = conv2d_nhwc_plane_size(s.h, s.stride_h, 0), in_w = conv2d_nhwc_plane_size(s.w, s.stride_w, 0);
  Conv2dNhwcPlan base = {};
  Conv2dNhwcReach reach[CONV2D_NHWC_TAPS + CONV2D_NHWC_PLANES];
  base.row_channels = s.c <= 64 ? 64 : 128;
  base.added = CONV2D_NHWC_ADDS_NOTHING;
  base.channels = s.c;
  base.filters = s.k;
  base.images = s.n;
  base.rows = conv2d_out_h(s);
  base.cols = conv2d_out_w(s);
  base.blocks = 1;
  if (conv2d_nhwc_plan_taps(&base, reach, s, false, shared_box, 0) != 0) return;
  int halo = 0; /* columns of a box beside those of the outputs */
  for (int c = 0; c < base.first_chunk[1]; c++)
    if (reach[c].col_high - reach[c].col_low > halo) halo = reach[c].col_high - reach[c].col_low;
  for (int i = 0; i < 6; i++) {
    base.pixels = widths[i];
    if (pixels != 0 && base.pixels != pixels) continue;
    for (int tile = 1; tile <= base.rows + s.n - 1; tile++) { /* image rows, then several images */
      Conv2dNhwcPlan plan = base;
      plan.tile_images = tile <= base.rows ? 1 : tile - base.rows + 1;
      plan.tile_rows = tile <= base.rows ? tile : base.rows;
      plan.tile_cols = base.cols;
      if (base.cols + halo > 256 || base.cols > base.pixels) { /* a part of a row */
        plan.tile_cols = base.pixels + halo > 256 ? 256 - halo : base.pixels;
        if (tile > 1) break;
      } else if ((long long)plan.tile_images * plan.tile_rows * base.cols > base.pixels) {
        break;
      }
      if (conv2d_int8_plan_tile(&plan, reach, in_h, in_w, multiprocessors) != 0) continue;
      if (best->cost > 0 && plan.cost >= best->cost) continue;
      conv2d_nhwc_plan_finish(&plan, reach);
      *best = plan;
    }
  }
}

/* The best plan. -1 and a sentence where wgmma does not take the shape. */
static inline int conv2d_int8_plan(Conv2dNhwcPlan *best, Conv2dShape s, int pixels, int multiprocessors, Error *err) {
  const Conv2dShapeText text = conv2d_shape_text(s);
  best->cost = 0;
  if (s.groups != 1 || s.c % CONV2D_INT8_RUN != 0 || s.k % CONV2D_INT8_RUN != 0)
    return error_set(err,
                     "wgmma of int8 takes one group, channels and filters in multiples of %d; this one is %s: use mma",
                     CONV2D_INT8_RUN, text.text);
  if (s.stride_h > 2 || s.stride_w > 2 || s.r * s.s > CONV2D_NHWC_TAPS - CONV2D_NHWC_PLANES || s.padding_h > 1000 ||
      s.padding_w > 1000 || conv2d_span_h(s) > SHRT_MAX || conv2d_span_w(s) > SHRT_MAX)
    return error_set(err, "wgmma of int8 takes a stride of 1 or 2 and up to %d taps; this one is %s: use mma",
                     CONV2D_NHWC_TAPS - CONV2D_NHWC_PLANES, text.text);
  if (s.h < s.stride_h || s.w < s.stride_w) /* a plane without rows or columns, which no tensor map can describe */
    return error_set(err, "wgmma of int8 takes images at least as large as the stride; this one is %s: use mma",
                     text.text);
  conv2d_int8_plan_boxes(best, s, true, pixels, multiprocessors);
  conv2d_int8_plan_boxes(best, s, false, pixels, multiprocessors);
  if (best->cost == 0) return error_set(err, "no tile of %s fits into shared memory: use mma", text.text);
  return 0;
}

#endif /* PHASE5_PRODUCTION_CONV2D_INT8_PLAN_CUH */
