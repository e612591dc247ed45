/* Dropout: every version drops what the loops drop, bit for bit; how many elements, and which; p of 0, of 1 and near
 * them; PyTorch's results with the same mask. */
#include "phase1_building_blocks/12_dropout/dropout.cuh"

#include "common/test_arrays.h"
#include "phase1_building_blocks/12_dropout/testdata/dropout_golden.h"

enum { MANY = 200000 };

typedef void Drop(float *y, const float *x, size_t n, float p, uint64_t seed, uint32_t stream);

/* Forward and backward with a stored mask, as one function of y and x: backward must drop what forward dropped. */
static void forward_mask(float *y, const float *x, size_t n, float p, uint64_t seed, uint32_t stream) {
  uint8_t *mask = (uint8_t *)device_alloc(DEVICE_GPU, n);
  dropout_forward_mask(y, mask, x, n, p, seed, stream);
  device_free(DEVICE_GPU, mask);
}
static void backward_mask(float *dx, const float *dy, size_t n, float p, uint64_t seed, uint32_t stream) {
  uint8_t *mask = (uint8_t *)device_alloc(DEVICE_GPU, n);
  float *y = (float *)device_alloc(DEVICE_GPU, n * sizeof *y);
  dropout_forward_mask(y, mask, dy, n, p, seed, stream);
  dropout_backward_mask(dx, mask, dy, n, p);
  device_free(DEVICE_GPU, mask);
  device_free(DEVICE_GPU, y);
}

static const struct {
  const char *name;
  Drop *drop;
} versions[] = {{"dropout_forward_mask", forward_mask},
                {"dropout_backward_mask", backward_mask},
                {"dropout_one_each", dropout_one_each},
                {"dropout_gpu", dropout_gpu}};
enum { VERSIONS = sizeof versions / sizeof *versions };

/* x begins `offset` floats past an aligned address, y `other`. */
static void check(int v, const float *x, size_t n, size_t offset, size_t other, float p) {
  static float padded[MANY + 4], actual[MANY + 4], expected[MANY];
  memcpy(padded + offset, x, n * sizeof *x);
  for (size_t i = 0; i < offset; i++) padded[i] = 7;
  compare_poison(actual, n + other);
  float *device_x = arrays_upload(DEVICE_GPU, padded, n + offset);
  float *device_y = arrays_upload(DEVICE_GPU, actual, n + other);
  versions[v].drop(device_y + other, device_x + offset, n, p, 7, 3);
  arrays_download(DEVICE_GPU, actual, device_y, n + other, "y");
  arrays_download(DEVICE_GPU, NULL, device_x, n + offset, "x");
  dropout_cpu(expected, x, n, p, 7, 3);
  Comparison c = compare_runs(expected, actual + other, n);
  if (!c.ok) fail_msg("%s, n %zu, offsets %zu and %zu, p %g: %s", versions[v].name, n, offset, other, p, c.message);
  for (size_t i = 0; i < other; i++) assert_true(compare_is_poison(&actual[i]));
}

static void every_version_drops_what_the_loops_drop(void **state) {
  (void)state;
  test_requires_gpu();
  const size_t sizes[] = {1, 2, 3, 4, 5, 31, 33, 127, 1021, 2048, 2053};
  float *x = arrays_random(MANY, 1);
  for (int v = 0; v < VERSIONS; v++) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (size_t offset = 0; offset < 4; offset++) {
        check(v, x, sizes[i], offset, offset, 0.4f);
        check(v, x, sizes[i], offset, 3 - offset, 0.4f);
      }
    check(v, x, MANY, 0, 0, 0.25f);
  }
  free(x);
}

/* The comparison of integers is that of the uniform number with p, at the threshold and beside it. */
static void the_threshold_is_p(void **state) {
  (void)state;
  const float ps[] = {0, 1e-30f, 0x1p-24f, 0.1f, 0.3f, 0.4f, 0.5f, 0.7f, 0.9f, 1 - 0x1p-24f, 1};
  for (size_t k = 0; k < sizeof ps / sizeof *ps; k++) {
    Dropout dropout = dropout_make(ps[k], 1, 1);
    for (int64_t at = -3; at <= 3; at++) {
      int64_t step = (int64_t)(ps[k] * 0x1p24) + at;
      if (step < 0 || step >= 1 << 24) continue;
      uint32_t word = (uint32_t)step << 8 | 0xff;
      assert_true(dropout_keeps(dropout, word) == (philox_uniform(word) >= ps[k]));
    }
  }
}

/* NaN, infinity and denormals: what is dropped is 0, what is kept is x / (1 - p). */
static void what_is_dropped_is_zero(void **state) {
  (void)state;
  test_requires_gpu();
  enum { N = 1000 };
  const float special[] = {NAN, INFINITY, -INFINITY, 1e-45f, -1e-40f, FLT_MAX, 0.0f, -1.0f};
  float x[N], y[N];
  for (int i = 0; i < N; i++) x[i] = special[i % 8];
  dropout_cpu(y, x, N, 0.5f, 7, 3);
  int kept = 0;
  for (int i = 0; i < N; i++) {
    bool keep = philox_uniform(philox4x32(7, 3, (uint64_t)i / 4).word[i % 4]) >= 0.5f; /* the definition */
    float expected = keep ? x[i] / 0.5f : 0.0f;
    assert_true(isnan(expected) ? isnan(y[i]) : y[i] == expected);
    kept += keep;
  }
  assert_true(kept > N / 3 && kept < 2 * N / 3);
  for (int v = 0; v < VERSIONS; v++) {
    float *device_x = arrays_upload(DEVICE_GPU, x, N), *device_y = guard_alloc(DEVICE_GPU, N);
    float actual[N];
    versions[v].drop(device_y, device_x, N, 0.5f, 7, 3);
    arrays_download(DEVICE_GPU, actual, device_y, N, "y");
    arrays_download(DEVICE_GPU, NULL, device_x, N, "x");
    Tolerance exact = tolerance_make(0, 0);
    exact.nan_equal = 1;
    assert_comparison(compare_arrays(actual, y, N / 8, 8, exact));
  }
}

/* p = 0 drops nothing and changes no bit, p = 1 drops all; between them as many as p says: with n draws within five
 * standard errors, sqrt(p (1 - p) / n), which a right generator leaves once in two million. The mean stays. */
static void as_many_are_dropped_as_p_says(void **state) {
  (void)state;
  test_requires_gpu();
  const float ps[] = {0, 0x1p-24f, 0.1f, 0.5f, 0.9f, 0.999f, 1 - 0x1p-24f, 1};
  static float x[MANY], y[MANY];
  for (int i = 0; i < MANY; i++) x[i] = 1;
  for (size_t k = 0; k < sizeof ps / sizeof *ps; k++) {
    double p = ps[k], dropped = 0, sum = 0;
    for (int v = 0; v < VERSIONS; v++) check(v, x, 2053, 0, 0, ps[k]);
    dropout_cpu(y, x, MANY, ps[k], 11, 3);
    for (int i = 0; i < MANY; i++) {
      dropped += y[i] == 0;
      sum += y[i];
      if (y[i] != 0) assert_true(fabs(y[i] * (1 - p) - 1) < 2 * FLT_EPSILON);
    }
    assert_true(fabs(dropped / MANY - p) <= 5 * sqrt(p * (1 - p) / MANY));
    if (p < 0.9999) assert_true(fabs(sum / MANY - 1) <= 5 * sqrt(p / (1 - p) / MANY) + FLT_EPSILON);
    if (p == 0) assert_memory_equal(x, y, sizeof x);
    if (p == 1) assert_true(sum == 0);
  }
}

/* Other seeds and streams drop other elements: with p a half, two masks both drop a quarter of the elements. */
static void masks_are_independent(void **state) {
  (void)state;
  static float x[MANY], y[MANY], other[MANY];
  for (int i = 0; i < MANY; i++) x[i] = 1;
  dropout_cpu(y, x, MANY, 0.5f, 11, 3);
  for (int k = 0; k < 3; k++) {
    double both = 0;
    if (k < 2) dropout_cpu(other, x, MANY, 0.5f, 11 + (k == 0), 3 + (k == 1));
    if (k == 2) memcpy(other, y + 1, (MANY - 1) * sizeof *y); /* neighbours in one stream */
    for (int i = 0; i < MANY - 1; i++) both += y[i] == 0 && other[i] == 0;
    assert_true(fabs(both / (MANY - 1) - 0.25) < 5 * sqrt(0.25 * 0.75 / MANY));
  }
}

/* Backward is the derivative: y is linear in x for a fixed mask, so a difference of any width gives it exactly. */
static void backward_is_the_derivative(void **state) {
  (void)state;
  enum { N = 127 };
  float x[N], dy[N], dx[N], above[N], below[N];
  test_random_fill(x, N, 1);
  test_random_fill(dy, N, 2);
  dropout_cpu(dx, dy, N, 0.4f, 7, 3);
  for (int i = 0; i < N; i++) {
    float saved = x[i];
    double slope = 0;
    x[i] = saved + 1;
    dropout_cpu(above, x, N, 0.4f, 7, 3);
    x[i] = saved - 1;
    dropout_cpu(below, x, N, 0.4f, 7, 3);
    x[i] = saved;
    for (int j = 0; j < N; j++) slope += ((double)above[j] - below[j]) / 2 * dy[j];
    assert_true(fabs(slope - dx[i]) < 1e-5 * (1 + fabs(dx[i]))); /* N + 2 roundings of numbers near 1 */
  }
}

/* A second implementation of the cipher, in Python, draws our mask; with it our gradient equals PyTorch's. 1 - p, its
 * reciprocal and the product are rounded here: three half units; PyTorch divides in double. */
static void what_is_kept_is_that_of_pytorch(void **state) {
  (void)state;
  for (int k = 0; k < GOLDEN_PS; k++) {
    const float *mask = golden_our_mask + k * GOLDEN_N, *expected[] = {golden_our_y, golden_our_dx};
    const float *in[] = {golden_x, golden_dy};
    for (int backward = 0; backward < 2; backward++) {
      float y[GOLDEN_N];
      compare_poison(y, GOLDEN_N);
      dropout_cpu(y, in[backward], GOLDEN_N, golden_p[k], golden_seed, GOLDEN_STREAM);
      assert_close(y, expected[backward] + k * GOLDEN_N, GOLDEN_N, 2 * FLT_EPSILON, 0);
      for (int i = 0; i < GOLDEN_N; i++) assert_true((y[i] != 0) == (mask[i] != 0));
    }
  }
}

static void the_kernels_are_those_of_pytorch(void **state) {
  (void)state;
  test_requires_gpu();
  for (int k = 0; k < GOLDEN_PS; k++) {
    const size_t at = (size_t)k * GOLDEN_N;
    float *x = arrays_upload(DEVICE_GPU, golden_x, GOLDEN_N), *dy = arrays_upload(DEVICE_GPU, golden_dy, GOLDEN_N);
    float y[GOLDEN_N];
    for (int v = 0; v < VERSIONS; v++)
      for (int backward = 0; backward < 2; backward++) {
        compare_poison(y, GOLDEN_N);
        float *device_y = arrays_upload(DEVICE_GPU, y, GOLDEN_N);
        versions[v].drop(device_y, backward ? dy : x, GOLDEN_N, golden_p[k], golden_seed, GOLDEN_STREAM);
        arrays_download(DEVICE_GPU, y, device_y, GOLDEN_N, "y");
        Comparison c = compare_arrays(y, (backward ? golden_our_dx : golden_our_y) + at, 1, GOLDEN_N,
                                      tolerance_make(2 * FLT_EPSILON, 0));
        if (!c.ok)
          fail_msg("%s, p %g, %s: %s", versions[v].name, golden_p[k], backward ? "backward" : "forward", c.message);
      }
    uint8_t mask[GOLDEN_N]; /* PyTorch's own */
    for (int i = 0; i < GOLDEN_N; i++) mask[i] = golden_mask[at + i] != 0;
    uint8_t *device_mask = (uint8_t *)arrays_upload_bytes(DEVICE_GPU, mask, sizeof mask);
    for (int backward = 0; backward < 2; backward++) { /* the same function of x: what is kept is scaled */
      compare_poison(y, GOLDEN_N);
      float *device_y = arrays_upload(DEVICE_GPU, y, GOLDEN_N);
      dropout_backward_mask(device_y, device_mask, backward ? dy : x, GOLDEN_N, golden_p[k]);
      arrays_download(DEVICE_GPU, y, device_y, GOLDEN_N, "y");
      assert_close(y, (backward ? golden_dx : golden_y) + at, GOLDEN_N, 2 * FLT_EPSILON, 0);
    }
    device_free(DEVICE_GPU, device_mask);
    arrays_download(DEVICE_GPU, NULL, x, GOLDEN_N, "x");
    arrays_download(DEVICE_GPU, NULL, dy, GOLDEN_N, "dy");
  }
}

static void in_place(void **state) {
  (void)state;
  test_requires_gpu();
  float *x = arrays_random(2053, 1), expected[2053];
  dropout_cpu(expected, x, 2053, 0.4f, 7, 3);
  float *device_x = arrays_upload(DEVICE_GPU, x, 2053);
  dropout_gpu(device_x, device_x, 2053, 0.4f, 7, 3);
  arrays_download(DEVICE_GPU, x, device_x, 2053, "x");
  assert_comparison(compare_runs(expected, x, 2053));
  free(x);
}

static void drop_by(float p) {
  float x = 1;
  dropout_cpu(&x, &x, 1, p, 1, 1);
}
static void drop_by_nan(void) { drop_by(NAN); }
static void drop_by_two(void) { drop_by(2); }
static void drop_by_less(void) { drop_by(-0.1f); }

static void what_is_no_probability_is_refused(void **state) {
  (void)state;
  void (*const bodies[])(void) = {drop_by_nan, drop_by_two, drop_by_less};
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    char output[512];
    assert_int_equal(test_fork(bodies[i], output, sizeof output), 1);
    assert_non_null(strstr(output, "a probability from 0 to 1 is expected"));
  }
  dropout_gpu(NULL, NULL, 0, 0.5f, 1, 1); /* no elements: does nothing */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_no_probability_is_refused), /* forks, before CUDA is there */
      cmocka_unit_test(every_version_drops_what_the_loops_drop),
      cmocka_unit_test(the_threshold_is_p),
      cmocka_unit_test(what_is_dropped_is_zero),
      cmocka_unit_test(as_many_are_dropped_as_p_says),
      cmocka_unit_test(masks_are_independent),
      cmocka_unit_test(backward_is_the_derivative),
      cmocka_unit_test(what_is_kept_is_that_of_pytorch),
      cmocka_unit_test(the_kernels_are_those_of_pytorch),
      cmocka_unit_test(in_place),
  };
  return TEST_MAIN("dropout", tests);
}
