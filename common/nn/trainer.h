/* trainer.h - the training loop: epochs of mini-batches, an evaluation after each, a checkpoint, a log.
 *
 *     for each epoch: shuffle; for each batch: gather, forward, loss, backward, update; evaluate on the test set
 *
 * All state that a run needs to go on lies in Trainer and in the model's parameters, buffers, slots and step, so a run
 * that was stopped after any step and resumed computes the very same numbers as one that was not (checkpoint.h keeps
 * them).
 */
#ifndef COMMON_NN_TRAINER_H
#define COMMON_NN_TRAINER_H

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "common/interrupt.h"
#include "common/nn/checkpoint.h"
#include "common/nn/device_set.h"
#include "common/nn/schedule.h"
#include "common/nn/step_replay.h"
#include "common/progress.h"
#include "common/timer.h"
#include "common/train_log.h"

enum { TRAINER_LOG_EVERY = 100 }; /* steps of an epoch between two looks at the loss: each waits for the device */

typedef struct Trainer {
  Model *net;
  DeviceSet *train, *test, *validation; /* validation NULL: none */
  LrSchedule schedule;
  TrainState state;       /* what a checkpoint keeps */
  const char *output_dir; /* last.safetensors, best.safetensors, last.state.safetensors */
  TrainLog *log;
  StepGraph *step_graph; /* records each step; NULL: each kernel is launched by itself */
  StepReplay *replay;    /* launches recorded steps; NULL: does not */
  StepValues *values;    /* of its epoch, on the host */
  double lr;             /* of the last step */
  int skipped;           /* steps of fp16 that were skipped and told of */
  double startup;        /* seconds of the program before the first step: device, data, network, recording */
  /* Of the last epoch; NAN before the first. */
  double images_per_second; /* evaluation left out */
  double train_loss, train_accuracy, test_loss, validation_accuracy;
} Trainer;

typedef enum TrainResult { TRAIN_FINISHED, TRAIN_INTERRUPTED, TRAIN_FAILED } TrainResult;

/* The learning rate of the next step. */
static inline double trainer_learning_rate(const LrSchedule *schedule, const TrainState *state) {
  const double done = (state->step + 0.5) / (checkpoint_steps_per_epoch(state) * state->epochs);
  return state->lr * lr_schedule_factor(schedule, done) * schedule_plateau_factor(schedule, &state->plateau);
}

/* One record of the log: the interval of training steps, or the evaluation, that ended now in `epoch` (from 1). */
static inline void trainer_log(Trainer *t, int epoch, const char *split, Totals totals, double images, double seconds) {
  TrainRecord record = TrainRecord();
  record.step = t->state.step;
  record.epoch = epoch;
  snprintf(record.split, sizeof record.split, "%s", split);
  record.loss = totals.loss / images;
  record.accuracy = totals.correct / images;
  record.lr = t->lr;
  record.images_per_second = images / seconds;
  record.seconds = t->state.seconds;
  train_log_write(t->log, &record);
}

/* The steps since the last look at the loss. */
typedef struct TrainerInterval {
  Totals begin; /* the epoch's sums when it began */
  int position; /* the image at which it began */
  double start, loss;
  long step; /* before it */
} TrainerInterval;

/* Not finite means diverged: nothing of such a network may reach a checkpoint. */
static inline int trainer_check_loss(const Trainer *t, double loss, Error *err) {
  if (isfinite(loss)) return 0;
  return error_set(err,
                   "the loss is not finite at step %ld of epoch %d: the learning rate %g is too high for this network; "
                   "try --lr=%g. Nothing was saved; the files in %s are unchanged",
                   t->state.step, t->state.epoch + 1, t->state.lr, t->state.lr / 10, t->output_dir);
}

/* Steps of fp16 that were skipped since the last look, the last LOSS_SCALE_EVENTS of them one by one. -1 where all
 * `steps` steps were, and the scale is as small as it can be. */
static inline int trainer_tell_skipped(Trainer *t, long steps, Error *err) {
  LossScale s;
  if (t->net->loss_scale == NULL) return 0;
  device_download(t->net->context.device, &s, t->net->loss_scale, sizeof s);
  const int before = t->skipped;
  t->skipped = s.skipped;
  t->state.loss_scale = s.scale;
  t->state.good_steps = s.good;
  t->state.skipped_steps = s.skipped;
  if (s.skipped - before >= steps && steps > 1 && s.scale <= LOSS_SCALE_LEAST)
    return error_set(
        err,
        "the last %ld steps overflowed in fp16, even with a loss scale of %g: numbers above 65504 are in the "
        "network itself; try --precision=bf16, or --lr=%g. The files in %s are unchanged",
        steps, LOSS_SCALE_LEAST, t->state.lr / 10, t->output_dir);
  int first = before;
  if (s.skipped - first > LOSS_SCALE_EVENTS) {
    first = s.skipped - LOSS_SCALE_EVENTS;
    fprintf(stderr, "%s: note: %d more steps overflowed before\n", program_invocation_short_name, first - before);
  }
  for (int i = first; i < s.skipped; i++) {
    const float scale = s.event[i % LOSS_SCALE_EVENTS].scale;
    fprintf(stderr,
            "%s: note: step %d overflowed with the loss scale %g: it was skipped, and the next step had the scale %g\n",
            program_invocation_short_name, s.event[i % LOSS_SCALE_EVENTS].step, scale,
            fmax(scale / 2, LOSS_SCALE_LEAST));
  }
  return 0;
}

/* Waits for the device, reads the sums, logs the interval and begins the next one. */
static inline int trainer_look(Trainer *t, TrainerInterval *interval, Error *err) {
  TrainState *state = &t->state;
  state->epoch_totals = model_read_totals(t->net, 0);
  if (trainer_check_loss(t, state->epoch_totals.loss, err) != 0) return -1;
  if (trainer_tell_skipped(t, state->step - interval->step, err) != 0) return -1;
  double now = seconds_now(), images = state->position - interval->position;
  Totals sums = {state->epoch_totals.loss - interval->begin.loss,
                 state->epoch_totals.correct - interval->begin.correct};
  state->seconds += now - interval->start;
  trainer_log(t, state->epoch + 1, "train", sums, images, now - interval->start);
  interval->begin = state->epoch_totals;
  interval->position = state->position;
  interval->start = now;
  interval->loss = sums.loss / images;
  interval->step = state->step;
  return 0;
}

/* How many steps of whole batches are left in the epoch. */
static inline int trainer_whole_steps(const Trainer *t) {
  return (t->train->count - t->state.position) / t->state.batch_size;
}

/* -1: the steps of this run cannot be recorded once; the message says why. */
static inline int trainer_check_replay(const Trainer *t, Error *why) {
  if (t->train->streamed) return error_set(why, "--stream copies each batch by itself");
  if (t->train->count < t->state.batch_size)
    return error_set(why, "the %d training images do not fill a batch of %d", t->train->count, t->state.batch_size);
  return step_replay_check(t->net, why);
}

#ifdef __CUDACC__
/* With --graph: steps are recorded before the first one runs, where that is possible (step_replay.h); otherwise each
 * step is recorded by itself, and a warning says why. Before the clock starts: kernels are loaded by the way. */
static inline void trainer_record(Trainer *t, StepReplay *replay, StepGraph *graph) {
  const int steps = t->train->count / t->state.batch_size;
  Error why;
  t->net->hyper.momentum = (float)t->state.momentum;
  if (trainer_check_replay(t, &why) != 0) {
    fprintf(stderr,
            "%s: warning: --graph records each step anew, which takes longer than to replay recorded ones: %s\n",
            program_invocation_short_name, why.message);
    t->step_graph = graph;
    return;
  }
  step_replay_open(replay, t->net, t->train, t->state.batch_size, checkpoint_part(&t->state), steps);
  t->values = (StepValues *)xcalloc((size_t)steps, sizeof *t->values);
  t->replay = replay;
}

/* What changes in the epoch's steps that are left goes to the device. */
static inline void trainer_load_epoch(Trainer *t) {
  TrainState at = t->state;
  const int steps = trainer_whole_steps(t);
  for (int i = 0; i < steps; i++, at.step++)
    t->values[i] = step_values(trainer_learning_rate(&t->schedule, &at), &t->net->hyper, at.step);
  step_replay_load(t->replay, t->values, steps, t->state.position);
}
#endif

/* A step on images of the set's order, with t->lr. */
static inline void trainer_one_step(Trainer *t, int position, int batch) {
  t->net->hyper.lr = (float)t->lr;
  t->net->hyper.momentum = (float)t->state.momentum;
  if (t->state.accumulate <= 1) device_set_batch(t->train, position, batch); /* a graph records no copies of a set */
  if (t->step_graph) step_graph_begin(t->step_graph);
  device_set_train_step(t->train, t->net, position, batch, checkpoint_part(&t->state));
  if (t->step_graph) step_graph_launch(t->step_graph);
  t->state.step++;
}

/* The next steps: as many as are launched at once. Returns how many images they had. */
static inline int trainer_steps(Trainer *t) {
  TrainState *state = &t->state;
  const int left = t->train->count - state->position, whole = trainer_whole_steps(t);
  const int batch = left < state->batch_size ? left : state->batch_size;
  int steps = 1;
  if (t->replay && whole > 0) {
    /* up to the next look at the loss */
    const int look = TRAINER_LOG_EVERY - state->position / state->batch_size % TRAINER_LOG_EVERY;
    ON_DEVICE(t->net->context.device, steps = step_replay_launch(t->replay, look < whole ? look : whole), (void)0);
    state->step += steps - 1;
    t->lr = trainer_learning_rate(&t->schedule, state);
    state->step++;
    return steps * batch;
  }
  t->lr = trainer_learning_rate(&t->schedule, state);
  trainer_one_step(t, state->position, batch);
  return batch;
}

/* Trains from the state's position to the end of its epoch, or to the step in which the user interrupts. */
static inline TrainResult trainer_train_epoch(Trainer *t, Error *err) {
  TrainState *state = &t->state;
  device_set_shuffle(t->train, state->seed, state->epoch);
  if (t->replay) ON_DEVICE(t->net->context.device, trainer_load_epoch(t), (void)0);
  model_reset_totals(t->net, 0, state->epoch_totals);

  Progress progress;
  char title[32];
  snprintf(title, sizeof title, "epoch %d/%d", state->epoch + 1, state->epochs);
  progress_begin(&progress, title, "img", state->position, t->train->count);
  TrainerInterval interval = {state->epoch_totals, state->position, seconds_now(), NAN, state->step};
  double start = interval.start;
  int first = state->position, status = 0;
  while (status == 0 && state->position < t->train->count && !interrupt_requested()) {
    state->position += trainer_steps(t);
    if (state->position / state->batch_size % TRAINER_LOG_EVERY == 0 || state->position == t->train->count)
      status = trainer_look(t, &interval, err);
    if (isnan(interval.loss))
      progress_update(&progress, state->position, "%s", "");
    else
      progress_update(&progress, state->position, "loss %.4f", interval.loss);
  }
  if (status == 0 && interval.position < state->position) status = trainer_look(t, &interval, err);
  progress_end(&progress);
  if (state->position > first) t->images_per_second = (state->position - first) / (seconds_now() - start);
  if (status != 0) return TRAIN_FAILED;
  return state->position < t->train->count ? TRAIN_INTERRUPTED : TRAIN_FINISHED;
}

#endif /* COMMON_NN_TRAINER_H */
