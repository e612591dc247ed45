/* train_cudnn.cu - trains any network of phases 2 and 3, each operation by our kernels or by cuDNN.
 *
 *     bazel run //phase5_production:train_cudnn -- --network=lenet --device=gpu --layers=cudnn
 *     bazel run //phase5_production:train_cudnn -- --network=fashion_cnn --device=gpu --conv=cudnn
 *     bazel run //phase5_production:train_cudnn -- --network=resnet_mnist --device=gpu --layers=cudnn,conv1:ours
 *     bazel run //phase5_production:train_cudnn -- --network=resnet_cifar --device=gpu --layers=auto
 *
 * It is //phase4_training:train with one option more, and one more word for --conv. The programs of phase 3 cannot have
 * them: an earlier phase knows nothing of a later one. Checkpoints, logs and all other options are the same.
 */
#include "phase4_training/08_train/train_main.cuh"
#include "phase5_production/01_cudnn_layers/dnn_layers_op.cuh"

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&dnn_conv2d_choice, &dnn_layer_choice};
  return train_main(argc, argv, choices, 2);
}
