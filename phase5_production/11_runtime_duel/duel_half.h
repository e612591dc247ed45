/* duel_half.h - a model in float16: what people do who want ONNX Runtime to compute in 16 bits.
 *
 * Weights become float16; the input is cast behind the graph's input, and the outputs back in front of its outputs, so
 * that callers see float32. What operators demand in float32, the scales of a Resize, stays.
 */
#ifndef PHASE5_PRODUCTION_DUEL_HALF_H
#define PHASE5_PRODUCTION_DUEL_HALF_H

#include "common/half.h"
#include "common/onnx/build.h"

#define DUEL_HALF_END ":fp16" /* of names of what is computed in float16 at the ends of the graph */

/* Whether somebody reads the tensor as scales or a region, which have a type of their own. */
static inline int duel_half_keeps(const Onnx__GraphProto *g, const char *name) {
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 1; k < g->node[i]->n_input; k++)
      if (strcmp(g->node[i]->op_type, "Resize") == 0 && strcmp(g->node[i]->input[k], name) == 0) return 1;
  return 0;
}

static inline int duel_half_tensor(OnnxModel *m, Onnx__TensorProto *p, Error *err) {
  OnnxTensor t;
  if (p->data_type != ONNX_FLOAT) return 0;
  if (onnx_tensor_load(&t, m, p, err) != 0) return -1;
  uint16_t *half = (uint16_t *)xmalloc(t.count * sizeof *half);
  for (size_t i = 0; i < t.count; i++) half[i] = fp16_narrow(((const float *)t.data)[i]);
  const Onnx__TensorProto *narrow = onnx_new_tensor(m, p->name ? p->name : "", ONNX_FLOAT16, t.rank, t.dim, half);
  free(half);
  onnx_tensor_free(&t);
  *p = *narrow; /* all memory is the model's */
  return 0;
}

/* A name in every place where nodes read or write it. */
static inline void duel_half_rename(OnnxModel *m, const char *name, const char *other, int outputs) {
  const Onnx__GraphProto *g = m->proto->graph;
  for (size_t i = 0; i < g->n_node; i++) {
    for (size_t k = 0; k < g->node[i]->n_input; k++)
      if (strcmp(g->node[i]->input[k], name) == 0) g->node[i]->input[k] = onnx_copy_text(m, other);
    for (size_t k = 0; k < g->node[i]->n_output && outputs; k++)
      if (strcmp(g->node[i]->output[k], name) == 0) g->node[i]->output[k] = onnx_copy_text(m, other);
  }
}

static inline void duel_half_cast(OnnxModel *m, size_t position, const char *from, const char *to, int type) {
  Onnx__NodeProto *cast = onnx_insert_node(m, position, "Cast", to);
  onnx_add_node_input(m, cast, from);
  onnx_add_node_output(m, cast, to);
  onnx_set_int(m, cast, "to", type);
}

static inline void duel_half_ends(OnnxModel *m) {
  const Onnx__GraphProto *g = m->proto->graph;
  char name[512];
  for (size_t i = 0; i < g->n_output; i++) {
    if (onnx_value_type(g->output[i]) != ONNX_FLOAT) continue;
    snprintf(name, sizeof name, "%.400s" DUEL_HALF_END, g->output[i]->name);
    duel_half_rename(m, g->output[i]->name, name, 1);
    duel_half_cast(m, g->n_node, name, g->output[i]->name, ONNX_FLOAT);
  }
  for (size_t i = 0; i < g->n_input; i++) {
    if (!onnx_is_input(m, i) || onnx_value_type(g->input[i]) != ONNX_FLOAT) continue;
    snprintf(name, sizeof name, "%.400s" DUEL_HALF_END, g->input[i]->name);
    duel_half_rename(m, g->input[i]->name, name, 0);
    duel_half_cast(m, 0, g->input[i]->name, name, ONNX_FLOAT16);
  }
}

/* Writes the model `path` in float16 to `out`. */
static inline int duel_write_half(const char *path, const char *out, Error *err) {
  OnnxModel m;
  if (onnx_model_read(&m, path, err) != 0) return -1;
  Onnx__GraphProto *g = m.proto->graph;
  int status = 0;
  for (size_t i = 0; i < g->n_initializer && status == 0; i++)
    if (!duel_half_keeps(g, g->initializer[i]->name)) status = duel_half_tensor(&m, g->initializer[i], err);
  for (size_t i = 0; i < g->n_node && status == 0; i++)
    for (size_t k = 0; k < g->node[i]->n_attribute && status == 0; k++) {
      Onnx__AttributeProto *a = g->node[i]->attribute[k];
      if (a->t && !(g->node[i]->n_output > 0 && duel_half_keeps(g, g->node[i]->output[0])))
        status = duel_half_tensor(&m, a->t, err);
      if (strcmp(g->node[i]->op_type, "Cast") == 0 && a->has_i && a->i == ONNX_FLOAT) a->i = ONNX_FLOAT16;
    }
  g->n_value_info = 0; /* they say float32 */
  if (status == 0) {
    duel_half_ends(&m);
    status = onnx_model_write(m.proto, out, err);
  }
  onnx_model_close(&m);
  return status;
}

#endif /* PHASE5_PRODUCTION_DUEL_HALF_H */
