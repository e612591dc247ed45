/* Training with 16 bits: the loss scale by hand, a step that overflows, the same on both devices and in a CUDA graph,
 * resuming with Adam and an average, too, and what cannot be. */
#include "common/nn/checkpoint.h"
#include "common/nn/optimizer.h"
#include "common/nn/step_graph.h"
#include "common/test.h"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase4_training/09_mixed_precision/stripes.cuh"

enum { BATCH = 8, SEED = 3 };

static void open_net(Model *net, DType type, Device device, float scale) {
  stripes_open(net, type, device, &optimizer_sgd_momentum, BATCH, SEED);
  net->hyper.momentum = 0.9f;
  net->hyper.lr = 0.05f;
  if (scale > 0) model_set_loss_scale(net, scale);
}

static void run_steps(Model *net, int from, int to) {
  for (int step = from; step < to; step++) {
    stripes_batch(net, BATCH, SEED, step);
    model_train_step(net, BATCH);
  }
}

static float *copy_of(const Model *net, const float *array, size_t count) {
  float *host = (float *)xmalloc(count * sizeof *host);
  device_download(net->context.device, host, array, count * sizeof *host);
  return host;
}

static LossScale scale_of(const Model *net) {
  LossScale s;
  device_download(net->context.device, &s, net->loss_scale, sizeof s);
  return s;
}

/* ------------------------------------------------------------------------------------------------------- loss scale */

static void the_scale_halves_and_doubles_by_hand(void **state) {
  (void)state;
  LossScale s;
  memset(&s, 0, sizeof s);
  s.scale = 4;
  s.overflow = 1;
  loss_scale_next(&s);
  assert_true(s.scale == 2 && s.skipped == 1 && s.good == 0 && s.overflow == 0 && s.steps == 1);
  assert_true(s.event[0].step == 1 && s.event[0].scale == 4);
  for (int i = 0; i < 3; i++) {
    s.overflow = 1;
    loss_scale_next(&s);
  }
  assert_true(s.scale == LOSS_SCALE_LEAST && s.skipped == 4 && s.event[3].step == 4 && s.event[3].scale == 1);
  for (int i = 0; i < LOSS_SCALE_INTERVAL - 1; i++) loss_scale_next(&s);
  assert_true(s.scale == 1 && s.good == LOSS_SCALE_INTERVAL - 1);
  loss_scale_next(&s);
  assert_true(s.scale == 2 && s.good == 0 && s.skipped == 4);
  s.scale = LOSS_SCALE_MOST;
  s.good = LOSS_SCALE_INTERVAL - 1;
  loss_scale_next(&s);
  assert_true(s.scale == LOSS_SCALE_MOST);
  s.good = 5; /* one overflow, and all good steps are forgotten */
  s.overflow = 1;
  loss_scale_next(&s);
  assert_true(s.good == 0 && s.scale == LOSS_SCALE_MOST / 2 && s.event[4].scale == LOSS_SCALE_MOST);
}

/* One bad number, wherever it is, and none. */
static void one_number_that_is_not_finite_is_found(void **state) {
  (void)state;
  const size_t n = 1000;
  const float bad[] = {INFINITY, -INFINITY, NAN};
  float *g = (float *)xmalloc(n * sizeof *g);
  for (int device = DEVICE_CPU; device <= DEVICE_GPU; device++)
    for (size_t at = 0; at <= n; at += 333) { /* at == n + ...: none */
      LossScale s;
      memset(&s, 0, sizeof s);
      s.scale = 8;
      for (size_t i = 0; i < n; i++) g[i] = (float)i + 1;
      if (at < n) g[at] = bad[at / 333 % 3];
      float *array = (float *)device_alloc((Device)device, n * sizeof *g);
      LossScale *scale = (LossScale *)device_alloc((Device)device, sizeof s);
      device_upload((Device)device, array, g, n * sizeof *g);
      device_upload((Device)device, scale, &s, sizeof s);
      ON_DEVICE((Device)device, loss_scale_divide_gpu(array, n, scale), loss_scale_divide_cpu(array, n, scale));
      device_download((Device)device, &s, scale, sizeof s);
      device_download((Device)device, g, array, n * sizeof *g);
      assert_int_equal(s.overflow, at < n);
      for (size_t i = 0; i < n; i++) assert_true(i == at || g[i] == ((float)i + 1) / 8);
      device_free((Device)device, array);
      device_free((Device)device, scale);
      if (at == 999) at = n - 333; /* then n: none */
    }
  free(g);
}

/* The loss's gradient times 2^24 is beyond fp16: nothing may change but the scale, and the running statistics of the
 * forward pass. */
static void an_overflow_changes_nothing_but_the_scale(void **state) {
  (void)state;
  for (int device = DEVICE_CPU; device <= DEVICE_GPU; device++) {
    Model net;
    open_net(&net, DTYPE_FP16, (Device)device, 4096);
    run_steps(&net, 0, 1); /* so that the slots are not zero */
    model_set_loss_scale(&net, LOSS_SCALE_MOST);
    const size_t n = net.parameter_count;
    float *before = copy_of(&net, net.parameters, n), *slot = copy_of(&net, net.slot[0], n);
    float *statistics = copy_of(&net, net.buffers, net.buffer_count);
    run_steps(&net, 1, 2);
    float *after = copy_of(&net, net.parameters, n), *slot_after = copy_of(&net, net.slot[0], n);
    float *buffers = copy_of(&net, net.buffers, net.buffer_count);
    const LossScale s = scale_of(&net);
    assert_true(s.skipped == 1 && s.scale == LOSS_SCALE_MOST / 2 && s.overflow == 0 && s.event[0].step == 2);
    assert_memory_equal(before, after, n * sizeof *before);
    assert_memory_equal(slot, slot_after, n * sizeof *slot);
    for (size_t i = 0; i < net.buffer_count; i++) assert_true(isfinite(buffers[i]) && buffers[i] != statistics[i]);
    model_set_loss_scale(&net, 4096);
    run_steps(&net, 2, 3);
    float *learned = copy_of(&net, net.parameters, n);
    assert_memory_not_equal(before, learned, n * sizeof *before);
    for (size_t i = 0; i < n; i++) assert_true(isfinite(learned[i]));
    free(before), free(slot), free(after), free(slot_after), free(statistics), free(buffers), free(learned);
    model_close(&net);
  }
}

/* -------------------------------------------------------------------------------------------------------- training */

static double loss_after(DType type, int steps) {
  Model net;
  const Totals none = {0, 0};
  open_net(&net, type, DEVICE_CPU, 0);
  run_steps(&net, 0, steps);
  model_reset_totals(&net, 0, none);
  run_steps(&net, steps, steps + 10);
  const double loss = model_read_totals(&net, 0).loss / (10 * BATCH);
  model_close(&net);
  return loss;
}

static void training_with_16_bits_goes_as_with_32(void **state) {
  (void)state;
  const double full = loss_after(DTYPE_FLOAT32, 60), bf16 = loss_after(DTYPE_BF16, 60),
               fp16 = loss_after(DTYPE_FP16, 60);
  if (!(full < 0.5)) fail_msg("float32 has not learned: its loss is %g", full);
  if (!(fabs(bf16 - full) < 0.1)) fail_msg("bf16 has the loss %g, float32 %g", bf16, full);
  if (!(fabs(fp16 - full) < 0.05)) fail_msg("fp16 has the loss %g, float32 %g", fp16, full);
}

/* Where a sum is rounded to the other side, a number differs by one unit, 2^-8 of itself in bf16; what a step changes
 * is that part of lr times gradients of up to 1. */
static void both_devices_step_alike(void **state) {
  (void)state;
  for (int type = DTYPE_BF16; type <= DTYPE_FP16; type++) {
    Model cpu, gpu;
    open_net(&cpu, (DType)type, DEVICE_CPU, 0);
    open_net(&gpu, (DType)type, DEVICE_GPU, 0);
    run_steps(&cpu, 0, 2);
    run_steps(&gpu, 0, 2);
    float *a = copy_of(&cpu, cpu.parameters, cpu.parameter_count),
          *b = copy_of(&gpu, gpu.parameters, gpu.parameter_count);
    for (size_t i = 0; i < cpu.parameter_count; i++)
      if (!(fabsf(a[i] - b[i]) <= 2 * 0.05f * (type == DTYPE_BF16 ? 0x1p-6f : 0x1p-8f)))
        fail_msg("%s: parameter %zu is %g on the CPU, %g on the GPU", dtype_name((DType)type), i, a[i], b[i]);
    free(a), free(b);
    model_close(&cpu);
    model_close(&gpu);
  }
}

/* The same kernels, in some steps of which nothing is learned. */
static void a_recorded_step_gives_the_same_bits(void **state) {
  (void)state;
  Model launched, recorded;
  StepGraph graph;
  memset(&graph, 0, sizeof graph);
  open_net(&launched, DTYPE_FP16, DEVICE_GPU, LOSS_SCALE_MOST / 8);
  open_net(&recorded, DTYPE_FP16, DEVICE_GPU, LOSS_SCALE_MOST / 8);
  for (int step = 0; step < 4; step++) {
    stripes_batch(&launched, BATCH, SEED, step);
    model_train_step(&launched, BATCH);
    stripes_batch(&recorded, BATCH, SEED, step);
    if (step == 0) {
      step_graph_begin(&graph);
      model_train_step(&recorded, BATCH);
      step_graph_launch(&graph);
    } else {
      step_graph_run(&graph);
    }
  }
  const LossScale a = scale_of(&launched), b = scale_of(&recorded);
  assert_memory_equal(&a, &b, sizeof a);
  if (!(a.skipped >= 1 && a.skipped < 4 && a.steps == 4))
    fail_msg("%d of %d steps were skipped, to the scale %g; some of 4 are expected", a.skipped, a.steps, a.scale);
  float *x = copy_of(&launched, launched.parameters, launched.parameter_count);
  float *y = copy_of(&recorded, recorded.parameters, recorded.parameter_count);
  assert_memory_equal(x, y, launched.parameter_count * sizeof *x);
  free(x), free(y);
  step_graph_close(&graph);
  model_close(&launched);
  model_close(&recorded);
}

/* ------------------------------------------------------------------------------------------------------ checkpoints */

/* Adam and the average count the steps that were not skipped. */
static void open_run(Model *net, const Optimizer *optimizer, Device device, float scale) {
  const OptimizerSettings settings = optimizer_named("adam")->usual;
  stripes_open(net, DTYPE_FP16, device, optimizer, BATCH, SEED);
  net->hyper = optimizer_hyper(&settings);
  net->hyper.momentum = 0.9f;
  net->hyper.lr = 0.05f;
  net->hyper.ema = 0.75;
  model_average_open(net);
  if (scale > 0) model_set_loss_scale(net, scale);
}

static void expect_equal(const Model *a, const Model *b, const float *x, const float *y, size_t count) {
  float *mine = copy_of(a, x, count), *other = copy_of(b, y, count);
  assert_memory_equal(mine, other, count * sizeof *mine);
  free(mine), free(other);
}

/* A run of `steps` steps, saved after `half` of them. */
static void check_resuming(const Optimizer *optimizer, Device device, int half, int steps) {
  Model whole, first, second;
  Error err;
  char path[512];
  TrainState saved, read;
  memset(&saved, 0, sizeof saved);
  saved.mean[0] = saved.stddev[0] = 0.5;
  saved.epochs = saved.batch_size = saved.train_images = saved.test_images = 1;
  saved.epoch = half;
  saved.step = half;
  saved.lr = 0.05;
  snprintf(saved.precision, sizeof saved.precision, "fp16");
  test_path(path, sizeof path, "mixed.safetensors");
  open_run(&whole, optimizer, device, LOSS_SCALE_MOST);
  open_run(&first, optimizer, device, LOSS_SCALE_MOST);
  open_run(&second, optimizer, device, 0);
  run_steps(&whole, 0, steps);
  run_steps(&first, 0, half);
  if (checkpoint_save(path, CHECKPOINT_STATE, &first, &saved, &err) != 0) fail_msg("%s", err.message);
  if (checkpoint_load(path, CHECKPOINT_STATE, &second, &read, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(read.precision, "fp16");
  assert_true(read.loss_scale == scale_of(&first).scale && read.skipped_steps == scale_of(&first).skipped);
  assert_true(read.skipped_steps > 0 && read.good_steps == half - read.skipped_steps);
  run_steps(&second, half, steps);
  const LossScale a = scale_of(&whole), b = scale_of(&second);
  assert_true(a.scale == b.scale && a.good == b.good && a.skipped == b.skipped && a.steps == b.steps);
  assert_memory_equal(&a.values, &b.values, sizeof a.values);
  expect_equal(&whole, &second, whole.parameters, second.parameters, whole.parameter_count);
  for (int s = 0; s < optimizer->slots; s++)
    expect_equal(&whole, &second, whole.slot[s], second.slot[s], whole.parameter_count);
  expect_equal(&whole, &second, whole.buffers, second.buffers, whole.buffer_count);
  expect_equal(&whole, &second, whole.average, second.average, whole.parameter_count);
  expect_equal(&whole, &second, whole.average_buffers, second.average_buffers, whole.buffer_count);
  const StepValues taken = step_values(0.05f, &whole.hyper, steps - 1 - a.skipped); /* of the last step */
  assert_memory_equal(&a.values, &taken, sizeof taken);
  model_close(&whole);
  model_close(&first);
  model_close(&second);
}

static void a_resumed_run_has_the_same_bits_and_the_same_scale(void **state) {
  (void)state;
  check_resuming(&optimizer_sgd_momentum, DEVICE_CPU, 6, 10);
  check_resuming(&optimizer_adam, DEVICE_CPU, 6, 10);
  check_resuming(&optimizer_adam, DEVICE_GPU, 4, 6);
}

/* ---------------------------------------------------------------------------------------------------------- the graph
 * */

static void casts_stand_where_the_two_kinds_meet(void **state) {
  (void)state;
  Graph *g = stripes_graph(DTYPE_BF16);
  int casts = 0, all;
  for (int i = 0; i < g->count; i++) casts += g->nodes[i].op == &cast_op;
  assert_int_equal(casts, 2); /* the pictures, and the logits for the loss */
  const int lowered = graph_lowered(g, &all);
  assert_int_equal(lowered, all);
  assert_int_equal(all, 10);
  assert_int_equal(g->nodes[g->losses[0].node].type, DTYPE_FLOAT32);
  assert_string_equal(g->nodes[g->losses[0].node].name, "fc1.float32");
  assert_int_equal(node_bytes(&g->nodes[graph_find(g, "conv1")]), 8 * STRIPES_PIXELS * sizeof(uint16_t));
  assert_int_equal(g->nodes[graph_find(g, "layer1.0.relu2")].type, DTYPE_BF16); /* passed on */
  graph_destroy(g);
}

static void an_optimizer_that_cannot_skip_is_refused_on_a_gpu(void **state) {
  (void)state;
  Model net;
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = DEVICE_GPU;
  assert_int_equal(model_open(&net, stripes_graph(DTYPE_FP16), context, &sgd, BATCH, MODEL_TRAIN, &err), -1);
  assert_non_null(strstr(err.message, "cannot skip a step"));
  assert_int_equal(model_open(&net, stripes_graph(DTYPE_BF16), context, &sgd, BATCH, MODEL_TRAIN, &err), 0);
  model_close(&net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_scale_halves_and_doubles_by_hand),
      cmocka_unit_test(one_number_that_is_not_finite_is_found),
      cmocka_unit_test(an_overflow_changes_nothing_but_the_scale),
      cmocka_unit_test(training_with_16_bits_goes_as_with_32),
      cmocka_unit_test(both_devices_step_alike),
      cmocka_unit_test(a_recorded_step_gives_the_same_bits),
      cmocka_unit_test(a_resumed_run_has_the_same_bits_and_the_same_scale),
      cmocka_unit_test(casts_stand_where_the_two_kinds_meet),
      cmocka_unit_test(an_optimizer_that_cannot_skip_is_refused_on_a_gpu),
  };
  return TEST_MAIN("training", tests);
}
