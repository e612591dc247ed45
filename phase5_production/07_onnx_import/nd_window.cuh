/* nd_window.cuh - convolution, its transpose and pooling along 1, 2 or 3 axes, of any type and any padding: for what
 * the kernels of phase 3 do not compute. One thread per output.
 *
 *     x (N,C,D,H,W)   w (K,C/groups,kd,kh,kw)   bias (K)   y (N,K,od,oh,ow)
 *
 * A convolution of two axes has one slice. Integers: the zero points are taken off x and w, and sums are exact; then
 * they are stored (ConvInteger), or scaled, rounded, moved by the zero point of y and held within its type
 * (QLinearConv).
 */
#ifndef PHASE5_PRODUCTION_ND_WINDOW_CUH
#define PHASE5_PRODUCTION_ND_WINDOW_CUH

#include "phase5_production/07_onnx_import/nd.cuh"

enum { ND_SPACE = 3 };

typedef struct NdWindow {
  int channels, filters, groups;
  int in[ND_SPACE], out[ND_SPACE], kernel[ND_SPACE], stride[ND_SPACE], before[ND_SPACE], after[ND_SPACE],
      dilation[ND_SPACE];
} NdWindow;

/* The number within the range of an 8-bit type, else as it is. */
static __host__ __device__ inline float nd_saturate(float x, DType type) {
  const float low = type == DTYPE_INT8 ? -128 : 0, high = type == DTYPE_INT8 ? 127 : 255;
  if (type != DTYPE_INT8 && type != DTYPE_UINT8) return x;
  return x < low ? low : x > high ? high : x;
}

/* Zero points and scales of an integer product; NULL: 0, 1. Those of b, the weights, may be one for each of its
 * `b_many` filters or columns; those of a one for each of a_many rows. */
typedef struct NdQuantized {
  int is; /* 1: exact integers; 2: scaled to the type of y */
  int a_many, b_many;
  const void *a_zero, *b_zero, *y_zero;
  const float *a_scale, *b_scale, *y_scale;
} NdQuantized;

static __host__ __device__ inline int64_t nd_zero(const void *zero, DType type, int many, int which) {
  return zero ? nd_load<int64_t>(zero, type, many > 1 ? which : 0) : 0;
}

/* The sum of products, as y. */
static __host__ __device__ inline void nd_store_quantized(const NdQuantized &q, void *y, DType type, size_t i,
                                                          int64_t sum, int row, int column) {
  if (q.is == 1) {
    nd_store<int64_t>(y, type, i, sum);
    return;
  }
  const float scale = q.a_scale[q.a_many > 1 ? row : 0] * q.b_scale[q.b_many > 1 ? column : 0] / q.y_scale[0];
  const float x = rintf((float)sum * scale) + (float)nd_zero(q.y_zero, type, 1, 0);
  nd_store<float>(y, type, i, nd_saturate(x, type));
}

typedef struct NdConv {
  NdWindow window;
  NdQuantized quantized;
  NdCompute compute;
  DType x_type, w_type, bias_type, y_type;
  int transposed;
  const void *x, *w, *bias;
  void *y;
} NdConv;

/* The index of output i along each axis; returns its sample and filter, n * filters + k. */
static __host__ __device__ inline size_t nd_window_split(const NdWindow &s, size_t i, int at[ND_SPACE]) {
  for (int d = ND_SPACE - 1; d >= 0; d--) at[d] = (int)nd_split(&i, (unsigned)s.out[d]);
  return i;
}

/* Which input along axis d tap t of output `at` reads; -1: none. */
static __host__ __device__ inline int nd_window_input(const NdWindow &s, int transposed, int d, int at, int t) {
  int place = transposed ? at + s.before[d] - t * s.dilation[d] : at * s.stride[d] - s.before[d] + t * s.dilation[d];
  if (transposed) {
    if (place < 0 || place % s.stride[d] != 0) return -1;
    place /= s.stride[d];
  }
  return place >= 0 && place < s.in[d] ? place : -1;
}

template <bool F32, typename T>
static __host__ __device__ inline T nd_conv_sum(const NdConv &o, size_t n, int k, const int at[ND_SPACE]) {
  const NdWindow &s = o.window;
  const int channels = s.channels / s.groups, filters = s.filters / s.groups, group = k / filters;
  const int taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const size_t pixels = (size_t)s.in[0] * s.in[1] * s.in[2];
  const T x_zero = (T)nd_zero(o.quantized.a_zero, o.x_type, 1, 0);
  const T w_zero = (T)nd_zero(o.quantized.b_zero, o.w_type, o.quantized.b_many, k);
  T sum = 0;
  for (int t = 0; t < taps; t++) {
    const int tap[ND_SPACE] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
    size_t pixel = 0;
    bool inside = true;
    for (int d = 0; d < ND_SPACE; d++) {
      const int place = nd_window_input(s, o.transposed, d, at[d], tap[d]);
      inside &= place >= 0;
      pixel = pixel * s.in[d] + place;
    }
    for (int c = 0; c < channels && inside; c++) {
      const size_t all = (size_t)group * channels + c;
      const size_t weight =
          o.transposed ? (all * filters + k % filters) * taps + t : ((size_t)k * channels + c) * taps + t;
      sum += (nd_get<F32, T>(o.x, o.x_type, (n * s.channels + all) * pixels + pixel) - x_zero) *
             (nd_get<F32, T>(o.w, o.w_type, weight) - w_zero);
    }
  }
  if (o.bias) sum += nd_get<F32, T>(o.bias, o.bias_type, k);
  return sum;
}

template <bool F32>
static __host__ __device__ inline void nd_one(const NdConv &o, size_t i) {
  int at[ND_SPACE];
  const size_t row = nd_window_split(o.window, i, at);
  const size_t n = row / o.window.filters;
  const int k = (int)(row % o.window.filters);
  if (F32 || o.compute == ND_FLOAT)
    nd_set<F32, float>(o.y, o.y_type, i, nd_conv_sum<F32, float>(o, n, k, at));
  else if (o.compute == ND_DOUBLE)
    nd_store<double>(o.y, o.y_type, i, nd_conv_sum<false, double>(o, n, k, at));
  else
    nd_store_quantized(o.quantized, o.y, o.y_type, i, nd_conv_sum<false, int64_t>(o, n, k, at), 0, k);
}

/* ---------------------------------------------------------------------------------------------------------- pooling */

typedef enum NdPoolKind { ND_POOL_MAX, ND_POOL_MAX_INDEX, ND_POOL_AVERAGE, ND_POOL_LP } NdPoolKind;

typedef struct NdPool {
  NdWindow window;
  NdPoolKind kind;
  NdCompute compute;
  DType type;
  int include_pad, column_major; /* AVERAGE: padding counts; MAX_INDEX: the order in which a plane is counted */
  double p;                      /* LP */
  const void *x;
  void *y;
} NdPool;

/* Outputs of a window that counts padding: those of it that lie in the padded image. */
static __host__ __device__ inline int nd_pool_size(const NdWindow &s, const int at[ND_SPACE]) {
  int size = 1;
  for (int d = 0; d < ND_SPACE; d++) {
    const int first = at[d] * s.stride[d] - s.before[d], end = first + s.dilation[d] * (s.kernel[d] - 1) + 1;
    const int most = s.in[d] + s.after[d];
    size *= end > most ? (most - first + s.dilation[d] - 1) / s.dilation[d] : s.kernel[d];
  }
  return size;
}

template <bool F32, typename T>
static __host__ __device__ inline void nd_pool_one(const NdPool &o, size_t i) {
  const NdWindow &s = o.window;
  int at[ND_SPACE], count = 0;
  const size_t plane = nd_window_split(s, i, at), pixels = (size_t)s.in[0] * s.in[1] * s.in[2];
  const int taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  T result = 0;
  size_t best = 0;
  for (int t = 0; t < taps; t++) {
    const int tap[ND_SPACE] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
    int place[ND_SPACE];
    bool inside = true;
    for (int d = 0; d < ND_SPACE; d++) inside &= (place[d] = nd_window_input(s, 0, d, at[d], tap[d])) >= 0;
    if (!inside) continue;
    const size_t pixel = ((size_t)place[0] * s.in[1] + place[1]) * s.in[2] + place[2];
    const T x = nd_get<F32, T>(o.x, o.type, plane * pixels + pixel);
    if (o.kind == ND_POOL_AVERAGE) {
      result += x;
    } else if (o.kind == ND_POOL_LP) {
      result += (T)pow(fabs((double)x), o.p);
    } else if (count == 0 || x > result || x != x) {
      result = x;
      best = o.column_major ? ((size_t)place[2] * s.in[1] + place[1]) * s.in[0] + place[0] : pixel;
    }
    count++;
  }
  if (o.kind == ND_POOL_MAX_INDEX) {
    ((int64_t *)o.y)[i] = (int64_t)(plane * pixels + best);
    return;
  }
  if (o.kind == ND_POOL_AVERAGE) result /= (T)(o.include_pad ? nd_pool_size(s, at) : count > 0 ? count : 1);
  if (o.kind == ND_POOL_LP) result = (T)pow((double)result, 1 / o.p);
  nd_set<F32, T>(o.y, o.type, i, result);
}

template <bool F32>
static __host__ __device__ inline void nd_one(const NdPool &o, size_t i) {
  if (F32 || o.compute == ND_FLOAT)
    nd_pool_one<F32, float>(o, i);
  else if (o.compute == ND_DOUBLE)
    nd_pool_one<false, double>(o, i);
  else
    nd_pool_one<false, int64_t>(o, i);
}

/* MaxUnpool: x (elements) to the places that `indices` name; y is zero before. Places are numbers of elements of what
 * was pooled, (`axes`); y may be larger than that. */
typedef struct NdUnpool {
  int bytes;
  size_t per_sample, most; /* elements of x in a sample, of y in all */
  NdAxes axes;
  NdStrides strides; /* of y */
  const void *x;
  const int64_t *indices;
  void *y;
} NdUnpool;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdUnpool &o, size_t i) {
  const long long place = o.indices[i] < 0 ? -1 : nd_place(&o.axes, &o.strides, (size_t)o.indices[i]);
  if (place >= 0 && (size_t)place < o.most) nd_move(o.y, (size_t)place, o.x, i, o.bytes);
}

#endif /* PHASE5_PRODUCTION_ND_WINDOW_CUH */
