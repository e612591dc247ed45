/* int8_lower.cuh - a graph of float32 operations becomes one that computes with int8 wherever a scale is known.
 *
 *     Int8Scale scale[nodes];          // of each node's output; 0 where it stays float32
 *     Int8Store store = {};
 *     Graph *q = int8_lower(g, scale, weights, device, &store, &err);
 *     ... model_open(&m, q, ...), the parameters of what stays float32 by their names ...
 *     int8_store_fill(&store, &m, &err);
 *
 * The scales come from int8_calibrate.cuh, or from a quantised ONNX file by int8_rewrite.cuh.
 *
 * What is computed together, as one int8_conv_op: a convolution or linear layer, the sum at the end of a residual
 * block, and ReLU. The graph is without batch norms (batch_norm2d_fold.cuh) and not fused. A layer is int8 where
 * what it reads has a scale, and what it writes has one; the last linear layer may write float32. All else stays,
 * between QuantizeLinear and DequantizeLinear.
 */
#ifndef PHASE5_PRODUCTION_INT8_LOWER_CUH
#define PHASE5_PRODUCTION_INT8_LOWER_CUH

#include "phase5_production/04_resnet18_fused/stem_pool_op.cuh"
#include "phase5_production/09_int8/int8_chain.cuh"
#include "phase5_production/09_int8/int8_op.cuh"
#include "phase5_production/09_int8/int8_weights.h"
#include "phase5_production/09_int8/stem_int8.cuh"

/* --------------------------------------------------------------------------------------------------------- lowering */

typedef struct Int8Lower {
  const Graph *from;
  Graph *to;
  const Int8Scale *scale; /* of each node of `from` */
  Int8Weights weights;
  Device device;
  Int8Store *store;
  int stem_int8;       /* the first layers of a ResNet on a GPU: products of int8, not fp16 */
  int *whole, *narrow; /* of each node of `from`: the node of `to` with its float32, its int8; INT8_NONE: not yet */
  Error *err;
} Int8Lower;

/* of: the node of `from` whose output it has. */
static inline int int8_add_node(Int8Lower *l, Node node, int of, int narrow) {
  node.type = !narrow ? DTYPE_FLOAT32 : l->scale[of].positive ? DTYPE_UINT8 : DTYPE_INT8;
  node.layout = narrow ? LAYOUT_CHANNELS_LAST : LAYOUT_OF_TYPE;
  return graph_add(l->to, &node);
}

/* The conversion of node i to int8 or to float32. */
static inline int int8_convert(Int8Lower *l, int i, int narrow) {
  Node node;
  const Int8Quantize own = {l->scale[i].step, l->scale[i].positive};
  memset(&node, 0, sizeof node);
  node.op = narrow ? &int8_quantize_op : &int8_dequantize_op;
  node.inputs = 1;
  node.input[0] = narrow ? l->whole[i] : l->narrow[i];
  node.shape = l->from->nodes[i].shape;
  memcpy(node.attributes.bytes, &own, sizeof own);
  snprintf(node.name, sizeof node.name, "%.50s.%s", l->from->nodes[i].name, narrow ? "int8" : "float32");
  return int8_add_node(l, node, i, narrow);
}

static inline int int8_narrow(Int8Lower *l, int i) {
  if (l->narrow[i] == INT8_NONE) l->narrow[i] = int8_convert(l, i, 1);
  return l->narrow[i];
}
static inline int int8_whole(Int8Lower *l, int i) {
  if (l->whole[i] == INT8_NONE) l->whole[i] = int8_convert(l, i, 0);
  return l->whole[i];
}

/* A parameter of `bytes` of the node, which the store fills; its bytes on the host. */
static inline void *int8_param(Int8Lower *l, Node *node, const char *name, size_t bytes) {
  Param *p = &node->param[node->params++];
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "%.60s.%s", node->name, name);
  p->rank = 1;
  p->bytes = bytes;
  p->dim[0] = p->count = (bytes + 15) / 16 * 4;
  p->fan_in = p->fan_out = 1;
  p->init = &init_zero;
  return int8_store_add(l->store, p->name, bytes);
}

static inline const float *int8_find(const Int8Lower *l, const Param *p, Int8Given *given) {
  const float *values = l->weights.find(l->weights.from, p->name, p->count, given);
  if (values == NULL) error_set(l->err, "the network has no parameter %s of %zu numbers", p->name, p->count);
  return values;
}

/* Shape and sizes of a product as the kernels see it. */
typedef struct Int8Sizes {
  Conv2dShape shape;
  int k, c, pixels, pitch; /* filters; channels, taps, channels in memory of a filter */
} Int8Sizes;

static inline Int8Sizes int8_sizes(const Int8Lower *l, const Node *n, int narrow) {
  Int8Sizes s;
  const Shape x = l->from->nodes[n->input[0]].shape;
  s.k = n->shape.dim[0];
  const int filters = narrow ? int8_channels(s.k) : s.k;
  if (n->op == &linear_op) { /* its features are the pixels of the input, channel by channel */
    s.c = x.dim[0];
    s.pixels = shape_pixels(x);
    s.pitch = int8_channels(s.c);
    s.shape = conv2d_shape(1, s.pitch * s.pixels, 1, 1, filters, 1, 1, 1, 0);
    return s;
  }
  s.shape = conv2d_op_shape(n, 1);
  s.c = s.shape.c / s.shape.groups;
  s.pixels = s.shape.r * s.shape.s;
  s.pitch = s.shape.groups == 1 ? int8_channels(s.c) : s.c;
  s.shape.c = s.pitch * s.shape.groups;
  s.shape.k = filters;
  return s;
}

/* Factor and bias of `filters` filters, of which k exist: a sum's unit becomes `unit`. */
static inline void int8_lower_ends(Int8Lower *l, Node *node, size_t filters, int k, const float *scale, float scale_x,
                                   const float *b, float unit) {
  float *factor = (float *)int8_param(l, node, "factor", filters * sizeof(float));
  int32_t *bias = (int32_t *)int8_param(l, node, "bias.int32", filters * sizeof(int32_t));
  for (int i = 0; i < k; i++) {
    const float sum_unit = scale_x * scale[i];
    factor[i] = sum_unit / unit;
    bias[i] = b != NULL ? int8_bias(b[i], sum_unit) : 0;
  }
}

/* The scales of n's filters: the file's, or the weights' own. b may be NULL. To be freed. */
static inline float *int8_lower_scales(const Node *n, const float *w, const float *b, float scale_x, Int8Given given) {
  const int k = n->shape.dim[0];
  float *scale = (float *)xmalloc((size_t)k * sizeof *scale);
  for (int i = 0; i < k && given.scale != NULL; i++) scale[i] = given.scale[given.count == 1 ? 0 : i];
  if (given.scale != NULL) return scale;
  int8_filter_scales(scale, w, k, n->param[0].count / (size_t)k);
  int8_filter_scales_for_bias(scale, b, scale_x, k);
  return scale;
}

/* Weights, factors and bias of `node`, which computes the product `n`. unit: of the sums' target. */
static inline int int8_lower_weights(Int8Lower *l, Node *node, const Node *n, Int8Sizes s, float unit) {
  Int8Given given = {NULL, 0}, none = {NULL, 0};
  const float *w = int8_find(l, &n->param[0], &given), *b = n->params > 1 ? int8_find(l, &n->param[1], &none) : NULL;
  if (w == NULL || (n->params > 1 && b == NULL)) return -1;
  float *scale = int8_lower_scales(n, w, b, l->scale[n->input[0]].step, given);
  const size_t k = (size_t)s.shape.k;
  int8_filters((int8_t *)int8_param(l, node, "weight.int8", k * s.pixels * s.pitch), w, scale, s.k, s.c, s.pixels,
               s.pitch);
  int8_lower_ends(l, node, k, s.k, scale, l->scale[n->input[0]].step, b, unit);
  free(scale);
  return 0;
}

static inline int int8_lower_chain(Int8Lower *l, Int8Chain c) {
  const Node *n = &l->from->nodes[c.product];
  const int narrow = l->scale[c.end].step > 0;
  const float scale_y = narrow ? l->scale[c.end].step : 1, middle = c.add >= 0 ? l->scale[c.product].step : 0;
  const Int8Sizes s = int8_sizes(l, n, narrow);
  Int8Conv own;
  Node node = *n;
  memset(&own, 0, sizeof own);
  own.shape = s.shape;
  own.relu = c.relu;
  own.adds = c.add >= 0;
  own.middle = middle / scale_y;
  own.x_positive = l->scale[n->input[0]].positive;
  if (own.adds) own.added_scale = l->scale[c.added].step / scale_y;
  if (own.adds) own.added_positive = l->scale[c.added].positive;
  node.op = &int8_conv_op;
  node.shape = l->from->nodes[c.end].shape;
  node.inputs = 1 + own.adds;
  node.input[0] = int8_narrow(l, n->input[0]);
  if (own.adds) node.input[1] = int8_narrow(l, c.added);
  node.params = 0;
  memcpy(node.attributes.bytes, &own, sizeof own);
  if (int8_lower_weights(l, &node, n, s, middle > 0 ? middle : scale_y) != 0) return -1;
  (narrow ? l->narrow : l->whole)[c.end] = int8_add_node(l, node, c.end, narrow);
  return 0;
}

/* Pooling of int8. 0: node i is not a pooling, or is not int8. */
static inline int int8_lower_pool(Int8Lower *l, int i) {
  const Node *n = &l->from->nodes[i];
  if (n->op == NULL || n->inputs != 1 || l->scale[i].step == 0 || l->scale[n->input[0]].step == 0) return 0;
  const Shape x = l->from->nodes[n->input[0]].shape;
  const float scale_x = l->scale[n->input[0]].step;
  Int8Pool own;
  memset(&own, 0, sizeof own);
  if (n->op == &max_pool2d_op) {
    if (scale_x != l->scale[i].step || l->scale[n->input[0]].positive != l->scale[i].positive) return 0;
    own.shape = max_pool2d_op_shape(n, 1);
  } else if (n->op == &avg_pool2d_op) {
    own.shape = avg_pool2d_op_shape(n, 1);
    own.include_pad = avg_pool2d_op_include_pad(n);
    own.unit = scale_x / l->scale[i].step;
  } else if (n->op == &global_avg_pool2d_op) {
    own.shape = pool2d_shape_of(1, x.dim[0], x.dim[1], x.dim[2], (Pool2dWindow){x.dim[1], x.dim[2], 1, 1, 0, 0});
    own.unit = scale_x / l->scale[i].step;
  } else {
    return 0;
  }
  own.shape.c = int8_channels(x.dim[0]);
  own.x_positive = l->scale[n->input[0]].positive;
  Node node = *n;
  node.op = &int8_pool_op;
  node.input[0] = int8_narrow(l, n->input[0]);
  memcpy(node.attributes.bytes, &own, sizeof own);
  l->narrow[i] = int8_add_node(l, node, i, 1);
  return 1;
}

/* The sum that ends at node `end`, which is the sum or the ReLU behind it. 0: it is not a sum of int8 arrays. */
static inline int int8_lower_add(Int8Lower *l, int end) {
  const Graph *g = l->from;
  if (g->nodes[end].op == NULL) return 0;
  const int relu = int8_is_relu(&g->nodes[end]), sum = relu ? g->nodes[end].input[0] : end;
  const Node *n = &g->nodes[sum];
  if (n->op != &add_op || l->scale[end].step == 0 || (relu && int8_behind_relu(g, sum) != end)) return 0;
  if (l->scale[n->input[0]].step == 0 || l->scale[n->input[1]].step == 0 || (relu && l->scale[sum].step > 0)) return 0;
  const Int8Add own = {l->scale[n->input[0]].step / l->scale[end].step, l->scale[n->input[1]].step / l->scale[end].step,
                       relu, l->scale[n->input[0]].positive, l->scale[n->input[1]].positive};
  Node node = *n;
  node.op = &int8_add_op;
  for (int k = 0; k < 2; k++) node.input[k] = int8_narrow(l, n->input[k]);
  memcpy(node.attributes.bytes, &own, sizeof own);
  l->narrow[end] = int8_add_node(l, node, end, 1);
  return 1;
}

/* The first layers of a ResNet on a GPU, up to the pooling: the nodes; 0: it is something else. */
static inline int int8_find_stem(const Int8Lower *l, int pool, int at[CHAIN_MOST]) {
  static const ChainFusion chain = {
      {&conv2d_op, &activation_ops[ACTIVATION_RELU], &max_pool2d_op, NULL, NULL}, 3, stem_pool_chain_fits, NULL, NULL};
  if (l->device != DEVICE_GPU || l->scale[pool].step == 0 || !l->scale[pool].positive) return 0;
  if (!graph_find_chain(l->from, &chain, pool, at)) return 0;
  const Node *conv = &l->from->nodes[at[0]];
  return !l->stem_int8 || l->scale[conv->input[0]].step == 0 ||
         (!l->scale[conv->input[0]].positive && conv->shape.dim[0] % INT8_RUN == 0);
}

/* Of fp16: (K,49,8), in units of y. */
static inline void int8_stem_half(Int8Lower *l, Node *node, const float *w, const float *b, int k, float scale) {
  const size_t pitch = half_channels(3), taps = 49;
  uint16_t *narrow = (uint16_t *)int8_param(l, node, "weight.fp16", (size_t)k * taps * pitch * sizeof *narrow);
  float *bias = (float *)int8_param(l, node, "bias.scaled", (size_t)k * sizeof *bias);
  for (int f = 0; f < k; f++) {
    bias[f] = b[f] / scale;
    for (size_t t = 0; t < taps; t++)
      for (int c = 0; c < 3; c++)
        narrow[((size_t)f * taps + t) * pitch + c] = fp16_narrow(w[((size_t)f * 3 + c) * taps + t] / scale);
  }
}

static inline int int8_lower_stem(Int8Lower *l, const int *at, int pool) {
  const Node *conv = &l->from->nodes[at[0]];
  Int8Given given = {NULL, 0}, none = {NULL, 0};
  const float *w = int8_find(l, &conv->param[0], &given), *b = int8_find(l, &conv->param[1], &none);
  const int input = conv->input[0], k = conv->shape.dim[0];
  if (w == NULL || b == NULL) return -1;
  const Int8Stem own = {conv2d_op_shape(conv, 1), max_pool2d_op_shape(&l->from->nodes[pool], 1), l->scale[pool].step,
                        l->stem_int8 ? l->scale[input].step : 0};
  Node node = *conv;
  node.op = &int8_stem_op;
  node.shape = l->from->nodes[pool].shape;
  node.input[0] = int8_whole(l, input);
  node.params = 0;
  memcpy(node.attributes.bytes, &own, sizeof own);
  if (own.scale_x > 0) {
    float *scale = int8_lower_scales(conv, w, b, own.scale_x, given);
    stem_int8_filters((int8_t *)int8_param(l, &node, "weight.int8", (size_t)k * STEM_INT8_FILTER), w, scale, k);
    int8_lower_ends(l, &node, (size_t)k, k, scale, own.scale_x, b, own.scale);
    free(scale);
  } else {
    int8_stem_half(l, &node, w, b, k, own.scale);
  }
  l->narrow[pool] = int8_add_node(l, node, pool, 1);
  return 0;
}

/* As it was, from float32. */
static inline void int8_keep(Int8Lower *l, int i) {
  Node node = l->from->nodes[i];
  for (int k = 0; k < node.inputs; k++) node.input[k] = int8_whole(l, node.input[k]);
  l->whole[i] = graph_add(l->to, &node);
}

/* Which chain ends at each node; nodes that lie within one are `inner`. */
static inline void int8_chains(const Int8Lower *l, Int8Chain *ends, unsigned char *inner) {
  const Graph *g = l->from;
  const Int8Scale *scale = l->scale;
  int stem[CHAIN_MOST];
  for (int i = 0; i < g->count; i++) {
    ends[i].product = INT8_NONE;
    if (int8_find_stem(l, i, stem)) inner[stem[0]] = inner[stem[1]] = 1;
  }
  for (int i = 0; i < g->count; i++) {
    if (!int8_is_product(&g->nodes[i]) || inner[i]) continue;
    if (l->weights.refuses && l->weights.refuses(l->weights.from, g->nodes[i].param[0].name)) continue;
    const Int8Chain c = int8_chain(g, scale, i);
    if (!int8_chain_fits(g, scale, c) || ends[c.end].product >= 0) continue;
    ends[c.end] = c;
    if (c.end != c.product) inner[c.product] = 1;
    if (c.add >= 0 && c.end != c.add) inner[c.add] = 1;
  }
}

/* Whether node i is only the inside of a sum with ReLU, or of a stem: computed where that ends. */
static inline int int8_lower_later(const Int8Lower *l, int i) {
  const Graph *g = l->from;
  const int relu = int8_behind_relu(g, i);
  const Node *n = &g->nodes[i];
  if (n->op == &add_op && relu != i && l->scale[i].step == 0 && l->scale[relu].step > 0)
    return l->scale[n->input[0]].step > 0 && l->scale[n->input[1]].step > 0;
  return 0;
}

static inline int int8_lower_node(Int8Lower *l, int i, const Int8Chain *ends, const unsigned char *inner) {
  int stem[CHAIN_MOST];
  if (inner[i] || int8_lower_later(l, i)) return 0;
  if (ends[i].product >= 0) return int8_lower_chain(l, ends[i]);
  if (int8_find_stem(l, i, stem)) return int8_lower_stem(l, stem, i);
  if (!int8_lower_pool(l, i) && !int8_lower_add(l, i)) int8_keep(l, i);
  return 0;
}

/* Nodes that no node reads and that are not an output. scale: of each node, or NULL. */
static inline void int8_drop_unread(Graph *g, Int8Scale *scale) {
  for (int i = g->count - 1; i >= 0; i--) {
    if (g->nodes[i].op == NULL || graph_readers(g, i) > 0) continue;
    memmove(&g->nodes[i], &g->nodes[i + 1], (size_t)(g->count - i - 1) * sizeof *g->nodes);
    if (scale != NULL) memmove(&scale[i], &scale[i + 1], (size_t)(g->count - i - 1) * sizeof *scale);
    g->count--;
    for (int j = i; j < g->count; j++)
      for (int k = 0; k < g->nodes[j].inputs; k++) g->nodes[j].input[k] -= g->nodes[j].input[k] > i;
    for (int k = 0; k < g->loss_count; k++) g->losses[k].node -= g->losses[k].node > i;
    for (int k = 0; k < g->output_count; k++) g->outputs[k] -= g->outputs[k] > i;
  }
}

/* g stays; `store` gets the arrays of the new graph's int8 parameters. NULL and a sentence where a weight is missing.
 * stem_int8: on a GPU the first layers of a ResNet have products of int8, too. Otherwise fp16, and their pictures
 * are not rounded, which is more than a file with a scale for them asks for. */
static inline Graph *int8_lower_with(const Graph *g, const Int8Scale *scale, Int8Weights weights, Device device,
                                     int stem_int8, Int8Store *store, Error *err) {
  const size_t n = (size_t)g->count;
  Int8Lower l = {g, graph_copy(g), scale, weights, device, store, stem_int8, NULL, NULL, err};
  l.whole = (int *)xmalloc((n + 1) * sizeof *l.whole);
  l.narrow = (int *)xmalloc((n + 1) * sizeof *l.narrow);
  Int8Chain *ends = (Int8Chain *)xmalloc((n + 1) * sizeof *ends);
  unsigned char *inner = (unsigned char *)xcalloc(n + 1, 1);
  int status = 0;
  l.to->count = 0;
  for (size_t i = 0; i < n; i++) l.whole[i] = l.narrow[i] = INT8_NONE;
  int8_chains(&l, ends, inner);
  for (int i = 0; i < g->count && status == 0; i++) status = int8_lower_node(&l, i, ends, inner);
  for (int k = 0; k < g->loss_count && status == 0; k++) l.to->losses[k].node = int8_whole(&l, g->losses[k].node);
  for (int k = 0; k < g->output_count && status == 0; k++) l.to->outputs[k] = int8_whole(&l, g->outputs[k]);
  if (status == 0) int8_drop_unread(l.to, NULL); /* a stem has made some superfluous */
  free(l.whole);
  free(l.narrow);
  free(ends);
  free(inner);
  if (status == 0) return l.to;
  graph_destroy(l.to);
  return NULL;
}

static inline Graph *int8_lower(const Graph *g, const Int8Scale *scale, Int8Weights weights, Device device,
                                Int8Store *store, Error *err) {
  return int8_lower_with(g, scale, weights, device, 0, store, err);
}

#endif /* PHASE5_PRODUCTION_INT8_LOWER_CUH */
