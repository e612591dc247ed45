/* A training step as a CUDA graph: the same bits as kernel by kernel, while the batch, the learning rate and the place
 * in the data set change from step to step; recorded for each step, and recorded once. */
#include "common/nn/step_replay.h"

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

/* How steps are launched: kernel by kernel; as a graph that is recorded each time; as one that is recorded once. */
typedef enum Way { PLAIN, RECORDED, REPLAYED } Way;

/* Every kind of change. */
static const Augment everything = {"everything", {1, 1, 1u << 27, 1u << 26, 6554, 32768, 2, 13107, 13107, 0}};

static float rate(int step) { return 0.05f / (float)(1 + step); }

/* Three epochs of small batches, the first from image `from` on, the last batch of each with one image. */
static void train(Way way, StepGraph *graph, const Augment *augment, int most, int from, float *parameters,
                  float *momentum) {
  StepReplay replay;
  StepValues values[COUNT];
  static uint8_t images[COUNT * PIXELS];
  int labels[COUNT];
  for (int i = 0; i < COUNT * PIXELS; i++) images[i] = (uint8_t)philox4x32(4, 0, (uint64_t)i).word[0];
  for (int i = 0; i < COUNT; i++) labels[i] = i % CLASSES;
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, CLASSES, images, labels};
  const DataNorm norm = {1, {0.5f}, {0.25f}};
  DeviceSet set;
  Model net;
  test_net_open(&net, host.shape, CLASSES, DEVICE_GPU, most);
  model_init(&net, 1);
  device_set_create(&set, DEVICE_GPU, &test_batches, &host, COUNT, &norm);
  device_set_augment(&set, augment);
  net.hyper.momentum = 0.9f;
  if (way == REPLAYED) step_replay_open(&replay, &net, &set, most, COUNT / most);
  for (int step = 0, epoch = 0; epoch < EPOCHS; epoch++) {
    int start = epoch == 0 ? from : 0;
    device_set_shuffle(&set, 1, epoch);
    const int whole = (COUNT - start) / most;
    for (int i = 0; i < whole; i++) values[i].lr = rate(step + i);
    if (way == REPLAYED) step_replay_load(&replay, values, whole, start);
    while (start < COUNT) {
      const int left = COUNT - start, batch = left < most ? left : most;
      if (way == REPLAYED && left >= most) {
        const int steps = step_replay_launch(&replay, left / most);
        start += steps * most;
        step += steps;
        continue;
      }
      net.hyper.lr = rate(step++);
      if (way == RECORDED) step_graph_begin(graph);
      device_set_gather(&set, &net, start, batch);
      model_train_step(&net, batch);
      if (way == RECORDED) step_graph_launch(graph);
      start += batch;
    }
    assert_int_equal(net.context.step, step);
  }
  if (way == REPLAYED) {
    assert_true(replay.many.instantiated == 1 && replay.one.instantiated == 1);
    step_replay_close(&replay);
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
  train(PLAIN, NULL, augment, BATCH, 0, plain, plain_momentum);
  train(RECORDED, &graph, augment, BATCH, 0, captured, captured_momentum);
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
  check(&everything);
}

/* 16 steps of two images and one of one; the first epoch begins at its third step. */
static void steps_recorded_once_give_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  const Augment *augments[] = {&augment_none, &everything};
  for (int i = 0; i < 2; i++) {
    float plain[FLOATS], replayed[FLOATS], plain_momentum[FLOATS], replayed_momentum[FLOATS];
    train(PLAIN, NULL, augments[i], 2, 4, plain, plain_momentum);
    train(REPLAYED, NULL, augments[i], 2, 4, replayed, replayed_momentum);
    assert_memory_equal(plain, replayed, sizeof plain);
    assert_memory_equal(plain_momentum, replayed_momentum, sizeof plain_momentum);
  }
}

/* An operation that draws by the number of the step, or an optimizer that wants its rate as an argument. */
static void what_changes_its_launches_is_not_replayed(void **state) {
  (void)state;
  test_requires_gpu();
  Model net;
  Error why;
  Optimizer by_value = test_sgd;
  Op draws = test_linear;
  by_value.reads_values = 0;
  draws.flags |= OP_DRAWS;
  test_net_open(&net, shape3(1, 2, 2), CLASSES, DEVICE_GPU, 1);
  assert_int_equal(step_replay_check(&net, NULL), 0);
  net.optimizer = &by_value;
  assert_int_equal(step_replay_check(&net, &why), -1);
  assert_string_equal(why.message, "sgd takes the learning rate as an argument of its kernels");
  net.optimizer = &test_sgd;
  net.graph->nodes[1].op = &draws;
  assert_int_equal(step_replay_check(&net, &why), -1);
  assert_string_equal(why.message, "fc draws other random numbers in each step");
  net.context.device = DEVICE_CPU;
  net.graph->nodes[1].op = &test_linear;
  assert_int_equal(step_replay_check(&net, NULL), -1);
  net.context.device = DEVICE_GPU;
  model_close(&net);
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_graph_gives_the_same_bits), cmocka_unit_test(so_it_does_with_augmented_images),
      cmocka_unit_test(steps_recorded_once_give_the_same_bits),
      cmocka_unit_test(what_changes_its_launches_is_not_replayed), cmocka_unit_test(a_recorded_step_waits)};
  return TEST_MAIN("step_graph", tests);
}
