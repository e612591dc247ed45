/* onnx_export.cuh - a network of this course as an ONNX model: its Graph node by node, its parameters by their names.
 *
 *     OnnxModel onnx;
 *     const OnnxExportOptions options = {"lenet", 0, 0};
 *     if (onnx_export(&onnx, &net, &options, &err) != 0) die("%s", err.message);     // net: a trained Model
 *     int status = onnx_model_write(onnx.proto, "lenet.onnx", &err);
 *     onnx_model_close(&onnx);
 *
 * Opset 17, ir_version 8, and what the two graphs have in common is written as it is: node names, parameter names
 * (PyTorch's), float32 in row-major order. What differs:
 *
 *     here                                           in ONNX
 *     shapes are of one sample                       the batch is the first axis, of the open size "N"
 *     padding (h, w)                                 pads: top, left, bottom, right (onnx_pads)
 *     fc reads any shape, w (out,in)                 Flatten where it is not a row, then Gemm with transB = 1
 *     avgpool of a whole channel gives (C)           GlobalAveragePool gives (N,C,1,1), then Flatten
 *     batch norm: momentum is the new value's share  momentum is the old value's: 1 - 0.1
 *     dropout                                        nothing: it passes its input on where nothing is trained
 *     the transposed convolution's mirror            ConvTranspose with output_padding
 *     fused operations (common/nn/fuse.h)            each by itself: fusing is the work of whoever runs the file
 *
 * One rule for each operation; an operation without one is refused by name.
 */
#ifndef PHASE5_PRODUCTION_ONNX_EXPORT_CUH
#define PHASE5_PRODUCTION_ONNX_EXPORT_CUH

#include "common/nn/checkpoint.h"
#include "common/nn/fuse.h"
#include "common/onnx/metadata.h"
#include "common/options.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase1_building_blocks/12_dropout/dropout_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_transposed_op.cuh"
#include "phase3_cnn/09_pooling/avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"
#include "phase3_cnn/10_batch_norm/instance_norm_op.cuh"
#include "phase3_cnn/10_batch_norm/layer_norm_op.cuh"
#include "phase3_cnn/11_residual/add_op.cuh"
#include "phase5_production/01_cudnn_layers/softmax_op.cuh"
#include "phase5_production/06_onnx_export/onnx_pads.cuh"

#define ONNX_EXPORT_LOGITS "logits"
#define ONNX_EXPORT_PROBABILITIES "probabilities"

typedef struct OnnxExportOptions {
  const char *name;  /* of the graph */
  int probabilities; /* behind the logits a Softmax, or, of one logit, a Sigmoid; the output is called so */
  int any_size;      /* height and width are open, too: "H" and "W" */
} OnnxExportOptions;

/* One export under way. */
typedef struct OnnxExport {
  OnnxModel *onnx;
  const Graph *graph; /* unfused */
  const Model *net;
  const float *host;            /* its parameters, then its buffers */
  char (*value)[2 * NODE_NAME]; /* what the output of each node is called in the file */
  const OnnxExportOptions *options;
  Error *err;
} OnnxExport;

typedef struct OnnxExportRule {
  const Op *op;
  int (*write)(OnnxExport *e, int node);
} OnnxExportRule;

/* -------------------------------------------------------------------------------------------------- pieces of rules */

/* The ONNX node of graph node i, which reads its inputs and writes its output. */
static inline Onnx__NodeProto *onnx_export_node(OnnxExport *e, int i, const char *op) {
  const Node *node = &e->graph->nodes[i];
  Onnx__NodeProto *made = onnx_add_node(e->onnx, op, node->name);
  for (int k = 0; k < node->inputs; k++) onnx_add_node_input(e->onnx, made, e->value[node->input[k]]);
  onnx_add_node_output(e->onnx, made, e->value[i]);
  return made;
}

/* Parameter k of the node becomes an initializer, and an input of `made`. */
static inline void onnx_export_param(OnnxExport *e, Onnx__NodeProto *made, const Param *p) {
  int64_t dim[SHAPE_MAX_RANK];
  for (int i = 0; i < p->rank; i++) dim[i] = (int64_t)p->dim[i];
  const float *values = e->host + (p->trained ? 0 : e->net->parameter_count) + p->offset;
  onnx_add_tensor(e->onnx, p->name, ONNX_FLOAT, p->rank, dim, values);
  onnx_add_node_input(e->onnx, made, p->name);
}

static inline void onnx_export_params(OnnxExport *e, Onnx__NodeProto *made, const Node *node) {
  for (int k = 0; k < node->params; k++)
    if (!node->param[k].counts) onnx_export_param(e, made, &node->param[k]);
}

/* Parameters of equal values, which the operation here does without. */
static inline void onnx_export_constant(OnnxExport *e, Onnx__NodeProto *made, const char *name, int64_t count,
                                        float value) {
  float *values = (float *)xmalloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++) values[i] = value;
  const char *full = onnx_text(e->onnx, "%s.%s", made->name, name);
  onnx_add_tensor(e->onnx, full, ONNX_FLOAT, 1, &count, values);
  onnx_add_node_input(e->onnx, made, full);
  free(values);
}

static inline void onnx_export_pair(OnnxExport *e, Onnx__NodeProto *made, const char *name, int h, int w) {
  const int64_t pair[2] = {h, w};
  onnx_set_ints(e->onnx, made, name, 2, pair);
}

static inline void onnx_export_padding(OnnxExport *e, Onnx__NodeProto *made, int h, int w) {
  int pads[4];
  int64_t wide[4];
  onnx_pads(pads, h, w);
  for (int i = 0; i < 4; i++) wide[i] = pads[i];
  onnx_set_ints(e->onnx, made, "pads", 4, wide);
}

/* The value `from`, of any shape, as rows: (N, all else). */
static inline void onnx_export_flatten(OnnxExport *e, const char *name, const char *from, const char *to) {
  Onnx__NodeProto *made = onnx_add_node(e->onnx, "Flatten", name);
  onnx_add_node_input(e->onnx, made, from);
  onnx_add_node_output(e->onnx, made, to);
  onnx_set_int(e->onnx, made, "axis", 1);
}

/* ------------------------------------------------------------------------------------------------------------ rules */

static inline int onnx_export_conv2d(OnnxExport *e, int i) {
  const Node *node = &e->graph->nodes[i];
  const Conv2dShape s = conv2d_op_shape(node, 1);
  Onnx__NodeProto *made = onnx_export_node(e, i, "Conv");
  onnx_export_params(e, made, node);
  onnx_export_pair(e, made, "kernel_shape", s.r, s.s);
  onnx_export_pair(e, made, "strides", s.stride_h, s.stride_w);
  onnx_export_pair(e, made, "dilations", s.dilation_h, s.dilation_w);
  onnx_export_padding(e, made, s.padding_h, s.padding_w);
  onnx_set_int(e->onnx, made, "group", s.groups);
  return 0;
}

/* The mirror reads what this operation writes. output_padding is what the sizes do not say. */
static inline int onnx_export_conv2d_transposed(OnnxExport *e, int i) {
  const Node *node = &e->graph->nodes[i];
  const Conv2dShape s = conv2d_transposed_op_mirror(node, 1);
  const Shape in = graph_shape(e->graph, node->input[0]);
  const int least_h = (in.dim[1] - 1) * s.stride_h - 2 * s.padding_h + s.dilation_h * (s.r - 1) + 1;
  const int least_w = (in.dim[2] - 1) * s.stride_w - 2 * s.padding_w + s.dilation_w * (s.s - 1) + 1;
  Onnx__NodeProto *made = onnx_export_node(e, i, "ConvTranspose");
  onnx_export_params(e, made, node);
  onnx_export_pair(e, made, "kernel_shape", s.r, s.s);
  onnx_export_pair(e, made, "strides", s.stride_h, s.stride_w);
  onnx_export_pair(e, made, "dilations", s.dilation_h, s.dilation_w);
  onnx_export_pair(e, made, "output_padding", node->shape.dim[1] - least_h, node->shape.dim[2] - least_w);
  onnx_export_padding(e, made, s.padding_h, s.padding_w);
  onnx_set_int(e->onnx, made, "group", s.groups);
  return 0;
}

static inline Onnx__NodeProto *onnx_export_window(OnnxExport *e, int i, const char *op, Pool2dShape s) {
  Onnx__NodeProto *made = onnx_export_node(e, i, op);
  onnx_export_pair(e, made, "kernel_shape", s.kernel_h, s.kernel_w);
  onnx_export_pair(e, made, "strides", s.stride_h, s.stride_w);
  onnx_export_padding(e, made, s.pad_h, s.pad_w);
  if (s.ceil_mode) onnx_set_int(e->onnx, made, "ceil_mode", 1);
  return made;
}

static inline int onnx_export_max_pool2d(OnnxExport *e, int i) {
  const Pool2dShape s = max_pool2d_op_shape(&e->graph->nodes[i], 1);
  Onnx__NodeProto *made = onnx_export_window(e, i, "MaxPool", s);
  if (s.dilation_h != 1 || s.dilation_w != 1) onnx_export_pair(e, made, "dilations", s.dilation_h, s.dilation_w);
  return 0;
}

static inline int onnx_export_avg_pool2d(OnnxExport *e, int i) {
  const Node *node = &e->graph->nodes[i];
  Onnx__NodeProto *made = onnx_export_window(e, i, "AveragePool", avg_pool2d_op_shape(node, 1));
  onnx_set_int(e->onnx, made, "count_include_pad", avg_pool2d_op_include_pad(node));
  return 0;
}

static inline int onnx_export_global_avg_pool2d(OnnxExport *e, int i) {
  const Node *node = &e->graph->nodes[i];
  const char *whole = onnx_text(e->onnx, "%s.channels", node->name);
  Onnx__NodeProto *made = onnx_add_node(e->onnx, "GlobalAveragePool", node->name);
  onnx_add_node_input(e->onnx, made, e->value[node->input[0]]);
  onnx_add_node_output(e->onnx, made, whole);
  onnx_export_flatten(e, onnx_text(e->onnx, "%s.flatten", node->name), whole, e->value[i]);
  return 0;
}

/* Pixels of an open number cannot be the rows of a matrix of a known one. */
static inline int onnx_export_linear(OnnxExport *e, int i) {
  const Node *node = &e->graph->nodes[i];
  const Shape in = graph_shape(e->graph, node->input[0]);
  const char *rows = e->value[node->input[0]];
  if (in.rank > 1 && e->options->any_size)
    return error_set(e->err,
                     "%s multiplies every pixel of %s, of shape %s, so that the size of the pictures is fixed; leave "
                     "--any-size out",
                     node->name, e->graph->nodes[node->input[0]].name, shape_text(in).text);
  if (in.rank > 1) {
    const char *flat = onnx_text(e->onnx, "%s.flatten", node->name);
    onnx_export_flatten(e, flat, rows, flat);
    rows = flat;
  }
  Onnx__NodeProto *made = onnx_add_node(e->onnx, "Gemm", node->name);
  onnx_add_node_input(e->onnx, made, rows);
  onnx_export_params(e, made, node);
  onnx_add_node_output(e->onnx, made, e->value[i]);
  onnx_set_int(e->onnx, made, "transB", 1); /* w (out,in) */
  return 0;
}

static inline int onnx_export_activation(OnnxExport *e, int i) {
  const Node *node = &e->graph->nodes[i];
  Onnx__NodeProto *made = onnx_export_node(e, i, node->op->name);
  if (activation_kind(node) == ACTIVATION_LEAKY_RELU) onnx_set_float(e->onnx, made, "alpha", LEAKY_RELU_SLOPE);
  return 0;
}

/* weight, bias, running_mean, running_var: the order is ONNX's, too. */
static inline int onnx_export_batch_norm2d(OnnxExport *e, int i) {
  Onnx__NodeProto *made = onnx_export_node(e, i, "BatchNormalization");
  onnx_export_params(e, made, &e->graph->nodes[i]);
  onnx_set_float(e->onnx, made, "epsilon", BATCH_NORM_EPSILON);
  onnx_set_float(e->onnx, made, "momentum", 1 - BATCH_NORM_MOMENTUM);
  return 0;
}

static inline int onnx_export_instance_norm(OnnxExport *e, int i) {
  const Node *node = &e->graph->nodes[i];
  Onnx__NodeProto *made = onnx_export_node(e, i, "InstanceNormalization");
  onnx_export_params(e, made, node);
  if (node->params == 0) {
    onnx_export_constant(e, made, "weight", node->shape.dim[0], 1);
    onnx_export_constant(e, made, "bias", node->shape.dim[0], 0);
  }
  onnx_set_float(e->onnx, made, "epsilon", LAYER_NORM_EPSILON);
  return 0;
}

static inline int onnx_export_layer_norm(OnnxExport *e, int i) {
  const Node *node = &e->graph->nodes[i];
  if (e->options->any_size && node->shape.rank == 3)
    return error_set(e->err,
                     "%s has a weight for every pixel, so that the size of the pictures is fixed; leave "
                     "--any-size out",
                     node->name);
  Onnx__NodeProto *made = onnx_export_node(e, i, "LayerNormalization");
  onnx_export_params(e, made, node);
  onnx_set_int(e->onnx, made, "axis", -node->param[0].rank); /* the last dimensions */
  onnx_set_float(e->onnx, made, "epsilon", LAYER_NORM_EPSILON);
  return 0;
}

static inline int onnx_export_add(OnnxExport *e, int i) {
  onnx_export_node(e, i, "Add");
  return 0;
}

static inline int onnx_export_softmax(OnnxExport *e, int i) {
  const Node *node = &e->graph->nodes[i];
  if (node->shape.rank != 1)
    return error_set(e->err, "%s is a softmax of shape %s; one of a row of numbers can be exported", node->name,
                     shape_text(node->shape).text);
  onnx_set_int(e->onnx, onnx_export_node(e, i, "Softmax"), "axis", -1);
  return 0;
}

/* Its output is its input, by the same name. */
static inline int onnx_export_dropout(OnnxExport *e, int i) {
  memcpy(e->value[i], e->value[e->graph->nodes[i].input[0]], sizeof e->value[i]);
  return 0;
}

static inline const OnnxExportRule *onnx_export_rule(const Op *op) {
  static const OnnxExportRule rules[] = {
      {&conv2d_op, onnx_export_conv2d},
      {&conv2d_naive_op, onnx_export_conv2d},
      {&conv2d_transposed_op, onnx_export_conv2d_transposed},
      {&max_pool2d_op, onnx_export_max_pool2d},
      {&avg_pool2d_op, onnx_export_avg_pool2d},
      {&global_avg_pool2d_op, onnx_export_global_avg_pool2d},
      {&linear_op, onnx_export_linear},
      {&activation_ops[ACTIVATION_RELU], onnx_export_activation},
      {&activation_ops[ACTIVATION_LEAKY_RELU], onnx_export_activation},
      {&activation_ops[ACTIVATION_SIGMOID], onnx_export_activation},
      {&activation_ops[ACTIVATION_TANH], onnx_export_activation},
      {&batch_norm2d_op, onnx_export_batch_norm2d},
      {&instance_norm_op, onnx_export_instance_norm},
      {&layer_norm_op, onnx_export_layer_norm},
      {&add_op, onnx_export_add},
      {&softmax_op, onnx_export_softmax},
      {&dropout_op, onnx_export_dropout},
      {&dropout_none_op, onnx_export_dropout},
  };
  for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
    if (rules[r].op == op) return &rules[r];
  return NULL;
}

/* -------------------------------------------------------------------------------------------------------- the graph */

/* (N, shape): the batch is open, and with any_size height and width are, too. */
static inline int onnx_export_dims(const OnnxExport *e, Shape shape, OnnxDim dim[SHAPE_MAX_RANK + 1]) {
  static const char *const open[3] = {NULL, "H", "W"};
  dim[0].size = 0;
  dim[0].symbol = "N";
  for (int i = 0; i < shape.rank; i++) {
    dim[i + 1].size = shape.dim[i];
    dim[i + 1].symbol = e->options->any_size && shape.rank == 3 ? open[i] : NULL;
  }
  return shape.rank + 1;
}

/* The node that people look at: that of the loss, or the last one. */
static inline int onnx_export_last(const Graph *g) { return g->loss_count > 0 ? g->losses[0].node : g->count - 1; }

static inline int onnx_export_nodes(OnnxExport *e) {
  OnnxDim dim[SHAPE_MAX_RANK + 1];
  const int last = onnx_export_last(e->graph);
  for (int i = 0; i < e->graph->count; i++) {
    const Node *node = &e->graph->nodes[i];
    snprintf(e->value[i], sizeof e->value[i], "%s", i == last ? ONNX_EXPORT_LOGITS : node->name);
    if (node->op == NULL) {
      onnx_add_input(e->onnx, e->value[i], ONNX_FLOAT, onnx_export_dims(e, node->shape, dim), dim);
      continue;
    }
    const OnnxExportRule *rule = onnx_export_rule(node->op);
    if (rule == NULL)
      return error_set(e->err, "%s: there is no rule for its operation %s; write one in onnx_export.cuh", node->name,
                       node->op->name);
    if (rule->write(e, i) != 0) return -1;
  }
  return 0;
}

/* The output, behind a Softmax where probabilities are wanted. */
static inline void onnx_export_output(OnnxExport *e) {
  OnnxDim dim[SHAPE_MAX_RANK + 1];
  const int last = onnx_export_last(e->graph);
  const Shape shape = e->graph->nodes[last].shape;
  const char *name = e->value[last];
  if (e->options->probabilities) {
    const int one = shape_count(shape) == 1;
    name = ONNX_EXPORT_PROBABILITIES;
    Onnx__NodeProto *made = onnx_add_node(e->onnx, one ? "Sigmoid" : "Softmax", name);
    onnx_add_node_input(e->onnx, made, e->value[last]);
    onnx_add_node_output(e->onnx, made, name);
    if (!one) onnx_set_int(e->onnx, made, "axis", -1);
  }
  onnx_add_output(e->onnx, name, ONNX_FLOAT, onnx_export_dims(e, shape, dim), dim);
}

/* Of a model, trained or not, on any device. After 0, end with onnx_model_close(). */
static inline int onnx_export(OnnxModel *onnx, const Model *net, const OnnxExportOptions *options, Error *err) {
  Graph *plain = graph_copy(net->graph);
  float *host = checkpoint_host(net);
  graph_unfuse(plain);
  checkpoint_download(net, 0, host);
  onnx_model_create(onnx, options->name);
  onnx_set_producer(onnx, "nncuda", NN_VERSION);
  OnnxExport e = {onnx, plain, net, host, NULL, options, err};
  e.value = (char(*)[2 * NODE_NAME]) xcalloc((size_t)plain->count, sizeof *e.value);
  int status = plain->failed ? error_set(err, "%s", plain->error.message) : onnx_export_nodes(&e);
  if (status == 0) onnx_export_output(&e);
  if (status != 0) onnx_model_close(onnx);
  free(e.value);
  free(host);
  graph_destroy(plain);
  return status;
}

#endif /* PHASE5_PRODUCTION_ONNX_EXPORT_CUH */
