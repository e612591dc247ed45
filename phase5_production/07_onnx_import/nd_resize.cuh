/* nd_resize.cuh - Resize and Upsample in all modes, and GridSample of pictures.
 *
 * Each axis that changes is sampled by itself: from the place of an output follows a place in the input, and from that
 * up to 4 neighbours with weights. An output is the sum over the product of its axes' neighbours.
 *
 *     half_pixel             (x + 0.5) / scale - 0.5           the centres of both grids lie upon each other
 *     asymmetric             x / scale                         the first elements do
 *     align_corners          x (in - 1) / (out - 1)            the first and the last ones do
 *     pytorch_half_pixel     as half_pixel, 0 where out is 1
 *     tf_half_pixel_for_nn   (x + 0.5) / scale
 *     tf_crop_and_resize     from a part of the input, the region of interest
 *
 * cubic: Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = cubic_coeff_a.
 */
#ifndef PHASE5_PRODUCTION_ND_RESIZE_CUH
#define PHASE5_PRODUCTION_ND_RESIZE_CUH

#include "phase5_production/07_onnx_import/nd.cuh"

typedef enum NdSampling { ND_NEAREST, ND_LINEAR, ND_CUBIC } NdSampling;
typedef enum NdCoordinates {
  ND_HALF_PIXEL,
  ND_PYTORCH_HALF_PIXEL,
  ND_ALIGN_CORNERS,
  ND_ASYMMETRIC,
  ND_TF_HALF_PIXEL,
  ND_CROP_AND_RESIZE,
  ND_HALF_PIXEL_SYMMETRIC
} NdCoordinates;
typedef enum NdNearest { ND_ROUND_FLOOR, ND_ROUND_CEIL, ND_FLOOR_MODE, ND_CEIL_MODE } NdNearest;

enum { ND_RESIZED = 3, ND_TAPS = 4 };

typedef struct NdResize {
  NdSampling sampling;
  NdCoordinates coordinates;
  NdNearest nearest;
  int exclude_outside;
  float cubic, extrapolation;
  DType type;
  NdAxes axes; /* of y */
  NdStrides strides;
  int resized[ND_RESIZED], count; /* which axes change */
  int in[ND_RESIZED];
  float scale[ND_RESIZED], start[ND_RESIZED], end[ND_RESIZED], length[ND_RESIZED]; /* length: in * scale */
  const void *x;
  void *y;
} NdResize;

static __host__ __device__ inline float nd_resize_place(const NdResize &o, int k, float x) {
  const float in = (float)o.in[k], scale = o.scale[k], length = o.length[k];
  switch (o.coordinates) {
    case ND_PYTORCH_HALF_PIXEL:
      return length > 1 ? (x + 0.5f) / scale - 0.5f : 0;
    case ND_ALIGN_CORNERS:
      return length == 1 ? 0 : x * (in - 1) / (length - 1);
    case ND_ASYMMETRIC:
      return x / scale;
    case ND_TF_HALF_PIXEL:
      return (x + 0.5f) / scale;
    case ND_CROP_AND_RESIZE:
      return length > 1 ? o.start[k] * (in - 1) + x * (o.end[k] - o.start[k]) * (in - 1) / (length - 1)
                        : 0.5f * (o.start[k] + o.end[k]) * (in - 1);
    case ND_HALF_PIXEL_SYMMETRIC:
      return in / 2 * (1 - floorf(length) / length) + (x + 0.5f) / scale - 0.5f;
    default:
      return (x + 0.5f) / scale - 0.5f;
  }
}

/* The weight of an element at the distance d in a cubic interpolation. */
static __host__ __device__ inline float nd_cubic(float d, float a) {
  d = fabsf(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* The neighbours of `place` on a line of n: the first one, which may lie outside; their weights. How many. */
static __host__ __device__ inline int nd_resize_taps(const NdResize &o, float place, int n, int *first,
                                                     float weight[ND_TAPS]) {
  const float below = floorf(place), rest = place - below;
  weight[0] = 1;
  if (o.sampling == ND_NEAREST) {
    *first = (int)(o.nearest == ND_FLOOR_MODE  ? below
                   : o.nearest == ND_CEIL_MODE ? ceilf(place)
                   : rest == 0.5f              ? (o.nearest == ND_ROUND_FLOOR ? below : below + 1)
                                               : floorf(place + 0.5f));
    return 1;
  }
  const int taps = o.sampling == ND_LINEAR ? 2 : 4;
  *first = (int)below - (taps == 4);
  float sum = 0;
  for (int t = 0; t < taps; t++) {
    weight[t] = taps == 2 ? (t == 0 ? 1 - rest : rest) : nd_cubic(rest + 1 - (float)t, o.cubic);
    if (o.exclude_outside && (*first + t < 0 || *first + t >= n)) weight[t] = 0;
    sum += weight[t];
  }
  for (int t = 0; t < taps && o.exclude_outside; t++) weight[t] /= sum;
  return taps;
}

static __host__ __device__ inline int nd_within(int i, int n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

template <bool F32>
static __host__ __device__ inline void nd_one(const NdResize &o, size_t i) {
  long long base = o.strides.offset;
  float weight[ND_RESIZED][ND_TAPS], sum = 0;
  int first[ND_RESIZED] = {0, 0, 0}, taps[ND_RESIZED] = {1, 1, 1};
  size_t rest = i;
  bool inside = true;
  for (int k = 0; k < ND_RESIZED; k++) weight[k][0] = 1;
  for (int axis = o.axes.rank - 1; axis >= 0; axis--) {
    const size_t at = axis > 0 ? nd_split(&rest, o.axes.dim[axis]) : rest;
    int k = 0;
    while (k < o.count && o.resized[k] != axis) k++;
    if (k == o.count) {
      base += (long long)at * o.strides.step[axis];
      continue;
    }
    const float place = nd_resize_place(o, k, (float)at);
    inside &= o.coordinates != ND_CROP_AND_RESIZE || (place >= 0 && place <= (float)(o.in[k] - 1));
    taps[k] = nd_resize_taps(o, place, o.in[k], &first[k], weight[k]);
  }
  for (int t = 0; t < taps[0] * taps[1] * taps[2]; t++) {
    const int tap[ND_RESIZED] = {t / (taps[1] * taps[2]), t / taps[2] % taps[1], t % taps[2]};
    long long place = base;
    float w = 1;
    for (int k = 0; k < o.count; k++) {
      place += nd_within(first[k] + tap[k], o.in[k]) * o.strides.step[o.resized[k]];
      w *= weight[k][tap[k]];
    }
    if (o.sampling == ND_NEAREST) { /* exactly the number, of any type */
      const double x = nd_get<F32, double>(o.x, o.type, (size_t)place);
      nd_set<F32, double>(o.y, o.type, i, inside ? x : (double)o.extrapolation);
      return;
    }
    sum += w * nd_get<F32, float>(o.x, o.type, (size_t)place);
  }
  nd_set<F32, float>(o.y, o.type, i, inside ? sum : o.extrapolation);
}

/* ------------------------------------------------------------------------------------------------------- GridSample */

typedef enum NdGridPadding { ND_GRID_ZEROS, ND_GRID_BORDER, ND_GRID_REFLECTION } NdGridPadding;

/* x (N,C,H,W), grid (N,P,Q,2) of (column, row) from -1 to 1 -> y (N,C,P,Q). */
typedef struct NdGridSample {
  NdSampling sampling;
  NdGridPadding padding;
  int align_corners, channels, height, width, out_height, out_width;
  const float *x, *grid;
  float *y;
} NdGridSample;

/* Mirrored at low and high until it lies between them. */
static __host__ __device__ inline float nd_grid_reflect(float x, float low, float high) {
  const float range = high - low;
  if (range <= 0) return low;
  float from = fabsf(x - low);
  const float times = floorf(from / range);
  from -= times * range;
  return fmodf(times, 2) == 0 ? low + from : high - from;
}

static __host__ __device__ inline float nd_grid_place(const NdGridSample &o, float x, int n) {
  float place = o.align_corners ? (x + 1) / 2 * (float)(n - 1) : ((x + 1) * (float)n - 1) / 2;
  if (o.padding == ND_GRID_BORDER) place = place < 0 ? 0 : place > (float)(n - 1) ? (float)(n - 1) : place;
  if (o.padding == ND_GRID_REFLECTION)
    place = nd_grid_reflect(place, o.align_corners ? 0 : -0.5f, o.align_corners ? (float)(n - 1) : (float)n - 0.5f);
  return place;
}

/* A pixel that may lie outside. */
static __host__ __device__ inline float nd_grid_pixel(const NdGridSample &o, const float *plane, int row, int column) {
  if (o.padding == ND_GRID_REFLECTION) {
    const float low = o.align_corners ? 0 : -0.5f, more = o.align_corners ? -1 : -0.5f;
    row = (int)rintf(nd_grid_reflect((float)row, low, (float)o.height + more));
    column = (int)rintf(nd_grid_reflect((float)column, low, (float)o.width + more));
  }
  const bool inside = row >= 0 && row < o.height && column >= 0 && column < o.width;
  if (!inside && o.padding == ND_GRID_ZEROS) return 0;
  return plane[(size_t)nd_within(row, o.height) * o.width + nd_within(column, o.width)];
}

template <bool F32>
static __host__ __device__ inline void nd_one(const NdGridSample &o, size_t i) {
  size_t rest = i;
  const unsigned q = nd_split(&rest, (unsigned)o.out_width), p = nd_split(&rest, (unsigned)o.out_height);
  const size_t n = rest / o.channels;
  const float *at = o.grid + ((n * o.out_height + p) * o.out_width + q) * 2;
  const float *plane = o.x + rest * o.height * o.width;
  const float column = nd_grid_place(o, at[0], o.width), row = nd_grid_place(o, at[1], o.height);
  if (o.sampling == ND_NEAREST) {
    o.y[i] = nd_grid_pixel(o, plane, (int)rintf(row), (int)rintf(column));
    return;
  }
  const int taps = o.sampling == ND_LINEAR ? 2 : 4, before = taps == 4;
  const float row_below = floorf(row), column_below = floorf(column);
  float sum = 0;
  for (int t = 0; t < taps * taps; t++) {
    const float r = row_below + (float)(t / taps - before), c = column_below + (float)(t % taps - before);
    const float weight_r = taps == 2 ? 1 - fabsf(row - r) : nd_cubic(row - r, -0.75f);
    const float weight_c = taps == 2 ? 1 - fabsf(column - c) : nd_cubic(column - c, -0.75f);
    sum += weight_r * weight_c * nd_grid_pixel(o, plane, (int)r, (int)c);
  }
  o.y[i] = sum;
}

#endif /* PHASE5_PRODUCTION_ND_RESIZE_CUH */
