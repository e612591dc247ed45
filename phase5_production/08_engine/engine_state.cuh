/* engine_state.cuh - what an Engine (engine.h) holds: the source, the weights, and a Model for each height and width
 * that has been asked for. The Model of the largest size owns the memory; the others borrow it. */
#ifndef PHASE5_PRODUCTION_ENGINE_STATE_CUH
#define PHASE5_PRODUCTION_ENGINE_STATE_CUH

#include "common/nn/implementation.h"
#include "common/nn/step_graph.h"
#include "phase5_production/08_engine/engine_blocks.cuh"
#include "phase5_production/08_engine/engine_passes.cuh"
#include "phase5_production/08_engine/engine_source.cuh"

enum { ENGINE_SHAPES = 8, ENGINE_RECORDED = 32, ENGINE_GROUP = 8, ENGINE_LANES = 64 };

/* An inference of so many samples as one CUDA graph. */
typedef struct EngineRecorded {
  int batch;
  long runs, used;
  StepGraph graph;
} EngineRecorded;

typedef struct EngineShape {
  int height, width;
  long used;
  Model model;              /* of max_batch samples, or of `group` */
  int borrows;              /* its arena and its trained parameters belong to another shape */
  EnginePlans plans;        /* on a CPU */
  int group;                /* samples of a launch, at most; 0: all of a batch */
  int whole;                /* groups are always full: batch_invariant */
  Model lane[ENGINE_LANES]; /* on a CPU: one for each further thread, which computes other groups */
  int lanes;
  float *x[ENGINE_MAX_VALUES], *y[ENGINE_MAX_VALUES]; /* with a group: (max_batch, ...) on the device */
  EngineRecorded recorded[ENGINE_RECORDED];
  int recordings;
} EngineShape;

/* What a caller knows an input or output by. */
typedef struct EngineNamed {
  char name[256];
  EngineValue value; /* -1: the batch, and a free height or width */
} EngineNamed;

struct EngineState {
  EngineOptions options;
  Context context;
  EngineSource source;
  char recipe[32];
  char choices[2 * IMPLEMENTATION_TEXT];
  EngineShape *shape[ENGINE_SHAPES];
  int shapes;
  EngineNamed x[ENGINE_MAX_VALUES], y[ENGINE_MAX_VALUES];
  int inputs, outputs;
  int needs_groups; /* batch_invariant: some kernel's order depends on the batch */
  int fixed_batch;  /* of a model whose first size is a number; 0: any */
  long runs;
  EnginePasses passes; /* of the first shape */
  char name[PATH_MAX];
};

/* ----------------------------------------------------------------------------------------------- inputs and outputs */

static inline int engine_output_node(const Graph *g, int i) {
  return i < g->loss_count ? g->losses[i].node : g->outputs[i - g->loss_count];
}
static inline int engine_graph_outputs(const Graph *g) { return g->loss_count + g->output_count; }

static inline int engine_input_node(const Graph *g, int i) {
  for (int n = 0; n < g->count; n++)
    if (g->nodes[n].op == NULL && i-- == 0) return n;
  return GRAPH_ERROR;
}

/* Floats of a batch. */
static inline size_t engine_floats(const Graph *g, int node, int batch) {
  return shape_count(g->nodes[node].shape) * (size_t)node_samples(&g->nodes[node], batch);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

/* Whether both models have the same trained parameters at the same places. */
static inline int engine_same_parameters(const Model *a, const Model *b) {
  int node_a = 0, index_a = 0, node_b = 0, index_b = 0;
  if (a->parameter_count != b->parameter_count || a->half_runs != b->half_runs || a->half_weights != b->half_weights)
    return 0;
  for (;;) {
    const Param *p = model_next_param(a, &node_a, &index_a), *q = model_next_param(b, &node_b, &index_b);
    while (p && !p->trained && p->half_channels == 0) p = model_next_param(a, &node_a, &index_a);
    while (q && !q->trained && q->half_channels == 0) q = model_next_param(b, &node_b, &index_b);
    if (p == NULL || q == NULL) return p == q;
    if (strcmp(p->name, q->name) != 0 || p->count != q->count || p->trained != q->trained ||
        (p->trained && p->offset != q->offset) || p->half_channels != q->half_channels ||
        p->half_offset != q->half_offset)
      return 0;
  }
}

/* A prepared model works in the memory of `owner`: its own are only buffers, which may differ from size to size. */
static inline void engine_borrow(Model *m, const Model *owner) {
  m->arena = owner->arena;
  m->parameters = owner->parameters;
  m->half = owner->half;
  m->half_table = owner->half_table;
  m->totals = owner->totals;
  m->buffers = (float *)device_alloc(m->context.device, m->buffer_count * sizeof(float));
}

static inline void engine_shape_close(EngineShape *shape) {
  const Device device = shape->model.context.device;
  for (int i = 0; i < shape->recordings; i++) step_graph_close(&shape->recorded[i].graph);
  for (int i = 0; i < shape->lanes; i++) {
    shape->lane[i].parameters = shape->lane[i].buffers = NULL; /* the model's */
    model_close(&shape->lane[i]);
  }
  for (int i = 0; i < ENGINE_MAX_VALUES; i++) {
    if (shape->x[i]) device_free(device, shape->x[i]);
    if (shape->y[i]) device_free(device, shape->y[i]);
  }
  if (shape->borrows) {
    shape->model.arena = NULL;
    shape->model.parameters = NULL;
    shape->model.half = NULL;
    shape->model.half_table = NULL;
    shape->model.totals = NULL;
  }
  if (shape->model.graph) model_close(&shape->model);
  engine_plans_free(&shape->plans);
  free(shape);
}

/* ----------------------------------------------------------------------------------------------------- an inference */

static inline void engine_launch_nodes(const Model *m, int batch) {
  for (int i = 0; i < m->graph->count; i++)
    if (fused_node_runs(&m->graph->nodes[i])) model_forward_node(m, i, batch);
}

/* Samples first ... first + group - 1 of input or output `node` between the model and the arrays of all samples. Where
 * a group must be full, what is there from the last one fills it up: nobody reads the answers. */
static inline void engine_copy_group(const EngineShape *shape, const Model *m, int node, float *all, int first,
                                     int batch, int in) {
  const size_t each = shape_count(m->graph->nodes[node].shape);
  const int most = batch - first < shape->group ? batch - first : shape->group;
  float *own = model_output(m, node);
  if (in) device_copy(m->context.device, own, all + (size_t)first * each, (size_t)most * each * sizeof(float));
  if (!in) device_copy(m->context.device, all + (size_t)first * each, own, (size_t)most * each * sizeof(float));
}

static inline void engine_launch_group(const EngineShape *shape, const Model *m, int first, int batch) {
  const Graph *g = m->graph;
  for (int i = 0; engine_input_node(g, i) >= 0; i++)
    engine_copy_group(shape, m, engine_input_node(g, i), shape->x[i], first, batch, 1);
  engine_launch_nodes(m, shape->whole || batch - first > shape->group ? shape->group : batch - first);
  for (int i = 0; i < engine_graph_outputs(g); i++)
    engine_copy_group(shape, m, engine_output_node(g, i), shape->y[i], first, batch, 0);
}

typedef struct EngineGroups {
  const EngineShape *shape;
  int batch;
} EngineGroups;

/* Group `task`, by a thread in the model of its own. */
static inline void engine_launch_lane(void *arg, long task, int thread) {
  const EngineGroups *all = (const EngineGroups *)arg;
  const EngineShape *shape = all->shape;
  const Model *m = thread > 0 ? &shape->lane[thread - 1] : &shape->model;
  engine_launch_group(shape, m, (int)task * shape->group, all->batch);
}

/* On a CPU each thread takes whole groups, through all layers, if there are enough of them; else
 * all threads work on one. */
static inline void engine_launch_groups(const EngineShape *shape, int batch) {
  const int groups = (batch + shape->group - 1) / shape->group;
  if (shape->lanes > 0 && groups > shape->lanes) {
    EngineGroups all = {shape, batch};
    cpu_parallel(groups, shape->lanes + 1, engine_launch_lane, &all);
    return;
  }
  for (int i = 0; i < groups; i++) engine_launch_group(shape, &shape->model, i * shape->group, batch);
}

static inline void engine_launch(const EngineShape *shape, int batch) {
  model_use_device(&shape->model);
  if (shape->group > 0)
    engine_launch_groups(shape, batch);
  else
    engine_launch_nodes(&shape->model, batch);
}

/* Kernels among the nodes of a recording of one inference. */
static inline int engine_recorded_kernels(const EngineShape *shape, int batch) {
  cudaGraph_t recorded;
  size_t nodes = 0;
  int kernels = 0;
  CUDA_CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
  engine_launch(shape, batch);
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

/* The recording of this batch, empty where there is none; the one that was used longest ago goes. */
static inline EngineRecorded *engine_recording(EngineShape *shape, int batch, long now) {
  EngineRecorded *oldest = &shape->recorded[0];
  for (int i = 0; i < shape->recordings; i++) {
    if (shape->recorded[i].batch == batch) return &shape->recorded[i];
    if (shape->recorded[i].used < oldest->used) oldest = &shape->recorded[i];
  }
  EngineRecorded *own = shape->recordings < ENGINE_RECORDED ? &shape->recorded[shape->recordings++] : oldest;
  step_graph_close(&own->graph);
  own->batch = batch;
  own->runs = 0;
  own->used = now;
  return own;
}

/* The first inference of a batch loads its kernels, which no recording permits, and is an answer already; the second
 * one is recorded. */
static inline void engine_run_recorded(EngineShape *shape, EngineRecorded *own, int batch) {
  if (own->runs++ == 0) {
    engine_launch(shape, batch);
    return;
  }
  if (own->graph.exec == NULL) {
    step_graph_begin(&own->graph);
    engine_launch(shape, batch);
    step_graph_end(&own->graph);
  }
  step_graph_run(&own->graph);
}

/* One inference of what lies in the inputs. */
static inline void engine_infer(struct EngineState *e, EngineShape *shape, int batch) {
  e->runs++;
  shape->used = e->runs;
  if (e->options.device != DEVICE_GPU || !e->options.cuda_graphs) {
    engine_launch(shape, batch);
    return;
  }
  model_use_device(&shape->model);
  EngineRecorded *recorded = engine_recording(shape, batch, e->runs);
  recorded->used = e->runs;
  engine_run_recorded(shape, recorded, batch);
}

#endif /* PHASE5_PRODUCTION_ENGINE_STATE_CUH */
