/* session.h - from a task and a command line to a network in memory: what training, --predict and --summary share. */
#ifndef COMMON_NN_SESSION_H
#define COMMON_NN_SESSION_H

#include "common/nn/fuse.h"
#include "common/nn/lower.h"
#include "common/nn/task.h"

enum { SESSION_MAX_CLASSES = 1000 };

/* ------------------------------------------------------------------------------------------- what a checkpoint says */

/* What the command line chooses among table entries, as a checkpoint keeps it. */
static inline void session_names(const TrainOptions *options, TrainState *state) {
  snprintf(state->data, sizeof state->data, "%s", options->data->name);
  snprintf(state->schedule, sizeof state->schedule, "%s", lr_schedule_text(&options->schedule).text);
  snprintf(state->augment, sizeof state->augment, "%s", options->augment->name);
  snprintf(state->optimizer, sizeof state->optimizer, "%s", options->optimizer ? options->optimizer->name : "");
  snprintf(state->precision, sizeof state->precision, "%s", options->precision ? dtype_name(options->precision) : "");
}

/* The optimizer of the options: the task's own where they ask for nothing else, and where it can skip steps of fp16. */
static inline const Optimizer *session_optimizer(const Task *task, const TrainOptions *options) {
  const OptimizerSettings settings = train_options_settings(options);
  const int skips = options->precision != DTYPE_FP16 || task->optimizer->reads & OPTIMIZER_READS_SCALE;
  const OptimizerChoice *choice = options->optimizer;
  if (choice == NULL && !skips) choice = optimizer_named(task->optimizer->name);
  const int own = choice == NULL ||
                  (strcmp(choice->name, task->optimizer->name) == 0 && !settings.nesterov && settings.dampening == 0);
  return own && skips ? task->optimizer : choice->choose(&settings);
}

/* "sgd with momentum_buffer": what a checkpoint holds of it. */
static inline const char *session_optimizer_text(const Optimizer *optimizer, char *text, size_t size) {
  int used = snprintf(text, size, "%s", optimizer->name);
  for (int s = 0; s < optimizer->slots; s++)
    used += snprintf(text + used, size - (size_t)used, "%s%s", s == 0 ? " with " : " and ", optimizer->slot[s]);
  return text;
}

/* The optimizer's settings of a stopped run become those of the options, but for what the user typed, and those of both
 * the state's. -1 where they are no settings of this optimizer, or would need other slots than the checkpoint has. */
static inline int session_recall_settings(const Task *task, TrainOptions *options, TrainState *saved, Error *err) {
  const TrainOptions typed = *options;
  const uint64_t given = options->given;
  options->lr = saved->lr;
  options->momentum = saved->momentum;
  options->weight_decay = saved->weight_decay;
  if (isfinite(saved->dampening)) options->dampening = saved->dampening;
  if (isfinite(saved->beta1)) options->beta1 = saved->beta1;
  if (isfinite(saved->beta2)) options->beta2 = saved->beta2;
  if (isfinite(saved->epsilon)) options->epsilon = saved->epsilon;
  options->nesterov = saved->nesterov;
  options->centered = saved->centered;
  const Optimizer *before = session_optimizer(task, options);
  if (given & TRAIN_LR) options->lr = typed.lr;
  if (given & TRAIN_MOMENTUM) options->momentum = typed.momentum;
  if (given & TRAIN_WEIGHT_DECAY) options->weight_decay = typed.weight_decay;
  if (given & TRAIN_DAMPENING) options->dampening = typed.dampening;
  if (given & TRAIN_BETA1) options->beta1 = typed.beta1;
  if (given & TRAIN_BETA2) options->beta2 = typed.beta2;
  if (given & TRAIN_EPSILON) options->epsilon = typed.epsilon;
  if (given & TRAIN_NESTEROV) options->nesterov = typed.nesterov;
  if (given & TRAIN_CENTERED) options->centered = typed.centered;
  const Optimizer *after = session_optimizer(task, options);
  int same = before->slots == after->slots;
  for (int s = 0; same && s < before->slots; s++) same = strcmp(before->slot[s], after->slot[s]) == 0;
  if (!same) {
    char old_text[128], new_text[128];
    return error_set(err,
                     "the run was started by %s, and these settings make %s of it; leave --momentum and --centered "
                     "out, or start a new run in another --output-dir",
                     session_optimizer_text(before, old_text, sizeof old_text),
                     session_optimizer_text(after, new_text, sizeof new_text));
  }
  return train_options_check_optimizer(options, err);
}

/* Of the run: its settings as the state keeps them. */
static inline void session_keep_settings(const TrainOptions *options, TrainState *state) {
  state->lr = options->lr;
  state->momentum = options->momentum;
  state->weight_decay = options->weight_decay;
  state->dampening = options->dampening;
  state->beta1 = options->beta1;
  state->beta2 = options->beta2;
  state->epsilon = options->epsilon;
  state->nesterov = options->nesterov;
  state->centered = options->centered;
}

/* The table entries and the network that a checkpoint names become those of the options, but for what the user typed.
 * -1 where the checkpoint's are unknown, or are of another data set or network than those that were typed. */
static inline int session_recall(const Task *task, TrainOptions *options, const TrainState *saved, Error *err) {
  const uint64_t given = options->given;
  if (saved->data[0]) {
    const DataSource *data = data_source_named(saved->data);
    if (data == NULL && strcmp(options->data->name, saved->data) == 0) data = options->data; /* of a folder */
    if (data == NULL && strcmp(saved->data, "idx") == 0)
      return error_set(err, "the checkpoint is of the files of a folder; name it by --data=FOLDER");
    if (data == NULL)
      return error_set(err, "the checkpoint is of the data set \"%s\", which is unknown here", saved->data);
    if ((given & TRAIN_DATA) && data != options->data)
      return error_set(err, "the checkpoint is of --data=%s, not %s; leave the option out", data->name,
                       options->data->name);
    options->data = data;
  }
  if (saved->schedule[0] && !(given & TRAIN_SCHEDULE)) {
    LrSchedule schedule;
    if (lr_schedule_parse(saved->schedule, &schedule, NULL) != 0)
      return error_set(err, "the checkpoint's schedule \"%s\" is unknown here", saved->schedule);
    if (strcmp(saved->schedule, lr_schedule_text(&options->schedule).text) != 0)
      options->given |= TRAIN_SCHEDULE; /* as if it had been typed again */
    options->schedule = schedule;
  }
  if (saved->augment[0] && !(given & TRAIN_AUGMENT)) {
    Error why;
    if (augment_parse(saved->augment, &options->own_augment, &why) != 0)
      return error_set(err, "the checkpoint's augmentation \"%s\" is unknown here: %.700s", saved->augment,
                       why.message);
    options->augment = &options->own_augment;
  }
  if (saved->optimizer[0]) {
    const OptimizerChoice *optimizer = optimizer_named(saved->optimizer);
    if (optimizer == NULL) return error_set(err, "the checkpoint's optimizer \"%s\" is unknown here", saved->optimizer);
    if ((given & TRAIN_OPTIMIZER) && optimizer != options->optimizer)
      return error_set(err, "the checkpoint is of --optimizer=%s, not %s; leave the option out", optimizer->name,
                       options->optimizer->name);
    options->optimizer = optimizer;
  }
  return task->networks ? task->networks->from_text(saved->network, err) : 0;
}

/* ------------------------------------------------------------------------------------------------------ the network */

/* The images must fit into the network's input, the labels into its classes. A network that reads features takes images
 * of as many pixels. */
static inline int session_check_shapes(const Graph *g, const DataSource *data, Error *err) {
  if (g->failed) return 0; /* model_open() reports it */
  Shape input = {0, {0}};
  for (int i = g->count - 1; i >= 0; i--)
    if (g->nodes[i].op == NULL) input = g->nodes[i].shape;
  const size_t classes = g->loss_count ? shape_count(graph_shape(g, g->losses[0].node)) : 0;
  const int fits = input.rank == 1 ? shape_count(input) == shape_count(data->shape) : shape_equal(input, data->shape);
  if (fits && classes >= (size_t)data->classes && classes <= SESSION_MAX_CLASSES) return 0;
  return error_set(err,
                   "the network has an input of shape %s and %zu classes; an input for the images of %s, of shape %s "
                   "(%zu pixels), and %d to %d classes are expected",
                   shape_text(input).text, classes, data->title, shape_text(data->shape).text, shape_count(data->shape),
                   data->classes, SESSION_MAX_CLASSES);
}

/* Smoothed and mixed labels are of losses that compare classes. */
static inline int session_check_labels(const Graph *g, const TrainOptions *options, Error *err) {
  const char *const option = options->label_smoothing > 0 ? "label-smoothing" : options->mixup > 0 ? "mixup" : NULL;
  for (int l = 0; l < g->loss_count && option && !g->failed; l++)
    if (!g->losses[l].loss->soft_labels)
      return error_set(err,
                       "--%s=%g gives each sample several classes, and the loss of this network, \"%s\", compares "
                       "with one target alone; leave the option out",
                       option, options->label_smoothing > 0 ? options->label_smoothing : options->mixup,
                       g->losses[l].loss->name);
  return 0;
}

/* What changes the training of a network besides its optimizer, before its memory is allocated. */
static inline void session_regularize(const TrainOptions *options, Model *m) {
  m->context.label_smoothing = (float)options->label_smoothing;
  m->context.mixup = (float)options->mixup;
  m->hyper.ema = options->ema;
  m->clip_norm = (float)options->clip_norm;
  m->clip_value = (float)options->clip_value;
  m->accumulates = options->accumulate > 1;
}

/* The words of a checkpoint's text, which may be about nodes of several operations. To infer, those that this program
 * does not know are passed over: the usual implementation gives the same answers but for rounding. */
static inline int session_recall_implementations(const Task *task, const char *text, ModelUse use, Graph *g,
                                                 Error *err) {
  ImplementationWord word;
  for (const char *at = text; implementation_next(&at, &word);) {
    const OpChoice *choice = NULL;
    for (int i = 0; i < g->count && word.node; i++)
      if (strlen(g->nodes[i].name) == word.node_length && strncmp(g->nodes[i].name, word.node, word.node_length) == 0)
        for (int c = 0; c < task->choice_count; c++)
          if (implementation_of(task->choices[c], &g->nodes[i]) >= 0 &&
              (choice == NULL || implementation_find(task->choices[c], word.name, word.name_length) >= 0))
            choice = task->choices[c];
    if (choice == NULL && use == MODEL_INFER) continue;
    if (choice == NULL)
      return error_set(err, "the checkpoint's implementation \"%.*s\" is of no node of this network",
                       (int)(word.name + word.name_length - (word.node ? word.node : word.name)),
                       word.node ? word.node : word.name);
    Error why;
    if (implementation_apply_word(choice, &word, g, NULL, &why) != 0 && use != MODEL_INFER)
      return error_set(err, "the checkpoint's implementations are not those of a training program: %.700s",
                       why.message);
  }
  return 0;
}

/* Samples for which implementations are measured: those of a training step, which may be fewer than the model takes. */
static inline int session_measured_batch(const TrainState *state, int max_batch, ModelUse use) {
  int batch = max_batch;
  if (use != MODEL_TRAIN) return batch;
  if (state->batch_size > 0 && checkpoint_part(state) < batch) batch = checkpoint_part(state);
  if (state->train_images > 0 && state->train_images < batch) batch = state->train_images;
  return batch;
}

/* Chooses which implementation computes each node: those of the state, then those of the command line; and notes in the
 * state the nodes that do not have the usual one. */
static inline int session_choose(const Task *task, const TrainOptions *options, Context context, int max_batch,
                                 ModelUse use, Graph *g, TrainState *state, Error *err) {
  if (g->failed) return 0;
  if (session_recall_implementations(task, state->implementations, use, g, err) != 0) return -1;
  const int batch = session_measured_batch(state, max_batch, use);
  for (int c = 0; c < task->choice_count; c++)
    if (implementation_choose(task->choices[c], options->chosen[c], g, context, session_optimizer(task, options), batch,
                              use, stdout, err) != 0)
      return -1;
  size_t used = 0;
  state->implementations[0] = '\0';
  for (int i = 0; i < g->count; i++)
    for (int c = 0; c < task->choice_count; c++) {
      const OpChoice *choice = task->choices[c];
      const int k = implementation_of(choice, &g->nodes[i]);
      if (k <= 0) continue;
      used += (size_t)snprintf(state->implementations + used, sizeof state->implementations - used, "%s%s:%s",
                               used ? "," : "", g->nodes[i].name, choice->list[k].name);
      if (used >= sizeof state->implementations)
        return error_set(err, "the names of the chosen implementations need more than %zu characters of a checkpoint",
                         sizeof state->implementations);
      break;
    }
  if (state->implementations[0]) printf("implementations %s\n", state->implementations);
  return 0;
}

/* Computes operations together, and notes in the state what: nothing, the pairs of the builder, or what graph->fuse()
 * finds besides. Whoever asks for an implementation of an operation wants to have it computed by that. A run that goes
 * on does as it did, so that its sums are added up in the same order. */
static inline void session_fuse(const Task *task, const TrainOptions *options, Graph *g, TrainState *state) {
  int chosen = state->implementations[0] != '\0' || options->precision;
  for (int c = 0; c < task->choice_count; c++) chosen |= options->chosen[c][0] != '\0';
  const int nothing = options->unfused || strcmp(state->fused, "nothing") == 0;
  const int pairs = chosen || strcmp(state->fused, "pairs") == 0 || g->fuse == NULL;
  if (nothing || train_options_shows(options)) /* what is shown has an output for each layer */
    graph_unfuse(g);
  else if (!pairs)
    g->fuse(g);
  snprintf(state->fused, sizeof state->fused, "%s", nothing ? "nothing" : pairs ? "pairs" : "chains");
}

/* What is trained with --precision: a line says what it changes. A network that only infers computes in float32. */
static inline int session_lower(const TrainOptions *options, ModelUse use, Graph *g, Error *err) {
  char lowered[256], others[256];
  int all;
  if (options->precision == DTYPE_FLOAT32 || use != MODEL_TRAIN || g->failed) return 0;
  const char *name = dtype_name(options->precision);
  graph_lower(g, options->precision);
  if (graph_lowered(g, &all) == 0)
    return error_set(err, "--precision=%s: no operation of this network has a version of 16 bits; leave the option out",
                     name);
  graph_lowered_text(g, 1, lowered, sizeof lowered);
  graph_lowered_text(g, 0, others, sizeof others);
  printf("precision %s: %s; float32: %s%sweights, gradients, sums, statistics, the loss\n", name, lowered, others,
         others[0] ? ", " : "");
  return 0;
}

/* The network that the task's graph() builds, planned and not yet allocated. */
static inline int session_prepare(const Task *task, const TrainOptions *options, TrainState *state, int max_batch,
                                  ModelUse use, Model *m, Error *err) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = options->common.device;
  context.seed = state->seed;
  if (task->networks && task->networks->fit) task->networks->fit(options->data);
  Graph *g = task->graph();
  if (session_check_shapes(g, options->data, err) != 0 ||
      (use == MODEL_TRAIN && session_check_labels(g, options, err) != 0) ||
      session_choose(task, options, context, max_batch, use, g, state, err) != 0) {
    graph_destroy(g);
    return -1;
  }
  session_fuse(task, options, g, state);
  if (session_lower(options, use, g, err) != 0) {
    graph_destroy(g);
    return -1;
  }
  const OptimizerSettings settings = train_options_settings(options);
  if (model_prepare(m, g, context, session_optimizer(task, options), max_batch, use, err) != 0) return -1;
  m->hyper = optimizer_hyper(&settings);
  if (use == MODEL_TRAIN) session_regularize(options, m);
  return 0;
}

/* The same with its memory, and a line about it where the program can make several networks. `also`: bytes that will be
 * needed besides, so that what does not fit is refused before anything is allocated. */
static inline int session_open(const Task *task, const TrainOptions *options, TrainState *state, int max_batch,
                               ModelUse use, double also, Model *m, Error *err) {
  if (session_prepare(task, options, state, max_batch, use, m, err) != 0 || model_allocate(m, also, err) != 0)
    return -1;
  if (m->accumulates) model_accumulate_open(m);
  if (m->hyper.ema > 0) model_average_open(m);
  if (m->loss_scale && options->loss_scale > 0) model_set_loss_scale(m, (float)options->loss_scale);
  if (task->networks) {
    task->networks->text(state->network);
    printf("network %s: %zu parameters\n", state->network, m->parameter_count);
  }
  return 0;
}

#endif /* COMMON_NN_SESSION_H */
