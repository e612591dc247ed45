/* complex_product.cuh - for each frequency f a product of complex matrices, C = A^T B or, CONJUGATE, A^H B:
 *
 *     c[f][i][j] = sum over d of a[f][d][i] b[f][d][j]        (CONJUGATE: of conj(a[f][d][i]) b[f][d][j])
 *     a (count,depth,a_pitch)   b (count,depth,b_pitch)   c (count,m,b_pitch), pitches multiples of 32
 *
 *   complex_product_naive   one thread per element of C: two loads of 8 bytes for four multiply-adds
 *   complex_product_tiled   tiles of A and B in shared memory, TM x TN elements of C per thread; the next two pairs of
 *                           tiles are copied meanwhile (cp.async)
 */
#ifndef PHASE3_CNN_COMPLEX_PRODUCT_CUH
#define PHASE3_CNN_COMPLEX_PRODUCT_CUH

#include <cuda_pipeline.h>

#include "common/check.h"

typedef struct ComplexProduct {
  int count, m, n, depth, a_pitch, b_pitch;
  bool add; /* to what C holds */
} ComplexProduct;

/* sum += a b, or conj(a) b. x is the real part, y the imaginary one; conj(a) is (a.x, -a.y). */
template <bool CONJUGATE>
static __device__ __forceinline__ void complex_multiply_add(float2 *sum, float2 a, float2 b) {
  // >>> exercise fft_conjugate_product: add to *sum the product of b with a or, CONJUGATE, with the conjugate of a
  // hint: two complex numbers have four products of real ones
  // hint: (a.x + i a.y) (b.x + i b.y), with i i = -1, has two products in the real part and two in the imaginary part
  // hint: the conjugate only changes the sign of a.y
  if (CONJUGATE) a.y = -a.y;
  sum->x += a.x * b.x;
  sum->x -= a.y * b.y;
  sum->y += a.x * b.y;
  sum->y += a.y * b.x;
  // <<< exercise
}

template <bool CONJUGATE>
static __global__ void complex_product_naive_kernel(float2 *c, const float2 *a, const float2 *b, ComplexProduct p,
                                                    int first) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  size_t f = first + blockIdx.z;
  if (j >= p.n) return;
  a += f * p.depth * p.a_pitch + i;
  b += f * p.depth * p.b_pitch + j;
  c += (f * p.m + i) * p.b_pitch + j;
  float2 sum = p.add ? *c : make_float2(0, 0);
  for (int d = 0; d < p.depth; d++)
    complex_multiply_add<CONJUGATE>(&sum, a[(size_t)d * p.a_pitch], b[(size_t)d * p.b_pitch]);
  *c = sum;
}

/* A block computes BM x BN elements of C, a thread TM x TN: pairs of rows and columns, BM / TM * 2 and BN / TN * 2
 * apart, so that neighbouring threads read neighbouring 16 bytes of shared memory. */
template <int BM, int BN, int TM, int TN>
struct ComplexTile {
  static const int depth = 8, stages = 3, threads = BM / TM * (BN / TN), warps_across = BN / TN / 8;
  static_assert(BM / TM % 4 == 0 && BN / TN % 8 == 0, "a warp is 8 x 4 threads");
  static_assert(BM * depth / 2 % threads == 0 && BN * depth / 2 % threads == 0, "threads share a tile evenly");
};

/* Begins to copy rows d0 ... d0 + DEPTH - 1 and WIDTH columns from column `first` on; zeros outside. */
template <int WIDTH, int DEPTH, int THREADS>
static __device__ __forceinline__ void complex_tile_copy(float4 *tile, const float2 *matrix, int pitch, int depth,
                                                         int d0, int first) {
#pragma unroll
  for (int e = 0; e < WIDTH / 2 * DEPTH; e += THREADS) {
    int i = e + (int)threadIdx.x, d = d0 + i / (WIDTH / 2), at = first + i % (WIDTH / 2) * 2;
    if (d < depth && at < pitch)
      __pipeline_memcpy_async(&tile[i], matrix + (size_t)d * pitch + at, sizeof(float4));
    else
      tile[i] = make_float4(0, 0, 0, 0);
  }
}

template <int BM, int BN, int TM, int TN, int RESIDENT, bool CONJUGATE>
static __global__ void __launch_bounds__(ComplexTile<BM, BN, TM, TN>::threads, RESIDENT)
    complex_product_tiled_kernel(float2 *c, const float2 *a, const float2 *b, ComplexProduct p, int first) {
  typedef ComplexTile<BM, BN, TM, TN> Tile;
  const int depth = Tile::depth, threads = Tile::threads, stages = Tile::stages;
  const int a_size = depth * BM / 2, b_size = depth * BN / 2; /* float4 */
  __shared__ float4 tiles[stages][a_size + b_size];
  int j0 = blockIdx.x * BN, i0 = blockIdx.y * BM, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  /* A warp is 8 x 4 threads; eight neighbours are 4 x 2, so that equal addresses share a wavefront. */
  int tx = warp % Tile::warps_across * 8 + lane / 2 % 8, ty = warp / Tile::warps_across * 4 + lane / 16 * 2 + lane % 2;
  size_t f = first + blockIdx.z;
  a += f * p.depth * p.a_pitch;
  b += f * p.depth * p.b_pitch;

  int steps = (p.depth + depth - 1) / depth;
#pragma unroll
  for (int step = 0; step < stages - 1; step++) {
    complex_tile_copy<BM, depth, threads>(tiles[step], a, p.a_pitch, p.depth, step * depth, i0);
    complex_tile_copy<BN, depth, threads>(tiles[step] + a_size, b, p.b_pitch, p.depth, step * depth, j0);
    __pipeline_commit();
  }

  float2 sum[TM][TN] = {};
  for (int step = 0, now = 0, next = stages - 1; step < steps; step++) {
    __pipeline_wait_prior(stages - 2); /* the tiles of this step are there */
    __syncthreads();                   /* for all threads; and all are done with the tiles of the step before */
    if (step + stages - 1 < steps) {
      int d0 = (step + stages - 1) * depth;
      complex_tile_copy<BM, depth, threads>(tiles[next], a, p.a_pitch, p.depth, d0, i0);
      complex_tile_copy<BN, depth, threads>(tiles[next] + a_size, b, p.b_pitch, p.depth, d0, j0);
    }
    __pipeline_commit();
    const float4 *a_tile = tiles[now], *b_tile = tiles[now] + a_size;
#pragma unroll
    for (int d = 0; d < depth; d++) {
      float4 left[TM / 2], right[TN / 2]; /* two complex numbers each */
#pragma unroll
      for (int i = 0; i < TM / 2; i++) left[i] = a_tile[d * (BM / 2) + ty + i * (BM / TM)];
#pragma unroll
      for (int j = 0; j < TN / 2; j++) right[j] = b_tile[d * (BN / 2) + tx + j * (BN / TN)];
#pragma unroll
      for (int i = 0; i < TM; i++) {
        float2 x = i % 2 ? make_float2(left[i / 2].z, left[i / 2].w) : make_float2(left[i / 2].x, left[i / 2].y);
#pragma unroll
        for (int j = 0; j < TN; j++) {
          float2 y = j % 2 ? make_float2(right[j / 2].z, right[j / 2].w) : make_float2(right[j / 2].x, right[j / 2].y);
          complex_multiply_add<CONJUGATE>(&sum[i][j], x, y);
        }
      }
    }
    now = now + 1 == stages ? 0 : now + 1;
    next = next + 1 == stages ? 0 : next + 1;
  }

#pragma unroll
  for (int i = 0; i < TM; i++) {
    int row = i0 + (ty + i / 2 * (BM / TM)) * 2 + i % 2;
    if (row >= p.m) continue;
#pragma unroll
    for (int j = 0; j < TN; j += 2) {
      int col = j0 + (tx + j / 2 * (BN / TN)) * 2;
      if (col >= p.b_pitch) continue;
      float4 *to = (float4 *)(c + (f * p.m + row) * p.b_pitch + col), had = make_float4(0, 0, 0, 0);
      if (p.add) had = *to;
      *to = make_float4(had.x + sum[i][j].x, had.y + sum[i][j].y, had.z + sum[i][j + 1].x, had.w + sum[i][j + 1].y);
    }
  }
}

/* ---- launchers ---- */

enum { COMPLEX_PRODUCT_GRID = 65535 }; /* frequencies of a launch: a grid has no more blocks in direction z */

static inline unsigned complex_product_part(ComplexProduct p, int done) {
  return (unsigned)(p.count - done < COMPLEX_PRODUCT_GRID ? p.count - done : COMPLEX_PRODUCT_GRID);
}

template <bool CONJUGATE>
static inline void complex_product_naive(float2 *c, const float2 *a, const float2 *b, ComplexProduct p) {
  for (int done = 0; done < p.count; done += COMPLEX_PRODUCT_GRID) {
    dim3 grid((unsigned)((p.n + 127) / 128), (unsigned)p.m, complex_product_part(p, done));
    complex_product_naive_kernel<CONJUGATE><<<grid, 128>>>(c, a, b, p, done);
    CUDA_CHECK_LAUNCH();
  }
}

template <int BM, int BN, int TM, int TN, int RESIDENT, bool CONJUGATE>
static inline void complex_product_tiled_of(float2 *c, const float2 *a, const float2 *b, ComplexProduct p) {
  for (int done = 0; done < p.count; done += COMPLEX_PRODUCT_GRID) {
    dim3 grid((unsigned)((p.n + BN - 1) / BN), (unsigned)((p.m + BM - 1) / BM), complex_product_part(p, done));
    complex_product_tiled_kernel<BM, BN, TM, TN, RESIDENT, CONJUGATE>
        <<<grid, ComplexTile<BM, BN, TM, TN>::threads>>>(c, a, b, p, done);
    CUDA_CHECK_LAUNCH();
  }
}

#endif /* PHASE3_CNN_COMPLEX_PRODUCT_CUH */
