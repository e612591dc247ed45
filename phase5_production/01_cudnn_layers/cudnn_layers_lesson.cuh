/* cudnn_layers_lesson.cuh - one layer by itself, by ours or by cuDNN: what the program of the lesson compares, and the
 * tests.
 *
 *     const LayerCase c = {"conv 3x3", layer_conv3x3, {3, {64, 28, 28, 0}}, 16};
 *     LayerRun ours, theirs;
 *     if (layer_run(&ours, &c, layer_best(&c), DEVICE_GPU, 0, LAYER_LAUNCHES, &err) != 0) ...
 *     if (layer_run(&theirs, &c, "cudnn", DEVICE_GPU, 0, 0, &err) != 0) ...     // no cuDNN: the sentence says so
 *     printf("%g\n", layer_difference(&theirs, &ours));
 *     layer_free(&ours); ...
 *
 * An operation gets what a network would give it, and no more: of x and y backward gets those alone that its Op says it
 * needs, and all outputs are NaN before. */
#ifndef PHASE5_PRODUCTION_CUDNN_LAYERS_LESSON_CUH
#define PHASE5_PRODUCTION_CUDNN_LAYERS_LESSON_CUH

#include "common/compare.h"
#include "common/nn/profile.h"
#include "phase5_production/01_cudnn_layers/dnn_layers_op.cuh"

enum { LAYER_OUTPUTS = 8, LAYER_ROUNDS = 15, LAYER_LAUNCHES = 20 };

typedef struct LayerCase {
  const char *name;
  int (*build)(Graph *g, int x); /* one node */
  Shape in;
  int batch;
} LayerCase;

typedef struct LayerOutput {
  const char *name; /* "y", "dx", "weight gradient", "running_mean" */
  float *values;    /* on the host */
  size_t count;
} LayerOutput;

typedef struct LayerRun {
  LayerOutput output[LAYER_OUTPUTS];
  int outputs;
  double forward, backward;      /* seconds; 0: not measured */
  size_t workspace, saved, kept; /* bytes: scratch; saved for backward; x and y that stay for it */
  const char *algorithm[3];      /* of cuDNN's convolution: by pass; NULL */
} LayerRun;

static inline void layer_free(LayerRun *r) {
  for (int i = 0; i < r->outputs; i++) free(r->output[i].values);
  memset(r, 0, sizeof *r);
}

/* n floats on the device: uniform in [-1, 1) by the seed; seed 0: NaN. */
static inline float *layer_array(Device device, size_t n, uint64_t seed) {
  float *host = (float *)xmalloc((n ? n : 1) * sizeof *host);
  for (size_t i = 0; i < n; i++) host[i] = seed == 0 ? NAN : 2 * philox_uniform(philox4x32(seed, 3, i).word[0]) - 1;
  float *memory = (float *)device_alloc(device, (n ? n : 1) * sizeof *memory);
  device_upload(device, memory, host, n * sizeof *host);
  free(host);
  return memory;
}

static inline void layer_keep(LayerRun *r, Device device, const char *name, const float *memory, size_t n) {
  LayerOutput *o = &r->output[r->outputs++];
  o->name = name;
  o->count = n;
  o->values = (float *)xmalloc((n ? n : 1) * sizeof *o->values);
  device_download(device, o->values, memory, n * sizeof *o->values);
}

/* Where all that an operation reads and writes is. */
typedef struct LayerArrays {
  OpArrays all;
  size_t x[NODE_MAX_INPUTS], y;
} LayerArrays;

static inline void layer_open_arrays(LayerArrays *l, const Graph *g, const Node *node, Context context, int batch) {
  const Op *op = node->op;
  const Device device = context.device;
  memset(l, 0, sizeof *l);
  OpArrays *a = &l->all;
  a->batch = batch;
  l->y = shape_count(node->shape) * (size_t)batch;
  for (int k = 0; k < node->inputs; k++) {
    l->x[k] = shape_count(graph_shape(g, node->input[k])) * (size_t)batch;
    a->x[k] = layer_array(device, l->x[k], 1 + (uint64_t)k);
    a->dx[k] = layer_array(device, l->x[k], 0);
  }
  a->y = layer_array(device, l->y, 0);
  a->dy = layer_array(device, l->y, 10);
  for (int k = 0; k < node->params; k++) {
    const Param *p = &node->param[k];
    if (p->counts) continue;
    a->param[k] = layer_array(device, p->count, 20 + (uint64_t)k);
    if (p->trained) a->grad[k] = layer_array(device, p->count, 0);
    if (strstr(p->name, "running_var")) { /* a variance is positive */
      float *host = (float *)xmalloc(p->count * sizeof *host);
      for (size_t i = 0; i < p->count; i++) host[i] = 0.5f + 0.25f * (float)(i % 5);
      device_upload(device, a->param[k], host, p->count * sizeof *host);
      free(host);
    }
  }
  const size_t saved = op->saved_bytes ? op->saved_bytes(node, batch) : 0;
  const size_t work = op->workspace_floats ? op->workspace_floats(&context, node, batch) : 0;
  if (saved) a->saved = layer_array(device, (saved + sizeof(float) - 1) / sizeof(float), 0);
  if (work) a->workspace = layer_array(device, work, 0);
}

static inline void layer_close_arrays(LayerArrays *l, Device device) {
  OpArrays *a = &l->all;
  for (int k = 0; k < NODE_MAX_INPUTS; k++) {
    device_free(device, (void *)a->x[k]);
    device_free(device, a->dx[k]);
  }
  device_free(device, a->y);
  device_free(device, (void *)a->dy);
  for (int k = 0; k < NODE_MAX_PARAMS; k++) {
    device_free(device, a->param[k]);
    device_free(device, a->grad[k]);
  }
  device_free(device, a->saved);
  device_free(device, a->workspace);
}

/* Backward gets what its Op asks for. */
static inline OpArrays layer_backward_arrays(const LayerArrays *l, const Op *op) {
  OpArrays a = l->all;
  for (int k = 0; k < NODE_MAX_INPUTS; k++)
    if (!op_backward_reads(op, k)) a.x[k] = NULL;
  if (!(op->backward_needs & BACKWARD_NEEDS_Y)) a.y = NULL;
  return a;
}

/* Seconds of one of many launches in one CUDA graph; 0 where there is no GPU. */
static inline double layer_time(const Context *context, const Node *node, const OpArrays *a, int back, int launches) {
#ifdef SIMT_REWRITTEN
  (void)context, (void)node, (void)a, (void)back, (void)launches;
  return 0;
#else
  double samples[LAYER_ROUNDS];
  if (context->device != DEVICE_GPU) return 0;
  GpuTimer timer = gpu_timer_open();
  StepGraph graph = {NULL, 0, 0};
  step_graph_begin(&graph);
  for (int i = 0; i < launches; i++) (back ? node->op->backward : node->op->forward)(context, node, a);
  step_graph_end(&graph);
  for (int round = -1; round < LAYER_ROUNDS; round++) {
    gpu_timer_start(&timer);
    step_graph_run(&graph);
    const double seconds = gpu_timer_stop(&timer) / launches;
    if (round >= 0) samples[round] = seconds;
  }
  step_graph_close(&graph);
  gpu_timer_close(&timer);
  return timer_stats(samples, LAYER_ROUNDS).median;
#endif
}

static inline void layer_compute(LayerRun *r, const Graph *g, const Node *node, Context context, int batch,
                                 int launches) {
  const Device device = context.device;
  LayerArrays l;
  layer_open_arrays(&l, g, node, context, batch);
  const OpArrays back = layer_backward_arrays(&l, node->op);
  node->op->forward(&context, node, &l.all);
  node->op->backward(&context, node, &back);
  device_synchronize(device);
  layer_keep(r, device, "y", l.all.y, l.y);
  for (int k = 0; k < node->inputs; k++) layer_keep(r, device, k ? "second dx" : "dx", l.all.dx[k], l.x[k]);
  for (int k = 0; k < node->params; k++) {
    if (l.all.param[k] == NULL) continue;
    layer_keep(r, device, strrchr(node->param[k].name, '.') + 1, l.all.grad[k] ? l.all.grad[k] : l.all.param[k],
               node->param[k].count);
  }
  r->workspace = node->op->workspace_floats ? node->op->workspace_floats(&context, node, batch) * sizeof(float) : 0;
  r->saved = node->op->saved_bytes ? node->op->saved_bytes(node, batch) : 0;
  r->kept = sizeof(float) *
            ((op_backward_reads(node->op, 0) ? l.x[0] : 0) + (node->op->backward_needs & BACKWARD_NEEDS_Y ? l.y : 0));
  for (int pass = 0; pass < 3; pass++) r->algorithm[pass] = dnn_algorithm_name(node, pass);
  if (launches > 0) {
    r->forward = layer_time(&context, node, &l.all, 0, launches);
    r->backward = layer_time(&context, node, &back, 1, launches);
  }
  layer_close_arrays(&l, device);
}

/* The choice that has an implementation of this name: of --layers, or of --conv. */
static inline const OpChoice *layer_choice(const char *name) {
  const int is_layer = implementation_find(&dnn_layer_choice, name, strlen(name)) >= 0;
  return is_layer ? &dnn_layer_choice : &conv2d_choice;
}

/* name: of --layers or, of a convolution, of --conv. larger: the operation is opened for so many samples more than it
 * gets. launches: in one graph that is timed; 0: none is. -1 with a sentence. */
static inline int layer_run(LayerRun *r, const LayerCase *c, const char *name, Device device, int larger, int launches,
                            Error *err) {
  Context context;
  memset(r, 0, sizeof *r);
  memset(&context, 0, sizeof context);
  context.device = device;
  context.training = 1;
  Graph *g = graph_create();
  const int i = c->build(g, graph_input(g, "x", c->in));
  int status = g->failed ? error_set(err, "%s", g->error.message) : 0;
  if (status == 0 && implementation_of(layer_choice(name), &g->nodes[i]) < 0)
    status = error_set(err, "%s cannot be computed by %s", c->name, name);
  if (status == 0) status = implementation_apply(layer_choice(name), name, g, NULL, err);
  Node *node = status == 0 ? &g->nodes[i] : NULL;
  const OpKeeping *keeping = node && (node->op->flags & OP_KEEPS) ? (const OpKeeping *)node->op : NULL;
  if (keeping) status = keeping->open(&context, node, c->batch + larger, 1, &node->kept, err);
  if (status == 0) layer_compute(r, g, node, context, c->batch, launches);
  if (status == 0 && node->kept) keeping->close(node->kept);
  op_close_shared(&context);
  graph_destroy(g);
  return status;
}

/* What --conv=auto would take for a convolution: the fastest of its implementations, forward and backward together. Of
 * other layers there is one, "ours"; so it is of all where nothing can be measured. */
static inline const char *layer_best(const LayerCase *c) {
  const char *best = "ours";
  double least = INFINITY;
  for (int k = 0; k < conv2d_choice.count && profile_has_times(DEVICE_GPU); k++) {
    LayerRun r;
    Error why;
    if (layer_run(&r, c, conv2d_choice.list[k].name, DEVICE_GPU, 0, 1, &why) != 0) continue; /* not this layer */
    if (r.forward + r.backward < least) {
      least = r.forward + r.backward;
      best = conv2d_choice.list[k].name;
    }
    layer_free(&r);
  }
  return best;
}

/* The largest difference of two runs' outputs, of the largest value of each output; NAN where one is NaN. */
static inline double layer_difference(const LayerRun *a, const LayerRun *b) {
  double most = 0;
  for (int o = 0; o < b->outputs; o++) {
    double largest = 0, difference = 0;
    for (size_t i = 0; i < b->output[o].count; i++) {
      const double d = fabs((double)a->output[o].values[i] - b->output[o].values[i]);
      if (!(d <= difference)) difference = d; /* NaN stays */
      largest = fmax(largest, fabs((double)b->output[o].values[i]));
    }
    if (!(difference / fmax(largest, FLT_MIN) <= most)) most = difference / fmax(largest, FLT_MIN);
  }
  return most;
}

/* ---------------------------------------------------------------------------------------------------------- layers */

static inline int layer_conv3x3(Graph *g, int x) { return conv2d(g, x, graph_shape(g, x).dim[0], 3, 1, 1); }
static inline int layer_conv5x5(Graph *g, int x) { return conv2d(g, x, 16, 5, 1, 0); }
static inline int layer_conv_stride(Graph *g, int x) {
  return conv2d_no_bias(g, x, 2 * graph_shape(g, x).dim[0], 3, 2, 1);
}
static inline int layer_conv1x1(Graph *g, int x) { return conv2d_no_bias(g, x, 2 * graph_shape(g, x).dim[0], 1, 2, 0); }
static inline int layer_relu(Graph *g, int x) { return relu(g, x); }
static inline int layer_sigmoid(Graph *g, int x) { return activation(g, x, ACTIVATION_SIGMOID); }
static inline int layer_tanh(Graph *g, int x) { return activation(g, x, ACTIVATION_TANH); }
static inline int layer_max_pool(Graph *g, int x) { return max_pool2d(g, x, 2, 2); }
static inline int layer_avg_pool(Graph *g, int x) { return avg_pool2d(g, x, 2, 2); }
static inline int layer_global_pool(Graph *g, int x) { return global_avg_pool2d(g, x); }
static inline int layer_batch_norm(Graph *g, int x) { return batch_norm2d(g, x); }
static inline int layer_add(Graph *g, int x) { return add(g, x, graph_input(g, "z", graph_shape(g, x))); }
static inline int layer_softmax(Graph *g, int x) { return softmax(g, x); }

#endif /* PHASE5_PRODUCTION_CUDNN_LAYERS_LESSON_CUH */
