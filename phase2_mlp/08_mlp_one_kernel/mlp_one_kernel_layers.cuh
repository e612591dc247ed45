/* mlp_one_kernel_layers.cuh - the first two versions of mlp_one_kernel.cuh: the nodes of a Model, launched kernel
 * by kernel, and as a graph of a step. */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_LAYERS_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_LAYERS_CUH

#include "phase2_mlp/03_mlp/mlp.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_run.cuh"

static inline void mlp_layers_free(MlpRun *run) {
  model_close(run->layers);
  free(run->layers);
}

/* The layers have their own parameters: those of the epoch go in and come out. */
static inline void mlp_layers_open(MlpRun *run) {
  const MlpEpoch *e = &run->epoch;
  if (run->layers == NULL) {
    const MlpShape shape = {3, {e->inputs, e->hidden, e->classes}, ACTIVATION_RELU};
    run->layers = (Model *)xcalloc(1, sizeof *run->layers);
    run->layers_free = mlp_layers_free;
    mlp_create(run->layers, &shape, DEVICE_GPU, e->batch);
  }
  const Model *net = run->layers;
  device_copy(DEVICE_GPU, net->parameters, e->parameters, mlp_parameter_count(e) * sizeof(float));
  device_copy(DEVICE_GPU, net->slot[0], e->velocity, mlp_parameter_count(e) * sizeof(float));
}

static inline void mlp_layers_close(MlpRun *run) {
  const MlpEpoch *e = &run->epoch;
  const Model *net = run->layers;
  device_copy(DEVICE_GPU, e->parameters, net->parameters, mlp_parameter_count(e) * sizeof(float));
  device_copy(DEVICE_GPU, e->velocity, net->slot[0], mlp_parameter_count(e) * sizeof(float));
}

static inline void mlp_epoch_layers(MlpRun *run) {
  const MlpEpoch *e = &run->epoch;
  mlp_layers_open(run);
  Model *net = run->layers;
  float *losses = net->losses[0];
  for (int position = 0; position < e->count; position += e->batch) {
    int batch = batches_size_at(e->count, e->batch, position);
    batch_gather_gpu(model_input(net, 0), model_labels(net), e->images, e->labels, e->order + position, batch,
                     e->inputs, e->mean, e->stddev);
    net->losses[0] = e->losses + position;
    sgd_train_step(net, batch, e->lr, e->momentum);
  }
  net->losses[0] = losses;
  mlp_layers_close(run);
}

/* The gather of batches.cuh, with the position from the counter. Grid (batch) */
static __global__ void mlp_gather_kernel(float *x, int *labels, MlpEpoch e, const MlpCounter *counter) {
  uint32_t source = e.order[counter->next + blockIdx.x];
  const uint8_t *image = e.images + (size_t)source * e.inputs;
  float *out = x + (size_t)blockIdx.x * e.inputs;
  for (int i = threadIdx.x; i < e.inputs; i += blockDim.x) out[i] = batch_normalize(image[i], e.mean, e.stddev);
  if (threadIdx.x == 0) labels[blockIdx.x] = e.labels[source];
}

/* The end of a step: its losses go where they belong, and the counter goes on. One block */
static __global__ void mlp_step_end_kernel(float *losses, const float *step_losses, int batch, MlpCounter *counter) {
  int position = counter->next;
  for (int i = threadIdx.x; i < batch; i += blockDim.x) losses[position + i] = step_losses[i];
  __syncthreads();
  if (threadIdx.x == 0) counter->next = position + batch;
}

/* A graph of a step on `batch` images. A model launches into the default stream; what can be captured is the
 * thread's own, which is the default where the program is compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM. */
static inline cudaGraphExec_t mlp_capture_layers(MlpRun *run, int batch) {
  const MlpEpoch *e = &run->epoch;
  Model *net = run->layers;
  mlp_capture_begin(cudaStreamPerThread);
  mlp_gather_kernel<<<batch, 256>>>(model_input(net, 0), model_labels(net), *e, run->counter);
  CUDA_CHECK_LAUNCH();
  sgd_train_step(net, batch, e->lr, e->momentum);
  mlp_step_end_kernel<<<1, MLP_BATCH>>>(e->losses, net->losses[0], batch, run->counter);
  CUDA_CHECK_LAUNCH();
  return mlp_capture_end(run, cudaStreamPerThread);
}

static inline void mlp_epoch_step_graph(MlpRun *run) {
  const MlpEpoch *e = &run->epoch;
  const int full = e->count / e->batch, rest = e->count % e->batch;
  mlp_layers_open(run);
  if (full > 0 && run->graph == NULL) run->graph = mlp_capture_layers(run, e->batch);
  if (rest > 0 && run->tail == NULL) run->tail = mlp_capture_layers(run, rest);
  CUDA_CHECK(cudaMemsetAsync(run->counter, 0, sizeof *run->counter, cudaStreamPerThread));
  for (int i = 0; i < full; i++) CUDA_CHECK(cudaGraphLaunch(run->graph, cudaStreamPerThread));
  if (rest > 0) CUDA_CHECK(cudaGraphLaunch(run->tail, cudaStreamPerThread));
  mlp_layers_close(run);
}

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_LAYERS_CUH */
