/* stripes.cuh - a small residual network and pictures to train it on, made up by a program: which of four directions
 * has the pattern? For mixed_precision.cu and the tests: a run takes a second on a CPU.
 *
 *     x (1,12,12)   conv1 8 filters, batch norm, ReLU   block: two of 16 with stride 2, and a shortcut   mean   4
 * logits
 */
#ifndef PHASE4_TRAINING_STRIPES_CUH
#define PHASE4_TRAINING_STRIPES_CUH

#include "common/nn/model.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase3_cnn/11_residual/residual_block.cuh"
#include "phase3_cnn/half_ops.cuh"

enum { STRIPES_SIDE = 12, STRIPES_PIXELS = STRIPES_SIDE * STRIPES_SIDE, STRIPES_CLASSES = 4 };

/* type: of what is lowered. */
static inline Graph *stripes_graph(DType type) {
  static const Fusion fusions[] = {FUSE_LINEAR, FUSE_BATCH_NORM_RELU, FUSE_ADD_RELU, FUSE_BATCH_NORM_ADD_RELU};
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(1, STRIPES_SIDE, STRIPES_SIDE));
  x = relu(g, batch_norm2d(g, conv2d_no_bias(g, x, 8, 3, 1, 1)));
  x = residual_block(g, "layer1.0", x, 16, 2);
  x = linear(g, global_avg_pool2d(g, x), STRIPES_CLASSES);
  graph_loss(g, &cross_entropy_loss, x, 1);
  graph_fuse(g, fusions, sizeof fusions / sizeof *fusions);
  cnn_can_be_lowered(g);
  graph_lower(g, type);
  return g;
}

/* A number in [-1, 1) for (seed, stream, i). */
static inline float stripes_random(uint64_t seed, uint32_t stream, uint64_t i) {
  return (float)philox4x32(seed, stream, i).word[0] * 0x1p-31f - 1;
}

/* Picture number i: stripes of a random phase and period in one of four directions, and noise. Returns its class. */
static inline int stripes_picture(float *pixels, uint64_t seed, uint64_t i) {
  static const float down[STRIPES_CLASSES] = {1, 0, 0.7071f, 0.7071f},
                     right[STRIPES_CLASSES] = {0, 1, 0.7071f, -0.7071f};
  const int label = (int)(philox4x32(seed, 1, i).word[0] % STRIPES_CLASSES);
  const float phase = 3.1416f * stripes_random(seed, 2, i), period = 4 + stripes_random(seed, 3, i);
  for (int p = 0; p < STRIPES_PIXELS; p++) {
    const float along = down[label] * (float)(p / STRIPES_SIDE) + right[label] * (float)(p % STRIPES_SIDE);
    pixels[p] = sinf(6.2832f / period * along + phase) + stripes_random(seed, 4, i * STRIPES_PIXELS + p);
  }
  return label;
}

/* Batch number `step` into the network's input and labels. */
static inline void stripes_batch(Model *net, int batch, uint64_t seed, int step) {
  float *pixels = (float *)xmalloc((size_t)batch * STRIPES_PIXELS * sizeof *pixels);
  int *labels = (int *)xmalloc((size_t)batch * sizeof *labels);
  for (int i = 0; i < batch; i++)
    labels[i] = stripes_picture(pixels + (size_t)i * STRIPES_PIXELS, seed, (uint64_t)step * batch + i);
  device_upload(net->context.device, model_input(net, 0), pixels, (size_t)batch * STRIPES_PIXELS * sizeof *pixels);
  device_upload(net->context.device, model_labels(net), labels, (size_t)batch * sizeof *labels);
  free(pixels);
  free(labels);
}

/* Ends the program with a sentence where it cannot be opened. */
static inline void stripes_open(Model *net, DType type, Device device, const Optimizer *optimizer, int batch,
                                uint64_t seed) {
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  context.seed = seed;
  if (model_open(net, stripes_graph(type), context, optimizer, batch, MODEL_TRAIN, &err) != 0) die("%s", err.message);
  model_init(net, seed);
}

#endif /* PHASE4_TRAINING_STRIPES_CUH */
