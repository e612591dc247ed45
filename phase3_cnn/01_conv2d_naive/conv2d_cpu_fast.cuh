/* conv2d_cpu_fast.cuh - convolution (conv2d.cuh) on the CPU as training runs it: SIMD over the images of a batch.
 *
 * One vector holds the same element of LANES images, so x becomes (groups of images, C, padded H, padded W, LANES).
 * Then no inner loop has an edge, a stride or an odd row length: where tap t of pixel i reads is one sum,
 *
 *     x_lanes[pixel[i] + tap[t]]
 *
 * and an innermost loop adds up a register tile of filters x pixels (filters x taps, taps x pixels). The price is to
 * transpose what goes in and comes out, about a tenth of the time at LeNet's sizes.
 *
 * The work is divided into tasks (group of images, plane). Each task writes what no other task writes, in an order of
 * its own; threads only share out the tasks. A task is a template, compiled for vectors of 16 floats with AVX-512, 8
 * with AVX2, and 4 for any other processor, with the tile that fits its registers (32 or 16). One vector type for all
 * would not do: GCC 12 turns a vector wider than the processor's into copies through memory, twenty times slower.
 *
 * In this file: the plan and its workspace; packing; one task per operation; the choice of the processor's version; the
 * three functions that the networks call.
 */
#ifndef PHASE3_CNN_CONV2D_CPU_FAST_CUH
#define PHASE3_CNN_CONV2D_CPU_FAST_CUH

#include <string.h>

#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

typedef struct Conv2dPlan {
  Conv2dShape shape;
  int lanes, groups; /* images in a vector, ceil(N / lanes) */
  int height, width; /* of a padded plane of x */
  int taps;          /* C*R*S */
  int pixels, room;  /* P*Q, and that rounded up to whole tiles: the last pixel again, with dy = 0 */
  int *tap, *pixel;  /* (taps), (room): offsets into a group of x_lanes */
  float *x_lanes;    /* (groups,C,height,width,lanes), or dx */
  float *dy_lanes;   /* (groups,K,room,lanes) */
  float *dw_lanes;   /* (groups,K,taps+1,lanes), last the bias: one partial sum for each image of a group */
  float *w_tiles;    /* (C,K,R*S rounded up to whole tiles), in the place of dw_lanes */
  const float *x, *dy, *w, *bias; /* the arguments of the call */
  float *y, *dx, *dw, *dbias;
} Conv2dPlan;

#ifndef CONV2D_LANES     /* the test sets it, to run every version on one machine */
#if defined(__AVX512F__) /* by -march: simd.h */
#define CONV2D_LANES 16
#elif defined(__AVX__)
#define CONV2D_LANES 8
#elif defined(__x86_64__)
#define CONV2D_LANES (__builtin_cpu_supports("x86-64-v4") ? 16 : __builtin_cpu_supports("x86-64-v3") ? 8 : 4)
#else
#define CONV2D_LANES 4
#endif
#endif

enum { CONV2D_PIXELS = 4, CONV2D_TAPS = 5 }; /* of a tile: those of a row of a 5 x 5 filter */

SIMD_INLINE size_t conv2d_round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/* The CPU part of conv2d_workspace_floats() in conv2d.cuh. */
static inline size_t conv2d_workspace_floats_cpu(Conv2dShape s) {
  size_t taps = (size_t)s.c * s.r * s.s, plane = (size_t)(s.h + 2 * s.padding) * (s.w + 2 * s.padding);
  size_t room = conv2d_round_up((size_t)conv2d_out_h(s) * conv2d_out_w(s), CONV2D_PIXELS);
  return conv2d_round_up(taps + room, SIMD_WIDTH) +
         conv2d_round_up(s.n, SIMD_WIDTH) * (s.c * plane + s.k * room + s.k * (taps + 1));
}

static inline Conv2dPlan conv2d_plan(Conv2dShape s, float *workspace) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  Conv2dPlan plan;
  memset(&plan, 0, sizeof plan);
  plan.shape = s;
  plan.lanes = CONV2D_LANES;
  plan.groups = (s.n + plan.lanes - 1) / plan.lanes;
  plan.height = s.h + 2 * s.padding;
  plan.width = s.w + 2 * s.padding;
  plan.taps = s.c * s.r * s.s;
  plan.pixels = p_count * q_count;
  plan.room = (int)conv2d_round_up(plan.pixels, CONV2D_PIXELS);
  plan.tap = (int *)workspace;
  plan.pixel = plan.tap + plan.taps;
  size_t images = conv2d_round_up(s.n, SIMD_WIDTH);
  plan.x_lanes = workspace + conv2d_round_up((size_t)plan.taps + plan.room, SIMD_WIDTH);
  plan.dy_lanes = plan.x_lanes + images * s.c * plan.height * plan.width;
  plan.dw_lanes = plan.w_tiles = plan.dy_lanes + images * s.k * plan.room;

  int *tap = plan.tap, *pixel = plan.pixel;
  for (int c = 0; c < s.c; c++)
    for (int r = 0; r < s.r; r++)
      for (int i = 0; i < s.s; i++) *tap++ = ((c * plan.height + r) * plan.width + i) * plan.lanes;
  for (int p = 0; p < p_count; p++)
    for (int q = 0; q < q_count; q++) *pixel++ = (p * plan.width + q) * s.stride * plan.lanes;
  for (int i = plan.pixels; i < plan.room; i++, pixel++) *pixel = pixel[-1];
  return plan;
}

SIMD_INLINE int conv2d_min(int a, int b) { return a < b ? a : b; }

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
SIMD_INLINE void conv2d_pack_x(const Conv2dPlan *plan, int g, int c) {
  const Conv2dShape *s = &plan->shape;
  int images = conv2d_group_images(plan, g);
  size_t plane = (size_t)s->h * s->w, padded = (size_t)plan->height * plan->width * LANES;
  const float *x = plan->x + ((size_t)g * LANES * s->c + c) * plane;
  float *to = plan->x_lanes + ((size_t)g * s->c + c) * padded;
  if (images < LANES || s->padding > 0) memset(to, 0, padded * sizeof *to);
  int rows = s->padding > 0 ? s->h : 1, cols = s->padding > 0 ? s->w : s->h * s->w; /* unpadded: one long row */
  to += (size_t)(plan->width + 1) * s->padding * LANES;
  for (int h = 0; h < rows; h++)
    conv2d_transpose(to + (size_t)h * plan->width * LANES, LANES, x + (size_t)h * cols, s->c * plane, images, cols);
}

/* One plane of one group: dy (N,K,P,Q) -> dy_lanes. */
template <int LANES, int, int>
SIMD_INLINE void conv2d_pack_dy(const Conv2dPlan *plan, int g, int k) {
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

/* KT filters of one group, PT pixels at a time. The last tile repeats its last filter, and does not store it. */
template <int LANES, int KT, int PT>
SIMD_INLINE void conv2d_forward_tile(const Conv2dPlan *plan, int g, int k) {
  typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
  const Conv2dShape *s = &plan->shape;
  int images = conv2d_group_images(plan, g), taps = plan->taps, pixels = plan->pixels;
  const int *tap = plan->tap;
  const float *x = plan->x_lanes + (size_t)g * s->c * plan->height * plan->width * LANES;
  float *y = plan->y + (size_t)g * LANES * s->k * pixels;
  const float *w[KT];
  for (int i = 0; i < KT; i++) w[i] = plan->w + (size_t)conv2d_min(k + i, s->k - 1) * taps;

  for (int p = 0; p < pixels; p += PT) {
    const float *window[PT];
    for (int j = 0; j < PT; j++) window[j] = x + plan->pixel[p + j];
    V sum[KT][PT];
    for (int i = 0; i < KT; i++) {
      float bias = plan->bias != NULL ? plan->bias[conv2d_min(k + i, s->k - 1)] : 0;
      for (int j = 0; j < PT; j++) sum[i][j] = V{} + bias;
    }
    for (int t = 0; t < taps; t++) {
      size_t offset = tap[t];
      for (int i = 0; i < KT; i++)
        for (int j = 0; j < PT; j++) sum[i][j] += w[i][t] * *(const V *)(window[j] + offset);
    }
    float *to = y + (size_t)k * pixels + p;
    for (int i = 0; i < KT && k + i < s->k; i++, to += pixels)
      if (images == LANES && p + PT <= pixels) /* constants, so that the transposition has no loop */
        conv2d_transpose(to, (size_t)s->k * pixels, (const float *)sum[i], LANES, PT, LANES);
      else
        conv2d_transpose(to, (size_t)s->k * pixels, (const float *)sum[i], LANES, conv2d_min(PT, pixels - p), images);
  }
}

/* KT filters of one group, TT taps at a time: each lane adds up the pixels of its own image. */
template <int LANES, int KT, int TT>
SIMD_INLINE void conv2d_backward_weight_tile(const Conv2dPlan *plan, int g, int k) {
  typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
  const Conv2dShape *s = &plan->shape;
  int taps = plan->taps, pixels = plan->pixels;
  const int *pixel = plan->pixel;
  const float *x = plan->x_lanes + (size_t)g * s->c * plan->height * plan->width * LANES;
  const float *dy[KT];
  float *dw[KT];
  V bias_sum[KT];
  for (int i = 0; i < KT; i++) {
    size_t row = (size_t)g * s->k + conv2d_min(k + i, s->k - 1);
    dy[i] = plan->dy_lanes + row * plan->room * LANES;
    dw[i] = plan->dw_lanes + row * (taps + 1) * LANES;
    bias_sum[i] = V{};
    if (k + i < s->k) conv2d_pack_dy<LANES, 1, 1>(plan, g, k + i);
  }
  for (int p = 0; p < pixels; p++)
    for (int i = 0; i < KT; i++) bias_sum[i] += *(const V *)(dy[i] + (size_t)p * LANES);
  for (int i = 0; i < KT; i++) *(V *)(dw[i] + (size_t)taps * LANES) = bias_sum[i];

  for (int t = 0; t < taps; t += TT) {
    const float *window[TT];
    for (int j = 0; j < TT; j++) window[j] = x + plan->tap[conv2d_min(t + j, taps - 1)];
    V sum[KT][TT];
    for (int i = 0; i < KT; i++)
      for (int j = 0; j < TT; j++) sum[i][j] = V{};
    for (int p = 0; p < pixels; p++) {
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
SIMD_INLINE void conv2d_backward_weight_sum(const Conv2dPlan *plan, int, int k) {
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

/* The weights of one channel, each filter's padded with zeros to whole tiles. */
template <int, int, int>
SIMD_INLINE void conv2d_pack_w(const Conv2dPlan *plan, int, int c) {
  int filters = plan->shape.k, area = plan->shape.r * plan->shape.s, room = (int)conv2d_round_up(area, CONV2D_TAPS);
  float *to = plan->w_tiles + (size_t)c * filters * room;
  for (int k = 0; k < filters; k++, to += room)
    for (int t = 0; t < room; t++) to[t] = t < area ? plan->w[(size_t)k * plan->taps + c * area + t] : 0;
}

/* One plane of dx of one group: TT taps x PT pixels at a time, summed over the filters, then added where they belong.
 * What the tables hold beyond the last tap and pixel adds zero to the last. */
template <int LANES, int, int PT>
SIMD_INLINE void conv2d_backward_input_plane(const Conv2dPlan *plan, int g, int c) {
  typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
  enum { TT = CONV2D_TAPS };
  const Conv2dShape *s = &plan->shape;
  int images = conv2d_group_images(plan, g), filters = s->k, area = s->r * s->s;
  size_t plane = (size_t)s->h * s->w, padded = (size_t)plan->height * plan->width * LANES;
  size_t w_step = conv2d_round_up(area, TT), dy_step = (size_t)plan->room * LANES; /* to the next filter */
  float *sums = plan->x_lanes + ((size_t)g * s->c + c) * padded;
  memset(sums, 0, padded * sizeof *sums);
  for (int p = 0; p < plan->room; p += PT)
    for (int t = 0; t < area; t += TT) {
      const float *w = plan->w_tiles + (size_t)c * filters * w_step + t;
      const float *dy = plan->dy_lanes + (size_t)g * filters * dy_step + (size_t)p * LANES;
      V sum[TT][PT];
      for (int i = 0; i < TT; i++)
        for (int j = 0; j < PT; j++) sum[i][j] = V{};
      for (int k = 0; k < filters; k++, w += w_step, dy += dy_step)
        for (int i = 0; i < TT; i++)
          for (int j = 0; j < PT; j++) sum[i][j] += w[i] * *(const V *)(dy + j * LANES);
      for (int i = 0; i < TT; i++) {
        float *to = sums + plan->tap[conv2d_min(t + i, area - 1)];
        for (int j = 0; j < PT; j++) *(V *)(to + plan->pixel[p + j]) += sum[i][j];
      }
    }
  float *dx = plan->dx + ((size_t)g * LANES * s->c + c) * plane;
  sums += (size_t)(plan->width + 1) * s->padding * LANES; /* drop the border */
  for (int h = 0; h < s->h; h++)
    conv2d_transpose(dx + (size_t)h * s->w, s->c * plane, sums + (size_t)h * plan->width * LANES, LANES, s->w, images);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The choice of the processor's version */

typedef void Conv2dTask(const Conv2dPlan *plan, int g, int plane);

/* The processor's version of a task, for every `step`-th plane of every group. */
static inline void conv2d_run(Conv2dTask *task, const Conv2dPlan *plan, int groups, int planes, int step) {
#pragma omp parallel for collapse(2) schedule(static)
  for (int g = 0; g < groups; g++)
    for (int plane = 0; plane < planes; plane += step) task(plan, g, plane);
}

#if defined(__x86_64__) && !defined(__AVX__)
#define CONV2D_TARGET(arch) __attribute__((target(arch)))
#else
#define CONV2D_TARGET(arch)
#endif

/* Defines NAME_run(): the task with a tile of A x B for 32 vector registers, of a x b for 16. */
#define CONV2D_VERSIONS(NAME, A, B, a, b)                                                                  \
  CONV2D_TARGET("arch=x86-64-v4") static inline void NAME##_16(const Conv2dPlan *plan, int g, int plane) { \
    NAME<16, A, B>(plan, g, plane);                                                                        \
  }                                                                                                        \
  CONV2D_TARGET("arch=x86-64-v3") static inline void NAME##_8(const Conv2dPlan *plan, int g, int plane) {  \
    NAME<8, a, b>(plan, g, plane);                                                                         \
  }                                                                                                        \
  static inline void NAME##_4(const Conv2dPlan *plan, int g, int plane) { NAME<4, a, b>(plan, g, plane); } \
  static inline void NAME##_run(const Conv2dPlan *plan, int groups, int planes) {                          \
    Conv2dTask *task = plan->lanes == 16 ? NAME##_16 : plan->lanes == 8 ? NAME##_8 : NAME##_4;             \
    conv2d_run(task, plan, groups, planes, plan->lanes == 16 ? A : a);                                     \
  }

CONV2D_VERSIONS(conv2d_pack_x, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_pack_dy, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_pack_w, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_forward_tile, 6, CONV2D_PIXELS, 2, CONV2D_PIXELS)
CONV2D_VERSIONS(conv2d_backward_weight_tile, 4, CONV2D_TAPS, 2, CONV2D_TAPS)
CONV2D_VERSIONS(conv2d_backward_weight_sum, 1, 1, 1, 1)
CONV2D_VERSIONS(conv2d_backward_input_plane, 1, CONV2D_PIXELS, 1, CONV2D_PIXELS / 2)

/* ---------------------------------------------------------------------------------------------------------------- */
/* What the networks call */

/* Shapes as in conv2d_cpu.cuh; workspace: conv2d_workspace_floats(DEVICE_CPU, ...) of this or a larger batch. */
static inline void conv2d_forward_cpu_fast(float *y, const float *x, const float *w, const float *bias,
                                           Conv2dShape shape, float *workspace) {
  Conv2dPlan plan = conv2d_plan(shape, workspace);
  plan.y = y;
  plan.x = x;
  plan.w = w;
  plan.bias = bias;
  conv2d_pack_x_run(&plan, plan.groups, shape.c);
  conv2d_forward_tile_run(&plan, plan.groups, shape.k);
}

static inline void conv2d_backward_input_cpu_fast(float *dx, const float *dy, const float *w, Conv2dShape shape,
                                                  float *workspace) {
  Conv2dPlan plan = conv2d_plan(shape, workspace);
  plan.dx = dx;
  plan.dy = dy;
  plan.w = w;
  conv2d_pack_dy_run(&plan, plan.groups, shape.k);
  conv2d_pack_w_run(&plan, 1, shape.c);
  conv2d_backward_input_plane_run(&plan, plan.groups, shape.c);
}

static inline void conv2d_backward_weight_cpu_fast(float *dw, float *dbias, const float *dy, const float *x,
                                                   Conv2dShape shape, float *workspace) {
  Conv2dPlan plan = conv2d_plan(shape, workspace);
  plan.dw = dw;
  plan.dbias = dbias;
  plan.dy = dy;
  plan.x = x;
  conv2d_pack_x_run(&plan, plan.groups, shape.c);
  conv2d_backward_weight_tile_run(&plan, plan.groups, shape.k);
  conv2d_backward_weight_sum_run(&plan, 1, shape.k);
}

#endif /* PHASE3_CNN_CONV2D_CPU_FAST_CUH */
