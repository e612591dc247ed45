/* conv2d_cpu_fast.cuh - convolution (conv2d.cuh) on the CPU as training runs it: SIMD over the images of a batch.
 *
 * One vector holds the same element of LANES images, so x becomes (groups of images, C, padded H, padded W, LANES).
 * Then no inner loop has an edge, a stride or an odd row length: where tap t of pixel i reads is one sum,
 *
 *     x_lanes[pixel[i] + tap[t]]
 *
 * and an innermost loop adds up a register tile of filters x pixels (filters x taps, taps x pixels). The price is to
 * transpose what goes in and comes out, about a tenth of the time at LeNet's sizes. With groups, the same tables serve
 * each of them, from another channel on.
 *
 * A batch that would leave most lanes empty, of one image above all, goes another way forward: a vector holds the same
 * pixel of LANES filters, whose weights are transposed for it. The sums have the same terms in the same order, so the
 * results have the same bits.
 *
 * What does not fit into a cache is divided so that a part of it does: forward takes some rows of the image through all
 * filters before the next rows; backward_weight some pixels, and goes on with the sums where it left them;
 * backward_input takes a few channels together, so that it reads dy less often.
 *
 * The work is divided into tasks (group of images, block of pixels, tile of planes). Each task writes what no other
 * task writes, in an order of its own; threads only share out the tasks. A task is a template, compiled for vectors of
 * 16 floats with AVX-512, 8 with AVX2, and 4 for any other processor, with the tile that fits its registers (32 or 16).
 * One vector type for all would not do: GCC 12 turns a vector wider than the processor's into copies through memory,
 * twenty times slower.
 *
 * In this file: the plan and its workspace; packing; one task per operation; the choice of the processor's version; the
 * three functions that the networks call.
 */
#ifndef PHASE3_CNN_CONV2D_CPU_FAST_CUH
#define PHASE3_CNN_CONV2D_CPU_FAST_CUH

#include <string.h>

#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"

typedef struct Conv2dPlan {
  Conv2dShape shape;
  int vector;            /* floats in a vector */
  int lanes, groups;     /* images in a vector, or 1 where it holds filters; ceil(N / lanes) */
  int channels, filters; /* of each of the shape's groups */
  int height, width;     /* of a padded plane of x */
  int taps;              /* of a filter: channels*R*S */
  int pixels, room;      /* P*Q, and that rounded up to whole tiles of dy: the last pixel again, with dy = 0 */
  int block_pixels;      /* forward: in a block of pixels, a multiple of CONV2D_TABLE */
  int block_channels;    /* backward_input: that a task takes together */
  int *tap, *pixel;      /* offsets into a group of x_lanes from a group's first channel on */
  float *x_lanes;        /* (groups,C,height,width,lanes), or dx */
  float *dy_lanes;       /* (groups,K,room,lanes) */
  float *dw_lanes;       /* (groups,K,taps+1,lanes), last the bias: one partial sum for each image of a group */
  float *w_tiles;        /* in the place of dw_lanes: tiles of CONV2D_TAPS taps of the filters of a group, or, where a
                            vector holds filters, (taps, filters rounded up to whole vectors) */
  const float *x, *dy, *w, *bias; /* the arguments of the call */
  float *y, *dx, *dw, *dbias;
  int relu; /* y is max(0, what the convolution gives) */
} Conv2dPlan;

#if defined(__AVX512F__) /* by -march: simd.h */
#define CONV2D_USUAL_LANES 16
#elif defined(__AVX__)
#define CONV2D_USUAL_LANES 8
#elif defined(__x86_64__)
#define CONV2D_USUAL_LANES (__builtin_cpu_supports("x86-64-v4") ? 16 : __builtin_cpu_supports("x86-64-v3") ? 8 : 4)
#else
#define CONV2D_USUAL_LANES 4
#endif
#ifndef CONV2D_LANES /* the test and the benchmark set it, to run every version on one machine */
#define CONV2D_LANES CONV2D_USUAL_LANES
#endif

enum {
  CONV2D_PIXELS = 4,        /* of a tile */
  CONV2D_TAPS = 5,          /* of a tile: those of a row of a 5 x 5 filter */
  CONV2D_TABLE = 12,        /* the table of pixels is a multiple of this, as every tile of forward is a divisor of it */
  CONV2D_MANY = 32,         /* filters: a tile of six of them leaves few over */
  CONV2D_CACHE = 128 << 10, /* floats that forward reads again and again: half of a usual L2 cache */
  CONV2D_NEAR = 4 << 10,    /* of dy, that backward_weight does: half of an L1 cache */
};

SIMD_INLINE size_t conv2d_round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/* The CPU part of conv2d_workspace_floats() in conv2d.cuh. */
static inline size_t conv2d_workspace_floats_cpu(Conv2dShape s) {
  size_t taps = (size_t)(s.c / s.groups) * s.r * s.s;
  size_t plane = (size_t)(s.h + 2 * s.padding_h) * (s.w + 2 * s.padding_w);
  size_t pixels = (size_t)conv2d_out_h(s) * conv2d_out_w(s), room = conv2d_round_up(pixels, CONV2D_PIXELS);
  return conv2d_round_up(taps + conv2d_round_up(pixels, CONV2D_TABLE), SIMD_WIDTH) +
         conv2d_round_up(s.n, SIMD_WIDTH) * (s.c * plane + s.k * room + s.k * (taps + 1));
}

/* Rows of the image that fit into CONV2D_CACHE, less those that a filter needs beyond an output row. */
static inline int conv2d_plan_block(const Conv2dPlan *plan) {
  const Conv2dShape *s = &plan->shape;
  size_t row = (size_t)plan->channels * plan->width * plan->lanes, rows = CONV2D_CACHE / row;
  size_t span = conv2d_span_h(*s), q_count = conv2d_out_w(*s);
  size_t out_rows = rows > span ? (rows - span) / s->stride_h + 1 : 1;
  size_t pixels = conv2d_round_up(out_rows * q_count, CONV2D_TABLE), all = conv2d_round_up(plan->pixels, CONV2D_TABLE);
  return (int)(pixels < all ? pixels : all);
}

/* An eighth of a group's channels, but no more than eight or ten, and so that their taps are whole tiles. */
static inline int conv2d_plan_channels(const Conv2dPlan *plan) {
  int channels = plan->channels / 8 < 1 ? 1 : plan->channels / 8 < 8 ? plan->channels / 8 : 8;
  if (plan->shape.r * plan->shape.s % CONV2D_TAPS != 0) channels = (int)conv2d_round_up(channels, CONV2D_TAPS);
  return channels < plan->channels ? channels : plan->channels;
}

/* lanes: images in a vector. */
static inline Conv2dPlan conv2d_plan_lanes(Conv2dShape s, float *workspace, int lanes) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  Conv2dPlan plan;
  memset(&plan, 0, sizeof plan);
  plan.shape = s;
  plan.vector = CONV2D_LANES;
  plan.lanes = lanes;
  plan.groups = (s.n + plan.lanes - 1) / plan.lanes;
  plan.channels = s.c / s.groups;
  plan.filters = s.k / s.groups;
  plan.height = s.h + 2 * s.padding_h;
  plan.width = s.w + 2 * s.padding_w;
  plan.taps = plan.channels * s.r * s.s;
  plan.pixels = p_count * q_count;
  plan.room = (int)conv2d_round_up(plan.pixels, CONV2D_PIXELS);
  plan.block_pixels = conv2d_plan_block(&plan);
  plan.block_channels = conv2d_plan_channels(&plan);
  plan.tap = (int *)workspace;
  plan.pixel = plan.tap + plan.taps;
  int table = (int)conv2d_round_up(plan.pixels, CONV2D_TABLE);
  size_t images = conv2d_round_up(s.n, SIMD_WIDTH);
  plan.x_lanes = workspace + conv2d_round_up((size_t)plan.taps + table, SIMD_WIDTH);
  plan.dy_lanes = plan.x_lanes + images * s.c * plan.height * plan.width;
  plan.dw_lanes = plan.w_tiles = plan.dy_lanes + images * s.k * plan.room;

  int *tap = plan.tap, *pixel = plan.pixel;
  for (int c = 0; c < plan.channels; c++)
    for (int r = 0; r < s.r; r++)
      for (int i = 0; i < s.s; i++)
        *tap++ = ((c * plan.height + r * s.dilation_h) * plan.width + i * s.dilation_w) * plan.lanes;
  for (int p = 0; p < p_count; p++)
    for (int q = 0; q < q_count; q++) *pixel++ = (p * s.stride_h * plan.width + q * s.stride_w) * plan.lanes;
  for (int i = plan.pixels; i < table; i++, pixel++) *pixel = pixel[-1];
  return plan;
}

static inline Conv2dPlan conv2d_plan(Conv2dShape s, float *workspace) {
  return conv2d_plan_lanes(s, workspace, CONV2D_LANES);
}

/* Whether vectors of filters are fuller than those of images, by twice at least: w must be transposed for them. */
static inline bool conv2d_plan_few(Conv2dShape s) {
  const int vectors = (s.k + CONV2D_LANES - 1) / CONV2D_LANES;
  return s.groups == 1 && s.n < CONV2D_LANES && 2.0 * s.n * vectors <= s.k;
}

SIMD_INLINE int conv2d_min(int a, int b) { return a < b ? a : b; }

/* Tiles of at most `tile` planes, of which none reaches from one of the shape's groups into the next: their number, and
 * the first plane of one of them. */
static inline int conv2d_tiles(int groups, int planes, int tile) { return groups * ((planes + tile - 1) / tile); }

SIMD_INLINE int conv2d_tile_first(int index, int planes, int tile) {
  int tiles = (planes + tile - 1) / tile;
  return index / tiles * planes + index % tiles * tile;
}

/* How many of the lanes of group g hold an image; the last group may not be full. */
SIMD_INLINE int conv2d_group_images(const Conv2dPlan *plan, int g) {
  return conv2d_min(plan->lanes, plan->shape.n - g * plan->lanes);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Packing and unpacking */

/* to[j * to_step + i] = from[i * from_step + j] for rows x cols elements of `from`, four by four. */
SIMD_INLINE void conv2d_transpose(float *to, size_t to_step, const float *from, size_t from_step, int rows, int cols) {
  typedef float V4 __attribute__((vector_size(16), aligned(4), may_alias));
  for (int j = 0; j < cols; j += 4)
    for (int i = 0; i < rows; i += 4) {
      const float *in = from + i * from_step + j;
      float *out = to + j * to_step + i;
      if (i + 4 > rows || j + 4 > cols) {
        for (int a = 0; a < conv2d_min(4, rows - i); a++)
          for (int b = 0; b < conv2d_min(4, cols - j); b++) out[b * to_step + a] = in[a * from_step + b];
        continue;
      }
      V4 a = *(const V4 *)in, b = *(const V4 *)(in + from_step);
      V4 c = *(const V4 *)(in + 2 * from_step), d = *(const V4 *)(in + 3 * from_step);
      V4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      V4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      *(V4 *)out = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
      *(V4 *)(out + to_step) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
      *(V4 *)(out + 2 * to_step) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
      *(V4 *)(out + 3 * to_step) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
}

/* One plane of one group: x (N,C,H,W) -> x_lanes, with its border of zeros. */
template <int LANES, int, int>
SIMD_INLINE void conv2d_pack_x(const Conv2dPlan *plan, int g, int, int c) {
  const Conv2dShape *s = &plan->shape;
  int images = conv2d_group_images(plan, g);
  size_t plane = (size_t)s->h * s->w, padded = (size_t)plan->height * plan->width * LANES;
  const float *x = plan->x + ((size_t)g * LANES * s->c + c) * plane;
  float *to = plan->x_lanes + ((size_t)g * s->c + c) * padded;
  const bool bordered = s->padding_h > 0 || s->padding_w > 0;
  if (images < LANES || bordered) memset(to, 0, padded * sizeof *to);
  int rows = bordered ? s->h : 1, cols = bordered ? s->w : s->h * s->w; /* unpadded: one long row */
  to += ((size_t)plan->width * s->padding_h + s->padding_w) * LANES;
  for (int h = 0; h < rows; h++)
    conv2d_transpose(to + (size_t)h * plan->width * LANES, LANES, x + (size_t)h * cols, s->c * plane, images, cols);
}

/* One plane of one group: dy (N,K,P,Q) -> dy_lanes. */
template <int LANES, int, int>
SIMD_INLINE void conv2d_pack_dy(const Conv2dPlan *plan, int g, int, int k) {
  int filters = plan->shape.k, images = conv2d_group_images(plan, g);
  size_t plane = plan->pixels, room = plan->room;
  float *to = plan->dy_lanes + ((size_t)g * filters + k) * room * LANES;
  size_t first = images < LANES ? 0 : plane; /* what is not written below */
  memset(to + first * LANES, 0, (room - first) * LANES * sizeof *to);
  conv2d_transpose(to, LANES, plan->dy + ((size_t)g * LANES * filters + k) * plane, filters * plane, images,
                   plan->pixels);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One task per operation */

/* KT filters of one group of images, PT pixels at a time. The last tile repeats its last filter, and does not store it.
 */
template <int LANES, int KT, int PT>
SIMD_INLINE void conv2d_forward_tile(const Conv2dPlan *plan, int g, int block, int tile) {
  typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
  static_assert(CONV2D_TABLE % PT == 0, "the table of pixels has whole tiles");
  const Conv2dShape *s = &plan->shape;
  int images = conv2d_group_images(plan, g), taps = plan->taps, pixels = plan->pixels;
  int k = conv2d_tile_first(tile, plan->filters, KT), group = k / plan->filters, last = (group + 1) * plan->filters - 1;
  const int *tap = plan->tap;
  const size_t padded = (size_t)plan->height * plan->width * LANES;
  const float *x = plan->x_lanes + ((size_t)g * s->c + group * plan->channels) * padded;
  float *y = plan->y + (size_t)g * LANES * s->k * pixels;
  const float *w[KT];
  for (int i = 0; i < KT; i++) w[i] = plan->w + (size_t)conv2d_min(k + i, last) * taps;

  int first = block * plan->block_pixels, end = conv2d_min(first + plan->block_pixels, pixels);
  for (int p = first; p < end; p += PT) {
    const float *window[PT];
    for (int j = 0; j < PT; j++) window[j] = x + plan->pixel[p + j];
    V sum[KT][PT];
    for (int i = 0; i < KT; i++) {
      float bias = plan->bias != NULL ? plan->bias[conv2d_min(k + i, last)] : 0;
      for (int j = 0; j < PT; j++) sum[i][j] = V{} + bias;
    }
    for (int t = 0; t < taps; t++) {
      size_t offset = tap[t];
      for (int i = 0; i < KT; i++)
        for (int j = 0; j < PT; j++) sum[i][j] += w[i][t] * *(const V *)(window[j] + offset);
    }
    for (int i = 0; i < KT && plan->relu; i++)
      for (int j = 0; j < PT; j++) sum[i][j] = sum[i][j] < 0 ? V{} : sum[i][j]; /* NaN stays */
    float *to = y + (size_t)k * pixels + p;
    for (int i = 0; i < KT && k + i <= last; i++, to += pixels)
      if (images == LANES && p + PT <= pixels) /* constants, so that the transposition has no loop */
        conv2d_transpose(to, (size_t)s->k * pixels, (const float *)sum[i], LANES, PT, LANES);
      else
        conv2d_transpose(to, (size_t)s->k * pixels, (const float *)sum[i], LANES, conv2d_min(PT, pixels - p), images);
  }
}

/* One plane of image g: x -> x_lanes, with its border of zeros; vectors of filters read single floats. */
template <int, int, int>
SIMD_INLINE void conv2d_pack_image(const Conv2dPlan *plan, int g, int, int c) {
  const Conv2dShape *s = &plan->shape;
  const size_t padded = (size_t)plan->height * plan->width, index = (size_t)g * s->c + c;
  const float *x = plan->x + index * s->h * s->w;
  float *to = plan->x_lanes + index * padded;
  if (s->padding_h > 0 || s->padding_w > 0) memset(to, 0, padded * sizeof *to);
  to += (size_t)plan->width * s->padding_h + s->padding_w;
  for (int h = 0; h < s->h; h++) memcpy(to + (size_t)h * plan->width, x + (size_t)h * s->w, s->w * sizeof *x);
}

/* w (K,taps) -> w_tiles (taps, vectors of filters), a vector of filters each time; filters beyond the last are 0. */
template <int LANES, int, int>
SIMD_INLINE void conv2d_pack_filters(const Conv2dPlan *plan, int, int, int vector) {
  const int filters = conv2d_min(LANES, plan->filters - vector * LANES);
  const size_t step = conv2d_round_up(plan->filters, LANES), taps = plan->taps;
  float *to = plan->w_tiles + (size_t)vector * LANES;
  if (filters < LANES)
    for (size_t t = 0; t < taps; t++) memset(to + t * step, 0, LANES * sizeof *to);
  conv2d_transpose(to, step, plan->w + (size_t)vector * LANES * taps, taps, filters, plan->taps);
}

/* KV vectors of filters of image g, PT pixels at a time: y = the sum over taps of w times one number of x. */
template <int LANES, int KV, int PT>
SIMD_INLINE void conv2d_forward_few_tile(const Conv2dPlan *plan, int g, int block, int tile) {
  typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
  static_assert(CONV2D_TABLE % PT == 0, "the table of pixels has whole tiles");
  const int filters = plan->filters, taps = plan->taps, pixels = plan->pixels, k = tile * KV * LANES;
  const size_t step = conv2d_round_up(filters, LANES);
  const float *x = plan->x_lanes + (size_t)g * plan->shape.c * plan->height * plan->width;
  const float *w[KV];
  V bias[KV];
  for (int i = 0; i < KV; i++) { /* the last tile repeats its last vector, and does not store it */
    const int first = conv2d_min(k + i * LANES, (int)step - LANES);
    w[i] = plan->w_tiles + first;
    bias[i] = V{};
    for (int lane = 0; lane < LANES && plan->bias != NULL && first + lane < filters; lane++)
      ((float *)&bias[i])[lane] = plan->bias[first + lane];
  }
  const int first = block * plan->block_pixels, end = conv2d_min(first + plan->block_pixels, pixels);
  for (int p = first; p < end; p += PT) {
    const float *window[PT];
    for (int j = 0; j < PT; j++) window[j] = x + plan->pixel[p + j];
    V sum[KV][PT];
    for (int i = 0; i < KV; i++)
      for (int j = 0; j < PT; j++) sum[i][j] = bias[i];
    for (int t = 0; t < taps; t++) {
      const size_t offset = plan->tap[t];
      V weight[KV];
      for (int i = 0; i < KV; i++) weight[i] = *(const V *)(w[i] + t * step);
      for (int j = 0; j < PT; j++)
        for (int i = 0; i < KV; i++) sum[i][j] += weight[i] * window[j][offset];
    }
    for (int i = 0; i < KV && plan->relu; i++)
      for (int j = 0; j < PT; j++) sum[i][j] = sum[i][j] < 0 ? V{} : sum[i][j]; /* NaN stays */
    for (int i = 0; i < KV && k + i * LANES < filters; i++) {
      float *to = plan->y + ((size_t)g * filters + k + i * LANES) * pixels + p;
      conv2d_transpose(to, pixels, (const float *)sum[i], LANES, conv2d_min(PT, pixels - p),
                       conv2d_min(LANES, filters - k - i * LANES));
    }
  }
}

/* KT filters of one group of images, TT taps and a block of pixels at a time: each lane adds up the pixels of its own
 * image. Between two blocks the sums wait in dw_lanes. */
template <int LANES, int KT, int TT>
SIMD_INLINE void conv2d_backward_weight_tile(const Conv2dPlan *plan, int g, int, int tile) {
  typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
  enum { BLOCK = CONV2D_NEAR / (KT * LANES) < 64 ? 64 : CONV2D_NEAR / (KT * LANES) };
  const Conv2dShape *s = &plan->shape;
  int taps = plan->taps, pixels = plan->pixels;
  int k = conv2d_tile_first(tile, plan->filters, KT), group = k / plan->filters, last = (group + 1) * plan->filters - 1;
  const int *pixel = plan->pixel;
  const size_t padded = (size_t)plan->height * plan->width * LANES;
  const float *x = plan->x_lanes + ((size_t)g * s->c + group * plan->channels) * padded;
  const float *dy[KT];
  float *dw[KT];
  V bias_sum[KT];
  for (int i = 0; i < KT; i++) {
    size_t row = (size_t)g * s->k + conv2d_min(k + i, last);
    dy[i] = plan->dy_lanes + row * plan->room * LANES;
    dw[i] = plan->dw_lanes + row * (taps + 1) * LANES;
    bias_sum[i] = V{};
    if (k + i <= last) conv2d_pack_dy<LANES, 1, 1>(plan, g, 0, k + i);
  }
  for (int p = 0; p < pixels; p++)
    for (int i = 0; i < KT; i++) bias_sum[i] += *(const V *)(dy[i] + (size_t)p * LANES);
  for (int i = 0; i < KT; i++) *(V *)(dw[i] + (size_t)taps * LANES) = bias_sum[i];

  for (int first = 0; first < pixels; first += BLOCK)
    for (int t = 0; t < taps; t += TT) {
      int end = conv2d_min(first + BLOCK, pixels);
      const float *window[TT];
      for (int j = 0; j < TT; j++) window[j] = x + plan->tap[conv2d_min(t + j, taps - 1)];
      V sum[KT][TT];
      for (int i = 0; i < KT; i++)
        for (int j = 0; j < TT; j++)
          sum[i][j] = first > 0 ? *(const V *)(dw[i] + (size_t)conv2d_min(t + j, taps - 1) * LANES) : V{};
      for (int p = first; p < end; p++) {
        size_t offset = pixel[p];
        for (int i = 0; i < KT; i++)
          for (int j = 0; j < TT; j++)
            sum[i][j] += *(const V *)(dy[i] + (size_t)p * LANES) * *(const V *)(window[j] + offset);
      }
      for (int i = 0; i < KT; i++)
        for (int j = 0; j < TT; j++) *(V *)(dw[i] + (size_t)conv2d_min(t + j, taps - 1) * LANES) = sum[i][j];
    }
}

/* One filter: adds up the groups, then the lanes, always in the same order. */
template <int LANES, int, int>
SIMD_INLINE void conv2d_backward_weight_sum(const Conv2dPlan *plan, int, int, int k) {
  typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
  int taps = plan->taps;
  size_t step = (size_t)plan->shape.k * (taps + 1) * LANES; /* to the next group */
  for (int t = 0; t <= taps; t++) {
    const float *from = plan->dw_lanes + ((size_t)k * (taps + 1) + t) * LANES;
    V sum = V{};
    for (int g = 0; g < plan->groups; g++) sum += *(const V *)(from + g * step);
    float four[4] = {0, 0, 0, 0}; /* lanes 0, 4, 8, ..., lanes 1, 5, 9, ... */
    for (int i = 0; i < LANES; i++) four[i % 4] += ((const float *)&sum)[i];
    float total = (four[0] + four[1]) + (four[2] + four[3]);
    if (t < taps)
      plan->dw[(size_t)k * taps + t] = total;
    else if (plan->dbias != NULL)
      plan->dbias[k] = total;
  }
}

/* The blocks of channels of backward_input: `number` in a group, of which each has so many tiles of taps. */
typedef struct Conv2dChannels {
  int first, count;  /* channels of this block */
  int filter, tiles; /* the first filter of its group; its tiles of taps */
  const float *w;    /* its tiles: (tiles,filters,CONV2D_TAPS) */
} Conv2dChannels;

SIMD_INLINE Conv2dChannels conv2d_channels(const Conv2dPlan *plan, int index) {
  Conv2dChannels block;
  int area = plan->shape.r * plan->shape.s, most = (plan->block_channels * area + CONV2D_TAPS - 1) / CONV2D_TAPS;
  block.first = conv2d_tile_first(index, plan->channels, plan->block_channels);
  block.count = conv2d_min(plan->block_channels, plan->channels - block.first % plan->channels);
  block.filter = block.first / plan->channels * plan->filters;
  block.tiles = (block.count * area + CONV2D_TAPS - 1) / CONV2D_TAPS;
  block.w = plan->w_tiles + (size_t)index * most * plan->filters * CONV2D_TAPS;
  return block;
}

/* The weights of one block of channels; beyond the last tap there are zeros. */
template <int, int, int>
SIMD_INLINE void conv2d_pack_w(const Conv2dPlan *plan, int, int, int index) {
  Conv2dChannels block = conv2d_channels(plan, index);
  int area = plan->shape.r * plan->shape.s, count = block.count * area;
  float *to = (float *)block.w;
  const float *from = plan->w + (size_t)block.filter * plan->taps + block.first % plan->channels * area;
  for (int tile = 0; tile < block.tiles; tile++)
    for (int k = 0; k < plan->filters; k++)
      for (int t = tile * CONV2D_TAPS; t < (tile + 1) * CONV2D_TAPS; t++)
        *to++ = t < count ? from[(size_t)k * plan->taps + t] : 0;
}

/* The planes of dx of one block of channels, of one group of images: TT taps x PT pixels at a time, summed over the
 * filters, then added where they belong. What the tables hold beyond the last tap and pixel adds zero to the last. */
template <int LANES, int, int PT>
SIMD_INLINE void conv2d_backward_input_planes(const Conv2dPlan *plan, int g, int, int index) {
  typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
  enum { TT = CONV2D_TAPS };
  const Conv2dShape *s = &plan->shape;
  Conv2dChannels block = conv2d_channels(plan, index);
  int images = conv2d_group_images(plan, g), filters = plan->filters, count = block.count * s->r * s->s;
  size_t plane = (size_t)s->h * s->w, padded = (size_t)plan->height * plan->width * LANES;
  size_t dy_step = (size_t)plan->room * LANES; /* to the next filter */
  float *sums = plan->x_lanes + ((size_t)g * s->c + block.first) * padded;
  memset(sums, 0, block.count * padded * sizeof *sums);
  for (int p = 0; p < plan->room; p += PT) {
    const float *w = block.w;
    for (int t = 0; t < count; t += TT) {
      const float *dy = plan->dy_lanes + ((size_t)g * s->k + block.filter) * dy_step + (size_t)p * LANES;
      V sum[TT][PT];
      for (int i = 0; i < TT; i++)
        for (int j = 0; j < PT; j++) sum[i][j] = V{};
      for (int k = 0; k < filters; k++, w += TT, dy += dy_step)
        for (int i = 0; i < TT; i++)
          for (int j = 0; j < PT; j++) sum[i][j] += w[i] * *(const V *)(dy + j * LANES);
      for (int i = 0; i < TT; i++) {
        float *to = sums + plan->tap[conv2d_min(t + i, count - 1)];
        for (int j = 0; j < PT; j++) *(V *)(to + plan->pixel[p + j]) += sum[i][j];
      }
    }
  }
  float *dx = plan->dx + ((size_t)g * LANES * s->c + block.first) * plane;
  sums += ((size_t)plan->width * s->padding_h + s->padding_w) * LANES; /* drop the border */
  for (int c = 0; c < block.count; c++, dx += plane, sums += padded)
    for (int h = 0; h < s->h; h++)
      conv2d_transpose(dx + (size_t)h * s->w, s->c * plane, sums + (size_t)h * plan->width * LANES, LANES, s->w,
                       images);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The choice of the processor's version */

typedef void Conv2dTask(const Conv2dPlan *plan, int g, int block, int tile);

/* A task for every tile of every block of every group. Neighbouring tasks share a block. */
static inline void conv2d_run(Conv2dTask *task, const Conv2dPlan *plan, int groups, int blocks, int tiles) {
#pragma omp parallel for collapse(3) schedule(static)
  for (int g = 0; g < groups; g++)
    for (int block = 0; block < blocks; block++)
      for (int tile = 0; tile < tiles; tile++) task(plan, g, block, tile);
}

#if defined(__x86_64__) && !defined(__AVX__)
#define CONV2D_TARGET(arch) __attribute__((target(arch)))
#else
#define CONV2D_TARGET(arch)
#endif

/* Defines NAME_run(): the task TASK with a tile of A16 x B16 for vectors of 16 floats, and so on. It divides `groups`
 * times `planes` planes into tiles of A planes. */
#define CONV2D_VERSIONS(NAME, TASK, A16, B16, A8, B8, A4, B4)                                                          \
  CONV2D_TARGET("arch=x86-64-v4") static inline void NAME##_16(const Conv2dPlan *p, int g, int block, int tile) {      \
    TASK<16, A16, B16>(p, g, block, tile);                                                                             \
  }                                                                                                                    \
  CONV2D_TARGET("arch=x86-64-v3") static inline void NAME##_8(const Conv2dPlan *p, int g, int block, int tile) {       \
    TASK<8, A8, B8>(p, g, block, tile);                                                                                \
  }                                                                                                                    \
  static inline void NAME##_4(const Conv2dPlan *p, int g, int block, int tile) { TASK<4, A4, B4>(p, g, block, tile); } \
  static inline void NAME##_run(const Conv2dPlan *p, int images, int blocks, int groups, int planes) {                 \
    Conv2dTask *task = p->vector == 16 ? NAME##_16 : p->vector == 8 ? NAME##_8 : NAME##_4;                             \
    int tile = p->vector == 16 ? A16 : p->vector == 8 ? A8 : A4;                                                       \
    conv2d_run(task, p, images, blocks, conv2d_tiles(groups, planes, tile));                                           \
  }

CONV2D_VERSIONS(conv2d_pack_x, conv2d_pack_x, 1, 1, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_pack_dy, conv2d_pack_dy, 1, 1, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_pack_w, conv2d_pack_w, 1, 1, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_forward, conv2d_forward_tile, 6, 4, 2, 4, 2, 4)
CONV2D_VERSIONS(conv2d_forward_many, conv2d_forward_tile, 6, 4, 6, 2, 2, 4)    /* many filters per group */
CONV2D_VERSIONS(conv2d_forward_single, conv2d_forward_tile, 1, 12, 1, 6, 1, 6) /* one filter per group */
CONV2D_VERSIONS(conv2d_pack_image, conv2d_pack_image, 1, 1, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_pack_filters, conv2d_pack_filters, 1, 1, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_forward_few, conv2d_forward_few_tile, 2, 12, 2, 6, 2, 4) /* vectors of filters */
CONV2D_VERSIONS(conv2d_weight, conv2d_backward_weight_tile, 4, CONV2D_TAPS, 2, CONV2D_TAPS, 2, CONV2D_TAPS)
CONV2D_VERSIONS(conv2d_weight_single, conv2d_backward_weight_tile, 1, CONV2D_TAPS, 1, CONV2D_TAPS, 1, CONV2D_TAPS)
CONV2D_VERSIONS(conv2d_weight_sum, conv2d_backward_weight_sum, 1, 1, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_input, conv2d_backward_input_planes, 1, CONV2D_PIXELS, 1, CONV2D_PIXELS / 2, 1,
                CONV2D_PIXELS / 2)

/* ---------------------------------------------------------------------------------------------------------------- */
/* What the networks call */

/* Shapes as in conv2d_cpu.cuh; workspace: conv2d_workspace_floats(DEVICE_CPU, ...) of this or a larger batch. */
static inline void conv2d_forward_cpu_fast_if(float *y, const float *x, const float *w, const float *bias,
                                              Conv2dShape shape, float *workspace, int relu) {
  const bool few = conv2d_plan_few(shape);
  Conv2dPlan plan = few ? conv2d_plan_lanes(shape, workspace, 1) : conv2d_plan(shape, workspace);
  plan.relu = relu;
  plan.y = y;
  plan.x = x;
  plan.w = w;
  plan.bias = bias;
  if (few) {
    const int vectors = (shape.k + plan.vector - 1) / plan.vector;
    plan.block_pixels = (int)conv2d_round_up((plan.pixels + 3) / 4, CONV2D_TABLE); /* so that threads share an image */
    conv2d_pack_image_run(&plan, shape.n, 1, 1, shape.c);
    conv2d_pack_filters_run(&plan, 1, 1, 1, vectors);
    conv2d_forward_few_run(&plan, shape.n, (plan.pixels + plan.block_pixels - 1) / plan.block_pixels, 1, vectors);
    return;
  }
  int blocks = (plan.pixels + plan.block_pixels - 1) / plan.block_pixels;
  conv2d_pack_x_run(&plan, plan.groups, 1, 1, shape.c);
  if (plan.filters == 1)
    conv2d_forward_single_run(&plan, plan.groups, blocks, shape.groups, 1);
  else if (plan.filters >= CONV2D_MANY && plan.taps >= 2 * CONV2D_MANY)
    conv2d_forward_many_run(&plan, plan.groups, blocks, shape.groups, plan.filters);
  else
    conv2d_forward_run(&plan, plan.groups, blocks, shape.groups, plan.filters);
}

static inline void conv2d_forward_cpu_fast(float *y, const float *x, const float *w, const float *bias,
                                           Conv2dShape shape, float *workspace) {
  conv2d_forward_cpu_fast_if(y, x, w, bias, shape, workspace, 0);
}

/* max(0, y), in the same pass: for inference. */
static inline void conv2d_relu_forward_cpu_fast(float *y, const float *x, const float *w, const float *bias,
                                                Conv2dShape shape, float *workspace) {
  conv2d_forward_cpu_fast_if(y, x, w, bias, shape, workspace, 1);
}

static inline void conv2d_backward_input_cpu_fast(float *dx, const float *dy, const float *w, Conv2dShape shape,
                                                  float *workspace) {
  Conv2dPlan plan = conv2d_plan(shape, workspace);
  plan.dx = dx;
  plan.dy = dy;
  plan.w = w;
  int blocks = conv2d_tiles(shape.groups, plan.channels, plan.block_channels);
  conv2d_pack_dy_run(&plan, plan.groups, 1, 1, shape.k);
  conv2d_pack_w_run(&plan, 1, 1, 1, blocks);
  conv2d_input_run(&plan, plan.groups, 1, 1, blocks);
}

static inline void conv2d_backward_weight_cpu_fast(float *dw, float *dbias, const float *dy, const float *x,
                                                   Conv2dShape shape, float *workspace) {
  Conv2dPlan plan = conv2d_plan(shape, workspace);
  plan.dw = dw;
  plan.dbias = dbias;
  plan.dy = dy;
  plan.x = x;
  conv2d_pack_x_run(&plan, plan.groups, 1, 1, shape.c);
  if (plan.filters == 1)
    conv2d_weight_single_run(&plan, plan.groups, 1, shape.groups, 1);
  else
    conv2d_weight_run(&plan, plan.groups, 1, shape.groups, plan.filters);
  conv2d_weight_sum_run(&plan, 1, 1, 1, shape.k);
}

#endif /* PHASE3_CNN_CONV2D_CPU_FAST_CUH */
