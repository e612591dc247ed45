/* mlp_launches.cu - the kernels of phase 2 once, for a comparison of the inspector with a GPU's counters.
 *
 *     simt/test/hardware/measure.sh OUT mlp mlp_launches      on a GPU: OUT/mlp.csv
 *
 * Each on the shape that its lesson counts and on a ragged one. Those that the layers of phase 1 and LeNet-5 launch are
 * in ladder_launches.cu and phase_launches.cu; lesson 6 (streams) has none of its own. The persistent kernels of lesson
 * 8 are left out: how often a block asks whether the others have come is a matter of time, and a profiler that launches
 * a kernel several times over needs one that leaves its counters as it found them. */
#include "phase2_mlp/01_perceptron/perceptron_lesson.cuh"
#include "phase2_mlp/02_xor/hidden_layer_lesson.cuh"
#include "phase2_mlp/03_mlp/backprop_lesson.cuh"
#include "phase2_mlp/04_idx_files/idx_files.cuh"
#include "phase2_mlp/05_batches/batches_lesson.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_layers.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_lesson.cuh"
#include "tools/peers/launch_lesson.cuh"

/* Steps whose place the host gives; one whose place the counter gives; and the two kernels by which a graph of the
 * layers counts steps. */
static void mlp_steps(MlpRun *run) {
  const MlpEpoch *e = &run->epoch;
  mlp_allow_steps();
  for (int position = 0; position < e->count; position += e->batch) mlp_launch_step(run, position);
  CUDA_CHECK(cudaMemsetAsync(run->counter, 0, sizeof *run->counter, run->stream));
  mlp_launch_step(run, -1);
  device_synchronize(DEVICE_GPU);

  float *x = (float *)device_alloc(DEVICE_GPU, (size_t)e->batch * e->inputs * sizeof *x);
  float *losses = (float *)device_alloc(DEVICE_GPU, (size_t)e->batch * sizeof *losses);
  int *labels = (int *)device_alloc(DEVICE_GPU, (size_t)e->batch * sizeof *labels);
  CUDA_CHECK(cudaMemset(run->counter, 0, sizeof *run->counter));
  mlp_gather_kernel<<<e->batch, 256>>>(x, labels, *e, run->counter);
  CUDA_CHECK_LAUNCH();
  mlp_step_end_kernel<<<1, MLP_BATCH>>>(e->losses, losses, e->batch, run->counter);
  CUDA_CHECK_LAUNCH();
  device_synchronize(DEVICE_GPU);
  device_free(DEVICE_GPU, x);
  device_free(DEVICE_GPU, losses);
  device_free(DEVICE_GPU, labels);
}

/* bytes (4n) */
static void idx_header_numbers(int n) {
  uint8_t *bytes = (uint8_t *)device_alloc(DEVICE_GPU, 4 * (size_t)n);
  int *halves = (int *)device_alloc(DEVICE_GPU, 2 * (size_t)n * sizeof *halves);
  idx_numbers(halves, bytes, n);
  device_synchronize(DEVICE_GPU);
  device_free(DEVICE_GPU, bytes);
  device_free(DEVICE_GPU, halves);
}

template <Activation KIND>
static void hidden_layer(void) {
  Lesson lesson = hidden_backward_lesson<KIND>();
  launch<HiddenBackward>(lesson, {hidden_backward_gpu}, lesson_shape(&lesson, 97, 31, 5));
}

int main(void) {
  Lesson lesson = perceptron_forward_lesson();
  launch<PerceptronForward>(lesson, {perceptron_forward_gpu}, lesson_shape(&lesson, 97, 5, 3));
  lesson = perceptron_backward_lesson();
  launch<PerceptronBackward>(lesson, {perceptron_backward_weight_gpu}, lesson_shape(&lesson, 97, 5, 3));
  lesson = perceptron_update_lesson();
  launch<PerceptronUpdate>(lesson, {perceptron_update_gpu}, lesson_shape(&lesson, 1021));

  hidden_layer<ACTIVATION_RELU>();
  hidden_layer<ACTIVATION_LEAKY_RELU>();
  hidden_layer<ACTIVATION_SIGMOID>();
  hidden_layer<ACTIVATION_TANH>();

  lesson = backprop_delta_lesson();
  launch<BackpropDelta>(lesson, {backprop_delta_each, backprop_delta_shared}, lesson_shape(&lesson, 65, 97, 33));
  lesson = backprop_weight_lesson();
  launch<BackpropWeight>(lesson, {backprop_weight}, lesson_shape(&lesson, 65, 97, 33));
  lesson = backprop_bias_lesson();
  launch<BackpropBias>(lesson, {linear_backward_bias_gpu}, lesson_shape(&lesson, 65, 97));
  lesson = backprop_update_lesson();
  launch<BackpropUpdate>(lesson, {sgd_step_copy}, lesson_shape(&lesson, 1021));

  for (int n : {4096, 1021}) idx_header_numbers(n);

  lesson = batch_gather_lesson();
  launch<BatchGatherLauncher>(
      lesson, {batch_gather_rows, batch_gather_elements, batch_gather_blocks, batch_gather_warps, batch_gather_gpu},
      lesson_shape(&lesson, 33, 132, 100));
  lesson = batch_order_lesson(batches_shuffle);
  launch<BatchOrderLauncher>(lesson, {batches_shuffle_gpu, batches_sort_lesson, batches_cipher_gpu},
                             lesson_shape(&lesson, 1, 1, 1021));

  lesson = mlp_lesson();
  launch<MlpLauncher>(lesson, {mlp_steps}, lesson_shape(&lesson, 70, 33, 17, 16, 33));
  return 0;
}
