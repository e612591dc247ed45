/* mlp_networks.cuh - the networks of --layers and --activation as TaskNetworks of common/nn: a checkpoint keeps which
 * one it is of. */
#ifndef PHASE2_MLP_MLP_NETWORKS_CUH
#define PHASE2_MLP_MLP_NETWORKS_CUH

#include "common/nn/task.h"
#include "phase2_mlp/03_mlp/mlp_options.cuh"

static inline void mlp_networks_text(char text[CHECKPOINT_NETWORK]) {
  static_assert((int)CHECKPOINT_NETWORK >= (int)MLP_TEXT, "a checkpoint keeps the whole of it");
  mlp_text(&mlp_choice.shape, text);
}

/* A file from elsewhere says nothing of its network: its tensors will fit the one that was asked for, or not. */
static inline int mlp_networks_from_text(const char *text, Error *err) {
  MlpShape saved, asked;
  char asked_text[MLP_TEXT];
  if (text[0] == '\0') return 0;
  if (mlp_parse(&saved, text, err) != 0) return -1;
  asked = mlp_choice.layers_given ? mlp_choice.shape : saved;
  asked.activation = mlp_choice.activation_given ? mlp_choice.shape.activation : saved.activation;
  mlp_text(&asked, asked_text);
  if (strcmp(asked_text, text) != 0)
    return error_set(err,
                     "this is the network %s, not %s; leave --layers and --activation out, or train another one into "
                     "another --output-dir",
                     text, asked_text);
  mlp_choice.shape = saved;
  mlp_choice.saved = 1;
  return 0;
}

/* The default gets the inputs and the classes of a data set: a TaskNetworks' fit(). */
static inline void mlp_networks_fit(const DataSource *data) {
  if (mlp_choice.layers_given || mlp_choice.saved) return;
  mlp_choice.shape.width[0] = (int)shape_count(data->shape);
  mlp_choice.shape.width[mlp_choice.shape.count - 1] = data->classes;
}

static inline void mlp_networks_settings(Config *config) {
  char text[MLP_TEXT];
  mlp_text(&mlp_choice.shape, text);
  text[strcspn(text, " ")] = '\0';
  config_set(config, "layers", text);
  config_set(config, "activation", activation_name(mlp_choice.shape.activation));
}

/* The default, and the options to choose another. */
static inline const TaskNetworks *mlp_networks(const char *layers, Activation activation) {
  static TaskNetworks networks = {NULL, mlp_networks_text, mlp_networks_from_text, NULL, NULL, mlp_networks_settings};
  networks.options = mlp_options(layers, activation);
  return &networks;
}

#endif /* PHASE2_MLP_MLP_NETWORKS_CUH */
