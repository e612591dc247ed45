/* mlp_mnist.cu - a multi-layer perceptron learns to read handwritten digits.
 *
 *     bazel run //phase2_mlp:mlp_mnist                                        a few seconds on two CPU cores, 98 %
 *     bazel run //phase2_mlp:mlp_mnist -- --layers=784,256,64,10 --activation=tanh
 *     bazel run //phase2_mlp:mlp_mnist -- --device=gpu --epochs=20            on an NVIDIA GPU
 *     bazel run //phase2_mlp:mlp_mnist -- --data=fashion_mnist --augment=shift
 *     bazel run //phase2_mlp:mlp_mnist -- --summary
 *     bazel run //phase2_mlp:mlp_mnist -- --predict my_digit.png
 *
 * All lessons before in one program: the files (lesson 4), the batches (5) and the network (3) in mlp.cuh. The program
 * around it, common/nn/app.h, is the same for every network of this course: checkpoints, curves, confusion matrix. What
 * differs from network to network is this table.
 *
 * The picture filters.png shows the weights of the 128 hidden units: a row of the first weight is as large as an image.
 * A perceptron does not use that pixels have neighbours: with the pixels of all images permuted alike it learns as
 * well. LeNet-5 of phase 3 uses it, and makes about half as many mistakes with fewer parameters. */
#include "common/nn/app.h"
#include "phase2_mlp/03_mlp/mlp_networks.cuh"
#include "phase2_mlp/05_batches/batches_op.cuh"

static Graph *graph(void) { return mlp_graph(&mlp_choice.shape); }

int main(int argc, char **argv) {
  const Task task = {
      "Multi-layer perceptron",
      "Trains a multi-layer perceptron on the 60,000 handwritten digits of MNIST, tests it on 10,000 others, and keeps "
      "the model, a log, the learning curve, the learned filters and the misclassified digits in the output folder.",
      graph,
      mlp_networks("784,128,10", ACTIVATION_RELU),
      &data_mnist,
      &batch_kernels,
      &sgd,
      &schedule_linear,
      10,                /* epochs */
      64,                /* images per batch */
      {0.05, 0.9, 5e-4}, /* learning rate, at its highest; momentum; weight decay */
      NULL,
      0, /* no operation with several implementations */
      NULL,
      NULL, /* --show-excited: the host looks for the peaks */
  };
  return app_main(&task, argc, argv);
}
