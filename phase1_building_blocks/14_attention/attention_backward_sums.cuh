/* attention_backward_sums.cuh - what the backward kernels on tensor cores have in common: five products per pair of
 * tiles, and dq added up by all blocks.
 *
 * attention_backward_flash() computes scores and dp twice, since the block that owns keys cannot own a query's dq. Here
 * a block owns keys, goes through the queries, and adds its part of dq to the sums of all blocks by atomic additions.
 * These are the 5 products that are necessary. The order of the additions varies, and the last bits of dq with it; dk
 * and dv have one owner each, and the same bits in every run.
 *
 * Tiles of scores are transposed, keys as rows: then p and ds are in the registers that mma.sync and wgmma take as the
 * left operand of dv += p^T dout and dk += ds^T q. Only ds goes through shared memory, for dq += ds k, whose sum runs
 * over the keys of all warps.
 *
 * `dq_sums` need not be row-major. It is stored as the lanes hold it, so that an addition is 16 bytes per lane and 512
 * contiguous bytes per warp: tiles of 16 x 8, of each head row by row, and of each tile the four elements of lane 0,
 * then of lane 1 ... Lane l has group l / 4, member l % 4, and the elements of row group at columns 2 * member, + 1,
 * and of row group + 8 (mma.cuh). A last kernel brings them in order.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_SUMS_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_SUMS_CUH

#include "phase1_building_blocks/14_attention/attention_backward.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core.cuh"

/* Adds x to the four floats at `to`, aligned to 16 bytes. Compute capability 9.0 does it in one instruction. */
static __device__ __forceinline__ void attention_add_quad(float *to, float4 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  atomicAdd((float4 *)to, x);
#else
  atomicAdd(to, x.x), atomicAdd(to + 1, x.y), atomicAdd(to + 2, x.z), atomicAdd(to + 3, x.w);
#endif
}

/* Floats of dq_sums; `columns` is d rounded up to the D of the kernel. */
static inline size_t attention_sums_floats(int b, int h, int s, int columns) {
  return (size_t)b * h * ((s + 15) / 16 * 16) * columns;
}

/* The sums of 16 x 8 elements of a head: row16 and col8 are counted in tiles. */
static __device__ __forceinline__ float *attention_sums_tile(float *dq_sums, int head, int row16, int col8, int s,
                                                             int columns) {
  size_t tiles = (size_t)head * ((s + 15) / 16) + row16;
  return dq_sums + (tiles * (columns / 8) + col8) * 128;
}

/* A warp's p^T and ds^T from its scores and dp: in p (16 TM,QUERIES) scores become p = exp(scale * score - lse), in ds
 * dp becomes p (dp - delta). lse, delta: of these queries, in shared memory; beyond the last query they are infinite
 * and 0, so that p and ds are 0. key0, query0: of the warp's first row, first column. `edge`: some keys are beyond the
 * last one or, if causal, after the query. CAREFUL: scores may be huge (attention_coarse). */
template <int TM, int QUERIES, bool CAREFUL>
static __device__ __forceinline__ void attention_backward_weights(float (&p)[TM][QUERIES / 8][4],
                                                                  float (&ds)[TM][QUERIES / 8][4], const float *lse,
                                                                  const float *delta, int key0, int query0, int s,
                                                                  float scale, bool causal, bool edge) {
  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  float exponent_scale = scale * attention_log2_e;
#pragma unroll
  for (int n = 0; n < QUERIES / 8; n++) {
    float2 two = *(const float2 *)&lse[8 * n + 2 * member], mean = *(const float2 *)&delta[8 * n + 2 * member];
    const float row_lse[2] = {two.x, two.y}, minus[2] = {mean.x, mean.y};
    float offset[2] = {two.x * attention_log2_e, two.y * attention_log2_e};
#pragma unroll
    for (int half = 0; half < 2; half++)
      if (CAREFUL && fabsf(offset[half]) > attention_coarse && fabsf(offset[half]) < INFINITY) { /* rare */
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
          for (int e = half; e < 4; e += 2)
            p[i][n][e] = (attention_score(p[i][n][e], scale, row_lse[half]) - row_lse[half]) / scale;
        offset[half] = 0;
      }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        float weight = attention_exp2(fmaf(p[i][n][e], exponent_scale, -offset[e % 2]));
        if (edge) {
          int key = key0 + 16 * i + group + e / 2 * 8, query = query0 + 8 * n + 2 * member + e % 2;
          if (key >= s || (causal && key > query)) weight = 0;
        }
        p[i][n][e] = weight;
        ds[i][n][e] = weight * (ds[i][n][e] - minus[e % 2]);
      }
  }
}

/* lse and delta of queries query0 ... to shared memory, with cp.async; the caller commits. */
template <int QUERIES>
static __device__ __forceinline__ void attention_backward_load_rows(float *lse_tile, float *delta_tile,
                                                                    const float *lse, const float *delta, int query0,
                                                                    int s) {
  int i = threadIdx.x;
  if (i >= QUERIES) return;
  if (query0 + i < s) {
    __pipeline_memcpy_async(&lse_tile[i], &lse[query0 + i], sizeof(float));
    __pipeline_memcpy_async(&delta_tile[i], &delta[query0 + i], sizeof(float));
  } else {
    lse_tile[i] = INFINITY;
    delta_tile[i] = 0;
  }
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_SUMS_CUH */
