/* test_net.h - for tests: a network of one layer, its loss, its optimizer and its batches in the plainest form, so that
 * a test of the program around a network needs no phase. All of it is a function of one element, the same on the CPU
 * and in a kernel. */
#ifndef COMMON_NN_TEST_NET_H
#define COMMON_NN_TEST_NET_H

#include <math.h>

#include "common/nn/device_set.h"

typedef enum TestKind {
  TEST_FORWARD,
  TEST_REVERSED,
  TEST_WEIGHT,
  TEST_INPUT,
  TEST_LOSS,
  TEST_SLOPE,
  TEST_SCORE,
  TEST_STEP,
  TEST_GATHER
} TestKind;

/* What an element is computed from; which members count follows from the kind. */
typedef struct TestWork {
  TestKind kind;
  int batch, in, out; /* x (batch,in), w (out,in) with the bias (out), y (batch,out) */
  float *to, *to_bias;
  const float *x, *w, *bias, *dy;
  const int *labels;
  double *totals;
  float scale;
  Hyper hyper;
  size_t decayed;
  const StepValues *values; /* NULL: hyper.lr */
  const uint8_t *samples, *sample_labels;
  const uint32_t *order;
  int *to_labels;
} TestWork;

/* y = x w^T + bias; the sum from the other end has other bits. */
static __host__ __device__ void test_net_forward(const TestWork *t, size_t i) {
  const size_t n = i / t->out, k = i % t->out;
  float sum = t->bias[k];
  for (int j = 0; j < t->in; j++) {
    const int at = t->kind == TEST_REVERSED ? t->in - 1 - j : j;
    sum += t->x[n * t->in + at] * t->w[k * t->in + at];
  }
  t->to[i] = sum;
}

/* dw (out,in) and dbias (out) */
static __host__ __device__ void test_net_weight(const TestWork *t, size_t i) {
  const size_t k = i / t->in, j = i % t->in;
  float sum = 0, bias = 0;
  for (int n = 0; n < t->batch; n++) {
    sum += t->dy[n * t->out + k] * t->x[n * t->in + j];
    bias += t->dy[n * t->out + k];
  }
  t->to[i] = sum;
  if (j == 0) t->to_bias[k] = bias;
}

static __host__ __device__ void test_net_input(const TestWork *t, size_t i) {
  const size_t n = i / t->in, j = i % t->in;
  float sum = 0;
  for (int k = 0; k < t->out; k++) sum += t->dy[n * t->out + k] * t->w[k * t->in + j];
  t->to[i] = sum;
}

/* Row n of the logits x (batch,out): its loss, and the probabilities to (batch,out). */
static __host__ __device__ void test_net_loss(const TestWork *t, size_t n) {
  const float *x = t->x + n * t->out;
  float most = x[0], sum = 0;
  for (int k = 1; k < t->out; k++) most = x[k] > most ? x[k] : most;
  for (int k = 0; k < t->out; k++) sum += expf(x[k] - most);
  for (int k = 0; k < t->out; k++) t->to[n * t->out + k] = expf(x[k] - most) / sum;
  t->to_bias[n] = logf(sum) - (x[t->labels[n]] - most);
}

/* One thread for all: the order of the sum is the same everywhere. x: probabilities, dy: losses. */
static __host__ __device__ void test_net_score(const TestWork *t, size_t i) {
  (void)i;
  for (int n = 0; n < t->batch; n++) {
    int best = 0;
    for (int k = 1; k < t->out; k++)
      if (t->x[n * t->out + k] > t->x[n * t->out + best]) best = k;
    t->totals[0] += t->dy[n];
    t->totals[1] += best == t->labels[n];
  }
}

static __host__ __device__ void test_net_one(const TestWork *t, size_t i) {
  switch (t->kind) {
    case TEST_FORWARD:
    case TEST_REVERSED:
      test_net_forward(t, i);
      break;
    case TEST_WEIGHT:
      test_net_weight(t, i);
      break;
    case TEST_INPUT:
      test_net_input(t, i);
      break;
    case TEST_LOSS:
      test_net_loss(t, i);
      break;
    case TEST_SLOPE:
      t->to[i] = t->scale * (t->x[i] - (t->labels[i / t->out] == (int)(i % t->out) ? 1.0f : 0.0f));
      break;
    case TEST_SCORE:
      test_net_score(t, i);
      break;
    case TEST_STEP:
      t->to_bias[i] =
          t->hyper.momentum * t->to_bias[i] + (t->dy[i] + (i < t->decayed ? t->hyper.weight_decay : 0) * t->to[i]);
      t->to[i] -= (t->values ? t->values->lr : t->hyper.lr) * t->to_bias[i];
      break;
    case TEST_GATHER: {
      const size_t image = t->order[i / t->in];
      t->to[i] = device_set_normalize(t->samples[image * t->in + i % t->in], t->scale, t->hyper.lr);
      if (i % t->in == 0) t->to_labels[i / t->in] = t->sample_labels[image];
      break;
    }
  }
}

static __global__ void test_net_kernel(TestWork t, size_t n) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) test_net_one(&t, i);
}

static inline void test_net_launch(TestWork t, size_t n) {
  test_net_kernel<<<(unsigned)((n + 63) / 64), 64>>>(t, n);
  CUDA_CHECK_LAUNCH();
}

static inline void test_net_loop(TestWork t, size_t n) {
  for (size_t i = 0; i < n; i++) test_net_one(&t, i);
}

static inline void test_net_run(Device device, TestWork t, size_t n) {
  ON_DEVICE(device, test_net_launch(t, n), test_net_loop(t, n));
}

/* ------------------------------------------------------------------------------------------------------- operations */

static inline TestWork test_net_work(TestKind kind, const Node *node, const OpArrays *a) {
  TestWork t;
  memset(&t, 0, sizeof t);
  t.kind = kind;
  t.batch = a->batch;
  t.in = (int)node->param[0].dim[1];
  t.out = (int)node->param[0].dim[0];
  t.x = a->x[0];
  t.w = a->param[0];
  t.bias = a->param[1];
  t.dy = a->dy;
  return t;
}

static inline void test_linear_forward_as(TestKind kind, const Context *context, const Node *node, const OpArrays *a) {
  TestWork t = test_net_work(kind, node, a);
  t.to = a->y;
  test_net_run(context->device, t, (size_t)t.batch * t.out);
}

static inline void test_linear_forward(const Context *context, const Node *node, const OpArrays *a) {
  test_linear_forward_as(TEST_FORWARD, context, node, a);
}

static inline void test_linear_forward_reversed(const Context *context, const Node *node, const OpArrays *a) {
  test_linear_forward_as(TEST_REVERSED, context, node, a);
}

static inline void test_linear_backward(const Context *context, const Node *node, const OpArrays *a) {
  TestWork t = test_net_work(TEST_WEIGHT, node, a);
  t.to = a->grad[0];
  t.to_bias = a->grad[1];
  if (t.to) test_net_run(context->device, t, (size_t)t.out * t.in);
  t.kind = TEST_INPUT;
  t.to = a->dx[0];
  if (t.to) test_net_run(context->device, t, (size_t)t.batch * t.in);
}

static const Op test_linear = {"Gemm", BACKWARD_NEEDS_X, 0, NULL, NULL, test_linear_forward, test_linear_backward};
static const Op test_linear_reversed = {
    "Gemm", BACKWARD_NEEDS_X, 0, NULL, NULL, test_linear_forward_reversed, test_linear_backward};

static inline size_t test_net_label_bytes(Shape x) {
  (void)x;
  return sizeof(int);
}

static inline void test_loss_forward(const Context *context, float *losses, float *saved, const float *x,
                                     const void *targets, int batch, Shape shape) {
  TestWork t;
  memset(&t, 0, sizeof t);
  t.kind = TEST_LOSS;
  t.out = (int)shape_count(shape);
  t.x = x;
  t.labels = (const int *)targets;
  t.to = saved;
  t.to_bias = losses;
  test_net_run(context->device, t, (size_t)batch);
}

static inline void test_loss_score(const Context *context, double *totals, const float *losses, const float *saved,
                                   const void *targets, int batch, Shape shape) {
  TestWork t;
  memset(&t, 0, sizeof t);
  t.kind = TEST_SCORE;
  t.batch = batch;
  t.out = (int)shape_count(shape);
  t.x = saved;
  t.dy = losses;
  t.labels = (const int *)targets;
  t.totals = totals;
  test_net_run(context->device, t, 1);
}

static inline void test_loss_backward(const Context *context, float *dx, const float *saved, const float *x,
                                      const void *targets, float scale, int batch, Shape shape) {
  TestWork t;
  (void)x;
  memset(&t, 0, sizeof t);
  t.kind = TEST_SLOPE;
  t.out = (int)shape_count(shape);
  t.x = saved;
  t.labels = (const int *)targets;
  t.scale = scale;
  t.to = dx;
  test_net_run(context->device, t, (size_t)batch * t.out);
}

static const Loss test_loss = {"cross_entropy",
                               test_net_label_bytes,
                               shape_count,
                               test_loss_forward,
                               test_loss_score,
                               test_loss_backward,
                               0,
                               NULL,
                               0};

static inline void test_sgd_step(const Context *context, float *w, float *const *slot, const float *gradients, size_t n,
                                 size_t decayed, const Hyper *hyper) {
  TestWork t;
  memset(&t, 0, sizeof t);
  t.kind = TEST_STEP;
  t.to = w;
  t.to_bias = slot[0];
  t.dy = gradients;
  t.hyper = *hyper;
  t.decayed = decayed;
  t.values = context->values;
  test_net_run(context->device, t, n);
}

static const Optimizer test_sgd = {"sgd", 1, {"momentum_buffer"}, test_sgd_step, OPTIMIZER_READS_VALUES, NULL, NULL};

/* ---------------------------------------------------------------------------------------------------------- batches */

static inline void test_shuffle(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch) {
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  for (uint32_t i = count; i > 1; i--) {
    const uint32_t j = philox_below(i, seed, 77 + epoch, i), kept = order[j];
    order[j] = order[i - 1];
    order[i - 1] = kept;
  }
}

static inline void test_gather(Device device, float *x, int *labels, const uint8_t *samples, const uint8_t *all_labels,
                               const uint32_t *order, int batch, int pixels, float mean, float stddev) {
  TestWork t;
  memset(&t, 0, sizeof t);
  t.kind = TEST_GATHER;
  t.in = pixels;
  t.to = x;
  t.to_labels = labels;
  t.samples = samples;
  t.sample_labels = all_labels;
  t.order = order;
  t.scale = mean;
  t.hyper.lr = stddev;
  test_net_run(device, t, (size_t)batch * pixels);
}

static const Batches test_batches = {test_shuffle, test_gather};

/* ---------------------------------------------------------------------------------------------------------- network */

static inline void test_init_fill(float *w, const Param *p, uint64_t seed, uint32_t stream) {
  for (size_t i = 0; i < p->count; i++) w[i] = philox_uniform(philox4x32(seed, stream, i).word[0]) - 0.5f;
}
static const Init test_net_init = {"test", test_init_fill};

/* Adds "fc": all elements of x -> out. */
static inline int test_net_layer(Graph *g, int x, int out) {
  const size_t in = shape_count(graph_shape(g, x));
  const int node = graph_node(g, &test_linear, "fc", &x, 1, shape1(out), NULL, 0);
  const ParamSpec weight = {"weight", 2, {(size_t)out, in, 0, 0}, (int)in, out, &test_net_init, 1, 1};
  const ParamSpec bias = {"bias", 1, {(size_t)out, 0, 0, 0}, (int)in, out, &init_zero, 1, 1};
  graph_param(g, node, weight);
  graph_param(g, node, bias);
  if (node >= 0) g->nodes[node].flops = 2.0 * (double)in * out;
  return node;
}

/* One layer, "fc", and the loss. */
static inline Graph *test_net_graph(Shape input, int classes) {
  Graph *g = graph_create();
  const int x = graph_input(g, "x", input);
  graph_loss(g, &test_loss, test_net_layer(graph_name(g, "fc"), x, classes), 1);
  return g;
}

static inline void test_net_open(Model *m, Shape input, int classes, Device device, int max_batch) {
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  if (model_open(m, test_net_graph(input, classes), context, &test_sgd, max_batch, MODEL_TRAIN, &err) != 0)
    die("%s", err.message);
}

#endif /* COMMON_NN_TEST_NET_H */
