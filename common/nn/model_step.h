/* model_step.h - what a step of a Model (model.h) does: forward, losses, backward, update, and the sums of losses. */
#ifndef COMMON_NN_MODEL_STEP_H
#define COMMON_NN_MODEL_STEP_H

#include "common/nn/model_open.h"

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
  a.batch = node_samples(node, batch);
  const int y = !backward || (node->op->backward_needs & BACKWARD_NEEDS_Y);
  for (int k = 0; k < node->inputs; k++)
    if (!backward || op_backward_reads(node->op, k)) a.x[k] = model_output(m, node->input[k]);
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
  batch = node_samples(node, batch);
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
            loss_scale_next_cpu(m->loss_scale, &m->hyper, values));
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

#endif /* COMMON_NN_MODEL_STEP_H */
