/* The network for Fashion-MNIST against PyTorch (common/nn/golden.h), its operations computed together and one by one,
 * and a checkpoint that PyTorch opens. */
#include "common/nn/golden.h"
#include "phase3_cnn/13_fashion_mnist/fashion_cnn.cuh"

static void check(Graph *graph, Device device, int steps) {
  Model m;
  sgd_model_open(&m, graph, device, GOLDEN_BATCH);
  assert_int_equal(m.parameter_count, FASHION_CNN_PARAMETERS);
  golden_check(&m, "phase3_cnn/13_fashion_mnist/testdata/fashion_golden.safetensors", steps);
  model_close(&m);
}

static void the_cpu_agrees_with_pytorch(void **unused) {
  (void)unused;
  check(fashion_cnn_graph(), DEVICE_CPU, GOLDEN_STEPS);
}

static void one_operation_at_a_time_agrees_with_pytorch(void **unused) {
  (void)unused;
  check(fashion_cnn_layers(), DEVICE_CPU, 2);
}

static void the_gpu_agrees_with_pytorch(void **unused) {
  (void)unused;
  test_requires_gpu();
  check(fashion_cnn_graph(), DEVICE_GPU, GOLDEN_GPU_STEPS);
}

/* Names and random numbers stay; the pooling before a ReLU computes it. */
static void pooling_takes_over_the_relu_behind_it(void **unused) {
  (void)unused;
  Graph *layers = fashion_cnn_layers(), *fused = fashion_cnn_graph();
  assert_int_equal(fused->count, layers->count);
  for (int i = 0; i < fused->count; i++) {
    assert_string_equal(fused->nodes[i].name, layers->nodes[i].name);
    assert_int_equal(fused->nodes[i].order, layers->nodes[i].order);
  }
  assert_ptr_equal(fused->nodes[graph_find(fused, "pool1")].op, &relu_max_pool2d_op);
  assert_ptr_equal(fused->nodes[graph_find(fused, "pool2")].op, &relu_max_pool2d_op);
  for (int i = 1; i <= 3; i++) {
    char name[16];
    snprintf(name, sizeof name, "relu%d", i);
    assert_ptr_equal(fused->nodes[graph_find(fused, name)].op, &relu_passed_op);
  }
  graph_destroy(layers);
  graph_destroy(fused);
}

/* The kernel has no room for the places of a window of 16 x 16 and one more; and a pooling that is read twice stays. */
static void a_pooling_that_cannot_is_left_alone(void **unused) {
  (void)unused;
  for (int twice = 0; twice < 2; twice++) {
    Graph *g = graph_create();
    const int x = graph_input(g, "x", shape3(2, 33, 32)), pool = max_pool2d(g, x, twice ? 2 : 16, twice ? 2 : 16);
    const int bent = relu(g, pool);
    if (twice) linear(g, pool, 3);
    graph_fuse(g, fashion_cnn_fusions, sizeof fashion_cnn_fusions / sizeof *fashion_cnn_fusions);
    assert_int_equal(g->failed, 0);
    assert_ptr_equal(g->nodes[pool].op, &max_pool2d_op);
    assert_ptr_equal(g->nodes[bent].op, &activation_ops[ACTIVATION_RELU]);
    graph_destroy(g);
  }
}

static void pytorch_opens_a_checkpoint(void **unused) {
  (void)unused;
  Model m;
  sgd_model_open(&m, fashion_cnn_graph(), DEVICE_CPU, GOLDEN_BATCH);
  golden_pytorch_loads(&m, "fashion");
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cpu_agrees_with_pytorch),
      cmocka_unit_test(one_operation_at_a_time_agrees_with_pytorch),
      cmocka_unit_test(the_gpu_agrees_with_pytorch),
      cmocka_unit_test(pooling_takes_over_the_relu_behind_it),
      cmocka_unit_test(a_pooling_that_cannot_is_left_alone),
      cmocka_unit_test(pytorch_opens_a_checkpoint),
  };
  return TEST_MAIN("fashion_golden", tests);
}
