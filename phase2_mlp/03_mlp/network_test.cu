/* A small network end to end: its gradients against central differences in double, its memory layout, its totals. */
#include "phase2_mlp/03_mlp/mlp.cuh"

#include "common/test.h"

enum { IN = 5, HIDDEN = 4, OUT = 3, BATCH = 3, PARAMETERS = HIDDEN * IN + HIDDEN + OUT * HIDDEN + OUT };

static void small_create(Model *net, Device device) {
  const MlpShape shape = {3, {IN, HIDDEN, OUT}, ACTIVATION_RELU};
  mlp_create(net, &shape, device, BATCH + 2);
}

static float *parameter(const Model *net, const char *name) {
  const Param *p = model_find_param(net, name);
  assert_non_null(p);
  return model_param(net, p);
}

/* The mean loss of the same network in double, from the formulas. p: w1 (HIDDEN,IN), b1, w2 (OUT,HIDDEN), b2. */
static double loss_of(const double *p, const float *x, const int *labels) {
  const double *w1 = p, *b1 = w1 + HIDDEN * IN, *w2 = b1 + HIDDEN, *b2 = w2 + OUT * HIDDEN;
  double loss = 0;
  for (int n = 0; n < BATCH; n++) {
    double h[HIDDEN], logits[OUT], sum = 0;
    for (int i = 0; i < HIDDEN; i++) {
      h[i] = b1[i];
      for (int j = 0; j < IN; j++) h[i] += w1[i * IN + j] * x[n * IN + j];
      if (h[i] < 0) h[i] = 0;
    }
    for (int i = 0; i < OUT; i++) {
      logits[i] = b2[i];
      for (int j = 0; j < HIDDEN; j++) logits[i] += w2[i * HIDDEN + j] * h[j];
      sum += exp(logits[i]);
    }
    loss += log(sum) - logits[labels[n]];
  }
  return loss / BATCH;
}

static void check_gradients(Device device) {
  Model mlp, *net = &mlp;
  small_create(net, device);
  assert_int_equal(net->parameter_count, PARAMETERS);
  float parameters[PARAMETERS], x[BATCH * IN], gradients[PARAMETERS], expected[PARAMETERS];
  const int labels[BATCH] = {2, 0, 2};
  test_random_fill(parameters, PARAMETERS, 1);
  test_random_fill(x, BATCH * IN, 2);
  device_upload(device, net->parameters, parameters, sizeof parameters);
  device_upload(device, model_input(net, 0), x, sizeof x);
  device_upload(device, model_labels(net), labels, sizeof labels);
  model_forward(net, BATCH);
  model_score(net, BATCH);
  model_backward(net, BATCH);
  device_download(device, gradients, net->gradients, sizeof gradients);

  double p[PARAMETERS], h = 1e-6;
  for (int i = 0; i < PARAMETERS; i++) p[i] = parameters[i];
  for (int i = 0; i < PARAMETERS; i++) {
    p[i] = parameters[i] + h;
    double above = loss_of(p, x, labels);
    p[i] = parameters[i] - h;
    expected[i] = (float)((above - loss_of(p, x, labels)) / (2 * h));
    p[i] = parameters[i];
  }
  assert_close(gradients, expected, PARAMETERS, 1e-4, 1e-6);
  Totals totals = model_read_totals(net, 0);
  assert_true(fabs(totals.loss / BATCH - loss_of(p, x, labels)) < 1e-5);

  /* Totals add up from batch to batch, and start again when told. */
  model_score(net, BATCH);
  assert_true(fabs(model_read_totals(net, 0).loss - 2 * totals.loss) < 1e-5);
  assert_true(model_read_totals(net, 0).correct == 2 * totals.correct);
  Totals begin = {0.5, 7};
  model_reset_totals(net, 0, begin);
  model_score(net, BATCH);
  assert_true(fabs(model_read_totals(net, 0).loss - totals.loss - 0.5) < 1e-5);
  assert_true(model_read_totals(net, 0).correct == totals.correct + 7);

  /* An update moves against the gradient; the second one has momentum. */
  float once[PARAMETERS], twice[PARAMETERS];
  sgd_update(net, 0.1f, 0.5f);
  device_download(device, once, net->parameters, sizeof once);
  sgd_update(net, 0.1f, 0.5f);
  device_download(device, twice, net->parameters, sizeof twice);
  for (int i = 0; i < PARAMETERS; i++) expected[i] = parameters[i] - 0.1f * gradients[i];
  assert_close(once, expected, PARAMETERS, 1e-6, 1e-6);
  for (int i = 0; i < PARAMETERS; i++) expected[i] = once[i] - 0.1f * 1.5f * gradients[i];
  assert_close(twice, expected, PARAMETERS, 1e-6, 1e-6);
  model_close(net);
}

static void gradients_cpu(void **state) {
  (void)state;
  check_gradients(DEVICE_CPU);
}

static void gradients_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_gradients(DEVICE_GPU);
}

static void parameters_lie_layer_by_layer(void **state) {
  (void)state;
  Model mlp, *net = &mlp;
  small_create(net, DEVICE_CPU);
  assert_ptr_equal(parameter(net, "fc1.weight"), net->parameters);
  assert_ptr_equal(parameter(net, "fc1.bias"), net->parameters + HIDDEN * IN);
  assert_ptr_equal(parameter(net, "fc2.weight"), net->parameters + HIDDEN * IN + HIDDEN);
  assert_ptr_equal(model_gradient(net, model_find_param(net, "fc2.bias")), net->gradients + PARAMETERS - OUT);
  assert_null(model_find_param(net, "fc3.bias"));
  assert_ptr_equal(model_output(net, 2), model_output(net, 1)); /* ReLU works in place */
  model_close(net);
}

static void initialisation_is_he(void **state) {
  (void)state;
  enum { WIDE = 400 };
  const MlpShape shape = {3, {WIDE, WIDE, WIDE}, ACTIVATION_RELU};
  Model net, other;
  mlp_create(&net, &shape, DEVICE_CPU, 1);
  model_init(&net, 5);
  const float *first = parameter(&net, "fc1.weight"), *second = parameter(&net, "fc2.weight");
  const float *bias = parameter(&net, "fc1.bias");
  double sum = 0, squares = 0;
  const size_t n = WIDE * WIDE;
  for (size_t i = 0; i < n; i++) {
    sum += second[i];
    squares += (double)second[i] * second[i];
  }
  double variance = squares / n, expected = 2.0 / WIDE; /* of 160,000 samples: five sigma are 1.8 % */
  assert_true(fabs(variance / expected - 1) < 0.018);
  assert_true(fabs(sum / n) < 5 * sqrt(expected / n));
  for (int i = 0; i < WIDE; i++) assert_true(bias[i] == 0);
  assert_memory_not_equal(first, second, n * sizeof(float)); /* layers do not start alike */
  const float one = first[0];
  model_close(&net);
  mlp_create(&other, &shape, DEVICE_CPU, 1);
  model_init(&other, 6);
  assert_true(parameter(&other, "fc1.weight")[0] != one);
  model_init(&other, 5);
  assert_true(parameter(&other, "fc1.weight")[0] == one);
  model_close(&other);
}

/* Parameters and velocity of an earlier use do not stay. */
static void check_init(Device device) {
  Model mlp;
  float used[PARAMETERS], velocity[PARAMETERS], bias[OUT];
  test_random_fill(used, PARAMETERS, 3);
  small_create(&mlp, device);
  device_upload(device, mlp.parameters, used, sizeof used);
  device_upload(device, mlp.slot[0], used, sizeof used);
  model_init(&mlp, 1);
  device_download(device, velocity, mlp.slot[0], sizeof velocity);
  device_download(device, bias, parameter(&mlp, "fc2.bias"), sizeof bias);
  for (int i = 0; i < PARAMETERS; i++) assert_true(velocity[i] == 0);
  for (int i = 0; i < OUT; i++) assert_true(bias[i] == 0);
  model_close(&mlp);
}

static void initialisation_starts_from_rest_cpu(void **state) {
  (void)state;
  check_init(DEVICE_CPU);
}

static void initialisation_starts_from_rest_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_init(DEVICE_GPU);
}

/* Each by its name, within its bounds, and the bias is not the weight's beginning. PyTorch's: 1 / sqrt(100 inputs). */
static void initialisations_have_names(void **state) {
  (void)state;
  const char *const names[] = {"he_normal", "he_uniform", "xavier_normal", "xavier_uniform", "torch", "zero", "one"};
  const double scale[] = {sqrt(2.0 / 100), sqrt(2.0 / 100), sqrt(2.0 / 150), sqrt(2.0 / 150), 0.1 / sqrt(3), 0, 1};
  const Init *init = NULL;
  Error err;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (init_named(names[i], &init, &err) != 0) fail_msg("%s", err.message);
    Model net;
    Graph *g = graph_create();
    g->weight_init = init;
    graph_loss(g, &cross_entropy_loss, linear(g, graph_input(g, "x", shape1(100)), 50), 1);
    sgd_model_open(&net, g, DEVICE_CPU, 1);
    model_init(&net, 3);
    const float *w = parameter(&net, "fc1.weight"), *bias = parameter(&net, "fc1.bias");
    double squares = 0;
    for (int k = 0; k < 5000; k++) squares += (double)w[k] * w[k];
    if (!(fabs(sqrt(squares / 5000) - scale[i]) <= 0.05 * scale[i]))
      fail_msg("%s: root mean square %g, expected %g", names[i], sqrt(squares / 5000), scale[i]);
    for (int k = 0; k < 50; k++) assert_true(init == &torch_default ? fabsf(bias[k]) <= 0.1f : bias[k] == 0);
    if (init == &torch_default) assert_memory_not_equal(bias, w, 50 * sizeof(float));
    model_close(&net);
  }
  assert_int_equal(init_named("he", &init, &err), -1);
  assert_non_null(strstr(err.message, "unknown initialisation \"he\"; expected he_normal, he_uniform"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_cpu),
      cmocka_unit_test(parameters_lie_layer_by_layer),
      cmocka_unit_test(initialisation_is_he),
      cmocka_unit_test(initialisations_have_names),
      cmocka_unit_test(initialisation_starts_from_rest_cpu),
      cmocka_unit_test(gradients_gpu), /* the last two: a fork() after CUDA's start would be no use to the child */
      cmocka_unit_test(initialisation_starts_from_rest_gpu),
  };
  return TEST_MAIN("network", tests);
}
