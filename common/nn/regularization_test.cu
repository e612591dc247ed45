/* Mixtures of samples and averages of weights: the arithmetic by hand, the distribution of the shares, and that CPU and
 * GPU have the same bits. */
#include "common/nn/test_net.h"
#include "common/test_arrays.h"

/* ---- shares ---- */

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The distribution functions that have a formula: alpha 1/2 (the arcsine law), 1 and 2. */
static double beta_below(double alpha, double x) {
  return alpha == 0.5 ? 2 / 3.141592653589793 * asin(sqrt(x)) : alpha == 1 ? x : x * x * (3 - 2 * x);
}

/* Moments of the deviation from 1/2 (raw moments of Beta(a, a)): the variance is 1 / (4 (2a + 1)), the fourth moment
 * 3 / (16 (2a + 1) (2a + 3)), all odd ones are 0. Bounds: five standard errors of a mean of N. */
static void check_moments(double alpha, uint64_t seed) {
  enum { N = 40000 };
  double sum = 0, square = 0, fourth = 0;
  for (int i = 0; i < N; i++) {
    const double d = (double)mixup_share(alpha, seed, i) - 0.5;
    assert_true(fabs(d) <= 0.5);
    sum += d;
    square += d * d;
    fourth += d * d * d * d;
  }
  const double variance = 1 / (4 * (2 * alpha + 1)), fourth_moment = 3 / (16 * (2 * alpha + 1) * (2 * alpha + 3));
  const double spread = fourth_moment - variance * variance;
  if (!(fabs(sum / N) <= 5 * sqrt(variance / (double)N)) || !(fabs(square / N - variance) <= 5 * sqrt(spread / N)) ||
      !(fabs(fourth / N - fourth_moment) <= 5 * sqrt(fourth_moment / 16 / N))) /* d^8 is at most d^4 / 16 */
    fail_msg("alpha %g: mean %g, variance %g, fourth moment %g; expected 0, %g, %g", alpha, sum / N, square / N,
             fourth / N, variance, fourth_moment);
}

/* Kolmogorov and Smirnov: the largest distance between the empirical and the true distribution function is above
 * 1.95 / sqrt((double)N) by chance once in a thousand samples; this one is always the same. */
static void shares_are_of_the_beta_distribution(void **state) {
  (void)state;
  enum { N = 20000 };
  static double share[N];
  const double alphas[] = {0.5, 1, 2};
  for (int a = 0; a < 3; a++) {
    double most = 0;
    for (int i = 0; i < N; i++) share[i] = mixup_share(alphas[a], 7, i);
    qsort(share, N, sizeof *share, compare_doubles);
    for (int i = 0; i < N; i++) {
      const double below = beta_below(alphas[a], share[i]);
      most = fmax(most, fmax(fabs(below - (double)i / N), fabs(below - (i + 1.0) / N)));
    }
    if (!(most <= 1.95 / sqrt((double)N))) fail_msg("alpha %g: distance %g", alphas[a], most);
  }
  const double others[] = {0.1, 0.2, 0.4, 1, 4, 32};
  for (int a = 0; a < 6; a++) check_moments(others[a], (uint64_t)a);
}

/* Tiny alphas give 0 or 1, large ones a half; no share is a NaN. Neighbouring steps are independent. */
static void shares_have_no_holes(void **state) {
  (void)state;
  double together = 0;
  for (int i = 0; i < 10000; i++) {
    const float tiny = mixup_share(1e-7, 3, i), large = mixup_share(100, 3, i);
    assert_true(tiny >= 0 && tiny <= 1 && fabsf(tiny - 0.5f) > 0.25f);
    assert_true(fabsf(large - 0.5f) < 0.25f); /* seven standard deviations */
    together += (mixup_share(1, 3, i) - 0.5) * (mixup_share(1, 3, i + 1) - 0.5);
  }
  assert_true(fabs(together / 10000) <= 5 * (1.0 / 12) / 100.0);
  assert_true(mixup_share(0.3, 3, 5) == mixup_share(0.3, 3, 5) && mixup_share(0.3, 3, 5) != mixup_share(0.3, 4, 5));
}

/* ---- samples ---- */

static void samples_are_mixed_by_hand(void **state) {
  (void)state;
  const float x[3 * 2] = {1, 2, 10, 20, 5, 4};
  float y[6];
  const float expected[6] = {2, 2.5f, 10, 20, 4, 3.5f}; /* a quarter of the other one; the middle is its own */
  mixup_cpu(y, x, 3, 2, 0.25f);
  assert_memory_equal(y, expected, sizeof y);
}

static void check_mixing(Device device, int batch, size_t width, int recorded, int in_place) {
  const size_t n = batch * width;
  const float share = 0.3f;
  float *x = arrays_random(n, 1), *got = arrays_poison(n), *expected = arrays_poison(n);
  float *on_device = arrays_upload(device, x, n), *y = in_place ? on_device : arrays_upload(device, got, n);
  float *at = (float *)arrays_upload_bytes(device, &share, sizeof share);
  ON_DEVICE(device, mixup_gpu(y, on_device, batch, width, recorded ? 0 : share, recorded ? at : NULL),
            mixup_cpu_fast(y, on_device, batch, width, share));
  arrays_download(device, got, y, n, "y");
  if (!in_place) arrays_download(device, NULL, on_device, n, "x");
  mixup_cpu(expected, x, batch, width, share);
  assert_comparison(compare_arrays(got, expected, batch, (int)width, tolerance_make(0, 0)));
  device_free(device, at);
  free(x);
  free(got);
  free(expected);
}

static void check_all_mixing(Device device) {
  const int batches[] = {1, 2, 3, 31, 64}, widths[] = {1, 3, 33, 784, 1021};
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 5; j++) check_mixing(device, batches[i], (size_t)widths[j], (i + j) % 2, j % 3 > 0);
}

static void cpu_mixes_as_defined(void **state) {
  (void)state;
  check_all_mixing(DEVICE_CPU);
}

static void gpu_mixes_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  check_all_mixing(DEVICE_GPU);
}

/* ---- averages ---- */

/* average[t] is the mean of the weights so far, those of k steps before counting decay^k: an independent formula. Each
 * step rounds three times, relative to values below 2, and what it rounds is forgotten as the weights are. */
static void check_averaging(Device device, size_t n, double decay, int recorded, size_t offset) {
  enum { STEPS = 30 };
  double *sum = (double *)xcalloc(n, sizeof *sum), weights = 0;
  float *result = (float *)xmalloc(n * sizeof *result), *w = (float *)xmalloc(n * sizeof *w);
  float *average = (float *)device_alloc(device, (n + offset) * sizeof(float)) + offset;
  float *on_device = (float *)device_alloc(device, (n + offset) * sizeof(float)) + offset;
  float *at = (float *)device_alloc(device, sizeof(float));
  for (int t = 0; t < STEPS; t++) {
    const float share = average_share(decay, t);
    test_random_fill(w, n, (uint32_t)t + 1);
    weights = decay * weights + 1;
    for (size_t i = 0; i < n; i++) sum[i] = decay * sum[i] + w[i];
    device_upload(device, on_device, w, n * sizeof *w);
    device_upload(device, at, &share, sizeof share);
    ON_DEVICE(device, average_gpu(average, average, on_device, n, recorded ? -1 : share, recorded ? at : NULL),
              average_cpu(average, average, on_device, n, share));
    device_download(device, result, average, n * sizeof *result);
    if (t == 0) assert_memory_equal(result, w, n * sizeof *w);
    for (size_t i = 0; i < n; i++)
      if (!(fabs(result[i] - sum[i] / weights) <= 2 * 3 * 6e-8 * fmin(t + 1, 1 / (1 - decay))))
        fail_msg("step %d, weight %zu of %zu: %.9g, expected %.9g", t, i, n, result[i], sum[i] / weights);
  }
  device_free(device, average - offset);
  device_free(device, on_device - offset);
  device_free(device, at);
  free(sum);
  free(result);
  free(w);
}

static void check_all_averaging(Device device) {
  const size_t counts[] = {1, 3, 31, 127, 257, 1021};
  const double decays[] = {0.5, 0.9, 0.99, AVERAGE_MOST};
  for (int i = 0; i < 6; i++) check_averaging(device, counts[i], decays[i % 4], i % 2, i % 3 == 2);
}

static void cpu_averages_as_defined(void **state) {
  (void)state;
  check_all_averaging(DEVICE_CPU);
}

static void gpu_averages_as_defined(void **state) {
  (void)state;
  test_requires_gpu();
  check_all_averaging(DEVICE_GPU);
}

/* ---- a network ---- */

enum { IN = 7, OUT = 3, BATCH = 4, FLOATS = IN * OUT + OUT };

/* Weights and average come back after two calls; before the first step there are none to exchange. */
static void check_swapping(Device device) {
  Model m;
  float first[FLOATS], w[FLOATS], average[FLOATS], got[2][FLOATS];
  test_net_open(&m, shape1(IN), OUT, device, BATCH);
  const double without = model_bytes(&m);
  m.hyper.ema = 0.5;
  assert_true(model_bytes(&m) == without + FLOATS * sizeof(float));
  model_average_open(&m);
  model_init(&m, 1);
  model_swap_average(&m);
  device_download(device, first, m.parameters, sizeof first);
  for (int step = 0; step < 2; step++) {
    for (int i = 0; i < FLOATS; i++) w[i] = (float)(i + step);
    device_upload(device, m.gradients, w, sizeof w);
    m.hyper.lr = 0.125f;
    model_update(&m);
  }
  device_download(device, w, m.parameters, sizeof w);
  device_download(device, average, m.average, sizeof average);
  /* w1 = w0 - lr g0, w2 = w1 - lr g1; the average is (w1 / 2 + w2) / (3 / 2) */
  for (int i = 0; i < FLOATS; i++) {
    const double w1 = first[i] - 0.125 * i, w2 = w1 - 0.125 * (i + 1);
    assert_true(fabs(w[i] - w2) < 1e-5 && fabs(average[i] - (w1 / 2 + w2) / 1.5) < 1e-5);
  }
  for (int times = 1; times <= 2; times++) {
    model_swap_average(&m);
    device_download(device, got[times % 2], m.parameters, sizeof w);
    device_download(device, got[1 - times % 2], m.average, sizeof w);
    assert_memory_equal(got[0], w, sizeof w);
    assert_memory_equal(got[1], average, sizeof w);
  }
  model_close(&m);
}

static void averages_are_swapped(void **state) {
  (void)state;
  check_swapping(DEVICE_CPU);
  test_requires_gpu();
  check_swapping(DEVICE_GPU);
}

/* The inputs of a training step are mixed by the share of this step; those of an evaluation are not. */
static void a_step_mixes_its_inputs(void **state) {
  (void)state;
  Model m;
  float x[BATCH * IN], mixed[BATCH * IN];
  test_net_open(&m, shape1(IN), OUT, DEVICE_CPU, BATCH);
  model_init(&m, 1);
  m.context.seed = 5;
  m.context.mixup = 0.5f;
  test_random_fill(x, BATCH * IN, 1);
  for (int i = 0; i < BATCH; i++) model_labels(&m)[i] = i % OUT;
  memcpy(model_input(&m, 0), x, sizeof x);
  model_evaluate_step(&m, BATCH);
  assert_memory_equal(model_input(&m, 0), x, sizeof x);
  m.context.step = 9;
  mixup_cpu(mixed, x, BATCH, IN, mixup_share(0.5, 5, 9));
  assert_memory_not_equal(mixed, x, sizeof x);
  model_gradients(&m, BATCH);
  assert_memory_equal(model_input(&m, 0), mixed, sizeof x);
  assert_true(model_step_values(&m, 0.1, 9).mixed == m.context.mixed);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_are_of_the_beta_distribution),
      cmocka_unit_test(shares_have_no_holes),
      cmocka_unit_test(samples_are_mixed_by_hand),
      cmocka_unit_test(cpu_mixes_as_defined),
      cmocka_unit_test(gpu_mixes_the_same_bits),
      cmocka_unit_test(cpu_averages_as_defined),
      cmocka_unit_test(gpu_averages_as_defined),
      cmocka_unit_test(averages_are_swapped),
      cmocka_unit_test(a_step_mixes_its_inputs),
  };
  return TEST_MAIN("regularization", tests);
}
