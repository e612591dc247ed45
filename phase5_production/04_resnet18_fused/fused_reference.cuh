/* fused_reference.cuh - ResNet-18 in float64 on the CPU, operation by operation: what the rungs are compared with.
 * And a network whose batch norms are not trivial, where there is no trained one. */
#ifndef PHASE5_PRODUCTION_FUSED_REFERENCE_CUH
#define PHASE5_PRODUCTION_FUSED_REFERENCE_CUH

#include "common/philox.h"
#include "phase2_mlp/01_perceptron/linear.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_fold.cuh"
#include "phase5_production/03_resnet18/resnet18.cuh"

/* A node's parameter as doubles; NULL: it has none. */
static inline double *fused_reference_param(const Model *m, const float *host, const Node *node, int k) {
  if (k >= node->params) return NULL;
  const Param *p = &node->param[k];
  const float *from = host + (p->trained ? 0 : m->parameter_count) + p->offset;
  double *to = (double *)xmalloc((p->count + 1) * sizeof *to);
  for (size_t i = 0; i < p->count; i++) to[i] = from[i];
  return to;
}

/* y (N,C,pixels) = batch norm of x in evaluation. */
static inline void fused_reference_norm(double *y, const double *x, double *const *p, int n, int c, int pixels) {
  for (int i = 0; i < n * c; i++) {
    const double scale = p[0][i % c] / sqrt(p[3][i % c] + BATCH_NORM_EPSILON);
    for (int j = 0; j < pixels; j++)
      y[(size_t)i * pixels + j] = scale * (x[(size_t)i * pixels + j] - p[2][i % c]) + p[1][i % c];
  }
}

/* One node of the plain graph. */
static inline void fused_reference_node(const Model *m, const float *host, int i, double *const *value, int n) {
  const Node *node = &m->graph->nodes[i];
  const size_t count = shape_count(node->shape) * (size_t)n;
  const double *x = value[node->input[0]];
  double *y = value[i], *p[NODE_MAX_PARAMS];
  for (int k = 0; k < NODE_MAX_PARAMS; k++) p[k] = fused_reference_param(m, host, node, k);
  const Shape in = m->graph->nodes[node->input[0]].shape;
  if (node->op == &conv2d_op) {
    conv2d_forward_cpu<double>(y, x, p[0], p[1], conv2d_op_shape(node, n));
  } else if (batch_norm2d_is(node)) {
    fused_reference_norm(y, x, p, n, in.dim[0], shape_pixels(in));
  } else if (node->op == &max_pool2d_op) {
    uint8_t *largest = (uint8_t *)xmalloc(count);
    max_pool2d_forward_cpu<double>(y, largest, x, max_pool2d_op_shape(node, n));
    free(largest);
  } else if (node->op == &global_avg_pool2d_op) {
    global_avg_pool2d_forward_cpu<double>(y, x, (int)count, shape_pixels(in));
  } else if (node->op == &linear_op) {
    linear_forward_cpu<double>(y, x, p[0], p[1], n, linear_in(node), linear_out(node));
  } else if (node->op == &add_op) {
    for (size_t j = 0; j < count; j++) y[j] = x[j] + value[node->input[1]][j];
  } else if (node->op == &activation_ops[ACTIVATION_RELU]) {
    for (size_t j = 0; j < count; j++) y[j] = x[j] < 0 ? 0 : x[j];
  } else {
    die("%s: the reference has no operation %s; give the network with every operation by itself", node->name,
        node->op->name);
  }
  for (int k = 0; k < NODE_MAX_PARAMS; k++) free(p[k]);
}

/* pictures (n,3,H,W) on the host -> the logits (n,classes), of the plain network; to be freed. */
static inline double *fused_reference(const Model *m, const float *pictures, int n) {
  const Graph *g = m->graph;
  float *host = batch_norm2d_fold_host(m);
  double **value = (double **)xcalloc((size_t)g->count, sizeof *value);
  const int last = g->losses[0].node;
  for (int i = 0; i < g->count; i++) {
    const size_t count = shape_count(g->nodes[i].shape) * (size_t)n;
    value[i] = (double *)xmalloc(count * sizeof **value);
    if (g->nodes[i].op == NULL)
      for (size_t j = 0; j < count; j++) value[i][j] = pictures[j];
    else
      fused_reference_node(m, host, i, value, n);
  }
  double *logits = value[last];
  for (int i = 0; i < g->count; i++)
    if (i != last) free(value[i]);
  free(value);
  free(host);
  return logits;
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* Uniform numbers from `low` on, of width `range`. */
static inline void fused_uniform(float *x, size_t n, uint64_t seed, uint32_t stream, float low, float range) {
  for (size_t i = 0; i < n; i++) x[i] = low + range * philox_uniform(philox4x32(seed, stream, i).word[0]);
}

/* A network that was not trained, with weights by their distributions and batch norms as training could have left them:
 * scales from 0.5 to 1, variances from 0.5 to 1.5, means and shifts around 0. */
static inline void fused_pretend_training(Model *m, uint64_t seed) {
  model_init(m, seed);
  float *host = batch_norm2d_fold_host(m);
  for (int i = 0; i < m->graph->count; i++) {
    const Node *node = &m->graph->nodes[i];
    if (!batch_norm2d_is(node)) continue;
    static const float low[] = {0.5f, -0.2f, -0.3f, 0.5f}, range[] = {0.5f, 0.4f, 0.6f, 1};
    for (int k = 0; k < 4; k++)
      fused_uniform(batch_norm2d_fold_at(m, host, &node->param[k]), node->param[k].count, seed,
                    (uint32_t)(1000 + 4 * i + k), low[k], range[k]);
  }
  device_upload(m->context.device, m->parameters, host, m->parameter_count * sizeof *host);
  device_upload(m->context.device, m->buffers, host + m->parameter_count, m->buffer_count * sizeof *host);
  free(host);
}

/* The plain network on this device, pretended to be trained. -1 as model_open(). */
static inline int fused_trained_open(Model *m, Resnet18Shape shape, Device device, uint64_t seed, Error *err) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  context.seed = seed;
  if (model_open(m, resnet18_layers(shape), context, NULL, 1, MODEL_INFER, err) != 0) return -1;
  fused_pretend_training(m, seed);
  return 0;
}

#endif /* PHASE5_PRODUCTION_FUSED_REFERENCE_CUH */
