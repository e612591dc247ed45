/* resnet18_bench.cu - how long ResNet-18's inference or a training step of it takes, and which operation takes it.
 *
 *     bazel run //phase5_production:resnet18_bench -- --inference --folded --batch-size=64
 *     bazel run //phase5_production:resnet18_bench -- --batch-size=64 --precision=bf16 --graph
 *     bazel run //phase5_production:resnet18_bench -- --inference --folded --conv=auto --side=64 --batch-size=1
 */
#include "common/nn/network_bench.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase5_production/03_resnet18/resnet18.cuh"

static Resnet18Shape shape = {RESNET18_SIDE, RESNET18_WIDTH, RESNET18_CLASSES};
static int folded;

static int no_pictures(const char *directory, DataSplit split, DataSet *set, Error *err) {
  (void)directory, (void)split, (void)set;
  return error_set(err, "ImageNet is not read; the benchmark makes random pictures");
}

static DataSource pictures = {"imagenet",
                              "random pictures of ImageNet's size",
                              "things",
                              {3, {3, RESNET18_SIDE, RESNET18_SIDE, 0}},
                              RESNET18_CLASSES,
                              NULL,
                              {NULL},
                              no_pictures,
                              NULL};

static Graph *graph(void) {
  Graph *g = resnet18_fused(shape);
  if (!folded) return g;
  Graph *fast = residual_infer_graph(g);
  cnn_can_be_lowered(fast);
  graph_destroy(g);
  return fast;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  switch (key) {
    case 'O':
      folded = 1;
      return 0;
    case 'S':
      shape.side = (int)option_int(state, arg, "--side", 1, 1024);
      pictures.shape = shape3(3, shape.side, shape.side);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static void text(char network[CHECKPOINT_NETWORK]) {
  snprintf(network, CHECKPOINT_NETWORK, "resnet18 of 3x%dx%d%s", shape.side, shape.side, folded ? ", folded" : "");
}

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  static const struct argp_option rows[] = {
      {"folded", 'O', NULL, 0, "With --inference: batch norm is folded into the convolutions", 0},
      {"side", 'S', "N", 0, "Pictures of N x N pixels (default: 224)", 0},
      OPTION_END};
  static const struct argp own = {rows, parse, NULL, NULL, NULL, NULL, NULL};
  static const TaskNetworks networks = {&own, text, NULL, NULL, NULL, NULL};
  const Task task = {"ResNet-18",
                     "Times a training step of ResNet-18, or its inference, and each of its operations.",
                     graph,
                     &networks,
                     &pictures,
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
