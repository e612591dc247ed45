/* attention_backward_mma.cuh - the gradients of attention in bfloat16 on tensor cores: mma.sync, sums in float32.
 *
 *   attention_backward_mma      a block owns keys and goes through the queries (attention_backward_sums.cuh). For each
 *                               pair of tiles five products: scores, dp, and the parts of dv, dk and dq
 *
 * p and ds are rounded to bfloat16 where a product needs them; they are computed in float32.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_MMA_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_MMA_CUH

#include "phase1_building_blocks/14_attention/attention_backward_sums.cuh"

/* delta (B*H*S) = the dot product of each row of dout and o; one warp per row. Clears dq_sums, too. */
static __global__ void attention_bf16_delta_kernel(float *delta, float4 *dq_sums, size_t quads,
                                                   const __nv_bfloat16 *dout, const __nv_bfloat16 *o, int rows, int d) {
  size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x, all = (size_t)gridDim.x * blockDim.x;
  for (size_t i = thread; i < quads; i += all) dq_sums[i] = make_float4(0, 0, 0, 0);
  int lane = threadIdx.x % 32, row = (int)(thread / 32);
  if (row >= rows) return;
  dout += (size_t)row * d;
  o += (size_t)row * d;
  float sum = 0;
  if (d % 2 == 0 && ((uintptr_t)dout | (uintptr_t)o) % 4 == 0)
    for (int c = 2 * lane; c < d; c += 64) {
      float2 gradient = __bfloat1622float2(*(const __nv_bfloat162 *)&dout[c]);
      float2 value = __bfloat1622float2(*(const __nv_bfloat162 *)&o[c]);
      sum += gradient.x * value.x + gradient.y * value.y;
    }
  else
    for (int c = lane; c < d; c += 32) sum += __bfloat162float(dout[c]) * __bfloat162float(o[c]);
  sum = attention_warp_sum(sum);
  if (lane == 0) delta[row] = sum;
}

/* dq (B*H,s,d) = scale * dq_sums, rounded to bfloat16; one thread per four sums. */
static __global__ void attention_sums_finish_kernel(__nv_bfloat16 *dq, const float4 *dq_sums, size_t quads, int s,
                                                    int d, int columns, float scale) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  int lane = i % 32, col = (int)(i / 32 % (columns / 8)) * 8 + lane % 4 * 2;
  size_t row16 = i / 32 / (columns / 8), tiles = (s + 15) / 16;
  int row = (int)(row16 % tiles) * 16 + lane / 4;
  float4 sum = dq_sums[i];
  const float four[4] = {sum.x, sum.y, sum.z, sum.w};
  for (int half = 0; half < 2; half++) {
    __nv_bfloat16 *to = dq + (row16 / tiles * s + row + 8 * half) * d + col;
    if (row + 8 * half >= s) break;
    if (d % 2 == 0 && col < d && (uintptr_t)dq % 4 == 0)
      *(uint32_t *)to = attention_pack(scale * four[2 * half], scale * four[2 * half + 1]);
    else
      for (int e = 0; e < 2 && col + e < d; e++) to[e] = __float2bfloat16(scale * four[2 * half + e]);
  }
}

/* What a block has in shared memory, in this order. PART queries at a time are in registers. */
template <int D, int TM, int WARPS, int QUERIES, int STAGES>
struct AttentionBackwardMmaShape {
  static const int threads = 32 * WARPS, keys = 16 * TM * WARPS, pitch = D + 8, ds_pitch = QUERIES + 8;
  static const int k = 0, v = keys * pitch;                           /* elements */
  static const int q = 2 * keys * pitch, stage = 2 * QUERIES * pitch; /* q, dout; again for each stage */
  static const int ds = q + STAGES * stage;
  static const int lse = ds + keys * ds_pitch; /* STAGES times lse and delta, float */
  static const int bytes = 2 * lse + STAGES * 2 * QUERIES * 4;
};

/* sum (16 TM,COLUMNS) = the warp's rows of left (16 TM,D) times right (COLUMNS,D) transposed. */
template <int D, int TM, int COLUMNS>
static __device__ __forceinline__ void attention_mma_dots(float (&sum)[TM][COLUMNS / 8][4], const __nv_bfloat16 *left,
                                                          const __nv_bfloat16 *right) {
  const int pitch = D + 8;
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) sum[i][n][e] = 0;
#pragma unroll
  for (int c = 0; c < D; c += 16) {
    uint32_t row[TM][4];
#pragma unroll
    for (int i = 0; i < TM; i++)
      mma_load_matrices<false>(row[i], &left[(16 * i + lane % 16) * pitch + c + lane / 16 * 8]);
#pragma unroll
    for (int n = 0; n < COLUMNS / 16; n++) {
      uint32_t column[4];
      mma_load_matrices<false>(column, &right[(16 * n + lane / 16 * 8 + lane % 8) * pitch + c + lane / 8 % 2 * 8]);
#pragma unroll
      for (int i = 0; i < TM; i++) {
        mma_16x8x16(sum[i][2 * n], row[i], column[0], column[1]);
        mma_16x8x16(sum[i][2 * n + 1], row[i], column[2], column[3]);
      }
    }
  }
}

/* ds^T (16 TM,QUERIES) of a warp to its rows of ds_tile (keys,...), rounded to bfloat16. */
template <int TM, int QUERIES>
static __device__ __forceinline__ void attention_mma_put(__nv_bfloat16 *ds_tile, int pitch,
                                                         const float (&ds)[TM][QUERIES / 8][4]) {
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int n = 0; n < QUERIES / 8; n++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        *(uint32_t *)&ds_tile[(16 * i + group + 8 * half) * pitch + 8 * n + 2 * member] =
            attention_pack(ds[i][n][2 * half], ds[i][n][2 * half + 1]);
}

/* dq_sums += ds k, for the block's QUERIES queries. A warp has 32 of them, and some of the columns. */
template <int D, int KEYS, int WARPS, int QUERIES>
static __device__ __forceinline__ void attention_mma_add_dq(float *dq_sums, const __nv_bfloat16 *ds_tile,
                                                            const __nv_bfloat16 *k_tile, int head, int query0, int s) {
  const int pitch = D + 8, ds_pitch = QUERIES + 8, across = WARPS / (QUERIES / 32), columns = D / across;
  static_assert(QUERIES % 32 == 0 && WARPS % (QUERIES / 32) == 0 && columns % 16 == 0, "a warp has 32 x 16 n sums");
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / across * 32, col = warp % across * columns;
  float sum[2][columns / 8][4] = {};
#pragma unroll 4
  for (int key = 0; key < KEYS; key += 16) {
    uint32_t left[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++) /* ds_tile has the keys as rows: transposed */
      mma_load_matrices<true>(left[i],
                              &ds_tile[(key + lane / 16 * 8 + lane % 8) * ds_pitch + row + 16 * i + lane / 8 % 2 * 8]);
#pragma unroll
    for (int n = 0; n < columns / 16; n++) {
      uint32_t right[4];
      mma_load_matrices<true>(right, &k_tile[(key + lane % 16) * pitch + col + 16 * n + lane / 16 * 8]);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        mma_16x8x16(sum[i][2 * n], left[i], right[0], right[1]);
        mma_16x8x16(sum[i][2 * n + 1], left[i], right[2], right[3]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int row16 = (query0 + row) / 16 + i;
    if (16 * row16 >= s) break;
    float *to = attention_sums_tile(dq_sums, head, row16, col / 8, s, D) + 4 * lane;
#pragma unroll
    for (int n = 0; n < columns / 8; n++)
      attention_add_quad(to + 128 * n, make_float4(sum[i][n][0], sum[i][n][1], sum[i][n][2], sum[i][n][3]));
  }
}

/* x (s,d) = factor * sum, the rows of a warp from row0 on. */
template <int D, bool ALIGNED, int TM>
static __device__ __forceinline__ void attention_mma_write_rows(__nv_bfloat16 *x, const float (&sum)[TM][D / 8][4],
                                                                float factor, int row0, int s, int d) {
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int row = row0 + 16 * i + group + 8 * half;
      if (row >= s) continue;
#pragma unroll
      for (int n = 0; n < D / 8; n++) {
        int col = 8 * n + 2 * member;
        __nv_bfloat16 *to = x + (size_t)row * d + col;
        uint32_t pair = attention_pack(factor * sum[i][n][2 * half], factor * sum[i][n][2 * half + 1]);
        if (ALIGNED && col < d) *(uint32_t *)to = pair;
        if (!ALIGNED && col < d) to[0] = __ushort_as_bfloat16((unsigned short)pair);
        if (!ALIGNED && col + 1 < d) to[1] = __ushort_as_bfloat16((unsigned short)(pair >> 16));
      }
    }
}

/* Starts the copies of a stage: QUERIES rows of q and of dout, one tile after the other, and lse and delta. */
template <int D, int THREADS, int QUERIES, bool ALIGNED>
static __device__ __forceinline__ void attention_mma_load_stage(__nv_bfloat16 *stage, float *rows,
                                                                const __nv_bfloat16 *q, const __nv_bfloat16 *dout,
                                                                const float *lse, const float *delta, int query0, int s,
                                                                int d) {
  attention_backward_load_rows<QUERIES>(rows, rows + QUERIES, lse, delta, query0, s);
  attention_bf16_load_async<QUERIES, D, THREADS, ALIGNED>(stage, q, query0, s, d);
  attention_bf16_load_async<QUERIES, D, THREADS, ALIGNED>(stage + QUERIES * (D + 8), dout, query0, s, d);
}

/* One block per tile of keys and head; if causal, the first keys have the most queries, and come first. With two
 * stages, the next q and dout arrive while these are used; with one, while dq is computed. */
template <int D, int TM, int WARPS, int QUERIES, int PART, int STAGES, int RESIDENT, bool ALIGNED>
static __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    attention_backward_mma_kernel(float *dq_sums, __nv_bfloat16 *dk, __nv_bfloat16 *dv, const __nv_bfloat16 *q,
                                  const __nv_bfloat16 *k, const __nv_bfloat16 *v, const __nv_bfloat16 *dout,
                                  const float *lse, const float *delta, int s, int d, float scale, bool causal) {
  typedef AttentionBackwardMmaShape<D, TM, WARPS, QUERIES, STAGES> Shape;
  const int keys = Shape::keys, pitch = Shape::pitch, warp_keys = 16 * TM;
  extern __shared__ __align__(16) __nv_bfloat16 attention_mma_tiles[];
  __nv_bfloat16 *k_tile = attention_mma_tiles, *v_tile = k_tile + Shape::v, *stages = k_tile + Shape::q;
  __nv_bfloat16 *ds_tile = k_tile + Shape::ds;
  float *rows = (float *)(k_tile + Shape::lse); /* lse, delta of each stage */
  int tiles = (s + keys - 1) / keys, heads = gridDim.x / tiles;
  int head = blockIdx.x % heads, key0 = blockIdx.x / heads * keys, warp_key = threadIdx.x / 32 * warp_keys;
  size_t first = (size_t)head * s * d;
  q += first, dout += first, lse += (size_t)head * s, delta += (size_t)head * s;

  float sum_k[TM][D / 8][4] = {}, sum_v[TM][D / 8][4] = {};
  attention_bf16_load_async<Shape::keys, D, Shape::threads, ALIGNED>(k_tile, k + first, key0, s, d);
  attention_bf16_load_async<Shape::keys, D, Shape::threads, ALIGNED>(v_tile, v + first, key0, s, d);
  int begin = causal ? key0 / QUERIES * QUERIES : 0;
  attention_mma_load_stage<D, Shape::threads, QUERIES, ALIGNED>(stages, rows, q, dout, lse, delta, begin, s, d);
  for (int query0 = begin, now = 0; query0 < s; query0 += QUERIES, now ^= STAGES - 1) {
    __pipeline_wait_prior(0);
    __syncthreads(); /* q and dout have arrived, and no thread reads ds or the other stage any more */
    int next = query0 + QUERIES;
    const __nv_bfloat16 *q_tile = stages + now * Shape::stage, *dout_tile = q_tile + QUERIES * pitch;
    const float *lse_tile = rows + now * 2 * QUERIES, *delta_tile = lse_tile + QUERIES;
    if (STAGES == 2 && next < s)
      attention_mma_load_stage<D, Shape::threads, QUERIES, ALIGNED>(
          stages + (now ^ 1) * Shape::stage, rows + (now ^ 1) * 2 * QUERIES, q, dout, lse, delta, next, s, d);
#pragma unroll 1
    for (int part = 0; part < QUERIES; part += PART) {
      float p[TM][PART / 8][4], ds[TM][PART / 8][4];
      attention_mma_dots<D, TM, PART>(p, k_tile + warp_key * pitch, q_tile + part * pitch);
      attention_mma_dots<D, TM, PART>(ds, v_tile + warp_key * pitch, dout_tile + part * pitch);
      bool edge = key0 + keys > s || (causal && key0 + warp_key + warp_keys - 1 > query0 + part);
      attention_backward_weights<TM, PART, false>(p, ds, lse_tile + part, delta_tile + part, key0 + warp_key,
                                                  query0 + part, s, scale, causal, edge);
      attention_mma_put<TM, PART>(ds_tile + warp_key * Shape::ds_pitch + part, Shape::ds_pitch, ds);
      attention_mma_add_weighted<D, TM, PART>(sum_v, p, dout_tile + part * pitch);
      attention_mma_add_weighted<D, TM, PART>(sum_k, ds, q_tile + part * pitch);
    }
    __syncthreads(); /* ds is complete, and no thread reads q and dout any more */
    if (STAGES == 1 && next < s)
      attention_mma_load_stage<D, Shape::threads, QUERIES, ALIGNED>(stages, rows, q, dout, lse, delta, next, s, d);
    attention_mma_add_dq<D, Shape::keys, WARPS, QUERIES>(dq_sums, ds_tile, k_tile, head, query0, s);
  }
  attention_mma_write_rows<D, ALIGNED>(dv + first, sum_v, 1, key0 + warp_key, s, d);
  attention_mma_write_rows<D, ALIGNED>(dk + first, sum_k, scale, key0 + warp_key, s, d);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers. `room`: GPU memory, attention_backward_bf16_floats() of it, aligned to 16 bytes. */

static inline int attention_backward_bf16_columns(int d) { return d <= 64 ? 64 : 128; }

static inline size_t attention_backward_bf16_floats(int b, int h, int s, int d) {
  size_t rows = (size_t)b * h * s;
  return attention_sums_floats(b, h, s, attention_backward_bf16_columns(d)) + (rows + 3) / 4 * 4;
}

/* Before the kernel: delta, and dq_sums are cleared. */
static inline void attention_backward_bf16_begin(float *delta, float *dq_sums, const __nv_bfloat16 *dout,
                                                 const __nv_bfloat16 *o, int b, int h, int s, int d) {
  size_t rows = (size_t)b * h * s;
  size_t quads = attention_sums_floats(b, h, s, attention_backward_bf16_columns(d)) / 4;
  attention_bf16_delta_kernel<<<attention_blocks(rows * 32, 256), 256>>>(delta, (float4 *)dq_sums, quads, dout, o,
                                                                         (int)rows, d);
  CUDA_CHECK_LAUNCH();
}

/* After it. */
static inline void attention_backward_bf16_end(__nv_bfloat16 *dq, const float *dq_sums, int b, int h, int s, int d) {
  int columns = attention_backward_bf16_columns(d);
  size_t quads = attention_sums_floats(b, h, s, columns) / 4;
  attention_sums_finish_kernel<<<attention_blocks(quads, 256), 256>>>(dq, (const float4 *)dq_sums, quads, s, d, columns,
                                                                      (float)attention_scale(d));
  CUDA_CHECK_LAUNCH();
}

template <int D, int TM, int WARPS, int QUERIES, int PART, int STAGES, int RESIDENT, bool ALIGNED>
static inline void attention_backward_mma_run(float *dq_sums, __nv_bfloat16 *dk, __nv_bfloat16 *dv,
                                              const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                              const float *lse, const float *delta, const __nv_bfloat16 *dout, int b,
                                              int h, int s, int d, bool causal) {
  typedef AttentionBackwardMmaShape<D, TM, WARPS, QUERIES, STAGES> Shape;
  shared_limit_ask((const void *)attention_backward_mma_kernel<D, TM, WARPS, QUERIES, PART, STAGES, RESIDENT, ALIGNED>,
                   Shape::bytes);
  attention_backward_mma_kernel<D, TM, WARPS, QUERIES, PART, STAGES, RESIDENT, ALIGNED>
      <<<attention_blocks(s, Shape::keys) * b * h, Shape::threads, Shape::bytes>>>(
          dq_sums, dk, dv, q, k, v, dout, lse, delta, s, d, (float)attention_scale(d), causal);
  CUDA_CHECK_LAUNCH();
}

static inline void attention_backward_mma(__nv_bfloat16 *dq, __nv_bfloat16 *dk, __nv_bfloat16 *dv,
                                          const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                          const __nv_bfloat16 *o, const float *lse, const __nv_bfloat16 *dout, int b,
                                          int h, int s, int d, bool causal, float *room) {
  float *dq_sums = room, *delta = room + attention_sums_floats(b, h, s, attention_backward_bf16_columns(d));
  mma_require();
  attention_backward_bf16_begin(delta, dq_sums, dout, o, b, h, s, d);
  bool aligned = attention_bf16_aligned(q, k, v, dout, d) && attention_bf16_aligned(dk, dv, dk, dv, d);
  if (d <= 64 && aligned)
    attention_backward_mma_run<64, 2, 4, 64, 32, 2, 2, true>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d,
                                                             causal);
  else if (d <= 64)
    attention_backward_mma_run<64, 2, 4, 64, 32, 2, 2, false>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d,
                                                              causal);
  else if (d <= 128 && aligned && shared_limit() >= 160 << 10)
    attention_backward_mma_run<128, 1, 8, 64, 64, 2, 1, true>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d,
                                                              causal);
  else if (d <= 128)
    attention_backward_mma_run<128, 1, 4, 64, 32, 1, 1, false>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d,
                                                               causal);
  else
    die("attention: a head of %d columns; at most 128 fit", d);
  attention_backward_bf16_end(dq, dq_sums, b, h, s, d);
}

/* Forward and backward, as training runs them: o and lse stay inside. */
typedef void AttentionBf16Gradients(__nv_bfloat16 *dq, __nv_bfloat16 *dk, __nv_bfloat16 *dv, const __nv_bfloat16 *q,
                                    const __nv_bfloat16 *k, const __nv_bfloat16 *v, const __nv_bfloat16 *dout, int b,
                                    int h, int s, int d, bool causal);

static inline void attention_bf16_gradients_cpu(__nv_bfloat16 *dq, __nv_bfloat16 *dk, __nv_bfloat16 *dv,
                                                const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                                const __nv_bfloat16 *dout, int b, int h, int s, int d, bool causal) {
  size_t n = (size_t)b * h * s * d;
  float *x = (float *)xcalloc(7 * n, sizeof *x);
  const __nv_bfloat16 *const in[4] = {q, k, v, dout};
  __nv_bfloat16 *const out[3] = {dq, dk, dv};
  for (size_t i = 0; i < 4 * n; i++) x[i] = __bfloat162float(in[i / n][i % n]);
  attention_gradients_cpu(x + 4 * n, x + 5 * n, x + 6 * n, x, x + n, x + 2 * n, x + 3 * n, b, h, s, d, causal);
  for (size_t i = 0; i < 3 * n; i++) out[i / n][i % n] = __float2bfloat16(x[4 * n + i]);
  free(x);
}

static inline void attention_gradients_mma(__nv_bfloat16 *dq, __nv_bfloat16 *dk, __nv_bfloat16 *dv,
                                           const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                           const __nv_bfloat16 *dout, int b, int h, int s, int d, bool causal) {
  size_t rows = (size_t)b * h * s, room = attention_backward_bf16_floats(b, h, s, d), o_floats = (rows * d + 7) / 8 * 4;
  float *sums = attention_workspace(room + o_floats + rows), *lse = sums + room + o_floats;
  __nv_bfloat16 *o = (__nv_bfloat16 *)(sums + room);
  attention_mma(o, lse, q, k, v, b, h, s, d, causal);
  attention_backward_mma(dq, dk, dv, q, k, v, o, lse, dout, b, h, s, d, causal, sums);
  attention_memory = (room + o_floats + rows) * sizeof *sums;
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_MMA_CUH */
