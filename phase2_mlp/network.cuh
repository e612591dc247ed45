/* network.cuh - a network is a list of layers: forward in order, backward in reverse, one step of SGD.
 *
 *     x (N, in_size) -> layer 0 -> layer 1 -> ... -> logits (N, classes) -> softmax cross-entropy -> loss
 *
 * Everything is allocated once, by network_create(): all parameters in one flat array, all gradients in another of the
 * same layout, so that the optimizer is one loop (one kernel) over all of them; an activation for each layer that does
 * not work in place; and two buffers between which the gradient swings on its way back.
 *
 * The same code drives both devices. Nothing in a training step waits for the GPU: losses are added up on the device,
 * and network_read_totals() fetches the sums when somebody wants to see them.
 */
#ifndef PHASE2_MLP_NETWORK_CUH
#define PHASE2_MLP_NETWORK_CUH

#include "common/device.h"
#include "phase1_building_blocks/random_init.cuh"
#include "phase1_building_blocks/softmax_cross_entropy.cuh"
#include "phase2_mlp/layer.cuh"
#include "phase2_mlp/sgd.cuh"

enum { NETWORK_MAX_LAYERS = 32 };

typedef struct Network {
  Device device;
  int max_batch, in_size, classes;
  int layer_count;
  Layer *layers[NETWORK_MAX_LAYERS];

  size_t parameter_count;
  float *parameters, *gradients, *velocity; /* flat: layer by layer, weight then bias, each (parameter_count) */

  float *activations[NETWORK_MAX_LAYERS + 1]; /* [0] is the input (N, in_size), [i+1] the output of layer i */
  float *gradient[2];                         /* the gradient on its way back; each holds the largest activation */
  int *labels;                                /* (N) */
  float *probabilities, *losses;              /* (N, classes), (N) */
  double *totals;                             /* sum of losses, number of right answers */
  float *workspace;
  float weight_decay; /* of network_update(); 0 unless somebody sets it */
} Network;

/* Sums since network_reset_totals(). */
typedef struct Totals {
  double loss, correct;
} Totals;

/* Allocates everything for batches of up to max_batch samples. The layers must outlive the network. */
static inline void network_create(Network *net, Device device, Layer **layers, int layer_count, int max_batch) {
  memset(net, 0, sizeof *net);
  if (layer_count < 1 || layer_count > NETWORK_MAX_LAYERS)
    die("a network has 1 to %d layers, not %d; raise NETWORK_MAX_LAYERS", NETWORK_MAX_LAYERS, layer_count);
  net->device = device;
  net->max_batch = max_batch;
  net->layer_count = layer_count;
  net->in_size = layers[0]->in_size;
  net->classes = layers[layer_count - 1]->out_size;

  size_t widest = net->in_size, workspace_floats = 0;
  for (int i = 0; i < layer_count; i++) {
    Layer *l = net->layers[i] = layers[i];
    if (i > 0 && l->in_size != layers[i - 1]->out_size)
      die("layer %s takes %d floats a sample, but %s before it gives %d", l->name, l->in_size, layers[i - 1]->name,
          layers[i - 1]->out_size);
    l->device = device;
    if (l->plan) l->plan(l, max_batch);
    if (l->workspace_floats > workspace_floats) workspace_floats = l->workspace_floats;
    if ((size_t)l->out_size > widest) widest = l->out_size;
    net->parameter_count += l->weight_count + l->bias_count;
  }

  size_t parameter_bytes = net->parameter_count * sizeof(float);
  double sample_floats = net->in_size + net->classes + 2.0 * widest; /* of activations, probabilities, deltas */
  for (int i = 0; i < layer_count; i++) sample_floats += layers[i]->in_place ? 0 : layers[i]->out_size;
  device_expect_memory(device, 3.0 * parameter_bytes + sizeof(float) * (workspace_floats + max_batch * sample_floats),
                       "the network", "take a smaller network, or a smaller batch");
  net->parameters = (float *)device_alloc(device, parameter_bytes);
  net->gradients = (float *)device_alloc(device, parameter_bytes);
  net->velocity = (float *)device_alloc(device, parameter_bytes);
  net->workspace = (float *)device_alloc(device, workspace_floats * sizeof(float));
  for (int i = 0; i < 2; i++) net->gradient[i] = (float *)device_alloc(device, max_batch * widest * sizeof(float));
  net->labels = (int *)device_alloc(device, max_batch * sizeof(int));
  net->losses = (float *)device_alloc(device, max_batch * sizeof(float));
  net->probabilities = (float *)device_alloc(device, (size_t)max_batch * net->classes * sizeof(float));
  net->totals = (double *)device_alloc(device, 2 * sizeof(double));

  net->activations[0] = (float *)device_alloc(device, (size_t)max_batch * net->in_size * sizeof(float));
  size_t offset = 0;
  for (int i = 0; i < layer_count; i++) {
    Layer *l = layers[i];
    net->activations[i + 1] = l->in_place
                                  ? net->activations[i]
                                  : (float *)device_alloc(device, (size_t)max_batch * l->out_size * sizeof(float));
    l->workspace = net->workspace;
    if (l->saved_bytes) l->saved = (unsigned char *)device_alloc(device, max_batch * l->saved_bytes);
    l->weight = net->parameters + offset;
    l->weight_grad = net->gradients + offset;
    offset += l->weight_count;
    l->bias = net->parameters + offset;
    l->bias_grad = net->gradients + offset;
    offset += l->bias_count;
  }
}

static inline void network_destroy(Network *net) {
  Device device = net->device;
  for (int i = 0; i < net->layer_count; i++) {
    Layer *l = net->layers[i];
    if (!l->in_place) device_free(device, net->activations[i + 1]);
    if (l->saved) device_free(device, l->saved);
    l->saved = NULL;
  }
  device_free(device, net->activations[0]);
  device_free(device, net->totals);
  device_free(device, net->probabilities);
  device_free(device, net->losses);
  device_free(device, net->labels);
  for (int i = 0; i < 2; i++) device_free(device, net->gradient[i]);
  device_free(device, net->workspace);
  device_free(device, net->velocity);
  device_free(device, net->gradients);
  device_free(device, net->parameters);
  memset(net, 0, sizeof *net);
}

/* Weights normal, with He's variance 2 / fan_in or Xavier's 2 / (fan_in + fan_out); biases and velocity zero. Made on
 * the host, so that every device starts from the same bits. */
static inline void network_init(Network *net, uint64_t seed) {
  float *host = (float *)xcalloc(net->parameter_count, sizeof(float));
  for (int i = 0; i < net->layer_count; i++) {
    Layer *l = net->layers[i];
    if (l->weight_count == 0) continue;
    float *weight = host + (l->weight - net->parameters);
    if (l->fan_out == 0)
      he_normal_init(weight, l->weight_count, l->fan_in, seed, i);
    else
      xavier_normal_init(weight, l->weight_count, l->fan_in, l->fan_out, seed, i);
  }
  device_upload(net->device, net->parameters, host, net->parameter_count * sizeof(float));
  device_zero(net->device, net->velocity, net->parameter_count * sizeof(float));
  free(host);
}

static inline const float *network_logits(const Network *net) { return net->activations[net->layer_count]; }

/* activations[0] -> logits. */
static inline void network_forward(Network *net, int batch) {
  if (batch > net->max_batch) die("a batch of %d in a network made for %d", batch, net->max_batch);
  for (int i = 0; i < net->layer_count; i++) {
    Layer *l = net->layers[i];
    l->forward(l, net->activations[i + 1], net->activations[i], batch);
  }
}

/* Logits and labels -> probabilities, losses; adds to the totals. */
static inline void network_score(Network *net, int batch) {
  const float *logits = network_logits(net);
  ON_DEVICE(
      net->device,
      softmax_cross_entropy_forward_gpu(net->losses, net->probabilities, logits, net->labels, batch, net->classes),
      softmax_cross_entropy_forward_cpu_fast(net->losses, net->probabilities, logits, net->labels, batch,
                                             net->classes));
  ON_DEVICE(
      net->device,
      softmax_cross_entropy_score_gpu(net->totals, net->losses, net->probabilities, net->labels, batch, net->classes),
      softmax_cross_entropy_score_cpu_fast(net->totals, net->losses, net->probabilities, net->labels, batch,
                                           net->classes));
}

/* Probabilities and labels -> gradients of the mean loss with respect to every parameter. */
static inline void network_backward(Network *net, int batch) {
  float *dy = net->gradient[0], *dx = net->gradient[1];
  float scale = 1.0f / (float)batch;
  ON_DEVICE(net->device,
            softmax_cross_entropy_backward_gpu(dy, net->probabilities, net->labels, scale, batch, net->classes),
            softmax_cross_entropy_backward_cpu_fast(dy, net->probabilities, net->labels, scale, batch, net->classes));
  for (int i = net->layer_count - 1; i >= 0; i--) {
    Layer *l = net->layers[i];
    float *out = i == 0 ? NULL : l->in_place ? dy : dx;
    l->backward(l, out, dy, net->activations[i], net->activations[i + 1], batch);
    if (out == dx) { /* what this layer gave is what the layer before it gets */
      dx = dy;
      dy = out;
    }
  }
}

static inline void network_update(Network *net, float lr, float momentum) {
  ON_DEVICE(net->device,
            sgd_step_gpu(net->parameters, net->velocity, net->gradients, net->parameter_count, lr, momentum,
                         net->weight_decay),
            sgd_step_cpu_fast(net->parameters, net->velocity, net->gradients, net->parameter_count, lr, momentum,
                              net->weight_decay));
}

/* One training step on the batch that lies in activations[0] and labels. */
static inline void network_train_step(Network *net, int batch, float lr, float momentum) {
  network_forward(net, batch);
  network_score(net, batch);
  network_backward(net, batch);
  network_update(net, lr, momentum);
}

static inline void network_reset_totals(Network *net, Totals totals) {
  double sums[2] = {totals.loss, totals.correct};
  device_upload(net->device, net->totals, sums, sizeof sums);
}

/* Waits for the device. */
static inline Totals network_read_totals(const Network *net) {
  double sums[2];
  device_download(net->device, sums, net->totals, sizeof sums);
  Totals totals = {sums[0], sums[1]};
  return totals;
}

#endif /* PHASE2_MLP_NETWORK_CUH */
