/* test_export.h - networks with weights that differ everywhere, for tests of their export. */
#ifndef PHASE5_PRODUCTION_TEST_EXPORT_H
#define PHASE5_PRODUCTION_TEST_EXPORT_H

#include "common/test.h"
#include "phase5_production/06_onnx_export/export_networks.cuh"
#include "phase5_production/06_onnx_export/export_test_data.h"
#include "phase5_production/06_onnx_export/onnx_export.cuh"

enum { TEST_EXPORT_BATCH = 3, TEST_EXPORT_STREAM = 0xe7 };

/* Every parameter and buffer gets random numbers, so that one in another's place shows: fresh batch norms would all
 * have mean 0 and variance 1. Weights are small enough that no activation saturates; variances lie in 0.5 to 1.5. */
static inline void test_export_fill(Model *m, uint64_t seed) {
  const Param *p;
  uint32_t stream = TEST_EXPORT_STREAM;
  for (int node = 0, index = 0; (p = model_next_param(m, &node, &index)) != NULL; stream++) {
    if (p->counts) continue;
    float *values = model_param(m, p);
    const size_t length = strlen(p->name);
    const int variance = length > 11 && strcmp(p->name + length - 11, "running_var") == 0;
    const float scale = p->rank > 1 ? 1.7f / sqrtf((float)(p->count / p->dim[0])) : 1;
    for (size_t i = 0; i < p->count; i++) {
      const float number = (float)philox4x32(seed, stream, i).word[0] * 0x1p-31f - 1;
      values[i] = variance ? 1 + number / 2 : number * scale;
    }
  }
}

static inline void test_export_open(Model *m, Graph *g, uint64_t seed) {
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = DEVICE_CPU;
  if (model_open(m, g, context, NULL, TEST_EXPORT_BATCH, MODEL_INFER, &err) != 0) fail_msg("%s", err.message);
  test_export_fill(m, seed);
}

/* The i-th network of the table, those for large pictures made small. NULL behind the last. */
static inline const ExportNetwork *test_export_choice(int i, ExportChoice *c) {
  const ExportNetwork *network = export_network_at(i);
  if (network == NULL) return NULL;
  export_choose(c, network);
  if (c->shape.images.dim[1] >= EXPORT_TINY_SIDE) {
    c->shape.images = shape3(3, 32, 32);
    c->shape.width = 8;
    c->shape.classes = 13;
  }
  return network;
}

/* All that a graph of this course can hold, with shapes and arguments that differ in every direction. */
static inline Graph *test_export_zoo(void) {
  Graph *g = graph_create();
  Conv2dShape conv = conv2d_shape(1, 1, 1, 1, 6, 3, 2, 2, 1);
  conv.stride_w = 1, conv.dilation_h = 2, conv.padding_w = 2, conv.groups = 2;
  Pool2dShape most = pool2d_shape_of(1, 1, 1, 1, pool2d_square(3, 2)), mean = most;
  most.kernel_w = 2, most.stride_w = 1, most.pad_h = 1, most.dilation_w = 2, most.ceil_mode = 1;
  mean.kernel_h = 2, mean.stride_h = 1, mean.pad_w = 1;
  int x = graph_input(g, "x", shape3(4, 21, 17));
  x = instance_norm2d(g, activation(g, conv2d_general(g, x, conv), ACTIVATION_LEAKY_RELU));
  x = activation(g, max_pool2d_shaped(g, x, most), ACTIVATION_TANH);
  x = conv2d_transposed(g, x, 5, 3, 2, 1, 1);
  x = instance_norm2d_affine(g, dropout(g, x, 0.5f));
  const int wide = batch_norm2d(g, avg_pool2d_shaped(g, x, mean, 1));
  x = add(g, wide, batch_norm2d(g, avg_pool2d_shaped(g, x, mean, 0)));
  x = layer_norm_last(g, relu(g, x), 1);
  x = layer_norm(g, activation(g, x, ACTIVATION_SIGMOID));
  x = linear(g, x, 9);
  x = softmax(g, linear(g, dropout(g, x, 0), 7));
  graph_output(g, x);
  return g;
}

#endif /* PHASE5_PRODUCTION_TEST_EXPORT_H */
