/* attention_backward_wgmma.cuh - the gradients of attention in bfloat16 with Hopper's instructions: wgmma and TMA
 * (lesson 15; hopper.cuh).
 *
 *   attention_backward_wgmma    the five products of attention_backward_sums.cuh, as wgmma
 *
 * A block has 128 keys, 64 per consumer warpgroup, and goes through the queries. A producer warp brings the tiles of q
 * and dout, with lse and delta, into a ring of stages. Where the operands of a product (M,K) (K,N) are:
 *
 *     score^T (64 keys,queries)  = k q^T          both in shared memory, along K
 *     dp^T (64 keys,queries)     = v dout^T       likewise
 *     dv (64 keys,D)            += p^T dout       p^T in the registers that held the scores; dout along N
 *     dk (64 keys,D)            += ds^T q         likewise
 *     dq (64 queries,64)         = ds k           ds in shared memory, written by both warpgroups: along M; k along N
 *
 * So each tile is loaded once and read along both of its dimensions: the descriptor of the operand says which. A
 * thread's accumulators are laid out as those of mma.sync, for 16 rows per warp (mma.cuh).
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_WGMMA_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_WGMMA_CUH

#include "phase1_building_blocks/14_attention/attention_backward_mma.cuh"
#include "phase1_building_blocks/14_attention/attention_wgmma.cuh"

enum { ATTENTION_BACKWARD_KEYS = 128, ATTENTION_BACKWARD_THREADS = 3 * 128 };

/* Tiles are panels of 64 columns: rows of 128 bytes with the 128-byte swizzle. Offsets and sizes in bytes. */
template <int D, int QUERIES, int STAGES>
struct AttentionBackwardWgmmaShape {
  static const int k_bytes = ATTENTION_BACKWARD_KEYS * D * 2, q_bytes = QUERIES * D * 2;
  static const int v = k_bytes, stages = 2 * k_bytes, stage = 2 * q_bytes; /* a stage: q, dout */
  static const int ds = stages + STAGES * stage, ds_bytes = ATTENTION_BACKWARD_KEYS * QUERIES * 2; /* twice */
  static const int rows = ds + 2 * ds_bytes, rows_bytes = 2 * QUERIES * 4; /* per stage: -lse log2(e), delta */
  static const int bytes = rows + STAGES * rows_bytes + 1024;              /* to begin at a multiple of 1024 */
};

#ifdef HOPPER_COMPILED

/* Starts sum (64,QUERIES) = left (64 of the keys,D) right (QUERIES,D) transposed. */
template <int D, int QUERIES>
static __device__ __forceinline__ void attention_backward_start_dots(float (&sum)[QUERIES / 2], uint32_t left,
                                                                     uint32_t right) {
#pragma unroll
  for (int c = 0; c < D; c += 16)
    wgmma_bfloat16<WGMMA_K_MAJOR>(sum,
                                  wgmma_descriptor(left + c / 64 * ATTENTION_BACKWARD_KEYS * 128 + c % 64 * 2, 1024, 0),
                                  wgmma_descriptor(right + c / 64 * QUERIES * 128 + c % 64 * 2, 1024, 0), c > 0);
  wgmma_commit();
}

/* Starts sum (64 keys,D) += weight (64 keys,QUERIES) x (QUERIES,D); without `add` it is overwritten. */
template <int D, int QUERIES>
static __device__ __forceinline__ void attention_backward_start_weighted(float (&sum)[D / 2],
                                                                         const uint32_t (&weight)[QUERIES / 16][4],
                                                                         uint32_t x, int add) {
#pragma unroll
  for (int i = 0; i < QUERIES; i += 16)
    wgmma_bfloat16_registers<WGMMA_N_MAJOR>(sum, weight[i / 16], wgmma_descriptor(x + i * 128, 1024, QUERIES * 128),
                                            add || i > 0);
  wgmma_commit();
}

/* Starts dq (64 queries,64) = ds (keys,64 queries) transposed, times k (keys,64). */
static __device__ __forceinline__ void attention_backward_start_dq(float (&dq)[32], uint32_t ds, uint32_t k) {
#pragma unroll
  for (int key = 0; key < ATTENTION_BACKWARD_KEYS; key += 16)
    wgmma_bfloat16<WGMMA_N_MAJOR, WGMMA_N_MAJOR>(dq, wgmma_descriptor(ds + key * 128, 1024, 0),
                                                 wgmma_descriptor(k + key * 128, 1024, 0), key > 0);
  wgmma_commit();
}

/* Scores become p. offset: -lse log2(e) of the tile's queries. */
template <int QUERIES>
static __device__ __forceinline__ void attention_backward_p(float (&score)[QUERIES / 2], const float *offset, int key0,
                                                            int query0, int s, float exponent_scale, bool causal,
                                                            bool edge) {
  int key = key0 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < QUERIES / 8; n++) {
    float2 two = *(const float2 *)&offset[8 * n + 2 * member];
#pragma unroll
    for (int e = 0; e < 4; e++)
      score[4 * n + e] = attention_exp2(fmaf(score[4 * n + e], exponent_scale, e % 2 ? two.y : two.x));
  }
  if (!edge) return;
#pragma unroll
  for (int i = 0; i < QUERIES / 2; i++) {
    int this_key = key + i / 2 % 2 * 8, query = query0 + i / 4 * 8 + 2 * member + i % 2;
    if (this_key >= s || (causal && this_key > query)) score[i] = 0;
  }
}

template <int N>
static __device__ __forceinline__ void attention_backward_pack(uint32_t (&packed)[N / 8][4], const float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N / 2; i++) packed[i / 4][i % 4] = attention_pack(x[2 * i], x[2 * i + 1]);
}

/* dp becomes ds = p (dp - delta), with p rounded to bfloat16. */
template <int QUERIES>
static __device__ __forceinline__ void attention_backward_ds(float (&dp)[QUERIES / 2],
                                                             const uint32_t (&p)[QUERIES / 16][4], const float *delta) {
  int member = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < QUERIES / 8; n++) {
    float2 two = *(const float2 *)&delta[8 * n + 2 * member];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint32_t pair = p[n / 2][n % 2 * 2 + half];
      float *x = &dp[4 * n + 2 * half];
      x[0] = __uint_as_float(pair << 16) * (x[0] - two.x);
      x[1] = __uint_as_float(pair & 0xFFFF0000) * (x[1] - two.y);
    }
  }
}

/* The warpgroup's 64 rows of ds^T to shared memory: panels of 64 queries, the 16 bytes c of row r at c ^ r % 8. */
template <int QUERIES>
static __device__ __forceinline__ void attention_backward_put(unsigned char *ds_tile, int key0,
                                                              const uint32_t (&ds)[QUERIES / 16][4]) {
  int row = key0 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4, member = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < QUERIES / 8; n++) {
    unsigned char *to = ds_tile + n / 8 * ATTENTION_BACKWARD_KEYS * 128 + row * 128 + ((n % 8) ^ (row % 8)) * 16;
    *(uint32_t *)(to + 4 * member) = ds[n / 2][n % 2 * 2];
    *(uint32_t *)(to + 8 * 128 + 4 * member) = ds[n / 2][n % 2 * 2 + 1];
  }
}

/* dq (64,64) of a warpgroup to dq_sums: rows query0 ..., columns col0 ... of `columns` */
static __device__ __forceinline__ void attention_backward_add_dq(float *dq_sums, const float (&dq)[32], int head,
                                                                 int query0, int col0, int s, int columns) {
  int row16 = query0 / 16 + threadIdx.x / 32 % 4;
  if (16 * row16 >= s) return;
  float *to = attention_sums_tile(dq_sums, head, row16, col0 / 8, s, columns) + threadIdx.x % 32 * 4;
#pragma unroll
  for (int n = 0; n < 8; n++)
    attention_add_quad(to + 128 * n, make_float4(dq[4 * n], dq[4 * n + 1], dq[4 * n + 2], dq[4 * n + 3]));
}

/* x (s,d) = factor * sum (64,D), rows row0 ... */
template <int D>
static __device__ __forceinline__ void attention_backward_write(__nv_bfloat16 *x, const float (&sum)[D / 2],
                                                                float factor, int row0, int s, int d) {
  int row = row0 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
  for (int half = 0; half < 2; half++, row += 8)
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
      int col = 8 * n + threadIdx.x % 4 * 2;
      if (row < s && col < d)
        *(uint32_t *)&x[(size_t)row * d + col] =
            attention_pack(factor * sum[4 * n + 2 * half], factor * sum[4 * n + 2 * half + 1]);
    }
}

/* One warp: lane 0 starts the copies, all lanes bring lse and delta. */
template <int D, int QUERIES, int STAGES>
static __device__ __forceinline__ void attention_backward_produce(uint32_t tiles, float *rows, uint32_t full,
                                                                  uint32_t empty, uint32_t keys_full,
                                                                  const CUtensorMap *q_map, const CUtensorMap *k_map,
                                                                  const CUtensorMap *v_map, const CUtensorMap *dout_map,
                                                                  const float *lse, const float *delta, int head,
                                                                  int key0, int begin, int s) {
  typedef AttentionBackwardWgmmaShape<D, QUERIES, STAGES> Shape;
  int lane = threadIdx.x;
  if (lane == 0) {
    mbarrier_arrive_expect(keys_full, 2 * Shape::k_bytes);
    for (int c = 0; c < D / 64; c++) {
      uint32_t to = tiles + c * ATTENTION_BACKWARD_KEYS * 128;
      tma_load_3d(to, k_map, 64 * c, key0, head, keys_full);
      tma_load_3d(to + Shape::v, v_map, 64 * c, key0, head, keys_full);
    }
  }
  int stage = 0;
  uint32_t phase = 1;
  for (int query0 = begin; query0 < s; query0 += QUERIES) {
    mbarrier_wait(empty + 8 * stage, phase);
    if (lane == 0) {
      mbarrier_arrive_expect(full + 8 * stage, Shape::stage);
      for (int c = 0; c < D / 64; c++) {
        uint32_t to = tiles + Shape::stages + stage * Shape::stage + c * QUERIES * 128;
        tma_load_3d(to, q_map, 64 * c, query0, head, full + 8 * stage);
        tma_load_3d(to + Shape::q_bytes, dout_map, 64 * c, query0, head, full + 8 * stage);
      }
    }
    float *offset = rows + stage * 2 * QUERIES, *mean = offset + QUERIES;
    for (int i = lane; i < QUERIES; i += 32) {
      bool inside = query0 + i < s;
      offset[i] = inside ? -attention_log2_e * lse[query0 + i] : -INFINITY; /* p = 0 beyond the last query */
      mean[i] = inside ? delta[query0 + i] : 0;
    }
    __syncwarp();
    if (lane == 0) mbarrier_arrive(full + 8 * stage);
    if (++stage == STAGES) stage = 0, phase ^= 1;
  }
}

static __device__ __forceinline__ void attention_backward_release(uint32_t barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive(barrier);
}

/* A consumer warpgroup, with 64 of the keys. Products are started as early as possible: the tensor cores compute dp
 * during the exponentials, dv during ds, and dk during the additions to dq and the next scores. */
template <int D, int QUERIES, int STAGES>
static __device__ __forceinline__ void attention_backward_consume(unsigned char *tiles, uint32_t full, uint32_t empty,
                                                                  uint32_t keys_full, float *dq_sums, __nv_bfloat16 *dk,
                                                                  __nv_bfloat16 *dv, int head, int key0, int begin,
                                                                  int s, int d, float scale, bool causal) {
  typedef AttentionBackwardWgmmaShape<D, QUERIES, STAGES> Shape;
  int me = threadIdx.x / 128 - 1, stage = 0;
  uint32_t phase = 0, k_tile = shared_address(tiles), mine = k_tile + me * 64 * 128;
  /* its part of dq, 64 x 64: of 128 queries the first or the last, of 64 queries the first columns or the last */
  int dq_row = QUERIES == 128 ? 64 * me : 0, dq_col = QUERIES == 128 ? 0 : 64 * me;
  float sum_k[D / 2], sum_v[D / 2]; /* not cleared: no other instruction than wgmma may write them while one runs */
  uint32_t p[QUERIES / 16][4], ds[QUERIES / 16][4];
  mbarrier_wait(keys_full, 0);
  for (int query0 = begin, now = 0; query0 < s; query0 += QUERIES, now ^= 1) {
    uint32_t q_tile = k_tile + Shape::stages + stage * Shape::stage, dout_tile = q_tile + Shape::q_bytes;
    const float *offset = (const float *)(tiles + Shape::rows + stage * Shape::rows_bytes);
    float score[QUERIES / 2], dp[QUERIES / 2], dq[32];
    mbarrier_wait(full + 8 * stage, phase);
    wgmma_fence();
    attention_backward_start_dots<D, QUERIES>(score, mine, q_tile);
    wgmma_wait<1>(); /* dk of the tile before is complete: p, ds and its stage are free */
    attention_wgmma_settle(p);
    attention_wgmma_settle(ds);
    if (query0 > begin) attention_backward_release(empty + 8 * (stage == 0 ? STAGES - 1 : stage - 1));
    wgmma_fence();
    attention_backward_start_dots<D, QUERIES>(dp, mine + Shape::v, dout_tile);
    bool edge = key0 + ATTENTION_BACKWARD_KEYS > s || (causal && key0 + 64 * me + 63 > query0);
    wgmma_wait<1>();
    attention_wgmma_settle(score);
    attention_backward_p<QUERIES>(score, offset, key0 + 64 * me, query0, s, scale * attention_log2_e, causal, edge);
    attention_backward_pack(p, score);
    attention_wgmma_settle(p);
    wgmma_fence();
    attention_backward_start_weighted<D, QUERIES>(sum_v, p, dout_tile, query0 > begin);
    wgmma_wait<1>();
    attention_wgmma_settle(dp);
    attention_backward_ds<QUERIES>(dp, p, offset + QUERIES);
    attention_backward_pack(ds, dp);
    unsigned char *ds_tile = tiles + Shape::ds + now * Shape::ds_bytes;
    attention_backward_put<QUERIES>(ds_tile, 64 * me, ds);
    tma_proxy_fence();          /* wgmma is to read ds */
    named_barrier_sync(1, 256); /* both warpgroups' ds. The next one goes to the other tile: one barrier is enough */
    attention_wgmma_settle(ds);
    wgmma_fence();
    attention_backward_start_dq(dq, shared_address(ds_tile) + dq_row / 64 * ATTENTION_BACKWARD_KEYS * 128,
                                k_tile + dq_col / 64 * ATTENTION_BACKWARD_KEYS * 128);
    attention_backward_start_weighted<D, QUERIES>(sum_k, ds, q_tile, query0 > begin);
    wgmma_wait<1>();
    attention_wgmma_settle(dq);
    attention_backward_add_dq(dq_sums, dq, head, query0 + dq_row, dq_col, s, D);
    if (++stage == STAGES) stage = 0, phase ^= 1;
  }
  wgmma_wait<0>();
  attention_wgmma_settle(sum_k);
  attention_wgmma_settle(sum_v);
  size_t first = (size_t)head * s * d;
  attention_backward_write<D>(dv + first, sum_v, 1, key0 + 64 * me, s, d);
  attention_backward_write<D>(dk + first, sum_k, scale, key0 + 64 * me, s, d);
}
#endif

/* One block per 128 keys and head; if causal, the first keys have the most queries, and come first. */
template <int D, int QUERIES, int STAGES>
static __global__ void __launch_bounds__(ATTENTION_BACKWARD_THREADS, 1)
    attention_backward_wgmma_kernel(const __grid_constant__ CUtensorMap q_map,
                                    const __grid_constant__ CUtensorMap k_map,
                                    const __grid_constant__ CUtensorMap v_map,
                                    const __grid_constant__ CUtensorMap dout_map, float *dq_sums, __nv_bfloat16 *dk,
                                    __nv_bfloat16 *dv, const float *lse, const float *delta, int heads, int s, int d,
                                    float scale, bool causal) {
#ifdef HOPPER_COMPILED
  typedef AttentionBackwardWgmmaShape<D, QUERIES, STAGES> Shape;
  extern __shared__ unsigned char attention_backward_shared[];
  __shared__ __align__(8) uint64_t barrier[1 + 2 * STAGES];
  uint32_t at = shared_address(attention_backward_shared), tiles = (at + 1023) & ~1023u;
  unsigned char *tiles_at = attention_backward_shared + (tiles - at);
  uint32_t keys_full = shared_address(barrier), full = keys_full + 8, empty = full + 8 * STAGES;
  int head = blockIdx.x % heads, key0 = blockIdx.x / heads * ATTENTION_BACKWARD_KEYS;
  int begin = causal ? key0 / QUERIES * QUERIES : 0;
  if (threadIdx.x == 0) {
    mbarrier_init(keys_full, 1);
    for (int i = 0; i < STAGES; i++) {
      mbarrier_init(full + 8 * i, 2); /* the copies', and lse and delta */
      mbarrier_init(empty + 8 * i, 8);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    setmaxnreg_decrease<24>();
    if (threadIdx.x < 32)
      attention_backward_produce<D, QUERIES, STAGES>(tiles, (float *)(tiles_at + Shape::rows), full, empty, keys_full,
                                                     &q_map, &k_map, &v_map, &dout_map, lse + (size_t)head * s,
                                                     delta + (size_t)head * s, head, key0, begin, s);
  } else {
    setmaxnreg_increase<240>();
    attention_backward_consume<D, QUERIES, STAGES>(tiles_at, full, empty, keys_full, dq_sums, dk, dv, head, key0, begin,
                                                   s, d, scale, causal);
  }
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <int D, int QUERIES, int STAGES>
static inline void attention_backward_wgmma_run(float *dq_sums, __nv_bfloat16 *dk, __nv_bfloat16 *dv,
                                                const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                                const float *lse, const float *delta, const __nv_bfloat16 *dout, int b,
                                                int h, int s, int d, bool causal) {
  const int keys = ATTENTION_BACKWARD_KEYS, bytes = AttentionBackwardWgmmaShape<D, QUERIES, STAGES>::bytes;
  CUtensorMap q_map = attention_wgmma_map(q, b * h, s, d, QUERIES);
  CUtensorMap k_map = attention_wgmma_map(k, b * h, s, d, keys);
  CUtensorMap v_map = attention_wgmma_map(v, b * h, s, d, keys);
  CUtensorMap dout_map = attention_wgmma_map(dout, b * h, s, d, QUERIES);
  auto *kernel = attention_backward_wgmma_kernel<D, QUERIES, STAGES>;
  shared_limit_ask((const void *)kernel, bytes);
  kernel<<<attention_blocks(s, keys) * b * h, ATTENTION_BACKWARD_THREADS, bytes>>>(
      q_map, k_map, v_map, dout_map, dq_sums, dk, dv, lse, delta, b * h, s, d, (float)attention_scale(d), causal);
  CUDA_CHECK_LAUNCH();
}

static inline void attention_backward_wgmma(__nv_bfloat16 *dq, __nv_bfloat16 *dk, __nv_bfloat16 *dv,
                                            const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                            const __nv_bfloat16 *o, const float *lse, const __nv_bfloat16 *dout, int b,
                                            int h, int s, int d, bool causal, float *room) {
  float *dq_sums = room, *delta = room + attention_sums_floats(b, h, s, attention_backward_bf16_columns(d));
  const char *refusal = matmul_wgmma_refusal();
  if (refusal != NULL) die("attention_backward_wgmma: %s", refusal);
  if (d > 128) die("attention: a head of %d columns; at most 128 fit", d);
  if (!attention_bf16_aligned(q, k, v, dout, d) || !attention_bf16_aligned(dk, dv, dk, dv, d)) { /* TMA needs it */
    attention_backward_mma(dq, dk, dv, q, k, v, o, lse, dout, b, h, s, d, causal, room);
    return;
  }
  attention_backward_bf16_begin(delta, dq_sums, dout, o, b, h, s, d);
  if (d <= 64)
    attention_backward_wgmma_run<64, 128, 2>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d, causal);
  else
    attention_backward_wgmma_run<128, 64, 2>(dq_sums, dk, dv, q, k, v, lse, delta, dout, b, h, s, d, causal);
  attention_backward_bf16_end(dq, dq_sums, b, h, s, d);
}

static inline void attention_gradients_wgmma(__nv_bfloat16 *dq, __nv_bfloat16 *dk, __nv_bfloat16 *dv,
                                             const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                             const __nv_bfloat16 *dout, int b, int h, int s, int d, bool causal) {
  size_t rows = (size_t)b * h * s, room = attention_backward_bf16_floats(b, h, s, d), o_floats = (rows * d + 7) / 8 * 4;
  float *sums = attention_workspace(room + o_floats + rows), *lse = sums + room + o_floats;
  __nv_bfloat16 *o = (__nv_bfloat16 *)(sums + room);
  attention_wgmma(o, lse, q, k, v, b, h, s, d, causal);
  attention_backward_wgmma(dq, dk, dv, q, k, v, o, lse, dout, b, h, s, d, causal, sums);
  attention_memory = (room + o_floats + rows) * sizeof *sums;
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_WGMMA_CUH */
