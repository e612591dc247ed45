/* resnet_networks.cuh - the options --filters and --dropout as TaskNetworks of common/nn: a checkpoint keeps them. */
#ifndef PHASE3_CNN_RESNET_NETWORKS_CUH
#define PHASE3_CNN_RESNET_NETWORKS_CUH

#include "common/nn/task.h"
#include "phase3_cnn/14_resnet_mnist/resnet.cuh"

enum { RESNET_MOST_FILTERS = 4096 };

static const ResnetShape resnet_default = {{16, 32, 64}, 0.1};

typedef struct ResnetChoice {
  ResnetShape shape;
  int filters_given, dropout_given;
} ResnetChoice;

static ResnetChoice resnet_choice;

static inline Graph *resnet_graph(void) { return resnet_fused(resnet_choice.shape); }

/* "16,32,64". -1: it is no such text. */
static inline int resnet_parse_filters(const char *text, int filters[3]) {
  int end = 0;
  if (sscanf(text, "%d,%d,%d%n", &filters[0], &filters[1], &filters[2], &end) != 3 || text[end] != '\0') return -1;
  for (int i = 0; i < 3; i++)
    if (filters[i] < 1 || filters[i] > RESNET_MOST_FILTERS) return -1;
  return 0;
}

static inline error_t resnet_options_parse(int key, char *arg, struct argp_state *state) {
  switch (key) {
    case 'F':
      if (resnet_parse_filters(arg, resnet_choice.shape.filters) != 0)
        argp_error(state, "--filters=%.80s: three numbers from 1 to %d are expected, such as 16,32,64", arg,
                   RESNET_MOST_FILTERS);
      resnet_choice.filters_given = 1;
      return 0;
    case 'D':
      resnet_choice.shape.dropout = option_float(state, arg, "--dropout", 0, 0.99);
      resnet_choice.dropout_given = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* What a checkpoint says of its network. */
static inline void resnet_text(ResnetShape s, char text[CHECKPOINT_NETWORK]) {
  snprintf(text, CHECKPOINT_NETWORK, "resnet %d,%d,%d dropout %.15g", s.filters[0], s.filters[1], s.filters[2],
           s.dropout);
}

static inline void resnet_networks_text(char text[CHECKPOINT_NETWORK]) { resnet_text(resnet_choice.shape, text); }

static inline int resnet_parse(const char *text, ResnetShape *shape) {
  char filters[64], again[CHECKPOINT_NETWORK];
  if (sscanf(text, "resnet %63s dropout %lf", filters, &shape->dropout) != 2) return -1;
  if (resnet_parse_filters(filters, shape->filters) != 0) return -1;
  resnet_text(*shape, again);
  return shape->dropout >= 0 && shape->dropout < 1 && strcmp(text, again) == 0 ? 0 : -1;
}

/* A file from elsewhere says nothing of its network: its tensors will fit the one that was asked for, or not. */
static inline int resnet_networks_from_text(const char *text, Error *err) {
  ResnetShape saved;
  char asked_text[CHECKPOINT_NETWORK];
  if (text[0] == '\0') return 0;
  if (resnet_parse(text, &saved) != 0)
    return error_set(
        err, "the checkpoint is of the network \"%.80s\"; a model that resnet_mnist has trained is expected", text);
  ResnetShape asked = saved;
  if (resnet_choice.filters_given) memcpy(asked.filters, resnet_choice.shape.filters, sizeof asked.filters);
  if (resnet_choice.dropout_given) asked.dropout = resnet_choice.shape.dropout;
  resnet_text(asked, asked_text);
  if (strcmp(asked_text, text) != 0)
    return error_set(err,
                     "this is the network \"%s\", not \"%s\"; leave --filters and --dropout out, or train another one "
                     "into another --output-dir",
                     text, asked_text);
  resnet_choice.shape = saved;
  return 0;
}

static inline void resnet_networks_settings(Config *config) {
  char text[64], number[64];
  const int *filters = resnet_choice.shape.filters;
  snprintf(text, sizeof text, "%d,%d,%d", filters[0], filters[1], filters[2]);
  config_set(config, "filters", text);
  config_set(config, "dropout", config_number(resnet_choice.shape.dropout, number, sizeof number));
}

/* The default, and the options to choose another. */
static inline const TaskNetworks *resnet_networks(void) {
  static const struct argp_option rows[] = {
      {"filters", 'F', "A,B,C", 0, "Filters of conv1, layer1 and layer2 (default: 16,32,64)", 0},
      {"dropout", 'D', "P", 0, "Drop each input of a linear layer with this probability (default: 0.1)", 0},
      OPTION_END};
  static const struct argp own = {rows, resnet_options_parse, NULL, NULL, NULL, NULL, NULL};
  static const TaskNetworks networks = {&own, resnet_networks_text, resnet_networks_from_text,
                                        NULL, residual_infer,       resnet_networks_settings};
  resnet_choice.shape = resnet_default;
  return &networks;
}

#endif /* PHASE3_CNN_RESNET_NETWORKS_CUH */
