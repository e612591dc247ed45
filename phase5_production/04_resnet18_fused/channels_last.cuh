/* channels_last.cuh - which nodes of a float32 network lie as (N,H,W,C), for the kernels of TF32 (conv2d_infer_op.cuh),
 * and a node Transpose wherever the two layouts meet.
 *
 *     graph_channels_last(g);
 *
 * A convolution of one group is computed channels last, and so are the sums and ReLUs that read it. All else stays
 * (N,C,H,W), outputs and losses, too. Of a node with one pixel both layouts are the same.
 */
#ifndef PHASE5_PRODUCTION_CHANNELS_LAST_CUH
#define PHASE5_PRODUCTION_CHANNELS_LAST_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"
#include "phase5_production/04_resnet18_fused/conv2d_infer_op.cuh"
#include "phase5_production/04_resnet18_fused/pool_linear_op.cuh"
#include "phase5_production/04_resnet18_fused/stem_pool_op.cuh"

/* `last` computes channels last what `plain` computes. */
typedef struct ChannelsLast {
  const Op *plain, *last;
  int follows;     /* only where its first input lies so already */
  int reads_plain; /* its input is (N,C,H,W) */
} ChannelsLast;

static inline const ChannelsLast *channels_last_table(int *count) {
  static const ChannelsLast table[] = {{&conv2d_op, &conv2d_tf32_op, 0, 0},
                                       {&conv2d_relu_op, &conv2d_relu_tf32_op, 0, 0},
                                       {&residual_end_op, &residual_end_tf32_op, 0, 0},
                                       {&stem_pool_op, &stem_pool_tf32_op, 0, 1},
                                       {&pool_linear_op, &pool_linear_tf32_op, 0, 0},
                                       {&add_op, &add_op, 1, 0},
                                       {&add_relu_op, &add_relu_op, 1, 0},
                                       {&activation_ops[ACTIVATION_RELU], &activation_ops[ACTIVATION_RELU], 1, 0}};
  *count = sizeof table / sizeof *table;
  return table;
}

/* Whether its weights are (K,R,S,C), as TF32. */
static inline int graph_is_channels_last(const Node *node) {
  return node->op == &conv2d_tf32_op || node->op == &conv2d_relu_tf32_op || node->op == &residual_end_tf32_op ||
         node->op == &stem_pool_tf32_op;
}

/* ------------------------------------------------------------------------------------------------------- Transpose */

static inline int channels_last_towards(const Node *node) { return node->attributes.bytes[0]; }

static inline void channels_last_cpu(float *y, const float *x, int images, int channels, int pixels, int towards) {
  for (size_t n = 0; n < (size_t)images; n++)
    for (int c = 0; c < channels; c++)
      for (int p = 0; p < pixels; p++) {
        const size_t plain = (n * channels + c) * pixels + p, last = (n * pixels + p) * channels + c;
        y[towards ? last : plain] = x[towards ? plain : last];
      }
}

static inline void channels_last_gpu(float *y, const float *x, int images, int channels, int pixels, int towards) {
  if (towards)
    conv2d_to_nhwc<float>(y, x, images, channels, pixels);
  else
    conv2d_to_nchw<float>(y, x, images, channels, pixels);
}

static inline void channels_last_forward(const Context *context, const Node *node, const OpArrays *a) {
  const int channels = node->shape.dim[0], pixels = shape_pixels(node->shape), towards = channels_last_towards(node);
  ON_DEVICE(context->device, channels_last_gpu(a->y, a->x[0], a->batch, channels, pixels, towards),
            channels_last_cpu(a->y, a->x[0], a->batch, channels, pixels, towards));
}

static inline void channels_last_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)a;
  die("%s has no backward pass; open the model for MODEL_INFER", node->name);
}

inline const Op channels_last_op = {"Transpose", 0, 0, NULL, NULL, channels_last_forward, channels_last_backward};

/* ------------------------------------------------------------------------------------------------------- rewriting */

typedef struct ChannelsLastPass {
  Graph *g;
  int *place, *other; /* of each old node: its new number, and that of the other layout; GRAPH_ERROR: none yet */
  int *last;          /* of each old node: whether it lies channels last */
} ChannelsLastPass;

static inline int channels_last_read(ChannelsLastPass *pass, int i, int last) {
  Graph *g = pass->g;
  const Node source = g->nodes[pass->place[i]];
  if (pass->last[i] == last || source.shape.rank < 2 || shape_pixels(source.shape) == 1) return pass->place[i];
  if (pass->other[i] != GRAPH_ERROR) return pass->other[i];
  Node turn;
  memset(&turn, 0, sizeof turn);
  turn.op = &channels_last_op;
  turn.inputs = 1;
  turn.input[0] = pass->place[i];
  turn.whole = source.whole;
  turn.shape = source.shape;
  turn.attributes.bytes[0] = (unsigned char)last;
  snprintf(turn.name, sizeof turn.name, "%.50s.%s", source.name, last ? "nhwc" : "nchw");
  return pass->other[i] = graph_add(g, &turn);
}

static inline int channels_last_takes(const Node *node) {
  if (node->op != &conv2d_op && node->op != &conv2d_relu_op) return 1;
  return conv2d_op_shape(node, 1).groups == 1;
}

static inline const ChannelsLast *channels_last_find(const ChannelsLastPass *pass, const Node *node) {
  int count;
  const ChannelsLast *table = channels_last_table(&count);
  if (node->type != DTYPE_FLOAT32) return NULL;
  for (int t = 0; t < count; t++)
    if (table[t].plain == node->op && channels_last_takes(node) && (!table[t].follows || pass->last[node->input[0]]))
      return &table[t];
  return NULL;
}

static inline void channels_last_node(ChannelsLastPass *pass, int i, Node *node) {
  const ChannelsLast *twin = channels_last_find(pass, node);
  const int passed = (node->op->flags & OP_PASSED) != 0;
  if (passed) pass->last[i] = pass->last[node->input[0]];
  if (twin) pass->last[i] = node->shape.rank > 1;
  for (int k = 0; k < node->inputs; k++)
    node->input[k] =
        passed ? pass->place[node->input[k]] : channels_last_read(pass, node->input[k], twin && !twin->reads_plain);
  if (twin && twin->last != node->op) graph_replace(node, twin->last);
}

/* Numbers of nodes change; names and parameters do not. */
static inline void graph_channels_last(Graph *g) {
  const int count = g->count;
  Node *old = g->nodes;
  int *numbers = (int *)xcalloc((size_t)count * 3 + 1, sizeof *numbers);
  ChannelsLastPass pass = {g, numbers, numbers + count, numbers + 2 * count};
  if (g->failed) {
    free(numbers);
    return;
  }
  g->nodes = NULL;
  g->count = g->capacity = 0;
  for (int i = 0; i < count; i++) {
    Node node = old[i];
    pass.other[i] = GRAPH_ERROR;
    if (node.op) channels_last_node(&pass, i, &node);
    pass.place[i] = graph_add(g, &node);
  }
  for (int l = 0; l < g->loss_count; l++) g->losses[l].node = channels_last_read(&pass, g->losses[l].node, 0);
  for (int o = 0; o < g->output_count; o++) g->outputs[o] = channels_last_read(&pass, g->outputs[o], 0);
  free(numbers);
  free(old);
}

#endif /* PHASE5_PRODUCTION_CHANNELS_LAST_CUH */
