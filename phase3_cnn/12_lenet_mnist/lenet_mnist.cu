/* lenet_mnist.cu - LeNet-5 learns to read handwritten digits.
 *
 *     bazel run //phase3_cnn:lenet_mnist                                      some ten seconds on two CPU cores, 99 %
 *     bazel run //phase3_cnn:lenet_mnist -- --device=gpu --epochs=10          on an NVIDIA GPU
 *     bazel run //phase3_cnn:lenet_mnist -- --predict my_digit.png
 *
 * The network is in lenet.cuh; its operations, forward and backward, are in conv2d.cuh, max_pool2d.cuh and, from the
 * phases before, linear.cuh, activations.cuh and softmax_cross_entropy.cuh; the program around it is classifier.cuh.
 */
#include "phase2_mlp/classifier.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"

int main(int argc, char **argv) {
  static const Classifier classifier = {
      "LeNet-5 (61,706 parameters) on MNIST",
      "Trains LeNet-5 on the 60,000 handwritten digits of MNIST, tests it on 10,000 others, and keeps the model, a "
      "log, the "
      "learning curve, the learned filters and the misclassified digits in the output folder.",
      "third_party/data/mnist",
      lenet_graph,
      5,    /* epochs */
      64,   /* images a batch */
      0.03, /* learning rate, at its highest */
      0.9,  /* momentum */
      0,    /* weight decay */
      NULL,
      NULL,
      NULL, /* one network, no options */
  };
  return classifier_main(&classifier, argc, argv);
}
