/* ResNet-18 with 8 channels where torchvision has 64, against PyTorch (common/nn/golden.h), with batch norm folded, and
 * in training. testdata/thin_golden.safetensors is of tools/golden/network_golden.py; resnet18_torch_test has the whole
 * network against torchvision itself. */
#include "common/nn/golden.h"
#include "phase5_production/03_resnet18/resnet18.cuh"

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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(it_trains_as_pytorch_does_on_the_cpu),
                                     cmocka_unit_test(it_trains_as_pytorch_does_on_the_gpu),
                                     cmocka_unit_test(unfused_is_the_same),
                                     cmocka_unit_test(folded_agrees_on_the_cpu),
                                     cmocka_unit_test(folded_agrees_on_the_gpu),
                                     cmocka_unit_test(the_loss_falls),
                                     cmocka_unit_test(it_begins_as_torchvision_does)};
  return TEST_MAIN("resnet18", tests);
}
