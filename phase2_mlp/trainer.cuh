/* trainer.cuh - the training loop: epochs of mini-batches, an evaluation after each, a checkpoint, a log.
 *
 *     for each epoch: shuffle; for each batch: gather, forward, loss, backward, update; evaluate on the test set
 *
 * All state that a run needs to go on lies in Trainer and in the network's parameters and velocity, so a run that was
 * stopped after any step and resumed computes the very same numbers as one that was not (checkpoint.cuh keeps them).
 */
#ifndef PHASE2_MLP_TRAINER_CUH
#define PHASE2_MLP_TRAINER_CUH

#include <math.h>

#include "common/interrupt.h"
#include "common/progress.h"
#include "common/timer.h"
#include "common/train_log.h"
#include "phase2_mlp/checkpoint.cuh"
#include "phase2_mlp/image_set.cuh"

enum { TRAINER_LOG_EVERY = 100 }; /* steps of an epoch between two looks at the loss: each waits for the device */

typedef struct Trainer {
  Network *net;
  ImageSet *train, *test;
  TrainState state;       /* what a checkpoint keeps */
  const char *output_dir; /* last.safetensors, best.safetensors, last.state.safetensors */
  TrainLog *log;
  /* Of the last epoch; NAN before the first. */
  double images_per_second; /* evaluation left out */
  double train_loss, train_accuracy, test_loss;
} Trainer;

typedef enum TrainResult { TRAIN_FINISHED, TRAIN_INTERRUPTED, TRAIN_FAILED } TrainResult;

/* The learning rate of a step: up from zero over the first twentieth of the run, then straight down to zero.
 * The start spares the fresh weights, whose gradients are large; the end lets the noise of small batches settle.
 * Phase 4 compares schedules. */
static inline double trainer_learning_rate(const TrainState *state) {
  double steps_per_epoch = (state->train_images + state->batch_size - 1) / state->batch_size;
  double done = (state->step + 0.5) / (steps_per_epoch * state->epochs), warm_up = 0.05;
  return state->lr * (done < warm_up ? done / warm_up : fmax(0, 1 - done) / (1 - warm_up));
}

/* One record of the log: the interval of training steps, or the evaluation, that ended now in `epoch` (from 1). */
static inline void trainer_log(Trainer *t, int epoch, const char *split, Totals totals, double images, double seconds) {
  TrainRecord record = TrainRecord();
  record.step = t->state.step;
  record.epoch = epoch;
  snprintf(record.split, sizeof record.split, "%s", split);
  record.loss = totals.loss / images;
  record.accuracy = totals.correct / images;
  record.lr = trainer_learning_rate(&t->state);
  record.images_per_second = images / seconds;
  record.seconds = t->state.seconds;
  train_log_write(t->log, &record);
}

/* Trains from the state's position to the end of its epoch. Returns early when the user interrupts. */
static inline TrainResult trainer_train_epoch(Trainer *t, Error *err) {
  TrainState *state = &t->state;
  Network *net = t->net;
  image_set_shuffle(t->train, state->seed, state->epoch);
  network_reset_totals(net, state->epoch_totals);

  Progress progress;
  char title[32];
  snprintf(title, sizeof title, "epoch %d/%d", state->epoch + 1, state->epochs);
  progress_begin(&progress, title, "images", state->position, t->train->count);

  Totals seen = state->epoch_totals;
  double loss = 0, accuracy = 0; /* of the last interval */
  double start = seconds_now(), tick = start, before = state->seconds;
  int from = state->position, tick_position = from;
  while (state->position < t->train->count && !interrupt_requested()) {
    int left = t->train->count - state->position;
    int batch = left < state->batch_size ? left : state->batch_size;
    image_set_gather(t->train, net, state->position, batch);
    network_train_step(net, batch, (float)trainer_learning_rate(state), (float)state->momentum);
    state->position += batch;
    state->step++;

    if (state->position / state->batch_size % TRAINER_LOG_EVERY == 0 || state->position == t->train->count) {
      Totals now = network_read_totals(net);
      double images = state->position - tick_position, seconds = seconds_now() - tick;
      Totals interval = {now.loss - seen.loss, now.correct - seen.correct};
      if (!isfinite(now.loss))
        return (TrainResult)(error_set(err,
                                       "the loss is not finite at step %ld of epoch %d: the learning rate %g is too "
                                       "high for this network; try --lr=%g. The last good checkpoint in %s is kept",
                                       state->step, state->epoch + 1, state->lr, state->lr / 10, t->output_dir),
                             TRAIN_FAILED);
      state->seconds = before + seconds_now() - start;
      trainer_log(t, state->epoch + 1, "train", interval, images, seconds);
      loss = interval.loss / images;
      accuracy = interval.correct / images;
      seen = now;
      tick = seconds_now();
      tick_position = state->position;
    }
    progress_update(&progress, state->position, "loss %.4f  accuracy %.2f %%", loss, 100 * accuracy);
  }
  state->epoch_totals = network_read_totals(net);
  double seconds = seconds_now() - start;
  state->seconds = before + seconds;
  if (state->position > from) t->images_per_second = (state->position - from) / seconds;
  progress_end(&progress);
  return state->position < t->train->count ? TRAIN_INTERRUPTED : TRAIN_FINISHED;
}

#endif /* PHASE2_MLP_TRAINER_CUH */
