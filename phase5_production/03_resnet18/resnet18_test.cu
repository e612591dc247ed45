/* Names and shapes of the parameters; ResNet-18 with 8 channels where torchvision has 64, against PyTorch
 * (common/nn/golden.h), with batch norm folded, and in training. testdata/thin_golden.safetensors is of
 * tools/golden/network_golden.py; resnet18_torch_test has the whole network against torchvision itself. */
#include "common/nn/golden.h"
#include "phase5_production/03_resnet18/resnet18.cuh"
#include "phase5_production/03_resnet18/resnet18_weights.h"

enum { SMALL_STEPS = 2 }; /* of 20 convolutions each: enough for an emulated GPU */

static const Resnet18Shape thin = {64, 8, 10};

static void thin_open(Model *m, Device device) { sgd_model_open(m, resnet18_fused(thin), device, GOLDEN_BATCH); }

static void check_golden(Device device, int steps) {
  Model m;
  thin_open(&m, device);
  golden_check(&m, "phase5_production/03_resnet18/testdata/thin_golden.safetensors", steps);
  model_close(&m);
}

static void it_trains_as_pytorch_does_on_the_cpu(void **state) {
  (void)state;
  check_golden(DEVICE_CPU, SMALL_STEPS);
}

static void it_trains_as_pytorch_does_on_the_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_golden(DEVICE_GPU, SMALL_STEPS);
}

/* Every operation by itself computes what the fused ones do. The roundings are the same but where a sum and a ReLU are
 * taken together with the normalisation, which rounds once less: as golden_check() allows. */
static void unfused_is_the_same(void **state) {
  (void)state;
  Model fused, plain;
  float expected[GOLDEN_LOGITS], got[GOLDEN_LOGITS], largest = 0;
  const size_t count = GOLDEN_BATCH * (size_t)thin.classes;
  thin_open(&fused, DEVICE_CPU);
  sgd_model_open(&plain, resnet18_layers(thin), DEVICE_CPU, GOLDEN_BATCH);
  golden_begin(&fused);
  golden_begin(&plain);
  sgd_train_step(&fused, GOLDEN_BATCH, 0.02f, 0.9f);
  sgd_train_step(&plain, GOLDEN_BATCH, 0.02f, 0.9f);
  device_download(DEVICE_CPU, expected, model_logits(&fused, 0), count * sizeof(float));
  device_download(DEVICE_CPU, got, model_logits(&plain, 0), count * sizeof(float));
  for (size_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(expected[i]));
  assert_true(largest > 0.1f);
  assert_close(got, expected, count, 0, 2e-5 * largest);
  model_close(&plain);
  model_close(&fused);
}

/* The network that --predict uses, whose convolutions do the work of batch norm: a weight is rounded once more. */
static void check_folded(Device device) {
  Error err;
  Model m, fast;
  float expected[GOLDEN_LOGITS], got[GOLDEN_LOGITS], largest = 0;
  const size_t count = GOLDEN_BATCH * (size_t)thin.classes;
  thin_open(&m, device);
  golden_begin(&m);
  if (residual_infer(&fast, &m, GOLDEN_BATCH, &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < fast.graph->count; i++)
    assert_false(fast.graph->nodes[i].op && batch_norm2d_is(&fast.graph->nodes[i]));
  device_copy(device, model_input(&fast, 0), model_input(&m, 0),
              GOLDEN_BATCH * model_input_width(&m, 0) * sizeof(float));
  device_copy(device, model_labels(&fast), model_labels(&m), GOLDEN_BATCH * sizeof(int));
  model_evaluate_step(&m, GOLDEN_BATCH);
  model_evaluate_step(&fast, GOLDEN_BATCH);
  device_download(device, expected, model_logits(&m, 0), count * sizeof(float));
  device_download(device, got, model_logits(&fast, 0), count * sizeof(float));
  for (size_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(expected[i]));
  assert_true(largest > 0.1f);
  assert_close(got, expected, count, 0, 2e-5 * largest);
  model_close(&fast);
  model_close(&m);
}

static void folded_agrees_on_the_cpu(void **state) {
  (void)state;
  check_folded(DEVICE_CPU);
}

static void folded_agrees_on_the_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_folded(DEVICE_GPU);
}

/* Pictures of 33 x 33 with a bright quarter, which is the class: from random weights it learns them. */
static void the_loss_falls(void **state) {
  (void)state;
  enum { SIDE = 33, BATCH = 8, STEPS = 12 };
  static float x[BATCH * 3 * SIDE * SIDE];
  const Resnet18Shape shape = {SIDE, 8, 4};
  const Totals none = {0, 0};
  Model m;
  int labels[BATCH];
  double first = 0, last = 0;
  for (int n = 0; n < BATCH; n++) labels[n] = n * 3 % 4;
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
    const int column = (int)(i % SIDE), row = (int)(i / SIDE % SIDE), n = (int)(i / (3 * SIDE * SIDE));
    const int quarter = 2 * (row > SIDE / 2) + (column > SIDE / 2);
    x[i] = (quarter == labels[n]) + golden_uniform("picture", i);
  }
  sgd_model_open(&m, resnet18_fused(shape), DEVICE_CPU, BATCH);
  model_init(&m, 5);
  memcpy(model_input(&m, 0), x, sizeof x);
  memcpy(model_labels(&m), labels, sizeof labels);
  for (int step = 0; step < STEPS; step++) {
    model_reset_totals(&m, 0, none);
    sgd_train_step(&m, BATCH, 0.05f, 0.9f);
    last = model_read_totals(&m, 0).loss / BATCH;
    if (step == 0) first = last;
  }
  print_message("loss %.3f, after %d steps %.3f\n", first, STEPS, last);
  assert_true(first > 0.5);
  assert_true(last < 0.3 * first);
  model_close(&m);
}

/* Convolutions begin with the variance 2 / fan_out of torchvision, the last layer as PyTorch's. */
static void it_begins_as_torchvision_does(void **state) {
  (void)state;
  const Resnet18Shape shape = {64, 16, 10};
  const struct {
    const char *name;
    double variance;
  } expected[] = {{"conv1.weight", 2.0 / (16 * 49)},
                  {"layer1.0.conv1.weight", 2.0 / (16 * 9)},
                  {"layer4.0.conv1.weight", 2.0 / (128 * 9)},
                  {"layer4.0.downsample.0.weight", 2.0 / 128},
                  {"fc.weight", 1.0 / 3 / 128}};
  Model m;
  sgd_model_open(&m, resnet18_layers(shape), DEVICE_CPU, 2);
  model_init(&m, 7);
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    const Param *p = model_find_param(&m, expected[i].name);
    double sum = 0;
    for (size_t k = 0; k < p->count; k++) sum += (double)model_param(&m, p)[k] * model_param(&m, p)[k];
    /* of n values the mean square is off by about variance * sqrt(2 / n): six times that */
    const double error = fabs(sum / (double)p->count - expected[i].variance);
    print_message("%s: variance %.5f, expected %.5f\n", expected[i].name, sum / (double)p->count, expected[i].variance);
    assert_true(error < 6 * expected[i].variance * sqrt(2.0 / (double)p->count));
  }
  model_close(&m);
}

/* A file says for which width and how many classes it is; for another network it is refused, with both shapes. */
static void weights_say_what_they_are_for(void **state) {
  (void)state;
  Error err;
  Model m, other;
  Resnet18Weights weights;
  char path[PATH_MAX];
  const Resnet18Shape wider = {64, 8, 12};
  thin_open(&m, DEVICE_CPU);
  golden_begin(&m);
  if (state_dict_save(&m, test_path(path, sizeof path, "thin.safetensors"), &err) != 0) fail_msg("%s", err.message);
  if (resnet18_weights_open(path, &weights, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(weights.width, thin.width);
  assert_int_equal(weights.classes, thin.classes);
  thin_open(&other, DEVICE_CPU);
  if (resnet18_weights_load(&weights, &other, &err) != 0) fail_msg("%s", err.message);
  assert_memory_equal(other.parameters, m.parameters, m.parameter_count * sizeof(float));
  assert_memory_equal(other.buffers, m.buffers, m.buffer_count * sizeof(float));
  model_close(&other);
  sgd_model_open(&other, resnet18_fused(wider), DEVICE_CPU, 2);
  assert_int_equal(resnet18_weights_load(&weights, &other, &err), -1);
  assert_non_null(strstr(err.message, "tensor 'fc.weight' is F32 (10, 64), expected F32 (12, 64)"));
  resnet18_weights_close(&weights);
  model_close(&other);
  model_close(&m);
}

/* ---------------------------------------------------------------------------------------------------------- names
 *
 * Names, shapes, order and number of the parameters are torchvision's: testdata/names.txt has a line for each tensor of
 * its state_dict(), in its order (tools/golden/resnet18_golden.py names). */

enum { LINE = 256 };

/* As a line of the file: "fc.bias trained 1000". */
static void describe(const Param *p, char *text) {
  int length = snprintf(text, LINE, "%s %s", p->name, p->trained ? "trained" : "buffer");
  for (int i = 0; i < p->rank; i++) length += snprintf(text + length, LINE - (size_t)length, " %zu", p->dim[i]);
}

/* -1 before the first parameter. Returns 0 behind the last. */
static int next_line(const Graph *g, int *node, int *index, char *text) {
  while (*node < g->count && *index >= g->nodes[*node].params) {
    ++*node;
    *index = 0;
  }
  if (*node == g->count) return 0;
  describe(&g->nodes[*node].param[(*index)++], text);
  return 1;
}

static void compare_with_file(const Graph *g) {
  Error err;
  char path[PATH_MAX], expected[LINE], got[LINE];
  if (g->failed) fail_msg("%s", g->error.message);
  if (runfiles_find("phase5_production/03_resnet18/testdata/names.txt", path, sizeof path, &err) != 0)
    fail_msg("%s", err.message);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  int node = 0, index = 0, lines = 0;
  for (; fgets(expected, sizeof expected, file) != NULL; lines++) {
    expected[strcspn(expected, "\n")] = '\0';
    assert_true(next_line(g, &node, &index, got));
    assert_string_equal(got, expected);
  }
  assert_int_equal(lines, 122);
  assert_false(next_line(g, &node, &index, got));
  fclose(file);
}

static void layers_have_the_names_of_torchvision(void **state) {
  (void)state;
  Graph *g = resnet18_layers(resnet18_imagenet);
  compare_with_file(g);
  graph_destroy(g);
}

/* Fused nodes keep their parameters and names; some stand at another place of the list. */
static void fused_has_the_same_parameters(void **state) {
  (void)state;
  Graph *plain = resnet18_layers(resnet18_imagenet), *fused = resnet18_fused(resnet18_imagenet);
  assert_int_equal(fused->count, plain->count);
  for (int i = 0; i < plain->count; i++) {
    char expected[LINE], got[LINE];
    const int at = graph_find(fused, plain->nodes[i].name);
    assert_true(at >= 0);
    assert_int_equal(fused->nodes[at].params, plain->nodes[i].params);
    for (int k = 0; k < plain->nodes[i].params; k++) {
      describe(&plain->nodes[i].param[k], expected);
      describe(&fused->nodes[at].param[k], got);
      assert_string_equal(got, expected);
    }
  }
  graph_destroy(plain);
  graph_destroy(fused);
}

static size_t trained(const Graph *g) {
  size_t count = 0;
  for (int i = 0; i < g->count; i++)
    for (int k = 0; k < g->nodes[i].params; k++) count += g->nodes[i].param[k].trained ? g->nodes[i].param[k].count : 0;
  return count;
}

static void expect_output(const Graph *g, const char *name, Shape shape) {
  const int node = graph_find(g, name);
  assert_true(node >= 0);
  assert_string_equal(shape_text(g->nodes[node].shape).text, shape_text(shape).text);
}

static void it_has_11689512_parameters_and_the_shapes_of_its_comment(void **state) {
  (void)state;
  Graph *g = resnet18_layers(resnet18_imagenet);
  assert_int_equal(trained(g), RESNET18_PARAMETERS);
  assert_int_equal(g->count, 69);
  expect_output(g, "conv1", shape3(64, 112, 112));
  expect_output(g, "maxpool", shape3(64, 56, 56));
  expect_output(g, "layer1.1.relu2", shape3(64, 56, 56));
  expect_output(g, "layer2.1.relu2", shape3(128, 28, 28));
  expect_output(g, "layer3.1.relu2", shape3(256, 14, 14));
  expect_output(g, "layer4.1.relu2", shape3(512, 7, 7));
  expect_output(g, "avgpool", shape1(512));
  expect_output(g, "fc", shape1(1000));
  double flops = 0;
  for (int i = 0; i < g->count; i++) flops += g->nodes[i].flops;
  assert_true(flops == 2 * 1814073344.0); /* torchvision's documentation: 1.81 G multiplications and additions */
  graph_destroy(g);
}

static void any_side_will_do(void **state) {
  (void)state;
  const int sides[] = {1, 33, 64, 225};
  for (int i = 0; i < 4; i++) {
    const Resnet18Shape shape = {sides[i], 8, 10};
    Graph *g = resnet18_fused(shape);
    if (g->failed) fail_msg("%s", g->error.message);
    expect_output(g, "avgpool", shape1(64));
    graph_destroy(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_have_the_names_of_torchvision),
                                     cmocka_unit_test(fused_has_the_same_parameters),
                                     cmocka_unit_test(it_has_11689512_parameters_and_the_shapes_of_its_comment),
                                     cmocka_unit_test(any_side_will_do),
                                     cmocka_unit_test(it_trains_as_pytorch_does_on_the_cpu),
                                     cmocka_unit_test(it_trains_as_pytorch_does_on_the_gpu),
                                     cmocka_unit_test(unfused_is_the_same),
                                     cmocka_unit_test(folded_agrees_on_the_cpu),
                                     cmocka_unit_test(folded_agrees_on_the_gpu),
                                     cmocka_unit_test(the_loss_falls),
                                     cmocka_unit_test(it_begins_as_torchvision_does),
                                     cmocka_unit_test(weights_say_what_they_are_for)};
  return TEST_MAIN("resnet18", tests);
}
