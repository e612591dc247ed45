/* fashion_mnist.cu - a convolutional network learns to tell ten kinds of clothes apart.
 *
 *     bazel run //phase3_cnn:fashion_mnist                                    minutes on two CPU cores, 92 %
 *     bazel run //phase3_cnn:fashion_mnist -- --device=gpu --graph            seconds on an NVIDIA GPU
 *     bazel run //phase3_cnn:fashion_mnist -- --predict my_shoe.png
 *
 * The network is in fashion_cnn.cuh; the program around it is common/nn/app.h.
 */
#include "common/nn/app.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/13_fashion_mnist/fashion_cnn.cuh"

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  static const Task task = {
      "Fashion CNN (896,522 parameters)",
      "Trains a convolutional network on the 60,000 pictures of clothes of Fashion-MNIST, tests it on 10,000 others, "
      "and "
      "keeps the model, a log, the learning curve, the learned filters and the misclassified pictures in the output "
      "folder.",
      fashion_cnn_graph,
      NULL, /* one network, no options */
      &data_fashion_mnist,
      &batch_kernels,
      &sgd,
      &schedule_linear,
      5,                 /* epochs */
      64,                /* images per batch */
      {0.05, 0.9, 5e-4}, /* learning rate, at its highest; momentum; weight decay */
      choices,
      1,    /* --conv=... */
      NULL, /* no augmentation */
      NULL, /* --show-excited: the host looks for the peaks */
  };
  return app_main(&task, argc, argv);
}
