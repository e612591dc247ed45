/* The multi-layer perceptron: its shape from text, its gradients against central differences, both devices alike. */
#include "phase2_mlp/03_mlp/mlp.cuh"

#include "common/test.h"

/* ---- from text and back ---- */

static void shapes_come_from_text_and_go_back(void **state) {
  (void)state;
  const char *const texts[] = {"784,128,10 relu",
                               "1,1 tanh",
                               "3,65536,127,2 leaky_relu",
                               "5,4,3,2,1 sigmoid",
                               "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17 relu",
                               "65536,65536,65536,65536,65536,65536,65536,65536,65536,65536,65536,65536,65536,65536,"
                               "65536,65536,65536 leaky_relu"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    Error err;
    MlpShape shape = MlpShape();
    char text[MLP_TEXT];
    if (mlp_parse(&shape, texts[i], &err) != 0) fail_msg("%s", err.message);
    mlp_text(&shape, text);
    assert_string_equal(text, texts[i]);
  }
  Error err;
  MlpShape shape = MlpShape();
  assert_int_equal(mlp_parse(&shape, "784,128,10 tanh", &err), 0);
  assert_int_equal(shape.count, 3);
  assert_int_equal(shape.width[1], 128);
  assert_int_equal(shape.activation, ACTIVATION_TANH);
}

static void what_is_no_shape_is_refused(void **state) {
  (void)state;
  const char *const wrong[][2] = {
      {"", "not a network"},
      {"784,128,10", "not a network"},
      {"784 relu", "two widths at least"},
      {"784,,10 relu", "not a list of layers"},
      {"784,0,10 relu", "not a list of layers"},
      {"784,-5,10 relu", "not a list of layers"},
      {"784,10, relu", "not a list of layers"},
      {",784,10 relu", "not a list of layers"},
      {"784;10 relu", "not a list of layers"},
      {"784,1e2,10 relu", "not a list of layers"},
      {"784,65537 relu", "not a list of layers"},
      {"784,99999999999999999999 relu", "not a list of layers"},
      {"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18 relu", "up to 17 widths"},
      {"784,10 gelu", "unknown activation \"gelu\""},
      {"784,10 relu ", "unknown activation \"relu \""},
      {"784,10  relu", "unknown activation \" relu\""},
      {"784,10 ", "unknown activation \"\""},
      {"111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111"
       "1"
       "111111111111111111111111111111111111111111 relu",
       "not a network"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Error err;
    MlpShape shape = MlpShape();
    if (mlp_parse(&shape, wrong[i][0], &err) == 0) fail_msg("\"%s\" was accepted", wrong[i][0]);
    if (strstr(err.message, wrong[i][1]) == NULL) fail_msg("\"%s\" is not said in: %s", wrong[i][1], err.message);
  }
}

/* ---- layers ---- */

static MlpShape shape_of(const char *text) {
  Error err;
  MlpShape shape = MlpShape();
  if (mlp_parse(&shape, text, &err) != 0) fail_msg("%s", err.message);
  return shape;
}

static void layers_are_named_and_initialised(void **state) {
  (void)state;
  static Model mlp;
  MlpShape shape = shape_of("300,400,200,10 tanh");
  mlp_create(&mlp, &shape, DEVICE_CPU, 1);
  Model *net = &mlp;
  const char *const names[] = {"fc1", "tanh1", "fc2", "tanh2", "fc3"};
  assert_int_equal(net->graph->count, 6); /* the input is a node, too */
  for (int i = 0; i < 5; i++) assert_string_equal(net->graph->nodes[i + 1].name, names[i]);
  assert_int_equal(net->parameter_count, 300 * 400 + 400 + 400 * 200 + 200 + 200 * 10 + 10);
  assert_int_equal(net->parameter_count, mlp_parameters(&shape));
  for (int xavier = 0; xavier < 2; xavier++) { /* of 120,000 samples: five sigma are 2 % of the variance */
    if (xavier == 0) {
      model_close(net);
      shape.activation = ACTIVATION_LEAKY_RELU;
      mlp_create(&mlp, &shape, DEVICE_CPU, 1);
      assert_string_equal(net->graph->nodes[2].name, "leaky_relu1");
    } else {
      model_close(net);
      shape.activation = ACTIVATION_SIGMOID;
      mlp_create(&mlp, &shape, DEVICE_CPU, 1);
    }
    model_init(net, 3);
    double squares = 0, expected = xavier ? 2.0 / (300 + 400) : 2.0 / 300;
    for (int i = 0; i < 300 * 400; i++) squares += (double)net->parameters[i] * net->parameters[i];
    assert_true(fabs(squares / (300 * 400) / expected - 1) < 0.02);
  }
  model_close(net);
}

/* ---- gradients ---- */

enum { CHECKED = 60 }; /* parameters of a tensor that are checked: all where it has no more */

typedef struct Case {
  const char *shape;
  int batch;
} Case;

/* Widths 1, 3, 127; batch 1; no hidden layer; deep; one class, whose loss is 0. */
static const Case cases[] = {{"5,4,3", 3},     {"1,1,2", 1},       {"3,127,1,3", 5}, {"127,3,127,5", 7}, {"7,2", 4},
                             {"33,31,10", 64}, {"4,3,3,3,3,3", 2}, {"2,3,1", 3},     {"127,127,3", 1}};

static void check_case(const Case *c, Activation activation, Device device) {
  static Model mlp;
  char text[MLP_TEXT];
  snprintf(text, sizeof text, "%s %s", c->shape, activation_name(activation));
  MlpShape shape = shape_of(text);
  int batch = c->batch, in = shape.width[0], classes = shape.width[shape.count - 1];
  mlp_create(&mlp, &shape, device, batch);
  Model *net = &mlp;
  size_t n = net->parameter_count;
  float *host = (float *)xmalloc(n * sizeof(float)), *x = (float *)xmalloc(batch * in * sizeof(float));
  float *gradients = (float *)xmalloc(n * sizeof(float));
  double *p = (double *)xmalloc(n * sizeof(double)), *x_double = (double *)xmalloc(batch * in * sizeof(double));
  int *labels = (int *)xmalloc(batch * sizeof(int));
  test_random_fill(x, batch * in, 2);
  for (int i = 0; i < batch * in; i++) x_double[i] = x[i];
  for (int i = 0; i < batch; i++) labels[i] = (int)(philox4x32(3, 0, i).word[0] % classes);
  model_init(net, 1);
  device_download(device, host, net->parameters, n * sizeof(float));
  for (int i = 0; i < net->graph->count; i++) { /* biases are 0 after that, which would hide a forgotten one */
    const Node *node = &net->graph->nodes[i];
    if (node->params) test_random_fill(host + node->param[1].offset, node->param[1].count, 4 + node->order);
  }
  for (size_t i = 0; i < n; i++) p[i] = host[i];
  device_upload(device, net->parameters, host, n * sizeof(float));
  device_upload(device, model_input(net, 0), x, batch * in * sizeof(float));
  device_upload(device, model_labels(net), labels, batch * sizeof(int));
  model_forward(net, batch);
  model_score(net, batch);
  model_backward(net, batch);
  device_download(device, gradients, net->gradients, n * sizeof(float));
  double loss = mlp_loss_cpu(&shape, p, x_double, labels, batch, NULL);
  assert_true(fabs(model_read_totals(net, 0).loss / batch - loss) <= 1e-5 * (1 + loss));

  int corners = 0, checked = 0;
  for (int i = 0; i < net->graph->count; i++) {
    const Node *node = &net->graph->nodes[i];
    if (node->params == 0) continue;
    const size_t begins[] = {node->param[0].offset, node->param[1].offset};
    const size_t counts[] = {node->param[0].count, node->param[1].count};
    for (int tensor = 0; tensor < 2; tensor++) {
      double largest = 0;
      for (size_t j = 0; j < counts[tensor]; j++) largest = fmax(largest, fabs(gradients[begins[tensor] + j]));
      assert_true(classes == 1 || largest > 1e-6 || shape.width[1] == 1); /* a gradient of zeros would prove nothing */
      for (size_t k = 0; k < counts[tensor] && k < CHECKED; k++) {
        size_t j = counts[tensor] <= CHECKED ? k : philox4x32(5, tensor, k).word[0] % counts[tensor];
        double numeric = mlp_check_gradient(&shape, p, begins[tensor] + j, x_double, labels, batch);
        checked++;
        if (isnan(numeric)) {
          corners++;
          continue;
        }
        double error = fabs(gradients[begins[tensor] + j] - numeric), allowed = 2e-5 * largest + 1e-8;
        if (!(error <= allowed))
          fail_msg("%s, batch %d, %s, %s of %s, entry %zu: %.9g, by differences %.9g (allowed: %.1e)", text, batch,
                   device_name(device), tensor ? "bias" : "weight", node->name, j,
                   (double)gradients[begins[tensor] + j], numeric, allowed);
      }
    }
  }
  assert_true(corners * 20 <= checked);
  model_close(net);
  free(host);
  free(x);
  free(gradients);
  free(p);
  free(x_double);
  free(labels);
}

static void check_all(Device device) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int kind = 0; kind < ACTIVATIONS; kind++) check_case(&cases[i], (Activation)kind, device);
}

static void gradients_cpu(void **state) {
  (void)state;
  check_all(DEVICE_CPU);
}

static void gradients_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_all(DEVICE_GPU);
}

/* y = w x + b with w = b = 0: the unit lies at the corner of ReLU, not of the sigmoid. */
static void a_corner_has_no_difference(void **state) {
  (void)state;
  double p[] = {0, 0, 1, -1, 0, 0}, x[] = {2};
  const int labels[] = {0};
  MlpShape shape = shape_of("1,1,2 relu");
  assert_true(isnan(mlp_check_gradient(&shape, p, 0, x, labels, 1)));
  assert_true(isfinite(mlp_check_gradient(&shape, p, 4, x, labels, 1)));
  shape.activation = ACTIVATION_SIGMOID;
  assert_true(isfinite(mlp_check_gradient(&shape, p, 0, x, labels, 1)));
  assert_true(p[0] == 0 && p[4] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes_come_from_text_and_go_back),
      cmocka_unit_test(what_is_no_shape_is_refused),
      cmocka_unit_test(layers_are_named_and_initialised),
      cmocka_unit_test(a_corner_has_no_difference),
      cmocka_unit_test(gradients_cpu),
      cmocka_unit_test(gradients_gpu),
  };
  return TEST_MAIN("mlp", tests);
}
