#include "phase1_building_blocks/random_init.cuh"

#include "phase1_building_blocks/test_arrays.h"

enum { MANY = 200000 };

static float x[MANY], y[MANY];

/* Checks mean and standard deviation within five standard errors: a right generator fails once in two million. */
static void assert_moments(const float *values, size_t n, double mean, double stddev) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) sum += values[i];
  for (size_t i = 0; i < n; i++) squares += (values[i] - sum / n) * (values[i] - sum / n);
  assert_true(fabs(sum / n - mean) < 5 * stddev / sqrt(n));
  assert_true(fabs(sqrt(squares / n) / stddev - 1) < 5 / sqrt(2.0 * n));
}

static void uniform_fills_its_range(void **state) {
  (void)state;
  float low = 1e9f, high = -1e9f;
  random_uniform_fill_cpu(x, MANY, -2, 5, 1, 2);
  for (int i = 0; i < MANY; i++) {
    assert_true(x[i] >= -2 && x[i] < 5);
    low = fminf(low, x[i]);
    high = fmaxf(high, x[i]);
  }
  assert_true(low < -1.999f && high > 4.999f);
  assert_moments(x, MANY, 1.5, 7 / sqrt(12.0));
}

/* Near 1000 floats lie 6e-5 apart, so 1000 + 0.99999994 would round to 1001. */
static void uniform_never_reaches_high(void **state) {
  (void)state;
  assert_true(random_uniform_scale(UINT32_MAX, 1000, 1001) < 1001);
  assert_true(random_uniform_scale(UINT32_MAX, 1000, 1001) > 1000.999f);
  assert_true(random_uniform_scale(0, 1000, 1001) == 1000);
}

static void normal_has_its_moments(void **state) {
  (void)state;
  random_normal_fill(x, MANY, 3, 0.5f, 1, 2);
  assert_moments(x, MANY, 3, 0.5);
  int beyond = 0; /* two standard deviations on either side: 4.55 % of a normal's draws, 0 of a uniform's */
  for (int i = 0; i < MANY; i++) beyond += fabsf(x[i] - 3) > 1;
  double share = 0.0455;
  assert_true(fabs(beyond - share * MANY) < 5 * sqrt(share * MANY));
}

static void he_scales_by_fan_in(void **state) {
  (void)state;
  he_normal_init(x, MANY, 50, 7, 3);
  assert_moments(x, MANY, 0, 0.2); /* sqrt(2 / 50) */
}

/* Number i depends on seed, stream and i alone: not on how many were asked for. */
static void numbers_depend_on_seed_stream_and_index(void **state) {
  (void)state;
  enum { N = 1001 };
  for (int normal = 0; normal < 2; normal++) {
    for (int n = 1; n <= N; n += 100) {
      compare_poison(x, N + 1);
      if (normal) {
        random_normal_fill(x, n, 0, 1, 7, 3);
        random_normal_fill(y, N, 0, 1, 7, 3);
      } else {
        random_uniform_fill_cpu(x, n, 0, 1, 7, 3);
        random_uniform_fill_cpu(y, N, 0, 1, 7, 3);
      }
      assert_comparison(compare_runs(y, x, n));
      assert_true(compare_is_poison(&x[n]));
    }
  }
  int same_seed = 0, same_stream = 0;
  random_normal_fill(x, N, 0, 1, 8, 3);
  for (int i = 0; i < N; i++) same_seed += x[i] == y[i];
  random_normal_fill(x, N, 0, 1, 7, 4);
  for (int i = 0; i < N; i++) same_stream += x[i] == y[i];
  assert_true(same_seed == 0 && same_stream == 0);
}

static void gpu_uniform_has_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  const int sizes[] = {1, 3, 4, 31, 33, 127, 1025, MANY};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    float *device_x = guard_alloc(DEVICE_GPU, sizes[i]);
    random_uniform_fill_gpu(device_x, sizes[i], -2, 5, 7, 3);
    arrays_download(DEVICE_GPU, x, device_x, sizes[i], "x");
    random_uniform_fill_cpu(y, sizes[i], -2, 5, 7, 3);
    assert_comparison(compare_runs(y, x, sizes[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(uniform_fills_its_range),
      cmocka_unit_test(uniform_never_reaches_high),
      cmocka_unit_test(normal_has_its_moments),
      cmocka_unit_test(he_scales_by_fan_in),
      cmocka_unit_test(numbers_depend_on_seed_stream_and_index),
      cmocka_unit_test(gpu_uniform_has_the_same_bits),
  };
  return TEST_MAIN("random_init", tests);
}
