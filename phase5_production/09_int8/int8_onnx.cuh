/* int8_onnx.cuh - quantisation written into an ONNX model, so that any runtime can use it.
 *
 *     x -> QuantizeLinear -> DequantizeLinear -> Conv          activations: one scale; uint8 behind a ReLU
 *     DequantizeLinear(w int8, one scale per filter) -> Conv   weights
 *     DequantizeLinear(bias int32, scale_x scale_w)  -> Conv   biases
 *
 * The model still says what it computed in float32. Between such pairs a runtime may compute with integers, as this
 * lesson does (int8_rewrite.cuh), or it may round and compute with floats. Zero is 0 everywhere.
 *
 *     onnx_export(&onnx, &whole, ...);
 *     int8_onnx_write(&onnx, whole.graph, scale, weights, &err);
 *     onnx_model_write(onnx.proto, "model.int8.onnx", &err);
 */
#ifndef PHASE5_PRODUCTION_INT8_ONNX_CUH
#define PHASE5_PRODUCTION_INT8_ONNX_CUH

#include "common/onnx/build.h"
#include "phase5_production/09_int8/int8_lower.cuh"

/* The position of the node of this name; -1: there is none. */
static inline long int8_onnx_node(const OnnxModel *m, const char *name) {
  const Onnx__GraphProto *g = m->proto->graph;
  for (size_t i = 0; i < g->n_node; i++)
    if (strcmp(g->node[i]->name, name) == 0) return (long)i;
  return -1;
}

/* The position behind the node that writes this value; 0: it is an input. */
static inline size_t int8_onnx_behind(const OnnxModel *m, const char *value) {
  const Onnx__GraphProto *g = m->proto->graph;
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_output; k++)
      if (strcmp(g->node[i]->output[k], value) == 0) return i + 1;
  return 0;
}

static inline Onnx__NodeProto *int8_onnx_insert(OnnxModel *m, size_t at, const char *op, const char *x,
                                                const char *scale, const char *zero, const char *y) {
  Onnx__NodeProto *node = onnx_insert_node(m, at, op, y);
  onnx_add_node_input(m, node, x);
  onnx_add_node_input(m, node, scale);
  if (zero != NULL) onnx_add_node_input(m, node, zero);
  onnx_add_node_output(m, node, y);
  return node;
}

/* Everybody who reads `value` reads its rounded self from now on. */
static inline void int8_onnx_activation(OnnxModel *m, const char *value, Int8Scale scale) {
  const uint8_t zero = 0;
  Onnx__GraphProto *g = m->proto->graph;
  const char *step = onnx_text(m, "%s.scale", value), *point = onnx_text(m, "%s.zero", value);
  const char *narrow = onnx_text(m, "%s.int8", value), *wide = onnx_text(m, "%s.rounded", value);
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_input; k++)
      if (strcmp(g->node[i]->input[k], value) == 0) g->node[i]->input[k] = onnx_copy_text(m, wide);
  onnx_add_tensor(m, step, ONNX_FLOAT, 0, NULL, &scale.step);
  onnx_add_tensor(m, point, scale.positive ? ONNX_UINT8 : ONNX_INT8, 0, NULL, &zero);
  const size_t at = int8_onnx_behind(m, value);
  int8_onnx_insert(m, at, "QuantizeLinear", value, step, point, narrow);
  int8_onnx_insert(m, at + 1, "DequantizeLinear", narrow, step, point, wide);
}

/* Input k of a node, a parameter of float32 with `count` numbers, becomes `data` times the scales (filters). */
static inline void int8_onnx_parameter(OnnxModel *m, long at, size_t k, int type, const void *data, const float *scale,
                                       int64_t filters) {
  Onnx__GraphProto *g = m->proto->graph;
  const char *name = g->node[at]->input[k], *step = onnx_text(m, "%s.scale", name);
  const char *narrow = onnx_text(m, "%s.%s", name, type == ONNX_INT8 ? "int8" : "int32");
  const char *wide = onnx_text(m, "%s.rounded", name);
  for (size_t i = 0; i < g->n_initializer; i++) {
    if (strcmp(g->initializer[i]->name, name) != 0) continue;
    onnx_add_tensor(m, narrow, type, (int)g->initializer[i]->n_dims, g->initializer[i]->dims, data);
    memmove(&g->initializer[i], &g->initializer[i + 1], (--g->n_initializer - i) * sizeof *g->initializer);
    break;
  }
  onnx_add_tensor(m, step, ONNX_FLOAT, 1, &filters, scale);
  g->node[at]->input[k] = onnx_copy_text(m, wide);
  onnx_set_int(m, int8_onnx_insert(m, (size_t)at, "DequantizeLinear", narrow, step, NULL, wide), "axis", 0);
}

/* Weights and bias of a product that becomes int8. -1: the file has it not as the graph does. */
static inline int int8_onnx_product(OnnxModel *m, const Node *n, float scale_x, Int8Weights weights, Error *err) {
  const long at = int8_onnx_node(m, n->name);
  Int8Given given = {NULL, 0};
  const float *w = weights.find(weights.from, n->param[0].name, n->param[0].count, &given);
  const float *b = n->params > 1 ? weights.find(weights.from, n->param[1].name, n->param[1].count, &given) : NULL;
  if (at < 0 || w == NULL || (n->params > 1 && b == NULL) ||
      m->proto->graph->node[at]->n_input != 1 + (size_t)n->params)
    return error_set(err, "%s: the ONNX file and the network differ; give the file that was made of it", n->name);
  const int k = n->shape.dim[0], each = (int)(n->param[0].count / (size_t)k);
  float *scale = (float *)xmalloc((size_t)k * sizeof *scale);
  int8_t *q = (int8_t *)xmalloc(n->param[0].count);
  int32_t *bias = (int32_t *)xmalloc((size_t)k * sizeof *bias);
  int8_filter_scales(scale, w, k, (size_t)each);
  int8_filter_scales_for_bias(scale, b, scale_x, k);
  int8_filters(q, w, scale, k, each, 1, each);
  int8_onnx_parameter(m, at, 1, ONNX_INT8, q, scale, k);
  for (int i = 0; i < k && b != NULL; i++) {
    const float unit = scale_x * scale[i];
    bias[i] = int8_bias(b[i], unit);
    scale[i] = unit;
  }
  if (b != NULL) int8_onnx_parameter(m, int8_onnx_node(m, n->name), 2, ONNX_INT32, bias, scale, k);
  free(scale);
  free(q);
  free(bias);
  return 0;
}

/* The model is what onnx_export() made of a Model whose graph is g; `scale` is of g's nodes. */
static inline int int8_onnx_write(OnnxModel *m, const Graph *g, const Int8Scale *scale, Int8Weights weights,
                                  Error *err) {
  for (int i = 0; i < g->count; i++) { /* before a value gets its pair, and products read that */
    const Node *n = &g->nodes[i];
    if (n->op == NULL || !int8_is_product(n) || !int8_chain_fits(g, scale, int8_chain(g, scale, i))) continue;
    if (int8_onnx_product(m, n, scale[n->input[0]].step, weights, err) != 0) return -1;
  }
  for (int i = 0; i < g->count; i++)
    if (scale[i].step > 0) int8_onnx_activation(m, g->nodes[i].name, scale[i]);
  onnx_set_metadata(m, "quantization", "int8, symmetric, one scale per filter; uint8 behind a ReLU");
  return 0;
}

#endif /* PHASE5_PRODUCTION_INT8_ONNX_CUH */
