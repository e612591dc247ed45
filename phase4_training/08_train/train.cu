/* train.cu - trains any network of phases 2 and 3 on any data set.
 *
 *     bazel run //phase4_training:train -- --list                                networks and data sets
 *     bazel run //phase4_training:train -- --network=lenet --data=fashion_mnist --summary
 *     bazel run //phase4_training:train -- --network=lenet --data=fashion_mnist --optimizer=adam
 *     bazel run //phase4_training:train -- --config=my_run.json                  the same from a file
 *     bazel run //phase4_training:train -- --network=mlp --search=lr:1e-3..1,log,7 --epochs=1
 *
 * The networks are in train_networks.cuh, the search is in search*.h; the program around them is common/nn/app.h, as
 * for every network of this course.
 */
#include "phase4_training/08_train/train_main.cuh"

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  return train_main(argc, argv, choices, 1);
}
