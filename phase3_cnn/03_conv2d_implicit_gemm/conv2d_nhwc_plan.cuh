/* conv2d_nhwc_plan.cuh - how conv2d_nhwc_wgmma.cuh cuts a convolution into tiles and copies.
 *
 * The pixels of an image, one row of 64 channels each, lie in shared memory as rows of 128 bytes, image row after image
 * row, `pitch` pixels from one to the next. Output (p,q) of the tile needs for tap (r,s) the pixel (p + u, q + v), and
 * so the tile of all outputs needs the pixels from u * pitch + v on: every tap reads the same pixels, shifted. A box is
 * copied once and serves all taps.
 *
 *   pitch    the padding on the right of an image row is that on the left of the next one: one column serves both.
 *            Columns of the padding give sums that are not stored
 *   planes   with stride 2 tap (r,s) reads every second row and column: the image is four planes, for even and odd
 *            rows and columns, and a tap reads one of them as with stride 1
 *   phases   the gradient of x with stride 2: even and odd rows and columns of dx are four problems with filters of
 *            their own, the taps that reach them
 *   added    what a residual block adds is one more tap, of another image: its box is copied and multiplied by weights
 *            of its own, those of the block's convolution of 1 x 1 or those of an identity. No array is added later
 */
#ifndef PHASE3_CNN_CONV2D_NHWC_PLAN_CUH
#define PHASE3_CNN_CONV2D_NHWC_PLAN_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

enum {
  CONV2D_NHWC_TAPS = 64,           /* of a filter, at most */
  CONV2D_NHWC_PLANES = 4,          /* stride 2 x 2 */
  CONV2D_NHWC_ROW = 128,           /* bytes of 64 channels of 16 bits, or of 32 floats */
  CONV2D_NHWC_BLOCK = 64,          /* channels or filters */
  CONV2D_NHWC_IDENTITY = 128,      /* rows and columns of the matrix that an added image is multiplied by */
  CONV2D_NHWC_SHARED = 225 * 1024, /* a block may have 227 KiB, with its barriers */
};

/* A box of pixels and the taps that read it. */
typedef struct Conv2dNhwcChunk {
  int plane, row,
      col; /* of the input, plan->planes: the added image; where the box begins, from the tile's first pixel */
  int first_tap, taps, channels;
} Conv2dNhwcChunk;

/* What is added to the sums of a convolution of stride 1, before ReLU: nothing, an image of the outputs' shape, or an
 * image through a convolution of 1 x 1. */
typedef enum Conv2dNhwcAdded {
  CONV2D_NHWC_ADDS_NOTHING,
  CONV2D_NHWC_ADDS_IMAGE,
  CONV2D_NHWC_ADDS_PRODUCT,
} Conv2dNhwcAdded;

typedef struct Conv2dNhwcTap {
  int shift;  /* in pixels, from the box's first */
  int filter; /* r * S + s */
} Conv2dNhwcTap;

typedef struct Conv2dNhwcPlan {
  /* the convolution: GEMM of `filters` rows, depth `channels` x taps */
  int channels, filters, images, rows, cols; /* rows, cols: of the output, of the largest problem */
  int row_channels;                          /* of a row of 128 bytes: 64, or 32 floats */
  Conv2dNhwcAdded added;
  int problems, planes;
  int first_chunk[CONV2D_NHWC_PLANES + 1]; /* of each problem, and the end */
  Conv2dNhwcChunk chunk[CONV2D_NHWC_TAPS + CONV2D_NHWC_PLANES];
  Conv2dNhwcTap tap[CONV2D_NHWC_TAPS + CONV2D_NHWC_PLANES];
  /* tiles */
  int pixels;                            /* sums along the pixels: columns of wgmma */
  int blocks;                            /* of 64 filters per tile of pixels: 1 or 2 */
  int tile_images, tile_rows, tile_cols; /* of outputs */
  int pitch, image_rows;                 /* pixels per row, rows per image in shared memory */
  int box_rows;                          /* image rows of a box */
  int tiles, tiles_filters, tiles_images, tiles_rows, tiles_cols;
  /* shared memory */
  int buffer_rows, pixel_stages, weight_stages;
  double cost;
} Conv2dNhwcPlan;

static inline int conv2d_nhwc_floor_div(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/* One axis: which plane (or phase) tap r belongs to, and where it reads: input row = output row + *at. -1: nowhere. */
static inline int conv2d_nhwc_axis(bool backward, int r, int stride, int padding, int dilation, int phase, int *at) {
  int t = backward ? phase + padding - r * dilation : r * dilation - padding;
  *at = conv2d_nhwc_floor_div(t, stride);
  int rest = t - *at * stride;
  if (backward) return rest == 0 ? 0 : -1;
  return rest;
}

/* Rows or columns of plane `phase` of `size` with this stride. */
static inline int conv2d_nhwc_plane_size(int size, int stride, int phase) {
  return size > phase ? (size - phase + stride - 1) / stride : 0;
}

/* The smallest pitch at which `count` outputs, whose taps reach from `low` to `high`, find zeros where they leave the
 * input of `size`: padding beyond the last pixel may be that before the first one of the next row. */
static inline int conv2d_nhwc_pitch(int count, int low, int high, int size) {
  int span = count + high - low;
  for (int pitch = count; pitch < span; pitch++)
    if (span - pitch <= -low && low + pitch >= size) return pitch;
  return span;
}

/* Fills the chunks and taps; in *low_high the reach of each chunk. -1: too many taps. */
typedef struct Conv2dNhwcReach {
  int row_low, row_high, col_low, col_high;
} Conv2dNhwcReach;

static inline int conv2d_nhwc_plan_taps(Conv2dNhwcPlan *plan, Conv2dNhwcReach *reach, Conv2dShape s, bool backward,
                                        bool shared_box, int added_channels) {
  int chunks = 0, taps = 0, phases_h = backward ? s.stride_h : 1, phases_w = backward ? s.stride_w : 1;
  int planes_h = backward ? 1 : s.stride_h, planes_w = backward ? 1 : s.stride_w;
  plan->problems = phases_h * phases_w;
  plan->planes = planes_h * planes_w;
  for (int problem = 0; problem < plan->problems; problem++) {
    plan->first_chunk[problem] = chunks;
    for (int plane = 0; plane < plan->planes; plane++) {
      bool open = false;
      for (int r = 0; r < s.r; r++)
        for (int q = 0; q < s.s; q++) {
          int row, col;
          int a = conv2d_nhwc_axis(backward, r, s.stride_h, s.padding_h, s.dilation_h, problem / phases_w, &row);
          int b = conv2d_nhwc_axis(backward, q, s.stride_w, s.padding_w, s.dilation_w, problem % phases_w, &col);
          if (a != plane / planes_w || b != plane % planes_w) continue;
          if (taps >= CONV2D_NHWC_TAPS) return -1;
          if (!open || !shared_box) {
            plan->chunk[chunks] = {plane, row, col, taps, 0, plan->channels};
            reach[chunks++] = {row, row, col, col};
            open = true;
          }
          Conv2dNhwcReach *here = &reach[chunks - 1];
          if (row < here->row_low) here->row_low = row;
          if (row > here->row_high) here->row_high = row;
          if (col < here->col_low) here->col_low = col;
          if (col > here->col_high) here->col_high = col;
          plan->tap[taps++] = {row * 65536 | (col & 0xFFFF), r * s.s + q}; /* until the pitch is known */
          plan->chunk[chunks - 1].taps++;
        }
    }
    if (plan->first_chunk[problem] == chunks) { /* no tap reaches this phase: a box outside of the image, zeros */
      plan->chunk[chunks] = {0, -(1 << 14), -(1 << 14), taps, 1, CONV2D_NHWC_BLOCK};
      reach[chunks++] = {-(1 << 14), -(1 << 14), -(1 << 14), -(1 << 14)};
      plan->tap[taps++] = {-(1 << 14) * 65536 | (-(1 << 14) & 0xFFFF), 0};
    }
  }
  if (plan->added != CONV2D_NHWC_ADDS_NOTHING) { /* of an identity a block of filters needs its own channels alone */
    if (plan->problems != 1 || plan->planes != 1 || taps >= CONV2D_NHWC_TAPS) return -1;
    plan->chunk[chunks] = {plan->planes, 0, 0, taps, 1, added_channels};
    reach[chunks++] = {0, 0, 0, 0};
    plan->tap[taps++] = {0, 0};
  }
  plan->first_chunk[plan->problems] = chunks;
  return 0;
}

/* Clocks of an H200, roughly: for each step of a row of channels and a tap the products, or the copies if these take
 * longer, at 50 bytes per clock and multiprocessor. */
static inline double conv2d_nhwc_cost(const Conv2dNhwcPlan *plan, int multiprocessors) {
  double box = (double)plan->box_rows * plan->tile_images * plan->pitch * CONV2D_NHWC_ROW * (plan->blocks == 1 ? 2 : 1);
  double total = 0, longest = 0;
  for (int problem = 0; problem < plan->problems; problem++) {
    double clocks = 3000;
    for (int c = plan->first_chunk[problem]; c < plan->first_chunk[problem + 1]; c++) {
      int taps = plan->chunk[c].taps;
      double products = 4.0 * plan->pixels * taps, weights = plan->blocks * 8192.0 * taps;
      double steps = (plan->chunk[c].channels + plan->row_channels - 1) / plan->row_channels;
      clocks += steps * (products * 50 > box + weights ? products : (box + weights) / 50);
    }
    total += clocks * (plan->tiles / plan->problems);
    if (clocks > longest) longest = clocks;
  }
  double rounds = (plan->tiles + multiprocessors - 1) / multiprocessors;
  double cost = plan->problems == 1 ? rounds * longest : total / multiprocessors + longest / 2;
  return plan->blocks == 1 ? cost * 1.03 : cost;
}

/* Completes a plan whose tile is chosen: pitch, boxes, shared memory. -1: it does not fit. */
static inline int conv2d_nhwc_plan_tile(Conv2dNhwcPlan *plan, const Conv2dNhwcReach *reach, int plane_rows,
                                        int plane_cols, int multiprocessors) {
  int chunks = plan->first_chunk[plan->problems], pitch = 0, image_rows = 0, high = 0, most_shift = 0;
  if (plan->added == CONV2D_NHWC_ADDS_IMAGE) plan->chunk[chunks - 1].channels = CONV2D_NHWC_BLOCK * plan->blocks;
  bool whole = plan->tile_cols == plan->cols, several = plan->tile_images > 1;
  for (int i = 0; i < chunks; i++) {
    const Conv2dNhwcReach *r = &reach[i];
    int p = whole ? conv2d_nhwc_pitch(plan->tile_cols, r->col_low, r->col_high, plane_cols)
                  : plan->tile_cols + r->col_high - r->col_low;
    int h = conv2d_nhwc_pitch(plan->tile_rows, r->row_low, r->row_high, plane_rows);
    if (p > pitch) pitch = p;
    if (h > image_rows) image_rows = h;
    if (r->row_high - r->row_low > high) high = r->row_high - r->row_low;
  }
  if (pitch > 256) return -1;
  plan->pitch = pitch;
  plan->image_rows = several ? image_rows : plan->tile_rows;
  plan->box_rows = several ? image_rows : plan->tile_rows + high;
  int sums = ((plan->tile_images - 1) * plan->image_rows + plan->tile_rows - 1) * pitch + plan->tile_cols;
  if (plan->box_rows > 256 || sums > plan->pixels) return -1;
  int box = plan->box_rows * plan->tile_images * pitch, rows = box;
  for (int i = 0; i < chunks; i++) {
    int shift = (reach[i].row_high - reach[i].row_low) * pitch + reach[i].col_high - reach[i].col_low;
    if (shift > most_shift) most_shift = shift;
  }
  if (most_shift + plan->pixels > rows) rows = most_shift + plan->pixels;
  int store = plan->tile_images * plan->image_rows * pitch, staging = store > plan->pixels ? store : plan->pixels;
  staging = plan->row_channels == CONV2D_NHWC_BLOCK ? (staging + 7) / 8 * 8 : 0; /* floats are stored by the threads */
  if (plan->blocks == 1) { /* outputs are written from where the pixels were */
    if (most_shift > 0 && staging > box) return -1;
    if (staging > rows) rows = staging;
  }
  plan->buffer_rows = (rows + 7) / 8 * 8;
  int buffer = plan->buffer_rows * CONV2D_NHWC_ROW * (plan->blocks == 1 ? 2 : 1);
  int weights = plan->blocks * CONV2D_NHWC_BLOCK * CONV2D_NHWC_ROW;
  int rest = CONV2D_NHWC_SHARED - (plan->blocks == 2 ? 2 * staging * CONV2D_NHWC_ROW : 0);
  int taps_per_box = plan->tap[0].filter >= 0 ? plan->chunk[0].taps : 1;
  plan->pixel_stages = taps_per_box == 1 ? 4 : 2;
  while (plan->pixel_stages > 2 && rest - plan->pixel_stages * buffer < 4 * weights) plan->pixel_stages--;
  rest -= plan->pixel_stages * buffer;
  plan->weight_stages = rest / weights < 8 ? rest / weights : 8;
  if (rest < 0 || plan->weight_stages < 2) return -1;

  plan->tiles_filters = (plan->filters + 64 * plan->blocks - 1) / (64 * plan->blocks);
  plan->tiles_images = (plan->images + plan->tile_images - 1) / plan->tile_images;
  plan->tiles_rows = (plan->rows + plan->tile_rows - 1) / plan->tile_rows;
  plan->tiles_cols = (plan->cols + plan->tile_cols - 1) / plan->tile_cols;
  int pixel_tiles = plan->tiles_images * plan->tiles_rows * plan->tiles_cols;
  if (plan->blocks == 1) pixel_tiles = (pixel_tiles + 1) / 2;
  plan->tiles = plan->problems * plan->tiles_filters * pixel_tiles;
  plan->cost = conv2d_nhwc_cost(plan, multiprocessors);
  return 0;
}

typedef enum Conv2dNhwcBoxes {
  CONV2D_NHWC_BEST,       /* what costs less */
  CONV2D_NHWC_SHARED_BOX, /* one box of pixels for all taps of a plane */
  CONV2D_NHWC_BOX_PER_TAP,
} Conv2dNhwcBoxes;

/* What a plan may be; 0: anything. */
typedef struct Conv2dNhwcLimits {
  Conv2dNhwcBoxes boxes;
  int pixels, blocks;
  bool floats = false; /* of the types: 32 bits, not 16 */
  Conv2dNhwcAdded added = CONV2D_NHWC_ADDS_NOTHING;
  int added_channels = 0; /* of CONV2D_NHWC_ADDS_PRODUCT */
} Conv2dNhwcLimits;

/* Shifts, now that the pitch is known. */
static inline void conv2d_nhwc_plan_finish(Conv2dNhwcPlan *plan, const Conv2dNhwcReach *reach) {
  for (int c = 0; c < plan->first_chunk[plan->problems]; c++) {
    Conv2dNhwcChunk *chunk = &plan->chunk[c];
    chunk->row = reach[c].row_low;
    chunk->col = reach[c].col_low;
    for (int t = chunk->first_tap; t < chunk->first_tap + chunk->taps; t++) {
      int row = plan->tap[t].shift >> 16, col = (short)(plan->tap[t].shift & 0xFFFF);
      plan->tap[t].shift = (row - chunk->row) * plan->pitch + col - chunk->col;
    }
  }
}

/* Tries all tiles with one kind of boxes. `best` has the best plan so far, or cost 0. */
static inline void conv2d_nhwc_plan_boxes(Conv2dNhwcPlan *best, Conv2dShape s, bool backward, bool shared_box,
                                          Conv2dNhwcLimits limits, int multiprocessors) {
  static const int pixels[] = {128, 208, 216, 232, 256};
  int in_h = backward ? conv2d_out_h(s) : conv2d_nhwc_plane_size(s.h, s.stride_h, 0);
  int in_w = backward ? conv2d_out_w(s) : conv2d_nhwc_plane_size(s.w, s.stride_w, 0);
  Conv2dNhwcPlan base = {};
  Conv2dNhwcReach reach[CONV2D_NHWC_TAPS + CONV2D_NHWC_PLANES];
  base.row_channels = limits.floats ? CONV2D_NHWC_BLOCK / 2 : CONV2D_NHWC_BLOCK;
  base.added = limits.added;
  base.channels = backward ? s.k : s.c;
  base.filters = backward ? s.c : s.k;
  base.images = s.n;
  base.rows = backward ? conv2d_nhwc_plane_size(s.h, s.stride_h, 0) : conv2d_out_h(s);
  base.cols = backward ? conv2d_nhwc_plane_size(s.w, s.stride_w, 0) : conv2d_out_w(s);
  if (conv2d_nhwc_plan_taps(&base, reach, s, backward, shared_box, limits.added_channels) != 0) return;
  int halo = 0; /* columns of a box beside those of the outputs */
  for (int c = 0; c < base.first_chunk[base.problems]; c++)
    if (reach[c].col_high - reach[c].col_low > halo) halo = reach[c].col_high - reach[c].col_low;
  for (int i = 0; i < 10; i++) {
    base.blocks = 1 + i % 2;
    base.pixels = pixels[i / 2];
    if ((limits.pixels && base.pixels != limits.pixels) || (limits.blocks && base.blocks != limits.blocks)) continue;
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
      if (conv2d_nhwc_plan_tile(&plan, reach, in_h, in_w, multiprocessors) != 0) continue;
      if (best->cost > 0 && plan.cost >= best->cost) continue;
      conv2d_nhwc_plan_finish(&plan, reach);
      *best = plan;
    }
  }
}

/* The best plan for a convolution, or for the gradient of its input. Returns -1 and says why if the shape does not
 * suit. */
static inline int conv2d_nhwc_plan(Conv2dNhwcPlan *best, Conv2dShape s, bool backward, Conv2dNhwcLimits limits,
                                   int multiprocessors, Error *err) {
  Conv2dShapeText text = conv2d_shape_text(s);
  if (s.groups != 1)
    return error_set(err, "the wgmma convolution computes one group; this one is %s: use nhwc_mma", text.text);
  const int run = limits.floats ? 4 : 8;
  if (s.c % run != 0 || s.k % run != 0 || limits.added_channels % run != 0)
    return error_set(err, "TMA copies channels in multiples of %d; this one is %s: use nhwc_mma", run, text.text);
  if (limits.added != CONV2D_NHWC_ADDS_NOTHING && (backward || s.stride_h != 1 || s.stride_w != 1))
    return error_set(err, "only a convolution of stride 1 can add another image; this one is %s: use nhwc_mma",
                     text.text);
  if (s.stride_h > 2 || s.stride_w > 2 || s.r * s.s > CONV2D_NHWC_TAPS - CONV2D_NHWC_PLANES || s.padding_h > 1000 ||
      s.padding_w > 1000)
    return error_set(err,
                     "the wgmma convolution takes a stride of 1 or 2 and up to %d taps; this one is %s: use nhwc_mma",
                     CONV2D_NHWC_TAPS - CONV2D_NHWC_PLANES, text.text);
  if (s.h < s.stride_h || s.w < s.stride_w) /* a plane without rows or columns, which no tensor map can describe */
    return error_set(err,
                     "the wgmma convolution takes images that are at least as large as the stride; this one is %s: "
                     "use nhwc_mma",
                     text.text);
  if (conv2d_span_h(s) > SHRT_MAX || conv2d_span_w(s) > SHRT_MAX) /* a row and a column share an int */
    return error_set(err, "the wgmma convolution takes filters that span up to %d pixels; this one is %s: use nhwc_mma",
                     SHRT_MAX, text.text);
  best->cost = 0;
  if (limits.boxes != CONV2D_NHWC_BOX_PER_TAP) conv2d_nhwc_plan_boxes(best, s, backward, true, limits, multiprocessors);
  if (limits.boxes != CONV2D_NHWC_SHARED_BOX) conv2d_nhwc_plan_boxes(best, s, backward, false, limits, multiprocessors);
  if (best->cost == 0) return error_set(err, "no tile of %s fits into shared memory: use nhwc_mma", text.text);
  return 0;
}

#endif /* PHASE3_CNN_CONV2D_NHWC_PLAN_CUH */
