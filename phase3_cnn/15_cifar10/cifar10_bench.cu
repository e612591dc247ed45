/* cifar10_bench.cu - how long a training step of the networks for CIFAR-10 takes, and which operation takes it.
 *
 *     bazel run //phase3_cnn:cifar10_bench -- --device=cpu --network=resnet --batch-size=64
 *     python3 tools/peers/network_torch.py --network=resnet --ours=bazel-bin/phase3_cnn/15_cifar10/cifar10_bench
 */
#include "common/nn/network_bench.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/15_cifar10/cifar_cnn.cuh"

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  const Task task = {"Network for CIFAR-10",
                     "Times a training step of a network for CIFAR-10 and each of its operations.",
                     cifar_graph,
                     cifar_task_networks(),
                     &data_cifar10,
                     &batch_kernels,
                     &sgd,
                     NULL,
                     1,
                     128,
                     {0.01, 0.9, 0},
                     choices,
                     1,
                     NULL,
                     NULL};
  return network_bench_main(&task, argc, argv);
}
