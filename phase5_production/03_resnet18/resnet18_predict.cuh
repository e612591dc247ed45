/* resnet18_predict.cuh - what a classifier for ImageNet sees on a picture: the file is read, prepared as torchvision
 * does (preprocess.cuh), the network computes its logits, and the likeliest classes are printed. */
#ifndef PHASE5_PRODUCTION_RESNET18_PREDICT_CUH
#define PHASE5_PRODUCTION_RESNET18_PREDICT_CUH

#include <jansson.h>

#include "common/image.h"
#include "common/nn/model.h"
#include "common/train_log.h"
#include "phase5_production/03_resnet18/imagenet_classes.h"
#include "phase5_production/03_resnet18/preprocess.cuh"

enum { RESNET18_NARROWEST = 64 }; /* sides of a picture may differ by this factor */

/* A picture as the network's input x (3,S,S), on the device. */
static inline void resnet18_prepare(Device device, float *x, const Image *image, PreprocessRecipe recipe) {
  const PreprocessPlan plan = preprocess_plan(image->width, image->height, recipe);
  const size_t bytes = (size_t)image->width * (size_t)image->height * 3;
  void *workspace = device_alloc(device, preprocess_workspace_bytes(plan));
  uint8_t *picture = (uint8_t *)device_alloc(device, bytes);
  device_upload(device, picture, image->pixels, bytes);
  ON_DEVICE(device, preprocess_gpu(x, picture, workspace, plan), preprocess_cpu(x, picture, workspace, plan));
  device_synchronize(device);
  device_free(device, picture);
  device_free(device, workspace);
}

/* Reads the file into the network's input, and computes. */
static inline int resnet18_look(Model *net, const char *path, PreprocessRecipe recipe, Image *size, Error *err) {
  Image image;
  const Device device = net->context.device;
  const int label = 0; /* the score wants one; only the probabilities are read */
  if (image_read_rgb(path, &image, err) != 0) return -1;
  *size = image;
  const int longer = image.width > image.height ? image.width : image.height;
  const int shorter = image.width > image.height ? image.height : image.width;
  int status = 0;
  if (longer > RESNET18_NARROWEST * shorter)
    status = error_set(err, "%s is %d x %d pixels; one side may be up to %d times as long as the other", path,
                       image.width, image.height, RESNET18_NARROWEST);
  if (status == 0) {
    resnet18_prepare(device, model_input(net, 0), &image, recipe);
    device_upload(device, model_labels(net), &label, sizeof label);
    model_evaluate_step(net, 1);
  }
  image_free(&image);
  return status;
}

/* The labels of the `count` largest probabilities, the largest first; of equal ones the lower label. */
static inline void resnet18_top(const float *probabilities, int classes, int *top, int count) {
  for (int i = 0; i < count; i++) {
    top[i] = -1;
    for (int k = 0; k < classes; k++) {
      int taken = 0;
      for (int j = 0; j < i; j++) taken |= top[j] == k;
      if (!taken && (top[i] < 0 || probabilities[k] > probabilities[top[i]])) top[i] = k;
    }
  }
}

/* Prints the likeliest classes of one picture, and returns them for JSON. */
static inline json_t *resnet18_print_top(const char *file, const Image *size, const float *probabilities, int classes,
                                         int count, const ClassNames *names) {
  char text[CLASSES_NAME + 1];
  int *top = (int *)xmalloc((size_t)count * sizeof *top);
  json_t *list = json_array();
  resnet18_top(probabilities, classes, top, count);
  printf("%s, %d x %d pixels\n", file, size->width, size->height);
  for (int i = 0; i < count; i++) {
    const int label = top[i];
    printf("  %6.2f %%  %s\n", 100.0 * (double)probabilities[label], class_name(names, label, text));
    json_array_append_new(list, json_pack("{s:i, s:o, s:f}", "label", label, "name", json_text(text), "probability",
                                          (double)probabilities[label]));
  }
  free(top);
  return json_pack("{s:o, s:i, s:i, s:o}", "file", json_text(file), "width", size->width, "height", size->height, "top",
                   list);
}

/* One file of the command line: its top classes, or NULL and a sentence. */
static inline json_t *resnet18_predict(Model *net, const char *file, PreprocessRecipe recipe, int count,
                                       const ClassNames *names, Error *err) {
  char path[PATH_MAX];
  Image size;
  json_t *result = NULL;
  if (user_path(file, path, sizeof path, err) != 0 || resnet18_look(net, path, recipe, &size, err) != 0) return NULL;
  const int classes = model_classes(net);
  float *probabilities = (float *)xmalloc((size_t)classes * sizeof *probabilities);
  device_download(net->context.device, probabilities, model_loss_saved(net, 0), (size_t)classes * sizeof(float));
  int finite = 1;
  for (int k = 0; k < classes; k++) finite &= isfinite(probabilities[k]) != 0;
  if (finite)
    result = resnet18_print_top(file, &size, probabilities, classes, count, names);
  else
    error_set(err, "%s: the network's answer is not finite: its weights are too large", file);
  free(probabilities);
  return result;
}

#endif /* PHASE5_PRODUCTION_RESNET18_PREDICT_CUH */
