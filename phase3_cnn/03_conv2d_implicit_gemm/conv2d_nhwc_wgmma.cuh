/* conv2d_nhwc_wgmma.cuh - convolution with the instructions of Hopper: NHWC, bfloat16 or half, float32 sums. */
#ifndef PHASE3_CNN_CONV2D_NHWC_WGMMA_CUH
#define PHASE3_CNN_CONV2D_NHWC_WGMMA_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_plan.cuh"

/* There are forty of these kernels. For the emulated GPU, whose compiler takes a minute for them, they are left out
 * unless CONV2D_EMULATE_WGMMA is defined. */
#if defined(SIMT_REWRITTEN) && !defined(CONV2D_EMULATE_WGMMA)
#define CONV2D_WITHOUT_WGMMA
#endif

/* Why this GPU or this program cannot run them; NULL if it can. */
static inline const char *conv2d_wgmma_refusal(void) {
  const char *refusal = matmul_wgmma_refusal();
#ifdef CONV2D_WITHOUT_WGMMA
  if (refusal == NULL) refusal = "the program was compiled without them; -DCONV2D_EMULATE_WGMMA compiles them";
#endif
  return refusal;
}

#ifndef CONV2D_WITHOUT_WGMMA
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_tensor_hopper.cuh"

typedef struct Conv2dNhwcMaps {
  CUtensorMap input[CONV2D_NHWC_PLANES], output[CONV2D_NHWC_PLANES], weights;
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

/* One thread: copies the boxes of pixels. */
static __device__ __forceinline__ void conv2d_nhwc_produce_pixels(const Conv2dNhwcPlan &plan,
                                                                  const Conv2dNhwcRing &ring,
                                                                  const Conv2dNhwcMaps &maps) {
  int stage = 0, boxes = plan.blocks == 1 ? 2 : 1;
  uint32_t phase = 0;
  int bytes = plan.box_rows * plan.tile_images * plan.pitch * CONV2D_NHWC_ROW * boxes;
  for (int tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    Conv2dNhwcPlace place = conv2d_nhwc_place(plan, tile, 0), second = conv2d_nhwc_place(plan, tile, 1);
    for (int c = plan.first_chunk[place.problem]; c < plan.first_chunk[place.problem + 1]; c++)
      for (int channel = 0; channel < plan.chunk[c].channels; channel += CONV2D_NHWC_BLOCK) {
        uint32_t full = ring.pixel_full + 8 * stage, to = ring.pixels + stage * ring.pixel_bytes;
        const CUtensorMap *map = &maps.input[plan.chunk[c].plane];
        mbarrier_wait(ring.pixel_empty + 8 * stage, phase ^ 1);
        mbarrier_arrive_expect(full, bytes);
        tma_load_4d(to, map, channel, place.col + plan.chunk[c].col, place.row + plan.chunk[c].row, place.image, full);
        if (boxes == 2)
          tma_load_4d(to + ring.pixel_bytes / 2, map, channel, second.col + plan.chunk[c].col,
                      second.row + plan.chunk[c].row, second.image, full);
        conv2d_ring_advance(plan.pixel_stages, &stage, &phase);
      }
  }
}

/* Another thread: copies the weights of one tap and 64 channels. */
template <int BLOCKS, bool BACKWARD>
static __device__ __forceinline__ void conv2d_nhwc_produce_weights(const Conv2dNhwcPlan &plan,
                                                                   const Conv2dNhwcRing &ring, const CUtensorMap *map) {
  int stage = 0;
  uint32_t phase = 0;
  for (int tile = blockIdx.x; tile < plan.tiles; tile += gridDim.x) {
    Conv2dNhwcPlace place = conv2d_nhwc_place(plan, tile, 0);
    for (int c = plan.first_chunk[place.problem]; c < plan.first_chunk[place.problem + 1]; c++)
      for (int channel = 0; channel < plan.chunk[c].channels; channel += CONV2D_NHWC_BLOCK)
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
            tma_load_3d(to, map, channel, filter, place.filter, full);
          }
          conv2d_ring_advance(plan.weight_stages, &stage, &phase);
        }
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

template <typename T, int PIXELS, int BLOCKS, bool BACKWARD>
static __device__ __forceinline__ void conv2d_nhwc_consume(const Conv2dNhwcPlan &plan, const Conv2dNhwcRing &ring,
                                                           const Conv2dNhwcMaps &maps, const float *bias, bool relu) {
  const bool half = Conv2dIsHalf<T>::value;
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
      for (int channel = 0; channel < plan.chunk[c].channels; channel += CONV2D_NHWC_BLOCK) {
        uint32_t pixels = ring.pixels + pixel_stage * ring.pixel_bytes + own_pixels;
        mbarrier_wait(ring.pixel_full + 8 * pixel_stage, pixel_phase);
        for (int t = 0; t < plan.chunk[c].taps; t++) {
          uint32_t b = pixels + plan.tap[plan.chunk[c].first_tap + t].shift * CONV2D_NHWC_ROW;
          uint32_t a = ring.weights + weight_stage * ring.weight_bytes + own_weights;
          mbarrier_wait(ring.weight_full + 8 * weight_stage, weight_phase);
          uint64_t a_matrix = wgmma_descriptor(a, 1024, 0), b_matrix = wgmma_descriptor(b, 1024, 0);
          wgmma_fence();
#pragma unroll
          for (int i = 0; i < 4; i++)
            wgmma<half, BACKWARD, 0>(sum, a_matrix + (BACKWARD ? 128 : 2) * i, b_matrix + 2 * i,
                                     last_weight >= 0 || i > 0);
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
    if (BLOCKS == 2) conv2d_nhwc_release(ring.pixel_empty + 8 * last_pixel);

    uint32_t staging = BLOCKS == 2 ? ring.staging + consumer * ring.staging_bytes
                                   : ring.pixels + last_pixel * ring.pixel_bytes + own_pixels;
    int filter = place.filter + (BLOCKS == 2 ? consumer * CONV2D_NHWC_BLOCK : 0);
    if (first_thread) tma_store_wait_read();
    named_barrier_sync(1 + consumer, 128); /* the last outputs were read, and no warp multiplies any more */
    conv2d_nhwc_stage_outputs<T, PIXELS>(staging, sum, bias, filter, plan.filters, relu);
    tma_proxy_fence();
    named_barrier_sync(1 + consumer, 128);
    if (first_thread && filter < plan.filters && place.image < plan.images) {
      tma_store_4d(&maps.output[place.problem], filter, place.col, place.row, place.image, staging);
      tma_store_commit();
    }
    if (BLOCKS == 1) {
      if (first_thread) tma_store_wait_read();
      named_barrier_sync(1 + consumer, 128);
      conv2d_nhwc_release(ring.pixel_empty + 8 * last_pixel);
    }
  }
  if (first_thread) tma_store_wait();
}
#endif

template <typename T, int PIXELS, int BLOCKS, bool BACKWARD>
static __global__ void __launch_bounds__(CONV2D_NHWC_THREADS, 1)
    conv2d_nhwc_wgmma_kernel(const __grid_constant__ Conv2dNhwcMaps maps, const __grid_constant__ Conv2dNhwcPlan plan,
                             const float *bias, bool relu) {
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
    if (threadIdx.x == 32) conv2d_nhwc_produce_weights<BLOCKS, BACKWARD>(plan, ring, &maps.weights);
    __syncwarp();
  } else {
    setmaxnreg_increase<232>();
    conv2d_nhwc_consume<T, PIXELS, BLOCKS, BACKWARD>(plan, ring, maps, bias, relu);
  }
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* The tensor map of `rank` dimensions of 16-bit elements, the first one contiguous; pitch[i]: elements from one to the
 * next along dimension i + 1. */
static inline CUtensorMap conv2d_nhwc_map(const void *x, bool half, int rank, const size_t *size, const size_t *pitch,
                                          const int *box) {
  cuuint64_t sizes[4], bytes[4];
  cuuint32_t boxes[4];
  for (int i = 0; i < rank; i++) {
    sizes[i] = size[i];
    boxes[i] = (cuuint32_t)box[i];
    if (i > 0) bytes[i - 1] = pitch[i - 1] * 2;
  }
  return tensor_map(x, half ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, rank, sizes, bytes,
                    boxes);
}

/* Plane (a,b) of images (N,H,W,C): the pixels of rows a, a + stride, ... and columns b, b + stride, ... */
static inline CUtensorMap conv2d_nhwc_plane_map(const void *x, bool half, int n, int h, int w, int c, int stride_h,
                                                int stride_w, int a, int b, const int *box) {
  size_t size[4] = {(size_t)c, (size_t)conv2d_nhwc_plane_size(w, stride_w, b),
                    (size_t)conv2d_nhwc_plane_size(h, stride_h, a), (size_t)n};
  size_t pitch[3] = {(size_t)stride_w * c, (size_t)stride_h * w * c, (size_t)h * w * c};
  if (size[1] == 0 || size[2] == 0) { /* no pixel: any address will do, its boxes lie outside */
    size[1] = size[2] = 1;
    a = b = 0;
  }
  return conv2d_nhwc_map((const char *)x + 2 * ((size_t)a * w + b) * c, half, 4, size, pitch, box);
}

template <typename T, int PIXELS, int BLOCKS, bool BACKWARD>
static inline void conv2d_nhwc_wgmma_run(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu,
                                         const Conv2dNhwcPlan *plan) {
  const bool half = Conv2dIsHalf<T>::value;
  int in_h = BACKWARD ? conv2d_out_h(s) : s.h, in_w = BACKWARD ? conv2d_out_w(s) : s.w;
  int out_h = BACKWARD ? s.h : conv2d_out_h(s), out_w = BACKWARD ? s.w : conv2d_out_w(s);
  int in_step_h = BACKWARD ? 1 : s.stride_h, in_step_w = BACKWARD ? 1 : s.stride_w;
  int out_step_h = BACKWARD ? s.stride_h : 1, out_step_w = BACKWARD ? s.stride_w : 1;
  Conv2dNhwcMaps maps;
  const int in_box[4] = {64, plan->pitch, plan->box_rows, plan->tile_images};
  const int out_box[4] = {64, plan->tile_cols == plan->cols ? plan->pitch : plan->tile_cols, plan->image_rows,
                          plan->tile_images};
  for (int i = 0; i < plan->planes; i++)
    maps.input[i] = conv2d_nhwc_plane_map(x, half, s.n, in_h, in_w, plan->channels, in_step_h, in_step_w, i / in_step_w,
                                          i % in_step_w, in_box);
  for (int i = 0; i < plan->problems; i++)
    maps.output[i] = conv2d_nhwc_plane_map(y, half, s.n, out_h, out_w, plan->filters, out_step_h, out_step_w,
                                           i / out_step_w, i % out_step_w, out_box);
  const size_t w_size[3] = {(size_t)s.c, (size_t)s.r * s.s, (size_t)s.k},
               w_pitch[2] = {(size_t)s.c, (size_t)s.c * s.r * s.s};
  const int w_box[3] = {64, 1, BACKWARD ? 64 : 64 * BLOCKS};
  maps.weights = conv2d_nhwc_map(w, half, 3, w_size, w_pitch, w_box);

  const void *kernel = (const void *)conv2d_nhwc_wgmma_kernel<T, PIXELS, BLOCKS, BACKWARD>;
  const int bytes = CONV2D_NHWC_SHARED + 1024;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  int blocks = matmul_mma_multiprocessors();
  if (plan->tiles < blocks) blocks = plan->tiles;
  conv2d_nhwc_wgmma_kernel<T, PIXELS, BLOCKS, BACKWARD>
      <<<blocks, CONV2D_NHWC_THREADS, bytes>>>(maps, *plan, bias, relu);
  CUDA_CHECK_LAUNCH();
}

template <typename T, bool BACKWARD>
static inline void conv2d_nhwc_wgmma_planned(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu,
                                             const Conv2dNhwcPlan *plan) {
#define CONV2D_NHWC_CASE(PIXELS)                                                   \
  case PIXELS:                                                                     \
    if (plan->blocks == 1)                                                         \
      conv2d_nhwc_wgmma_run<T, PIXELS, 1, BACKWARD>(y, x, w, bias, s, relu, plan); \
    else                                                                           \
      conv2d_nhwc_wgmma_run<T, PIXELS, 2, BACKWARD>(y, x, w, bias, s, relu, plan); \
    break;
  switch (plan->pixels) {
    CONV2D_NHWC_CASE(128)
    CONV2D_NHWC_CASE(208)
    CONV2D_NHWC_CASE(216)
    CONV2D_NHWC_CASE(232)
    CONV2D_NHWC_CASE(256)
  }
#undef CONV2D_NHWC_CASE
}

/* The pixels of a 1 x 1 convolution need not be in rows. */
static inline Conv2dShape conv2d_nhwc_flat(Conv2dShape s) {
  double pixels = (double)s.n * s.h * s.w;
  if (s.r != 1 || s.s != 1 || s.stride_h != 1 || s.stride_w != 1 || s.padding_h != 0 || s.padding_w != 0) return s;
  if (pixels > INT_MAX / 2) return s;
  s.w = s.n * s.h * s.w;
  s.n = s.h = 1;
  return s;
}

/* x (N,H,W,C), w (K,R,S,C), bias (K) or NULL -> y (N,P,Q,K), less than 0 replaced by 0 if relu. One box of x for all
 * taps, or one for each. Shapes that wgmma does not take go to conv2d_forward_nhwc_mma(). */
template <typename T>
static inline void conv2d_forward_nhwc_boxes(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu,
                                             Conv2dNhwcBoxes boxes) {
  const char *refusal = conv2d_wgmma_refusal();
  Conv2dNhwcPlan plan = {};
  Error err;
  Conv2dNhwcLimits limits = {boxes, 0, 0};
  if (refusal != NULL) die("conv2d_nhwc_wgmma: %s", refusal);
  Conv2dShape flat = conv2d_nhwc_flat(s);
  if (((uintptr_t)x | (uintptr_t)w | (uintptr_t)y) % 16 == 0 &&
      conv2d_nhwc_plan(&plan, flat, false, limits, matmul_mma_multiprocessors(), &err) == 0)
    conv2d_nhwc_wgmma_planned<T, false>(y, x, w, bias, flat, relu, &plan);
  else
    conv2d_forward_nhwc_mma(y, x, w, bias, s, relu);
}

template <typename T>
static inline void conv2d_forward_nhwc_wgmma_taps(T *y, const T *x, const T *w, const float *bias, Conv2dShape s,
                                                  bool relu) {
  conv2d_forward_nhwc_boxes(y, x, w, bias, s, relu, CONV2D_NHWC_BOX_PER_TAP);
}

template <typename T>
static inline void conv2d_forward_nhwc_wgmma(T *y, const T *x, const T *w, const float *bias, Conv2dShape s,
                                             bool relu) {
  conv2d_forward_nhwc_boxes(y, x, w, bias, s, relu, CONV2D_NHWC_BEST);
}

#else

template <typename T>
static inline void conv2d_forward_nhwc_wgmma_taps(T *, const T *, const T *, const float *, Conv2dShape, bool) {
  die("conv2d_nhwc_wgmma: %s", conv2d_wgmma_refusal());
}
template <typename T>
static inline void conv2d_forward_nhwc_wgmma(T *, const T *, const T *, const float *, Conv2dShape, bool) {
  die("conv2d_nhwc_wgmma: %s", conv2d_wgmma_refusal());
}
#endif

#endif /* PHASE3_CNN_CONV2D_NHWC_WGMMA_CUH */
