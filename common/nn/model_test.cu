/* The engine: names and mistakes of a graph; and random graphs, trained in one arena that begins as NaN, against the
 * same graphs in double, each array its own. The operations here are made for the test. */
#include "common/nn/model.h"

#include <math.h>
#include <pthread.h>

#include "common/philox.h"
#include "common/test.h"

/* ---- operations: what backward needs, and whether they work in place, differs ---- */

typedef enum Kind { SCALE, BEND, WAVE, ADD, PRODUCT, MEAN, KINDS } Kind;

/* One element. SCALE: y = w x; BEND: tanh; WAVE: sin; ADD: a + b; PRODUCT: a b; MEAN: of three. */
static __host__ __device__ double element_forward(int kind, double a, double b, double c, double w) {
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
static __host__ __device__ double element_slope(int kind, int k, double a, double b, double y, double w) {
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

static __host__ __device__ float element_or_zero(const float *x, size_t i) { return x ? x[i] : 0; }

static __host__ __device__ void forward_one(const Elements *e, size_t i) {
  e->out[i] = (float)element_forward(e->kind, e->x[0][i], element_or_zero(e->x[1], i), element_or_zero(e->x[2], i),
                                     e->w ? e->w[i % e->width] : 0);
}

static __host__ __device__ void backward_one(const Elements *e, size_t i) {
  const double dy = e->dy[i], a = element_or_zero(e->x[0], i), b = element_or_zero(e->x[1], i);
  const double y = element_or_zero(e->y, i), w = e->w ? e->w[i % e->width] : 0;
  for (int k = 0; k < 3; k++)
    if (e->dx[k]) e->dx[k][i] = (float)(dy * element_slope(e->kind, k, a, b, y, w));
}

static __host__ __device__ void weight_one(const Elements *e, int column) {
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

static Elements elements(const Node *node, const OpArrays *a) {
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

static void launch_forward(const Elements *e) {
  forward_kernel<<<(e->batch * e->width + 63) / 64, 64>>>(*e);
  CUDA_CHECK_LAUNCH();
}
static void launch_backward(const Elements *e) {
  backward_kernel<<<(e->batch * e->width + 63) / 64, 64>>>(*e);
  CUDA_CHECK_LAUNCH();
}
static void launch_weight(const Elements *e) {
  weight_kernel<<<(e->width + 63) / 64, 64>>>(*e);
  CUDA_CHECK_LAUNCH();
}

static void test_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Elements e = elements(node, a);
  const size_t n = (size_t)e.batch * e.width;
  ON_DEVICE(context->device, launch_forward(&e), {
    for (size_t i = 0; i < n; i++) forward_one(&e, i);
  });
}

static void test_op_backward(const Context *context, const Node *node, const OpArrays *a) {
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

static void weights_fill(float *w, const Param *p, uint64_t seed, uint32_t stream) {
  for (size_t i = 0; i < p->count; i++) w[i] = 0.6f + 0.8f * philox_uniform(philox4x32(seed, stream, i).word[0]);
}
static const Init test_init = {"test", weights_fill};

static int add_node(Graph *g, Kind kind, const int *inputs) {
  if (op_inputs[kind] > 1 && graph_expect_same_shape(g, ops[kind].name, inputs[0], inputs[1]) != 0) return GRAPH_ERROR;
  const Shape shape = graph_shape(g, inputs[0]);
  const int number = kind;
  const int node = graph_node(g, &ops[kind], ops[kind].name, inputs, op_inputs[kind], shape, &number, sizeof number);
  if (kind != SCALE || node < 0) return node;
  const ParamSpec w = {"weight", 1, {shape_count(shape), 0, 0, 0}, 1, 1, &test_init, 1, 1};
  graph_param(g, node, w);
  return node;
}

static int one(Graph *g, Kind kind, int x) { return add_node(g, kind, &x); }
static int two(Graph *g, Kind kind, int a, int b) {
  const int inputs[] = {a, b};
  return add_node(g, kind, inputs);
}

/* Half the squared distance to a target of the same shape. */
static size_t distance_targets(Shape x) { return shape_count(x) * sizeof(float); }
static size_t distance_saved(Shape x) {
  (void)x;
  return 0;
}

static __host__ __device__ void distance_one(float *losses, const float *x, const float *target, int n, int width) {
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

static void launch_distance(float *losses, const float *x, const float *target, int batch, int width) {
  distance_kernel<<<1, 32>>>(losses, x, target, batch, width);
  CUDA_CHECK_LAUNCH();
}
static void launch_distance_gradient(float *dx, const float *x, const float *target, float scale, size_t n) {
  distance_gradient_kernel<<<1, 64>>>(dx, x, target, scale, n);
  CUDA_CHECK_LAUNCH();
}
static void launch_distance_score(double *totals, const float *losses, int batch) {
  distance_score_kernel<<<1, 1>>>(totals, losses, batch);
  CUDA_CHECK_LAUNCH();
}

static void distance_forward(const Context *context, float *losses, float *saved, const float *x, const void *target,
                             int batch, Shape shape) {
  (void)saved;
  const float *t = (const float *)target;
  const int width = (int)shape_count(shape);
  ON_DEVICE(context->device, launch_distance(losses, x, t, batch, width), {
    for (int n = 0; n < batch; n++) distance_one(losses, x, t, n, width);
  });
}
static void distance_score(const Context *context, double *totals, const float *losses, const float *saved,
                           const void *target, int batch, Shape shape) {
  (void)saved, (void)target, (void)shape;
  ON_DEVICE(context->device, launch_distance_score(totals, losses, batch), {
    for (int n = 0; n < batch; n++) totals[0] += losses[n];
  });
}
static void distance_backward(const Context *context, float *dx, const float *saved, const float *x, const void *target,
                              float scale, int batch, Shape shape) {
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
static void plain_step(const Context *context, float *w, float *const *slot, const float *gradients, size_t n,
                       size_t decayed, const Hyper *hyper) {
  (void)slot;
  assert_int_equal(context->device, DEVICE_CPU);
  for (size_t i = 0; i < n; i++) w[i] -= hyper->lr * (gradients[i] + (i < decayed ? hyper->weight_decay : 0) * w[i]);
}
static const Optimizer plain = {"plain", 2, {"first", "second"}, plain_step, 0, NULL, NULL};

static Context context_on(Device device) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  return context;
}

static void open_or_fail(Model *m, Graph *g, Device device, int max_batch, ModelUse use) {
  Error err;
  if (model_open(m, g, context_on(device), use == MODEL_TRAIN ? &plain : NULL, max_batch, use, &err) != 0)
    fail_msg("%s", err.message);
}

enum { WIDTH = 5, BATCH = 3, MAX_NODES = 24 };

/* ---- names, shapes, mistakes ---- */

static void nodes_are_named_within_their_scope(void **unused) {
  (void)unused;
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape1(4));
  graph_enter(g, "layer1");
  graph_enter(g, "0");
  const int first = one(g, SCALE, x), second = one(g, SCALE, first);
  graph_leave(g);
  const int outer = one(g, BEND, second);
  graph_leave(g);
  graph_enter(g, "layer2.0"); /* one scope: leaving it leaves both parts of its name */
  const int inner = one(g, SCALE, outer);
  graph_leave(g);
  const int named = one(graph_name(g, "fc"), SCALE, inner);
  assert_int_equal(g->failed, 0);
  assert_string_equal(g->nodes[inner].name, "layer2.0.scale1");
  assert_string_equal(g->nodes[first].name, "layer1.0.scale1");
  assert_string_equal(g->nodes[second].param[0].name, "layer1.0.scale2.weight");
  assert_string_equal(g->nodes[outer].name, "layer1.bend1");
  assert_string_equal(g->nodes[named].name, "fc");
  assert_int_equal(graph_find(g, "layer1.bend1"), outer);
  assert_int_equal(graph_find(g, "bend1"), GRAPH_ERROR);
  graph_leave(g);
  assert_string_equal(g->error.message, "graph_leave() without graph_enter()");
  graph_destroy(g);
}

static void a_mismatch_names_both_nodes_and_shapes(void **unused) {
  (void)unused;
  Error err;
  Model m;
  Graph *g = graph_create();
  const int a = one(g, SCALE, graph_input(g, "x", shape3(64, 28, 28)));
  const int b = one(g, BEND, graph_input(g, "z", shape3(32, 28, 28)));
  const int sum = two(g, ADD, a, b);
  assert_int_equal(sum, GRAPH_ERROR);
  assert_int_equal(one(g, BEND, sum), GRAPH_ERROR); /* goes on, and says nothing else */
  assert_int_equal(two(g, ADD, 99, a), GRAPH_ERROR);
  assert_int_equal(model_open(&m, g, context_on(DEVICE_CPU), &plain, 1, MODEL_TRAIN, &err), -1);
  assert_string_equal(err.message,
                      "add: scale1 has the shape (64,28,28), bend1 has (32,28,28); the same shape is expected");
}

typedef struct Mistake {
  void (*make)(Graph *g, int x);
  const char *message;
} Mistake;

static void two_of_a_name(Graph *g, int x) { one(graph_name(g, "x"), BEND, x); }
static void a_node_that_does_not_exist(Graph *g, int x) {
  const int later = x + 1;
  const int kind = BEND;
  graph_node(g, &ops[BEND], "bend", &later, 1, shape1(1), &kind, sizeof kind);
}
static void no_size(Graph *g, int x) {
  (void)x;
  graph_input(g, "y", shape1(0));
}
static void negative_sizes(Graph *g, int x) {
  (void)x;
  graph_input(g, "y", shape3(-1, -1, 5));
}
static void more_than_an_int(Graph *g, int x) {
  const int kind = BEND;
  graph_node(g, &ops[BEND], "bend", &x, 1, shape3(65536, 65536, 1), &kind, sizeof kind);
}
static void a_deep_scope(Graph *g, int x) {
  (void)x;
  graph_enter(g, "abcdefghijklmnopqrstuvwxyz.abcdefghijklm");
  graph_enter(g, "abcdefghijklmnopqrstuvw");
}
static void no_such_node_to_add(Graph *g, int x) { two(g, ADD, x, 99); }
static void no_such_node_to_lose(Graph *g, int x) { graph_loss(g, &distance, x + 7, 1); }
static void no_such_output(Graph *g, int x) {
  (void)x;
  graph_output(g, graph_find(g, "y"));
}
static void two_losses(Graph *g, int x) {
  graph_loss(g, &distance, x, 1);
  graph_loss(g, &distance, x, 1);
}
static void no_loss(Graph *g, int x) { one(g, BEND, x); }
static void a_long_name(Graph *g, int x) {
  char name[80];
  memset(name, 'n', sizeof name);
  name[79] = '\0';
  one(graph_name(g, name), BEND, x);
}
static void attributes_too_large(Graph *g, int x) {
  char bytes[NODE_ATTRIBUTE_BYTES + 1] = {0};
  graph_node(g, &ops[BEND], "bend", &x, 1, shape1(1), bytes, sizeof bytes);
}

static void mistakes_are_named(void **unused) {
  (void)unused;
  const Mistake mistakes[] = {
      {two_of_a_name, "two nodes are called x; give one another name"},
      {a_node_that_does_not_exist, "bend1 reads node 1; only the 1 nodes before it can be read"},
      {no_size, "y has the shape (0); up to 8 dimensions of at least 1 are expected"},
      {negative_sizes, "y has the shape (-1,-1,5); up to 8 dimensions of at least 1 are expected"},
      {more_than_an_int, "bend1 has the shape (65536,65536,1); at most 2147483647 elements"},
      {a_deep_scope, "the scope abcdefghijklmnopqrstuvwxyz.abcdefghijklm.abcdefghijklmnopqrstuvw. is longer than 63"},
      {no_such_node_to_add, "add reads node 99; only the 1 nodes before it can be read"},
      {no_such_node_to_lose, "distance reads node 7; only the 1 nodes before it can be read"},
      {no_such_output, "an output reads node -1; only the 1 nodes before it can be read"},
      {two_losses, "x has two losses; one is possible"},
      {no_loss, "a network to train needs a loss and an optimizer"},
      {attributes_too_large, "bend1 has 513 bytes of attributes; raise NODE_ATTRIBUTE_BYTES"},
      {a_long_name, "is longer than 63 characters"}};
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
    Error err;
    error_set(&err, "none");
    Model m;
    Graph *g = graph_create();
    mistakes[i].make(g, graph_input(g, "x", shape1(4)));
    assert_int_equal(model_open(&m, g, context_on(DEVICE_CPU), &plain, 1, MODEL_TRAIN, &err), -1);
    if (strstr(err.message, mistakes[i].message) == NULL)
      fail_msg("\"%s\" is not in: %s", mistakes[i].message, err.message);
  }
}

static void what_does_not_fit_is_refused(void **unused) {
  (void)unused;
  Error err;
  Model m;
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(1024, 1024, 1024));
  graph_loss(g, &distance, one(g, WAVE, x), 1);
  assert_int_equal(model_open(&m, g, context_on(DEVICE_CPU), &plain, 1 << 20, MODEL_TRAIN, &err), -1);
  assert_non_null(strstr(err.message, "the network would take"));
  assert_non_null(strstr(err.message, "take a smaller network, or a smaller batch"));
  assert_null(strstr(err.message, "scratch"));
  model_close(&m); /* of nothing */
}

static size_t a_tebi_float(const Context *context, const Node *node, int batch) {
  (void)context;
  (void)node;
  return (size_t)batch << 40;
}

/* A node that wants more memory for its scratch than there is: its name and its shapes are said. */
static void too_much_scratch_is_refused(void **unused) {
  (void)unused;
  static const Op greedy = {"Greedy", 0, 0, NULL, a_tebi_float, NULL, NULL};
  Error err;
  Model m;
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(3, 5, 7));
  graph_output(g, graph_node(g, &greedy, "greedy", &x, 1, shape3(2, 5, 6), NULL, 0));
  assert_int_equal(model_open(&m, g, context_on(DEVICE_CPU), NULL, 4, MODEL_INFER, &err), -1);
  if (strstr(err.message,
             "more than half is scratch memory of greedy1, 4 x (3,5,7) to (2,5,6), 16384.0 GiB: take "
             "another implementation") == NULL)
    fail_msg("%s", err.message);
}

static void no_second_input(void) {
  Model m;
  Graph *g = graph_create();
  graph_loss(g, &distance, one(g, WAVE, graph_input(g, "x", shape1(WIDTH))), 1);
  open_or_fail(&m, g, DEVICE_CPU, 1, MODEL_INFER);
  model_input(&m, 1);
}

static void training_to_infer(void) {
  Model m;
  Graph *g = graph_create();
  graph_loss(g, &distance, one(g, SCALE, graph_input(g, "x", shape1(WIDTH))), 1);
  open_or_fail(&m, g, DEVICE_CPU, 1, MODEL_INFER);
  model_init(&m, 1);
  model_train_step(&m, 1);
}

static void misuse_is_named(void **unused) {
  (void)unused;
  char output[512];
  assert_int_equal(test_fork(no_second_input, output, sizeof output), 1);
  assert_non_null(strstr(output, "the network has no input 1; it has 1, counted from 0"));
  assert_int_equal(test_fork(training_to_infer, output, sizeof output), 1);
  assert_non_null(strstr(output, "open it for MODEL_TRAIN"));
}

/* ---- random graphs ---- */

/* Numbers of a graph's own. */
typedef struct Dice {
  uint64_t seed;
  uint32_t count;
} Dice;
static int roll(Dice *dice, int sides) { return (int)(philox4x32(dice->seed, 7, dice->count++).word[0] % sides); }

/* One or two inputs, up to 20 operations that read anything before them, some of them frozen, up to three losses. */
static Graph *random_graph(uint64_t seed) {
  Dice dice = {seed, 0};
  Graph *g = graph_create();
  graph_input(g, "x", shape1(WIDTH));
  if (roll(&dice, 2)) graph_input(g, "z", shape1(WIDTH));
  one(g, SCALE, roll(&dice, g->count));
  const int count = g->count + 1 + roll(&dice, 19);
  while (g->count < count) {
    const Kind kind = (Kind)roll(&dice, KINDS);
    int inputs[3];
    for (int k = 0; k < 3; k++) inputs[k] = roll(&dice, 3) ? g->count - 1 : roll(&dice, g->count);
    const int node = add_node(g, kind, inputs);
    if (roll(&dice, 3) == 0) graph_freeze(g, node);
  }
  const int losses = 1 + roll(&dice, 3);
  for (int l = 0; l < losses; l++) {
    const int node = l == 0 ? g->count - 1 : roll(&dice, g->count);
    int taken = g->nodes[node].op == NULL;
    for (int i = 0; i < l && i < g->loss_count; i++) taken |= g->losses[i].node == node;
    if (!taken) graph_loss(g, &distance, node, 0.5f + 0.25f * (float)l);
  }
  if (roll(&dice, 2)) graph_output(g, roll(&dice, g->count));
  return g;
}

/* The same in double, every array its own. */
typedef struct Reference {
  double y[MAX_NODES][BATCH * WIDTH], dy[MAX_NODES][BATCH * WIDTH], dw[MAX_NODES][WIDTH];
  double loss[GRAPH_MAX_LOSSES];
} Reference;

static float value(uint32_t stream, int i) { return 2 * philox_uniform(philox4x32(11, stream, i).word[0]) - 1; }
static float input_value(int input, int i) { return value(input, i); }
static float target_value(int loss, int i) { return value(100 + loss, i); }

/* parameters: those that are trained, then the frozen ones. */
static float reference_weight(const Node *node, const float *parameters, size_t trained, int i) {
  const Param *w = &node->param[0];
  return node->params ? parameters[(w->trained ? 0 : trained) + w->offset + i % WIDTH] : 0;
}

static void reference_run(Reference *r, const Graph *g, const float *parameters, size_t trained) {
  memset(r, 0, sizeof *r);
  int input = 0;
  for (int n = 0; n < g->count; n++) {
    const Node *node = &g->nodes[n];
    const int kind = node->op ? *(const int *)node->attributes.bytes : 0;
    for (int i = 0; i < BATCH * WIDTH; i++) {
      double x[3] = {0, 0, 0};
      for (int k = 0; k < node->inputs; k++) x[k] = r->y[node->input[k]][i];
      const double w = reference_weight(node, parameters, trained, i);
      r->y[n][i] = node->op ? element_forward(kind, x[0], x[1], x[2], w) : input_value(input, i);
    }
    input += node->op == NULL;
  }
  for (int l = 0; l < g->loss_count; l++)
    for (int i = 0; i < BATCH * WIDTH; i++) {
      const double d = r->y[g->losses[l].node][i] - target_value(l, i);
      r->loss[l] += d * d / 2;
      r->dy[g->losses[l].node][i] += d * g->losses[l].weight / BATCH;
    }
  for (int n = g->count - 1; n >= 0; n--) {
    const Node *node = &g->nodes[n];
    const int kind = node->op ? *(const int *)node->attributes.bytes : 0;
    for (int i = 0; node->op && i < BATCH * WIDTH; i++) {
      const double a = r->y[node->input[0]][i], b = node->inputs > 1 ? r->y[node->input[1]][i] : 0;
      const double w = reference_weight(node, parameters, trained, i);
      for (int k = 0; k < node->inputs; k++)
        r->dy[node->input[k]][i] += r->dy[n][i] * element_slope(kind, k, a, b, r->y[n][i], w);
      if (kind == SCALE) r->dw[n][i % WIDTH] += r->dy[n][i] * a;
    }
  }
}

/* Poison first: what is read before it is written shows. */
static void poison_and_fill(const Model *m) {
  unsigned char *poison = (unsigned char *)xmalloc(m->plan.arena_bytes);
  memset(poison, 0xFF, m->plan.arena_bytes);
  device_upload(m->context.device, m->arena, poison, m->plan.arena_bytes);
  free(poison);
  int inputs = 0;
  for (int n = 0; n < m->graph->count; n++) inputs += m->graph->nodes[n].op == NULL;
  float values[BATCH * WIDTH];
  for (int input = 0; input < inputs; input++) {
    for (int i = 0; i < BATCH * WIDTH; i++) values[i] = input_value(input, i);
    device_upload(m->context.device, model_input(m, input), values, sizeof values);
  }
  for (int l = 0; l < m->graph->loss_count; l++) {
    for (int i = 0; i < BATCH * WIDTH; i++) values[i] = target_value(l, i);
    device_upload(m->context.device, model_targets(m, l), values, sizeof values);
  }
}

static void check_outputs(const Model *m, const Reference *r, uint64_t seed) {
  float y[BATCH * WIDTH];
  for (int n = 0; n < m->graph->count; n++) {
    if (!graph_is_output(m->graph, n)) continue;
    device_download(m->context.device, y, model_output(m, n), sizeof y);
    for (int i = 0; i < BATCH * WIDTH; i++)
      if (!(fabs(y[i] - r->y[n][i]) <= 5e-4 * (1 + fabs(r->y[n][i]))))
        fail_msg("graph %d, %s[%d] = %g, expected %g", (int)seed, m->graph->nodes[n].name, i, (double)y[i], r->y[n][i]);
  }
  for (int l = 0; l < m->graph->loss_count; l++) {
    const double loss = model_read_totals(m, l).loss;
    if (!(fabs(loss - r->loss[l]) <= 5e-4 * (1 + r->loss[l])))
      fail_msg("graph %d, loss %d = %g, expected %g", (int)seed, l, loss, r->loss[l]);
  }
}

/* Sums of sums and products of products grow: float cannot follow double through large numbers. */
static int grows(const Reference *r, const Graph *g) {
  for (int n = 0; n < g->count; n++)
    for (int i = 0; i < BATCH * WIDTH; i++)
      if (fabs(r->y[n][i]) > 50 || fabs(r->dy[n][i]) > 50) return 1;
  return 0;
}

/* 0 where the graph's numbers grow too large to compare. */
static int check_random_graph(Device device, uint64_t seed) {
  static Reference r;
  Model m;
  open_or_fail(&m, random_graph(seed), device, BATCH + (int)(seed % 3), MODEL_TRAIN);
  model_init(&m, seed);
  const size_t trained = m.parameter_count;
  float *parameters = (float *)xmalloc((2 * trained + m.buffer_count) * sizeof(float));
  float *gradients = parameters + trained + m.buffer_count;
  device_download(device, parameters, m.parameters, trained * sizeof(float));
  device_download(device, parameters + trained, m.buffers, m.buffer_count * sizeof(float));
  reference_run(&r, m.graph, parameters, trained);
  if (grows(&r, m.graph)) {
    model_close(&m);
    free(parameters);
    return 0;
  }
  poison_and_fill(&m);
  for (int step = 0; step < 2; step++) { /* inputs and targets stay; between two steps there is an evaluation */
    model_evaluate_step(&m, BATCH);
    for (int l = 0; l < m.graph->loss_count; l++) {
      const Totals none = {0, 0};
      model_reset_totals(&m, l, none);
    }
    model_forward(&m, BATCH);
    model_score(&m, BATCH);
    model_backward(&m, BATCH);
  }
  check_outputs(&m, &r, seed);
  device_download(device, gradients, m.gradients, m.parameter_count * sizeof(float));
  for (int n = 0; n < m.graph->count; n++) {
    const Node *node = &m.graph->nodes[n];
    for (int i = 0; node->params && node->param[0].trained && i < WIDTH; i++) {
      const double got = gradients[node->param[0].offset + i], wanted = r.dw[n][i];
      if (!(fabs(got - wanted) <= 5e-4 * (1 + fabs(wanted))))
        fail_msg("graph %d, gradient of %s[%d] = %g, expected %g", (int)seed, node->param[0].name, i, got, wanted);
    }
  }
  model_close(&m);

  Model infer; /* the same answers in less memory */
  open_or_fail(&infer, random_graph(seed), device, BATCH, MODEL_INFER);
  model_init(&infer, seed);
  poison_and_fill(&infer);
  model_evaluate_step(&infer, BATCH);
  check_outputs(&infer, &r, seed);
  model_close(&infer);
  free(parameters);
  return 1;
}

static void random_graphs_cpu(void **unused) {
  (void)unused;
  int checked = 0;
  for (uint64_t seed = 0; seed < 2000; seed++) checked += check_random_graph(DEVICE_CPU, seed);
  print_message("%d of 2000 random graphs checked\n", checked);
  assert_true(checked > 1500);
}

static void random_graphs_gpu(void **unused) {
  (void)unused;
  test_requires_gpu();
  int checked = 0;
  for (uint64_t seed = 0; seed < 40; seed++) checked += check_random_graph(DEVICE_GPU, seed);
  assert_true(checked > 25);
}

/* ---- side by side ---- */

enum { SIDE_GRAPHS = 6, SIDE_FLOATS = MAX_NODES * WIDTH };

/* A thread of its own, with a GPU of its own where there are two. */
typedef struct Side {
  pthread_t thread;
  int gpu, device_seen;
  float gradients[SIDE_GRAPHS][SIDE_FLOATS];
} Side;

static void *side_run(void *argument) {
  Side *side = (Side *)argument;
  Context context = context_on(DEVICE_GPU);
  context.gpu = side->gpu;
  for (int i = 0; i < SIDE_GRAPHS; i++) {
    Error err;
    Model m;
    if (model_open(&m, random_graph(100 + i), context, &plain, BATCH, MODEL_TRAIN, &err) != 0) die("%s", err.message);
    model_init(&m, i);
    poison_and_fill(&m);
    model_forward(&m, BATCH);
    model_backward(&m, BATCH);
    memset(side->gradients[i], 0, sizeof side->gradients[i]);
    device_download(DEVICE_GPU, side->gradients[i], m.gradients, m.parameter_count * sizeof(float));
    model_close(&m);
  }
  CUDA_CHECK(cudaGetDevice(&side->device_seen));
  return NULL;
}

/* Two models in two host threads, on two GPUs where there are two, give the bits that one alone gives. */
static void two_threads_and_devices_do_not_meet(void **unused) {
  (void)unused;
  static Side alone, side[2];
  int devices = 0;
  test_requires_gpu();
  CUDA_CHECK(cudaGetDeviceCount(&devices));
#ifdef SIMT_REWRITTEN
  assert_int_equal(devices, 2);
#endif
  side_run(&alone);
  for (int i = 0; i < 2; i++) {
    side[i].gpu = i < devices ? i : 0;
    assert_int_equal(pthread_create(&side[i].thread, NULL, side_run, &side[i]), 0);
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pthread_join(side[i].thread, NULL), 0);
    assert_int_equal(side[i].device_seen, side[i].gpu);
    assert_memory_equal(side[i].gradients, alone.gradients, sizeof alone.gradients);
  }
}

static void no_step(const Context *context, float *w, float *const *slot, const float *gradients, size_t n,
                    size_t decayed, const Hyper *hyper) {
  (void)context, (void)w, (void)slot, (void)gradients, (void)n, (void)decayed, (void)hyper;
}
static const Optimizer none = {"none", 0, {NULL}, no_step, 0, NULL, NULL};

static void expect_gpu(int gpu, int other) {
  int seen = -1;
  CUDA_CHECK(cudaGetDevice(&seen));
  assert_int_equal(seen, gpu);
  CUDA_CHECK(cudaSetDevice(other));
}

/* One thread that has models on two GPUs: each call works on the GPU of its model, whichever was used before. */
static void a_call_uses_the_gpu_of_its_model(void **unused) {
  (void)unused;
  int devices = 0;
  test_requires_gpu();
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) skip();
  Error err;
  Model m;
  const Totals zero = {0, 0};
  Context context = context_on(DEVICE_GPU);
  context.gpu = 1;
  if (model_open(&m, random_graph(100), context, &none, BATCH, MODEL_TRAIN, &err) != 0) fail_msg("%s", err.message);
  expect_gpu(1, 0);
  model_init(&m, 1);
  expect_gpu(1, 0);
  poison_and_fill(&m);
  model_reset_totals(&m, 0, zero);
  expect_gpu(1, 0);
  model_forward(&m, BATCH);
  expect_gpu(1, 0);
  model_score(&m, BATCH);
  expect_gpu(1, 0);
  model_backward(&m, BATCH);
  expect_gpu(1, 0);
  model_update(&m);
  expect_gpu(1, 0);
  assert_true(model_read_totals(&m, 0).loss > 0);
  expect_gpu(1, 0);
  model_close(&m);
  expect_gpu(1, 0);
}

/* ---- memory ---- */

/* A chain of 50 bends is one array, and its gradients another. */
static void what_works_in_place_shares_its_bytes(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  int x = one(g, SCALE, graph_input(g, "x", shape1(1024)));
  for (int i = 0; i < 50; i++) x = two(g, ADD, x, 0);
  graph_loss(g, &distance, x, 1);
  open_or_fail(&m, g, DEVICE_CPU, 64, MODEL_TRAIN);
  const size_t array = 1024 * 64 * sizeof(float);
  assert_true(m.plan.arena_bytes < 4.1 * array); /* x, target, the chain, its gradient */
  for (int i = 2; i < m.graph->count; i++) assert_int_equal(m.plan.node[i].in_place, 1);
  model_close(&m);
}

/* What nobody reads in backward is gone by then; what somebody does is not. */
static void backward_keeps_what_it_needs(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape1(100));
  const int kept = one(g, SCALE, x), bent = one(g, BEND, kept), waved = one(g, WAVE, bent);
  graph_loss(g, &distance, waved, 1);
  open_or_fail(&m, g, DEVICE_CPU, 8, MODEL_TRAIN);
  assert_int_equal(m.plan.node[bent].in_place, 1);  /* SCALE's backward reads its input, BEND's its output */
  assert_int_equal(m.plan.node[waved].in_place, 0); /* WAVE's backward reads its input, BEND's the same array */
  assert_true(plan_kept_bytes(&m.plan, kept) > 0);
  assert_int_equal(plan_kept_bytes(&m.plan, bent), 0); /* counted with `kept` */
  model_close(&m);
}

/* What leads to no loss keeps nothing for backward, and its parameters stay as they are: nothing decays them. */
static void a_branch_without_a_loss_stays(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape1(WIDTH)), learns = one(g, SCALE, x);
  const int dead = one(g, SCALE, learns), bent = one(g, BEND, dead), waved = one(g, WAVE, bent);
  graph_loss(g, &distance, learns, 1);
  open_or_fail(&m, g, DEVICE_CPU, BATCH, MODEL_TRAIN);
  assert_int_equal(m.plan.node[dead].trains, 0);
  assert_int_equal(m.plan.node[waved].in_place, 1);
  assert_int_equal(plan_kept_bytes(&m.plan, dead), 0);
  model_init(&m, 1);
  poison_and_fill(&m);
  const float *w = model_param(&m, model_find_param(&m, "scale1.weight"));
  const float *still = model_param(&m, model_find_param(&m, "scale2.weight"));
  const float w_before = w[0], before = still[0];
  m.hyper.lr = 0.1f;
  m.hyper.weight_decay = 0.3f;
  model_train_step(&m, BATCH);
  assert_true(w[0] != w_before);
  assert_true(still[0] == before);
  model_close(&m);
}

/* An input that is smaller than the output (a sum over a broadcast input, say) does not lie over it, nor dx over dy. */
static void another_shape_is_another_array(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  const int small = one(g, SCALE, graph_input(g, "x", shape1(1)));
  const int inputs[] = {small, one(g, SCALE, graph_input(g, "z", shape1(WIDTH)))}, kind = ADD;
  const int sum = graph_node(g, &ops[ADD], "add", inputs, 2, shape1(WIDTH), &kind, sizeof kind);
  graph_loss(g, &distance, sum, 1);
  open_or_fail(&m, g, DEVICE_CPU, BATCH, MODEL_TRAIN);
  assert_int_not_equal(m.plan.node[sum].output, m.plan.node[small].output);
  assert_int_not_equal(m.plan.node[sum].gradient, m.plan.node[small].gradient);
  model_close(&m);
}

/* Arrays that live at the same time never share a byte, and the arena is hardly larger than what lives at once. */
static void arrays_that_live_together_do_not_overlap(void **unused) {
  (void)unused;
  double worst = 1, sum = 0;
  enum { GRAPHS = 500 };
  for (uint64_t seed = 0; seed < GRAPHS; seed++) {
    Model m;
    open_or_fail(&m, random_graph(seed), DEVICE_CPU, 1 + (int)(seed % 40), seed & 1 ? MODEL_TRAIN : MODEL_INFER);
    for (int i = 0; i < m.plan.count; i++)
      for (int j = 0; j < i; j++) {
        const PlanArray *a = &m.plan.arrays[i], *b = &m.plan.arrays[j];
        assert_true(a->offset + a->bytes <= m.plan.arena_bytes);
        if (plan_together(a, b)) assert_true(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
      }
    const double ratio = (double)m.plan.arena_bytes / (double)m.plan.live_bytes;
    if (ratio > worst) worst = ratio;
    sum += ratio;
    model_close(&m);
  }
  print_message("arena / bytes alive at once, of %d random graphs: %.3f on average, %.3f at worst\n", GRAPHS,
                sum / GRAPHS, worst);
  assert_true(sum / GRAPHS < 1.02 && worst <= 1.25);
}

/* ---- the optimizer ---- */

static void weight_decay_reaches_what_is_decayed(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape1(2));
  const int first = one(g, SCALE, x), second = one(g, SCALE, first), third = one(g, SCALE, second);
  g->nodes[first].param[0].decayed = 0;
  graph_freeze(g, second); /* neither gradient nor step */
  graph_loss(g, &distance, third, 1);
  open_or_fail(&m, g, DEVICE_CPU, 1, MODEL_TRAIN);
  assert_int_equal(m.parameter_count, 4);
  assert_int_equal(m.decayed_count, 2);
  assert_int_equal(m.buffer_count, 2);
  model_init(&m, 1);
  const float *w1 = model_param(&m, model_find_param(&m, "scale1.weight"));
  const float *w2 = model_param(&m, model_find_param(&m, "scale2.weight"));
  const float *w3 = model_param(&m, model_find_param(&m, "scale3.weight"));
  assert_ptr_equal(w3, m.parameters);
  assert_ptr_equal(w1, m.parameters + 2);
  assert_ptr_equal(w2, m.buffers);
  const float before[] = {w1[0], w2[0], w3[0]};
  const float input[] = {0.5f, 0.25f}, target[] = {1, 2};
  memcpy(model_input(&m, 0), input, sizeof input);
  memcpy(model_targets(&m, 0), target, sizeof target);
  m.hyper.lr = 0.1f;
  m.hyper.weight_decay = 0.3f;
  model_train_step(&m, 1);
  const float y = before[0] * before[1] * before[2] * input[0], d = y - target[0];
  const float expected1 = before[0] - 0.1f * d * before[1] * before[2] * input[0];
  const float expected3 = before[2] - 0.1f * (d * before[1] * before[0] * input[0] + 0.3f * before[2]);
  assert_true(fabsf(w1[0] - expected1) < 1e-6f);
  assert_true(w2[0] == before[1]);
  assert_true(fabsf(w3[0] - expected3) < 1e-6f);
  assert_int_equal(m.context.step, 1);
  model_close(&m);
}

static void the_summary_adds_up(void **unused) {
  (void)unused;
  Model m;
  char text[4096];
  Graph *g = random_graph(3);
  graph_freeze(g, graph_find(g, "scale1")); /* no parameter that is trained */
  open_or_fail(&m, g, DEVICE_CPU, 2, MODEL_TRAIN);
  assert_true(m.buffer_count > 0);
  FILE *file = fmemopen(text, sizeof text, "w");
  model_print_summary(file, &m);
  fclose(file);
  char parameters[64];
  snprintf(parameters, sizeof parameters, " %zu ", m.parameter_count);
  const char *sum = strstr(text, "\nsum ");
  assert_non_null(sum);
  assert_non_null(strstr(sum, parameters));
  assert_non_null(strstr(text, "scale1 "));
  double training, inference;
  assert_int_equal(sscanf(strstr(sum, "training, batch 2: "), "training, batch 2: %lf MiB", &training), 1);
  assert_int_equal(sscanf(strstr(sum, "inference, batch 2: "), "inference, batch 2: %lf MiB", &inference), 1);
  assert_true(fabs(training - model_bytes(&m) / 1048576) < 0.006 && training >= inference);
  model_close(&m);

  /* What it says of inference is what a model for it takes; so it is before anything is allocated. */
  Error err;
  Model prepared;
  if (model_prepare(&prepared, random_graph(3), context_on(DEVICE_CPU), &plain, 2, MODEL_TRAIN, &err) != 0)
    fail_msg("%s", err.message);
  assert_null(prepared.arena);
  const double before = model_bytes(&prepared), infer = model_inference_bytes(&prepared);
  model_close(&prepared);
  open_or_fail(&m, random_graph(3), DEVICE_CPU, 2, MODEL_TRAIN);
  assert_true(model_bytes(&m) == before);
  model_close(&m);
  open_or_fail(&m, random_graph(3), DEVICE_CPU, 2, MODEL_INFER);
  assert_true(model_bytes(&m) == infer && infer < before);
  model_close(&m);
}

/* Nothing is allocated, and no CUDA call ends the program. */
static void a_gpu_that_is_not_there_is_an_error(void **unused) {
  (void)unused;
  const int wrong[] = {99, -1};
  test_requires_gpu();
  for (int i = 0; i < 2; i++) {
    Error err;
    Model m;
    Context context = context_on(DEVICE_GPU);
    context.gpu = wrong[i];
    assert_int_equal(model_open(&m, random_graph(3), context, &plain, 2, MODEL_TRAIN, &err), -1);
    char expected[64];
    snprintf(expected, sizeof expected, "a model on GPU %d, and this machine has ", wrong[i]);
    if (strstr(err.message, expected) == NULL) fail_msg("%s", err.message);
  }
}

static void what_else_is_needed_counts(void **unused) {
  (void)unused;
  Error err;
  Model m;
  const double memory = device_memory(DEVICE_CPU);
  if (model_prepare(&m, random_graph(3), context_on(DEVICE_CPU), &plain, 2, MODEL_TRAIN, &err) != 0)
    fail_msg("%s", err.message);
  assert_int_equal(model_allocate(&m, memory, &err), -1);
  assert_non_null(strstr(err.message, ", and its data set "));
  assert_null(m.graph);
}

/* ---- what graphs of ONNX have besides ---- */

static const Op view_op = {"Reshape", 0, OP_VIEW, NULL, NULL, op_constant, op_constant};

static int view(Graph *g, int x, Shape shape) { return graph_node(g, &view_op, "view", &x, 1, shape, NULL, 0); }

static void bytes_follow_from_type_and_layout(void **unused) {
  (void)unused;
  Graph *g = graph_create();
  Shape five = {5, {2, 3, 1, 4, 2, 0, 0, 0}}, none = {0, {0}};
  const int x = graph_typed(g, graph_input(g, "x", five), DTYPE_INT64, 0);
  const int mask = graph_typed(g, graph_input(g, "mask", none), DTYPE_BOOL, 7);
  const int plain16 = graph_typed(g, graph_input(g, "plain", shape3(3, 2, 2)), DTYPE_FP16, 0);
  const int last = graph_input(g, "last", shape3(3, 2, 2));
  assert_int_equal(g->failed, 0);
  assert_string_equal(shape_text(g->nodes[mask].shape).text, "()");
  assert_int_equal(node_bytes(&g->nodes[x]), 48 * 8);
  assert_int_equal(node_bytes(&g->nodes[mask]), 1);
  assert_int_equal(node_bytes(&g->nodes[plain16]), 12 * 2);
  g->nodes[last].type = DTYPE_BF16;
  assert_int_equal(node_bytes(&g->nodes[last]), 4 * 8 * 2);
  g->nodes[last].type = DTYPE_INT8;
  assert_int_equal(node_bytes(&g->nodes[last]), 12);
  g->nodes[last].layout = LAYOUT_CHANNELS_LAST;
  assert_int_equal(node_bytes(&g->nodes[last]), 4 * 16);
  Plan plan;
  const Context context = context_on(DEVICE_CPU);
  plan_create(&plan, g, &context, 10, MODEL_INFER);
  assert_int_equal(plan.arrays[plan.node[x].output].bytes, 3840);
  assert_int_equal(plan.arrays[plan.node[mask].output].bytes, PLAN_ALIGN); /* 7 bytes, and not 10 * 7 */
  plan_destroy(&plan);
  graph_destroy(g);
}

/* x -> twice = 2 x -> two views, of which bend could overwrite one: the other is still read. A constant is no array of
 * the arena, and nobody writes over it. */
static void views_and_constants_are_arrays_of_others(void **unused) {
  (void)unused;
  Model m;
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape1(6));
  const int first = graph_constant(g, "odd", DTYPE_INT8, shape1(3));
  const int c = graph_constant(g, "c", DTYPE_FLOAT32, shape1(6));
  const int sum = two(g, ADD, x, x);
  const int flat = view(g, view(g, sum, shape3(1, 2, 3)), shape3(6, 1, 1)), other = view(g, sum, shape3(3, 2, 1));
  const int bent = one(g, BEND, flat), late = one(g, BEND, other);
  const int bent_constant = graph_typed(g, one(g, BEND, c), DTYPE_FLOAT32, 1);
  graph_output(g, bent);
  graph_output(g, late);
  graph_output(g, first);
  graph_output(g, bent_constant);
  open_or_fail(&m, g, DEVICE_CPU, 2, MODEL_INFER);
  assert_int_equal(m.plan.node[first].output, PLAN_NONE);
  assert_int_equal(m.plan.node[flat].output, m.plan.node[sum].output);
  assert_int_not_equal(m.plan.node[bent].output, m.plan.node[sum].output);
  assert_int_equal(m.plan.node[late].output, m.plan.node[sum].output); /* the last who reads it */
  assert_ptr_equal(model_output(&m, other), model_output(&m, sum));
  assert_int_equal((uintptr_t)model_output(&m, c) % 64, 0);
  assert_ptr_equal(model_output(&m, c), model_param(&m, &g->nodes[c].param[0]));
  memcpy(model_param(&m, &g->nodes[c].param[0]), numbers, sizeof numbers);
  for (int i = 0; i < 12; i++) model_input(&m, 0)[i] = 0.1f * (float)i;
  model_forward(&m, 2);
  for (int i = 0; i < 12; i++) {
    const double expected = tanh(0.2 * i);
    assert_true(fabs(model_output(&m, bent)[i] - expected) < 1e-6);
    assert_true(fabs(model_output(&m, late)[i] - expected) < 1e-6);
    if (i < 6) assert_true(fabs(model_output(&m, bent_constant)[i] - tanh(numbers[i])) < 1e-6);
    if (i < 6) assert_true(model_output(&m, c)[i] == numbers[i]);
  }
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nodes_are_named_within_their_scope),
      cmocka_unit_test(a_mismatch_names_both_nodes_and_shapes),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(too_much_scratch_is_refused),
      cmocka_unit_test(misuse_is_named),
      cmocka_unit_test(random_graphs_cpu),
      cmocka_unit_test(what_works_in_place_shares_its_bytes),
      cmocka_unit_test(backward_keeps_what_it_needs),
      cmocka_unit_test(a_branch_without_a_loss_stays),
      cmocka_unit_test(another_shape_is_another_array),
      cmocka_unit_test(arrays_that_live_together_do_not_overlap),
      cmocka_unit_test(weight_decay_reaches_what_is_decayed),
      cmocka_unit_test(the_summary_adds_up),
      cmocka_unit_test(what_else_is_needed_counts),
      cmocka_unit_test(bytes_follow_from_type_and_layout),
      cmocka_unit_test(views_and_constants_are_arrays_of_others),
      cmocka_unit_test(a_gpu_that_is_not_there_is_an_error),
      cmocka_unit_test(random_graphs_gpu),
      cmocka_unit_test(two_threads_and_devices_do_not_meet),
      cmocka_unit_test(a_call_uses_the_gpu_of_its_model),
  };
  return TEST_MAIN("model", tests);
}
