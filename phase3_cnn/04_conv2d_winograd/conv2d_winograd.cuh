/* conv2d_winograd.cuh - convolution (conv2d.cuh) with 3 x 3 filters and stride 1 by Winograd's algorithm (Lavin and
 * Gray 2015), float32, NCHW: fewer multiplications than the formula has.
 *
 *     u (points, C, K)      = G w Gt        the filters, transformed
 *     v (points, C, tiles)  = Bt x B        the input, transformed: a tile is (MH + 2) x (MW + 2) inputs
 *     m (points, K, tiles)  = ut v          for each point a matrix product
 *     y                     = At m A        MH x MW outputs per tile; plus the bias
 *
 * The transforms are in winograd_transform.cuh. Here each of them is a kernel, and so is the product of all points;
 * conv2d_winograd_fused.cuh does the same in one kernel, conv2d_winograd_cublas.cuh has cuBLAS's product.
 *
 *   conv2d_forward_winograd2          F(2x2,3x3): 16 points, 4 products per output instead of 9
 *   conv2d_forward_winograd4          F(4x4,3x3): 36 points, 2.25 products per output
 *   conv2d_forward_winograd4_chunks   the same for some images at a time, so that v and m stay in the L2 cache
 *
 * The reference is conv2d_forward_cpu(); winograd_fits() refuses what these cannot do. C, K and the tiles are padded in
 * u, v and m, so that the product needs no bounds: winograd_transform.cuh. Launchers neither allocate nor wait. The
 * workspace lies at a multiple of 16 bytes.
 */
#ifndef PHASE3_CNN_CONV2D_WINOGRAD_CUH
#define PHASE3_CNN_CONV2D_WINOGRAD_CUH

#include <cuda_pipeline_primitives.h>

#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned_kernel.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_gpu.cuh"
#include "phase3_cnn/04_conv2d_winograd/winograd_transform.cuh"

enum { WINOGRAD_TILES = 128 }; /* the multiple of tiles that v and m have space for, and a block of the transforms */

/* ---------------------------------------------------------------------------------------------------------------- */
/* The transforms */

/* x -> v (points, c_padded, padded): `tiles` tiles from tile `first` on, and zeros. One thread per channel and tile:
 * neighbouring threads have neighbouring tiles, so that all stores are coalesced. */
template <int MH, int MW>
static __global__ void __launch_bounds__(WINOGRAD_TILES)
    winograd_input_kernel(float *v, const float *x, Winograd s, int first, int tiles, int padded) {
  const int pw = MW + 2, points = (MH + 2) * pw;
  int t = blockIdx.x * WINOGRAD_TILES + threadIdx.x;
  for (int c = blockIdx.y; c < s.c_padded; c += gridDim.y) {
    float d[MH + 2][pw] = {}, point[MH + 2][pw];
    if (t < tiles && c < s.c) {
      int n, tile_h, tile_w;
      winograd_place(s, first + t, &n, &tile_h, &tile_w);
      int h0 = tile_h * MH - s.padding_h, w0 = tile_w * MW - s.padding_w;
      const float *plane = x + ((size_t)n * s.c + c) * s.h * s.w;
#pragma unroll
      for (int i = 0; i < points; i++) {
        int h = h0 + i / pw, w = w0 + i % pw;
        if (h >= 0 && h < s.h && w >= 0 && w < s.w) d[i / pw][i % pw] = plane[h * s.w + w];
      }
    }
    winograd_input<MH, MW>(point, d);
    float *to = v + (size_t)c * padded + t;
#pragma unroll
    for (int i = 0; i < points; i++) to[(size_t)i * s.c_padded * padded] = point[i / pw][i % pw];
  }
}

/* m (points, k_padded, padded) -> y. One thread per filter and tile. */
template <int MH, int MW>
static __global__ void __launch_bounds__(WINOGRAD_TILES)
    winograd_output_kernel(float *y, const float *m, const float *bias, bool relu, Winograd s, int first, int tiles,
                           int padded, bool aligned) {
  const int pw = MW + 2, points = (MH + 2) * pw;
  int t = blockIdx.x * WINOGRAD_TILES + threadIdx.x, n, tile_h, tile_w;
  if (t >= tiles) return;
  winograd_place(s, first + t, &n, &tile_h, &tile_w);
  int row = tile_h * MH, col = tile_w * MW;
  for (int k = blockIdx.y; k < s.k; k += gridDim.y) {
    float point[MH + 2][pw], out[MH][MW];
    const float *from = m + (size_t)k * padded + t;
#pragma unroll
    for (int i = 0; i < points; i++) point[i / pw][i % pw] = from[(size_t)i * s.k_padded * padded];
    winograd_output<MH, MW>(out, point);
    winograd_finish<MH, MW>(out, bias != NULL ? bias[k] : 0.0f, relu);
    winograd_store<MH, MW>(y + (((size_t)n * s.k + k) * s.p + row) * s.q + col, out, s.p - row, s.q - col, s.q,
                           aligned);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The products */

/* m (points, filters, tiles) = u (points, depth, filters), transposed, times v (points, depth, tiles) */
typedef void WinogradProduct(float *m, const float *u, const float *v, int points, int depth, int filters, int tiles);

/* BM filters x BN tiles of one point. A thread has 16 x 8 elements, as in matmul_tuned. Both operands have the depth as
 * their first index, and all sizes are multiples of the tile's: cp.async copies rows as they are, without bounds,
 * STAGES - 1 steps of BK channels ahead. */
template <int BM, int BN, int BK, int STAGES, int RESIDENT>
struct WinogradProductShape {
  typedef MatmulTunedShape<BM, BN, BK, 64, 64, 16, 8> Tile;
  static const int bm = BM, bn = BN, bk = BK, stages = STAGES, resident = RESIDENT, threads = Tile::threads;
  static const int stage = BK * (BM + BN), bytes = STAGES * stage * 4;
};

/* ROWS rows of COLS floats, `pitch` apart in memory */
template <int ROWS, int COLS, int THREADS>
static __device__ __forceinline__ void winograd_copy_rows(float *tile, const float *from, int pitch) {
  const int quads = COLS / 4;
#pragma unroll
  for (int i = 0; i < ROWS * quads / THREADS; i++) {
    int at = threadIdx.x + i * THREADS;
    __pipeline_memcpy_async(tile + at * 4, from + (size_t)(at / quads) * pitch + at % quads * 4, 16);
  }
}

template <typename P>
static __global__ void __launch_bounds__(P::threads, P::resident)
    winograd_product_kernel(float *m, const float *u, const float *v, int depth, int filters, int tiles) {
  typedef typename P::Tile Tile;
  extern __shared__ __align__(16) float winograd_product_tiles[];
  int t0 = blockIdx.x * P::bn, k0 = blockIdx.y * P::bm, steps = depth / P::bk, row, col;
  matmul_tuned_patch<Tile>(&row, &col);
  // >>> exercise winograd_point_matrices: move u and v to the first element that this block multiplies
  // hint: u holds a matrix (depth, filters) for each point, one behind the other, and v a matrix (depth, tiles)
  // hint: the block computes point blockIdx.z, filters from k0 and tiles from t0 on
  // hint: u += (size_t)blockIdx.z * depth * filters + k0; and v?
  u += (size_t)blockIdx.z * depth * filters + k0;
  v += (size_t)blockIdx.z * depth * tiles + t0;
  // <<< exercise
#pragma unroll
  for (int i = 0; i < P::stages - 1; i++) {
    float *to = winograd_product_tiles + i * P::stage;
    if (i < steps) {
      winograd_copy_rows<P::bk, P::bm, P::threads>(to, u + (size_t)i * P::bk * filters, filters);
      winograd_copy_rows<P::bk, P::bn, P::threads>(to + P::bk * P::bm, v + (size_t)i * P::bk * tiles, tiles);
    }
    __pipeline_commit();
  }
  u += (size_t)(P::stages - 1) * P::bk * filters;
  v += (size_t)(P::stages - 1) * P::bk * tiles;

  float sum[16][8] = {}, left[2][16], right[2][8];
  float *now = winograd_product_tiles, *next = now + (P::stages - 1) * P::stage;
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    __pipeline_wait_prior(P::stages - 2);
    __syncthreads();
    if (step + P::stages - 1 < steps) { /* to the tiles that were multiplied in the step before */
      winograd_copy_rows<P::bk, P::bm, P::threads>(next, u, filters);
      winograd_copy_rows<P::bk, P::bn, P::threads>(next + P::bk * P::bm, v, tiles);
      u += (size_t)P::bk * filters;
      v += (size_t)P::bk * tiles;
    }
    __pipeline_commit();
    const float *u_tile = now + row, *v_tile = now + P::bk * P::bm + col;
    matmul_fragment<Tile::row_step>(left[0], u_tile);
    matmul_fragment<Tile::col_step>(right[0], v_tile);
#pragma unroll
    for (int i = 0; i < P::bk; i++) {
      if (i + 1 < P::bk) {
        matmul_fragment<Tile::row_step>(left[(i + 1) % 2], u_tile + (i + 1) * P::bm);
        matmul_fragment<Tile::col_step>(right[(i + 1) % 2], v_tile + (i + 1) * P::bn);
      }
      matmul_outer_snake(sum, left[i % 2], right[i % 2]);
    }
    next = now;
    now = now + P::stage < winograd_product_tiles + P::stages * P::stage ? now + P::stage : winograd_product_tiles;
  }
  matmul_write<Tile::row_step, Tile::col_step, true>(m + (size_t)blockIdx.z * filters * tiles, sum, k0 + row, t0 + col,
                                                     filters, tiles, false);
}

template <int BM, int BN, int BK, int STAGES, int RESIDENT>
static inline void winograd_product_launch(float *m, const float *u, const float *v, int points, int depth, int filters,
                                           int tiles) {
  typedef WinogradProductShape<BM, BN, BK, STAGES, RESIDENT> P;
  CUDA_CHECK(cudaFuncSetAttribute(winograd_product_kernel<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::bytes));
  winograd_product_kernel<P>
      <<<dim3(tiles / BN, filters / BM, points), P::threads, P::bytes>>>(m, u, v, depth, filters, tiles);
  CUDA_CHECK_LAUNCH();
}

static inline void winograd_product(float *m, const float *u, const float *v, int points, int depth, int filters,
                                    int tiles) {
  winograd_product_launch<64, 64, 8, 4, 8>(m, u, v, points, depth, filters, tiles);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* All of it */

/* `images` images at a time, and the floats of u, v and m for them. */
typedef struct WinogradChunk {
  int images;
  size_t u, v, m;
} WinogradChunk;

/* So many images that v and m together have about `most` floats. */
template <int MH, int MW>
static inline WinogradChunk winograd_chunk(Winograd s, size_t most) {
  const size_t points = (MH + 2) * (MW + 2), image = (size_t)s.tiles_h * s.tiles_w;
  size_t images = most / (points * (s.c_padded + s.k_padded) * image);
  WinogradChunk chunk;
  chunk.images = images < 1 ? 1 : images > (size_t)s.n ? s.n : (int)images;
  size_t padded = (chunk.images * image + WINOGRAD_TILES - 1) / WINOGRAD_TILES * WINOGRAD_TILES;
  chunk.u = winograd_filter_floats(s, points);
  chunk.v = points * s.c_padded * padded;
  chunk.m = points * s.k_padded * padded;
  return chunk;
}

template <int MH, int MW, bool FLIP>
static inline void winograd_kernels(float *y, const float *x, const float *w, const float *bias, bool relu, Winograd s,
                                    float *workspace, WinogradProduct *product, size_t most) {
  WinogradChunk chunk = winograd_chunk<MH, MW>(s, most);
  float *u = workspace, *v = u + chunk.u, *m = v + chunk.v;
  bool aligned = s.q % MW == 0 && (size_t)y % (MW * sizeof *y) == 0;
  int image = s.tiles_h * s.tiles_w;
  winograd_filter_launch<MH, MW, FLIP>(u, w, s);
  for (int n = 0; n < s.n; n += chunk.images) {
    int tiles = (s.n - n < chunk.images ? s.n - n : chunk.images) * image;
    int blocks = (tiles + WINOGRAD_TILES - 1) / WINOGRAD_TILES, padded = blocks * WINOGRAD_TILES;
    dim3 in(blocks, winograd_most(s.c_padded, 65535)), out(blocks, winograd_most(s.k, 65535));
    winograd_input_kernel<MH, MW><<<in, WINOGRAD_TILES>>>(v, x, s, n * image, tiles, padded);
    CUDA_CHECK_LAUNCH();
    product(m, u, v, (MH + 2) * (MW + 2), s.c_padded, s.k_padded, padded);
    winograd_output_kernel<MH, MW><<<out, WINOGRAD_TILES>>>(y, m, bias, relu, s, n * image, tiles, padded, aligned);
    CUDA_CHECK_LAUNCH();
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

enum { WINOGRAD_CHUNK = 8 << 20 };             /* floats of v and m: 32 MiB of an H200's L2 cache of 50 */
static const size_t winograd_all = (size_t)-1; /* all images at a time */

template <int MH, int MW>
static inline size_t winograd_kernels_floats(Winograd s, size_t most) {
  WinogradChunk chunk = winograd_chunk<MH, MW>(s, most);
  return chunk.u + chunk.v + chunk.m;
}

static inline void conv2d_forward_winograd2(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                            float *workspace) {
  winograd_kernels<2, 2, false>(y, x, w, bias, false, winograd_forward_shape<2, 2>(s), workspace, winograd_product,
                                winograd_all);
}

static inline void conv2d_forward_winograd4(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                            float *workspace) {
  winograd_kernels<4, 4, false>(y, x, w, bias, false, winograd_forward_shape<4, 4>(s), workspace, winograd_product,
                                winograd_all);
}

static inline void conv2d_forward_winograd4_chunks(float *y, const float *x, const float *w, const float *bias,
                                                   Conv2dShape s, float *workspace) {
  winograd_kernels<4, 4, false>(y, x, w, bias, false, winograd_forward_shape<4, 4>(s), workspace, winograd_product,
                                WINOGRAD_CHUNK);
}

static inline size_t conv2d_winograd2_floats(Conv2dShape s) {
  return winograd_kernels_floats<2, 2>(winograd_forward_shape<2, 2>(s), winograd_all);
}
static inline size_t conv2d_winograd4_floats(Conv2dShape s) {
  return winograd_kernels_floats<4, 4>(winograd_forward_shape<4, 4>(s), winograd_all);
}
static inline size_t conv2d_winograd4_chunks_floats(Conv2dShape s) {
  return winograd_kernels_floats<4, 4>(winograd_forward_shape<4, 4>(s), WINOGRAD_CHUNK);
}

/* The versions, what they need and what they refuse. Lesson 6 has the method of networks, with gradients. */
static const Conv2dMethod winograd2_forward = {
    "winograd2", winograd_fits, conv2d_winograd2_floats, conv2d_forward_winograd2, NULL, NULL};
static const Conv2dMethod winograd4_forward = {
    "winograd4", winograd_fits, conv2d_winograd4_floats, conv2d_forward_winograd4, NULL, NULL};
static const Conv2dMethod winograd4_chunks_forward = {
    "winograd4_chunks", winograd_fits, conv2d_winograd4_chunks_floats, conv2d_forward_winograd4_chunks, NULL, NULL};

#endif /* PHASE3_CNN_CONV2D_WINOGRAD_CUH */
