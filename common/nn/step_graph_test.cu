/* A training step as a CUDA graph: the same bits as kernel by kernel, while the batch, the learning rate and the place
 * in the data set change from step to step; recorded for each step, and recorded once. With gradients that are clipped,
 * with batches in parts, and with steps that fp16 skips; what these compute. */
#include "common/nn/step_replay.h"

#include "common/nn/optimizer.h"
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

/* How the steps of train() differ from the plainest ones. part 0: of the whole batch. */
static struct {
  float clip_norm, clip_value, mixup;
  double ema;
  int part;
  float overflowing; /* the loss is multiplied by it, and has the scale of fp16; 0: neither */
} extra;

/* Of the last train_by() with a scale. */
static LossScale end_scale;

/* Every kind of change. */
static const Augment everything = {"everything", {1, 1, 1u << 27, 1u << 26, 6554, 32768, 2, 13107, 13107, 0}};

static float rate(int step) { return 0.05f / (float)(1 + step); }

/* Three epochs of small batches, the first from image `from` on, the last batch of each with one image. */
static void train_by(const Optimizer *optimizer, Way way, StepGraph *graph, const Augment *augment, int most, int from,
                     float *parameters, float *momentum) {
  Error err;
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
  Context context;
  memset(&context, 0, sizeof context);
  context.device = DEVICE_GPU;
  Graph *g = test_net_graph(host.shape, CLASSES);
  if (extra.overflowing > 0) {
    g->type = DTYPE_FP16; /* no operation has 16 bits here */
    g->losses[0].weight = extra.overflowing;
  }
  if (model_open(&net, g, context, optimizer, most, MODEL_TRAIN, &err) != 0) fail_msg("%s", err.message);
  if (extra.overflowing > 0) model_set_loss_scale(&net, LOSS_SCALE_MOST);
  model_init(&net, 1);
  device_set_create(&set, DEVICE_GPU, &test_batches, &host, COUNT, &norm);
  device_set_augment(&set, augment);
  net.hyper.momentum = 0.9f;
  net.hyper.dampening = 0.25f;
  net.hyper.weight_decay = 0.01f;
  net.hyper.epsilon = 1e-8f;
  net.hyper.beta1 = 0.9;
  net.hyper.beta2 = 0.999;
  net.clip_norm = extra.clip_norm;
  net.clip_value = extra.clip_value;
  const int part = extra.part ? extra.part : most;
  if (part < most) model_accumulate_open(&net);
  net.context.mixup = extra.mixup;
  net.hyper.ema = extra.ema;
  if (extra.ema > 0) model_average_open(&net);
  if (way == REPLAYED) step_replay_open(&replay, &net, &set, most, part, COUNT / most);
  for (int step = 0, epoch = 0; epoch < EPOCHS; epoch++) {
    int start = epoch == 0 ? from : 0;
    device_set_shuffle(&set, 1, epoch);
    const int whole = (COUNT - start) / most;
    for (int i = 0; i < whole; i++) values[i] = model_step_values(&net, rate(step + i), step + i);
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
      device_set_train_step(&set, &net, start, batch, part);
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
  device_download(DEVICE_GPU, momentum, extra.ema > 0 ? net.average : net.slot[0], FLOATS * sizeof *momentum);
  if (net.loss_scale) device_download(DEVICE_GPU, &end_scale, net.loss_scale, sizeof end_scale);
  device_set_destroy(&set);
  model_close(&net);
}

static void train(Way way, StepGraph *graph, const Augment *augment, int most, int from, float *parameters,
                  float *momentum) {
  train_by(&test_sgd, way, graph, augment, most, from, parameters, momentum);
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

/* What an optimizer takes from the step beside the rate changes from step to step, too. */
static void so_they_do_with_every_optimizer(void **state) {
  (void)state;
  test_requires_gpu();
  const Optimizer *optimizers[] = {&optimizer_sgd_momentum, &optimizer_adam, &optimizer_adamw,
                                   &optimizer_rmsprop[RMSPROP_CENTERED | RMSPROP_MOMENTUM], &optimizer_muon};
  for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
    float plain[FLOATS], replayed[FLOATS], plain_momentum[FLOATS], replayed_momentum[FLOATS];
    train_by(optimizers[i], PLAIN, NULL, &augment_none, BATCH, BATCH, plain, plain_momentum);
    train_by(optimizers[i], REPLAYED, NULL, &augment_none, BATCH, BATCH, replayed, replayed_momentum);
    assert_memory_equal(plain, replayed, sizeof plain);
    assert_memory_equal(plain_momentum, replayed_momentum, sizeof plain_momentum);
  }
}

/* Clipped, and of 8 images in parts of 3, 3 and 2: kernel by kernel, recorded, and replayed. */
static void clipped_steps_in_parts_give_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  float bits[4][2][FLOATS];
  StepGraph graph;
  memset(&graph, 0, sizeof graph);
  train(PLAIN, NULL, &augment_none, BATCH, 0, bits[3][0], bits[3][1]);
  extra.clip_norm = 0.3f;
  extra.clip_value = 0.1f;
  extra.part = 3;
  train(PLAIN, NULL, &augment_none, BATCH, 0, bits[0][0], bits[0][1]);
  train(RECORDED, &graph, &augment_none, BATCH, 0, bits[1][0], bits[1][1]);
  train(REPLAYED, NULL, &augment_none, BATCH, 0, bits[2][0], bits[2][1]);
  memset(&extra, 0, sizeof extra);
  step_graph_close(&graph);
  assert_memory_equal(bits[0], bits[1], sizeof bits[0]);
  assert_memory_equal(bits[0], bits[2], sizeof bits[0]);
  assert_memory_not_equal(bits[0], bits[3], sizeof bits[0]);
}

/* Mixed by another share in each step, in parts, and averaged by another share in each step. */
static void mixed_and_averaged_steps_give_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  float bits[4][2][FLOATS];
  StepGraph graph;
  memset(&graph, 0, sizeof graph);
  extra.ema = 0.75;
  train(PLAIN, NULL, &augment_none, BATCH, 0, bits[3][0], bits[3][1]);
  assert_memory_not_equal(bits[3][0], bits[3][1], sizeof bits[3][0]); /* the weights are not their average */
  extra.mixup = 0.5f;
  extra.part = 3;
  train(PLAIN, NULL, &augment_none, BATCH, 0, bits[0][0], bits[0][1]);
  train(RECORDED, &graph, &augment_none, BATCH, 0, bits[1][0], bits[1][1]);
  train(REPLAYED, NULL, &augment_none, BATCH, 0, bits[2][0], bits[2][1]);
  memset(&extra, 0, sizeof extra);
  step_graph_close(&graph);
  assert_memory_equal(bits[0], bits[1], sizeof bits[0]);
  assert_memory_equal(bits[0], bits[2], sizeof bits[0]);
  assert_memory_not_equal(bits[0], bits[3], sizeof bits[0]);
}

/* Of the first epoch's steps some overflow; those that are skipped do not count for Adam and the average, which only
 * the GPU knows. */
static void skipped_steps_give_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  float bits[3][2][FLOATS];
  LossScale scale[3];
  StepGraph graph;
  memset(&graph, 0, sizeof graph);
  extra.overflowing = 1e33f;
  extra.clip_value = 0.1f;
  extra.ema = 0.75;
  for (int way = PLAIN; way <= REPLAYED; way++) {
    train_by(&optimizer_adam, (Way)way, &graph, &augment_none, 2, 4, bits[way][0], bits[way][1]);
    scale[way] = end_scale;
  }
  memset(&extra, 0, sizeof extra);
  step_graph_close(&graph);
  if (!(scale[0].skipped >= 2 && scale[0].skipped < 16))
    fail_msg("%d of %d steps were skipped; 2 to 15 are expected", scale[0].skipped, scale[0].steps);
  assert_memory_equal(bits[0], bits[1], sizeof bits[0]);
  assert_memory_equal(bits[0], bits[2], sizeof bits[0]);
  assert_memory_equal(&scale[0], &scale[1], sizeof *scale);
  assert_memory_equal(&scale[0], &scale[2], sizeof *scale);
  for (int i = 0; i < FLOATS; i++) assert_true(isfinite(bits[0][0][i]) && isfinite(bits[0][1][i]));
}

/* ---- what is computed ---- */

/* size: of the gradients. */
static void check_clipping(Device device, size_t n, float most_norm, float most_value, float size) {
  float *g = (float *)xmalloc(n * sizeof *g), *result = (float *)xmalloc(n * sizeof *g);
  float *on_device = (float *)device_alloc(device, n * sizeof *g);
  double *partial = (double *)device_alloc(device, (CLIP_BLOCKS + 1) * sizeof *partial), squares = 0;
  double norms[2] = {0.5, 0};
  device_upload(device, partial + CLIP_BLOCKS, norms, sizeof *norms);
  test_random_fill(g, n, 7);
  for (size_t i = 0; i < n; i++) g[i] *= size;
  for (size_t i = 0; i < n; i++) squares += (double)g[i] * g[i];
  const double norm = sqrt(squares), factor = norm + 1e-6 > most_norm ? most_norm / (norm + 1e-6) : 1;
  for (int way = 0; way < 2; way++) {
    device_upload(device, on_device, g, n * sizeof *g);
    if (way == 0)
      ON_DEVICE(device, clip_norm_gpu(on_device, n, most_norm, partial, partial + CLIP_BLOCKS),
                clip_norm_cpu(on_device, n, most_norm, partial, partial + CLIP_BLOCKS));
    else
      ON_DEVICE(device, clip_value_gpu(on_device, n, most_value), clip_value_cpu(on_device, n, most_value));
    device_download(device, result, on_device, n * sizeof *g);
    for (size_t i = 0; i < n; i++) {
      /* a thread's float sum has few terms here; the factor and the product round once each */
      const double expected = way == 0 ? factor * g[i] : fmax(-most_value, fmin(most_value, g[i]));
      if (!(fabs(result[i] - expected) <= 8 * 6e-8 * fabs(expected)))
        fail_msg("%s, element %zu of %zu: %.9g is clipped to %.9g, expected %.9g", way == 0 ? "by norm" : "by value", i,
                 n, g[i], result[i], expected);
    }
  }
  device_download(device, norms + 1, partial + CLIP_BLOCKS, sizeof *norms);
  if (!(fabs(norms[1] - 0.5 - norm) <= 8 * 6e-8 * norm)) fail_msg("norm %.9g, expected %.9g", norms[1] - 0.5, norm);
  device_free(device, on_device);
  device_free(device, partial);
  free(g);
  free(result);
}

static void gradients_are_clipped_on(Device device) {
  const size_t counts[] = {1, 3, 31, 255, 257, 5003, 300007};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    check_clipping(device, counts[i], 0.25f, 0.125f, 1);
    check_clipping(device, counts[i], 1e6f, 1e6f, 1);        /* small enough: unchanged */
    check_clipping(device, counts[i], 0.25f, 0.125f, 1e25f); /* their squares are no floats */
    check_clipping(device, counts[i], 1e30f, 1e30f, 3e19f);
  }
  /* What is not a number stays, so that the loss shows it. */
  float nan[3] = {NAN, 2, -2};
  double scratch[CLIP_BLOCKS];
  clip_norm_cpu(nan, 3, 1, scratch, NULL);
  assert_true(isnan(nan[0]) && nan[1] == 2);
  clip_value_cpu(nan, 3, 1);
  assert_true(isnan(nan[0]) && nan[1] == 1 && nan[2] == -1);
}

static void gradients_are_clipped_cpu(void **state) {
  (void)state;
  gradients_are_clipped_on(DEVICE_CPU);
}

static void gradients_are_clipped_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  gradients_are_clipped_on(DEVICE_GPU);
}

/* The gradients of a step of `batch` images in parts. */
static void gradients_in_parts(Device device, int batch, int part, float *gradients) {
  static uint8_t images[COUNT * PIXELS];
  int labels[COUNT];
  for (int i = 0; i < COUNT * PIXELS; i++) images[i] = (uint8_t)philox4x32(4, 0, (uint64_t)i).word[0];
  for (int i = 0; i < COUNT; i++) labels[i] = i % CLASSES;
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, CLASSES, images, labels};
  const DataNorm norm = {1, {0.5f}, {0.25f}};
  DeviceSet set;
  Model net;
  test_net_open(&net, host.shape, CLASSES, device, part);
  model_init(&net, 1);
  model_accumulate_open(&net);
  device_set_create(&set, device, &test_batches, &host, COUNT, &norm);
  device_set_train_step(&set, &net, 0, batch, part);
  assert_int_equal(net.context.step, 1);
  device_download(device, gradients, net.gradients, FLOATS * sizeof *gradients);
  device_set_destroy(&set);
  model_close(&net);
}

/* Each gradient is a sum over the batch of 1/batch times a slope of at most 1 times an input of at most 2, in another
 * order: with u = 2^-24 the sums differ by (batch + parts + 2) u times the sum of magnitudes, which is at most 2; the
 * slope itself is a difference of probabilities that rounds to 4 u. */
static void check_parts(Device device) {
  const int batches[] = {2, 7, 31, 32, 33}, parts[] = {1, 2, 5, 16, 31};
  float whole[FLOATS], summed[FLOATS];
  for (size_t b = 0; b < 5; b++) {
    gradients_in_parts(device, batches[b], batches[b], whole);
    for (size_t p = 0; p < 5; p++) {
      if (parts[p] >= batches[b]) continue;
      gradients_in_parts(device, batches[b], parts[p], summed);
      const double most = 2 * (batches[b] + (batches[b] + parts[p] - 1) / parts[p] + 6) * 6e-8;
      for (int i = 0; i < FLOATS; i++)
        if (!(fabsf(whole[i] - summed[i]) <= most))
          fail_msg("batch %d in parts of %d: gradient %d is %g, and %g in one", batches[b], parts[p], i, summed[i],
                   whole[i]);
    }
  }
}

static void parts_add_up_to_the_batch_cpu(void **state) {
  (void)state;
  check_parts(DEVICE_CPU);
}

static void parts_add_up_to_the_batch_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_parts(DEVICE_GPU);
}

/* An operation that draws by the number of the step, or an optimizer that wants its rate as an argument. */
static void what_changes_its_launches_is_not_replayed(void **state) {
  (void)state;
  test_requires_gpu();
  Model net;
  Error why;
  Optimizer by_value = test_sgd;
  Op draws = test_linear;
  by_value.reads = 0;
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_graph_gives_the_same_bits),
                                     cmocka_unit_test(so_it_does_with_augmented_images),
                                     cmocka_unit_test(steps_recorded_once_give_the_same_bits),
                                     cmocka_unit_test(so_they_do_with_every_optimizer),
                                     cmocka_unit_test(clipped_steps_in_parts_give_the_same_bits),
                                     cmocka_unit_test(mixed_and_averaged_steps_give_the_same_bits),
                                     cmocka_unit_test(skipped_steps_give_the_same_bits),
                                     cmocka_unit_test(gradients_are_clipped_cpu),
                                     cmocka_unit_test(gradients_are_clipped_gpu),
                                     cmocka_unit_test(parts_add_up_to_the_batch_cpu),
                                     cmocka_unit_test(parts_add_up_to_the_batch_gpu),
                                     cmocka_unit_test(what_changes_its_launches_is_not_replayed),
                                     cmocka_unit_test(a_recorded_step_waits)};
  return TEST_MAIN("step_graph", tests);
}
