/* mlp_bench.cu - how long a training step of a multi-layer perceptron takes, and which operation takes it.
 *
 *     bazel run //phase2_mlp:mlp_bench -- --device=cpu --batch-size=64 --layers=784,128,10
 *     python3 tools/peers/mlp_torch.py --ours=bazel-bin/phase2_mlp/03_mlp/mlp_bench          against PyTorch, in turns
 */
#include "common/nn/network_bench.h"
#include "phase2_mlp/03_mlp/mlp_networks.cuh"
#include "phase2_mlp/05_batches/batches_op.cuh"

static Graph *graph(void) { return mlp_graph(&mlp_choice.shape); }

int main(int argc, char **argv) {
  const Task task = {"Multi-layer perceptron",
                     "Times a training step of a multi-layer perceptron and each of its operations.",
                     graph,
                     mlp_networks("784,128,10", ACTIVATION_RELU),
                     &data_mnist,
                     &batch_kernels,
                     &sgd,
                     NULL,
                     1,
                     64,
                     {0.01, 0.9, 0},
                     NULL,
                     0,
                     NULL,
                     NULL};
  return network_bench_main(&task, argc, argv);
}
