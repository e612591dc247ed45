/* resnet_networks.cuh - the option --dropout as TaskNetworks of common/nn: a checkpoint keeps the probability. */
#ifndef PHASE3_CNN_RESNET_NETWORKS_CUH
#define PHASE3_CNN_RESNET_NETWORKS_CUH

#include "common/nn/task.h"
#include "phase3_cnn/14_resnet_mnist/resnet.cuh"

#define RESNET_DROPOUT 0.25 /* the default */

typedef struct ResnetChoice {
  double dropout;
  int given;
} ResnetChoice;

static ResnetChoice resnet_choice = {RESNET_DROPOUT, 0};

static inline Graph *resnet_graph(void) { return resnet_fused((float)resnet_choice.dropout); }

static inline error_t resnet_options_parse(int key, char *arg, struct argp_state *state) {
  if (key != 'D') return ARGP_ERR_UNKNOWN;
  resnet_choice.dropout = option_float(state, arg, "--dropout", 0, 0.99);
  resnet_choice.given = 1;
  return 0;
}

static inline void resnet_networks_text(char text[CHECKPOINT_NETWORK]) {
  snprintf(text, CHECKPOINT_NETWORK, "resnet, dropout %.17g", resnet_choice.dropout);
}

/* A file from elsewhere says nothing of its network: its tensors will fit, or not. */
static inline int resnet_networks_from_text(const char *text, Error *err) {
  double saved;
  int end = 0;
  if (text[0] == '\0') return 0;
  if (sscanf(text, "resnet, dropout %lf%n", &saved, &end) != 1 || text[end] != '\0' || !(saved >= 0 && saved <= 0.99))
    return error_set(err, "the checkpoint's network is \"%.80s\"; \"resnet, dropout P\" is expected", text);
  if (resnet_choice.given && resnet_choice.dropout != saved)
    return error_set(err,
                     "the run was started with --dropout=%g, not %g; leave the option out, or train another network "
                     "into another --output-dir",
                     saved, resnet_choice.dropout);
  resnet_choice.dropout = saved;
  return 0;
}

static inline const TaskNetworks *resnet_networks(void) {
  static const struct argp_option rows[] = {
      {"dropout", 'D', "P", 0, "Drop each number before a linear layer with this probability (default: 0.25)", 0},
      OPTION_END};
  static const struct argp own = {rows, resnet_options_parse, NULL, NULL, NULL, NULL, NULL};
  static const TaskNetworks networks = {&own, resnet_networks_text, resnet_networks_from_text};
  return &networks;
}

#endif /* PHASE3_CNN_RESNET_NETWORKS_CUH */
