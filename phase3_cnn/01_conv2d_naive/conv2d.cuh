/* conv2d.cuh - two-dimensional convolution, float32, NCHW (cross-correlation: filters are not flipped, as in PyTorch).
 *
 *     y[n,k,p,q] = bias[k] + sum over c,r,s of w[k,c,r,s] * x[n, c, p * stride + r - padding, q * stride + s - padding]
 *
 *     x (N,C,H,W)   w (K,C,R,S)   bias (K)   y (N,K,P,Q)     P = (H + 2 padding - R) / stride + 1, Q likewise
 *
 * Call one (c,r,s) a tap and one (p,q) a pixel. For one image the products fill a box of filters x taps x pixels, and
 * each of the three operations adds that box up along another side:
 *
 *     conv2d_forward_*          along the taps:                  y  (filter, pixel)
 *     conv2d_backward_weight_*  along the pixels, over images:   dw (filter, tap); dbias: the tap that always reads 1
 *     conv2d_backward_input_*   along the filters:               (tap, pixel), added to the input it was read from
 *
 * Versions of each:
 *     _cpu           the loops of the formula, summed in double: the oracle (a template, for gradients by differences)
 *     _cpu_fast      sixteen images side by side in one vector, a register tile of filters x pixels (or taps)
 *     _naive_kernel  forward only: a thread for each output
 *     _kernel        a thread loads an input once and uses it for eight filters; filters (or dy) in shared memory; the
 *                    threads of a block share out a long sum, so that a small batch, too, fills a GPU
 * Outputs are overwritten. bias and dbias may be NULL. No result depends on the number of threads or on their order.
 * A shape from outside goes through conv2d_shape_check() first.
 */
#ifndef PHASE3_CNN_CONV2D_CUH
#define PHASE3_CNN_CONV2D_CUH

#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/error.h"
#include "common/simd.h"

typedef struct Conv2dShape {
  int n, c, h, w; /* input (N,C,H,W) */
  int k, r, s;    /* filters (K,C,R,S) */
  int stride, padding;
} Conv2dShape;

static inline int conv2d_out_h(Conv2dShape s) { return (s.h + 2 * s.padding - s.r) / s.stride + 1; }
static inline int conv2d_out_w(Conv2dShape s) { return (s.w + 2 * s.padding - s.s) / s.stride + 1; }

static inline int conv2d_shape_check(Conv2dShape s, Error *err) {
  if (s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1 || s.k < 1 || s.r < 1 || s.s < 1)
    return error_set(err, "convolution of (%d,%d,%d,%d) with (%d,%d,%d,%d): every size must be at least 1", s.n, s.c,
                     s.h, s.w, s.k, s.c, s.r, s.s);
  if (s.stride < 1 || s.padding < 0)
    return error_set(err, "convolution with stride %d and padding %d: the stride must be at least 1, the padding 0",
                     s.stride, s.padding);
  if (s.h + 2LL * s.padding < s.r || s.w + 2LL * s.padding < s.s)
    return error_set(err,
                     "convolution of a %d x %d image, padding %d, with %d x %d filters: the filter does not fit; use a "
                     "smaller filter or more padding",
                     s.h, s.w, s.padding, s.r, s.s);
  /* in double: the products may not fit into an int */
  double height = s.h + 2.0 * s.padding, width = s.w + 2.0 * s.padding, most = INT_MAX / SIMD_WIDTH;
  double output = s.k * floor((height - s.r) / s.stride + 1) * floor((width - s.s) / s.stride + 1);
  if (s.c * height * width > most || output > most || (double)s.k * s.c * s.r * s.s > most)
    return error_set(err,
                     "convolution of (%d,%d,%d,%d) with (%d,%d,%d,%d), padding %d: an image or the filters hold more "
                     "than %.0f numbers",
                     s.n, s.c, s.h, s.w, s.k, s.c, s.r, s.s, s.padding, most);
  return 0;
}

/* ------------------------------------------------------------------------------------------------ reference */

/* x (N,C,H,W), w (K,C,R,S), bias (K) -> y (N,K,P,Q) */
template <typename T>
static inline void conv2d_forward_cpu(T *y, const T *x, const T *w, const T *bias, Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape);
  for (int n = 0; n < shape.n; n++)
    for (int k = 0; k < shape.k; k++)
      for (int p = 0; p < p_count; p++)
        for (int q = 0; q < q_count; q++) {
          double sum = bias != NULL ? bias[k] : 0;
          for (int c = 0; c < shape.c; c++)
            for (int r = 0; r < shape.r; r++)
              for (int s = 0; s < shape.s; s++) {
                int h = p * shape.stride + r - shape.padding, v = q * shape.stride + s - shape.padding;
                if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue; /* the padding is zero */
                sum += (double)w[((k * shape.c + c) * shape.r + r) * shape.s + s] *
                       x[(((size_t)n * shape.c + c) * shape.h + h) * shape.w + v];
              }
          *y++ = (T)sum;
        }
}

/* dy (N,K,P,Q), w (K,C,R,S) -> dx (N,C,H,W): what the forward pass read where, read backwards */
template <typename T>
static inline void conv2d_backward_input_cpu(T *dx, const T *dy, const T *w, Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape);
  for (int n = 0; n < shape.n; n++)
    for (int c = 0; c < shape.c; c++)
      for (int h = 0; h < shape.h; h++)
        for (int v = 0; v < shape.w; v++) {
          double sum = 0;
          for (int k = 0; k < shape.k; k++)
            for (int r = 0; r < shape.r; r++)
              for (int s = 0; s < shape.s; s++) {
                int p = h + shape.padding - r, q = v + shape.padding - s; /* times the stride */
                if (p < 0 || q < 0 || p % shape.stride != 0 || q % shape.stride != 0) continue;
                p /= shape.stride;
                q /= shape.stride;
                if (p >= p_count || q >= q_count) continue;
                sum += (double)w[((k * shape.c + c) * shape.r + r) * shape.s + s] *
                       dy[(((size_t)n * shape.k + k) * p_count + p) * q_count + q];
              }
          *dx++ = (T)sum;
        }
}

/* dy (N,K,P,Q), x (N,C,H,W) -> dw (K,C,R,S), dbias (K), summed over the batch */
template <typename T>
static inline void conv2d_backward_weight_cpu(T *dw, T *dbias, const T *dy, const T *x, Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape), pixels = p_count * q_count;
  for (int k = 0; k < shape.k; k++)
    for (int c = 0; c < shape.c; c++)
      for (int r = 0; r < shape.r; r++)
        for (int s = 0; s < shape.s; s++) {
          double sum = 0;
          for (int n = 0; n < shape.n; n++)
            for (int p = 0; p < p_count; p++)
              for (int q = 0; q < q_count; q++) {
                int h = p * shape.stride + r - shape.padding, v = q * shape.stride + s - shape.padding;
                if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue;
                sum += (double)dy[(((size_t)n * shape.k + k) * p_count + p) * q_count + q] *
                       x[(((size_t)n * shape.c + c) * shape.h + h) * shape.w + v];
              }
          *dw++ = (T)sum;
        }
  if (dbias == NULL) return;
  for (int k = 0; k < shape.k; k++) {
    double sum = 0;
    for (int n = 0; n < shape.n; n++)
      for (int i = 0; i < pixels; i++) sum += dy[((size_t)n * shape.k + k) * pixels + i];
    dbias[k] = (T)sum;
  }
}

/* ------------------------------------------------------------------------------------------------ CPU, fast
 *
 * One vector holds the same element of LANES images, so x becomes (groups of images, C, padded H, padded W, LANES).
 * Then there is no edge, no stride and no odd row length inside a loop: where tap t of pixel i reads is one sum,
 *
 *     x_lanes[pixel[i] + tap[t]]
 *
 * and an innermost loop adds up a register tile of filters x pixels (filters x taps, taps x pixels). The price is a
 * transposition of what goes in and comes out, about a tenth of the time at LeNet's sizes.
 *
 * Each piece of work is a task (group of images, plane) that writes what no other task writes, in an order of its own;
 * threads only share out the tasks. A task is a template, compiled for vectors of 16 floats with AVX-512, 8 with AVX2,
 * and 4 for any other processor, with the tile that fits its registers (32 or 16). One vector type for all would not
 * do: GCC 12 turns a vector wider than the processor's into copies through memory, twenty times slower.
 */

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

/* Of conv2d_workspace_floats(), below. */
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

/* Shapes as in the reference; workspace: conv2d_workspace_floats(DEVICE_CPU, ...) of this or a larger batch. */
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

/* -------------------------------------------------------------------------------------------------- kernels */

#include "common/check.h"
#include "common/device.h"

enum {
  CONV2D_BLOCK = 256,        /* threads of a block, as dim3: (pixels, shares of the sum of an output) */
  CONV2D_SHARES = 8,         /* at most */
  CONV2D_FILTERS = 8,        /* outputs a thread computes from one input */
  CONV2D_COLUMNS = 5,        /* inputs that it loads at once: for a row of a 5 x 5 filter */
  CONV2D_ROWS = 96,          /* of filters, in shared memory at once */
  CONV2D_WEIGHT_BLOCK = 512, /* backward_weight: threads, as dim3: (taps, shares), and pixels in shared memory */
  CONV2D_WEIGHT_BLOCKS = 2,  /* backward_weight: for each multiprocessor */
};

/* One thread for each output (n,k,p,q), the loops of the formula. Every product costs two loads. */
static __global__ void conv2d_forward_naive_kernel(float *y, const float *x, const float *w, const float *bias,
                                                   Conv2dShape shape, int p_count, int q_count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)shape.n * shape.k * p_count * q_count) return;
  int q = i % q_count, p = i / q_count % p_count, k = i / ((size_t)q_count * p_count) % shape.k;
  size_t n = i / ((size_t)q_count * p_count * shape.k);

  float sum = bias != NULL ? bias[k] : 0.0f;
  for (int c = 0; c < shape.c; c++)
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++) {
        int h = p * shape.stride + r - shape.padding, v = q * shape.stride + s - shape.padding;
        if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue;
        sum += w[((k * shape.c + c) * shape.r + r) * shape.s + s] * x[((n * shape.c + c) * shape.h + h) * shape.w + v];
      }
  y[i] = sum;
}

/* to[f] = the same element of the next filters, `step` floats apart; zero past the last of the `left`. */
static __device__ __forceinline__ void conv2d_load_filters(float *to, const float *from, int step, int left) {
  for (int f = 0; f < CONV2D_FILTERS; f++) to[f] = f < left ? from[(size_t)f * step] : 0.0f;
}

/* Adds up the sums of threads (x, 0), (x, 1).. of a block, in this order, for thread (x, 0). */
template <int THREADS>
static __device__ __forceinline__ void conv2d_add_shares(float *sum) {
  __shared__ float sums[CONV2D_FILTERS][THREADS];
  for (int j = 0; j < CONV2D_FILTERS; j++) sums[j][threadIdx.y * blockDim.x + threadIdx.x] = sum[j];
  __syncthreads();
  if (threadIdx.y > 0) return;
#pragma unroll 1
  for (unsigned i = threadIdx.x + blockDim.x; i < blockDim.x * blockDim.y; i += blockDim.x)
    for (int j = 0; j < CONV2D_FILTERS; j++) sum[j] += sums[j][i];
}

/* A row of taps, and what a pixel that lies at (0,0) reads there. */
typedef struct Conv2dRow {
  int h, offset; /* of the row in a plane, and of its first input in the image */
  int phase;     /* backward_input: only pixels of this remainder by the stride meet the row */
} Conv2dRow;

/* A thread computes one pixel of several filters: it loads an input once for all their products, and the weights of a
 * tap lie side by side in shared memory, where the whole warp reads the same 16 bytes. A small batch has too few pixels
 * to fill a GPU, so threads (x, 0), (x, 1).. of a block share out the rows of taps of pixel x; blockIdx.y counts the
 * groups of filters. */
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_forward_kernel(float *y, const float *x, const float *w, const float *bias, Conv2dShape shape, int p_count,
                          int q_count) {
  __shared__ __align__(16) float filters[CONV2D_ROWS][CONV2D_COLUMNS][CONV2D_FILTERS];
  __shared__ Conv2dRow rows[CONV2D_ROWS];
  unsigned pixels = p_count * q_count, taps = shape.c * shape.r * shape.s, k0 = blockIdx.y * CONV2D_FILTERS;
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, total = (size_t)shape.n * pixels;
  size_t here = i < total ? i : total - 1, n = here / pixels; /* threads past the end help to load, and do not store */
  unsigned pixel = here % pixels;
  int h0 = (int)(pixel / q_count) * shape.stride - shape.padding;
  int v0 = (int)(pixel % q_count) * shape.stride - shape.padding;
  const float *corner = x + n * shape.c * shape.h * shape.w + h0 * shape.w + v0;

  float sum[CONV2D_FILTERS] = {0};
  for (int s0 = 0; s0 < shape.s; s0 += CONV2D_COLUMNS) {
    bool inside[CONV2D_COLUMNS]; /* of the image and of the filter */
    for (int j = 0; j < CONV2D_COLUMNS; j++) inside[j] = s0 + j < shape.s && v0 + s0 + j >= 0 && v0 + s0 + j < shape.w;

    for (int first = 0; first < shape.c * shape.r; first += CONV2D_ROWS) {
      int count = min(CONV2D_ROWS, shape.c * shape.r - first);
      __syncthreads(); /* everyone is done with the last rows */
      for (int e = threadIdx.y * blockDim.x + threadIdx.x; e < count * CONV2D_COLUMNS; e += CONV2D_BLOCK) {
        int row = first + e / CONV2D_COLUMNS, s = s0 + e % CONV2D_COLUMNS, c = row / shape.r, r = row % shape.r;
        float *to = filters[e / CONV2D_COLUMNS][e % CONV2D_COLUMNS];
        conv2d_load_filters(to, w + (size_t)k0 * taps + row * shape.s + s, taps, s < shape.s ? shape.k - k0 : 0);
        if (s == s0) rows[e / CONV2D_COLUMNS] = {r, (c * shape.h + r) * shape.w + s0, 0};
      }
      __syncthreads();

      for (int e = threadIdx.y; e < count; e += blockDim.y) {
        Conv2dRow row = rows[e];
        const float *from = corner + row.offset;
        bool row_inside = (unsigned)(h0 + row.h) < (unsigned)shape.h; /* negative: a large unsigned */
        for (int j = 0; j < CONV2D_COLUMNS; j++) {
          float value = row_inside && inside[j] ? from[j] : 0.0f;
          for (int f = 0; f < CONV2D_FILTERS; f++) sum[f] += filters[e][j][f] * value;
        }
      }
    }
  }
  conv2d_add_shares<CONV2D_BLOCK>(sum);
  if (i >= total || threadIdx.y > 0) return;

  float *out = y + (n * shape.k + k0) * pixels + pixel;
  for (int f = 0; f < CONV2D_FILTERS; f++)
    if ((int)k0 + f < shape.k) out[(size_t)f * pixels] = sum[f] + (bias != NULL ? bias[k0 + f] : 0.0f);
}

/* The mirror image of the forward kernel: a thread computes one input pixel (n,h,v) of several channels and gathers,
 * from every filter, the outputs that it went into. Those are p = (h + padding - r) / stride where that has no
 * remainder, so h + padding and r leave the same remainder, and p is the difference of their quotients. STRIDE 1 is
 * a version of its own, where the divisions vanish; 0 takes any stride. */
template <int STRIDE>
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_backward_input_kernel(float *dx, const float *dy, const float *w, Conv2dShape shape, int p_count,
                                 int q_count) {
  __shared__ __align__(16) float filters[CONV2D_ROWS][CONV2D_COLUMNS][CONV2D_FILTERS]; /* of several channels */
  __shared__ Conv2dRow rows[CONV2D_ROWS];
  int stride = STRIDE > 0 ? STRIDE : shape.stride;
  unsigned pixels = shape.h * shape.w, area = shape.r * shape.s, c0 = blockIdx.y * CONV2D_FILTERS;
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, total = (size_t)shape.n * pixels;
  size_t here = i < total ? i : total - 1, n = here / pixels;
  unsigned pixel = here % pixels, h = pixel / shape.w + shape.padding, v = pixel % shape.w + shape.padding;
  int p0 = h / stride, q0 = v / stride, h_phase = h % stride, v_phase = v % stride;
  const float *corner = dy + n * shape.k * p_count * q_count + p0 * q_count + q0;

  float sum[CONV2D_FILTERS] = {0};
  for (int s0 = 0; s0 < shape.s; s0 += CONV2D_COLUMNS) {
    bool inside[CONV2D_COLUMNS];
    int column[CONV2D_COLUMNS];
    for (int j = 0; j < CONV2D_COLUMNS; j++) {
      column[j] = -((s0 + j) / stride);
      inside[j] = s0 + j < shape.s && (s0 + j) % stride == v_phase && q0 + column[j] >= 0 && q0 + column[j] < q_count;
    }
    for (int first = 0; first < shape.k * shape.r; first += CONV2D_ROWS) {
      int count = min(CONV2D_ROWS, shape.k * shape.r - first);
      __syncthreads();
      for (int e = threadIdx.y * blockDim.x + threadIdx.x; e < count * CONV2D_COLUMNS; e += CONV2D_BLOCK) {
        int row = first + e / CONV2D_COLUMNS, s = s0 + e % CONV2D_COLUMNS, k = row / shape.r, r = row % shape.r;
        float *to = filters[e / CONV2D_COLUMNS][e % CONV2D_COLUMNS];
        const float *from = w + ((size_t)k * shape.c + c0) * area + r * shape.s + s;
        conv2d_load_filters(to, from, area, s < shape.s ? shape.c - c0 : 0);
        int up = r / stride;
        if (s == s0) rows[e / CONV2D_COLUMNS] = {-up, (k * p_count - up) * q_count, r % stride};
      }
      __syncthreads();

      for (int e = threadIdx.y; e < count; e += blockDim.y) {
        Conv2dRow row = rows[e];
        const float *from = corner + row.offset;
        bool row_inside = row.phase == h_phase && (unsigned)(p0 + row.h) < (unsigned)p_count;
        for (int j = 0; j < CONV2D_COLUMNS; j++) {
          float value = row_inside && inside[j] ? from[column[j]] : 0.0f;
          for (int f = 0; f < CONV2D_FILTERS; f++) sum[f] += filters[e][j][f] * value;
        }
      }
    }
  }
  conv2d_add_shares<CONV2D_BLOCK>(sum);
  if (i >= total || threadIdx.y > 0) return;

  float *out = dx + (n * shape.c + c0) * pixels + pixel;
  for (int f = 0; f < CONV2D_FILTERS; f++)
    if ((int)c0 + f < shape.c) out[(size_t)f * pixels] = sum[f];
}

/* Where the filter's corner lies for a pixel. */
typedef struct Conv2dPixel {
  int h, v; /* in the plane: outside it is the border of zeros */
  const float *corner;
} Conv2dPixel;

/* A thread computes one tap of several filters; blockIdx.x counts slices of the pixels of all images, blockIdx.z groups
 * of filters. The threads of a block need the same dy, which wait in shared memory, and x next to each other; threads
 * (x, 0), (x, 1).. share out the pixels. Tap number `taps` is the bias: it lies outside the image, and reads 1 there.
 * partial (slices, K, taps+1) is added up by the next kernel, in a fixed order: atomicAdd would give another sum in
 * every run. */
static __global__ void __launch_bounds__(CONV2D_WEIGHT_BLOCK)
    conv2d_backward_weight_kernel(float *partial, const float *dy, const float *x, Conv2dShape shape, int p_count,
                                  int q_count, size_t slice_pixels) {
  __shared__ __align__(16) float gradients[CONV2D_WEIGHT_BLOCK][CONV2D_FILTERS];
  __shared__ Conv2dPixel places[CONV2D_WEIGHT_BLOCK];
  unsigned area = shape.r * shape.s, taps = shape.c * area, pixels = p_count * q_count, plane = shape.h * shape.w;
  unsigned k0 = blockIdx.z * CONV2D_FILTERS, t = blockIdx.y * blockDim.x + threadIdx.x;
  bool is_tap = t < taps;
  int c = t / area, r = is_tap ? t % area / shape.s : INT_MIN / 2, s = t % shape.s;
  int offset = is_tap ? (c * shape.h + r) * shape.w + s : 0;
  float outside = is_tap ? 0.0f : 1.0f;

  float sum[CONV2D_FILTERS] = {0};
  size_t first = blockIdx.x * slice_pixels, last = min(first + slice_pixels, (size_t)shape.n * pixels);
  for (; first < last; first += CONV2D_WEIGHT_BLOCK) {
    int count = (int)min((size_t)CONV2D_WEIGHT_BLOCK, last - first);
    __syncthreads(); /* everyone is done with the last pixels */
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < count; i += blockDim.x * blockDim.y) {
      size_t n = (first + i) / pixels;
      unsigned pixel = (first + i) % pixels;
      conv2d_load_filters(gradients[i], dy + (n * shape.k + k0) * pixels + pixel, pixels, shape.k - k0);
      int h = (int)(pixel / q_count) * shape.stride - shape.padding;
      int v = (int)(pixel % q_count) * shape.stride - shape.padding;
      places[i] = {h, v, x + n * shape.c * plane + h * shape.w + v};
    }
    __syncthreads();

    int share = (count + blockDim.y - 1) / blockDim.y, end = min(count, (int)(threadIdx.y + 1) * share);
#pragma unroll 8 /* so that eight loads are under way at once */
    for (int i = threadIdx.y * share; i < end; i++) {
      Conv2dPixel at = places[i];
      bool inside = (unsigned)(at.h + r) < (unsigned)shape.h && (unsigned)(at.v + s) < (unsigned)shape.w;
      float value = inside ? at.corner[offset] : outside;
      for (int f = 0; f < CONV2D_FILTERS; f++) sum[f] += gradients[i][f] * value;
    }
  }
  conv2d_add_shares<CONV2D_WEIGHT_BLOCK>(sum);
  if (t > taps || threadIdx.y > 0) return;

  float *out = partial + ((size_t)blockIdx.x * shape.k + k0) * (taps + 1) + t;
  for (int f = 0; f < CONV2D_FILTERS; f++)
    if ((int)k0 + f < shape.k) out[(size_t)f * (taps + 1)] = sum[f];
}

/* A block of 32 x 32 threads for 32 weights (a bias counts as one): thread (x, y) adds up every 32nd slice of weight x,
 * so that a warp reads 32 neighbours; then warp y adds up the 32 sums of weight y. */
static __global__ void __launch_bounds__(1024)
    conv2d_backward_weight_sum_kernel(float *dw, float *dbias, const float *partial, int filters, int taps,
                                      int slices) {
  __shared__ float sums[32][33]; /* one more than 32: a column, too, lies in 32 banks */
  int weights = filters * (taps + 1), weight = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (weight < weights)
#pragma unroll 8
    for (int i = threadIdx.y; i < slices; i += 32) sum += partial[(size_t)i * weights + weight];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();

  sum = sums[threadIdx.x][threadIdx.y];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  weight = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x > 0 || weight >= weights) return;
  int k = weight / (taps + 1), t = weight % (taps + 1);
  if (t < taps)
    dw[(size_t)k * taps + t] = sum;
  else if (dbias != NULL)
    dbias[k] = sum;
}

/* ------------------------------------------------------------------------------------------------ launchers */

static inline unsigned conv2d_blocks(size_t threads) { return (unsigned)((threads + CONV2D_BLOCK - 1) / CONV2D_BLOCK); }

static inline void conv2d_forward_naive(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  conv2d_forward_naive_kernel<<<conv2d_blocks((size_t)s.n * s.k * p_count * q_count), CONV2D_BLOCK>>>(y, x, w, bias, s,
                                                                                                      p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

static inline int conv2d_filter_groups(int filters) { return (filters + CONV2D_FILTERS - 1) / CONV2D_FILTERS; }

static inline int conv2d_multiprocessors(void) {
  static int count; /* of the one device that the program uses */
  if (count == 0) {
    int device;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  }
  return count;
}

/* Shares are made until there are threads enough to fill the GPU, 2048 for each multiprocessor. A share has six rows or
 * more: fewer are not worth adding up. */
static inline dim3 conv2d_block(int rows, size_t pixels, int filters) {
  size_t threads = pixels * conv2d_filter_groups(filters), room = (size_t)conv2d_multiprocessors() * 2048;
  int shares = 1;
  while (2 * shares <= CONV2D_SHARES && rows >= 6 * 2 * shares && threads * shares < room) shares *= 2;
  return dim3(CONV2D_BLOCK / shares, shares);
}

static inline dim3 conv2d_grid(size_t pixels, int filters, dim3 block) {
  return dim3((unsigned)((pixels + block.x - 1) / block.x), conv2d_filter_groups(filters));
}

static inline void conv2d_forward_gpu(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  size_t pixels = (size_t)s.n * p_count * q_count;
  dim3 block = conv2d_block(s.c * s.r, pixels, s.k), grid = conv2d_grid(pixels, s.k, block);
  conv2d_forward_kernel<<<grid, block>>>(y, x, w, bias, s, p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_backward_input_gpu(float *dx, const float *dy, const float *w, Conv2dShape s) {
  size_t pixels = (size_t)s.n * s.h * s.w;
  dim3 block = conv2d_block(s.k * s.r, pixels, s.c), grid = conv2d_grid(pixels, s.c, block);
  if (s.stride == 1)
    conv2d_backward_input_kernel<1><<<grid, block>>>(dx, dy, w, s, conv2d_out_h(s), conv2d_out_w(s));
  else
    conv2d_backward_input_kernel<0><<<grid, block>>>(dx, dy, w, s, conv2d_out_h(s), conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

/* How backward_weight cuts the pixels of a batch into slices: a few blocks cover all taps and filters, and slices are
 * made until every multiprocessor has CONV2D_WEIGHT_BLOCKS. `most` does not depend on the batch. */
typedef struct Conv2dSlices {
  dim3 grid, block;
  size_t pixels, most; /* of a slice; slices of any batch */
} Conv2dSlices;

static inline Conv2dSlices conv2d_slices(Conv2dShape s) {
  size_t pixels = (size_t)s.n * conv2d_out_h(s) * conv2d_out_w(s);
  int taps = (s.c * s.r * s.s + 1 + 31) / 32 * 32, filter_tiles = conv2d_filter_groups(s.k);
  int taps_here = taps < CONV2D_WEIGHT_BLOCK ? taps : CONV2D_WEIGHT_BLOCK;
  int tap_tiles = (taps + taps_here - 1) / taps_here;
  Conv2dSlices slices;
  slices.most = (size_t)conv2d_multiprocessors() * CONV2D_WEIGHT_BLOCKS / ((size_t)tap_tiles * filter_tiles) + 1;
  slices.pixels = (pixels + slices.most - 1) / slices.most;
  slices.block = dim3(taps_here, CONV2D_WEIGHT_BLOCK / taps_here);
  slices.grid = dim3((unsigned)((pixels + slices.pixels - 1) / slices.pixels), tap_tiles, filter_tiles);
  return slices;
}

/* Of conv2d_workspace_floats(), below. */
static inline size_t conv2d_workspace_floats_gpu(Conv2dShape s) {
  size_t pixels = (size_t)s.n * conv2d_out_h(s) * conv2d_out_w(s), most = conv2d_slices(s).most;
  return (pixels < most ? pixels : most) * s.k * (s.c * s.r * s.s + 1);
}

static inline void conv2d_backward_weight_gpu(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s,
                                              float *workspace) {
  Conv2dSlices slices = conv2d_slices(s);
  int taps = s.c * s.r * s.s;
  conv2d_backward_weight_kernel<<<slices.grid, slices.block>>>(workspace, dy, x, s, conv2d_out_h(s), conv2d_out_w(s),
                                                               slices.pixels);
  CUDA_CHECK_LAUNCH();
  conv2d_backward_weight_sum_kernel<<<(s.k * (taps + 1) + 31) / 32, dim3(32, 32)>>>(dw, dbias, workspace, s.k, taps,
                                                                                    slices.grid.x);
  CUDA_CHECK_LAUNCH();
}

/* Floats that the functions of a device need beside their arguments: on the CPU all of the _cpu_fast ones, on the GPU
 * conv2d_backward_weight_gpu(). No fewer for a larger batch. */
static inline size_t conv2d_workspace_floats(Device device, Conv2dShape s) {
  size_t floats = 0;
  ON_DEVICE(device, floats = conv2d_workspace_floats_gpu(s), floats = conv2d_workspace_floats_cpu(s));
  return floats;
}

#endif /* PHASE3_CNN_CONV2D_CUH */
