/* mlp_options.cuh - the options --layers and --activation, for programs around mlp.cuh, on argp (common/options.h).
 *
 * A program has one choice of network: mlp_choice, which it sets to its default before the command line is read.
 */
#ifndef PHASE2_MLP_MLP_OPTIONS_CUH
#define PHASE2_MLP_MLP_OPTIONS_CUH

#include <limits.h>

#include "common/options.h"
#include "phase2_mlp/03_mlp/mlp.cuh"

typedef struct MlpChoice {
  MlpShape shape;
  int layers_given, activation_given;
  int saved; /* 1: it is a checkpoint's */
} MlpChoice;

static MlpChoice mlp_choice;

static inline error_t mlp_options_parse(int key, char *arg, struct argp_state *state) {
  Error err;
  MlpShape shape;
  switch (key) {
    case 'L':
      if (mlp_parse_layers(&shape, arg, &err) != 0) argp_error(state, "--layers: %s", err.message);
      if (mlp_parameters(&shape) > INT_MAX)
        argp_error(state, "--layers: %.80s has %zu parameters, at most %d are expected", arg, mlp_parameters(&shape),
                   INT_MAX);
      shape.activation = mlp_choice.shape.activation;
      mlp_choice.shape = shape;
      mlp_choice.layers_given = 1;
      return 0;
    case 'A':
      if (mlp_parse_activation(&mlp_choice.shape.activation, arg, &err) != 0)
        argp_error(state, "--activation: %s", err.message);
      mlp_choice.activation_given = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* Sets the default, whose text is right, and returns the options, whose help names it. */
static inline const struct argp *mlp_options(const char *layers, Activation activation) {
  static char layers_text[160], activation_text[160];
  static const struct argp_option rows[] = {
      {"layers", 'L', "N,N,...", 0, layers_text, 0}, {"activation", 'A', "NAME", 0, activation_text, 0}, OPTION_END};
  static const struct argp own = {rows, mlp_options_parse, NULL, NULL, NULL, NULL, NULL};
  Error err;
  if (mlp_parse_layers(&mlp_choice.shape, layers, &err) != 0) die("%s", err.message);
  mlp_choice.shape.activation = activation;
  snprintf(layers_text, sizeof layers_text, "Widths: inputs, hidden layers, classes (default: %s)", layers);
  snprintf(activation_text, sizeof activation_text,
           "Activation of the hidden layers: relu, leaky_relu, sigmoid or tanh (default: %s)",
           activation_name(activation));
  return &own;
}

#endif /* PHASE2_MLP_MLP_OPTIONS_CUH */
