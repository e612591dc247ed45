/* Smoothed and mixed labels: by hand, against PyTorch, and every version against the definition. */
#include "phase1_building_blocks/10_softmax_cross_entropy/soft_labels.cuh"

#include "common/test_arrays.h"
#include "phase1_building_blocks/09_losses/testdata/losses_golden.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"

typedef struct Result {
  float *losses, *probabilities, *dlogits;
  double totals[2];
} Result;

static Result result_create(int batch, int classes) {
  const size_t n = (size_t)batch * classes;
  const Result r = {arrays_poison(batch), arrays_poison(n), arrays_poison(n), {0.5, 3}};
  return r;
}

static void result_free(Result *r) {
  free(r->losses);
  free(r->probabilities);
  free(r->dlogits);
}

static Result run_reference(const float *logits, const int *labels, SoftLabels soft, int batch, int classes) {
  Result r = result_create(batch, classes);
  softmax_cross_entropy_soft_forward_cpu(r.losses, r.probabilities, logits, labels, soft, batch, classes);
  softmax_cross_entropy_soft_backward_cpu(r.dlogits, r.probabilities, labels, soft, 1.0f / batch, batch, classes);
  softmax_cross_entropy_soft_score_cpu(r.totals, r.losses, r.probabilities, labels, soft, batch, classes);
  return r;
}

/* By the Loss of a network, as its context says; recorded: the share is read in the device's memory. */
static Result run_loss(Device device, const float *logits, const int *labels, SoftLabels soft, int batch, int classes,
                       int recorded) {
  Result r = result_create(batch, classes);
  const size_t n = (size_t)batch * classes;
  const Shape shape = shape1(classes);
  Context context;
  StepValues values;
  memset(&values, 0, sizeof values);
  memset(&context, 0, sizeof context);
  context.device = device;
  context.training = 1;
  context.label_smoothing = soft.smoothing;
  context.mixup = soft.share > 0;
  context.mixed = recorded ? 0.9f : soft.share;
  values.mixed = soft.share;
  float *device_logits = arrays_upload(device, logits, n), *losses = arrays_upload(device, r.losses, batch);
  float *p = arrays_upload(device, r.probabilities, n), *dlogits = arrays_upload(device, r.dlogits, n);
  int *device_labels = (int *)arrays_upload_bytes(device, labels, batch * sizeof *labels);
  double *totals = (double *)arrays_upload_bytes(device, r.totals, sizeof r.totals);
  StepValues *device_values = (StepValues *)arrays_upload_bytes(device, &values, sizeof values);
  if (recorded) context.values = device_values;
  cross_entropy_loss.forward(&context, losses, p, device_logits, device_labels, batch, shape);
  cross_entropy_loss.backward(&context, dlogits, p, NULL, device_labels, 1.0f / batch, batch, shape);
  cross_entropy_loss.score(&context, totals, losses, p, device_labels, batch, shape);
  arrays_download(device, r.losses, losses, batch, "losses");
  arrays_download(device, r.probabilities, p, n, "probabilities");
  arrays_download(device, r.dlogits, dlogits, n, "dlogits");
  arrays_download(device, NULL, device_logits, n, "logits");
  device_download(device, r.totals, totals, sizeof r.totals);
  device_free(device, device_labels);
  device_free(device, device_values);
  device_free(device, totals);
  return r;
}

static void definition_is_right_by_hand(void **state) {
  (void)state;
  /* exp() of the rows: 1 2 5 and 4 4 8, so p is 1/8 1/4 5/8 and 1/4 1/4 1/2 */
  const float logits[6] = {0, logf(2), logf(5), logf(4), logf(4), logf(8)};
  const int labels[2] = {1, 2};
  /* 3/10 of three classes: 0.1 each; 0.7 (3/4, 1/4) for the labels 1 and 2 of the first row, 2 and 1 of the second */
  const float targets[6] = {0.1f, 0.625f, 0.275f, 0.1f, 0.275f, 0.625f};
  const float p[6] = {0.125f, 0.25f, 0.625f, 0.25f, 0.25f, 0.5f};
  float losses[2] = {0, 0}, dlogits[6];
  for (int i = 0; i < 6; i++) losses[i / 3] -= targets[i] * logf(p[i]);
  for (int i = 0; i < 6; i++) dlogits[i] = (p[i] - targets[i]) / 2;
  Result r = run_reference(logits, labels, soft_labels(0.3f, 0.25f), 2, 3);
  assert_close(r.losses, losses, 2, 1e-6, 0);
  assert_matrix_close(r.dlogits, dlogits, 2, 3, 1e-5, 1e-7);
  assert_true(fabs(r.totals[0] - (0.5 + losses[0] + losses[1])) < 1e-6);
  assert_true(r.totals[1] == 3 + 0.25 + 0.75); /* both say 2: the other label of the first row */
  result_free(&r);
}

static void pytorch_says_the_same(void **state) {
  (void)state;
  const SoftLabels smoothed = soft_labels(0.125f, 0), mixed = soft_labels(0.125f, 0.375f);
  for (int i = 0; i < 2; i++) {
    Result r = run_reference(golden_logits, golden_labels, i ? mixed : smoothed, GOLDEN_ROWS, GOLDEN_COLS);
    assert_close(r.losses, i ? golden_mixed_losses : golden_smoothed_losses, GOLDEN_ROWS, FLT_EPSILON, FLT_EPSILON);
    assert_matrix_close(r.dlogits, i ? golden_mixed_dlogits : golden_smoothed_dlogits, GOLDEN_ROWS, GOLDEN_COLS,
                        2 * FLT_EPSILON, FLT_EPSILON);
    result_free(&r);
  }
}

static void gradient_matches_central_differences(void **state) {
  (void)state;
  enum { B = 5, C = 7, N = B * C };
  const double h = 1e-5;
  const int labels[B] = {0, 6, 3, 3, 1};
  const SoftLabels soft = soft_labels(0.2f, 0.3f);
  float random[N];
  double x[N], p[N], losses[B], dx[N], scratch[N];
  test_random_fill(random, N, 1);
  for (int i = 0; i < N; i++) x[i] = 3 * random[i];
  softmax_cross_entropy_soft_forward_cpu(losses, p, x, labels, soft, B, C);
  softmax_cross_entropy_soft_backward_cpu(dx, p, labels, soft, 1.0 / B, B, C);
  for (int i = 0; i < N; i++) {
    double mean[2] = {0, 0}, kept = x[i];
    for (int side = 0; side < 2; side++) {
      x[i] = kept + (side ? h : -h);
      softmax_cross_entropy_soft_forward_cpu(losses, scratch, x, labels, soft, B, C);
      for (int b = 0; b < B; b++) mean[side] += losses[b] / B;
    }
    x[i] = kept;
    assert_true(fabs(dx[i] - (mean[1] - mean[0]) / (2 * h)) < 1e-9);
  }
}

/* As softmax_cross_entropy_test: exp() and log() to 2 units, x - max rounded once, C roundings of each sum. */
static void check(Device device, const float *logits, const int *labels, SoftLabels soft, int batch, int classes,
                  int recorded) {
  Result expected = run_reference(logits, labels, soft, batch, classes);
  Result got = run_loss(device, logits, labels, soft, batch, classes, recorded);
  const double relative = (8 + 100 + 2 * classes) * (double)FLT_EPSILON / 2;
  Tolerance t = tolerance_make(relative, relative);
  assert_comparison(compare_arrays(got.probabilities, expected.probabilities, batch, classes, t));
  assert_comparison(compare_arrays(got.losses, expected.losses, 1, batch, t));
  t.absolute = 2 * relative / batch; /* p - target may cancel */
  assert_comparison(compare_arrays(got.dlogits, expected.dlogits, batch, classes, t));
  assert_true(fabs(got.totals[0] - expected.totals[0]) <= relative * (batch + fabs(expected.totals[0])));
  assert_true(fabs(got.totals[1] - expected.totals[1]) <= 1e-9 * batch);
  result_free(&expected);
  result_free(&got);
}

static void check_random(Device device) {
  const int batches[] = {1, 3, 33, 64, 127}, classes[] = {1, 2, 10, 31, 33, 300};
  const float kinds[][2] = {{0.1f, 0}, {0, 0.3f}, {0.25f, 0.8f}, {0.1f, 1}};
  for (size_t i = 0; i < 5; i++)
    for (size_t j = 0; j < 6; j++) {
      const size_t n = (size_t)batches[i] * classes[j], k = (i + j) % 4;
      float *logits = arrays_random(n, 1);
      int *labels = (int *)xmalloc(batches[i] * sizeof *labels);
      for (size_t at = 0; at < n; at++) logits[at] *= 5;
      for (int b = 0; b < batches[i]; b++) labels[b] = (7 * b + 3) % classes[j];
      const SoftLabels soft = soft_labels(kinds[k][0], kinds[k][1]);
      check(device, logits, labels, soft, batches[i], classes[j], 0);
      if (soft.share > 0 && device == DEVICE_GPU) check(device, logits, labels, soft, batches[i], classes[j], 1);
      free(logits);
      free(labels);
    }
}

/* What counts nothing may be infinite; a label that there is not makes its own loss NaN, and that of its partner. */
static void check_extremes(Device device) {
  const float logits[4 * 3] = {0, -INFINITY, 1, 2, 0, 1e4f, 1, 1, 1, 0.5f, 0.25f, -INFINITY};
  const int labels[4] = {0, 2, 1, 0}, wrong[4] = {0, 3, 1, 0};
  Result mixed = run_loss(device, logits, labels, soft_labels(0, 0.25f), 4, 3, 0);
  for (int b = 0; b < 4; b++) assert_true(isfinite(mixed.losses[b]));
  Result smoothed = run_loss(device, logits, labels, soft_labels(0.25f, 0), 4, 3, 0);
  assert_true(isinf(smoothed.losses[0]) && isinf(smoothed.losses[3])); /* as PyTorch's: a class of p = 0 has a target */
  assert_true(isfinite(smoothed.losses[1]) && isfinite(smoothed.losses[2]));
  Result bad = run_loss(device, logits, wrong, soft_labels(0, 0.25f), 4, 3, 0);
  assert_true(isnan(bad.losses[1]) && isnan(bad.losses[2]) && isfinite(bad.losses[0]) && isfinite(bad.losses[3]));
  result_free(&mixed);
  result_free(&smoothed);
  result_free(&bad);
}

static void cpu_matches_the_definition(void **state) {
  (void)state;
  check_random(DEVICE_CPU);
  check_extremes(DEVICE_CPU);
}

static void gpu_matches_the_definition(void **state) {
  (void)state;
  test_requires_gpu();
  check_random(DEVICE_GPU);
  check_extremes(DEVICE_GPU);
}

/* An evaluation, and a training without these options, have the bits of the plain loss. */
static void evaluation_is_plain(void **state) {
  (void)state;
  Context context;
  float losses[GOLDEN_ROWS], p[GOLDEN_N];
  memset(&context, 0, sizeof context);
  context.label_smoothing = 0.5f;
  context.mixup = 1;
  context.mixed = 0.5f;
  for (int training = 0; training < 2; training++) {
    float *logits = arrays_random(GOLDEN_N, 1);
    memcpy(logits, golden_logits, sizeof golden_logits);
    context.training = training;
    cross_entropy_loss.forward(&context, losses, p, logits, golden_labels, GOLDEN_ROWS, shape1(GOLDEN_COLS));
    Comparison c = compare_arrays(losses, golden_losses, 1, GOLDEN_ROWS, tolerance_make(1e-5, 1e-5));
    assert_int_equal(c.ok, !training);
    free(logits);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(definition_is_right_by_hand),          cmocka_unit_test(pytorch_says_the_same),
      cmocka_unit_test(gradient_matches_central_differences), cmocka_unit_test(cpu_matches_the_definition),
      cmocka_unit_test(gpu_matches_the_definition),           cmocka_unit_test(evaluation_is_plain),
  };
  return TEST_MAIN("soft_labels", tests);
}
