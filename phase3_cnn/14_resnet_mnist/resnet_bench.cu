/* resnet_bench.cu - how long a training step of the residual network takes, or its inference, and which operation takes
 * it.
 *
 *     bazel run //phase3_cnn:resnet_bench -- --device=cpu
 *     bazel run //phase3_cnn:resnet_bench -- --inference                 as it was trained
 *     bazel run //phase3_cnn:resnet_bench -- --inference --folded        batch norm folded into the convolutions
 *     python3 tools/peers/network_torch.py --network=resnet_mnist --ours=.../resnet_bench       beside PyTorch
 */
#include "common/nn/network_bench.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/14_resnet_mnist/resnet_networks.cuh"

static int folded;

static Graph *graph(void) {
  Graph *trained = resnet_graph();
  if (!folded) return trained;
  Graph *g = residual_infer_graph(trained);
  graph_destroy(trained);
  return g;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  (void)arg;
  (void)state;
  if (key != 'O') return ARGP_ERR_UNKNOWN;
  folded = 1;
  return 0;
}

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  static const struct argp_option rows[] = {
      {"folded", 'O', NULL, 0, "With --inference: batch norm is folded into the convolutions", 0}, OPTION_END};
  const struct argp_child children[] = {{resnet_networks()->options, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp own = {rows, parse, NULL, NULL, children, NULL, NULL};
  TaskNetworks networks = *resnet_networks();
  networks.options = &own;
  const Task task = {"Residual network",
                     "Times a training step of the residual network, or its inference, and each of its operations.",
                     graph,
                     &networks,
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
