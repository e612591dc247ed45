/* ladder_launches.cu - every rung of lessons 7 to 15 once, for a comparison of the inspector with a GPU's counters.
 *
 *     simt/test/hardware/measure.sh OUT ladders ladder_launches      on a GPU: OUT/ladders.csv
 *
 * Each on the shape that its lesson counts and on a ragged one. With as many multiprocessors as the GPU has
 * (SIMT_MULTIPROCESSORS=132 for an H200) the emulator makes the same launches. The rungs with wgmma are left out: the
 * emulated GPU has compute capability 8.0 here. */
#include "phase1_building_blocks/07_activations/activations_lesson.cuh"
#include "phase1_building_blocks/08_softmax/softmax_lesson.cuh"
#include "phase1_building_blocks/09_losses/losses_lesson.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_lesson.cuh"
#include "phase1_building_blocks/11_random_init/random_init_lesson.cuh"
#include "phase1_building_blocks/12_dropout/dropout_lesson.cuh"
#include "phase1_building_blocks/12_dropout/softmax_dropout_lesson.cuh"
#include "phase1_building_blocks/13_fused_batchnorm_relu_softmax/fused_batchnorm_relu_softmax_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_backward_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core_lesson.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_core_lesson.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wmma.cuh"
#include "tools/peers/launch_lesson.cuh"

/* attention_flash() for 64 columns at most, as it is with 163 KB of shared memory: the emulated GPU has no more. */
static void attention_flash_half(float *o, float *lse, const float *q, const float *k, const float *v, int b, int h,
                                 int s, int d, bool causal) {
  attention_flash_launch<64, 8, 4, 2>(o, lse, q, k, v, b, h, s, d, causal);
}

int main(void) {
  Lesson lesson = relu_forward_lesson();
  launch<ActivationForward>(
      lesson,
      {activation_forward_scalar<ACTIVATION_RELU>, relu_forward_gpu, activation_forward_scalar<ACTIVATION_LEAKY_RELU>,
       leaky_relu_forward_gpu, activation_forward_scalar<ACTIVATION_SIGMOID>, sigmoid_forward_gpu,
       activation_forward_scalar<ACTIVATION_TANH>, tanh_forward_gpu},
      lesson_shape(&lesson, 40009));
  lesson = relu_backward_lesson();
  launch<ActivationBackward>(lesson,
                             {activation_backward_scalar<ACTIVATION_RELU>, relu_backward_gpu,
                              activation_backward_scalar<ACTIVATION_LEAKY_RELU>, leaky_relu_backward_gpu,
                              activation_backward_scalar<ACTIVATION_SIGMOID>, sigmoid_backward_gpu,
                              activation_backward_scalar<ACTIVATION_TANH>, tanh_backward_gpu},
                             lesson_shape(&lesson, 40009));

  lesson = softmax_forward_lesson();
  launch<SoftmaxForwardLauncher>(lesson,
                                 {softmax_forward_naive, softmax_forward_shared, softmax_forward_shuffle,
                                  softmax_forward_online, softmax_forward_staged, softmax_forward_gpu},
                                 lesson_shape(&lesson, 31, 1023));
  lesson = softmax_backward_lesson();
  launch<SoftmaxBackwardLauncher>(
      lesson, {softmax_backward_jacobian, softmax_backward_naive, softmax_backward_shuffle, softmax_backward_gpu},
      lesson_shape(&lesson, 31, 257));

  lesson = mse_forward_lesson();
  launch<LossForward>(lesson, {loss_forward_tree<LOSS_MSE>, loss_forward_shuffle<LOSS_MSE>, loss_forward<LOSS_MSE>},
                      lesson_shape(&lesson, 129, 259));
  lesson = mse_backward_lesson();
  launch<LossBackward>(lesson, {loss_backward_scalar<LOSS_MSE>, loss_backward<LOSS_MSE>},
                       lesson_shape(&lesson, 129, 259));
  lesson = bce_lesson();
  launch<LossBoth>(lesson,
                   {loss_separate<LOSS_MSE>, mse_gpu, loss_separate<LOSS_BCE>, bce_gpu, loss_separate<LOSS_BCE_LOGITS>,
                    bce_logits_gpu, loss_separate<LOSS_HINGE>, hinge_gpu},
                   lesson_shape(&lesson, 129, 259));
  lesson = cross_entropy_lesson();
  launch<CrossEntropyBoth>(lesson, {cross_entropy_separate, cross_entropy_fused}, lesson_shape(&lesson, 129, 259));

  lesson = softmax_cross_entropy_lesson();
  launch<SoftmaxCrossEntropy>(lesson,
                              {softmax_cross_entropy_separate, softmax_cross_entropy_online,
                               softmax_cross_entropy_shared, softmax_cross_entropy_quads, softmax_cross_entropy_fused},
                              lesson_shape(&lesson, 5, 1021));

  lesson = random_uniform_lesson();
  launch<RandomLauncher>(
      lesson, {random_uniform_one_each, random_uniform_four_each, random_uniform_float4, random_uniform_fill_gpu},
      lesson_shape(&lesson, 40009));
  lesson = random_normal_lesson();
  launch<RandomLauncher>(lesson, {random_normal_quads_double, random_normal_quads_float, random_normal_quads_gpu},
                         lesson_shape(&lesson, 40009));

  lesson = dropout_lesson();
  launch<DropoutLauncher>(lesson, {dropout_mask, dropout_one_each, dropout_gpu}, lesson_shape(&lesson, 3, 2741));
  lesson = dropout_step_lesson();
  launch<DropoutStepLauncher>(lesson, {dropout_step_mask, dropout_step_one_each, dropout_step_gpu},
                              lesson_shape(&lesson, 3, 2741));
  lesson = softmax_dropout_lesson();
  launch<SoftmaxDropoutLauncher>(lesson, {softmax_dropout_separate, softmax_dropout_forward_fused},
                                 lesson_shape(&lesson, 31, 1021));
  lesson = softmax_dropout_step_lesson();
  launch<SoftmaxDropoutStepLauncher>(
      lesson, {softmax_dropout_step_separate, softmax_dropout_step_passes, softmax_dropout_step_gpu},
      lesson_shape(&lesson, 31, 1021));

  lesson = fused_lesson();
  launch<FusedLauncher>(lesson,
                        {batchnorm_relu_softmax_separate, batchnorm_relu_softmax_two, batchnorm_relu_softmax_online,
                         batchnorm_relu_softmax_fused},
                        lesson_shape(&lesson, 19, 509));

  for (int causal = 0; causal < 2; causal++) {
    lesson = attention_lesson(causal);
    launch<AttentionLauncher>(lesson, {attention_three_kernels, attention_flash_rows, attention_flash_half},
                              lesson_shape(&lesson, 1, 2, 33, 40));
    lesson = attention_gradients_lesson(causal);
    launch<AttentionGradients>(lesson, {attention_gradients_naive, attention_gradients_flash},
                               lesson_shape(&lesson, 1, 2, 33, 40));
    lesson = attention_bf16_lesson(causal);
    launch<AttentionBf16Launcher>(lesson, {attention_wmma, attention_mma}, lesson_shape(&lesson, 1, 2, 33, 40));
  }

  lesson = matmul_tensor_core_lesson();
  launch<MatmulTensorCoreLauncher>(lesson, {matmul_wmma_naive, matmul_wmma_tiled, matmul_wmma_fragments, matmul_mma},
                                   lesson_shape(&lesson, 65, 72, 136));
  return 0;
}
