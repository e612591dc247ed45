/* run_settings.h - all settings of a training run with their values, whether they were typed, recalled from a
 * checkpoint or are the program's own: for the report.
 */
#ifndef COMMON_NN_RUN_SETTINGS_H
#define COMMON_NN_RUN_SETTINGS_H

#include "common/html.h"
#include "common/nn/session.h"

/* What the optimizer reads of its settings. */
static inline void run_settings_optimizer(HtmlRows *rows, const TrainOptions *o) {
  const unsigned reads = o->optimizer->reads;
  html_row(rows, "optimizer", "%s", o->optimizer->name);
  html_row(rows, "lr", "%g", o->lr);
  if (reads & OPTIMIZER_MOMENTUM) html_row(rows, "momentum", "%g", o->momentum);
  if (reads & OPTIMIZER_DAMPENING) html_row(rows, "dampening", "%g", o->dampening);
  if (reads & OPTIMIZER_NESTEROV) html_row(rows, "nesterov", "%s", o->nesterov ? "yes" : "no");
  if (reads & OPTIMIZER_BETA1) html_row(rows, "beta1", "%g", o->beta1);
  if (reads & OPTIMIZER_BETA2) html_row(rows, "beta2", "%g", o->beta2);
  if (reads & OPTIMIZER_EPSILON) html_row(rows, "epsilon", "%g", o->epsilon);
  if (reads & OPTIMIZER_CENTERED) html_row(rows, "centered", "%s", o->centered ? "yes" : "no");
  html_row(rows, "weight-decay", "%g", o->weight_decay);
  html_row(rows, "schedule", "%s", lr_schedule_text(&o->schedule).text);
}

static inline void run_settings_data(HtmlRows *rows, const TrainOptions *o, const TrainState *state) {
  html_row(rows, "data", "%s (%s)", o->data->name, o->data->title);
  html_row(rows, "data-dir", "%s", o->common.data_dir[0] ? o->common.data_dir : "as Bazel laid it out");
  html_row(rows, "images to train on", "%d", state->train_images);
  html_row(rows, "images to test on", "%d", state->test_images);
  if (o->hold_out > 0) html_row(rows, "hold-out", "%d", o->hold_out);
  if (state->validation > 0)
    html_row(rows, "validation", "%g (%d images)", state->validation, state->validation_images);
  else
    html_row(rows, "validation", "none");
  html_row(rows, "augment", "%s", o->augment->name);
}

/* `device`: its description. */
static inline void run_settings_rows(HtmlRows *rows, const Task *task, const TrainOptions *o, const TrainState *state,
                                     const Model *net, const char *device) {
  html_row(rows, "network", "%s", state->network[0] ? state->network : task->title);
  html_row(rows, "parameters", "%zu", net->parameter_count);
  run_settings_data(rows, o, state);
  html_row(rows, "device", "%s (%s)", device_name(o->common.device), device);
  if (o->common.device == DEVICE_CPU) html_row(rows, "threads", "%d", o->threads);
  html_row(rows, "seed", "%llu", (unsigned long long)state->seed);
  html_row(rows, "epochs", "%d", state->epochs);
  html_row(rows, "batch-size", "%d", checkpoint_part(state));
  html_row(rows, "accumulate", "%d", state->accumulate > 1 ? state->accumulate : 1);
  run_settings_optimizer(rows, o);
  html_row(rows, "clip-norm", state->clip_norm > 0 ? "%g" : "none", state->clip_norm);
  html_row(rows, "clip-value", state->clip_value > 0 ? "%g" : "none", state->clip_value);
  html_row(rows, "label-smoothing", state->label_smoothing > 0 ? "%g" : "none", state->label_smoothing);
  html_row(rows, "mixup", state->mixup > 0 ? "%g" : "none", state->mixup);
  html_row(rows, "ema", state->ema > 0 ? "%g" : "none", state->ema);
  html_row(rows, "precision", "%s", state->precision[0] ? state->precision : "float32");
  if (state->loss_scale > 0) html_row(rows, "loss-scale", "%g at the start", state->loss_scale);
  if (state->patience > 0)
    html_row(rows, "patience", "%d", state->patience);
  else
    html_row(rows, "patience", "none");
  html_row(rows, "implementations", "%s", state->implementations[0] ? state->implementations : "the usual ones");
  html_row(rows, "computed together", "%s", state->fused);
  html_row(rows, "graph", "%s", o->graph ? "yes" : "no");
  html_row(rows, "stream", "%s", o->stream ? "yes" : "no");
  html_row(rows, "log-every", "%d", o->log_every > 0 ? o->log_every : 100);
  html_row(rows, "output-dir", "%s", o->common.output_dir);
  html_row(rows, "resumed", o->resume ? "at step %ld" : "no", state->step);
}

#endif /* COMMON_NN_RUN_SETTINGS_H */
