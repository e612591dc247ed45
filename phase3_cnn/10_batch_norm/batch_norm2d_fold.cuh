/* batch_norm2d_fold.cuh - a trained network without its batch norms, for inference.
 *
 * In evaluation, batch norm multiplies each channel by a number and adds another. A convolution before it can do both
 * (batch_norm2d_fold_filter.cuh): it gets other weights and a bias, and the batch norm goes. From a trained Model to
 * one that infers:
 *
 *     Model fast;
 *     Graph *folded = batch_norm2d_fold_graph(trained.graph);
 *     if (batch_norm2d_fold_open(&fast, folded, &trained, batch, &err) != 0) die("%s", err.message);
 *     ... fill model_input(&fast, 0) ...
 *     fast.context.training = 0;
 *     model_forward(&fast, batch);
 *
 * In between the graph may be fused, graph_fuse(folded, ...) of common/nn/fuse.h, or other implementations be chosen.
 *
 * A batch norm stays where nothing but a convolution's output could take it: it reads something else, or others read
 * that convolution, too. All other nodes stay, with their names. A fused graph is unfused: fuse the new one.
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_FOLD_CUH
#define PHASE3_CNN_BATCH_NORM2D_FOLD_CUH

#include "common/nn/fuse.h"
#include "common/nn/model.h"
#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"

/* The batch norm that goes into node `conv`; GRAPH_ERROR: none. */
static inline int batch_norm2d_fold_into(const Graph *g, int conv) {
  const Op *op = g->nodes[conv].op;
  if (op == NULL || strcmp(op->name, "Conv") != 0 || graph_readers(g, conv) != 1) return GRAPH_ERROR;
  for (int i = conv + 1; i < g->count; i++)
    if (batch_norm2d_is(&g->nodes[i]) && g->nodes[i].input[0] == conv) return i;
  return GRAPH_ERROR;
}

/* The graph of a trained network without those batch norms; their convolutions have a bias. `trained` stays. */
static inline Graph *batch_norm2d_fold_graph(const Graph *trained) {
  Graph *plain = graph_copy(trained), *g = graph_copy(trained);
  graph_unfuse(plain);
  int *at = (int *)xmalloc((size_t)plain->count * sizeof *at); /* of each node in the new graph */
  g->count = 0;
  for (int i = 0; i < plain->count; i++) {
    Node node = plain->nodes[i];
    if (batch_norm2d_is(&node) && batch_norm2d_fold_into(plain, node.input[0]) == i) {
      at[i] = at[node.input[0]];
      continue;
    }
    for (int k = 0; k < node.inputs; k++) node.input[k] = at[node.input[k]];
    at[i] = graph_add(g, &node);
    if (batch_norm2d_fold_into(plain, i) < 0 || node.params > 1) continue;
    const ParamSpec bias = {
        "bias", 1, {(size_t)node.shape.dim[0], 0, 0, 0}, node.param[0].fan_in, node.shape.dim[0], &init_zero, 1, 1};
    graph_param(g, at[i], bias);
  }
  for (int l = 0; l < g->loss_count; l++) g->losses[l].node = at[g->losses[l].node];
  for (int o = 0; o < g->output_count; o++) g->outputs[o] = at[g->outputs[o]];
  free(at);
  graph_destroy(plain);
  return g;
}

/* All parameters and buffers of a model on the host, in its order; to be freed. */
static inline float *batch_norm2d_fold_host(const Model *m) {
  float *host = (float *)xmalloc((m->parameter_count + m->buffer_count + 1) * sizeof *host);
  device_download(m->context.device, host, m->parameters, m->parameter_count * sizeof *host);
  device_download(m->context.device, host + m->parameter_count, m->buffers, m->buffer_count * sizeof *host);
  return host;
}

static inline float *batch_norm2d_fold_at(const Model *m, float *host, const Param *p) {
  return host + (p->trained ? 0 : m->parameter_count) + p->offset;
}

/* The batch norm behind the convolution of this name in the trained graph, NULL where none was folded. */
static inline const Node *batch_norm2d_fold_norm(const Graph *trained, const Node *node) {
  const int conv = graph_find(trained, node->name);
  const int norm = conv < 0 ? GRAPH_ERROR : batch_norm2d_fold_into(trained, conv);
  return norm < 0 ? NULL : &trained->nodes[norm];
}

/* The parameters of `m`, whose graph is batch_norm2d_fold_graph()'s, from the trained model. -1 where it is another. */
static inline int batch_norm2d_fold_parameters(Model *m, const Model *trained, Error *err) {
  float *from = batch_norm2d_fold_host(trained), *to = batch_norm2d_fold_host(m);
  int node = 0, index = 0, status = 0;
  const Param *p;
  while (status == 0 && (p = model_next_param(m, &node, &index)) != NULL) {
    const Param *source = model_find_param(trained, p->name);
    float *values = batch_norm2d_fold_at(m, to, p);
    if (source == NULL && batch_norm2d_fold_norm(trained->graph, &m->graph->nodes[node]) != NULL)
      memset(values, 0, p->count * sizeof *values); /* the bias of a convolution that had none */
    else if (source == NULL || source->count != p->count)
      status = error_set(err, "the trained network has no parameter %s of %zu numbers; give the model that was folded",
                         p->name, p->count);
    else
      memcpy(values, batch_norm2d_fold_at(trained, from, source), p->count * sizeof *values);
  }
  for (int i = 0; status == 0 && i < m->graph->count; i++) {
    const Node *conv = &m->graph->nodes[i], *norm = batch_norm2d_fold_norm(trained->graph, conv);
    if (norm == NULL) continue;
    const float *value[4];
    for (int k = 0; k < 4; k++) value[k] = batch_norm2d_fold_at(trained, from, &norm->param[k]);
    float *w = batch_norm2d_fold_at(m, to, &conv->param[0]), *bias = batch_norm2d_fold_at(m, to, &conv->param[1]);
    const int filters = conv->shape.dim[0], weights = (int)(conv->param[0].count / (size_t)filters);
    const BatchNorm2dFold fold = {w, bias, w, bias, value[0], value[1], value[2], value[3], filters, weights};
    batch_norm2d_fold_cpu(fold);
  }
  if (status == 0) {
    device_upload(m->context.device, m->parameters, to, m->parameter_count * sizeof *to);
    device_upload(m->context.device, m->buffers, to + m->parameter_count, m->buffer_count * sizeof *to);
  }
  free(from);
  free(to);
  return status;
}

/* A model that infers, on the trained one's device: of `folded`, which it owns and which batch_norm2d_fold_graph() has
 * made of the trained model's graph, with the parameters of that model. -1 as model_open(). */
static inline int batch_norm2d_fold_open(Model *fast, Graph *folded, const Model *trained, int max_batch, Error *err) {
  Context context = trained->context;
  context.training = 0;
  if (model_open(fast, folded, context, NULL, max_batch, MODEL_INFER, err) != 0) return -1;
  if (batch_norm2d_fold_parameters(fast, trained, err) == 0) return 0;
  model_close(fast);
  return -1;
}

#endif /* PHASE3_CNN_BATCH_NORM2D_FOLD_CUH */
