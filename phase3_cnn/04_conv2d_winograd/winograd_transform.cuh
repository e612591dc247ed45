/* winograd_transform.cuh - the transforms of Winograd's convolution with 3 x 3 filters (Lavin and Gray 2015), and how
 * an image is divided into tiles.
 *
 * F(M,3) computes M neighbouring outputs of a filter of 3 taps from M + 2 inputs with M + 2 multiplications:
 *
 *     y = At ((G g) * (Bt d))      d (M + 2) inputs, g (3) taps, y (M) outputs; * is elementwise
 *
 * In two dimensions each transform is applied to the columns and then to the rows. The outputs of an image are divided
 * into tiles of MH x MW; a tile reads (MH + 2) x (MW + 2) inputs, and there are as many products, its points. M is 2 or
 * 4 along each axis.
 *
 *     function                 along one axis                        derived in README.md
 *     winograd_input           Bt d     M + 2 -> M + 2
 *     winograd_filter          G g      3     -> M + 2
 *     winograd_output          At m     M + 2 -> M
 *     winograd_output_gradient A dy     M     -> M + 2               the last two transposed, for the weight gradient
 *     winograd_filter_gradient Gt du    M + 2 -> 3
 */
#ifndef PHASE3_CNN_WINOGRAD_TRANSFORM_CUH
#define PHASE3_CNN_WINOGRAD_TRANSFORM_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Along one axis */

template <int M>
static __host__ __device__ __forceinline__ void winograd_input_line(float (&v)[M + 2], const float (&d)[M + 2]) {
  static_assert(M == 2 || M == 4, "F(2,3) or F(4,3)");
  if constexpr (M == 2) {
    // >>> exercise winograd_input_transform: v = Bt d of F(2,3): four sums or differences of two of the inputs each
    // hint: v[0] is multiplied by g0, v[1] by (g0 + g1 + g2) / 2, v[2] by (g0 - g1 + g2) / 2, v[3] by g2
    // hint: m0 + m1 + m2 must be g0 d0 + g1 d1 + g2 d2, and m1 - m2 - m3 must be g0 d1 + g1 d2 + g2 d3
    // hint: m1 + m2 = d1 g1 + d2 (g0 + g2) with v[1] = d[1] + d[2], v[2] = d[2] - d[1]; what do m0 and m3 add?
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[1] - d[3];
    // <<< exercise
  } else {
    float even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1], even_2 = d[4] - d[2], odd_2 = 2 * (d[3] - d[1]);
    v[0] = 4 * d[0] - 5 * d[2] + d[4];
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = even_2 + odd_2;
    v[4] = even_2 - odd_2;
    v[5] = 4 * d[1] - 5 * d[3] + d[5];
  }
}

template <int M>
static __host__ __device__ __forceinline__ void winograd_filter_line(float (&u)[M + 2], const float (&g)[3]) {
  if constexpr (M == 2) {
    float outer = 0.5f * (g[0] + g[2]), inner = 0.5f * g[1];
    u[0] = g[0];
    u[1] = outer + inner;
    u[2] = outer - inner;
    u[3] = g[2];
  } else {
    float outer = (g[0] + g[2]) * (-1 / 6.0f), inner = g[1] * (-1 / 6.0f);
    float outer_2 = g[0] * (1 / 24.0f) + g[2] * (1 / 6.0f), inner_2 = g[1] * (1 / 12.0f);
    u[0] = 0.25f * g[0];
    u[1] = outer + inner;
    u[2] = outer - inner;
    u[3] = outer_2 + inner_2;
    u[4] = outer_2 - inner_2;
    u[5] = g[2];
  }
}

template <int M>
static __host__ __device__ __forceinline__ void winograd_output_line(float (&y)[M], const float (&m)[M + 2]) {
  if constexpr (M == 2) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  } else {
    float sum = m[1] + m[2], difference = m[1] - m[2], sum_2 = m[3] + m[4], difference_2 = m[3] - m[4];
    y[0] = m[0] + sum + sum_2;
    y[1] = difference + 2 * difference_2;
    y[2] = sum + 4 * sum_2;
    y[3] = difference + 8 * difference_2 + m[5];
  }
}

template <int M>
static __host__ __device__ __forceinline__ void winograd_output_gradient_line(float (&m)[M + 2], const float (&y)[M]) {
  if constexpr (M == 2) {
    m[0] = y[0];
    m[1] = y[0] + y[1];
    m[2] = y[0] - y[1];
    m[3] = -y[1];
  } else {
    float even = y[0] + y[2], odd = y[1] + y[3], even_2 = y[0] + 4 * y[2], odd_2 = 2 * y[1] + 8 * y[3];
    m[0] = y[0];
    m[1] = even + odd;
    m[2] = even - odd;
    m[3] = even_2 + odd_2;
    m[4] = even_2 - odd_2;
    m[5] = y[3];
  }
}

template <int M>
static __host__ __device__ __forceinline__ void winograd_filter_gradient_line(float (&g)[3], const float (&u)[M + 2]) {
  if constexpr (M == 2) {
    float sum = 0.5f * (u[1] + u[2]);
    g[0] = u[0] + sum;
    g[1] = 0.5f * (u[1] - u[2]);
    g[2] = sum + u[3];
  } else {
    float sum = (u[1] + u[2]) * (-1 / 6.0f), sum_2 = u[3] + u[4];
    g[0] = 0.25f * u[0] + sum + sum_2 * (1 / 24.0f);
    g[1] = (u[1] - u[2]) * (-1 / 6.0f) + (u[3] - u[4]) * (1 / 12.0f);
    g[2] = sum + sum_2 * (1 / 6.0f) + u[5];
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* In two dimensions: a line along each column, then one along each row */

#ifdef __CUDA_ARCH__ /* the host's compiler does not know this pragma */
#define WINOGRAD_UNROLL _Pragma("unroll")
#else
#define WINOGRAD_UNROLL
#endif
#define WINOGRAD_TRANSFORM(name, line, ROWS_IN, COLS_IN, ROWS_OUT, COLS_OUT)                 \
  template <int MH, int MW>                                                                  \
  static __host__ __device__ __forceinline__ void name(float(&out)[ROWS_OUT][COLS_OUT],      \
                                                       const float(&in)[ROWS_IN][COLS_IN]) { \
    float half[ROWS_OUT][COLS_IN];                                                           \
    WINOGRAD_UNROLL for (int j = 0; j < COLS_IN; j++) {                                      \
      float from[ROWS_IN], to[ROWS_OUT];                                                     \
      WINOGRAD_UNROLL for (int i = 0; i < ROWS_IN; i++) from[i] = in[i][j];                  \
      line<MH>(to, from);                                                                    \
      WINOGRAD_UNROLL for (int i = 0; i < ROWS_OUT; i++) half[i][j] = to[i];                 \
    }                                                                                        \
    WINOGRAD_UNROLL for (int i = 0; i < ROWS_OUT; i++) line<MW>(out[i], half[i]);            \
  }

WINOGRAD_TRANSFORM(winograd_input, winograd_input_line, MH + 2, MW + 2, MH + 2, MW + 2)
WINOGRAD_TRANSFORM(winograd_filter, winograd_filter_line, 3, 3, MH + 2, MW + 2)
WINOGRAD_TRANSFORM(winograd_output, winograd_output_line, MH + 2, MW + 2, MH, MW)
WINOGRAD_TRANSFORM(winograd_output_gradient, winograd_output_gradient_line, MH, MW, MH + 2, MW + 2)
WINOGRAD_TRANSFORM(winograd_filter_gradient, winograd_filter_gradient_line, MH + 2, MW + 2, 3, 3)
#undef WINOGRAD_TRANSFORM
#undef WINOGRAD_UNROLL

/* ---------------------------------------------------------------------------------------------------------------- */
/* Tiles */

/* A convolution that reads (N,C,H,W) and writes (N,K,P,Q). For the data gradient these are dy and dx. */
typedef struct Winograd {
  int n, c, h, w, k, p, q;
  int padding_h, padding_w; /* may be negative for the data gradient: the outer rows of dy are not read */
  int tiles_h, tiles_w;     /* of an image */
  int c_padded, k_padded;   /* so many channels and filters have space; zeros */
} Winograd;

enum { WINOGRAD_CHANNELS = 8, WINOGRAD_FILTERS = 64 }; /* the multiples that c_padded and k_padded are */

static __host__ __device__ inline int winograd_round_up(int count, int multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

static inline int winograd_most(int count, int most) { return count < most ? count : most; }

template <int MH, int MW>
static inline Winograd winograd_make(int n, int c, int h, int w, int k, int padding_h, int padding_w) {
  int p = h + 2 * padding_h - 2, q = w + 2 * padding_w - 2;
  Winograd s = {n,
                c,
                h,
                w,
                k,
                p,
                q,
                padding_h,
                padding_w,
                (p + MH - 1) / MH,
                (q + MW - 1) / MW,
                winograd_round_up(c, WINOGRAD_CHANNELS),
                winograd_round_up(k, WINOGRAD_FILTERS)};
  return s;
}

template <int MH, int MW>
static inline Winograd winograd_forward_shape(Conv2dShape s) {
  return winograd_make<MH, MW>(s.n, s.c, s.h, s.w, s.k, s.padding_h, s.padding_w);
}

/* dx is the convolution of dy with the filters turned by 180 degrees, K and C exchanged. */
template <int MH, int MW>
static inline Winograd winograd_backward_input_shape(Conv2dShape s) {
  return winograd_make<MH, MW>(s.n, s.k, conv2d_out_h(s), conv2d_out_w(s), s.c, 2 - s.padding_h, 2 - s.padding_w);
}

static __host__ __device__ inline int winograd_tiles(Winograd s) { return s.n * s.tiles_h * s.tiles_w; }

/* Tile t of all: image n, and row and column of tiles. */
static __device__ __forceinline__ void winograd_place(Winograd s, int t, int *n, int *tile_h, int *tile_w) {
  *tile_w = t % s.tiles_w;
  *tile_h = t / s.tiles_w % s.tiles_h;
  *n = t / s.tiles_w / s.tiles_h;
}

static inline int winograd_fits(Conv2dShape s, Error *err) {
  if (s.r == 3 && s.s == 3 && s.stride_h == 1 && s.stride_w == 1 && conv2d_is_dense(s)) {
    if ((double)s.n * conv2d_out_h(s) * conv2d_out_w(s) <= INT_MAX / 2) return 0;
    return error_set(err, "winograd counts tiles in an int; the convolution of %s has too many: use implicit_gemm",
                     conv2d_shape_text(s).text);
  }
  return error_set(err,
                   "winograd computes 3 x 3 filters with stride 1, dilation 1 and 1 group; this one is %s: use "
                   "implicit_gemm",
                   conv2d_shape_text(s).text);
}

/* w (K,C,3,3) -> u (points, c_padded, k_padded), zeros beyond C and K. One thread per (c,k), neighbours along k, so
 * that the stores are coalesced. FLIP: w is that of the forward pass, (C,K,3,3) by the names of `s`; its filters are
 * turned by 180 degrees. */
template <int MH, int MW, bool FLIP>
static __global__ void winograd_filter_kernel(float *u, const float *w, Winograd s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = i % s.k_padded, c = i / s.k_padded;
  if (c >= s.c_padded) return;
  float g[3][3] = {}, point[MH + 2][MW + 2];
  if (c < s.c && k < s.k) {
    const float *from = w + (FLIP ? (size_t)c * s.k + k : (size_t)k * s.c + c) * 9;
#pragma unroll
    for (int j = 0; j < 9; j++) g[j / 3][j % 3] = from[FLIP ? 8 - j : j];
  }
  winograd_filter<MH, MW>(point, g);
  size_t plane = (size_t)s.c_padded * s.k_padded;
#pragma unroll
  for (int j = 0; j < (MH + 2) * (MW + 2); j++) u[j * plane + i] = point[j / (MW + 2)][j % (MW + 2)];
}

static inline size_t winograd_filter_floats(Winograd s, int points) { return (size_t)points * s.c_padded * s.k_padded; }

template <int MH, int MW, bool FLIP>
static inline void winograd_filter_launch(float *u, const float *w, Winograd s) {
  winograd_filter_kernel<MH, MW, FLIP><<<conv2d_blocks((size_t)s.c_padded * s.k_padded), CONV2D_BLOCK>>>(u, w, s);
  CUDA_CHECK_LAUNCH();
}

/* y + bias, and 0 in place of what is negative if `relu`; NaN stays NaN. */
template <int MH, int MW>
static __device__ __forceinline__ void winograd_finish(float (&y)[MH][MW], float bias, bool relu) {
#pragma unroll
  for (int i = 0; i < MH; i++)
#pragma unroll
    for (int j = 0; j < MW; j++) {
      y[i][j] += bias;
      if (relu) y[i][j] = y[i][j] < 0 ? 0.0f : y[i][j];
    }
}

/* The outputs of a tile, of which only those inside of the image are stored; as float2 or float4 where rows are
 * aligned. `to` is output (row0,col0) of the plane. */
template <int MH, int MW>
static __device__ __forceinline__ void winograd_store(float *to, const float (&y)[MH][MW], int rows, int cols, int q,
                                                      bool aligned) {
#pragma unroll
  for (int i = 0; i < MH; i++) {
    float *row = to + (size_t)i * q;
    if (aligned) {
      if (i < rows && MW == 2) *(float2 *)row = make_float2(y[i][0], y[i][1]);
      if (i < rows && MW == 4) *(float4 *)row = make_float4(y[i][0], y[i][1], y[i][MW / 2], y[i][MW - 1]);
      continue;
    }
    // >>> exercise winograd_ragged_tile: row[j] = output (i,j) of the tile, if it lies inside of the image
    // hint: a tile at the lower or right edge may have fewer than MH rows or MW columns inside of the image
    // hint: `rows` and `cols` say how many rows and columns of the image are left, from the tile's first one on
    // hint: for each j below MW: if (i < rows && j < cols) row[j] = y[i][j];
    for (int j = 0; j < MW; j++)
      if (i < rows && j < cols) row[j] = y[i][j];
    // <<< exercise
  }
}

#endif /* PHASE3_CNN_WINOGRAD_TRANSFORM_CUH */
