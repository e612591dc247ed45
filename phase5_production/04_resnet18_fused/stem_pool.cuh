/* stem_pool.cuh - the first three operations of a ResNet in one kernel: convolution, bias and ReLU, and the largest of
 * each window. What the convolution gives is never written to memory: at batch 64 in fp16 that is 103 MB.
 *
 *     x (N,3,H,W) float   w (K,R S,pitch) T, three channels of each tap   bias (K)   y (N,P',Q',K) T
 *     R = S = 7, stride 2, padding 3: (P,Q) outputs; windows of 3 x 3, stride 2, padding 1: (P',Q') of them
 *
 *   stem_pool_forward_cpu    the loops of the formula
 *   stem_pool_forward_gpu    a block computes STEM_ROWS rows of 56 windows, of 64 filters. T is __half, __nv_bfloat16
 *                            or float; K is a multiple of 8
 *
 * x is read as pictures come, float32 and channel by channel, so nobody converts it before. The filter is filled up to
 * 8 x 8 taps by a row and a column of zeros before it. So the product has 3 * 64 factors, 16 of which are two rows of
 * taps of a channel: for output (p,q) the pixels of columns 2 q - 4 to 2 q + 3 in rows 2 i and 2 i + 1. Those are
 * neighbours in shared memory, and begin at an even pixel: the tensor cores' operand is the picture itself, of which a
 * lane reads two pixels, 4 bytes, at a time. Nothing is copied per output.
 *
 *     mma.sync.m16n8k16: sum (16 filters, 8 outputs of a row) += w (16 filters, 16 taps) pixels (16 taps, 8 outputs)
 *
 * A warp has 32 filters. All their weights stay in its registers, 96 of each lane. It goes down the picture by two rows
 * of outputs, which share most of their pixels, and along these rows by 8 columns. Then a lane has the outputs of a
 * window's last two rows and columns: those of the first column are another lane's, and the largest ones of the first
 * row are left from the step above. So windows need no shared memory but what is left, and no barrier.
 *
 * With T float the factors are __half: their fraction has 10 bits, as that of TF32 has, and the sums are float32. What
 * half cannot hold is a number above 65504; weights and pixels are far below. With every T a pixel that is not finite
 * also makes NaN of outputs one row or column away from those that read it: the zeros of the filters times it.
 */
#ifndef PHASE5_PRODUCTION_STEM_POOL_CUH
#define PHASE5_PRODUCTION_STEM_POOL_CUH

#include "common/shared_memory_limit.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase3_cnn/09_pooling/pool2d_shape.cuh"

enum {
  STEM_TAPS = 7,    /* along both axes */
  STEM_PADDED = 8,  /* with the zeros before them */
  STEM_ROWS = 7,    /* of windows of a block */
  STEM_TILES = 14,  /* of 8 columns of outputs */
  STEM_AT_ONCE = 1, /* tiles of a product; 2 need more registers than there are */
  STEM_OUT_COLS = 8 * STEM_TILES,
  STEM_COLS = STEM_OUT_COLS / 2 - 1, /* windows of a block, and in the first of a row one more: it lacks no column */
  STEM_FILTERS = 64,
  STEM_WARP_FILTERS = 32,
  STEM_THREADS = STEM_FILTERS,
  STEM_PAIRS = STEM_PADDED / 2,       /* of rows of taps */
  STEM_PITCH = 2 * STEM_OUT_COLS + 8, /* of a row of pixels in shared memory */
  STEM_PIXEL_ROW = 3 * STEM_PITCH,    /* one of each channel */
  STEM_RING = 16,                     /* rows of pixels: four groups of four */
  STEM_QUADS = STEM_PITCH / 4,        /* of neighbouring pixels */
  STEM_GROUP = 4 * 3 * STEM_QUADS,    /* quads of four rows */
  STEM_LOADS = (STEM_GROUP + STEM_THREADS - 1) / STEM_THREADS,
  STEM_DEPTH = 3 * STEM_PADDED * STEM_PADDED,
  STEM_FILTER_PITCH = STEM_DEPTH + 2 /* 97 times 4 bytes: no bank conflicts */
};

/* What the factors are. */
template <typename T>
struct StemFactor {
  typedef T type;
};
template <>
struct StemFactor<float> {
  typedef __half type;
};

typedef struct StemShape {
  int n, h, w, k;                 /* pictures (N,3,H,W), filters */
  int out_h, out_w;               /* of the convolution */
  int pool_h, pool_w;             /* windows */
  int pitch;                      /* numbers of a tap in w: its channels come first */
  int blocks_h, blocks_w, blocks; /* of windows */
} StemShape;

static inline StemShape stem_shape(int n, int h, int w, int k, int pitch) {
  StemShape s;
  s.n = n;
  s.h = h;
  s.w = w;
  s.k = k;
  s.pitch = pitch;
  s.out_h = (h - 1) / 2 + 1;
  s.out_w = (w - 1) / 2 + 1;
  s.pool_h = (s.out_h - 1) / 2 + 1;
  s.pool_w = (s.out_w - 1) / 2 + 1;
  s.blocks_h = (s.pool_h + STEM_ROWS - 1) / STEM_ROWS;
  s.blocks_w = s.pool_w == 1 ? 1 : (s.pool_w - 2) / STEM_COLS + 1;
  s.blocks = n * s.blocks_h * s.blocks_w;
  return s;
}

/* Whether these are the shapes that the kernel takes. */
static inline int stem_pool_fits(Conv2dShape c, Pool2dShape p) {
  return conv2d_is_dense(c) && c.c == 3 && c.r == STEM_TAPS && c.s == STEM_TAPS && c.stride_h == 2 && c.stride_w == 2 &&
         c.padding_h == 3 && c.padding_w == 3 && c.k % 8 == 0 && p.kernel_h == 3 && p.kernel_w == 3 &&
         p.stride_h == 2 && p.stride_w == 2 && p.pad_h == 1 && p.pad_w == 1 && p.dilation_h == 1 && p.dilation_w == 1 &&
         !p.ceil_mode;
}

/* The larger one; NaN if one of them is. */
static __host__ __device__ __forceinline__ float stem_max(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(SIMT_REWRITTEN)
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
#else
  return b > a || b != b ? b : a;
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Reference. w (K,49,pitch) as floats; y (N,P',Q',K) before it is rounded to T */

static inline float stem_output_cpu(const float *x, const float *w, const float *bias, StemShape s, int image, int p,
                                    int q, int k) {
  double sum = bias[k];
  for (int r = 0; r < STEM_TAPS; r++)
    for (int t = 0; t < STEM_TAPS; t++) {
      const int row = 2 * p + r - 3, col = 2 * q + t - 3;
      if (row < 0 || row >= s.h || col < 0 || col >= s.w) continue;
      for (int c = 0; c < 3; c++)
        sum += (double)x[((size_t)(image * 3 + c) * s.h + row) * s.w + col] *
               w[((size_t)k * STEM_TAPS * STEM_TAPS + r * STEM_TAPS + t) * s.pitch + c];
    }
  return sum < 0 ? 0 : (float)sum;
}

static inline void stem_pool_forward_cpu(float *y, const float *x, const float *w, const float *bias, StemShape s) {
  for (int image = 0; image < s.n; image++)
    for (int p = 0; p < s.pool_h; p++)
      for (int q = 0; q < s.pool_w; q++)
        for (int k = 0; k < s.k; k++, y++) {
          float most = 0; /* after ReLU nothing is below it */
          for (int a = 2 * p - 1; a <= 2 * p + 1; a++)
            for (int b = 2 * q - 1; b <= 2 * q + 1; b++)
              if (a >= 0 && a < s.out_h && b >= 0 && b < s.out_w)
                most = stem_max(most, stem_output_cpu(x, w, bias, s, image, a, b, k));
          *y = most;
        }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

/* Where a block's windows lie: the first row of windows, the first column of outputs. */
typedef struct StemPlace {
  int image, p, col;
} StemPlace;

static __device__ __forceinline__ StemPlace stem_place(const StemShape &s, int block) {
  StemPlace place;
  place.col = block % s.blocks_w * 2 * STEM_COLS;
  place.p = block / s.blocks_w % s.blocks_h * STEM_ROWS;
  place.image = block / s.blocks_w / s.blocks_h;
  return place;
}

/* Four neighbours, stored at once. */
template <typename T>
struct __align__(4 * sizeof(T)) StemQuad {
  T v[4];
};

template <typename T>
static __device__ __forceinline__ void stem_store(T *to, float a, float b, float c, float d) {
  StemQuad<T> quad;
  conv2d_store_pair(&quad.v[0], a, b);
  conv2d_store_pair(&quad.v[2], c, d);
  *(StemQuad<T> *)to = quad;
}

/* The thread's pixels of rows 4 group to 4 group + 3, to registers. QUADS: a row of the picture consists of aligned
 * quads. */
template <bool QUADS>
static __device__ __forceinline__ void stem_load(float4 (&pixel)[STEM_LOADS], const float *x, const StemShape &s,
                                                 StemPlace place, int group) {
#pragma unroll
  for (int i = 0; i < STEM_LOADS; i++) {
    const int at = threadIdx.x + i * STEM_THREADS, c = at / STEM_QUADS % 3;
    const int row = 4 * group + at / (3 * STEM_QUADS), col = 2 * place.col - 4 + at % STEM_QUADS * 4;
    const float *from = x + ((size_t)(place.image * 3 + c) * s.h + row) * s.w + col;
    pixel[i] = make_float4(0, 0, 0, 0);
    if (at >= STEM_GROUP || row < 0 || row >= s.h) continue;
    if (QUADS) {
      if (col >= 0 && col < s.w) pixel[i] = *(const float4 *)from;
    } else {
      if (col >= 0 && col < s.w) pixel[i].x = from[0];
      if (col + 1 >= 0 && col + 1 < s.w) pixel[i].y = from[1];
      if (col + 2 >= 0 && col + 2 < s.w) pixel[i].z = from[2];
      if (col + 3 >= 0 && col + 3 < s.w) pixel[i].w = from[3];
    }
  }
}

/* Where a row of pixels is in the ring. */
static __device__ __forceinline__ int stem_slot(int row) { return (row & (STEM_RING - 1)) * STEM_PIXEL_ROW; }

template <typename F>
static __device__ __forceinline__ void stem_keep(F *ring, const float4 (&pixel)[STEM_LOADS], int group) {
#pragma unroll
  for (int i = 0; i < STEM_LOADS; i++) {
    const int at = threadIdx.x + i * STEM_THREADS;
    if (at < STEM_GROUP)
      stem_store(ring + stem_slot(4 * group) + 4 * at, pixel[i].x, pixel[i].y, pixel[i].z, pixel[i].w);
  }
}

/* The warp's weights, to registers: filter[c][i][m] are those of channel c and the i-th two rows of taps, of row g of
 * the operand filter 4 g + 2 m, and of row g + 8 the next. So a lane gets the sums of four neighbouring filters. They
 * pass through `shared` (64 filters, STEM_FILTER_PITCH), which brings in the zeros. */
template <typename F, typename T>
static __device__ __forceinline__ void stem_load_weights(uint32_t (&filter)[3][STEM_PAIRS][2][4], F *shared, const T *w,
                                                         const StemShape &s, int filter0) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, taps = STEM_TAPS * STEM_TAPS;
  for (int i = threadIdx.x; i < STEM_FILTERS * STEM_FILTER_PITCH; i += STEM_THREADS) conv2d_narrow(&shared[i], 0);
  __syncthreads();
#pragma unroll 7
  for (int i = threadIdx.x; i < STEM_FILTERS * taps; i += STEM_THREADS) {
    const int k = i / taps, r = i % taps / STEM_TAPS + 1, t = i % STEM_TAPS + 1;
    if (filter0 + k >= s.k) continue;
    const T *from = w + ((size_t)filter0 * taps + i) * s.pitch;
    F *to = shared + k * STEM_FILTER_PITCH + r * STEM_PADDED + t;
#pragma unroll
    for (int c = 0; c < 3; c++) conv2d_narrow(&to[c * STEM_PADDED * STEM_PADDED], conv2d_widen(from[c]));
  }
  __syncthreads();
  const F *own = shared + (warp * STEM_WARP_FILTERS + lane / 4 * 4) * STEM_FILTER_PITCH + lane % 4 * 2;
#pragma unroll
  for (int c = 0; c < 3; c++)
#pragma unroll
    for (int i = 0; i < STEM_PAIRS; i++)
#pragma unroll
      for (int e = 0; e < 8; e++) {
        const int next = e / 4 * 2 + e % 2, row = c * STEM_PADDED + 2 * i + e / 2 % 2;
        filter[c][i][e / 4][e % 4] = *(const uint32_t *)(own + next * STEM_FILTER_PITCH + row * STEM_PADDED);
      }
  __syncthreads();
}

/* Outputs of two rows, in each of some tiles of 8 columns: [row][tile][f / 2][f % 2 * 2 + column] is of the lane's
 * filter f and column. */
typedef float StemSums[2][STEM_AT_ONCE][2][4];

/* `pixels`: the first column of the tiles in five pairs of rows, of which the first row of outputs reads four, and the
 * second row the last four. BOTH: otherwise only the second row is wanted. */
template <bool BOTH, typename F>
static __device__ __forceinline__ void stem_multiply(StemSums &sum, const F *const (&pixels)[STEM_PAIRS + 1], int col,
                                                     const uint32_t (&filter)[3][STEM_PAIRS][2][4],
                                                     const float (&bias)[4]) {
#pragma unroll
  for (int i = 0; i < 2 * STEM_AT_ONCE * 8; i++)
    sum[i / 8 / STEM_AT_ONCE][i / 8 % STEM_AT_ONCE][i / 4 % 2][i % 4] = bias[i % 8 / 2];
#pragma unroll
  for (int i = 0; i <= STEM_PAIRS; i++)
#pragma unroll
    for (int c = 0; c < 3; c++)
#pragma unroll
      for (int tile = 0; tile < STEM_AT_ONCE; tile++) {
        const F *from = pixels[i] + c * STEM_PITCH + 2 * (col + 8 * tile);
        if (i == 0 && !BOTH) continue;
        const uint32_t upper = *(const uint32_t *)from, lower = *(const uint32_t *)(from + STEM_PIXEL_ROW);
#pragma unroll
        for (int m = 0; m < 2; m++) {
          if (i < STEM_PAIRS && BOTH) conv2d_mma(F(), sum[0][tile][m], filter[c][i % STEM_PAIRS][m], upper, lower);
          if (i > 0) conv2d_mma(F(), sum[1][tile][m], filter[c][(i + 3) % STEM_PAIRS][m], upper, lower);
        }
      }
}

/* Outputs outside of the picture become 0, which no maximum after ReLU notices. */
static __device__ __forceinline__ void stem_outside(StemSums &sum, const StemShape &s, int row, int col) {
  if (row + 2 <= s.out_h && col + 8 * STEM_AT_ONCE <= s.out_w) return;
  col += threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < 2 * STEM_AT_ONCE * 8; i++) {
    const int r = i / 8 / STEM_AT_ONCE, tile = i / 8 % STEM_AT_ONCE;
    if (row + r >= s.out_h || col + 8 * tile + i % 2 >= s.out_w) sum[r][tile][i / 4 % 2][i % 4] = 0;
  }
}

/* The number as it is stored: a float as TF32, which wgmma multiplies without rounding it. */
static __device__ __forceinline__ float stem_rounded(float x, float) {
  return __uint_as_float(conv2d_tf32(__float_as_uint(x)));
}
template <typename T>
static __device__ __forceinline__ float stem_rounded(float x, T) {
  return x;
}

/* Windows of a tile: most[f] is the largest output of filter f in the lane's window. `before`: of each row and filter,
 * the output of the column before the tile, known to the last of four lanes; then those of this tile. `above`: the
 * largest of the window's first row; then of its last row, the first one of the window below. */
static __device__ __forceinline__ void stem_windows(float (&most)[4], const StemSums &sum, int tile,
                                                    float (&before)[2][4], float4 *above) {
  const int lane = threadIdx.x % 32, from = lane / 4 * 4 + (lane + 3) % 4;
  float last[4] = {above->x, above->y, above->z, above->w};
#pragma unroll
  for (int f = 0; f < 4; f++) most[f] = stem_max(0, last[f]);
#pragma unroll
  for (int row = 0; row < 2; row++)
#pragma unroll
    for (int f = 0; f < 4; f++) {
      const float *own = &sum[row][tile][f / 2][f % 2 * 2];
      const float left = __shfl_sync(0xFFFFFFFF, lane % 4 == 3 ? before[row][f] : own[1], from);
      before[row][f] = own[1];
      // >>> exercise stem_pool_window: row `row` of the window joins most[f]; last[f] = the largest of this row
      // hint: the window has three columns: `left`, and the lane's own two, own[0] and own[1]
      // hint: stem_max(a, b) is the larger one; last[f] = the largest of the three
      // hint: most[f] = stem_max(most[f], last[f]); the row above is in it already
      last[f] = stem_max(left, stem_max(own[0], own[1]));
      most[f] = stem_max(most[f], last[f]);
      // <<< exercise
    }
  *above = make_float4(last[0], last[1], last[2], last[3]);
}

/* Row p of windows -> y; STORED: otherwise only what it leaves for the row below. */
template <bool STORED, typename T, typename F>
static __device__ __forceinline__ void stem_row(T *y, const F *ring, float4 *above, const StemShape &s, StemPlace place,
                                                int p, const uint32_t (&filter)[3][STEM_PAIRS][2][4],
                                                const float (&bias)[4], int own_filter) {
  const int lane = threadIdx.x % 32;
  const F *pixels[STEM_PAIRS + 1];
#pragma unroll
  for (int i = 0; i <= STEM_PAIRS; i++) pixels[i] = ring + stem_slot(4 * p - 4 + 2 * i) + 2 * (lane / 4 + lane % 4);
  float before[2][4] = {};
#pragma unroll 1
  for (int tile0 = 0; tile0 < STEM_TILES && place.col + 8 * tile0 < s.out_w; tile0 += STEM_AT_ONCE) {
    StemSums sum;
    stem_multiply<STORED>(sum, pixels, 8 * tile0, filter, bias);
    stem_outside(sum, s, 2 * p, place.col + 8 * tile0);
#pragma unroll
    for (int tile = 0; tile < STEM_AT_ONCE; tile++) {
      const int q = place.col / 2 + 4 * (tile0 + tile) + lane % 4;
      float most[4];
      stem_windows(most, sum, tile, before, above + (tile0 + tile) * STEM_THREADS);
      if (STORED && q < s.pool_w && (q > place.col / 2 || q == 0) && own_filter < s.k)
        stem_store(y + (((size_t)place.image * s.pool_h + p) * s.pool_w + q) * s.k + own_filter,
                   stem_rounded(most[0], T()), stem_rounded(most[1], T()), stem_rounded(most[2], T()),
                   stem_rounded(most[3], T()));
    }
  }
}

/* The next four rows of pixels come to shared memory while a row of windows is computed. That reads three groups, and
 * the fourth is written after it: one barrier for each row is enough. */
template <bool QUADS, typename O, typename T>
static __global__ void __launch_bounds__(STEM_THREADS, 4)
    stem_pool_kernel(O *y, const float *x, const T *w, const float *bias, StemShape s) {
  typedef typename StemFactor<T>::type F;
  extern __shared__ __align__(128) unsigned char stem_shared[];
  float4 *above = (float4 *)stem_shared + threadIdx.x;
  F *ring = (F *)(stem_shared + STEM_TILES * STEM_THREADS * sizeof(float4));
  const StemPlace place = stem_place(s, blockIdx.x);
  const int filter0 = blockIdx.y * STEM_FILTERS, own_filter = filter0 + threadIdx.x / 4 * 4;
  const int end = min(place.p + STEM_ROWS, s.pool_h);
  int p = place.p > 0 ? place.p - 1 : 0;
  float4 pixel[STEM_LOADS];
  float own_bias[4];
  uint32_t filter[3][STEM_PAIRS][2][4];
  stem_load_weights(filter, ring, w, s, filter0);
#pragma unroll
  for (int f = 0; f < 4; f++) own_bias[f] = own_filter < s.k ? bias[own_filter + f] : 0;
  for (int i = 0; i < STEM_TILES; i++) above[i * STEM_THREADS] = make_float4(0, 0, 0, 0);
  for (int group = p - 1; group <= p; group++) {
    stem_load<QUADS>(pixel, x, s, place, group);
    stem_keep(ring, pixel, group);
  }
  stem_load<QUADS>(pixel, x, s, place, p + 1);
  for (; p < end; p++) {
    stem_keep(ring, pixel, p + 1);
    __syncthreads();
    if (p + 1 < end) stem_load<QUADS>(pixel, x, s, place, p + 2);
    if (p < place.p)
      stem_row<false>(y, ring, above, s, place, p, filter, own_bias, own_filter);
    else
      stem_row<true>(y, ring, above, s, place, p, filter, own_bias, own_filter);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

template <bool QUADS, typename O, typename T>
static inline void stem_pool_launch(O *y, const float *x, const T *w, const float *bias, StemShape s) {
  typedef typename StemFactor<T>::type F;
  const int ring = STEM_RING * STEM_PIXEL_ROW, filters = STEM_FILTERS * STEM_FILTER_PITCH;
  const int bytes =
      STEM_TILES * STEM_THREADS * (int)sizeof(float4) + (ring > filters ? ring : filters) * (int)sizeof(F);
  shared_limit_ask((const void *)stem_pool_kernel<QUADS, O, T>, bytes);
  const dim3 grid((unsigned)s.blocks, (unsigned)(s.k + STEM_FILTERS - 1) / STEM_FILTERS);
  stem_pool_kernel<QUADS, O, T><<<grid, STEM_THREADS, bytes>>>(y, x, w, bias, s);
  CUDA_CHECK_LAUNCH();
}

/* Outputs of another type than the weights need a conv2d_store_pair() that is declared before this header. */
template <typename O, typename T>
static inline void stem_pool_forward_gpu(O *y, const float *x, const T *w, const float *bias, StemShape s) {
  mma_require();
  if (s.w % 4 == 0 && (uintptr_t)x % sizeof(float4) == 0)
    stem_pool_launch<true>(y, x, w, bias, s);
  else
    stem_pool_launch<false>(y, x, w, bias, s);
}

#endif /* PHASE5_PRODUCTION_STEM_POOL_CUH */
