/* Every rung: its logits against float64, on the CPU and by its kernels; how many kernels it launches, how many bytes
 * pass between operations. */
#include "phase5_production/04_resnet18_fused/fused_reference.cuh"
#include "phase5_production/04_resnet18_fused/fused_rungs.cuh"

#include "common/test.h"
#include "common/test_arrays.h"

/* A thin network and small pictures; the last stage has 1 x 2 pixels. */
enum { WIDTH = 8, SIDE = 40, CLASSES = 10, BATCH = 3 };
static const Resnet18Shape thin = {SIDE, WIDTH, CLASSES};

static float *pictures(void) {
  const size_t n = (size_t)BATCH * 3 * SIDE * SIDE;
  float *x = arrays_random(n, 77);
  for (size_t i = 0; i < n; i++) x[i] *= 2;
  return x;
}

/* One part in so many of the largest logit: what rounding of weights and of the arrays between 40 operations may do. */
static double tolerance_of(FusedType type) {
  return type == FUSED_FP32 ? 2e-5 : type == FUSED_TF32 ? 4e-3 : type == FUSED_FP16 ? 6e-3 : 5e-2;
}

/* The largest difference to float64, as a part of the largest logit. */
static double difference(Fused *f, const float *x, const double *expected) {
  const Device device = f->model.context.device;
  float y[BATCH * CLASSES];
  device_upload(device, model_input(&f->model, 0), x, (size_t)f->batch * 3 * SIDE * SIDE * sizeof *x);
  for (int i = 0; i < BATCH * CLASSES; i++) y[i] = NAN;
  device_upload(device, (float *)fused_logits(f), y, (size_t)f->batch * CLASSES * sizeof *y);
  fused_infer(f);
  device_download(device, y, fused_logits(f), (size_t)f->batch * CLASSES * sizeof *y);
  double most = 0, worst = 0;
  for (int i = 0; i < f->batch * CLASSES; i++) {
    most = fmax(most, fabs(expected[i]));
    if (!(fabs(y[i] - expected[i]) <= worst)) worst = fabs(y[i] - expected[i]);
    if (isnan(y[i])) fail_msg("%s: logit %d is not a number", f->rung->name, i);
  }
  return worst / most;
}

static void expect_rungs(Device device, int first, int last) {
  Error err;
  Model trained;
  if (fused_trained_open(&trained, thin, device, 5, &err) != 0) fail_msg("%s", err.message);
  float *x = pictures();
  double *expected = fused_reference(&trained, x, BATCH);
  for (int i = first; i < last; i++) {
    Fused f;
    if (fused_open(&f, &fused_rungs[i], &trained, BATCH, &err) != 0) fail_msg("%s", err.message);
    const double error = difference(&f, x, expected);
    print_message("%-14s %s: %.1e of the largest logit\n", fused_rungs[i].name, device_name(device), error);
    if (!(error <= tolerance_of(fused_rungs[i].type)))
      fail_msg("%s: the logits differ by %.2e of the largest one; up to %.1e is expected", fused_rungs[i].name, error,
               tolerance_of(fused_rungs[i].type));
    fused_close(&f);
  }
  free(x);
  free(expected);
  model_close(&trained);
}

static void rungs_on_the_cpu(void **state) {
  (void)state;
  expect_rungs(DEVICE_CPU, 0, FUSED_RUNGS);
}

static void rungs_by_their_kernels(void **state) {
  (void)state;
  test_requires_gpu();
  expect_rungs(DEVICE_GPU, 0, FUSED_RUNGS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rungs_on_the_cpu), cmocka_unit_test(rungs_by_their_kernels)};
  return TEST_MAIN("resnet18_fused", tests);
}
