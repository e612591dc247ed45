/* A small network end to end: its gradients against central differences in double, its memory layout, its totals. */
#include "phase2_mlp/network.cuh"

#include "common/test.h"

enum { IN = 5, HIDDEN = 4, OUT = 3, BATCH = 3, PARAMETERS = HIDDEN * IN + HIDDEN + OUT * HIDDEN + OUT };

typedef struct Mlp {
  LinearLayer fc1;
  ReluLayer relu;
  LinearLayer fc2;
  Network network;
} Mlp;

static void mlp_create(Mlp *mlp, Device device) {
  mlp->fc1 = linear_layer("fc1", IN, HIDDEN);
  mlp->relu = relu_layer("relu", HIDDEN);
  mlp->fc2 = linear_layer("fc2", HIDDEN, OUT);
  Layer *layers[] = {&mlp->fc1.base, &mlp->relu.base, &mlp->fc2.base};
  network_create(&mlp->network, device, layers, 3, BATCH + 2);
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
  Mlp mlp;
  mlp_create(&mlp, device);
  Network *net = &mlp.network;
  assert_int_equal(net->parameter_count, PARAMETERS);
  float parameters[PARAMETERS], x[BATCH * IN], gradients[PARAMETERS], expected[PARAMETERS];
  const int labels[BATCH] = {2, 0, 2};
  test_random_fill(parameters, PARAMETERS, 1);
  test_random_fill(x, BATCH * IN, 2);
  device_upload(device, net->parameters, parameters, sizeof parameters);
  device_upload(device, net->activations[0], x, sizeof x);
  device_upload(device, net->labels, labels, sizeof labels);
  network_forward(net, BATCH);
  network_score(net, BATCH);
  network_backward(net, BATCH);
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
  Totals totals = network_read_totals(net);
  assert_true(fabs(totals.loss / BATCH - loss_of(p, x, labels)) < 1e-5);

  /* Totals add up from batch to batch, and start again when told. */
  network_score(net, BATCH);
  assert_true(fabs(network_read_totals(net).loss - 2 * totals.loss) < 1e-5);
  assert_true(network_read_totals(net).correct == 2 * totals.correct);
  Totals begin = {0.5, 7};
  network_reset_totals(net, begin);
  network_score(net, BATCH);
  assert_true(fabs(network_read_totals(net).loss - totals.loss - 0.5) < 1e-5);
  assert_true(network_read_totals(net).correct == totals.correct + 7);

  /* An update moves against the gradient; the second one has momentum. */
  float once[PARAMETERS], twice[PARAMETERS];
  network_update(net, 0.1f, 0.5f);
  device_download(device, once, net->parameters, sizeof once);
  network_update(net, 0.1f, 0.5f);
  device_download(device, twice, net->parameters, sizeof twice);
  for (int i = 0; i < PARAMETERS; i++) expected[i] = parameters[i] - 0.1f * gradients[i];
  assert_close(once, expected, PARAMETERS, 1e-6, 1e-6);
  for (int i = 0; i < PARAMETERS; i++) expected[i] = once[i] - 0.1f * 1.5f * gradients[i];
  assert_close(twice, expected, PARAMETERS, 1e-6, 1e-6);
  network_destroy(net);
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
  Mlp mlp;
  mlp_create(&mlp, DEVICE_CPU);
  Network *net = &mlp.network;
  assert_ptr_equal(mlp.fc1.base.weight, net->parameters);
  assert_ptr_equal(mlp.fc1.base.bias, net->parameters + HIDDEN * IN);
  assert_ptr_equal(mlp.fc2.base.weight, net->parameters + HIDDEN * IN + HIDDEN);
  assert_ptr_equal(mlp.fc2.base.bias_grad, net->gradients + PARAMETERS - OUT);
  assert_ptr_equal(net->activations[2], net->activations[1]); /* ReLU works in place */
  network_destroy(net);
}

static void initialisation_is_he(void **state) {
  (void)state;
  enum { WIDE = 400 };
  LinearLayer a = linear_layer("a", WIDE, WIDE), b = linear_layer("b", WIDE, WIDE);
  Layer *layers[] = {&a.base, &b.base};
  Network net, other;
  network_create(&net, DEVICE_CPU, layers, 2, 1);
  network_init(&net, 5);
  double sum = 0, squares = 0;
  size_t n = a.base.weight_count;
  for (size_t i = 0; i < n; i++) {
    sum += b.base.weight[i];
    squares += (double)b.base.weight[i] * b.base.weight[i];
  }
  double variance = squares / n, expected = 2.0 / WIDE; /* of 160,000 samples: five sigma are 1.8 % */
  assert_true(fabs(variance / expected - 1) < 0.018);
  assert_true(fabs(sum / n) < 5 * sqrt(expected / n));
  for (int i = 0; i < WIDE; i++) assert_true(a.base.bias[i] == 0);
  assert_memory_not_equal(a.base.weight, b.base.weight, n * sizeof(float)); /* layers do not start alike */
  float first = a.base.weight[0];
  network_destroy(&net);
  network_create(&other, DEVICE_CPU, layers, 2, 1);
  network_init(&other, 6);
  assert_true(a.base.weight[0] != first);
  network_init(&other, 5);
  assert_true(a.base.weight[0] == first);
  network_destroy(&other);
}

/* Parameters and velocity of an earlier use do not stay. */
static void check_init(Device device) {
  Mlp mlp;
  float used[PARAMETERS], velocity[PARAMETERS], bias[OUT];
  test_random_fill(used, PARAMETERS, 3);
  mlp_create(&mlp, device);
  device_upload(device, mlp.network.parameters, used, sizeof used);
  device_upload(device, mlp.network.velocity, used, sizeof used);
  network_init(&mlp.network, 1);
  device_download(device, velocity, mlp.network.velocity, sizeof velocity);
  device_download(device, bias, mlp.fc2.base.bias, sizeof bias);
  for (int i = 0; i < PARAMETERS; i++) assert_true(velocity[i] == 0);
  for (int i = 0; i < OUT; i++) assert_true(bias[i] == 0);
  network_destroy(&mlp.network);
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

static void mismatched_layers(void) {
  LinearLayer a = linear_layer("fc1", 3, 4), b = linear_layer("fc2", 5, 6);
  Layer *layers[] = {&a.base, &b.base};
  Network net;
  network_create(&net, DEVICE_CPU, layers, 2, 1);
}

static void layers_that_do_not_fit_are_named(void **state) {
  (void)state;
  char output[512];
  assert_int_equal(test_fork(mismatched_layers, output, sizeof output), 1);
  assert_non_null(strstr(output, "layer fc2 takes 5 floats a sample, but fc1 before it gives 4"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_cpu),
      cmocka_unit_test(parameters_lie_layer_by_layer),
      cmocka_unit_test(initialisation_is_he),
      cmocka_unit_test(initialisation_starts_from_rest_cpu),
      cmocka_unit_test(layers_that_do_not_fit_are_named),
      cmocka_unit_test(gradients_gpu), /* the last two: a fork() after CUDA's start would be no use to the child */
      cmocka_unit_test(initialisation_starts_from_rest_gpu),
  };
  return TEST_MAIN("network", tests);
}
