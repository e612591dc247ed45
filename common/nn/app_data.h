/* app_data.h - what a training run of app.cu begins with: images, and the settings of a new run or of a resumed one. */
#ifndef COMMON_NN_APP_DATA_H
#define COMMON_NN_APP_DATA_H

#include "common/nn/session.h"

typedef struct AppData {
  DataSet train, validation, test; /* validation.count 0: there is none */
  DataNorm norm;                   /* of all training images */
} AppData;

/* Of those training images that --train-images leaves, a share becomes the validation set. */
static inline int app_split(const TrainOptions *options, AppData *data, uint64_t seed, Error *err) {
  Error why;
  if (options->train_images) data_keep_first(&data->train, options->train_images);
  if (data_split(&data->train, &data->validation, options->validation, seed, &why) == 0) return 0;
  return error_set(err, "--validation=%g: %.900s", options->validation, why.message);
}

static inline int app_load(const TrainOptions *options, AppData *data, uint64_t seed, Error *err) {
  const char *directory = options->common.data_dir;
  const int held = options->hold_out;
  memset(&data->validation, 0, sizeof data->validation);
  if (data_load(options->data, directory, DATA_TRAIN, &data->train, err) != 0 ||
      data_load(options->data, directory, DATA_TEST, &data->test, err) != 0)
    return -1;
  if (held >= data->train.count)
    return error_set(err, "--hold-out=%d: of %d training images at least one must be left to train on", held,
                     data->train.count);
  if (held > 0) data_hold_out(&data->train, &data->test, held);
  if (options->given & TRAIN_VALIDATION && app_split(options, data, seed, err) != 0) return -1;
  return data_statistics(&data->train, &data->norm, err);
}

/* The settings of a new run: the command line's, and the normalisation of this training set. */
static inline void app_begin(const TrainOptions *options, const AppData *data, TrainState *state) {
  memset(state, 0, sizeof *state);
  for (int c = 0; c < data->norm.channels; c++) {
    state->mean[c] = data->norm.mean[c];
    state->stddev[c] = data->norm.stddev[c];
  }
  state->seed = options->common.seed;
  state->epochs = options->common.epochs;
  state->accumulate = options->accumulate > 1 ? options->accumulate : 0;
  state->batch_size = options->common.batch_size * (options->accumulate > 1 ? options->accumulate : 1);
  state->clip_norm = options->clip_norm;
  state->clip_value = options->clip_value;
  state->label_smoothing = options->label_smoothing;
  state->mixup = options->mixup;
  state->ema = options->ema;
  session_keep_settings(options, state);
  state->train_images = data->train.count;
  state->test_images = data->test.count;
  if (options->train_images && options->train_images < state->train_images) state->train_images = options->train_images;
  if (options->test_images && options->test_images < state->test_images) state->test_images = options->test_images;
  state->test_accuracy = state->best_accuracy = state->validation_loss = state->best_loss = NAN;
  state->validation = options->validation;
  state->validation_images = data->validation.count;
  state->patience = options->patience;
}

static inline int app_same_normalisation(const TrainState *a, const TrainState *b) {
  for (int c = 0; c < DATA_MAX_CHANNELS; c++)
    if (fabs(a->mean[c] - b->mean[c]) > 1e-12 || fabs(a->stddev[c] - b->stddev[c]) > 1e-12) return 0;
  return 1;
}

/* Takes over the settings of the stopped run; options->data and the like were taken over before. One that was started
 * with other data, seed or batch size cannot be continued bit by bit: say so instead of doing something else. */
static inline int app_resume(const Task *task, TrainOptions *options, const char *path, const TrainState *from,
                             TrainState *state, Error *err) {
  TrainState saved = *from;
  Error why;
  const unsigned given = options->common.given;
  if ((given & OPTIONS_SEED) && saved.seed != state->seed)
    return error_set(err,
                     "--resume: %s was started with --seed=%llu; leave the option out, or start a new run in another "
                     "--output-dir",
                     path, (unsigned long long)saved.seed);
  if ((given & OPTIONS_BATCH_SIZE) && saved.batch_size != state->batch_size)
    return error_set(err,
                     "--resume: %s was started with --batch-size=%d; leave the option out, or start a new run in "
                     "another --output-dir",
                     path, checkpoint_part(&saved));
  if (saved.train_images != state->train_images || saved.test_images != state->test_images ||
      !app_same_normalisation(&saved, state))
    return error_set(err,
                     "--resume: %s was started with other data (%d training and %d test images of mean %.4f, here %d "
                     "and %d of mean %.4f); name the same --data-dir, --train-images, --test-images and --hold-out",
                     path, saved.train_images, saved.test_images, saved.mean[0], state->train_images,
                     state->test_images, state->mean[0]);
  if (given & OPTIONS_EPOCHS) saved.epochs = state->epochs;
  if (session_recall_settings(task, options, &saved, &why) != 0)
    return error_set(err, "--resume: %s: %.900s", path, why.message);
  session_keep_settings(options, &saved);
  if (strcmp(saved.schedule, lr_schedule_text(&options->schedule).text) != 0)
    memset(&saved.plateau, 0, sizeof saved.plateau);
  if (options->patience) saved.patience = options->patience;
  saved.clip_norm = options->clip_norm;
  saved.clip_value = options->clip_value;
  saved.label_smoothing = options->label_smoothing;
  saved.mixup = options->mixup;
  *state = saved;
  return 0;
}

/* The stopped run's network and table entries, before the data is read. */
static inline int app_recall(const Task *task, TrainOptions *options, const char *path, TrainState *saved, Error *err) {
  Error why;
  if (checkpoint_peek(path, CHECKPOINT_STATE, saved, &why) != 0)
    return error_set(err, "--resume: %.1000s", why.message);
  if (session_recall(task, options, saved, &why) != 0) return error_set(err, "%s: %.900s", path, why.message);
  if (options->given & TRAIN_VALIDATION && options->validation != saved->validation)
    return error_set(
        err,
        "--resume: %s was started with --validation=%g; leave the option out, or start a new run in another "
        "--output-dir",
        path, saved->validation);
  if (options->patience && saved->validation == 0)
    return error_set(err, "--patience=%d: %s was started without --validation; leave the option out", options->patience,
                     path);
  const char *precision = saved->precision[0] ? saved->precision : dtype_name(DTYPE_FLOAT32);
  if (options->given & TRAIN_PRECISION && strcmp(dtype_name(options->precision), precision) != 0)
    return error_set(
        err,
        "--resume: %s was started with --precision=%s; leave the option out, or start a new run in another "
        "--output-dir",
        path, precision);
  int known = 0;
  for (int i = 0; train_options_precision(i); i++)
    if (strcmp(train_options_precision(i), precision) == 0) known = 1, options->precision = (DType)i;
  if (!known)
    return error_set(err, "--resume: %s is of the precision \"%.40s\", which is unknown here; %s is expected", path,
                     precision, train_options_list(train_options_precision).text);
  if (options->accumulate && (options->accumulate > 1 ? options->accumulate : 0) != saved->accumulate)
    return error_set(err,
                     "--resume: %s was started with --accumulate=%d; leave the option out, or start a new run in "
                     "another --output-dir",
                     path, saved->accumulate ? saved->accumulate : 1);
  if (options->given & TRAIN_EMA && options->ema != saved->ema)
    return error_set(err,
                     "--resume: %s was started with --ema=%g; leave the option out, or start a new run in another "
                     "--output-dir",
                     path, saved->ema);
  options->ema = saved->ema;
  if (!(options->given & TRAIN_LABEL_SMOOTHING)) options->label_smoothing = saved->label_smoothing;
  if (!(options->given & TRAIN_MIXUP)) options->mixup = saved->mixup;
  if (options->clip_norm == 0) options->clip_norm = saved->clip_norm;
  if (options->clip_value == 0) options->clip_value = saved->clip_value;
  options->accumulate = saved->accumulate;
  if (options->accumulate > 1 && options->stream && options->graph)
    return error_set(err, "--resume: %s was started with --accumulate=%d; leave --stream or --graph out", path,
                     saved->accumulate);
  for (int i = 0; i < options->choice_count && options->precision; i++)
    if (options->chosen[i][0])
      return error_set(err,
                       "--resume: %s was started with --precision=%s; --%s=%s chooses how float32 is computed: "
                       "leave it out",
                       path, precision, options->choices[i]->option, options->chosen[i]);
  options->validation = saved->validation;
  if (saved->validation > 0) options->given |= TRAIN_VALIDATION;
  return 0;
}

#endif /* COMMON_NN_APP_DATA_H */
