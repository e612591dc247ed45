/* checkpoint.h - a network in files: the model for everybody, and what a run needs to go on where it stopped.
 *
 *     last.safetensors, best.safetensors   the model: fc1.weight (out, in), fc1.bias (out), ... as PyTorch names and
 *                                          lays them out; metadata: settings and progress of the run, mean, stddev
 *     last.state.safetensors               all of a run: the parameters, momentum_buffer.fc1.weight, ..., metadata
 *
 * Where the weights are averaged (average.h), the model is the average, and the state has both: average.fc1.weight, ...
 *
 * Each file is replaced in one step (common/atomic_file.h), and the state repeats the parameters, so that a kill
 * between the two files, or at any other moment, leaves both loadable and a resumed run exact. A checksum among the
 * metadata tells bytes that have changed since; files without one, older or from PyTorch, are not checked.
 */
#ifndef COMMON_NN_CHECKPOINT_H
#define COMMON_NN_CHECKPOINT_H

#include <limits.h>
#include <math.h>

#include "common/nn/data_set.h"
#include "common/nn/model.h"
#include "common/nn/schedule.h"
#include "common/safetensors.h"

enum { CHECKPOINT_NETWORK = 192, CHECKPOINT_NAME = 32, CHECKPOINT_AUGMENT = 160, CHECKPOINT_IMPLEMENTATIONS = 4096 };

/* The settings and the progress of a training run. */
typedef struct TrainState {
  char network[CHECKPOINT_NETWORK]; /* "784,128,10 relu", where a program can make several; else "" */
  uint64_t seed;
  int epochs, batch_size;
  double lr, momentum, weight_decay;
  /* Normalisation of the pixels, per channel: x = (pixel / 255 - mean) / stddev. 0 after the last channel. */
  double mean[DATA_MAX_CHANNELS], stddev[DATA_MAX_CHANNELS];
  int train_images, test_images;

  long step;    /* optimizer steps so far */
  int epoch;    /* finished epochs */
  int position; /* images of the epoch under way that are done */
  Totals epoch_totals;
  double seconds;                      /* spent training */
  double test_accuracy, best_accuracy; /* NAN: not measured yet */
  int best_epoch;                      /* 1-based, 0: none yet */

  /* Names of table entries; "" in a file that is older than the table: the program's default. */
  char data[CHECKPOINT_NAME], schedule[SCHEDULE_TEXT];
  char augment[CHECKPOINT_AUGMENT];                 /* as typed (augment_text.h) */
  char implementations[CHECKPOINT_IMPLEMENTATIONS]; /* "conv2:naive": of the nodes that do not have the usual one */
  char fused[CHECKPOINT_NAME]; /* what was computed together: "chains", "pairs" or "nothing" (session.h) */

  char optimizer[CHECKPOINT_NAME];         /* as `data` */
  double dampening, beta1, beta2, epsilon; /* its settings; NAN in a file that is older than they are */
  int nesterov, centered;

  SchedulePlateau plateau;            /* of the schedule of this name */
  double validation;                  /* share of the training images that the run does not train on; 0: none */
  int validation_images, patience;    /* patience: epochs without a lower loss of theirs, then it stops; 0: never */
  double clip_norm, clip_value;       /* of gradients; 0: they are not clipped */
  double label_smoothing, mixup, ema; /* as options; 0: none */
  int accumulate;                     /* parts in which a batch is computed, 0: one */
  double validation_loss, best_loss;  /* of the last epoch, of the best one; NAN: not measured yet */
  char precision[CHECKPOINT_NAME];    /* "bf16" or "fp16"; "": float32 */
  double loss_scale;                  /* of fp16 (loss_scale.h), for the next step; 0: there is none */
  int good_steps, skipped_steps;      /* since the scale has changed; so far */
} TrainState;

/* How many channels the values are of: what is 0 at the end was left out. */
static inline int checkpoint_channels(const double *value) {
  int channels = DATA_MAX_CHANNELS;
  while (channels > 0 && value[channels - 1] == 0) channels--;
  return channels;
}

/* The normalisation of images of so many channels. -1 where the state is of another number. A mean may be 0. */
static inline int checkpoint_norm(const TrainState *state, int channels, DataNorm *norm, Error *err) {
  const int means = checkpoint_channels(state->mean), deviations = checkpoint_channels(state->stddev);
  memset(norm, 0, sizeof *norm);
  if (deviations != channels || means > channels)
    return error_set(err, "the checkpoint has the mean of %d and the deviation of %d channels; the images have %d",
                     means, deviations, channels);
  norm->channels = channels;
  for (int c = 0; c < channels; c++) {
    norm->mean[c] = (float)state->mean[c];
    norm->stddev[c] = (float)state->stddev[c];
  }
  return 0;
}

/* The last one may be smaller. */
static inline double checkpoint_steps_per_epoch(const TrainState *state) {
  return ceil((double)state->train_images / state->batch_size);
}

/* ------------------------------------------------------------------------------- tensors of a network */

typedef void CheckpointVisit(void *context, const char *name, int rank, const size_t *shape, size_t offset,
                             size_t count);

/* Which tensors: those that are trained, or the buffers, too (running statistics). */
typedef enum CheckpointTensors { CHECKPOINT_TRAINED, CHECKPOINT_ALL } CheckpointTensors;

/* Floats of a host array for these tensors: what is trained, then the buffers. */
static inline size_t checkpoint_floats(const Model *net, CheckpointTensors tensors) {
  return net->parameter_count + (tensors == CHECKPOINT_ALL ? net->buffer_count : 0);
}

/* Calls visit for each tensor; `offset` counts floats in the host array. */
static inline void checkpoint_each(const Model *net, CheckpointTensors tensors, CheckpointVisit *visit, void *context) {
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(net, &node, &index)) != NULL)
    if ((p->trained || tensors == CHECKPOINT_ALL) && !p->counts)
      visit(context, p->name, p->rank, p->dim, (p->trained ? 0 : net->parameter_count) + p->offset, p->count);
}

typedef struct CheckpointContext {
  SafetensorsFile *file;
  SafetensorsWriter *out;
  const char *prefix;
  float *host; /* the flat array */
  int status;
  Error *err;
} CheckpointContext;

/* A network that has diverged is worth no file, and no file that holds one is worth reading. */
static inline int checkpoint_all_finite(const float *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(values[i])) return 0;
  return 1;
}

static inline void checkpoint_add_tensor(void *context, const char *name, int rank, const size_t *shape, size_t offset,
                                         size_t count) {
  CheckpointContext *c = (CheckpointContext *)context;
  char full[160];
  snprintf(full, sizeof full, "%s%s", c->prefix, name);
  if (c->status == 0 && !checkpoint_all_finite(c->host + offset, count))
    c->status = error_set(c->err, "%s is not finite: the training has diverged, and no checkpoint is written", full);
  safetensors_add(c->out, full, "F32", rank, shape, c->host + offset);
}

static inline void checkpoint_read_tensor(void *context, const char *name, int rank, const size_t *shape, size_t offset,
                                          size_t count) {
  CheckpointContext *c = (CheckpointContext *)context;
  char full[160];
  snprintf(full, sizeof full, "%s%s", c->prefix, name);
  if (c->status == 0) c->status = safetensors_read_f32(c->file, full, rank, shape, c->host + offset, c->err);
  if (c->status == 0 && !checkpoint_all_finite(c->host + offset, count))
    c->status = error_set(c->err, "%s: tensor %s holds a value that is not finite; use an earlier checkpoint",
                          c->file->path, full);
}

/* Counters of training steps, I64 of no dimension as in PyTorch; `counts` must live until the write. */
enum { CHECKPOINT_COUNTERS = 1024 };

static inline int checkpoint_add_counters(SafetensorsWriter *out, const Model *net, int64_t *counts, Error *err) {
  int node = 0, index = 0, count = 0;
  const Param *p;
  while ((p = model_next_param(net, &node, &index)) != NULL) {
    if (!p->counts) continue;
    if (count == CHECKPOINT_COUNTERS)
      return error_set(err, "the network has more than %d counters of steps; raise CHECKPOINT_COUNTERS", count);
    counts[count] = p->counted + net->context.step;
    safetensors_add(out, p->name, "I64", 0, NULL, &counts[count++]);
  }
  return 0;
}

/* The inverse, into what the network had counted when its step was 0; 0 where a file is older than the counters. */
static inline int checkpoint_read_counters(const SafetensorsFile *file, const Model *net, int64_t *counts, Error *err) {
  int node = 0, index = 0, count = 0;
  const Param *p;
  while ((p = model_next_param(net, &node, &index)) != NULL && count < CHECKPOINT_COUNTERS) {
    if (!p->counts) continue;
    counts[count] = -1;
    if (safetensors_find(file, p->name) != NULL) {
      if (safetensors_read(file, p->name, "I64", 0, NULL, &counts[count], err) != 0) return -1;
      if (counts[count] < 0)
        return error_set(err, "%s: %s is %lld; a number of steps is expected", file->path, p->name,
                         (long long)counts[count]);
    }
    count++;
  }
  return 0;
}

static inline void checkpoint_set_counters(Model *net, const int64_t *counts) {
  int count = 0;
  for (int i = 0; i < net->graph->count; i++)
    for (int k = 0; k < net->graph->nodes[i].params; k++) {
      Param *p = &net->graph->nodes[i].param[k];
      if (!p->counts || count == CHECKPOINT_COUNTERS) continue;
      p->counted = counts[count] < 0 ? 0 : counts[count] - net->context.step;
      count++;
    }
}

/* Adds tensors from `host`, which must live until the write. */
static inline int checkpoint_add(SafetensorsWriter *out, const Model *net, CheckpointTensors tensors,
                                 const char *prefix, float *host, Error *err) {
  CheckpointContext context = {NULL, out, prefix, host, 0, err};
  checkpoint_each(net, tensors, checkpoint_add_tensor, &context);
  return context.status;
}

/* Reads tensors into `host`; every shape must be the network's. */
static inline int checkpoint_read(SafetensorsFile *file, const Model *net, CheckpointTensors tensors,
                                  const char *prefix, float *host, Error *err) {
  CheckpointContext context = {file, NULL, prefix, host, 0, err};
  checkpoint_each(net, tensors, checkpoint_read_tensor, &context);
  return context.status;
}

/* The prefix of an optimizer's slot: "momentum_buffer.", behind which PyTorch's name of the parameter stands. */
typedef struct CheckpointPrefix {
  char text[48];
} CheckpointPrefix;

static inline CheckpointPrefix checkpoint_slot_prefix(const Model *net, int slot) {
  CheckpointPrefix prefix;
  snprintf(prefix.text, sizeof prefix.text, "%s.", net->optimizer->slot[slot]);
  return prefix;
}

/* ------------------------------------------------------------------------------- the state as metadata */

typedef enum CheckpointKind { CHECKPOINT_MODEL, CHECKPOINT_STATE } CheckpointKind;

typedef enum CheckpointNeed { NEED_NEVER, NEED_IN_STATE, NEED_ALWAYS } CheckpointNeed;

/* Every member of TrainState, so that writing and reading cannot differ. */
typedef struct CheckpointField {
  const char *key;
  size_t offset;
  char type; /* i int, l long, u uint64_t, d double, v double[DATA_MAX_CHANNELS], s text; n int and z double that are 0
                where they are missing, and are left out where they are 0 */
  CheckpointNeed need;
  double min, max; /* of a text: the bytes that there is room for */
} CheckpointField;

static inline const CheckpointField *checkpoint_fields(int *count) {
  static const CheckpointField fields[] = {
      {"network", offsetof(TrainState, network), 's', NEED_NEVER, 0, CHECKPOINT_NETWORK},
      {"seed", offsetof(TrainState, seed), 'u', NEED_IN_STATE, 0, 9223372036854775807.0},
      {"epochs", offsetof(TrainState, epochs), 'i', NEED_IN_STATE, 1, 100000},
      {"batch_size", offsetof(TrainState, batch_size), 'i', NEED_IN_STATE, 1, 65536},
      {"lr", offsetof(TrainState, lr), 'd', NEED_IN_STATE, 0, 1e9},
      {"momentum", offsetof(TrainState, momentum), 'd', NEED_IN_STATE, 0, 1},
      {"weight_decay", offsetof(TrainState, weight_decay), 'd', NEED_IN_STATE, 0, 1},
      {"dampening", offsetof(TrainState, dampening), 'd', NEED_NEVER, 0, 1},
      {"beta1", offsetof(TrainState, beta1), 'd', NEED_NEVER, 0, 1},
      {"beta2", offsetof(TrainState, beta2), 'd', NEED_NEVER, 0, 1},
      {"epsilon", offsetof(TrainState, epsilon), 'd', NEED_NEVER, 0, 1},
      {"nesterov", offsetof(TrainState, nesterov), 'i', NEED_NEVER, 0, 1},
      {"centered", offsetof(TrainState, centered), 'i', NEED_NEVER, 0, 1},
      {"mean", offsetof(TrainState, mean), 'v', NEED_ALWAYS, 0, 1},
      {"stddev", offsetof(TrainState, stddev), 'v', NEED_ALWAYS, 1e-6, 1},
      {"train_images", offsetof(TrainState, train_images), 'i', NEED_IN_STATE, 1, INT_MAX},
      {"test_images", offsetof(TrainState, test_images), 'i', NEED_IN_STATE, 1, INT_MAX},
      {"step", offsetof(TrainState, step), 'l', NEED_IN_STATE, 0, 9e15},
      {"epoch", offsetof(TrainState, epoch), 'i', NEED_IN_STATE, 0, 100000},
      {"position", offsetof(TrainState, position), 'i', NEED_IN_STATE, 0, INT_MAX},
      {"epoch_loss", offsetof(TrainState, epoch_totals.loss), 'd', NEED_IN_STATE, 0, 1e300},
      {"epoch_correct", offsetof(TrainState, epoch_totals.correct), 'd', NEED_IN_STATE, 0, INT_MAX},
      {"seconds", offsetof(TrainState, seconds), 'd', NEED_IN_STATE, 0, 1e12},
      {"test_accuracy", offsetof(TrainState, test_accuracy), 'd', NEED_NEVER, 0, 1},
      {"best_accuracy", offsetof(TrainState, best_accuracy), 'd', NEED_NEVER, 0, 1},
      {"best_epoch", offsetof(TrainState, best_epoch), 'i', NEED_NEVER, 0, 100000},
      {"data", offsetof(TrainState, data), 's', NEED_NEVER, 0, CHECKPOINT_NAME},
      {"schedule", offsetof(TrainState, schedule), 's', NEED_NEVER, 0, SCHEDULE_TEXT},
      {"augment", offsetof(TrainState, augment), 's', NEED_NEVER, 0, CHECKPOINT_AUGMENT},
      {"optimizer", offsetof(TrainState, optimizer), 's', NEED_NEVER, 0, CHECKPOINT_NAME},
      {"implementations", offsetof(TrainState, implementations), 's', NEED_NEVER, 0, CHECKPOINT_IMPLEMENTATIONS},
      {"fused", offsetof(TrainState, fused), 's', NEED_NEVER, 0, CHECKPOINT_NAME},
      {"validation", offsetof(TrainState, validation), 'z', NEED_NEVER, 0, 1},
      {"validation_images", offsetof(TrainState, validation_images), 'n', NEED_NEVER, 0, INT_MAX},
      {"patience", offsetof(TrainState, patience), 'n', NEED_NEVER, 0, 100000},
      {"clip_norm", offsetof(TrainState, clip_norm), 'z', NEED_NEVER, 0, 1e9},
      {"clip_value", offsetof(TrainState, clip_value), 'z', NEED_NEVER, 0, 1e9},
      {"label_smoothing", offsetof(TrainState, label_smoothing), 'z', NEED_NEVER, 0, 0.99},
      {"mixup", offsetof(TrainState, mixup), 'z', NEED_NEVER, 0, 100},
      {"ema", offsetof(TrainState, ema), 'z', NEED_NEVER, 0, AVERAGE_MOST},
      {"accumulate", offsetof(TrainState, accumulate), 'n', NEED_NEVER, 0, 65536},
      {"precision", offsetof(TrainState, precision), 's', NEED_NEVER, 0, CHECKPOINT_NAME},
      {"loss_scale", offsetof(TrainState, loss_scale), 'z', NEED_NEVER, 0, LOSS_SCALE_MOST},
      {"good_steps", offsetof(TrainState, good_steps), 'n', NEED_NEVER, 0, LOSS_SCALE_INTERVAL},
      {"skipped_steps", offsetof(TrainState, skipped_steps), 'n', NEED_NEVER, 0, INT_MAX},
      {"validation_loss", offsetof(TrainState, validation_loss), 'd', NEED_NEVER, 0, 1e300},
      {"best_loss", offsetof(TrainState, best_loss), 'd', NEED_NEVER, 0, 1e300},
      {"plateau_best", offsetof(TrainState, plateau.best), 'z', NEED_NEVER, 0, 1e300},
      {"plateau_seen", offsetof(TrainState, plateau.seen), 'n', NEED_NEVER, 0, 100000},
      {"plateau_bad", offsetof(TrainState, plateau.bad), 'n', NEED_NEVER, 0, 100000},
      {"plateau_cooling", offsetof(TrainState, plateau.cooling), 'n', NEED_NEVER, 0, 100000},
      {"plateau_lowered", offsetof(TrainState, plateau.lowered), 'n', NEED_NEVER, 0, 100000},
  };
  *count = (int)(sizeof fields / sizeof fields[0]);
  return fields;
}

/* "0.1307", or one number per channel with blanks between them; 17 digits give the same bits. What is 0 at the end is
 * left out. */
static inline void checkpoint_vector_text(const double *vector, char *text, size_t size) {
  int count = 1;
  for (int i = 1; i < DATA_MAX_CHANNELS; i++)
    if (vector[i] != 0) count = i + 1;
  size_t used = 0;
  for (int i = 0; i < count; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%.17g", i ? " " : "", vector[i]);
}

/* The inverse; 0 where the text is no such list, or a number is out of range. */
static inline int checkpoint_read_vector(const CheckpointField *field, const char *text, double *vector) {
  int count = 0;
  double values[DATA_MAX_CHANNELS] = {0};
  for (const char *at = text; text != NULL && *at != '\0';) {
    char *end;
    if (count == DATA_MAX_CHANNELS || *at == ' ') return 0;
    values[count] = strtod(at, &end);
    if (end == at || (*end != ' ' && *end != '\0')) return 0;
    if (!(values[count] >= field->min && values[count] <= field->max)) return 0;
    count++;
    at = *end == ' ' ? end + 1 : end;
  }
  memcpy(vector, values, sizeof values);
  return count > 0;
}

/* What is NAN was not measured, and is left out. */
static inline void checkpoint_add_state(SafetensorsWriter *out, const TrainState *state) {
  int count;
  const CheckpointField *fields = checkpoint_fields(&count);
  safetensors_add_metadata(out, "program", program_invocation_short_name);
  for (int i = 0; i < count; i++) {
    const char *member = (const char *)state + fields[i].offset;
    char text[CHECKPOINT_IMPLEMENTATIONS];
    switch (fields[i].type) {
      case 's':
        if (member[0] == '\0') continue;
        snprintf(text, sizeof text, "%s", member);
        break;
      case 'n':
        if (*(const int *)member == 0) continue;
        snprintf(text, sizeof text, "%d", *(const int *)member);
        break;
      case 'i':
        snprintf(text, sizeof text, "%d", *(const int *)member);
        break;
      case 'l':
        snprintf(text, sizeof text, "%ld", *(const long *)member);
        break;
      case 'u':
        snprintf(text, sizeof text, "%llu", (unsigned long long)*(const uint64_t *)member);
        break;
      case 'v':
        checkpoint_vector_text((const double *)member, text, sizeof text);
        break;
      default: /* 17 digits give the same bits */
        if (isnan(*(const double *)member) || (fields[i].type == 'z' && *(const double *)member == 0)) continue;
        snprintf(text, sizeof text, "%.17g", *(const double *)member);
        break;
    }
    safetensors_add_metadata(out, fields[i].key, text);
  }
}

static inline int checkpoint_read_field(const SafetensorsFile *file, const CheckpointField *field, CheckpointKind kind,
                                        TrainState *state, Error *err) {
  char *member = (char *)state + field->offset;
  const char *text = safetensors_metadata(file, field->key);
  if (text == NULL && field->need <= (kind == CHECKPOINT_STATE ? NEED_NEVER : NEED_IN_STATE)) {
    if (field->type == 'd') *(double *)member = NAN;
    return 0;
  }
  if (field->type == 's') {
    if (snprintf(member, (size_t)field->max, "%s", text) < (int)field->max) return 0;
    return error_set(err, "%s: the metadata's \"%s\" is longer than any that a training program wrote", file->path,
                     field->key);
  }
  if (field->type == 'v' && checkpoint_read_vector(field, text, (double *)member)) return 0;
  char *end = NULL;
  const int real = field->type == 'd' || field->type == 'v' || field->type == 'z';
  double value = text ? strtod(text, &end) : 0;
  int good =
      text != NULL && field->type != 'v' && end != text && *end == '\0' && value >= field->min && value <= field->max;
  if (good && !real) good = text[strspn(text, "0123456789")] == '\0';           /* no 1e3, no 0x10 */
  if (good && field->type == 'u') good = strtoull(text, NULL, 10) <= INT64_MAX; /* the largest --seed */
  if (!good)
    return error_set(err,
                     "%s: the metadata's \"%s\" is %s, a %snumber from %g to %g is expected; use a checkpoint that a "
                     "training program wrote",
                     file->path, field->key, text ? text : "missing", real ? "" : "whole ", field->min, field->max);
  switch (field->type) {
    case 'i':
    case 'n':
      *(int *)member = (int)value;
      break;
    case 'l':
      *(long *)member = (long)value;
      break;
    case 'u':
      *(uint64_t *)member = strtoull(text, NULL, 10);
      break;
    default:
      *(double *)member = value;
      break;
  }
  return 0;
}

/* Images of a part of a batch. */
static inline int checkpoint_part(const TrainState *state) {
  const int parts = state->accumulate > 1 ? state->accumulate : 1;
  return (state->batch_size + parts - 1) / parts;
}

/* Whether the run has all its epochs, or its patience is over. */
static inline int checkpoint_finished(const TrainState *state) {
  const int patient = state->patience == 0 || state->epoch - state->best_epoch < state->patience;
  return state->epoch >= state->epochs || !patient;
}

/* The optimizer's steps that lead to a position in an epoch: a batch each, of which the last may be smaller. */
static inline long checkpoint_steps_done(const TrainState *state) {
  return (long)(state->epoch * checkpoint_steps_per_epoch(state) + ceil((double)state->position / state->batch_size));
}

/* A model needs only the normalisation of its pixels; the rest is zero or NAN where it is missing. */
static inline int checkpoint_read_state(const SafetensorsFile *file, CheckpointKind kind, TrainState *state,
                                        Error *err) {
  int count;
  const CheckpointField *fields = checkpoint_fields(&count);
  memset(state, 0, sizeof *state);
  for (int i = 0; i < count; i++)
    if (checkpoint_read_field(file, &fields[i], kind, state, err) != 0) return -1;
  if (kind == CHECKPOINT_STATE && (state->position > state->train_images || state->best_epoch > state->epoch))
    return error_set(
        err,
        "%s: position %d of %d images, best_epoch %d of %d epochs cannot be; use a checkpoint that a training "
        "program wrote",
        file->path, state->position, state->train_images, state->best_epoch, state->epoch);
  if (kind == CHECKPOINT_STATE && state->step != checkpoint_steps_done(state))
    return error_set(err,
                     "%s: the metadata's \"step\" is %ld, but %d epochs and %d images in batches of %d take %ld steps; "
                     "use a checkpoint that a training program wrote",
                     file->path, state->step, state->epoch, state->position, state->batch_size,
                     checkpoint_steps_done(state));
  return 0;
}

/* ---------------------------------------------------------------------------------------- save and load */

static inline int checkpoint_slots(const Model *net) { return net->optimizer ? net->optimizer->slots : 0; }

/* A host array for all tensors of a model, for the optimizer's slots behind them, and for averages of all tensors. */
static inline float *checkpoint_host(const Model *net) {
  const size_t slots = (size_t)checkpoint_slots(net), averages = net->average ? 1 : 0;
  return (float *)xmalloc(((1 + averages) * checkpoint_floats(net, CHECKPOINT_ALL) + slots * net->parameter_count) *
                          sizeof(float));
}

static inline float *checkpoint_host_slot(const Model *net, float *host, int slot) {
  return host + checkpoint_floats(net, CHECKPOINT_ALL) + (size_t)slot * net->parameter_count;
}

/* Where the averages of all tensors lie in it, and the tensors of the model or of its average: from the device. */
static inline float *checkpoint_host_average(const Model *net, float *host) {
  return checkpoint_host_slot(net, host, checkpoint_slots(net));
}

static inline void checkpoint_download(const Model *net, int average, float *host) {
  const Device device = net->context.device;
  device_download(device, host, average ? net->average : net->parameters, net->parameter_count * sizeof(float));
  device_download(device, host + net->parameter_count, average ? net->average_buffers : net->buffers,
                  net->buffer_count * sizeof(float));
}

/* The loss scale of fp16, which lies on the device, into the state, and back. */
static inline void checkpoint_take_loss_scale(const Model *net, TrainState *state) {
  LossScale scale;
  if (net->loss_scale == NULL) return;
  device_download(net->context.device, &scale, net->loss_scale, sizeof scale);
  state->loss_scale = scale.scale;
  state->good_steps = scale.good;
  state->skipped_steps = scale.skipped;
}

static inline void checkpoint_give_loss_scale(const Model *net, const TrainState *state) {
  LossScale scale;
  if (net->loss_scale == NULL || state->loss_scale == 0) return;
  memset(&scale, 0, sizeof scale);
  scale.scale = (float)state->loss_scale;
  scale.good = state->good_steps;
  scale.skipped = state->skipped_steps;
  scale.steps = (int32_t)state->step;
  device_upload(net->context.device, net->loss_scale, &scale, sizeof scale);
}

/* Writes the model (what PyTorch, or --predict, needs) or the state (what --resume needs) in one step. */
static inline int checkpoint_save(const char *path, CheckpointKind kind, const Model *net, const TrainState *state,
                                  Error *err) {
  const Device device = net->context.device;
  const int averages = net->average != NULL, state_too = kind == CHECKPOINT_STATE;
  float *host = checkpoint_host(net), *average = checkpoint_host_average(net, host);
  SafetensorsWriter out = SafetensorsWriter();
  /* before the first step there is nothing to average */
  checkpoint_download(net, averages && !state_too && net->context.step > 0, host);
  int64_t counts[CHECKPOINT_COUNTERS];
  int status = checkpoint_add(&out, net, CHECKPOINT_ALL, "", host, err);
  if (status == 0) status = checkpoint_add_counters(&out, net, counts, err);
  for (int s = 0; status == 0 && state_too && s < checkpoint_slots(net); s++) {
    float *slot = checkpoint_host_slot(net, host, s);
    device_download(device, slot, net->slot[s], net->parameter_count * sizeof(float));
    status = checkpoint_add(&out, net, CHECKPOINT_TRAINED, checkpoint_slot_prefix(net, s).text, slot, err);
  }
  if (status == 0 && state_too && averages) {
    checkpoint_download(net, 1, average);
    status = checkpoint_add(&out, net, CHECKPOINT_ALL, "average.", average, err);
  }
  TrainState now = *state;
  checkpoint_take_loss_scale(net, &now);
  checkpoint_add_state(&out, &now);
  if (status == 0) safetensors_add_checksum(&out);
  if (status == 0) status = safetensors_write(&out, path, err);
  safetensors_writer_free(&out);
  free(host);
  return status;
}

/* The metadata alone: what network the run needs, before there is one. */
static inline int checkpoint_peek(const char *path, CheckpointKind kind, TrainState *state, Error *err) {
  SafetensorsFile file;
  if (safetensors_open(path, &file, err) != 0) return -1;
  int status = checkpoint_read_state(&file, kind, state, err);
  safetensors_close(&file);
  return status;
}

/* The inverse of checkpoint_save(). A state also sets the step and the seed, by which dropout draws. Neither the
 * network nor *state is touched on failure. */
static inline int checkpoint_load(const char *path, CheckpointKind kind, Model *net, TrainState *state, Error *err) {
  SafetensorsFile file;
  if (safetensors_open(path, &file, err) != 0) return -1;
  if (safetensors_check(&file, err) != 0) {
    safetensors_close(&file);
    return -1;
  }
  const Device device = net->context.device;
  float *host = checkpoint_host(net), *average = checkpoint_host_average(net, host);
  TrainState read;
  const int slots = kind == CHECKPOINT_STATE ? checkpoint_slots(net) : 0;
  const int averages = kind == CHECKPOINT_STATE && net->average != NULL;
  int64_t counts[CHECKPOINT_COUNTERS];
  int status = checkpoint_read(&file, net, CHECKPOINT_ALL, "", host, err);
  if (status == 0) status = checkpoint_read_counters(&file, net, counts, err);
  for (int s = 0; status == 0 && s < slots; s++)
    status = checkpoint_read(&file, net, CHECKPOINT_TRAINED, checkpoint_slot_prefix(net, s).text,
                             checkpoint_host_slot(net, host, s), err);
  if (status == 0 && averages) status = checkpoint_read(&file, net, CHECKPOINT_ALL, "average.", average, err);
  if (status == 0) status = checkpoint_read_state(&file, kind, &read, err);
  if (status == 0) {
    device_upload(device, net->parameters, host, net->parameter_count * sizeof(float));
    device_upload(device, net->buffers, host + net->parameter_count, net->buffer_count * sizeof(float));
    for (int s = 0; s < slots; s++)
      device_upload(device, net->slot[s], checkpoint_host_slot(net, host, s), net->parameter_count * sizeof(float));
    if (averages) {
      device_upload(device, net->average, average, net->parameter_count * sizeof(float));
      device_upload(device, net->average_buffers, average + net->parameter_count, net->buffer_count * sizeof(float));
    }
    if (kind == CHECKPOINT_STATE) {
      net->context.step = read.step;
      net->context.seed = read.seed;
      checkpoint_give_loss_scale(net, &read);
    }
    checkpoint_set_counters(net, counts);
    *state = read;
  }
  safetensors_close(&file);
  free(host);
  return status;
}

#endif /* COMMON_NN_CHECKPOINT_H */
