/* predict.h - --predict: a trained network looks at pictures of the user's. The model is opened to infer: it keeps no
 * gradients, no optimizer's state, and only the arrays that are alive at one moment. */
#ifndef COMMON_NN_PREDICT_H
#define COMMON_NN_PREDICT_H

#include "common/nn/report.h"
#include "common/nn/session.h"

/* What the network makes of one picture: probabilities (classes). */
static inline int predict_file(Model *net, const DataSource *source, const DataNorm *norm, const char *file,
                               float *probabilities, Error *err) {
  Image image;
  Error why;
  char path[PATH_MAX];
  const Shape shape = source->shape;
  const size_t count = shape_count(shape), plane = count / shape.dim[0];
  if (user_path(file, path, sizeof path, err) != 0) return -1;
  if (image_read(path, shape.dim[0] == 1 ? 1 : 3, &image, err) != 0) return -1;
  uint8_t *sample = (uint8_t *)xmalloc(count);
  float *input = (float *)xmalloc(count * sizeof *input);
  const int status = source->from_image(&image, shape, sample, &why);
  image_free(&image);
  for (size_t i = 0; i < count && status == 0; i++)
    input[i] = device_set_normalize(sample[i], norm->mean[i / plane], norm->stddev[i / plane]);
  if (status == 0) {
    const int label = 0; /* the score wants one; only the probabilities are read */
    device_upload(net->context.device, model_input(net, 0), input, count * sizeof *input);
    device_upload(net->context.device, model_labels(net), &label, sizeof label);
    model_evaluate_step(net, 1);
    device_download(net->context.device, probabilities, model_loss_saved(net, 0), model_classes(net) * sizeof(float));
  }
  free(sample);
  free(input);
  if (status != 0) return error_set(err, "%s: %.700s", file, why.message);
  if (checkpoint_all_finite(probabilities, model_classes(net))) return 0;
  return error_set(err,
                   "%s: the network's answer is not finite: the weights of its model are too large; use another "
                   "--checkpoint",
                   file);
}

/* The file of --checkpoint, or the best of the output folder. */
static inline int predict_checkpoint(const TrainOptions *options, char *path, size_t size, Error *err) {
  if (options->checkpoint[0]) {
    Error why;
    if (user_path(options->checkpoint, path, PATH_MAX, &why) == 0) return 0;
    return error_set(err, "--checkpoint: %.900s", why.message);
  }
  snprintf(path, size, "%s/best.safetensors", options->common.output_dir);
  if (access(path, F_OK) == 0) return 0;
  return error_set(err,
                   "%s: there is no trained model yet; train one first (run %s without --predict), or name one with "
                   "--checkpoint",
                   path, program_invocation_short_name);
}

/* The task's own way to infer takes the place of the trained model. */
static inline int predict_prepare(const Task *task, Model *net, Error *err) {
  Model fast;
  if (task->networks == NULL || task->networks->infer == NULL) return 0;
  if (task->networks->infer(&fast, net, net->max_batch, err) != 0) return -1;
  model_close(net);
  *net = fast;
  return 0;
}

/* All files of the command line; 1 where one could not be classified. */
static inline int predict_run(const Task *task, TrainOptions *options) {
  Error err;
  char path[PATH_MAX + 32];
  TrainState state;
  Model net;
  DataNorm norm;
  if (predict_checkpoint(options, path, sizeof path, &err) != 0) die("%s", err.message);
  if (checkpoint_peek(path, CHECKPOINT_MODEL, &state, &err) != 0) die("%s", err.message);
  if (session_recall(task, options, &state, &err) != 0) die("%s: %s", path, err.message);
  if (session_open(task, options, &state, 1, MODEL_INFER, 0, &net, &err) != 0) die("%s", err.message);
  if (checkpoint_load(path, CHECKPOINT_MODEL, &net, &state, &err) != 0) die("%s", err.message);
  if (predict_prepare(task, &net, &err) != 0) die("%s: %s", path, err.message);
  if (checkpoint_norm(&state, options->data->shape.dim[0], &norm, &err) != 0) die("%s: %s", path, err.message);
  printf("model %s", path);
  if (!isnan(state.test_accuracy)) printf(" (epoch %d, test accuracy %.2f %%)", state.epoch, 100 * state.test_accuracy);
  printf("\n\n");

  int failed = 0;
  const int classes = model_classes(&net);
  const char *const *names = classes == options->data->classes ? options->data->class_names : NULL;
  float *probabilities = (float *)xmalloc((size_t)classes * sizeof *probabilities);
  json_t *predictions = json_array();
  for (int i = 0; i < options->file_count; i++) {
    const char *file = options->files[i];
    if (predict_file(&net, options->data, &norm, file, probabilities, &err) == 0) {
      json_array_append_new(predictions, report_prediction(file, probabilities, classes, names));
      continue;
    }
    fflush(stdout);
    fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, err.message);
    json_array_append_new(predictions,
                          json_pack("{s:o, s:o}", "file", json_text(file), "error", json_text(err.message)));
    failed = 1;
  }
  if (options->common.json && json_result(json_pack("{s:s, s:s, s:o, s:O}", "program", program_invocation_short_name,
                                                    "device", device_name(options->common.device), "checkpoint",
                                                    json_text(path), "predictions", predictions),
                                          &err) != 0)
    die("%s", err.message);
  json_decref(predictions);
  free(probabilities);
  model_close(&net);
  return failed;
}

#endif /* COMMON_NN_PREDICT_H */
