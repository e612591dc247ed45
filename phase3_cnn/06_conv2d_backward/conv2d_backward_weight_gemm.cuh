/* conv2d_backward_weight_gemm.cuh - the gradient of convolution with respect to its filters as an implicit GEMM. */
#ifndef PHASE3_CNN_CONV2D_BACKWARD_WEIGHT_GEMM_CUH
#define PHASE3_CNN_CONV2D_BACKWARD_WEIGHT_GEMM_CUH

#include "phase3_cnn/06_conv2d_backward/conv2d_gradient_gemm.cuh"

/* M = filters of a group, N = R S channels of a group, column (r S + s) channels + c, K = pixels of all images. */
typedef struct Conv2dWeightGemm {
  Conv2dProduct product;
  Conv2dShape shape;
  float *dw;
  const float *dy, *x;
  int p_count, q_count, channels, filters; /* of a group */
  long long pixels;                        /* N P Q */
} Conv2dWeightGemm;

/* Where column `col` of b reads, seen from the corner of the filter. */
typedef struct __align__(8) Conv2dWeightColumn {
  int offset; /* in the image */
  short h, v;
}
Conv2dWeightColumn;

static __device__ __forceinline__ float *conv2d_gradient_place(const Conv2dWeightGemm &problem, int group, int col) {
  if (col >= problem.product.cols) return NULL;
  int area = problem.shape.r * problem.shape.s, c = col % problem.channels, tap = col / problem.channels;
  return problem.dw + (size_t)group * problem.filters * problem.product.row_stride + c * area + tap;
}

/* Neighbouring columns are R S weights apart. */
static __device__ __forceinline__ bool conv2d_gradient_aligned(const Conv2dWeightGemm &) { return false; }

/* A thread copies one pixel of eight, of every threads / 8 th row of dy and column of b. EVEN: tiles are full and of
 * one tap each, (h,v) of which is kept; otherwise there is a table of the tile's columns. Pointers move on where they
 * are outside; nothing is read there. */
template <bool EVEN>
struct Conv2dWeightLoads {
  const Conv2dWeightGemm *problem;
  const Conv2dWeightColumn *columns;
  const float *dy, *image, *from; /* of the pixel: row 0 of the tile; the group's channels; column 0 of the tile */
  long long pixel;
  int p, q, step_n, step_p, step_q; /* and 8 pixels further */
  int h, v, rows, tap_h, tap_v, tap_offset;
  bool inside, tap_inside;
};

/* Where the corner of the filter lies for the pixel. */
template <bool EVEN>
static __device__ __forceinline__ void conv2d_gradient_seek(Conv2dWeightLoads<EVEN> &l) {
  const Conv2dWeightGemm &g = *l.problem;
  const Conv2dShape &s = g.shape;
  l.inside = l.pixel < g.pixels;
  l.h = l.p * s.stride_h - s.padding_h + l.tap_h;
  l.v = l.q * s.stride_w - s.padding_w + l.tap_v;
  l.from = l.image + (l.h * s.w + l.v + l.tap_offset);
  l.tap_inside = l.inside && (unsigned)l.h < (unsigned)s.h && (unsigned)l.v < (unsigned)s.w;
}

template <typename Tile, bool EVEN>
static __device__ __forceinline__ void conv2d_gradient_advance(Tile, Conv2dWeightLoads<EVEN> &l) {
  const Conv2dWeightGemm &g = *l.problem;
  int outputs = g.p_count * g.q_count, plane = g.shape.h * g.shape.w;
  l.pixel += Tile::bk;
  l.q += l.step_q;
  int carry = l.q >= g.q_count;
  l.q -= carry ? g.q_count : 0;
  l.p += l.step_p + carry;
  carry = l.p >= g.p_count;
  l.p -= carry ? g.p_count : 0;
  int images = l.step_n + carry;
  l.dy += Tile::bk + (long long)images * ((g.shape.k - 1) * outputs);
  l.image += (long long)images * (g.shape.c * plane);
  conv2d_gradient_seek(l);
}

template <typename Tile, bool EVEN>
static __device__ __forceinline__ void conv2d_gradient_copy(Tile, Conv2dWeightLoads<EVEN> &l, float *pair, int part) {
  const int down = Tile::threads / 8, a_count = Tile::a_floats, b_count = Tile::b_floats;
  const Conv2dWeightGemm &g = *l.problem;
  int i = threadIdx.x % 8, first = threadIdx.x / 8, outputs = g.p_count * g.q_count, plane = g.shape.h * g.shape.w;
  float *a_tile = pair + i * Tile::a_pitch, *b_tile = pair + Tile::bk * Tile::a_pitch + i * Tile::b_pitch;
#pragma unroll
  for (int j = part * a_count / 8; j < (part + 1) * a_count / 8; j++) {
    int row = first + j * down;
    conv2d_copy_one(a_tile + row, l.dy + j * down * outputs, l.inside && (EVEN || row < l.rows));
  }
#pragma unroll
  for (int j = part * b_count / 8; j < (part + 1) * b_count / 8; j++) {
    int col = first + j * down;
    if (EVEN) {
      conv2d_copy_one(b_tile + (col ^ 1), l.from + j * down * plane, l.tap_inside);
    } else {
      Conv2dWeightColumn column = l.columns[col];
      bool inside = l.inside && (unsigned)(l.h + column.h) < (unsigned)g.shape.h &&
                    (unsigned)(l.v + column.v) < (unsigned)g.shape.w;
      conv2d_copy_one(b_tile + (col ^ 1), l.from + column.offset, inside);
    }
  }
}

template <typename Tile, bool EVEN>
static __device__ __forceinline__ void conv2d_gradient_begin(Tile, Conv2dWeightLoads<EVEN> &l,
                                                             const Conv2dWeightGemm &g, Conv2dProductPlace place,
                                                             int step) {
  static_assert(Tile::bm % (Tile::threads / 8) == 0 && Tile::bn % (Tile::threads / 8) == 0,
                "threads share a tile evenly");
  __shared__ Conv2dWeightColumn columns[EVEN ? 1 : Tile::bn];
  const Conv2dShape &s = g.shape;
  for (int i = threadIdx.x; !EVEN && i < Tile::bn; i += Tile::threads) {
    int col = place.col0 + i, c = col % g.channels, tap = col / g.channels;
    int h = tap / s.s * s.dilation_h, v = tap % s.s * s.dilation_w;
    Conv2dWeightColumn column = {(c * s.h + h) * s.w + v, (short)h, (short)v};
    if (col >= g.product.cols) column.h = SHRT_MIN; /* beyond the last one: never inside */
    columns[i] = column;
  }
  __syncthreads();
  int outputs = g.p_count * g.q_count, bk = Tile::bk, first = threadIdx.x / 8;
  int tap = EVEN ? place.col0 / g.channels : 0;
  l.columns = columns;
  l.problem = &g;
  l.rows = g.product.rows - place.row0;
  l.tap_h = tap / s.s * s.dilation_h;
  l.tap_v = tap % s.s * s.dilation_w;
  l.tap_offset = EVEN ? (place.col0 % g.channels + first) * s.h * s.w : 0;
  l.step_n = bk / outputs;
  l.step_p = bk % outputs / g.q_count;
  l.step_q = bk % outputs % g.q_count;
  l.pixel = (long long)step * bk + threadIdx.x % 8;
  int n = (int)(l.pixel / outputs), pixel = (int)(l.pixel % outputs);
  l.p = pixel / g.q_count;
  l.q = pixel % g.q_count;
  l.dy = g.dy + ((size_t)n * s.k + place.group * g.filters + place.row0 + first) * outputs + pixel;
  l.image = g.x + ((size_t)n * s.c + place.group * g.channels) * (s.h * s.w);
  conv2d_gradient_seek(l);
}

template <typename Tile, bool EVEN>
static __global__ void __launch_bounds__(Tile::threads, Tile::resident)
    conv2d_backward_weight_gemm_kernel(Conv2dWeightGemm problem, float *parts, int whole) {
  __shared__ __align__(16) float tiles[Tile::stages * Tile::stage];
  conv2d_gradient_run<Tile, Conv2dWeightLoads<EVEN>>(problem, tiles, parts, whole);
}

template <typename Tile>
static inline Conv2dWeightGemm conv2d_weight_gemm(float *dw, const float *dy, const float *x, Conv2dShape s) {
  Conv2dWeightGemm g;
  if (s.r == 1) s.dilation_h = 1; /* there are no gaps, however large the dilation is */
  if (s.s == 1) s.dilation_w = 1;
  g.shape = s;
  g.dw = dw;
  g.dy = dy;
  g.x = x;
  g.p_count = conv2d_out_h(s);
  g.q_count = conv2d_out_w(s);
  g.channels = s.c / s.groups;
  g.filters = s.k / s.groups;
  g.pixels = (long long)s.n * g.p_count * g.q_count;
  int cols = g.channels * s.r * s.s;
  g.product = conv2d_product<Tile>(s.groups, g.filters, cols, (int)((g.pixels + Tile::bk - 1) / Tile::bk), cols);
  return g;
}

/* atomic: parts of tiles are added to dw with atomicAdd, and there is no second kernel. */
template <typename Tile, bool EVEN>
static inline void conv2d_backward_weight_gemm_of(float *dw, const float *dy, const float *x, Conv2dShape s,
                                                  float *workspace, bool atomic) {
  Conv2dWeightGemm g = conv2d_weight_gemm<Tile>(dw, dy, x, s);
  const MatmulPlan plan = conv2d_gradient_plan<Tile>(g.product);
  if (atomic) CUDA_CHECK(cudaMemsetAsync(dw, 0, conv2d_w_count(s) * sizeof *dw));
  conv2d_backward_weight_gemm_kernel<Tile, EVEN>
      <<<plan.blocks, Tile::threads>>>(g, atomic ? NULL : workspace, plan.whole);
  CUDA_CHECK_LAUNCH();
  if (!atomic) conv2d_gradient_join<Tile>(g, workspace, plan);
}

/* Whether all tiles are full. */
template <typename Tile>
static inline bool conv2d_weight_is_even(Conv2dShape s) {
  return s.c / s.groups % Tile::bn == 0 && s.k / s.groups % Tile::bm == 0;
}

template <typename Tile>
static inline void conv2d_backward_weight_gemm_run(float *dw, const float *dy, const float *x, Conv2dShape s,
                                                   float *workspace, bool atomic) {
  if (conv2d_weight_is_even<Tile>(s))
    conv2d_backward_weight_gemm_of<Tile, true>(dw, dy, x, s, workspace, atomic);
  else
    conv2d_backward_weight_gemm_of<Tile, false>(dw, dy, x, s, workspace, atomic);
}

/* The tiles that there are: large ones, which copy less, where all of them are full; blocks of one warp, which wait for
 * no other warp; and tiny tiles, for problems of which others would make few pieces. */
typedef Conv2dProductTile<128, 128, 64, 64, 16, 8, 3, 2> Conv2dWeightLarge;
typedef Conv2dProductTile<64, 64, 64, 64, 16, 8, 3, 8> Conv2dWeightWarp;
typedef Conv2dProductTile<32, 32, 32, 32, 8, 4, 3, 16> Conv2dWeightTiny;

enum Conv2dWeightChoice { CONV2D_WEIGHT_LARGE, CONV2D_WEIGHT_WARP, CONV2D_WEIGHT_TINY };

/* The table of columns (Conv2dWeightColumn) keeps rows and columns as short. So filters that span more than 32767 rows
 * or columns, and images with more rows, go to conv2d_backward_weight_split(). Full tiles need no table. */
static inline bool conv2d_weight_gemm_fits(Conv2dShape s) {
  return conv2d_weight_is_even<Conv2dWeightWarp>(s) ||
         (conv2d_span_h(s) <= SHRT_MAX && conv2d_span_w(s) <= SHRT_MAX && s.h + s.padding_h <= SHRT_MAX);
}

static inline int conv2d_weight_choice(Conv2dShape s) {
  const int rows = s.k / s.groups, cols = s.c / s.groups * s.r * s.s;
  const int steps = (int)(((long long)s.n * conv2d_out_h(s) * conv2d_out_w(s) + 7) / 8);
  const double large = conv2d_gradient_time<Conv2dWeightLarge>(s.groups, rows, cols, steps, 46),
               warp = conv2d_gradient_time<Conv2dWeightWarp>(s.groups, rows, cols, steps, 41),
               tiny = conv2d_gradient_time<Conv2dWeightTiny>(s.groups, rows, cols, steps, 27);
  if (conv2d_weight_is_even<Conv2dWeightLarge>(s) && large <= warp && large <= tiny) return CONV2D_WEIGHT_LARGE;
  return warp <= tiny ? CONV2D_WEIGHT_WARP : CONV2D_WEIGHT_TINY;
}

static inline void conv2d_backward_weight_products(float *dw, const float *dy, const float *x, Conv2dShape s,
                                                   float *workspace, bool atomic) {
  int choice = conv2d_weight_choice(s);
  if (choice == CONV2D_WEIGHT_LARGE)
    conv2d_backward_weight_gemm_of<Conv2dWeightLarge, true>(dw, dy, x, s, workspace, atomic);
  else if (choice == CONV2D_WEIGHT_WARP)
    conv2d_backward_weight_gemm_run<Conv2dWeightWarp>(dw, dy, x, s, workspace, atomic);
  else
    conv2d_backward_weight_gemm_run<Conv2dWeightTiny>(dw, dy, x, s, workspace, atomic);
}

template <typename Tile>
static inline size_t conv2d_weight_parts(Conv2dShape s) {
  return conv2d_gradient_parts<Tile>(conv2d_weight_gemm<Tile>(NULL, NULL, NULL, s).product);
}

/* Of its workspace, for this batch and smaller ones, which may have other tiles. */
static inline size_t conv2d_weight_gemm_floats(Conv2dShape s) {
  size_t warp = conv2d_weight_parts<Conv2dWeightWarp>(s), tiny = conv2d_weight_parts<Conv2dWeightTiny>(s);
  size_t large = conv2d_weight_is_even<Conv2dWeightLarge>(s) ? conv2d_weight_parts<Conv2dWeightLarge>(s) : 0;
  size_t most = warp > tiny ? warp : tiny;
  return most > large ? most : large;
}

#endif /* PHASE3_CNN_CONV2D_BACKWARD_WEIGHT_GEMM_CUH */
