/* A residual block with batch normalisation and dropout against PyTorch: 50 steps of SGD from the same weights, on the
 * same batches, with the same dropout. The vectors are made by tools/golden/residual_golden.py.
 *
 * It is what a list of layers could not be: a node that two others read, two parts that meet, training and evaluation
 * that differ, and running statistics that are kept but not trained. */
#include "common/nn/checkpoint.h"
#include "common/runfiles.h"
#include "common/safetensors.h"
#include "common/subprocess.h"
#include "common/test.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase1_building_blocks/12_dropout/dropout_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"
#include "phase3_cnn/11_residual/add_op.cuh"

enum { IMAGES = 20, BATCH = 4, STEPS = 50, PIXELS = 2 * 9 * 7, CLASSES = 3 };

static int residual_block(Graph *g, int x, int filters, int stride, float p) {
  int h = dropout(g, relu(g, batch_norm2d(g, conv2d(g, x, filters, 3, stride, 1))), p);
  h = batch_norm2d(g, conv2d(g, h, filters, 3, 1, 1));
  graph_enter(g, "downsample");
  int shortcut = conv2d(graph_name(g, "0"), x, filters, 1, stride, 0);
  shortcut = batch_norm2d(graph_name(g, "1"), shortcut);
  graph_leave(g);
  return relu(g, add(g, h, shortcut));
}

static Graph *residual_graph(void) {
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(2, 9, 7));
  x = relu(g, batch_norm2d(g, conv2d(g, x, 4, 3, 1, 1)));
  graph_enter(g, "layer1");
  graph_enter(g, "0");
  x = residual_block(g, x, 6, 2, 0.25f);
  graph_leave(g);
  graph_leave(g);
  graph_loss(g, &cross_entropy_loss, linear(graph_name(g, "fc"), x, CLASSES), 1);
  return g;
}

typedef struct Golden {
  SafetensorsFile file;
  float images[IMAGES * PIXELS];
  int labels[IMAGES];
} Golden;

static void golden_read(Golden *g, const char *name, int rank, const size_t *shape, float *out) {
  Error err;
  if (safetensors_read_f32(&g->file, name, rank, shape, out, &err) != 0) fail_msg("%s", err.message);
}

static void golden_open(Golden *g) {
  Error err;
  char path[PATH_MAX];
  const size_t images[] = {IMAGES, 2, 9, 7}, labels[] = {IMAGES};
  if (runfiles_find("phase3_cnn/11_residual/testdata/residual_golden.safetensors", path, sizeof path, &err) != 0 ||
      safetensors_open(path, &g->file, &err) != 0)
    fail_msg("%s", err.message);
  golden_read(g, "input", 4, images, g->images);
  if (safetensors_read(&g->file, "labels", "I32", 1, labels, g->labels, &err) != 0) fail_msg("%s", err.message);
}

/* The model with PyTorch's weights and running statistics, by PyTorch's names. */
static void load(Model *m, Golden *g, Device device) {
  Error err;
  sgd_model_open(m, residual_graph(), device, BATCH);
  float *host = checkpoint_host(m);
  if (checkpoint_read(&g->file, m, CHECKPOINT_ALL, "", host, &err) != 0) fail_msg("%s", err.message);
  device_upload(device, m->parameters, host, m->parameter_count * sizeof(float));
  device_upload(device, m->buffers, host + m->parameter_count, m->buffer_count * sizeof(float));
  free(host);
  m->context.seed = 77;
  m->hyper.weight_decay = 0.01f;
}

static void feed(const Model *m, const Golden *g, int first) {
  device_upload(m->context.device, model_input(m, 0), g->images + first * PIXELS, BATCH * PIXELS * sizeof(float));
  device_upload(m->context.device, model_labels(m), g->labels + first, BATCH * sizeof(int));
}

/* Tensor by tensor, each against its own largest value. */
static void compare_tensors(Model *m, Golden *g, CheckpointTensors tensors, const char *prefix, const float *ours) {
  Error err;
  float *expected = checkpoint_host(m);
  if (checkpoint_read(&g->file, m, tensors, prefix, expected, &err) != 0) fail_msg("%s", err.message);
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(m, &node, &index)) != NULL) {
    if (p->counts || (!p->trained && tensors != CHECKPOINT_ALL)) continue;
    const size_t offset = (p->trained ? 0 : m->parameter_count) + p->offset;
    float largest = 0, error = 0;
    for (size_t i = 0; i < p->count; i++) {
      largest = fmaxf(largest, fabsf(expected[offset + i]));
      error = fmaxf(error, fabsf(ours[offset + i] - expected[offset + i]));
    }
    print_message("%s%s: largest %.3e, error %.1e\n", prefix, p->name, (double)largest, (double)error);
    /* The bias before a batch norm has no gradient but rounding: 1e-5 of the ordinary size, 0.1. */
    assert_close(ours + offset, expected + offset, p->count, 1e-5, 1e-5 * fmax(0.1, (double)largest));
  }
  free(expected);
}

static void check_training(Device device) {
  static Golden g;
  Model m;
  golden_open(&g);
  load(&m, &g, device);
  float losses[STEPS], expected[STEPS], logits[BATCH * CLASSES], expected_logits[BATCH * CLASSES];
  float *host = checkpoint_host(&m);
  const size_t steps[] = {STEPS}, logits_shape[] = {BATCH, CLASSES};
  golden_read(&g, "losses", 1, steps, expected);
  golden_read(&g, "logits", 2, logits_shape, expected_logits);
  for (int step = 0; step < STEPS; step++) {
    const Totals none = {0, 0};
    model_reset_totals(&m, 0, none);
    feed(&m, &g, step * BATCH % IMAGES);
    sgd_train_step(&m, BATCH, 0.02f, 0.9f);
    losses[step] = (float)(model_read_totals(&m, 0).loss / BATCH);
    if (step > 0) continue;
    device_download(device, host, m.gradients, m.parameter_count * sizeof(float));
    compare_tensors(&m, &g, CHECKPOINT_TRAINED, "grad.", host);
  }
  assert_close(losses, expected, STEPS, 1e-5, 1e-5);
  assert_true(losses[STEPS - 1] < losses[0]);
  device_download(device, host, m.parameters, m.parameter_count * sizeof(float));
  device_download(device, host + m.parameter_count, m.buffers, m.buffer_count * sizeof(float));
  compare_tensors(&m, &g, CHECKPOINT_ALL, "trained.", host);
  feed(&m, &g, 0); /* evaluation: nothing is dropped, the running statistics are used */
  model_evaluate_step(&m, BATCH);
  device_download(device, logits, model_logits(&m, 0), sizeof logits);
  assert_close(logits, expected_logits, BATCH * CLASSES, 1e-5, 2e-5);
  free(host);
  model_close(&m);
  safetensors_close(&g.file);
}

static void training_cpu(void **state) {
  (void)state;
  check_training(DEVICE_CPU);
}

static void training_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_training(DEVICE_GPU);
}

/* A checkpoint keeps the running statistics, and the run goes on from it with the same bits. */
static void a_checkpoint_keeps_running_statistics(void **state) {
  (void)state;
  static Golden g;
  Error err;
  Model m, other;
  char path[PATH_MAX];
  TrainState saved = TrainState(), read;
  saved.epochs = saved.batch_size = saved.train_images = saved.test_images = 1;
  saved.stddev[0] = 1;
  saved.seed = 77;
  saved.step = saved.epoch = 3;
  golden_open(&g);
  load(&m, &g, DEVICE_CPU);
  feed(&m, &g, 0);
  for (int step = 0; step < 3; step++) sgd_train_step(&m, BATCH, 0.02f, 0.9f);
  test_path(path, sizeof path, "residual.safetensors");
  if (checkpoint_save(path, CHECKPOINT_STATE, &m, &saved, &err) != 0) fail_msg("%s", err.message);
  sgd_model_open(&other, residual_graph(), DEVICE_CPU, BATCH);
  if (checkpoint_load(path, CHECKPOINT_STATE, &other, &read, &err) != 0) fail_msg("%s", err.message);
  assert_memory_equal(other.parameters, m.parameters, m.parameter_count * sizeof(float));
  assert_memory_equal(other.buffers, m.buffers, m.buffer_count * sizeof(float));
  assert_memory_equal(other.slot[0], m.slot[0], m.parameter_count * sizeof(float));
  assert_true(m.buffers[0] != 0);
  Model *both[] = {&m, &other};
  for (int i = 0; i < 2; i++) { /* dropout draws what it would have drawn */
    both[i]->hyper.weight_decay = 0.01f;
    feed(both[i], &g, BATCH);
    sgd_train_step(both[i], BATCH, 0.02f, 0.9f);
  }
  assert_memory_equal(other.parameters, m.parameters, m.parameter_count * sizeof(float));
  assert_memory_equal(other.buffers, m.buffers, m.buffer_count * sizeof(float));
  model_close(&other);
  model_close(&m);
  safetensors_close(&g.file);
}

/* PyTorch loads our file and we load PyTorch's, every name and nothing else, batch norm's counters of batches among
 * them: load_state_dict(strict=True) both ways. */
static void pytorch_loads_a_checkpoint_and_back(void **state) {
  (void)state;
  static Golden g;
  Error err;
  Model m, other;
  char ours[PATH_MAX], theirs[PATH_MAX], script[PATH_MAX];
  TrainState saved = TrainState(), read;
  saved.epochs = saved.batch_size = saved.train_images = saved.test_images = 1;
  saved.stddev[0] = 1;
  if (runfiles_find("tools/golden/residual_state_dict.py", script, sizeof script, &err) != 0)
    fail_msg("%s", err.message);
  golden_open(&g);
  load(&m, &g, DEVICE_CPU);
  feed(&m, &g, 0);
  for (int step = 0; step < 3; step++) sgd_train_step(&m, BATCH, 0.02f, 0.9f);
  test_path(ours, sizeof ours, "ours.safetensors");
  test_path(theirs, sizeof theirs, "theirs.safetensors");
  if (checkpoint_save(ours, CHECKPOINT_MODEL, &m, &saved, &err) != 0) fail_msg("%s", err.message);
  const char *argv[] = {"/usr/bin/python3", script, ours, theirs, NULL};
  Subprocess run = subprocess_run(argv, 120);
  const int status = run.status;
  if (status == 0 && strcmp(run.out, "num_batches_tracked 3 3 3 3\n") != 0) fail_msg("%s", run.out);
  if (status != 0 && status != 77 && status != 127) fail_msg("exit status %d: %s", status, run.err);
  subprocess_free(&run);
  if (status == 0) {
    int64_t batches = 0;
    SafetensorsFile file = SafetensorsFile();
    sgd_model_open(&other, residual_graph(), DEVICE_CPU, BATCH);
    if (checkpoint_load(theirs, CHECKPOINT_MODEL, &other, &read, &err) != 0) fail_msg("%s", err.message);
    assert_memory_equal(other.parameters, m.parameters, m.parameter_count * sizeof(float));
    assert_memory_not_equal(other.buffers, m.buffers, m.buffer_count * sizeof(float)); /* PyTorch trained a batch */
    feed(&other, &g, 0);
    sgd_train_step(&other, BATCH, 0.02f, 0.9f);
    if (checkpoint_save(ours, CHECKPOINT_MODEL, &other, &saved, &err) != 0 ||
        safetensors_open(ours, &file, &err) != 0 ||
        safetensors_read(&file, "layer1.0.downsample.1.num_batches_tracked", "I64", 0, NULL, &batches, &err) != 0)
      fail_msg("%s", err.message);
    assert_int_equal(batches, 5); /* 3 of ours, 1 of PyTorch's, 1 of ours */
    safetensors_close(&file);
    model_close(&other);
  }
  model_close(&m);
  safetensors_close(&g.file);
  if (status == 0) return;
  print_message("skipped: python3-torch is not installed\n");
  skip();
}

/* The parameters of frozen nodes stay, and the gradients of the nodes before them are what they were. */
static void check_frozen(Device device) {
  static Golden g;
  static const char *const frozen[] = {"layer1.0.conv2", "layer1.0.bn2", "fc"};
  Model m, other;
  Graph *graph = residual_graph();
  golden_open(&g);
  for (size_t i = 0; i < sizeof frozen / sizeof frozen[0]; i++) graph_freeze(graph, graph_find(graph, frozen[i]));
  sgd_model_open(&m, residual_graph(), device, BATCH);
  sgd_model_open(&other, graph, device, BATCH);
  Model *both[] = {&m, &other};
  for (int i = 0; i < 2; i++) {
    model_init(both[i], 5);
    feed(both[i], &g, 0);
    sgd_train_step(both[i], BATCH, 0.02f, 0.9f);
  }
  assert_true(other.parameter_count < m.parameter_count);
  float *host = checkpoint_host(&m), *wanted = checkpoint_host(&m);
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(&other, &node, &index)) != NULL) {
    if (!p->trained) continue;
    device_download(device, host, model_gradient(&other, p), p->count * sizeof(float));
    device_download(device, wanted, model_gradient(&m, model_find_param(&m, p->name)), p->count * sizeof(float));
    assert_memory_equal(host, wanted, p->count * sizeof(float));
  }
  device_download(device, host, model_param(&other, model_find_param(&other, "layer1.0.bn2.weight")), sizeof(float));
  assert_true(host[0] == 1);
  free(host);
  free(wanted);
  model_close(&other);
  model_close(&m);
  safetensors_close(&g.file);
}

static void frozen_nodes_stay_cpu(void **state) {
  (void)state;
  check_frozen(DEVICE_CPU);
}

static void frozen_nodes_stay_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_frozen(DEVICE_GPU);
}

/* The shortcut's convolution reads what the block's first one reads; its output is not written over. */
static void the_arena_is_small(void **state) {
  (void)state;
  Model m;
  sgd_model_open(&m, residual_graph(), DEVICE_CPU, 64);
  model_print_summary(stdout, &m);
  assert_true((double)m.plan.arena_bytes <= 1.1 * (double)m.plan.live_bytes);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(training_cpu),
                                     cmocka_unit_test(a_checkpoint_keeps_running_statistics),
                                     cmocka_unit_test(pytorch_loads_a_checkpoint_and_back),
                                     cmocka_unit_test(the_arena_is_small),
                                     cmocka_unit_test(frozen_nodes_stay_cpu),
                                     cmocka_unit_test(frozen_nodes_stay_gpu),
                                     cmocka_unit_test(training_gpu)};
  return TEST_MAIN("residual", tests);
}
