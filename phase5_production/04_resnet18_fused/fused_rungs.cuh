/* fused_rungs.cuh - ResNet-18 for inference, rung by rung: each rung is a graph of common/nn in which other
 * operations are computed together, and a model that holds the parameters of the trained one.
 *
 *     Fused fused;
 *     if (fused_open(&fused, fused_rung("fp16_graph"), &trained, batch, &err) != 0) die("%s", err.message);
 *     ... fill model_input(&fused.model, 0) with pictures (batch,3,H,W) ...
 *     fused_infer(&fused);                             // logits: fused_logits(&fused), (batch, classes)
 *     fused_close(&fused);
 *
 * What each rung does stands in fused_rungs[]. All of them take float32 pictures and give float32 logits.
 */
#ifndef PHASE5_PRODUCTION_FUSED_RUNGS_CUH
#define PHASE5_PRODUCTION_FUSED_RUNGS_CUH

#include "common/nn/step_graph.h"
#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_fold.cuh"
#include "phase3_cnn/half_ops.cuh"
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

typedef struct FusedRung {
  const char *name, *title;
  FusedType type;
  unsigned fused;
} FusedRung;

enum { FUSED_FOLDED = FUSED_ADD_RELU | FUSED_CONV_RELU | FUSED_FOLD, FUSED_ENDS = FUSED_STEM | FUSED_HEAD };

#define FUSED_HALF_RUNGS(prefix, type)                                                                             \
  {prefix "_none", "one kernel per operation", type, 0}, {prefix "_add_relu", "add + ReLU", type, FUSED_ADD_RELU}, \
      {prefix "_norm_relu", "batch norm + ReLU", type, FUSED_ADD_RELU | FUSED_CONV_RELU | FUSED_NORM_RELU},        \
      {prefix "_fold", "conv + batch norm + ReLU", type, FUSED_FOLDED},                                            \
      {prefix "_stem", "conv + ReLU + max pool", type, FUSED_FOLDED | FUSED_STEM},                                 \
      {prefix "_head", "average pool + linear", type, FUSED_FOLDED | FUSED_ENDS},                                  \
      {prefix "_residual", "conv + shortcut + ReLU", type, FUSED_FOLDED | FUSED_ENDS | FUSED_RESIDUAL},            \
      {prefix "_graph", "one CUDA graph", type, FUSED_FOLDED | FUSED_ENDS | FUSED_RESIDUAL | FUSED_GRAPH},

static const FusedRung fused_rungs[] = {
    {"none", "one kernel per operation", FUSED_FP32, 0},
    {"add_relu", "add + ReLU", FUSED_FP32, FUSED_ADD_RELU},
    {"conv_relu", "conv + ReLU: there is none", FUSED_FP32, FUSED_ADD_RELU | FUSED_CONV_RELU},
    {"norm_relu", "batch norm + ReLU", FUSED_FP32, FUSED_ADD_RELU | FUSED_CONV_RELU | FUSED_NORM_RELU},
    {"fold", "conv + batch norm + ReLU", FUSED_FP32, FUSED_FOLDED},
    {"winograd", "Winograd where it wins", FUSED_FP32, FUSED_FOLDED | FUSED_WINOGRAD},
    {"graph", "one CUDA graph", FUSED_FP32, FUSED_FOLDED | FUSED_WINOGRAD | FUSED_GRAPH},
    {"tf32_fold", "NHWC, tensor cores", FUSED_TF32, FUSED_FOLDED | FUSED_ENDS},
    {"tf32_residual", "conv + shortcut + ReLU", FUSED_TF32, FUSED_FOLDED | FUSED_ENDS | FUSED_RESIDUAL},
    {"tf32_graph", "one CUDA graph", FUSED_TF32, FUSED_FOLDED | FUSED_ENDS | FUSED_RESIDUAL | FUSED_GRAPH},
    FUSED_HALF_RUNGS("fp16", FUSED_FP16) FUSED_HALF_RUNGS("bf16", FUSED_BF16)};

enum { FUSED_RUNGS = sizeof fused_rungs / sizeof *fused_rungs };

static inline const char *fused_type_name(FusedType type) {
  static const char *const names[] = {"fp32", "tf32", "fp16", "bf16"};
  return names[type];
}

/* By its name; NULL: there is none. */
static inline const FusedRung *fused_rung(const char *name) {
  for (int i = 0; i < FUSED_RUNGS; i++)
    if (strcmp(fused_rungs[i].name, name) == 0) return &fused_rungs[i];
  return NULL;
}

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

/* All nodes between the pictures and the logits become those of TF32. */
static inline void fused_tf32_kernels(Graph *g) {
  static const Op *const twins[][2] = {{&conv2d_op, &conv2d_tf32_op},
                                       {&conv2d_relu_op, &conv2d_relu_tf32_op},
                                       {&residual_end_op, &residual_end_tf32_op},
                                       {&stem_pool_op, &stem_pool_tf32_op},
                                       {&pool_linear_op, &pool_linear_tf32_op}};
  for (int i = 0; i < g->count; i++)
    for (size_t t = 0; t < sizeof twins / sizeof *twins; t++)
      if (g->nodes[i].op == twins[t][0]) graph_replace(&g->nodes[i], twins[t][1]);
}

/* In the place of phase 3's where they do the same. */
static inline void fused_half_kernels(Graph *g, DType type) {
  static Lowering lowerings[8 + sizeof cnn_lowerings / sizeof *cnn_lowerings] = {
      LOWER_CONV2D_INFER, LOWER_CONV2D_RELU, LOWER_RESIDUAL_END, LOWER_ADD_RELU_ONE, LOWER_STEM_POOL};
  memcpy(lowerings + 5, cnn_lowerings, sizeof cnn_lowerings);
  g->lowerings = lowerings;
  g->lowering_count = 5 + (int)(sizeof cnn_lowerings / sizeof *cnn_lowerings);
  graph_lower(g, type);
  stem_pool_read_pictures(g);
  pool_linear_read_half(g);
}

/* What a rung computes together, of a network whose batch norms are folded already, or of the trained one. */
static inline void fused_rewrite(Graph *g, const FusedRung *rung) {
  static const Fusion head[] = {FUSE_LINEAR}, sum[] = {FUSE_ADD_RELU}, conv[] = {FUSE_CONV2D_RELU};
  static const Fusion norm[] = {FUSE_BATCH_NORM_RELU, FUSE_BATCH_NORM_ADD_RELU}, end[] = {FUSE_CONV2D_ADD_RELU};
  const unsigned fused = rung->fused;
  if (fused & FUSED_STEM) graph_fuse_chains(g, &stem_pool_chain, 1);
  if (fused & FUSED_HEAD) graph_fuse_chains(g, &pool_linear_chain, 1);
  graph_fuse(g, head, 1);
  if (fused & FUSED_ADD_RELU) graph_fuse(g, sum, 1);
  if (fused & FUSED_NORM_RELU) graph_fuse(g, norm, 2);
  if (fused & FUSED_RESIDUAL) {
    graph_fuse(g, end, 1);
    residual_ends_finish(g);
  }
  if ((fused & FUSED_CONV_RELU) && rung->type != FUSED_FP32) graph_fuse(g, conv, 1);
  if (rung->type == FUSED_FP32) fused_float_kernels(g, fused);
  if (rung->type == FUSED_TF32) fused_tf32_kernels(g);
  if (rung->type == FUSED_FP16 || rung->type == FUSED_BF16)
    fused_half_kernels(g, rung->type == FUSED_FP16 ? DTYPE_FP16 : DTYPE_BF16);
}

/* The rung's graph of the plain one, which stays. */
static inline Graph *fused_graph(const Graph *trained, const FusedRung *rung) {
  Graph *g = rung->fused & FUSED_FOLD ? batch_norm2d_fold_graph(trained) : graph_copy(trained);
  fused_rewrite(g, rung);
  return g;
}

/* ------------------------------------------------------------------------------------------------------- parameters */

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
static inline void fused_add_bias(float *bias, const Node *node, const Model *source, const float *host) {
  char name[sizeof node->param[0].name];
  const char *weight = node->param[RESIDUAL_END_ADDED].name;
  snprintf(name, sizeof name, "%.*s.bias", (int)(strlen(weight) - strlen(".weight")), weight);
  const Param *p = model_find_param(source, name);
  for (size_t i = 0; p != NULL && i < p->count; i++) bias[i] += host[p->offset + i];
}

/* The parameters of `m` by their names from `source`, which is folded where the rung is. -1: one is missing. */
static inline int fused_parameters(Model *m, const Model *source, FusedType type, Error *err) {
  float *from = batch_norm2d_fold_host(source), *to = batch_norm2d_fold_host(m);
  int node = 0, index = 0, status = 0;
  const Param *p;
  while (status == 0 && (p = model_next_param(m, &node, &index)) != NULL) {
    const Param *same = model_find_param(source, p->name);
    const Node *owner = &m->graph->nodes[node];
    const int end =
        owner->op == &residual_end_op || owner->op == &residual_end_tf32_op || owner->op == &residual_end_half_op;
    float *values = batch_norm2d_fold_at(m, to, p);
    if (end && index - 1 == RESIDUAL_END_ADDED && same == NULL) {
      for (size_t i = 0; i < p->count; i++) values[i] = i % (RESIDUAL_END_IDENTITY + 1) == 0;
    } else if (same == NULL || same->count != p->count) {
      status = error_set(err, "the trained network has no parameter %s of %zu numbers", p->name, p->count);
    } else {
      memcpy(values, batch_norm2d_fold_at(source, from, same), p->count * sizeof *values);
      if (end && index - 1 == RESIDUAL_END_BIAS) fused_add_bias(values, owner, source, from);
      if (type == FUSED_TF32 && p->rank == 4) fused_channels_last(values, p);
    }
  }
  if (status == 0) {
    device_upload(m->context.device, m->parameters, to, m->parameter_count * sizeof *to);
    device_upload(m->context.device, m->buffers, to + m->parameter_count, m->buffer_count * sizeof *to);
    model_narrow_weights(m); /* once: nobody changes them any more */
  }
  free(from);
  free(to);
  return status;
}

/* ----------------------------------------------------------------------------------------------------------- a rung */

typedef struct Fused {
  const FusedRung *rung;
  Model model;
  StepGraph graph; /* of one inference; with FUSED_GRAPH it is what runs */
  int batch;
} Fused;

/* Every kernel of one inference, in its order. */
static inline void fused_launch(const Fused *f) {
  for (int i = 0; i < f->model.graph->count; i++)
    if (f->model.graph->nodes[i].op) model_forward_node(&f->model, i, f->batch);
}

/* Records them. The first time kernels are loaded, which no recording permits. */
static inline void fused_record(Fused *f) {
  fused_launch(f);
  device_synchronize(f->model.context.device);
  step_graph_begin(&f->graph);
  fused_launch(f);
  step_graph_end(&f->graph);
}

static inline void fused_infer(Fused *f) {
  if (f->graph.exec)
    step_graph_run(&f->graph);
  else
    fused_launch(f);
}

/* Kernels of one inference: nodes of its graph. */
static inline int fused_kernels(const Fused *f) {
  cudaGraph_t recorded;
  size_t nodes = 0;
  int kernels = 0;
  fused_launch(f);
  device_synchronize(f->model.context.device);
  CUDA_CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
  fused_launch(f);
  CUDA_CHECK(cudaStreamEndCapture(cudaStreamPerThread, &recorded));
  CUDA_CHECK(cudaGraphGetNodes(recorded, NULL, &nodes));
  cudaGraphNode_t *node = (cudaGraphNode_t *)xmalloc((nodes + 1) * sizeof *node);
  CUDA_CHECK(cudaGraphGetNodes(recorded, node, &nodes));
  for (size_t i = 0; i < nodes; i++) {
    enum cudaGraphNodeType type;
    CUDA_CHECK(cudaGraphNodeGetType(node[i], &type));
    kernels += type == cudaGraphNodeTypeKernel;
  }
  free(node);
  CUDA_CHECK(cudaGraphDestroy(recorded));
  return kernels;
}

/* Bytes that node i reads and writes, if each array passes once: arrays between operations, and parameters. What an
 * operation keeps for itself, such as Winograd's transforms, is not among them. */
static inline double fused_node_bytes(const Fused *f, int i) {
  const Graph *g = f->model.graph;
  const Node *node = &g->nodes[i];
  if (node->op == NULL || (node->op->flags & (OP_PASSED | OP_ABSORBED))) return 0;
  double bytes = (double)node_bytes(node) * f->batch;
  for (int k = 0; k < node->inputs; k++) bytes += (double)node_bytes(&g->nodes[node->input[k]]) * f->batch;
  for (int k = 0; k < node->params; k++)
    bytes += (double)node->param[k].count * (node->param[k].half_channels > 0 ? 2 : 4);
  return bytes;
}

static inline double fused_bytes(const Fused *f) {
  double bytes = 0;
  for (int i = 0; i < f->model.graph->count; i++) bytes += fused_node_bytes(f, i);
  return bytes;
}

static inline const float *fused_logits(const Fused *f) {
  return model_output(&f->model, f->model.graph->losses[0].node);
}

static inline void fused_close(Fused *f) {
  if (f->graph.exec) step_graph_close(&f->graph);
  model_close(&f->model);
}

/* The rung on the device of the trained model, whose graph has every operation by itself; `batch` pictures at a time.
 * -1 as model_open(). */
static inline int fused_open(Fused *f, const FusedRung *rung, const Model *trained, int batch, Error *err) {
  Model folded;
  Context context = trained->context;
  context.training = 0;
  memset(f, 0, sizeof *f);
  f->rung = rung;
  f->batch = batch;
  const int folds = (rung->fused & FUSED_FOLD) != 0;
  if (folds && batch_norm2d_fold_open(&folded, batch_norm2d_fold_graph(trained->graph), trained, 1, err) != 0)
    return -1;
  int status = model_open(&f->model, fused_graph(trained->graph, rung), context, NULL, batch, MODEL_INFER, err);
  if (status == 0) {
    status = fused_parameters(&f->model, folds ? &folded : trained, rung->type, err);
    if (status != 0) model_close(&f->model);
  }
  if (folds) model_close(&folded);
  if (status == 0 && (rung->fused & FUSED_GRAPH) && context.device == DEVICE_GPU) fused_record(f);
  return status;
}

#endif /* PHASE5_PRODUCTION_FUSED_RUNGS_CUH */
