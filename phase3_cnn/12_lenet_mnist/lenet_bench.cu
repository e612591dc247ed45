/* lenet_bench.cu - how long a training step of LeNet-5 takes, and which operation takes it.
 *
 *     bazel run //phase3_cnn:lenet_bench -- --device=cpu --batch-size=64
 *     python3 tools/peers/lenet_torch.py --ours=bazel-bin/phase3_cnn/12_lenet_mnist/lenet_bench    beside PyTorch
 */
#include "phase2_mlp/network_bench.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"

int main(int argc, char **argv) {
  static const NetworkBench bench = {"LeNet-5", "Times a training step of LeNet-5 and each of its operations.",
                                     lenet_graph, NULL};
  return network_bench_main(&bench, argc, argv);
}
