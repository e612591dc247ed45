/* Training with the convolutions of fused_train_op.cuh: the same gradients as with those of phase 3, on the CPU bit
 * by bit; on a GPU but for what bf16 rounds. */
#include "common/test.h"
#include "common/test_arrays.h"
#include "phase5_production/03_resnet18/resnet18.cuh"
#include "phase5_production/04_resnet18_fused/fused_train_op.cuh"

enum { BATCH = 4, SIDE = 33, CLASSES = 10 };

/* The gradients of one step, on the host; to be freed. */
static float *gradients(Device device, int width, int hopper, size_t *count) {
  Error err;
  Model m;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  context.training = 1;
  const Resnet18Shape shape = {SIDE, width, CLASSES};
  Graph *g = resnet18_fused(shape);
  if (hopper) cnn_can_be_lowered_for_hopper(g);
  graph_lower(g, DTYPE_BF16);
  if (model_open(&m, g, context, &sgd, BATCH, MODEL_TRAIN, &err) != 0) fail_msg("%s", err.message);
  model_init(&m, 3);
  const size_t pixels = (size_t)BATCH * 3 * SIDE * SIDE;
  float *x = arrays_random(pixels, 9);
  int labels[BATCH];
  for (int i = 0; i < BATCH; i++) labels[i] = (3 * i + 1) % CLASSES;
  device_upload(device, model_input(&m, 0), x, pixels * sizeof *x);
  device_upload(device, model_labels(&m), labels, sizeof labels);
  model_gradients(&m, BATCH);
  *count = m.parameter_count;
  float *host = (float *)xmalloc(*count * sizeof *host);
  device_download(device, host, m.gradients, *count * sizeof *host);
  free(x);
  model_close(&m);
  return host;
}

static void gradients_are_those_of_phase_3(void **state) {
  (void)state;
#ifdef SIMT_REWRITTEN /* wgmma is not compiled there, and everything else takes minutes */
  const Device device = DEVICE_CPU;
  const int width = 8;
  const double tolerance = 0;
#else
  test_requires_gpu();
  const Device device = DEVICE_GPU;
  const int width = 64;
  const double tolerance = 0.03;
#endif
  size_t count;
  float *expected = gradients(device, width, 0, &count), *got = gradients(device, width, 1, &count);
  double difference = 0, size = 0;
  for (size_t i = 0; i < count; i++) {
    difference += pow(got[i] - expected[i], 2);
    size += pow(expected[i], 2);
  }
  print_message("gradients differ by %.1e of their norm, up to %.0e\n", sqrt(difference / size), tolerance);
  assert_true(size > 0);
  assert_true(sqrt(difference / size) <= tolerance);
  free(expected);
  free(got);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_those_of_phase_3)};
  return TEST_MAIN("fused_train", tests);
}
