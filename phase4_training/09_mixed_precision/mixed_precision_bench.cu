/* mixed_precision_bench.cu - a training step of the residual network of phase 3's lesson 15 on pictures of 64 x 64, in
 * float32, bf16 or fp16, and which operation takes how long.
 *
 *     bazel run //phase4_training:mixed_precision_bench -- --device=gpu --precision=bf16 --graph --resident
 *     python3 tools/peers/network_torch.py --network=resnet64 --device=cuda --batch-size=128 --graph --autocast=bf16
 *         --ours=bazel-bin/phase4_training/09_mixed_precision/mixed_precision_bench
 */
#include "common/nn/network_bench.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/15_cifar10/cifar_cnn.cuh"

enum { SIDE = 64, CLASSES = 10 };

/* Pixels and labels are random: the benchmark reads no files. */
static const DataSource pictures = {
    "pictures", "random pictures", "pictures", {3, {3, SIDE, SIDE, 0}}, CLASSES, NULL, {NULL, NULL}, NULL, NULL};

static Graph *graph(void) {
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(3, SIDE, SIDE));
  graph_loss(g, &cross_entropy_loss, cifar_resnet_layers(g, x, CLASSES), 1);
  graph_fuse(g, cifar_fusions, sizeof cifar_fusions / sizeof *cifar_fusions);
  cnn_can_be_lowered(g);
  return g;
}

int main(int argc, char **argv) {
  const Task task = {"Residual network, 64 x 64",
                     "Times a training step of a residual network, and each of its operations.",
                     graph,
                     NULL,
                     &pictures,
                     &batch_kernels,
                     &sgd,
                     NULL,
                     1,
                     128,
                     {0.01, 0.9, 0},
                     NULL,
                     0,
                     NULL,
                     NULL};
  return network_bench_main(&task, argc, argv);
}
