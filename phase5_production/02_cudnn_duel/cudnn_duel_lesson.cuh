/* cudnn_duel_lesson.cuh - the contestants of the duel: a network by ours, by cuDNN, or by the faster of the two in each
 * layer; its memory, and its time.
 *
 *     Contest c = {train_network_named("lenet", 5), MODEL_TRAIN, 64};
 *     Model m;
 *     duel_open(&m, &c, "cudnn", &err);
 *     const MemoryCount memory = duel_memory(&m); // as it is planned
 */
#ifndef PHASE5_PRODUCTION_CUDNN_DUEL_LESSON_CUH
#define PHASE5_PRODUCTION_CUDNN_DUEL_LESSON_CUH

#include "common/nn/profile.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase4_training/08_train/train_networks.cuh"
#include "phase5_production/01_cudnn_layers/dnn_layers_op.cuh"
#include "phase5_production/02_cudnn_duel/memory_count.cuh"

enum { DUEL_NETWORKS = 4, DUEL_BATCHES = 4, DUEL_STEPS = 20 };

typedef struct Contest {
  const TrainNetwork *network;
  ModelUse use;
  int batch;
} Contest;

static inline const TrainNetwork *duel_network(int i) {
  static const char *const names[DUEL_NETWORKS] = {"lenet", "fashion_cnn", "resnet_mnist", "resnet_cifar"};
  return i < DUEL_NETWORKS ? train_network_named(names[i], strlen(names[i])) : NULL;
}

static inline const char *duel_use_name(ModelUse use) { return use == MODEL_TRAIN ? "training" : "inference"; }

/* ------------------------------------------------------------------------------------------------------ contestants */

/* --conv's table for a word about a convolution that is computed by itself; else --layers'. */
static inline const OpChoice *duel_choice(const Graph *g, const ImplementationWord *word) {
  for (int i = 0; i < g->count && word->node; i++)
    if (strlen(g->nodes[i].name) == word->node_length &&
        strncmp(g->nodes[i].name, word->node, word->node_length) == 0 &&
        implementation_of(&dnn_conv2d_choice, &g->nodes[i]) >= 0)
      return implementation_find(&dnn_conv2d_choice, word->name, word->name_length) >= 0 ? &dnn_conv2d_choice
                                                                                         : &dnn_layer_choice;
  return &dnn_layer_choice;
}

static inline int duel_apply(Graph *g, const char *words, Error *err) {
  ImplementationWord word;
  for (const char *at = words; implementation_next(&at, &word);)
    if (implementation_apply_word(duel_choice(g, &word), &word, g, NULL, err) != 0) return -1;
  return 0;
}

/* `how`: "ours", all that we can compute together; or words of --layers and of --conv. "pairs": ours as those compare
 * it. */
static inline int duel_graph(Graph **graph, const Contest *c, const char *how, Error *err) {
  const DataSource *data = c->network->data;
  if (c->network->own) c->network->own(); /* its options get their defaults */
  Graph *g = c->network->graph(data->shape, data->classes);
  int status = g->failed ? error_set(err, "%s", g->error.message) : 0;
  if (status == 0 && strcmp(how, "ours") == 0 && g->fuse)
    g->fuse(g);
  else if (status == 0)
    status = duel_apply(g, strcmp(how, "pairs") == 0 ? "ours" : how, err);
  *graph = g;
  return status;
}

static inline Context duel_context(void) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = DEVICE_GPU;
  return context;
}

/* What `train --conv=auto` chooses for the convolutions, measured: "ours,conv1:winograd,conv2:tiled". "pairs" where it
 * is the usual one for all. */
static inline void duel_auto(const Contest *c, char words[IMPLEMENTATION_TEXT]) {
  Error err;
  Graph *g;
  char text[IMPLEMENTATION_TEXT];
  FILE *out = fopen("/dev/null", "w"); /* a line about each convolution of each contest would drown the table */
  if (out == NULL) die("/dev/null: %s", strerror(errno));
  if (duel_graph(&g, c, "pairs", &err) != 0 ||
      implementation_choose(&conv2d_choice, IMPLEMENTATION_AUTO, g, duel_context(), &sgd, c->batch, c->use, out,
                            &err) != 0)
    die("%s", err.message);
  fclose(out);
  implementation_text(&conv2d_choice, g, text);
  int unusual = 0;
  for (int i = 0; i < g->count; i++) unusual |= implementation_of(&conv2d_choice, &g->nodes[i]) > 0;
  snprintf(words, IMPLEMENTATION_TEXT, "%s%.*s", unusual ? "ours," : "pairs", unusual ? IMPLEMENTATION_TEXT - 6 : 0,
           text);
  graph_destroy(g);
}

/* -1: a word does not fit, or there is no cuDNN. */
static inline int duel_prepare(Model *m, const Contest *c, const char *how, Error *err) {
  Graph *g;
  if (duel_graph(&g, c, how, err) != 0) {
    graph_destroy(g);
    return -1;
  }
  return model_prepare(m, g, duel_context(), c->use == MODEL_TRAIN ? &sgd : NULL, c->batch, c->use, err);
}

static inline int duel_open(Model *m, const Contest *c, const char *how, Error *err) {
  if (duel_prepare(m, c, how, err) != 0 || model_allocate(m, 0, err) != 0) return -1;
  model_init(m, 1);
  implementation_fill(m);
  return 0;
}

/* ----------------------------------------------------------------------------------------------------------- memory */

/* Of what an array of the plan is. */
static inline int duel_array_kind(const Plan *plan, int array) {
  for (int i = 0; i < plan->nodes; i++) {
    const PlanNode *n = &plan->node[i];
    if (n->output == array) return MEMORY_ACTIVATIONS;
    if (n->saved == array) return MEMORY_SAVED;
    if (n->gradient == array) return MEMORY_DIFFERENCES;
    if (n->forward_work == array || n->back_work == array) return MEMORY_WORKSPACE;
    for (int k = 0; k < NODE_MAX_INPUTS; k++)
      if (n->extra[k] == array) return MEMORY_DIFFERENCES;
  }
  return MEMORY_LOSS;
}

/* All that a step of the model takes and gives back, moment by moment, but for one kind (MEMORY_KINDS: none is left
 * out). What outlives a step is taken before. */
static inline MemoryCount duel_memory_without(const Model *m, int kind) {
  const Plan *plan = &m->plan;
  const long weights = (long)(m->parameter_count * sizeof(float));
  MemoryCount count = memory_count_none();
  memory_take(&count, MEMORY_WEIGHTS, weights + (long)(m->buffer_count * sizeof(float)));
  if (m->use == MODEL_TRAIN) memory_take(&count, MEMORY_GRADIENTS, weights);
  if (m->use == MODEL_TRAIN) memory_take(&count, MEMORY_OPTIMIZER, m->optimizer->slots * weights);
  for (int moment = 0; moment <= plan_end(plan); moment++) {
    for (int i = 0; i < plan->count; i++)
      if (plan->arrays[i].first == moment && duel_array_kind(plan, i) != kind)
        memory_take(&count, duel_array_kind(plan, i), (long)plan->arrays[i].bytes);
    for (int i = 0; i < plan->count; i++)
      if (plan->arrays[i].last == moment && duel_array_kind(plan, i) != kind)
        memory_give(&count, duel_array_kind(plan, i), (long)plan->arrays[i].bytes);
  }
  return count;
}

static inline MemoryCount duel_memory(const Model *m) { return duel_memory_without(m, MEMORY_KINDS); }

/* Bytes that an opened model has of device_alloc(), by its plan: what duel_memory() counts, with the gaps between
 * arrays, and two small arrays of sums. */
static inline size_t duel_allocation(const Model *m) {
  const size_t weights = device_alloc_bytes(m->parameter_count * sizeof(float));
  const size_t workspace = model_workspace_floats(m) * sizeof(float);
  size_t bytes = weights + device_alloc_bytes(m->buffer_count * sizeof(float)) +
                 device_alloc_bytes(m->plan.arena_bytes) + device_alloc_bytes(MODEL_TOTALS * sizeof(double));
  if (workspace > 0) bytes += device_alloc_bytes(workspace);
  if (m->use == MODEL_TRAIN)
    bytes += (size_t)(1 + m->optimizer->slots) * weights + device_alloc_bytes(CLIP_BLOCKS * sizeof(double));
  return bytes;
}

/* Bytes of GPU memory in use, by whomever. */
static inline double duel_memory_in_use(void) {
  size_t available = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&available, &total));
  return (double)(total - available);
}

/* ------------------------------------------------------------------------------------------------------------- time */

static inline Task duel_task(const Contest *c) {
  Task task;
  memset(&task, 0, sizeof task);
  task.data = c->network->data;
  task.batches = &batch_kernels;
  return task;
}

typedef struct DuelTime {
  double graph, launched; /* seconds of a step: as one CUDA graph; operation by operation. 0: not measured */
} DuelTime;

/* With the parts of a step measured one by one where `parts`: their times are in p->row, and p stays open. */
static inline DuelTime duel_time(Profile *p, Model *m, const Contest *c, int parts) {
  const Task task = duel_task(c);
  DuelTime time = {0, 0};
  profile_open(p, &task, c->network->data, m, c->batch, 1);
  m->hyper.lr = 0;
  m->hyper.momentum = 0.9f;
  if (!profile_has_times(DEVICE_GPU)) return time;
#ifdef __CUDACC__
  if (parts) {
    profile_measure_gpu(p);
    time.graph = p->graph;
    time.launched = p->step;
  } else {
    profile_step(p);
    device_synchronize(DEVICE_GPU);
    time.graph = profile_time_graph(p, -1, DUEL_STEPS);
  }
#else
  (void)parts;
#endif
  return time;
}

/* ---------------------------------------------------------------------------------------------------------- mixture */

/* Seconds of node i, forward and backward, in a profile: by itself, or together with its group in `grouped`. */
static inline double duel_node_seconds(const Profile *p, const Graph *grouped, int i) {
  double sum = 0;
  for (int part = 0; part < p->parts.count; part++) {
    const StepPart *one = &p->parts.part[part];
    if (one->kind != PART_FORWARD && one->kind != PART_BACKWARD) continue;
    const Node *node = &grouped->nodes[one->node], *mine = &grouped->nodes[i];
    if (one->node != i && (mine->group == 0 || node->group != mine->group)) continue;
    if (step_part_works(&p->parts, part)) sum += profile_compared(&p->row[part]);
  }
  return sum;
}

/* The words that take for each node, or for what ours computes together, the faster of two profiles of the same
 * network; `grouped` is the graph of ours, which `how` has made. */
static inline void duel_mix(const Profile *ours, const Profile *theirs, const Graph *grouped, const char *how,
                            char text[IMPLEMENTATION_TEXT]) {
  size_t used = (size_t)snprintf(text, IMPLEMENTATION_TEXT, "%s", strcmp(how, "pairs") == 0 ? "ours" : how);
  for (int i = 0; i < grouped->count && used < IMPLEMENTATION_TEXT; i++) {
    const Node *node = &grouped->nodes[i];
    if (implementation_of(&dnn_layer_choice, node) < 0 && implementation_of(&dnn_conv2d_choice, node) < 0) continue;
    if (duel_node_seconds(theirs, grouped, i) < duel_node_seconds(ours, grouped, i))
      used += (size_t)snprintf(text + used, IMPLEMENTATION_TEXT - used, ",%s:cudnn", grouped->nodes[i].name);
  }
}

#endif /* PHASE5_PRODUCTION_CUDNN_DUEL_LESSON_CUH */
