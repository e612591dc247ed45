/* stem_int8.cuh - the first layers of a ResNet with int8: convolution of 7 x 7, ReLU and max pooling in one kernel, as
 * stem_pool.cuh has them.
 *
 *     x (N,3,H,W) float   w (K,7,8,4) int8   factor, bias (K)   y (N,P',Q',K) uint8        K a multiple of 16
 *
 * Pictures are rounded to int8 as they come to shared memory: a pixel becomes one word, its three channels and a
 * zero. For output q a row of the filter reads the words of columns 2 q - 4 to 2 q + 3, 32 bytes, of which the first
 * one is multiplied by zeros. That is the depth of one mma.sync.m16n8k32, and again the tensor cores' operand is the
 * picture itself: seven instructions for 16 filters and 8 outputs, where fp16 needs twelve of half the depth.
 *
 * The largest sum of a window is found in int32, and only that is rounded: the factor is positive, so the order of
 * the two does not matter, and y has the bits of the three operations one after the other.
 *
 * A warp has 32 filters in 56 registers of each lane. Lane l has filters 4 (l / 4) to + 3 of them, and the outputs
 * of columns 2 (l % 4) and + 1 of a tile of 8: of a window those of its last two columns.
 */
#ifndef PHASE5_PRODUCTION_STEM_INT8_CUH
#define PHASE5_PRODUCTION_STEM_INT8_CUH

#include "phase5_production/04_resnet18_fused/stem_pool.cuh"
#include "phase5_production/09_int8/conv2d_int8_mma.cuh"

enum {
  STEM_INT8_ROW = 4 * STEM_PADDED,              /* bytes of a row of taps */
  STEM_INT8_FILTER = STEM_TAPS * STEM_INT8_ROW, /* bytes of a filter */
  STEM_INT8_RING = STEM_RING * STEM_PITCH,      /* words: rows of pixels */
  STEM_INT8_QUADS = 4 * STEM_QUADS,             /* of four rows; a quad is four neighbouring pixels */
  STEM_INT8_LOADS = (STEM_INT8_QUADS + STEM_THREADS - 1) / STEM_THREADS,
  STEM_INT8_LEAST = -(1 << 30) /* less than any sum of 147 products and a bias */
};

typedef struct StemInt8 {
  const int8_t *w;
  const float *factor;
  const int32_t *bias;
  float scale; /* of the pictures */
} StemInt8;

/* w (K,3,49) of one scale per filter -> (K,7,8,4), on the host */
static inline void stem_int8_filters(int8_t *q, const float *w, const float *scale, int k) {
  const int taps = STEM_TAPS * STEM_TAPS;
  memset(q, 0, (size_t)k * STEM_INT8_FILTER);
  for (int f = 0; f < k; f++)
    for (int c = 0; c < 3; c++)
      for (int t = 0; t < taps; t++)
        q[(size_t)f * STEM_INT8_FILTER + t / STEM_TAPS * STEM_INT8_ROW + (t % STEM_TAPS + 1) * 4 + c] =
            int8_quantize(w[((size_t)f * 3 + c) * taps + t], scale[f], false);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Reference */

static inline int32_t stem_int8_sum_cpu(const float *x, const StemInt8 &stem, StemShape s, int image, int p, int q,
                                        int k) {
  int32_t sum = stem.bias[k];
  for (int r = 0; r < STEM_TAPS; r++)
    for (int t = 0; t < STEM_TAPS; t++) {
      const int row = 2 * p + r - 3, col = 2 * q + t - 3;
      if (row < 0 || row >= s.h || col < 0 || col >= s.w) continue;
      for (int c = 0; c < 3; c++)
        sum += int8_quantize(x[((size_t)(image * 3 + c) * s.h + row) * s.w + col], stem.scale, false) *
               stem.w[(size_t)k * STEM_INT8_FILTER + r * STEM_INT8_ROW + (t + 1) * 4 + c];
    }
  return sum;
}

static inline void stem_int8_cpu(int8_t *y, const float *x, StemInt8 stem, StemShape s) {
  for (int image = 0; image < s.n; image++)
    for (int p = 0; p < s.pool_h; p++)
      for (int q = 0; q < s.pool_w; q++)
        for (int k = 0; k < s.k; k++, y++) {
          int32_t most = 0; /* after ReLU nothing is below it */
          for (int a = 2 * p - 1; a <= 2 * p + 1; a++)
            for (int b = 2 * q - 1; b <= 2 * q + 1; b++) {
              if (a < 0 || a >= s.out_h || b < 0 || b >= s.out_w) continue;
              const int32_t sum = stem_int8_sum_cpu(x, stem, s, image, a, b, k);
              if (sum > most) most = sum;
            }
          *y = int8_byte(int8_times((float)most, stem.factor[k]), true);
        }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

/* Four neighbouring pixels of one channel; outside of the picture 0. QUADS: a row consists of aligned quads. */
template <bool QUADS>
static __device__ __forceinline__ float4 stem_int8_quad(const float *x, const StemShape &s, int image, int c, int row,
                                                        int col) {
  float4 quad = make_float4(0, 0, 0, 0);
  if (row < 0 || row >= s.h) return quad;
  const float *from = x + ((size_t)(image * 3 + c) * s.h + row) * s.w + col;
  if (QUADS) {
    if (col >= 0 && col < s.w) quad = *(const float4 *)from;
  } else {
    if (col >= 0 && col < s.w) quad.x = from[0];
    if (col + 1 >= 0 && col + 1 < s.w) quad.y = from[1];
    if (col + 2 >= 0 && col + 2 < s.w) quad.z = from[2];
    if (col + 3 >= 0 && col + 3 < s.w) quad.w = from[3];
  }
  return quad;
}

/* The thread's pixels of rows 4 group to 4 group + 3, to registers. */
template <bool QUADS>
static __device__ __forceinline__ void stem_int8_load(float4 (&pixel)[STEM_INT8_LOADS][3], const float *x,
                                                      const StemShape &s, StemPlace place, int group) {
#pragma unroll
  for (int i = 0; i < STEM_INT8_LOADS; i++) {
    const int at = threadIdx.x + i * STEM_THREADS;
    const int row = at < STEM_INT8_QUADS ? 4 * group + at / STEM_QUADS : -1;
#pragma unroll
    for (int c = 0; c < 3; c++)
      pixel[i][c] = stem_int8_quad<QUADS>(x, s, place.image, c, row, 2 * place.col - 4 + at % STEM_QUADS * 4);
  }
}

/* int8_quantize() without branches: the quotient by Markstein's iterations, 1.5 * 2^23 for the rounding. NaN becomes
 * 0. */
static __device__ __forceinline__ uint32_t stem_int8_byte(float x, float scale, float inverse) {
  const float far = 1000 * scale;
  x = x == x ? fminf(fmaxf(x, -far), far) : 0.0f;
  float q = __fmul_rn(x, inverse);
  q = fmaf(fmaf(-q, scale, x), inverse, q);
  q = fmaf(fmaf(-q, scale, x), inverse, q);
  return __float_as_uint(__fadd_rn(fminf(fmaxf(q, INT8_LEAST), INT8_MOST), 12582912.0f));
}

static __device__ __forceinline__ uint32_t stem_int8_word(float r, float g, float b, float scale, float inverse) {
  const uint32_t pair = __byte_perm(stem_int8_byte(r, scale, inverse), stem_int8_byte(g, scale, inverse), 0x0040);
  return (pair & 0xFFFF) | (stem_int8_byte(b, scale, inverse) & 255) << 16;
}

/* Where a row of pixels is in the ring. */
static __device__ __forceinline__ int stem_int8_slot(int row) { return (row & (STEM_RING - 1)) * STEM_PITCH; }

static __device__ __forceinline__ void stem_int8_keep(uint32_t *ring, const float4 (&pixel)[STEM_INT8_LOADS][3],
                                                      float scale, int group) {
  const float inverse = __fdiv_rn(1.0f, scale);
#pragma unroll
  for (int i = 0; i < STEM_INT8_LOADS; i++) {
    const int at = threadIdx.x + i * STEM_THREADS;
    if (at >= STEM_INT8_QUADS) continue;
    const float4 r = pixel[i][0], g = pixel[i][1], b = pixel[i][2];
    *(uint4 *)(ring + stem_int8_slot(4 * group) + 4 * at) =
        make_uint4(stem_int8_word(r.x, g.x, b.x, scale, inverse), stem_int8_word(r.y, g.y, b.y, scale, inverse),
                   stem_int8_word(r.z, g.z, b.z, scale, inverse), stem_int8_word(r.w, g.w, b.w, scale, inverse));
  }
}

/* The warp's weights: row g of the operand is filter 4 g + 2 m, row g + 8 the next. */
typedef uint32_t StemInt8Filters[STEM_TAPS][2][4];

static __device__ __forceinline__ void stem_int8_weights(StemInt8Filters &filter, const int8_t *w, int first,
                                                         int count) {
  const int lane = threadIdx.x % 32, own = first + lane / 4 * 4;
#pragma unroll
  for (int r = 0; r < STEM_TAPS; r++)
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const int k = own + e / 4 * 2 + e % 2, tap = lane % 4 + e / 2 % 2 * 4;
      filter[r][e / 4][e % 4] =
          k < count ? *(const uint32_t *)(w + (size_t)k * STEM_INT8_FILTER + r * STEM_INT8_ROW + 4 * tap) : 0;
    }
}

/* Sums of two rows of outputs, 8 columns: [row][f / 2][f % 2 * 2 + column] is of the lane's filter f. */
typedef int StemInt8Sums[2][2][4];

/* rows: of pixels from 4 p - 3 on, at the tile's first column and the lane's place. BOTH: else only the second row. */
template <bool BOTH>
static __device__ __forceinline__ void stem_int8_multiply(StemInt8Sums &sum, const uint32_t *ring, int first_row,
                                                          int offset, const StemInt8Filters &filter,
                                                          const int (&bias)[4]) {
#pragma unroll
  for (int i = 0; i < 16; i++) sum[i / 8][i / 4 % 2][i % 4] = bias[i % 8 / 2];
#pragma unroll
  for (int i = BOTH ? 0 : 2; i < STEM_TAPS + 2; i++) {
    const uint32_t *from = ring + stem_int8_slot(first_row + i) + offset;
    const uint32_t near_taps = from[0], far_taps = from[4];
#pragma unroll
    for (int m = 0; m < 2; m++) {
      if (BOTH && i < STEM_TAPS) mma_16x8x32<false>(sum[0][m], filter[i % STEM_TAPS][m], near_taps, far_taps);
      if (i >= 2) mma_16x8x32<false>(sum[1][m], filter[(i + STEM_TAPS - 2) % STEM_TAPS][m], near_taps, far_taps);
    }
  }
}

/* Outputs outside of the picture are less than any. */
static __device__ __forceinline__ void stem_int8_outside(StemInt8Sums &sum, const StemShape &s, int row, int col) {
  if (row + 2 <= s.out_h && col + 8 <= s.out_w) return;
  col += threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < 16; i++)
    if (row + i / 8 >= s.out_h || col + i % 2 >= s.out_w) sum[i / 8][i / 4 % 2][i % 4] = STEM_INT8_LEAST;
}

/* Windows of a tile, as stem_windows(): most[f] is the largest sum of filter f in the lane's window. `before`: of
 * each row and filter the last output of the tile before; `above`: the largest of the window's first row, then of
 * the one below. */
static __device__ __forceinline__ void stem_int8_windows(int (&most)[4], const StemInt8Sums &sum, int (&before)[2][4],
                                                         int4 *above) {
  const int lane = threadIdx.x % 32, from = lane / 4 * 4 + (lane + 3) % 4;
  int last[4] = {above->x, above->y, above->z, above->w};
#pragma unroll
  for (int f = 0; f < 4; f++) most[f] = max(0, last[f]);
#pragma unroll
  for (int row = 0; row < 2; row++)
#pragma unroll
    for (int f = 0; f < 4; f++) {
      const int *own = &sum[row][f / 2][f % 2 * 2];
      const int left = __shfl_sync(0xFFFFFFFF, lane % 4 == 3 ? before[row][f] : own[1], from);
      before[row][f] = own[1];
      // >>> hidden stem_pool_window
      last[f] = max(left, max(own[0], own[1]));
      most[f] = max(most[f], last[f]);
      // <<< hidden
    }
  *above = make_int4(last[0], last[1], last[2], last[3]);
}

/* Row p of windows -> y; STORED: else only what it leaves for the row below. */
template <bool STORED>
static __device__ __forceinline__ void stem_int8_row(int8_t *y, const uint32_t *ring, int4 *above, const StemShape &s,
                                                     StemPlace place, int p, const StemInt8Filters &filter,
                                                     const int (&bias)[4], const float (&factor)[4], int own_filter) {
  const int lane = threadIdx.x % 32;
  int before[2][4];
#pragma unroll
  for (int i = 0; i < 8; i++) before[i / 4][i % 4] = STEM_INT8_LEAST;
#pragma unroll 1
  for (int tile = 0; tile < STEM_TILES && place.col + 8 * tile < s.out_w; tile++) {
    StemInt8Sums sum;
    int most[4];
    stem_int8_multiply<STORED>(sum, ring, 4 * p - 3, 2 * (8 * tile + lane / 4) + lane % 4, filter, bias);
    stem_int8_outside(sum, s, 2 * p, place.col + 8 * tile);
    stem_int8_windows(most, sum, before, above + tile * STEM_THREADS);
    const int q = place.col / 2 + 4 * tile + lane % 4;
    uint32_t bytes = 0;
#pragma unroll
    for (int f = 0; f < 4; f++)
      bytes |= (__float_as_uint(__fadd_rn(fminf(__fmul_rn((float)most[f], factor[f]), UINT8_MOST), 12582912.0f)) & 255)
               << 8 * f;
    if (STORED && q < s.pool_w && (q > place.col / 2 || q == 0) && own_filter < s.k)
      *(uint32_t *)(y + (((size_t)place.image * s.pool_h + p) * s.pool_w + q) * s.k + own_filter) = bytes;
  }
}

/* As stem_pool_kernel(): the next four rows of pixels come while a row of windows is computed. */
template <bool QUADS>
static __global__ void __launch_bounds__(STEM_THREADS, 5)
    stem_int8_kernel(int8_t *y, const float *x, StemInt8 stem, StemShape s) {
  extern __shared__ __align__(128) unsigned char stem_int8_shared[];
  int4 *above = (int4 *)stem_int8_shared + threadIdx.x;
  uint32_t *ring = (uint32_t *)(stem_int8_shared + STEM_TILES * STEM_THREADS * sizeof(int4));
  const StemPlace place = stem_place(s, blockIdx.x);
  const int filter0 = blockIdx.y * STEM_FILTERS, warp_filter = filter0 + threadIdx.x / 32 * STEM_WARP_FILTERS;
  const int own_filter = filter0 + threadIdx.x / 4 * 4, end = min(place.p + STEM_ROWS, s.pool_h);
  int p = place.p > 0 ? place.p - 1 : 0;
  float4 pixel[STEM_INT8_LOADS][3];
  StemInt8Filters filter;
  int bias[4];
  float factor[4];
  stem_int8_weights(filter, stem.w, warp_filter, s.k);
#pragma unroll
  for (int f = 0; f < 4; f++) {
    bias[f] = own_filter < s.k ? stem.bias[own_filter + f] : 0;
    factor[f] = own_filter < s.k ? stem.factor[own_filter + f] : 0;
  }
  for (int i = 0; i < STEM_TILES; i++)
    above[i * STEM_THREADS] = make_int4(STEM_INT8_LEAST, STEM_INT8_LEAST, STEM_INT8_LEAST, STEM_INT8_LEAST);
  for (int group = p - 1; group <= p; group++) {
    stem_int8_load<QUADS>(pixel, x, s, place, group);
    stem_int8_keep(ring, pixel, stem.scale, group);
  }
  stem_int8_load<QUADS>(pixel, x, s, place, p + 1);
  for (; p < end; p++) {
    stem_int8_keep(ring, pixel, stem.scale, p + 1);
    __syncthreads();
    if (p + 1 < end) stem_int8_load<QUADS>(pixel, x, s, place, p + 2);
    if (p < place.p)
      stem_int8_row<false>(y, ring, above, s, place, p, filter, bias, factor, own_filter);
    else
      stem_int8_row<true>(y, ring, above, s, place, p, filter, bias, factor, own_filter);
  }
}

static inline void stem_int8_gpu(int8_t *y, const float *x, StemInt8 stem, StemShape s) {
  mma_require();
  const int bytes = STEM_TILES * STEM_THREADS * (int)sizeof(int4) + STEM_INT8_RING * (int)sizeof(uint32_t);
  const dim3 grid((unsigned)s.blocks, (unsigned)(s.k + STEM_FILTERS - 1) / STEM_FILTERS);
  if (s.w % 4 == 0 && (uintptr_t)x % sizeof(float4) == 0) {
    shared_limit_ask((const void *)stem_int8_kernel<true>, bytes);
    stem_int8_kernel<true><<<grid, STEM_THREADS, bytes>>>(y, x, stem, s);
  } else {
    shared_limit_ask((const void *)stem_int8_kernel<false>, bytes);
    stem_int8_kernel<false><<<grid, STEM_THREADS, bytes>>>(y, x, stem, s);
  }
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_STEM_INT8_CUH */
