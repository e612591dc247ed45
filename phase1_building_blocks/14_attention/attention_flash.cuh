/* attention_flash.cuh - attention (attention.cuh) close to the speed of the float32 units: 8 x 8 scores per thread.
 *
 * attention_flash_rows() reads a float4 of shared memory for every four products, and only one thread works on a
 * query. Here a thread has a register tile of 8 x 8 scores, as in matmul_register_2d(): 16 floats from shared memory
 * are enough for 64 products. The weighted sum is a matrix product, too, p times v, with a register tile of 8 x D/8.
 *
 *   attention_flash     for D up to 64; from there to 128 with 4 queries per thread, whose sums are twice as long
 *
 * The steps of the kernel, one function each:
 *   attention_load_async      cp.async: a tile of q, k or v to shared memory, in the background
 *   attention_dots            scores = q k^T
 *   attention_mask            keys that a query may not see
 *   attention_online_softmax  scores become p; the sums are rescaled to the new maximum of the row
 *   attention_put             p to shared memory, from where the lanes read other parts of it
 *   attention_add_weighted    sum += p v
 *   attention_finish          o = sum / total, and lse
 *
 * A warp has ACROSS x DOWN lanes; its lane (x,y) has
 *     TM rows, DOWN apart:      y, y + DOWN, ...        of the warp's TM * DOWN rows (queries)
 *     8 columns, ACROSS apart:  x, x + ACROSS, ...      of the tile's 8 * ACROSS columns (keys)
 *     D / ACROSS columns of o:  fours, 4 * ACROSS apart
 * so the lanes that share a row are neighbours, and a maximum over the row is two or three shuffles. No other warp
 * needs the warp's part of p, so it goes through shared memory without a barrier.
 *
 * Tiles of q, k, v lie in shared memory row by row, a row 4 floats longer than D: so float4 of neighbouring rows begin
 * 4 banks apart, and a warp that reads 8 rows touches each bank once.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_FLASH_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_FLASH_CUH

#include <cuda_pipeline_primitives.h>

#include "phase1_building_blocks/14_attention/attention.cuh"

template <int D>
struct AttentionShape {
  static const int across = D >= 64 ? 8 : 4, down = 32 / across;
  static const int keys = 8 * across; /* of a tile */
  static const int pitch = D + 4;     /* of q's, k's and v's rows */
  static const int p_pitch =
      keys + across; /* of p's: a store of a warp, `down` rows of `across`, uses each bank once */
};

/* As attention_load() with rows of D + 4 floats, but asynchronous (cp.async): __pipeline_wait_prior(0) and then a
 * barrier have to follow before the tile is read. */
template <int ROWS, int D, int THREADS, bool ALIGNED>
static __device__ __forceinline__ void attention_load_async(float *tile, const float *x, int row0, int rows, int d) {
  static_assert(ROWS * D % (4 * THREADS) == 0, "the threads must share a tile evenly");
#pragma unroll
  for (int n = 0; n < ROWS * D / 4 / THREADS; n++) {
    int i = threadIdx.x + n * THREADS, row = i / (D / 4), col = i % (D / 4) * 4;
    const float *from = x + (size_t)(row0 + row) * d + col;
    float *to = &tile[row * AttentionShape<D>::pitch + col];
    bool inside = row0 + row < rows && col < d;
    if (!ALIGNED || !inside)
      *(float4 *)to = quad_load<ALIGNED>(x, row0 + row, col, rows, d);
    else
      __pipeline_memcpy_async(to, from, sizeof(float4));
  }
  __pipeline_commit();
}

/* sum[i][j] = dot product of row i of `left` and row j of `right`, D floats each; the pointers are at this thread's
 * first rows. */
template <int D, int TM>
static __device__ __forceinline__ void attention_dots(float (&sum)[TM][8], const float *left, const float *right) {
  const int pitch = AttentionShape<D>::pitch, across = AttentionShape<D>::across, down = AttentionShape<D>::down;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) sum[i][j] = 0;
#pragma unroll 2
  for (int c = 0; c < D; c += 4) {
    float4 l[TM];
#pragma unroll
    for (int i = 0; i < TM; i++) l[i] = *(const float4 *)&left[i * down * pitch + c];
#pragma unroll
    for (int j = 0; j < 8; j++) {
      float4 r = *(const float4 *)&right[j * across * pitch + c];
#pragma unroll
      for (int i = 0; i < TM; i++) sum[i][j] = fmaf(l[i].x, r.x, sum[i][j]);
#pragma unroll
      for (int i = 0; i < TM; i++) sum[i][j] = fmaf(l[i].y, r.y, sum[i][j]);
#pragma unroll
      for (int i = 0; i < TM; i++) sum[i][j] = fmaf(l[i].z, r.z, sum[i][j]);
#pragma unroll
      for (int i = 0; i < TM; i++) sum[i][j] = fmaf(l[i].w, r.w, sum[i][j]);
    }
  }
}

/* weight[i][j] to p in shared memory; `p` points to this thread's first row and column. */
template <int D, int TM>
static __device__ __forceinline__ void attention_put(float *p, const float (&weight)[TM][8]) {
  const int across = AttentionShape<D>::across, down = AttentionShape<D>::down;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) p[i * down * AttentionShape<D>::p_pitch + j * across] = weight[i][j];
}

/* sum[i] += p's row i times the tile x (keys,D): the pointers are at this thread's first row, and first column. */
template <int D, int TM, int TD>
static __device__ __forceinline__ void attention_add_weighted(float (&sum)[TM][TD], const float *p, const float *x) {
  const int pitch = AttentionShape<D>::pitch, p_pitch = AttentionShape<D>::p_pitch;
  const int across = AttentionShape<D>::across, down = AttentionShape<D>::down;
#pragma unroll 2
  for (int key = 0; key < AttentionShape<D>::keys; key += 4) {
    float left[TM][4];
#pragma unroll
    for (int i = 0; i < TM; i++) {
      float4 four = *(const float4 *)&p[i * down * p_pitch + key];
      left[i][0] = four.x, left[i][1] = four.y, left[i][2] = four.z, left[i][3] = four.w;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int t = 0; t < TD; t += 4) {
        float4 r = *(const float4 *)&x[(key + j) * pitch + t * across];
#pragma unroll
        for (int i = 0; i < TM; i++) {
          sum[i][t] = fmaf(left[i][j], r.x, sum[i][t]);
          sum[i][t + 1] = fmaf(left[i][j], r.y, sum[i][t + 1]);
          sum[i][t + 2] = fmaf(left[i][j], r.z, sum[i][t + 2]);
          sum[i][t + 3] = fmaf(left[i][j], r.w, sum[i][t + 3]);
        }
      }
  }
}

/* sum's rows times factor[i] to x (rows,d). */
template <int D, bool ALIGNED, int TM, int TD>
static __device__ __forceinline__ void attention_write(float *x, const float (&sum)[TM][TD], const float (&factor)[TM],
                                                       int row, int col, int rows, int d) {
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int t = 0; t < TD; t += 4)
      quad_store<ALIGNED>(x,
                          make_float4(factor[i] * sum[i][t], factor[i] * sum[i][t + 1], factor[i] * sum[i][t + 2],
                                      factor[i] * sum[i][t + 3]),
                          row + i * AttentionShape<D>::down, col + t * AttentionShape<D>::across, rows, d);
}

/* -inf for keys beyond the last one, and, if causal, for keys after the query. row, key: of this thread's
 * score[0][0]. */
template <int D, int TM>
static __device__ __forceinline__ void attention_mask(float (&score)[TM][8], int row, int key, int s, bool causal) {
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) {
      int this_row = row + i * AttentionShape<D>::down, this_key = key + j * AttentionShape<D>::across;
      if (this_key >= s || (causal && this_key > this_row)) score[i][j] = -INFINITY;
    }
}

/* The online softmax: scores become p = 2^((score - largest) exponent_scale), with the new maximum of each row. What
 * was summed with the old maximum, `total` and `sum`, is rescaled. `total` is over this thread's own keys; the lanes
 * that share a row only add theirs up in the end. */
template <int D, int TM, int TD>
static __device__ __forceinline__ void attention_online_softmax(float (&score)[TM][8], float (&sum)[TM][TD],
                                                                float (&largest)[TM], float (&total)[TM],
                                                                float exponent_scale) {
  const int across = AttentionShape<D>::across;
#pragma unroll
  for (int i = 0; i < TM; i++) {
    float new_largest = largest[i];
    // >>> exercise attention_row_maximum: new_largest becomes the maximum of it and row i's scores, in all its lanes
    // hint: first this lane's 8 scores of the row, then those of the other lanes that share the row
    // hint: they are `across` neighbours, a power of two: after an exchange with lane ^ 1, ^ 2, ... all have it
    // hint: for (int lane = 1; lane < across; lane *= 2) ... fmaxf(..., __shfl_xor_sync(0xFFFFFFFF, ..., lane))
#pragma unroll
    for (int j = 0; j < 8; j++) new_largest = fmaxf(new_largest, score[i][j]);
#pragma unroll
    for (int lane = 1; lane < across; lane *= 2)
      new_largest = fmaxf(new_largest, __shfl_xor_sync(0xFFFFFFFF, new_largest, lane));
    // <<< exercise
    float rescale = exp2f((largest[i] - new_largest) * exponent_scale);
    float offset = new_largest * exponent_scale;
    if (fabsf(offset) > attention_coarse) { /* rare */
#pragma unroll
      for (int j = 0; j < 8; j++) score[i][j] -= new_largest;
      offset = 0;
    }
    largest[i] = new_largest;
    total[i] *= rescale;
#pragma unroll
    for (int j = 0; j < 8; j++) total[i] += score[i][j] = exp2f(fmaf(score[i][j], exponent_scale, -offset));
#pragma unroll
    for (int t = 0; t < D / across; t++) sum[i][t] *= rescale;
  }
}

/* o (s,d) = sum / total, and lse (s) = largest scale + log(total). row, x: this thread's first row, its place among the
 * lanes that share it. */
template <int D, bool ALIGNED, int TM, int TD>
static __device__ __forceinline__ void attention_finish(float *o, float *lse, const float (&sum)[TM][TD],
                                                        const float (&largest)[TM], float (&total)[TM], int row, int x,
                                                        int s, int d, float scale) {
  float inverse[TM];
#pragma unroll
  for (int i = 0; i < TM; i++) {
#pragma unroll
    for (int lane = 1; lane < AttentionShape<D>::across; lane *= 2)
      total[i] += __shfl_xor_sync(0xFFFFFFFF, total[i], lane);
    inverse[i] = 1 / total[i];
    int this_row = row + i * AttentionShape<D>::down;
    if (x == 0 && this_row < s) lse[this_row] = largest[i] * scale + logf(total[i]);
  }
  attention_write<D, ALIGNED>(o, sum, inverse, row, 4 * x, s, d);
}

/* One block has the queries of `rows` rows of one head and goes through the keys, a tile at a time. V arrives while the
 * scores are computed, the next K while the weighted sums are. */
template <int D, int TM, int WARPS, int RESIDENT, bool ALIGNED>
static __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    attention_flash_kernel(float *o, float *lse, const float *q, const float *k, const float *v, int s, int d,
                           float scale, bool causal) {
  typedef AttentionShape<D> Shape;
  const int threads = 32 * WARPS, across = Shape::across, keys = Shape::keys;
  const int warp_rows = TM * Shape::down, rows = WARPS * warp_rows;
  extern __shared__ __align__(16) float attention_tiles[];
  float *q_tile = attention_tiles, *k_tile = q_tile + rows * Shape::pitch, *v_tile = k_tile + keys * Shape::pitch;
  float *p_tile = v_tile + keys * Shape::pitch;
  int head, row0;
  attention_place(rows, s, &head, &row0);
  size_t first = (size_t)head * s * d;
  int x = threadIdx.x % across, y = threadIdx.x / 32 * warp_rows + threadIdx.x % 32 / across;
  int end = causal ? min(s, row0 + rows) : s; /* keys that a row of the block sees */
  const float *my_q = q_tile + y * Shape::pitch, *my_k = k_tile + x * Shape::pitch, *my_v = v_tile + 4 * x;
  float *my_p = p_tile + y * Shape::p_pitch;
  float exponent_scale = scale * attention_log2_e;

  float sum[TM][D / across] = {}, largest[TM], total[TM] = {}; /* total: over this thread's own keys */
#pragma unroll
  for (int i = 0; i < TM; i++) largest[i] = attention_none;
  attention_load_async<rows, D, threads, ALIGNED>(q_tile, q + first, row0, s, d);
  attention_load_async<keys, D, threads, ALIGNED>(k_tile, k + first, 0, s, d);
  for (int key0 = 0; key0 < end; key0 += keys) {
    __pipeline_wait_prior(0);
    __syncthreads(); /* K has arrived, and no thread reads the last V any more */
    attention_load_async<keys, D, threads, ALIGNED>(v_tile, v + first, key0, s, d);

    float score[TM][8];
    attention_dots<D>(score, my_q, my_k);
    if (key0 + keys > s || (causal && key0 + keys - 1 > row0 + y)) /* some keys are hidden from some rows */
      attention_mask<D>(score, row0 + y, key0 + x, s, causal);
    attention_online_softmax<D>(score, sum, largest, total, exponent_scale);
    attention_put<D>(my_p + x, score);
    __pipeline_wait_prior(0);
    __syncthreads(); /* V and p are complete, and no thread reads K any more */
    if (key0 + keys < end) attention_load_async<keys, D, threads, ALIGNED>(k_tile, k + first, key0 + keys, s, d);
    attention_add_weighted<D>(sum, my_p, my_v);
  }

  attention_finish<D, ALIGNED>(o + first, lse + (size_t)head * s, sum, largest, total, row0 + y, x, s, d, scale);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <int D, int TM, int WARPS, int RESIDENT, bool ALIGNED>
static inline void attention_flash_run(float *o, float *lse, const float *q, const float *k, const float *v, int b,
                                       int h, int s, int d, bool causal) {
  typedef AttentionShape<D> Shape;
  const int rows = WARPS * TM * Shape::down;
  const int shared = ((rows + 2 * Shape::keys) * Shape::pitch + rows * Shape::p_pitch) * (int)sizeof(float);
  attention_memory = 0;
  shared_limit_ask((const void *)attention_flash_kernel<D, TM, WARPS, RESIDENT, ALIGNED>, shared);
  attention_flash_kernel<D, TM, WARPS, RESIDENT, ALIGNED><<<attention_blocks(s, rows) * b * h, 32 * WARPS, shared>>>(
      o, lse, q, k, v, s, d, (float)attention_scale(d), causal);
  CUDA_CHECK_LAUNCH();
}

template <int D, int TM, int WARPS, int RESIDENT>
static inline void attention_flash_launch(float *o, float *lse, const float *q, const float *k, const float *v, int b,
                                          int h, int s, int d, bool causal) {
  if (attention_aligned(o, q, k, v, d))
    attention_flash_run<D, TM, WARPS, RESIDENT, true>(o, lse, q, k, v, b, h, s, d, causal);
  else
    attention_flash_run<D, TM, WARPS, RESIDENT, false>(o, lse, q, k, v, b, h, s, d, causal);
}

static inline void attention_flash(float *o, float *lse, const float *q, const float *k, const float *v, int b, int h,
                                   int s, int d, bool causal) {
  if (d <= 16)
    attention_flash_launch<16, 8, 4, 2>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 32)
    attention_flash_launch<32, 8, 4, 2>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 64 && shared_limit() >= 174 << 10) /* one block of 8 warps loads K and V once, two blocks of 4 twice */
    attention_flash_launch<64, 8, 8, 1>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 64 && shared_limit() >= 104 << 10)
    attention_flash_launch<64, 8, 4, 2>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 64)
    attention_flash_launch<64, 4, 4, 1>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 128 && shared_limit() >= 117 << 10)
    attention_flash_launch<128, 4, 4, 1>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 128)
    attention_flash_launch<128, 2, 4, 1>(o, lse, q, k, v, b, h, s, d, causal);
  else
    die("attention: a head of %d columns; at most 128 fit into a thread's registers", d);
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_FLASH_CUH */
