/* mlp_bench.cu - how long a training step of a multi-layer perceptron takes, and which operation takes it.
 *
 *     bazel run //phase2_mlp:mlp_bench -- --device=cpu --batch-size=64 --layers=784,128,10
 *     python3 tools/peers/mlp_torch.py --ours=bazel-bin/phase2_mlp/03_mlp/mlp_bench          against PyTorch, in turns
 */
#include "phase2_mlp/03_mlp/mlp_options.cuh"
#include "phase2_mlp/network_bench.cuh"

static Graph *graph(void) { return mlp_graph(&mlp_choice.shape); }

int main(int argc, char **argv) {
  const NetworkBench bench = {"Multi-layer perceptron",
                              "Times a training step of a multi-layer perceptron and each of its operations.", graph,
                              mlp_options("784,128,10", ACTIVATION_RELU)};
  return network_bench_main(&bench, argc, argv);
}
