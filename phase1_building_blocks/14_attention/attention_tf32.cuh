/* attention_tf32.cuh - attention (attention.cuh) in float32, on tensor cores.
 *
 * A tensor core takes float32 factors only as tf32, which has 11 bits of the 24. So a factor x is split into two,
 * big + small, which together have about 22 bits, and a product becomes three:
 *
 *     a b = big(a) big(b) + big(a) small(b) + small(a) big(b)        + small(a) small(b), below 2^-22 of it: left out
 *
 * Three products are still faster than one by the float32 units. The error is that of float32, if sums are short: a
 * tensor core truncates what it adds to, where a float32 unit rounds. So a tile's part of a long sum is computed from 0
 * and then added to it by a float32 addition.
 *
 *   attention_tf32              as attention_mma (attention_tensor_core.cuh): a warp has 16 queries; scores become p in
 *                               the registers that the next product takes them from
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
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_TF32_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_TF32_CUH

#include "phase1_building_blocks/14_attention/attention_flash.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core.cuh"

/* x = big + small, both rounded to 11 bits. The tensor core truncates the bits that `small` still has beyond its 11.
 * Rounding must not carry from NaN, of which a GPU sets all bits but the sign, into the sign: that would be -0. */
static __device__ __forceinline__ void attention_split(uint32_t &big, uint32_t &small, float x) {
  big = (__float_as_uint(x) + 0x1000) & 0xFFFFE000;
  small = (uint32_t)min(__float_as_int(x - __uint_as_float(big)), 0x7FFFE000) + 0x1000;
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
  for (int c0 = 0; c0 < D; c0 += 64) {
    float part[COLUMNS / 8][4] = {};
#pragma unroll 2
    for (int c = c0; c < c0 + 64; c += 8) {
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
        attention_tf32_add4(&part[4 * n], big, small, x0, x1);
      }
    }
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) sum[n][e] = c0 == 0 ? part[n][e] : sum[n][e] + part[n][e];
  }
}

/* The lane's elements of b's rows `row` and row + 1 of x, for the four b of 32 columns. */
template <int D>
static __device__ __forceinline__ void attention_tf32_load_rows(float (&x0)[4], float (&x1)[4], const float *x, int row,
                                                                int col) {
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

/* x (s,d) = sum, the rows of a warp from row0 on; row group times factor[0], row group + 8 times factor[1]. */
template <int D, bool ALIGNED>
static __device__ __forceinline__ void attention_tf32_write(float *x, const float (&sum)[D / 8][4],
                                                            const float (&factor)[2], int row0, int s, int d) {
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < D / 8; n += 4)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      float f = factor[e / 2];
      quad_store<ALIGNED>(x, make_float4(f * sum[n][e], f * sum[n + 1][e], f * sum[n + 2][e], f * sum[n + 3][e]),
                          row0 + group + e / 2 * 8, 8 * n + 8 * member + e % 2 * 4, s, d);
    }
}

/* The online softmax, as attention_mma_softmax(), but for huge scores, too (attention_coarse). */
template <int D, int KEYS>
static __device__ __forceinline__ void attention_tf32_softmax(float (&score)[KEYS / 8][4], float (&sum)[D / 8][4],
                                                              float (&largest)[2], float (&total)[2],
                                                              float exponent_scale) {
#pragma unroll
  for (int half = 0; half < 2; half++) { /* row group, row group + 8 */
    float new_largest = largest[half];
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
      new_largest = fmaxf(new_largest, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
    new_largest = fmaxf(new_largest, __shfl_xor_sync(0xFFFFFFFF, new_largest, 1));
    new_largest = fmaxf(new_largest, __shfl_xor_sync(0xFFFFFFFF, new_largest, 2));
    float rescale = attention_exp2((largest[half] - new_largest) * exponent_scale);
    float offset = new_largest * exponent_scale;
    if (fabsf(offset) > attention_coarse) { /* rare */
#pragma unroll
      for (int n = 0; n < KEYS / 8; n++) score[n][2 * half] -= new_largest, score[n][2 * half + 1] -= new_largest;
      offset = 0;
    }
    largest[half] = new_largest;
    total[half] *= rescale;
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; e++)
        total[half] += score[n][e] = attention_exp2(fmaf(score[n][e], exponent_scale, -offset));
#pragma unroll
    for (int n = 0; n < D / 8; n++) sum[n][2 * half] *= rescale, sum[n][2 * half + 1] *= rescale;
  }
}

/* As attention_flash_kernel: V arrives while the scores are computed, the next K while the weighted sums are. */
template <int D, int WARPS, int KEYS, int RESIDENT, bool ALIGNED>
static __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    attention_tf32_kernel(float *o, float *lse, const float *q, const float *k, const float *v, int s, int d,
                          float scale, bool causal) {
  const int threads = 32 * WARPS, rows = 16 * WARPS, pitch = D + 4;
  extern __shared__ __align__(16) float attention_tiles[];
  float *q_tile = attention_tiles, *k_tile = q_tile + rows * pitch, *v_tile = k_tile + KEYS * pitch;
  int head, row0;
  attention_place(rows, s, &head, &row0);
  size_t first = (size_t)head * s * d;
  int warp_row = threadIdx.x / 32 * 16, end = causal ? min(s, row0 + rows) : s; /* keys that a row of the block sees */
  float sum[D / 8][4] = {}, largest[2] = {attention_none, attention_none}, total[2] = {};
  attention_load_async<rows, D, threads, ALIGNED>(q_tile, q + first, row0, s, d);
  attention_load_async<KEYS, D, threads, ALIGNED>(k_tile, k + first, 0, s, d);
  for (int key0 = 0; key0 < end; key0 += KEYS) {
    __pipeline_wait_prior(0);
    __syncthreads(); /* K has arrived, and no thread reads the last V any more */
    attention_load_async<KEYS, D, threads, ALIGNED>(v_tile, v + first, key0, s, d);
    float score[1][KEYS / 8][4];
    attention_tf32_dots<D, KEYS>(score[0], q_tile + warp_row * pitch, k_tile);
    if (key0 + KEYS > s || (causal && key0 + KEYS - 1 > row0 + warp_row)) /* some keys are hidden from some rows */
      attention_mma_mask<1, KEYS>(score, row0 + warp_row, key0, s, causal);
    attention_tf32_softmax<D, KEYS>(score[0], sum, largest, total, scale * attention_log2_e);
    __pipeline_wait_prior(0);
    __syncthreads(); /* V has arrived, and no thread reads K any more */
    if (key0 + KEYS < end) attention_load_async<KEYS, D, threads, ALIGNED>(k_tile, k + first, key0 + KEYS, s, d);
    attention_tf32_add_weighted<D, KEYS>(sum, score[0], v_tile);
  }
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    total[half] += __shfl_xor_sync(0xFFFFFFFF, total[half], 1);
    total[half] += __shfl_xor_sync(0xFFFFFFFF, total[half], 2);
    inverse[half] = 1 / total[half];
    int row = row0 + warp_row + threadIdx.x % 32 / 4 + 8 * half;
    if (threadIdx.x % 4 == 0 && row < s) lse[(size_t)head * s + row] = largest[half] * scale + logf(total[half]);
  }
  attention_tf32_write<D, ALIGNED>(o + first, sum, inverse, row0 + warp_row, s, d);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <int D, int WARPS, int KEYS, int RESIDENT, bool ALIGNED>
static inline void attention_tf32_run(float *o, float *lse, const float *q, const float *k, const float *v, int b,
                                      int h, int s, int d, bool causal) {
  const int rows = 16 * WARPS, shared = (rows + 2 * KEYS) * (D + 4) * (int)sizeof(float);
  attention_memory = 0;
  shared_limit_ask((const void *)attention_tf32_kernel<D, WARPS, KEYS, RESIDENT, ALIGNED>, shared);
  attention_tf32_kernel<D, WARPS, KEYS, RESIDENT, ALIGNED><<<attention_blocks(s, rows) * b * h, 32 * WARPS, shared>>>(
      o, lse, q, k, v, s, d, (float)attention_scale(d), causal);
  CUDA_CHECK_LAUNCH();
}

template <int D, int WARPS, int KEYS, int RESIDENT>
static inline void attention_tf32_launch(float *o, float *lse, const float *q, const float *k, const float *v, int b,
                                         int h, int s, int d, bool causal) {
  if (attention_aligned(o, q, k, v, d))
    attention_tf32_run<D, WARPS, KEYS, RESIDENT, true>(o, lse, q, k, v, b, h, s, d, causal);
  else
    attention_tf32_run<D, WARPS, KEYS, RESIDENT, false>(o, lse, q, k, v, b, h, s, d, causal);
}

static inline void attention_tf32(float *o, float *lse, const float *q, const float *k, const float *v, int b, int h,
                                  int s, int d, bool causal) {
  mma_require();
  if (d <= 64)
    attention_tf32_launch<64, 4, 64, 2>(o, lse, q, k, v, b, h, s, d, causal);
  else if (d <= 128)
    attention_tf32_launch<128, 4, 32, 2>(o, lse, q, k, v, b, h, s, d, causal);
  else
    die("attention: a head of %d columns; at most 128 fit into a thread's registers", d);
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_TF32_CUH */
