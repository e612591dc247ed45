/* residual_depth.cuh - the networks of residual_depth.cu: a stem, `layers` convolutions of 3 x 3 in pairs, a linear
 * layer. With and without shortcuts, and with and without batch normalisation, they have the same convolutions.
 *
 *     stem       (channels, 7, 7)      7 x 7, stride 4; norm, ReLU
 *     a pair     conv, norm, ReLU, conv, norm, [+ the input of the pair,] ReLU
 *     fc         10
 */
#ifndef PHASE3_CNN_RESIDUAL_DEPTH_CUH
#define PHASE3_CNN_RESIDUAL_DEPTH_CUH

#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/11_residual/add_relu_op.cuh"
#include "phase3_cnn/11_residual/residual_block.cuh"

typedef struct DepthNetwork {
  int layers, channels;     /* layers: even */
  int shortcut, batch_norm; /* whether it has them */
  const Init *init;
} DepthNetwork;

static inline const char *depth_name(DepthNetwork n) {
  if (n.shortcut) return n.batch_norm ? "residual, batch norm" : "residual";
  return n.batch_norm ? "plain, batch norm" : "plain";
}

/* The image shrinks by `stride`. */
static inline int depth_conv(Graph *g, int x, DepthNetwork n, int kernel, int stride) {
  return n.batch_norm ? batch_norm2d(g, conv2d_no_bias(g, x, n.channels, kernel, stride, kernel / 2))
                      : conv2d(g, x, n.channels, kernel, stride, kernel / 2);
}

static inline Graph *depth_graph(DepthNetwork n) {
  static const Fusion fusions[] = {FUSE_ADD_RELU};
  Graph *g = graph_create();
  g->weight_init = n.init;
  int x = graph_input(g, "x", shape3(1, 28, 28));
  x = relu(g, depth_conv(g, x, n, 7, 4)); /* conv1: the stem */
  for (int layer = 0; layer < n.layers; layer += 2) {
    int h = depth_conv(g, relu(g, depth_conv(g, x, n, 3, 1)), n, 3, 1);
    x = relu(g, n.shortcut ? add(g, h, x) : h);
  }
  g->weight_init = &torch_default; /* logits that begin small */
  graph_loss(g, &cross_entropy_loss, linear(graph_name(g, "fc"), x, 10), 1);
  graph_fuse(g, fusions, 1);
  return g;
}

/* The Euclidean norm of the gradient of layer 1 .. n.layers' filters, after model_backward(). */
static inline double depth_gradient_norm(const Model *m, int layer) {
  char name[32];
  snprintf(name, sizeof name, "conv%d.weight", layer + 1); /* behind the stem */
  const Param *p = model_find_param(m, name);
  float *gradient = (float *)xmalloc(p->count * sizeof *gradient);
  double sum = 0;
  device_download(m->context.device, gradient, model_gradient(m, p), p->count * sizeof *gradient);
  for (size_t i = 0; i < p->count; i++) sum += (double)gradient[i] * gradient[i];
  free(gradient);
  return sqrt(sum);
}

#endif /* PHASE3_CNN_RESIDUAL_DEPTH_CUH */
