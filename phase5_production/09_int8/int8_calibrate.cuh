/* int8_calibrate.cuh - the scales of a network's arrays, from pictures that it will see (calibrate.h).
 *
 *     Graph *g = int8_prepare(trained.graph);                     // without batch norms, not fused
 *     Int8Calibration c = int8_calibration(g);
 *     for (pass = 0; pass < 2; pass++) for (each batch) { fill the input; int8_observe(&c, &model, batch, pass); }
 *     int8_scales(scale, &c, g, &choice);
 *     Graph *q = int8_lower(g, scale, ...);
 *
 * Which arrays are int8: what a convolution or linear layer reads and writes, behind its ReLU if there is one, and what
 * pools and sums between them read and write. The logits stay float32. So does, if the choice says so, a first
 * convolution that reads few channels: it has few products, and the pictures' fine steps are kept.
 */
#ifndef PHASE5_PRODUCTION_INT8_CALIBRATE_CUH
#define PHASE5_PRODUCTION_INT8_CALIBRATE_CUH

#include "phase3_cnn/10_batch_norm/batch_norm2d_fold.cuh"
#include "phase5_production/09_int8/calibrate.h"
#include "phase5_production/09_int8/cpu_int8_blocks.cuh"
#include "phase5_production/09_int8/int8_lower.cuh"

/* Max pooling and the ReLU behind it change places, which changes nothing: a convolution's ReLU is then part of it. */
static inline void int8_swap_relu(Graph *g) {
  for (int i = 0; i < g->count; i++) {
    const int reader = g->nodes[i].op == &max_pool2d_op ? int8_reader(g, i) : INT8_NONE;
    if (reader < 0 || !int8_is_relu(&g->nodes[reader])) continue;
    Node pool = g->nodes[i], own = g->nodes[reader];
    own.input[0] = pool.input[0];
    own.shape = g->nodes[pool.input[0]].shape;
    pool.input[0] = i;
    g->nodes[i] = own;
    g->nodes[reader] = pool;
  }
}

/* Dropout passes its input on where nothing is trained: whoever reads it reads that. */
static inline void int8_without_dropout(Graph *g) {
  for (int i = 0; i < g->count; i++) {
    if (g->nodes[i].op == NULL || strcmp(g->nodes[i].op->name, "Dropout") != 0 || graph_is_output(g, i)) continue;
    for (int j = i + 1; j < g->count; j++)
      for (int k = 0; k < g->nodes[j].inputs; k++)
        if (g->nodes[j].input[k] == i) g->nodes[j].input[k] = g->nodes[i].input[0];
  }
  int8_drop_unread(g, NULL);
}

/* What is calibrated and lowered: a graph of its own. */
static inline Graph *int8_prepare(const Graph *trained) {
  Graph *g = batch_norm2d_fold_graph(trained);
  graph_unfuse(g);
  int8_without_dropout(g);
  int8_swap_relu(g);
  g->lowering_count = 0;
  return g;
}

/* ------------------------------------------------------------------------------------------------------ observation */

typedef struct Int8Calibration {
  CalibrateRange *range; /* of each node's output */
  int count;
  float *host;
  size_t room; /* floats */
} Int8Calibration;

static inline Int8Calibration int8_calibration(const Graph *g) {
  Int8Calibration c = {(CalibrateRange *)xcalloc((size_t)g->count + 1, sizeof *c.range), g->count, NULL, 0};
  return c;
}

static inline void int8_calibration_free(Int8Calibration *c) {
  free(c->range);
  free(c->host);
  memset(c, 0, sizeof *c);
}

/* Computes a batch node by node, and looks at each output before another one takes its place. pass 0: the largest
 * numbers; 1: the histograms, with the same batches. */
static inline void int8_observe(Int8Calibration *c, const Model *m, int batch, int pass) {
  for (int i = 0; i < m->graph->count; i++) {
    const Node *node = &m->graph->nodes[i];
    const size_t count = shape_count(node->shape) * (size_t)node_samples(node, batch);
    if (node->op) model_forward_node(m, i, batch);
    if (node->type != DTYPE_FLOAT32) continue;
    if (count > c->room) {
      free(c->host);
      c->host = (float *)xmalloc(count * sizeof(float));
      c->room = count;
    }
    device_download(m->context.device, c->host, model_output(m, i), count * sizeof(float));
    if (pass == 0)
      calibrate_largest(&c->range[i], c->host, count);
    else
      calibrate_count(&c->range[i], c->host, count);
  }
}

/* ----------------------------------------------------------------------------------------------------------- scales */

typedef struct Int8Choice {
  CalibrateMethod method;
  double share; /* of CALIBRATE_PERCENTILE; 0: the usual one */
  int first;    /* the first convolution is int8, too */
  /* A convolution whose output a sum alone reads is not rounded before it. Otherwise every runtime finds the pattern
   * that it knows: int8 in, int8 out. */
  int sums_whole;
} Int8Choice;

enum { INT8_FEW_CHANNELS = 4 };

/* Whether node i is a product that becomes int8. */
static inline int int8_wanted(const Graph *g, int i, const Int8Choice *choice) {
  const Node *n = &g->nodes[i];
  if (n->op == NULL || !int8_is_product(n) || !int8_product_fits(n)) return 0;
  return choice->first || n->op == &linear_op || conv2d_op_shape(n, 1).c >= INT8_FEW_CHANNELS;
}

static inline int int8_is_pool(const Node *n) {
  return n->op == &max_pool2d_op || n->op == &avg_pool2d_op || n->op == &global_avg_pool2d_op;
}

/* Marks what is int8, going up from what reads it. Through pools and sums. */
static inline void int8_mark(const Graph *g, unsigned char *marked, int i) {
  const Node *n = &g->nodes[i];
  if (marked[i]) return;
  marked[i] = 1;
  if (n->op == NULL) return;
  if (int8_is_pool(n)) int8_mark(g, marked, n->input[0]);
  const int relu = int8_is_relu(n), sum = relu ? n->input[0] : i;
  if (g->nodes[sum].op == &add_op && (!relu || int8_reader(g, sum) == i))
    for (int k = 0; k < 2; k++) int8_mark(g, marked, g->nodes[sum].input[k]);
}

/* Of a sum, the product whose output needs no scale of its own; INT8_NONE: there is none. */
static inline int int8_unrounded(const Graph *g, int sum) {
  for (int k = 0; k < 2; k++) {
    const int own = g->nodes[sum].input[k];
    if (int8_is_product(&g->nodes[own]) && int8_reader(g, own) == sum) return own;
  }
  return INT8_NONE;
}

/* Whether no number of node i can be below 0: behind a ReLU, and what pools make of it. */
static inline int int8_positive(const Graph *g, int i) {
  while (g->nodes[i].op != NULL && int8_is_pool(&g->nodes[i])) i = g->nodes[i].input[0];
  return g->nodes[i].op != NULL && int8_is_relu(&g->nodes[i]);
}

/* scale (nodes of g) */
static inline void int8_scales(Int8Scale *scale, const Int8Calibration *c, const Graph *g, const Int8Choice *choice) {
  unsigned char *marked = (unsigned char *)xcalloc((size_t)g->count + 1, 1);
  for (int i = 0; i < g->count; i++)
    if (int8_wanted(g, i, choice)) int8_mark(g, marked, g->nodes[i].input[0]);
  for (int i = 0; i < g->count; i++) {
    if (g->nodes[i].op == &add_op && choice->sums_whole && int8_unrounded(g, i) >= 0) marked[int8_unrounded(g, i)] = 0;
    if (graph_is_output(g, i) || (g->nodes[i].op == NULL && !choice->first)) marked[i] = 0;
  }
  for (int i = 0; i < g->count; i++) {
    const Int8Scale none = {0, 0};
    scale[i] = none;
    if (!marked[i]) continue;
    scale[i].positive = int8_positive(g, i);
    /* The ends of pictures' range, black and white, are not outliers. */
    const CalibrateMethod method = g->nodes[i].op == NULL ? CALIBRATE_MIN_MAX : choice->method;
    const float most = calibrate_most(&c->range[i], method, choice->share, scale[i].positive ? 256 : 128);
    scale[i].step = int8_scale(most, scale[i].positive != 0);
  }
  for (int pass = 0; pass < 2; pass++) /* the largest of a window has the scale of the window */
    for (int k = 0; k < g->count; k++) {
      const int i = pass == 0 ? g->count - 1 - k : k;
      if (!marked[i] || g->nodes[i].op != &max_pool2d_op || !marked[g->nodes[i].input[0]]) continue;
      if (pass == 0)
        scale[g->nodes[i].input[0]] = scale[i];
      else
        scale[i] = scale[g->nodes[i].input[0]];
    }
  free(marked);
}

/* --------------------------------------------------------------------------------------- weights of a float32 model */

typedef struct Int8ModelWeights {
  const Model *model;
  float *host;
} Int8ModelWeights;

static inline const float *int8_find_in_model(const void *from, const char *name, size_t count, Int8Given *given) {
  const Int8ModelWeights *own = (const Int8ModelWeights *)from;
  const Param *p = model_find_param(own->model, name);
  (void)given;
  return p != NULL && p->count == count ? batch_norm2d_fold_at(own->model, own->host, p) : NULL;
}

/* The parameters of `m` that have a float32 one of the same name in `source`. */
static inline void int8_copy_parameters(Model *m, const Model *source) {
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(m, &node, &index)) != NULL) {
    const Param *same = model_find_param(source, p->name);
    if (same == NULL || same->count != p->count || same->bytes != p->bytes) continue;
    float *host = (float *)xmalloc(p->count * sizeof *host);
    device_download(source->context.device, host, model_param(source, same), p->count * sizeof *host);
    device_upload(m->context.device, model_param(m, p), host, p->count * sizeof *host);
    free(host);
  }
}

/* A model that infers with int8, of a float32 one whose graph is int8_prepare()'s. -1 as model_open(). fast: on a
 * CPU with the kernels of cpu_int8_blocks.cuh, whose arrays only they can read; on a GPU always. stem_int8: see
 * int8_lower_with(). */
static inline int int8_open_model(Model *m, const Model *whole, const Int8Scale *scale, int max_batch, bool fast,
                                  int stem_int8, Error *err) {
  Int8Store store = {};
  const Int8ModelWeights from = {whole, batch_norm2d_fold_host(whole)};
  const Int8Weights weights = {int8_find_in_model, &from, NULL};
  Context context = whole->context;
  context.training = 0;
  context.shared = NULL;
  Graph *g = int8_lower_with(whole->graph, scale, weights, context.device, stem_int8, &store, err);
  free(from.host);
  if (g != NULL && fast && context.device == DEVICE_CPU) cpu_int8_blocks(g);
  int status = g == NULL ? -1 : model_open(m, g, context, NULL, max_batch, MODEL_INFER, err);
  if (status == 0) {
    int8_copy_parameters(m, whole);
    status = int8_store_fill(&store, m, err);
    if (status != 0) model_close(m);
  }
  int8_store_free(&store);
  return status;
}

static inline int int8_open(Model *m, const Model *whole, const Int8Scale *scale, int max_batch, Error *err) {
  return int8_open_model(m, whole, scale, max_batch, true, 0, err);
}

#endif /* PHASE5_PRODUCTION_INT8_CALIBRATE_CUH */
