/* conv2d_int8_wgmma_kernel.cuh - the kernel of conv2d_int8_wgmma.cuh, which includes it.
 *
 * One block per multiprocessor, three groups of four warps. Of the first one, three threads copy: boxes of pixels,
 * tiles of weights, and what is added. The other two multiply, each every second tile of the block. The copies of
 * all tiles go through the same two rings, one tile after the other, so a group skips the stages of the other one's
 * tiles. It may begin only when that one has waited for all of its own: an mbarrier tells a phase from the one
 * before by its parity, but not from the one before that.
 *
 * A tile is 64 filters x ROW PIXELS. Tensor cores leave in a lane the sums of rows l / 4 and l / 4 + 8 of its warp's
 * 16, of two neighbouring pixels. The tensor map of the weights gives row i filter 2 i, and row i + 8 filter 2 i +
 * 1: so the lane has two neighbouring filters of a pixel, which become two neighbouring bytes. Those of two pixels
 * are the 32 bits that stmatrix.trans takes, and one such instruction writes 16 filters of 32 pixels. ldmatrix.trans
 * reads what is added from the same places.
 */
#ifndef PHASE5_PRODUCTION_CONV2D_INT8_WGMMA_KERNEL_CUH
#define PHASE5_PRODUCTION_CONV2D_INT8_WGMMA_KERNEL_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_wgmma_kernel.cuh"
#include "phase5_production/09_int8/conv2d_int8_plan.cuh"
#include "phase5_production/09_int8/int8.cuh"
#include "phase5_production/09_int8/int8_hopper.cuh"

typedef struct Conv2dInt8Maps {
  CUtensorMap input[CONV2D_NHWC_PLANES], weights, output, added;
} Conv2dInt8Maps;

enum { CONV2D_INT8_THREADS = 384 };

#ifdef HOPPER_COMPILED

typedef struct Conv2dInt8Ring {
  uint32_t pixels, weights, staging;                           /* addresses in shared memory */
  uint32_t pixel_full, pixel_empty, weight_full, weight_empty; /* first of the mbarriers */
  uint32_t added_full, added_empty;                            /* one for each group */
  int pixel_bytes, weight_bytes, staging_bytes;
} Conv2dInt8Ring;

/* Where a group or a thread is in a ring. */
typedef struct Conv2dInt8Stage {
  int stage;
  uint32_t phase;
} Conv2dInt8Stage;

static __device__ __forceinline__ void conv2d_int8_next(int stages, Conv2dInt8Stage *at) {
  if (++at->stage < stages) return;
  at->stage = 0;
  at->phase ^= 1;
}

/* Once per tile: a division takes longer than the products of a stage. */
static __device__ __forceinline__ void conv2d_int8_skip(int stages, Conv2dInt8Stage *at, int steps) {
  at->stage += steps;
  at->phase ^= at->stage / stages & 1;
  at->stage %= stages;
}

typedef struct Conv2dInt8Place {
  int filter, image, row, col;
} Conv2dInt8Place;

/* The tiles of a block: number `first`, + step and so on, below `end`. In a team they are numbers of pairs of tiles. */
typedef struct Conv2dInt8Tiles {
  int team, rank, first, step, end;
} Conv2dInt8Tiles;

static __device__ __forceinline__ Conv2dInt8Tiles conv2d_int8_tiles(const Conv2dNhwcPlan &plan) {
  Conv2dInt8Tiles tiles;
  tiles.team = conv2d_int8_team(&plan);
  tiles.rank = (int)blockIdx.x % tiles.team;
  tiles.first = (int)blockIdx.x / tiles.team;
  tiles.step = (int)gridDim.x / tiles.team;
  tiles.end = conv2d_int8_team_tiles(&plan);
  return tiles;
}

/* Filters first, so that blocks that run at a time share pixels. image >= plan.images: nothing is there. */
static __device__ __forceinline__ Conv2dInt8Place conv2d_int8_place(const Conv2dNhwcPlan &plan,
                                                                    const Conv2dInt8Tiles &tiles, int tile) {
  Conv2dInt8Place place;
  place.filter = tile % plan.tiles_filters * CONV2D_NHWC_BLOCK;
  tile = tile / plan.tiles_filters * tiles.team + tiles.rank;
  place.col = tile % plan.tiles_cols * plan.tile_cols;
  tile /= plan.tiles_cols;
  place.row = tile % plan.tiles_rows * plan.tile_rows;
  place.image = tile / plan.tiles_rows * plan.tile_images;
  return place;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Copies */

/* One thread: boxes of pixels. */
template <int ROW>
static __device__ __forceinline__ void conv2d_int8_copy_pixels(const Conv2dNhwcPlan &plan, const Conv2dInt8Ring &ring,
                                                               const Conv2dInt8Maps &maps) {
  const int bytes = plan.box_rows * plan.tile_images * plan.pitch * ROW;
  const Conv2dInt8Tiles tiles = conv2d_int8_tiles(plan);
  Conv2dInt8Stage at = {0, 0};
  for (int tile = tiles.first; tile < tiles.end; tile += tiles.step) {
    const Conv2dInt8Place place = conv2d_int8_place(plan, tiles, tile);
    for (int c = 0; c < plan.first_chunk[1]; c++)
      for (int channel = 0; channel < plan.channels; channel += ROW) {
        const uint32_t full = ring.pixel_full + 8 * at.stage;
        mbarrier_wait(ring.pixel_empty + 8 * at.stage, at.phase ^ 1);
        mbarrier_arrive_expect(full, bytes);
        tma_load_4d(ring.pixels + at.stage * ring.pixel_bytes, &maps.input[plan.chunk[c].plane], channel,
                    place.col + plan.chunk[c].col, place.row + plan.chunk[c].row, place.image, full);
        conv2d_int8_next(plan.pixel_stages, &at);
      }
  }
}

/* Another thread: the weights of one tap and a row of channels. They run along r, s, c without a gap: what a row has of
 * the next tap is multiplied by zeros, since the box of pixels ends at the last channel. Of a team each block copies
 * half of the filters, to both: when a stage is empty in both, and each has announced all of it. */
template <int ROW>
static __device__ __forceinline__ void conv2d_int8_copy_weights(const Conv2dNhwcPlan &plan, const Conv2dInt8Ring &ring,
                                                                const Conv2dInt8Maps &maps) {
  const Conv2dInt8Tiles tiles = conv2d_int8_tiles(plan);
  const int end = conv2d_int8_stays(&plan) ? tiles.first + 1 : tiles.end; /* those that stay are copied once */
  Conv2dInt8Stage at = {0, 0};
  for (int tile = tiles.first; tile < end; tile += tiles.step) {
    const Conv2dInt8Place place = conv2d_int8_place(plan, tiles, tile);
    for (int c = 0; c < plan.first_chunk[1]; c++)
      for (int channel = 0; channel < plan.channels; channel += ROW)
        for (int t = 0; t < plan.chunk[c].taps; t++) {
          const uint32_t full = ring.weight_full + 8 * at.stage, to = ring.weights + at.stage * ring.weight_bytes;
          const int x = plan.tap[plan.chunk[c].first_tap + t].filter * plan.channels + channel;
          mbarrier_wait(ring.weight_empty + 8 * at.stage, at.phase ^ 1);
          mbarrier_arrive_expect(full, ring.weight_bytes);
          if (tiles.team == 1)
            tma_load_4d(to, &maps.weights, x, 0, 0, place.filter / 16, full);
          else
            tma_load_multicast_4d(to + tiles.rank * ring.weight_bytes / 2, &maps.weights, x, 0, 0,
                                  place.filter / 16 + 2 * tiles.rank, full, 3);
          conv2d_int8_next(plan.weight_stages, &at);
        }
  }
}

/* A third one: what is added, to where the outputs will be. */
static __device__ __forceinline__ void conv2d_int8_copy_added(const Conv2dNhwcPlan &plan, const Conv2dInt8Ring &ring,
                                                              const Conv2dInt8Maps &maps, int bytes) {
  const Conv2dInt8Tiles tiles = conv2d_int8_tiles(plan);
  uint32_t phase = 1;
  for (int tile = tiles.first, group = 0; tile < tiles.end; tile += tiles.step, group ^= 1) {
    const Conv2dInt8Place place = conv2d_int8_place(plan, tiles, tile);
    mbarrier_wait(ring.added_empty + 8 * group, phase);
    mbarrier_arrive_expect(ring.added_full + 8 * group, bytes);
    tma_load_4d(ring.staging + group * ring.staging_bytes, &maps.added, place.filter, place.col, place.row, place.image,
                ring.added_full + 8 * group);
    phase ^= group;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Rounding */

/* Of a lane: filters 2 i and 2 i + 1 of its warp's 16. */
typedef struct Conv2dInt8Filters {
  float scale[2];
  int32_t bias[2];
} Conv2dInt8Filters;

static __device__ __forceinline__ Conv2dInt8Filters conv2d_int8_filters(const Int8End &end, int first, int count) {
  Conv2dInt8Filters own = {{0, 0}, {0, 0}};
#pragma unroll
  for (int i = 0; i < 2; i++) {
    if (first + i >= count) continue;
    own.scale[i] = end.scale[first + i];
    if (end.bias != NULL) own.bias[i] = end.bias[first + i];
  }
  return own;
}

/* 1.5 * 2^23: a float of this size has no fraction, so adding it rounds, halves to even. Its last byte is then that
 * of the integer. */
#define INT8_SHIFT 12582912.0f

/* The integer nearest to a finite y, from `least` to `most`, in the last byte. */
static __device__ __forceinline__ uint32_t int8_last_byte(float y, float least, float most) {
  return __float_as_uint(__fadd_rn(fminf(fmaxf(y, least), most), INT8_SHIFT));
}

/* 2^23: in a float of this size the last byte counts ones. */
#define INT8_ONES 8388608.0f

/* What is the same for all outputs. ReLU is the least value. Of what is added, byte ^ sign is from 0 to 255, and
 * that less `zero` is the number. */
typedef struct Conv2dInt8Limits {
  float least, most;
  bool rounds; /* a sum is an int8 of its own first */
  float middle, added_scale, zero;
  uint32_t sign;
} Conv2dInt8Limits;

static __device__ __forceinline__ Conv2dInt8Limits conv2d_int8_limits(const Int8End &end) {
  const Conv2dInt8Limits limits = {end.relu || end.y_positive ? 0.0f : (float)INT8_LEAST,
                                   end.y_positive ? (float)UINT8_MOST : (float)INT8_MOST,
                                   end.middle != 0,
                                   end.middle,
                                   end.added_scale,
                                   end.added_positive ? INT8_ONES : INT8_ONES + 128,
                                   end.added_positive ? 0 : 0x80808080u};
  return limits;
}

/* What int8_end() and int8_byte() give of one sum. Without a branch, so that the instructions of a hundred sums
 * overlap. */
template <bool ADDS>
static __device__ __forceinline__ uint32_t int8_end_byte(int32_t sum, float scale, float added,
                                                         const Conv2dInt8Limits &limits) {
  float y = __fmul_rn((float)sum, scale);
  if (ADDS) {
    const float whole = __fsub_rn(__uint_as_float(int8_last_byte(y, INT8_LEAST, INT8_MOST)), INT8_SHIFT);
    y = fmaf(added, limits.added_scale, limits.rounds ? __fmul_rn(whole, limits.middle) : y);
  }
  return int8_last_byte(y, limits.least, limits.most);
}

/* Four sums: filters 2 i and 2 i + 1 of one pixel, then of the next; `added` likewise. */
template <bool ADDS>
static __device__ __forceinline__ uint32_t int8_end_word(const int *sum, const Conv2dInt8Filters &own, uint32_t added,
                                                         const Conv2dInt8Limits &limits) {
  uint32_t byte[4];
#pragma unroll
  for (int i = 0; i < 4; i++) { /* sum has the pixels of one filter, then of the other */
    const int filter = i % 2, pixel = i / 2;
    const uint32_t ones = __byte_perm(added ^ limits.sign, __float_as_uint(INT8_ONES), 0x7540 + i);
    byte[i] = int8_end_byte<ADDS>(sum[2 * filter + pixel] + own.bias[filter], own.scale[filter],
                                  __fsub_rn(__uint_as_float(ones), limits.zero), limits);
  }
  return __byte_perm(__byte_perm(byte[0], byte[1], 0x0040), __byte_perm(byte[2], byte[3], 0x0040), 0x5410);
}

/* The sums of a group, 64 filters x PIXELS, to `staging`: rows of 64 bytes, swizzled as TMA expects them. */
template <int PIXELS, bool ADDS>
static __device__ __forceinline__ void conv2d_int8_stage_outputs(uint32_t staging, const int (&sum)[PIXELS / 2],
                                                                 const Conv2dInt8Filters &own, const Int8End &end) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const uint32_t row = staging + lane * CONV2D_INT8_STORE + (warp ^ lane / 2 % 4) * 16;
  const Conv2dInt8Limits limits = conv2d_int8_limits(end);
#pragma unroll
  for (int j = 0; j < PIXELS / 8; j += 4) { /* 32 pixels, at last perhaps 16 */
    const bool all = j + 4 <= PIXELS / 8;
    const uint32_t own_row = row + j * 8 * CONV2D_INT8_STORE - (all ? 0 : lane / 16 * 16 * CONV2D_INT8_STORE);
    uint32_t added[4] = {}, word[4];
    if (ADDS) load_matrices_transposed(added, own_row);
#pragma unroll
    for (int i = 0; i < 4; i++)
      word[i] = j + i < PIXELS / 8
                    ? int8_end_word<ADDS>(&sum[4 * (j + i < PIXELS / 8 ? j + i : 0)], own, added[i], limits)
                    : 0;
    if (all)
      store_matrices_transposed(own_row, word[0], word[1], word[2], word[3]);
    else
      store_two_matrices_transposed(own_row, word[0], word[1]);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Products */

/* sum (64 filters, PIXELS) += a row of channels of `a`, the weights, times that of `b`, the pixels: 32 in each step. */
template <int ROW, bool POSITIVE, int SUMS>
static __device__ __forceinline__ void conv2d_int8_products(int (&sum)[SUMS], uint32_t a, uint32_t b, bool first) {
  const uint64_t a_matrix = int8_descriptor<ROW>(a), b_matrix = int8_descriptor<ROW>(b);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < ROW / 32; i++) wgmma_int8<POSITIVE>(sum, a_matrix + 2 * i, b_matrix + 2 * i, !first || i > 0);
  wgmma_commit();
}

/* The outputs of the last tile were read from `staging`: what is added may come there. */
static __device__ __forceinline__ void conv2d_int8_release_staging(uint32_t empty) {
  if (threadIdx.x % 128 != 0) return;
  tma_store_wait_read();
  mbarrier_arrive(empty);
}

/* Named barriers: of each group, and of its turn to multiply, at which the other one arrives. */
enum { CONV2D_INT8_GROUP = 1, CONV2D_INT8_TURN = 3 };

/* A warp has finished with a stage of weights; in a team both blocks want to know. */
static __device__ __forceinline__ void conv2d_int8_release_weights(uint32_t empty, int team) {
  __syncwarp();
  if (team == 1) {
    if (threadIdx.x % 32 == 0) mbarrier_arrive(empty);
  } else if (threadIdx.x % 32 < 2) {
    mbarrier_arrive_cluster(empty, threadIdx.x % 32);
  }
}

/* What a group knows of its way through the tiles. */
typedef struct Conv2dInt8Way {
  int group, rows, boxes, taps; /* rows of channels; boxes and stages of weights of a tile */
  bool stays;                   /* the weights do */
  int team;
  int tiles; /* of this group, so far */
  Conv2dInt8Stage pixel, weight;
  int last_pixel, last_weight, last_taps; /* stages that the last products read: one, and last_taps */
} Conv2dInt8Way;

static __device__ __forceinline__ Conv2dInt8Way conv2d_int8_way(const Conv2dNhwcPlan &plan) {
  Conv2dInt8Way way = {};
  way.group = threadIdx.x / 128 - 1;
  way.rows = conv2d_int8_rows(&plan);
  way.boxes = plan.first_chunk[1] * way.rows;
  way.taps = conv2d_int8_tile_stages(&plan);
  way.stays = conv2d_int8_stays(&plan);
  way.team = conv2d_int8_team(&plan);
  way.last_pixel = -1;
  conv2d_int8_skip(plan.pixel_stages, &way.pixel, way.group * way.boxes);
  conv2d_int8_skip(plan.weight_stages, &way.weight, way.group * way.taps);
  return way;
}

/* The products that read the last stages have finished. */
static __device__ __forceinline__ void conv2d_int8_release(const Conv2dNhwcPlan &plan, const Conv2dInt8Ring &ring,
                                                           Conv2dInt8Way *way) {
  if (way->last_pixel >= 0) conv2d_nhwc_release(ring.pixel_empty + 8 * way->last_pixel);
  for (int t = 0; t < way->last_taps && !way->stays; t++) {
    const int stage = way->last_weight + t;
    conv2d_int8_release_weights(
        ring.weight_empty + 8 * (stage < plan.weight_stages ? stage : stage - plan.weight_stages), way->team);
  }
  way->last_pixel = -1;
  way->last_taps = 0;
}

/* The sums of a tile. The products of several taps are started together, and run while those before are waited for
 * and their stages released: what a warp does between two taps takes longer than the products of one. */
template <int ROW, bool POSITIVE, int SUMS>
static __device__ __forceinline__ void conv2d_int8_sum(int (&sum)[SUMS], const Conv2dNhwcPlan &plan,
                                                       const Conv2dInt8Ring &ring, Conv2dInt8Way *way, bool adds) {
  const bool waits = !way->stays || way->tiles == 0;
  const int most = conv2d_int8_together(&plan);
  bool first = true;
  if (way->stays) way->weight.stage = 0, way->weight.phase = 0;
  for (int c = 0; c < plan.first_chunk[1]; c++)
    for (int row = 0; row < way->rows; row++) {
      const uint32_t pixels = ring.pixels + way->pixel.stage * ring.pixel_bytes;
      mbarrier_wait(ring.pixel_full + 8 * way->pixel.stage, way->pixel.phase);
      for (int t = 0; t < plan.chunk[c].taps; t += most) {
        const int taps = plan.chunk[c].taps - t < most ? plan.chunk[c].taps - t : most;
        const int first_weight = way->weight.stage;
        Conv2dInt8Stage full = way->weight;
        for (int i = 0; waits && i < taps; i++) {
          mbarrier_wait(ring.weight_full + 8 * full.stage, full.phase);
          conv2d_int8_next(plan.weight_stages, &full);
        }
        for (int i = 0; i < taps; i++) {
          conv2d_int8_products<ROW, POSITIVE>(sum, ring.weights + way->weight.stage * ring.weight_bytes,
                                              pixels + plan.tap[plan.chunk[c].first_tap + t + i].shift * ROW, first);
          first = false;
          conv2d_int8_next(plan.weight_stages, &way->weight);
        }
        if (taps > 1) /* of these taps the last ones may run on */
          wgmma_wait<2>();
        else
          wgmma_wait<1>();
        conv2d_int8_release(plan, ring, way);
        way->last_weight = first_weight;
        way->last_taps = taps;
        if (c == 0 && row == 0 && t == 0 && way->tiles > 0 && adds)
          conv2d_int8_release_staging(ring.added_empty + 8 * way->group);
      }
      way->last_pixel = way->pixel.stage;
      conv2d_int8_next(plan.pixel_stages, &way->pixel);
    }
}

/* A group's tiles: every second one of the block. */
template <int ROW, int PIXELS, bool POSITIVE>
static __device__ __forceinline__ void conv2d_int8_consume(const Conv2dNhwcPlan &plan, const Conv2dInt8Ring &ring,
                                                           const Conv2dInt8Maps &maps, const Int8End &end) {
  Conv2dInt8Way way = conv2d_int8_way(plan);
  const bool first_thread = threadIdx.x % 128 == 0, adds = end.added != NULL;
  const uint32_t staging = ring.staging + way.group * ring.staging_bytes;
  const Conv2dInt8Tiles tiles = conv2d_int8_tiles(plan);
  int sum[PIXELS / 2];
  for (int tile = tiles.first + way.group * tiles.step; tile < tiles.end; tile += 2 * tiles.step, way.tiles++) {
    const Conv2dInt8Place place = conv2d_int8_place(plan, tiles, tile);
    const int first = place.filter + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 * 2;
    const Conv2dInt8Filters own = conv2d_int8_filters(end, first, plan.filters);
    if (tile != tiles.first) named_barrier_sync(CONV2D_INT8_TURN + way.group, 256);
    conv2d_int8_sum<ROW, POSITIVE>(sum, plan, ring, &way, adds);
    if (tile + tiles.step < tiles.end) named_barrier_arrive(CONV2D_INT8_TURN + (way.group ^ 1), 256);
    wgmma_wait<0>();
    conv2d_int8_release(plan, ring, &way);
    conv2d_int8_skip(plan.pixel_stages, &way.pixel, way.boxes);
    conv2d_int8_skip(plan.weight_stages, &way.weight, way.taps);

    if (adds) {
      mbarrier_wait(ring.added_full + 8 * way.group, way.tiles & 1);
      conv2d_int8_stage_outputs<PIXELS, true>(staging, sum, own, end);
    } else {
      if (first_thread) tma_store_wait_read();
      named_barrier_sync(CONV2D_INT8_GROUP + way.group, 128); /* the last outputs were read */
      conv2d_int8_stage_outputs<PIXELS, false>(staging, sum, own, end);
    }
    tma_proxy_fence();
    named_barrier_sync(CONV2D_INT8_GROUP + way.group, 128);
    if (first_thread && place.image < plan.images) {
      tma_store_4d(&maps.output, place.filter, place.col, place.row, place.image, staging);
      tma_store_commit();
    }
  }
  if (first_thread) tma_store_wait();
}
#endif

template <int ROW, int PIXELS, bool POSITIVE>
static __global__ void __launch_bounds__(CONV2D_INT8_THREADS, 1)
    conv2d_int8_wgmma_kernel(const __grid_constant__ Conv2dInt8Maps maps, const __grid_constant__ Conv2dNhwcPlan plan,
                             const __grid_constant__ Int8End end, int staging_bytes, int added_bytes) {
#ifdef HOPPER_COMPILED
  extern __shared__ unsigned char conv2d_int8_shared[];
  __shared__ __align__(8) uint64_t barriers[4][CONV2D_INT8_STAGES], added_barriers[2][2];
  Conv2dInt8Ring ring;
  ring.weights = (shared_address(conv2d_int8_shared) + 1023) & ~1023u;
  ring.weight_bytes = CONV2D_NHWC_BLOCK * ROW;
  ring.pixels = ring.weights + plan.weight_stages * ring.weight_bytes;
  ring.pixel_bytes = plan.buffer_rows * ROW;
  ring.staging = ring.pixels + plan.pixel_stages * ring.pixel_bytes;
  ring.staging_bytes = staging_bytes;
  ring.pixel_full = shared_address(barriers[0]);
  ring.pixel_empty = shared_address(barriers[1]);
  ring.weight_full = shared_address(barriers[2]);
  ring.weight_empty = shared_address(barriers[3]);
  ring.added_full = shared_address(added_barriers[0]);
  ring.added_empty = shared_address(added_barriers[1]);
  const int team = conv2d_int8_team(&plan);
  if (threadIdx.x == 0) {
    for (int i = 0; i < CONV2D_INT8_STAGES; i++) {
      mbarrier_init(ring.pixel_full + 8 * i, 1);
      mbarrier_init(ring.pixel_empty + 8 * i, 4); /* warps of a group */
      mbarrier_init(ring.weight_full + 8 * i, 1);
      mbarrier_init(ring.weight_empty + 8 * i, 4 * team);
    }
    for (int i = 0; i < 4; i++) mbarrier_init(ring.added_full + 8 * i, 1);
    mbarrier_init_fence();
  }
  /* Rows behind the boxes are padding: zero, once for all. */
  const int box_rows = plan.box_rows * plan.tile_images * plan.pitch;
  for (int buffer = 0; buffer < plan.pixel_stages; buffer++)
    for (int i = threadIdx.x; i < (plan.buffer_rows - box_rows) * ROW / 16; i += CONV2D_INT8_THREADS)
      store_four(ring.pixels + (buffer * plan.buffer_rows + box_rows) * ROW + i * 16, 0);
  tma_proxy_fence();
  __syncthreads();
  if (team > 1) cluster_sync(); /* both blocks' barriers are there */

  if (threadIdx.x < 128) {
    setmaxnreg_decrease<40>();
    if (threadIdx.x == 0) conv2d_int8_copy_pixels<ROW>(plan, ring, maps);
    if (threadIdx.x == 32) conv2d_int8_copy_weights<ROW>(plan, ring, maps);
    if (threadIdx.x == 64 && end.added != NULL) conv2d_int8_copy_added(plan, ring, maps, added_bytes);
    __syncwarp();
  } else {
    setmaxnreg_increase<232>();
    conv2d_int8_consume<ROW, PIXELS, POSITIVE>(plan, ring, maps, end);
  }
  if (team > 1) cluster_sync(); /* no block ends while the other one copies to it */
#endif
}

#endif /* PHASE5_PRODUCTION_CONV2D_INT8_WGMMA_KERNEL_CUH */
