/* resnet18_train_bench.cu - how long a training step of ResNet-18 takes, and which operation takes it.
 *
 *     bazel run --config=cuda //phase5_production:resnet18_train_bench -- --precision=bf16 --graph --resident
 *     bazel run --config=cuda //phase5_production:resnet18_train_bench -- --precision=bf16 --mma --graph --resident
 *     python3 tools/peers/resnet18_torch.py --train
 *
 * In bf16 and fp16 the convolutions are those of fused_train_op.cuh; with --mma those of phase 3's networks.
 */
#include "common/nn/network_bench.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase5_production/03_resnet18/resnet18.cuh"
#include "phase5_production/04_resnet18_fused/fused_train_op.cuh"

/* Pixels and labels are random: the benchmark reads no files. */
static const DataSource pictures = {"pictures",
                                    "random pictures",
                                    "pictures",
                                    {3, {3, RESNET18_SIDE, RESNET18_SIDE, 0}},
                                    RESNET18_CLASSES,
                                    NULL,
                                    {NULL, NULL},
                                    NULL,
                                    NULL};

static int by_mma;

static Graph *graph(void) {
  Graph *g = resnet18_fused(resnet18_imagenet);
  if (!by_mma) cnn_can_be_lowered_for_hopper(g);
  return g;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  (void)arg;
  (void)state;
  if (key != 'M') return ARGP_ERR_UNKNOWN;
  by_mma = 1;
  return 0;
}

/* There is one network. */
static void network_text(char text[CHECKPOINT_NETWORK]) { snprintf(text, CHECKPOINT_NETWORK, "resnet18"); }
static int network_from_text(const char *text, Error *err) {
  (void)text;
  (void)err;
  return 0;
}

int main(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  static const struct argp_option rows[] = {
      {"mma", 'M', NULL, 0, "In bf16 and fp16: convolutions by mma.sync, as in phase 3", 0}, OPTION_END};
  static const struct argp own = {rows, parse, NULL, NULL, NULL, NULL, NULL};
  static const TaskNetworks networks = {&own, network_text, network_from_text, NULL, NULL, NULL};
  const Task task = {"ResNet-18",
                     "Times a training step of ResNet-18, and each of its operations.",
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
