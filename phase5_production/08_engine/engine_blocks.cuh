/* engine_blocks.cuh - layouts and kernels on a CPU: arrays in blocks of 16 channels (cpu_layout.h), computed by
 * cpu_conv2d.h, and nodes Pack and Unpack wherever a node without such a kernel is read or reads.
 *
 *     engine_blocks(g, &weights, &plans, 8, &err);    // of a simplified graph of float32, every operation by itself
 *
 * Convolutions take a sum and a ReLU or Clip behind them into their kernel. Their weights are packed here, once, and
 * are not parameters of the graph any more: `plans` owns them.
 *
 * An array has a border of zeros, as wide as the largest padding of the convolutions that read it. Arrays that are
 * added to each other have one border: classes of nodes, each with the largest border that one of them needs.
 */
#ifndef PHASE5_PRODUCTION_ENGINE_BLOCKS_CUH
#define PHASE5_PRODUCTION_ENGINE_BLOCKS_CUH

#include "common/threads.h"
#include "phase3_cnn/09_pooling/avg_pool2d_op.cuh"
#include "phase5_production/07_onnx_import/nd_op.cuh"
#include "phase5_production/08_engine/cpu_conv2d.h"
#include "phase5_production/08_engine/cpu_threads.h"
#include "phase5_production/08_engine/engine_weights.cuh"

/* Packed convolutions and linear layers of a graph. */
typedef struct EnginePlans {
  CpuConv2d **plan;
  int count, capacity;
  size_t bytes;
} EnginePlans;

static inline void engine_plans_free(EnginePlans *plans) {
  for (int i = 0; i < plans->count; i++) cpu_conv2d_close(plans->plan[i]);
  free(plans->plan);
  memset(plans, 0, sizeof *plans);
}

static inline void engine_plans_add(EnginePlans *plans, CpuConv2d *plan) {
  if (plans->count == plans->capacity) {
    plans->capacity = plans->capacity ? 2 * plans->capacity : 32;
    plans->plan = (CpuConv2d **)realloc(plans->plan, (size_t)plans->capacity * sizeof *plans->plan);
    if (plans->plan == NULL) die("out of memory: %d layers", plans->capacity);
  }
  plans->plan[plans->count++] = plan;
  plans->bytes += cpu_conv2d_bytes(plan);
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* Attributes of a node in blocks. */
typedef struct EngineBlock {
  CpuShape x, y;
  CpuActivation activation;
  CpuPool2d pool;
  const CpuConv2d *plan; /* in EnginePlans */
} EngineBlock;

static inline const EngineBlock *engine_block(const Node *node) { return (const EngineBlock *)node->attributes.bytes; }

/* A layer that is called in a task of cpu_parallel() computes alone, whatever this is. */
static inline int engine_block_threads(void) { return threads_most(); }

static inline void engine_block_conv(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  const float *added = node->inputs > 1 ? a->x[1] : NULL;
  cpu_conv2d_run(engine_block(node)->plan, a->y, a->x[0], added, a->workspace, a->batch, engine_block_threads());
}

static inline size_t engine_block_conv_floats(const Context *context, const Node *node, int batch) {
  (void)context;
  return cpu_conv2d_workspace(engine_block(node)->plan, batch, engine_block_threads());
}

static inline void engine_block_pool(const Context *context, const Node *node, const OpArrays *a) {
  const EngineBlock *b = engine_block(node);
  (void)context;
  cpu_pool2d_run(a->y, b->y, a->x[0], b->x, b->pool, a->batch, engine_block_threads());
}

static inline void engine_block_global_pool(const Context *context, const Node *node, const OpArrays *a) {
  const EngineBlock *b = engine_block(node);
  (void)context;
  cpu_global_avg_pool2d_run(a->y, b->y, a->x[0], b->x, a->batch, engine_block_threads());
}

static inline void engine_block_add(const Context *context, const Node *node, const OpArrays *a) {
  const EngineBlock *b = engine_block(node);
  (void)context;
  cpu_add_run(a->y, a->x[0], a->x[1], b->y, b->activation, a->batch, engine_block_threads());
}

static inline void engine_block_pack(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  cpu_pack(a->y, a->x[0], engine_block(node)->y, a->batch, engine_block_threads());
}

static inline void engine_block_unpack(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  cpu_unpack(a->y, a->x[0], engine_block(node)->x, a->batch, engine_block_threads());
}

static inline void engine_block_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)a;
  die("%s has no backward pass; open the model for MODEL_INFER", node->name);
}

inline const Op engine_block_conv_op = {
    "Conv", 0, 0, NULL, engine_block_conv_floats, engine_block_conv, engine_block_backward};
inline const Op engine_block_linear_op = {
    "Gemm", 0, 0, NULL, engine_block_conv_floats, engine_block_conv, engine_block_backward};
inline const Op engine_block_max_pool_op = {"MaxPool", 0, 0, NULL, NULL, engine_block_pool, engine_block_backward};
inline const Op engine_block_avg_pool_op = {"AveragePool", 0, 0, NULL, NULL, engine_block_pool, engine_block_backward};
inline const Op engine_block_global_pool_op = {"GlobalAveragePool",  0, 0, NULL, NULL, engine_block_global_pool,
                                               engine_block_backward};
inline const Op engine_block_add_op = {"Add", 0, OP_IN_PLACE, NULL, NULL, engine_block_add, engine_block_backward};
inline const Op engine_block_pack_op = {"Pack", 0, 0, NULL, NULL, engine_block_pack, engine_block_backward};
inline const Op engine_block_unpack_op = {"Unpack", 0, 0, NULL, NULL, engine_block_unpack, engine_block_backward};

/* Bytes that node i reads and writes in one inference, packed weights included (fused_node_bytes()). */
static inline double engine_node_bytes(const Graph *g, int i, int batch) {
  const Node *node = &g->nodes[i];
  const int packed = node->op == &engine_block_conv_op || node->op == &engine_block_linear_op;
  return fused_node_bytes(g, i, batch) + (packed ? (double)cpu_conv2d_bytes(engine_block(node)->plan) : 0);
}

static inline double engine_graph_bytes(const Graph *g, int batch) {
  double bytes = 0;
  for (int i = 0; i < g->count; i++) bytes += engine_node_bytes(g, i, batch);
  return bytes;
}

/* A convolution that also adds its second input: during the pass alone. */
inline const Op engine_block_sum_op = {"Conv", 0, 0, NULL, NULL, engine_block_backward, engine_block_backward};

#define ENGINE_FUSE_CONV_ADD \
  { &conv2d_op, &add_op, &engine_block_sum_op, &residual_add_passed_op, NULL }

/* --------------------------------------------------------------------------------------------------------- the pass */

typedef struct EngineBlocks {
  Graph *g; /* as it was */
  Node *node;
  int *blocked; /* of each node: its array is in blocks */
  int *family;  /* nodes with one border: the number of one of them */
  int *border;  /* of a family, at its number; and what a Pack of a plain node needs, in `packs` */
  int *packs;
  CpuActivation *activation; /* in its kernel */
  int *place, *other;        /* in the new graph; `other`: its Pack or Unpack, GRAPH_ERROR: none yet */
  const EngineWeights *weights;
  EnginePlans *plans;
  int images; /* of a call: kernels are chosen for so many */
  struct EnginePacking *packing;
  int packings;
} EngineBlocks;

/* A layer whose weights are to be packed: several at once. */
typedef struct EnginePacking {
  int node, linear; /* node: of the new graph */
  Conv2dShape shape;
  int outputs; /* of a linear layer */
  EngineBlock block;
  const float *w, *bias;
  CpuConv2d *plan;
  int status;
  Error err;
} EnginePacking;

static inline int engine_block_family(const EngineBlocks *b, int i) {
  while (b->family[i] != i) i = b->family[i];
  return i;
}

static inline void engine_block_join(EngineBlocks *b, int i, int j) {
  b->family[engine_block_family(b, i)] = engine_block_family(b, j);
}

static inline int engine_block_is_conv(const Node *node) {
  return node->op == &conv2d_op || node->op == &engine_block_sum_op;
}

static inline int engine_block_is_relu(const Node *node) { return node->op == &activation_ops[ACTIVATION_RELU]; }

static inline Pool2dShape engine_block_pool_shape(const Node *node) {
  return node->op == &max_pool2d_op ? max_pool2d_op_shape(node, 1) : avg_pool2d_op_shape(node, 1);
}

/* Few channels are read as they are: a block of 16 would be mostly zeros. */
enum { ENGINE_PLAIN_CHANNELS = 4 };
static inline int engine_block_reads_plain(const EngineBlocks *b, int i) {
  const Node *node = &b->node[i];
  return engine_block_is_conv(node) && !b->blocked[node->input[0]] &&
         b->node[node->input[0]].shape.dim[0] <= ENGINE_PLAIN_CHANNELS;
}

/* Whether a kernel of blocks computes node i; those before it are decided. */
static inline int engine_block_takes(const EngineBlocks *b, int i) {
  const Node *node = &b->node[i];
  if (node->op == NULL || node->type != DTYPE_FLOAT32 || (node->op->flags & OP_CONSTANT)) return 0;
  for (int k = 0; k < node->inputs; k++)
    if (b->node[node->input[k]].whole != node->whole) return 0;
  const int follows = node->inputs > 0 && b->blocked[node->input[0]];
  if (engine_block_is_conv(node) || node->op == &linear_op) return 1;
  if (node->op == &max_pool2d_op || node->op == &avg_pool2d_op) {
    const Pool2dShape s = engine_block_pool_shape(node);
    return follows && s.dilation_h == 1 && s.dilation_w == 1;
  }
  if (node->op == &add_op) return follows && b->blocked[node->input[1]];
  if (node->op == &global_avg_pool2d_op || engine_block_is_relu(node) || (node->op->flags & OP_PASSED)) return follows;
  return 0;
}

/* The only node that reads i, seen through nodes that do nothing; GRAPH_ERROR: none, or several. */
static inline int engine_block_reader(const EngineBlocks *b, int i) {
  for (;;) {
    if (graph_readers(b->g, i) != 1) return GRAPH_ERROR;
    int reader = i + 1;
    for (int k = 0; reader < b->g->count; reader++) {
      for (k = 0; k < b->node[reader].inputs && b->node[reader].input[k] != i; k++) continue;
      if (k < b->node[reader].inputs) break;
    }
    if (reader == b->g->count) return GRAPH_ERROR; /* an output */
    if (!(b->node[reader].op->flags & OP_PASSED)) return reader;
    i = reader;
  }
}

/* Clip of constant bounds: its attributes begin with them. */
static inline int engine_block_is_clip(const Node *node) { return node->op == &nd_clip_op; }

static inline CpuActivation engine_block_activation(const Node *node) {
  CpuActivation clip = CPU_RELU;
  if (engine_block_is_clip(node)) memcpy(&clip, node->attributes.bytes, sizeof clip);
  return clip;
}

/* The ReLU or Clip behind a convolution, a linear layer or a sum is computed by its kernel. */
static inline void engine_block_activations(EngineBlocks *b) {
  for (int i = 0; i < b->g->count; i++) {
    Node *node = &b->node[i];
    b->activation[i] = CPU_NO_ACTIVATION;
    if (!engine_block_is_conv(node) && node->op != &linear_op && node->op != &add_op) continue;
    const int reader = engine_block_reader(b, i);
    if (reader < 0 || !(engine_block_is_relu(&b->node[reader]) || engine_block_is_clip(&b->node[reader]))) continue;
    b->activation[i] = engine_block_activation(&b->node[reader]);
    b->node[reader].op = &relu_passed_op;
  }
}

static inline int engine_block_padding(const Node *conv) {
  const Conv2dShape s = conv2d_op_shape(conv, 1);
  return s.padding_h > s.padding_w ? s.padding_h : s.padding_w;
}

static inline void engine_block_borders(EngineBlocks *b) {
  for (int i = 0; i < b->g->count; i++) {
    const Node *node = &b->node[i];
    b->family[i] = i;
    if (!b->blocked[i] || node->op == &linear_op) continue;
    if (node->op == &engine_block_sum_op) engine_block_join(b, i, node->input[1]);
    if (node->op == &add_op || engine_block_is_relu(node) || (node->op->flags & OP_PASSED))
      for (int k = 0; k < node->inputs; k++) engine_block_join(b, i, node->input[k]);
  }
  for (int i = 0; i < b->g->count; i++) {
    const Node *node = &b->node[i];
    if (!b->blocked[i] || !engine_block_is_conv(node) || engine_block_reads_plain(b, i)) continue;
    const int x = node->input[0], padding = engine_block_padding(node);
    int *border = b->blocked[x] ? &b->border[engine_block_family(b, x)] : &b->packs[x];
    if (*border < padding) *border = padding;
  }
}

/* The array of old node i. Features, and what a linear layer reads of a plain node, are channels of one pixel. */
static inline CpuShape engine_block_shape(const EngineBlocks *b, int i, int border) {
  const Shape s = b->g->nodes[i].shape;
  if (s.rank == 3) return cpu_shape(s.dim[0], s.dim[1], s.dim[2], border);
  return cpu_shape((int)shape_count(s), 1, 1, border);
}

static inline CpuShape engine_block_own(const EngineBlocks *b, int i) {
  return engine_block_shape(b, i, b->border[engine_block_family(b, i)]);
}

static inline Shape engine_block_array(CpuShape s) {
  const Shape shape = {4, {cpu_blocks(s), s.h + 2 * s.border, s.w + 2 * s.border, CPU_BLOCK}};
  return shape;
}

/* A Pack or Unpack of old node i; `y`: of the Pack. */
static inline int engine_block_turn(EngineBlocks *b, Graph *g, int i, int packs, CpuShape shape) {
  const EngineBlock block = {shape, shape, CPU_NO_ACTIVATION, {}, NULL};
  Node turn;
  memset(&turn, 0, sizeof turn);
  turn.op = packs ? &engine_block_pack_op : &engine_block_unpack_op;
  turn.inputs = 1;
  turn.input[0] = b->place[i];
  turn.whole = b->g->nodes[i].whole;
  turn.shape = packs ? engine_block_array(shape) : b->g->nodes[i].shape;
  memcpy(turn.attributes.bytes, &block, sizeof block);
  snprintf(turn.name, sizeof turn.name, "%.40s.%s%d", b->g->nodes[i].name, packs ? "blocks" : "plain", g->count);
  return graph_add(g, &turn);
}

/* Old node i as a plain array. */
static inline int engine_block_plain(EngineBlocks *b, Graph *g, int i) {
  if (!b->blocked[i]) return b->place[i];
  if (b->other[i] == GRAPH_ERROR) b->other[i] = engine_block_turn(b, g, i, 0, engine_block_own(b, i));
  return b->other[i];
}

/* Old node i in blocks with this shape, which is its own where it is in blocks. */
static inline int engine_block_read(EngineBlocks *b, Graph *g, int i, CpuShape shape) {
  return b->blocked[i] ? b->place[i] : engine_block_turn(b, g, i, 1, shape);
}

static inline const float *engine_block_weight(const EngineBlocks *b, const Node *node, int k) {
  const EngineWeight *w = k < node->params ? engine_weight(b->weights, node->param[k].name) : NULL;
  return w && w->count == node->param[k].count ? w->values : NULL;
}

static inline int engine_block_layer(EngineBlocks *b, Node *node, EngineBlock *block, int linear, Error *err) {
  const float *w = engine_block_weight(b, node, 0), *bias = engine_block_weight(b, node, 1);
  if (w == NULL || (node->params > 1 && bias == NULL))
    return error_set(err, "the network has no numbers for the parameters of %s", node->name);
  EnginePacking *packing = &b->packing[b->packings++];
  packing->linear = linear;
  packing->shape = linear ? packing->shape : conv2d_op_shape(node, node_samples(node, b->images));
  packing->outputs = linear ? linear_out(node) : 0;
  packing->block = *block;
  packing->w = w;
  packing->bias = bias;
  node->op = linear ? &engine_block_linear_op : &engine_block_conv_op;
  node->params = 0;
  return 0;
}

static inline void engine_block_set_pool(Node *node, EngineBlock *block) {
  const int average = node->op != &max_pool2d_op;
  const Pool2dShape s = engine_block_pool_shape(node);
  const CpuPool2d pool = {s.kernel_h, s.kernel_w, s.stride_h,   s.stride_w,
                          s.pad_h,    s.pad_w,    average != 0, average ? avg_pool2d_op_include_pad(node) : false};
  block->pool = pool;
  node->op = average ? &engine_block_avg_pool_op : &engine_block_max_pool_op;
}

/* Old node i, which a kernel of blocks computes: its inputs, its Op and its attributes. */
static inline int engine_block_node(EngineBlocks *b, Graph *g, int i, Node *node, Error *err) {
  const Node old = *node;
  const int x = old.input[0], linear = old.op == &linear_op, conv = engine_block_is_conv(&old);
  EngineBlock block = {{}, engine_block_own(b, i), b->activation[i], {}, NULL};
  block.x = b->blocked[x] ? engine_block_own(b, x) : engine_block_shape(b, x, b->packs[x]);
  if (linear && !b->blocked[x]) block.x = cpu_shape((int)shape_count(b->g->nodes[x].shape), 1, 1, 0);
  if (engine_block_reads_plain(b, i)) block.x.border = -1;
  node->input[0] = engine_block_reads_plain(b, i) ? b->place[x] : engine_block_read(b, g, x, block.x);
  for (int k = 1; k < old.inputs; k++) node->input[k] = engine_block_read(b, g, old.input[k], block.y);
  node->shape = engine_block_array(block.y);
  node->plain = NULL;
  if ((linear || conv) && engine_block_layer(b, node, &block, linear, err) != 0) return -1;
  if (linear || conv) b->packing[b->packings - 1].node = g->count; /* where the caller puts it */
  if (old.op == &add_op) node->op = &engine_block_add_op;
  if (old.op == &global_avg_pool2d_op) node->op = &engine_block_global_pool_op;
  if (old.op == &max_pool2d_op || old.op == &avg_pool2d_op) engine_block_set_pool(node, &block);
  if (!engine_block_is_relu(&old) && !(old.op->flags & OP_PASSED)) memcpy(node->attributes.bytes, &block, sizeof block);
  return 0;
}

static inline int engine_blocks_build(EngineBlocks *b, Graph *g, Error *err) {
  for (int i = 0; i < b->g->count; i++) {
    Node node = b->node[i];
    b->other[i] = GRAPH_ERROR;
    if (b->blocked[i]) {
      if (engine_block_node(b, g, i, &node, err) != 0) return -1;
    } else {
      for (int k = 0; k < node.inputs; k++) node.input[k] = engine_block_plain(b, g, node.input[k]);
    }
    b->place[i] = graph_add(g, &node);
  }
  for (int l = 0; l < g->loss_count; l++) g->losses[l].node = engine_block_plain(b, g, g->losses[l].node);
  for (int o = 0; o < g->output_count; o++) g->outputs[o] = engine_block_plain(b, g, g->outputs[o]);
  return 0;
}

static inline void engine_blocks_pack_one(void *arg, long task, int thread) {
  EnginePacking *p = (EnginePacking *)arg + task;
  const EngineBlock *block = &p->block;
  (void)thread;
  p->status = p->linear
                  ? cpu_linear_open(&p->plan, block->x, p->outputs, p->w, p->bias, block->activation, &p->err)
                  : cpu_conv2d_open(&p->plan, p->shape, block->x, block->y, p->w, p->bias, block->activation, &p->err);
}

/* Every layer's weights, by all threads. -1: one of them cannot be computed. */
static inline int engine_blocks_pack(EngineBlocks *b, Graph *g, Error *err) {
  cpu_parallel(b->packings, threads_most(), engine_blocks_pack_one, b->packing);
  int status = 0;
  for (int i = 0; i < b->packings; i++) {
    EnginePacking *p = &b->packing[i];
    if (p->status != 0) {
      if (status == 0) *err = p->err;
      status = -1;
      continue;
    }
    engine_plans_add(b->plans, p->plan);
    p->block.plan = p->plan;
    memcpy(g->nodes[p->node].attributes.bytes, &p->block, sizeof p->block);
  }
  return status;
}

/* -1 with a sentence, and the graph is as it was but for sums. */
static inline int engine_blocks(Graph *g, const EngineWeights *weights, EnginePlans *plans, int images, Error *err) {
  static const Fusion sums[] = {ENGINE_FUSE_CONV_ADD};
  graph_fuse(g, sums, 1);
  Graph *old = graph_copy(g);
  const size_t n = (size_t)old->count + 1;
  int *numbers = (int *)xcalloc(6 * n, sizeof *numbers);
  CpuActivation *activation = (CpuActivation *)xcalloc(n, sizeof *activation);
  EngineBlocks b = {old,
                    old->nodes,
                    numbers,
                    numbers + n,
                    numbers + 2 * n,
                    numbers + 3 * n,
                    activation,
                    numbers + 4 * n,
                    numbers + 5 * n,
                    weights,
                    plans,
                    images,
                    NULL,
                    0};
  engine_block_activations(&b);
  for (int i = 0; i < old->count; i++) b.blocked[i] = engine_block_takes(&b, i);
  engine_block_borders(&b);
  g->count = 0;
  b.packing = (EnginePacking *)xcalloc(n, sizeof *b.packing);
  int status = engine_blocks_build(&b, g, err);
  if (status == 0) status = engine_blocks_pack(&b, g, err);
  free(b.packing);
  free(numbers);
  free(activation);
  graph_destroy(old);
  return status;
}

#endif /* PHASE5_PRODUCTION_ENGINE_BLOCKS_CUH */
