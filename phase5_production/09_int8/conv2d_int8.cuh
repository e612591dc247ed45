/* conv2d_int8.cuh - convolution of int8 numbers (int8.cuh), NHWC: exact sums in int32, then Int8End.
 *
 *     x (N,H,W,C)   w (K,R,S,C/groups)   y (N,P,Q,K), int8 or float32
 *
 *   conv2d_int8_cpu      the loops of the formula
 *   conv2d_int8_naive    one thread per output, one product at a time
 *   conv2d_int8_dp4a     an implicit matrix product by tiles of 64 x 64; __dp4a adds four products to a sum in one
 *                        instruction. From compute capability 6.1 on
 *
 * conv2d_int8_mma.cuh has tensor cores from compute capability 8.0 on, conv2d_int8_wgmma.cuh those of Hopper.
 * A product (M,D) x (K,D)^T is a convolution of M pixels by 1 x 1: linear_int8.cuh.
 */
#ifndef PHASE5_PRODUCTION_CONV2D_INT8_CUH
#define PHASE5_PRODUCTION_CONV2D_INT8_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase5_production/09_int8/int8.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Reference and naive kernel */

/* The sum of one output: all taps, all channels of its filter's group. */
static __host__ __device__ __forceinline__ int32_t conv2d_int8_sum(const int8_t *x, const int8_t *w, bool positive,
                                                                   Conv2dShape shape, size_t n, int p, int q, int k) {
  const int channels = shape.c / shape.groups, first = k / (shape.k / shape.groups) * channels;
  int32_t sum = 0;
  for (int r = 0; r < shape.r; r++)
    for (int s = 0; s < shape.s; s++) {
      const int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
      const int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
      if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue; /* the padding is zero */
      const int8_t *pixel = x + ((n * shape.h + h) * shape.w + v) * shape.c + first;
      const int8_t *tap = w + (((size_t)k * shape.r + r) * shape.s + s) * channels;
      for (int c = 0; c < channels; c++) sum += int8_value(pixel[c], positive) * tap[c];
    }
  return sum;
}

template <typename T>
static inline void conv2d_int8_cpu(T *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end) {
  const int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  for (int n = 0; n < s.n; n++)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++)
        for (int k = 0; k < s.k; k++) {
          const size_t at = (((size_t)n * p_count + p) * q_count + q) * s.k + k;
          int8_finish(y, at, k, conv2d_int8_sum(x, w, end.x_positive != 0, s, n, p, q, k), end);
        }
}

template <typename T>
static __global__ void conv2d_int8_naive_kernel(T *y, const int8_t *x, const int8_t *w, Conv2dShape s, int p_count,
                                                int q_count, Int8End end) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)s.n * p_count * q_count * s.k) return;
  const int k = i % s.k, q = i / s.k % q_count, p = i / ((size_t)s.k * q_count) % p_count;
  const size_t n = i / ((size_t)s.k * q_count * p_count);
  int8_finish(y, i, k, conv2d_int8_sum(x, w, end.x_positive != 0, s, n, p, q, k), end);
}

template <typename T>
static inline void conv2d_int8_naive(T *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end) {
  const size_t outputs = conv2d_y_count(s);
  conv2d_int8_naive_kernel<<<(unsigned)((outputs + 255) / 256), 256>>>(y, x, w, s, conv2d_out_h(s), conv2d_out_w(s),
                                                                       end);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* dp4a. A block computes 64 pixels x 64 filters, a thread 4 x 4 of them; a step is 64 bytes of depth, 16 of each thread
 * for either tile. */

enum {
  INT8_DP4A_TILE = 64,
  INT8_DP4A_STEP = 64, /* bytes */
  INT8_DP4A_THREADS = 256,
  INT8_DP4A_WORDS = INT8_DP4A_STEP / 4,
  INT8_DP4A_PITCH = INT8_DP4A_TILE + 4, /* words: rows begin at multiples of 16 bytes */
};

/* 16 neighbours at depth d of a row of A: of one tap, if VECTOR. */
template <bool VECTOR>
static __device__ __forceinline__ int4 conv2d_int8_row_of_pixels(const int8_t *x, const Conv2dGather &g,
                                                                 Conv2dNhwcPixel pixel, int group, int d) {
  const int depth = g.taps * g.channels;
  int4 all = make_int4(0, 0, 0, 0);
  int8_t *bytes = (int8_t *)&all;
  for (int e = 0; e < (VECTOR ? 1 : 16) && d + e < depth; e++) {
    const int tap = (d + e) / g.channels;
    const long long from = conv2d_gather_tap<false>(g, pixel, tap / g.s, tap % g.s);
    if (from < 0) continue;
    const int8_t *source = x + from * g.channels_all + group * g.channels + (d + e) % g.channels;
    if (VECTOR)
      all = *(const int4 *)source;
    else
      bytes[e] = *source;
  }
  return all;
}

/* The same of filter number `filter` of the group. */
template <bool VECTOR>
static __device__ __forceinline__ int4 conv2d_int8_row_of_filters(const int8_t *w, const Conv2dGather &g, int group,
                                                                  int filter, int d) {
  const int depth = g.taps * g.channels;
  const int8_t *from = w + ((size_t)group * g.filters + filter) * depth + d;
  int4 all = make_int4(0, 0, 0, 0);
  int8_t *bytes = (int8_t *)&all;
  if (filter >= g.filters || d >= depth) return all;
  if (VECTOR) all = *(const int4 *)from;
  for (int e = 0; !VECTOR && e < 16 && d + e < depth; e++) bytes[e] = from[e];
  return all;
}

/* __dp4a(), or, if POSITIVE, of the uint8 of `a` and the int8 of `b`, which CUDA C has no function for. */
template <bool POSITIVE>
static __device__ __forceinline__ int int8_dp4a(int a, int b, int c) {
  if (!POSITIVE) return __dp4a(a, b, c);
#ifdef SIMT_REWRITTEN
  for (int i = 0; i < 32; i += 8) c += (uint8_t)(a >> i) * (int8_t)(b >> i);
#else
  asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(c) : "r"(a), "r"(b));
#endif
  return c;
}

/* sum[i][j] += 64 bytes of pixel 4 row + i times those of filter 4 col + j: tiles (words of depth, rows). */
template <bool POSITIVE>
static __device__ __forceinline__ void conv2d_int8_dp4a_step(int (&sum)[4][4], const int (*a)[INT8_DP4A_PITCH],
                                                             const int (*b)[INT8_DP4A_PITCH], int row, int col) {
#pragma unroll
  for (int word = 0; word < INT8_DP4A_WORDS; word++) {
    const int4 left = *(const int4 *)&a[word][4 * row], right = *(const int4 *)&b[word][4 * col];
    // >>> exercise int8_dp4a: sum[i][j] += the four products of word i of `left` and word j of `right`
    // hint: an int4 has four words, .x .y .z .w, and a word four numbers of 8 bits
    // hint: int8_dp4a<POSITIVE>(a, b, c) is c and the four products of the bytes of a and b
    // hint: 16 sums, each one int8_dp4a: const int l[] = {left.x, left.y, left.z, left.w}, and r[] likewise
    const int l[] = {left.x, left.y, left.z, left.w}, r[] = {right.x, right.y, right.z, right.w};
#pragma unroll
    for (int i = 0; i < 16; i++) sum[i / 4][i % 4] = int8_dp4a<POSITIVE>(l[i / 4], r[i % 4], sum[i / 4][i % 4]);
    // <<< exercise
  }
}

template <typename T, bool VECTOR, bool POSITIVE>
static __global__ void __launch_bounds__(INT8_DP4A_THREADS)
    conv2d_int8_dp4a_kernel(T *y, const int8_t *x, const int8_t *w, Conv2dGather g, Int8End end) {
  __shared__ __align__(16) int a[INT8_DP4A_WORDS][INT8_DP4A_PITCH], b[INT8_DP4A_WORDS][INT8_DP4A_PITCH];
  const int group = blockIdx.z, filter0 = blockIdx.y * INT8_DP4A_TILE, depth = g.taps * g.channels;
  const long long pixels = (long long)g.images * g.p_count * g.q_count, pixel0 = (long long)blockIdx.x * INT8_DP4A_TILE;
  const int load_row = threadIdx.x % INT8_DP4A_TILE, chunk = threadIdx.x / INT8_DP4A_TILE;
  const Conv2dNhwcPixel pixel = conv2d_gather_pixel<false>(g, pixel0 + load_row);
  const int row = threadIdx.x / 16, col = threadIdx.x % 16;
  int sum[4][4] = {};
  for (int step = 0; step < depth; step += INT8_DP4A_STEP) {
    const int4 left = conv2d_int8_row_of_pixels<VECTOR>(x, g, pixel, group, step + 16 * chunk);
    const int4 right = conv2d_int8_row_of_filters<VECTOR>(w, g, group, filter0 + load_row, step + 16 * chunk);
    __syncthreads(); /* nobody reads the tiles of the step before any more */
    const int l[] = {left.x, left.y, left.z, left.w}, r[] = {right.x, right.y, right.z, right.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      a[4 * chunk + i][load_row] = l[i];
      b[4 * chunk + i][load_row] = r[i];
    }
    __syncthreads();
    conv2d_int8_dp4a_step<POSITIVE>(sum, a, b, row, col);
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const long long m = pixel0 + 4 * row + i;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int own = filter0 + 4 * col + j, k = group * g.filters + own;
      if (m < pixels && own < g.filters) int8_finish(y, (size_t)m * g.groups * g.filters + k, k, sum[i][j], end);
    }
  }
}

static inline bool conv2d_int8_vectors(const int8_t *x, const int8_t *w, const Conv2dGather *g) {
  return ((uintptr_t)x | (uintptr_t)w) % 16 == 0 && g->channels % 16 == 0;
}

template <typename T, bool POSITIVE>
static inline void conv2d_int8_dp4a_launch(T *y, const int8_t *x, const int8_t *w, const Conv2dGather *g, Int8End end) {
  const long long pixels = (long long)g->images * g->p_count * g->q_count;
  const dim3 grid((unsigned)((pixels + INT8_DP4A_TILE - 1) / INT8_DP4A_TILE),
                  (unsigned)(g->filters + INT8_DP4A_TILE - 1) / INT8_DP4A_TILE, (unsigned)g->groups);
  if (conv2d_int8_vectors(x, w, g))
    conv2d_int8_dp4a_kernel<T, true, POSITIVE><<<grid, INT8_DP4A_THREADS>>>(y, x, w, *g, end);
  else
    conv2d_int8_dp4a_kernel<T, false, POSITIVE><<<grid, INT8_DP4A_THREADS>>>(y, x, w, *g, end);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void conv2d_int8_dp4a(T *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end) {
  const Conv2dGather g = conv2d_gather(s, false);
  if (g.groups > 65535) die("conv2d_int8_dp4a: %d groups; at most 65535", g.groups);
  if (end.x_positive)
    conv2d_int8_dp4a_launch<T, true>(y, x, w, &g, end);
  else
    conv2d_int8_dp4a_launch<T, false>(y, x, w, &g, end);
}

#endif /* PHASE5_PRODUCTION_CONV2D_INT8_CUH */
