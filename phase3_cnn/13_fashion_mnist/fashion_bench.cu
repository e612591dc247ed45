/* fashion_bench.cu - how long a training step of the network for Fashion-MNIST takes, and which operation takes it.
 *
 *     bazel run //phase3_cnn:fashion_bench -- --device=cpu --batch-size=64
 *     python3 tools/peers/network_torch.py --network=fashion --ours=bazel-bin/phase3_cnn/13_fashion_mnist/fashion_bench
 */
#include "common/nn/network_bench.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/13_fashion_mnist/fashion_cnn.cuh"

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  static const Task task = {"Fashion CNN",
                            "Times a training step of the network for Fashion-MNIST and each of its operations.",
                            fashion_cnn_graph,
                            NULL,
                            &data_fashion_mnist,
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
