/* attention_wgmma.cuh - attention with the instructions of Hopper: wgmma, TMA, mbarriers. Arrays, results and limits
 * are those of attention_mma(), attention_tensor_core.cuh.
 *
 * The products of 64 queries and a tile of keys are a few wgmma instructions of a warpgroup, and the tensor cores read
 * K and V from shared memory. Scores and p stay in registers, as in attention_mma(): wgmma's sums lie as those of
 * mma.sync, so packed p are its left operand. K is stored by keys, which is K-major for the scores; V by keys is
 * N-major for the sums. Nothing is transposed.
 *
 *     producer   one thread copies the queries of a tile, and tiles of K and of V into a ring of stages (lesson 15)
 *     consumers  two or three warpgroups, 64 queries each
 *
 * A block computes tile after tile of queries, `rows` of them: it is persistent. The versions differ in a consumer's
 * loop:
 *
 *   attention_wgmma_alternate   scores, softmax, sums, one after the other
 *   attention_wgmma_turns       the next scores are started together with the sums of this tile; and the warpgroups
 *                               take turns, so that one has the tensor cores while the others compute exponentials
 *   attention_wgmma             the maximum of the first tile of keys serves for all, unless something grows too large
 *
 * Why the last one may: exp(score - m) / sum of exp(score - m) is the same for every m. The maximum only prevents an
 * overflow, so any number not far below it does. If a row's sum of p over a tile exceeds attention_wgmma_large, the
 * tile's maxima are computed after all, and its p once more.
 *
 * wgmma is for heads of 64 or 128 columns and arrays at multiples of 16 bytes; others go to attention_mma(). Where p
 * grows to 1e18, elements of v beyond some 1e20 overflow in attention_wgmma() though o would be finite.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_WGMMA_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_WGMMA_CUH

#include "phase1_building_blocks/14_attention/attention_wgmma_tiles.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"

typedef enum AttentionRung { ATTENTION_ALTERNATE, ATTENTION_TURNS, ATTENTION_KEEP_MAXIMUM } AttentionRung;

static const float attention_wgmma_large = 1e18f; /* of a row's sum of p over a tile, of which o is a multiple */

#ifdef HOPPER_COMPILED

/* ---------------------------------------------------------------------------------------------------------------- */
/* Consumers. A warpgroup goes through the tiles of keys; k and v are the stages that it reads next. */

typedef struct AttentionWgmmaWalk {
  AttentionWgmmaRing ring;
  AttentionWgmmaStage k, v;
  uint32_t q_tile; /* the warpgroup's 64 queries: in each panel 64 rows of 128 bytes */
  int consumer, row0, s;
  bool causal;
  float exponent_scale;
} AttentionWgmmaWalk;

/* Tells the producer that this warp has finished reading. */
static __device__ __forceinline__ void attention_wgmma_release(uint32_t empty) {
  if (threadIdx.x % 32 == 0) mbarrier_arrive(empty);
}

/* Starts score (64,KEYS) = q (64,D) k_tile (KEYS,D) transposed. */
template <class Shape>
static __device__ __forceinline__ void attention_wgmma_start_scores(float (&score)[Shape::scores],
                                                                    const AttentionWgmmaWalk *w) {
  uint32_t k_tile = w->ring.tiles + Shape::k + w->k.at * Shape::tile_bytes;
  mbarrier_wait(w->ring.barriers + Shape::k_full + 8 * w->k.at, w->k.phase);
  wgmma_fence();
#pragma unroll
  for (int c = 0; c < Shape::d; c += 16) { /* 16 columns are 32 bytes of a swizzled row */
    int panel = c / 64, byte = c % 64 * 2;
    wgmma_bfloat16<WGMMA_K_MAJOR>(score, wgmma_descriptor(w->q_tile + panel * Shape::rows * 128 + byte, 1024, 0),
                                  wgmma_descriptor(k_tile + panel * Shape::keys * 128 + byte, 1024, 0), c > 0);
  }
  wgmma_commit();
}

/* Waits for them; LATER: products that were started later. tile: of keys. */
template <class Shape, int LATER>
static __device__ __forceinline__ void attention_wgmma_finish_scores(float (&score)[Shape::scores],
                                                                     AttentionWgmmaWalk *w, int tile) {
  wgmma_wait<LATER>();
  attention_wgmma_settle(score);
  attention_wgmma_release(w->ring.barriers + Shape::k_empty + 8 * w->k.at);
  attention_wgmma_advance<Shape::stages>(&w->k);
  int end = (tile + 1) * Shape::keys;
  if (end > w->s || (w->causal && end - 1 > w->row0)) /* some keys are hidden from some rows */
    attention_wgmma_mask<Shape::keys>(score, w->row0, tile * Shape::keys, w->s, w->causal);
}

/* Starts sum (64,D) += p (64,KEYS) v_tile (KEYS,D). */
template <class Shape>
static __device__ __forceinline__ void attention_wgmma_start_sums(float (&sum)[Shape::sums],
                                                                  uint32_t (&p)[Shape::operands][4],
                                                                  const AttentionWgmmaWalk *w) {
  uint32_t v_tile = w->ring.tiles + Shape::v + w->v.at * Shape::tile_bytes;
  mbarrier_wait(w->ring.barriers + Shape::v_full + 8 * w->v.at, w->v.phase);
  attention_wgmma_settle(sum);
  attention_wgmma_settle(p);
  wgmma_fence();
#pragma unroll
  for (int c = 0; c < Shape::keys; c += 16) /* 16 keys are 16 rows of 128 bytes */
    wgmma_bfloat16_registers<WGMMA_N_MAJOR>(sum, p[c / 16], wgmma_descriptor(v_tile + c * 128, 1024, Shape::keys * 128),
                                            1);
  wgmma_commit();
}

template <class Shape>
static __device__ __forceinline__ void attention_wgmma_finish_sums(float (&sum)[Shape::sums],
                                                                   uint32_t (&p)[Shape::operands][4],
                                                                   AttentionWgmmaWalk *w) {
  wgmma_wait<0>();
  attention_wgmma_settle(sum);
  attention_wgmma_settle(p);
  attention_wgmma_release(w->ring.barriers + Shape::v_empty + 8 * w->v.at);
  attention_wgmma_advance<Shape::stages>(&w->v);
}

/* A warpgroup's turn begins when the one before has started its products, and ends when its own are started: barrier
 * 1 + consumer is for the two of them. */
static __device__ __forceinline__ void attention_wgmma_take_turn(const AttentionWgmmaWalk *w) {
  named_barrier_sync(1 + w->consumer, 256);
}
template <class Shape>
static __device__ __forceinline__ void attention_wgmma_pass_turn(const AttentionWgmmaWalk *w) {
  named_barrier_arrive(1 + (w->consumer + 1) % Shape::consumers, 256);
}

/* Scores, softmax and sums alternate: the warpgroup waits for each product. */
template <class Shape>
static __device__ __forceinline__ void attention_wgmma_alternating(float (&sum)[Shape::sums], float (&largest)[2],
                                                                   float (&total)[2], AttentionWgmmaWalk *w,
                                                                   int tiles) {
  float score[Shape::scores], rescale[2], part[2];
  uint32_t p[Shape::operands][4];
  for (int tile = tiles - 1; tile >= 0; tile--) {
    attention_wgmma_start_scores<Shape>(score, w);
    attention_wgmma_finish_scores<Shape, 0>(score, w, tile);
    attention_wgmma_maximum<Shape::keys>(largest, rescale, score, w->exponent_scale);
    attention_wgmma_rescale<Shape::d>(sum, total, rescale);
    attention_wgmma_exponentials<Shape::keys>(p, part, score, largest, w->exponent_scale);
    total[0] += part[0], total[1] += part[1];
    attention_wgmma_start_sums<Shape>(sum, p, w);
    attention_wgmma_finish_sums<Shape>(sum, p, w);
  }
  attention_wgmma_release(w->ring.barriers + Shape::q_empty);
}

/* One tile of keys: its scores, and meanwhile the sums of the tile before, whose p are `before`. p: of this tile. */
template <class Shape, AttentionRung RUNG>
static __device__ __forceinline__ void attention_wgmma_step(float (&sum)[Shape::sums], float (&largest)[2],
                                                            float (&total)[2], uint32_t (&p)[Shape::operands][4],
                                                            uint32_t (&before)[Shape::operands][4],
                                                            AttentionWgmmaWalk *w, int tile) {
  float score[Shape::scores], rescale[2], part[2];
  attention_wgmma_take_turn(w);
  attention_wgmma_start_scores<Shape>(score, w);
  attention_wgmma_start_sums<Shape>(sum, before, w);
  attention_wgmma_pass_turn<Shape>(w);
  attention_wgmma_finish_scores<Shape, 1>(score, w, tile);
  if (RUNG == ATTENTION_TURNS) attention_wgmma_maximum<Shape::keys>(largest, rescale, score, w->exponent_scale);
  attention_wgmma_exponentials<Shape::keys>(p, part, score, largest, w->exponent_scale);
  attention_wgmma_finish_sums<Shape>(sum, before, w);
  bool small = part[0] <= attention_wgmma_large && part[1] <= attention_wgmma_large; /* no NaN is */
  bool again = RUNG == ATTENTION_KEEP_MAXIMUM && __any_sync(0xFFFFFFFF, !small);     /* four lanes share a maximum */
  if (again) {
    attention_wgmma_maximum<Shape::keys>(largest, rescale, score, w->exponent_scale);
    attention_wgmma_exponentials<Shape::keys>(p, part, score, largest, w->exponent_scale);
  }
  if (again || RUNG == ATTENTION_TURNS) attention_wgmma_rescale<Shape::d>(sum, total, rescale);
  total[0] += part[0], total[1] += part[1];
}

/* The first tile has nothing to overlap with; its maximum is computed in any case. */
template <class Shape, AttentionRung RUNG>
static __device__ __forceinline__ void attention_wgmma_overlapping(float (&sum)[Shape::sums], float (&largest)[2],
                                                                   float (&total)[2], AttentionWgmmaWalk *w,
                                                                   int tiles) {
  float score[Shape::scores], rescale[2];
  uint32_t even[Shape::operands][4], odd[Shape::operands][4]; /* p of every other tile */
  attention_wgmma_take_turn(w);
  attention_wgmma_start_scores<Shape>(score, w);
  attention_wgmma_pass_turn<Shape>(w);
  attention_wgmma_finish_scores<Shape, 0>(score, w, tiles - 1);
  attention_wgmma_maximum<Shape::keys>(largest, rescale, score, w->exponent_scale);
  attention_wgmma_exponentials<Shape::keys>(even, total, score, largest, w->exponent_scale);
  int tile = tiles - 2;
  for (; tile >= 1; tile -= 2) {
    attention_wgmma_step<Shape, RUNG>(sum, largest, total, odd, even, w, tile);
    attention_wgmma_step<Shape, RUNG>(sum, largest, total, even, odd, w, tile - 1);
  }
  if (tile == 0) {
    attention_wgmma_step<Shape, RUNG>(sum, largest, total, odd, even, w, 0);
    attention_wgmma_release(w->ring.barriers + Shape::q_empty);
    attention_wgmma_start_sums<Shape>(sum, odd, w);
    attention_wgmma_finish_sums<Shape>(sum, odd, w);
  } else {
    attention_wgmma_release(w->ring.barriers + Shape::q_empty);
    attention_wgmma_start_sums<Shape>(sum, even, w);
    attention_wgmma_finish_sums<Shape>(sum, even, w);
  }
}

template <class Shape, AttentionRung RUNG>
static __device__ __forceinline__ void attention_wgmma_consume(const AttentionWgmmaRing *ring, __nv_bfloat16 *o,
                                                               float *lse, int s, int heads, float scale, bool causal) {
  const bool turns = RUNG != ATTENTION_ALTERNATE;
  const int consumer = threadIdx.x / 128 - 1;
  AttentionWgmmaWalk w = {*ring, {0, 0}, {0, 0}, ring->tiles + consumer * 64 * 128, consumer,
                          0,     s,      causal, scale * attention_log2_e};
  int head, row0, tiles;
  if (turns && consumer == Shape::consumers - 1) attention_wgmma_pass_turn<Shape>(&w); /* the first consumer begins */
  for (int round = 0; attention_wgmma_place<Shape>(round, s, heads, causal, &head, &row0, &tiles); round++) {
    float sum[Shape::sums], largest[2] = {attention_none, attention_none}, total[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < Shape::sums; i++) sum[i] = 0;
    w.row0 = row0 + 64 * consumer;
    mbarrier_wait(ring->barriers + Shape::q_full, round % 2);
    if (turns)
      attention_wgmma_overlapping<Shape, RUNG>(sum, largest, total, &w, tiles);
    else
      attention_wgmma_alternating<Shape>(sum, largest, total, &w, tiles);
    attention_wgmma_write<Shape::d>(o + (size_t)head * s * Shape::d, lse + (size_t)head * s, sum, largest, total,
                                    w.row0, s, scale);
  }
  if (turns && consumer == 0) attention_wgmma_take_turn(&w); /* the last consumer's last turn ends, too */
}
#endif

template <class Shape, AttentionRung RUNG>
static __global__ void __launch_bounds__(Shape::threads, 1)
    attention_wgmma_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                           const __grid_constant__ CUtensorMap v_map, __nv_bfloat16 *o, float *lse, int s, int heads,
                           float scale, bool causal) {
#ifdef HOPPER_COMPILED
  extern __shared__ unsigned char attention_wgmma_shared[];
  __shared__ __align__(8) uint64_t barrier[Shape::barriers];
  AttentionWgmmaRing ring;
  ring.tiles = (shared_address(attention_wgmma_shared) + 1023) & ~1023u; /* the swizzle repeats every 1024 bytes */
  ring.barriers = shared_address(barrier);
  if (threadIdx.x == 0) { /* `full` waits for the producer and its bytes, `empty` for the warps of the consumers */
    const int first[] = {Shape::k_full, Shape::k_empty, Shape::v_full, Shape::v_empty};
    mbarrier_init(ring.barriers + Shape::q_full, 1);
    mbarrier_init(ring.barriers + Shape::q_empty, 4 * Shape::consumers);
    for (int kind = 0; kind < 4; kind++)
      for (int i = 0; i < Shape::stages; i++)
        mbarrier_init(ring.barriers + first[kind] + 8 * i, kind % 2 == 0 ? 1 : 4 * Shape::consumers);
    mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x < 128) { /* a block starts with 168 registers per thread, or 128 with three consumers */
    setmaxnreg_decrease<Shape::consumers == 2 ? 24 : 32>();
    if (threadIdx.x == 0) attention_wgmma_produce<Shape>(&ring, &q_map, &k_map, &v_map, s, heads, causal);
    __syncwarp();
  } else {
    setmaxnreg_increase<Shape::consumers == 2 ? 240 : 160>();
    attention_wgmma_consume<Shape, RUNG>(&ring, o, lse, s, heads, scale, causal);
  }
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* The tensor map of x (heads,s,d), for TMA: boxes of box_rows rows of a head and 64 columns, with the 128-byte swizzle.
 * Three dimensions, so that a box ends with its head: the rows beyond are zeros, not those of the next head. */
static inline CUtensorMap attention_wgmma_map(const __nv_bfloat16 *x, int heads, int s, int d, int box_rows) {
  const cuuint64_t size[3] = {(cuuint64_t)d, (cuuint64_t)s, (cuuint64_t)heads};
  const cuuint64_t pitch[2] = {(cuuint64_t)d * sizeof *x, (cuuint64_t)d * s * sizeof *x};
  const cuuint32_t box[3] = {64, (cuuint32_t)box_rows, 1};
  return tensor_map(x, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, size, pitch, box);
}

template <class Shape, AttentionRung RUNG>
static inline void attention_wgmma_run(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                       const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  CUtensorMap q_map = attention_wgmma_map(q, b * h, s, d, Shape::rows),
              k_map = attention_wgmma_map(k, b * h, s, d, Shape::keys),
              v_map = attention_wgmma_map(v, b * h, s, d, Shape::keys);
  auto *kernel = attention_wgmma_kernel<Shape, RUNG>;
  shared_limit_ask((const void *)kernel, Shape::bytes);
  int device, multiprocessors, blocks = (int)attention_blocks(s, Shape::rows) * b * h;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  if (blocks > multiprocessors) blocks = multiprocessors;
  attention_memory = 0;
  kernel<<<(unsigned)blocks, Shape::threads, Shape::bytes>>>(q_map, k_map, v_map, o, lse, s, b * h,
                                                             (float)attention_scale(d), causal);
  CUDA_CHECK_LAUNCH();
}

template <AttentionRung RUNG>
static inline void attention_wgmma_launch(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                          const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  const char *refusal = matmul_wgmma_refusal();
  if (refusal != NULL) die("attention_wgmma: %s", refusal);
  bool aligned = attention_bf16_aligned(o, q, k, v, d);
  if (aligned && d == 64)
    attention_wgmma_run<AttentionWgmmaShape<64, 3, 96, 3>, RUNG>(o, lse, q, k, v, b, h, s, d, causal);
  else if (aligned && d == 128)
    attention_wgmma_run<AttentionWgmmaShape<128, 2, 128, 2>, RUNG>(o, lse, q, k, v, b, h, s, d, causal);
  else
    attention_mma(o, lse, q, k, v, b, h, s, d, causal);
}

static inline void attention_wgmma_alternate(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q,
                                             const __nv_bfloat16 *k, const __nv_bfloat16 *v, int b, int h, int s, int d,
                                             bool causal) {
  attention_wgmma_launch<ATTENTION_ALTERNATE>(o, lse, q, k, v, b, h, s, d, causal);
}

static inline void attention_wgmma_turns(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                         const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  attention_wgmma_launch<ATTENTION_TURNS>(o, lse, q, k, v, b, h, s, d, causal);
}

static inline void attention_wgmma(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                   const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  attention_wgmma_launch<ATTENTION_KEEP_MAXIMUM>(o, lse, q, k, v, b, h, s, d, causal);
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_WGMMA_CUH */
