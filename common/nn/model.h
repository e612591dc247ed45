/* model.h - a graph with memory: parameters, gradients, the optimizer's state, and one arena for all that passes by.
 *
 *     Model model;
 *     if (model_open(&model, graph, context, &sgd, max_batch, MODEL_TRAIN, &err) != 0) ...
 *     model_init(&model, seed);
 *     ... fill model_input(&model, 0) and model_targets(&model, 0) ...
 *     model_train_step(&model, batch);
 *
 * Everything is allocated once, by model_open(), which refuses what does not fit before it allocates anything. A step
 * neither allocates nor waits: losses are added up on the device, and model_read_totals() fetches the sums. All state
 * is in the Model, so several models, in several host threads and on several GPUs, do not meet.
 *
 * All trained parameters lie in one array, those with weight decay first, their gradients and the optimizer's slots in
 * arrays of the same layout: an update is one launch.
 */
#ifndef COMMON_NN_MODEL_H
#define COMMON_NN_MODEL_H

#include "common/nn/average.h"
#include "common/nn/clip.h"
#include "common/nn/half_weights.h"
#include "common/nn/loss_scale.h"
#include "common/nn/mixup.h"
#include "common/nn/plan.h"
#include "common/nvtx.h"

/* Sums since model_reset_totals(), over the samples of a loss. */
typedef struct Totals {
  double loss, correct;
} Totals;

typedef struct Model {
  Graph *graph; /* owned */
  Context context;
  ModelUse use;
  int max_batch;
  Plan plan;
  unsigned char *arena;

  size_t parameter_count, decayed_count; /* trained floats; the first decayed_count of them are decayed */
  size_t buffer_count;                   /* floats that are not trained */
  float *parameters, *gradients, *buffers;
  const Optimizer *optimizer;
  float *slot[OPTIMIZER_MAX_SLOTS];
  float *workspace; /* of the optimizer; NULL where it needs none */
  Hyper hyper;
  float clip_norm, clip_value; /* what gradients are clipped to; 0: they are not */
  double *clip_partial;        /* (CLIP_BLOCKS) */
  float *accumulated;          /* sums of gradients over the parts of a step; NULL before model_accumulate_open() */
  int accumulates;             /* whether there will be such sums: for model_bytes() */
  float *average, *average_buffers; /* of the parameters and the buffers over the steps; NULL before
                                       model_average_open() */
  uint16_t *half;                   /* of a lowered graph on a GPU: copies of its weights (half_weights.h); else NULL */
  HalfWeight *half_table;
  int half_weights;      /* entries of the table */
  size_t half_runs;      /* of all copies */
  LossScale *loss_scale; /* of a graph lowered to fp16; else NULL */
  int whole;             /* samples of the step that this batch is a part of; 0: the batch is all of it */

  float *losses[GRAPH_MAX_LOSSES]; /* where model_score() writes a float per sample; may be set elsewhere */
  double *totals;                  /* (losses, 2): sum of losses, number of right answers; behind them MODEL_NORMS */
} Model;

/* In totals: the sum over steps of the gradients' norm, where clip_norm has it computed. */
enum { MODEL_NORMS = 2 * GRAPH_MAX_LOSSES, MODEL_TOTALS };

/* --------------------------------------------------------------------------------------------------------- kernels */

/* y = a + b; y may be one of them. */
static inline void add_cpu(float *y, const float *a, const float *b, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > 65536)
  for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

#ifdef __CUDACC__
static __global__ void add_kernel(float *y, const float *a, const float *b, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a[i] + b[i];
}

static inline void add_gpu(float *y, const float *a, const float *b, size_t n) {
  if (n == 0) return;
  add_kernel<<<(unsigned)((n + 255) / 256), 256>>>(y, a, b, n);
  CUDA_CHECK_LAUNCH();
}
#endif

/* ------------------------------------------------------------------------------------------------------- addresses */

static inline void *model_array(const Model *m, int array) {
  return array == PLAN_NONE ? NULL : m->arena + m->plan.arrays[array].offset;
}

/* The output of a node, (batch, shape); valid as long as the plan keeps it. */
static inline float *model_output(const Model *m, int node) {
  return (float *)model_array(m, m->plan.node[node].output);
}

/* The i-th input of the graph. */
static inline int model_input_node(const Model *m, int i) {
  int inputs = 0;
  for (int n = 0; n < m->graph->count; n++)
    if (m->graph->nodes[n].op == NULL && inputs++ == i) return n;
  die("the network has no input %d; it has %d, counted from 0", i, inputs);
}
static inline float *model_input(const Model *m, int i) { return model_output(m, model_input_node(m, i)); }

static inline size_t model_input_width(const Model *m, int i) {
  return shape_count(graph_shape(m->graph, model_input_node(m, i)));
}

/* Of loss l: what it compares, the output it looks at and how wide that is, what it saved (probabilities). */
static inline void *model_targets(const Model *m, int l) { return model_array(m, m->plan.targets[l]); }
static inline int *model_labels(const Model *m) { return (int *)model_targets(m, 0); }
static inline int model_classes(const Model *m) {
  return (int)shape_count(graph_shape(m->graph, m->graph->losses[0].node));
}
static inline float *model_logits(const Model *m, int l) { return model_output(m, m->graph->losses[l].node); }
static inline float *model_loss_saved(const Model *m, int l) { return (float *)model_array(m, m->plan.loss_saved[l]); }

static inline float *model_param(const Model *m, const Param *p) {
  return (p->trained ? m->parameters : m->buffers) + p->offset;
}
static inline float *model_gradient(const Model *m, const Param *p) {
  return p->trained && m->gradients ? m->gradients + p->offset : NULL;
}

/* -------------------------------------------------------------------------------------------------- open and close */

/* A parameter that no loss depends on has the gradient 0: it stays as it is where nothing decays it. */
static inline void model_keep_unused(Model *m) {
  for (int i = 0; i < m->graph->count && m->use == MODEL_TRAIN; i++)
    for (int k = 0; k < m->graph->nodes[i].params && !m->plan.node[i].trains; k++)
      m->graph->nodes[i].param[k].decayed = 0;
}

/* Offsets: trained and decayed, trained, not trained; node by node within each. */
static inline void model_lay_out(Model *m) {
  Graph *g = m->graph;
  for (int pass = 0; pass < 3; pass++) {
    for (int i = 0; i < g->count; i++) {
      for (int k = 0; k < g->nodes[i].params; k++) {
        Param *p = &g->nodes[i].param[k];
        const int group = !p->trained ? 2 : p->decayed ? 0 : 1;
        if (group != pass) continue;
        size_t *end = p->trained ? &m->parameter_count : &m->buffer_count;
        p->offset = *end;
        *end += p->count;
      }
    }
    if (pass == 0) m->decayed_count = m->parameter_count;
  }
}

/* Of the copies of weights that a lowered graph multiplies. On a CPU lowered operations round the weights themselves.
 * */
static inline void model_lay_out_half(Model *m) {
  for (int i = 0; i < m->graph->count && m->context.device == DEVICE_GPU; i++)
    for (int k = 0; k < m->graph->nodes[i].params; k++) {
      Param *p = &m->graph->nodes[i].param[k];
      if (p->half_channels == 0) continue;
      p->half_offset = m->half_runs * HALF_RUN;
      m->half_runs += half_weight_count((int)p->dim[0], p->half_channels, p->half_pixels) / HALF_RUN;
      m->half_weights++;
    }
}

/* Of the optimizer. */
static inline size_t model_workspace_floats(const Model *m) {
  const Optimizer *optimizer = m->optimizer;
  return optimizer && optimizer->workspace_floats ? optimizer->workspace_floats(m) : 0;
}

/* Bytes that model_open() will allocate. */
static inline double model_bytes(const Model *m) {
  const double arrays = m->use == MODEL_TRAIN ? 2.0 + m->optimizer->slots : 1.0;
  const double averages =
      m->use == MODEL_TRAIN && m->hyper.ema > 0 ? (double)(m->parameter_count + m->buffer_count) : 0;
  return (arrays + m->accumulates) * sizeof(float) * (double)m->parameter_count +
         sizeof(float) * ((double)m->buffer_count + averages) + sizeof(float) * (double)model_workspace_floats(m) +
         sizeof(uint16_t) * HALF_RUN * (double)m->half_runs + (double)m->plan.arena_bytes;
}

/* Bytes that the same graph takes where it is not trained. */
static inline double model_inference_bytes(const Model *m) {
  Plan infer;
  plan_create(&infer, m->graph, &m->context, m->max_batch, MODEL_INFER);
  const double bytes = sizeof(float) * (double)(m->parameter_count + m->buffer_count) + (double)infer.arena_bytes;
  plan_destroy(&infer);
  return bytes;
}

/* The GPU of this model becomes the thread's: memory and launches that follow are its. */
static inline void model_use_device(const Model *m) {
  ON_DEVICE(m->context.device, CUDA_CHECK(cudaSetDevice(m->context.gpu)), (void)0);
}

static inline void model_close(Model *m) {
  model_use_device(m);
  const Device device = m->context.device;
  device_free(device, m->arena);
  device_free(device, m->totals);
  device_free(device, m->parameters);
  device_free(device, m->gradients);
  device_free(device, m->buffers);
  device_free(device, m->clip_partial);
  device_free(device, m->accumulated);
  device_free(device, m->average);
  device_free(device, m->average_buffers);
  device_free(device, m->half);
  device_free(device, m->half_table);
  device_free(device, m->loss_scale);
  for (int s = 0; s < OPTIMIZER_MAX_SLOTS; s++) device_free(device, m->slot[s]);
  device_free(device, m->workspace);
  plan_destroy(&m->plan);
  graph_destroy(m->graph);
  memset(m, 0, sizeof *m);
}

/* -1 where an operation cannot be trained on batches of so many samples: it would have one value per channel, and the
 * variance of one value is 0. */
static inline int model_check_batch(const Graph *g, int batch, Error *err) {
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    if (node->op == NULL || !(node->op->flags & OP_STATISTICS)) continue;
    if (shape_count(node->shape) / (size_t)node->shape.dim[0] * (size_t)batch > 1) continue;
    error_set(err,
              "%s has the shape %s and would get a batch of %d in training, which is 1 value per channel; expected at "
              "least 2, because the variance of one value is 0",
              node->name, shape_text(node->shape).text, batch);
    return error_advise(err, "use a batch of 2 or more samples");
  }
  return 0;
}

/* There must be such a GPU. */
static inline int model_check_device(const Context *context, Error *err) {
  int count = 0;
  ON_DEVICE(
      context->device,
      {
        if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
      },
      return 0);
  if (context->gpu >= 0 && context->gpu < count) return 0;
  return error_set(err, "a model on GPU %d, and this machine has %d; GPUs are counted from 0", context->gpu, count);
}

/* A model of at most max_batch samples at a time, without memory: what model_allocate() will take can be read. The
 * graph is the model's from now on, also on failure. -1 with the builder's mistake. `optimizer` may be NULL for
 * MODEL_INFER. */
static inline int model_prepare(Model *m, Graph *graph, Context context, const Optimizer *optimizer, int max_batch,
                                ModelUse use, Error *err) {
  memset(m, 0, sizeof *m);
  int status = 0;
  if (graph->failed) status = error_set(err, "%s", graph->error.message);
  if (status == 0 && max_batch < 1) status = error_set(err, "a batch of %d; at least 1 is expected", max_batch);
  if (status == 0 && use == MODEL_TRAIN && (graph->loss_count == 0 || optimizer == NULL))
    status = error_set(err, "a network to train needs a loss and an optimizer");
  if (status == 0 && use == MODEL_TRAIN && graph->type == DTYPE_FP16 && context.device == DEVICE_GPU &&
      !(optimizer->reads & OPTIMIZER_READS_SCALE))
    status =
        error_set(err,
                  "%s on a GPU cannot skip a step whose gradients overflow, which fp16 needs; take bf16, or another "
                  "optimizer",
                  optimizer->name);
  if (status == 0 && use == MODEL_TRAIN) status = model_check_batch(graph, max_batch, err);
  if (status == 0) status = model_check_device(&context, err);
  if (status != 0) {
    graph_destroy(graph);
    return status;
  }
  m->graph = graph;
  m->context = context;
  m->use = use;
  m->max_batch = max_batch;
  m->optimizer = use == MODEL_TRAIN ? optimizer : NULL;
  model_use_device(m); /* operations may ask it what scratch they need */
  plan_create(&m->plan, graph, &context, max_batch, use);
  model_keep_unused(m);
  model_lay_out(m);
  model_lay_out_half(m);
  return 0;
}

/* "; more than half is scratch memory of conv1, 64 x (64,56,56) to (64,56,56), 12.1 GiB: take another implementation";
 * empty where no node takes so much. */
static inline void model_say_scratch(const Model *m, char *text, size_t size) {
  text[0] = '\0';
  for (int i = 0; i < m->graph->count; i++) {
    const Node *node = &m->graph->nodes[i];
    const int work = m->plan.node[i].forward_work;
    if (work == PLAN_NONE || 2.0 * (double)m->plan.arrays[work].bytes < model_bytes(m)) continue;
    const int length = snprintf(text, size, "; more than half is scratch memory of %s, %d x %s to %s, %.1f GiB",
                                node->name, m->max_batch, shape_text(graph_shape(m->graph, node->input[0])).text,
                                shape_text(node->shape).text, (double)m->plan.arrays[work].bytes / 1073741824.0);
    if (length > 0 && (size_t)length < size)
      snprintf(text + length, size - (size_t)length, ": take another implementation");
  }
}

/* The next steps begin with this scale; of those before nothing was skipped. For fp16. */
static inline void model_set_loss_scale(Model *m, float scale) {
  LossScale state;
  memset(&state, 0, sizeof state);
  state.scale = scale;
  state.steps = (int32_t)m->context.step;
  device_upload(m->context.device, m->loss_scale, &state, sizeof state);
}

/* That of the next step; 0: there is none. Waits for the device. */
static inline float model_get_loss_scale(const Model *m) {
  LossScale state;
  if (m->loss_scale == NULL) return 0;
  device_download(m->context.device, &state, m->loss_scale, sizeof state);
  return state.scale;
}

/* The copies of weights and their table, and the loss scale, of a lowered graph. */
static inline void model_allocate_half(Model *m) {
  const Device device = m->context.device;
  if (m->graph->type == DTYPE_FP16 && m->use == MODEL_TRAIN) {
    m->context.loss_scale = m->loss_scale = (LossScale *)device_alloc(device, sizeof *m->loss_scale);
    model_set_loss_scale(m, LOSS_SCALE_FIRST);
  }
  if (m->half_runs == 0) return;
  HalfWeight *table = (HalfWeight *)xcalloc((size_t)m->half_weights, sizeof *table);
  int count = 0;
  for (int i = 0; i < m->graph->count; i++)
    for (int k = 0; k < m->graph->nodes[i].params; k++) {
      const Param *p = &m->graph->nodes[i].param[k];
      if (p->half_channels == 0) continue;
      const HalfWeight weight = {model_param(m, p),        (int)p->dim[0], p->half_channels,
                                 p->half_pixels,           p->rank == 2,   p->half_offset / HALF_RUN,
                                 p->half_offset / HALF_RUN};
      table[count++] = weight;
    }
  m->half = (uint16_t *)device_alloc(device, m->half_runs * HALF_RUN * sizeof *m->half);
  m->half_table = (HalfWeight *)device_alloc(device, (size_t)count * sizeof *table);
  device_upload(device, m->half_table, table, (size_t)count * sizeof *table);
  free(table);
}

/* -1, and the model is closed, where it and `also` bytes besides are more than the device has: nothing is allocated. */
static inline int model_allocate(Model *m, double also, Error *err) {
  model_use_device(m);
  const Device device = m->context.device;
  const double gib = 1073741824.0, bytes = model_bytes(m), memory = device_memory(device);
  if (bytes + also > memory) {
    char besides[64] = "", scratch[512];
    model_say_scratch(m, scratch, sizeof scratch);
    if (also > 0) snprintf(besides, sizeof besides, ", and its data set %.1f GiB", also / gib);
    error_set(err,
              "the network would take %.1f GiB of memory%s, and the %s has %.1f GiB%s; take a smaller network, or a "
              "smaller batch",
              bytes / gib, besides, device == DEVICE_GPU ? "GPU" : "machine", memory / gib, scratch);
    model_close(m);
    return -1;
  }
  const size_t parameter_bytes = m->parameter_count * sizeof(float);
  m->parameters = (float *)device_alloc(device, parameter_bytes);
  m->buffers = (float *)device_alloc(device, m->buffer_count * sizeof(float));
  if (m->use == MODEL_TRAIN) m->gradients = (float *)device_alloc(device, parameter_bytes);
  if (m->use == MODEL_TRAIN) m->clip_partial = (double *)device_alloc(device, CLIP_BLOCKS * sizeof(double));
  for (int s = 0; m->optimizer && s < m->optimizer->slots; s++)
    m->slot[s] = (float *)device_alloc(device, parameter_bytes);
  const size_t workspace = model_workspace_floats(m);
  if (workspace > 0) m->workspace = (float *)device_alloc(device, workspace * sizeof(float));
  m->totals = (double *)device_alloc(device, MODEL_TOTALS * sizeof(double));
  m->arena = (unsigned char *)device_alloc(device, m->plan.arena_bytes);
  for (int l = 0; l < m->graph->loss_count; l++) m->losses[l] = (float *)model_array(m, m->plan.loss_each[l]);
  model_allocate_half(m);
  return 0;
}

/* Both: -1 with the builder's mistake, or with what the model would take and the device has. */
static inline int model_open(Model *m, Graph *graph, Context context, const Optimizer *optimizer, int max_batch,
                             ModelUse use, Error *err) {
  if (model_prepare(m, graph, context, optimizer, max_batch, use, err) != 0) return -1;
  return model_allocate(m, 0, err);
}

/* -------------------------------------------------------------------------------------------------- the parameters */

/* Every parameter as its Init says; the optimizer's state zero. Made on the host, so that every device starts from the
 * same bits. */
static inline void model_init(Model *m, uint64_t seed) {
  const Graph *g = m->graph;
  model_use_device(m);
  float *trained = (float *)xcalloc(m->parameter_count, sizeof(float));
  float *buffers = (float *)xcalloc(m->buffer_count, sizeof(float));
  for (int i = 0; i < g->count; i++)
    for (int k = 0; k < g->nodes[i].params; k++) {
      const Param *p = &g->nodes[i].param[k];
      p->init->fill((p->trained ? trained : buffers) + p->offset, p, seed, p->stream);
    }
  device_upload(m->context.device, m->parameters, trained, m->parameter_count * sizeof(float));
  device_upload(m->context.device, m->buffers, buffers, m->buffer_count * sizeof(float));
  for (int s = 0; s < OPTIMIZER_MAX_SLOTS; s++)
    if (m->slot[s]) device_zero(m->context.device, m->slot[s], m->parameter_count * sizeof(float));
  if (m->average) device_zero(m->context.device, m->average, m->parameter_count * sizeof(float));
  if (m->average) device_zero(m->context.device, m->average_buffers, m->buffer_count * sizeof(float));
  free(trained);
  free(buffers);
}

/* The parameters of all nodes, one after another: NULL after the last. Begin with node = index = 0. */
static inline const Param *model_next_param(const Model *m, int *node, int *index) {
  const Graph *g = m->graph;
  while (*node < g->count && *index >= g->nodes[*node].params) {
    ++*node;
    *index = 0;
  }
  return *node < g->count ? &g->nodes[*node].param[(*index)++] : NULL;
}

/* By its full name, "fc1.weight"; NULL when there is none. */
static inline const Param *model_find_param(const Model *m, const char *name) {
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(m, &node, &index)) != NULL && strcmp(p->name, name) != 0) continue;
  return p;
}

/* ---------------------------------------------------------------------------------------------------------- a step */

static inline void model_expect_batch(const Model *m, int batch) {
  if (batch < 1 || batch > m->max_batch)
    die("a batch of %d in a network made for %d; 1 to %d is expected", batch, m->max_batch, m->max_batch);
}

static inline void model_expect_training(const Model *m) {
  if (m->use != MODEL_TRAIN) die("a model for MODEL_INFER is to be trained; open it for MODEL_TRAIN");
}

/* What node i works on. */
static inline OpArrays model_arrays(const Model *m, int i, int batch, int backward) {
  const Node *node = &m->graph->nodes[i];
  const PlanNode *plan = &m->plan.node[i];
  OpArrays a;
  memset(&a, 0, sizeof a);
  a.batch = batch;
  const int x = !backward || (node->op->backward_needs & BACKWARD_NEEDS_X);
  const int y = !backward || (node->op->backward_needs & BACKWARD_NEEDS_Y);
  for (int k = 0; k < node->inputs && x; k++) a.x[k] = model_output(m, node->input[k]);
  if (y) a.y = model_output(m, i);
  for (int k = 0; k < node->params; k++) {
    a.param[k] = model_param(m, &node->param[k]);
    a.grad[k] = model_gradient(m, &node->param[k]);
    if (m->half && node->param[k].half_channels > 0) a.half[k] = m->half + node->param[k].half_offset;
  }
  a.saved = model_array(m, plan->saved);
  a.workspace = (float *)model_array(m, backward ? plan->back_work : plan->forward_work);
  if (!backward) return a;
  a.dy = (const float *)model_array(m, plan->gradient);
  for (int k = 0; k < node->inputs; k++) {
    const int own = m->plan.node[node->input[k]].gradient;
    if (plan->writes[k]) a.dx[k] = (float *)model_array(m, plan->extra[k] != PLAN_NONE ? plan->extra[k] : own);
  }
  return a;
}

/* With context.ranges: what is launched between the two belongs to "conv1 forward", for a profiler. */
static inline void model_range_begin(const Model *m, const char *what, const char *direction) {
  char name[NODE_NAME + 16];
  if (!m->context.ranges) return;
  snprintf(name, sizeof name, "%s %s", what, direction);
  nvtx_begin(name);
}

static inline void model_range_end(const Model *m) {
  if (m->context.ranges) nvtx_end();
}

static inline void model_forward_node(const Model *m, int i, int batch) {
  const OpArrays a = model_arrays(m, i, batch, 0);
  model_range_begin(m, m->graph->nodes[i].name, "forward");
  m->graph->nodes[i].op->forward(&m->context, &m->graph->nodes[i], &a);
  model_range_end(m);
}

/* sum += more: the gradients of node i, of `batch` samples. */
static inline void model_add_gradient(const Model *m, int i, float *sum, const float *more, int batch) {
  const Node *node = &m->graph->nodes[i];
  const Device device = m->context.device;
  const size_t n = shape_count(node->shape) * (size_t)batch;
  if (node->type == DTYPE_FLOAT32) {
    ON_DEVICE(device, add_gpu(sum, sum, more, n), add_cpu(sum, sum, more, n));
    return;
  }
  uint16_t *y = (uint16_t *)sum;
  const uint16_t *x = (const uint16_t *)more;
  const size_t numbers = shape_half_count(node->shape) * (size_t)batch;
  ON_DEVICE(device, HALF_CALL(node->type, half_add, y, y, x, numbers), half_add_cpu(y, y, x, numbers, node->type));
}

/* dy -> dx of every input that needs it, and the gradients of the parameters. */
static inline void model_backward_node(const Model *m, int i, int batch) {
  const Node *node = &m->graph->nodes[i];
  const PlanNode *plan = &m->plan.node[i];
  const OpArrays a = model_arrays(m, i, batch, 1);
  model_range_begin(m, node->name, "backward");
  node->op->backward(&m->context, node, &a);
  for (int k = 0; k < node->inputs; k++) {
    if (!plan->writes[k] || plan->extra[k] == PLAN_NONE) continue;
    float *sum = (float *)model_array(m, m->plan.node[node->input[k]].gradient);
    model_add_gradient(m, node->input[k], sum, a.dx[k], batch);
  }
  model_range_end(m);
}

/* Copies of the weights as they are now, for lowered operations on a GPU. */
static inline void model_narrow_weights(const Model *m) {
  if (m->half == NULL) return;
  model_range_begin(m, "weights", dtype_name(m->graph->type));
  ON_DEVICE(m->context.device,
            HALF_CALL(m->graph->type, half_weights_launch, m->half, m->half_table, m->half_weights, m->half_runs),
            (void)0);
  model_range_end(m);
}

/* Inputs -> the outputs of all nodes, as context.training says: dropout and batch norm differ. */
static inline void model_forward(const Model *m, int batch) {
  model_expect_batch(m, batch);
  model_use_device(m);
  model_narrow_weights(m);
  for (int i = 0; i < m->graph->count; i++)
    if (m->graph->nodes[i].op) model_forward_node(m, i, batch);
}

/* Outputs and targets -> losses, and the totals grow. */
static inline void model_score(const Model *m, int batch) {
  model_use_device(m);
  model_range_begin(m, "loss", "forward");
  for (int l = 0; l < m->graph->loss_count; l++) {
    const GraphLoss *loss = &m->graph->losses[l];
    const Shape shape = graph_shape(m->graph, loss->node);
    float *each = m->losses[l], *saved = model_loss_saved(m, l);
    loss->loss->forward(&m->context, each, saved, model_logits(m, l), model_targets(m, l), batch, shape);
    loss->loss->score(&m->context, m->totals + 2 * l, each, saved, model_targets(m, l), batch, shape);
  }
  model_range_end(m);
}

/* The mean of a step is over so many samples. */
static inline float model_mean_of(const Model *m, int batch) { return (float)(m->whole > 0 ? m->whole : batch); }

/* The gradient of loss l, times the loss scale of fp16: so all gradients behind it are. */
static inline void model_scale_loss_gradient(const Model *m, int l, float *dx, int batch) {
  if (m->loss_scale == NULL) return;
  const size_t n = shape_count(graph_shape(m->graph, m->graph->losses[l].node)) * (size_t)batch;
  ON_DEVICE(m->context.device, loss_scale_multiply_gpu(dx, n, m->loss_scale),
            loss_scale_multiply_cpu(dx, n, m->loss_scale));
}

/* What the losses saved -> the gradient of their weighted sum, each a mean over the batch, for what they look at. */
static inline void model_loss_gradients(const Model *m, int batch) {
  model_range_begin(m, "loss", "backward");
  for (int l = 0; l < m->graph->loss_count; l++) {
    const GraphLoss *loss = &m->graph->losses[l];
    float *dx = (float *)model_array(m, m->plan.node[loss->node].gradient);
    if (dx == NULL) continue;
    loss->loss->backward(&m->context, dx, model_loss_saved(m, l), loss->loss->needs_x ? model_logits(m, l) : NULL,
                         model_targets(m, l), loss->weight / model_mean_of(m, batch), batch,
                         graph_shape(m->graph, loss->node));
    model_scale_loss_gradient(m, l, dx, batch);
  }
  model_range_end(m);
}

/* Whether backward of this node runs in a training step. */
static inline int model_goes_back(const Model *m, int i) {
  return m->graph->nodes[i].op != NULL && m->plan.node[i].gradient != PLAN_NONE;
}

static inline void model_backward_nodes(const Model *m, int batch) {
  for (int i = m->graph->count - 1; i >= 0; i--)
    if (model_goes_back(m, i)) model_backward_node(m, i, batch);
}

/* The same for every parameter. */
static inline void model_backward(const Model *m, int batch) {
  model_expect_training(m);
  model_use_device(m);
  model_loss_gradients(m, batch);
  model_backward_nodes(m, batch);
}

/* Whether each loss of a training step is computed with its gradient at once (Loss.step). */
static inline int model_has_loss_step(const Model *m) {
  int has = 1;
  for (int l = 0; l < m->graph->loss_count; l++)
    has &= m->graph->losses[l].loss->step != NULL && m->plan.node[m->graph->losses[l].node].gradient != PLAN_NONE;
  return has;
}

/* model_score() and model_loss_gradients(), where it has. */
static inline void model_loss_step(const Model *m, int batch) {
  model_range_begin(m, "loss", "step");
  for (int l = 0; l < m->graph->loss_count; l++) {
    const GraphLoss *loss = &m->graph->losses[l];
    float *dx = (float *)model_array(m, m->plan.node[loss->node].gradient);
    loss->loss->step(&m->context, m->losses[l], model_loss_saved(m, l), m->totals + 2 * l, dx, model_logits(m, l),
                     model_targets(m, l), loss->weight / model_mean_of(m, batch), batch,
                     graph_shape(m->graph, loss->node));
    model_scale_loss_gradient(m, l, dx, batch);
  }
  model_range_end(m);
}

/* The gradients without the loss scale, and whether they are finite. */
static inline void model_unscale(const Model *m) {
  if (m->loss_scale == NULL) return;
  model_range_begin(m, "gradients", "unscale");
  ON_DEVICE(m->context.device, loss_scale_divide_gpu(m->gradients, m->parameter_count, m->loss_scale),
            loss_scale_divide_cpu(m->gradients, m->parameter_count, m->loss_scale));
  model_range_end(m);
}

/* Clips the gradients as m->clip_value and m->clip_norm say: first by value, then by norm. */
static inline void model_clip(const Model *m) {
  const Device device = m->context.device;
  const size_t n = m->parameter_count;
  if (m->clip_value <= 0 && m->clip_norm <= 0) return;
  model_range_begin(m, "gradients", "clip");
  if (m->clip_value > 0)
    ON_DEVICE(device, clip_value_gpu(m->gradients, n, m->clip_value), clip_value_cpu(m->gradients, n, m->clip_value));
  if (m->clip_norm > 0)
    ON_DEVICE(device, clip_norm_gpu(m->gradients, n, m->clip_norm, m->clip_partial, m->totals + MODEL_NORMS),
              clip_norm_cpu(m->gradients, n, m->clip_norm, m->clip_partial, m->totals + MODEL_NORMS));
  model_range_end(m);
}

/* Memory for averages of the weights by m->hyper.ema, which a step cannot allocate itself. */
static inline void model_average_open(Model *m) {
  model_use_device(m);
  m->average = (float *)device_alloc(m->context.device, m->parameter_count * sizeof(float));
  m->average_buffers = (float *)device_alloc(m->context.device, m->buffer_count * sizeof(float));
}

/* The weights of the step that was made now come into the average, and so do running statistics; of a step that fp16
 * skipped they do not. */
static inline void model_average(const Model *m) {
  const Device device = m->context.device;
  const StepValues *values = m->loss_scale ? &m->loss_scale->values : m->context.values;
  const float *at = values ? &values->average : NULL;
  const float share = at && device == DEVICE_CPU ? *at : average_share(m->hyper.ema, m->context.step);
  if (m->average == NULL) return;
  model_range_begin(m, "weights", "average");
  ON_DEVICE(device, average_gpu(m->average, m->average, m->parameters, m->parameter_count, share, at),
            average_cpu(m->average, m->average, m->parameters, m->parameter_count, share));
  ON_DEVICE(device, average_gpu(m->average_buffers, m->average_buffers, m->buffers, m->buffer_count, share, at),
            average_cpu(m->average_buffers, m->average_buffers, m->buffers, m->buffer_count, share));
  model_range_end(m);
}

/* The averages become the weights that forward reads, and the weights the averages: a second call undoes it. The values
 * are exchanged and not the arrays, because a recorded step, and whoever else, may hold their addresses. Without
 * averages, or before the first step, it does nothing. */
static inline void model_swap_average(const Model *m) {
  if (m->average == NULL || m->context.step == 0) return;
  model_use_device(m);
  ON_DEVICE(m->context.device, average_swap_gpu(m->parameters, m->average, m->parameter_count),
            average_swap_cpu(m->parameters, m->average, m->parameter_count));
  ON_DEVICE(m->context.device, average_swap_gpu(m->buffers, m->average_buffers, m->buffer_count),
            average_swap_cpu(m->buffers, m->average_buffers, m->buffer_count));
}

/* What a step that follows `step` finished ones reads in the device's memory, where context.values points there. */
static inline StepValues model_step_values(const Model *m, double lr, long step) {
  StepValues values = step_values(lr, &m->hyper, step);
  if (m->context.mixup > 0) values.mixed = mixup_share(m->context.mixup, m->context.seed, step);
  return values;
}

/* Of fp16: whether this step is skipped, the scale of the next one, and what the optimizer reads in this one. */
static inline void model_scale_next(Model *m) {
  const StepValues *values = m->context.values;
  if (m->loss_scale == NULL) return;
  ON_DEVICE(m->context.device, loss_scale_next_gpu(m->loss_scale, &m->hyper, values),
            loss_scale_next_cpu(m->loss_scale, &m->hyper));
  m->context.values = &m->loss_scale->values;
}

/* The optimizer's part of a step. A step of fp16 that overflowed changes no weight and no slot: on a GPU the kernels
 * look at context.loss_scale themselves. */
static inline void model_optimize(Model *m) {
  const StepValues *values = m->context.values;
  model_expect_training(m);
  model_use_device(m);
  model_range_begin(m, m->optimizer->name, "update");
  model_scale_next(m);
  const int skips = m->loss_scale && m->context.device == DEVICE_CPU && m->loss_scale->skips;
  if (m->optimizer->step_model && !skips)
    m->optimizer->step_model(m);
  else if (m->parameter_count > 0 && !skips)
    m->optimizer->step(&m->context, m->parameters, m->slot, m->gradients, m->parameter_count, m->decayed_count,
                       &m->hyper);
  m->context.values = values;
  model_range_end(m);
}

/* One optimizer step by m->hyper; the weights come into their average. */
static inline void model_update(Model *m) {
  model_optimize(m);
  model_average(m);
  m->context.step++;
}

/* With context.mixup: each sample of the inputs is mixed with its partner; the loss does the same to the labels. */
static inline void model_mix(Model *m, int batch) {
  const Context *context = &m->context;
  const float *at = context->values ? &context->values->mixed : NULL;
  if (context->mixup <= 0) return;
  m->context.mixed = mixup_share(context->mixup, context->seed, context->step);
  model_range_begin(m, "batch", "mix");
  for (int i = 0; i < m->graph->count; i++) {
    if (m->graph->nodes[i].op != NULL) continue;
    float *x = model_output(m, i);
    const size_t width = shape_count(m->graph->nodes[i].shape);
    ON_DEVICE(context->device, mixup_gpu(x, x, batch, width, context->mixed, at),
              mixup_cpu_fast(x, x, batch, width, context->mixed));
  }
  model_range_end(m);
}

/* Forward and backward: the gradients of the batch that lies in the inputs and targets. */
static inline void model_gradients(Model *m, int batch) {
  Error err;
  if (model_check_batch(m->graph, batch, &err) != 0) die("%s", err.message);
  m->context.training = 1;
  model_expect_training(m);
  model_expect_batch(m, batch);
  model_use_device(m);
  model_mix(m, batch);
  model_forward(m, batch);
  if (model_has_loss_step(m)) {
    model_loss_step(m, batch);
  } else {
    model_score(m, batch);
    model_loss_gradients(m, batch);
  }
  model_backward_nodes(m, batch);
}

/* One training step on the batch that lies in the inputs and targets. */
static inline void model_train_step(Model *m, int batch) {
  model_gradients(m, batch);
  model_unscale(m);
  model_clip(m);
  model_update(m);
}

/* Memory for steps in parts, which a step cannot allocate itself. */
static inline void model_accumulate_open(Model *m) {
  model_use_device(m);
  m->accumulated = (float *)device_alloc(m->context.device, m->parameter_count * sizeof(float));
}

/* Part `part` of a step of `whole` samples: the `batch` of them that lie in the inputs and targets, of which the first
 * is sample `begin`. The last part steps. The gradients of the parts are added up, and each is scaled as a part of the
 * mean over the whole: so the step is that of one batch of `whole` samples, but for the order in which sums are
 * rounded. Batch norm takes the statistics of each part, as it would without the others. */
static inline void model_train_part(Model *m, int batch, int part, int begin, int whole) {
  const int last = begin + batch == whole;
  float *sum = last ? m->gradients : m->accumulated;
  m->whole = whole;
  m->context.part = part;
  model_gradients(m, batch);
  m->whole = m->context.part = 0;
  if (part == 0 && !last)
    device_copy(m->context.device, sum, m->gradients, m->parameter_count * sizeof(float));
  else if (part > 0)
    ON_DEVICE(m->context.device, add_gpu(sum, m->accumulated, m->gradients, m->parameter_count),
              add_cpu(sum, m->accumulated, m->gradients, m->parameter_count));
  if (!last) return;
  model_unscale(m);
  model_clip(m);
  model_update(m);
}

/* The same without learning: dropout drops nothing, batch norm uses its running statistics. */
static inline void model_evaluate_step(Model *m, int batch) {
  m->context.training = 0;
  model_forward(m, batch);
  model_score(m, batch);
}

/* ---------------------------------------------------------------------------------------------------------- totals */

static inline void model_reset_totals(const Model *m, int l, Totals totals) {
  const double sums[2] = {totals.loss, totals.correct};
  model_use_device(m);
  device_upload(m->context.device, m->totals + 2 * l, sums, sizeof sums);
}

/* Waits for the device. */
static inline Totals model_read_totals(const Model *m, int l) {
  double sums[2];
  model_use_device(m);
  device_download(m->context.device, sums, m->totals + 2 * l, sizeof sums);
  const Totals totals = {sums[0], sums[1]};
  return totals;
}

/* --------------------------------------------------------------------------------------------------------- summary */

static inline double model_mib(size_t bytes) { return (double)bytes / 1048576.0; }

/* A line per node: output, trained parameters, FLOPs of forward for one sample, bytes kept for backward; the sums. */
static inline void model_print_summary(FILE *out, const Model *m) {
  size_t parameters = 0, kept = 0;
  double flops = 0;
  fprintf(out, "%-24s %-16s %-14s %12s %12s %14s\n", "node", "operation", "output", "trained", "MFLOP", "kept, bytes");
  for (int i = 0; i < m->graph->count; i++) {
    const Node *node = &m->graph->nodes[i];
    size_t count = 0;
    for (int k = 0; k < node->params; k++) count += node->param[k].trained ? node->param[k].count : 0;
    const size_t bytes = m->use == MODEL_TRAIN ? plan_kept_bytes(&m->plan, i) : 0;
    fprintf(out, "%-24s %-16s %-14s %12zu %12.3f %14zu\n", node->name, node->op ? node->op->name : "input",
            shape_text(node->shape).text, count, node->flops * 1e-6, bytes);
    parameters += count;
    kept += bytes;
    flops += node->flops;
  }
  fprintf(out, "%-24s %-16s %-14s %12zu %12.3f %14zu\n", "sum", "", "", parameters, flops * 1e-6, kept);
  const double weights = model_mib(m->parameter_count * sizeof(float)), infer = model_inference_bytes(m) / 1048576;
  if (m->use == MODEL_TRAIN)
    fprintf(out, "training, batch %d: %.2f MiB, of which %.2f MiB pass by (%.2f MiB are alive at one moment)\n",
            m->max_batch, model_bytes(m) / 1048576, model_mib(m->plan.arena_bytes), model_mib(m->plan.live_bytes));
  fprintf(out, "inference, batch %d: %.2f MiB; parameters: %.2f MiB\n", m->max_batch, infer, weights);
}

#endif /* COMMON_NN_MODEL_H */
