/* mlp_one_kernel_persistent.cuh - an epoch of mlp_one_kernel.cuh as one persistent kernel, whose blocks wait for each
 * other: by grid.sync(), by a barrier of our own, or each block for the numbers that it needs. */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_PERSISTENT_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_PERSISTENT_CUH

#include <cooperative_groups.h>

#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_run.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_step.cuh"

enum { MLP_GRID_SYNC, MLP_BARRIER, MLP_FLAGS };

/* A barrier for all threads of the grid: after it they see what any of them wrote before it. `arrived` (1) counts the
 * arrivals of blocks since the launch; `all`: the count when the last block has arrived at this barrier. */
static __device__ __forceinline__ void mlp_grid_barrier(unsigned *arrived, unsigned all) {
  // >>> exercise mlp_grid_barrier: wait until *arrived is `all`; writes before it must be visible to reads after it
  // hint: the block's threads wait for each other; one of them counts the block and waits; then a second barrier
  // hint: atomicAdd(arrived, 1), then read it as a volatile unsigned until it is `all`; memory has an order, too
  // hint: __threadfence() before the count, so that the block's writes are seen first, and after the wait
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*(volatile unsigned *)arrived < all) continue;
    __threadfence();
  }
  __syncthreads();
  // <<< exercise
}

template <int MEETING>
static __device__ __forceinline__ void mlp_meet(unsigned *arrived, unsigned all) {
  if (MEETING == MLP_GRID_SYNC)
    cooperative_groups::this_grid().sync();
  else if (MEETING == MLP_BARRIER)
    mlp_grid_barrier(arrived, all);
}

/* Grid (slices, groups), cooperative. A whole epoch. */
template <int MEETING, typename Word>
static __global__ void __launch_bounds__(MLP_THREADS, 1)
    mlp_epoch_kernel(MlpEpoch e, MlpMail<Word> mail, unsigned *arrived) {
  extern __shared__ float4 mlp_memory[];
  MlpTile *tile = (MlpTile *)mlp_memory;
  const MlpPlace p = mlp_place(e);
  const int block = p.group * p.slices + p.slice, blocks = p.slices * gridDim.y;
  float w[MLP_OWN], velocity[MLP_OWN];
  float4 x[MLP_INPUTS];
  int source[MLP_COPIES + 1];
  mlp_fetch_order(source, e, 0);
  mlp_fetch(tile, 1, source, e, p);
  mlp_fetch_order(source, e, e.batch);
  mlp_tile_clear(tile);
  mlp_w1_load(w, e.parameters, e, p);
  mlp_w1_load(velocity, e.velocity, e, p);
  mlp_w1_share(tile, w);
  mlp_small_load(tile, e, p);
  mlp_normalize(x, tile, e, p, mlp_batch(e, 0));
  __syncthreads();          /* the pixels are free for the next images */
  if (MEETING == MLP_FLAGS) /* otherwise they are in place */
    for (int i = threadIdx.x; i < mlp_small_count(e, p); i += MLP_THREADS)
      if (tile->small[i].mail >= 0) mlp_send(mail.w2 + tile->small[i].mail, tile->small[i].value, 1);

  uint32_t step = 1;
  unsigned all = 0;
  for (int position = 0; position < e.count; position += e.batch, step++) {
    int batch = mlp_batch(e, position), buffer = step % 2;
    mlp_forward(tile, x, e, p, mail, batch, step);
    mlp_x_share(tile, x); /* while the shares are on their way; and the next images set out */
    mlp_fetch(tile, 1 - buffer, source, e, p);
    mlp_fetch_order(source, e, position + 2 * e.batch);
    mlp_meet<MEETING>(arrived, all += blocks);
    for (int sample = block; sample < batch; sample += blocks)
      mlp_sample(tile, e, mail, p.slices, position, sample, tile->label[buffer][sample], batch, step);
    mlp_normalize(x, tile, e, p, mlp_batch(e, position + e.batch)); /* while delta is on its way */
    mlp_meet<MEETING>(arrived, all += blocks);
    mlp_update_receive(tile, e, p, mail, batch, step);
    mlp_update(tile, w, velocity, e, p, mail, step + 1);
  }
  mlp_w1_store(e.parameters, w, e, p);
  mlp_w1_store(e.velocity, velocity, e, p);
  mlp_small_store(tile, e, p);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers: each trains one epoch and returns when the host has done its part */

/* Blocks that wait for each other must all be there. 0; or -1 and a sentence: they do not fit at once. */
template <int MEETING, typename Word>
static inline int mlp_fits(const MlpRun *run, Error *err) {
  const void *kernel = (const void *)mlp_epoch_kernel<MEETING, Word>;
  int device, cooperative, multiprocessors, blocks;
  if (mlp_fits_shared(run, err) != 0) return -1;
  mlp_allow_shared(kernel);
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
  if (!cooperative) return error_set(err, "this GPU cannot launch blocks that wait for each other");
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, MLP_THREADS, sizeof(MlpTile)));
  const int room = blocks * multiprocessors, units = room / run->slices * MLP_UNITS;
  if (room < run->slices * run->groups)
    return error_set(
        err,
        "%d-%d-%d takes %d blocks that must run at the same time, and this GPU has room for %d: enough for "
        "%d hidden units",
        run->epoch.inputs, run->epoch.hidden, run->epoch.classes, run->slices * run->groups, room, units);
  return 0;
}

template <int MEETING, typename Word>
static inline void mlp_launch_epoch(MlpRun *run, void **arguments) {
  const dim3 tiles(run->slices, run->groups);
  Error err;
  if (mlp_fits<MEETING, Word>(run, &err) != 0) die("%s", err.message);
  CUDA_CHECK(cudaLaunchCooperativeKernel((const void *)mlp_epoch_kernel<MEETING, Word>, tiles, dim3(MLP_THREADS),
                                         arguments, sizeof(MlpTile), run->stream));
}

static inline void mlp_epoch_grid_sync(MlpRun *run) {
  void *arguments[] = {&run->epoch, &run->mail, &run->arrived};
  mlp_launch_epoch<MLP_GRID_SYNC, float>(run, arguments);
}

static inline void mlp_epoch_barrier(MlpRun *run) {
  void *arguments[] = {&run->epoch, &run->mail, &run->arrived};
  CUDA_CHECK(cudaMemsetAsync(run->arrived, 0, sizeof *run->arrived, run->stream));
  mlp_launch_epoch<MLP_BARRIER, float>(run, arguments);
}

/* Steps count from 1 in each epoch: what the last one left is forgotten. */
static inline void mlp_epoch_flags(MlpRun *run) {
  void *arguments[] = {&run->epoch, &run->words, &run->arrived};
  CUDA_CHECK(cudaMemsetAsync(run->memory, 0, run->mail_count * sizeof(MlpWord), run->stream));
  mlp_launch_epoch<MLP_FLAGS, MlpWord>(run, arguments);
}

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_PERSISTENT_CUH */
