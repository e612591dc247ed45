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
 *     _kernel        a thread loads an input once and uses it for four filters; filters in shared memory
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

enum { CONV2D_FILTER_MAX = 1024 }; /* R * S: what the kernels hold in shared memory */

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
  if ((long long)s.r * s.s > CONV2D_FILTER_MAX)
    return error_set(err, "convolution with %d x %d filters: at most %d weights in a plane are supported", s.r, s.s,
                     CONV2D_FILTER_MAX);
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

#ifndef CONV2D_LANES /* the test sets it, to run every version on one machine */
#if defined(__x86_64__)
#define CONV2D_LANES (__builtin_cpu_supports("x86-64-v4") ? 16 : __builtin_cpu_supports("x86-64-v3") ? 8 : 4)
#else
#define CONV2D_LANES 4
#endif
#endif

enum { CONV2D_PIXELS = 4, CONV2D_TAPS = 5 }; /* of a tile: those of a row of a 5 x 5 filter */

SIMD_INLINE size_t conv2d_round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/* Floats that the _cpu_fast functions need beside their arguments; no fewer for a larger batch. */
static inline size_t conv2d_workspace_floats(Conv2dShape s) {
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

#if defined(__x86_64__)
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

/* Shapes as in the reference; workspace: conv2d_workspace_floats() of this or a larger batch. */
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
#ifdef __CUDACC__

#include "common/check.h"

enum {
  CONV2D_BLOCK = 128,     /* threads a block */
  CONV2D_FILTERS = 4,     /* outputs a thread computes from one input: the four floats of a float4 */
  CONV2D_SLICES_MAX = 64, /* partial sums of backward_weight */
  CONV2D_SLICE_PIXELS = 512
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

static __device__ __forceinline__ void conv2d_add_product(float4 *sum, float4 a, float b) {
  sum->x += a.x * b;
  sum->y += a.y * b;
  sum->z += a.z * b;
  sum->w += a.w * b;
}

/* One thread for each pixel (n,p,q) and four filters; blockIdx.y counts the fours. An input is loaded once for four
 * products, and the four weights of a tap are one 16-byte load that the whole warp shares. */
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_forward_kernel(float *y, const float *x, const float *w, const float *bias, Conv2dShape shape, int p_count,
                          int q_count) {
  __shared__ float4 filters[CONV2D_FILTER_MAX]; /* (channels of this chunk, R, S) */
  int area = shape.r * shape.s, taps = shape.c * area, pixels = p_count * q_count, k0 = blockIdx.y * CONV2D_FILTERS;
  size_t i = (size_t)blockIdx.x * CONV2D_BLOCK + threadIdx.x, total = (size_t)shape.n * pixels;
  size_t here = i < total ? i : total - 1; /* threads past the end help to load, and do not store */
  size_t n = here / pixels;
  int pixel = here % pixels, h0 = pixel / q_count * shape.stride - shape.padding,
      v0 = pixel % q_count * shape.stride - shape.padding;
  const float *image = x + n * shape.c * shape.h * shape.w;

  float4 sum = make_float4(0, 0, 0, 0);
  int chunk = CONV2D_FILTER_MAX / area;
  for (int c0 = 0; c0 < shape.c; c0 += chunk) {
    int channels = min(chunk, shape.c - c0), count = channels * area;
    __syncthreads(); /* everyone is done with the last chunk */
    for (int e = threadIdx.x; e < CONV2D_FILTERS * count; e += CONV2D_BLOCK) {
      int j = e / count, t = e % count;
      ((float *)&filters[t])[j] = k0 + j < shape.k ? w[(size_t)(k0 + j) * taps + c0 * area + t] : 0.0f;
    }
    __syncthreads();

    const float4 *filter = filters;
    const float *plane = image + (size_t)c0 * shape.h * shape.w;
    for (int c = 0; c < channels; c++, plane += shape.h * shape.w)
      for (int h = h0; h < h0 + shape.r; h++)
#pragma unroll 5 /* so that five loads are under way at once */
        for (int v = v0; v < v0 + shape.s; v++) {
          bool inside = h >= 0 && h < shape.h && v >= 0 && v < shape.w;
          conv2d_add_product(&sum, *filter++, inside ? plane[h * shape.w + v] : 0.0f);
        }
  }
  if (i >= total) return;

  const float results[CONV2D_FILTERS] = {sum.x, sum.y, sum.z, sum.w};
  float *out = y + (n * shape.k + k0) * pixels + pixel;
  for (int j = 0; j < CONV2D_FILTERS && k0 + j < shape.k; j++)
    out[(size_t)j * pixels] = results[j] + (bias != NULL ? bias[k0 + j] : 0.0f);
}

/* The mirror image of the forward kernel: one thread for each input pixel (n,h,v) and four channels gathers, from every
 * filter, the outputs that it went into. Those are p = (h + padding - r) / stride where that has no remainder: r starts
 * at the remainder and goes in steps of the stride, while p falls by one. */
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_backward_input_kernel(float *dx, const float *dy, const float *w, Conv2dShape shape, int p_count,
                                 int q_count) {
  __shared__ float4 filters[CONV2D_FILTER_MAX]; /* (filters of this chunk, R, S), for four channels */
  int area = shape.r * shape.s, pixels = shape.h * shape.w, c0 = blockIdx.y * CONV2D_FILTERS;
  size_t i = (size_t)blockIdx.x * CONV2D_BLOCK + threadIdx.x, total = (size_t)shape.n * pixels;
  size_t here = i < total ? i : total - 1;
  size_t n = here / pixels;
  int pixel = here % pixels, h = pixel / shape.w + shape.padding, v = pixel % shape.w + shape.padding;
  const float *plane = dy + n * shape.k * p_count * q_count;

  float4 sum = make_float4(0, 0, 0, 0);
  int chunk = CONV2D_FILTER_MAX / area;
  for (int k0 = 0; k0 < shape.k; k0 += chunk) {
    int count = min(chunk, shape.k - k0);
    __syncthreads();
    for (int e = threadIdx.x; e < CONV2D_FILTERS * count * area; e += CONV2D_BLOCK) {
      int k = e / (CONV2D_FILTERS * area), j = e / area % CONV2D_FILTERS, t = e % area;
      ((float *)&filters[k * area + t])[j] =
          c0 + j < shape.c ? w[((size_t)(k0 + k) * shape.c + c0 + j) * area + t] : 0.0f;
    }
    __syncthreads();

    const float4 *filter = filters;
    for (int k = 0; k < count; k++, filter += area, plane += p_count * q_count)
      for (int r = h % shape.stride, p = h / shape.stride; r < shape.r; r += shape.stride, p--)
#pragma unroll 5
        for (int s = v % shape.stride, q = v / shape.stride; s < shape.s; s += shape.stride, q--) {
          bool inside = p >= 0 && p < p_count && q >= 0 && q < q_count;
          conv2d_add_product(&sum, filter[r * shape.s + s], inside ? plane[p * q_count + q] : 0.0f);
        }
  }
  if (i >= total) return;

  const float results[CONV2D_FILTERS] = {sum.x, sum.y, sum.z, sum.w};
  float *out = dx + (n * shape.c + c0) * pixels + pixel;
  for (int j = 0; j < CONV2D_FILTERS && c0 + j < shape.c; j++) out[(size_t)j * pixels] = results[j];
}

/* How many images a partial sum of backward_weight covers: enough pixels to keep a warp busy, few enough slices. */
static inline int conv2d_slice_images(Conv2dShape s) {
  int enough = CONV2D_SLICE_PIXELS / (conv2d_out_h(s) * conv2d_out_w(s));
  int few = (s.n + CONV2D_SLICES_MAX - 1) / CONV2D_SLICES_MAX;
  return enough > few ? enough : few;
}

static __device__ __forceinline__ float conv2d_warp_sum(float sum) {
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  return sum; /* in lane 0 */
}

/* One warp for 4 filters x 5 taps and one slice of the images; its lanes share out the pixels. Nine loads make twenty
 * products. Tap number `taps` is the bias, which reads 1. partial (K, taps+1, slices) is added up by the next kernel,
 * in a fixed order: atomicAdd would give another sum in every run. */
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_backward_weight_kernel(float *partial, const float *dy, const float *x, Conv2dShape shape, int p_count,
                                  int q_count, int slice_images, int slices) {
  int area = shape.r * shape.s, taps = shape.c * area, pixels = p_count * q_count, lane = threadIdx.x % 32;
  int tap_tiles = taps / CONV2D_TAPS + 1, k_tiles = (shape.k + CONV2D_FILTERS - 1) / CONV2D_FILTERS;
  int warp = (blockIdx.x * CONV2D_BLOCK + threadIdx.x) / 32;
  int slice = warp / (tap_tiles * k_tiles), k0 = warp / tap_tiles % k_tiles * CONV2D_FILTERS,
      t0 = warp % tap_tiles * CONV2D_TAPS;
  if (slice >= slices) return;

  int c[CONV2D_TAPS], r[CONV2D_TAPS], s[CONV2D_TAPS];
  for (int j = 0; j < CONV2D_TAPS; j++) {
    int t = min(t0 + j, taps - 1);
    c[j] = t / area;
    r[j] = t % area / shape.s - shape.padding;
    s[j] = t % shape.s - shape.padding;
  }
  float4 sum[CONV2D_TAPS];
  for (int j = 0; j < CONV2D_TAPS; j++) sum[j] = make_float4(0, 0, 0, 0);

  int first = slice * slice_images, last = min(first + slice_images, shape.n);
  for (int n = first; n < last; n++) {
    const float *image = x + (size_t)n * shape.c * shape.h * shape.w;
    const float *d = dy + ((size_t)n * shape.k + k0) * pixels;
    for (int i = lane; i < pixels; i += 32) {
      int p = i / q_count * shape.stride, q = i % q_count * shape.stride;
      float4 four;
      four.x = d[i]; /* filters past the last read it again, and are not stored */
      four.y = d[min(1, shape.k - 1 - k0) * pixels + i];
      four.z = d[min(2, shape.k - 1 - k0) * pixels + i];
      four.w = d[min(3, shape.k - 1 - k0) * pixels + i];
      for (int j = 0; j < CONV2D_TAPS; j++) {
        int h = p + r[j], v = q + s[j];
        bool inside = h >= 0 && h < shape.h && v >= 0 && v < shape.w;
        float value = inside ? image[(c[j] * shape.h + h) * shape.w + v] : 0.0f;
        conv2d_add_product(&sum[j], four, t0 + j == taps ? 1.0f : value);
      }
    }
  }

  for (int j = 0; j < CONV2D_TAPS; j++) {
    float results[CONV2D_FILTERS] = {sum[j].x, sum[j].y, sum[j].z, sum[j].w};
    for (int i = 0; i < CONV2D_FILTERS; i++) {
      float result = conv2d_warp_sum(results[i]);
      if (lane == 0 && k0 + i < shape.k && t0 + j <= taps)
        partial[((size_t)(k0 + i) * (taps + 1) + t0 + j) * slices + slice] = result;
    }
  }
}

/* One warp for each weight and bias: adds up its slices. */
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_backward_weight_sum_kernel(float *dw, float *dbias, const float *partial, int filters, int taps,
                                      int slices) {
  int weight = (blockIdx.x * CONV2D_BLOCK + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (weight >= filters * (taps + 1)) return;
  float sum = 0;
  for (int i = lane; i < slices; i += 32) sum += partial[(size_t)weight * slices + i];
  sum = conv2d_warp_sum(sum);
  if (lane != 0) return;
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

static inline void conv2d_forward_gpu(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  dim3 grid(conv2d_blocks((size_t)s.n * p_count * q_count), (s.k + CONV2D_FILTERS - 1) / CONV2D_FILTERS);
  conv2d_forward_kernel<<<grid, CONV2D_BLOCK>>>(y, x, w, bias, s, p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_backward_input_gpu(float *dx, const float *dy, const float *w, Conv2dShape s) {
  dim3 grid(conv2d_blocks((size_t)s.n * s.h * s.w), (s.c + CONV2D_FILTERS - 1) / CONV2D_FILTERS);
  conv2d_backward_input_kernel<<<grid, CONV2D_BLOCK>>>(dx, dy, w, s, conv2d_out_h(s), conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

/* Floats that conv2d_backward_weight_gpu needs beside its arguments; no fewer for a larger batch. */
static inline size_t conv2d_workspace_floats_gpu(Conv2dShape s) {
  int slices = s.n < CONV2D_SLICES_MAX ? s.n : CONV2D_SLICES_MAX;
  return (size_t)slices * s.k * (s.c * s.r * s.s + 1);
}

static inline void conv2d_backward_weight_gpu(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s,
                                              float *workspace) {
  int taps = s.c * s.r * s.s, images = conv2d_slice_images(s), slices = (s.n + images - 1) / images;
  size_t tiles = (size_t)(taps / CONV2D_TAPS + 1) * ((s.k + CONV2D_FILTERS - 1) / CONV2D_FILTERS);
  conv2d_backward_weight_kernel<<<conv2d_blocks(32 * tiles * slices), CONV2D_BLOCK>>>(
      workspace, dy, x, s, conv2d_out_h(s), conv2d_out_w(s), images, slices);
  CUDA_CHECK_LAUNCH();
  conv2d_backward_weight_sum_kernel<<<conv2d_blocks((size_t)32 * s.k * (taps + 1)), CONV2D_BLOCK>>>(
      dw, dbias, workspace, s.k, taps, slices);
  CUDA_CHECK_LAUNCH();
}

#endif /* __CUDACC__ */

#endif /* PHASE3_CNN_CONV2D_CUH */
