/* app_looks.h - what app.cu does for --summary and --profile: it trains nothing and reads no images. */
#ifndef COMMON_NN_APP_LOOKS_H
#define COMMON_NN_APP_LOOKS_H

#include "common/nn/profile.h"
#include "common/nn/session.h"
#include "common/train_log.h"

/* -------------------------------------------------------------------------------------------------------- --summary */

static inline json_t *app_summary_json(const Model *m) {
  json_t *rows = json_array();
  double flops = 0;
  for (int i = 0; i < m->graph->count; i++) {
    const Node *node = &m->graph->nodes[i];
    json_t *shape = json_array();
    size_t parameters = 0;
    for (int d = 0; d < node->shape.rank; d++) json_array_append_new(shape, json_integer(node->shape.dim[d]));
    for (int k = 0; k < node->params; k++) parameters += node->param[k].trained ? node->param[k].count : 0;
    json_array_append_new(
        rows, json_pack("{s:s, s:s, s:o, s:I, s:f, s:I}", "node", node->name, "operation",
                        node->op ? node->op->name : "input", "shape", shape, "parameters", (json_int_t)parameters,
                        "flops", node->flops, "kept_bytes", (json_int_t)plan_kept_bytes(&m->plan, i)));
    flops += node->flops;
  }
  return json_pack("{s:s, s:s, s:i, s:I, s:f, s:f, s:f, s:o}", "program", program_invocation_short_name, "device",
                   device_name(m->context.device), "batch_size", m->max_batch, "parameters",
                   (json_int_t)m->parameter_count, "flops", flops, "training_bytes", model_bytes(m), "inference_bytes",
                   model_inference_bytes(m), "rows", rows);
}

/* Every node and both peaks, for this batch size. Nothing is allocated, so that what does not fit can be looked at. */
static inline int app_summary(const Task *task, TrainOptions *options) {
  Error err;
  TrainState state;
  Model net;
  memset(&state, 0, sizeof state);
  if (session_prepare(task, options, &state, options->common.batch_size, MODEL_TRAIN, &net, &err) != 0)
    die("%s", err.message);
  model_print_summary(stdout, &net);
  if (options->common.json && json_result(app_summary_json(&net), &err) != 0) die("%s", err.message);
  model_close(&net);
  return 0;
}

/* -------------------------------------------------------------------------------------------------------- --profile */

/* Every operation of a training step, on random images: see profile.h. */
static inline int app_profile(const Task *task, TrainOptions *options) {
  Error err;
  TrainState state;
  Model net;
  Profile profile;
  char title[256];
  const int batch = options->common.batch_size;
  memset(&state, 0, sizeof state);
  if (batch > STEP_PARTS_IMAGES)
    die("--batch-size=%d: --profile takes batches of up to %d images", batch, STEP_PARTS_IMAGES);
  if (session_open(task, options, &state, batch, MODEL_TRAIN, 0, &net, &err) != 0) die("%s", err.message);
  model_init(&net, options->common.seed);
  net.context.ranges = 1;
  profile_open(&profile, task, options->data, &net, batch, options->common.seed);
  profile_measure(&profile);
  profile_print(stdout, &profile);
  snprintf(title, sizeof title, "%s: a training step, batch %d, %s", task->title, batch,
           device_name(options->common.device));
  if (profile_write(&profile, title, options->common.output_dir, &err) != 0) die("%s", err.message);
  printf("profile.csv is in %s, and where gnuplot is installed profile.svg and profile.png\n",
         options->common.output_dir);
  if (options->common.json && json_result(profile_json(&profile), &err) != 0) die("%s", err.message);
  profile_close(&profile);
  model_close(&net);
  return 0;
}

#endif /* COMMON_NN_APP_LOOKS_H */
