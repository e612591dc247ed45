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
      cmocka_unit_test(resnet_for_10_classes_has_the_size_that_its_comment_says),
      cmocka_unit_test(pytorch_opens_a_checkpoint_of_lenet),
      cmocka_unit_test(pytorch_opens_a_checkpoint_of_resnet),
  };
  return TEST_MAIN("cifar_golden", tests);
}
