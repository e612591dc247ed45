/* lenet_mnist.cu - LeNet-5 learns to read handwritten digits.
 *
 *     bazel run //phase3_cnn:lenet_mnist                                      some ten seconds on two CPU cores, 99 %
 *     bazel run //phase3_cnn:lenet_mnist -- --device=gpu --epochs=10          on an NVIDIA GPU
 *     bazel run //phase3_cnn:lenet_mnist -- --predict my_digit.png
 *     bazel run //phase3_cnn:lenet_mnist -- --show-features=my_digit.png      what each layer makes of it
 *     bazel run //phase3_cnn:lenet_mnist -- --show-excited                    which digits excite each filter most
 *
 * The network is in lenet.cuh; its operations, forward and backward, are in conv2d.cuh, max_pool2d.cuh and, from the
 * phases before, linear.cuh, activations.cuh and softmax_cross_entropy.cuh; the program around it is
 * common/nn/app.h.
 */
#include "common/nn/app.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase3_cnn/12_lenet_mnist/map_peaks_op.cuh"
#include "phase3_cnn/16_one_step/one_step_op.cuh"

static Graph *network(void) { return one_step_may_fuse(lenet_graph()); }

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  static const Task task = {
      "LeNet-5 (61,706 parameters)",
      "Trains LeNet-5 on the 60,000 handwritten digits of MNIST, tests it on 10,000 others, and keeps the model, a "
      "log, the learning curve, the learned filters and the misclassified digits in the output folder.",
      network,
      NULL, /* one network, no options */
      &data_mnist,
      &batch_kernels,
      &sgd,
      &schedule_linear,
      5,              /* epochs */
      64,             /* images per batch */
      {0.03, 0.9, 0}, /* learning rate, at its highest; momentum; weight decay */
      choices,
      1,         /* --conv=... */
      NULL,      /* no augmentation */
      map_peaks, /* --show-excited */
  };
  return app_main(&task, argc, argv);
}
