/* LeNet-5 against PyTorch: the same weights and batch must give the same logits, loss, gradients and, over ten steps of
 * SGD with momentum, the same losses. The vectors are made by tools/golden/lenet_golden.py. And PyTorch opens what a
 * training run saves. */
#include "common/nn/checkpoint.h"
#include "common/nn/golden.h"
#include "common/runfiles.h"
#include "common/safetensors.h"
#include "common/test.h"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"

enum { BATCH = 5, STEPS = 10 };

typedef struct Vectors {
  Model lenet;
  SafetensorsFile file;
  float *host; /* (parameters) */
} Vectors;

static void vectors_read(Vectors *g, const char *name, int rank, const size_t *shape, float *out) {
  Error err;
  if (safetensors_read_f32(&g->file, name, rank, shape, out, &err) != 0) fail_msg("%s", err.message);
}

/* Opens the vectors, and loads weights, batch and labels into a new network. */
static void vectors_begin(Vectors *g, Device device) {
  Error err;
  char path[PATH_MAX];
  if (runfiles_find("phase3_cnn/12_lenet_mnist/testdata/lenet_golden.safetensors", path, sizeof path, &err) != 0 ||
      safetensors_open(path, &g->file, &err) != 0)
    fail_msg("%s", err.message);
  lenet_create(&g->lenet, device, BATCH);
  Model *net = &g->lenet;
  assert_int_equal(net->parameter_count, 61706);
  g->host = (float *)xmalloc(net->parameter_count * sizeof(float));
  if (checkpoint_read(&g->file, net, CHECKPOINT_ALL, "", g->host, &err) != 0) fail_msg("%s", err.message);
  device_upload(device, net->parameters, g->host, net->parameter_count * sizeof(float));

  static float input[BATCH * 28 * 28];
  int labels[BATCH];
  const size_t input_shape[] = {BATCH, 1, 28, 28}, label_shape[] = {BATCH};
  vectors_read(g, "input", 4, input_shape, input);
  if (safetensors_read(&g->file, "labels", "I32", 1, label_shape, labels, &err) != 0) fail_msg("%s", err.message);
  device_upload(device, model_input(net, 0), input, sizeof input);
  device_upload(device, model_labels(net), labels, sizeof labels);
}

static void vectors_end(Vectors *g) {
  model_close(&g->lenet);
  safetensors_close(&g->file);
  free(g->host);
}

/* Tolerances: a gradient of conv1 adds up 5 x 784 products of values that carry the rounding of eight operations each;
 * in float32 that is some 1e-6 of the largest gradient, and 1e-5 leaves room for another order of summation. */
static void check_first_step(Device device) {
  Vectors g;
  vectors_begin(&g, device);
  Model *net = &g.lenet;
  model_forward(net, BATCH);
  model_score(net, BATCH);
  model_backward(net, BATCH);

  float logits[BATCH * 10], expected_logits[BATCH * 10], loss;
  const size_t logits_shape[] = {BATCH, 10};
  vectors_read(&g, "logits", 2, logits_shape, expected_logits);
  vectors_read(&g, "loss", 0, NULL, &loss);
  device_download(device, logits, model_logits(net, 0), sizeof logits);
  assert_close(logits, expected_logits, BATCH * 10, 1e-5, 1e-5);
  assert_true(fabs(model_read_totals(net, 0).loss / BATCH - loss) < 1e-5);

  float *gradients = (float *)xmalloc(net->parameter_count * sizeof(float));
  Error err;
  if (checkpoint_read(&g.file, net, CHECKPOINT_TRAINED, "grad.", g.host, &err) != 0) fail_msg("%s", err.message);
  device_download(device, gradients, net->gradients, net->parameter_count * sizeof(float));
  for (int i = 0; i < net->graph->count; i++) { /* node by node, each against its own largest gradient */
    const Node *node = &net->graph->nodes[i];
    if (node->params == 0) continue;
    const size_t offset = node->param[0].offset, count = node->param[0].count + node->param[1].count;
    float largest = 0;
    for (size_t j = 0; j < count; j++) largest = fmaxf(largest, fabsf(g.host[offset + j]));
    assert_true(largest > 1e-4f); /* a gradient of zeros would prove nothing */
    print_message("%s: largest gradient %.3e\n", node->name, (double)largest);
    assert_close(gradients + offset, g.host + offset, count, 1e-5, 1e-5 * largest);
  }
  free(gradients);
  vectors_end(&g);
}

static void check_ten_steps(Device device) {
  Vectors g;
  vectors_begin(&g, device);
  Model *net = &g.lenet;
  float losses[STEPS], expected[STEPS];
  const size_t shape[] = {STEPS};
  vectors_read(&g, "losses", 1, shape, expected);
  for (int step = 0; step < STEPS; step++) {
    Totals none = {0, 0};
    model_reset_totals(net, 0, none);
    sgd_train_step(net, BATCH, 0.01f, 0.9f);
    losses[step] = (float)(model_read_totals(net, 0).loss / BATCH);
  }
  assert_close(losses, expected, STEPS, 1e-5, 1e-5);
  vectors_end(&g);
}

static void first_step_cpu(void **state) {
  (void)state;
  check_first_step(DEVICE_CPU);
}

static void first_step_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_first_step(DEVICE_GPU);
}

static void ten_steps_cpu(void **state) {
  (void)state;
  check_ten_steps(DEVICE_CPU);
}

static void ten_steps_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_ten_steps(DEVICE_GPU);
}

/* load_state_dict(strict=True): no name too many, none too few. */
static void pytorch_opens_a_checkpoint(void **state) {
  (void)state;
  Model m;
  lenet_create(&m, DEVICE_CPU, GOLDEN_BATCH);
  golden_pytorch_loads(&m, "lenet_mnist");
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(first_step_cpu), cmocka_unit_test(ten_steps_cpu),
                                     cmocka_unit_test(first_step_gpu), cmocka_unit_test(ten_steps_gpu),
                                     cmocka_unit_test(pytorch_opens_a_checkpoint)};
  return TEST_MAIN("lenet_golden", tests);
}
