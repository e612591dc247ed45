/* cuDNN's layers against ours on the CPU: each operation forward and backward, ragged sizes, a smaller batch than it
 * was opened for; networks, their gradients, training; and what is refused. Where there is no cuDNN the tests are
 * skipped. */
#include "common/test.h"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase3_cnn/14_resnet_mnist/resnet.cuh"
#include "phase5_production/01_cudnn_layers/cudnn_layers_lesson.cuh"
#include "phase5_production/01_cudnn_layers/dnn_conv2d.cuh"

#include <pthread.h>

static void requires_cudnn(void) {
  Error err;
  test_requires_gpu();
  if (cudnn_load(&err) != NULL) return;
  printf("skipped: %s\n", err.message);
  skip();
}

/* ------------------------------------------------------------------------------------------------------- operations */

static int conv_ragged(Graph *g, int x) {
  Conv2dShape s = conv2d_shape(1, 1, 1, 1, 7, 5, 3, 1, 0);
  s.padding_h = 2;
  s.stride_w = 2;
  return conv2d_general(g, x, s);
}
static int conv_groups(Graph *g, int x) {
  Conv2dShape s = conv2d_shape(1, 1, 1, 1, 6, 3, 2, 1, 1);
  s.groups = 3;
  s.dilation_h = 2;
  return conv2d_general(g, x, s);
}
static int pool_padded(Graph *g, int x) {
  const Pool2dWindow window = {3, 2, 2, 1, 1, 0};
  return max_pool2d_window(g, x, window);
}
static int mean_padded(Graph *g, int x) {
  const Pool2dWindow window = {3, 2, 2, 1, 1, 1};
  return avg_pool2d_window(g, x, window, 0);
}
static int mean_padded_all(Graph *g, int x) {
  const Pool2dWindow window = {3, 2, 2, 1, 1, 1};
  return avg_pool2d_window(g, x, window, 1);
}

static const LayerCase cases[] = {
    {"conv ragged", conv_ragged, {3, {3, 13, 11, 0}}, 3},
    {"conv groups", conv_groups, {3, {6, 7, 9, 0}}, 2},
    {"conv 3x3", layer_conv3x3, {3, {5, 6, 4, 0}}, 3},
    {"conv stride", layer_conv_stride, {3, {3, 9, 7, 0}}, 2},
    {"conv 1x1", layer_conv1x1, {3, {4, 7, 5, 0}}, 3},
    {"relu", layer_relu, {3, {3, 7, 5, 0}}, 3},
    {"sigmoid", layer_sigmoid, {1, {127, 0, 0, 0}}, 3},
    {"tanh", layer_tanh, {1, {33, 0, 0, 0}}, 1},
    {"max pool", layer_max_pool, {3, {3, 9, 7, 0}}, 3},
    {"max padded", pool_padded, {3, {2, 8, 5, 0}}, 2},
    {"mean", layer_avg_pool, {3, {3, 8, 6, 0}}, 3},
    {"mean padded", mean_padded, {3, {2, 7, 5, 0}}, 2},
    {"mean of all", mean_padded_all, {3, {2, 7, 5, 0}}, 2},
    {"plane", layer_global_pool, {3, {5, 7, 7, 0}}, 3},
    {"plane 3x5", layer_global_pool, {3, {3, 3, 5, 0}}, 2},
    {"batch norm", layer_batch_norm, {3, {5, 7, 3, 0}}, 3},
    {"add", layer_add, {3, {3, 5, 7, 0}}, 3},
    {"softmax", layer_softmax, {1, {33, 0, 0, 0}}, 5},
};

/* The longest sum has a few hundred terms of about 1: its roundings add up to some 1e-5 at most. A sum of batch norm is
 * divided by a deviation of about 0.6. */
static void check_case(const LayerCase *c, int larger) {
  Error err;
  LayerRun expected, got;
  if (layer_run(&expected, c, "ours", DEVICE_CPU, 0, 0, &err) != 0) fail_msg("%s: %s", c->name, err.message);
  if (layer_run(&got, c, "cudnn", DEVICE_GPU, larger, 0, &err) != 0) fail_msg("%s: %s", c->name, err.message);
  assert_int_equal(got.outputs, expected.outputs);
  for (int o = 0; o < got.outputs; o++) {
    const Comparison compared = compare_arrays(got.output[o].values, expected.output[o].values, 1,
                                               expected.output[o].count, tolerance_make(1e-4, 3e-5));
    if (!compared.ok) fail_msg("%s, %s: %s", c->name, expected.output[o].name, compared.message);
  }
  layer_free(&expected);
  layer_free(&got);
}

static void every_operation_is_that_of_the_cpu(void **unused) {
  (void)unused;
  requires_cudnn();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i], 0);
}

static void a_smaller_batch_is_right_as_well(void **unused) {
  (void)unused;
  requires_cudnn();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i], 2);
}

/* The parts of a batch, added by beta = 1, are the gradient of the batch; the first replaces what was there. */
#if CUDNN_COMPILED
static void gradients_of_parts_add_up(void **unused) {
  (void)unused;
  requires_cudnn();
  const Conv2dShape whole = conv2d_shape(4, 3, 9, 7, 5, 3, 3, 1, 1);
  Conv2dShape half = whole;
  half.n = 2;
  const size_t x_half = conv2d_x_count(half), y_half = conv2d_y_count(half), w = conv2d_w_count(whole);
  float *x = layer_array(DEVICE_GPU, 2 * x_half, 1), *dy = layer_array(DEVICE_GPU, 2 * y_half, 2);
  float *dw = layer_array(DEVICE_GPU, w, 0), *dbias = layer_array(DEVICE_GPU, 5, 0);
  float host_dw[135], host_dbias[5], expected[135], expected_bias[5];
  Dnn dnn;
  DnnConv2d c;
  Error err;
  assert_int_equal(w, 135);
  if (dnn_open(&dnn, &err) != 0 || dnn_conv2d_open(&c, &dnn, half, 1, DNN_WORKSPACE_MOST, &err) != 0)
    fail_msg("%s", err.message);
  void *workspace = device_alloc(DEVICE_GPU, dnn_conv2d_workspace(&c) + 1);
  for (int part = 0; part < 2; part++)
    dnn_conv2d_backward_weight(&c, dw, dbias, dy + part * y_half, x + part * x_half, dnn_gradient_scale(part, 0.5f),
                               workspace);
  device_synchronize(DEVICE_GPU);
  device_download(DEVICE_GPU, host_dw, dw, sizeof host_dw);
  device_download(DEVICE_GPU, host_dbias, dbias, sizeof host_dbias);
  float *host_x = (float *)xmalloc(2 * x_half * sizeof *host_x),
        *host_dy = (float *)xmalloc(2 * y_half * sizeof *host_dy);
  device_download(DEVICE_GPU, host_x, x, 2 * x_half * sizeof *host_x);
  device_download(DEVICE_GPU, host_dy, dy, 2 * y_half * sizeof *host_dy);
  conv2d_backward_weight_cpu(expected, expected_bias, host_dy, host_x, whole);
  for (int i = 0; i < 135; i++) expected[i] *= 0.5f;
  for (int i = 0; i < 5; i++) expected_bias[i] *= 0.5f;
  assert_matrix_close(host_dw, expected, 1, 135, 1e-4, 1e-4);
  assert_matrix_close(host_dbias, expected_bias, 1, 5, 1e-4, 1e-4);
  dnn_conv2d_close(&c);
  dnn_close(&dnn);
  float *const arrays[] = {x, dy, dw, dbias, (float *)workspace};
  for (int i = 0; i < 5; i++) device_free(DEVICE_GPU, arrays[i]);
  free(host_x);
  free(host_dy);
}
#endif

#if CUDNN_COMPILED
/* The last batch of an epoch is smaller, and its workspace that of the others: none here. */
static void a_smaller_batch_makes_do_with_the_workspace(void **unused) {
  (void)unused;
  requires_cudnn();
  Dnn dnn;
  DnnConv2d c;
  Error err;
  if (dnn_open(&dnn, &err) != 0 ||
      dnn_conv2d_open(&c, &dnn, conv2d_shape(4, 3, 9, 7, 5, 3, 3, 1, 1), 1, DNN_WORKSPACE_MOST, &err) != 0)
    fail_msg("%s", err.message);
  c.room = 0;
  dnn_conv2d_batch(&c, 1);
  assert_int_equal(dnn_conv2d_workspace(&c), 0);
  dnn_conv2d_close(&c);
#ifdef SIMT_REWRITTEN /* where the first batch gets none: a GPU's gradients may do without */
  assert_int_equal(dnn_conv2d_open(&c, &dnn, conv2d_shape(4, 3, 9, 7, 5, 3, 3, 1, 1), 1, 0, &err), -1);
  if (strstr(err.message, "no algorithm for the backward_input pass") == NULL) fail_msg("%s", err.message);
#endif
  dnn_close(&dnn);
}
#endif

/* --------------------------------------------------------------------------------------------------------- networks */

enum { BATCH = 3, STEPS = 4 };

typedef struct Net {
  Graph *(*graph)(void);
  int pixels;
} Net;

static Graph *small_resnet(void) {
  const ResnetShape shape = {{4, 6, 8}, 0};
  return resnet_fused_for(shape, shape3(1, 16, 14), 5);
}
static Graph *small_lenet(void) { return lenet_graph_for(shape3(1, 20, 18), 5); }

static const Net nets[] = {{small_lenet, 20 * 18}, {small_resnet, 16 * 14}};

typedef struct Trained {
  float losses[STEPS * BATCH], *gradients, *parameters;
  size_t count;
} Trained;

static void trained_free(Trained *t) {
  free(t->gradients);
  free(t->parameters);
}

/* STEPS steps on the same images, the first of them recorded in a graph where asked; the gradients of the first. */
static void train(Trained *t, const Net *net, const char *layers, Device device, int in_graph) {
  Model m;
  Error err;
  Context context;
  StepGraph step = {NULL, 0, 0};
  memset(&context, 0, sizeof context);
  context.device = device;
  Graph *g = net->graph();
  if (implementation_choose(&dnn_layer_choice, layers, g, context, &sgd, BATCH, MODEL_TRAIN, stderr, &err) != 0 ||
      model_open(&m, g, context, &sgd, BATCH, MODEL_TRAIN, &err) != 0)
    fail_msg("%s", err.message);
  model_init(&m, 5);
  implementation_fill(&m);
  const int labels[BATCH] = {4, 0, 3};
  device_upload(device, model_labels(&m), labels, sizeof labels);
  m.hyper.lr = 0.05f;
  m.hyper.momentum = 0.9f;
  t->count = m.parameter_count;
  t->gradients = (float *)xmalloc(t->count * sizeof(float));
  t->parameters = (float *)xmalloc(t->count * sizeof(float));
  for (int s = 0; s < STEPS; s++) {
    const int recorded = in_graph && s == 0;
    if (recorded) step_graph_begin(&step);
    model_train_step(&m, BATCH);
    if (recorded) step_graph_launch(&step);
    device_synchronize(device);
    device_download(device, t->losses + s * BATCH, m.losses[0], BATCH * sizeof *t->losses);
    if (s == 0) device_download(device, t->gradients, m.gradients, t->count * sizeof(float));
  }
  device_download(device, t->parameters, m.parameters, t->count * sizeof(float));
  step_graph_close(&step);
  model_close(&m);
}

/* Batch norm over three images divides by small deviations, so errors grow from step to step. */
static void check_net(const Net *net, const char *layers, int in_graph) {
  Trained expected, got;
  train(&expected, net, "ours", DEVICE_CPU, 0);
  train(&got, net, layers, DEVICE_GPU, in_graph);
  assert_true(expected.losses[0] > 0);
  assert_matrix_close(got.gradients, expected.gradients, 1, (int)expected.count, 2e-3, 1e-4);
  assert_matrix_close(got.losses, expected.losses, STEPS, BATCH, 2e-3, 1e-3);
  assert_matrix_close(got.parameters, expected.parameters, 1, (int)expected.count, 2e-3, 1e-3);
  trained_free(&expected);
  trained_free(&got);
}

static void networks_train_by_cudnn(void **unused) {
  (void)unused;
  requires_cudnn();
  for (int n = 0; n < 2; n++) {
    check_net(&nets[n], "cudnn", 0);
    check_net(&nets[n], "cudnn", 1);
  }
}

static void networks_train_by_a_mixture(void **unused) {
  (void)unused;
  requires_cudnn();
  check_net(&nets[0], "cudnn,conv1:ours,relu2:ours", 0);
  check_net(&nets[0], "pool2:cudnn", 0);
  check_net(&nets[1], "auto", 0);
}

static void *train_in_a_thread(void *result) {
  train((Trained *)result, &nets[1], "cudnn", DEVICE_GPU, 0);
  return NULL;
}

/* Two networks in two host threads: the same bits as one after the other. */
static void two_threads_do_not_meet(void **unused) {
  (void)unused;
  requires_cudnn();
  Trained alone, beside[2];
  pthread_t thread[2];
  train(&alone, &nets[1], "cudnn", DEVICE_GPU, 0);
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, train_in_a_thread, &beside[i]), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_memory_equal(alone.parameters, beside[i].parameters, alone.count * sizeof(float));
    trained_free(&beside[i]);
  }
  trained_free(&alone);
}

/* ------------------------------------------------------------------------------------------------- words and tables */

/* What of a graph is cuDNN's, "conv1 relu1"; and that what is left is computed together as before. */
static void expect_cudnn(Graph *g, const char *layers, const char *expected) {
  Error err;
  char found[512] = "";
  if (implementation_apply(&dnn_layer_choice, layers, g, NULL, &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < g->count; i++)
    if (implementation_of(&dnn_layer_choice, &g->nodes[i]) == 1) {
      assert_int_equal(g->nodes[i].group, 0);
      snprintf(found + strlen(found), sizeof found - strlen(found), "%s ", g->nodes[i].name);
    }
  assert_string_equal(found, expected);
  graph_destroy(g);
}

static void words_choose_operations(void **unused) {
  (void)unused;
  requires_cudnn();
  expect_cudnn(lenet_graph(), "ours", "");
  expect_cudnn(lenet_graph(), "cudnn", "conv1 relu1 pool1 conv2 relu2 pool2 relu3 relu4 ");
  expect_cudnn(lenet_graph(), "pool1:cudnn", "pool1 ");
  expect_cudnn(lenet_graph(), "cudnn,conv1:ours", "relu1 pool1 conv2 relu2 pool2 relu3 relu4 ");
  expect_cudnn(lenet_graph(), "cudnn,ours,relu3:cudnn", "relu3 ");
}

/* One operation of a group goes to cuDNN: the others of it are computed alone, those of other groups together. */
static void groups_are_separated_one_by_one(void **unused) {
  (void)unused;
  requires_cudnn();
  Error err;
  Graph *g = lenet_graph();
  assert_int_equal(implementation_apply(&dnn_layer_choice, "relu1:cudnn", g, NULL, &err), 0);
  assert_ptr_equal(g->nodes[graph_find(g, "pool1")].op, &max_pool2d_op);
  assert_ptr_equal(g->nodes[graph_find(g, "pool2")].op, &relu_max_pool2d_op);
  assert_true(g->nodes[graph_find(g, "relu2")].op->flags & OP_PASSED);
  graph_destroy(g);
}

static void expect_refused(const char *layers, const char *words) {
  Error err;
  Graph *g = lenet_graph();
  if (implementation_check(&dnn_layer_choice, layers, &err) == 0 &&
      implementation_apply(&dnn_layer_choice, layers, g, NULL, &err) == 0)
    fail_msg("--layers=%s was accepted", layers);
  if (strstr(err.message, words) == NULL) fail_msg("%s; expected: %s", err.message, words);
  graph_destroy(g);
}

static void mistakes_are_named(void **unused) {
  (void)unused;
  expect_refused("cuDNN", "unknown implementation \"cuDNN\"; expected ours, cudnn or auto");
  expect_refused("fc1:cudnn", "of Gemm there is one implementation here");
  expect_refused("conv9:ours", "no such node");
  Error err;
  if (cudnn_load(&err) == NULL) expect_refused("cudnn", err.message);
}

static int pool_ceil(Graph *g, int x) {
  Pool2dShape s = pool2d_shape(1, 1, 1, 1, 2, 2);
  s.ceil_mode = 1;
  return max_pool2d_shaped(g, x, s);
}

static void what_cudnn_cannot_stays_ours(void **unused) {
  (void)unused;
  requires_cudnn();
  Error err;
  LayerRun run;
  const LayerCase c = {"ceil", pool_ceil, {3, {2, 5, 5, 0}}, 2};
  assert_int_equal(layer_run(&run, &c, "cudnn", DEVICE_GPU, 0, 0, &err), -1);
  if (strstr(err.message, "cuDNN has no ceil_mode") == NULL) fail_msg("%s", err.message);
}

/* With --device=cpu the operations are ours, each by itself: sums of what is computed together have another order. */
static void the_cpu_computes_by_ours(void **unused) {
  (void)unused;
  Error err;
  if (cudnn_load(&err) == NULL) skip(); /* the name is refused then */
  Trained expected, got;
  train(&expected, &nets[1], "ours", DEVICE_CPU, 0);
  train(&got, &nets[1], "cudnn", DEVICE_CPU, 0);
  assert_matrix_close(got.parameters, expected.parameters, 1, (int)expected.count, 1e-4, 1e-5); /* unfused sums */
  trained_free(&expected);
  trained_free(&got);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_operation_is_that_of_the_cpu),
    cmocka_unit_test(a_smaller_batch_is_right_as_well),
#if CUDNN_COMPILED
    cmocka_unit_test(gradients_of_parts_add_up),
    cmocka_unit_test(a_smaller_batch_makes_do_with_the_workspace),
#endif
    cmocka_unit_test(networks_train_by_cudnn),
    cmocka_unit_test(networks_train_by_a_mixture),
    cmocka_unit_test(two_threads_do_not_meet),
    cmocka_unit_test(words_choose_operations),
    cmocka_unit_test(groups_are_separated_one_by_one),
    cmocka_unit_test(mistakes_are_named),
    cmocka_unit_test(what_cudnn_cannot_stays_ours),
    cmocka_unit_test(the_cpu_computes_by_ours),
  };
  return TEST_MAIN("dnn_layers", tests);
}
