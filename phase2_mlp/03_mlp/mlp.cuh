/* mlp.cuh - the multi-layer perceptron as a Graph: linear layers, with an activation between any two of them.
 *
 *     MlpShape shape;
 *     if (mlp_parse(&shape, "784,128,10 relu", &err) != 0) die("%s", err.message);
 *     Model mlp;
 *     mlp_create(&mlp, &shape, device, max_batch);       // fc1 (128,784), relu1, fc2 (10,128): 101,770 parameters
 *
 * Without activations any number of linear layers is one linear layer: W2 (W1 x + b1) + b2 = (W2 W1) x + (W2 b1 + b2).
 * The last layer has none: its outputs are logits, and the softmax is the nonlinear function behind them.
 *
 *   mlp_loss_cpu         the mean loss in double, from the references of each operation alone
 *   mlp_check_gradient   one entry of the gradient by central differences of that loss
 */
#ifndef PHASE2_MLP_MLP_CUH
#define PHASE2_MLP_MLP_CUH

#include "phase1_building_blocks/07_activations/relu_half_op.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_half_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"

enum {
  MLP_MAX_WIDTHS = 17, /* 16 linear layers, 15 activations */
  MLP_MAX_WIDTH = 65536,
  MLP_TEXT = 128, /* of mlp_text() */
};

typedef struct MlpShape {
  int count, width[MLP_MAX_WIDTHS]; /* the input's first, the classes last */
  Activation activation;
} MlpShape;

/* ------------------------------------------------------------------------------------------------- the shape */

static inline int mlp_parse_activation(Activation *activation, const char *text, Error *err) {
  if (activation_named(text, activation)) return 0;
  return error_set(err, "unknown activation \"%.40s\"; expected relu, leaky_relu, sigmoid or tanh", text);
}

/* "784,128,10": the widths, and ReLU. -1 with a sentence that says what is expected. */
static inline int mlp_parse_layers(MlpShape *shape, const char *layers, Error *err) {
  memset(shape, 0, sizeof *shape);
  for (const char *at = layers;; at++) { /* behind a comma */
    char *end;
    long width = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : 0;
    if (width < 1 || width > MLP_MAX_WIDTH || (*end != ',' && *end != '\0'))
      return error_set(err,
                       "\"%.80s\" is not a list of layers; widths from 1 to %d with commas between them are expected, "
                       "as in 784,128,10",
                       layers, MLP_MAX_WIDTH);
    if (shape->count == MLP_MAX_WIDTHS)
      return error_set(err, "\"%.80s\": up to %d widths are expected, for %d layers", layers, MLP_MAX_WIDTHS,
                       MLP_MAX_WIDTHS - 1);
    shape->width[shape->count++] = (int)width;
    at = end;
    if (*at == '\0') break;
  }
  if (shape->count < 2)
    return error_set(err, "\"%.80s\": two widths at least are expected, of the input and of the output", layers);
  return 0;
}

/* "784,128,10 relu", as mlp_text() writes it. */
static inline int mlp_parse(MlpShape *shape, const char *text, Error *err) {
  char layers[MLP_TEXT];
  size_t length = strcspn(text, " ");
  if (length >= sizeof layers || text[length] == '\0')
    return error_set(err, "\"%.80s\" is not a network; layers and an activation are expected, as in 784,128,10 relu",
                     text);
  memcpy(layers, text, length);
  layers[length] = '\0';
  if (mlp_parse_layers(shape, layers, err) != 0) return -1;
  return mlp_parse_activation(&shape->activation, text + length + 1, err);
}

/* 17 widths of five digits, 16 commas and "leaky_relu" need 113 bytes. */
static inline void mlp_text(const MlpShape *shape, char text[MLP_TEXT]) {
  size_t used = 0;
  for (int i = 0; i < shape->count; i++)
    used += snprintf(text + used, MLP_TEXT - used, "%s%d", i ? "," : "", shape->width[i]);
  snprintf(text + used, MLP_TEXT - used, " %s", activation_name(shape->activation));
}

static inline size_t mlp_parameters(const MlpShape *shape) {
  size_t sum = 0;
  for (int i = 1; i < shape->count; i++) sum += (size_t)shape->width[i] * (shape->width[i - 1] + 1);
  return sum;
}

/* ---------------------------------------------------------------------------------------------------- the network */

/* What --precision=bf16 and fp16 can do with it (common/nn/lower.h). Sigmoid and tanh stay float32. */
static const Lowering mlp_lowerings[] = {LOWER_LINEAR, LOWER_RELU};

/* fc1, relu1, fc2, ..., and the loss. Xavier's initialisation right before sigmoid and tanh, He's before the others. */
static inline Graph *mlp_graph(const MlpShape *shape) {
  Graph *g = graph_create();
  const int xavier = shape->activation == ACTIVATION_SIGMOID || shape->activation == ACTIVATION_TANH;
  g->weight_init = xavier ? &xavier_normal : &he_normal;
  int x = graph_input(g, "x", shape1(shape->width[0]));
  for (int i = 1; i < shape->count; i++) {
    x = linear(g, x, shape->width[i]);
    if (i + 1 < shape->count) x = activation(g, x, shape->activation); /* the last outputs are the logits */
  }
  graph_loss(g, &cross_entropy_loss, x, 1);
  g->lowerings = mlp_lowerings;
  g->lowering_count = sizeof mlp_lowerings / sizeof *mlp_lowerings;
  return g;
}

static inline void mlp_create(Model *mlp, const MlpShape *shape, Device device, int max_batch) {
  sgd_model_open(mlp, mlp_graph(shape), device, max_batch);
}

/* One linear layer, "fc", and the loss: softmax regression. */
static inline Graph *softmax_regression_graph(int inputs, int classes) {
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape1(inputs));
  graph_loss(g, &cross_entropy_loss, linear(graph_name(g, "fc"), x, classes), 1);
  return g;
}

/* ------------------------------------------------------------------------------------------ its gradient, checked */

static inline void mlp_bend_cpu(double *y, size_t n, Activation kind) {
  switch (kind) {
    case ACTIVATION_RELU:
      relu_forward_cpu(y, y, n);
      break;
    case ACTIVATION_LEAKY_RELU:
      leaky_relu_forward_cpu(y, y, n);
      break;
    case ACTIVATION_SIGMOID:
      sigmoid_forward_cpu(y, y, n);
      break;
    case ACTIVATION_TANH:
      tanh_forward_cpu(y, y, n);
      break;
  }
}

/* The mean loss of a batch: parameters as Model has them (each layer's weight, then its bias), x (batch, width[0]),
 * labels (batch). *signs, where it is not NULL, becomes a fingerprint of which units lie above 0. */
static inline double mlp_loss_cpu(const MlpShape *shape, const double *parameters, const double *x, const int *labels,
                                  int batch, uint64_t *signs) {
  int widest = 0, classes = shape->width[shape->count - 1];
  for (int i = 0; i < shape->count; i++) widest = shape->width[i] > widest ? shape->width[i] : widest;
  size_t size = (size_t)batch * widest;
  double *before = (double *)xcalloc(2 * size, sizeof(double)), *after = before + size, loss = 0;
  double *memory = before, *losses = (double *)xcalloc(batch, sizeof(double));
  memcpy(before, x, (size_t)batch * shape->width[0] * sizeof(double));
  if (signs) *signs = 0;
  for (int i = 0; i + 1 < shape->count; i++) {
    int in = shape->width[i], out = shape->width[i + 1];
    const double *bias = parameters + (size_t)out * in;
    linear_forward_cpu(after, before, parameters, bias, batch, in, out);
    parameters = bias + out;
    if (i + 2 < shape->count) {
      for (size_t j = 0; signs && j < (size_t)batch * out; j++)
        *signs = *signs * 0x9E3779B97F4A7C15u + (after[j] > 0 ? 2 : 1);
      mlp_bend_cpu(after, (size_t)batch * out, shape->activation);
    }
    double *free_one = before;
    before = after;
    after = free_one;
  }
  softmax_cross_entropy_forward_cpu(losses, after, before, labels, batch, classes);
  for (int b = 0; b < batch; b++) loss += losses[b];
  free(losses);
  free(memory);
  return loss / batch;
}

/* d loss / d parameters[i] = (loss(p + h) - loss(p - h)) / 2h, to about h^2 and the rounding of the losses / h: with
 * losses near 1 in double and h = 1e-5, some 1e-10 either. NAN where a unit of ReLU changes sides within h: there the
 * loss has a corner, and the two are slopes of different lines. */
static inline double mlp_check_gradient(const MlpShape *shape, double *parameters, size_t i, const double *x,
                                        const int *labels, int batch) {
  double kept = parameters[i], h = 1e-5;
  uint64_t signs_above, signs_below;
  parameters[i] = kept + h;
  double above = mlp_loss_cpu(shape, parameters, x, labels, batch, &signs_above);
  parameters[i] = kept - h;
  double below = mlp_loss_cpu(shape, parameters, x, labels, batch, &signs_below);
  parameters[i] = kept;
  int has_corners = shape->activation == ACTIVATION_RELU || shape->activation == ACTIVATION_LEAKY_RELU;
  if (has_corners && signs_above != signs_below) return NAN;
  return (above - below) / (2 * h);
}

#endif /* PHASE2_MLP_MLP_CUH */
