#include "phase1_building_blocks/11_random_init/random_init.cuh"

#include "common/test_arrays.h"

enum { MANY = 200000 };

static float x[MANY], y[MANY];

/* Checks mean and standard deviation within five standard errors: a correct generator fails once in two million. */
static void assert_moments(const float *values, size_t n, double mean, double stddev) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) sum += values[i];
  for (size_t i = 0; i < n; i++) squares += (values[i] - sum / n) * (values[i] - sum / n);
  assert_true(fabs(sum / n - mean) < 5 * stddev / sqrt(n));
  assert_true(fabs(sqrt(squares / n) / stddev - 1) < 5 / sqrt(2.0 * n));
}

typedef double Distribution(double x);
static double uniform_below(double x) { return fmin(fmax(x, 0), 1); }
static double normal_below(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }

static int by_size(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: the largest distance between how many of the n values lie below x and how many should, times
 * sqrt(n). Of a right generator it is above K with probability 2 exp(-2 K^2): above KS_LIMIT once in a million. */
#define KS_LIMIT 2.7
static double ks_statistic(const float *values, size_t n, Distribution *below) {
  static float sorted[MANY];
  double distance = 0;
  memcpy(sorted, values, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, by_size);
  for (size_t i = 0; i < n; i++) {
    double wanted = below(sorted[i]);
    distance = fmax(distance, fmax(wanted - (double)i / n, (double)(i + 1) / n - wanted));
  }
  return distance * sqrt((double)n);
}

/* The k-th power's mean of standard normals, 0, 1, 0 and 3, in standard errors: sqrt of (2k - 1)!! less its square. */
static double normal_moment_error(const float *values, size_t n, int k) {
  const double wanted[] = {1, 0, 1, 0, 3}, variance[] = {0, 1, 2, 15, 96};
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += pow(values[i], k);
  return fabs(sum / n - wanted[k]) / sqrt(variance[k] / n);
}

/* Of two series that are independent, of mean 0 and variance 1: below 5 but once in two million. */
static double correlation_error(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
  return fabs(sum) / sqrt((double)n);
}

static void distributions_are_what_they_say(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    random_uniform_fill_cpu(x, MANY, 0, 1, seed, 5);
    double uniform = ks_statistic(x, MANY, uniform_below);
    random_normal_quads_cpu(x, MANY, 0, 1, seed, 5);
    random_normal_fill(y, MANY, 0, 1, seed, 6);
    double quads = ks_statistic(x, MANY, normal_below), pairs = ks_statistic(y, MANY, normal_below);
    print_message("Kolmogorov-Smirnov, seed %d: uniform %.2f, normal %.2f and %.2f\n", (int)seed, uniform, quads,
                  pairs);
    assert_true(uniform < KS_LIMIT && quads < KS_LIMIT && pairs < KS_LIMIT);
    for (int k = 1; k <= 4; k++)
      assert_true(normal_moment_error(x, MANY, k) < 5 && normal_moment_error(y, MANY, k) < 5);
  }
}

/* The tests above reject: a uniform distribution without its last percent, a normal one as the sum of twelve uniforms
 * (right mean and variance, tails too thin), one whose second numbers have lost their sign, and one in which each
 * number depends on the last. */
static void wrong_distributions_are_noticed(void **state) {
  (void)state;
  random_uniform_fill_cpu(x, MANY, 0, 0.99f, 1, 5);
  assert_true(ks_statistic(x, MANY, uniform_below) > KS_LIMIT);
  for (int i = 0; i < MANY; i++) {
    x[i] = -6;
    for (int j = 0; j < 12; j += 4)
      for (int w = 0; w < 4; w++) x[i] += philox_uniform(philox4x32(1, 5, 3 * i + j / 4).word[w]);
  }
  assert_true(normal_moment_error(x, MANY, 1) < 5 && normal_moment_error(x, MANY, 2) < 5);
  assert_true(normal_moment_error(x, MANY, 4) > 5);
  random_normal_fill(x, MANY, 0, 1, 1, 5);
  for (int i = 0; i < MANY; i += 2) x[i + 1] = fabsf(x[i + 1]);
  assert_true(ks_statistic(x, MANY, normal_below) > KS_LIMIT);
  random_normal_fill(x, MANY, 0, 1, 1, 5);
  for (int i = 1; i < MANY; i++) y[i] = 0.05f * x[i - 1] + x[i];
  assert_true(correlation_error(x, y + 1, MANY - 1) > 5);
}

/* Neighbouring seeds and streams, and neighbouring numbers in one stream, are independent. */
static void neighbours_do_not_correlate(void **state) {
  (void)state;
  random_normal_quads_cpu(x, MANY, 0, 1, 1, 5);
  random_normal_quads_cpu(y, MANY, 0, 1, 1, 6);
  assert_true(correlation_error(x, y, MANY) < 5);
  random_normal_quads_cpu(y, MANY, 0, 1, 2, 5);
  assert_true(correlation_error(x, y, MANY) < 5);
  for (int lag = 1; lag <= 8; lag++) assert_true(correlation_error(x, x + lag, MANY - lag) < 5);
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
  assert_true(random_uniform_scale(UINT32_MAX, random_range(1000, 1001)) < 1001);
  assert_true(random_uniform_scale(UINT32_MAX, random_range(1000, 1001)) > 1000.999f);
  assert_true(random_uniform_scale(0, random_range(1000, 1001)) == 1000);
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

static void initialisers_have_their_variance(void **state) {
  (void)state;
  he_uniform_init(x, MANY, 50, 7, 3);
  assert_moments(x, MANY, 0, 0.2);
  xavier_normal_init(x, MANY, 30, 20, 7, 3); /* sqrt(2 / (30 + 20)) */
  assert_moments(x, MANY, 0, 0.2);
  xavier_uniform_init(x, MANY, 30, 20, 7, 3);
  assert_moments(x, MANY, 0, 0.2);
  for (int i = 0; i < MANY; i++) assert_true(fabsf(x[i]) <= 0.34641019f); /* sqrt(6 / 50) */
}

/* Networks are initialised with these numbers; recorded results depend on them, so they must never change. */
static void networks_start_from_the_same_weights(void **state) {
  (void)state;
  const float expected[] = {0x1.2a8d08p-3f, 0x1.2604eap-3f, -0x1.992b16p-3f, 0x1.a59ffep-5f, 0x1.f48f14p-3f};
  he_normal_init(x, 5, 50, 7, 3);
  for (int i = 0; i < 5; i++) assert_true(x[i] == expected[i]);
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

typedef void Fill(float *x, size_t n, float a, float b, uint64_t seed, uint32_t stream);

/* On the GPU, with x `offset` floats past an aligned address, into `result`. */
static void fill_on_gpu(Fill *fill, float *result, size_t n, size_t offset, float a, float b) {
  static float padded[MANY + 4];
  compare_poison(padded, n + offset);
  float *device_x = arrays_upload(DEVICE_GPU, padded, n + offset);
  fill(device_x + offset, n, a, b, 7, 3);
  arrays_download(DEVICE_GPU, padded, device_x, n + offset, "x");
  for (size_t i = 0; i < offset; i++) assert_true(compare_is_poison(&padded[i]));
  memcpy(result, padded + offset, n * sizeof *result);
}

static const size_t sizes[] = {1, 2, 3, 4, 5, 31, 33, 127, 1025, MANY};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void gpu_uniform_has_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  Fill *const fills[] = {random_uniform_one_each, random_uniform_four_each, random_uniform_float4,
                         random_uniform_fill_gpu};
  for (size_t f = 0; f < sizeof fills / sizeof *fills; f++)
    for (size_t i = 0; i < SIZES; i++)
      for (size_t offset = 0; offset < 4; offset++) {
        fill_on_gpu(fills[f], x, sizes[i], offset, -2, 5);
        random_uniform_fill_cpu(y, sizes[i], -2, 5, 7, 3);
        assert_comparison(compare_runs(y, x, sizes[i]));
      }
}

/* In double the twins round the same number, up to the last bits of a double: at most once in some ten million to
 * another float. In float, relative to the number itself, 3 ulps; near 0 what the CPU's pi leaves of sin(pi). */
static void gpu_normal_has_the_same_numbers(void **state) {
  (void)state;
  test_requires_gpu();
  Fill *const fills[] = {random_normal_quads_double, random_normal_quads_float, random_normal_quads_gpu};
  for (size_t f = 0; f < sizeof fills / sizeof *fills; f++)
    for (size_t i = 0; i < SIZES; i++)
      for (size_t offset = 0; offset < 4; offset++) {
        Tolerance tolerance = tolerance_make((f == 0 ? 1 : 3) * FLT_EPSILON, 6 * 0x1p-50);
        fill_on_gpu(fills[f], x, sizes[i], offset, 0, 1);
        random_normal_quads_cpu(y, sizes[i], 0, 1, 7, 3);
        assert_comparison(compare_arrays(x, y, 1, sizes[i], tolerance));
      }
}

static __global__ void normal_pair_kernel(float *pairs, const uint32_t *words, int n) {
  int i = threadIdx.x;
  if (i < n * n) random_normal_pair(words[i / n], words[i % n], &pairs[2 * i], &pairs[2 * i + 1]);
}

/* The words that would be 0 and 1, and those beside them. */
static void gpu_normal_is_right_at_the_edges(void **state) {
  (void)state;
  test_requires_gpu();
  enum { EDGES = 9 };
  const uint32_t edges[EDGES] = {0, 255, 256, 0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000, 0xfffffeff, 0xffffffff};
  uint32_t *words = (uint32_t *)arrays_upload_bytes(DEVICE_GPU, edges, sizeof edges);
  float *device_x = guard_alloc(DEVICE_GPU, 2 * EDGES * EDGES);
  normal_pair_kernel<<<1, 96>>>(device_x, words, EDGES);
  CUDA_CHECK_LAUNCH();
  arrays_download(DEVICE_GPU, x, device_x, 2 * EDGES * EDGES, "x");
  for (int i = 0; i < EDGES * EDGES; i++) {
    PhiloxBlock block = {{edges[i / EDGES], edges[i % EDGES], 0, 0}};
    philox_normal(block, &y[2 * i], &y[2 * i + 1]);
  }
  assert_comparison(compare_arrays(x, y, EDGES, 2 * EDGES, tolerance_make(3 * FLT_EPSILON, 6 * 0x1p-50)));
  device_free(DEVICE_GPU, words);
}

/* The same bits from any grid. */
static void gpu_numbers_do_not_depend_on_the_grid(void **state) {
  (void)state;
  test_requires_gpu();
  const int grids[][2] = {{1, 32}, {3, 96}, {7, 256}, {64, 1024}};
  static float other[10007];
  RandomRange range = random_range(-2, 5);
  random_uniform_fill_cpu(y, 10007, -2, 5, 7, 3);
  random_uniform_fill_cpu(other, 10007, -2, 5, 8, 3);
  for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
    float *device_x = guard_alloc(DEVICE_GPU, 10007);
    random_uniform_stride_kernel<true, uint32_t><<<grids[g][0], grids[g][1]>>>(device_x, 10007, range, 7, 3);
    CUDA_CHECK_LAUNCH();
    device_download(DEVICE_GPU, x, device_x, 10007 * sizeof *x);
    assert_comparison(compare_runs(y, x, 10007));
    random_uniform_stride_kernel<true, uint64_t><<<grids[g][0], grids[g][1]>>>(device_x, 10007, range, 8, 3);
    CUDA_CHECK_LAUNCH();
    arrays_download(DEVICE_GPU, x, device_x, 10007, "x");
    assert_comparison(compare_runs(other, x, 10007));
  }
}

static void nothing_is_filled_with_nothing(void **state) {
  (void)state;
  test_requires_gpu();
  random_uniform_fill_gpu(NULL, 0, 0, 1, 1, 1);
  random_normal_quads_gpu(NULL, 0, 0, 1, 1, 1);
  CUDA_CHECK(cudaDeviceSynchronize());
}

static void draw(float low, float high) {
  float x;
  random_uniform_fill_cpu(&x, 1, low, high, 1, 1);
  if (!(x >= low && x < high)) die("drew %g", x);
}
static void draw_too_wide(void) { draw(-FLT_MAX, FLT_MAX); }
static void draw_backwards(void) { draw(1, -1); }
static void draw_from_nan(void) { draw(NAN, 1); }
static void draw_up_to_infinity(void) { draw(0, INFINITY); }
static void draw_as_wide_as_it_gets(void) { draw(-FLT_MAX / 2, FLT_MAX / 2); }

static void what_is_no_range_is_refused(void **state) {
  (void)state;
  void (*const bodies[])(void) = {draw_too_wide, draw_backwards, draw_from_nan, draw_up_to_infinity};
  char output[512];
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    assert_int_equal(test_fork(bodies[i], output, sizeof output), 1);
    assert_non_null(strstr(output, "low < high is expected"));
  }
  assert_int_equal(test_fork(draw_as_wide_as_it_gets, output, sizeof output), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_no_range_is_refused), /* forks, before CUDA is there */
      cmocka_unit_test(distributions_are_what_they_say),
      cmocka_unit_test(wrong_distributions_are_noticed),
      cmocka_unit_test(neighbours_do_not_correlate),
      cmocka_unit_test(uniform_fills_its_range),
      cmocka_unit_test(uniform_never_reaches_high),
      cmocka_unit_test(normal_has_its_moments),
      cmocka_unit_test(he_scales_by_fan_in),
      cmocka_unit_test(initialisers_have_their_variance),
      cmocka_unit_test(networks_start_from_the_same_weights),
      cmocka_unit_test(numbers_depend_on_seed_stream_and_index),
      cmocka_unit_test(gpu_uniform_has_the_same_bits),
      cmocka_unit_test(gpu_normal_has_the_same_numbers),
      cmocka_unit_test(gpu_normal_is_right_at_the_edges),
      cmocka_unit_test(gpu_numbers_do_not_depend_on_the_grid),
      cmocka_unit_test(nothing_is_filled_with_nothing),
  };
  return TEST_MAIN("random_init", tests);
}
