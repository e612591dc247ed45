/* checkpoint.cuh - a network in files: the model for everybody, and what a run needs to go on where it stopped.
 *
 *     last.safetensors, best.safetensors   the model: fc1.weight (out, in), fc1.bias (out), ... as PyTorch names and
 *                                          lays them out; metadata: settings and progress of the run, mean, stddev
 *     last.state.safetensors               all of a run: the parameters, momentum_buffer.fc1.weight, ..., metadata
 *
 * Each file is replaced in one step (common/atomic_file.h), and the state repeats the parameters, so that a kill
 * between the two files, or at any other moment, leaves both loadable and a resumed run exact.
 */
#ifndef PHASE2_MLP_CHECKPOINT_CUH
#define PHASE2_MLP_CHECKPOINT_CUH

#include <limits.h>

#include "common/safetensors.h"
#include "phase2_mlp/network.cuh"

/* The settings and the progress of a training run. */
typedef struct TrainState {
  uint64_t seed;
  int epochs, batch_size;
  double lr, momentum;
  double mean, stddev; /* normalisation of the pixels: x = (pixel / 255 - mean) / stddev */
  int train_images;

  long step;    /* optimizer steps so far */
  int epoch;    /* finished epochs */
  int position; /* images of the epoch under way that are done */
  Totals epoch_totals;
  double seconds; /* spent training */
  double test_accuracy, best_accuracy;
  int best_epoch; /* 1-based, 0: none yet */
} TrainState;

/* ------------------------------------------------------------------------------- tensors of a network */

typedef void CheckpointVisit(void *context, const char *name, int rank, const size_t *shape, size_t offset,
                             size_t count);

/* Calls visit for each parameter tensor; `offset` counts floats in the flat array. */
static inline void checkpoint_each(const Network *net, CheckpointVisit *visit, void *context) {
  for (int i = 0; i < net->layer_count; i++) {
    const Layer *l = net->layers[i];
    if (l->weight_rank == 0) continue;
    char name[128];
    snprintf(name, sizeof name, "%s.weight", l->name);
    visit(context, name, l->weight_rank, l->weight_shape, l->weight - net->parameters, l->weight_count);
    snprintf(name, sizeof name, "%s.bias", l->name);
    visit(context, name, 1, &l->bias_count, l->bias - net->parameters, l->bias_count);
  }
}

typedef struct CheckpointContext {
  SafetensorsFile *file;
  SafetensorsWriter *out;
  const char *prefix;
  float *host; /* the flat array */
  int status;
  Error *err;
} CheckpointContext;

static inline void checkpoint_add_tensor(void *context, const char *name, int rank, const size_t *shape, size_t offset,
                                         size_t count) {
  CheckpointContext *c = (CheckpointContext *)context;
  (void)count;
  char full[160];
  snprintf(full, sizeof full, "%s%s", c->prefix, name);
  safetensors_add(c->out, full, "F32", rank, shape, c->host + offset);
}

static inline void checkpoint_read_tensor(void *context, const char *name, int rank, const size_t *shape, size_t offset,
                                          size_t count) {
  CheckpointContext *c = (CheckpointContext *)context;
  char full[160];
  snprintf(full, sizeof full, "%s%s", c->prefix, name);
  if (c->status == 0) c->status = safetensors_read_f32(c->file, full, rank, shape, c->host + offset, c->err);
  for (size_t i = 0; i < count && c->status == 0; i++)
    if (!(c->host[offset + i] - c->host[offset + i] == 0)) /* NaN and infinities */
      c->status = error_set(c->err, "%s: tensor %s holds a value that is not finite; use an earlier checkpoint",
                            c->file->path, full);
}

/* Adds the network's tensors from the flat device array `values`, through `host`, which must live until the write. */
static inline void checkpoint_add(SafetensorsWriter *out, const Network *net, const char *prefix, const float *values,
                                  float *host) {
  CheckpointContext context = {NULL, out, prefix, host, 0, NULL};
  device_download(net->device, host, values, net->parameter_count * sizeof(float));
  checkpoint_each(net, checkpoint_add_tensor, &context);
}

/* Reads the network's tensors into the flat host array; every shape must be the network's. */
static inline int checkpoint_read(SafetensorsFile *file, const Network *net, const char *prefix, float *host,
                                  Error *err) {
  CheckpointContext context = {file, NULL, prefix, host, 0, err};
  checkpoint_each(net, checkpoint_read_tensor, &context);
  return context.status;
}

/* ------------------------------------------------------------------------------- the state as metadata */

/* Every member of TrainState, so that writing and reading cannot differ. */
typedef struct CheckpointField {
  const char *key;
  size_t offset;
  char type; /* i int, l long, u uint64_t, d double */
  double min, max;
} CheckpointField;

static inline const CheckpointField *checkpoint_fields(int *count) {
  static const CheckpointField fields[] = {
      {"seed", offsetof(TrainState, seed), 'u', 0, 1.9e19},
      {"epochs", offsetof(TrainState, epochs), 'i', 1, INT_MAX},
      {"batch_size", offsetof(TrainState, batch_size), 'i', 1, INT_MAX},
      {"lr", offsetof(TrainState, lr), 'd', 0, 1e9},
      {"momentum", offsetof(TrainState, momentum), 'd', 0, 1},
      {"mean", offsetof(TrainState, mean), 'd', 0, 1},
      {"stddev", offsetof(TrainState, stddev), 'd', 1e-6, 1},
      {"train_images", offsetof(TrainState, train_images), 'i', 1, INT_MAX},
      {"step", offsetof(TrainState, step), 'l', 0, 9e15},
      {"epoch", offsetof(TrainState, epoch), 'i', 0, INT_MAX},
      {"position", offsetof(TrainState, position), 'i', 0, INT_MAX},
      {"epoch_loss", offsetof(TrainState, epoch_totals.loss), 'd', 0, 1e300},
      {"epoch_correct", offsetof(TrainState, epoch_totals.correct), 'd', 0, INT_MAX},
      {"seconds", offsetof(TrainState, seconds), 'd', 0, 1e12},
      {"test_accuracy", offsetof(TrainState, test_accuracy), 'd', 0, 1},
      {"best_accuracy", offsetof(TrainState, best_accuracy), 'd', 0, 1},
      {"best_epoch", offsetof(TrainState, best_epoch), 'i', 0, INT_MAX},
  };
  *count = (int)(sizeof fields / sizeof fields[0]);
  return fields;
}

static inline void checkpoint_add_state(SafetensorsWriter *out, const TrainState *state) {
  int count;
  const CheckpointField *fields = checkpoint_fields(&count);
  safetensors_add_metadata(out, "program", program_invocation_short_name);
  for (int i = 0; i < count; i++) {
    const char *member = (const char *)state + fields[i].offset;
    char text[64];
    switch (fields[i].type) {
      case 'i':
        snprintf(text, sizeof text, "%d", *(const int *)member);
        break;
      case 'l':
        snprintf(text, sizeof text, "%ld", *(const long *)member);
        break;
      case 'u':
        snprintf(text, sizeof text, "%llu", (unsigned long long)*(const uint64_t *)member);
        break;
      default:
        snprintf(text, sizeof text, "%.17g", *(const double *)member);
        break; /* 17 digits give the same bits */
    }
    safetensors_add_metadata(out, fields[i].key, text);
  }
}

static inline int checkpoint_read_state(const SafetensorsFile *file, TrainState *state, Error *err) {
  int count;
  const CheckpointField *fields = checkpoint_fields(&count);
  for (int i = 0; i < count; i++) {
    const CheckpointField *field = &fields[i];
    const char *text = safetensors_metadata(file, field->key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;
    if (text == NULL || end == text || *end != '\0' || !(value >= field->min && value <= field->max))
      return error_set(
          err,
          "%s: the metadata's \"%s\" is %s, a number from %g to %g is expected; use a checkpoint that this "
          "program wrote",
          file->path, field->key, text ? text : "missing", field->min, field->max);
    char *member = (char *)state + field->offset;
    switch (field->type) {
      case 'i':
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
  }
  if (state->position > state->train_images)
    return error_set(err,
                     "%s: position %d lies beyond the %d training images; use a checkpoint that this program wrote",
                     file->path, state->position, state->train_images);
  return 0;
}

/* ------------------------------------------------------------------------------------- model and state */

/* Writes the model: what PyTorch, or --predict, needs. */
static inline int checkpoint_save_model(const char *path, const Network *net, const TrainState *state, Error *err) {
  float *host = (float *)xmalloc(net->parameter_count * sizeof(float));
  SafetensorsWriter out = SafetensorsWriter();
  checkpoint_add(&out, net, "", net->parameters, host);
  checkpoint_add_state(&out, state);
  int status = safetensors_write(&out, path, err);
  safetensors_writer_free(&out);
  free(host);
  return status;
}

/* Reads a model into the network; *state tells how its pixels must be normalised. Neither is touched on failure. */
static inline int checkpoint_load_model(const char *path, Network *net, TrainState *state, Error *err) {
  SafetensorsFile file;
  if (safetensors_open(path, &file, err) != 0) return -1;
  float *host = (float *)xmalloc(net->parameter_count * sizeof(float));
  TrainState read = TrainState();
  int status = checkpoint_read(&file, net, "", host, err);
  if (status == 0) status = checkpoint_read_state(&file, &read, err);
  if (status == 0) {
    device_upload(net->device, net->parameters, host, net->parameter_count * sizeof(float));
    *state = read;
  }
  safetensors_close(&file);
  free(host);
  return status;
}

/* Writes all that checkpoint_load_state() needs to go on with the very same numbers. */
static inline int checkpoint_save_state(const char *path, const Network *net, const TrainState *state, Error *err) {
  float *host = (float *)xmalloc(2 * net->parameter_count * sizeof(float));
  SafetensorsWriter out = SafetensorsWriter();
  checkpoint_add(&out, net, "", net->parameters, host);
  checkpoint_add(&out, net, "momentum_buffer.", net->velocity, host + net->parameter_count);
  checkpoint_add_state(&out, state);
  int status = safetensors_write(&out, path, err);
  safetensors_writer_free(&out);
  free(host);
  return status;
}

/* The inverse; neither the network nor *state is touched on failure. */
static inline int checkpoint_load_state(const char *path, Network *net, TrainState *state, Error *err) {
  SafetensorsFile file;
  if (safetensors_open(path, &file, err) != 0) return -1;
  size_t n = net->parameter_count;
  float *host = (float *)xmalloc(2 * n * sizeof(float));
  TrainState read = TrainState();
  int status = checkpoint_read(&file, net, "", host, err);
  if (status == 0) status = checkpoint_read(&file, net, "momentum_buffer.", host + n, err);
  if (status == 0) status = checkpoint_read_state(&file, &read, err);
  if (status == 0) {
    device_upload(net->device, net->parameters, host, n * sizeof(float));
    device_upload(net->device, net->velocity, host + n, n * sizeof(float));
    *state = read;
  }
  safetensors_close(&file);
  free(host);
  return status;
}

#endif /* PHASE2_MLP_CHECKPOINT_CUH */
