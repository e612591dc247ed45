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
#include "common/nn/totals_fetch.h"
#include "common/progress.h"
#include "common/sparkline.h"
#include "common/timer.h"
#include "common/train_log.h"

enum {
  TRAINER_LOG_EVERY = 100
};                        /* steps of an epoch between two looks at the loss, unless Trainer.log_every says so */
#define TRAINER_SHORT 0.5 /* seconds of an interval that ends while the next one is launched already */

typedef struct Trainer {
  Model *net;
  DeviceSet *train, *test, *validation; /* validation NULL: none */
  LrSchedule schedule;
  TrainState state;       /* what a checkpoint keeps */
  const char *output_dir; /* last.safetensors, best.safetensors, last.state.safetensors */
  TrainLog *log;
  int log_every;         /* 0: TRAINER_LOG_EVERY */
  TotalsFetch fetch;     /* of the loss; opened by the first epoch */
  Sparkline curve;       /* of the loss's logarithm */
  double interval;       /* seconds that the last interval took; 0: there was none */
  StepGraph *step_graph; /* records each step; NULL: each kernel is launched by itself */
  StepReplay *replay;    /* launches recorded steps; NULL: does not */
  StepValues *values;    /* of its epoch, on the host */
  double lr;             /* of the last step */
  int diverged;          /* a loss was not finite */
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

static inline int trainer_log_every(const Trainer *t) { return t->log_every > 0 ? t->log_every : TRAINER_LOG_EVERY; }

/* Frees what the epochs have opened. */
static inline void trainer_close(Trainer *t) { totals_fetch_close(&t->fetch); }

/* One record of the log: the interval of training steps, or the evaluation, that ended now in `epoch` (from 1).
 * gradient_norm: the mean of the steps; NAN: not measured. */
static inline void trainer_log(Trainer *t, long step, int epoch, const char *split, Totals totals, double images,
                               double seconds, double lr, double gradient_norm) {
  TrainRecord record = train_record();
  record.step = step;
  record.epoch = epoch;
  snprintf(record.split, sizeof record.split, "%s", split);
  record.loss = totals.loss / images;
  record.accuracy = totals.correct / images;
  record.lr = lr;
  record.images_per_second = images / seconds;
  record.seconds = t->state.seconds;
  record.gradient_norm = gradient_norm;
  train_log_write(t->log, &record);
}

/* The steps since the last look at the loss. A look begins behind the steps so far, and may end while the device is at
 * those of the next interval: so it never waits for the host. */
typedef struct TrainerInterval {
  StepTotals begin; /* the epoch's sums when it began */
  long step;        /* the step and the image at which it began */
  int position;
  double start, loss;
  int looking; /* a look has begun: at this step and image, with this learning rate */
  long look_step;
  int look_position;
  double look_lr;
} TrainerInterval;

/* Not finite means diverged: nothing of such a network may reach a checkpoint. epoch: from 1. */
static inline int trainer_check_loss(Trainer *t, long step, int epoch, double loss, Error *err) {
  const TrainState *state = &t->state;
  if (isfinite(loss)) return 0;
  t->diverged = 1;
  return error_set(err,
                   "the loss is not finite at step %ld of epoch %d: the learning rate %g is too high for this network; "
                   "try --lr=%g%s%s. %s; the files in %s are unchanged",
                   step, epoch, state->lr, state->lr / 10, state->clip_norm > 0 ? "" : " or --clip-norm=1",
                   t->net->loss_scale ? " or --precision=bf16" : "",
                   state->best_epoch > 0 ? "The last checkpoint is kept" : "Nothing was saved", t->output_dir);
}

/* Steps of fp16 that were skipped between the last look and the one that is fetched, the last LOSS_SCALE_EVENTS of them
 * one by one. -1 where all `steps` steps were, and the scale is as small as it can be. */
static inline int trainer_tell_skipped(Trainer *t, long steps, Error *err) {
  if (t->fetch.scale == NULL) return 0;
  const LossScale s = *t->fetch.scale;
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

/* Waits for the sums of the look, logs the interval before it and begins the next one. */
static inline int trainer_look_end(Trainer *t, TrainerInterval *interval, Error *err) {
  TrainState *state = &t->state;
  const StepTotals sums = totals_fetch_end(&t->fetch);
  const int before = t->skipped;
  interval->looking = 0;
  state->epoch_totals = sums.totals;
  if (trainer_check_loss(t, interval->look_step, state->epoch + 1, sums.totals.loss, err) != 0) return -1;
  if (trainer_tell_skipped(t, interval->look_step - interval->step, err) != 0) return -1;
  const double now = seconds_now(), images = interval->look_position - interval->position;
  const double norm =
      (sums.norms - interval->begin.norms) / (double)(interval->look_step - interval->step - (t->skipped - before));
  const Totals own = {sums.totals.loss - interval->begin.totals.loss,
                      sums.totals.correct - interval->begin.totals.correct};
  t->interval = now - interval->start;
  state->seconds += t->interval;
  trainer_log(t, interval->look_step, state->epoch + 1, "train", own, images, t->interval, interval->look_lr,
              state->clip_norm > 0 ? norm : NAN);
  interval->begin = sums;
  interval->step = interval->look_step;
  interval->position = interval->look_position;
  interval->start = now;
  interval->loss = own.loss / images;
  sparkline_add(&t->curve, log(fmax(interval->loss, 1e-9)));
  return 0;
}

/* Looks at the loss after the steps so far. Where intervals are short, that ends with the next look or the epoch, and
 * the device goes on meanwhile; where they are long, it ends at once: waiting then costs nothing that can be measured,
 * and Ctrl-C finds few steps launched ahead. */
static inline int trainer_look(Trainer *t, TrainerInterval *interval, Error *err) {
  if (interval->looking && trainer_look_end(t, interval, err) != 0) return -1;
  totals_fetch_begin(&t->fetch, t->net);
  interval->looking = 1;
  interval->look_step = t->state.step;
  interval->look_position = t->state.position;
  interval->look_lr = t->lr;
  const int ahead = t->net->context.device == DEVICE_GPU && t->interval > 0 && t->interval < TRAINER_SHORT;
  return ahead ? 0 : trainer_look_end(t, interval, err);
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
    t->values[i] = model_step_values(t->net, trainer_learning_rate(&t->schedule, &at), at.step);
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
    const int every = trainer_log_every(t), look = every - state->position / state->batch_size % every;
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

/* How far the epoch has come, with the loss of the last interval and all before it as a curve. */
static inline void trainer_show(const Trainer *t, Progress *progress, const TrainerInterval *interval, int columns) {
  if (isnan(interval->loss))
    progress_update(progress, t->state.position, "%s", "");
  else
    progress_update(progress, t->state.position, "loss %.4f%s%s", interval->loss, columns > 0 ? " " : "",
                    sparkline_text(&t->curve, columns).text);
}

/* Trains from the state's position to the end of its epoch, or to the step in which the user interrupts. */
static inline TrainResult trainer_train_epoch(Trainer *t, Error *err) {
  TrainState *state = &t->state;
  const double none = 0;
  if (t->fetch.sums == NULL) totals_fetch_open(&t->fetch, t->net);
  device_set_shuffle(t->train, state->seed, state->epoch);
  if (t->replay) ON_DEVICE(t->net->context.device, trainer_load_epoch(t), (void)0);
  model_reset_totals(t->net, 0, state->epoch_totals);
  if (state->clip_norm > 0) device_upload(t->net->context.device, t->net->totals + MODEL_NORMS, &none, sizeof none);

  Progress progress;
  char title[32];
  snprintf(title, sizeof title, "epoch %d/%d", state->epoch + 1, state->epochs);
  progress_begin(&progress, title, "img", state->position, t->train->count);
  TrainerInterval interval;
  memset(&interval, 0, sizeof interval);
  interval.begin.totals = state->epoch_totals;
  interval.step = state->step;
  interval.position = state->position;
  interval.start = seconds_now();
  interval.loss = NAN;
  const double start = interval.start;
  const int first = state->position, columns = sparkline_columns();
  int status = 0;
  while (status == 0 && state->position < t->train->count && !interrupt_requested()) {
    state->position += trainer_steps(t);
    if (state->position / state->batch_size % trainer_log_every(t) == 0 || state->position == t->train->count)
      status = trainer_look(t, &interval, err);
    trainer_show(t, &progress, &interval, columns);
  }
  if (status == 0 && interval.looking) status = trainer_look_end(t, &interval, err);
  if (status == 0 && interval.position < state->position) {
    status = trainer_look(t, &interval, err);
    if (status == 0 && interval.looking) status = trainer_look_end(t, &interval, err);
  }
  progress_end(&progress);
  if (state->position > first) t->images_per_second = (state->position - first) / (seconds_now() - start);
  if (status != 0) return TRAIN_FAILED;
  return state->position < t->train->count ? TRAIN_INTERRUPTED : TRAIN_FINISHED;
}

#endif /* COMMON_NN_TRAINER_H */
