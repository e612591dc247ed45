/* Residual blocks with both kinds of shortcut against PyTorch: 50 steps of SGD from the same weights, on the same
 * batches, with the same dropout. The vectors are made by tools/golden/residual_golden.py.
 *
 * It is what a list of layers could not be: a node that two others read, two parts that meet, training and evaluation
 * that differ, and running statistics that are kept but not trained. */
#include "common/nn/checkpoint.h"
#include "common/runfiles.h"
#include "common/safetensors.h"
#include "common/subprocess.h"
#include "common/test_arrays.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase1_building_blocks/12_dropout/dropout_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/11_residual/add_relu_op.cuh"
#include "phase3_cnn/11_residual/residual_block.cuh"

enum { IMAGES = 20, BATCH = 4, STEPS = 50, PIXELS = 2 * 9 * 7, CLASSES = 3 };

static Graph *residual_graph(void) {
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(2, 9, 7));
  x = relu(g, batch_norm2d(g, conv2d_no_bias(g, x, 4, 3, 1, 1)));
  x = residual_block(g, "layer1.0", x, 4, 1);
  x = residual_block(g, "layer2.0", x, 6, 2);
  x = dropout(g, x, 0.25f);
  graph_loss(g, &cross_entropy_loss, linear(graph_name(g, "fc"), x, CLASSES), 1);
  return g;
}

/* The same, each sum computed with its ReLU. */
static Graph *fused_graph(void) {
  static const Fusion fusions[] = {FUSE_ADD_RELU};
  Graph *g = residual_graph();
  graph_fuse(g, fusions, 1);
  return g;
}

/* ---- kernels ---- */

static void reference_is_right_by_hand(void **state) {
  (void)state;
  const float a[6] = {1, -2, 3, -INFINITY, 1e-30f, 2}, b[6] = {2, 1, -3, 5, 0, -0.5f};
  const float y_expected[6] = {3, 0, 0, 0, 1e-30f, 1.5f}, dy[6] = {10, 20, 30, 40, 50, 60};
  const float d_expected[6] = {10, 0, 0, 0, 50, 60};
  float y[6], da[6], db[6], mean[2];
  add_relu_mean_cpu(y, mean, a, b, 2, 3);
  assert_close(y, y_expected, 6, 0, 0);
  assert_true(mean[0] == 1 && mean[1] == 0.5f);
  add_relu_backward_cpu(da, db, dy, y, 6);
  assert_close(da, d_expected, 6, 0, 0);
  assert_close(db, d_expected, 6, 0, 0);
}

/* Central differences of sum(r y), away from the kink at 0. */
static void gradient_is_that_of_the_formula(void **state) {
  (void)state;
  enum { N = 33 };
  const double h = 1e-5;
  float random[3 * N];
  double a[N], b[N], r[N], y[N], da[N], db[N];
  test_random_fill(random, 3 * N, 1);
  for (int i = 0; i < N; i++) {
    b[i] = random[N + i];
    a[i] = random[i] - b[i] + (random[i] < 0 ? -0.01 : 0.01);
    r[i] = random[2 * N + i];
  }
  add_relu_forward_cpu(y, a, b, N);
  add_relu_backward_cpu(da, db, r, y, N);
  for (int i = 0; i < N; i++) {
    double left[2] = {a[i] - h, a[i] + h}, right[2] = {b[i], b[i]}, ends[2];
    add_relu_forward_cpu(ends, left, right, 2);
    const double slope = r[i] * (ends[1] - ends[0]) / (2 * h);
    if (!(fabs(da[i] - slope) < 1e-8 && db[i] == da[i])) fail_msg("%d: da %g, db %g, slope %g", i, da[i], db[i], slope);
  }
}

/* Which array the output lies over: 0 none, 1 and 2 an input. Bit for bit, a NaN included. */
static void check_forward(Device device, size_t n, int over) {
  float *a = arrays_random(n, 2), *b = arrays_random(n, 3), *expected = arrays_poison(n), *y = arrays_poison(n);
  a[n / 2] = NAN;
  add_relu_forward_cpu(expected, a, b, n);
  float *device_a = arrays_upload(device, a, n), *device_b = arrays_upload(device, b, n);
  float *own = over ? NULL : arrays_upload(device, y, n), *to = over == 0 ? own : over == 1 ? device_a : device_b;
  ON_DEVICE(device, add_relu_forward_gpu(to, device_a, device_b, n),
            add_relu_forward_cpu_fast(to, device_a, device_b, n));
  device_download(device, y, to, n * sizeof *y);
  assert_true(isnan(y[n / 2]));
  y[n / 2] = expected[n / 2] = 0;
  assert_memory_equal(y, expected, n * sizeof *y);
  arrays_download(device, NULL, device_a, n, "a");
  arrays_download(device, NULL, device_b, n, "b");
  if (own) arrays_download(device, NULL, own, n, "y");
  float *const all[] = {a, b, expected, y};
  for (int i = 0; i < 4; i++) free(all[i]);
}

/* Where the gradients go: 0 two arrays; 1 da over dy; 2 one array over dy; 3 db alone; 4 one array of its own. */
static void check_backward(Device device, size_t n, int where) {
  float *dy = arrays_random(n, 4), *y = arrays_random(n, 5), *expected = arrays_poison(n), *got = arrays_poison(n);
  for (size_t i = 0; i < n; i++)
    if (y[i] < 0) y[i] = 0; /* as it comes from the forward pass */
  add_relu_backward_cpu(expected, (float *)NULL, dy, y, n);
  float *device_dy = arrays_upload(device, dy, n), *device_y = arrays_upload(device, y, n);
  float *first = arrays_upload(device, got, n), *second = arrays_upload(device, got, n);
  float *da = where == 1 || where == 2 ? device_dy : where == 3 ? NULL : first;
  float *db = where == 2 || where == 4 ? da : second;
  ON_DEVICE(device, add_relu_backward_gpu(da, db, device_dy, device_y, n),
            add_relu_backward_cpu_fast(da, db, device_dy, device_y, n));
  float *const results[] = {da, db};
  for (int k = 0; k < 2; k++) {
    if (results[k] == NULL) continue;
    device_download(device, got, results[k], n * sizeof *got);
    assert_memory_equal(got, expected, n * sizeof *got);
  }
  arrays_download(device, NULL, device_dy, n, "dy");
  arrays_download(device, NULL, device_y, n, "y");
  arrays_download(device, NULL, first, n, "da");
  arrays_download(device, NULL, second, n, "db");
  float *const all[] = {dy, y, expected, got};
  for (int i = 0; i < 4; i++) free(all[i]);
}

static void check_in_place(Device device) {
  static const size_t sizes[] = {1, 3, 31, 33, 127, 256, 1021, 40011};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (int over = 0; over < 3; over++) check_forward(device, sizes[s], over);
    for (int where = 0; where < 5; where++) check_backward(device, sizes[s], where);
  }
}

static void every_array_may_be_in_place_cpu(void **state) {
  (void)state;
  check_in_place(DEVICE_CPU);
}

static void every_array_may_be_in_place_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_in_place(DEVICE_GPU);
}

/* ---- a network beside PyTorch's ---- */

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
static void load_graph(Model *m, Golden *g, Graph *graph, Device device) {
  Error err;
  sgd_model_open(m, graph, device, BATCH);
  float *host = checkpoint_host(m);
  if (checkpoint_read(&g->file, m, CHECKPOINT_ALL, "", host, &err) != 0) fail_msg("%s", err.message);
  device_upload(device, m->parameters, host, m->parameter_count * sizeof(float));
  device_upload(device, m->buffers, host + m->parameter_count, m->buffer_count * sizeof(float));
  free(host);
  m->context.seed = 77;
  m->hyper.weight_decay = 0.01f;
}

static void load(Model *m, Golden *g, Device device) { load_graph(m, g, residual_graph(), device); }

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
  /* Of size 1 to 5, behind eight layers whose weights agree to 1e-5. */
  assert_close(logits, expected_logits, BATCH * CLASSES, 1e-5, 1e-4);
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
  if (status == 0 && strcmp(run.out, "num_batches_tracked 3 3 3 3 3 3\n") != 0) fail_msg("%s", run.out);
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
        safetensors_read(&file, "layer2.0.downsample.1.num_batches_tracked", "I64", 0, NULL, &batches, &err) != 0)
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
  static const char *const frozen[] = {"layer2.0.conv2", "layer2.0.bn2", "fc"};
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
  device_download(device, host, model_param(&other, model_find_param(&other, "layer2.0.bn2.weight")), sizeof(float));
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

/* ---- fused, and with gradients in one array ---- */

static void check_fused(Device device) {
  static Golden g;
  Model m[2];
  float loss[2][BATCH], *host[2];
  golden_open(&g);
  for (int i = 0; i < 2; i++) {
    load_graph(&m[i], &g, i ? fused_graph() : residual_graph(), device);
    host[i] = checkpoint_host(&m[i]);
    for (int step = 0; step < 3; step++) {
      feed(&m[i], &g, step * BATCH);
      sgd_train_step(&m[i], BATCH, 0.02f, 0.9f);
    }
    device_download(device, loss[i], m[i].losses[0], sizeof loss[i]);
    device_download(device, host[i], m[i].parameters, m[i].parameter_count * sizeof(float));
    device_download(device, host[i] + m[i].parameter_count, m[i].buffers, m[i].buffer_count * sizeof(float));
  }
  assert_memory_equal(loss[1], loss[0], sizeof loss[0]);
  assert_memory_equal(host[1], host[0], (m[0].parameter_count + m[0].buffer_count) * sizeof(float));
  for (int i = 0; i < 2; i++) {
    free(host[i]);
    model_close(&m[i]);
  }
  safetensors_close(&g.file);
}

static void fused_is_the_same_cpu(void **state) {
  (void)state;
  check_fused(DEVICE_CPU);
}

static void fused_is_the_same_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_fused(DEVICE_GPU);
}

static int gradient_of(const Model *m, const char *name) { return m->plan.node[graph_find(m->graph, name)].gradient; }

/* Both sums are computed with their ReLU, and both branches of a block read the gradient that the block gets. */
static void a_block_moves_no_gradient(void **state) {
  (void)state;
  Model m;
  Graph *g = fused_graph();
  int fused = 0;
  for (int i = 0; i < g->count; i++) fused += g->nodes[i].op == &add_relu_op;
  assert_int_equal(fused, 2);
  sgd_model_open(&m, g, DEVICE_CPU, BATCH);
  assert_int_equal(gradient_of(&m, "layer2.0.bn2"), gradient_of(&m, "layer2.0.relu2"));
  assert_int_equal(gradient_of(&m, "layer2.0.downsample.1"), gradient_of(&m, "layer2.0.bn2"));
  assert_int_equal(gradient_of(&m, "layer1.0.bn2"), gradient_of(&m, "layer1.0.relu2"));
  assert_int_equal(gradient_of(&m, "relu1"), gradient_of(&m, "layer1.0.bn2")); /* the shortcut is x itself */
  model_close(&m);
}

static int conv3x3(Graph *g, int x) { return conv2d(g, x, 2, 3, 1, 1); }

/* Sums where the inputs' gradients may be one array, and where not: `shares` of them. */
static Graph *awkward(int which, int *shares) {
  static const int expected[] = {0, 0, 1, 0, 2, 1, 1, 0, 1};
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(2, 5, 4)), c = conv3x3(g, x);
  const int h = which == 0 ? c : which == 1 || which == 7 ? relu(g, conv3x3(g, c)) : conv3x3(g, c);
  int y = h, other = c;
  *shares = expected[which];
  if (which == 3) other = conv3x3(g, c); /* adds to c's gradient before h reads its own */
  if (which == 7) other = relu(g, conv3x3(g, c));
  if (which == 5) y = add(g, c, h);
  if (which == 7) y = add(g, h, other);
  if (which != 5 && which != 7) y = add(g, h, c);
  if (which == 3) y = add(g, y, other);
  if (which == 4 || which == 6) {
    const int next = conv3x3(g, y);
    y = add(g, next, which == 4 ? y : relu(g, y));
  }
  if (which == 8) {
    const int next = conv3x3(g, h);
    y = add(g, y, next);
  }
  graph_loss(g, &cross_entropy_loss, linear(g, relu(g, y), CLASSES), 1);
  return g;
}

enum { AWKWARD = 9 };

/* The gradients of all parameters, in host memory; how many sums give both inputs one array. */
static float *awkward_gradients(Graph *g, size_t *count, int *shared) {
  Model m;
  float x[BATCH * 40];
  const int labels[BATCH] = {2, 0, 1, 1};
  sgd_model_open(&m, g, DEVICE_CPU, BATCH);
  model_init(&m, 3);
  test_random_fill(x, BATCH * 40, 8);
  device_upload(DEVICE_CPU, model_input(&m, 0), x, sizeof x);
  device_upload(DEVICE_CPU, model_labels(&m), labels, sizeof labels);
  model_forward(&m, BATCH);
  model_score(&m, BATCH);
  model_backward(&m, BATCH);
  *shared = 0;
  for (int i = 0; i < g->count; i++) {
    const int *in = g->nodes[i].input;
    if (g->nodes[i].inputs < 2 || in[0] == in[1]) continue;
    *shared += m.plan.node[in[0]].gradient == m.plan.node[in[1]].gradient;
  }
  *count = m.parameter_count;
  float *gradients = (float *)xmalloc(*count * sizeof *gradients);
  memcpy(gradients, m.gradients, *count * sizeof *gradients);
  model_close(&m);
  return gradients;
}

/* With an array for each gradient, as planned, and fused: the same bits. */
static void gradients_share_an_array_where_they_may(void **state) {
  (void)state;
  static const Op apart = {"Add", 0, 0, NULL, NULL, add_op_forward, add_op_backward};
  static const Fusion fusions[] = {FUSE_ADD_RELU};
  for (int which = 0; which < AWKWARD; which++) {
    float *gradients[3];
    size_t count;
    for (int way = 0; way < 3; way++) {
      int expected, shared;
      Graph *g = awkward(which, &expected);
      for (int i = 0; i < g->count && way == 0; i++)
        if (g->nodes[i].op == &add_op) g->nodes[i].op = &apart;
      if (way == 2) graph_fuse(g, fusions, 1);
      gradients[way] = awkward_gradients(g, &count, &shared);
      if (shared != (way == 0 ? 0 : expected))
        fail_msg("network %d: %d sums share, expected %d", which, shared, expected);
      if (memcmp(gradients[way], gradients[0], count * sizeof(float)) != 0)
        fail_msg("network %d, %s: the gradients differ", which, way == 1 ? "one array for both" : "fused");
    }
    for (int way = 0; way < 3; way++) free(gradients[way]);
  }
}

/* A sum that something else reads, too, stays a sum. */
static void a_sum_that_is_read_twice_is_not_fused(void **state) {
  (void)state;
  static const Fusion fusions[] = {FUSE_ADD_RELU};
  for (int twice = 0; twice < 2; twice++) {
    Graph *g = graph_create();
    const int x = graph_input(g, "x", shape3(2, 5, 4)), sum = add(g, conv3x3(g, x), x), bent = relu(g, sum);
    if (twice) conv3x3(g, sum);
    graph_fuse(g, fusions, 1);
    assert_ptr_equal(g->nodes[sum].op, twice ? &add_op : &add_relu_op);
    assert_ptr_equal(g->nodes[bent].op, twice ? &activation_ops[ACTIVATION_RELU] : &relu_passed_op);
    graph_destroy(g);
  }
}

static void different_shapes_are_refused(void **state) {
  (void)state;
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(2, 9, 7)), h = conv2d(g, x, 4, 3, 2, 1);
  assert_int_equal(add(g, h, x), GRAPH_ERROR);
  assert_string_equal(g->error.message, "add: conv1 has the shape (4,5,4), x has (2,9,7); the same shape is expected");
  graph_destroy(g);
}

/* torchvision's names, and a projection only where the shapes differ. */
static void blocks_have_the_names_of_torchvision(void **state) {
  (void)state;
  static const char *const nodes[] = {"layer1.0.conv1",        "layer1.0.bn1",         "layer1.0.conv2",
                                      "layer1.0.bn2",          "layer2.0.conv2",       "layer2.0.relu2",
                                      "layer2.0.downsample.0", "layer2.0.downsample.1"};
  Graph *g = residual_graph();
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
    if (graph_find(g, nodes[i]) < 0) fail_msg("there is no node %s", nodes[i]);
  assert_int_equal(graph_find(g, "layer1.0.downsample.0"), GRAPH_ERROR);
  assert_int_equal(g->nodes[graph_find(g, "layer2.0.downsample.0")].params, 1); /* no bias */
  assert_true(shape_equal(graph_shape(g, graph_find(g, "layer2.0.relu2")), shape3(6, 5, 4)));
  graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reference_is_right_by_hand),
                                     cmocka_unit_test(gradient_is_that_of_the_formula),
                                     cmocka_unit_test(every_array_may_be_in_place_cpu),
                                     cmocka_unit_test(every_array_may_be_in_place_gpu),
                                     cmocka_unit_test(blocks_have_the_names_of_torchvision),
                                     cmocka_unit_test(different_shapes_are_refused),
                                     cmocka_unit_test(a_sum_that_is_read_twice_is_not_fused),
                                     cmocka_unit_test(gradients_share_an_array_where_they_may),
                                     cmocka_unit_test(a_block_moves_no_gradient),
                                     cmocka_unit_test(fused_is_the_same_cpu),
                                     cmocka_unit_test(fused_is_the_same_gpu),
                                     cmocka_unit_test(training_cpu),
                                     cmocka_unit_test(a_checkpoint_keeps_running_statistics),
                                     cmocka_unit_test(pytorch_loads_a_checkpoint_and_back),
                                     cmocka_unit_test(the_arena_is_small),
                                     cmocka_unit_test(frozen_nodes_stay_cpu),
                                     cmocka_unit_test(frozen_nodes_stay_gpu),
                                     cmocka_unit_test(training_gpu)};
  return TEST_MAIN("residual", tests);
}
