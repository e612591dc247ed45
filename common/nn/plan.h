/* plan.h - where every array of a network lies: one arena, in which arrays that are never needed together share bytes.
 *
 * A training step of n nodes is 2n + 2 moments:
 *
 *     0 .. n-1      forward of node i at moment i
 *     n, n+1        the losses, and their gradients
 *     n+2 .. 2n+1   backward of node i at moment 2n+1-i
 *
 * An array lives from the moment that writes it to the last that reads it. What backward reads is kept until then, by
 * Op.backward_needs; without training nobody reads it again, and its bytes go to others. An operation that works
 * element by element writes over its input where nothing else will read that. plan_create() follows from the graph
 * alone: it allocates nothing on the device.
 */
#ifndef COMMON_NN_PLAN_H
#define COMMON_NN_PLAN_H

#include "common/nn/graph.h"

typedef enum ModelUse { MODEL_INFER, MODEL_TRAIN } ModelUse;

enum { PLAN_ALIGN = 256, PLAN_NONE = -1 };

typedef struct PlanArray {
  size_t bytes, offset; /* of the arena */
  int first, last;      /* moments */
} PlanArray;

/* Arrays of one node, as indices into Plan.arrays; PLAN_NONE where there is none. */
typedef struct PlanNode {
  int output, gradient;        /* y, and the gradient of all losses with respect to it */
  int saved;                   /* from forward to backward */
  int forward_work, back_work; /* scratch of one moment */
  int extra[NODE_MAX_INPUTS];  /* dx of an input whose gradient another node has begun: to be added to it */
  int writes[NODE_MAX_INPUTS]; /* whether backward gives dx of this input */
  int leads;                   /* to a loss */
  int trains;                  /* backward runs: it leads to a loss, and it or one before it has what is trained */
  int in_place;                /* y lies over x[0] */
} PlanNode;

typedef struct Plan {
  ModelUse use;
  int max_batch, nodes;
  PlanNode *node;
  PlanArray *arrays;
  int count;
  int loss_saved[GRAPH_MAX_LOSSES], loss_each[GRAPH_MAX_LOSSES]; /* probabilities; one float per sample */
  int targets[GRAPH_MAX_LOSSES];
  size_t arena_bytes;
  size_t live_bytes; /* the most that is needed at one moment: no arena can be smaller */
} Plan;

static inline int plan_forward_moment(int i) { return i; }
static inline int plan_loss_moment(const Plan *plan) { return plan->nodes; }
static inline int plan_backward_moment(const Plan *plan, int i) { return 2 * plan->nodes + 1 - i; }
static inline int plan_end(const Plan *plan) { return 2 * plan->nodes + 1; }

static inline int plan_array(Plan *plan, size_t bytes, int first, int last) {
  PlanArray *a = &plan->arrays[plan->count];
  a->bytes = (bytes + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
  a->offset = 0;
  a->first = first;
  a->last = last;
  return plan->count++;
}

static inline void plan_until(Plan *plan, int array, int moment) {
  if (array != PLAN_NONE && plan->arrays[array].last < moment) plan->arrays[array].last = moment;
}

/* Samples of node i in the largest batch. */
static inline int plan_samples(const Plan *plan, const Graph *g, int i) {
  return node_samples(&g->nodes[i], plan->max_batch);
}

/* Its output in bytes. */
static inline size_t plan_output_bytes(const Plan *plan, const Graph *g, int i) {
  return node_bytes(&g->nodes[i]) * (size_t)plan_samples(plan, g, i);
}

/* ------------------------------------------------------------------------------------------------------- lifetimes */

/* Of which nodes backward runs. */
static inline void plan_training(Plan *plan, const Graph *g) {
  if (plan->use != MODEL_TRAIN) return;
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    for (int p = 0; p < node->params; p++) plan->node[i].trains |= node->param[p].trained;
    for (int k = 0; k < node->inputs; k++) plan->node[i].trains |= plan->node[node->input[k]].trains;
  }
  for (int l = 0; l < g->loss_count; l++) plan->node[g->losses[l].node].leads = 1;
  for (int i = g->count - 1; i >= 0; i--) {
    const Node *node = &g->nodes[i];
    for (int k = 0; k < node->inputs; k++) plan->node[node->input[k]].leads |= plan->node[i].leads;
    plan->node[i].trains &= plan->node[i].leads;
  }
}

/* Whether node i's output is the array of its first input. */
static inline int plan_is_same_array(const Graph *g, int i) {
  return g->nodes[i].op && (g->nodes[i].op->flags & (OP_PASSED | OP_VIEW));
}

/* The last moment at which somebody but `except` reads node p's output as it was written. */
static inline int plan_last_reader(const Plan *plan, const Graph *g, int p, int except) {
  int last = plan_forward_moment(p);
  for (int j = p + 1; j < g->count; j++)
    for (int k = 0; k < g->nodes[j].inputs; k++) {
      if (g->nodes[j].input[k] != p) continue;
      int moment = plan_forward_moment(j);
      if (j == except) moment = 0;
      if (plan->node[j].trains && op_backward_reads(g->nodes[j].op, k)) moment = plan_backward_moment(plan, j);
      if (moment > last) last = moment;
    }
  if (plan->node[p].trains && g->nodes[p].op && (g->nodes[p].op->backward_needs & BACKWARD_NEEDS_Y))
    last = plan_backward_moment(plan, p);
  for (int l = 0; l < g->loss_count; l++)
    if (g->losses[l].node == p && last < plan_loss_moment(plan)) last = plan_loss_moment(plan);
  if (graph_is_output(g, p) || g->nodes[p].op == NULL) last = plan_end(plan); /* what people fill and read stays */
  if (plan_is_same_array(g, p)) {
    const int input = plan_last_reader(plan, g, g->nodes[p].input[0], p);
    if (input > last) last = input;
  }
  return last;
}

/* Whether node i works element by element on its first input: y may lie over it, and dx over dy. */
static inline int plan_element_by_element(const Graph *g, int i) {
  const Node *node = &g->nodes[i];
  if (node->op == NULL || !(node->op->flags & OP_IN_PLACE)) return 0;
  const Node *x = &g->nodes[node->input[0]];
  return shape_equal(node->shape, x->shape) && node->whole == x->whole && node_bytes(node) == node_bytes(x);
}

/* Of which node node i's output is the array, perhaps under another name. */
static inline int plan_array_owner(const Graph *g, int i) {
  while (plan_is_same_array(g, i)) i = g->nodes[i].input[0];
  return i;
}

/* The last moment at which somebody but `except` reads the array of node p, by whatever name. */
static inline int plan_last_array_reader(const Plan *plan, const Graph *g, int p, int except) {
  const int owner = plan_array_owner(g, p);
  int last = 0;
  for (int i = owner; i < except; i++) {
    if (i != owner && !(plan_is_same_array(g, i) && plan_array_owner(g, i) == owner)) continue;
    const int reader = plan_last_reader(plan, g, i, except);
    if (reader > last) last = reader;
  }
  return last;
}

/* Whether node i may write its output over that of its first input. */
static inline int plan_may_overwrite(const Plan *plan, const Graph *g, int i) {
  if (plan_is_same_array(g, i)) return (g->nodes[i].op->flags & OP_VIEW) || plan_element_by_element(g, i);
  if (!plan_element_by_element(g, i)) return 0;
  const int p = g->nodes[i].input[0];
  if (plan->node[p].output == PLAN_NONE) return 0; /* a constant */
  /* Two names for one array: what reads p after i is written would read i. */
  return plan_last_array_reader(plan, g, p, i) < plan_forward_moment(i);
}

static inline void plan_forward_arrays(Plan *plan, const Graph *g, const Context *context) {
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    PlanNode *n = &plan->node[i];
    const int moment = plan_forward_moment(i);
    if (node->op && (node->op->flags & (OP_ABSORBED | OP_CONSTANT))) continue;
    n->in_place = plan_may_overwrite(plan, g, i);
    n->output = n->in_place ? plan->node[node->input[0]].output
                            : plan_array(plan, plan_output_bytes(plan, g, i), node->op ? moment : 0, moment);
    plan_until(plan, n->output, plan_last_reader(plan, g, i, PLAN_NONE));
    if (node->op == NULL) continue;
    const int samples = plan_samples(plan, g, i);
    const size_t saved = node->op->saved_bytes ? node->op->saved_bytes(node, samples) : 0;
    const size_t work = node->op->workspace_floats ? node->op->workspace_floats(context, node, samples) : 0;
    const int kept = n->trains ? plan_backward_moment(plan, i) : moment;
    if (saved) n->saved = plan_array(plan, saved, moment, kept);
    if (work) n->forward_work = plan_array(plan, work * sizeof(float), moment, moment);
    if (work && n->trains) n->back_work = plan_array(plan, work * sizeof(float), kept, kept);
  }
}

static inline void plan_loss_arrays(Plan *plan, const Graph *g) {
  for (int l = 0; l < g->loss_count; l++) {
    const GraphLoss *loss = &g->losses[l];
    const Shape shape = graph_shape(g, loss->node);
    const size_t batch = plan->max_batch;
    const int end = plan_end(plan), moment = plan_loss_moment(plan);
    plan->targets[l] = plan_array(plan, batch * loss->loss->target_bytes(shape), 0, end);
    plan->loss_each[l] = plan_array(plan, batch * sizeof(float), moment, end);
    plan->loss_saved[l] = plan_array(plan, batch * loss->loss->saved_floats(shape) * sizeof(float), moment, end);
    PlanNode *n = &plan->node[loss->node];
    if (!n->trains) continue;
    n->gradient = plan_array(plan, plan_output_bytes(plan, g, loss->node), loss->loss->step ? moment : moment + 1,
                             plan_backward_moment(plan, loss->node));
    if (loss->loss->needs_x) plan_until(plan, n->output, moment + 1);
  }
}

/* How many nodes, inputs of one node counted each, give a gradient to p. */
static inline int plan_gradient_writers(const Plan *plan, const Graph *g, int p) {
  int writers = 0;
  for (int j = p + 1; j < g->count; j++)
    for (int k = 0; k < g->nodes[j].inputs; k++)
      writers += g->nodes[j].input[k] == p && plan->node[j].gradient != PLAN_NONE;
  for (int l = 0; l < g->loss_count; l++) writers += g->losses[l].node == p;
  return writers;
}

/* Whether both inputs of node i can have one array for their gradients, which are the same. Backward of the later input
 * runs first: it must only read the array, and nobody adds to it before, by either name. What is done to it after that
 * is for the earlier input alone. */
static inline int plan_may_share_gradient(const Plan *plan, const Graph *g, int i) {
  const Node *node = &g->nodes[i];
  if (!(node->op->flags & OP_SAME_GRADIENT) || node->inputs != 2) return 0;
  if (!plan->node[i].writes[0] || plan->node[i].extra[0] != PLAN_NONE) return 0;
  const int a = node->input[0], b = node->input[1], later = a > b ? a : b, earlier = a > b ? b : a;
  if (a == b || plan_element_by_element(g, later) || plan_gradient_writers(plan, g, later) != 1) return 0;
  for (int j = later + 1; j < i; j++)
    for (int k = 0; k < g->nodes[j].inputs; k++)
      if (g->nodes[j].input[k] == earlier && plan->node[j].gradient != PLAN_NONE) return 0;
  return 1;
}

/* From the last node to the first: a gradient is begun by the first that writes it, and added to by the others. */
static inline void plan_gradient_arrays(Plan *plan, const Graph *g) {
  for (int i = g->count - 1; i >= 0; i--) {
    const Node *node = &g->nodes[i];
    PlanNode *n = &plan->node[i];
    const int moment = plan_backward_moment(plan, i);
    if (n->gradient == PLAN_NONE) continue; /* nothing that is learned depends on it */
    for (int k = 0; k < node->inputs; k++) {
      PlanNode *p = &plan->node[node->input[k]];
      if (!p->trains) continue;
      n->writes[k] = 1;
      if (p->gradient != PLAN_NONE) {
        n->extra[k] = plan_array(plan, plan_output_bytes(plan, g, node->input[k]), moment, moment);
        continue;
      }
      const int last = plan_backward_moment(plan, node->input[k]);
      if (k == 0 && plan_element_by_element(g, i) && plan_gradient_writers(plan, g, node->input[k]) == 1) {
        p->gradient = n->gradient;
        plan_until(plan, p->gradient, last);
      } else if (k == 1 && plan_may_share_gradient(plan, g, i)) {
        p->gradient = plan->node[node->input[0]].gradient;
        plan_until(plan, p->gradient, last);
      } else {
        p->gradient = plan_array(plan, plan_output_bytes(plan, g, node->input[k]), moment, last);
      }
    }
  }
}

/* ----------------------------------------------------------------------------------------------------------- arena */

static inline int plan_together(const PlanArray *a, const PlanArray *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* Places the arrays in this order, each at the lowest offset where nothing lives at the same time. The arena's size. */
static inline size_t plan_place(Plan *plan, const int *order) {
  size_t arena = 0;
  int *placed = (int *)xmalloc(plan->count * sizeof *placed); /* by offset */
  for (int i = 0; i < plan->count; i++) {
    PlanArray *a = &plan->arrays[order[i]];
    size_t offset = 0;
    for (int j = 0; j < i; j++) {
      const PlanArray *b = &plan->arrays[placed[j]];
      if (!plan_together(a, b)) continue;
      if (offset + a->bytes <= b->offset) break;
      if (b->offset + b->bytes > offset) offset = b->offset + b->bytes;
    }
    a->offset = offset;
    if (offset + a->bytes > arena) arena = offset + a->bytes;
    int j = i;
    while (j > 0 && plan->arrays[placed[j - 1]].offset > offset) {
      placed[j] = placed[j - 1];
      j--;
    }
    placed[j] = order[i];
  }
  free(placed);
  return arena;
}

/* By size, then by lifetime, the largest first; by lifetime, then by size; or as they are made. */
enum { PLAN_ORDERS = 3 };

static inline int plan_before(const Plan *plan, int kind, int x, int y) {
  const PlanArray *a = &plan->arrays[x], *b = &plan->arrays[y];
  const int a_life = a->last - a->first, b_life = b->last - b->first;
  if (kind == 0 && a->bytes != b->bytes) return a->bytes > b->bytes;
  if (kind <= 1 && a_life != b_life) return a_life > b_life;
  if (kind == 1 && a->bytes != b->bytes) return a->bytes > b->bytes;
  return x < y;
}

static inline void plan_order(const Plan *plan, int kind, int *order) {
  for (int i = 0; i < plan->count; i++) {
    int j = i;
    while (j > 0 && plan_before(plan, kind, i, order[j - 1])) {
      order[j] = order[j - 1];
      j--;
    }
    order[j] = i;
  }
}

/* The most bytes that live at one moment. */
static inline size_t plan_most_alive(const Plan *plan) {
  size_t most = 0;
  for (int moment = 0; moment <= plan_end(plan); moment++) {
    size_t alive = 0;
    for (int i = 0; i < plan->count; i++)
      if (plan->arrays[i].first <= moment && moment <= plan->arrays[i].last) alive += plan->arrays[i].bytes;
    if (alive > most) most = alive;
  }
  return most;
}

static inline void plan_arena(Plan *plan) {
  int *order = (int *)xmalloc(plan->count * sizeof *order), best = 0;
  plan->live_bytes = plan_most_alive(plan);
  plan->arena_bytes = SIZE_MAX;
  for (int kind = 0; kind < PLAN_ORDERS && plan->arena_bytes > plan->live_bytes; kind++) {
    plan_order(plan, kind, order);
    const size_t bytes = plan_place(plan, order);
    if (bytes >= plan->arena_bytes) continue;
    plan->arena_bytes = bytes;
    best = kind;
  }
  plan_order(plan, best, order);
  plan_place(plan, order);
  free(order);
}

/* ----------------------------------------------------------------------------------------------------------- plans */

/* The context says on which device; operations may need other scratch there. Their workspace_floats() gets it with
 * `training` set where backward will run: what only backward needs is not reserved to infer. */
static inline void plan_create(Plan *plan, const Graph *g, const Context *context, int max_batch, ModelUse use) {
  memset(plan, 0, sizeof *plan);
  plan->use = use;
  plan->max_batch = max_batch;
  plan->nodes = g->count;
  plan->node = (PlanNode *)xcalloc(g->count, sizeof *plan->node);
  const size_t most = (size_t)g->count * (5 + NODE_MAX_INPUTS) + 4 * GRAPH_MAX_LOSSES;
  plan->arrays = (PlanArray *)xcalloc(most, sizeof *plan->arrays);
  for (int i = 0; i < g->count; i++) {
    PlanNode *n = &plan->node[i];
    n->output = n->gradient = n->saved = n->forward_work = n->back_work = PLAN_NONE;
    for (int k = 0; k < NODE_MAX_INPUTS; k++) n->extra[k] = PLAN_NONE;
  }
  for (int l = 0; l < GRAPH_MAX_LOSSES; l++) plan->loss_saved[l] = plan->loss_each[l] = plan->targets[l] = PLAN_NONE;
  plan_training(plan, g);
  Context asked = *context;
  asked.training = use == MODEL_TRAIN;
  plan_forward_arrays(plan, g, &asked);
  plan_loss_arrays(plan, g);
  plan_gradient_arrays(plan, g);
  plan_arena(plan);
}

static inline void plan_destroy(Plan *plan) {
  free(plan->node);
  free(plan->arrays);
  memset(plan, 0, sizeof *plan);
}

/* Bytes of node i that outlive its forward: its output, unless another's array, and what it saves. */
static inline size_t plan_kept_bytes(const Plan *plan, int i) {
  const PlanNode *n = &plan->node[i];
  if (n->output == PLAN_NONE) return 0;
  const PlanArray *output = &plan->arrays[n->output];
  size_t kept = !n->in_place && output->last > plan->nodes ? output->bytes : 0;
  if (n->saved != PLAN_NONE && plan->arrays[n->saved].last > plan->nodes) kept += plan->arrays[n->saved].bytes;
  return kept;
}

#endif /* COMMON_NN_PLAN_H */
