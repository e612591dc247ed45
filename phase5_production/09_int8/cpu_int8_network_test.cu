/* cpu_int8_network_test.cu - a network of int8 operations gives the same logits by the loops and by the CPU's
 * kernels in blocks, to the bit, on every kind of processor that this machine can stand in for.
 */
#include "common/test_arrays.h"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase5_production/03_resnet18/resnet18.cuh"
#include "phase5_production/09_int8/cpu_int8_blocks.cuh"
#include "phase5_production/09_int8/int8_calibrate.cuh"
#include "phase5_production/09_int8/test_cpu_int8.h"

enum { BATCH = 3 };

static Context on_the_cpu(void) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = DEVICE_CPU;
  return context;
}

/* As int8_open(), in blocks or not. */
static void open_narrow(Model *m, const Model *whole, const Int8Scale *scale, bool blocks) {
  Int8Store store = {};
  const Int8ModelWeights from = {whole, batch_norm2d_fold_host(whole)};
  const Int8Weights weights = {int8_find_in_model, &from, NULL};
  Error err;
  Graph *g = int8_lower(whole->graph, scale, weights, DEVICE_CPU, &store, &err);
  if (g == NULL) fail_msg("%s", err.message);
  if (blocks) assert_int_equal(cpu_int8_blocks(g), 1);
  if (model_open(m, g, on_the_cpu(), NULL, BATCH, MODEL_INFER, &err) != 0) fail_msg("%s", err.message);
  int8_copy_parameters(m, whole);
  if (int8_store_fill(&store, m, &err) != 0) fail_msg("%s", err.message);
  free(from.host);
  int8_store_free(&store);
}

static void forward(float *logits, const Model *m, const float *x, size_t classes) {
  memcpy(model_input(m, 0), x, BATCH * model_input_width(m, 0) * sizeof *x);
  model_forward(m, BATCH);
  memcpy(logits, model_logits(m, 0), BATCH * classes * sizeof *logits);
}

/* `first`: the first layer is int8, too. */
static void expect_same_logits(Graph *layers, size_t classes, int first) {
  Model whole, narrow;
  Error err;
  if (model_open(&whole, int8_prepare(layers), on_the_cpu(), NULL, BATCH, MODEL_INFER, &err) != 0)
    fail_msg("%s", err.message);
  model_init(&whole, 3);
  const size_t width = BATCH * model_input_width(&whole, 0);
  float *x = arrays_random(width, 5), *expected = arrays_poison(BATCH * classes), *y = arrays_poison(BATCH * classes);
  Int8Scale *scale = (Int8Scale *)xmalloc((size_t)whole.graph->count * sizeof *scale);
  Int8Calibration c = int8_calibration(whole.graph);
  const Int8Choice choice = {CALIBRATE_MIN_MAX, 0, first, 0};
  forward(expected, &whole, x, classes);
  int8_observe(&c, &whole, BATCH, 0);
  int8_observe(&c, &whole, BATCH, 1);
  int8_scales(scale, &c, whole.graph, &choice);
  int8_calibration_free(&c);
  open_narrow(&narrow, &whole, scale, false);
  forward(expected, &narrow, x, classes);
  model_close(&narrow);
  for (size_t k = 0; k < sizeof all_kernels / sizeof *all_kernels; k++) {
    if (cpu_int8_kernels(all_kernels[k]) == NULL) continue;
    open_narrow(&narrow, &whole, scale, true);
    for (int run = 0; run < 2; run++) {
      compare_poison(y, BATCH * classes);
      forward(y, &narrow, x, classes);
      const Comparison is = compare_arrays(y, expected, BATCH, classes, tolerance_make(0, 0));
      if (!is.ok) fail_msg("%s, run %d: %s", all_kernels[k], run, is.message);
    }
    model_close(&narrow);
  }
  cpu_int8_kernels(NULL);
  model_close(&whole);
  free(x), free(y), free(expected), free(scale);
}

static void resnet18_has_the_logits_of_the_loops(void **state) {
  (void)state;
  const Resnet18Shape thin = {32, 16, 10};
  expect_same_logits(resnet18_layers(thin), 10, 0);
  expect_same_logits(resnet18_layers(thin), 10, 1);
}

static void lenet_has_the_logits_of_the_loops(void **state) {
  (void)state;
  expect_same_logits(lenet_layers(), 10, 1);
}

/* An int8 array that another operation reads: such a graph stays as it is. */
static void a_graph_that_does_not_fit_stays(void **state) {
  (void)state;
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(3, 4, 4));
  Node node;
  memset(&node, 0, sizeof node);
  node.op = &int8_quantize_op;
  node.inputs = 1;
  node.input[0] = x;
  node.shape = shape3(3, 4, 4);
  node.type = DTYPE_INT8;
  node.layout = LAYOUT_CHANNELS_LAST;
  x = graph_add(g, &node);
  relu(g, x);
  assert_int_equal(cpu_int8_blocks(g), 0);
  assert_ptr_equal(g->nodes[x].op, &int8_quantize_op);
  graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_log_has_the_kernels),
      cmocka_unit_test(resnet18_has_the_logits_of_the_loops),
      cmocka_unit_test(lenet_has_the_logits_of_the_loops),
      cmocka_unit_test(a_graph_that_does_not_fit_stays),
  };
  return TEST_MAIN("cpu_int8_network", tests);
}
