/* resnet18_weights.h - weights for resnet18.cuh from torchvision: a .safetensors file, or a .pth file as
 * torch.save(model.state_dict(), FILE) writes it and as torchvision's own are.
 *
 *     Resnet18Weights weights;
 *     if (resnet18_weights_open("resnet18.pth", &weights, &err) != 0) die("%s", err.message);
 *     ... a network for weights.classes classes ...
 *     if (resnet18_weights_load(&weights, &net, &err) != 0) die("%s", err.message);
 *     resnet18_weights_close(&weights);
 */
#ifndef PHASE5_PRODUCTION_RESNET18_WEIGHTS_H
#define PHASE5_PRODUCTION_RESNET18_WEIGHTS_H

#include "common/nn/state_dict.h"
#include "phase5_production/03_resnet18/pth.h"

typedef struct Resnet18Weights {
  char path[PATH_MAX];      /* the user's file */
  char converted[PATH_MAX]; /* of a .pth file: the safetensors file made of it, to be removed; "" */
  int width, classes;       /* of the network that it is for; 0: it does not say */
  StateDictLoaded loaded;   /* after resnet18_weights_load() */
} Resnet18Weights;

static inline const char *resnet18_weights_file(const Resnet18Weights *w) {
  return w->converted[0] ? w->converted : w->path;
}

static inline void resnet18_weights_close(Resnet18Weights *w) {
  if (w->converted[0]) unlink(w->converted);
  w->converted[0] = '\0';
}

/* The length of a tensor of one dimension that a network of any size has; 0 where there is none. */
static inline int resnet18_weights_length(const SafetensorsFile *file, const char *prefix, const char *name) {
  const SafetensorsTensor *tensor = state_dict_find(file, prefix, name);
  if (tensor == NULL || tensor->rank != 1 || tensor->shape[0] > 1 << 20) return 0;
  return (int)tensor->shape[0];
}

/* Converts a .pth file, and reads for how many channels and classes the weights are: a network that was trained on
 * other classes has another last layer. */
static inline int resnet18_weights_open(const char *path, Resnet18Weights *w, Error *err) {
  SafetensorsFile file;
  char prefix[STATE_DICT_PREFIX];
  memset(w, 0, sizeof *w);
  snprintf(w->path, sizeof w->path, "%s", path);
  if (pth_is(path) && pth_convert(path, w->converted, sizeof w->converted, err) != 0) {
    w->converted[0] = '\0';
    return -1;
  }
  if (safetensors_open(resnet18_weights_file(w), &file, err) != 0) {
    resnet18_weights_close(w);
    return -1;
  }
  state_dict_prefix(&file, prefix);
  w->width = resnet18_weights_length(&file, prefix, "bn1.weight");
  w->classes = resnet18_weights_length(&file, prefix, "fc.bias");
  safetensors_close(&file);
  return 0;
}

static inline int resnet18_weights_load(Resnet18Weights *w, Model *net, Error *err) {
  return state_dict_load(net, resnet18_weights_file(w), w->path, &w->loaded, err);
}

#endif /* PHASE5_PRODUCTION_RESNET18_WEIGHTS_H */
