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
#include "phase5_production/04_resnet18_fused/fused_rewrite.cuh"

typedef struct FusedRung {
  const char *name, *title;
  FusedType type;
  unsigned fused;
} FusedRung;

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

/* The rung's graph of the plain one, which stays. */
static inline Graph *fused_graph(const Graph *trained, const FusedRung *rung) {
  Graph *g = rung->fused & FUSED_FOLD ? batch_norm2d_fold_graph(trained) : graph_copy(trained);
  fused_rewrite(g, rung->type, rung->fused);
  return g;
}

/* A model on its device, and its parameters on the host. */
typedef struct FusedModel {
  const Model *model;
  float *host;
} FusedModel;

static inline const float *fused_model_find(const void *state, const char *name, size_t *count) {
  const FusedModel *own = (const FusedModel *)state;
  const Param *p = model_find_param(own->model, name);
  if (p == NULL) return NULL;
  *count = p->count;
  return batch_norm2d_fold_at(own->model, own->host, p);
}

/* The parameters of `m` by their names from `source`, which is folded where the rung is. -1: one is missing. */
static inline int fused_parameters(Model *m, const Model *source, Error *err) {
  const FusedModel own = {source, batch_norm2d_fold_host(source)};
  const FusedSource from = {fused_model_find, &own};
  const int status = fused_fill(m, from, err);
  free(own.host);
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

static inline double fused_bytes(const Fused *f) { return fused_graph_bytes(f->model.graph, f->batch); }

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
    status = fused_parameters(&f->model, folds ? &folded : trained, err);
    if (status != 0) model_close(&f->model);
  }
  if (folds) model_close(&folded);
  if (status == 0 && (rung->fused & FUSED_GRAPH) && context.device == DEVICE_GPU) fused_record(f);
  return status;
}

#endif /* PHASE5_PRODUCTION_FUSED_RUNGS_CUH */
