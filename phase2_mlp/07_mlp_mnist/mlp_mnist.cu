/* mlp_mnist.cu - a multi-layer perceptron learns to read handwritten digits.
 *
 *     bazel run //phase2_mlp:mlp_mnist                                        a few seconds on two CPU cores, 98 %
 *     bazel run //phase2_mlp:mlp_mnist -- --layers=784,256,64,10 --activation=tanh
 *     bazel run //phase2_mlp:mlp_mnist -- --device=gpu --epochs=20            on an NVIDIA GPU
 *     bazel run //phase2_mlp:mlp_mnist -- --predict my_digit.png
 *
 * All lessons before in one program: the files (lesson 4), the batches (5), the network (3) in mlp.cuh, and around it
 * classifier.cuh, which every classifier of this course uses: checkpoints, curves, confusion matrix.
 *
 * The picture filters.png shows the weights of the 128 hidden units: a row of the first weight is as large as an image.
 * A perceptron does not use that pixels have neighbours: with the pixels of all images permuted alike it learns as
 * well. LeNet-5 of phase 3 uses it, and makes about half as many mistakes with fewer parameters. */
#include "phase2_mlp/03_mlp/mlp_options.cuh"
#include "phase2_mlp/classifier.cuh"

static Graph *graph(void) { return mlp_graph(&mlp_choice.shape); }

static void network_text(char text[CHECKPOINT_NETWORK]) {
  static_assert((int)CHECKPOINT_NETWORK >= (int)MLP_TEXT, "a checkpoint keeps the whole of it");
  mlp_text(&mlp_choice.shape, text);
}

/* A file from elsewhere says nothing of its network: its tensors will fit the one that was asked for, or not. */
static int network_from_text(const char *text, Error *err) {
  MlpShape saved, asked;
  char asked_text[MLP_TEXT];
  if (text[0] == '\0') return 0;
  if (mlp_parse(&saved, text, err) != 0) return -1;
  asked = mlp_choice.layers_given ? mlp_choice.shape : saved;
  asked.activation = mlp_choice.activation_given ? mlp_choice.shape.activation : saved.activation;
  mlp_text(&asked, asked_text);
  if (strcmp(asked_text, text) != 0)
    return error_set(err,
                     "this is the network %s, not %s; leave --layers and --activation out, or train another one into "
                     "another --output-dir",
                     text, asked_text);
  mlp_choice.shape = saved;
  return 0;
}

int main(int argc, char **argv) {
  const Classifier classifier = {
      "Multi-layer perceptron on MNIST",
      "Trains a multi-layer perceptron on the 60,000 handwritten digits of MNIST, tests it on 10,000 others, and keeps "
      "the model, a log, the learning curve, the learned filters and the misclassified digits in the output folder.",
      "third_party/data/mnist",
      graph,
      10,   /* epochs */
      64,   /* images per batch */
      0.05, /* learning rate, at its highest */
      0.9,  /* momentum */
      5e-4, /* weight decay */
      mlp_options("784,128,10", ACTIVATION_RELU),
      network_text,
      network_from_text,
  };
  return classifier_main(&classifier, argc, argv);
}
