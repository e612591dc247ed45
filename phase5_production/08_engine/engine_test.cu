/* The engine on networks of this course: the passes, every precision, ranges of batches, recorded graphs. */
#include "common/test.h"
#include "common/test_arrays.h"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_depthwise.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase3_cnn/13_fashion_mnist/fashion_cnn.cuh"
#include "phase5_production/04_resnet18_fused/fused_measure.cuh"
#include "phase5_production/04_resnet18_fused/fused_reference.cuh"
#include "phase5_production/08_engine/engine_open.cuh"
#include "phase5_production/08_engine/engine_passes.cuh"

enum { SIDE = 19, CLASSES = 10, BATCH = 3 };
static const Resnet18Shape thin = {SIDE, 8, CLASSES};

static Model open_network(Graph *g, Device device, int batch) {
  Error err;
  Model m;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  if (model_open(&m, g, context, NULL, batch, MODEL_INFER, &err) != 0) fail_msg("%s", err.message);
  fused_pretend_training(&m, 3);
  return m;
}

/* The outputs of the plain network, on the CPU. */
static float *plain_outputs(Model *m, const float *x, int batch, size_t *floats) {
  const Graph *g = m->graph;
  const int in = model_input_node(m, 0), out = g->loss_count ? g->losses[0].node : g->outputs[0];
  const size_t x_count = shape_count(g->nodes[in].shape) * (size_t)batch;
  *floats = shape_count(g->nodes[out].shape) * (size_t)batch;
  float *y = (float *)xmalloc(*floats * sizeof *y);
  device_upload(m->context.device, model_output(m, in), x, x_count * sizeof *x);
  model_forward(m, batch);
  device_download(m->context.device, y, model_output(m, out), *floats * sizeof *y);
  return y;
}

static double largest_difference(const float *a, const float *b, size_t n) {
  double most = 0, worst = 0;
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(a[i]) || !isfinite(b[i])) return NAN;
    most = fmax(most, fabs((double)b[i]));
    worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
  }
  return worst / most;
}

static EngineOptions options_for(Device device, EnginePrecision precision, int batch) {
  EngineOptions o = engine_options();
  o.device = device;
  o.precision = precision;
  o.max_batch = batch;
  return o;
}

static Engine open_engine(const Model *m, const EngineOptions *o) {
  Error err;
  Engine e;
  if (engine_open_model(&e, m, o, &err) != 0) fail_msg("%s", err.message);
  return e;
}

static const double tolerances[] = {2e-5, 4e-3, 6e-3, 5e-2}; /* of the largest output: fused_tolerance() */

/* The engine's answers to batches of several sizes are those of the plain network. */
static void expect_answers(Model *m, const EngineOptions *o, const char *what) {
  Error err;
  Engine e = open_engine(m, o);
  const size_t each = model_input_width(m, 0);
  float *x = arrays_random(each * BATCH, 11);
  for (int batch = 1; batch <= BATCH; batch += 2) {
    size_t floats;
    float *expected = plain_outputs(m, x, batch, &floats);
    float *y = (float *)xmalloc(floats * sizeof *y);
    for (int run = 0; run < 3; run++) { /* launched, recorded, replayed */
      for (size_t i = 0; i < floats; i++) y[i] = NAN;
      if (engine_run(&e, x, batch, 0, 0, y, &err) != 0) fail_msg("%s: %s", what, err.message);
      const double error = largest_difference(y, expected, floats);
      if (!(error <= tolerances[o->precision]))
        fail_msg("%s, %s, batch %d, run %d: %.2e of the largest output, up to %.1e is expected", what,
                 engine_precision_name(o->precision), batch, run, error, tolerances[o->precision]);
    }
    free(y);
    free(expected);
  }
  free(x);
  engine_close(&e);
}

static void expect_precisions(Graph *g, const char *what, int precisions) {
  Model m = open_network(g, DEVICE_CPU, BATCH);
  for (int device = 0; device < 2; device++)
    for (int p = 0; p < (device ? precisions : 1); p++) {
      const EngineOptions o = options_for((Device)device, (EnginePrecision)p, BATCH);
      expect_answers(&m, &o, what);
    }
  model_close(&m);
}

static void resnet_in_every_precision(void **state) {
  (void)state;
  expect_precisions(resnet18_layers(thin), "resnet18", 4);
}

static void small_networks(void **state) {
  (void)state;
  expect_precisions(lenet_layers_for(shape3(1, 28, 28), 10), "lenet", 1);
  expect_precisions(fashion_cnn_layers_for(shape3(1, 12, 12), 7), "fashion_cnn", 1);
}

/* Channels that are not a multiple of eight, groups, a convolution without ReLU or bias, a sum without ReLU, average
 * pooling: what no fast kernel takes stays as it is. */
static Graph *odd_network(void) {
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(5, 13, 11));
  int h = relu(g, conv2d(g, x, 12, 3, 1, 1));
  Conv2dShape depthwise = conv2d_shape(1, 12, 13, 11, 12, 3, 3, 1, 1);
  depthwise.groups = 12;
  int d = relu(g, batch_norm2d(g, conv2d_general_bias(g, h, depthwise, 0)));
  d = conv2d_no_bias(g, d, 12, 1, 1, 0);
  h = add(g, h, d);
  h = max_pool2d(g, conv2d(g, h, 7, 5, 2, 2), 2, 2);
  h = relu(g, add(g, conv2d_no_bias(g, h, 7, 3, 1, 1), h));
  h = activation(g, h, ACTIVATION_SIGMOID);
  graph_output(g, linear(g, h, 6));
  graph_output(g, h);
  return g;
}

static void kernels_that_do_not_fit_fall_back(void **state) {
  (void)state;
  expect_precisions(odd_network(), "odd", 4);
}

/* ------------------------------------------------------------------------------------------------------- the passes */

/* y = x + (a + b), and much that nobody needs. */
static Graph *wasteful_network(void) {
  Graph *g = graph_create();
  const Shape shape = shape3(3, 5, 7);
  const int x = graph_typed(g, graph_input(g, "x", shape), DTYPE_FLOAT32, 2);
  const int a = graph_constant(g, "a", DTYPE_FLOAT32, shape), b = graph_constant(g, "b", DTYPE_FLOAT32, shape);
  g->nodes[a].whole = g->nodes[b].whole = 2;
  for (int i = a; i <= b; i++) {
    g->nodes[i].param[0].bytes *= 2;
    g->nodes[i].param[0].count = g->nodes[i].param[0].dim[0] = (g->nodes[i].param[0].bytes + 15) / 16 * 4;
  }
  const int sum = graph_typed(g, add(g, a, b), DTYPE_FLOAT32, 2);
  const int half = graph_typed(g, activation(g, sum, ACTIVATION_TANH), DTYPE_FLOAT32, 2);
  const int used = graph_typed(g, dropout(g, x, 0), DTYPE_FLOAT32, 2);
  graph_typed(g, relu(g, used), DTYPE_FLOAT32, 2); /* dead */
  graph_output(g, graph_typed(g, add(g, used, half), DTYPE_FLOAT32, 2));
  return g;
}

static void constants_and_dead_nodes_change_no_bit(void **state) {
  (void)state;
  for (int device = 0; device < 2; device++) {
    Error err;
    Model before = open_network(wasteful_network(), (Device)device, 1);
    float *host = arrays_random(before.buffer_count, 5), *x = arrays_random(210, 6);
    device_upload((Device)device, before.buffers, host, before.buffer_count * sizeof *host);
    device_upload((Device)device, model_input(&before, 0), x, 210 * sizeof *x);
    model_forward(&before, 1);
    float expected[210], y[210];
    device_download((Device)device, expected, model_output(&before, before.graph->outputs[0]), sizeof expected);

    EngineWeights weights;
    EnginePasses passes;
    memset(&weights, 0, sizeof weights);
    memset(&passes, 0, sizeof passes);
    passes.batch = 1;
    engine_weights_take(&weights, &before);
    Graph *g = graph_copy(before.graph);
    if (engine_simplify(&g, &weights, &before.context, &passes, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(passes.pass[0].launches, 5);
    assert_int_equal(passes.pass[1].launches, 4); /* tanh is a constant; a + b, dropout and ReLU are still there */
    assert_int_equal(passes.pass[2].launches, 1);
    assert_int_equal(g->count, 3); /* x, the constant, the sum */
    Context context = before.context;
    Model after;
    if (model_open(&after, g, context, NULL, 1, MODEL_INFER, &err) != 0) fail_msg("%s", err.message);
    if (fused_fill(&after, engine_weights_source(&weights), &err) != 0) fail_msg("%s", err.message);
    device_upload((Device)device, model_input(&after, 0), x, 210 * sizeof *x);
    model_forward(&after, 1);
    device_download((Device)device, y, model_output(&after, after.graph->outputs[0]), sizeof y);
    assert_memory_equal(y, expected, sizeof y);
    engine_weights_free(&weights);
    model_close(&before);
    model_close(&after);
    free(host);
    free(x);
  }
}

static void fewer_launches_and_bytes(void **state) {
  (void)state;
  Error err;
  Model m = open_network(resnet18_layers(thin), DEVICE_CPU, 1);
  EngineWeights weights;
  EnginePasses passes;
  memset(&weights, 0, sizeof weights);
  memset(&passes, 0, sizeof passes);
  passes.batch = 1;
  engine_weights_take(&weights, &m);
  Graph *g = graph_copy(m.graph);
  assert_int_equal(engine_simplify(&g, &weights, &m.context, &passes, &err), 0);
  assert_int_equal(passes.pass[0].launches, 68);
  assert_int_equal(passes.pass[3].launches, 48); /* 20 batch norms */
  assert_true(passes.pass[3].bytes < passes.pass[0].bytes);
  fused_rewrite(g, FUSED_FP16, FUSED_FOLDED | FUSED_ENDS | FUSED_RESIDUAL);
  assert_int_equal(fused_runs(g), 18);
  graph_destroy(g);
  engine_weights_free(&weights);
  model_close(&m);
}

/* What only a gradient needs is not reserved. */
static void no_scratch_for_gradients(void **state) {
  (void)state;
  Context context;
  Plan plan;
  memset(&context, 0, sizeof context);
  context.device = DEVICE_GPU;
  Graph *g = fashion_cnn_layers();
  const int conv = graph_find(g, "conv2");
  plan_create(&plan, g, &context, 16, MODEL_INFER);
  assert_int_equal(plan.node[conv].forward_work, PLAN_NONE);
  const size_t conv1 = 64 * 26 * 26 * 16 * sizeof(float), conv2 = 128 * 11 * 11 * 16 * sizeof(float);
  assert_true(plan.arena_bytes < 2 * (conv1 + conv2)); /* the largest arrays that are alive at once */
  plan_destroy(&plan);
  plan_create(&plan, g, &context, 16, MODEL_TRAIN);
  assert_true(plan.node[conv].back_work != PLAN_NONE);
  plan_destroy(&plan);
  graph_destroy(g);
}

/* -------------------------------------------------------------------------------------------------- batch invariant */

static void answers_do_not_depend_on_the_batch(void **state) {
  (void)state;
  Error err;
  enum { MOST = 11 };
  Model m = open_network(resnet18_layers(thin), DEVICE_CPU, 1);
  const size_t each = model_input_width(&m, 0);
  float *x = arrays_random(each * MOST, 31), whole[MOST * CLASSES], y[MOST * CLASSES];
  for (int device = 0; device < 2; device++) {
    EngineOptions o = options_for((Device)device, device ? ENGINE_FP16 : ENGINE_FP32, MOST);
    o.batch_invariant = 1;
    Engine e = open_engine(&m, &o);
    if (engine_run(&e, x, MOST, 0, 0, whole, &err) != 0) fail_msg("%s", err.message);
    for (int first = 0; first < MOST; first += 3) {
      const int batch = first / 3 + 1;
      if (first + batch > MOST) break;
      for (int i = 0; i < MOST * CLASSES; i++) y[i] = NAN;
      if (engine_run(&e, x + (size_t)first * each, batch, 0, 0, y, &err) != 0) fail_msg("%s", err.message);
      assert_memory_equal(y, whole + first * CLASSES, (size_t)batch * CLASSES * sizeof *y);
    }
    engine_close(&e);
  }
  free(x);
  model_close(&m);
}

/* --------------------------------------------------------------------------------------------------------- refusals */

static void refuses_what_it_cannot_do(void **state) {
  (void)state;
  Error err;
  Engine e;
  float y[CLASSES];
  Model m = open_network(lenet_layers(), DEVICE_CPU, 1);
  float *x = arrays_random(28 * 28, 1);
  EngineOptions o = options_for(DEVICE_CPU, ENGINE_FP16, 1);
  assert_int_equal(engine_open_model(&e, &m, &o, &err), -1);
  assert_non_null(strstr(err.message, "fp16 on a CPU"));
  o.precision = ENGINE_FP32;
  o.max_height = 32;
  assert_int_equal(engine_open_model(&e, &m, &o, &err), -1);
  assert_non_null(strstr(err.message, "its sizes are fixed"));
  o.max_height = 0;
  e = open_engine(&m, &o);
  assert_int_equal(engine_run(&e, x, 2, 0, 0, y, &err), -1);
  assert_non_null(strstr(err.message, "a batch of 2 for an engine of at most 1"));
  assert_int_equal(engine_run(&e, x, 1, 29, 28, y, &err), -1);
  assert_non_null(strstr(err.message, "29 x 28"));
  assert_int_equal(engine_run(&e, x, 1, 27, 28, y, &err), -1);
  assert_int_equal(engine_run(&e, x, 1, 28, 28, y, &err), 0);
  engine_close(&e);
  free(x);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(resnet_in_every_precision),          cmocka_unit_test(small_networks),
      cmocka_unit_test(kernels_that_do_not_fit_fall_back),  cmocka_unit_test(constants_and_dead_nodes_change_no_bit),
      cmocka_unit_test(fewer_launches_and_bytes),           cmocka_unit_test(no_scratch_for_gradients),
      cmocka_unit_test(answers_do_not_depend_on_the_batch), cmocka_unit_test(refuses_what_it_cannot_do),
  };
  return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
