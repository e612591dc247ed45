/* model_arrays.h - what a Model (model.h) is, and where its arrays lie. */
#ifndef COMMON_NN_MODEL_ARRAYS_H
#define COMMON_NN_MODEL_ARRAYS_H

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

static inline void *model_array(const Model *m, int array) {
  return array == PLAN_NONE ? NULL : m->arena + m->plan.arrays[array].offset;
}

static inline float *model_param(const Model *m, const Param *p) {
  return (p->trained ? m->parameters : m->buffers) + p->offset;
}

/* The output of a node, (batch, shape); valid as long as the plan keeps it. */
static inline float *model_output(const Model *m, int node) {
  const Node *n = &m->graph->nodes[node];
  if (n->op && (n->op->flags & OP_VIEW)) return model_output(m, n->input[0]);
  if (n->op && (n->op->flags & OP_CONSTANT)) return model_param(m, &n->param[0]);
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

static inline float *model_gradient(const Model *m, const Param *p) {
  return p->trained && m->gradients ? m->gradients + p->offset : NULL;
}

#endif /* COMMON_NN_MODEL_ARRAYS_H */
