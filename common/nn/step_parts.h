/* step_parts.h - a training step taken apart: its operations in the order in which they run, with the bytes and FLOPs
 * of each.
 *
 *     StepParts parts;
 *     step_parts_open(&parts, &task, &data_mnist, &net, batch, seed); // a data set of random pixels, too
 *     for (int i = 0; i < parts.count; i++) step_part_run(&parts, i); // together: one training step
 *
 * What network_bench.h and profile.h time. The pixels are random; on a network's time that has no influence.
 *
 * Bytes follow from shapes: of what an operation reads or writes, each array once for each: inputs, output, parameters,
 * what forward saves; backward: the gradient of the output, what it reads again, parameters, the gradients that it
 * writes. A kernel that reads an array twice moves more, and one that finds it in a cache moves less to and from the
 * memory behind. FLOPs are those of node->flops: products alone; backward takes as many for the parameters, and as many
 * for the input.
 *
 * An operation's workspace is left out on purpose. How much goes through it depends on the implementation; the bytes
 * here are those that every implementation moves. So all implementations are compared with the same roof, and one that
 * writes a workspace and reads it again is further below it.
 */
#ifndef COMMON_NN_STEP_PARTS_H
#define COMMON_NN_STEP_PARTS_H

#include "common/nn/session.h"

/* Images of the data set, fewer where they are large; parts that are no node's. */
enum { STEP_PARTS_IMAGES = 8192, STEP_PARTS_BYTES = 1 << 28, STEP_PARTS_OTHERS = 9 };

typedef enum StepPartKind {
  PART_GATHER,
  PART_MIX,
  PART_NARROW,
  PART_FORWARD,
  PART_LOSS,
  PART_LOSS_BACK,
  PART_LOSS_STEP,
  PART_BACKWARD,
  PART_UNSCALE,
  PART_CLIP,
  PART_UPDATE,
  PART_AVERAGE
} StepPartKind;

typedef struct StepPart {
  StepPartKind kind;
  int node; /* of forward and backward */
  const char *layer, *direction;
  double bytes, flops;
} StepPart;

typedef struct StepParts {
  Model *net;
  DeviceSet set;
  int batch, images, step;
  StepPart *part;
  int count;
} StepParts;

/* ----------------------------------------------------------------------------------------------------------- bytes */

static inline double step_parts_output_bytes(const StepParts *s, int node) {
  return (double)node_bytes(&s->net->graph->nodes[node]) * s->batch;
}

/* A lowered operation reads a copy of 16 bits of what it multiplies (half_weights.h). */
static inline double step_parts_param_bytes(const Param *p) {
  return (double)p->count * (p->half_channels > 0 ? sizeof(uint16_t) : sizeof(float));
}

static inline double step_parts_saved_bytes(const StepParts *s, const Node *node) {
  return node->op->saved_bytes ? (double)node->op->saved_bytes(node, s->batch) : 0;
}

static inline double step_parts_forward_bytes(const StepParts *s, int i) {
  const Node *node = &s->net->graph->nodes[i];
  double bytes = step_parts_output_bytes(s, i) + step_parts_saved_bytes(s, node);
  if (node->op->flags & (OP_PASSED | OP_ABSORBED)) return 0;
  for (int k = 0; k < node->inputs; k++) bytes += step_parts_output_bytes(s, node->input[k]);
  for (int k = 0; k < node->params; k++) bytes += step_parts_param_bytes(&node->param[k]);
  return bytes;
}

static inline double step_parts_backward_bytes(const StepParts *s, int i) {
  const Node *node = &s->net->graph->nodes[i];
  const PlanNode *plan = &s->net->plan.node[i];
  double bytes = step_parts_output_bytes(s, i) + step_parts_saved_bytes(s, node);
  if (node->op->flags & (OP_PASSED | OP_ABSORBED)) return 0;
  if (node->op->backward_needs & BACKWARD_NEEDS_Y) bytes += step_parts_output_bytes(s, i);
  for (int k = 0; k < node->inputs; k++) {
    const double input = step_parts_output_bytes(s, node->input[k]);
    if (op_backward_reads(node->op, k)) bytes += input;
    if (plan->writes[k]) bytes += plan->extra[k] == PLAN_NONE ? input : 4 * input; /* added to what is there: 3 more */
  }
  for (int k = 0; k < node->params; k++)
    bytes += step_parts_param_bytes(&node->param[k]) +
             (node->param[k].trained ? (double)node->param[k].count * sizeof(float) : 0);
  return bytes;
}

static inline double step_parts_backward_flops(const StepParts *s, int i) {
  const Node *node = &s->net->graph->nodes[i];
  int times = 0, trained = 0;
  for (int k = 0; k < node->inputs; k++) times |= s->net->plan.node[i].writes[k];
  for (int k = 0; k < node->params; k++) trained |= node->param[k].trained;
  return (times + trained) * node->flops * s->batch;
}

/* Of all losses: what they look at, targets, what they save, a float per sample; and, backward, their gradients. */
static inline double step_parts_loss_bytes(const StepParts *s, int back) {
  const Graph *g = s->net->graph;
  double bytes = 0;
  for (int l = 0; l < g->loss_count; l++) {
    const Shape shape = graph_shape(g, g->losses[l].node);
    const double x = (double)shape_count(shape) * sizeof(float),
                 targets = (double)g->losses[l].loss->target_bytes(shape);
    const double saved = (double)g->losses[l].loss->saved_floats(shape) * sizeof(float);
    bytes += s->batch * (saved + targets + (back ? x : x + sizeof(float)));
  }
  return bytes;
}

/* Of the gradients alone. */
static inline double step_parts_gradient_bytes(const StepParts *s) {
  const Graph *g = s->net->graph;
  double bytes = 0;
  for (int l = 0; l < g->loss_count; l++) bytes += step_parts_output_bytes(s, g->losses[l].node);
  return bytes;
}

/* The weights that lowered operations multiply are read, their two copies are written (half_weights.h). */
static inline double step_parts_narrow_bytes(const StepParts *s) {
  int node = 0, index = 0;
  double bytes = 0;
  const Param *p;
  while ((p = model_next_param(s->net, &node, &index)) != NULL)
    if (p->half_channels > 0)
      bytes += (double)p->count * sizeof(float) +
               (double)half_weight_count((int)p->dim[0], p->half_channels, p->half_pixels) * sizeof(uint16_t);
  return bytes;
}

/* Gradients are read and written. */
static inline double step_parts_unscale_bytes(const StepParts *s) {
  return (double)s->net->parameter_count * sizeof(float) * 2;
}

/* Parameters and slots are read and written, gradients read. */
static inline double step_parts_update_bytes(const StepParts *s) {
  return (double)s->net->parameter_count * sizeof(float) * (3 + 2 * s->net->optimizer->slots);
}

/* By value each gradient is read and written, by norm it is read once more. */
static inline double step_parts_clip_bytes(const StepParts *s) {
  const int times = (s->net->clip_value > 0 ? 2 : 0) + (s->net->clip_norm > 0 ? 3 : 0);
  return (double)s->net->parameter_count * sizeof(float) * times;
}

/* The weights and their average are read, the average is written; running statistics likewise. */
static inline double step_parts_average_bytes(const StepParts *s) {
  return (double)(s->net->parameter_count + s->net->buffer_count) * sizeof(float) * 3;
}

/* Pixels, labels and their order are read; floats and labels are written. */
static inline double step_parts_gather_bytes(const StepParts *s) {
  const size_t label = s->set.labels ? sizeof(uint8_t) : sizeof(int);
  return s->batch * ((double)s->set.pixels * (1 + sizeof(float)) + sizeof(uint32_t) + (double)label + sizeof(int));
}

/* ------------------------------------------------------------------------------------------------------------ parts */

/* Random pixels and labels, in the form of a data set. */
static inline void step_parts_create_set(DeviceSet *set, Device device, const Task *task, const DataSource *source,
                                         int images, uint64_t seed) {
  const size_t bytes = (size_t)images * shape_count(source->shape);
  uint8_t *pixels = (uint8_t *)xmalloc(bytes);
  int *labels = (int *)xmalloc((size_t)images * sizeof *labels);
  for (size_t i = 0; i < bytes; i += 4) {
    const PhiloxBlock block = philox4x32(seed, 1, i);
    for (size_t j = 0; j < 4 && i + j < bytes; j++) pixels[i + j] = (uint8_t)block.word[j];
  }
  for (int i = 0; i < images; i++) labels[i] = (int)(philox4x32(seed, 2, i).word[0] % source->classes);
  const DataSet host = {source->shape, images, source->classes, pixels, labels};
  DataNorm norm;
  memset(&norm, 0, sizeof norm);
  norm.channels = source->shape.dim[0];
  for (int c = 0; c < norm.channels; c++) {
    norm.mean[c] = 0.5f;
    norm.stddev[c] = 0.29f;
  }
  device_set_create(set, device, task->batches, &host, images, &norm);
  device_set_shuffle(set, seed, 0);
  free(pixels);
  free(labels);
}

static inline void step_parts_add(StepParts *s, StepPartKind kind, int node, const char *layer, const char *direction,
                                  double bytes, double flops) {
  const StepPart part = {kind, node, layer, direction, bytes, flops};
  s->part[s->count++] = part;
}

/* The operations of a step of `net`, or, where it is opened to infer, of its forward pass. batch: at most
 * STEP_PARTS_IMAGES. */
static inline void step_parts_open(StepParts *s, const Task *task, const DataSource *source, Model *net, int batch,
                                   uint64_t seed) {
  const Graph *g = net->graph;
  memset(s, 0, sizeof *s);
  s->net = net;
  s->batch = batch;
  s->part = (StepPart *)xcalloc(2 * (size_t)g->count + STEP_PARTS_OTHERS, sizeof *s->part);
  s->images = STEP_PARTS_IMAGES;
  while (s->images / 2 >= batch && (size_t)s->images * shape_count(source->shape) > STEP_PARTS_BYTES) s->images /= 2;
  step_parts_create_set(&s->set, net->context.device, task, source, s->images, seed);
  const int trains = net->use == MODEL_TRAIN;
  net->context.training = trains;
  if (trains) step_parts_add(s, PART_GATHER, 0, "batch", "gather", step_parts_gather_bytes(s), 0);
  if (trains && net->context.mixup > 0)
    step_parts_add(s, PART_MIX, 0, "batch", "mix", 2.0 * s->set.pixels * batch * sizeof(float), 0);
  if (net->half) step_parts_add(s, PART_NARROW, 0, "weights", dtype_name(g->type), step_parts_narrow_bytes(s), 0);
  for (int i = 0; i < g->count; i++)
    if (g->nodes[i].op)
      step_parts_add(s, PART_FORWARD, i, g->nodes[i].name, "forward", step_parts_forward_bytes(s, i),
                     g->nodes[i].flops * batch);
  if (!trains) return;
  if (model_has_loss_step(net)) {
    step_parts_add(s, PART_LOSS_STEP, 0, "loss", "step", step_parts_loss_bytes(s, 0) + step_parts_gradient_bytes(s), 0);
  } else {
    step_parts_add(s, PART_LOSS, 0, "loss", "forward", step_parts_loss_bytes(s, 0), 0);
    step_parts_add(s, PART_LOSS_BACK, 0, "loss", "backward", step_parts_loss_bytes(s, 1), 0);
  }
  for (int i = g->count - 1; i >= 0; i--)
    if (model_goes_back(net, i))
      step_parts_add(s, PART_BACKWARD, i, g->nodes[i].name, "backward", step_parts_backward_bytes(s, i),
                     step_parts_backward_flops(s, i));
  if (net->loss_scale) step_parts_add(s, PART_UNSCALE, 0, "gradients", "unscale", step_parts_unscale_bytes(s), 0);
  if (net->clip_value > 0 || net->clip_norm > 0)
    step_parts_add(s, PART_CLIP, 0, "gradients", "clip", step_parts_clip_bytes(s), 0);
  step_parts_add(s, PART_UPDATE, 0, net->optimizer->name, "update", step_parts_update_bytes(s), 0);
  if (net->average) step_parts_add(s, PART_AVERAGE, 0, "weights", "average", step_parts_average_bytes(s), 0);
}

static inline void step_parts_close(StepParts *s) {
  device_set_destroy(&s->set);
  free(s->part);
  memset(s, 0, sizeof *s);
}

/* Another batch of the set each time. */
static inline void step_parts_gather(StepParts *s) {
  const size_t start = (size_t)s->step++ * s->batch % (s->images - s->batch + 1);
  model_range_begin(s->net, "batch", "gather");
  device_set_gather(&s->set, s->net, (int)start, s->batch);
  model_range_end(s->net);
}

static inline void step_part_run(StepParts *s, int i) {
  Model *net = s->net;
  switch (s->part[i].kind) {
    case PART_GATHER:
      step_parts_gather(s);
      break;
    case PART_MIX:
      model_mix(net, s->batch);
      break;
    case PART_NARROW:
      model_narrow_weights(net);
      break;
    case PART_FORWARD:
      model_forward_node(net, s->part[i].node, s->batch);
      break;
    case PART_LOSS:
      model_score(net, s->batch);
      break;
    case PART_LOSS_BACK:
      model_loss_gradients(net, s->batch);
      break;
    case PART_LOSS_STEP:
      model_loss_step(net, s->batch);
      break;
    case PART_BACKWARD:
      model_backward_node(net, s->part[i].node, s->batch);
      break;
    case PART_UNSCALE:
      model_unscale(net);
      break;
    case PART_CLIP:
      model_clip(net);
      break;
    case PART_UPDATE:
      model_optimize(net);
      break;
    case PART_AVERAGE:
      model_average(net);
      break;
  }
  if (net->use == MODEL_TRAIN && i == s->count - 1) net->context.step++;
}

/* Whether it computes anything: a node that another one computes does not (fuse.h). */
static inline int step_part_works(const StepParts *s, int i) {
  const StepPart *part = &s->part[i];
  const int of_node = part->kind == PART_FORWARD || part->kind == PART_BACKWARD;
  return !(of_node && (s->net->graph->nodes[part->node].op->flags & (OP_PASSED | OP_ABSORBED)));
}

#endif /* COMMON_NN_STEP_PARTS_H */
