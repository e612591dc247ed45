/* attention_backward_tf32.cuh - the gradients of attention (attention_backward.cuh) in float32, on tensor cores.
 *
 * A tensor core takes float32 factors only as tf32, which has 11 bits of the 24. So a factor x is split into two,
 * big + small, which together have about 22 bits, and a product becomes three:
 *
 *     a b = big(a) big(b) + big(a) small(b) + small(a) big(b)        + small(a) small(b), below 2^-22 of it: left out
 *
 * Three products are still faster than one by the float32 units. The error is that of float32, if sums are short: a
 * tensor core truncates what it adds to, where a float32 unit rounds. So a tile's part of dk and dv is computed from 0
 * and then added to the sum by a float32 addition.
 *
 *   attention_backward_tf32     five products per pair of tiles, of three each (attention_backward_sums.cuh)
 *
 * A register of mma.sync with tf32 is one element. Lane l has group l / 4 and member l % 4:
 *     a, 4 registers (16 x 8):  rows group, group + 8 at column member; then the same rows at column member + 4
 *     b, 2 registers (8 x 8):   rows member, member + 4 of column group
 *     d, 4 floats (16 x 8):     row group at columns 2 * member, + 1; then row group + 8
 * So a lane's d are not the elements it needs as an a, but which of the 8 columns is called member and which member + 4
 * is free, if b's rows are named alike: here 2 * member and 2 * member + 1. The same freedom with b's columns: four b
 * side by side are not columns 0-7, 8-15, ... of 32 but every fourth one, so that a lane loads 16 bytes at a time.
 *
 * Factors of 3e38 and above, and infinite ones, give NaN.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_TF32_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_TF32_CUH

#include "phase1_building_blocks/14_attention/attention_backward_sums.cuh"

/* x = big + small: big is x rounded to 11 bits. The tensor core truncates the bits of `small` beyond its 11. */
static __device__ __forceinline__ void attention_split(uint32_t &big, uint32_t &small, float x) {
  big = (__float_as_uint(x) + 0x1000) & 0xFFFFE000;
  small = __float_as_uint(x - __uint_as_float(big));
}

/* mma.sync: d (16,8) += a (16,8) b (8,8), tf32 factors, float32 sums. */
static __device__ MMA_INLINE void attention_mma_16x8x8(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                       uint32_t b1) {
#ifdef SIMT_REWRITTEN
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  for (int k = 0; k < 8; k++) {
    float left[2], right[2];
    for (int i = 0; i < 2; i++) {
      left[i] = __uint_as_float(__shfl_sync(0xFFFFFFFF, a[i + k / 4 * 2], 4 * group + k % 4) & 0xFFFFE000);
      right[i] = __uint_as_float(__shfl_sync(0xFFFFFFFF, k / 4 ? b1 : b0, 4 * (2 * member + i) + k % 4) & 0xFFFFE000);
    }
    for (int i = 0; i < 4; i++) d[i] += left[i / 2] * right[i % 2];
  }
#elif defined MMA_BFLOAT16
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* sum[0 ... 3] += a times four b side by side, in float32: x0, x1 are this lane's elements of b's two rows. The three
 * products of one sum follow each other at a distance, since each waits for the one before. */
static __device__ __forceinline__ void attention_tf32_add4(float (*sum)[4], const uint32_t (&a_big)[4],
                                                           const uint32_t (&a_small)[4], const float (&x0)[4],
                                                           const float (&x1)[4]) {
  uint32_t b_big[4][2], b_small[4][2];
#pragma unroll
  for (int n = 0; n < 4; n++) {
    attention_split(b_big[n][0], b_small[n][0], x0[n]);
    attention_split(b_big[n][1], b_small[n][1], x1[n]);
  }
#pragma unroll
  for (int n = 0; n < 4; n++) attention_mma_16x8x8(sum[n], a_small, b_big[n][0], b_big[n][1]);
#pragma unroll
  for (int n = 0; n < 4; n++) attention_mma_16x8x8(sum[n], a_big, b_small[n][0], b_small[n][1]);
#pragma unroll
  for (int n = 0; n < 4; n++) attention_mma_16x8x8(sum[n], a_big, b_big[n][0], b_big[n][1]);
}

/* ldmatrix moves 16 bytes of 8 rows: 8 x 4 floats, of which lane l gets row group, column member. */
static __device__ __forceinline__ void attention_tf32_load_matrices(float (&x)[4], const float *row) {
  uint32_t bits[4];
  mma_load_matrices<false>(bits, (const __nv_bfloat16 *)row);
#pragma unroll
  for (int i = 0; i < 4; i++) x[i] = __uint_as_float(bits[i]);
}

/* sum (16,COLUMNS) = the warp's rows of left (16,D) times right (COLUMNS,D) transposed. */
template <int D, int COLUMNS>
static __device__ __forceinline__ void attention_tf32_dots(float (&sum)[COLUMNS / 8][4], const float *left,
                                                           const float *right) {
  const int pitch = D + 4;
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) sum[n][e] = 0;
#pragma unroll 2
  for (int c = 0; c < D; c += 8) {
    float row[4];
    uint32_t big[4], small[4];
    attention_tf32_load_matrices(row, &left[lane % 16 * pitch + c + lane / 16 * 4]);
#pragma unroll
    for (int i = 0; i < 4; i++) attention_split(big[i], small[i], row[i]);
#pragma unroll
    for (int n = 0; n < COLUMNS / 32; n++) {
      float x[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++) /* 16 rows of `right`: both of b's, 8 x 4, of two b */
        attention_tf32_load_matrices(
            x[i], &right[(32 * n + 16 * i + lane / 16 * 8 + lane % 8) * pitch + c + lane / 8 % 2 * 4]);
      const float x0[4] = {x[0][0], x[0][2], x[1][0], x[1][2]}, x1[4] = {x[0][1], x[0][3], x[1][1], x[1][3]};
      attention_tf32_add4(&sum[4 * n], big, small, x0, x1);
    }
  }
}

/* The lane's elements of b's rows `row` and row + 1 of x, for the four b of 32 columns. */
template <int D>
static __device__ __forceinline__ void attention_tf32_load_rows(float (&x0)[4], float (&x1)[4], const float *x,
                                                                int row, int col) {
  float4 a = *(const float4 *)&x[row * (D + 4) + col], b = *(const float4 *)&x[(row + 1) * (D + 4) + col];
  x0[0] = a.x, x0[1] = a.y, x0[2] = a.z, x0[3] = a.w;
  x1[0] = b.x, x1[1] = b.y, x1[2] = b.z, x1[3] = b.w;
}

/* sum (16,D) += weight (16,QUERIES) times x (QUERIES,D). Of each 32 columns c of a row the lane has, in the order of
 * the memory, 8 * member ... + 7: elements 0 of four d, then their elements 1. */
template <int D, int QUERIES>
static __device__ __forceinline__ void attention_tf32_add_weighted(float (&sum)[D / 8][4],
                                                                   const float (&weight)[QUERIES / 8][4],
                                                                   const float *x) {
  const int columns = D > 64 ? 32 : D; /* at a time, for want of registers */
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int c = 0; c < D; c += columns) {
    float part[columns / 8][4] = {};
#pragma unroll
    for (int k = 0; k < QUERIES / 8; k++) {
      uint32_t big[4], small[4];
      attention_split(big[0], small[0], weight[k][0]);
      attention_split(big[1], small[1], weight[k][2]);
      attention_split(big[2], small[2], weight[k][1]);
      attention_split(big[3], small[3], weight[k][3]);
#pragma unroll
      for (int n = 0; n < columns / 32; n++) {
        float x0[4], x1[4];
        attention_tf32_load_rows<D>(x0, x1, x, 8 * k + 2 * member, c + 32 * n + 4 * group);
        attention_tf32_add4(&part[4 * n], big, small, x0, x1);
      }
    }
#pragma unroll
    for (int n = 0; n < columns / 8; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) sum[c / 8 + n][e] += part[n][e];
  }
}

/* dq += scale * ds k, for the block's QUERIES queries: atomic additions. A warp has 16 of them, and some of the
 * columns. */
template <int D, int KEYS, int WARPS, int QUERIES, bool ALIGNED>
static __device__ __forceinline__ void attention_tf32_add_dq(float *dq, const float *ds_tile, const float *k_tile,
                                                             float scale, int query0, int s, int d) {
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
#pragma unroll
  for (int n = 0; n < columns / 8; n += 4)
#pragma unroll
    for (int e = 0; e < 4; e++) { /* columns 8 * member ... + 3, then + 4 ... + 7; then row group + 8 */
      int this_row = query0 + row + group + e / 2 * 8, this_col = col + 8 * n + 8 * member + e % 2 * 4;
      float *to = dq + (size_t)this_row * d + this_col;
      const float x[4] = {scale * sum[n][e], scale * sum[n + 1][e], scale * sum[n + 2][e], scale * sum[n + 3][e]};
      if (this_row >= s) continue;
      if (ALIGNED && this_col < d) attention_add_quad(to, make_float4(x[0], x[1], x[2], x[3]));
      if (!ALIGNED)
        for (int i = 0; i < 4 && this_col + i < d; i++) atomicAdd(to + i, x[i]);
    }
}

/* x (s,d) = factor * sum, the rows of a warp from row0 on. */
template <int D, bool ALIGNED>
static __device__ __forceinline__ void attention_tf32_write(float *x, const float (&sum)[D / 8][4], float factor,
                                                            int row0, int s, int d) {
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < D / 8; n += 4)
#pragma unroll
    for (int e = 0; e < 4; e++)
      quad_store<ALIGNED>(
          x, make_float4(factor * sum[n][e], factor * sum[n + 1][e], factor * sum[n + 2][e], factor * sum[n + 3][e]),
          row0 + group + e / 2 * 8, 8 * n + 8 * member + e % 2 * 4, s, d);
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
    attention_backward_tf32_kernel(float *dq, float *dk, float *dv, const float *q, const float *k, const float *v,
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
  q += first, dout += first, dq += first, lse += (size_t)head * s, delta += (size_t)head * s;

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
      attention_tf32_load_stage<D, Shape::threads, QUERIES, ALIGNED>(stages + (now ^ 1) * Shape::stage,
                                                                     rows + (now ^ 1) * 2 * QUERIES, q, dout, lse,
                                                                     delta, next, s, d);
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
    attention_tf32_add_dq<D, Shape::keys, WARPS, QUERIES, ALIGNED>(dq, ds_tile, k_tile, scale, query0, s, d);
  }
  attention_tf32_write<D, ALIGNED>(dv + first, sum_v, 1, key0 + warp_key, s, d);
  attention_tf32_write<D, ALIGNED>(dk + first, sum_k, scale, key0 + warp_key, s, d);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <int D, int WARPS, int QUERIES, int STAGES, int RESIDENT, bool ALIGNED>
static inline void attention_backward_tf32_run(float *dq, float *dk, float *dv, const float *q, const float *k,
                                               const float *v, const float *lse, const float *delta, const float *dout,
                                               int b, int h, int s, int d, bool causal) {
  typedef AttentionBackwardTf32Shape<D, WARPS, QUERIES, STAGES> Shape;
  shared_limit_ask((const void *)attention_backward_tf32_kernel<D, WARPS, QUERIES, STAGES, RESIDENT, ALIGNED>,
                   Shape::bytes);
  attention_backward_tf32_kernel<D, WARPS, QUERIES, STAGES, RESIDENT, ALIGNED>
      <<<attention_blocks(s, Shape::keys) * b * h, Shape::threads, Shape::bytes>>>(
          dq, dk, dv, q, k, v, dout, lse, delta, s, d, (float)attention_scale(d), causal);
  CUDA_CHECK_LAUNCH();
}

template <int D, int WARPS, int QUERIES, int STAGES, int RESIDENT>
static inline void attention_backward_tf32_launch(float *dq, float *dk, float *dv, const float *q, const float *k,
                                                  const float *v, const float *lse, const float *delta,
                                                  const float *dout, int b, int h, int s, int d, bool causal) {
  if (attention_aligned(q, k, v, dout, d) && attention_aligned(dq, dk, dv, dq, d))
    attention_backward_tf32_run<D, WARPS, QUERIES, STAGES, RESIDENT, true>(dq, dk, dv, q, k, v, lse, delta, dout, b, h,
                                                                           s, d, causal);
  else
    attention_backward_tf32_run<D, WARPS, QUERIES, STAGES, RESIDENT, false>(dq, dk, dv, q, k, v, lse, delta, dout, b, h,
                                                                            s, d, causal);
}

/* `room`: GPU memory, attention_backward_flash_floats() of it. */
static inline void attention_backward_tf32(float *dq, float *dk, float *dv, const float *q, const float *k,
                                           const float *v, const float *o, const float *lse, const float *dout, int b,
                                           int h, int s, int d, bool causal, float *room) {
  size_t rows = (size_t)b * h * s;
  mma_require();
  attention_delta_kernel<<<attention_blocks(rows * 32, 256), 256>>>(room, dout, o, (int)rows, d);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemsetAsync(dq, 0, rows * d * sizeof *dq, 0));
  if (d <= 64)
    attention_backward_tf32_launch<64, 4, 64, 1, 2>(dq, dk, dv, q, k, v, lse, room, dout, b, h, s, d, causal);
  else if (d <= 128 && shared_limit() >= 112 << 10)
    attention_backward_tf32_launch<128, 4, 32, 1, 2>(dq, dk, dv, q, k, v, lse, room, dout, b, h, s, d, causal);
  else if (d <= 128)
    attention_backward_tf32_launch<128, 2, 32, 1, 1>(dq, dk, dv, q, k, v, lse, room, dout, b, h, s, d, causal);
  else
    die("attention: a head of %d columns; at most 128 fit into a thread's registers", d);
}

static inline void attention_gradients_tf32(float *dq, float *dk, float *dv, const float *q, const float *k,
                                            const float *v, const float *dout, int b, int h, int s, int d,
                                            bool causal) {
  size_t rows = (size_t)b * h * s, room = attention_backward_flash_floats(b, h, s);
  float *o = attention_workspace(rows * (d + 1) + room), *lse = o + rows * d;
  attention_flash(o, lse, q, k, v, b, h, s, d, causal);
  attention_backward_tf32(dq, dk, dv, q, k, v, o, lse, dout, b, h, s, d, causal, lse + rows);
  attention_memory = (rows * (d + 1) + room) * sizeof *o;
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_TF32_CUH */
