/* A network of depthwise, pointwise, grouped, dilated and transposed convolutions beside PyTorch: gradients, ten steps
 * and the trained parameters, on both devices. tools/golden/groups_golden.py made the file. */
#include "common/nn/checkpoint.h"
#include "common/runfiles.h"
#include "common/safetensors.h"
#include "common/test.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_transposed_op.cuh"

enum { IMAGES = 4, STEPS = 10, PIXELS = 4 * 9 * 7 };

static Graph *groups_graph(void) {
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(4, 9, 7));
  Conv2dShape depthwise = conv2d_shape(1, 1, 1, 1, 8, 3, 3, 1, 1), dilated = conv2d_shape(1, 1, 1, 1, 6, 3, 2, 1, 0);
  depthwise.stride_h = 2;
  depthwise.groups = 4;
  dilated.padding_h = dilated.dilation_h = dilated.groups = 2;
  dilated.dilation_w = 3;
  x = relu(g, conv2d(g, conv2d_general(g, x, depthwise), 6, 1, 1, 0));
  x = relu(g, conv2d_transposed(g, x, 4, 3, 2, 1, 1));
  graph_loss(g, &cross_entropy_loss, linear(g, conv2d_general(g, x, dilated), 3), 1);
  return g;
}

/* Every tensor of the file, by PyTorch's names, against `ours`, each in proportion to its largest value. */
static void compare_tensors(Model *m, SafetensorsFile *file, const char *prefix, const float *ours) {
  Error err;
  float *expected = checkpoint_host(m);
  if (checkpoint_read(file, m, CHECKPOINT_TRAINED, prefix, expected, &err) != 0) fail_msg("%s", err.message);
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(m, &node, &index)) != NULL) {
    float largest = 0;
    for (size_t i = 0; i < p->count; i++) largest = fmaxf(largest, fabsf(expected[p->offset + i]));
    assert_close(ours + p->offset, expected + p->offset, p->count, 1e-5, 1e-5 * (double)largest);
  }
  free(expected);
}

static void check_training(Device device) {
  Model m;
  Error err;
  char path[PATH_MAX];
  SafetensorsFile file;
  float images[IMAGES * PIXELS], losses[STEPS], expected[STEPS];
  int labels[IMAGES];
  const size_t images_shape[] = {IMAGES, 4, 9, 7}, labels_shape[] = {IMAGES}, steps[] = {STEPS};
  if (runfiles_find("phase3_cnn/07_conv2d_depthwise/testdata/groups_golden.safetensors", path, sizeof path, &err) !=
          0 ||
      safetensors_open(path, &file, &err) != 0 ||
      safetensors_read_f32(&file, "input", 4, images_shape, images, &err) != 0 ||
      safetensors_read(&file, "labels", "I32", 1, labels_shape, labels, &err) != 0 ||
      safetensors_read_f32(&file, "losses", 1, steps, expected, &err) != 0)
    fail_msg("%s", err.message);
  sgd_model_open(&m, groups_graph(), device, IMAGES);
  float *host = checkpoint_host(&m);
  if (checkpoint_read(&file, &m, CHECKPOINT_TRAINED, "", host, &err) != 0) fail_msg("%s", err.message);
  device_upload(device, m.parameters, host, m.parameter_count * sizeof(float));
  device_upload(device, model_input(&m, 0), images, sizeof images);
  device_upload(device, model_labels(&m), labels, sizeof labels);
  for (int step = 0; step < STEPS; step++) {
    const Totals none = {0, 0};
    model_reset_totals(&m, 0, none);
    sgd_train_step(&m, IMAGES, 0.02f, 0.9f);
    losses[step] = (float)(model_read_totals(&m, 0).loss / IMAGES);
    if (step > 0) continue;
    device_download(device, host, m.gradients, m.parameter_count * sizeof(float));
    compare_tensors(&m, &file, "grad.", host);
  }
  assert_close(losses, expected, STEPS, 1e-5, 1e-5);
  assert_true(losses[STEPS - 1] < losses[0]);
  device_download(device, host, m.parameters, m.parameter_count * sizeof(float));
  compare_tensors(&m, &file, "trained.", host);
  free(host);
  model_close(&m);
  safetensors_close(&file);
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

/* A graph says what is wrong, and with which node. */
static void impossible_layers_are_refused(void **state) {
  (void)state;
  Context context;
  memset(&context, 0, sizeof context);
  const char *const parts[] = {"the output padding must be at least 0 and less than the stride",
                               "groups must divide the 6 channels and the 8 filters"};
  for (int i = 0; i < 2; i++) {
    Model m;
    Error err;
    Graph *g = graph_create();
    int x = graph_input(g, "x", shape3(6, 5, 5));
    Conv2dShape grouped = conv2d_shape(1, 1, 1, 1, 8, 3, 3, 1, 1);
    grouped.groups = 4;
    x = i == 0 ? conv2d_transposed(g, x, 4, 3, 2, 1, 2) : conv2d_general(g, x, grouped);
    graph_loss(g, &cross_entropy_loss, linear(g, x, 3), 1);
    assert_int_equal(model_open(&m, g, context, NULL, 2, MODEL_INFER, &err), -1);
    if (strstr(err.message, parts[i]) == NULL) fail_msg("\"%s\" does not say \"%s\"", err.message, parts[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(training_cpu),
      cmocka_unit_test(training_gpu),
      cmocka_unit_test(impossible_layers_are_refused),
  };
  return TEST_MAIN("conv2d_groups", tests);
}
