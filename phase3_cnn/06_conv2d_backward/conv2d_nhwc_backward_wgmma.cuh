/* conv2d_nhwc_backward_wgmma.cuh - gradients of convolution with the instructions of Hopper: NHWC, bfloat16 or half
 * factors, float32 sums.
 *
 *   conv2d_backward_input_nhwc_wgmma    dx: the kernel of the forward pass reads dy, and the filters as they are: wgmma
 *                                       takes them transposed. With stride 2, dx has four phases: even and odd rows and
 *                                       columns, each a convolution of dy with some of the taps
 *   conv2d_backward_weight_nhwc_wgmma   dw: conv2d_nhwc_weight_plan.cuh says how it is cut
 *
 * Shapes that these do not take go to conv2d_nhwc_mma.cuh and conv2d_nhwc_backward_mma.cuh.
 *
 * dw (K, R S C) = dy^T A: the pixels are the depth. In shared memory they are the rows of both operands; wgmma takes
 * operands whose rows run along M or N, so nothing is transposed. Three taps (r,0), (r,1), (r,2) read the same rows
 * of x, one pixel apart: the descriptor says that 64 columns of the operand begin 128 bytes, one pixel, after the 64
 * before, and so one instruction of 192 columns computes three taps. A block has 64 filters and 64 channels of nine
 * taps: one warpgroup for each row of the filter.
 *
 * Blocks with other pixels and the same sums form a cluster. At the end each leaves its sums in shared memory, and adds
 * up a part of those of all, always in the same order. Parts of several clusters are added by a second kernel.
 */
#ifndef PHASE3_CNN_CONV2D_NHWC_BACKWARD_WGMMA_CUH
#define PHASE3_CNN_CONV2D_NHWC_BACKWARD_WGMMA_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_wgmma.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_nhwc_backward_mma.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_nhwc_weight_plan.cuh"

#ifndef CONV2D_WITHOUT_WGMMA

enum {
  CONV2D_DW_WGMMA_THREADS = 512, /* producer and three consumers */
  CONV2D_DW_CONSUMERS = 384,
  CONV2D_DW_WGMMA_BYTES = CONV2D_NHWC_SHARED + 1024, /* the ring begins at a multiple of 1024 */
  CONV2D_DW_PITCH = 3 * CONV2D_NHWC_BLOCK + 8,       /* floats of a row of sums: no bank conflicts */
};

typedef struct Conv2dDwMaps {
  CUtensorMap x[CONV2D_NHWC_PLANES], dy;
} Conv2dDwMaps;

#ifdef HOPPER_COMPILED

/* Of this block. */
typedef struct Conv2dDwWork {
  uint32_t tiles, full, empty;           /* ring, and its mbarriers */
  int stage_bytes, dy_offset;            /* the box of x, then that of dy */
  int channel, filter, set, split, rank; /* rank in the cluster */
  int first, last;                       /* tiles of pixels */
} Conv2dDwWork;

/* Block number: splits first, so that those of a cluster have the same sums. */
static __device__ __forceinline__ Conv2dDwWork conv2d_dw_work(const Conv2dDwPlan &plan, uint32_t tiles) {
  Conv2dDwWork work;
  int channel_blocks = (plan.channels + CONV2D_NHWC_BLOCK - 1) / CONV2D_NHWC_BLOCK;
  int filter_blocks = (plan.filters + CONV2D_NHWC_BLOCK - 1) / CONV2D_NHWC_BLOCK;
  int unit = blockIdx.x / plan.splits, pixel_tiles = plan.tiles_images * plan.tiles_rows;
  work.tiles = tiles;
  work.dy_offset = plan.x_rows * CONV2D_NHWC_ROW;
  work.stage_bytes = work.dy_offset + plan.dy_rows * CONV2D_NHWC_ROW;
  work.split = blockIdx.x % plan.splits;
  work.rank = work.split % plan.cluster;
  work.channel = unit % channel_blocks * CONV2D_NHWC_BLOCK;
  work.filter = unit / channel_blocks % filter_blocks * CONV2D_NHWC_BLOCK;
  work.set = unit / channel_blocks / filter_blocks;
  work.first = (int)((long long)pixel_tiles * work.split / plan.splits);
  work.last = (int)((long long)pixel_tiles * (work.split + 1) / plan.splits);
  return work;
}

/* One thread: copies the box of x and that of dy, tile after tile. */
static __device__ __forceinline__ void conv2d_dw_produce(const Conv2dDwPlan &plan, const Conv2dDwWork &work,
                                                         const Conv2dDwMaps &maps) {
  int stage = 0;
  uint32_t phase = 0;
  const Conv2dDwSet &set = plan.set[work.set];
  int bytes = (plan.box_rows + plan.image_rows) * plan.tile_images * plan.pitch * CONV2D_NHWC_ROW;
  for (int tile = work.first; tile < work.last; tile++) {
    int row = tile % plan.tiles_rows * plan.tile_rows, image = tile / plan.tiles_rows * plan.tile_images;
    uint32_t full = work.full + 8 * stage, to = work.tiles + stage * work.stage_bytes;
    mbarrier_wait(work.empty + 8 * stage, phase ^ 1);
    mbarrier_arrive_expect(full, bytes);
    tma_load_4d(to, &maps.x[set.plane], work.channel, set.col, row + set.row, image, full);
    tma_load_4d(to + work.dy_offset, &maps.dy, work.filter, 0, row, image, full);
    conv2d_ring_advance(plan.stages, &stage, &phase);
  }
}

/* A warpgroup: TAPS taps of all tiles. The sums, 64 filters x 64 TAPS, end in its rows of `kept` in shared memory. */
template <bool HALF, int TAPS>
static __device__ __forceinline__ void conv2d_dw_consume(const Conv2dDwPlan &plan, const Conv2dDwWork &work,
                                                         float *kept) {
  int stage = 0, last = -1, consumer = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
  uint32_t phase = 0;
  const Conv2dDwJob job = plan.set[work.set].job[consumer];
  float sum[TAPS * 32];
  for (int tile = work.first; tile < work.last; tile++) {
    uint32_t x = work.tiles + stage * work.stage_bytes;
    mbarrier_wait(work.full + 8 * stage, phase);
    uint64_t a = wgmma_descriptor(x + work.dy_offset, 1024, 0);
    uint64_t b = wgmma_descriptor(x + job.shift * CONV2D_NHWC_ROW, 1024, job.step * CONV2D_NHWC_ROW);
    wgmma_fence();
    for (int i = 0; i < plan.depth / 16; i++) /* 16 pixels are 2048 bytes */
      wgmma<HALF, 1, 1>(sum, a + 128 * i, b + 128 * i, last >= 0 || i > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (last >= 0) conv2d_nhwc_release(work.empty + 8 * last);
    last = stage;
    conv2d_ring_advance(plan.stages, &stage, &phase);
  }
  wgmma_wait<0>();
  named_barrier_sync(1, 128 * plan.set[work.set].jobs); /* no warpgroup reads the ring any more */
  float *to = kept + (consumer * CONV2D_NHWC_BLOCK + threadIdx.x / 32 % 4 * 16 + lane / 4) * CONV2D_DW_PITCH;
#pragma unroll
  for (int j = 0; j < TAPS * 8; j++) {
    int col = 8 * j + lane % 4 * 2;
    *(float2 *)(to + col) = make_float2(sum[4 * j], sum[4 * j + 1]);
    *(float2 *)(to + 8 * CONV2D_DW_PITCH + col) = make_float2(sum[4 * j + 2], sum[4 * j + 3]);
  }
}

static __device__ __forceinline__ void conv2d_store_four(float *to, float4 x) { *(float4 *)to = x; }
static __device__ __forceinline__ void conv2d_store_four(__nv_bfloat16 *to, float4 x) {
  __nv_bfloat162 pair[2] = {__floats2bfloat162_rn(x.x, x.y), __floats2bfloat162_rn(x.z, x.w)};
  *(uint2 *)to = *(uint2 *)pair;
}
static __device__ __forceinline__ void conv2d_store_four(__half *to, float4 x) {
  __half2 pair[2] = {__floats2half2_rn(x.x, x.y), __floats2half2_rn(x.z, x.w)};
  *(uint2 *)to = *(uint2 *)pair;
}

/* The consumers of each block of a cluster add up its share of the 64 filters, over all blocks. out (K,taps,C) */
template <typename T>
static __device__ __forceinline__ void conv2d_dw_add(T *out, const Conv2dDwPlan &plan, const Conv2dDwWork &work,
                                                     const float *kept) {
  const int quads = CONV2D_NHWC_BLOCK / 4; /* of the channels of a tap */
  int rows = CONV2D_NHWC_BLOCK / plan.cluster, row0 = work.rank * rows;
  for (int number = 0; number < plan.set[work.set].jobs; number++) {
    const Conv2dDwJob job = plan.set[work.set].job[number];
    for (int i = threadIdx.x - 128; i < rows * job.taps * quads; i += CONV2D_DW_CONSUMERS) {
      int row = row0 + i / (job.taps * quads), tap = i / quads % job.taps, c = work.channel + i % quads * 4;
      int place = (number * CONV2D_NHWC_BLOCK + row) * CONV2D_DW_PITCH + i % (job.taps * quads) * 4;
      float4 sum = make_float4(0, 0, 0, 0);
      for (int rank = 0; rank < plan.cluster; rank++) {
        float4 x = cluster_load(shared_address(kept + place), rank);
        sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
      }
      int filter = job.filter + tap * job.filter_step;
      size_t k = work.filter + row;
      if (k < (size_t)plan.filters && c < plan.channels)
        conv2d_store_four(out + (k * plan.taps + filter) * plan.channels + c, sum);
    }
  }
}
#endif

/* dw, where one cluster has all splits; otherwise each cluster's part to `partial`. */
template <typename T>
static __global__ void __launch_bounds__(CONV2D_DW_WGMMA_THREADS, 1)
    conv2d_dw_wgmma_kernel(const __grid_constant__ Conv2dDwMaps maps, const __grid_constant__ Conv2dDwPlan plan, T *dw,
                           float *partial) {
#ifdef HOPPER_COMPILED
  const bool half = Conv2dIsHalf<T>::value;
  extern __shared__ unsigned char conv2d_nhwc_shared[];
  __shared__ __align__(8) uint64_t barriers[2][CONV2D_DW_RING];
  uint32_t unaligned = shared_address(conv2d_nhwc_shared), aligned = (unaligned + 1023) & ~1023u;
  float *kept = (float *)(conv2d_nhwc_shared + (aligned - unaligned));
  Conv2dDwWork work = conv2d_dw_work(plan, aligned);
  work.full = shared_address(barriers[0]);
  work.empty = shared_address(barriers[1]);
  int jobs = plan.set[work.set].jobs, consumer = (int)threadIdx.x / 128 - 1;
  if (threadIdx.x == 0) {
    for (int i = 0; i < CONV2D_DW_RING; i++) {
      mbarrier_init(work.full + 8 * i, 1);
      mbarrier_init(work.empty + 8 * i, 4 * jobs);
    }
    mbarrier_init_fence();
  }
  /* Rows behind the boxes: zero in dy, so that they add nothing, and finite in x. */
  int x_box = plan.box_rows * plan.tile_images * plan.pitch, dy_box = plan.image_rows * plan.tile_images * plan.pitch;
  for (int i = 0; i < plan.stages; i++) {
    uint32_t x = work.tiles + i * work.stage_bytes, dy = x + work.dy_offset;
    conv2d_nhwc_clear<CONV2D_DW_WGMMA_THREADS>(x + x_box * CONV2D_NHWC_ROW, plan.x_rows - x_box);
    conv2d_nhwc_clear<CONV2D_DW_WGMMA_THREADS>(dy + dy_box * CONV2D_NHWC_ROW, plan.dy_rows - dy_box);
  }
  tma_proxy_fence();
  __syncthreads();

  if (threadIdx.x < 128) {
    setmaxnreg_decrease<32>();
    if (threadIdx.x == 0) conv2d_dw_produce(plan, work, maps);
    __syncwarp();
    cluster_sync();
    cluster_sync();
  } else {
    setmaxnreg_increase<160>();
    int taps = consumer < jobs ? plan.set[work.set].job[consumer].taps : 0;
    if (taps == 3) conv2d_dw_consume<half, 3>(plan, work, kept);
    if (taps == 2) conv2d_dw_consume<half, 2>(plan, work, kept);
    if (taps == 1) conv2d_dw_consume<half, 1>(plan, work, kept);
    cluster_sync(); /* all sums lie in shared memory */
    if (plan.splits == plan.cluster)
      conv2d_dw_add(dw, plan, work, kept);
    else
      conv2d_dw_add(partial + (size_t)(work.split / plan.cluster) * plan.filters * plan.taps * plan.channels, plan,
                    work, kept);
    cluster_sync(); /* no block exits while others read its shared memory */
  }
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline size_t conv2d_dw_plan_floats(const Conv2dDwPlan *plan) {
  if (plan->splits == plan->cluster) return 0;
  return (size_t)plan->splits / plan->cluster * plan->filters * plan->taps * plan->channels;
}

/* Asked once: a cluster must fit into a part of the GPU (a GPC), and some have fewer multiprocessors than others. */
template <typename T>
static inline Conv2dDwClusters conv2d_dw_clusters(void) {
  static Conv2dDwClusters clusters;
  const void *kernel = (const void *)conv2d_dw_wgmma_kernel<T>;
  if (clusters.active[0] > 0) return clusters;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, CONV2D_DW_WGMMA_BYTES));
  for (int i = CONV2D_DW_CLUSTER_SIZES - 1; i >= 0; i--) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 1u << i;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1u << i);
    config.blockDim = dim3(CONV2D_DW_WGMMA_THREADS);
    config.dynamicSmemBytes = CONV2D_DW_WGMMA_BYTES;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters.active[i], kernel, &config));
  }
  return clusters;
}

template <typename T>
static inline void conv2d_dw_planned(T *dw, const T *dy, const T *x, Conv2dShape s, float *workspace,
                                     const Conv2dDwPlan *plan) {
  Conv2dDwMaps maps;
  const bool half = Conv2dIsHalf<T>::value;
  const int x_box[4] = {64, plan->pitch, plan->box_rows, plan->tile_images};
  const int dy_box[4] = {64, plan->pitch, plan->image_rows, plan->tile_images};
  for (int i = 0; i < plan->planes; i++)
    maps.x[i] = conv2d_nhwc_plane_map(x, half, s.n, s.h, s.w, s.c, s.stride_h, s.stride_w, i / s.stride_w,
                                      i % s.stride_w, x_box);
  maps.dy = conv2d_nhwc_plane_map(dy, half, s.n, conv2d_out_h(s), conv2d_out_w(s), s.k, 1, 1, 0, 0, dy_box);
  auto *kernel = conv2d_dw_wgmma_kernel<T>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, CONV2D_DW_WGMMA_BYTES));
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = plan->cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)(plan->sets * ((s.c + 63) / 64) * ((s.k + 63) / 64) * plan->splits));
  config.blockDim = dim3(CONV2D_DW_WGMMA_THREADS);
  config.dynamicSmemBytes = CONV2D_DW_WGMMA_BYTES;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, maps, *plan, dw, workspace));
  if (plan->splits != plan->cluster)
    conv2d_nhwc_add_splits(dw, workspace, conv2d_w_count(s), plan->splits / plan->cluster);
}

/* dy (N,P,Q,K), w (K,R,S,C/groups) -> dx (N,H,W,C). workspace: as many T as w has, for shapes that go to mma.sync */
template <typename T>
static inline void conv2d_backward_input_nhwc_wgmma(T *dx, const T *dy, const T *w, Conv2dShape s, T *workspace) {
  Conv2dNhwcPlan plan = {};
  Conv2dNhwcLimits any = {CONV2D_NHWC_BEST, 0, 0};
  Error err;
  if (conv2d_nhwc_plan(&plan, s, true, any, matmul_mma_multiprocessors(), &err) == 0 &&
      ((uintptr_t)dx | (uintptr_t)dy | (uintptr_t)w) % 16 == 0)
    conv2d_nhwc_wgmma_planned<T, true>(dx, dy, w, NULL, s, false, &plan);
  else
    conv2d_backward_input_nhwc_mma(dx, dy, w, s, workspace);
}

/* Floats of workspace for conv2d_backward_weight_nhwc_wgmma(). */
template <typename T>
static inline size_t conv2d_dw_wgmma_floats(Conv2dShape s) {
  Conv2dDwPlan plan = {};
  Error err;
  size_t mma = conv2d_dw_floats(s);
  if (conv2d_dw_plan(&plan, s, conv2d_dw_clusters<T>(), &err) != 0) return mma;
  size_t floats = conv2d_dw_plan_floats(&plan);
  return floats > mma ? floats : mma;
}

/* dy (N,P,Q,K), x (N,H,W,C) -> dw (K,R,S,C/groups) and, unless it is NULL, dbias (K) */
template <typename T>
static inline void conv2d_backward_weight_nhwc_wgmma(T *dw, float *dbias, const T *dy, const T *x, Conv2dShape s,
                                                     float *workspace) {
  Conv2dDwPlan plan = {};
  Error err;
  if (conv2d_dw_plan(&plan, s, conv2d_dw_clusters<T>(), &err) == 0 &&
      ((uintptr_t)dw | (uintptr_t)dy | (uintptr_t)x) % 16 == 0) {
    conv2d_dw_planned(dw, dy, x, s, workspace, &plan);
    if (dbias != NULL) conv2d_nhwc_bias_gradient(dbias, dy, s, workspace);
  } else {
    conv2d_backward_weight_nhwc_mma(dw, dbias, dy, x, s, workspace);
  }
}

#else

template <typename T>
static inline size_t conv2d_dw_wgmma_floats(Conv2dShape s) {
  return conv2d_dw_floats(s);
}
template <typename T>
static inline void conv2d_backward_input_nhwc_wgmma(T *, const T *, const T *, Conv2dShape, T *) {
  die("conv2d_nhwc_wgmma: %s", conv2d_wgmma_refusal());
}
template <typename T>
static inline void conv2d_backward_weight_nhwc_wgmma(T *, float *, const T *, const T *, Conv2dShape, float *) {
  die("conv2d_nhwc_wgmma: %s", conv2d_wgmma_refusal());
}
#endif

#endif /* PHASE3_CNN_CONV2D_NHWC_BACKWARD_WGMMA_CUH */
