/* cifar10.cu - a residual network or LeNet-5 learns what is on the colour pictures of CIFAR-10 or CIFAR-100.
 *
 *     bazel run //phase3_cnn:cifar10 -- --data-dir=cifar-10-batches-bin
 *     bazel run //phase3_cnn:cifar10 -- --data-dir=cifar-10-batches-bin --device=gpu --graph --network=lenet
 *     bazel run //phase3_cnn:cifar10 -- --data-dir=cifar-100-binary --data=cifar100
 *     bazel run //phase3_cnn:cifar10 -- --predict my_dog.jpg
 *
 * The data sets are yours to download, in their binary version (README.md). The networks are in cifar_cnn.cuh; the
 * program around them is common/nn/app.h.
 */
#include "common/nn/app.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/15_cifar10/cifar_cnn.cuh"

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  const Task task = {
      "Convolutional network",
      "Trains a residual network or LeNet-5 on the 50,000 colour pictures of CIFAR-10 or CIFAR-100, tests it on 10,000 "
      "others, and keeps the model, a log, the learning curve, the learned filters and the misclassified pictures in "
      "the "
      "output folder. --data-dir names the folder of the set's binary version.",
      cifar_graph,
      cifar_task_networks(),
      &data_cifar10,
      &batch_kernels,
      &sgd,
      &schedule_linear,
      20,                /* epochs */
      128,               /* images per batch */
      {0.05, 0.9, 5e-4}, /* learning rate, at its highest; momentum; weight decay */
      choices,
      1, /* --conv=... */
      &augment_crop,
      NULL, /* --show-excited: the host looks for the peaks */
  };
  return app_main(&task, argc, argv);
}
