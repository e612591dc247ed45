#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_kept.cuh"

#include <omp.h>

#include "common/test_arrays.h"
#include "phase1_building_blocks/09_losses/testdata/losses_golden.h"

/* ---- by hand ---- */

static void reference_is_right_by_hand(void **state) {
  (void)state;
  /* exp() of the rows: 1 2 5 and 4 4 8. */
  const float logits[2 * 3] = {0, logf(2), logf(5), logf(4), logf(4), logf(8)};
  const int labels[2] = {1, 2};
  const float p_expected[2 * 3] = {0.125f, 0.25f, 0.625f, 0.25f, 0.25f, 0.5f};
  const float losses_expected[2] = {logf(4), logf(2)};
  const float dlogits_expected[2 * 3] = {0.0625f, -0.375f, 0.3125f, 0.125f, 0.125f, -0.25f}; /* halved: mean of two */
  float p[6], losses[2], dlogits[6];
  double totals[2] = {10, 20};
  softmax_cross_entropy_forward_cpu(losses, p, logits, labels, 2, 3);
  softmax_cross_entropy_backward_cpu(dlogits, p, labels, 0.5f, 2, 3);
  softmax_cross_entropy_score_cpu(totals, losses, p, labels, 2, 3);
  assert_matrix_close(p, p_expected, 2, 3, 1e-6, 0);
  assert_close(losses, losses_expected, 2, 1e-6, 0);
  assert_matrix_close(dlogits, dlogits_expected, 2, 3, 1e-6, 1e-7);
  assert_true(fabs(totals[0] - (10 + log(8))) < 1e-6);
  assert_true(totals[1] == 21); /* the second row is right, the first says 2 */
}

static void gradient_matches_central_differences(void **state) {
  (void)state;
  enum { B = 5, C = 7, N = B * C };
  const double h = 1e-5;
  const int labels[B] = {0, 6, 3, 3, 1};
  float random[N];
  double x[N], p[N], losses[B], dx[N], scratch[N];
  test_random_fill(random, N, 1);
  for (int i = 0; i < N; i++) x[i] = 3 * random[i];
  softmax_cross_entropy_forward_cpu(losses, p, x, labels, B, C);
  softmax_cross_entropy_backward_cpu(dx, p, labels, 1.0 / B, B, C);
  for (int i = 0; i < N; i++) {
    double mean[2] = {0, 0}, kept = x[i];
    for (int side = 0; side < 2; side++) {
      x[i] = kept + (side ? h : -h);
      softmax_cross_entropy_forward_cpu(losses, scratch, x, labels, B, C);
      for (int b = 0; b < B; b++) mean[side] += losses[b] / B;
    }
    x[i] = kept;
    assert_true(fabs(dx[i] - (mean[1] - mean[0]) / (2 * h)) < 1e-9);
  }
}

/* ---- every version, through one door ---- */

typedef struct Result {
  float *losses, *probabilities, *dlogits;
  double totals[2];
} Result;

static Result result_create(int batch, int classes) {
  Result r;
  size_t n = (size_t)batch * classes;
  r.losses = arrays_poison(batch);
  r.probabilities = arrays_poison(n);
  r.dlogits = arrays_poison(n);
  r.totals[0] = 0.5;
  r.totals[1] = 3;
  return r;
}

static void result_free(Result *r) {
  free(r->losses);
  free(r->probabilities);
  free(r->dlogits);
}

static Result run_reference(const float *logits, const int *labels, int batch, int classes) {
  Result r = result_create(batch, classes);
  softmax_cross_entropy_forward_cpu(r.losses, r.probabilities, logits, labels, batch, classes);
  softmax_cross_entropy_backward_cpu(r.dlogits, r.probabilities, labels, 1.0f / batch, batch, classes);
  softmax_cross_entropy_score_cpu(r.totals, r.losses, r.probabilities, labels, batch, classes);
  return r;
}

static Result run(Device device, const float *logits, const int *labels, int batch, int classes) {
  Result r = result_create(batch, classes);
  size_t n = (size_t)batch * classes;
  float scale = 1.0f / batch;
  float *device_logits = arrays_upload(device, logits, n);
  float *losses = arrays_upload(device, r.losses, batch);
  float *p = arrays_upload(device, r.probabilities, n);
  float *dlogits = arrays_upload(device, r.dlogits, n);
  int *device_labels = (int *)arrays_upload_bytes(device, labels, batch * sizeof *labels);
  double *totals = (double *)arrays_upload_bytes(device, r.totals, sizeof r.totals);
  ON_DEVICE(device, softmax_cross_entropy_forward_gpu(losses, p, device_logits, device_labels, batch, classes),
            softmax_cross_entropy_forward_cpu_fast(losses, p, device_logits, device_labels, batch, classes));
  ON_DEVICE(device, softmax_cross_entropy_backward_gpu(dlogits, p, device_labels, scale, batch, classes),
            softmax_cross_entropy_backward_cpu_fast(dlogits, p, device_labels, scale, batch, classes));
  ON_DEVICE(device, softmax_cross_entropy_score_gpu(totals, losses, p, device_labels, batch, classes),
            softmax_cross_entropy_score_cpu_fast(totals, losses, p, device_labels, batch, classes));
  arrays_download(device, r.losses, losses, batch, "losses");
  arrays_download(device, r.probabilities, p, n, "probabilities");
  arrays_download(device, r.dlogits, dlogits, n, "dlogits");
  arrays_download(device, NULL, device_logits, n, "logits");
  device_download(device, r.totals, totals, sizeof r.totals);
  device_free(device, device_labels);
  device_free(device, totals);
  return r;
}

/* exp() and log() of the math libraries are accurate to 2 units in the last place, x - max is rounded once (of
 * relative weight |x - max|, at most 100 where exp() is not 0), and the sum of C terms adds C roundings at most. */
static void check_against_reference(Device device, const float *logits, const int *labels, int batch, int classes) {
  Result expected = run_reference(logits, labels, batch, classes);
  Result first = run(device, logits, labels, batch, classes), second = run(device, logits, labels, batch, classes);
  size_t n = (size_t)batch * classes;
  double relative = (8 + 100 + classes) * (double)FLT_EPSILON / 2, absolute = 1e-37; /* below: denormals */
  Tolerance t = tolerance_make(relative, absolute);
  assert_comparison(compare_arrays(first.probabilities, expected.probabilities, batch, classes, t));
  t = tolerance_make(relative, relative);
  assert_comparison(compare_arrays(first.losses, expected.losses, 1, batch, t));
  t = tolerance_make(relative, 2 * relative / batch); /* p - 1 may cancel */
  assert_comparison(compare_arrays(first.dlogits, expected.dlogits, batch, classes, t));
  assert_true(fabs(first.totals[0] - expected.totals[0]) <= relative * (batch + fabs(expected.totals[0])));
  assert_true(first.totals[1] == expected.totals[1]);

  assert_comparison(compare_runs(first.probabilities, second.probabilities, n));
  assert_comparison(compare_runs(first.dlogits, second.dlogits, n));
  assert_comparison(compare_runs(first.losses, second.losses, batch));
  assert_memory_equal(first.totals, second.totals, sizeof first.totals);
  result_free(&expected);
  result_free(&first);
  result_free(&second);
}

static void check_random(Device device) {
  const int batches[] = {1, 3, 33, 64, 127, 1009}, classes[] = {1, 2, 10, 31, 33, 1000};
  for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
    for (size_t j = 0; j < sizeof classes / sizeof *classes; j++) {
      size_t n = (size_t)batches[i] * classes[j];
      float *logits = arrays_random(n, 1);
      int *labels = (int *)xmalloc(batches[i] * sizeof *labels);
      for (size_t at = 0; at < n; at++) logits[at] *= 5;
      for (int b = 0; b < batches[i]; b++) labels[b] = (7 * b + 3) % classes[j];
      check_against_reference(device, logits, labels, batches[i], classes[j]);
      free(logits);
      free(labels);
    }
  }
}

/* Each kind of extreme in rows of 1, 10 and 1000 classes; the expectations are arithmetic, not the reference's. */
static void check_extremes(Device device) {
  const int sizes[] = {1, 10, 1000};
  for (int i = 0; i < 3; i++) {
    enum { EQUAL, HUGE_RIGHT, HUGE_WRONG, RULED_OUT, ALL_TINY, BATCH };
    int classes = sizes[i], last = classes - 1;
    float *logits = (float *)xmalloc((size_t)BATCH * classes * sizeof *logits);
    int labels[BATCH] = {last, last, 0, last, 0};
    for (int c = 0; c < BATCH * classes; c++) logits[c] = 0.75f;
    logits[HUGE_RIGHT * classes + last] = 1e4f;
    logits[HUGE_WRONG * classes + last] = 1e4f;
    if (classes > 1) logits[RULED_OUT * classes] = -INFINITY;
    for (int c = 0; c < classes; c++) logits[ALL_TINY * classes + c] = -1e30f;
    Result r = run(device, logits, labels, BATCH, classes);
    float one_of = 1.0f / classes, one_of_rest = classes > 1 ? 1.0f / (classes - 1) : 1;
    float losses[BATCH] = {logf(classes), 0, classes > 1 ? 1e4f - 0.75f : 0, -logf(one_of_rest), logf(classes)};
    assert_close(r.losses, losses, BATCH, 1e-6, 1e-5);
    for (int c = 0; c < classes; c++) {
      float only_last = c == last ? 1 : 0, not_first = c == 0 && classes > 1 ? 0 : one_of_rest;
      float expected[BATCH] = {one_of, only_last, only_last, not_first, one_of};
      float p[BATCH];
      for (int b = 0; b < BATCH; b++) p[b] = r.probabilities[b * classes + c];
      assert_close(p, expected, BATCH, 1e-5, 0);
    }
    assert_true(r.totals[1] == 3 + (classes > 1 ? 2 : BATCH)); /* HUGE_RIGHT; ALL_TINY: the first of equals is 0 */
    check_against_reference(device, logits, labels, BATCH, classes);
    free(logits);
    result_free(&r);
  }
}

/* A row without a defined result gives NaN, in that row alone. */
static void check_nan(Device device) {
  enum { HAS_NAN, HAS_INFINITY, ALL_RULED_OUT, LABEL_TOO_LARGE, LABEL_NEGATIVE, SOUND, BATCH, CLASSES = 3 };
  const float logits[BATCH * CLASSES] = {0, 1, NAN,        0, INFINITY, 1, -INFINITY, -INFINITY, -INFINITY,
                                         0, 1, 2 /* ok */, 0, 1,        2, 0,         0,         0};
  const int labels[BATCH] = {0, 0, 0, CLASSES, -1, 0};
  Result r = run(device, logits, labels, BATCH, CLASSES);
  for (int b = 0; b < SOUND; b++) assert_true(isnan(r.losses[b]));
  for (int b = 0; b < LABEL_TOO_LARGE; b++) assert_true(isnan(r.probabilities[b * CLASSES]));
  assert_true(fabsf(r.losses[SOUND] - logf(3)) < 1e-6f);
  result_free(&r);
}

/* ---- both directions in one kernel ---- */

typedef void Fused(float *losses, float *dlogits, const float *logits, const int *labels, float scale, int batch,
                   int classes);

static const struct {
  const char *name;
  Fused *fused;
} versions[] = {{"separate", softmax_cross_entropy_separate},
                {"online", softmax_cross_entropy_online},
                {"shared", softmax_cross_entropy_shared},
                {"quads", softmax_cross_entropy_quads},
                {"streamed", softmax_cross_entropy_rows<true>},
                {"fused", softmax_cross_entropy_fused},
                {"kept", softmax_cross_entropy_kept}};
enum { VERSIONS = sizeof versions / sizeof *versions };

typedef enum Where { APART, IN_PLACE, APART_ELSEWHERE } Where; /* the last: dlogits begin at another place of a quad */

/* Arrays begin `offset` floats into an allocation. */
static void run_fused(int v, float *losses, float *dlogits, const float *logits, const int *labels, int batch,
                      int classes, size_t offset, Where where) {
  size_t n = (size_t)batch * classes, all = n + offset, out_offset = where == APART_ELSEWHERE ? offset + 1 : offset;
  float *padded = arrays_poison(all), *poison = arrays_poison(n + out_offset);
  memcpy(padded + offset, logits, n * sizeof *logits);
  float *device_logits = arrays_upload(DEVICE_GPU, padded, all);
  float *out = where == IN_PLACE ? device_logits : arrays_upload(DEVICE_GPU, poison, n + out_offset);
  float *device_losses = guard_alloc(DEVICE_GPU, batch);
  int *device_labels = (int *)arrays_upload_bytes(DEVICE_GPU, labels, batch * sizeof *labels);
  versions[v].fused(device_losses, out + out_offset, device_logits + offset, device_labels, 1.0f / batch, batch,
                    classes);
  arrays_download(DEVICE_GPU, losses, device_losses, batch, "losses");
  if (where != IN_PLACE) {
    float *kept = (float *)xmalloc(all * sizeof *kept);
    arrays_download(DEVICE_GPU, kept, device_logits, all, "logits");
    assert_memory_equal(kept, padded, all * sizeof *kept);
    free(kept);
  }
  float *got = (float *)xmalloc((n + out_offset) * sizeof *got);
  arrays_download(DEVICE_GPU, got, out, n + out_offset, "dlogits");
  for (size_t i = 0; i < out_offset; i++) assert_true(compare_is_poison(&got[i]));
  memcpy(dlogits, got + out_offset, n * sizeof *got);
  device_free(DEVICE_GPU, device_labels);
  free(got);
  free(padded);
  free(poison);
}

/* As check_against_reference(). */
static void check_fused(int v, const float *logits, const int *labels, int batch, int classes, size_t offset,
                        Where where, int nan_equal) {
  size_t n = (size_t)batch * classes;
  Result expected = run_reference(logits, labels, batch, classes);
  float *losses = arrays_poison(batch), *dlogits = arrays_poison(n);
  run_fused(v, losses, dlogits, logits, labels, batch, classes, offset, where);
  double relative = (8 + 100 + fmin(classes, 4 * sqrt((double)classes))) * (double)FLT_EPSILON / 2;
  Tolerance t = tolerance_make(relative, 2 * relative / batch);
  t.nan_equal = nan_equal;
  Comparison c = compare_arrays(dlogits, expected.dlogits, batch, classes, t);
  if (!c.ok) fail_msg("%s, (%d,%d), dlogits: %s", versions[v].name, batch, classes, c.message);
  t.absolute = relative;
  c = compare_arrays(losses, expected.losses, 1, batch, t);
  if (!c.ok) fail_msg("%s, (%d,%d), losses: %s", versions[v].name, batch, classes, c.message);
  result_free(&expected);
  free(losses);
  free(dlogits);
}

static void pytorch_says_the_same(void **state) {
  (void)state;
  float losses[GOLDEN_ROWS], dlogits[GOLDEN_N];
  Result r = run_reference(golden_logits, golden_labels, GOLDEN_ROWS, GOLDEN_COLS);
  assert_close(r.losses, golden_losses, GOLDEN_ROWS, FLT_EPSILON, FLT_EPSILON);
  assert_matrix_close(r.dlogits, golden_dlogits, GOLDEN_ROWS, GOLDEN_COLS, 2 * FLT_EPSILON, FLT_EPSILON);
  result_free(&r);
  test_requires_gpu();
  for (int v = 0; v < VERSIONS; v++) {
    run_fused(v, losses, dlogits, golden_logits, golden_labels, GOLDEN_ROWS, GOLDEN_COLS, 0, APART);
    assert_close(losses, golden_losses, GOLDEN_ROWS, 16 * FLT_EPSILON, 16 * FLT_EPSILON);
    assert_matrix_close(dlogits, golden_dlogits, GOLDEN_ROWS, GOLDEN_COLS, 32 * FLT_EPSILON, 4 * FLT_EPSILON);
  }
}

/* 45000 floats are more than the emulated GPU's shared memory holds, 60000 more than any GPU's. */
static void every_fused_version_matches_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  const int shapes[][2] = {{1, 1},    {33, 1},   {127, 3},  {31, 33},  {5, 127},   {3, 255},   {2, 511},  {3, 1000},
                           {2, 1024}, {3, 1025}, {2, 4099}, {3, 8195}, {2, 20011}, {1, 45000}, {2, 60001}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    int batch = shapes[i][0], classes = shapes[i][1];
    size_t n = (size_t)batch * classes;
    float *logits = arrays_random(n, 1);
    int *labels = (int *)xmalloc(batch * sizeof *labels);
    for (size_t at = 0; at < n; at++) logits[at] *= 5;
    for (int b = 0; b < batch; b++) labels[b] = (7 * b + classes - 1) % classes;
    for (int v = 0; v < VERSIONS; v++) {
      check_fused(v, logits, labels, batch, classes, 0, APART, 0);
      if (n > 50000) continue; /* where the arrays begin does not depend on how long they are */
      if (v > 0) check_fused(v, logits, labels, batch, classes, 0, IN_PLACE, 0);
      check_fused(v, logits, labels, batch, classes, 3, APART, 0);
      check_fused(v, logits, labels, batch, classes, 1, APART_ELSEWHERE, 0);
    }
    free(logits);
    free(labels);
  }
}

/* Equal logits, one huge, classes ruled out, -inf and NaN and +inf everywhere: rows for a warp and for a block. */
static void every_fused_version_survives_extremes(void **state) {
  (void)state;
  test_requires_gpu();
  const int sizes[] = {1, 3, 10, 1000, 1500, 9000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    enum {
      BAD_LABEL, /* what would be read in the label's place is a number: the next row's first */
      EQUAL,
      HUGE,
      FAR_APART,
      RULED_OUT,
      LOW_AND_RULED_OUT, /* threads that have no other class than those ruled out */
      ALL_TINY,
      HAS_NAN,
      HAS_INFINITY,
      ALL_RULED_OUT,
      ALL_NAN,
      BATCH
    };
    int classes = sizes[i], labels[BATCH];
    float *logits = (float *)xmalloc((size_t)BATCH * classes * sizeof *logits);
    for (int b = 0; b < BATCH; b++) labels[b] = b % classes;
    labels[BAD_LABEL] = classes;
    for (int c = 0; c < classes; c++) {
      logits[EQUAL * classes + c] = 0.75f;
      logits[HUGE * classes + c] = c == classes / 2 ? 1e4f : 0.75f;
      logits[FAR_APART * classes + c] = c % 2 ? 3e38f : -3e38f;
      logits[RULED_OUT * classes + c] = c % 3 == RULED_OUT % 3 || c == RULED_OUT % classes ? 1 : -INFINITY;
      bool low = c / 4 % 64 < 32 || c == LOW_AND_RULED_OUT % classes;
      logits[LOW_AND_RULED_OUT * classes + c] = low ? -1000 : -INFINITY;
      logits[ALL_TINY * classes + c] = -1e30f;
      logits[HAS_NAN * classes + c] = c == classes - 1 ? NAN : 1;
      logits[HAS_INFINITY * classes + c] = c == classes - 1 ? INFINITY : 1;
      logits[ALL_RULED_OUT * classes + c] = -INFINITY;
      logits[ALL_NAN * classes + c] = NAN;
      logits[BAD_LABEL * classes + c] = (float)(c % 7);
    }
    for (int v = 0; v < VERSIONS; v++) check_fused(v, logits, labels, BATCH, classes, 0, APART, 1);
    free(logits);
  }
}

static void fast_matches_reference(void **state) {
  (void)state;
  check_random(DEVICE_CPU);
}

static void fast_survives_extremes(void **state) {
  (void)state;
  check_extremes(DEVICE_CPU);
  check_nan(DEVICE_CPU);
}

static void fast_gives_the_same_bits_with_any_number_of_threads(void **state) {
  (void)state;
  enum { BATCH = 1009, CLASSES = 10, N = BATCH * CLASSES };
  static float logits[N];
  static int labels[BATCH];
  test_random_fill(logits, N, 1);
  int threads_before = omp_get_max_threads();
  omp_set_num_threads(1);
  Result alone = run(DEVICE_CPU, logits, labels, BATCH, CLASSES);
  for (int threads = 2; threads <= 3; threads++) {
    omp_set_num_threads(threads);
    Result together = run(DEVICE_CPU, logits, labels, BATCH, CLASSES);
    assert_comparison(compare_runs(alone.probabilities, together.probabilities, N));
    assert_comparison(compare_runs(alone.losses, together.losses, BATCH));
    assert_comparison(compare_runs(alone.dlogits, together.dlogits, N));
    assert_memory_equal(alone.totals, together.totals, sizeof alone.totals);
    result_free(&together);
  }
  result_free(&alone);
  omp_set_num_threads(threads_before);
}

static void gpu_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_random(DEVICE_GPU);
}

static void gpu_survives_extremes(void **state) {
  (void)state;
  test_requires_gpu();
  check_extremes(DEVICE_GPU);
  check_nan(DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(gradient_matches_central_differences),
      cmocka_unit_test(fast_matches_reference),
      cmocka_unit_test(fast_survives_extremes),
      cmocka_unit_test(fast_gives_the_same_bits_with_any_number_of_threads),
      cmocka_unit_test(gpu_matches_reference),
      cmocka_unit_test(gpu_survives_extremes),
      cmocka_unit_test(pytorch_says_the_same),
      cmocka_unit_test(every_fused_version_matches_the_reference),
      cmocka_unit_test(every_fused_version_survives_extremes),
  };
  return TEST_MAIN("softmax_cross_entropy", tests);
}
