/* import_fold.h - a node all of whose inputs are constants is computed when the model is imported.
 *
 * It is built as any other: its builder adds nodes to the graph. They are computed here on the CPU by the same
 * forward() as later ones, their results become constants, and the nodes are taken away again. So there is one
 * implementation of every operator, and arithmetic on shapes needs none of its own.
 */
#ifndef PHASE5_PRODUCTION_IMPORT_FOLD_H
#define PHASE5_PRODUCTION_IMPORT_FOLD_H

#include "phase5_production/07_onnx_import/import_graph.h"

static inline const OnnxConstant *import_bound(const Import *im, const char *param) {
  for (int i = im->out->constant_count - 1; i >= 0; i--)
    if (strcmp(im->out->constants[i].name, param) == 0) return &im->out->constants[i];
  return NULL;
}

/* Where a node's output is on the host: `computed` (nodes from `first` on), or a constant's bytes. */
static inline const void *import_host(const Import *im, int node, int first, void *const *computed) {
  const Node *n = &im->g->nodes[node];
  if (n->op && (n->op->flags & OP_CONSTANT)) return import_bound(im, n->param[0].name)->data;
  return node >= first ? computed[node - first] : NULL;
}

static inline void import_compute(Import *im, int i, int first, void **computed) {
  const Node *node = &im->g->nodes[i];
  Context context;
  OpArrays a;
  memset(&context, 0, sizeof context);
  memset(&a, 0, sizeof a);
  context.device = DEVICE_CPU;
  a.batch = node_samples(node, 1);
  for (int k = 0; k < node->inputs; k++) a.x[k] = (const float *)import_host(im, node->input[k], first, computed);
  for (int k = 0; k < node->params; k++) {
    const OnnxConstant *c = import_bound(im, node->param[k].name);
    a.param[k] = c ? (float *)c->data : NULL;
  }
  if (node->op->flags & OP_VIEW) {
    computed[i - first] = (void *)a.x[0];
    return;
  }
  a.y = (float *)(computed[i - first] = import_buffer(im, node_bytes(node) * (size_t)a.batch));
  a.saved = node->op->saved_bytes ? xcalloc(node->op->saved_bytes(node, a.batch), 1) : NULL;
  a.workspace = node->op->workspace_floats
                    ? (float *)xcalloc(node->op->workspace_floats(&context, node, a.batch), sizeof(float))
                    : NULL;
  if (shape_count(node->shape) > 0) node->op->forward(&context, node, &a);
  free(a.saved);
  free(a.workspace);
}

/* Whether a constant has a number that only the batch explains. */
static inline int import_has_batch(const ImportValue *v) {
  const size_t count = import_count(&v->shape);
  for (size_t i = 0; i < count; i++)
    if (fabs(nd_load<double>(v->data, v->type, i)) >= (double)(IMPORT_BATCH / 2)) return 1;
  return 0;
}

/* The node's outputs become constants, and its nodes of the graph, from `first` on, vanish; so do the bytes that were
 * bound since there were `bound` of them. */
static inline void import_fold(Import *im, int first, int bound) {
  int symbolic = 0;
  const int count = im->g->count - first;
  void **computed = (void **)xcalloc((size_t)count, sizeof *computed);
  for (int i = first; i < im->g->count; i++)
    if (!(im->g->nodes[i].op->flags & OP_CONSTANT)) import_compute(im, i, first, computed);
  for (int k = 0; k < im->inputs; k++) symbolic |= im->in[k] && im->in[k]->symbolic;
  for (size_t k = 0; k < im->node->n_output; k++) {
    ImportValue *v = import_wanted(im, (int)k);
    if (v == NULL || v->node < 0) continue;
    v->data = import_host(im, v->node, first, computed);
    v->node = GRAPH_ERROR;
    v->symbolic = symbolic && import_has_batch(v);
  }
  for (int i = 0; i < im->count; i++) /* constants that became nodes for this one */
    if (im->values[i].node >= first) im->values[i].node = GRAPH_ERROR;
  im->g->count = first;
  im->out->constant_count = bound;
  free(computed);
}

#endif /* PHASE5_PRODUCTION_IMPORT_FOLD_H */
