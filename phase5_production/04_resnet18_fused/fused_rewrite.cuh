/* fused_rewrite.cuh - rewriting a network for inference: which operations are computed together, in which layout and by
 * which kernels, and the parameters that these kernels read. The rungs of this lesson and the engine of lesson 8 call
 * it, so it takes any network: a node that a fast kernel does not fit stays as it is.
 *
 *     Graph *g = batch_norm2d_fold_graph(trained);      // or a copy of a graph without batch norm
 *     fused_rewrite(g, FUSED_FP16, FUSED_FOLDED | FUSED_ENDS | FUSED_RESIDUAL);
 *     ... model_open(&m, g, context, NULL, batch, MODEL_INFER, &err) ...
 *     fused_fill(&m, source, &err);                     // the folded network's parameters, by their names
 */
#ifndef PHASE5_PRODUCTION_FUSED_REWRITE_CUH
#define PHASE5_PRODUCTION_FUSED_REWRITE_CUH

#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_fold.cuh"
#include "phase3_cnn/half_ops.cuh"
#include "phase5_production/04_resnet18_fused/channels_last.cuh"
#include "phase5_production/04_resnet18_fused/conv2d_infer_op.cuh"
#include "phase5_production/04_resnet18_fused/pool_linear_op.cuh"
#include "phase5_production/04_resnet18_fused/stem_pool_op.cuh"

typedef enum FusedType { FUSED_FP32, FUSED_TF32, FUSED_FP16, FUSED_BF16 } FusedType;

/* What is computed together. */
enum {
  FUSED_ADD_RELU = 1,   /* sum and ReLU */
  FUSED_CONV_RELU = 2,  /* convolution and ReLU, where one follows the other */
  FUSED_NORM_RELU = 4,  /* batch norm and ReLU, batch norm and sum and ReLU */
  FUSED_FOLD = 8,       /* batch norm is folded into the convolution before it */
  FUSED_WINOGRAD = 16,  /* convolutions of 3 x 3 by F(4x4,3x3) or F(2x4,3x3) */
  FUSED_STEM = 32,      /* the first convolution, ReLU, max pooling */
  FUSED_HEAD = 64,      /* the mean of each channel and the linear layer */
  FUSED_RESIDUAL = 128, /* the end of a residual block: convolution, shortcut, sum, ReLU */
  FUSED_GRAPH = 256,    /* one CUDA graph */
};

enum { FUSED_FOLDED = FUSED_ADD_RELU | FUSED_CONV_RELU | FUSED_FOLD, FUSED_ENDS = FUSED_STEM | FUSED_HEAD };

/* ----------------------------------------------------------------------------------------------------------- graphs */

static inline int fused_winograd_fits(const Node *first, const Node *second) {
  Error err;
  (void)second;
  return conv2d_winograd_op.method->fits(conv2d_op_shape(first, 1), &err) == 0;
}

/* The kernels of float32. */
static inline void fused_float_kernels(Graph *g, unsigned fused) {
  const Fusion winograd = {&conv2d_op, &activation_ops[ACTIVATION_RELU], &conv2d_relu_winograd_op, &relu_passed_op,
                           fused_winograd_fits};
  const Fusion gemm = {&conv2d_op, &activation_ops[ACTIVATION_RELU], &conv2d_relu_gemm_op, &relu_passed_op,
                       conv2d_relu_op_fits};
  if (fused & FUSED_WINOGRAD) graph_fuse(g, &winograd, 1);
  if (fused & FUSED_CONV_RELU) graph_fuse(g, &gemm, 1);
  for (int i = 0; i < g->count; i++) {
    if (g->nodes[i].op != &conv2d_op) continue;
    const int wins = (fused & FUSED_WINOGRAD) && fused_winograd_fits(&g->nodes[i], NULL);
    graph_replace(&g->nodes[i], wins ? &conv2d_winograd_op.op : &conv2d_implicit_gemm_op.op);
  }
}

/* The kernels of 16 bits read a bias of every filter that they compute, and filters come in eights. */
static inline int fused_half_takes(const Node *conv) {
  const Conv2dShape s = conv2d_op_shape(conv, 1);
  return conv2d_is_dense(s) && s.k % HALF_RUN == 0;
}

/* In the place of phase 3's where they do the same. `more` (count) come before all of them. */
static inline void fused_half_kernels(Graph *g, DType type, const Lowering *more, int count) {
  enum { OWN = 5, CNN = sizeof cnn_lowerings / sizeof *cnn_lowerings };
  const Lowering own[OWN] = {{&conv2d_op, &conv2d_infer_half_op, 1, 0, fused_half_takes},
                             LOWER_CONV2D_RELU,
                             LOWER_RESIDUAL_END,
                             LOWER_ADD_RELU_ONE,
                             LOWER_STEM_POOL};
  Lowering *all = (Lowering *)xmalloc((size_t)(count + OWN + CNN) * sizeof *all);
  if (count > 0) memcpy(all, more, (size_t)count * sizeof *all);
  memcpy(all + count, own, sizeof own);
  memcpy(all + count + OWN, cnn_lowerings, sizeof cnn_lowerings);
  g->lowerings = all;
  g->lowering_count = count + OWN + CNN;
  graph_lower(g, type);
  g->lowerings = NULL;
  g->lowering_count = 0;
  free(all);
  stem_pool_read_pictures(g);
  pool_linear_read_half(g);
}

/* Whether a kernel with an epilogue takes the convolution. */
static inline int fused_half_fits(const Node *conv, const Node *second) {
  (void)second;
  return fused_half_takes(conv);
}

/* Of the end of a residual block the bias is the third parameter: there must be one. */
static inline int fused_end_fits(const Node *conv, const Node *second) {
  return conv->params == 2 && conv2d_relu_op_fits(conv, second);
}
static inline int fused_half_end_fits(const Node *conv, const Node *second) {
  return conv->params == 2 && fused_half_fits(conv, second);
}

/* What is computed together, of a network whose batch norms are folded already, or of the trained one. */
static inline void fused_together(Graph *g, FusedType type, unsigned fused) {
  const int half = type == FUSED_FP16 || type == FUSED_BF16;
  static const Fusion head[] = {FUSE_LINEAR}, sum[] = {FUSE_ADD_RELU};
  static const Fusion norm[] = {FUSE_BATCH_NORM_RELU, FUSE_BATCH_NORM_ADD_RELU};
  const Fusion end = {&conv2d_op, &add_relu_op, &residual_end_op, &residual_add_passed_op,
                      half ? fused_half_end_fits : fused_end_fits};
  const Fusion conv = {&conv2d_op, &activation_ops[ACTIVATION_RELU], &conv2d_relu_op, &relu_passed_op,
                       half ? fused_half_fits : conv2d_relu_op_fits};
  if (fused & FUSED_STEM) graph_fuse_chains(g, &stem_pool_chain, 1);
  if (fused & FUSED_HEAD) graph_fuse_chains(g, &pool_linear_chain, 1);
  graph_fuse(g, head, 1);
  if (fused & FUSED_ADD_RELU) graph_fuse(g, sum, 1);
  if (fused & FUSED_NORM_RELU) graph_fuse(g, norm, 2);
  if (fused & FUSED_RESIDUAL) {
    graph_fuse(g, &end, 1);
    residual_ends_finish(g);
  }
  if ((fused & FUSED_CONV_RELU) && type != FUSED_FP32) graph_fuse(g, &conv, 1);
}

/* In which layout and by which kernels. */
static inline void fused_kernels_with(Graph *g, FusedType type, unsigned fused, const Lowering *more, int count) {
  if (type == FUSED_FP32) fused_float_kernels(g, fused);
  if (type == FUSED_TF32) graph_channels_last(g);
  if (type == FUSED_FP16 || type == FUSED_BF16)
    fused_half_kernels(g, type == FUSED_FP16 ? DTYPE_FP16 : DTYPE_BF16, more, count);
}

static inline void fused_rewrite(Graph *g, FusedType type, unsigned fused) {
  fused_together(g, type, fused);
  fused_kernels_with(g, type, fused, NULL, 0);
}

/* ------------------------------------------------------------------------------------------------------- parameters */

/* Where the parameters of the folded network are, by their names. */
typedef struct FusedSource {
  const float *(*find)(const void *state, const char *name, size_t *count); /* on the host; NULL: there is none */
  const void *state;
} FusedSource;

/* The nearest TF32: 10 bits of fraction. */
static inline float fused_round_tf32(float x) {
  const uint32_t bits = half_float_bits(x);
  return (bits & 0x7F800000) == 0x7F800000 ? x : half_bits_float((bits + 0x1000) & 0xFFFFE000);
}

/* Weights (K,C,R,S) to (K,R,S,C), as TF32. */
static inline void fused_channels_last(float *w, const Param *p) {
  const size_t k = p->dim[0], c = p->dim[1], pixels = p->dim[2] * p->dim[3];
  float *from = (float *)xmalloc(p->count * sizeof *from);
  memcpy(from, w, p->count * sizeof *from);
  for (size_t i = 0; i < k; i++)
    for (size_t j = 0; j < c; j++)
      for (size_t q = 0; q < pixels; q++)
        w[(i * pixels + q) * c + j] = fused_round_tf32(from[(i * c + j) * pixels + q]);
  free(from);
}

/* Adds the bias of the shortcut's convolution, whose weight the node has, to its own. */
static inline void fused_add_bias(float *bias, size_t filters, const Node *node, FusedSource source) {
  char name[sizeof node->param[0].name];
  size_t count = 0;
  const char *weight = node->param[RESIDUAL_END_ADDED].name;
  snprintf(name, sizeof name, "%.*s.bias", (int)(strlen(weight) - strlen(".weight")), weight);
  const float *more = source.find(source.state, name, &count);
  for (size_t i = 0; more != NULL && i < count && i < filters; i++) bias[i] += more[i];
}

/* Parameter k of the node, which has p->count numbers. -1: the source has no such parameter. */
static inline int fused_fill_one(float *values, const Node *node, int k, FusedSource source, Error *err) {
  const Param *p = &node->param[k];
  const int end =
      node->op == &residual_end_op || node->op == &residual_end_tf32_op || node->op == &residual_end_half_op;
  size_t count = 0;
  const float *same = source.find(source.state, p->name, &count);
  if (end && k == RESIDUAL_END_ADDED && same == NULL) {
    for (size_t i = 0; i < p->count; i++) values[i] = i % (RESIDUAL_END_IDENTITY + 1) == 0;
  } else if (same != NULL && p->bytes > 0 && count >= (p->bytes + sizeof *values - 1) / sizeof *values) {
    memcpy(values, same, p->bytes); /* a constant of any type */
  } else if (same == NULL || count != p->count) {
    return error_set(err, "the trained network has no parameter %s of %zu numbers", p->name, p->count);
  } else {
    memcpy(values, same, p->count * sizeof *values);
    if (end && k == RESIDUAL_END_BIAS) fused_add_bias(values, p->count, node, source);
  }
  if (p->rank == 4 && graph_is_channels_last(node)) fused_channels_last(values, p);
  return 0;
}

/* The parameters of `m`, and their copies of 16 bits. -1: one is missing. */
static inline int fused_fill(Model *m, FusedSource source, Error *err) {
  const size_t all = m->parameter_count + m->buffer_count;
  float *host = (float *)xcalloc(all + 1, sizeof *host);
  int node = 0, index = 0, status = 0;
  const Param *p;
  while (status == 0 && (p = model_next_param(m, &node, &index)) != NULL)
    if (p->count > 0)
      status = fused_fill_one(batch_norm2d_fold_at(m, host, p), &m->graph->nodes[node], index - 1, source, err);
  if (status == 0) {
    device_upload(m->context.device, m->parameters, host, m->parameter_count * sizeof *host);
    device_upload(m->context.device, m->buffers, host + m->parameter_count, m->buffer_count * sizeof *host);
    model_narrow_weights(m); /* once: nobody changes them any more */
  }
  free(host);
  return status;
}

/* ----------------------------------------------------------------------------------------------- what a graph costs */

/* Whether the node's operation launches kernels. */
static inline int fused_node_runs(const Node *node) {
  return node->op != NULL && !(node->op->flags & (OP_PASSED | OP_ABSORBED | OP_VIEW | OP_CONSTANT));
}

static inline int fused_runs(const Graph *g) {
  int runs = 0;
  for (int i = 0; i < g->count; i++) runs += fused_node_runs(&g->nodes[i]);
  return runs;
}

/* Bytes that node i reads and writes, if each array passes once: arrays between operations, and parameters. What an
 * operation keeps for itself, such as Winograd's transforms, is not among them. */
static inline double fused_node_bytes(const Graph *g, int i, int batch) {
  const Node *node = &g->nodes[i];
  if (!fused_node_runs(node)) return 0;
  double bytes = (double)node_bytes(node) * node_samples(node, batch);
  for (int k = 0; k < node->inputs; k++) {
    const Node *x = &g->nodes[node->input[k]];
    bytes += (double)node_bytes(x) * node_samples(x, batch);
  }
  for (int k = 0; k < node->params; k++)
    bytes += (double)node->param[k].count * (node->param[k].half_channels > 0 ? 2 : 4);
  return bytes;
}

static inline double fused_graph_bytes(const Graph *g, int batch) {
  double bytes = 0;
  for (int i = 0; i < g->count; i++) bytes += fused_node_bytes(g, i, batch);
  return bytes;
}

#endif /* PHASE5_PRODUCTION_FUSED_REWRITE_CUH */
