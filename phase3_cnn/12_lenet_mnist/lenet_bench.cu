/* lenet_bench.cu - how long a training step of LeNet-5 takes, and which operation takes it.
 *
 *     bazel run //phase3_cnn:lenet_bench -- --device=cpu --batch-size=64
 *     python3 tools/peers/network_torch.py --ours=bazel-bin/phase3_cnn/12_lenet_mnist/lenet_bench    beside PyTorch
 */
#include "common/nn/network_bench.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase3_cnn/16_one_step/one_step_op.cuh"

static Graph *network(void) { return one_step_may_fuse(lenet_graph()); }

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  static const Task task = {"LeNet-5",
                            "Times a training step of LeNet-5 and each of its operations.",
                            network,
                            NULL,
                            &data_mnist,
                            &batch_kernels,
                            &sgd,
                            NULL,
                            1,
                            64,
                            {0.01, 0.9, 0},
                            choices,
                            1,
                            NULL,
                            NULL};
  return network_bench_main(&task, argc, argv);
}
