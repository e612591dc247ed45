/* conv2d_nhwc_wgmma_kernel.cuh - the kernel of conv2d_nhwc_wgmma.cuh, which includes it. */
#ifndef PHASE3_CNN_CONV2D_NHWC_WGMMA_KERNEL_CUH
#define PHASE3_CNN_CONV2D_NHWC_WGMMA_KERNEL_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_plan.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_tensor_hopper.cuh"

typedef struct Conv2dNhwcMaps {
  CUtensorMap input[CONV2D_NHWC_PLANES], output[CONV2D_NHWC_PLANES], weights, added_weights;
} Conv2dNhwcMaps;

enum { CONV2D_NHWC_THREADS = 384, CONV2D_NHWC_STAGES = 8 };

#ifdef HOPPER_COMPILED

typedef struct Conv2dNhwcRing {
  uint32_t pixels, weights, staging;                           /* addresses in shared memory */
  uint32_t pixel_full, pixel_empty, weight_full, weight_empty; /* first of the mbarriers */
  int pixel_bytes, weight_bytes, staging_bytes;
} Conv2dNhwcRing;

static __device__ __forceinline__ void conv2d_ring_advance(int stages, int *stage, uint32_t *phase) {
  if (++*stage < stages) return;
  *stage = 0;
  *phase ^= 1;
}

typedef struct Conv2dNhwcPlace {
  int problem, filter, image, row, col;
} Conv2dNhwcPlace;

/* Tile number `tile`: filters first, so that blocks that run at a time share pixels. `which`: of two tiles of pixels */
static __device__ __forceinline__ Conv2dNhwcPlace conv2d_nhwc_place(const Conv2dNhwcPlan &plan, int tile, int which) {
  Conv2dNhwcPlace place;
  int pixel_tiles = plan.tiles / (plan.problems * plan.tiles_filters);
  place.filter = tile % plan.tiles_filters * CONV2D_NHWC_BLOCK * plan.blocks;
  tile /= plan.tiles_filters;
  int pixel_tile = tile % pixel_tiles;
  place.problem = plan.problems - 1 - tile / pixel_tiles; /* the last phase has the most taps */
  if (plan.blocks == 1) pixel_tile = 2 * pixel_tile + which;
  place.col = pixel_tile % plan.tiles_cols * plan.tile_cols;
  pixel_tile /= plan.tiles_cols;
  place.row = pixel_tile % plan.tiles_rows * plan.tile_rows;
  place.image = pixel_tile / plan.tiles_rows * plan.tile_images;
  return place;
}

/* Whether chunk c is of the added image. */
static __device__ __forceinline__ bool conv2d_nhwc_is_added(const Conv2dNhwcPlan &plan, int c) {
  return plan.chunk[c].plane == plan.planes;
}

/* One thread: copies the boxes of pixels. */
static __device__ __forceinline__ void conv2d_nhwc_produce_pixels(const Conv2dNhwcPlan &plan,
                                                                  const Conv2dNhwcRing &ring,
                                                                  const Conv2dNhwcMaps &maps) {
  int stage = 0, boxes = plan.blocks == 1 ? 2 : 1;
  uint32_t phase = 0;
  int bytes = plan.box_rows * plan.tile_images * plan.pitch * CONV2D_NHWC_ROW * boxes;
  for (int tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    Conv2dNhwcPlace place = conv2d_nhwc_place(plan, tile, 0), second = conv2d_nhwc_place(plan, tile, 1);
    for (int c = plan.first_chunk[place.problem]; c < plan.first_chunk[place.problem + 1]; c++) {
      /* of an image that is added as it is: the channels of this block's filters */
      const int first = plan.added == CONV2D_NHWC_ADDS_IMAGE && conv2d_nhwc_is_added(plan, c) ? place.filter : 0;
      for (int channel = 0; channel < plan.chunk[c].channels; channel += plan.row_channels) {
        uint32_t full = ring.pixel_full + 8 * stage, to = ring.pixels + stage * ring.pixel_bytes;
        const CUtensorMap *map = &maps.input[plan.chunk[c].plane];
        mbarrier_wait(ring.pixel_empty + 8 * stage, phase ^ 1);
        mbarrier_arrive_expect(full, bytes);
        tma_load_4d(to, map, first + channel, place.col + plan.chunk[c].col, place.row + plan.chunk[c].row, place.image,
                    full);
        if (boxes == 2)
          tma_load_4d(to + ring.pixel_bytes / 2, map, first + channel, second.col + plan.chunk[c].col,
                      second.row + plan.chunk[c].row, second.image, full);
        conv2d_ring_advance(plan.pixel_stages, &stage, &phase);
      }
    }
  }
}

/* Another thread: copies the weights of one tap and a row of channels. */
template <int BLOCKS, bool BACKWARD>
static __device__ __forceinline__ void conv2d_nhwc_produce_weights(const Conv2dNhwcPlan &plan,
                                                                   const Conv2dNhwcRing &ring,
                                                                   const Conv2dNhwcMaps &maps) {
  int stage = 0;
  uint32_t phase = 0;
  for (int tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    Conv2dNhwcPlace place = conv2d_nhwc_place(plan, tile, 0);
    for (int c = plan.first_chunk[place.problem]; c < plan.first_chunk[place.problem + 1]; c++) {
      const bool added = conv2d_nhwc_is_added(plan, c);
      const CUtensorMap *map = added ? &maps.added_weights : &maps.weights;
      const int filter0 = added && plan.added == CONV2D_NHWC_ADDS_IMAGE ? 0 : place.filter;
      for (int channel = 0; channel < plan.chunk[c].channels; channel += plan.row_channels)
        for (int t = 0; t < plan.chunk[c].taps; t++) {
          uint32_t full = ring.weight_full + 8 * stage, to = ring.weights + stage * ring.weight_bytes;
          int filter = plan.tap[plan.chunk[c].first_tap + t].filter;
          mbarrier_wait(ring.weight_empty + 8 * stage, phase ^ 1);
          mbarrier_arrive_expect(full, ring.weight_bytes);
          if (BACKWARD) {
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
              tma_load_3d(to + b * CONV2D_NHWC_BLOCK * CONV2D_NHWC_ROW, map, place.filter + b * CONV2D_NHWC_BLOCK,
                          filter, channel, full);
          } else {
            tma_load_3d(to, map, channel, filter, filter0, full);
          }
          conv2d_ring_advance(plan.weight_stages, &stage, &phase);
        }
    }
  }
}

/* sum (64 filters, PIXELS) += a row of channels of `a`, the weights, times that of `b`, the pixels: 32 bytes in each
 * step. BACKWARD: rows of `a` run along the filters; not of floats. */
template <typename T, bool BACKWARD, int SUMS>
static __device__ __forceinline__ void conv2d_nhwc_products(float (&sum)[SUMS], uint32_t a, uint32_t b, bool first) {
  const uint64_t a_matrix = wgmma_descriptor(a, 1024, 0), b_matrix = wgmma_descriptor(b, 1024, 0);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if constexpr (sizeof(T) == sizeof(float))
      wgmma_floats(sum, a_matrix + 2 * i, b_matrix + 2 * i, !first || i > 0);
    else
      wgmma<Conv2dIsHalf<T>::value, BACKWARD, 0>(sum, a_matrix + (BACKWARD ? 128 : 2) * i, b_matrix + 2 * i,
                                                 !first || i > 0);
  }
}

/* The sums of a warpgroup, 64 filters x PIXELS, to `staging`: rows of 64 filters, swizzled as TMA expects them. */
template <typename T, int PIXELS>
static __device__ __forceinline__ void conv2d_nhwc_stage_outputs(uint32_t staging, float (&sum)[PIXELS / 2],
                                                                 const float *bias, int filter, int filters,
                                                                 bool relu) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, low = filter + 16 * warp + lane / 4;
  float bias_low = bias != NULL && low < filters ? bias[low] : 0.0f;
  float bias_high = bias != NULL && low + 8 < filters ? bias[low + 8] : 0.0f;
  uint32_t row = staging + (lane / 16 * 8 + lane % 8) * CONV2D_NHWC_ROW + ((2 * warp + lane / 8 % 2) ^ lane % 8) * 16;
#pragma unroll
  for (int i = 0; i < PIXELS / 2; i += 2) {
    float b = i / 2 % 2 ? bias_high : bias_low;
    sum[i] += b;
    sum[i + 1] += b;
    if (relu) sum[i] = sum[i] < 0 ? 0 : sum[i], sum[i + 1] = sum[i + 1] < 0 ? 0 : sum[i + 1];
  }
#pragma unroll
  for (int j = 0; j < PIXELS / 16; j++) {
    const float *x = sum + 8 * j;
    store_matrices_transposed(row + j * 16 * CONV2D_NHWC_ROW, pack_two(T(), x[0], x[1]), pack_two(T(), x[2], x[3]),
                              pack_two(T(), x[4], x[5]), pack_two(T(), x[6], x[7]));
  }
  if (PIXELS % 16 != 0) {
    const float *x = sum + PIXELS / 16 * 8;
    uint32_t last = row + PIXELS / 16 * 16 * CONV2D_NHWC_ROW - lane / 16 * 8 * CONV2D_NHWC_ROW;
    store_two_matrices_transposed(last, pack_two(T(), x[0], x[1]), pack_two(T(), x[2], x[3]));
  }
}

/* The same to y (N,P,Q,K) in memory, as TF32. Lane l has filters low = l / 4 and low + 8 of pixels l % 4 * 2, + 1,
 * and 8 further: so 8 lanes write 32 neighbouring bytes. */
template <int PIXELS>
static __device__ __forceinline__ void conv2d_nhwc_store_floats(float *y, const Conv2dNhwcPlan &plan,
                                                                const Conv2dNhwcPlace &place, float (&sum)[PIXELS / 2],
                                                                const float *bias, bool relu) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, low = place.filter + 16 * warp + lane / 4;
  const float bias_low = bias != NULL && low < plan.filters ? bias[low] : 0.0f;
  const float bias_high = bias != NULL && low + 8 < plan.filters ? bias[low + 8] : 0.0f;
#pragma unroll
  for (int e = 0; e < 2; e++) {
    int col = lane % 4 * 2 + e, row = 0, image = 0;
#pragma unroll
    for (int j = 0; j < PIXELS / 8; j++, col += 8) {
      for (; col >= plan.pitch; col -= plan.pitch)
        if (++row == plan.image_rows) row = 0, image++;
      const int p = place.row + row, q = place.col + col, n = place.image + image;
      const bool inside = image < plan.tile_images && n < plan.images && row < plan.tile_rows && p < plan.rows &&
                          col < plan.tile_cols && q < plan.cols;
      float *to = y + (((size_t)n * plan.rows + p) * plan.cols + q) * plan.filters + low;
      float a = sum[4 * j + e] + bias_low, b = sum[4 * j + 2 + e] + bias_high;
      if (relu) a = a < 0 ? 0 : a, b = b < 0 ? 0 : b;
      if (inside && low < plan.filters) to[0] = __uint_as_float(conv2d_tf32(__float_as_uint(a)));
      if (inside && low + 8 < plan.filters) to[8] = __uint_as_float(conv2d_tf32(__float_as_uint(b)));
    }
  }
}

/* Rows of zeros to shared memory, by all threads of the block. */
template <int THREADS>
static __device__ __forceinline__ void conv2d_nhwc_clear(uint32_t at, int rows) {
  for (int i = threadIdx.x; i < rows * CONV2D_NHWC_ROW / 16; i += THREADS) store_four(at + i * 16, 0);
}

/* A warp has finished with a stage. */
static __device__ __forceinline__ void conv2d_nhwc_release(uint32_t barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive(barrier);
}

/* The sums of a warpgroup, through `staging`, to its place in y: one TMA store. */
template <typename T, int PIXELS>
static __device__ __forceinline__ void conv2d_nhwc_store_tile(uint32_t staging, const Conv2dNhwcPlan &plan,
                                                              const Conv2dNhwcMaps &maps, const Conv2dNhwcPlace &place,
                                                              float (&sum)[PIXELS / 2], const float *bias, bool relu) {
  const int barrier = threadIdx.x / 128;
  const bool first_thread = threadIdx.x % 128 == 0;
  if (first_thread) tma_store_wait_read();
  named_barrier_sync(barrier, 128); /* the last outputs were read, and no warp multiplies any more */
  conv2d_nhwc_stage_outputs<T, PIXELS>(staging, sum, bias, place.filter, plan.filters, relu);
  tma_proxy_fence();
  named_barrier_sync(barrier, 128);
  if (first_thread && place.filter < plan.filters && place.image < plan.images) {
    tma_store_4d(&maps.output[place.problem], place.filter, place.col, place.row, place.image, staging);
    tma_store_commit();
  }
}

template <typename T, int PIXELS, int BLOCKS, bool BACKWARD>
static __device__ __forceinline__ void conv2d_nhwc_consume(T *y, const Conv2dNhwcPlan &plan, const Conv2dNhwcRing &ring,
                                                           const Conv2dNhwcMaps &maps, const float *bias, bool relu) {
  const bool floats = sizeof(T) == sizeof(float);
  int consumer = threadIdx.x / 128 - 1, pixel_stage = 0, weight_stage = 0;
  uint32_t pixel_phase = 0, weight_phase = 0;
  uint32_t own_pixels = BLOCKS == 1 ? consumer * ring.pixel_bytes / 2 : 0;
  uint32_t own_weights = BLOCKS == 2 ? consumer * CONV2D_NHWC_BLOCK * CONV2D_NHWC_ROW : 0;
  bool first_thread = threadIdx.x % 128 == 0;
  float sum[PIXELS / 2];
  for (int tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    Conv2dNhwcPlace place = conv2d_nhwc_place(plan, tile, consumer);
    int last_weight = -1, last_pixel = -1;
    for (int c = plan.first_chunk[place.problem]; c < plan.first_chunk[place.problem + 1]; c++)
      for (int channel = 0; channel < plan.chunk[c].channels; channel += CONV2D_NHWC_ROW / (int)sizeof(T)) {
        uint32_t pixels = ring.pixels + pixel_stage * ring.pixel_bytes + own_pixels;
        mbarrier_wait(ring.pixel_full + 8 * pixel_stage, pixel_phase);
        for (int t = 0; t < plan.chunk[c].taps; t++) {
          uint32_t b = pixels + plan.tap[plan.chunk[c].first_tap + t].shift * CONV2D_NHWC_ROW;
          uint32_t a = ring.weights + weight_stage * ring.weight_bytes + own_weights;
          mbarrier_wait(ring.weight_full + 8 * weight_stage, weight_phase);
          wgmma_fence();
          conv2d_nhwc_products<T, BACKWARD>(sum, a, b, last_weight < 0);
          wgmma_commit();
          wgmma_wait<1>();
          if (last_weight >= 0) conv2d_nhwc_release(ring.weight_empty + 8 * last_weight);
          if (last_pixel >= 0) conv2d_nhwc_release(ring.pixel_empty + 8 * last_pixel);
          last_pixel = -1;
          last_weight = weight_stage;
          conv2d_ring_advance(plan.weight_stages, &weight_stage, &weight_phase);
        }
        last_pixel = pixel_stage;
        conv2d_ring_advance(plan.pixel_stages, &pixel_stage, &pixel_phase);
      }
    wgmma_wait<0>();
    conv2d_nhwc_release(ring.weight_empty + 8 * last_weight);
    if (BLOCKS == 2 || floats) conv2d_nhwc_release(ring.pixel_empty + 8 * last_pixel);
    place.filter += BLOCKS == 2 ? consumer * CONV2D_NHWC_BLOCK : 0;
    if constexpr (floats) {
      conv2d_nhwc_store_floats<PIXELS>(y, plan, place, sum, bias, relu);
    } else {
      const uint32_t staging = BLOCKS == 2 ? ring.staging + consumer * ring.staging_bytes
                                           : ring.pixels + last_pixel * ring.pixel_bytes + own_pixels;
      conv2d_nhwc_store_tile<T, PIXELS>(staging, plan, maps, place, sum, bias, relu);
      if (BLOCKS == 1) {
        if (first_thread) tma_store_wait_read();
        named_barrier_sync(1 + consumer, 128);
        conv2d_nhwc_release(ring.pixel_empty + 8 * last_pixel);
      }
    }
  }
  if (first_thread) tma_store_wait();
}
#endif

template <typename T, int PIXELS, int BLOCKS, bool BACKWARD>
static __global__ void __launch_bounds__(CONV2D_NHWC_THREADS, 1)
    conv2d_nhwc_wgmma_kernel(const __grid_constant__ Conv2dNhwcMaps maps, const __grid_constant__ Conv2dNhwcPlan plan,
                             T *y, const float *bias, bool relu) {
#ifdef HOPPER_COMPILED
  extern __shared__ unsigned char conv2d_nhwc_shared[];
  __shared__ __align__(8) uint64_t barriers[4][CONV2D_NHWC_STAGES];
  Conv2dNhwcRing ring;
  ring.weights = (shared_address(conv2d_nhwc_shared) + 1023) & ~1023u;
  ring.weight_bytes = BLOCKS * CONV2D_NHWC_BLOCK * CONV2D_NHWC_ROW;
  ring.pixels = ring.weights + plan.weight_stages * ring.weight_bytes;
  ring.pixel_bytes = plan.buffer_rows * CONV2D_NHWC_ROW * (BLOCKS == 1 ? 2 : 1);
  ring.staging = ring.pixels + plan.pixel_stages * ring.pixel_bytes;
  int store_rows = plan.tile_images * plan.image_rows * plan.pitch;
  ring.staging_bytes = ((store_rows > PIXELS ? store_rows : PIXELS) + 7) / 8 * 8 * CONV2D_NHWC_ROW;
  ring.pixel_full = shared_address(barriers[0]);
  ring.pixel_empty = shared_address(barriers[1]);
  ring.weight_full = shared_address(barriers[2]);
  ring.weight_empty = shared_address(barriers[3]);
  if (threadIdx.x == 0) {
    for (int i = 0; i < CONV2D_NHWC_STAGES; i++) {
      mbarrier_init(ring.pixel_full + 8 * i, 1);
      mbarrier_init(ring.pixel_empty + 8 * i, 8);
      mbarrier_init(ring.weight_full + 8 * i, 1);
      mbarrier_init(ring.weight_empty + 8 * i, 8);
    }
    mbarrier_init_fence();
  }
  /* Rows behind the boxes are padding: zero, once for all. */
  int box_rows = plan.box_rows * plan.tile_images * plan.pitch;
  for (int buffer = 0; buffer < plan.pixel_stages * (BLOCKS == 1 ? 2 : 1); buffer++)
    conv2d_nhwc_clear<CONV2D_NHWC_THREADS>(ring.pixels + (buffer * plan.buffer_rows + box_rows) * CONV2D_NHWC_ROW,
                                           plan.buffer_rows - box_rows);
  tma_proxy_fence();
  __syncthreads();

  if (threadIdx.x < 128) {
    setmaxnreg_decrease<40>();
    if (threadIdx.x == 0) conv2d_nhwc_produce_pixels(plan, ring, maps);
    if (threadIdx.x == 32) conv2d_nhwc_produce_weights<BLOCKS, BACKWARD>(plan, ring, maps);
    __syncwarp();
  } else {
    setmaxnreg_increase<232>();
    conv2d_nhwc_consume<T, PIXELS, BLOCKS, BACKWARD>(y, plan, ring, maps, bias, relu);
  }
#endif
}

#endif /* PHASE3_CNN_CONV2D_NHWC_WGMMA_KERNEL_CUH */
