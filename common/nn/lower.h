/* lower.h - a network in half precision: nodes are given Ops of 16 bits, and casts stand where the two kinds meet.
 *
 *     static const Lowering lowerings[] = {LOWER_CONV2D, LOWER_BATCH_NORM_RELU, ...};
 *     graph_lower(g, DTYPE_BF16);                      // g->lowerings is the table
 *
 * What is lowered reads and writes arrays of 16 bits with the channels last (common/half.h), forward and backward. So
 * from one convolution to the next through batch norm, sum and ReLU nothing is float32 in memory. What is not in the
 * table stays as it was, and reads float32: a node Cast converts. The same holds for losses and outputs.
 *
 * Parameters, their gradients, running statistics and the optimizer's slots are float32 as before, in the same arrays:
 * checkpoints do not change. half_weights.h makes copies of 16 bits of the weights for the products.
 *
 * On the CPU every lowered operation is computed by lowered_forward_cpu(): it widens what it reads, calls the float32
 * operation, and rounds what that writes. So the definition of a kernel of 16 bits is the float32 operation between
 * roundings, and whoever adds one need not write it twice.
 */
#ifndef COMMON_NN_LOWER_H
#define COMMON_NN_LOWER_H

#include "common/nn/fuse.h"
#ifdef __CUDACC__
#include "common/half.cuh"
#endif

/* Which operation of 16 bits stands for which of float32. It has one or two inputs. */
typedef struct Lowering {
  const Op *full, *half;
  int weights;                   /* so many of its parameters, the first ones, are multiplied as 16 bits */
  int follows;                   /* only where its first input has 16 bits already: by itself it is not worth a cast */
  int (*fits)(const Node *node); /* NULL: always */
} Lowering;

/* ----------------------------------------------------------------------------------------------------------- casts */

static inline DType cast_from(const Node *node) { return *(const DType *)node->attributes.bytes; }

/* float32 (N,C,H,W) -> 16 bits (N,H,W,C') */
static inline void cast_narrow(const Context *context, uint16_t *to, const float *from, int batch, Shape s,
                               DType type) {
  ON_DEVICE(context->device, HALF_CALL(type, half_from_nchw, to, from, batch, s.dim[0], shape_pixels(s)),
            half_from_nchw_cpu(to, from, batch, s.dim[0], shape_pixels(s), type));
}

static inline void cast_widen(const Context *context, float *to, const uint16_t *from, int batch, Shape s, DType type) {
  ON_DEVICE(context->device, HALF_CALL(type, half_to_nchw, to, from, batch, s.dim[0], shape_pixels(s)),
            half_to_nchw_cpu(to, from, batch, s.dim[0], shape_pixels(s), type));
}

static inline void cast_forward(const Context *context, const Node *node, const OpArrays *a) {
  if (node->type == DTYPE_FLOAT32)
    cast_widen(context, a->y, (const uint16_t *)a->x[0], a->batch, node->shape, cast_from(node));
  else
    cast_narrow(context, (uint16_t *)a->y, a->x[0], a->batch, node->shape, node->type);
}

static inline void cast_backward(const Context *context, const Node *node, const OpArrays *a) {
  if (a->dx[0] == NULL) return;
  if (node->type == DTYPE_FLOAT32)
    cast_narrow(context, (uint16_t *)a->dx[0], a->dy, a->batch, node->shape, cast_from(node));
  else
    cast_widen(context, a->dx[0], (const uint16_t *)a->dy, a->batch, node->shape, node->type);
}

static const Op cast_op = {"Cast", 0, 0, NULL, NULL, cast_forward, cast_backward};

/* ---------------------------------------------------------------------------------------- lowered operations, on a CPU
 * */

/* Parameter k is rounded, or is a copy because it is written. */
static inline int lowered_copies(const Node *node, int k) {
  return node->param[k].half_channels > 0 || (!node->param[k].trained && node->param[k].count > 0);
}

/* For Op.workspace_floats of a lowered operation where the device is a CPU. */
static inline size_t lowered_workspace_cpu(const Context *context, const Node *node, int batch) {
  size_t floats = 2 * shape_count(node->shape) * (size_t)batch;
  for (int k = 0; k < node->inputs; k++) floats += 2 * shape_count(node->from[k]) * (size_t)batch;
  for (int k = 0; k < node->params; k++) floats += lowered_copies(node, k) ? node->param[k].count : 0;
  return floats + (node->full->workspace_floats ? node->full->workspace_floats(context, node, batch) : 0);
}

/* Takes `count` floats of what is left of the workspace. */
static inline float *lowered_take(float **left, size_t count) {
  float *taken = *left;
  *left += count;
  return taken;
}

static inline const float *lowered_widened(float **left, const float *from, int batch, Shape s, DType type) {
  if (from == NULL) return NULL;
  float *to = lowered_take(left, shape_count(s) * (size_t)batch);
  half_to_nchw_cpu(to, (const uint16_t *)from, batch, s.dim[0], shape_pixels(s), type);
  return to;
}

/* What the float32 operation works on. */
static inline OpArrays lowered_arrays_cpu(const Node *node, const OpArrays *a, float **left) {
  OpArrays full = *a;
  for (int k = 0; k < node->params; k++) {
    const Param *p = &node->param[k];
    if (!lowered_copies(node, k)) continue;
    full.param[k] = lowered_take(left, p->count);
    for (size_t i = 0; i < p->count; i++)
      full.param[k][i] = p->half_channels > 0 ? half_round(node->type, a->param[k][i]) : a->param[k][i];
  }
  for (int k = 0; k < node->inputs; k++)
    full.x[k] = lowered_widened(left, a->x[k], a->batch, node->from[k], node->type);
  return full;
}

static inline void lowered_narrow(float *to, const float *from, int batch, Shape s, DType type) {
  half_from_nchw_cpu((uint16_t *)to, from, batch, s.dim[0], shape_pixels(s), type);
}

static inline int lowered_finite(const float *x, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(x[i])) return 0;
  return 1;
}

/* Running statistics are kept where they are finite: a step that overflows leaves no trace. */
static inline void lowered_forward_cpu(const Context *context, const Node *node, const OpArrays *a) {
  float *left = a->workspace;
  OpArrays full = lowered_arrays_cpu(node, a, &left);
  full.y = lowered_take(&left, shape_count(node->shape) * (size_t)a->batch);
  full.workspace = left;
  node->full->forward(context, node, &full);
  lowered_narrow(a->y, full.y, a->batch, node->shape, node->type);
  int finite = 1;
  for (int k = 0; k < node->params; k++)
    if (!node->param[k].trained && lowered_copies(node, k))
      finite &= lowered_finite(full.param[k], node->param[k].count);
  for (int k = 0; k < node->params && finite; k++)
    if (!node->param[k].trained && lowered_copies(node, k))
      memcpy(a->param[k], full.param[k], node->param[k].count * sizeof(float));
}

static inline void lowered_backward_cpu(const Context *context, const Node *node, const OpArrays *a) {
  float *left = a->workspace;
  OpArrays full = lowered_arrays_cpu(node, a, &left);
  full.y = (float *)lowered_widened(&left, a->y, a->batch, node->shape, node->type);
  full.dy = lowered_widened(&left, a->dy, a->batch, node->shape, node->type);
  for (int k = 0; k < node->inputs; k++)
    full.dx[k] = a->dx[k] ? lowered_take(&left, shape_count(node->from[k]) * (size_t)a->batch) : NULL;
  full.workspace = left;
  node->full->backward(context, node, &full);
  for (int k = 0; k < node->inputs; k++)
    if (a->dx[k]) lowered_narrow(a->dx[k], full.dx[k], a->batch, node->from[k], node->type);
}

/* Bytes that a lowered operation keeps for backward: its own, or those that the float32 operation needs on a CPU. */
static inline size_t lowered_saved_bytes(const Node *node, int batch, size_t own) {
  const size_t full = node->full->saved_bytes ? node->full->saved_bytes(node, batch) : 0;
  return own > full ? own : full;
}

/* --------------------------------------------------------------------------------------------------------- rewriting
 * */

typedef struct Lower {
  Graph *g;
  DType type;
  int *place, *other; /* of each old node: its new number, and that of its cast; GRAPH_ERROR: it has none yet */
} Lower;

/* Integers with the channels last, of operations that know what they read: there is nothing to lower. */
static inline int lower_is_other(const Node *node) {
  return node->layout == LAYOUT_CHANNELS_LAST && !dtype_is_half(node->type);
}

/* The new node of old node i as float32, or as 16 bits; a cast joins the list where it must. */
static inline int lower_read(Lower *l, int i, int half) {
  Graph *g = l->g;
  const Node source = g->nodes[l->place[i]];
  if (node_channels_last(&source) == half || lower_is_other(&source)) return l->place[i];
  if (l->other[i] != GRAPH_ERROR) return l->other[i];
  Node cast;
  memset(&cast, 0, sizeof cast);
  cast.op = &cast_op;
  cast.inputs = 1;
  cast.input[0] = l->place[i];
  cast.shape = source.shape;
  cast.whole = source.whole;
  cast.type = half ? l->type : DTYPE_FLOAT32;
  memcpy(cast.attributes.bytes, &source.type, sizeof source.type);
  snprintf(cast.name, sizeof cast.name, "%.50s.%s", source.name, dtype_name(cast.type));
  return l->other[i] = graph_add(g, &cast);
}

static inline const Lowering *lower_find(const Lower *l, const Node *node) {
  const Graph *g = l->g;
  for (int i = 0; i < g->lowering_count; i++) {
    const Lowering *lowering = &g->lowerings[i];
    if (lowering->full != node->op || node->inputs > NODE_LOWER_INPUTS) continue;
    if (lowering->follows && !node_channels_last(&g->nodes[l->place[node->input[0]]])) continue;
    if (lowering->fits == NULL || lowering->fits(node)) return lowering;
  }
  return NULL;
}

/* Weights (K, C, ...) are turned so that their channels come last, as those of what they are multiplied by. A linear
 * layer's (out, in) has the features of its input in the order (C,H,W). */
static inline void lower_weights(Node *node, int weights) {
  for (int k = 0; k < weights && k < node->params; k++) {
    Param *p = &node->param[k];
    p->half_channels = p->rank > 2 ? (int)p->dim[1] : node->from[0].dim[0];
    p->half_pixels = (int)(p->count / p->dim[0]) / p->half_channels;
  }
}

static inline void lower_node(Lower *l, Node *node) {
  const Lowering *lowering = lower_find(l, node);
  const int passed = (node->op->flags & OP_PASSED) != 0;
  for (int k = 0; k < node->inputs; k++) {
    const int old = node->input[k];
    node->input[k] = passed ? l->place[old] : lower_read(l, old, lowering != NULL);
    if (k < NODE_LOWER_INPUTS) node->from[k] = l->g->nodes[node->input[k]].shape;
  }
  if (passed) node->type = l->g->nodes[node->input[0]].type;
  if (lowering == NULL) return;
  node->type = l->type;
  node->full = node->op;
  node->op = lowering->half;
  lower_weights(node, lowering->weights);
}

/* Lowers what g->lowerings has. Numbers of nodes change; names, parameters and random numbers do not. */
static inline void graph_lower(Graph *g, DType type) {
  if (g->failed || type == DTYPE_FLOAT32) return;
  const int count = g->count;
  Node *old = g->nodes;
  Lower l = {g, type, (int *)xmalloc((size_t)count * sizeof(int)), (int *)xmalloc((size_t)count * sizeof(int))};
  g->nodes = NULL;
  g->count = g->capacity = 0;
  g->type = type;
  for (int i = 0; i < count; i++) {
    Node node = old[i];
    l.other[i] = GRAPH_ERROR;
    if (node.op) lower_node(&l, &node);
    l.place[i] = graph_add(g, &node);
  }
  for (int i = 0; i < g->loss_count; i++) g->losses[i].node = lower_read(&l, g->losses[i].node, 0);
  for (int i = 0; i < g->output_count; i++) g->outputs[i] = lower_read(&l, g->outputs[i], 0);
  free(l.place);
  free(l.other);
  free(old);
}

/* How many nodes compute something, and how many of them in 16 bits. Casts are not counted. */
static inline int graph_lowered(const Graph *g, int *all) {
  int lowered = 0;
  *all = 0;
  for (int i = 0; i < g->count; i++) {
    const Op *op = g->nodes[i].op;
    if (op == NULL || op == &cast_op || (op->flags & (OP_PASSED | OP_ABSORBED))) continue;
    ++*all;
    lowered += g->nodes[i].full != NULL;
  }
  return lowered;
}

/* "Conv 9, BatchNormalization 9, Gemm 1": the operations that are lowered, or those that are not; empty: none. */
static inline void graph_lowered_text(const Graph *g, int lowered, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    int first = node->op != NULL && node->op != &cast_op && !(node->op->flags & (OP_PASSED | OP_ABSORBED)), times = 0;
    if (!first || (node->full != NULL) != lowered) continue;
    for (int j = 0; j < g->count; j++) {
      const Node *same = &g->nodes[j];
      if (same->op == NULL || (same->full != NULL) != lowered || (same->op->flags & (OP_PASSED | OP_ABSORBED)))
        continue;
      if (strcmp(same->op->name, node->op->name) != 0) continue;
      first &= j >= i;
      times++;
    }
    if (first && used < size)
      used += (size_t)snprintf(text + used, size - used, "%s%s %d", used ? ", " : "", node->op->name, times);
  }
}

#endif /* COMMON_NN_LOWER_H */
