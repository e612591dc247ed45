/* test_ops.h - operations, a loss and an optimizer that are made for tests of graphs and models.
 *
 * What backward of the operations needs, and whether they work in place, differs from one to the next.
 */
#ifndef COMMON_NN_TEST_OPS_H
#define COMMON_NN_TEST_OPS_H

#include "common/nn/model.h"

#include "common/philox.h"
#include "common/test.h"

typedef enum Kind { SCALE, BEND, WAVE, ADD, PRODUCT, MEAN, KINDS } Kind;

/* One element. SCALE: y = w x; BEND: tanh; WAVE: sin; ADD: a + b; PRODUCT: a b; MEAN: of three. */
static inline __host__ __device__ double element_forward(int kind, double a, double b, double c, double w) {
  switch (kind) {
    case SCALE:
      return w * a;
    case BEND:
      return tanh(a);
    case WAVE:
      return sin(a);
    case ADD:
      return a + b;
    case PRODUCT:
      return a * b;
    default:
      return (a + b + c) / 3;
  }
}

/* d y / d input k, from what the operation has said that it needs. */
static inline __host__ __device__ double element_slope(int kind, int k, double a, double b, double y, double w) {
  switch (kind) {
    case SCALE:
      return w;
    case BEND:
      return 1 - y * y;
    case WAVE:
      return cos(a);
    case ADD:
      return 1;
    case PRODUCT:
      return k == 0 ? b : a;
    default:
      return 1.0 / 3;
  }
}

typedef struct Elements {
  int kind, batch, width; /* arrays are (batch, width); w is (width) */
  const float *x[3], *w, *dy, *y;
  float *out, *dx[3], *dw;
} Elements;

static inline __host__ __device__ float element_or_zero(const float *x, size_t i) { return x ? x[i] : 0; }

static inline __host__ __device__ void forward_one(const Elements *e, size_t i) {
  e->out[i] = (float)element_forward(e->kind, e->x[0][i], element_or_zero(e->x[1], i), element_or_zero(e->x[2], i),
                                     e->w ? e->w[i % e->width] : 0);
}

static inline __host__ __device__ void backward_one(const Elements *e, size_t i) {
  const double dy = e->dy[i], a = element_or_zero(e->x[0], i), b = element_or_zero(e->x[1], i);
  const double y = element_or_zero(e->y, i), w = e->w ? e->w[i % e->width] : 0;
  for (int k = 0; k < 3; k++)
    if (e->dx[k]) e->dx[k][i] = (float)(dy * element_slope(e->kind, k, a, b, y, w));
}

static inline __host__ __device__ void weight_one(const Elements *e, int column) {
  double sum = 0;
  for (int n = 0; n < e->batch; n++) {
    const size_t i = (size_t)n * e->width + column;
    sum += (double)e->dy[i] * e->x[0][i];
  }
  e->dw[column] = (float)sum;
}

static __global__ void forward_kernel(Elements e) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < (size_t)e.batch * e.width) forward_one(&e, i);
}
static __global__ void backward_kernel(Elements e) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < (size_t)e.batch * e.width) backward_one(&e, i);
}
static __global__ void weight_kernel(Elements e) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < e.width) weight_one(&e, column);
}

static inline Elements elements(const Node *node, const OpArrays *a) {
  Elements e;
  memset(&e, 0, sizeof e);
  e.kind = *(const int *)node->attributes.bytes;
  e.batch = a->batch;
  e.width = (int)shape_count(node->shape);
  for (int k = 0; k < node->inputs; k++) {
    e.x[k] = a->x[k];
    e.dx[k] = a->dx[k];
  }
  e.w = a->param[0];
  e.dw = a->grad[0];
  e.dy = a->dy;
  e.y = a->y;
  e.out = a->y;
  return e;
}

static inline void launch_forward(const Elements *e) {
  forward_kernel<<<(e->batch * e->width + 63) / 64, 64>>>(*e);
  CUDA_CHECK_LAUNCH();
}
static inline void launch_backward(const Elements *e) {
  backward_kernel<<<(e->batch * e->width + 63) / 64, 64>>>(*e);
  CUDA_CHECK_LAUNCH();
}
static inline void launch_weight(const Elements *e) {
  weight_kernel<<<(e->width + 63) / 64, 64>>>(*e);
  CUDA_CHECK_LAUNCH();
}

static inline void test_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Elements e = elements(node, a);
  const size_t n = (size_t)e.batch * e.width;
  ON_DEVICE(context->device, launch_forward(&e), {
    for (size_t i = 0; i < n; i++) forward_one(&e, i);
  });
}

static inline void test_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Elements e = elements(node, a);
  const size_t n = (size_t)e.batch * e.width;
  if (e.dw)
    ON_DEVICE(context->device, launch_weight(&e), {
      for (int i = 0; i < e.width; i++) weight_one(&e, i);
    });
  ON_DEVICE(context->device, launch_backward(&e), {
    for (size_t i = 0; i < n; i++) backward_one(&e, i);
  });
}

static const Op ops[KINDS] = {
    {"scale", BACKWARD_NEEDS_X, 0, NULL, NULL, test_op_forward, test_op_backward},
    {"bend", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, NULL, test_op_forward, test_op_backward},
    {"wave", BACKWARD_NEEDS_X, OP_IN_PLACE, NULL, NULL, test_op_forward, test_op_backward},
    {"add", 0, OP_IN_PLACE, NULL, NULL, test_op_forward, test_op_backward},
    {"product", BACKWARD_NEEDS_X, OP_IN_PLACE, NULL, NULL, test_op_forward, test_op_backward},
    {"mean", 0, OP_IN_PLACE, NULL, NULL, test_op_forward, test_op_backward},
};
static const int op_inputs[KINDS] = {1, 1, 1, 2, 2, 3};

static inline void weights_fill(float *w, const Param *p, uint64_t seed, uint32_t stream) {
  for (size_t i = 0; i < p->count; i++) w[i] = 0.6f + 0.8f * philox_uniform(philox4x32(seed, stream, i).word[0]);
}
static const Init test_init = {"test", weights_fill};

static inline int add_node(Graph *g, Kind kind, const int *inputs) {
  if (op_inputs[kind] > 1 && graph_expect_same_shape(g, ops[kind].name, inputs[0], inputs[1]) != 0) return GRAPH_ERROR;
  const Shape shape = graph_shape(g, inputs[0]);
  const int number = kind;
  const int node = graph_node(g, &ops[kind], ops[kind].name, inputs, op_inputs[kind], shape, &number, sizeof number);
  if (kind != SCALE || node < 0) return node;
  const ParamSpec w = {"weight", 1, {shape_count(shape), 0, 0, 0}, 1, 1, &test_init, 1, 1};
  graph_param(g, node, w);
  return node;
}

static inline int one(Graph *g, Kind kind, int x) { return add_node(g, kind, &x); }
static inline int two(Graph *g, Kind kind, int a, int b) {
  const int inputs[] = {a, b};
  return add_node(g, kind, inputs);
}

/* Half the squared distance to a target of the same shape. */
static inline size_t distance_targets(Shape x) { return shape_count(x) * sizeof(float); }
static inline size_t distance_saved(Shape x) {
  (void)x;
  return 0;
}

static inline __host__ __device__ void distance_one(float *losses, const float *x, const float *target, int n,
                                                    int width) {
  double sum = 0;
  for (int i = 0; i < width; i++) {
    const double d = (double)x[(size_t)n * width + i] - target[(size_t)n * width + i];
    sum += d * d / 2;
  }
  losses[n] = (float)sum;
}
static __global__ void distance_kernel(float *losses, const float *x, const float *target, int batch, int width) {
  for (int n = threadIdx.x; n < batch; n += blockDim.x) distance_one(losses, x, target, n, width);
}
static __global__ void distance_gradient_kernel(float *dx, const float *x, const float *target, float scale, size_t n) {
  for (size_t i = threadIdx.x; i < n; i += blockDim.x) dx[i] = scale * (x[i] - target[i]);
}
static __global__ void distance_score_kernel(double *totals, const float *losses, int batch) {
  for (int n = 0; n < batch; n++) totals[0] += losses[n];
}

static inline void launch_distance(float *losses, const float *x, const float *target, int batch, int width) {
  distance_kernel<<<1, 32>>>(losses, x, target, batch, width);
  CUDA_CHECK_LAUNCH();
}
static inline void launch_distance_gradient(float *dx, const float *x, const float *target, float scale, size_t n) {
  distance_gradient_kernel<<<1, 64>>>(dx, x, target, scale, n);
  CUDA_CHECK_LAUNCH();
}
static inline void launch_distance_score(double *totals, const float *losses, int batch) {
  distance_score_kernel<<<1, 1>>>(totals, losses, batch);
  CUDA_CHECK_LAUNCH();
}

static inline void distance_forward(const Context *context, float *losses, float *saved, const float *x,
                                    const void *target, int batch, Shape shape) {
  (void)saved;
  const float *t = (const float *)target;
  const int width = (int)shape_count(shape);
  ON_DEVICE(context->device, launch_distance(losses, x, t, batch, width), {
    for (int n = 0; n < batch; n++) distance_one(losses, x, t, n, width);
  });
}
static inline void distance_score(const Context *context, double *totals, const float *losses, const float *saved,
                                  const void *target, int batch, Shape shape) {
  (void)saved, (void)target, (void)shape;
  ON_DEVICE(context->device, launch_distance_score(totals, losses, batch), {
    for (int n = 0; n < batch; n++) totals[0] += losses[n];
  });
}
static inline void distance_backward(const Context *context, float *dx, const float *saved, const float *x,
                                     const void *target, float scale, int batch, Shape shape) {
  (void)saved;
  const float *t = (const float *)target;
  const size_t n = batch * shape_count(shape);
  ON_DEVICE(context->device, launch_distance_gradient(dx, x, t, scale, n), {
    for (size_t i = 0; i < n; i++) dx[i] = scale * (x[i] - t[i]);
  });
}
static const Loss distance = {
    "distance", distance_targets, distance_saved, distance_forward, distance_score, distance_backward, 1, NULL, 0};

/* Gradient descent without momentum, with two slots that hold what it was given. */
static inline void plain_step(const Context *context, float *w, float *const *slot, const float *gradients, size_t n,
                              size_t decayed, const Hyper *hyper) {
  (void)slot;
  assert_int_equal(context->device, DEVICE_CPU);
  for (size_t i = 0; i < n; i++) w[i] -= hyper->lr * (gradients[i] + (i < decayed ? hyper->weight_decay : 0) * w[i]);
}
static const Optimizer plain = {"plain", 2, {"first", "second"}, plain_step, 0, NULL, NULL};

static inline Context context_on(Device device) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  return context;
}

static inline void open_or_fail(Model *m, Graph *g, Device device, int max_batch, ModelUse use) {
  Error err;
  if (model_open(m, g, context_on(device), use == MODEL_TRAIN ? &plain : NULL, max_batch, use, &err) != 0)
    fail_msg("%s", err.message);
}

#endif /* COMMON_NN_TEST_OPS_H */
