/* implementation.h - which implementation of an operation computes a node: by name, or the fastest of them, measured.
 *
 * An operation with several implementations has a table of them, beside its Ops:
 *
 *     static const Implementation conv2d_implementations[] = {{"tiled", &conv2d_op, NULL}, {"naive", &naive_op, NULL}};
 *     static const OpChoice conv2d_choice = {"conv", conv2d_implementations, 2};
 *
 * and a program that names the table in its Task has the option --conv:
 *
 *     --conv=naive              every convolution that it fits
 *     --conv=conv2:naive        the node conv2
 *     --conv=auto               each node by the fastest, measured forward and backward when the model is opened
 *     --conv=auto,conv1:tiled   later words count more
 *
 * A kernel of your own runs in a network in the same way: an Op around it, and a line in a table.
 *
 * A library computes many operations. Its table pairs each of its Ops with ours, and the choice is between tables:
 *
 *     static const OpPair pairs[] = {{&conv2d_op, &library_conv2d_op}, {&max_pool2d_op, &library_pool_op}};
 *     static const OpTable ours = {{"ours", 0, OP_TABLE, ...}, NULL, 0};
 *     static const OpTable library = {{"library", 0, OP_TABLE, ...}, pairs, 2};
 *     static const Implementation layers[] = {{"ours", &ours.op, NULL}, {"library", &library.op, fits}};
 *     static const OpChoice layer_choice = {"layers", layers, 2};      // --layers=library,conv1:ours
 *
 * Operations that are computed together (fuse.h) are separated where one of them gets an Op of the library; auto
 * compares the library with all of a group.
 *
 * What was chosen is a text, "conv1:tiled,conv2:naive": a run keeps it in its checkpoint, so that a resumed run
 * computes the same.
 */
#ifndef COMMON_NN_IMPLEMENTATION_H
#define COMMON_NN_IMPLEMENTATION_H

#include "common/nn/fuse.h"
#include "common/nn/model.h"
#include "common/philox.h"
#include "common/timer.h"

enum { IMPLEMENTATION_TEXT = 4096, IMPLEMENTATION_ROUNDS = 5 };
#define IMPLEMENTATION_AUTO "auto"

typedef struct ImplementationNames {
  char text[512];
} ImplementationNames;

/* "tiled, naive" */
static inline ImplementationNames implementation_names(const OpChoice *choice) {
  ImplementationNames names = {""};
  for (int i = 0; i < choice->count; i++) {
    const size_t used = strlen(names.text);
    snprintf(names.text + used, sizeof names.text - used, "%s%s", i ? ", " : "", choice->list[i].name);
  }
  return names;
}

/* The index of the implementation of this name, of `length` characters; -1: none. */
static inline int implementation_find(const OpChoice *choice, const char *name, size_t length) {
  for (int i = 0; i < choice->count; i++)
    if (strlen(choice->list[i].name) == length && strncmp(choice->list[i].name, name, length) == 0) return i;
  return -1;
}

/* What computed the node before it was computed together with others (fuse.h). */
static inline const Op *implementation_plain(const Node *node) { return node->plain ? node->plain : node->op; }

/* The Op of `table` for this node, which one of ours or the table's own computes now; NULL: it has none. */
static inline const Op *implementation_pair(const OpTable *table, const Node *node) {
  for (int i = 0; i < table->count; i++)
    if (implementation_plain(node) == table->pairs[i].ours || node->op == table->pairs[i].other)
      return table->pairs[i].other;
  return NULL;
}

/* The Op of ours that an Op of the table stands for; NULL: it is none of the table's. */
static inline const Op *implementation_ours(const OpTable *table, const Op *op) {
  for (int i = 0; i < table->count; i++)
    if (op == table->pairs[i].other) return table->pairs[i].ours;
  return NULL;
}

/* NULL: the implementation is one Op. */
static inline const OpTable *implementation_table(const Implementation *implementation) {
  return implementation->op->flags & OP_TABLE ? (const OpTable *)implementation->op : NULL;
}

/* Which implementation computes this node; -1: the choice is not about its operation. */
static inline int implementation_of(const OpChoice *choice, const Node *node) {
  int known = -1;
  for (int i = 0; i < choice->count && node->op; i++) {
    const OpTable *table = implementation_table(&choice->list[i]);
    if (table == NULL && node->op == choice->list[i].op) return i;
    if (table == NULL || implementation_pair(table, node) == NULL) continue;
    if (implementation_ours(table, node->op)) return i;
    known = 0;
  }
  return known;
}

/* The node gets implementation k, which fits. */
static inline void implementation_place(const OpChoice *choice, int k, Graph *g, int i) {
  const OpTable *table = implementation_table(&choice->list[k]);
  Node *node = &g->nodes[i];
  if (table == NULL) {
    node->op = choice->list[k].op;
    return;
  }
  const Op *other = implementation_pair(table, node);
  if (other) {
    graph_unfuse_group(g, i);
    node->op = other;
    return;
  }
  for (int j = 0; j < choice->count; j++) { /* ours again */
    const OpTable *now = implementation_table(&choice->list[j]);
    const Op *ours = now ? implementation_ours(now, node->op) : NULL;
    if (ours) node->op = ours;
  }
}

/* -1 where it cannot compute the node; the message says why. */
static inline int implementation_fits(const Implementation *implementation, const Node *node, Error *err) {
  return implementation->fits ? implementation->fits(implementation, node, err) : 0;
}

/* ------------------------------------------------------------------------------------------------------ by its name */

/* One word of a text: "NAME" or "NODE:NAME". */
typedef struct ImplementationWord {
  const char *node, *name; /* node: NULL for all */
  size_t node_length, name_length;
} ImplementationWord;

/* The word at *text, which moves behind it; 0 at the end. */
static inline int implementation_next(const char **text, ImplementationWord *word) {
  if (**text == '\0') return 0;
  const size_t length = strcspn(*text, ",");
  const char *colon = (const char *)memchr(*text, ':', length);
  word->node = colon ? *text : NULL;
  word->node_length = colon ? (size_t)(colon - *text) : 0;
  word->name = colon ? colon + 1 : *text;
  word->name_length = length - (size_t)(word->name - *text);
  *text += length + ((*text)[length] == ',');
  return 1;
}

static inline int implementation_is_auto(const ImplementationWord *word) {
  return word->name_length == strlen(IMPLEMENTATION_AUTO) &&
         strncmp(word->name, IMPLEMENTATION_AUTO, word->name_length) == 0;
}

/* -1 where a word names no implementation. */
static inline int implementation_check(const OpChoice *choice, const char *text, Error *err) {
  ImplementationWord word;
  int words = 0;
  for (const char *at = text; implementation_next(&at, &word); words++)
    if (!implementation_is_auto(&word) && implementation_find(choice, word.name, word.name_length) < 0)
      return error_set(err, "--%s: unknown implementation \"%.*s\"; expected %s or auto", choice->option,
                       (int)word.name_length, word.name, implementation_names(choice).text);
  if (words > 0) return 0;
  return error_set(err, "--%s: an implementation is expected: %s or auto", choice->option,
                   implementation_names(choice).text);
}

/* Whether the text says auto somewhere. */
static inline int implementation_wants_measuring(const char *text) {
  ImplementationWord word;
  for (const char *at = text; implementation_next(&at, &word);)
    if (implementation_is_auto(&word)) return 1;
  return 0;
}

/* The nodes of the choice's operation that a word is about get the implementation, or fastest[node] where the word says
 * auto; `fastest` is NULL where nothing was measured. -1 where a named node does not exist, or does not fit, or where
 * auto cannot be; without a node's name a node that does not fit is left as it was, unless none fits. */
static inline int implementation_apply_word(const OpChoice *choice, const ImplementationWord *word, Graph *g,
                                            const int *fastest, Error *err) {
  int found = 0, fitted = 0, refused = 0;
  for (int i = 0; i < g->count; i++) {
    Node *node = &g->nodes[i];
    Error why;
    if (implementation_of(choice, node) < 0) continue;
    if (word->node &&
        (strlen(node->name) != word->node_length || strncmp(node->name, word->node, word->node_length) != 0))
      continue;
    found = 1;
    if (fastest == NULL && implementation_is_auto(word))
      return error_set(err, "--%s=%s:auto: nothing was measured here; expected %s", choice->option, node->name,
                       implementation_names(choice).text);
    const int k =
        implementation_is_auto(word) ? fastest[i] : implementation_find(choice, word->name, word->name_length);
    if (k < 0)
      return error_set(err, "--%s: unknown implementation \"%.*s\"; expected %s or auto", choice->option,
                       (int)word->name_length, word->name, implementation_names(choice).text);
    if (implementation_fits(&choice->list[k], node, &why) == 0) {
      implementation_place(choice, k, g, i);
      fitted = 1;
    } else if (word->node || !refused) {
      refused = error_set(err, "--%s=%s:%s: %.600s", choice->option, node->name, choice->list[k].name, why.message);
    }
  }
  if (found && !fitted) return refused;
  if (found || word->node == NULL) return 0;
  for (int i = 0; i < g->count; i++)
    if (g->nodes[i].op && strlen(g->nodes[i].name) == word->node_length &&
        strncmp(g->nodes[i].name, word->node, word->node_length) == 0)
      return error_set(err, "--%s=%s:%.*s: of %s there is one implementation here; leave the word out", choice->option,
                       g->nodes[i].name, (int)word->name_length, word->name, g->nodes[i].op->name);
  return error_set(err, "--%s=%.*s:%.*s: the network has no such node; --summary lists them", choice->option,
                   (int)word->node_length, word->node, (int)word->name_length, word->name);
}

/* `text` as the option has it; `fastest` (nodes) may be NULL where it does not say auto. */
static inline int implementation_apply(const OpChoice *choice, const char *text, Graph *g, const int *fastest,
                                       Error *err) {
  ImplementationWord word;
  if (g->failed) return 0; /* model_open() reports it */
  for (const char *at = text; implementation_next(&at, &word);)
    if (implementation_apply_word(choice, &word, g, fastest, err) != 0) return -1;
  return 0;
}

/* "conv1:tiled,conv2:naive": what computes the nodes of this operation now. */
static inline void implementation_text(const OpChoice *choice, const Graph *g, char text[IMPLEMENTATION_TEXT]) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < g->count && used < IMPLEMENTATION_TEXT; i++) {
    const int k = implementation_of(choice, &g->nodes[i]);
    if (k >= 0)
      used += (size_t)snprintf(text + used, IMPLEMENTATION_TEXT - used, "%s%s:%s", used ? "," : "", g->nodes[i].name,
                               choice->list[k].name);
  }
}

/* --------------------------------------------------------------------------------------------------------- measured */

/* Every input a random sample, every label 0: what the kernels read has the size and the spread of what they will. */
static inline void implementation_fill(const Model *m) {
  for (int i = 0; i < m->graph->count; i++) {
    const Node *node = &m->graph->nodes[i];
    if (node->op || node->type != DTYPE_FLOAT32) continue;
    const size_t n = shape_count(node->shape) * (size_t)node_samples(node, m->max_batch);
    float *host = (float *)xmalloc(n * sizeof *host);
    for (size_t j = 0; j < n; j++) host[j] = 2 * philox_uniform(philox4x32(1, (uint32_t)i, j).word[0]) - 1;
    device_upload(m->context.device, model_output(m, i), host, n * sizeof *host);
    free(host);
  }
}

/* Seconds of one forward and, where the model is trained, backward of node i; the median. */
static inline double implementation_time(const Model *m, int i) {
  double samples[IMPLEMENTATION_ROUNDS];
  const int back = m->plan.node[i].gradient != PLAN_NONE;
  for (int round = -1; round < IMPLEMENTATION_ROUNDS; round++) { /* the first warms up */
    device_synchronize(m->context.device);
    const double start = seconds_now();
    model_forward_node(m, i, m->max_batch);
    if (back) model_backward_node(m, i, m->max_batch);
    device_synchronize(m->context.device);
    if (round >= 0) samples[round] = seconds_now() - start;
  }
  return timer_stats(samples, IMPLEMENTATION_ROUNDS).median;
}

/* Whether node i is computed together with others, of which the choice is about one. */
static inline int implementation_group(const OpChoice *choice, const Graph *g, int i) {
  for (int j = 0; j < g->count && g->nodes[i].group; j++)
    if (g->nodes[j].group == g->nodes[i].group && implementation_of(choice, &g->nodes[j]) >= 0) return 1;
  return 0;
}

/* Of what is computed together the whole time counts: seconds (nodes, implementations). */
static inline void implementation_add_groups(const OpChoice *choice, const Graph *g, double *seconds) {
  double *sum = (double *)xcalloc((size_t)g->count * (size_t)choice->count, sizeof *sum);
  for (int i = 0; i < g->count; i++)
    for (int j = 0; j < g->count; j++)
      for (int k = 0; k < choice->count; k++)
        if (i == j || (g->nodes[i].group && g->nodes[i].group == g->nodes[j].group))
          sum[i * choice->count + k] += seconds[j * choice->count + k];
  memcpy(seconds, sum, (size_t)g->count * (size_t)choice->count * sizeof *sum);
  free(sum);
}

/* fastest[node] for every node of the operation, and a line about each on `out`. Opens the model once for each
 * implementation; one that needs more memory than there is takes no part. */
static inline int implementation_measure(const OpChoice *choice, const Graph *g, Context context,
                                         const Optimizer *optimizer, int batch, ModelUse use, int *fastest, FILE *out,
                                         Error *err) {
  double *seconds = (double *)xcalloc((size_t)g->count * (size_t)choice->count, sizeof *seconds);
  int status = 0;
  for (int k = 0; k < choice->count && status == 0; k++) {
    Graph *copy = graph_copy(g);
    Model m;
    int nodes = 0;
    for (int i = 0; i < copy->count; i++)
      if (implementation_of(choice, &g->nodes[i]) >= 0 &&
          implementation_fits(&choice->list[k], &g->nodes[i], err) == 0) {
        implementation_place(choice, k, copy, i);
        nodes++;
      }
    if (nodes == 0) {
      graph_destroy(copy);
      continue;
    }
    if (model_open(&m, copy, context, optimizer, batch, use, err) != 0) {
      if (k == 0) status = -1; /* the usual one */
      fprintf(out, "%s is not measured: %s\n", choice->list[k].name, err->message);
      continue;
    }
    m.context.training = use == MODEL_TRAIN;
    model_init(&m, 1);
    implementation_fill(&m);
    model_forward(&m, batch); /* every node has read what the one before it wrote */
    for (int i = 0; i < g->count; i++)
      if (implementation_of(choice, &m.graph->nodes[i]) == k || implementation_group(choice, g, i))
        seconds[(size_t)i * choice->count + k] = implementation_time(&m, i);
    model_close(&m);
  }
  implementation_add_groups(choice, g, seconds);
  for (int i = 0; i < g->count && status == 0; i++) {
    fastest[i] = -1;
    if (implementation_of(choice, &g->nodes[i]) < 0) continue;
    const double *mine = seconds + (size_t)i * choice->count;
    for (int k = 0; k < choice->count; k++)
      if (mine[k] > 0 && (fastest[i] < 0 || mine[k] < mine[fastest[i]])) fastest[i] = k;
    if (fastest[i] < 0) continue; /* the usual one does not fit, and there was no memory for another */
    fprintf(out, "%s of %d samples:", g->nodes[i].name, batch);
    for (int k = 0; k < choice->count; k++)
      if (mine[k] > 0)
        fprintf(out, " %s %.1f us%s", choice->list[k].name, 1e6 * mine[k], k + 1 < choice->count ? "," : "");
    fprintf(out, "; %s is chosen\n", choice->list[fastest[i]].name);
  }
  free(seconds);
  return status;
}

/* The choice of the option applied to the graph, which is measured first where it says auto. */
static inline int implementation_choose(const OpChoice *choice, const char *text, Graph *g, Context context,
                                        const Optimizer *optimizer, int batch, ModelUse use, FILE *out, Error *err) {
  if (g->failed) return 0; /* model_open() reports it */
  int *fastest = (int *)xcalloc((size_t)g->count + 1, sizeof *fastest), status = 0;
  if (implementation_wants_measuring(text))
    status = implementation_measure(choice, g, context, optimizer, batch, use, fastest, out, err);
  if (status == 0) status = implementation_apply(choice, text, g, fastest, err);
  free(fastest);
  return status;
}

#endif /* COMMON_NN_IMPLEMENTATION_H */
