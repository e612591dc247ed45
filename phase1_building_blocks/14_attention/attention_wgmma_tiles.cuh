/* attention_wgmma_tiles.cuh - what the versions of attention_wgmma.cuh share: which tile a block computes, the producer
 * that copies tiles, softmax of a warpgroup's scores, and how o is written. Arrays as there: q, k, v, o (B,H,S,D).
 *
 * Of a warpgroup's scores (64,KEYS), and of its sums (64,D), a thread has two rows, `half` 0 and 1, eight rows apart. Four
 * neighbouring lanes share them: element 4 j + 2 half + e is in column 8 j + 2 * (lane % 4) + e.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_WGMMA_TILES_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_WGMMA_TILES_CUH

#include "phase1_building_blocks/14_attention/attention_tensor_core.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/hopper.cuh"

/* Sizes, and where things are in shared memory: the tile of queries, and STAGES tiles of K and of V, KEYS x D each. A
 * tile is stored in panels of 64 columns, which are rows of 128 bytes, swizzled. The mbarriers are an array beside. */
template <int COLUMNS, int CONSUMERS, int KEYS, int STAGES>
struct AttentionWgmmaShape {
  static const int d = COLUMNS, consumers = CONSUMERS, keys = KEYS, stages = STAGES;
  static const int rows = 64 * CONSUMERS, threads = 128 + 128 * CONSUMERS;
  static const int tile_bytes = KEYS * COLUMNS * 2, k = rows * COLUMNS * 2, v = k + STAGES * tile_bytes;
  static const int bytes = v + STAGES * tile_bytes + 1024; /* so that the tiles can begin at a multiple of 1024 */
  static const int q_full = 0, q_empty = 8, k_full = 16, k_empty = k_full + 8 * STAGES, v_full = k_empty + 8 * STAGES,
                   v_empty = v_full + 8 * STAGES, barriers = 2 + 4 * STAGES;
  static const int scores = KEYS / 2, sums = COLUMNS / 2, operands = KEYS / 16; /* of a thread; operands: p, by fours */
};

#ifdef HOPPER_COMPILED

/* ---------------------------------------------------------------------------------------------------------------- */
/* Who computes what, and where it is */

/* Addresses in shared memory: of the tiles, of the mbarriers. */
typedef struct AttentionWgmmaRing {
  uint32_t tiles, barriers;
} AttentionWgmmaRing;

typedef struct AttentionWgmmaStage {
  int at;
  uint32_t phase;
} AttentionWgmmaStage;

template <int STAGES>
static __device__ __forceinline__ void attention_wgmma_advance(AttentionWgmmaStage *stage) {
  if (++stage->at < STAGES) return;
  stage->at = 0;
  stage->phase ^= 1;
}

/* The tile of queries of this block in this round, and how many tiles of keys they see; false if there is none. Without
 * mask, neighbouring blocks have the same head: its K and V are in the L2 cache. If causal, the longest tiles come first;
 * every other round goes through the blocks backwards, so that the block with the longest tile has the shortest next. */
template <class Shape>
static __device__ __forceinline__ bool attention_wgmma_place(int round, int s, int heads, bool causal, int *head,
                                                             int *row0, int *key_tiles) {
  const int rows = Shape::rows, keys = Shape::keys;
  int tiles = (s + rows - 1) / rows, blocks = gridDim.x, block = blockIdx.x;
  int tile = round * blocks + (causal && round % 2 == 1 ? blocks - 1 - block : block);
  if (tile >= tiles * heads) return false;
  *head = causal ? tile % heads : tile / tiles;
  *row0 = (causal ? tiles - 1 - tile / heads : tile % tiles) * rows;
  *key_tiles = ((causal ? min(s, *row0 + rows) : s) + keys - 1) / keys;
  return true;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Producer */

/* Rows row0 ... of a head (s,D) to a tile (ROWS,D), panel by panel; zeros beyond row s - 1. */
template <int D, int ROWS>
static __device__ __forceinline__ void attention_wgmma_copy(uint32_t to, uint32_t full, const CUtensorMap *map,
                                                            int row0, int head) {
  mbarrier_arrive_expect(full, ROWS * D * 2);
#pragma unroll
  for (int c = 0; c < D; c += 64) tma_load_3d(to + c * ROWS * 2, map, c, row0, head, full);
}

/* The next tile of K or V to the stage `at`, as soon as that is empty. */
template <class Shape>
static __device__ __forceinline__ void attention_wgmma_fill(uint32_t tiles, uint32_t full, uint32_t empty,
                                                            AttentionWgmmaStage *stage, const CUtensorMap *map,
                                                            int key0, int head) {
  mbarrier_wait(empty + 8 * stage->at, stage->phase ^ 1); /* returns at once in the first round */
  attention_wgmma_copy<Shape::d, Shape::keys>(tiles + stage->at * Shape::tile_bytes, full + 8 * stage->at, map, key0,
                                              head);
  attention_wgmma_advance<Shape::stages>(stage);
}

/* Keys are taken from the last tile to the first: if causal, those to be masked come first. K is one tile ahead. */
template <class Shape>
static __device__ __forceinline__ void attention_wgmma_produce(const AttentionWgmmaRing *ring, const CUtensorMap *q_map,
                                                               const CUtensorMap *k_map, const CUtensorMap *v_map,
                                                               int s, int heads, bool causal) {
  uint32_t k_tiles = ring->tiles + Shape::k, v_tiles = ring->tiles + Shape::v, barriers = ring->barriers;
  AttentionWgmmaStage k = {0, 0}, v = {0, 0};
  int head, row0, tiles;
  for (int round = 0; attention_wgmma_place<Shape>(round, s, heads, causal, &head, &row0, &tiles); round++) {
    mbarrier_wait(barriers + Shape::q_empty, round % 2 ^ 1);
    attention_wgmma_copy<Shape::d, Shape::rows>(ring->tiles, barriers + Shape::q_full, q_map, row0, head);
    for (int tile = tiles - 1; tile >= -1; tile--) {
      if (tile >= 0)
        attention_wgmma_fill<Shape>(k_tiles, barriers + Shape::k_full, barriers + Shape::k_empty, &k, k_map,
                                    tile * Shape::keys, head);
      if (tile < tiles - 1)
        attention_wgmma_fill<Shape>(v_tiles, barriers + Shape::v_full, barriers + Shape::v_empty, &v, v_map,
                                    (tile + 1) * Shape::keys, head);
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Softmax of a warpgroup's scores (64,KEYS) */

/* The tensor cores own registers from a product's start to its end: the compiler must not move an access across here. */
template <int N>
static __device__ __forceinline__ void attention_wgmma_settle([[maybe_unused]] float (&x)[N]) {
#ifndef SIMT_REWRITTEN
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(x[i]));
#endif
}
template <int N>
static __device__ __forceinline__ void attention_wgmma_settle([[maybe_unused]] uint32_t (&x)[N][4]) {
#ifndef SIMT_REWRITTEN
#pragma unroll
  for (int i = 0; i < 4 * N; i++) asm volatile("" : "+r"(x[i / 4][i % 4]));
#endif
}

/* -inf for keys beyond the last one, and, if causal, for keys after the query. row0, key0: of the warpgroup's scores. */
template <int KEYS>
static __device__ __forceinline__ void attention_wgmma_mask(float (&score)[KEYS / 2], int row0, int key0, int s,
                                                            bool causal) {
  int row = row0 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4, key = key0 + threadIdx.x % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int end = causal ? min(s, row + 8 * half + 1) : s; /* so many keys does the row see */
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        if (key + 8 * j + e >= end) score[4 * j + 2 * half + e] = -INFINITY;
  }
}

/* The largest score of each row, this tile included. What was summed up with the one before must be rescaled. */
template <int KEYS>
static __device__ __forceinline__ void attention_wgmma_maximum(float (&largest)[2], float (&rescale)[2],
                                                               const float (&score)[KEYS / 2], float exponent_scale) {
  float most[4] = {largest[0], score[1], largest[1], score[3]}; /* two chains of comparisons per row */
#pragma unroll
  for (int i = 0; i < KEYS / 2; i++) most[i % 4] = fmaxf(most[i % 4], score[i]);
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float new_largest = fmaxf(most[2 * half], most[2 * half + 1]);
    new_largest = fmaxf(new_largest, __shfl_xor_sync(0xFFFFFFFF, new_largest, 1));
    new_largest = fmaxf(new_largest, __shfl_xor_sync(0xFFFFFFFF, new_largest, 2));
    rescale[half] = attention_exp2((largest[half] - new_largest) * exponent_scale);
    largest[half] = new_largest;
  }
}

template <int D>
static __device__ __forceinline__ void attention_wgmma_rescale(float (&sum)[D / 2], float (&total)[2],
                                                               const float (&rescale)[2]) {
  total[0] *= rescale[0], total[1] *= rescale[1];
#pragma unroll
  for (int i = 0; i < D / 2; i++) sum[i] *= rescale[i / 2 % 2];
}

/* p = 2^((score - largest) exponent_scale), packed as wgmma's left operand. part: the sums of this thread's p. */
template <int KEYS>
static __device__ __forceinline__ void attention_wgmma_exponentials(uint32_t (&p)[KEYS / 16][4], float (&part)[2],
                                                                    const float (&score)[KEYS / 2],
                                                                    const float (&largest)[2], float exponent_scale) {
  float offset[2] = {largest[0] * exponent_scale, largest[1] * exponent_scale}, sum[4] = {};
#pragma unroll
  for (int i = 0; i < KEYS / 2; i += 2) {
    int half = i / 2 % 2;
    float x = attention_exp2(fmaf(score[i], exponent_scale, -offset[half]));
    float y = attention_exp2(fmaf(score[i + 1], exponent_scale, -offset[half]));
    sum[2 * half] += x, sum[2 * half + 1] += y;
    p[i / 8][i / 2 % 4] = attention_pack(x, y);
  }
  part[0] = sum[0] + sum[1], part[1] = sum[2] + sum[3];
}

/* o (s,D) = sum / total, lse (s) = largest scale + log(total). Four lanes that share a row exchange 4 x 4 pairs of
 * columns, so that each writes eight neighbours, 16 bytes. */
template <int D>
static __device__ __forceinline__ void attention_wgmma_write(__nv_bfloat16 *o, float *lse, const float (&sum)[D / 2],
                                                             const float (&largest)[2], const float (&total)[2],
                                                             int row0, int s, float scale) {
  int lane = threadIdx.x % 32, member = lane % 4;
  bool odd = member % 2 == 1, high = member >= 2;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int row = row0 + threadIdx.x / 32 % 4 * 16 + lane / 4 + 8 * half;
    float all = total[half] + __shfl_xor_sync(0xFFFFFFFF, total[half], 1);
    all += __shfl_xor_sync(0xFFFFFFFF, all, 2);
    float inverse = 1 / all;
    if (member == 0 && row < s) lse[row] = largest[half] * scale + logf(all);
#pragma unroll
    for (int n = 0; n < D / 8; n += 4) {
      uint32_t x[4]; /* this lane's pair of columns of blocks n ... n + 3; it wants all pairs of block n + member */
#pragma unroll
      for (int i = 0; i < 4; i++)
        x[i] = attention_pack(sum[4 * (n + i) + 2 * half] * inverse, sum[4 * (n + i) + 2 * half + 1] * inverse);
      uint32_t a = __shfl_xor_sync(0xFFFFFFFF, odd ? x[0] : x[1], 1),
               b = __shfl_xor_sync(0xFFFFFFFF, odd ? x[2] : x[3], 1);
      uint2 low = odd ? make_uint2(a, x[1]) : make_uint2(x[0], a), up = odd ? make_uint2(b, x[3]) : make_uint2(x[2], b);
      uint2 give = high ? low : up, take;
      take.x = __shfl_xor_sync(0xFFFFFFFF, give.x, 2);
      take.y = __shfl_xor_sync(0xFFFFFFFF, give.y, 2);
      uint4 eight = high ? make_uint4(take.x, take.y, up.x, up.y) : make_uint4(low.x, low.y, take.x, take.y);
      if (row < s) *(uint4 *)(o + (size_t)row * D + 8 * (n + member)) = eight;
    }
  }
}

#endif

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_WGMMA_TILES_CUH */
