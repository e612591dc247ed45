/* conv2d_gemm.cuh - convolution as a matrix product whose second matrix is never stored: the parts of the kernel of
 * conv2d_implicit_gemm.cuh, for any stride, padding, dilation and groups. float32, NCHW.
 *
 *     y (K, N P Q) = w (K, depth) columns (depth, N P Q), of each group; depth = C/groups R S
 *
 * Column (n,p,q) holds the inputs that a filter covers at pixel (p,q) of image n. A block copies the piece of this
 * matrix that it multiplies from x to shared memory, and computes for each element of the piece where it is in x.
 *
 *   conv2d_gemm                the sizes of the product
 *   conv2d_pack_kernel         the filters as the tiles need them, and the table of offsets
 *   conv2d_gemm_copy           a tile of the filters and one of the columns to shared memory, in small portions
 *   conv2d_gemm_write          the epilogue: bias and ReLU on the way to y
 *   conv2d_gemm_join_kernel    second pass of stream-K
 */
#ifndef PHASE3_CNN_CONV2D_GEMM_CUH
#define PHASE3_CNN_CONV2D_GEMM_CUH

#include <cuda_pipeline_primitives.h>
#include <limits.h>
#include <math.h>

#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned_kernel.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* The matrix product */

/* How the rows of the columns are numbered. A step of the product multiplies CONV2D_STEP rows.
 *
 *   by channel   a step is one tap (r,s) of 8 channels, and the next step the next tap of the same channels. So all
 *                rows of a step have one place in the image: one test of its bounds, and from row to row the same
 *                distance, H W
 *   by table     as the filters are stored, (c,r,s). A table says where each row reads. For channels that are not a
 *                multiple of 8 */
enum { CONV2D_STEP = 8 };
enum { CONV2D_BY_CHANNEL, CONV2D_BY_TABLE };

typedef struct Conv2dGemm {
  Conv2dShape s;
  int p, q;              /* y (n,k,p,q) */
  int channels, filters; /* of one group */
  int order, steps;      /* CONV2D_BY_...; steps of CONV2D_STEP rows */
  int filters_padded;    /* the length of a row of the packed filters: a multiple of a tile's height */
  bool aligned;          /* four pixels of y from a multiple of 4 on are 16 bytes, at a multiple of 16 */
} Conv2dGemm;

/* `height`: the filters of a tile. */
static inline Conv2dGemm conv2d_gemm(const float *y, Conv2dShape s, int height) {
  if (s.r == 1) s.dilation_h = 1; /* there are no gaps, however large the dilation is */
  if (s.s == 1) s.dilation_w = 1;
  Conv2dGemm g = {s, conv2d_out_h(s), conv2d_out_w(s), s.c / s.groups, s.k / s.groups, CONV2D_BY_CHANNEL, 0, 0, false};
  if (g.channels % CONV2D_STEP != 0) g.order = CONV2D_BY_TABLE;
  g.steps = (g.channels * s.r * s.s + CONV2D_STEP - 1) / CONV2D_STEP;
  g.filters_padded = (g.filters + height - 1) / height * height;
  g.aligned = g.p * g.q % 4 == 0 && (uintptr_t)y % 16 == 0;
  return g;
}

/* The kernels number pixels and tiles with an int: so many images at a time. An image of y has fewer than 2^30 elements
 * (conv2d_shape_check). */
static inline int conv2d_gemm_images(Conv2dShape s) {
  int most = (1 << 30) / (s.k * conv2d_out_h(s) * conv2d_out_w(s));
  return most < s.n ? most : s.n;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Packed filters: transposed, in the order of the steps, filled up with zeros. So a tile of them is copied in float4
 * and without a test of bounds. They are small, and packing them takes one or two per cent of the time. */

/* What a row of the columns adds to the place of a pixel: elements, rows and columns of x. */
typedef int4 Conv2dTap;

/* The row of the columns that is tap d of a filter as it is stored, d = (c R + r) S + s. */
static __device__ __forceinline__ int conv2d_gemm_row(const Conv2dGemm &g, int d) {
  int taps = g.s.r * g.s.s, c = d / taps, tap = d % taps;
  return g.order == CONV2D_BY_TABLE ? d : (c / CONV2D_STEP * taps + tap) * CONV2D_STEP + c % CONV2D_STEP;
}

enum { CONV2D_PACK = 32 };

/* packed (groups, steps 8, filters_padded) from w (k, channels, r, s), and the table. A block of 32 x 8 threads
 * transposes 32 x 32 weights, as in the lesson transpose, so that both w and `packed` are accessed in whole sectors. */
static __global__ void conv2d_pack_kernel(float *packed, Conv2dTap *table, const float *w, Conv2dGemm g) {
  __shared__ float tile[CONV2D_PACK][CONV2D_PACK + 1];
  int depth = g.steps * CONV2D_STEP, taps = g.s.r * g.s.s, across = (depth + CONV2D_PACK - 1) / CONV2D_PACK;
  int d0 = blockIdx.x % across * CONV2D_PACK, k0 = blockIdx.y * CONV2D_PACK, group = blockIdx.x / across;
  for (int i = threadIdx.y; i < CONV2D_PACK; i += blockDim.y) {
    int k = k0 + i, d = d0 + threadIdx.x;
    bool exists = k < g.filters && d < g.channels * taps;
    tile[i][threadIdx.x] = exists ? w[(size_t)(group * g.filters + k) * g.channels * taps + d] : 0.0f;
  }
  __syncthreads();
  for (int i = threadIdx.y; i < CONV2D_PACK; i += blockDim.y) {
    int d = d0 + i, k = k0 + threadIdx.x;
    if (d >= depth || k >= g.filters_padded) continue;
    packed[((size_t)group * depth + conv2d_gemm_row(g, d)) * g.filters_padded + k] = tile[threadIdx.x][i];
    if (g.order != CONV2D_BY_TABLE || group > 0 || k > 0) continue;
    int h = d % taps / g.s.s * g.s.dilation_h, v = d % g.s.s * g.s.dilation_w;
    table[d] = d < g.channels * taps ? make_int4((d / taps * g.s.h + h) * g.s.w + v, h, v, 0)
                                     : make_int4(0, INT_MIN / 2, 0, 0); /* outside, whatever is added */
  }
}

/* Where the packed filters and the table stand in a workspace. */
typedef struct Conv2dPacked {
  float *filters;
  Conv2dTap *table;
  size_t floats; /* of both */
} Conv2dPacked;

static inline Conv2dPacked conv2d_gemm_packed(const Conv2dGemm &g, float *workspace) {
  size_t depth = (size_t)g.steps * CONV2D_STEP, filters = g.s.groups * depth * g.filters_padded;
  size_t table = g.order == CONV2D_BY_TABLE ? depth * (sizeof(Conv2dTap) / sizeof(float)) : 0;
  Conv2dPacked packed = {workspace, (Conv2dTap *)(workspace + filters), filters + table};
  return packed;
}

static inline void conv2d_gemm_pack(Conv2dPacked packed, const float *w, const Conv2dGemm &g) {
  const int side = CONV2D_PACK, depth = g.steps * CONV2D_STEP;
  dim3 grid((depth + side - 1) / side * g.s.groups, (g.filters_padded + side - 1) / side);
  conv2d_pack_kernel<<<grid, dim3(side, 8)>>>(packed.filters, packed.table, w, g);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Tiles */

/* A block of `threads` threads computes bm filters x bn pixels in steps of bk rows, a warp wm x wn of them, a thread
 * tm x tn (MatmulTunedShape). A stage of shared memory holds filters[bk][bm] and columns[bk][bn]. */
template <int BM, int BN, int WM, int WN, int TM, int TN, int STAGES>
struct Conv2dTile {
  static const int bm = BM, bn = BN, bk = CONV2D_STEP, wm = WM, wn = WN, tm = TM, tn = TN, stages = STAGES;
  static const int threads = BM / WM * (BN / WN) * 32;
  static const int across = WN / TN, down = WM / TM, row_step = down * 4, col_step = across * 4;
  static const int pitch = BM, stage = bk * (BM + BN); /* in floats */

  /* How the threads share the copies of a step: float4 of filters per thread; pixels, and rows of each. */
  static const int quads = BM * bk / 4 / threads, quads_down = threads / (BM / 4);
  static const int pixels = BN > threads ? BN / threads : 1;
  static const int rows_down = BN > threads ? 1 : threads / BN; /* from one of a thread's rows to the next */
  static const int rows = bk / rows_down;
  static_assert(down * across == 32 && across >= 4 && STAGES >= 2, "each lane has one patch of the warp's tile");
  static_assert(BM * bk % (4 * threads) == 0 && threads % (BM / 4) == 0, "the threads share the filters evenly");
  static_assert(bk % rows_down == 0 && (BN % threads == 0 || threads % BN == 0), "the threads share the pixels evenly");
};

/* What a thread copies in the next step. */
template <typename Tile>
struct Conv2dCopies {
  const float *filters;                   /* its float4 of the packed filters */
  const float *corner[Tile::pixels];      /* where the filters of its pixels begin, in the group's first channel */
  int h0[Tile::pixels], v0[Tile::pixels]; /* row and column of the corner */
  int filters_to, columns_to;             /* its places in a stage */
  int row;                                /* its first row of a step */
  int h, v, offset;                       /* by channel: the tap's row, column and element from the corner */
  const float *from[Tile::pixels];        /* the next row, */
  bool inside[Tile::pixels];              /* which is in the image for all rows of the step, or for none */
  const Conv2dTap *tap;                   /* by table */
};

/* Begins at step `step` of the tile of filters row0 ... and pixels col0 ... of a group. */
template <typename Tile>
static __device__ __forceinline__ void conv2d_gemm_begin(Conv2dCopies<Tile> &copies, const float *x,
                                                         const float *packed, const Conv2dTap *table,
                                                         const Conv2dGemm &g, int group, int row0, int col0, int step) {
  int first_quad = threadIdx.x % (Tile::bm / 4), taps = g.s.r * g.s.s, area = g.p * g.q;
  copies.filters = packed +
                   ((size_t)(group * g.steps + step) * Tile::bk + threadIdx.x / (Tile::bm / 4)) * g.filters_padded +
                   row0 + first_quad * 4;
  copies.row = Tile::pixels > 1 ? 0 : threadIdx.x / Tile::bn;
  copies.filters_to = threadIdx.x * 4;
  copies.columns_to = Tile::bk * Tile::bm + copies.row * Tile::bn + (threadIdx.x % Tile::bn ^ 1);
  copies.h = step % taps / g.s.s * g.s.dilation_h;
  copies.v = step % g.s.s * g.s.dilation_w;
  copies.offset = ((step / taps * Tile::bk + copies.row) * g.s.h + copies.h) * g.s.w + copies.v;
  copies.tap = table + step * Tile::bk + copies.row;
#pragma unroll
  for (int j = 0; j < Tile::pixels; j++) {
    int pixel = col0 + threadIdx.x % Tile::bn + j * Tile::threads, n = pixel / area, p = pixel % area / g.q,
        q = pixel % area % g.q;
    bool exists = n < g.s.n;
    copies.h0[j] = exists ? p * g.s.stride_h - g.s.padding_h : INT_MIN / 2; /* outside, whatever is added */
    copies.v0[j] = q * g.s.stride_w - g.s.padding_w;
    copies.corner[j] = x + ((size_t)(exists ? n : 0) * g.s.c + group * g.channels) * g.s.h * g.s.w +
                       (exists ? copies.h0[j] * g.s.w + copies.v0[j] : 0);
  }
}

/* By channel: the place of the step's tap, before its first copy. */
template <typename Tile>
static __device__ __forceinline__ void conv2d_gemm_place(Conv2dCopies<Tile> &copies, const Conv2dGemm &g) {
#pragma unroll
  for (int j = 0; j < Tile::pixels; j++) {
    // >>> exercise conv2d_gemm_place: set copies.from[j], the step's first row, and copies.inside[j]
    // hint: the corner is in row h0[j], column v0[j] of the image, the tap copies.h rows and copies.v columns further
    // hint: corner[j] is the corner's address; the step's first row is copies.offset elements behind it
    // hint: inside: both 0 <= h0[j] + h < g.s.h and 0 <= v0[j] + v < g.s.w; from = corner[j] + offset
    copies.from[j] = copies.corner[j] + copies.offset;
    copies.inside[j] = (unsigned)(copies.h0[j] + copies.h) < (unsigned)g.s.h &&
                       (unsigned)(copies.v0[j] + copies.v) < (unsigned)g.s.w; /* negative: a large unsigned */
    // <<< exercise
  }
}

/* By channel: the next tap; after the last one, the first tap of the next 8 channels. */
template <typename Tile>
static __device__ __forceinline__ void conv2d_gemm_advance(Conv2dCopies<Tile> &copies, const Conv2dGemm &g) {
  copies.v += g.s.dilation_w;
  copies.offset += g.s.dilation_w;
  bool row_ends = copies.v == g.s.s * g.s.dilation_w;
  copies.v = row_ends ? 0 : copies.v;
  copies.h += row_ends ? g.s.dilation_h : 0;
  copies.offset += row_ends ? g.s.dilation_h * g.s.w - g.s.s * g.s.dilation_w : 0;
  bool filter_ends = copies.h == g.s.r * g.s.dilation_h;
  copies.h = filter_ends ? 0 : copies.h;
  copies.offset += filter_ends ? (Tile::bk * g.s.h - g.s.r * g.s.dilation_h) * g.s.w : 0;
}

/* *to = inside ? *from : 0, without a branch: cp.async fills up with zeros what it does not read. (If the number of
 * bytes is not a constant, __pipeline_memcpy_async() is two instructions on a GPU, one for each case.) */
static __device__ __forceinline__ void conv2d_gemm_copy_float(float *to, const float *from, bool inside) {
#if defined(SIMT_REWRITTEN) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800)
  __pipeline_memcpy_async(to, from, sizeof *to, inside ? 0 : sizeof *to);
#else
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
               "r"(inside ? 4 : 0)
               : "memory");
#endif
}

/* Row i of this thread's rows of the columns, for each of its pixels. The columns of each pair are exchanged:
 * matmul_swap_pairs(). */
template <typename Tile, int ORDER>
static __device__ __forceinline__ void conv2d_gemm_copy_row(Conv2dCopies<Tile> &copies, float *stage,
                                                            const Conv2dGemm &g, int i) {
  float *to = stage + copies.columns_to + i * (Tile::rows_down * Tile::bn);
  Conv2dTap tap = ORDER == CONV2D_BY_TABLE ? copies.tap[i * Tile::rows_down] : make_int4(0, 0, 0, 0);
#pragma unroll
  for (int j = 0; j < Tile::pixels; j++) {
    if (ORDER == CONV2D_BY_TABLE) {
      copies.from[j] = copies.corner[j] + tap.x;
      copies.inside[j] =
          ((unsigned)(copies.h0[j] + tap.y) < (unsigned)g.s.h) & ((unsigned)(copies.v0[j] + tap.z) < (unsigned)g.s.w);
    }
    conv2d_gemm_copy_float(to + j * Tile::threads, copies.from[j], copies.inside[j]);
    if (ORDER == CONV2D_BY_CHANNEL) copies.from[j] += Tile::rows_down * g.s.h * g.s.w;
  }
}

/* Portion `portion` of `portions` of the copies of a step to `stage`: they are issued between products. */
template <typename Tile, int ORDER>
static __device__ __forceinline__ void conv2d_gemm_copy(Conv2dCopies<Tile> &copies, float *stage, const Conv2dGemm &g,
                                                        int portion, int portions) {
  if (ORDER == CONV2D_BY_CHANNEL && portion == 0) conv2d_gemm_place<Tile>(copies, g);
#pragma unroll
  for (int i = 0; i < Tile::quads; i++)
    if (i * portions / Tile::quads == portion) {
      __pipeline_memcpy_async(stage + copies.filters_to + i * (Tile::quads_down * Tile::bm), copies.filters,
                              4 * sizeof *stage);
      copies.filters += (size_t)Tile::quads_down * g.filters_padded;
    }
#pragma unroll
  for (int i = 0; i < Tile::rows; i++)
    if (i * portions / Tile::rows == portion) conv2d_gemm_copy_row<Tile, ORDER>(copies, stage, g, i);
  if (portion < portions - 1) return;
  if (ORDER == CONV2D_BY_CHANNEL) conv2d_gemm_advance<Tile>(copies, g);
  copies.tap += Tile::bk;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The epilogue: a sum on its way to y gets the filter's bias, and what is less than `least` becomes `least`. */

typedef struct Conv2dEpilogue {
  const float *bias; /* NULL: none */
  float least;       /* 0: ReLU; -INFINITY: nothing */
} Conv2dEpilogue;

static __device__ __forceinline__ float conv2d_epilogue(Conv2dEpilogue e, float sum, float bias) {
  float v = sum + bias;
  return v < e.least ? e.least : v; /* NaN stays NaN */
}

/* Where four neighbouring pixels from `pixel` on are in filter 0 of a group of y; NULL where there is no pixel. */
typedef struct Conv2dFour {
  float *at[4];
} Conv2dFour;

static __device__ __forceinline__ Conv2dFour conv2d_gemm_four(float *y, const Conv2dGemm &g, int group, int pixel) {
  Conv2dFour four;
  int area = g.p * g.q, n = pixel / area, rest = pixel - n * area;
#pragma unroll
  for (int i = 0; i < 4; i++, rest++) {
    while (rest >= area) { /* the next image; images of one or two pixels: more than one */
      rest -= area;
      n++;
    }
    four.at[i] = n < g.s.n ? y + ((size_t)n * g.s.k + group * g.filters) * area + rest : NULL;
  }
  return four;
}

/* The sums of these pixels of filter k of the group, to y. */
static __device__ __forceinline__ void conv2d_gemm_store(const Conv2dFour &four, float4 sum, const Conv2dGemm &g,
                                                         Conv2dEpilogue e, int group, int k) {
  if (k >= g.filters) return;
  size_t to = (size_t)k * (g.p * g.q);
  float4 v;
  // >>> exercise conv2d_gemm_epilogue: v = the four sums after the epilogue, with the bias of filter k of this group
  // hint: all four pixels are of the same filter, so they get the same bias; e.bias is NULL if there is none
  // hint: e.bias (K) holds the biases of all groups, one group after the other
  // hint: bias = e.bias[group * g.filters + k]; v.x = conv2d_epilogue(e, sum.x, bias), and so for y, z and w
  float bias = e.bias != NULL ? e.bias[group * g.filters + k] : 0.0f;
  v = make_float4(conv2d_epilogue(e, sum.x, bias), conv2d_epilogue(e, sum.y, bias), conv2d_epilogue(e, sum.z, bias),
                  conv2d_epilogue(e, sum.w, bias));
  // <<< exercise
  if (g.aligned) {
    if (four.at[0] != NULL) *(float4 *)(four.at[0] + to) = v;
    return;
  }
  if (four.at[0] != NULL) four.at[0][to] = v.x;
  if (four.at[1] != NULL) four.at[1][to] = v.y;
  if (four.at[2] != NULL) four.at[2][to] = v.z;
  if (four.at[3] != NULL) four.at[3][to] = v.w;
}

/* A thread's patch: filters from `row` on of the group, pixels from `col` on. */
template <typename Tile>
static __device__ __forceinline__ void conv2d_gemm_write(float *y, const float (&sum)[Tile::tm][Tile::tn],
                                                         const Conv2dGemm &g, Conv2dEpilogue e, int group, int row,
                                                         int col) {
#pragma unroll
  for (int s = 0; s < Tile::tn; s += 4) {
    Conv2dFour four = conv2d_gemm_four(y, g, group, col + s / 4 * Tile::col_step);
#pragma unroll
    for (int r = 0; r < Tile::tm; r++)
      conv2d_gemm_store(four, make_float4(sum[r][s], sum[r][s + 1], sum[r][s + 2], sum[r][s + 3]), g, e, group,
                        row + r / 4 * Tile::row_step + r % 4);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The order of the tiles, and the second pass of stream-K */

/* The tiles of the same pixels come one after the other: they read the same part of x. */
typedef struct Conv2dTiles {
  int rows, cols, count; /* of one group; of all */
} Conv2dTiles;

static __host__ __device__ __forceinline__ Conv2dTiles conv2d_gemm_tiles(const Conv2dGemm &g, int bm, int bn) {
  int rows = (g.filters + bm - 1) / bm, cols = (g.s.n * g.p * g.q - 1) / bn + 1;
  return {rows, cols, g.s.groups * rows * cols};
}

static __device__ __forceinline__ void conv2d_gemm_tile(Conv2dTiles tiles, int tile, int *group, int *row, int *col) {
  *row = tile % tiles.rows;
  *col = tile / tiles.rows % tiles.cols;
  *group = tile / tiles.rows / tiles.cols;
}

/* Tile whole + blockIdx.x = the sum of its parts in the order of its steps: as matmul_tuned_join_kernel. */
template <int BM, int BN>
static __global__ void conv2d_gemm_join_kernel(float *y, const float *parts, Conv2dGemm g, Conv2dEpilogue e, int whole,
                                               int blocks) {
  Conv2dTiles tiles = conv2d_gemm_tiles(g, BM, BN);
  long long streamed = (long long)(tiles.count - whole) * g.steps, begin = (long long)blockIdx.x * g.steps;
  int first = (int)(((begin + 1) * blocks - 1) / streamed), last = (int)(((begin + g.steps) * blocks - 1) / streamed);
  if (first == last) return;
  int group, row, col;
  conv2d_gemm_tile(tiles, whole + blockIdx.x, &group, &row, &col);
  for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < BM * BN / 4; i += gridDim.y * blockDim.x) {
    float4 total = ((const float4 *)(parts + (size_t)(2 * first + 1) * BM * BN))[i];
    for (int j = first + 1; j <= last; j++) {
      float4 part = ((const float4 *)(parts + (size_t)(2 * j) * BM * BN))[i];
      total = make_float4(total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w);
    }
    conv2d_gemm_store(conv2d_gemm_four(y, g, group, col * BN + i % (BN / 4) * 4), total, g, e, group,
                      row * BM + i / (BN / 4));
  }
}

#endif /* PHASE3_CNN_CONV2D_GEMM_CUH */
