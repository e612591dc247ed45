/* The residual network against PyTorch, and the network without batch norm against the one it was made of. The vectors
 * are of resnet_mnist.py, with few filters; tools/golden/resnet_golden.py makes them. */
#include "common/nn/checkpoint.h"
#include "common/runfiles.h"
#include "common/safetensors.h"
#include "common/test.h"
#include "phase3_cnn/14_resnet_mnist/resnet_networks.cuh"

enum { IMAGES = 12, BATCH = 6, STEPS = 10, PIXELS = 28 * 28, CLASSES = 10 };

static const ResnetShape few = {{5, 6, 8}, 0.25};

typedef struct Golden {
  SafetensorsFile file;
  Model net;
  float images[IMAGES * PIXELS];
  int labels[IMAGES];
} Golden;

static void golden_read(Golden *g, const char *name, int rank, const size_t *shape, float *out) {
  Error err;
  if (safetensors_read_f32(&g->file, name, rank, shape, out, &err) != 0) fail_msg("%s", err.message);
}

/* A network with PyTorch's weights and running statistics, by PyTorch's names. Its dropout draws from the streams that
 * resnet_golden.py has drawn from, whatever operations stand before it. */
static void golden_open(Golden *g, Device device) {
  Error err;
  char path[PATH_MAX];
  const size_t images[] = {IMAGES, 1, 28, 28}, labels[] = {IMAGES};
  if (runfiles_find("phase3_cnn/14_resnet_mnist/testdata/resnet_golden.safetensors", path, sizeof path, &err) != 0 ||
      safetensors_open(path, &g->file, &err) != 0)
    fail_msg("%s", err.message);
  golden_read(g, "input", 4, images, g->images);
  if (safetensors_read(&g->file, "labels", "I32", 1, labels, g->labels, &err) != 0) fail_msg("%s", err.message);
  Graph *graph = resnet_fused(few);
  graph->nodes[graph_find(graph, "dropout1")].order = 23;
  graph->nodes[graph_find(graph, "dropout2")].order = 26;
  sgd_model_open(&g->net, graph, device, BATCH);
  Model *m = &g->net;
  float *host = checkpoint_host(m);
  if (checkpoint_read(&g->file, m, CHECKPOINT_ALL, "", host, &err) != 0) fail_msg("%s", err.message);
  device_upload(device, m->parameters, host, m->parameter_count * sizeof(float));
  device_upload(device, m->buffers, host + m->parameter_count, m->buffer_count * sizeof(float));
  free(host);
  m->context.seed = 77;
  m->hyper.weight_decay = 0.01f;
}

static void golden_close(Golden *g) {
  model_close(&g->net);
  safetensors_close(&g->file);
}

static void feed(const Model *m, const float *images, const int *labels, int batch) {
  device_upload(m->context.device, model_input(m, 0), images, (size_t)batch * PIXELS * sizeof(float));
  device_upload(m->context.device, model_labels(m), labels, batch * sizeof(int));
}

/* Tensor by tensor, each against its own largest value. A gradient adds up to 6 x 784 products of values that carry the
 * rounding of some twenty operations: 1e-6 of the largest, and 1e-5 leaves room for cancellation in batch norm. Where a
 * tensor is small, the rounding is that of an ordinary size, 0.1. */
static void compare_tensors(Golden *g, CheckpointTensors tensors, const char *prefix, const float *ours) {
  Error err;
  const Model *m = &g->net;
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
    assert_true(largest > 1e-4f); /* zeros would prove nothing */
    assert_close(ours + offset, expected + offset, p->count, 1e-5, 1e-5 * fmax(0.1, (double)largest));
  }
  free(expected);
}

/* Ten steps: logits and every gradient of the first one, every loss; every parameter and running statistic after the
 * last, then the logits in evaluation. */
static void check_training(Device device) {
  static Golden g;
  golden_open(&g, device);
  Model *m = &g.net;
  float losses[STEPS], expected[STEPS], logits[BATCH * CLASSES], expected_logits[BATCH * CLASSES];
  float *host = checkpoint_host(m);
  const size_t steps[] = {STEPS}, shape[] = {BATCH, CLASSES};
  golden_read(&g, "losses", 1, steps, expected);
  golden_read(&g, "logits", 2, shape, expected_logits);
  for (int step = 0; step < STEPS; step++) {
    const Totals none = {0, 0};
    const int first = step * BATCH % IMAGES;
    model_reset_totals(m, 0, none);
    feed(m, g.images + first * PIXELS, g.labels + first, BATCH);
    sgd_train_step(m, BATCH, 0.02f, 0.9f);
    losses[step] = (float)(model_read_totals(m, 0).loss / BATCH);
    if (step > 0) continue;
    device_download(device, logits, model_logits(m, 0), sizeof logits);
    assert_close(logits, expected_logits, BATCH * CLASSES, 1e-5, 2e-5);
    device_download(device, host, m->gradients, m->parameter_count * sizeof(float));
    compare_tensors(&g, CHECKPOINT_TRAINED, "grad.", host);
  }
  assert_close(losses, expected, STEPS, 2e-5, 2e-5);
  device_download(device, host, m->parameters, m->parameter_count * sizeof(float));
  device_download(device, host + m->parameter_count, m->buffers, m->buffer_count * sizeof(float));
  compare_tensors(&g, CHECKPOINT_ALL, "trained.", host);
  golden_read(&g, "evaluated", 2, shape, expected_logits);
  feed(m, g.images, g.labels, BATCH);
  model_evaluate_step(m, BATCH);
  device_download(device, logits, model_logits(m, 0), sizeof logits);
  assert_close(logits, expected_logits, BATCH * CLASSES, 2e-5, 5e-5);
  free(host);
  golden_close(&g);
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

/* PyTorch counts the batches that it has seen in every batch norm; a checkpoint of ours has the number. */
static void a_checkpoint_counts_batches_as_pytorch_does(void **state) {
  (void)state;
  static Golden g;
  Error err;
  char path[PATH_MAX];
  int expected;
  int64_t counted;
  SafetensorsFile file;
  TrainState saved = TrainState();
  saved.epochs = saved.batch_size = saved.train_images = saved.test_images = 1;
  saved.stddev[0] = 1;
  golden_open(&g, DEVICE_CPU);
  if (safetensors_read(&g.file, "num_batches_tracked", "I32", 0, NULL, &expected, &err) != 0)
    fail_msg("%s", err.message);
  for (int step = 0; step < STEPS; step++) {
    feed(&g.net, g.images, g.labels, 2);
    sgd_train_step(&g.net, 2, 0.01f, 0.9f);
  }
  test_path(path, sizeof path, "counts.safetensors");
  if (checkpoint_save(path, CHECKPOINT_MODEL, &g.net, &saved, &err) != 0 || safetensors_open(path, &file, &err) != 0)
    fail_msg("%s", err.message);
  const char *names[] = {"bn1.num_batches_tracked", "layer1.0.bn2.num_batches_tracked",
                         "layer2.0.downsample.1.num_batches_tracked"};
  for (int i = 0; i < 3; i++) {
    if (safetensors_read(&file, names[i], "I64", 0, NULL, &counted, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(counted, expected);
  }
  safetensors_close(&file);
  golden_close(&g);
}

/* ------------------------------------------------------------------------------------------------------- inference */

enum { INFERRED = 40 };

static float inferred_images[INFERRED * PIXELS];
static int inferred_labels[INFERRED];

/* A blot of its own place and size for each class. */
static void draw_images(void) {
  for (int n = 0; n < INFERRED; n++) {
    const int c = inferred_labels[n] = n * 7 % CLASSES;
    for (int i = 0; i < PIXELS; i++) {
      const int row = i / 28, column = i % 28;
      const int inside = row / 3 == c % 5 + 2 && column / 2 >= c && column / 2 < c + 3;
      const float noise = (float)(philox4x32(9, 1, (uint64_t)n * PIXELS + i).word[0] >> 8) * 0x1p-24f;
      inferred_images[n * PIXELS + i] = 2 * inside + noise - 0.5f;
    }
  }
}

/* The logits of all images in evaluation. */
static void infer(Model *m, float *logits, int images) {
  const int most = m->max_batch;
  for (int first = 0; first < images; first += most) {
    const int batch = images - first < most ? images - first : most;
    feed(m, inferred_images + first * PIXELS, inferred_labels + first, batch);
    model_evaluate_step(m, batch);
    device_download(m->context.device, logits + first * CLASSES, model_logits(m, 0), batch * CLASSES * sizeof(float));
  }
}

static int best(const float *logits) {
  int best = 0;
  for (int k = 1; k < CLASSES; k++)
    if (logits[k] > logits[best]) best = k;
  return best;
}

/* The same answers, in fewer operations. Both compute the same sums, of which a weight w' = fl(gamma inv_std w) is
 * rounded once more and the bias is added at another place. A sum of n products has at most n roundings of 2^-24, and
 * in practice about sqrt(n), of the size of its terms. The longest path has seven sums, of up to 9 * filters products;
 * where the sums cancel, their terms are larger than they are: twice is allowed. */
static void check_folded(Device device, ResnetShape shape, int steps, int images) {
  Error err;
  Model net, fast;
  static float expected[INFERRED * CLASSES], got[INFERRED * CLASSES];
  int same = 0, right = 0, sums = shape.filters[2] * 9;
  float largest = 0, error = 0;
  draw_images();
  sgd_model_open(&net, resnet_fused(shape), device, 8);
  model_init(&net, 3);
  for (int step = 0; step < steps; step++) {
    feed(&net, inferred_images + step * 8 % INFERRED * PIXELS, inferred_labels + step * 8 % INFERRED, 8);
    sgd_train_step(&net, 8, 0.02f, 0.9f);
  }
  if (residual_infer(&fast, &net, 5, &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < fast.graph->count; i++)
    assert_false(fast.graph->nodes[i].op && batch_norm2d_is(&fast.graph->nodes[i]));
  infer(&net, expected, images);
  infer(&fast, got, images);
  for (int n = 0; n < images; n++) {
    same += best(expected + n * CLASSES) == best(got + n * CLASSES);
    right += best(got + n * CLASSES) == inferred_labels[n];
    for (int k = 0; k < CLASSES; k++) largest = fmaxf(largest, fabsf(expected[n * CLASSES + k]));
  }
  const double tolerance = 2 * sqrt(7.0 * sums) * 0x1p-24 * (double)largest;
  for (int i = 0; i < images * CLASSES; i++) error = fmaxf(error, fabsf(got[i] - expected[i]));
  print_message("%d of %d right, largest logit %.2f, error %.1e, tolerance %.1e\n", right, images, (double)largest,
                (double)error, tolerance);
  assert_close(got, expected, images * CLASSES, 0, tolerance);
  assert_int_equal(same, images);
  if (steps >= 20) assert_true(right >= images * 3 / 4); /* it has learned: its running statistics are of use */
  model_close(&fast);
  model_close(&net);
}

static void folded_agrees_cpu(void **state) {
  (void)state;
  check_folded(DEVICE_CPU, resnet_default, 24, INFERRED);
}

static void folded_agrees_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_folded(DEVICE_GPU, few, 5, 12);
}

/* ------------------------------------------------------------------------------------------ what a checkpoint says */

static void the_text_of_a_network_is_read_back(void **state) {
  (void)state;
  const ResnetShape shapes[] = {resnet_default, few, {{1, 4096, 33}, 0}, {{16, 32, 64}, 0.1}};
  char text[CHECKPOINT_NETWORK];
  ResnetShape read;
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    resnet_text(shapes[i], text);
    assert_int_equal(resnet_parse(text, &read), 0);
    assert_memory_equal(read.filters, shapes[i].filters, sizeof read.filters);
    assert_true(read.dropout == shapes[i].dropout);
  }
  const char *wrong[] = {"",
                         "resnet",
                         "resnet 16,32 dropout 0.25",
                         "resnet 16,32,64 dropout 1",
                         "resnet 16,32,64 dropout -0.1",
                         "resnet 0,32,64 dropout 0.25",
                         "resnet 16,32,64 dropout nan",
                         "resnet 16,32,64 dropout 0.25 ",
                         "784,128,10 relu"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) assert_int_equal(resnet_parse(wrong[i], &read), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(training_cpu),      cmocka_unit_test(a_checkpoint_counts_batches_as_pytorch_does),
      cmocka_unit_test(folded_agrees_cpu), cmocka_unit_test(the_text_of_a_network_is_read_back),
      cmocka_unit_test(training_gpu),      cmocka_unit_test(folded_agrees_gpu)};
  return TEST_MAIN("resnet", tests);
}
