/* predict.h - --predict: a trained network looks at pictures of the user's. The model is opened to infer: it keeps no
 * gradients, no optimizer's state, and only the arrays that are alive at one moment. */
#ifndef COMMON_NN_PREDICT_H
#define COMMON_NN_PREDICT_H

#include "common/nn/report.h"
#include "common/nn/session.h"

/* Reads a picture into `sample`, as the data set has them, and normalised into the network's input. */
static inline int predict_read(Model *net, const DataSource *source, const DataNorm *norm, const char *file,
                               uint8_t *sample, Error *err) {
  Image image;
  Error why;
  char path[PATH_MAX];
  const Shape shape = source->shape;
  const size_t count = shape_count(shape), plane = count / shape.dim[0];
  if (user_path(file, path, sizeof path, err) != 0) return -1;
  if (image_read(path, shape.dim[0] == 1 ? 1 : 3, &image, err) != 0) return -1;
  const int status = source->from_image(&image, shape, sample, &why);
  image_free(&image);
  if (status != 0) return error_set(err, "%s: %.700s", file, why.message);
  float *input = (float *)xmalloc(count * sizeof *input);
  const int label = 0; /* the score wants one; only the probabilities are read */
  for (size_t i = 0; i < count; i++)
    input[i] = device_set_normalize(sample[i], norm->mean[i / plane], norm->stddev[i / plane]);
  device_upload(net->context.device, model_input(net, 0), input, count * sizeof *input);
  device_upload(net->context.device, model_labels(net), &label, sizeof label);
  free(input);
  return 0;
}

/* What the network, which has run, says about the picture: probabilities (classes). */
static inline int predict_answer(const Model *net, const char *file, float *probabilities, Error *err) {
  device_download(net->context.device, probabilities, model_loss_saved(net, 0), model_classes(net) * sizeof(float));
  if (checkpoint_all_finite(probabilities, model_classes(net))) return 0;
  return error_set(err,
                   "%s: the network's answer is not finite: the weights of its model are too large; use another "
                   "--checkpoint",
                   file);
}

/* What the network makes of one picture. */
static inline int predict_file(Model *net, const DataSource *source, const DataNorm *norm, const char *file,
                               float *probabilities, Error *err) {
  uint8_t *sample = (uint8_t *)xmalloc(shape_count(source->shape));
  const int status = predict_read(net, source, norm, file, sample, err);
  free(sample);
  if (status != 0) return -1;
  model_evaluate_step(net, 1);
  return predict_answer(net, file, probabilities, err);
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
                   "%s: there is no trained model yet; train one first (run %s without --%s), or name one with "
                   "--checkpoint",
                   path, program_invocation_short_name, train_options_mode(options));
}

/* The model of the checkpoint, for batches of up to `most` pictures, and how their pixels are normalised; a line says
 * which model it is. `path` has room for `size` bytes. */
static inline int predict_open(const Task *task, TrainOptions *options, int most, char *path, size_t size, Model *net,
                               DataNorm *norm, Error *err) {
  Error why;
  TrainState state;
  if (predict_checkpoint(options, path, size, err) != 0) return -1;
  if (checkpoint_peek(path, CHECKPOINT_MODEL, &state, err) != 0) return -1;
  if (session_recall(task, options, &state, &why) != 0) return error_set(err, "%s: %.900s", path, why.message);
  if (session_open(task, options, &state, most, MODEL_INFER, 0, net, err) != 0) return -1;
  if (checkpoint_load(path, CHECKPOINT_MODEL, net, &state, err) != 0) return -1;
  if (checkpoint_norm(&state, options->data->shape.dim[0], norm, &why) != 0)
    return error_set(err, "%s: %.900s", path, why.message);
  printf("model %s", path);
  if (!isnan(state.test_accuracy)) printf(" (epoch %d, test accuracy %.2f %%)", state.epoch, 100 * state.test_accuracy);
  printf("\n\n");
  return 0;
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
  Model net;
  DataNorm norm;
  if (predict_open(task, options, 1, path, sizeof path, &net, &norm, &err) != 0) die("%s", err.message);
  if (!options->unfused && predict_prepare(task, &net, &err) != 0) die("%s: %s", path, err.message);
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
