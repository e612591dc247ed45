/* A training step as a CUDA graph: the same bits as kernel by kernel, while the batch, the learning rate and the place
 * in the data set change from step to step. */
#include "common/nn/step_graph.h"

#include "common/nn/test_net.h"
#include "common/test.h"

enum {
  COUNT = 33,
  SIDE = 7,
  PIXELS = SIDE * SIDE,
  CLASSES = 5,
  BATCH = 8,
  EPOCHS = 3,
  FLOATS = CLASSES * (PIXELS + 1)
};

/* Three epochs, the last batch of each with one image; parameters and momentum after them. */
static void train(StepGraph *graph, const Augment *augment, float *parameters, float *momentum) {
  static uint8_t images[COUNT * PIXELS];
  int labels[COUNT];
  for (int i = 0; i < COUNT * PIXELS; i++) images[i] = (uint8_t)philox4x32(4, 0, (uint64_t)i).word[0];
  for (int i = 0; i < COUNT; i++) labels[i] = i % CLASSES;
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, CLASSES, images, labels};
  const DataNorm norm = {1, {0.5f}, {0.25f}};
  DeviceSet set;
  Model net;
  test_net_open(&net, host.shape, CLASSES, DEVICE_GPU, BATCH);
  model_init(&net, 1);
  device_set_create(&set, DEVICE_GPU, &test_batches, &host, COUNT, &norm);
  device_set_augment(&set, augment, BATCH);
  net.hyper.momentum = 0.9f;
  for (int step = 0, epoch = 0; epoch < EPOCHS; epoch++) {
    device_set_shuffle(&set, 1, epoch);
    for (int start = 0; start < COUNT; start += BATCH, step++) {
      const int batch = COUNT - start < BATCH ? COUNT - start : BATCH;
      net.hyper.lr = 0.05f / (float)(1 + step);
      if (graph) step_graph_begin(graph);
      device_set_gather(&set, &net, start, batch);
      model_train_step(&net, batch);
      if (graph) step_graph_launch(graph);
    }
  }
  device_download(DEVICE_GPU, parameters, net.parameters, FLOATS * sizeof *parameters);
  device_download(DEVICE_GPU, momentum, net.slot[0], FLOATS * sizeof *momentum);
  device_set_destroy(&set);
  model_close(&net);
}

static void check(const Augment *augment) {
  float plain[FLOATS], captured[FLOATS], plain_momentum[FLOATS], captured_momentum[FLOATS];
  StepGraph graph;
  memset(&graph, 0, sizeof graph);
  train(NULL, augment, plain, plain_momentum);
  train(&graph, augment, captured, captured_momentum);
  assert_memory_equal(plain, captured, sizeof plain);
  assert_memory_equal(plain_momentum, captured_momentum, sizeof plain_momentum);
  assert_int_equal(graph.steps, EPOCHS * ((COUNT + BATCH - 1) / BATCH));
  assert_true(graph.instantiated >= 1 && graph.instantiated <= 2 * EPOCHS); /* not for each step */
  step_graph_close(&graph);
  assert_null(graph.exec);
  step_graph_close(&graph);
}

static void a_graph_gives_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  check(&augment_none);
}

static void so_it_does_with_augmented_images(void **state) {
  (void)state;
  test_requires_gpu();
  check(&augment_crop);
}

/* What is begun is not run before its launch. */
static void a_recorded_step_waits(void **state) {
  (void)state;
  test_requires_gpu();
  StepGraph graph;
  float value = 1, *memory = (float *)device_alloc(DEVICE_GPU, sizeof value);
  memset(&graph, 0, sizeof graph);
  device_upload(DEVICE_GPU, memory, &value, sizeof value);
  step_graph_begin(&graph);
  add_gpu(memory, memory, memory, 1);
  step_graph_launch(&graph);
  device_download(DEVICE_GPU, &value, memory, sizeof value);
  assert_true(value == 2);
  step_graph_begin(&graph);
  add_gpu(memory, memory, memory, 1);
  add_gpu(memory, memory, memory, 1); /* another graph: it is instantiated again */
  step_graph_launch(&graph);
  device_download(DEVICE_GPU, &value, memory, sizeof value);
  assert_true(value == 8);
  assert_int_equal(graph.instantiated, 2);
  step_graph_close(&graph);
  device_free(DEVICE_GPU, memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_graph_gives_the_same_bits),
                                     cmocka_unit_test(so_it_does_with_augmented_images),
                                     cmocka_unit_test(a_recorded_step_waits)};
  return TEST_MAIN("step_graph", tests);
}
