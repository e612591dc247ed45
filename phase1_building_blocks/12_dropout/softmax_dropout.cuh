/* softmax_dropout.cuh - a softmax and a dropout of its results in one pass, as in attention; all arrays (rows,cols),
 * rows and cols at least 1.
 *
 *   forward     y = dropout(s),  s = softmax(x), row by row
 *   backward    dx[j] = s[j] (g[j] - dot),  g = dropout(dy),  dot = s[0] g[0] + ... + s[cols-1] g[cols-1]
 *
 * Neither operation computes much: what counts is how often the matrix is read and written. With separate kernels,
 * softmax reads x and writes s, dropout reads s and writes y; backward reads dy, writes g, reads g and s, writes dx:
 * the matrix moves 9 times, and s is kept for backward. Fused, forward reads x and writes y; backward reads x and dy,
 * computes s and the cipher's words again, and writes dx: the matrix moves 5 times, and nothing is kept. See
 * softmax.cuh and dropout.cuh for the operations.
 *
 *   softmax_dropout_forward_separate    the two kernels; s is kept
 *   softmax_dropout_backward_separate   the two kernels, with s
 *   softmax_dropout_backward_passes     one kernel, three passes over a row, for rows of any length
 *   softmax_dropout_forward_fused       one kernel, the row in registers
 *   softmax_dropout_forward_gpu         the cipher runs while the row is on its way
 *   softmax_dropout_backward_gpu        one kernel, both rows in registers
 */
#ifndef PHASE1_BUILDING_BLOCKS_SOFTMAX_DROPOUT_CUH
#define PHASE1_BUILDING_BLOCKS_SOFTMAX_DROPOUT_CUH

#include "phase1_building_blocks/08_softmax/row_reduce.cuh"
#include "phase1_building_blocks/08_softmax/softmax.cuh"
#include "phase1_building_blocks/12_dropout/dropout.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void softmax_dropout_forward_cpu(T *y, const T *x, int rows, int cols, float p, uint64_t seed,
                                               uint32_t stream) {
  softmax_forward_cpu(y, x, rows, cols);
  dropout_cpu(y, y, (size_t)rows * cols, p, seed, stream);
}

template <typename T>
static inline void softmax_dropout_backward_cpu(T *dx, const T *x, const T *dy, int rows, int cols, float p,
                                                uint64_t seed, uint32_t stream) {
  size_t n = (size_t)rows * cols;
  T *s = (T *)xmalloc(2 * n * sizeof *s), *g = s + n;
  softmax_forward_cpu(s, x, rows, cols);
  dropout_cpu(g, dy, n, p, seed, stream);
  softmax_backward_cpu(dx, g, s, rows, cols);
  free(s);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: T threads per row, QUADS float4 of each array in the registers of each, ROWS rows per block (if T is 32). As
 * in softmax.cuh each thread computes exp() relative to its own maximum, and the row is reduced once. x, y, dx and dy
 * begin at a multiple of 16 bytes, so that every float4 of a row corresponds to a whole block of Philox. */

template <int T, int QUADS, int ROWS>
static __global__ void __launch_bounds__(T *ROWS)
    softmax_dropout_forward_kernel(float *__restrict__ y, const float *__restrict__ x, int rows, int cols,
                                   Dropout dropout) {
  const float4 none = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  int t = threadIdx.x, r = blockIdx.x * ROWS + threadIdx.y;
  if (ROWS > 1 && r >= rows) return; /* one warp per row then: the whole warp returns */
  size_t begin = (size_t)r * cols;
  Row row = row_split(x + begin, cols);
  size_t first = (begin + row.head) / 4; /* the number of the row's first float4 in the matrix */
  const float4 *in = (const float4 *)x + first;
  float4 *out = (float4 *)y + first, kept[QUADS];
  int edge = row_edge(row, t);
#pragma unroll
  for (int i = 0; i < QUADS; i++) kept[i] = t + i * T < row.quads ? __ldcs(&in[t + i * T]) : none;
  float alone = edge >= 0 ? x[begin + edge] : -INFINITY, max = alone, sum = 0;
#pragma unroll
  for (int i = 0; i < QUADS; i++) max = fmaxf(max, softmax_quad_max(kept[i]));

  float from = max == -INFINITY ? 0 : max; /* no NaN where a thread has no score above -inf */
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    kept[i] = softmax_quad_exp(kept[i], from);
    sum += softmax_quad_sum(kept[i]);
  }
  alone = expf(alone - from);
  MaxSum all = row_max_sum<T>(max_sum_make(max, sum + alone));
  float factor = expf(max - all.max) / all.sum; /* turns exp(x - max) into probabilities */

  // >>> exercise softmax_dropout: drop some of the row's probabilities, kept[i] * factor, and store the rest, scaled
  // hint: float4 i of this thread is number first + t + i * T in the matrix, out[t + i * T], if t + i * T < row.quads
  // hint: dropout_quad(dropout, number, v) drops; softmax_quad_scale(v, factor) multiplies; use each once
  // hint: the row's edge, if edge >= 0: dropout_word(dropout, begin + edge) decides whether alone * factor is kept
#pragma unroll
  for (int i = 0; i < QUADS; i++)
    if (t + i * T < row.quads)
      __stcs(&out[t + i * T], dropout_quad(dropout, first + t + i * T, softmax_quad_scale(kept[i], factor)));
  if (edge >= 0) y[begin + edge] = dropout_apply(dropout, dropout_word(dropout, begin + edge), alone * factor);
  // <<< exercise
}

/* Bit j: element 4 i + j is kept. */
static __device__ __forceinline__ unsigned dropout_quad_bits(Dropout dropout, size_t i) {
  PhiloxBlock block = dropout_words(dropout, i);
  unsigned bits = 0;
  for (int j = 0; j < 4; j++) bits |= (unsigned)dropout_keeps(dropout, block.word[j]) << j;
  return bits;
}

static __device__ __forceinline__ float4 dropout_quad_scale(float4 v, float factor, unsigned bits) {
  return make_float4(bits & 1 ? v.x * factor : 0, bits & 2 ? v.y * factor : 0, bits & 4 ? v.z * factor : 0,
                     bits & 8 ? v.w * factor : 0);
}

/* For rows of exactly 4 T QUADS floats. The cipher's words do not depend on x: they are computed right after the loads
 * have been issued, and the loads take their time meanwhile. Of a word one bit is kept, so that QUADS float4 need one
 * register, and not 4 QUADS. No thread has to ask where the row ends. */
template <int T, int QUADS, int ROWS>
static __global__ void __launch_bounds__(T *ROWS, 1024 / (T * ROWS))
    softmax_dropout_forward_early_kernel(float4 *__restrict__ y, const float4 *__restrict__ x, int rows,
                                         Dropout dropout) {
  int r = blockIdx.x * ROWS + threadIdx.y;
  if (ROWS > 1 && r >= rows) return;
  size_t first = (size_t)r * (T * QUADS) + threadIdx.x; /* the thread's first float4 in the matrix */
  float4 kept[QUADS];
  float max = -INFINITY, sum = 0;
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < QUADS; i++) kept[i] = __ldcs(&x[first + i * T]);
#pragma unroll
  for (int i = 0; i < QUADS; i++) bits |= dropout_quad_bits(dropout, first + i * T) << 4 * i;
#pragma unroll
  for (int i = 0; i < QUADS; i++) max = fmaxf(max, softmax_quad_max(kept[i]));

  float from = max == -INFINITY ? 0 : max;
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    kept[i] = softmax_quad_exp(kept[i], from);
    sum += softmax_quad_sum(kept[i]);
  }
  MaxSum all = row_max_sum<T>(max_sum_make(max, sum));
  float factor = expf(max - all.max) / all.sum * dropout.scale; /* turns exp(x - max) into scaled probabilities */
#pragma unroll
  for (int i = 0; i < QUADS; i++) __stcs(&y[first + i * T], dropout_quad_scale(kept[i], factor, bits >> 4 * i));
}

static __device__ __forceinline__ float softmax_dropout_quad_dot(float4 a, float4 b) {
  return (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
}

template <int T, int QUADS, int ROWS>
static __global__ void __launch_bounds__(T *ROWS)
    softmax_dropout_backward_kernel(float *__restrict__ dx, const float *__restrict__ x, const float *__restrict__ dy,
                                    int rows, int cols, Dropout dropout) {
  const float4 none = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY), zero = make_float4(0, 0, 0, 0);
  int t = threadIdx.x, r = blockIdx.x * ROWS + threadIdx.y;
  if (ROWS > 1 && r >= rows) return;
  size_t begin = (size_t)r * cols;
  Row row = row_split(x + begin, cols);
  size_t first = (begin + row.head) / 4;
  const float4 *in = (const float4 *)x + first, *in_dy = (const float4 *)dy + first;
  float4 *out = (float4 *)dx + first, s[QUADS], g[QUADS];
  int edge = row_edge(row, t);
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    bool inside = t + i * T < row.quads;
    s[i] = inside ? __ldcs(&in[t + i * T]) : none;
    g[i] = inside ? __ldcs(&in_dy[t + i * T]) : zero;
  }
  float s_alone = edge >= 0 ? x[begin + edge] : -INFINITY, max = s_alone, sum = 0, dot = 0;
  // >>> hidden softmax_dropout
  float g_alone = edge >= 0 ? dropout_apply(dropout, dropout_word(dropout, begin + edge), dy[begin + edge]) : 0;
  // <<< hidden
#pragma unroll
  for (int i = 0; i < QUADS; i++) max = fmaxf(max, softmax_quad_max(s[i]));

  float from = max == -INFINITY ? 0 : max;
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    s[i] = softmax_quad_exp(s[i], from);
    sum += softmax_quad_sum(s[i]);
    // >>> hidden softmax_dropout
    g[i] = dropout_quad(dropout, first + t + i * T, g[i]);
    // <<< hidden
    dot += softmax_dropout_quad_dot(s[i], g[i]);
  }
  s_alone = expf(s_alone - from);
  MaxSum all = row_max_sum<T>(max_sum_make(max, sum + s_alone));
  float factor = expf(max - all.max) / all.sum; /* turns s into probabilities */
  dot = row_sum<T>((dot + s_alone * g_alone) * factor);
  // >>> hidden softmax_dropout
#pragma unroll
  for (int i = 0; i < QUADS; i++)
    if (t + i * T < row.quads)
      __stcs(&out[t + i * T], make_float4(s[i].x * factor * (g[i].x - dot), s[i].y * factor * (g[i].y - dot),
                                          s[i].z * factor * (g[i].z - dot), s[i].w * factor * (g[i].w - dot)));
  if (edge >= 0) dx[begin + edge] = s_alone * factor * (g_alone - dot);
  // <<< hidden
}

/* One block per row, for any length and alignment. The first pass brings the row into the cache. */
static __global__ void softmax_dropout_backward_passes_kernel(float *dx, const float *x, const float *dy, int cols,
                                                              Dropout dropout) {
  size_t begin = (size_t)blockIdx.x * cols;
  int t = threadIdx.x;
  MaxSum seen = max_sum_make(-INFINITY, 0);
  for (int j = t; j < cols; j += SOFTMAX_THREADS) seen = max_sum_add(seen, x[begin + j]);
  seen = row_max_sum<SOFTMAX_THREADS>(seen);
  float dot = 0;
  for (int j = t; j < cols; j += SOFTMAX_THREADS) {
    float g = dropout_apply(dropout, dropout_word(dropout, begin + j), dy[begin + j]);
    dot += expf(x[begin + j] - seen.max) / seen.sum * g;
  }
  dot = row_sum<SOFTMAX_THREADS>(dot);
  for (int j = t; j < cols; j += SOFTMAX_THREADS) {
    float g = dropout_apply(dropout, dropout_word(dropout, begin + j), dy[begin + j]);
    dx[begin + j] = expf(x[begin + j] - seen.max) / seen.sum * (g - dot);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* s (rows,cols): the probabilities, kept for backward. It may be y if there is no backward pass. */
static inline void softmax_dropout_forward_separate(float *y, float *s, const float *x, int rows, int cols, float p,
                                                    uint64_t seed, uint32_t stream) {
  softmax_forward_gpu(s, x, rows, cols);
  dropout_gpu(y, s, (size_t)rows * cols, p, seed, stream);
}

/* g (rows,cols): scratch, not dx. */
static inline void softmax_dropout_backward_separate(float *dx, float *g, const float *s, const float *dy, int rows,
                                                     int cols, float p, uint64_t seed, uint32_t stream) {
  dropout_gpu(g, dy, (size_t)rows * cols, p, seed, stream);
  softmax_backward_gpu(dx, g, s, rows, cols);
}

template <int T, int QUADS, int ROWS>
static inline void softmax_dropout_forward_launch(float *y, const float *x, int rows, int cols, Dropout dropout) {
  softmax_dropout_forward_kernel<T, QUADS, ROWS>
      <<<(rows + ROWS - 1) / ROWS, dim3(T, ROWS)>>>(y, x, rows, cols, dropout);
  CUDA_CHECK_LAUNCH();
}

enum { SOFTMAX_DROPOUT_LONGEST = 4 * 8 * 1024, SOFTMAX_DROPOUT_BACKWARD_LONGEST = 4 * 4 * 1024 };

/* Rows too long for the registers, and arrays that do not begin at a multiple of 16 bytes, use the two kernels. */
static inline void softmax_dropout_forward_fused(float *y, const float *x, int rows, int cols, float p, uint64_t seed,
                                                 uint32_t stream) {
  Dropout dropout = dropout_make(p, seed, stream);
  if (!dropout_aligned(y, x) || cols > SOFTMAX_DROPOUT_LONGEST)
    softmax_dropout_forward_separate(y, y, x, rows, cols, p, seed, stream);
  else if (cols <= 256)
    softmax_dropout_forward_launch<32, 2, 4>(y, x, rows, cols, dropout);
  else if (cols <= 1024)
    softmax_dropout_forward_launch<32, 8, 4>(y, x, rows, cols, dropout);
  else if (cols <= 4096)
    softmax_dropout_forward_launch<256, 4, 1>(y, x, rows, cols, dropout);
  else if (cols <= 16384)
    softmax_dropout_forward_launch<512, 8, 1>(y, x, rows, cols, dropout);
  else
    softmax_dropout_forward_launch<1024, 8, 1>(y, x, rows, cols, dropout);
}

template <int T, int QUADS, int ROWS>
static inline void softmax_dropout_early_launch(float *y, const float *x, int rows, Dropout dropout) {
  softmax_dropout_forward_early_kernel<T, QUADS, ROWS>
      <<<(rows + ROWS - 1) / ROWS, dim3(T, ROWS)>>>((float4 *)y, (const float4 *)x, rows, dropout);
  CUDA_CHECK_LAUNCH();
}

/* Other rows as `fused`: with heads, tails and threads that have no float4 the cipher gains nothing by being first. */
static inline void softmax_dropout_forward_gpu(float *y, const float *x, int rows, int cols, float p, uint64_t seed,
                                               uint32_t stream) {
  Dropout dropout = dropout_make(p, seed, stream);
  if (!dropout_aligned(y, x))
    softmax_dropout_forward_fused(y, x, rows, cols, p, seed, stream);
  else if (cols == 256)
    softmax_dropout_early_launch<32, 2, 4>(y, x, rows, dropout);
  else if (cols == 512)
    softmax_dropout_early_launch<32, 4, 4>(y, x, rows, dropout);
  else if (cols == 1024)
    softmax_dropout_early_launch<64, 4, 1>(y, x, rows, dropout);
  else if (cols == 2048)
    softmax_dropout_early_launch<128, 4, 1>(y, x, rows, dropout);
  else if (cols == 4096)
    softmax_dropout_early_launch<256, 4, 1>(y, x, rows, dropout);
  else
    softmax_dropout_forward_fused(y, x, rows, cols, p, seed, stream);
}

template <int T, int QUADS, int ROWS>
static inline void softmax_dropout_backward_launch(float *dx, const float *x, const float *dy, int rows, int cols,
                                                   Dropout dropout) {
  softmax_dropout_backward_kernel<T, QUADS, ROWS>
      <<<(rows + ROWS - 1) / ROWS, dim3(T, ROWS)>>>(dx, x, dy, rows, cols, dropout);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_dropout_backward_passes(float *dx, const float *x, const float *dy, int rows, int cols,
                                                   float p, uint64_t seed, uint32_t stream) {
  Dropout dropout = dropout_make(p, seed, stream);
  softmax_dropout_backward_passes_kernel<<<rows, SOFTMAX_THREADS>>>(dx, x, dy, cols, dropout);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_dropout_backward_gpu(float *dx, const float *x, const float *dy, int rows, int cols, float p,
                                                uint64_t seed, uint32_t stream) {
  Dropout dropout = dropout_make(p, seed, stream);
  if (!dropout_aligned(dx, x) || !dropout_aligned(dx, dy) || cols > SOFTMAX_DROPOUT_BACKWARD_LONGEST)
    softmax_dropout_backward_passes(dx, x, dy, rows, cols, p, seed, stream);
  else if (cols <= 256)
    softmax_dropout_backward_launch<32, 2, 4>(dx, x, dy, rows, cols, dropout);
  else if (cols <= 1024)
    softmax_dropout_backward_launch<64, 4, 1>(dx, x, dy, rows, cols, dropout);
  else if (cols <= 4096)
    softmax_dropout_backward_launch<256, 4, 1>(dx, x, dy, rows, cols, dropout);
  else
    softmax_dropout_backward_launch<1024, 4, 1>(dx, x, dy, rows, cols, dropout);
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_DROPOUT_CUH */
