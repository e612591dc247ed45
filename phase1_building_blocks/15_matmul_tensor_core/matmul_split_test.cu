/* Floats in two parts: they hold 22 bits. Products of them by tensor cores: against the reference on ragged shapes and
 * unaligned matrices, with rows and columns of very different size, with infinities and NaN. */
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split_wgmma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split_wmma.cuh"

#include "common/lesson/verify.h"
#include "common/philox.h"
#include "common/test_arrays.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split_lesson.cuh"

typedef struct Version {
  const char *name;
  MatmulSplitLauncher *launch;
  const MatmulSplit *split; /* what its workspace is for; NULL: it needs none */
} Version;

static const MatmulSplit TF32 = MATMUL_SPLIT_TF32, HALF = MATMUL_SPLIT_HALF;
static const Version WMMA = {"wmma_tf32", matmul_split_wmma, NULL};
static const Version WGMMA_TF32 = {"wgmma_tf32", matmul_split_tf32, &TF32};
static const Version WGMMA_HALF = {"wgmma_half", matmul_split_half, &HALF};

static void require(const Version *version) {
  const char *refusal = version->split == NULL ? mma_refusal() : matmul_wgmma_refusal();
  test_requires_gpu();
  if (refusal == NULL) return;
  print_message("skipped: %s\n", refusal);
  skip();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Parts */

static float from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void two_tf32_hold_22_bits(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 1000000; i++) {
    PhiloxBlock random = philox4x32(1, 0, i);
    uint32_t exponent = 1 + random.word[1] % 254;
    float x = from_bits((random.word[0] & 0x807FFFFF) | exponent << 23);
    float high = matmul_split_round_tf32(x), low = matmul_split_round_tf32(x - high);
    if (matmul_split_bits(high) & 0x1FFF || matmul_split_bits(low) & 0x1FFF)
      fail_msg("%a: parts %a and %a have more than 11 bits", x, high, low);
    double error = fabs((double)x - high - low), unit = ldexp(1, (int)exponent - 127);
    if (!(error <= ldexp(unit, -22) || error <= FLT_MIN))
      fail_msg("%a: parts %a and %a err by %a", x, high, low, error);
  }
}

static void parts_of_the_largest_floats_are_finite(void **state) {
  (void)state;
  for (uint32_t bits = 0x7F7FE000; bits < 0x7F800000; bits++) {
    float x = from_bits(bits), high = matmul_split_round_tf32(x), low = matmul_split_round_tf32(x - high);
    if (!isfinite(high) || fabs((double)x - high - low) > ldexp(1, 127 - 22)) fail_msg("%a: %a and %a", x, high, low);
  }
  assert_true(isinf(matmul_split_round_tf32(INFINITY)));
  assert_true(isnan(matmul_split_round_tf32(from_bits(0x7F800001)))); /* whose upper bits are those of infinity */
}

/* Half of 65536 is the least that would be too much; a scale and its reciprocal are normal floats. */
static void scaled_rows_fit_in_float16(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x7F800000; bits += 4099) {
    int exponent = matmul_split_exponent(bits);
    double scaled = ldexp(from_bits(bits), exponent);
    if (exponent < -126 || exponent > 126 || scaled >= 32768)
      fail_msg("%a is scaled by 2^%d", from_bits(bits), exponent);
    if (scaled < 16384 && exponent < 126) fail_msg("%a is scaled by 2^%d, to %a", from_bits(bits), exponent, scaled);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Products */

static void expect_right(const Version *version, int m, int n, int k) {
  static LessonResult result;
  Lesson lesson = matmul_split_lesson();
  LessonVersion rung = matmul_split_version(version->name, version->launch, version->split, "");
  LessonShape shape = lesson_shape(&lesson, m, n, k);
  if (lesson_verify(&lesson, &rung, &shape, 5, &result) != 0) fail_msg("%s: %s", version->name, result.message);
}

static void expect_right_everywhere(const Version *version) {
  static LessonResult result;
  require(version);
  Lesson lesson = matmul_split_lesson();
  LessonVersion rung = matmul_split_version(version->name, version->launch, version->split, "");
  if (lesson_verify_all(&lesson, &rung, 3, &result) != 0) fail_msg("%s: %s", version->name, result.message);
  expect_right(version, 136, 200, 300); /* more steps than stages */
#ifdef SIMT_REWRITTEN
  expect_right(version, 2100, 8, 40); /* more tiles than clusters: the ring goes on with the next */
#else
  /* minutes there */
  expect_right(version, 1025, 1032, 1033);
  expect_right(version, 2049, 2563, 520);
  expect_right(version, 4000, 4104, 64);
  expect_right(version, 129, 7, 8193);
#endif
}

static void wmma_tf32_matches_reference(void **state) {
  (void)state;
  expect_right_everywhere(&WMMA);
}

static void wgmma_tf32_matches_reference(void **state) {
  (void)state;
  expect_right_everywhere(&WGMMA_TF32);
}

static void wgmma_half_matches_reference(void **state) {
  (void)state;
  expect_right_everywhere(&WGMMA_HALF);
}

/* c (m,n) by a version; a, b and c begin `offset` floats past an aligned address. */
static void multiply(const Version *version, float *c, const float *a, const float *b, int m, int n, int k,
                     int offset) {
  size_t a_count = (size_t)m * k, b_count = (size_t)k * n, count = (size_t)m * n;
  float *padded_a = arrays_poison(a_count + offset), *padded_b = arrays_poison(b_count + offset);
  float *padded_c = arrays_poison(count + offset);
  memcpy(padded_a + offset, a, a_count * sizeof *a);
  memcpy(padded_b + offset, b, b_count * sizeof *b);
  float *device_a = arrays_upload(DEVICE_GPU, padded_a, a_count + offset);
  float *device_b = arrays_upload(DEVICE_GPU, padded_b, b_count + offset);
  float *device_c = arrays_upload(DEVICE_GPU, padded_c, count + offset);
  size_t bytes = version->split == NULL ? 16 : matmul_split_workspace(*version->split, m, n, k);
  void *workspace = device_alloc(DEVICE_GPU, bytes);
  version->launch(device_c + offset, device_a + offset, device_b + offset, m, n, k, workspace);
  arrays_download(DEVICE_GPU, padded_c, device_c, count + offset, version->name);
  arrays_download(DEVICE_GPU, NULL, device_a, a_count + offset, "a");
  arrays_download(DEVICE_GPU, NULL, device_b, b_count + offset, "b");
  device_free(DEVICE_GPU, workspace);
  for (int i = 0; i < offset; i++)
    if (!compare_is_poison(&padded_c[i])) fail_msg("%s: wrote before c", version->name);
  memcpy(c, padded_c + offset, count * sizeof *c);
  free(padded_a);
  free(padded_b);
  free(padded_c);
}

/* Each product errs by at most 2^-20 of the largest of its row of A times the largest of its column of B: a row or
 * column that is scaled as a whole keeps its precision. (Both factors err by 2^-22, and low low is left out: 2^-22.) */
static void expect_scaled(const Version *version, const float *a, const float *b, int m, int n, int k) {
  float *c = arrays_poison((size_t)m * n);
  multiply(version, c, a, b, m, n, k, 0);
  for (int row = 0; row < m; row++)
    for (int col = 0; col < n; col++) {
      double sum = 0, left = 0, right = 0;
      for (int i = 0; i < k; i++) {
        double x = a[(size_t)row * k + i], y = b[(size_t)i * n + col];
        sum += x * y;
        left = fmax(left, fabs(x));
        right = fmax(right, fabs(y));
      }
      double tolerated = ldexp(k * left * right, -20) + ldexp(1, -149), actual = c[(size_t)row * n + col];
      if (!(fabs(actual - sum) <= tolerated) && !(fabs(sum) > FLT_MAX && isinf(actual)))
        fail_msg("%s: (%d,%d) is %g, expected %g (tolerance %g)", version->name, row, col, actual, sum, tolerated);
    }
  free(c);
}

/* Random signs, magnitudes log-uniform from 1e-4 to 1e4. */
static float *badly_scaled(size_t n, uint64_t stream) {
  float *x = arrays_poison(n);
  for (size_t i = 0; i < n; i++) {
    PhiloxBlock random = philox4x32(3, stream, i);
    x[i] = (float)pow(10, -4 + 8 * (random.word[0] / 4294967296.0)) * (random.word[1] % 2 ? -1 : 1);
  }
  return x;
}

static void expect_right_when_badly_scaled(const Version *version) {
  enum { M = 65, N = 136, K = 100 };
  require(version);
  float *a = badly_scaled(M * K, 0), *b = badly_scaled(K * N, 1);
  expect_scaled(version, a, b, M, N, K);
  if (version->split == &HALF) { /* tf32 has no scales, and what tensor cores do with subnormal numbers is not said */
    /* Rows of A from 2^-140 to 2^127, columns of B the other way: some products are subnormal, some infinite. */
    for (int i = 0; i < M * K; i++) a[i] = ldexpf(1 + 0.9f * (i % 7) / 7, -140 + i / K * 267 / (M - 1));
    for (int i = 0; i < K * N; i++) b[i] = ldexpf(1 + 0.9f * (i % 5) / 5, 126 - i % N * 266 / (N - 1));
    expect_scaled(version, a, b, M, N, K);
  }
  /* Zeros; each row and column has one large element. */
  memset(a, 0, M * K * sizeof *a);
  for (int i = 0; i < K; i++) a[i] = 1e-3f * (float)i, a[64 * K + i] = i == 7 ? 1e6f : 1.0f;
  for (int i = 0; i < K * N; i++) b[i] = i / N == 50 ? 3e5f : 1.0f;
  expect_scaled(version, a, b, M, N, K);
  free(a);
  free(b);
}

static void badly_scaled_matrices_keep_their_precision(void **state) {
  (void)state;
  expect_right_when_badly_scaled(&WMMA);
  expect_right_when_badly_scaled(&WGMMA_TF32);
  expect_right_when_badly_scaled(&WGMMA_HALF);
}

static void expect_unaligned_and_nan(const Version *version) {
  enum { M = 33, N = 20, K = 40 };
  require(version);
  float *a = arrays_random(M * K, 1), *b = arrays_random(K * N, 2), expected[M * N], c[M * N];
  a[5 * K + 3] = INFINITY;
  a[7 * K] = NAN;
  b[11 * N + 4] = -INFINITY;
  matmul_reference(expected, a, b, M, N, K);
  for (int offset = 0; offset < 2; offset++) {
    multiply(version, c, a, b, M, N, K, offset);
    for (int i = 0; i < M * N; i++)
      if (isfinite(expected[i]) ? !(fabs(c[i] - expected[i]) <= 1e-5 * K) : !isnan(c[i]))
        fail_msg("%s: (%d,%d) is %g, expected %g", version->name, i / N, i % N, c[i], expected[i]);
  }
  free(a);
  free(b);
}

static void infinities_and_nan_give_nan(void **state) {
  (void)state;
  expect_unaligned_and_nan(&WMMA);
  expect_unaligned_and_nan(&WGMMA_TF32);
  expect_unaligned_and_nan(&WGMMA_HALF);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_tf32_hold_22_bits),
      cmocka_unit_test(parts_of_the_largest_floats_are_finite),
      cmocka_unit_test(scaled_rows_fit_in_float16),
      cmocka_unit_test(wmma_tf32_matches_reference),
      cmocka_unit_test(wgmma_tf32_matches_reference),
      cmocka_unit_test(wgmma_half_matches_reference),
      cmocka_unit_test(badly_scaled_matrices_keep_their_precision),
      cmocka_unit_test(infinities_and_nan_give_nan),
  };
  return TEST_MAIN("matmul_split", tests);
}
