/* mlp_bench.cu - how long a training step of a multi-layer perceptron takes, and which operation takes it.
 *
 *     bazel run //phase2_mlp:mlp_bench -- --device=cpu --batch-size=64 --layers=784,128,10
 *     python3 tools/peers/mlp_torch.py --ours=bazel-bin/phase2_mlp/mlp_bench          against PyTorch, in turns
 */
#include "phase2_mlp/mlp_options.cuh"
#include "phase2_mlp/network_bench.cuh"

static Network *create(Device device, int max_batch) {
  static Mlp mlp;
  mlp_create(&mlp, &mlp_choice.shape, device, max_batch);
  return &mlp.network;
}

int main(int argc, char **argv) {
  const NetworkBench bench = {"Multi-layer perceptron",
                              "Times a training step of a multi-layer perceptron and each of its operations.", create,
                              mlp_options("784,128,10", ACTIVATION_RELU)};
  return network_bench_main(&bench, argc, argv);
}
