/* LeNet-5 with its operations computed together, and one by one: the same names, losses and gradients, fewer
 * launches. */
#include "common/philox.h"
#include "common/test.h"
#include "phase3_cnn/11_residual/add_op.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"

enum { BATCH = 5 };

typedef struct Result {
  float losses[BATCH], *gradients;
  size_t count;
} Result;

static Result compute(Graph *g, Device device) {
  Model m;
  Result result;
  sgd_model_open(&m, g, device, BATCH);
  model_init(&m, 3);
  float x[BATCH * 784];
  int labels[BATCH];
  for (int i = 0; i < BATCH * 784; i++) x[i] = 2 * philox_uniform(philox4x32(1, 2, (uint64_t)i).word[0]) - 1;
  for (int i = 0; i < BATCH; i++) labels[i] = 3 * i % 10;
  device_upload(device, model_input(&m, 0), x, sizeof x);
  device_upload(device, model_labels(&m), labels, sizeof labels);
  m.context.training = 1;
  model_forward(&m, BATCH);
  model_score(&m, BATCH);
  model_backward(&m, BATCH);
  result.count = m.parameter_count;
  result.gradients = (float *)xmalloc(result.count * sizeof(float));
  device_download(device, result.losses, m.losses[0], sizeof result.losses);
  device_download(device, result.gradients, m.gradients, result.count * sizeof(float));
  model_close(&m);
  return result;
}

static void check_results(Device device) {
  Result expected = compute(lenet_layers(), device), got = compute(lenet_graph(), device);
  assert_memory_equal(got.losses, expected.losses, sizeof got.losses);
  assert_matrix_close(got.gradients, expected.gradients, 1, (int)got.count, 1e-6, 1e-6); /* dbias: another order */
  free(expected.gradients);
  free(got.gradients);
}

static void the_cpu_computes_the_same(void **unused) {
  (void)unused;
  check_results(DEVICE_CPU);
}

static void the_gpu_computes_the_same(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_results(DEVICE_GPU);
}

static void names_and_random_numbers_stay(void **unused) {
  (void)unused;
  Graph *one_by_one = lenet_layers(), *fused = lenet_graph();
  int passed = 0;
  assert_int_equal(fused->count, one_by_one->count);
  for (int i = 0; i < fused->count; i++) {
    assert_string_equal(fused->nodes[i].name, one_by_one->nodes[i].name);
    assert_int_equal(fused->nodes[i].order, one_by_one->nodes[i].order);
    if (fused->nodes[i].op) assert_string_equal(fused->nodes[i].op->name, one_by_one->nodes[i].op->name);
    passed += fused->nodes[i].op == &relu_passed_op;
  }
  assert_int_equal(passed, 4); /* every ReLU */
  graph_destroy(one_by_one);
  graph_destroy(fused);
}

/* What another node, a loss or people read as well stays what it is. */
static void what_is_read_twice_is_not_fused(void **unused) {
  (void)unused;
  for (int who = 0; who < 3; who++) {
    Graph *g = graph_create();
    const int x = graph_input(g, "x", shape1(8)), layer = linear(g, x, 6), bent = relu(g, layer);
    if (who == 0) linear(g, layer, 2);
    if (who == 1) graph_output(g, layer);
    graph_fuse(g, lenet_fusions, 1);
    assert_ptr_equal(g->nodes[layer].op, who == 2 ? &linear_relu_op : &linear_op);
    assert_ptr_equal(g->nodes[bent].op, who == 2 ? &relu_passed_op : &activation_ops[ACTIVATION_RELU]);
    graph_destroy(g);
  }
}

/* 0 and 1: the next operation writes over its input where it may, but backward of the fused layer still reads that.
 * 2: two nodes read what is before the ReLU of a pool, and each gives it a gradient. 3: windows of 16 x 16, which the
 * fused pool does not take. */
static Graph *awkward(int which) {
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(1, 28, 28));
  if (which == 3) {
    x = max_pool2d(g, relu(g, conv2d(g, x, 2, 5, 1, 2)), 16, 12);
  } else if (which < 2) {
    x = linear(g, max_pool2d(g, x, 4, 4), 12);
    const int bent = relu(g, linear(g, x, 12));
    x = which == 0 ? add(g, bent, x) : activation(g, bent, ACTIVATION_SIGMOID);
  } else {
    const int layer = conv2d(g, x, 2, 5, 1, 0);
    x = add(g, max_pool2d(g, relu(g, layer), 2, 2), max_pool2d(g, layer, 2, 2));
  }
  graph_loss(g, &cross_entropy_loss, linear(g, x, 10), 1);
  return g;
}

static void what_backward_needs_is_kept(void **unused) {
  (void)unused;
  for (int which = 0; which < 4; which++) {
    Graph *g = awkward(which);
    graph_fuse(g, lenet_fusions, sizeof lenet_fusions / sizeof *lenet_fusions);
    Result expected = compute(awkward(which), DEVICE_CPU), got = compute(g, DEVICE_CPU);
    assert_memory_equal(got.losses, expected.losses, sizeof got.losses);
    for (size_t i = 0; i < got.count; i++)
      if (!(fabsf(got.gradients[i] - expected.gradients[i]) <= 1e-6f * (1 + fabsf(expected.gradients[i]))))
        fail_msg("network %d, gradient %zu: %g, expected %g", which, i, got.gradients[i], expected.gradients[i]);
    free(expected.gradients);
    free(got.gradients);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cpu_computes_the_same),     cmocka_unit_test(the_gpu_computes_the_same),
      cmocka_unit_test(names_and_random_numbers_stay), cmocka_unit_test(what_is_read_twice_is_not_fused),
      cmocka_unit_test(what_backward_needs_is_kept),
  };
  return TEST_MAIN("lenet_fuse", tests);
}
