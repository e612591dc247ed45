/* pool_int8.cuh - what stands between convolutions, on int8 numbers with the channels last (int8.cuh): pooling, and
 * the sum of two arrays.
 *
 *     x (N,H,W,C) -> y (N,P,Q,C)         C a multiple of 16: a thread has 16 channels, 16 bytes
 *
 *   max_pool2d_int8       the largest of a window. It has the scale of x, and nothing is rounded
 *   avg_pool2d_int8       the mean of a window: the exact sum times `factor`, scale_x / scale_y / elements, rounded.
 *                         The mean of each channel is a window as large as the image
 *   add_int8              round(a scale_a + b scale_b), both in units of y; ReLU or not
 *
 * The padding of max_pool2d_int8 is never the largest; the mean of a window does not count it, unless told to.
 */
#ifndef PHASE5_PRODUCTION_POOL_INT8_CUH
#define PHASE5_PRODUCTION_POOL_INT8_CUH

#include "phase3_cnn/09_pooling/pool2d_shape.cuh"
#include "phase5_production/09_int8/int8.cuh"

enum { POOL_INT8_RUN = 16 };

/* Of mean pooling: the factor of a whole window's sum is `unit` / kernel_h / kernel_w. */
typedef struct PoolInt8Mean {
  float unit; /* scale_x / scale_y */
  int include_pad, y_positive;
} PoolInt8Mean;

/* What a sum of `count` numbers is multiplied by. */
static __host__ __device__ __forceinline__ float pool_int8_factor(PoolInt8Mean mean, int count) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(mean.unit, (float)count);
#else
  return mean.unit / (float)count;
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* References */

static inline int8_t max_pool2d_int8_at(const int8_t *x, bool positive, Pool2dShape s, size_t n, int p, int q, int c) {
  int most = positive ? 0 : INT8_LEAST;
  for (int r = 0; r < s.kernel_h; r++)
    for (int t = 0; t < s.kernel_w; t++) {
      const int h = p * s.stride_h - s.pad_h + r * s.dilation_h, w = q * s.stride_w - s.pad_w + t * s.dilation_w;
      if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
      const int value = int8_value(x[((n * s.h + h) * s.w + w) * s.c + c], positive);
      if (value > most) most = value;
    }
  return (int8_t)most;
}

static inline int8_t avg_pool2d_int8_at(const int8_t *x, bool positive, Pool2dShape s, PoolInt8Mean mean, size_t n,
                                        int p, int q, int c) {
  int32_t sum = 0;
  int count = 0;
  for (int r = 0; r < s.kernel_h; r++)
    for (int t = 0; t < s.kernel_w; t++) {
      const int h = p * s.stride_h - s.pad_h + r, w = q * s.stride_w - s.pad_w + t;
      const bool inside = h >= 0 && h < s.h && w >= 0 && w < s.w;
      if (inside) sum += int8_value(x[((n * s.h + h) * s.w + w) * s.c + c], positive);
      count += inside || (mean.include_pad && h < s.h + s.pad_h && w < s.w + s.pad_w);
    }
  return int8_byte(int8_times((float)sum, pool_int8_factor(mean, count > 0 ? count : 1)), mean.y_positive != 0);
}

/* positive: x is uint8. mean NULL: the largest. */
static inline void pool2d_int8_cpu(int8_t *y, const int8_t *x, bool positive, Pool2dShape s, const PoolInt8Mean *mean) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  for (size_t n = 0; n < (size_t)s.n; n++)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++)
        for (int c = 0; c < s.c; c++)
          *y++ = mean ? avg_pool2d_int8_at(x, positive, s, *mean, n, p, q, c)
                      : max_pool2d_int8_at(x, positive, s, n, p, q, c);
}

/* Of two arrays; which of them, and whether y, is uint8. */
typedef struct AddInt8 {
  float scale_a, scale_b; /* in units of y */
  int relu, a_positive, b_positive, y_positive;
} AddInt8;

static __host__ __device__ __forceinline__ int8_t add_int8_one(int8_t a, int8_t b, const AddInt8 &add) {
  const float left = int8_times((float)int8_value(a, add.a_positive), add.scale_a);
  const float y = fmaf((float)int8_value(b, add.b_positive), add.scale_b, left);
  return int8_byte(add.relu && y < 0 ? 0 : y, add.y_positive != 0);
}

static inline void add_int8_cpu(int8_t *y, const int8_t *a, const int8_t *b, AddInt8 add, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] = add_int8_one(a[i], b[i], add);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* Where thread i's 16 channels of an output are. */
typedef struct PoolInt8Place {
  size_t n;
  int p, q, c;
} PoolInt8Place;

static __device__ __forceinline__ PoolInt8Place pool_int8_place(size_t i, Pool2dShape s, int p_count, int q_count) {
  PoolInt8Place place;
  place.c = (int)(i % (s.c / POOL_INT8_RUN)) * POOL_INT8_RUN;
  i /= s.c / POOL_INT8_RUN;
  place.q = (int)(i % q_count);
  place.p = (int)(i / q_count % p_count);
  place.n = i / q_count / p_count;
  return place;
}

static __global__ void max_pool2d_int8_kernel(int8_t *y, const int8_t *x, bool positive, Pool2dShape s, int p_count,
                                              int q_count) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)s.n * p_count * q_count * (s.c / POOL_INT8_RUN)) return;
  const PoolInt8Place at = pool_int8_place(i, s, p_count, q_count);
  const uint32_t least = positive ? 0 : 0x80808080;
  uint4 most = make_uint4(least, least, least, least);
  for (int r = 0; r < s.kernel_h; r++)
    for (int t = 0; t < s.kernel_w; t++) {
      const int h = at.p * s.stride_h - s.pad_h + r * s.dilation_h, w = at.q * s.stride_w - s.pad_w + t * s.dilation_w;
      if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
      const uint4 own = *(const uint4 *)(x + ((at.n * s.h + h) * s.w + w) * s.c + at.c);
      most.x = positive ? __vmaxu4(most.x, own.x) : __vmaxs4(most.x, own.x);
      most.y = positive ? __vmaxu4(most.y, own.y) : __vmaxs4(most.y, own.y);
      most.z = positive ? __vmaxu4(most.z, own.z) : __vmaxs4(most.z, own.z);
      most.w = positive ? __vmaxu4(most.w, own.w) : __vmaxs4(most.w, own.w);
    }
  *(uint4 *)(y + i * POOL_INT8_RUN) = most;
}

static __global__ void avg_pool2d_int8_kernel(int8_t *y, const int8_t *x, bool positive, Pool2dShape s,
                                              PoolInt8Mean mean, int p_count, int q_count) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)s.n * p_count * q_count * (s.c / POOL_INT8_RUN)) return;
  const PoolInt8Place at = pool_int8_place(i, s, p_count, q_count);
  int sum[POOL_INT8_RUN] = {}, count = 0;
  for (int r = 0; r < s.kernel_h; r++)
    for (int t = 0; t < s.kernel_w; t++) {
      const int h = at.p * s.stride_h - s.pad_h + r, w = at.q * s.stride_w - s.pad_w + t;
      const bool inside = h >= 0 && h < s.h && w >= 0 && w < s.w;
      count += inside || (mean.include_pad && h < s.h + s.pad_h && w < s.w + s.pad_w);
      if (!inside) continue;
      const uint4 own = *(const uint4 *)(x + ((at.n * s.h + h) * s.w + w) * s.c + at.c);
      const uint32_t word[] = {own.x, own.y, own.z, own.w};
#pragma unroll
      for (int e = 0; e < POOL_INT8_RUN; e++) sum[e] += int8_value((int8_t)(word[e / 4] >> 8 * (e % 4)), positive);
    }
  const float factor = pool_int8_factor(mean, count > 0 ? count : 1);
  uint32_t word[4] = {};
#pragma unroll
  for (int e = 0; e < POOL_INT8_RUN; e++)
    word[e / 4] |= (uint32_t)(uint8_t)int8_byte(__fmul_rn((float)sum[e], factor), mean.y_positive != 0) << 8 * (e % 4);
  *(uint4 *)(y + i * POOL_INT8_RUN) = make_uint4(word[0], word[1], word[2], word[3]);
}

/* The mean of each channel, of images (pixels, c): eight threads share the pixels of four channels. */
enum { MEAN_INT8_WORDS = 32, MEAN_INT8_PARTS = 8 };

static __global__ void mean_int8_kernel(int8_t *y, const int8_t *x, bool positive, int pixels, int c, float factor,
                                        bool y_positive) {
  __shared__ int part[MEAN_INT8_PARTS][4][MEAN_INT8_WORDS];
  const int word = blockIdx.x * MEAN_INT8_WORDS + threadIdx.x;
  const size_t image = blockIdx.y;
  int sum[4] = {};
  for (int p = threadIdx.y; p < pixels && 4 * word < c; p += MEAN_INT8_PARTS) {
    const uint32_t own = *(const uint32_t *)(x + (image * pixels + p) * c + 4 * word);
#pragma unroll
    for (int e = 0; e < 4; e++) sum[e] += int8_value((int8_t)(own >> 8 * e), positive);
  }
#pragma unroll
  for (int e = 0; e < 4; e++) part[threadIdx.y][e][threadIdx.x] = sum[e];
  __syncthreads();
  if (threadIdx.y >= 4 || 4 * word >= c) return;
  int all = 0; /* of channel 4 word + threadIdx.y */
#pragma unroll
  for (int i = 0; i < MEAN_INT8_PARTS; i++) all += part[i][threadIdx.y][threadIdx.x];
  y[image * c + 4 * word + threadIdx.y] = int8_byte(__fmul_rn((float)all, factor), y_positive);
}

static __device__ __forceinline__ uint32_t add_int8_word(uint32_t a, uint32_t b, const AddInt8 &add) {
  uint32_t y = 0;
#pragma unroll
  for (int e = 0; e < 32; e += 8) y |= (uint32_t)(uint8_t)add_int8_one((int8_t)(a >> e), (int8_t)(b >> e), add) << e;
  return y;
}

static __global__ void add_int8_kernel(uint4 *y, const uint4 *a, const uint4 *b, AddInt8 add, size_t runs) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= runs) return;
  const uint4 l = a[i], r = b[i];
  y[i] = make_uint4(add_int8_word(l.x, r.x, add), add_int8_word(l.y, r.y, add), add_int8_word(l.z, r.z, add),
                    add_int8_word(l.w, r.w, add));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers. Arrays begin at multiples of 16 bytes. mean NULL: the largest. */

static inline void pool2d_int8_gpu(int8_t *y, const int8_t *x, bool positive, Pool2dShape s, const PoolInt8Mean *mean) {
  const int p = pool2d_out_h(s), q = pool2d_out_w(s), threads = 128;
  if (s.c % POOL_INT8_RUN != 0) die("pool2d_int8: %d channels; a multiple of %d is expected", s.c, POOL_INT8_RUN);
  const unsigned blocks = (unsigned)(((size_t)s.n * p * q * (s.c / POOL_INT8_RUN) + threads - 1) / threads);
  if (mean && p == 1 && q == 1 && s.kernel_h == s.h && s.kernel_w == s.w && s.pad_h == 0 && s.pad_w == 0 &&
      s.n <= 65535) {
    const float factor = pool_int8_factor(*mean, s.h * s.w);
    const dim3 grid((unsigned)(s.c / 4 + MEAN_INT8_WORDS - 1) / MEAN_INT8_WORDS, (unsigned)s.n);
    mean_int8_kernel<<<grid, dim3(MEAN_INT8_WORDS, MEAN_INT8_PARTS)>>>(y, x, positive, s.h * s.w, s.c, factor,
                                                                       mean->y_positive != 0);
  } else if (mean)
    avg_pool2d_int8_kernel<<<blocks, threads>>>(y, x, positive, s, *mean, p, q);
  else
    max_pool2d_int8_kernel<<<blocks, threads>>>(y, x, positive, s, p, q);
  CUDA_CHECK_LAUNCH();
}

/* count: a multiple of 16. */
static inline void add_int8_gpu(int8_t *y, const int8_t *a, const int8_t *b, AddInt8 add, size_t count) {
  const size_t runs = count / POOL_INT8_RUN;
  add_int8_kernel<<<(unsigned)((runs + 255) / 256), 256>>>((uint4 *)y, (const uint4 *)a, (const uint4 *)b, add, runs);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_POOL_INT8_CUH */
