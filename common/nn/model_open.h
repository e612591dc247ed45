/* model_open.h - a Model (model.h) gets its memory, or a sentence about why not, and its first parameters. */
#ifndef COMMON_NN_MODEL_OPEN_H
#define COMMON_NN_MODEL_OPEN_H

#include "common/nn/model_arrays.h"

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
        if (p->bytes) *end = (*end + 15) / 16 * 16; /* of any type: 64 bytes */
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

/* What operations keep with their nodes, and what they share. -1 where one of them cannot be opened. */
static inline int model_open_ops(Model *m, Error *err) {
  for (int i = 0; i < m->graph->count; i++) {
    Node *node = &m->graph->nodes[i];
    if (node->op == NULL || !(node->op->flags & OP_KEEPS)) continue;
    const OpKeeping *op = (const OpKeeping *)node->op;
    const int samples = node_samples(node, m->max_batch);
    if (op->open(&m->context, node, samples, m->use == MODEL_TRAIN, &node->kept, err) != 0) return -1;
  }
  return 0;
}

static inline void model_close_ops(Model *m) {
  for (int i = 0; m->graph && i < m->graph->count; i++) {
    Node *node = &m->graph->nodes[i];
    if (node->kept) ((const OpKeeping *)node->op)->close(node->kept);
    node->kept = NULL;
  }
  op_close_shared(&m->context);
}

static inline void model_close(Model *m) {
  model_use_device(m);
  const Device device = m->context.device;
  model_close_ops(m);
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
  m->context.shared = NULL;
  m->use = use;
  m->max_batch = max_batch;
  m->optimizer = use == MODEL_TRAIN ? optimizer : NULL;
  model_use_device(m); /* operations may ask it what scratch they need */
  if (model_open_ops(m, err) != 0) {
    model_close(m);
    return -1;
  }
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

#endif /* COMMON_NN_MODEL_OPEN_H */
