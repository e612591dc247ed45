/* conv2d_nhwc_mma.cuh - convolution (conv2d_nhwc.cuh) as an implicit matrix product on tensor cores, with mma.sync.
 *
 *     y (N P Q, K) = A (N P Q, R S C) w (K, R S C)^T
 *
 * Row m of A consists of the inputs of output pixel m: for each tap (r,s) the C channels of one pixel of x, or zeros in
 * the padding. A is never stored: cp.async copies each 16 bytes of it from x to the tile in shared memory, and fills
 * with zeros outside of the image. The rest is matmul_mma.cuh: swizzled tiles, a ring of stages, ldmatrix, mma.sync.
 * Rows of A and of w both run along the depth, so that the same bytes serve all types:
 *
 *     T                32 bytes of a row   instruction
 *     __nv_bfloat16    16 factors          m16n8k16, bf16
 *     __half           16 factors          m16n8k16, f16
 *     float            8 factors           m16n8k8, TF32: 8 bits of exponent, 10 of fraction; the rest is rounded off
 *
 *   conv2d_forward_nhwc_mma         every shape. Where C / groups is no multiple of 16 bytes, A is copied number by
 *                                   number
 *   conv2d_forward_nhwc_mma_add     the end of a residual block: the kernel adds another image before ReLU
 *   conv2d_backward_input_nhwc_mma  dx: the same kernel gathers dy; `workspace` gets the filters as (C,R,S,K)
 *
 * Needs compute capability 8.0.
 */
#ifndef PHASE3_CNN_CONV2D_NHWC_MMA_CUH
#define PHASE3_CNN_CONV2D_NHWC_MMA_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Products of 32 bytes of depth. In the emulator the lanes exchange their factors, as in common/mma.cuh. */

static __device__ __forceinline__ void conv2d_mma(__nv_bfloat16, float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                  uint32_t b1) {
  mma_16x8x16(d, a, b0, b1);
}

[[maybe_unused]] static __device__ __forceinline__ void conv2d_mma(__half, float (&d)[4], const uint32_t (&a)[4],
                                                                   uint32_t b0, uint32_t b1) {
  mma_16x8x16_half(d, a, b0, b1);
}

/* The nearest TF32, halves away from zero: tensor cores would cut off the lower 13 bits. */
static __device__ __forceinline__ uint32_t conv2d_tf32(uint32_t x) {
  uint32_t rounded = x;
#ifdef SIMT_REWRITTEN
  if ((x & 0x7F800000) != 0x7F800000) rounded = (x + 0x1000) & 0xFFFFE000;
#elif defined MMA_BFLOAT16
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(x)));
#endif
  return rounded;
}

[[maybe_unused]] static __device__ MMA_INLINE void conv2d_mma(float, float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                              uint32_t b1) {
#ifdef SIMT_REWRITTEN
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  for (int k = 0; k < 8; k++) {
    float left[2], right[2];
    for (int i = 0; i < 2; i++) {
      left[i] = __uint_as_float(conv2d_tf32(__shfl_sync(0xFFFFFFFF, a[i + k / 4 * 2], 4 * group + k % 4)));
      right[i] = __uint_as_float(conv2d_tf32(__shfl_sync(0xFFFFFFFF, k / 4 ? b1 : b0, 4 * (2 * member + i) + k % 4)));
    }
    for (int i = 0; i < 4; i++) d[i] += left[i / 2] * right[i % 2];
  }
#elif defined MMA_BFLOAT16
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(conv2d_tf32(a[0])), "r"(conv2d_tf32(a[1])), "r"(conv2d_tf32(a[2])), "r"(conv2d_tf32(a[3])),
        "r"(conv2d_tf32(b0)), "r"(conv2d_tf32(b1)));
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Gather */

/* Where the rows of A come from. Forward: images x (N,H,W,C), outputs (P,Q). Backward: the images are dy, the outputs
 * the pixels of x; a tap is divided by the stride there. */
typedef struct Conv2dGather {
  int images, h, w, channels_all; /* of what is gathered */
  int channels, filters, groups;  /* of a group: of what is gathered, and of the result */
  int p_count, q_count, s, taps;  /* outputs; columns of a filter; taps */
  int stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
  int biases; /* of a group: filters behind them have none */
} Conv2dGather;

static inline Conv2dGather conv2d_gather(Conv2dShape s, bool backward) {
  int p = conv2d_out_h(s), q = conv2d_out_w(s), channels = s.c / s.groups, filters = s.k / s.groups;
  Conv2dGather forward = {s.n,        s.h,         s.w,         s.c,          channels,     filters,
                          s.groups,   p,           q,           s.s,          s.r * s.s,    s.stride_h,
                          s.stride_w, s.padding_h, s.padding_w, s.dilation_h, s.dilation_w, filters};
  Conv2dGather back = {s.n,        p,           q,           s.k,          filters,      channels,
                       s.groups,   s.h,         s.w,         s.s,          s.r * s.s,    s.stride_h,
                       s.stride_w, s.padding_h, s.padding_w, s.dilation_h, s.dilation_w, 0};
  return backward ? back : forward;
}

/* An output pixel, as far as the taps need it: the row and the column that tap (0,0) reads, perhaps in the padding. */
typedef struct Conv2dNhwcPixel {
  int image, h, w;
} Conv2dNhwcPixel;

template <bool BACKWARD>
static __device__ __forceinline__ Conv2dNhwcPixel conv2d_gather_pixel(const Conv2dGather &g, long long m) {
  Conv2dNhwcPixel pixel;
  int p, q;
  if (m <= INT_MAX) { /* a division of 64 bits takes a hundred instructions: more than the rest of a step */
    const unsigned number = (unsigned)m, row = number / g.q_count;
    q = (int)(number - row * g.q_count);
    pixel.image = (int)(row / g.p_count); /* past the last: no such image */
    p = (int)(row - (unsigned)pixel.image * g.p_count);
  } else {
    q = m % g.q_count, p = m / g.q_count % g.p_count;
    pixel.image = (int)(m / g.q_count / g.p_count);
  }
  pixel.h = BACKWARD ? p + g.padding_h : p * g.stride_h - g.padding_h;
  pixel.w = BACKWARD ? q + g.padding_w : q * g.stride_w - g.padding_w;
  return pixel;
}

/* The number of the pixel that tap (r,s) of an output reads; -1 in the padding. */
template <bool BACKWARD>
static __device__ __forceinline__ long long conv2d_gather_tap(const Conv2dGather &g, Conv2dNhwcPixel pixel, int r,
                                                              int s) {
  long long from = -1;
  if (BACKWARD) {
    int p = pixel.h - r * g.dilation_h, q = pixel.w - s * g.dilation_w; /* times the stride */
    if (g.stride_h == 1 && g.stride_w == 1) {
      if (pixel.image < g.images && p >= 0 && q >= 0 && p < g.h && q < g.w)
        from = ((long long)pixel.image * g.h + p) * g.w + q;
      return from;
    }
    if (pixel.image < g.images && p >= 0 && q >= 0 && p % g.stride_h == 0 && q % g.stride_w == 0 &&
        p / g.stride_h < g.h && q / g.stride_w < g.w)
      from = ((long long)pixel.image * g.h + p / g.stride_h) * g.w + q / g.stride_w;
    return from;
  }
  // >>> exercise conv2d_nhwc_gather: from = the number of the pixel that tap (r,s) reads, counted through all images
  // hint: tap (0,0) reads row pixel.h and column pixel.w; the next taps lie a dilation further along each axis
  // hint: outside of the g.h x g.w pixels is padding, and so are images past the last: leave from at -1
  // hint: pixel (h,w) of an image has number h * g.w + w; each image before it has g.h * g.w pixels
  int h = pixel.h + r * g.dilation_h, w = pixel.w + s * g.dilation_w;
  if (pixel.image < g.images && h >= 0 && h < g.h && w >= 0 && w < g.w)
    from = ((long long)pixel.image * g.h + h) * g.w + w;
  // <<< exercise
  return from;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Global memory to shared memory. A tile has rows of 128 bytes, 8 chunks of 16; a chunk holds CHUNK numbers. */

enum { CONV2D_TILE_ROW = 128, CONV2D_TILE_CHUNKS = 8, CONV2D_CHUNK_BYTES = 16 };

/* Address of a chunk in a swizzled tile. */
static __device__ __forceinline__ unsigned char *conv2d_chunk(unsigned char *tile, int row, int chunk) {
  return tile + matmul_swizzle<64>(row, chunk) * 2;
}

/* Starts the copies of ROWS rows of A, CHUNK * 8 numbers from column `depth0` on. */
template <typename T, int ROWS, int THREADS, bool VECTOR, bool BACKWARD>
static __device__ __forceinline__ void conv2d_load_pixels(unsigned char *tile, const T *x, const Conv2dGather &g,
                                                          const Conv2dNhwcPixel *pixel, int group, int depth0) {
  const int count = CONV2D_CHUNK_BYTES / (int)sizeof(T);
  int chunk = threadIdx.x % CONV2D_TILE_CHUNKS, d = depth0 + chunk * count, depth = g.taps * g.channels;
#pragma unroll
  for (int i = 0; i < ROWS * CONV2D_TILE_CHUNKS / THREADS; i++) {
    int row = threadIdx.x / CONV2D_TILE_CHUNKS + i * (THREADS / CONV2D_TILE_CHUNKS);
    unsigned char *to = conv2d_chunk(tile, row, chunk);
    if (VECTOR) { /* channels are a multiple of `count`: the numbers of a chunk are of one tap */
      int tap = d / g.channels;
      long long from = d < depth ? conv2d_gather_tap<BACKWARD>(g, pixel[i], tap / g.s, tap % g.s) : -1;
      const T *source = from >= 0 ? x + from * g.channels_all + group * g.channels + d % g.channels : x;
      __pipeline_memcpy_async(to, source, CONV2D_CHUNK_BYTES, from >= 0 ? 0 : CONV2D_CHUNK_BYTES);
    } else {
#pragma unroll
      for (int e = 0; e < count; e++) {
        int tap = (d + e) / g.channels;
        long long from = d + e < depth ? conv2d_gather_tap<BACKWARD>(g, pixel[i], tap / g.s, tap % g.s) : -1;
        T value = from >= 0 ? x[from * g.channels_all + group * g.channels + (d + e) % g.channels] : T(0.0f);
        ((T *)to)[e] = value;
      }
    }
  }
}

/* Starts the copies of ROWS filters of a group, from filter0 on: rows of w, which has (filters, depth) per group. */
template <typename T, int ROWS, int THREADS, bool VECTOR>
static __device__ __forceinline__ void conv2d_load_filters_nhwc(unsigned char *tile, const T *w, const Conv2dGather &g,
                                                                int group, int filter0, int depth0) {
  const int count = CONV2D_CHUNK_BYTES / (int)sizeof(T);
  int chunk = threadIdx.x % CONV2D_TILE_CHUNKS, d = depth0 + chunk * count, depth = g.taps * g.channels;
#pragma unroll
  for (int i = 0; i < ROWS * CONV2D_TILE_CHUNKS / THREADS; i++) {
    int row = threadIdx.x / CONV2D_TILE_CHUNKS + i * (THREADS / CONV2D_TILE_CHUNKS), filter = filter0 + row;
    unsigned char *to = conv2d_chunk(tile, row, chunk);
    const T *from = w + ((size_t)group * g.filters + filter) * depth + d;
    if (VECTOR) {
      bool inside = filter < g.filters && d < depth;
      __pipeline_memcpy_async(to, inside ? from : w, CONV2D_CHUNK_BYTES, inside ? 0 : CONV2D_CHUNK_BYTES);
    } else {
#pragma unroll
      for (int e = 0; e < count; e++) ((T *)to)[e] = filter < g.filters && d + e < depth ? from[e] : T(0.0f);
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Products and outputs */

/* sum (WM,WN) += A (WM, 128 bytes) B (WN, 128 bytes)^T for the warp at (warp_row, warp_col) of the tile. */
template <typename T, int WM, int WN>
static __device__ __forceinline__ void conv2d_nhwc_multiply(float (&sum)[WM / 16][WN / 8][4], unsigned char *a_tile,
                                                            unsigned char *b_tile, int warp_row, int warp_col) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < CONV2D_TILE_CHUNKS; i += 2) {
    uint32_t left[WM / 16][4], right[WN / 16][4];
#pragma unroll
    for (int r = 0; r < WM / 16; r++)
      mma_load_matrices<false>(
          left[r], (const __nv_bfloat16 *)conv2d_chunk(a_tile, warp_row + 16 * r + lane % 16, i + lane / 16));
#pragma unroll
    for (int s = 0; s < WN / 16; s++) /* filters 0 to 7, both chunks; then filters 8 to 15 */
      mma_load_matrices<false>(right[s], (const __nv_bfloat16 *)conv2d_chunk(
                                             b_tile, warp_col + 16 * s + lane / 16 * 8 + lane % 8, i + lane / 8 % 2));
#pragma unroll
    for (int r = 0; r < WM / 16; r++)
#pragma unroll
      for (int s = 0; s < WN / 8; s++)
        conv2d_mma(T(), sum[r][s], left[r], right[s / 2][s % 2 * 2], right[s / 2][s % 2 * 2 + 1]);
  }
}

/* Two neighbouring numbers in one store. */
static __device__ __forceinline__ void conv2d_store_pair(float *to, float a, float b) {
  *(float2 *)to = make_float2(a, b);
}
static __device__ __forceinline__ void conv2d_store_pair(__nv_bfloat16 *to, float a, float b) {
  *(__nv_bfloat162 *)to = __floats2bfloat162_rn(a, b);
}
static __device__ __forceinline__ void conv2d_store_pair(__half *to, float a, float b) {
  *(__half2 *)to = __floats2half2_rn(a, b);
}

/* Two neighbouring outputs of filters k and k + 1 of `filters`, in an array whose rows allow pairs or not. */
template <typename T>
static __device__ __forceinline__ void conv2d_nhwc_write(T *y, float a, float b, const float *bias, int biases, int k,
                                                         int filters, bool relu, bool pairs) {
  if (bias != NULL && k < biases) a += bias[k];
  if (bias != NULL && k + 1 < biases) b += bias[k + 1];
  if (relu) a = a < 0 ? 0 : a, b = b < 0 ? 0 : b;
  if (pairs && k + 1 < filters) {
    conv2d_store_pair(y + k, a, b);
  } else {
    if (k < filters) conv2d_narrow(&y[k], a);
    if (k + 1 < filters) conv2d_narrow(&y[k + 1], b);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

/* A block computes BM pixels of BN filters, a warp WM x WN of them; blockIdx.z is the group. */
template <typename T, int BM, int BN, int WM, int WN, int STAGES, bool VECTOR, bool BACKWARD>
static __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
    conv2d_nhwc_mma_kernel(T *y, const T *x, const T *w, const float *bias, Conv2dGather g, bool relu, const T *add) {
  const int threads = BM / WM * (BN / WN) * 32, stage_bytes = (BM + BN) * CONV2D_TILE_ROW;
  const int step_numbers = CONV2D_TILE_ROW / (int)sizeof(T), rows = BM * CONV2D_TILE_CHUNKS / threads;
  extern __shared__ __align__(128) unsigned char conv2d_nhwc_tiles[];
  int group = blockIdx.z, filter0 = blockIdx.y * BN;
  long long pixels = (long long)g.images * g.p_count * g.q_count, pixel0 = (long long)blockIdx.x * BM;
  int steps = (g.taps * g.channels + step_numbers - 1) / step_numbers;

  Conv2dNhwcPixel pixel[rows]; /* of the rows that this thread copies */
#pragma unroll
  for (int i = 0; i < rows; i++)
    pixel[i] = conv2d_gather_pixel<BACKWARD>(
        g, pixel0 + threadIdx.x / CONV2D_TILE_CHUNKS + i * (threads / CONV2D_TILE_CHUNKS));
  float sum[WM / 16][WN / 8][4] = {};
  int warp = threadIdx.x / 32, warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
  for (int step = 1 - STAGES; step < steps; step++) {
    if (step >= 0) {
      __pipeline_wait_prior(STAGES - 2); /* this thread's copies of this step are complete */
      __syncthreads(); /* all threads' are, and no thread reads the tiles of the step before any more */
    }
    int next = step + STAGES - 1;
    if (next < steps) {
      unsigned char *tiles = conv2d_nhwc_tiles + next % STAGES * stage_bytes;
      conv2d_load_pixels<T, BM, threads, VECTOR, BACKWARD>(tiles, x, g, pixel, group, next * step_numbers);
      conv2d_load_filters_nhwc<T, BN, threads, VECTOR>(tiles + BM * CONV2D_TILE_ROW, w, g, group, filter0,
                                                       next * step_numbers);
    }
    __pipeline_commit();
    unsigned char *tiles = conv2d_nhwc_tiles + (step + STAGES) % STAGES * stage_bytes;
    if (step >= 0) conv2d_nhwc_multiply<T, WM, WN>(sum, tiles, tiles + BM * CONV2D_TILE_ROW, warp_row, warp_col);
  }

  int lane = threadIdx.x % 32, filters = g.groups * g.filters;
  bool pairs = filters % 2 == 0 && g.filters % 2 == 0 && (uintptr_t)y % (2 * sizeof(T)) == 0;
  if (bias != NULL) bias += group * g.filters;
#pragma unroll
  for (int r = 0; r < WM / 16; r++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      long long m = pixel0 + warp_row + 16 * r + 8 * i + lane / 4;
      const long long first = (m < pixels ? m : 0) * filters + group * g.filters;
      T *row = y + first;
#pragma unroll
      for (int s = 0; s < WN / 8; s++) {
        int k = filter0 + warp_col + 8 * s + lane % 4 * 2;
        float a = sum[r][s][2 * i], b = sum[r][s][2 * i + 1];
        if (add != NULL && m < pixels && k < g.filters) a += conv2d_widen(add[first + k]);
        if (add != NULL && m < pixels && k + 1 < g.filters) b += conv2d_widen(add[first + k + 1]);
        if (m < pixels) conv2d_nhwc_write(row, a, b, bias, g.biases, k, g.filters, relu, pairs);
      }
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <typename T, int BM, int BN, int WM, int WN, int STAGES, bool VECTOR, bool BACKWARD>
static inline void conv2d_nhwc_mma_run(T *y, const T *x, const T *w, const float *bias, const Conv2dGather *g,
                                       bool relu, const T *add = NULL) {
  const int bytes = STAGES * (BM + BN) * CONV2D_TILE_ROW;
  shared_limit_ask((const void *)conv2d_nhwc_mma_kernel<T, BM, BN, WM, WN, STAGES, VECTOR, BACKWARD>, bytes);
  long long pixels = (long long)g->images * g->p_count * g->q_count;
  dim3 grid((unsigned)((pixels + BM - 1) / BM), (unsigned)(g->filters + BN - 1) / BN, (unsigned)g->groups);
  conv2d_nhwc_mma_kernel<T, BM, BN, WM, WN, STAGES, VECTOR, BACKWARD>
      <<<grid, BM / WM *(BN / WN) * 32, bytes>>>(y, x, w, bias, *g, relu, add);
  CUDA_CHECK_LAUNCH();
}

template <typename T, bool VECTOR, bool BACKWARD>
static inline void conv2d_nhwc_mma_tiles(T *y, const T *x, const T *w, const float *bias, const Conv2dGather *g,
                                         bool relu, const T *add) {
  double sums = (double)g->images * g->p_count * g->q_count * g->filters * g->groups;
  if (VECTOR && g->filters > 64 && sums >= 128.0 * 128 * matmul_mma_multiprocessors() && shared_limit() >= 96 << 10)
    conv2d_nhwc_mma_run<T, 128, 128, 64, 32, 3, VECTOR, BACKWARD>(y, x, w, bias, g, relu, add);
  else
    conv2d_nhwc_mma_run<T, 64, 64, 32, 32, 3, VECTOR, BACKWARD>(y, x, w, bias, g, relu, add);
}

template <typename T, bool BACKWARD>
static inline void conv2d_nhwc_mma_launch(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu,
                                          const T *add = NULL) {
  mma_require();
  Conv2dGather g = conv2d_gather(s, BACKWARD);
  bool aligned = ((uintptr_t)x | (uintptr_t)w) % CONV2D_CHUNK_BYTES == 0;
  if (g.groups > 65535) die("conv2d_nhwc_mma: %d groups; at most 65535: use depthwise", g.groups);
  if (aligned && g.channels * sizeof(T) % CONV2D_CHUNK_BYTES == 0)
    conv2d_nhwc_mma_tiles<T, true, BACKWARD>(y, x, w, bias, &g, relu, add);
  else
    conv2d_nhwc_mma_tiles<T, false, BACKWARD>(y, x, w, bias, &g, relu, add);
}

/* x (N,H,W,C), w (K,R,S,C/groups), bias (K) or NULL -> y (N,P,Q,K), less than 0 replaced by 0 if relu */
template <typename T>
static inline void conv2d_forward_nhwc_mma(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu) {
  conv2d_nhwc_mma_launch<T, false>(y, x, w, bias, s, relu);
}

/* The same and what a residual block adds before ReLU; y may be add.x where that is added as it is. Where it takes a
 * convolution of 1 x 1 first, that is a launch of its own, and y holds its outputs in between. */
template <typename T>
static inline void conv2d_forward_nhwc_mma_add(T *y, const T *x, const T *w, const float *bias, Conv2dShape s,
                                               bool relu, Conv2dNhwcAdd<T> add) {
  const Conv2dShape one = conv2d_shape(s.n, add.channels, add.h, add.w_count, s.k, 1, 1, add.stride, 0);
  if (add.w != NULL) conv2d_nhwc_mma_launch<T, false>(y, add.x, add.w, NULL, one, false);
  conv2d_nhwc_mma_launch<T, false>(y, x, w, bias, s, relu, add.w != NULL ? y : add.x);
}

/* w (K,R,S,C/groups) -> to (C,R,S,K/groups): filters of the gradient of x. One thread per number of `to`. */
template <typename T>
static __global__ void conv2d_nhwc_turn_filters_kernel(T *to, const T *w, int channels, int filters, int taps,
                                                       size_t count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int k = i % filters, tap = i / filters % taps;
  size_t c = i / filters / taps, group = c / channels;
  to[i] = w[((group * filters + k) * taps + tap) * channels + c % channels];
}

/* dy (N,P,Q,K), w (K,R,S,C/groups) -> dx (N,H,W,C). workspace: as many T as w has */
template <typename T>
static inline void conv2d_backward_input_nhwc_mma(T *dx, const T *dy, const T *w, Conv2dShape s, T *workspace) {
  size_t count = conv2d_w_count(s);
  conv2d_nhwc_turn_filters_kernel<<<(unsigned)((count + 255) / 256), 256>>>(workspace, w, s.c / s.groups,
                                                                            s.k / s.groups, s.r * s.s, count);
  CUDA_CHECK_LAUNCH();
  conv2d_nhwc_mma_launch<T, true>(dx, dy, workspace, NULL, s, false);
}

#endif /* PHASE3_CNN_CONV2D_NHWC_MMA_CUH */
