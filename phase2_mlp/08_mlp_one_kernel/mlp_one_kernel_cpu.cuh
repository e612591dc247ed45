/* mlp_one_kernel_cpu.cuh - an epoch of a network with one hidden layer: its network and data, and the reference of all
 * versions of mlp_one_kernel.cuh, in plain loops with sums in double. */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_CPU_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_CPU_CUH

#include "common/check.h"
#include "phase2_mlp/05_batches/batches.cuh"

/* What is trained, on what, and how. All pointers are on one device. */
typedef struct MlpEpoch {
  int inputs, hidden, classes, batch, count;
  const uint8_t *images, *labels; /* (count, inputs), (count) */
  const uint32_t *order;          /* (count) */
  float mean, stddev, lr, momentum;
  float *parameters, *velocity; /* flat, as in common/nn/model.h: w1 (H,I), b1 (H), w2 (C,H), b2 (C) */
  float *losses;                /* (count): of each image in the order, before the update of its step */
} MlpEpoch;

static inline size_t mlp_parameter_count(const MlpEpoch *e) {
  return (size_t)e->hidden * e->inputs + e->hidden + (size_t)e->classes * e->hidden + e->classes;
}

/* One image: hidden (H), dlogits (C) and delta (H), the gradients of the mean loss of `batch` images, its own loss. */
static inline float mlp_image_cpu(const MlpEpoch *e, const float *x, int label, int batch, float *hidden,
                                  float *dlogits, float *delta) {
  const int I = e->inputs, H = e->hidden, C = e->classes;
  const float *w1 = e->parameters, *b1 = w1 + (size_t)H * I, *w2 = b1 + H, *b2 = w2 + (size_t)C * H;
  double logits[256], most = -INFINITY, total = 0;
  for (int u = 0; u < H; u++) {
    double sum = b1[u];
    for (int i = 0; i < I; i++) sum += (double)w1[(size_t)u * I + i] * x[i];
    hidden[u] = sum > 0 ? (float)sum : 0.0f;
  }
  for (int c = 0; c < C; c++) {
    logits[c] = b2[c];
    for (int u = 0; u < H; u++) logits[c] += (double)w2[c * H + u] * hidden[u];
    most = fmax(most, logits[c]);
  }
  for (int c = 0; c < C; c++) total += exp(logits[c] - most);
  for (int c = 0; c < C; c++) dlogits[c] = (float)((exp(logits[c] - most) / total - (c == label)) / batch);
  for (int u = 0; u < H; u++) {
    double sum = 0;
    for (int c = 0; c < C; c++) sum += (double)w2[c * H + u] * dlogits[c];
    delta[u] = hidden[u] > 0 ? (float)sum : 0.0f;
  }
  return (float)(log(total) - (logits[label] - most));
}

static inline void mlp_sgd_cpu(const MlpEpoch *e, size_t i, double gradient) {
  e->velocity[i] = e->momentum * e->velocity[i] + (float)gradient;
  e->parameters[i] -= e->lr * e->velocity[i];
}

/* A layer's w (outputs, inputs) and, behind it, bias (outputs), from the batch's dy (B, outputs) and x (B, inputs). */
static inline void mlp_update_cpu(const MlpEpoch *e, size_t w, int outputs, int inputs, const float *dy, const float *x,
                                  int batch) {
  for (int o = 0; o < outputs; o++) {
    for (int i = 0; i <= inputs; i++) { /* x[inputs] is 1 */
      double sum = 0;
      for (int b = 0; b < batch; b++) sum += (double)dy[b * outputs + o] * (i < inputs ? x[(size_t)b * inputs + i] : 1);
      mlp_sgd_cpu(e, i < inputs ? w + (size_t)o * inputs + i : w + (size_t)outputs * inputs + o, sum);
    }
  }
}

static inline void mlp_epoch_cpu(const MlpEpoch *e) {
  const int I = e->inputs, H = e->hidden, C = e->classes;
  float *x = (float *)xcalloc((size_t)e->batch * (I + 2 * H + C), sizeof(float)), *hidden = x + (size_t)e->batch * I;
  float *delta = hidden + e->batch * H, *dlogits = delta + e->batch * H;
  for (int position = 0; position < e->count; position += e->batch) {
    int batch = batches_size_at(e->count, e->batch, position);
    for (int b = 0; b < batch; b++) {
      size_t image = e->order[position + b];
      for (int i = 0; i < I; i++) x[b * I + i] = batch_normalize(e->images[image * I + i], e->mean, e->stddev);
      e->losses[position + b] =
          mlp_image_cpu(e, x + b * I, e->labels[image], batch, hidden + b * H, dlogits + b * C, delta + b * H);
    }
    mlp_update_cpu(e, 0, H, I, delta, x, batch);
    mlp_update_cpu(e, (size_t)H * (I + 1), C, H, dlogits, hidden, batch);
  }
  free(x);
}

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_CPU_CUH */
