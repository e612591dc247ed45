/* resnet_mnist.cu - a small residual network learns to read handwritten digits.
 *
 *     bazel run //phase3_cnn:resnet_mnist                                     minutes on two CPU cores, 99.3 %
 *     bazel run //phase3_cnn:resnet_mnist -- --device=gpu --graph             on an NVIDIA GPU
 *     bazel run //phase3_cnn:resnet_mnist -- --dropout=0                      without dropout
 *     bazel run //phase3_cnn:resnet_mnist -- --stream                         the data set stays in the host's memory
 *     bazel run //phase3_cnn:resnet_mnist -- --predict my_digit.png
 *
 * The same network in PyTorch, with the same names and settings, is resnet_mnist.py beside this file. The network is in
 * resnet.cuh; the program around it is common/nn/app.h.
 */
#include "common/nn/app.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/14_resnet_mnist/resnet_networks.cuh"

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  const Task task = {
      "Residual network",
      "Trains a residual network on the 60,000 handwritten digits of MNIST, tests it on 10,000 others, and keeps the "
      "model, a log, the learning curve, the learned filters and the misclassified digits in the output folder.",
      resnet_graph,
      resnet_networks(),
      &data_mnist,
      &batch_kernels,
      &sgd,
      &schedule_linear,
      2,                 /* epochs */
      64,                /* images per batch */
      {0.05, 0.9, 5e-4}, /* learning rate, at its highest; momentum; weight decay */
      choices,
      1,    /* --conv=... */
      NULL, /* no augmentation */
      NULL, /* --show-excited: the host looks for the peaks */
  };
  return app_main(&task, argc, argv);
}
