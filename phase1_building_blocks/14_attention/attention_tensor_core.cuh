/* attention_tensor_core.cuh - attention on tensor cores: q, k, v, o (B,H,S,D) in bfloat16, sums in float32. What is
 * computed, causal or not, and lse (B,H,S), float32, are those of attention.cuh; D is at most 128.
 *
 * A tensor core multiplies matrices of 16 x 16 and 16 x 8 in one instruction of a warp, 16 times as fast as the float32
 * units. So the products hardly take time any more. What takes time is the rest: as many exponentials as before, and
 * moving numbers between the lanes that need them.
 *
 *   attention_bf16_forward_cpu  the definition, rounded to bfloat16 at the end
 *   attention_wmma              CUDA's portable interface. Which lane holds which element of a fragment is not
 *                               documented, so scores, p and o go through shared memory whenever an element is needed
 *   attention_mma               mma.sync, whose layout is documented: the scores are in those registers where p is
 *                               needed. Scores, p and o never leave the registers
 *
 * Both need compute capability 8.0; an emulated GPU runs them, too (mma.cuh).
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_TENSOR_CORE_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_TENSOR_CORE_CUH

#include <cuda_bf16.h>
#include <cuda_pipeline_primitives.h>
#include <mma.h>

#include "common/mma.cuh"
#include "phase1_building_blocks/14_attention/attention.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void attention_bf16_forward_cpu(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q,
                                              const __nv_bfloat16 *k, const __nv_bfloat16 *v, int b, int h, int s,
                                              int d, bool causal) {
  size_t n = (size_t)b * h * s * d;
  float *x = (float *)xcalloc(4 * n, sizeof *x); /* cleared, since g++ does not know that n is at least 1 */
  for (size_t i = 0; i < n; i++) {
    x[i] = __bfloat162float(q[i]);
    x[n + i] = __bfloat162float(k[i]);
    x[2 * n + i] = __bfloat162float(v[i]);
  }
  attention_forward_cpu(x + 3 * n, lse, x, x + n, x + 2 * n, b, h, s, d, causal);
  for (size_t i = 0; i < n; i++) o[i] = __float2bfloat16(x[3 * n + i]);
  free(x);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Tiles of bfloat16 in shared memory. A row has D + 8 elements: the same 16 bytes of 8 neighbouring rows are then in
 * different banks, and ldmatrix reads them without conflicts. */

/* Eight bfloat16 are 16 bytes. */
static inline bool attention_bf16_aligned(const void *a, const void *b, const void *c, const void *e, int d) {
  return (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)e) % 16 == 0) && d % 8 == 0;
}

/* Starts the copies (cp.async) of rows row0 ... of x (rows,d) to a tile, 0 outside of x, as attention_load_async(). */
template <int ROWS, int D, int THREADS, bool ALIGNED>
static __device__ __forceinline__ void attention_bf16_load_async(__nv_bfloat16 *tile, const __nv_bfloat16 *x, int row0,
                                                                 int rows, int d) {
  static_assert(ROWS * D % 8 == 0, "whole eights");
#pragma unroll
  for (int n = 0; n < (ROWS * D / 8 + THREADS - 1) / THREADS; n++) {
    int i = threadIdx.x + n * THREADS, row = i / (D / 8), col = i % (D / 8) * 8;
    if (ROWS * D / 8 % THREADS != 0 && i >= ROWS * D / 8) break;
    const __nv_bfloat16 *from = x + (size_t)(row0 + row) * d + col;
    __nv_bfloat16 *to = &tile[row * (D + 8) + col];
    if (ALIGNED && row0 + row < rows && col < d)
      __pipeline_memcpy_async(to, from, 16);
    else if (ALIGNED)
      *(float4 *)to = make_float4(0, 0, 0, 0);
    else
      for (int e = 0; e < 8; e++) to[e] = row0 + row < rows && col + e < d ? from[e] : __float2bfloat16(0.0f);
  }
  __pipeline_commit();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* wmma. A warp has 16 queries. Its scores (16,keys), p (16,keys) and sums, the later o, (16,D) are in shared memory. */

enum { ATTENTION_WMMA_KEYS = 64 };

template <int D, int WARPS>
struct AttentionWmmaShape {
  static const int rows = 16 * WARPS;
  static const int pitch = D + 8, score_pitch = ATTENTION_WMMA_KEYS + 4, p_pitch = ATTENTION_WMMA_KEYS + 8;
  static const int o_pitch = D + 4;
  static const int bytes =
      (rows + 2 * ATTENTION_WMMA_KEYS) * pitch * 2 + rows * (score_pitch * 4 + p_pitch * 2 + o_pitch * 4);
};

#ifdef MMA_BFLOAT16
/* scores (16,keys) = the warp's rows of q_tile times k_tile transposed. */
template <int D, int WARPS>
static __device__ __forceinline__ void attention_wmma_scores(float *scores, const __nv_bfloat16 *q_tile,
                                                             const __nv_bfloat16 *k_tile, int warp) {
  using namespace nvcuda;
  typedef AttentionWmmaShape<D, WARPS> Shape;
  const int keys = ATTENTION_WMMA_KEYS;
  for (int n = 0; n < keys; n += 16) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> score;
    wmma::fill_fragment(score, 0);
    // >>> exercise attention_wmma_scores: score = the warp's 16 rows of q_tile times keys n ... n + 15, transposed
    // hint: 16 columns at a time: a fragment of q_tile from row warp * 16, one of k_tile from row n, mma_sync() adds
    // hint: k transposed costs nothing: a tile stored by rows is its transpose stored by columns, col_major
    // hint: load_matrix_sync(a, q_tile + warp * 16 * Shape::pitch + c, Shape::pitch), then b from k_tile, row n
#pragma unroll
    for (int c = 0; c < D; c += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> b;
      wmma::load_matrix_sync(a, q_tile + warp * 16 * Shape::pitch + c, Shape::pitch);
      wmma::load_matrix_sync(b, k_tile + n * Shape::pitch + c, Shape::pitch);
      wmma::mma_sync(score, a, b, score);
    }
    // <<< exercise
    wmma::store_matrix_sync(scores + n, score, Shape::score_pitch, wmma::mem_row_major);
  }
}

/* The online softmax of a row, of which this lane has every second element: scores become p in bfloat16. `largest` and
 * `total` are those of the row so far (total: of this lane's elements); sums of earlier keys are rescaled. key: that of
 * the lane's first score. */
template <int D>
static __device__ __forceinline__ void attention_wmma_softmax(__nv_bfloat16 *my_p, float *my_sums, float *my_scores,
                                                              float *largest, float *total, int row, int key, int s,
                                                              float scale, bool causal) {
  const int keys = ATTENTION_WMMA_KEYS;
  float new_largest = *largest;
  for (int c = 0; c < keys; c += 2) {
    if (key + c >= s || (causal && key + c > row)) my_scores[c] = -INFINITY;
    new_largest = fmaxf(new_largest, my_scores[c]);
  }
  new_largest = fmaxf(new_largest, __shfl_xor_sync(0xFFFFFFFF, new_largest, 1));
  float rescale = exp2f((*largest - new_largest) * scale * attention_log2_e);
  *largest = new_largest;
  *total *= rescale;
  for (int c = 0; c < keys; c += 2) {
    float weight = exp2f((my_scores[c] - new_largest) * scale * attention_log2_e);
    *total += weight;
    my_p[c] = __float2bfloat16(weight);
  }
  for (int c = 0; c < D; c += 2) my_sums[c] *= rescale;
}

/* sums (16,D) += p (16,keys) v_tile (keys,D). */
template <int D, int WARPS>
static __device__ __forceinline__ void attention_wmma_add_weighted(float *sums, const __nv_bfloat16 *p,
                                                                   const __nv_bfloat16 *v_tile) {
  using namespace nvcuda;
  typedef AttentionWmmaShape<D, WARPS> Shape;
  const int keys = ATTENTION_WMMA_KEYS;
  for (int n = 0; n < D; n += 16) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(sum, sums + n, Shape::o_pitch, wmma::mem_row_major);
#pragma unroll
    for (int c = 0; c < keys; c += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> b;
      wmma::load_matrix_sync(a, p + c, Shape::p_pitch);
      wmma::load_matrix_sync(b, v_tile + c * Shape::pitch + n, Shape::pitch);
      wmma::mma_sync(sum, a, b, sum);
    }
    wmma::store_matrix_sync(sums + n, sum, Shape::o_pitch, wmma::mem_row_major);
  }
}
#endif

/* A block has 16 queries per warp and goes through the keys, ATTENTION_WMMA_KEYS at a time. */
template <int D, int WARPS, bool ALIGNED>
static __global__ void __launch_bounds__(32 * WARPS)
    attention_wmma_kernel(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                          const __nv_bfloat16 *v, int s, int d, float scale, bool causal) {
#ifdef MMA_BFLOAT16
  typedef AttentionWmmaShape<D, WARPS> Shape;
  const int threads = 32 * WARPS, rows = Shape::rows, keys = ATTENTION_WMMA_KEYS;
  extern __shared__ __align__(32) char attention_wmma_shared[];
  __nv_bfloat16 *q_tile = (__nv_bfloat16 *)attention_wmma_shared;
  __nv_bfloat16 *k_tile = q_tile + rows * Shape::pitch, *v_tile = k_tile + keys * Shape::pitch;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __nv_bfloat16 *p = v_tile + keys * Shape::pitch + warp * 16 * Shape::p_pitch;
  float *sums = (float *)(v_tile + keys * Shape::pitch + rows * Shape::p_pitch) + warp * 16 * Shape::o_pitch;
  float *scores = (float *)(v_tile + keys * Shape::pitch + rows * Shape::p_pitch) + rows * Shape::o_pitch +
                  warp * 16 * Shape::score_pitch;
  int head, row0;
  attention_place(rows, s, &head, &row0);
  size_t first = (size_t)head * s * d;
  int end = causal ? min(s, row0 + rows) : s;
  int row = row0 + warp * 16 + lane / 2, half = lane % 2; /* two lanes per row: even columns, odd columns */
  float *my_scores = scores + lane / 2 * Shape::score_pitch + half, *my_sums = sums + lane / 2 * Shape::o_pitch + half;
  __nv_bfloat16 *my_p = p + lane / 2 * Shape::p_pitch + half;
  float largest = attention_none, total = 0;

  for (int c = 0; c < D; c += 2) my_sums[c] = 0;
  attention_bf16_load_async<Shape::rows, D, threads, ALIGNED>(q_tile, q + first, row0, s, d);
  for (int key0 = 0; key0 < end; key0 += keys) {
    attention_bf16_load_async<ATTENTION_WMMA_KEYS, D, threads, ALIGNED>(k_tile, k + first, key0, s, d);
    attention_bf16_load_async<ATTENTION_WMMA_KEYS, D, threads, ALIGNED>(v_tile, v + first, key0, s, d);
    __pipeline_wait_prior(0);
    __syncthreads();

    attention_wmma_scores<D, WARPS>(scores, q_tile, k_tile, warp);
    __syncwarp();
    attention_wmma_softmax<D>(my_p, my_sums, my_scores, &largest, &total, row, key0 + half, s, scale, causal);
    __syncwarp();
    attention_wmma_add_weighted<D, WARPS>(sums, p, v_tile);
    __syncthreads(); /* the next tiles overwrite these */
  }

  total += __shfl_xor_sync(0xFFFFFFFF, total, 1);
  if (row >= s) return;
  for (int c = 0; c < D; c += 2)
    if (c + half < d) o[first + (size_t)row * d + c + half] = __float2bfloat16(my_sums[c] / total);
  if (half == 0) lse[(size_t)head * s + row] = largest * scale + logf(total);
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* mma.sync. Lane l of a warp has group l / 4 and member l % 4. In the instruction d (16,8) += a (16,16) b (16,8), the
 * registers of a lane hold
 *     a, 4 with two neighbours each:  rows group, group + 8 at columns 2 * member, + 1; then 8 columns further
 *     b, 2 with two neighbours each:  rows (along K) 2 * member, + 1 of column group; then 8 rows further
 *     d, 4 floats:                    row group at columns 2 * member, + 1; then row group + 8
 * So the d of two instructions side by side, rounded to bfloat16 and packed in pairs, are an a: scores become p in the
 * same registers.
 *
 * A warp has 16 * TM queries, a lane two rows of each 16: group and group + 8, the halves of an array [...][4]. */

/* 2^x; results below 2^-126 become 0, which exp2f() takes more instructions to avoid. */
static __device__ __forceinline__ float attention_exp2(float x) {
#ifdef SIMT_REWRITTEN
  return exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

static __device__ __forceinline__ uint32_t attention_pack(float low, float high) {
  __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *(uint32_t *)&pair;
}

/* The warp's queries to registers: query[i][c] is the a of rows 16 i ... of its part of q_tile, columns 16 c ... */
template <int D, int TM>
static __device__ __forceinline__ void attention_mma_load_queries(uint32_t (&query)[TM][D / 16][4],
                                                                  const __nv_bfloat16 *q_tile, int warp_row) {
  const int pitch = D + 8;
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int c = 0; c < D / 16; c++) /* ldmatrix: rows 0-7, rows 8-15; then 8 columns further */
      mma_load_matrices<false>(query[i][c], &q_tile[(warp_row + 16 * i + lane % 16) * pitch + 16 * c + lane / 16 * 8]);
}

/* score (16 TM,KEYS) = the warp's queries times k_tile (KEYS,D) transposed. */
template <int D, int TM, int KEYS>
static __device__ __forceinline__ void attention_mma_scores(float (&score)[TM][KEYS / 8][4],
                                                            const uint32_t (&query)[TM][D / 16][4],
                                                            const __nv_bfloat16 *k_tile) {
  const int pitch = D + 8;
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int c = 0; c < D / 16; c++)
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) { /* ldmatrix: 8 keys, 8 columns further; then 8 keys further */
      uint32_t key[4];
      mma_load_matrices<false>(key, &k_tile[(16 * n + lane / 16 * 8 + lane % 8) * pitch + 16 * c + lane / 8 % 2 * 8]);
#pragma unroll
      for (int i = 0; i < TM; i++) {
        mma_16x8x16(score[i][2 * n], query[i][c], key[0], key[1]);
        mma_16x8x16(score[i][2 * n + 1], query[i][c], key[2], key[3]);
      }
    }
}

/* -inf for keys beyond the last one, and, if causal, for keys after the query. row0, key0: of the warp's scores. */
template <int TM, int KEYS>
static __device__ __forceinline__ void attention_mma_mask(float (&score)[TM][KEYS / 8][4], int row0, int key0, int s,
                                                          bool causal) {
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        int row = row0 + 16 * i + group + e / 2 * 8, key = key0 + 8 * n + 2 * member + e % 2;
        if (key >= s || (causal && key > row)) score[i][n][e] = -INFINITY;
      }
}

/* The online softmax: scores become p = 2^((score - largest) exponent_scale), with the new maximum of each row; sums
 * taken with the old maximum are rescaled. Four lanes share a row: they exchange their maxima (two shuffles). Their
 * totals are added up in the end, by attention_mma_write(). */
template <int D, int TM, int KEYS>
static __device__ __forceinline__ void attention_mma_softmax(float (&score)[TM][KEYS / 8][4],
                                                             float (&sum)[TM][D / 8][4], float (&largest)[TM][2],
                                                             float (&total)[TM][2], float exponent_scale) {
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int half = 0; half < 2; half++) { /* row group, row group + 8 */
      float new_largest = largest[i][half];
#pragma unroll
      for (int n = 0; n < KEYS / 8; n++)
        new_largest = fmaxf(new_largest, fmaxf(score[i][n][2 * half], score[i][n][2 * half + 1]));
      new_largest = fmaxf(new_largest, __shfl_xor_sync(0xFFFFFFFF, new_largest, 1));
      new_largest = fmaxf(new_largest, __shfl_xor_sync(0xFFFFFFFF, new_largest, 2));
      float rescale = attention_exp2((largest[i][half] - new_largest) * exponent_scale);
      float offset = new_largest * exponent_scale;
      largest[i][half] = new_largest;
      total[i][half] *= rescale;
#pragma unroll
      for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; e++) {
          score[i][n][e] = attention_exp2(fmaf(score[i][n][e], exponent_scale, -offset));
          total[i][half] += score[i][n][e];
        }
#pragma unroll
      for (int n = 0; n < D / 8; n++) {
        sum[i][n][2 * half] *= rescale;
        sum[i][n][2 * half + 1] *= rescale;
      }
    }
}

/* sum (16 TM,D) += p (16 TM,KEYS) v_tile (KEYS,D), p rounded to bfloat16. */
template <int D, int TM, int KEYS>
static __device__ __forceinline__ void attention_mma_add_weighted(float (&sum)[TM][D / 8][4],
                                                                  const float (&weight)[TM][KEYS / 8][4],
                                                                  const __nv_bfloat16 *v_tile) {
  const int pitch = D + 8;
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int c = 0; c < KEYS / 16; c++) {
    uint32_t p[TM][4];
#pragma unroll
    for (int i = 0; i < TM; i++) {
      p[i][0] = attention_pack(weight[i][2 * c][0], weight[i][2 * c][1]);
      p[i][1] = attention_pack(weight[i][2 * c][2], weight[i][2 * c][3]);
      p[i][2] = attention_pack(weight[i][2 * c + 1][0], weight[i][2 * c + 1][1]);
      p[i][3] = attention_pack(weight[i][2 * c + 1][2], weight[i][2 * c + 1][3]);
    }
#pragma unroll
    for (int n = 0; n < D / 16; n++) { /* ldmatrix: 8 keys, 8 keys further; then 8 columns further */
      uint32_t value[4];
      mma_load_matrices<true>(value, &v_tile[(16 * c + lane % 16) * pitch + 16 * n + lane / 16 * 8]);
#pragma unroll
      for (int i = 0; i < TM; i++) {
        mma_16x8x16(sum[i][2 * n], p[i], value[0], value[1]);
        mma_16x8x16(sum[i][2 * n + 1], p[i], value[2], value[3]);
      }
    }
  }
}

/* o (s,d) = sum / total, lse (s) = largest scale + log(total), for the warp's rows from row0 on. */
template <int D, bool ALIGNED, int TM>
static __device__ __forceinline__ void attention_mma_write(__nv_bfloat16 *o, float *lse,
                                                           const float (&sum)[TM][D / 8][4],
                                                           const float (&largest)[TM][2], const float (&total)[TM][2],
                                                           int row0, int s, int d, float scale) {
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int row = row0 + 16 * i + group + 8 * half;
      float all = total[i][half];
      all += __shfl_xor_sync(0xFFFFFFFF, all, 1);
      all += __shfl_xor_sync(0xFFFFFFFF, all, 2);
      if (row >= s) continue;
      if (member == 0) lse[row] = largest[i][half] * scale + logf(all);
#pragma unroll
      for (int n = 0; n < D / 8; n++) {
        int col = 8 * n + 2 * member;
        __nv_bfloat16 *to = o + (size_t)row * d + col;
        uint32_t pair = attention_pack(sum[i][n][2 * half] / all, sum[i][n][2 * half + 1] / all);
        if (ALIGNED && col < d) *(uint32_t *)to = pair;
        if (!ALIGNED && col < d) to[0] = __ushort_as_bfloat16((unsigned short)pair);
        if (!ALIGNED && col + 1 < d) to[1] = __ushort_as_bfloat16((unsigned short)(pair >> 16));
      }
    }
}

/* FlashAttention on tensor cores. K and V have two tiles each (double buffering): cp.async brings the next pair while
 * this one is used. Scores above 4e9 are not supported (attention_coarse): the test for them costs 5 % of the time on
 * an H200. */
template <int D, int TM, int WARPS, int KEYS, int RESIDENT, bool ALIGNED>
static __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    attention_mma_kernel(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                         const __nv_bfloat16 *v, int s, int d, float scale, bool causal) {
  const int threads = 32 * WARPS, warp_rows = 16 * TM, rows = WARPS * warp_rows, tile = KEYS * (D + 8);
  extern __shared__ __align__(16) __nv_bfloat16 attention_mma_tiles[]; /* K, V, K, V; at first the block's queries */
  __nv_bfloat16 *tiles = attention_mma_tiles;
  int head, row0;
  attention_place(rows, s, &head, &row0);
  size_t first = (size_t)head * s * d;
  int warp_row = threadIdx.x / 32 * warp_rows, end = causal ? min(s, row0 + rows) : s; /* keys that a row of it sees */
  float exponent_scale = scale * attention_log2_e;

  uint32_t query[TM][D / 16][4];
  attention_bf16_load_async<WARPS * 16 * TM, D, threads, ALIGNED>(tiles, q + first, row0, s, d);
  __pipeline_wait_prior(0);
  __syncthreads();
  attention_mma_load_queries<D>(query, tiles, warp_row);
  __syncthreads();

  float sum[TM][D / 8][4] = {}, largest[TM][2], total[TM][2] = {};
#pragma unroll
  for (int i = 0; i < TM; i++) largest[i][0] = largest[i][1] = attention_none;
  attention_bf16_load_async<KEYS, D, threads, ALIGNED>(tiles, k + first, 0, s, d);
  attention_bf16_load_async<KEYS, D, threads, ALIGNED>(tiles + tile, v + first, 0, s, d);
  for (int key0 = 0, now = 0; key0 < end; key0 += KEYS, now ^= 1) {
    const __nv_bfloat16 *k_tile = tiles + 2 * now * tile, *v_tile = k_tile + tile;
    __pipeline_wait_prior(0);
    __syncthreads(); /* this pair has arrived, and no thread reads the other one any more */
    if (key0 + KEYS < end) {
      __nv_bfloat16 *next = tiles + 2 * (now ^ 1) * tile;
      attention_bf16_load_async<KEYS, D, threads, ALIGNED>(next, k + first, key0 + KEYS, s, d);
      attention_bf16_load_async<KEYS, D, threads, ALIGNED>(next + tile, v + first, key0 + KEYS, s, d);
    }
    float score[TM][KEYS / 8][4] = {};
    attention_mma_scores<D, TM, KEYS>(score, query, k_tile);
    if (key0 + KEYS > s || (causal && key0 + KEYS - 1 > row0 + warp_row)) /* some keys are hidden from some rows */
      attention_mma_mask<TM, KEYS>(score, row0 + warp_row, key0, s, causal);
    attention_mma_softmax<D, TM, KEYS>(score, sum, largest, total, exponent_scale);
    attention_mma_add_weighted<D, TM, KEYS>(sum, score, v_tile);
  }
  attention_mma_write<D, ALIGNED>(o + first, lse + (size_t)head * s, sum, largest, total, row0 + warp_row, s, d, scale);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

typedef void AttentionBf16Launcher(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                   const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal);

template <int D, int WARPS, bool ALIGNED>
static inline void attention_wmma_run(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                      const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  typedef AttentionWmmaShape<D, WARPS> Shape;
  attention_memory = 0;
  shared_limit_ask((const void *)attention_wmma_kernel<D, WARPS, ALIGNED>, Shape::bytes);
  attention_wmma_kernel<D, WARPS, ALIGNED><<<attention_blocks(s, Shape::rows) * b * h, 32 * WARPS, Shape::bytes>>>(
      o, lse, q, k, v, s, d, (float)attention_scale(d), causal);
  CUDA_CHECK_LAUNCH();
}

template <int D, int WARPS>
static inline void attention_wmma_launch(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                         const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  if (attention_bf16_aligned(o, q, k, v, d))
    attention_wmma_run<D, WARPS, true>(o, lse, q, k, v, b, h, s, d, causal);
  else
    attention_wmma_run<D, WARPS, false>(o, lse, q, k, v, b, h, s, d, causal);
}

static inline void attention_wmma(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                  const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  mma_require();
  if (d <= 64)
    attention_wmma_launch<64, 4>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 128 && shared_limit() >= 110 << 10)
    attention_wmma_launch<128, 4>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 128)
    attention_wmma_launch<128, 2>(o, lse, q, k, v, b, h, s, d, causal);
  else
    die("attention: a head of %d columns; at most 128 fit", d);
}

template <int D, int TM, int WARPS, int KEYS, int RESIDENT, bool ALIGNED>
static inline void attention_mma_run(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                     const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  const int rows = 16 * TM * WARPS, tiles = 4 * KEYS > rows ? 4 * KEYS : rows, shared = tiles * (D + 8) * 2;
  attention_memory = 0;
  shared_limit_ask((const void *)attention_mma_kernel<D, TM, WARPS, KEYS, RESIDENT, ALIGNED>, shared);
  attention_mma_kernel<D, TM, WARPS, KEYS, RESIDENT, ALIGNED>
      <<<attention_blocks(s, rows) * b * h, 32 * WARPS, shared>>>(o, lse, q, k, v, s, d, (float)attention_scale(d),
                                                                  causal);
  CUDA_CHECK_LAUNCH();
}

template <int D, int TM, int WARPS, int KEYS, int RESIDENT>
static inline void attention_mma_launch(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                        const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  if (attention_bf16_aligned(o, q, k, v, d))
    attention_mma_run<D, TM, WARPS, KEYS, RESIDENT, true>(o, lse, q, k, v, b, h, s, d, causal);
  else
    attention_mma_run<D, TM, WARPS, KEYS, RESIDENT, false>(o, lse, q, k, v, b, h, s, d, causal);
}

static inline void attention_mma(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                 const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  mma_require();
  if (d <= 16)
    attention_mma_launch<16, 2, 4, 64, 2>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 32)
    attention_mma_launch<32, 2, 4, 64, 2>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 64)
    attention_mma_launch<64, 2, 4, 64, 2>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 128)
    attention_mma_launch<128, 1, 8, 64, 1>(o, lse, q, k, v, b, h, s, d, causal);
  else
    die("attention: a head of %d columns; at most 128 fit", d);
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_TENSOR_CORE_CUH */
