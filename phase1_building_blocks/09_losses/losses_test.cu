#include "phase1_building_blocks/09_losses/losses.cuh"

#include "common/test_arrays.h"
#include "phase1_building_blocks/09_losses/losses_lesson.cuh"
#include "phase1_building_blocks/09_losses/testdata/losses_golden.h"

/* ---- by hand ---- */

static void close_to(double actual, double expected) {
  if (!(fabs(actual - expected) <= 1e-12 * fmax(1, fabs(expected))))
    fail_msg("%.15g, expected %.15g", actual, expected);
}

static void reference_is_right_by_hand(void **state) {
  (void)state;
  double total, dx[2];
  const double x[2] = {3, -1}, t[2] = {1, -1};
  mse_cpu(&total, dx, x, t, 2);
  close_to(total, 2); /* (4 + 0) / 2 */
  close_to(dx[0], 2);
  close_to(dx[1], 0);
  hinge_cpu(&total, dx, x, t, 2); /* 3 is far enough on the right side, -1 lies on the bend */
  close_to(total, 0);
  close_to(dx[0], 0);
  const double wrong[2] = {-3, 0.5};
  hinge_cpu(&total, dx, wrong, t, 2);
  close_to(total, (4 + 1.5) / 2);
  close_to(dx[0], -0.5);
  close_to(dx[1], 0.5);

  const double p[2] = {0.25, 0.5}, truth[2] = {1, 0};
  bce_cpu(&total, dx, p, truth, 2);
  close_to(total, log(8) / 2);
  close_to(dx[0], -2); /* (0.25 - 1) / (0.25 * 0.75) / 2 */
  close_to(dx[1], 1);
  const double logits[2] = {log(1.0 / 3), 0}; /* whose sigmoids are p */
  bce_logits_cpu(&total, dx, logits, truth, 2);
  close_to(total, log(8) / 2);
  close_to(dx[0], -0.375);
  close_to(dx[1], 0.25);

  const double rows[2 * 3] = {0.25, 0.5, 0.25, 0.125, 0.125, 0.75};
  const int labels[2] = {1, 0};
  double dp[6];
  cross_entropy_cpu(&total, dp, rows, labels, 2, 3);
  close_to(total, (log(2) + log(8)) / 2);
  const double dp_expected[6] = {0, -1, 0, -4, 0, 0};
  for (int i = 0; i < 6; i++) close_to(dp[i], dp_expected[i]);
}

/* Very large logits, right and wrong; probabilities that have been rounded to 0 or 1. */
static void extremes_stay_finite(void **state) {
  (void)state;
  double total, dx[4];
  const double x[4] = {1e4, 1e4, -1e4, -1e4}, t[4] = {1, 0, 1, 0};
  bce_logits_cpu(&total, dx, x, t, 4);
  close_to(total, 5e3);
  const double slopes[4] = {0, 0.25, -0.25, 0};
  for (int i = 0; i < 4; i++) close_to(dx[i], slopes[i]);
  const double p[4] = {1, 1, 0, 0};
  bce_cpu(&total, dx, p, t, 4); /* each error costs 100, and has a slope of 1e12 */
  close_to(total, 50);
  close_to(dx[0], 0);
  close_to(dx[1], 0.25e12);
  close_to(dx[2], -0.25e12);
}

/* A diverged network must be noticed: no comparison and no maximum may hide its NaN. At a margin of exactly 1 the hinge
 * has neither loss nor slope. */
static void nan_goes_through(void **state) {
  (void)state;
  enum { N = 9 };
  const struct {
    const char *name;
    LossBoth *loss;
    int gpu;
  } losses[] = {
      {"mse_cpu", mse_cpu, 0},
      {"bce_cpu", bce_cpu, 0},
      {"bce_logits_cpu", bce_logits_cpu, 0},
      {"hinge_cpu", hinge_cpu, 0},
      {"mse", mse_gpu, 1},
      {"bce", bce_gpu, 1},
      {"bce with logits", bce_logits_gpu, 1},
      {"hinge", hinge_gpu, 1},
  };
  const float t[N] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
    for (int at = -1; at < N; at += 5) { /* nowhere; in a quad; the odd one */
      float x[N] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, total, dx[N];
      if (at >= 0) x[at] = NAN;
      if (losses[i].gpu) {
        test_requires_gpu();
        float *gpu_x = arrays_upload(DEVICE_GPU, x, N), *gpu_t = arrays_upload(DEVICE_GPU, t, N);
        float *gpu_dx = guard_alloc(DEVICE_GPU, N), *gpu_total = guard_alloc(DEVICE_GPU, 1);
        losses[i].loss(gpu_total, gpu_dx, gpu_x, gpu_t, N);
        arrays_download(DEVICE_GPU, &total, gpu_total, 1, "total");
        arrays_download(DEVICE_GPU, dx, gpu_dx, N, "dx");
        arrays_download(DEVICE_GPU, NULL, gpu_x, N, "x");
        arrays_download(DEVICE_GPU, NULL, gpu_t, N, "t");
      } else {
        losses[i].loss(&total, dx, x, t, N);
      }
      if (isnan(total) != (at >= 0)) fail_msg("%s, NaN at %d: the loss is %g", losses[i].name, at, total);
      bool hinge = losses[i].loss == (LossBoth *)hinge_gpu || losses[i].loss == (LossBoth *)hinge_cpu<float>;
      if (hinge && at < 0 && (total != 0 || dx[0] != 0))
        fail_msg("%s on its bend: %g, %g", losses[i].name, total, dx[0]);
    }
  }
}

typedef void Reference(double *total, double *dx, const double *x, const double *t, size_t n);

static void check_gradient(Reference *loss, double low, double high, double t_low, double t_high) {
  enum { N = 33 };
  const double h = 1e-5;
  double x[N], t[N], dx[N], ends[2];
  for (int i = 0; i < N; i++) {
    PhiloxBlock random = philox4x32(3, 0, (uint64_t)i);
    x[i] = low + (high - low) * philox_uniform(random.word[0]);
    t[i] = t_low + (t_high - t_low) * philox_uniform(random.word[1]);
  }
  loss(NULL, dx, x, t, N);
  for (int i = 0; i < N; i++) {
    double kept = x[i];
    for (int side = 0; side < 2; side++) {
      x[i] = kept + (side ? h : -h);
      loss(&ends[side], NULL, x, t, N);
    }
    x[i] = kept;
    if (!(fabs(dx[i] - (ends[1] - ends[0]) / (2 * h)) < 1e-8))
      fail_msg("element %d: %.12g, by differences %.12g", i, dx[i], (ends[1] - ends[0]) / (2 * h));
  }
}

static void gradients_match_central_differences(void **state) {
  (void)state;
  check_gradient(mse_cpu<double>, -2, 2, -2, 2);
  check_gradient(bce_cpu<double>, 0.05, 0.95, 0, 1);
  check_gradient(bce_logits_cpu<double>, -6, 6, 0, 1);
  check_gradient(hinge_cpu<double>, -2, 2, -2, 2);
}

/* ---- PyTorch's results ---- */

static void check_golden(const char *name, float total, const float *dx, float total_golden, const float *dx_golden) {
  Tolerance t = tolerance_make(8 * FLT_EPSILON, 4 * FLT_EPSILON / GOLDEN_N);
  Comparison c = compare_arrays(dx, dx_golden, 1, GOLDEN_N, t);
  if (!c.ok) fail_msg("%s, dx: %s", name, c.message);
  c = compare_arrays(&total, &total_golden, 1, 1, t);
  if (!c.ok) fail_msg("%s, total: %s", name, c.message);
}

static void every_loss_matches_pytorch(void **state) {
  (void)state;
  const struct {
    const char *name;
    LossBoth *cpu, *gpu;
    const float *x, *t, *total, *dx;
  } golden[] = {
      {"mse", mse_cpu, mse_gpu, golden_x, golden_target, golden_mse, golden_mse_dx},
      {"bce", bce_cpu, bce_gpu, golden_p, golden_truth, golden_bce, golden_bce_dx},
      {"bce_logits", bce_logits_cpu, bce_logits_gpu, golden_x, golden_truth, golden_bce_logits, golden_bce_logits_dx},
      {"hinge", hinge_cpu, hinge_gpu, golden_x, golden_sides, golden_hinge, golden_hinge_dx},
  };
  float total, dx[GOLDEN_N];
  for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
    golden[i].cpu(&total, dx, golden[i].x, golden[i].t, GOLDEN_N);
    check_golden(golden[i].name, total, dx, *golden[i].total, golden[i].dx);
  }
  cross_entropy_cpu(&total, dx, golden_rows, golden_labels, GOLDEN_ROWS, GOLDEN_COLS);
  check_golden("cross_entropy", total, dx, *golden_cross_entropy, golden_cross_entropy_dx);
  test_requires_gpu();
  for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
    float *x = arrays_upload(DEVICE_GPU, golden[i].x, GOLDEN_N), *t = arrays_upload(DEVICE_GPU, golden[i].t, GOLDEN_N);
    float *gpu_dx = guard_alloc(DEVICE_GPU, GOLDEN_N), *gpu_total = guard_alloc(DEVICE_GPU, 1);
    golden[i].gpu(gpu_total, gpu_dx, x, t, GOLDEN_N);
    arrays_download(DEVICE_GPU, &total, gpu_total, 1, "total");
    arrays_download(DEVICE_GPU, dx, gpu_dx, GOLDEN_N, "dx");
    arrays_download(DEVICE_GPU, NULL, x, GOLDEN_N, "x");
    arrays_download(DEVICE_GPU, NULL, t, GOLDEN_N, "t");
    check_golden(golden[i].name, total, dx, *golden[i].total, golden[i].dx);
  }
}

/* ---- every version, aligned and not ---- */

typedef struct Case {
  const char *name;
  LossBoth *loss;
  LossBoth *reference;
  Tolerance (*tolerance)(const int *size); /* of the total */
  float low, high, t_low, t_high;
} Case;

template <LossKind KIND>
static void tree_and_scalar(float *total, float *dx, const float *x, const float *t, size_t n) {
  loss_forward_tree<KIND>(total, x, t, n);
  loss_backward_scalar<KIND>(dx, x, t, n);
}

template <LossKind KIND>
static void shuffle_and_quads(float *total, float *dx, const float *x, const float *t, size_t n) {
  loss_forward_shuffle<KIND>(total, x, t, n);
  loss_backward<KIND>(dx, x, t, n);
}

static const Case cases[] = {
    {"mse", mse_gpu, mse_cpu, loss_total_tolerance, -2, 2, -2, 2},
    {"mse separate", loss_separate<LOSS_MSE>, mse_cpu, loss_total_tolerance, -2, 2, -2, 2},
    {"mse tree", tree_and_scalar<LOSS_MSE>, mse_cpu, loss_total_tolerance, -2, 2, -2, 2},
    {"mse shuffle", shuffle_and_quads<LOSS_MSE>, mse_cpu, loss_total_tolerance, -2, 2, -2, 2},
    {"bce", bce_gpu, bce_cpu, loss_total_tolerance, 0, 1, 0, 1},
    {"bce separate", loss_separate<LOSS_BCE>, bce_cpu, loss_total_tolerance, 0, 1, 0, 1},
    {"bce with logits", bce_logits_gpu, bce_logits_cpu, bce_logits_total_tolerance, -90, 90, 0, 1},
    {"bce with logits, separate", loss_separate<LOSS_BCE_LOGITS>, bce_logits_cpu, bce_logits_total_tolerance, -90, 90,
     0, 1},
    {"hinge", hinge_gpu, hinge_cpu, hinge_total_tolerance, -2, 2, -1, 1},
    {"hinge separate", loss_separate<LOSS_HINGE>, hinge_cpu, hinge_total_tolerance, -2, 2, -1, 1},
};

static float *uniform(size_t n, float low, float high, uint64_t seed) {
  float *x = (float *)xmalloc(n * sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = low + (high - low) * philox_uniform(philox4x32(seed, 0, i).word[0]);
  return x;
}

/* t is low or high in the first half, as labels are; anything in the second. `misaligned`: x (1), t (2), dx (4), or
 * several of them begin a float past an aligned address. */
static void check_case(const Case *one, size_t n, int misaligned) {
  const size_t x0 = misaligned & 1, t0 = misaligned >> 1 & 1, dx0 = misaligned >> 2 & 1, all = n + 1;
  const int size[2] = {(int)n, 1};
  float *x = uniform(all, one->low, one->high, 1), *t = uniform(all, one->t_low, one->t_high, 2);
  for (size_t i = 0; i < all / 2; i++) t[i] = i % 3 == 0 ? one->t_low : one->t_high;
  float *dx = arrays_poison(all), *expected = arrays_poison(all), total, expected_total;
  one->reference(&expected_total, expected, x + x0, t + t0, n);
  float *device_x = arrays_upload(DEVICE_GPU, x, all), *device_t = arrays_upload(DEVICE_GPU, t, all);
  float *device_dx = arrays_upload(DEVICE_GPU, dx, all), *device_total = guard_alloc(DEVICE_GPU, 1);
  one->loss(device_total, device_dx + dx0, device_x + x0, device_t + t0, n);
  arrays_download(DEVICE_GPU, &total, device_total, 1, "total");
  arrays_download(DEVICE_GPU, dx, device_dx, all, "dx");
  arrays_download(DEVICE_GPU, NULL, device_x, all, "x");
  arrays_download(DEVICE_GPU, NULL, device_t, all, "t");
  Comparison c = compare_arrays(dx + dx0, expected, 1, n, loss_slope_tolerance(size));
  if (!c.ok) fail_msg("%s, %zu, misaligned %d, dx: %s", one->name, n, misaligned, c.message);
  c = compare_arrays(&total, &expected_total, 1, 1, one->tolerance(size));
  if (!c.ok) fail_msg("%s, %zu, misaligned %d, total: %s", one->name, n, misaligned, c.message);
  assert_true(compare_is_poison(&dx[dx0 == 0 ? n : 0]));
  free(x);
  free(t);
  free(dx);
  free(expected);
}

static void every_version_matches_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  const size_t sizes[] = {1, 3, 31, 33, 127, 1021, 8192};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (int misaligned = 0; misaligned < 8; misaligned++) check_case(&cases[c], sizes[i], misaligned);
#ifdef SIMT_REWRITTEN
  const size_t large = 2100001; /* several steps per thread */
#else
  const size_t large = 8500001; /* as many blocks as there are places for sums */
#endif
  for (size_t c = 0; c < 4; c++) check_case(&cases[c], large, 0);
}

static void check_cross_entropy(CrossEntropyBoth *loss, int batch, int classes, size_t offset) {
  size_t n = (size_t)batch * classes;
  const int size[2] = {batch, classes};
  float *p = uniform(n + offset, 1e-3f, 1, 1), *dp = arrays_poison(n + offset), *expected = arrays_poison(n);
  int *labels = (int *)xmalloc((size_t)batch * sizeof *labels);
  float total, expected_total;
  for (int b = 0; b < batch; b++) labels[b] = (7 * b + 3) % classes;
  cross_entropy_cpu(&expected_total, expected, p + offset, labels, batch, classes);
  float *device_p = arrays_upload(DEVICE_GPU, p, n + offset), *device_dp = arrays_upload(DEVICE_GPU, dp, n + offset);
  float *device_total = guard_alloc(DEVICE_GPU, 1);
  int *device_labels = (int *)arrays_upload_bytes(DEVICE_GPU, labels, (size_t)batch * sizeof *labels);
  loss(device_total, device_dp + offset, device_p + offset, device_labels, batch, classes);
  arrays_download(DEVICE_GPU, &total, device_total, 1, "total");
  arrays_download(DEVICE_GPU, dp, device_dp, n + offset, "dp");
  arrays_download(DEVICE_GPU, NULL, device_p, n + offset, "p");
  device_free(DEVICE_GPU, device_labels);
  Comparison c = compare_arrays(dp + offset, expected, (size_t)batch, (size_t)classes, loss_slope_tolerance(size));
  if (!c.ok) fail_msg("cross-entropy, %dx%d, offset %zu: %s", batch, classes, offset, c.message);
  c = compare_arrays(&total, &expected_total, 1, 1, loss_total_tolerance(size));
  if (!c.ok) fail_msg("cross-entropy, %dx%d, offset %zu, total: %s", batch, classes, offset, c.message);
  free(p);
  free(dp);
  free(expected);
  free(labels);
}

static void cross_entropy_matches_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  const int shapes[][2] = {{1, 1}, {1, 3}, {3, 1}, {31, 33}, {33, 4}, {127, 10}, {5, 1021}, {2, 1024}, {4, 1028}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t offset = 0; offset < 2; offset++) {
      check_cross_entropy(cross_entropy_separate, shapes[i][0], shapes[i][1], offset);
      check_cross_entropy(cross_entropy_fused, shapes[i][0], shapes[i][1], offset);
    }
  check_cross_entropy(cross_entropy_separate, 65535, 3, 0); /* a thread has more than one row */
  check_cross_entropy(cross_entropy_fused, 65535, 3, 0);    /* 256 blocks add up */
  check_cross_entropy(cross_entropy_fused, 65537, 3, 0);    /* two rows for some blocks */
  check_cross_entropy(cross_entropy_fused, 131071, 1, 0);   /* three for one */
  check_cross_entropy(cross_entropy_fused, 2, 9001, 0);     /* several blocks per row, two steps or less */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(extremes_stay_finite),
      cmocka_unit_test(nan_goes_through),
      cmocka_unit_test(gradients_match_central_differences),
      cmocka_unit_test(every_version_matches_the_reference),
      cmocka_unit_test(every_loss_matches_pytorch),
      cmocka_unit_test(cross_entropy_matches_the_reference),
  };
  return TEST_MAIN("losses", tests);
}
