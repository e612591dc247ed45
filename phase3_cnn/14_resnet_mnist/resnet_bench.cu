/* resnet_bench.cu - how long a training step of the residual network takes, and which operation takes it.
 *
 *     bazel run //phase3_cnn:resnet_bench -- --device=cpu --batch-size=128
 */
#include "common/nn/network_bench.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/14_resnet_mnist/resnet_networks.cuh"

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  const Task task = {"Residual network",
                     "Times a training step of the residual network and each of its operations.",
                     resnet_graph,
                     resnet_networks(),
                     &data_mnist,
                     &batch_kernels,
                     &sgd,
                     NULL,
                     1,
                     128,
                     {0.01, 0.9, 0},
                     choices,
                     1};
  return network_bench_main(&task, argc, argv);
}
