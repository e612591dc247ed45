/* Training with the convolutions of fused_train_op.cuh: the same gradients as with those of phase 3, on the CPU bit
 * by bit. On a GPU their sums have another order; batch norm makes the difference larger from layer to layer, so what
 * is compared is how far each of the two is from the gradients of float32. */
#include "common/test.h"
#include "common/test_arrays.h"
#include "phase5_production/03_resnet18/resnet18.cuh"
#include "phase5_production/04_resnet18_fused/fused_train_op.cuh"

enum { BATCH = 4, SIDE = 33, CLASSES = 10 };

typedef enum Way { FLOAT32, PHASE_3, HOPPER } Way;

/* The gradients of one step, on the host; to be freed. */
static float *gradients(Device device, int width, Way way, size_t *count) {
  Error err;
  Model m;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  context.training = 1;
  const Resnet18Shape shape = {SIDE, width, CLASSES};
  Graph *g = resnet18_fused(shape);
  if (way == HOPPER) cnn_can_be_lowered_for_hopper(g);
  if (way != FLOAT32) graph_lower(g, DTYPE_BF16);
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

/* |got - expected| / |expected|; NaN where one of them is. */
static double distance(const float *got, const float *expected, size_t count) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < count; i++) {
    difference += pow((double)got[i] - expected[i], 2);
    size += pow(expected[i], 2);
  }
  assert_true(size > 0);
  return sqrt(difference / size);
}

#ifdef SIMT_REWRITTEN /* wgmma is not compiled there, and everything else takes minutes */
static void gradients_are_those_of_phase_3(void **state) {
  (void)state;
  size_t count;
  float *expected = gradients(DEVICE_CPU, 8, PHASE_3, &count), *got = gradients(DEVICE_CPU, 8, HOPPER, &count);
  assert_true(distance(got, expected, count) == 0);
  free(expected);
  free(got);
}
#else
static void gradients_are_those_of_phase_3(void **state) {
  (void)state;
  test_requires_gpu();
  size_t count;
  float *expected = gradients(DEVICE_GPU, 64, FLOAT32, &count), *phase_3 = gradients(DEVICE_GPU, 64, PHASE_3, &count);
  float *got = gradients(DEVICE_GPU, 64, HOPPER, &count);
  const double theirs = distance(phase_3, expected, count), ours = distance(got, expected, count);
  print_message("from float32's gradients: phase 3 %.1e of their norm, wgmma %.1e; of each other %.1e\n", theirs, ours,
                distance(got, phase_3, count));
  assert_true(theirs < 0.5); /* else it would prove nothing */
  assert_true(ours <= 1.25 * theirs);
  free(expected);
  free(phase_3);
  free(got);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_those_of_phase_3)};
  return TEST_MAIN("fused_train", tests);
}
