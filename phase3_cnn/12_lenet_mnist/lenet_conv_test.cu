/* LeNet-5 trained with every method of lessons 1 to 8 by its name: the same losses; a method that can compute neither
 * of its convolutions is refused with a sentence that names one that can. */
#include "common/compare.h"
#include "common/nn/implementation.h"
#include "common/philox.h"
#include "common/test.h"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"

enum { BATCH = 3, STEPS = 2 };

static Context context_of(Device device) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  return context;
}

/* The losses of STEPS steps, and the parameters after them. -1: --conv=text is refused. */
static int train(float losses[STEPS * BATCH], float **parameters, size_t *count, const char *text, Device device,
                 Error *err) {
  Model m;
  Graph *g = lenet_graph();
  if (implementation_choose(&conv2d_choice, text, g, context_of(device), &sgd, BATCH, MODEL_TRAIN, stderr, err) != 0) {
    graph_destroy(g);
    return -1;
  }
  if (model_open(&m, g, context_of(device), &sgd, BATCH, MODEL_TRAIN, err) != 0) fail_msg("%s", err->message);
  model_init(&m, 5);
  float x[BATCH * 784];
  const int labels[BATCH] = {7, 0, 3};
  for (int i = 0; i < BATCH * 784; i++) x[i] = 2 * philox_uniform(philox4x32(1, 2, (uint64_t)i).word[0]) - 1;
  device_upload(device, model_input(&m, 0), x, sizeof x);
  device_upload(device, model_labels(&m), labels, sizeof labels);
  m.hyper.lr = 0.05f;
  m.hyper.momentum = 0.9f;
  for (int step = 0; step < STEPS; step++) {
    model_train_step(&m, BATCH);
    device_download(device, losses + step * BATCH, m.losses[0], BATCH * sizeof *losses);
  }
  *count = m.parameter_count;
  *parameters = (float *)xmalloc(*count * sizeof(float));
  device_download(device, *parameters, m.parameters, *count * sizeof(float));
  model_close(&m);
  return 0;
}

static void expect_the_same(const char *text, Device device, const float *losses, const float *parameters) {
  float got[STEPS * BATCH], *after;
  size_t count;
  Error err;
  if (train(got, &after, &count, text, device, &err) != 0) fail_msg("%s", err.message);
  assert_matrix_close(got, losses, STEPS, BATCH, 1e-4, 1e-4);
  assert_matrix_close(after, parameters, 1, (int)count, 1e-4, 1e-4);
  free(after);
}

/* The sentence names a method that can compute the node; the other one says why. */
static void expect_a_way_out(const char *message) {
  Graph *g = lenet_graph();
  const char *sentence = strstr(message, ": "), *use = sentence ? strstr(sentence, "use ") : NULL;
  if (use == NULL) fail_msg("no method that can is named: %s", message);
  const int k = implementation_find(&conv2d_choice, use + 4, strcspn(use + 4, " ,:;."));
  if (k < 0) fail_msg("no method has that name: %s", message);
  for (int i = 0; i < g->count; i++) {
    Error why;
    if (implementation_of(&conv2d_choice, &g->nodes[i]) < 0) continue;
    if (implementation_fits(&conv2d_choice.list[k], &g->nodes[i], &why) != 0)
      fail_msg("\"%s\" cannot either: %s", message, why.message);
  }
  graph_destroy(g);
}

static void every_method_trains_lenet(void **unused) {
  (void)unused;
  test_requires_gpu();
  float losses[STEPS * BATCH], *parameters;
  size_t count;
  int refused = 0;
  Error err;
  if (train(losses, &parameters, &count, "tiled", DEVICE_CPU, &err) != 0) fail_msg("%s", err.message);
  assert_true(losses[0] > 0 && losses[STEPS * BATCH - 1] > 0);
  for (int k = 0; k < conv2d_choice.count; k++) {
    const char *name = conv2d_choice.list[k].name;
    Graph *g = lenet_graph();
    const int fits = implementation_apply(&conv2d_choice, name, g, NULL, &err) == 0;
    graph_destroy(g);
    if (fits)
      expect_the_same(name, DEVICE_GPU, losses, parameters);
    else
      expect_a_way_out(err.message);
    refused += !fits;
  }
  assert_int_equal(refused, 1); /* winograd: LeNet's filters are 5 x 5 */
  expect_the_same("auto", DEVICE_GPU, losses, parameters);
  expect_the_same("conv1:small,conv2:implicit_gemm", DEVICE_GPU, losses, parameters);
  free(parameters);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_method_trains_lenet),
  };
  return TEST_MAIN("lenet_conv", tests);
}
