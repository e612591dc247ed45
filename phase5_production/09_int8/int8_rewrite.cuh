/* int8_rewrite.cuh - a quantised ONNX model, imported by lesson 7, computes with integers.
 *
 *     onnx_import(&import, &file, NULL, 0, &err);
 *     Graph *q = int8_rewrite(import.graph, &import, device, &store, &err);     // import.graph stays
 *     model_open(&m, q, ...);
 *     int8_rewrite_parameters(&import, &store, &m, &err);                       // not onnx_import_parameters()
 *
 * QuantizeLinear and DequantizeLinear behind a value give its scale; weights come with theirs from the file. Pairs
 * whose zero is not 0, with one scale per channel, or of another type than int8 and uint8 stay as they are, as
 * lesson 7 computes them.
 */
#ifndef PHASE5_PRODUCTION_INT8_REWRITE_CUH
#define PHASE5_PRODUCTION_INT8_REWRITE_CUH

#include "phase5_production/07_onnx_import/nd_op.cuh"
#include "phase5_production/07_onnx_import/onnx_import.cuh"
#include "phase5_production/09_int8/int8_lower.cuh"

/* ---------------------------------------------------------------------------------------------------------- scales */

/* The one scale of node i, QuantizeLinear or DequantizeLinear, whose zero is 0; else 0. */
static inline float int8_rewrite_step(const Graph *g, const OnnxImport *in, int i) {
  const Node *n = &g->nodes[i];
  const Node *step = &g->nodes[n->input[1]], *zero = n->inputs > 2 ? &g->nodes[n->input[2]] : NULL;
  const OnnxConstant *value = step->params == 1 ? onnx_import_constant(in, step->param[0].name) : NULL;
  const OnnxConstant *point = zero && zero->params == 1 ? onnx_import_constant(in, zero->param[0].name) : NULL;
  float scale;
  if (value == NULL || value->type != DTYPE_FLOAT32 || shape_count(step->shape) != 1) return 0;
  if (zero != NULL && (point == NULL || shape_count(zero->shape) != 1 || *(const uint8_t *)point->data != 0)) return 0;
  memcpy(&scale, value->data, sizeof scale);
  return scale > 0 && isfinite(scale) ? scale : 0;
}

/* What QuantizeLinear node i rounds to; step 0: to something else than this lesson computes with. */
static inline Int8Scale int8_rewrite_scale(const Graph *g, const OnnxImport *in, int i) {
  const DType type = g->nodes[i].type;
  const Int8Scale scale = {type == DTYPE_INT8 || type == DTYPE_UINT8 ? int8_rewrite_step(g, in, i) : 0,
                           type == DTYPE_UINT8};
  return scale;
}

/* The graph without those pairs; scale (nodes of g): of the new graph's. A QuantizeLinear whose DequantizeLinear is
 * gone must not stay: the layer before it would have two readers, and what is read twice is not computed together
 * with what follows. */
static inline Graph *int8_rewrite_pairs(const Graph *from, const OnnxImport *in, Int8Scale *scale) {
  Graph *g = graph_copy(from);
  int *at = (int *)xmalloc(((size_t)from->count + 1) * sizeof *at); /* of each old node */
  g->count = 0;
  for (int i = 0; i < from->count; i++) {
    Node node = from->nodes[i];
    const int quantize = node.op == &onnx_dequantize_linear_op ? node.input[0] : INT8_NONE;
    if (quantize >= 0 && from->nodes[quantize].op == &onnx_quantize_linear_op) {
      const int x = at[from->nodes[quantize].input[0]];
      const Int8Scale own = int8_rewrite_scale(from, in, quantize);
      const int same = scale[x].step == own.step && scale[x].positive == own.positive;
      if (own.step > 0 && int8_rewrite_step(from, in, i) == own.step && (scale[x].step == 0 || same) &&
          g->nodes[x].type == DTYPE_FLOAT32 && !g->nodes[x].whole && g->nodes[x].shape.rank <= 3) {
        scale[x] = own;
        at[i] = x;
        continue;
      }
    }
    for (int k = 0; k < node.inputs; k++) node.input[k] = at[node.input[k]];
    at[i] = graph_add(g, &node);
    scale[at[i]] = (Int8Scale){0, 0};
  }
  for (int l = 0; l < g->loss_count; l++) g->losses[l].node = at[g->losses[l].node];
  for (int o = 0; o < g->output_count; o++) g->outputs[o] = at[g->outputs[o]];
  free(at);
  int8_drop_unread(g, scale);
  return g;
}

/* --------------------------------------------------------------------------------------------------------- weights */

static inline int int8_rewrite_zeros(const OnnxQuantized *q) {
  for (size_t i = 0; q->zeros != NULL && i < q->scale_count; i++)
    if (((const int8_t *)q->zeros)[i] != 0) return 0;
  return 1;
}

/* Weights are taken as the file has them, or not at all: of int8, around 0, with one scale for all or one per
 * filter. */
static inline int int8_import_refuses(const void *from, const char *name) {
  OnnxQuantized q;
  if (!onnx_import_quantized((const OnnxImport *)from, name, &q)) return 1;
  if (q.type != DTYPE_INT8 || q.rank < 1 || !int8_rewrite_zeros(&q)) return 1;
  return q.scale_count != 1 && (q.axis != 0 || q.scale_count != (size_t)q.dim[0]);
}

static inline const float *int8_find_in_import(const void *from, const char *name, size_t count, Int8Given *given) {
  const OnnxImport *in = (const OnnxImport *)from;
  const OnnxConstant *c = onnx_import_constant(in, name);
  OnnxQuantized q;
  if (c == NULL || c->type != DTYPE_FLOAT32 || c->bytes != count * sizeof(float)) return NULL;
  if (onnx_import_quantized(in, name, &q) && q.type == DTYPE_INT8) {
    given->scale = q.scales;
    given->count = q.scale_count;
  }
  return (const float *)c->data;
}

static inline Graph *int8_rewrite(const Graph *g, const OnnxImport *in, Device device, Int8Store *store, Error *err) {
  Int8Scale *scale = (Int8Scale *)xcalloc((size_t)g->count + 1, sizeof *scale);
  const Int8Weights weights = {int8_find_in_import, in, int8_import_refuses};
  Graph *whole = int8_rewrite_pairs(g, in, scale);
  Graph *q = int8_lower(whole, scale, weights, device, store, err);
  graph_destroy(whole);
  free(scale);
  return q;
}

/* Every parameter of the model: from the file, or from the store. */
static inline int int8_rewrite_parameters(const OnnxImport *in, const Int8Store *store, Model *m, Error *err) {
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(m, &node, &index)) != NULL) {
    const OnnxConstant *c = onnx_import_constant(in, p->name);
    if (c == NULL) continue;
    if (c->bytes != (p->bytes ? p->bytes : p->count * sizeof(float)))
      return error_set(err, "%s has %zu bytes in the file, and %zu in the network", p->name, c->bytes,
                       p->bytes ? p->bytes : p->count * sizeof(float));
    device_upload(m->context.device, model_param(m, p), c->data, c->bytes);
  }
  return int8_store_fill(store, m, err);
}

#endif /* PHASE5_PRODUCTION_INT8_REWRITE_CUH */
