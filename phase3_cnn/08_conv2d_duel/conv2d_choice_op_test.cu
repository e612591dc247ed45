/* Every method in a network: the same losses and gradients as the CPU's; layers that it cannot compute are refused with
 * a sentence that names a method that can. */
#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"

#include "common/compare.h"
#include "common/nn/implementation.h"
#include "common/nn/step_graph.h"
#include "common/test.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"

enum { BATCH = 3, CLASSES = 5 };

static Conv2dShape filters(int k, int r, int s, int stride, int padding) {
  return conv2d_shape(1, 1, 1, 1, k, r, s, stride, padding);
}

/* conv1: 3 x 3; conv2: one filter per channel; conv3: 5 x 5, stride 2; conv4: two groups, dilation; conv5: 1 x 1. All
 * with a bias, or all without: then param[1] and grad[1] are NULL. */
static Graph *small_network(int bias) {
  Graph *g = graph_create();
  Conv2dShape one_per_channel = filters(6, 3, 3, 1, 1), gaps = filters(4, 2, 3, 1, 2);
  one_per_channel.groups = 6;
  gaps.groups = 2;
  gaps.dilation_h = 2;
  gaps.padding_w = 1;
  gaps.stride_w = 2;
  int x = graph_input(g, "x", shape3(3, 11, 9));
  x = relu(g, conv2d_general_bias(g, x, filters(6, 3, 3, 1, 1), bias));
  x = relu(g, conv2d_general_bias(g, x, one_per_channel, bias));
  x = relu(g, conv2d_general_bias(g, x, filters(10, 5, 5, 2, 2), bias));
  x = relu(g, conv2d_general_bias(g, x, gaps, bias));
  x = conv2d_general_bias(g, x, filters(7, 1, 1, 1, 0), bias);
  graph_loss(g, &cross_entropy_loss, linear(g, x, CLASSES), 1);
  return g;
}

typedef struct Result {
  float losses[BATCH], *gradients;
  size_t count;
} Result;

/* A forward and a backward pass, recorded in a CUDA graph or not. -1: --conv=text is refused. */
static int compute(Result *result, const char *text, int bias, Device device, int in_graph, Error *err) {
  Model m;
  StepGraph step = {NULL, 0, 0};
  Context context;
  Graph *g = small_network(bias);
  memset(&context, 0, sizeof context);
  context.device = device;
  if (implementation_apply(&conv2d_choice, text, g, NULL, err) != 0) {
    graph_destroy(g);
    return -1;
  }
  if (model_open(&m, g, context, &sgd, BATCH, MODEL_TRAIN, err) != 0) fail_msg("%s", err->message);
  model_init(&m, 7);
  implementation_fill(&m);
  const int labels[BATCH] = {4, 0, 2};
  device_upload(device, model_labels(&m), labels, sizeof labels);
  m.context.training = 1;
  if (in_graph) step_graph_begin(&step);
  model_forward(&m, BATCH);
  model_score(&m, BATCH);
  model_backward(&m, BATCH);
  if (in_graph) step_graph_launch(&step);
  if (device == DEVICE_GPU) device_synchronize(device);
  step_graph_close(&step);
  result->count = m.parameter_count;
  result->gradients = (float *)xmalloc(result->count * sizeof(float));
  device_download(device, result->losses, m.losses[0], sizeof result->losses);
  device_download(device, result->gradients, m.gradients, result->count * sizeof(float));
  model_close(&m);
  return 0;
}

/* One after another for all layers that it fits, launch by launch and as a CUDA graph. */
static void check_methods(int bias) {
  Error err;
  Result expected, got;
  assert_int_equal(compute(&expected, "", bias, DEVICE_CPU, 0, &err), 0);
  for (int i = 0; i < 2 * conv2d_choice.count; i++) {
    if (compute(&got, conv2d_choice.list[i / 2].name, bias, DEVICE_GPU, i % 2, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(got.count, expected.count);
    assert_matrix_close(got.losses, expected.losses, 1, BATCH, 1e-4, 1e-4);
    assert_matrix_close(got.gradients, expected.gradients, 1, (int)expected.count, 1e-3, 1e-4);
    free(got.gradients);
  }
  free(expected.gradients);
}

static void every_method_computes_the_network(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_methods(1);
}

static void every_method_computes_it_without_biases(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_methods(0);
}

/* With --device=cpu a method's name changes nothing; without biases the plain loops compute the same, too. */
static void the_cpu_computes_the_same_bits(void **unused) {
  (void)unused;
  Error err;
  Result expected, got;
  for (int bias = 0; bias < 2; bias++) {
    assert_int_equal(compute(&expected, "", bias, DEVICE_CPU, 0, &err), 0);
    for (int i = 0; i < conv2d_choice.count; i++) {
      const int plain = strcmp(conv2d_choice.list[i].name, "naive") == 0; /* other sums */
      if (compute(&got, conv2d_choice.list[i].name, bias, DEVICE_CPU, 0, &err) != 0) fail_msg("%s", err.message);
      assert_matrix_close(got.losses, expected.losses, 1, BATCH, plain ? 1e-5 : 0, 0);
      assert_matrix_close(got.gradients, expected.gradients, 1, (int)expected.count, plain ? 1e-3 : 0,
                          plain ? 1e-5 : 0);
      free(got.gradients);
    }
    free(expected.gradients);
  }
}

static void names_are_those_of_the_methods(void **unused) {
  (void)unused;
  for (int i = 0; i < conv2d_choice.count; i++) {
    const Implementation *implementation = &conv2d_choice.list[i];
    if (implementation->fits == NULL) continue;
    const Conv2dMethod *method = ((const Conv2dMethodOp *)implementation->op)->method;
    assert_string_equal(implementation->name, method->name);
    assert_non_null(method->forward);
  }
}

/* `text` on a network of one layer; the sentence names a method that can. */
static void expect_refused(const char *text, Conv2dShape layer, const char *first, const char *second) {
  Error err;
  Graph *g = graph_create();
  conv2d_general(g, graph_input(g, "x", shape3(4, 13, 13)), layer);
  if (implementation_apply(&conv2d_choice, text, g, NULL, &err) == 0) fail_msg("--conv=%s was accepted", text);
  if (strstr(err.message, first) == NULL || strstr(err.message, second) == NULL) fail_msg("%s", err.message);
  int named = 0;
  const char *sentence = strstr(err.message, ": ");
  for (int i = 0; i < conv2d_choice.count; i++) {
    const Implementation *other = &conv2d_choice.list[i];
    Error why;
    named |= strstr(sentence, other->name) != NULL && implementation_fits(other, &g->nodes[1], &why) == 0;
  }
  if (!named) fail_msg("no method that can is named: %s", err.message);
  graph_destroy(g);
}

static void a_layer_that_does_not_fit_is_refused(void **unused) {
  (void)unused;
  expect_refused("depthwise", filters(6, 5, 5, 1, 2), "--conv=conv1:depthwise: ", "(6,4,5,5)");
  expect_refused("conv1:depthwise", filters(6, 5, 5, 1, 2), "--conv=conv1:depthwise: ", "(6,4,5,5)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_those_of_the_methods),          cmocka_unit_test(a_layer_that_does_not_fit_is_refused),
      cmocka_unit_test(the_cpu_computes_the_same_bits),          cmocka_unit_test(every_method_computes_the_network),
      cmocka_unit_test(every_method_computes_it_without_biases),
  };
  return TEST_MAIN("conv2d_choice_op", tests);
}
