/* The networks for CIFAR against PyTorch (common/nn/golden.h): LeNet-5 for 10 classes, the residual network for 100;
 * and checkpoints that PyTorch opens. */
#include "common/nn/golden.h"
#include "phase3_cnn/15_cifar10/cifar_cnn.cuh"

static void open_network(Model *m, int network, Device device) {
  const int classes = network == CIFAR_LENET ? 10 : 100;
  sgd_model_open(m, cifar_graph_of(&cifar_networks[network], classes), device, GOLDEN_BATCH);
}

static void check(int network, Device device, int steps) {
  Model m;
  open_network(&m, network, device);
  assert_int_equal(m.parameter_count, network == CIFAR_LENET ? 62006 : 83892);
  golden_check(&m,
               network == CIFAR_LENET ? "phase3_cnn/15_cifar10/testdata/lenet_golden.safetensors"
                                      : "phase3_cnn/15_cifar10/testdata/resnet_golden.safetensors",
               steps);
  model_close(&m);
}

static void lenet_on_the_cpu(void **unused) {
  (void)unused;
  check(CIFAR_LENET, DEVICE_CPU, GOLDEN_STEPS);
}

static void resnet_on_the_cpu(void **unused) {
  (void)unused;
  check(CIFAR_RESNET, DEVICE_CPU, GOLDEN_STEPS);
}

static void lenet_on_the_gpu(void **unused) {
  (void)unused;
  test_requires_gpu();
  check(CIFAR_LENET, DEVICE_GPU, GOLDEN_STEPS);
}

static void resnet_on_the_gpu(void **unused) {
  (void)unused;
  test_requires_gpu();
  check(CIFAR_RESNET, DEVICE_GPU, GOLDEN_GPU_STEPS);
}

static void resnet_for_10_classes_has_the_size_that_its_comment_says(void **unused) {
  (void)unused;
  Model m;
  sgd_model_open(&m, cifar_graph_of(&cifar_networks[CIFAR_RESNET], 10), DEVICE_CPU, 1);
  assert_int_equal(m.parameter_count, 78042);
  assert_true(graph_find(m.graph, "layer3.0.downsample.1") > 0);
  assert_int_equal(graph_find(m.graph, "layer1.0.downsample.0"), GRAPH_ERROR); /* the shortcut is the input */
  model_close(&m);
}

/* The same answers from the network that --predict uses. It rounds a weight once more: as golden_check() allows. */
static void infers(int network, Device device) {
  Error err;
  Model m, fast;
  float expected[GOLDEN_LOGITS], got[GOLDEN_LOGITS], largest = 0;
  open_network(&m, network, device);
  golden_begin(&m);
  if (residual_infer(&fast, &m, GOLDEN_BATCH, &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < fast.graph->count; i++)
    assert_false(fast.graph->nodes[i].op && batch_norm2d_is(&fast.graph->nodes[i]));
  device_copy(device, model_input(&fast, 0), model_input(&m, 0),
              GOLDEN_BATCH * model_input_width(&m, 0) * sizeof(float));
  device_copy(device, model_labels(&fast), model_labels(&m), GOLDEN_BATCH * sizeof(int));
  const size_t count = GOLDEN_BATCH * (size_t)model_classes(&m);
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

static void both_infer_on_the_cpu(void **unused) {
  (void)unused;
  infers(CIFAR_LENET, DEVICE_CPU);
  infers(CIFAR_RESNET, DEVICE_CPU);
}

static void both_infer_on_the_gpu(void **unused) {
  (void)unused;
  test_requires_gpu();
  infers(CIFAR_LENET, DEVICE_GPU);
  infers(CIFAR_RESNET, DEVICE_GPU);
}

static void pytorch_opens(int network, const char *name) {
  Model m;
  open_network(&m, network, DEVICE_CPU);
  golden_pytorch_loads(&m, name);
  model_close(&m);
}

static void pytorch_opens_a_checkpoint_of_lenet(void **unused) {
  (void)unused;
  pytorch_opens(CIFAR_LENET, "lenet");
}

static void pytorch_opens_a_checkpoint_of_resnet(void **unused) {
  (void)unused;
  pytorch_opens(CIFAR_RESNET, "resnet");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lenet_on_the_cpu),
      cmocka_unit_test(resnet_on_the_cpu),
      cmocka_unit_test(lenet_on_the_gpu),
      cmocka_unit_test(resnet_on_the_gpu),
      cmocka_unit_test(both_infer_on_the_cpu),
      cmocka_unit_test(both_infer_on_the_gpu),
      cmocka_unit_test(resnet_for_10_classes_has_the_size_that_its_comment_says),
      cmocka_unit_test(pytorch_opens_a_checkpoint_of_lenet),
      cmocka_unit_test(pytorch_opens_a_checkpoint_of_resnet),
  };
  return TEST_MAIN("cifar_golden", tests);
}
