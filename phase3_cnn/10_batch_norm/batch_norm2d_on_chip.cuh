/* batch_norm2d_on_chip.cuh - batch norm with each number read once and written once: the versions that networks use.
 *
 * Between the first and the second look at a channel lies a sum over all of it. Two kernels read x from memory for
 * both. Here a group of blocks keeps a channel in its shared memory meanwhile, a slice in each block: read the slice,
 * exchange the sums with the other blocks of the group, write the results, take the next channel.
 *
 *     group 0   channel 0 | channel 0 + groups | ...        block 0: slice 0, block 1: slice 1, ...
 *     group 1   channel 1 | channel 1 + groups | ...
 *
 * An H200 keeps 29 MB in this way, two blocks on each of its 132 multiprocessors: while one of them waits for its
 * group, the other reads or writes. What does not fit is read again. A group of one block needs nobody, and its launch
 * is an ordinary one; larger groups need a cooperative launch, in which all blocks are there at the same time.
 *
 * The blocks exchange their sums through `workspace`. Before the launch it holds anything. So the first exchange is a
 * barrier of the whole grid, whose memory CUDA looks after; the others count arrivals, from the 0 that each group has
 * written before that. Sums are added in the order of the slices: the results do not depend on which block is first.
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_ON_CHIP_CUH
#define PHASE3_CNN_BATCH_NORM2D_ON_CHIP_CUH

#include <cooperative_groups.h>

#include "common/shared_memory_limit.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_slice.cuh"

enum {
  BATCH_NORM_RESIDENT = 2, /* blocks per multiprocessor */
  BATCH_NORM_GRID = 1024,  /* blocks, at most */
  BATCH_NORM_ALONE_MOST =
      16384, /* values that one block takes alone, though others are idle: a barrier costs as much */
  BATCH_NORM_SLICE_LEAST = 4096, /* values of a slice otherwise */
  BATCH_NORM_WORKSPACE = (2 * 3 + 1) * BATCH_NORM_GRID
};

/* How a grid shares out the channels. */
typedef struct BatchNorm2dPlan {
  int groups, slices; /* groups of `slices` blocks */
  int room;           /* values of a slice that are kept */
} BatchNorm2dPlan;

/* The same for every version on a chip. */
static inline size_t batch_norm2d_workspace_floats(BatchNorm2dShape s) {
  (void)s;
  return BATCH_NORM_WORKSPACE;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Exchange within a group */

/* The workspace: two turns of a float3 per block, then a counter per group. Two, because a block may begin to write
 * the next channel's sums while others still read this one's. */
typedef struct BatchNorm2dGroup {
  float *parts; /* of the group, in turn 0 */
  unsigned *arrived;
  int slice, slices;
} BatchNorm2dGroup;

static __device__ __forceinline__ BatchNorm2dGroup batch_norm2d_group(float *workspace, BatchNorm2dPlan plan) {
  const int group = blockIdx.x / plan.slices;
  BatchNorm2dGroup g = {workspace + 3 * group * plan.slices, (unsigned *)workspace + 6 * BATCH_NORM_GRID + group,
                        (int)blockIdx.x % plan.slices, plan.slices};
  return g;
}

/* Waits until all blocks of the group have come; then warp 0 sees what each wrote before. turn: channels of the group
 * before this one. The other warps go on. */
static __device__ __forceinline__ void batch_norm2d_meet(BatchNorm2dGroup g, int turn) {
  if (turn == 0) {
    cooperative_groups::this_grid().sync();
    return;
  }
  if (threadIdx.x == 0) {
    __threadfence(); /* the sums must be visible before the count */
    atomicAdd(g.arrived, 1);
    while (*(volatile unsigned *)g.arrived < (unsigned)(turn * g.slices)) __nanosleep(32);
    __threadfence();
  }
  if (threadIdx.x < 32) __syncwarp();
}

/* Every block of the group gives three numbers of its slice, by thread 0. Where all of them are, for warp 0. */
static __device__ __forceinline__ const float *batch_norm2d_exchange(BatchNorm2dGroup g, int turn, float a, float b,
                                                                     float c) {
  float *parts = g.parts + turn % 2 * 3 * BATCH_NORM_GRID, *own = parts + 3 * g.slice;
  if (threadIdx.x == 0) {
    own[0] = a;
    own[1] = b;
    own[2] = c;
    if (turn == 0 && g.slice == 0) *g.arrived = 0;
  }
  batch_norm2d_meet(g, turn);
  return parts;
}

/* The moments of a channel from those of its slices, both in thread 0. */
static __device__ __forceinline__ Moments batch_norm2d_share_moments(BatchNorm2dGroup g, int turn, Moments m) {
  const float *parts = batch_norm2d_exchange(g, turn, m.count, m.mean, m.squares);
  if (threadIdx.x >= 32) return m;
  m.count = m.mean = m.squares = 0;
  for (int i = threadIdx.x; i < g.slices; i += 32) { /* __ldcg(): from L2, where other blocks' stores are */
    const Moments part = {__ldcg(parts + 3 * i), __ldcg(parts + 3 * i + 1), __ldcg(parts + 3 * i + 2)};
    m = moments_merge(m, part);
  }
  return moments_warp(m);
}

static __device__ __forceinline__ float2 batch_norm2d_share_sums(BatchNorm2dGroup g, int turn, float2 sum) {
  const float *parts = batch_norm2d_exchange(g, turn, sum.x, sum.y, 0);
  if (threadIdx.x >= 32) return sum;
  sum = make_float2(0, 0);
  for (int i = threadIdx.x; i < g.slices; i += 32) {
    sum.x += __ldcg(parts + 3 * i);
    sum.y += __ldcg(parts + 3 * i + 1);
  }
  return pair_sum_warp(sum);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: grid (groups * slices), block (BATCH_NORM_THREADS) */

template <int V>
static __global__ void __launch_bounds__(BATCH_NORM_THREADS, BATCH_NORM_RESIDENT)
    batch_norm2d_forward_kernel(BatchNorm2d b, BatchNorm2dPlan plan) {
  extern __shared__ float4 batch_norm2d_memory[];
  __shared__ Moments part[BATCH_NORM_WARPS], all;
  float *kept = (float *)batch_norm2d_memory;
  const BatchNorm2dGroup g = batch_norm2d_group(b.workspace, plan);
  int turn = 0;
  for (int c = blockIdx.x / plan.slices; c < b.shape.c; c += plan.groups, turn++) {
    const BatchNorm2dSlice p = batch_norm2d_slice(b.shape, c, g.slice, g.slices);
    Moments m = moments_block(batch_norm2d_read<V>(kept, plan.room, &b, p), part);
    if (g.slices > 1) m = batch_norm2d_share_moments(g, turn, m);
    if (threadIdx.x == 0) all = m;
    __syncthreads();
    const BatchNorm2dLine line = batch_norm2d_finish(&b, c, all, g.slice == 0 && threadIdx.x == 0);
    batch_norm2d_write<V>(kept, plan.room, &b, p, line);
  }
}

template <int V>
static __global__ void __launch_bounds__(BATCH_NORM_THREADS, BATCH_NORM_RESIDENT)
    batch_norm2d_backward_kernel(BatchNorm2d b, BatchNorm2dPlan plan) {
  extern __shared__ float4 batch_norm2d_memory[];
  __shared__ float2 part[BATCH_NORM_WARPS], all;
  float *kept = (float *)batch_norm2d_memory;
  const BatchNorm2dGroup g = batch_norm2d_group(b.workspace, plan);
  const float values = (float)((size_t)b.shape.n * b.shape.pixels);
  int turn = 0;
  for (int c = blockIdx.x / plan.slices; c < b.shape.c; c += plan.groups, turn++) {
    const BatchNorm2dSlice p = batch_norm2d_slice(b.shape, c, g.slice, g.slices);
    BatchNorm2dLine line = batch_norm2d_line(&b, c, b.mean[c], b.inv_std[c]);
    float2 sum = pair_sum_block(batch_norm2d_read_back<V>(kept, plan.room, &b, p, line), part);
    if (g.slices > 1) sum = batch_norm2d_share_sums(g, turn, sum);
    if (threadIdx.x == 0) {
      all = sum;
      if (b.dgamma && g.slice == 0) {
        b.dbeta[c] = sum.x;
        b.dgamma[c] = sum.y;
      }
    }
    __syncthreads();
    line.share = all.x / values;
    line.slope = all.y / values;
    if (b.dx) batch_norm2d_write_back<V>(kept, plan.room, &b, p, line);
  }
}

/* Evaluation: a thread has V neighbouring floats of a channel, in every gridDim.y-th image. */
template <int V>
static __global__ void batch_norm2d_evaluate_kernel(BatchNorm2d b) {
  const int quads = b.shape.c * (b.shape.pixels / V), i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  const int c = i / (b.shape.pixels / V), add = b.after == BATCH_NORM_ADD_RELU;
  const BatchNorm2dLine line = batch_norm2d_line(&b, c, b.old_mean[c], 1 / sqrtf(b.old_var[c] + BATCH_NORM_EPSILON));
  const float floor = b.after == BATCH_NORM_ALONE ? -INFINITY : 0;
#pragma unroll 4
  for (int n = blockIdx.y; n < b.shape.n; n += gridDim.y) {
    const size_t at = ((size_t)n * quads + i) * V;
    float v[V], z[V] = {};
    batch_norm2d_load<V>(v, b.x + at);
    if (add) batch_norm2d_load<V>(z, b.z + at);
    for (int l = 0; l < V; l++) {
      float y = fmaf(v[l] - line.mean, line.scale, line.beta);
      if (add) y += z[l];
      v[l] = y < floor ? floor : y;
    }
    batch_norm2d_store<V>(b.y + at, v);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

typedef void BatchNorm2dKernel(BatchNorm2d b, BatchNorm2dPlan plan);

/* Floats that a block of a full multiprocessor keeps. 2 KiB: CUDA's own, and the sums of the warps. */
static inline size_t batch_norm2d_room(void) {
  int device, bytes;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  const size_t own = (size_t)bytes / BATCH_NORM_RESIDENT, limit = (size_t)shared_limit();
  return ((own < limit ? own : limit) - 2048) / sizeof(float) / 4 * 4;
}

/* Blocks that are there at the same time: the launch bounds and batch_norm2d_room() leave room for them. A step of a
 * network is recorded anew each time, so a launcher asks only for what the driver has at hand. */
static inline int batch_norm2d_resident(void) {
  int device, multiprocessors;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const int blocks = BATCH_NORM_RESIDENT * multiprocessors;
  return blocks < BATCH_NORM_GRID ? blocks : BATCH_NORM_GRID;
}

/* What one block does in all: values of its slices. */
static inline double batch_norm2d_plan_cost(BatchNorm2dShape s, int groups, int resident) {
  return ceil((double)s.c / groups) * ceil((double)batch_norm2d_count(s) / (resident / groups));
}

/* arrays: how many are kept. As few slices as keep a channel on the chip. More, where blocks would be idle and there is
 * enough for each; and where several channels come one after the other, so many groups that all take the same number of
 * them. */
static inline BatchNorm2dPlan batch_norm2d_plan(BatchNorm2dShape s, int arrays, size_t room, int resident) {
  const size_t m = batch_norm2d_count(s), own = room / arrays / 32 * 32;
  size_t slices = (m + own - 1) / own, spread = m > BATCH_NORM_ALONE_MOST ? m / BATCH_NORM_SLICE_LEAST : 1;
  if (spread > (size_t)(resident / s.c)) spread = (size_t)(resident / s.c);
  if (spread > slices) slices = spread;
  if (slices > (size_t)resident) slices = (size_t)resident;
  int groups = s.c, most = resident / (int)slices;
  if (slices > 1 && groups > most) {
    groups = most;
    for (int fewer = most - 1; fewer > most / 2; fewer--)
      if (batch_norm2d_plan_cost(s, fewer, resident) < batch_norm2d_plan_cost(s, groups, resident)) groups = fewer;
    slices = (size_t)(resident / groups);
  }
  const size_t each = ((m + slices - 1) / slices + 31) / 32 * 32;
  BatchNorm2dPlan plan = {groups, (int)slices, (int)(each < own ? each : own)};
  return plan;
}

static inline void batch_norm2d_launch(BatchNorm2dKernel *kernel, const BatchNorm2d *b, int arrays) {
  BatchNorm2d copy = *b;
  BatchNorm2dPlan plan = batch_norm2d_plan(b->shape, arrays, batch_norm2d_room(), batch_norm2d_resident());
  const size_t bytes = (size_t)plan.room * arrays * sizeof(float);
  void *arguments[] = {&copy, &plan};
  if (bytes > 40 * 1024) shared_limit_ask((const void *)kernel, (int)bytes); /* 48 KiB, with those of the warps' sums */
  if (plan.slices > 1)
    CUDA_CHECK(cudaLaunchCooperativeKernel((const void *)kernel, dim3(plan.groups * plan.slices),
                                           dim3(BATCH_NORM_THREADS), arguments, bytes, 0));
  else
    kernel<<<plan.groups, BATCH_NORM_THREADS, bytes>>>(copy, plan);
  CUDA_CHECK_LAUNCH();
}

/* Whether four floats can be loaded at once. */
static inline int batch_norm2d_in_fours(const BatchNorm2d *b) {
  const uintptr_t all =
      (uintptr_t)b->x | (uintptr_t)b->z | (uintptr_t)b->y | (uintptr_t)b->dy | (uintptr_t)b->dx | (uintptr_t)b->dz;
  return b->shape.pixels % 4 == 0 && all % sizeof(float4) == 0;
}

static inline void batch_norm2d_forward_gpu(const BatchNorm2d *b) {
  batch_norm2d_launch(batch_norm2d_in_fours(b) ? batch_norm2d_forward_kernel<4> : batch_norm2d_forward_kernel<1>, b, 1);
}

static inline void batch_norm2d_backward_gpu(const BatchNorm2d *b) {
  batch_norm2d_launch(batch_norm2d_in_fours(b) ? batch_norm2d_backward_kernel<4> : batch_norm2d_backward_kernel<1>, b,
                      2);
}

static inline void batch_norm2d_evaluate_gpu(const BatchNorm2d *b) {
  const int v = batch_norm2d_in_fours(b) ? 4 : 1, quads = b->shape.c * (b->shape.pixels / v);
  const int images = (b->shape.n + 3) / 4;
  const dim3 grid((unsigned)(quads + 255) / 256, (unsigned)(images < 65535 ? images : 65535));
  if (v == 4)
    batch_norm2d_evaluate_kernel<4><<<grid, 256>>>(*b);
  else
    batch_norm2d_evaluate_kernel<1><<<grid, 256>>>(*b);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_BATCH_NORM2D_ON_CHIP_CUH */
