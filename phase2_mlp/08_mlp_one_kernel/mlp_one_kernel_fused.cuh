/* mlp_one_kernel_fused.cuh - a step of mlp_one_kernel.cuh as three kernels: launched by a graph of a step
 * (mlp_epoch_fused), or all steps' by one graph (mlp_epoch_graph). */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_FUSED_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_FUSED_CUH

#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_run.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_step.cuh"

/* Grid (slices, groups). position: of the step's first image; -1: ask the counter, here and below. */
static __global__ void __launch_bounds__(MLP_THREADS)
    mlp_forward_kernel(MlpEpoch e, MlpMail<float> mail, int position, const MlpCounter *counter) {
  extern __shared__ float4 mlp_memory[];
  MlpTile *tile = (MlpTile *)mlp_memory;
  const MlpPlace p = mlp_place(e);
  if (position < 0) position = counter->next;
  const int batch = mlp_batch(e, position);
  int source[MLP_COPIES + 1];
  mlp_fetch_order(source, e, position);
  mlp_fetch(tile, 0, source, e, p);
  float w[MLP_OWN];
  float4 x[MLP_INPUTS];
  mlp_tile_clear(tile);
  mlp_w1_load(w, e.parameters, e, p);
  mlp_w1_share(tile, w);
  mlp_small_load(tile, e, p);
  mlp_normalize(x, tile, e, p, batch);
  mlp_forward(tile, x, e, p, mail, batch, 0);
}

/* Grid (batch); slices: of the other two kernels' grid */
static __global__ void __launch_bounds__(MLP_THREADS)
    mlp_sample_kernel(MlpEpoch e, MlpMail<float> mail, int slices, int position, MlpCounter *counter) {
  extern __shared__ float4 mlp_memory[];
  MlpTile *tile = (MlpTile *)mlp_memory;
  // >>> exercise mlp_step_counter: ask the counter where the step is given as -1, and leave it to the update kernel
  // hint: this kernel's blocks all read counter->next; one of them copies it to counter->now
  // hint: counter->next itself stays: another block may not have read it yet
  // hint: if (position < 0) { position = counter->next; then thread 0 of block 0: counter->now = position; }
  if (position < 0) {
    position = counter->next;
    if (blockIdx.x == 0 && threadIdx.x == 0) counter->now = position;
  }
  // <<< exercise
  int batch = mlp_batch(e, position), sample = blockIdx.x;
  if (sample >= batch) return; /* the last step has fewer images */
  int label = e.labels[e.order[position + sample]];
  mlp_sample(tile, e, mail, slices, position, sample, label, batch, 0);
}

/* Grid (slices, groups) */
static __global__ void __launch_bounds__(MLP_THREADS)
    mlp_update_kernel(MlpEpoch e, MlpMail<float> mail, int position, MlpCounter *counter) {
  extern __shared__ float4 mlp_memory[];
  MlpTile *tile = (MlpTile *)mlp_memory;
  const MlpPlace p = mlp_place(e);
  // >>> hidden mlp_step_counter
  if (position < 0) {
    position = counter->now;
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) counter->next = position + e.batch;
  }
  // <<< hidden
  const int batch = mlp_batch(e, position);
  int source[MLP_COPIES + 1];
  mlp_fetch_order(source, e, position);
  mlp_fetch(tile, 0, source, e, p);
  float w[MLP_OWN], velocity[MLP_OWN];
  float4 x[MLP_INPUTS];
  mlp_tile_clear(tile);
  mlp_w1_load(w, e.parameters, e, p);
  mlp_w1_load(velocity, e.velocity, e, p);
  mlp_small_load(tile, e, p);
  mlp_normalize(x, tile, e, p, batch);
  mlp_x_share(tile, x);
  mlp_update_receive(tile, e, p, mail, batch, 0);
  mlp_update(tile, w, velocity, e, p, mail, 0);
  mlp_w1_store(e.parameters, w, e, p);
  mlp_w1_store(e.velocity, velocity, e, p);
  mlp_small_store(tile, e, p);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers: each trains one epoch and returns when the host has done its part */

/* The three kernels of the step at `position`, or at the counter's */
static inline void mlp_launch_step(MlpRun *run, int position) {
  const dim3 tiles(run->slices, run->groups);
  const size_t bytes = sizeof(MlpTile);
  const int batch = run->epoch.batch, slices = run->slices;
  cudaStream_t stream = run->stream;
  MlpCounter *counter = run->counter;
  // >>> exercise mlp_step_launch: launch the three kernels of a step into the stream
  // hint: forward and update have the grid `tiles`, sample a block for each image of a batch; all MLP_THREADS threads
  // hint: each needs `bytes` of shared memory, and all go into the stream that a graph may be captured from, in order
  // hint: mlp_forward_kernel<<<tiles, MLP_THREADS, bytes, stream>>>(run->epoch, run->mail, position, counter);
  mlp_forward_kernel<<<tiles, MLP_THREADS, bytes, stream>>>(run->epoch, run->mail, position, counter);
  CUDA_CHECK_LAUNCH();
  mlp_sample_kernel<<<batch, MLP_THREADS, bytes, stream>>>(run->epoch, run->mail, slices, position, counter);
  CUDA_CHECK_LAUNCH();
  mlp_update_kernel<<<tiles, MLP_THREADS, bytes, stream>>>(run->epoch, run->mail, position, counter);
  CUDA_CHECK_LAUNCH();
  // <<< exercise
}

static inline void mlp_allow_steps(void) {
  mlp_allow_shared((const void *)mlp_forward_kernel);
  mlp_allow_shared((const void *)mlp_sample_kernel);
  mlp_allow_shared((const void *)mlp_update_kernel);
}

/* The graph of a step that asks the counter which one it is. */
static inline void mlp_capture_step(MlpRun *run) {
  if (run->graph != NULL) return;
  mlp_allow_steps();
  mlp_capture_begin(run->stream);
  mlp_launch_step(run, -1);
  run->graph = mlp_capture_end(run, run->stream);
}

static inline void mlp_epoch_fused(MlpRun *run) {
  mlp_capture_step(run);
  CUDA_CHECK(cudaMemsetAsync(run->counter, 0, sizeof *run->counter, run->stream));
  for (int position = 0; position < run->epoch.count; position += run->epoch.batch)
    CUDA_CHECK(cudaGraphLaunch(run->graph, run->stream));
}

static inline void mlp_epoch_graph(MlpRun *run) {
  if (run->graph == NULL) {
    mlp_allow_steps();
    mlp_capture_begin(run->stream);
    for (int position = 0; position < run->epoch.count; position += run->epoch.batch) mlp_launch_step(run, position);
    run->graph = mlp_capture_end(run, run->stream);
  }
  CUDA_CHECK(cudaGraphLaunch(run->graph, run->stream));
}

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_FUSED_CUH */
