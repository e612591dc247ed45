/* A network with int8: the scales from pictures, the graph, its numbers on either device, beside float32. */
#include "common/philox.h"
#include "common/test_arrays.h"
#include "phase5_production/03_resnet18/resnet18.cuh"
#include "phase5_production/09_int8/int8_calibrate.cuh"
#include "phase5_production/09_int8/int8_compare.cuh"

static const Resnet18Shape thin = {32, 16, 10};
enum { BATCH = 4, BATCHES = 8 /* for the scales */ };

static Context context_of(Device device) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  return context;
}

static void fill_pictures(const Model *m, uint64_t seed) {
  const size_t n = (size_t)BATCH * model_input_width(m, 0);
  float *x = arrays_random(n, seed);
  device_upload(m->context.device, model_input(m, 0), x, n * sizeof *x);
  free(x);
}

/* ResNet-18, thin, without batch norms, with random weights. */
static void open_whole(Model *m, Device device) {
  Error err;
  Graph *g = int8_prepare(resnet18_layers(thin));
  if (model_open(m, g, context_of(device), NULL, BATCH, MODEL_INFER, &err) != 0) fail_msg("%s", err.message);
  model_init(m, 3);
}

static Int8Scale *scales_of(const Model *whole, Int8Choice choice) {
  Int8Calibration c = int8_calibration(whole->graph);
  Int8Scale *scale = (Int8Scale *)xmalloc((size_t)whole->graph->count * sizeof *scale);
  for (int i = 0; i < 2 * BATCHES; i++) { /* all twice */
    fill_pictures(whole, 10 + i % BATCHES);
    int8_observe(&c, whole, BATCH, i / BATCHES);
  }
  int8_scales(scale, &c, whole->graph, &choice);
  int8_calibration_free(&c);
  return scale;
}

static float *logits_of(const Model *m, uint64_t seed) {
  float *y = (float *)xmalloc(BATCH * 10 * sizeof *y);
  fill_pictures(m, seed);
  model_forward(m, BATCH);
  device_download(m->context.device, y, model_logits(m, 0), BATCH * 10 * sizeof *y);
  return y;
}

static int count_op(const Graph *g, const Op *op) {
  int count = 0;
  for (int i = 0; i < g->count; i++) count += g->nodes[i].op == op;
  return count;
}

static void expect_network(Device device, Int8Choice choice, int stem_int8, int stems, int convs, double least) {
  Model whole, narrow;
  Error err;
  open_whole(&whole, device);
  Int8Scale *scale = scales_of(&whole, choice);
  if (int8_open_model(&narrow, &whole, scale, BATCH, false, stem_int8, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(count_op(narrow.graph, &int8_stem_op), stems);
  assert_int_equal(count_op(narrow.graph, &int8_conv_op), convs);
  assert_int_equal(count_op(narrow.graph, &int8_add_op), 0);
  float *expected = logits_of(&whole, 6), *y = logits_of(&narrow, 6);
  const double similar = int8_difference(expected, y, BATCH * 10).cosine;
  Int8Layer *layers = (Int8Layer *)xmalloc((size_t)narrow.graph->count * sizeof *layers);
  const int count = int8_compare(layers, &whole, &narrow, scale, BATCH);
  assert_true(count >= convs);
  if (!(similar >= least)) int8_print_layers(stderr, &narrow, layers, count);
  free(layers);
  if (!(similar >= least)) fail_msg("the cosine of the logits is %.5f; at least %.5f was expected", similar, least);
  free(scale);
  free(expected);
  free(y);
  model_close(&whole);
  model_close(&narrow);
}

static void resnet18_on_the_cpu(void **state) {
  (void)state;
  const Int8Choice usual = {CALIBRATE_MIN_MAX, 0, 0, 0}, whole_sums = {CALIBRATE_ENTROPY, 0, 0, 1};
  const Int8Choice first = {CALIBRATE_PERCENTILE, 0, 1, 0};
  expect_network(DEVICE_CPU, usual, 0, 0, 20, 0.998);
  expect_network(DEVICE_CPU, whole_sums, 0, 0, 20, 0.995);
  expect_network(DEVICE_CPU, first, 0, 0, 21, 0.995);
}

static void resnet18_on_the_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  const Int8Choice usual = {CALIBRATE_MIN_MAX, 0, 0, 0};
  const Int8Choice first = {CALIBRATE_MIN_MAX, 0, 1, 0};
  expect_network(DEVICE_GPU, usual, 0, 1, 20, 0.998);
  expect_network(DEVICE_GPU, first, 0, 1, 20, 0.998);
  expect_network(DEVICE_GPU, first, 1, 1, 20, 0.998);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(resnet18_on_the_cpu),
      cmocka_unit_test(resnet18_on_the_gpu),
  };
  return TEST_MAIN("int8_network", tests);
}
