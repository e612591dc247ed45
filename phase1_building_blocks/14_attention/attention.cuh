/* attention.cuh - o = softmax(scale q k^T) v, for each head of each sequence; q, k, v, o (B,H,S,D), row-major, float32.
 *
 *     score(i,j) = q(i) . k(j) / sqrt(D)        how well query i matches key j
 *     p(i,j) = exp(score(i,j) - lse(i))         lse(i) = log of the sum over j of exp(score(i,j)): p's rows add up to 1
 *     o(i) = sum over j of p(i,j) v(j)
 *
 * Causal: query i sees only the keys 0 ... i, as a word of a text may depend only on the words before it. Sizes are at
 * least 1, D at most 128; B * H * S below 2^31. Every version also writes lse (B,H,S), which is all that backward
 * (attention_backward.cuh) needs of the softmax.
 *
 * The work is 4 S S D operations per head, and the inputs are only S D floats each: as in a matrix product. But the
 * scores are S S floats per head. Stored between three kernels they are gigabytes where q, k and v are megabytes.
 *
 *   attention_forward_cpu      the definition, sums in double
 *   attention_three_kernels    scores, softmax, weighted sum; S S floats per head in memory
 *   attention_flash_rows       one kernel, one thread per query: tiles of K and V are kept in shared memory, and the
 *                              softmax is computed online, so that scores exist only in registers
 *
 * attention_flash.cuh has faster versions, attention_tensor_core.cuh those in bfloat16, attention_backward.cuh
 * gradients.
 *
 * The online softmax: Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv 1805.02867; on tiles
 * of attention: Dao, Fu, Ermon, Rudra, Re, "FlashAttention", arXiv 2205.14135.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_CUH

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/check.h"
#include "common/error.h"
#include "common/shared_memory_limit.cuh"
#include "phase1_building_blocks/02_transpose/float4_access.cuh"

/* Bytes of GPU memory that the last launcher of this thread used besides the arrays it was given. */
static __thread size_t attention_memory;

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference. T is float, or double for tests of gradients. */

static inline double attention_scale(int d) { return 1 / sqrt((double)d); }

template <typename T>
static inline void attention_forward_cpu(T *o, T *lse, const T *q, const T *k, const T *v, int b, int h, int s, int d,
                                         bool causal) {
  double *p = (double *)xmalloc((size_t)s * sizeof *p);
  double *sum = (double *)xmalloc((size_t)d * sizeof *sum);
  for (int head = 0; head < b * h; head++, q += (size_t)s * d, k += (size_t)s * d, v += (size_t)s * d) {
    for (int i = 0; i < s; i++, o += d) {
      const T *query = q + (size_t)i * d;
      int keys = causal ? i + 1 : s;
      double largest = -INFINITY, total = 0;
      for (int j = 0; j < keys; j++) {
        const T *key = k + (size_t)j * d;
        double dot = 0;
        for (int c = 0; c < d; c++) dot += (double)query[c] * key[c];
        p[j] = dot * attention_scale(d);
        largest = fmax(largest, p[j]);
      }
      for (int j = 0; j < keys; j++)
        total += p[j] = exp(p[j] - largest); /* minus the maximum, so that exp() cannot overflow */
      for (int c = 0; c < d; c++) sum[c] = 0;
      for (int j = 0; j < keys; j++)
        for (int c = 0; c < d; c++) sum[c] += p[j] * v[(size_t)j * d + c];
      for (int c = 0; c < d; c++) o[c] = (T)(sum[c] / total);
      *lse++ = (T)(largest + log(total));
    }
  }
  free(p);
  free(sum);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Three kernels */

/* One thread per score. scores (B*H,S,S); -inf for keys that query i does not see. */
static __global__ void attention_scores_kernel(float *scores, const float *q, const float *k, int heads, int s, int d,
                                               float scale, bool causal) {
  size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= (size_t)heads * s * s) return;
  int key = (int)(at % s), row = (int)(at / s % s);
  size_t head = at / s / s;
  const float *query = q + (head * s + row) * d;
  float score = -INFINITY;
  // >>> exercise attention_scores: the score of `query`, d floats, and key `key` of this head; -inf if it is not seen
  // hint: head `head` of k begins at k + head * s * d, and key `key` begins key * d floats after that
  // hint: if causal, a key with key > row keeps -inf, whose exp() is 0; otherwise scale times the dot product
  // hint: float dot = 0; for (c ...) dot += query[c] * k[(head * s + key) * d + c]; score = scale * dot;
  if (!causal || key <= row) {
    float dot = 0;
    for (int c = 0; c < d; c++) dot += query[c] * k[(head * s + key) * d + c];
    score = scale * dot;
  }
  // <<< exercise
  scores[at] = score;
}

static __device__ __forceinline__ float attention_warp_max(float x) {
  for (int lane = 16; lane > 0; lane /= 2) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, lane));
  return x;
}

static __device__ __forceinline__ float attention_warp_sum(float x) {
  for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xFFFFFFFF, x, lane);
  return x;
}

/* One warp per row, in place: scores become probabilities. */
static __global__ void attention_softmax_kernel(float *scores, float *lse, int rows, int s) {
  int lane = threadIdx.x % 32, row = (int)(((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (row >= rows) return;
  float *x = scores + (size_t)row * s;
  float largest = -INFINITY, total = 0;
  for (int j = lane; j < s; j += 32) largest = fmaxf(largest, x[j]);
  largest = attention_warp_max(largest);
  for (int j = lane; j < s; j += 32) total += x[j] = expf(x[j] - largest);
  total = attention_warp_sum(total);
  for (int j = lane; j < s; j += 32) x[j] /= total;
  if (lane == 0) lse[row] = largest + logf(total);
}

/* One thread per element of o. */
static __global__ void attention_weighted_sum_kernel(float *o, const float *p, const float *v, int heads, int s, int d,
                                                     bool causal) {
  size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= (size_t)heads * s * d) return;
  size_t row = at / d, head = row / s;
  int keys = causal ? (int)(row % s) + 1 : s;
  float sum = 0;
  for (int j = 0; j < keys; j++) sum += p[row * s + j] * v[(head * s + j) * d + at % d];
  o[at] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* FlashAttention with one thread per query. D in the templates is the row length in registers and in shared memory: 64
 * or 128, in other files also 16 and 32. The d of the arrays may be smaller; the columns beyond it are 0 and change no
 * product. */

/* The initial value of the largest score. Not -inf: a tile may hold only scores of -inf, and exp(-inf - -inf) is
 * NaN. */
static const float attention_none = -1e38f;

/* exp2(score * scale - offset), with offset = largest * scale rounded, takes one instruction less than exp2((score -
 * largest) * scale). But an offset above this value is rounded by more than 1/2048, and one of 4e9 by up to 128, and
 * 2^128 overflows a float. In that case the maximum is subtracted first. */
static const float attention_coarse = 8192;

static const float attention_log2_e = 1.44269504f; /* 2^(x log2(e)) = e^x, and the GPU has 2^x as an instruction */

enum { ATTENTION_ROWS = 128, ATTENTION_KEYS = 16 }; /* queries per block, one per thread; keys per tile */

/* Loads rows row0 ... of x (rows,d) into a tile in shared memory, 0 outside of x. */
template <int ROWS, int D, int THREADS, bool ALIGNED>
static __device__ __forceinline__ void attention_load(float *tile, const float *x, int row0, int rows, int d) {
#pragma unroll
  for (int i = threadIdx.x; i < ROWS * D / 4; i += THREADS)
    *(float4 *)&tile[4 * i] = quad_load<ALIGNED>(x, row0 + i / (D / 4), i % (D / 4) * 4, rows, d);
}

/* The grid has one block per tile of queries and head. The last tiles, which are the longest if causal, come first. */
static __device__ __forceinline__ void attention_place(int tile_rows, int s, int *head, int *row0) {
  int tiles = (s + tile_rows - 1) / tile_rows, heads = gridDim.x / tiles;
  *head = blockIdx.x % heads;
  *row0 = (tiles - 1 - blockIdx.x / heads) * tile_rows;
}

template <int D, bool ALIGNED>
static __global__ void __launch_bounds__(ATTENTION_ROWS)
    attention_flash_rows_kernel(float *o, float *lse, const float *q, const float *k, const float *v, int s, int d,
                                float scale, bool causal) {
  __shared__ __align__(16) float k_tile[ATTENTION_KEYS * D], v_tile[ATTENTION_KEYS * D];
  int head, row0;
  attention_place(ATTENTION_ROWS, s, &head, &row0);
  size_t first = (size_t)head * s * d; /* the offset of this head */
  int row = row0 + threadIdx.x, keys = causal ? min(s, row0 + ATTENTION_ROWS) : s;
  float query[D], sum[D], largest = attention_none, total = 0;
#pragma unroll
  for (int c = 0; c < D; c += 4) {
    float4 four = quad_load<ALIGNED>(q + first, row, c, s, d);
    query[c] = four.x, query[c + 1] = four.y, query[c + 2] = four.z, query[c + 3] = four.w;
  }
#pragma unroll
  for (int c = 0; c < D; c++) sum[c] = 0;

  for (int key0 = 0; key0 < keys; key0 += ATTENTION_KEYS) {
    attention_load<ATTENTION_KEYS, D, ATTENTION_ROWS, ALIGNED>(k_tile, k + first, key0, s, d);
    attention_load<ATTENTION_KEYS, D, ATTENTION_ROWS, ALIGNED>(v_tile, v + first, key0, s, d);
    __syncthreads();
    float score[ATTENTION_KEYS], tile_largest = -INFINITY;
#pragma unroll
    for (int j = 0; j < ATTENTION_KEYS; j++) {
      float dot = 0;
#pragma unroll
      for (int c = 0; c < D; c++) dot += query[c] * k_tile[j * D + c];
      score[j] = key0 + j < s && (!causal || key0 + j <= row) ? scale * dot : -INFINITY;
      tile_largest = fmaxf(tile_largest, score[j]);
    }
    // >>> exercise attention_online: update `largest`, `total` and `sum` with this tile's scores as if it were the last
    // hint: total and sum are sums of exp(score - largest) so far; a new maximum makes them too large by one factor
    // hint: e^(largest - new_largest) corrects both; then add exp(score[j] - new_largest) to total, and times v to sum
    // hint: for each j: float p = expf(score[j] - largest); total += p; sum[c] += p * v_tile[j * D + c];
    float new_largest = fmaxf(largest, tile_largest);
    float rescale = expf(largest - new_largest); /* the first tile: 0 */
    largest = new_largest;
    total *= rescale;
#pragma unroll
    for (int c = 0; c < D; c++) sum[c] *= rescale;
#pragma unroll
    for (int j = 0; j < ATTENTION_KEYS; j++) {
      float p = expf(score[j] - largest);
      total += p;
#pragma unroll
      for (int c = 0; c < D; c++) sum[c] += p * v_tile[j * D + c];
    }
    // <<< exercise
    __syncthreads(); /* before the next tiles overwrite these */
  }

#pragma unroll
  for (int c = 0; c < D; c += 4)
    quad_store<ALIGNED>(o + first,
                        make_float4(sum[c] / total, sum[c + 1] / total, sum[c + 2] / total, sum[c + 3] / total), row, c,
                        s, d);
  if (row < s) lse[(size_t)head * s + row] = largest + logf(total);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

typedef void AttentionLauncher(float *o, float *lse, const float *q, const float *k, const float *v, int b, int h,
                               int s, int d, bool causal);

/* GPU memory that is kept between calls, because an allocation takes longer than a small attention. So two launches
 * must not run concurrently in two streams. */
static inline float *attention_workspace(size_t floats) {
  static float *memory;
  static size_t size;
  if (size < floats) {
    CUDA_CHECK(cudaFree(memory));
    CUDA_CHECK(cudaMalloc((void **)&memory, floats * sizeof *memory));
    size = floats;
  }
  attention_memory = floats * sizeof *memory;
  return memory;
}

static inline unsigned attention_blocks(size_t threads, int block) { return (unsigned)((threads + block - 1) / block); }

static inline void attention_three_kernels(float *o, float *lse, const float *q, const float *k, const float *v, int b,
                                           int h, int s, int d, bool causal) {
  const int block = 256;
  size_t rows = (size_t)b * h * s;
  float *scores = attention_workspace(rows * s);
  attention_scores_kernel<<<attention_blocks(rows * s, block), block>>>(scores, q, k, b * h, s, d,
                                                                        (float)attention_scale(d), causal);
  CUDA_CHECK_LAUNCH();
  attention_softmax_kernel<<<attention_blocks(rows * 32, block), block>>>(scores, lse, (int)rows, s);
  CUDA_CHECK_LAUNCH();
  attention_weighted_sum_kernel<<<attention_blocks(rows * d, block), block>>>(o, scores, v, b * h, s, d, causal);
  CUDA_CHECK_LAUNCH();
}

static inline bool attention_aligned(const float *a, const float *b, const float *c, const float *e, int d) {
  return quads_fit(a, d) && quads_fit(b, d) && quads_fit(c, d) && quads_fit(e, d);
}

template <int D>
static inline void attention_flash_rows_launch(float *o, float *lse, const float *q, const float *k, const float *v,
                                               int b, int h, int s, int d, bool causal) {
  unsigned grid = attention_blocks(s, ATTENTION_ROWS) * b * h;
  float scale = (float)attention_scale(d);
  attention_memory = 0;
  if (attention_aligned(o, q, k, v, d))
    attention_flash_rows_kernel<D, true><<<grid, ATTENTION_ROWS>>>(o, lse, q, k, v, s, d, scale, causal);
  else
    attention_flash_rows_kernel<D, false><<<grid, ATTENTION_ROWS>>>(o, lse, q, k, v, s, d, scale, causal);
  CUDA_CHECK_LAUNCH();
}

static inline void attention_flash_rows(float *o, float *lse, const float *q, const float *k, const float *v, int b,
                                        int h, int s, int d, bool causal) {
  if (d <= 64)
    attention_flash_rows_launch<64>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 128)
    attention_flash_rows_launch<128>(o, lse, q, k, v, b, h, s, d, causal);
  else
    die("attention: a head of %d columns; at most 128 fit into a thread's registers", d);
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_CUH */
