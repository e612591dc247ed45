/* attention_backward_tf32.cuh - the gradients of attention in float32 on tensor cores, by three products of tf32 each
 * (attention_tf32.cuh).
 *
 *   attention_backward_tf32     five products per pair of tiles (attention_backward_sums.cuh). A tile's part of dk and
 *                               dv is computed from 0, and then added to the sum by a float32 addition
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_TF32_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_TF32_CUH

#include "phase1_building_blocks/14_attention/attention_backward_sums.cuh"
#include "phase1_building_blocks/14_attention/attention_tf32.cuh"

/* dq_sums += ds k, for the block's QUERIES queries. A warp has 16 of them, and some of the columns. */
template <int D, int KEYS, int WARPS, int QUERIES>
static __device__ __forceinline__ void attention_tf32_add_dq(float *dq_sums, const float *ds_tile, const float *k_tile,
                                                             int head, int query0, int s) {
  const int ds_pitch = QUERIES + 4, across = WARPS / (QUERIES / 16), columns = D / across;
  static_assert(QUERIES % 16 == 0 && WARPS % (QUERIES / 16) == 0 && columns % 32 == 0, "a warp has 16 x 32 n sums");
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / across * 16, col = warp % across * columns;
  int group = lane / 4, member = lane % 4;
  float sum[columns / 8][4] = {};
#pragma unroll 2
  for (int key = 0; key < KEYS; key += 8) {
    const float *ds = &ds_tile[(key + 2 * member) * ds_pitch + row + group];
    const float left[4] = {ds[0], ds[8], ds[ds_pitch], ds[ds_pitch + 8]};
    uint32_t big[4], small[4];
#pragma unroll
    for (int i = 0; i < 4; i++) attention_split(big[i], small[i], left[i]);
#pragma unroll
    for (int n = 0; n < columns / 32; n++) {
      float x0[4], x1[4];
      attention_tf32_load_rows<D>(x0, x1, k_tile, key + 2 * member, col + 32 * n + 4 * group);
      attention_tf32_add4(&sum[4 * n], big, small, x0, x1);
    }
  }
  if (query0 + row >= s) return;
  float *to = attention_sums_tile(dq_sums, head, (query0 + row) / 16, col / 8, s, D) + 4 * lane;
#pragma unroll
  for (int n = 0; n < columns / 8; n += 4)
#pragma unroll
    for (int e = 0; e < 4; e++)
      attention_add_quad(to + (n + e) * 128, make_float4(sum[n][e], sum[n + 1][e], sum[n + 2][e], sum[n + 3][e]));
}

/* dq (heads,s,d) = scale * dq_sums, one thread per quad: of 16 x 32 sums, element e of four d side by side. */
template <bool ALIGNED>
static __global__ void attention_tf32_finish_kernel(float *dq, const float4 *dq_sums, size_t quads, int s, int d,
                                                    int columns, float scale) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  int lane = i % 32, e = i / 32 % 4, col = (int)(i / 128 % (columns / 32)) * 32 + lane % 4 * 8 + e % 2 * 4;
  size_t row16 = i / 128 / (columns / 32), tiles = (s + 15) / 16;
  int row = (int)(row16 % tiles) * 16 + lane / 4 + e / 2 * 8;
  float4 sum = dq_sums[i];
  quad_store<ALIGNED>(dq + row16 / tiles * s * d,
                      make_float4(scale * sum.x, scale * sum.y, scale * sum.z, scale * sum.w), row, col, s, d);
}

/* Starts the copies of QUERIES rows of q and of dout, one tile after the other, and of lse and delta. */
template <int D, int THREADS, int QUERIES, bool ALIGNED>
static __device__ __forceinline__ void attention_tf32_load_stage(float *stage, float *rows, const float *q,
                                                                 const float *dout, const float *lse,
                                                                 const float *delta, int query0, int s, int d) {
  attention_backward_load_rows<QUERIES>(rows, rows + QUERIES, lse, delta, query0, s);
  attention_load_async<QUERIES, D, THREADS, ALIGNED>(stage, q, query0, s, d);
  attention_load_async<QUERIES, D, THREADS, ALIGNED>(stage + QUERIES * (D + 4), dout, query0, s, d);
}

/* What a block has in shared memory, in floats and in this order. A warp has 16 keys. */
template <int D, int WARPS, int QUERIES, int STAGES>
struct AttentionBackwardTf32Shape {
  static const int threads = 32 * WARPS, keys = 16 * WARPS, pitch = D + 4, ds_pitch = QUERIES + 4;
  static const int v = keys * pitch, q = 2 * v, stage = 2 * QUERIES * pitch; /* a stage: q, dout */
  static const int ds = q + STAGES * stage, rows = ds + keys * ds_pitch;     /* rows: lse, delta of each stage */
  static const int bytes = (rows + STAGES * 2 * QUERIES) * 4;
};

/* One block per tile of keys and head; if causal, the first keys have the most queries, and come first. With two
 * stages, the next q and dout arrive while these are used; with one, while dq is computed. */
template <int D, int WARPS, int QUERIES, int STAGES, int RESIDENT, bool ALIGNED>
static __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    attention_backward_tf32_kernel(float *dq_sums, float *dk, float *dv, const float *q, const float *k, const float *v,
                                   const float *dout, const float *lse, const float *delta, int s, int d, float scale,
                                   bool causal) {
  typedef AttentionBackwardTf32Shape<D, WARPS, QUERIES, STAGES> Shape;
  const int keys = Shape::keys, pitch = Shape::pitch;
  extern __shared__ __align__(16) float attention_backward_tiles[];
  float *k_tile = attention_backward_tiles, *v_tile = k_tile + Shape::v, *stages = k_tile + Shape::q;
  float *ds_tile = k_tile + Shape::ds, *rows = k_tile + Shape::rows;
  int tiles = (s + keys - 1) / keys, heads = gridDim.x / tiles;
  int head = blockIdx.x % heads, key0 = blockIdx.x / heads * keys, warp_key = threadIdx.x / 32 * 16;
  size_t first = (size_t)head * s * d;
  q += first, dout += first, lse += (size_t)head * s, delta += (size_t)head * s;

  float sum_k[D / 8][4] = {}, sum_v[D / 8][4] = {};
  attention_load_async<Shape::keys, D, Shape::threads, ALIGNED>(k_tile, k + first, key0, s, d);
  attention_load_async<Shape::keys, D, Shape::threads, ALIGNED>(v_tile, v + first, key0, s, d);
  int begin = causal ? key0 / QUERIES * QUERIES : 0;
  attention_tf32_load_stage<D, Shape::threads, QUERIES, ALIGNED>(stages, rows, q, dout, lse, delta, begin, s, d);
  for (int query0 = begin, now = 0; query0 < s; query0 += QUERIES, now ^= STAGES - 1) {
    __pipeline_wait_prior(0);
    __syncthreads(); /* q and dout have arrived, and no thread reads ds or the other stage any more */
    int next = query0 + QUERIES;
    const float *q_tile = stages + now * Shape::stage, *dout_tile = q_tile + QUERIES * pitch;
    const float *lse_tile = rows + now * 2 * QUERIES, *delta_tile = lse_tile + QUERIES;
    if (STAGES == 2 && next < s)
      attention_tf32_load_stage<D, Shape::threads, QUERIES, ALIGNED>(
          stages + (now ^ 1) * Shape::stage, rows + (now ^ 1) * 2 * QUERIES, q, dout, lse, delta, next, s, d);
    float p[1][QUERIES / 8][4], ds[1][QUERIES / 8][4];
    attention_tf32_dots<D, QUERIES>(p[0], k_tile + warp_key * pitch, q_tile);
    attention_tf32_dots<D, QUERIES>(ds[0], v_tile + warp_key * pitch, dout_tile);
    bool edge = key0 + keys > s || (causal && key0 + warp_key + 15 > query0);
    attention_backward_weights<1, QUERIES, true>(p, ds, lse_tile, delta_tile, key0 + warp_key, query0, s, scale, causal,
                                                 edge);
    attention_tf32_add_weighted<D, QUERIES>(sum_v, p[0], dout_tile);
    float *put = ds_tile + (warp_key + threadIdx.x % 32 / 4) * Shape::ds_pitch + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < QUERIES / 8; n++) {
      *(float2 *)&put[8 * n] = make_float2(ds[0][n][0], ds[0][n][1]);
      *(float2 *)&put[8 * Shape::ds_pitch + 8 * n] = make_float2(ds[0][n][2], ds[0][n][3]);
    }
    attention_tf32_add_weighted<D, QUERIES>(sum_k, ds[0], q_tile);
    __syncthreads(); /* ds is complete, and no thread reads q and dout any more */
    if (STAGES == 1 && next < s)
      attention_tf32_load_stage<D, Shape::threads, QUERIES, ALIGNED>(stages, rows, q, dout, lse, delta, next, s, d);
    attention_tf32_add_dq<D, Shape::keys, WARPS, QUERIES>(dq_sums, ds_tile, k_tile, head, query0, s);
  }
  const float factor_v[2] = {1, 1}, factor_k[2] = {scale, scale};
  attention_tf32_write<D, ALIGNED>(dv + first, sum_v, factor_v, key0 + warp_key, s, d);
  attention_tf32_write<D, ALIGNED>(dk + first, sum_k, factor_k, key0 + warp_key, s, d);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <int D, int WARPS, int QUERIES, int STAGES, int RESIDENT, bool ALIGNED>
static inline void attention_backward_tf32_run(float *dq_sums, float *dk, float *dv, const float *q, const float *k,
                                               const float *v, const float *lse, const float *delta, const float *dout,
                                               int b, int h, int s, int d, bool causal) {
  typedef AttentionBackwardTf32Shape<D, WARPS, QUERIES, STAGES> Shape;
  shared_limit_ask((const void *)attention_backward_tf32_kernel<D, WARPS, QUERIES, STAGES, RESIDENT, ALIGNED>,
                   Shape::bytes);
  attention_backward_tf32_kernel<D, WARPS, QUERIES, STAGES, RESIDENT, ALIGNED>
      <<<attention_blocks(s, Shape::keys) * b * h, Shape::threads, Shape::bytes>>>(
          dq_sums, dk, dv, q, k, v, dout, lse, delta, s, d, (float)attention_scale(d), causal);
  CUDA_CHECK_LAUNCH();
}

/* dq from dq_sums. */
static inline void attention_backward_tf32_end(float *dq, const float *dq_sums, int b, int h, int s, int d,
                                               int columns) {
  size_t quads = attention_sums_floats(b, h, s, columns) / 4;
  auto *kernel =
      attention_aligned(dq, dq, dq, dq, d) ? attention_tf32_finish_kernel<true> : attention_tf32_finish_kernel<false>;
  kernel<<<attention_blocks(quads, 256), 256>>>(dq, (const float4 *)dq_sums, quads, s, d, columns,
                                                (float)attention_scale(d));
  CUDA_CHECK_LAUNCH();
}

static inline int attention_backward_tf32_columns(int d) { return d <= 64 ? 64 : 128; }

static inline size_t attention_backward_tf32_floats(int b, int h, int s, int d) {
  return attention_sums_floats(b, h, s, attention_backward_tf32_columns(d)) + (size_t)b * h * s;
}

/* `room`: GPU memory, attention_backward_tf32_floats() of it, aligned to 16 bytes. */
static inline void attention_backward_tf32(float *dq, float *dk, float *dv, const float *q, const float *k,
                                           const float *v, const float *o, const float *lse, const float *dout, int b,
                                           int h, int s, int d, bool causal, float *room) {
  int columns = attention_backward_tf32_columns(d);
  size_t rows = (size_t)b * h * s, sums = attention_sums_floats(b, h, s, columns);
  float *dq_sums = room, *delta = room + sums;
  mma_require();
  attention_delta_kernel<<<attention_blocks(rows * 32, 256), 256>>>(delta, dout, o, (int)rows, d);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemsetAsync(dq_sums, 0, sums * sizeof *dq_sums, 0));
  bool aligned = attention_aligned(q, k, v, dout, d) && attention_aligned(dk, dv, dk, dv, d);
  if (d <= 64 && aligned)
    attention_backward_tf32_run<64, 4, 64, 1, 2, true>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d, causal);
  else if (d <= 64)
    attention_backward_tf32_run<64, 4, 64, 1, 2, false>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d, causal);
  else if (d <= 128 && aligned && shared_limit() >= 112 << 10)
    attention_backward_tf32_run<128, 4, 32, 1, 2, true>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d, causal);
  else if (d <= 128)
    attention_backward_tf32_run<128, 2, 32, 1, 1, false>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d,
                                                         causal);
  else
    die("attention: a head of %d columns; at most 128 fit into a thread's registers", d);
  attention_backward_tf32_end(dq, dq_sums, b, h, s, d, columns);
}

static inline void attention_gradients_tf32(float *dq, float *dk, float *dv, const float *q, const float *k,
                                            const float *v, const float *dout, int b, int h, int s, int d,
                                            bool causal) {
  size_t rows = (size_t)b * h * s, room = attention_backward_tf32_floats(b, h, s, d), o_floats = (rows * d + 3) / 4 * 4;
  float *o = attention_workspace(o_floats + room + rows), *lse = o + o_floats + room;
  attention_tf32(o, lse, q, k, v, b, h, s, d, causal);
  attention_backward_tf32(dq, dk, dv, q, k, v, o, lse, dout, b, h, s, d, causal, o + o_floats);
  attention_memory = (o_floats + room + rows) * sizeof *o;
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_TF32_CUH */
