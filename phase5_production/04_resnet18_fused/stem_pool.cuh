/* stem_pool.cuh - the first three operations of a ResNet in one kernel: convolution, bias and ReLU, and the largest of
 * each window. What the convolution gives is never written to memory: at batch 64 in fp16 that is 103 MB.
 *
 *     x (N,3,H,W) float   w (K,R S,pitch) T, three channels of each tap   bias (K)   y (N,P',Q',K) T
 *     R = S = 7, stride 2, padding 3: (P,Q) outputs; windows of 3 x 3, stride 2, padding 1: (P',Q') of them
 *
 *   stem_pool_forward_cpu    the loops of the formula
 *   stem_pool_forward_gpu    a block computes STEM_ROWS x STEM_COLS windows of 64 filters. T is __half,
 *                            __nv_bfloat16 or float; K is a multiple of 8
 *
 * x is read as pictures come, float32 and channel by channel, so nobody converts it before. In shared memory a pixel
 * has four numbers, the channels and a zero. The taps of a row of the filter are neighbours there, 7 times 4 numbers,
 * filled up to 8 times 4: for output q they begin at pixel 2 q. So the operand of the tensor cores, a row of 32
 * factors for each output and row of taps, is the picture itself, and ldmatrix reads it in place: rows overlap,
 * nothing is copied.
 *
 * With T float the factors are __half: their fraction has 10 bits, as that of TF32 has, and the sums are float32. What
 * half cannot hold is a number above 65504; weights and pixels are far below (stem_pool_fits()).
 */
#ifndef PHASE5_PRODUCTION_STEM_POOL_CUH
#define PHASE5_PRODUCTION_STEM_POOL_CUH

#include "common/shared_memory_limit.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase3_cnn/09_pooling/pool2d_shape.cuh"

enum {
  STEM_TAPS = 7, /* along both axes */
  STEM_ROWS = 7, /* windows of a block */
  STEM_COLS = 8,
  STEM_OUT_ROWS = 2 * STEM_ROWS + 1, /* outputs of the convolution that they cover */
  STEM_OUT_COLS = 2 * STEM_COLS + 1,
  STEM_IN_ROWS = 2 * STEM_OUT_ROWS + 5, /* pixels that these read */
  STEM_IN_COLS = 2 * STEM_OUT_COLS + 6, /* and one for the eighth tap, whose weights are zero */
  STEM_OUTPUTS = 256,                   /* rows of the product: the 15 x 17 outputs, filled up */
  STEM_FILTERS = 64,
  STEM_DEPTH = STEM_TAPS * 32,       /* 7 rows of 8 taps of 4 channels */
  STEM_PITCH = STEM_DEPTH + 8,       /* of a filter in shared memory: 29 times 16 bytes, no bank conflicts */
  STEM_OUT_PITCH = STEM_FILTERS + 8, /* of an output, in 16-bit numbers; of floats half as many behind the 64 */
  STEM_THREADS = 256,
  STEM_PIXELS = STEM_IN_ROWS * STEM_IN_COLS,
  STEM_LOADS = (STEM_PIXELS + STEM_THREADS - 1) / STEM_THREADS, /* pixels of a thread */
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
  int n, h, w, k;              /* pictures (N,3,H,W), filters */
  int out_h, out_w;            /* of the convolution */
  int pool_h, pool_w;          /* windows */
  int pitch;                   /* numbers of a tap in w: its channels come first */
  int tiles_h, tiles_w, tiles; /* of windows */
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
  s.tiles_h = (s.pool_h + STEM_ROWS - 1) / STEM_ROWS;
  s.tiles_w = (s.pool_w + STEM_COLS - 1) / STEM_COLS;
  s.tiles = n * s.tiles_h * s.tiles_w;
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
static __host__ __device__ __forceinline__ float stem_max(float a, float b) { return b > a || b != b ? b : a; }

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

/* Where a block's tile lies: its first window. */
typedef struct StemPlace {
  int image, p, q;
} StemPlace;

static __device__ __forceinline__ StemPlace stem_place(const StemShape &s, int tile) {
  StemPlace place;
  place.q = tile % s.tiles_w * STEM_COLS;
  place.p = tile / s.tiles_w % s.tiles_h * STEM_ROWS;
  place.image = tile / s.tiles_w / s.tiles_h;
  return place;
}

/* The thread's pixels of the tile, to registers: while they come, the tile before is multiplied. */
static __device__ __forceinline__ void stem_load(float (&pixel)[STEM_LOADS][3], const float *x, const StemShape &s,
                                                 StemPlace place) {
  const float *picture = x + (size_t)place.image * 3 * s.h * s.w;
#pragma unroll
  for (int i = 0; i < STEM_LOADS; i++) {
    const int at = threadIdx.x + i * STEM_THREADS;
    const int row = 4 * place.p - 5 + at / STEM_IN_COLS, col = 4 * place.q - 5 + at % STEM_IN_COLS;
    const bool inside = at < STEM_PIXELS && row >= 0 && row < s.h && col >= 0 && col < s.w;
#pragma unroll
    for (int c = 0; c < 3; c++) pixel[i][c] = inside ? picture[((size_t)c * s.h + row) * s.w + col] : 0;
  }
}

template <typename F>
static __device__ __forceinline__ void stem_keep(F *tile, const float (&pixel)[STEM_LOADS][3]) {
#pragma unroll
  for (int i = 0; i < STEM_LOADS; i++) {
    const int at = threadIdx.x + i * STEM_THREADS;
    if (at >= STEM_PIXELS) continue;
    conv2d_store_pair(tile + 4 * at, pixel[i][0], pixel[i][1]);
    conv2d_store_pair(tile + 4 * at + 2, pixel[i][2], 0);
  }
}

/* The weights of 64 filters: rows of 7 x 8 taps x 4 channels; what there is not is zero. */
template <typename F, typename T>
static __device__ __forceinline__ void stem_load_weights(F *filters, const T *w, const StemShape &s, int filter0) {
  for (int i = threadIdx.x; i < STEM_FILTERS * STEM_DEPTH; i += STEM_THREADS) {
    const int k = i / STEM_DEPTH, d = i % STEM_DEPTH, r = d / 32, t = d / 4 % 8, c = d % 4, filter = filter0 + k;
    float value = 0;
    if (filter < s.k && t < STEM_TAPS && c < 3)
      value = conv2d_widen(w[((size_t)filter * STEM_TAPS * STEM_TAPS + r * STEM_TAPS + t) * s.pitch + c]);
    conv2d_narrow(&filters[k * STEM_PITCH + d], value);
  }
}

/* sum (32 outputs of a warp, 64 filters) of a tile. */
template <typename F>
static __device__ __forceinline__ void stem_multiply(float (&sum)[2][8][4], const F *tile, const F *filters) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const F *left_at[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int m = warp * 32 + 16 * i + lane % 16, own = m < STEM_OUT_ROWS * STEM_OUT_COLS ? m : 0;
    left_at[i] = tile + (2 * (own / STEM_OUT_COLS) * STEM_IN_COLS + 2 * (own % STEM_OUT_COLS)) * 4 + lane / 16 * 8;
  }
  const F *right_at = filters + (lane / 16 * 8 + lane % 8) * STEM_PITCH + lane / 8 % 2 * 8;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
#pragma unroll 1
  for (int r = 0; r < STEM_TAPS; r++)
#pragma unroll
    for (int half = 0; half < 32; half += 16) {
      uint32_t left[2][4], right[4][4];
#pragma unroll
      for (int i = 0; i < 2; i++)
        mma_load_matrices<false>(left[i], (const __nv_bfloat16 *)(left_at[i] + r * STEM_IN_COLS * 4 + half));
#pragma unroll
      for (int j = 0; j < 4; j++)
        mma_load_matrices<false>(right[j], (const __nv_bfloat16 *)(right_at + 16 * j * STEM_PITCH + r * 32 + half));
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
          conv2d_mma(F(), sum[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
    }
}

/* Bias and ReLU; outputs outside of the picture become 0, which no maximum after ReLU notices. */
template <typename T>
static __device__ __forceinline__ void stem_stage(T *out, int pitch, float (&sum)[2][8][4], const float *bias,
                                                  const StemShape &s, StemPlace place, int filter0) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int m = warp * 32 + 8 * i + lane / 4, p = 2 * place.p - 1 + m / STEM_OUT_COLS;
    const int q = 2 * place.q - 1 + m % STEM_OUT_COLS;
    const bool inside = p >= 0 && p < s.out_h && q >= 0 && q < s.out_w;
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const int k = 8 * j + lane % 4 * 2, filter = filter0 + k; /* K is even: both exist, or neither */
      float a = 0, b = 0;
      if (inside && filter < s.k) {
        a = sum[i / 2][j][i % 2 * 2] + bias[filter];
        b = sum[i / 2][j][i % 2 * 2 + 1] + bias[filter + 1];
      }
      conv2d_store_pair(out + m * pitch + k, a < 0 ? 0 : a, b < 0 ? 0 : b);
    }
  }
}

/* Eight neighbouring numbers: their larger ones. */
template <typename T>
static __device__ __forceinline__ void stem_larger(float (&most)[8], const T *from) {
#pragma unroll
  for (int e = 0; e < 8; e++) most[e] = stem_max(most[e], conv2d_widen(from[e]));
}

/* The number as it is stored: a float as TF32, which wgmma multiplies without rounding it. */
static __device__ __forceinline__ float stem_rounded(float x, float) {
  return __uint_as_float(conv2d_tf32(__float_as_uint(x)));
}
template <typename T>
static __device__ __forceinline__ float stem_rounded(float x, T) {
  return x;
}

/* Windows of the staged outputs -> y. */
template <typename T>
static __device__ __forceinline__ void stem_pool_windows(T *y, const T *out, int pitch, const StemShape &s,
                                                         StemPlace place, int filter0) {
  for (int i = threadIdx.x; i < STEM_ROWS * STEM_COLS * STEM_FILTERS / 8; i += STEM_THREADS) {
    const int k = i % (STEM_FILTERS / 8) * 8, window = i / (STEM_FILTERS / 8);
    const int row = window / STEM_COLS, col = window % STEM_COLS, p = place.p + row, q = place.q + col;
    if (p >= s.pool_h || q >= s.pool_w || filter0 + k >= s.k) continue;
    float most[8] = {};
    // >>> exercise stem_pool_window: the largest outputs of window (row, col) of the tile, of filters k to k + 7
    // hint: output (a,b) of the tile's STEM_OUT_ROWS x STEM_OUT_COLS begins at out + (a * STEM_OUT_COLS + b) * pitch
    // hint: window (row, col) covers 3 x 3 outputs from (2 row, 2 col) on; stem_larger(most, from) takes eight numbers
    // hint: at = (2 * row + a) * STEM_OUT_COLS + 2 * col + b; stem_larger(most, out + at * pitch + k)
    for (int a = 0; a < 3; a++)
      for (int b = 0; b < 3; b++) {
        const int at = (2 * row + a) * STEM_OUT_COLS + 2 * col + b;
        stem_larger(most, out + at * pitch + k);
      }
    // <<< exercise
    T *to = y + (((size_t)place.image * s.pool_h + p) * s.pool_w + q) * s.k + filter0 + k;
#pragma unroll
    for (int e = 0; e < 8; e += 2)
      conv2d_store_pair(to + e, stem_rounded(most[e], T()), stem_rounded(most[e + 1], T()));
  }
}

/* Blocks along x go through the tiles; blockIdx.y is of 64 filters, whose weights are loaded once. */
template <typename T>
static __global__ void __launch_bounds__(STEM_THREADS, 2)
    stem_pool_kernel(T *y, const float *x, const T *w, const float *bias, StemShape s) {
  typedef typename StemFactor<T>::type F;
  extern __shared__ __align__(128) unsigned char stem_shared[];
  F *filters = (F *)stem_shared, *tile = filters + STEM_FILTERS * STEM_PITCH;
  T *out = (T *)(tile + 4 * STEM_PIXELS);
  const int pitch = sizeof(T) == sizeof(float) ? STEM_FILTERS + 4 : STEM_OUT_PITCH, filter0 = blockIdx.y * STEM_FILTERS;
  float pixel[STEM_LOADS][3], sum[2][8][4];
  if ((int)blockIdx.x < s.tiles) stem_load(pixel, x, s, stem_place(s, blockIdx.x));
  stem_load_weights(filters, w, s, filter0);
  for (int t = blockIdx.x; t < s.tiles; t += gridDim.x) {
    stem_keep(tile, pixel);
    __syncthreads();
    if (t + (int)gridDim.x < s.tiles) stem_load(pixel, x, s, stem_place(s, t + gridDim.x));
    stem_multiply(sum, tile, filters);
    const StemPlace place = stem_place(s, t);
    stem_stage(out, pitch, sum, bias, s, place, filter0);
    __syncthreads(); /* all outputs are staged, and no warp reads the tile any more */
    stem_pool_windows(y, out, pitch, s, place, filter0);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

template <typename T>
static inline void stem_pool_forward_gpu(T *y, const float *x, const T *w, const float *bias, StemShape s) {
  typedef typename StemFactor<T>::type F;
  const int out_pitch = sizeof(T) == sizeof(float) ? STEM_FILTERS + 4 : STEM_OUT_PITCH;
  const int bytes =
      (STEM_FILTERS * STEM_PITCH + 4 * STEM_PIXELS) * (int)sizeof(F) + STEM_OUTPUTS * out_pitch * (int)sizeof(T);
  mma_require();
  shared_limit_ask((const void *)stem_pool_kernel<T>, bytes);
  const int most = 2 * matmul_mma_multiprocessors();
  const dim3 grid((unsigned)(s.tiles < most ? s.tiles : most), (unsigned)(s.k + STEM_FILTERS - 1) / STEM_FILTERS);
  stem_pool_kernel<T><<<grid, STEM_THREADS, bytes>>>(y, x, w, bias, s);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_STEM_POOL_CUH */
