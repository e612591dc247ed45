/* Numbers of 8 bits: all 256 codes, rounding, saturation, NaN. Quantisation on the GPU gives the codes and scales of
 * the CPU. Products: against the reference on ragged shapes, with tiles of very different size, with NaN. */
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_fp8.cuh"

#include "common/lesson/verify.h"
#include "common/test_arrays.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_fp8_lesson.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Numbers */

static float cudas_decode(uint8_t code) {
  __half_raw half = __nv_cvt_fp8_to_halfraw(code, __NV_E4M3);
  return __half2float(__half(half));
}

static uint8_t cudas_encode(float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }

static void every_code_is_cudas_and_survives(void **state) {
  (void)state;
  for (int code = 0; code < 256; code++) {
    float x = fp8_decode((uint8_t)code);
    if ((code & 0x7F) == FP8_NAN) {
      if (!isnan(x) || !isnan(cudas_decode((uint8_t)code))) fail_msg("%02x is %g, expected NaN", code, x);
      continue;
    }
    if (x != cudas_decode((uint8_t)code) || signbit(x) != (code >> 7))
      fail_msg("%02x is %g, CUDA's %g", code, x, cudas_decode((uint8_t)code));
    if (fp8_encode(x) != code) fail_msg("%02x is %g, which becomes %02x", code, x, fp8_encode(x));
  }
  assert_true(fp8_decode(0x01) == 1.0f / 512 && fp8_decode(0x08) == 1.0f / 64 && fp8_decode(0x38) == 1);
  assert_true(fp8_decode(0x7E) == 448 && fp8_decode(0xFE) == -448);
}

static void expect_code(float x, int code) {
  if (fp8_encode(x) != code) fail_msg("%a becomes %02x, expected %02x", x, fp8_encode(x), code);
  if (!isnan(x) && cudas_encode(x) != code) fail_msg("%a becomes %02x, CUDA's is %02x", x, code, cudas_encode(x));
}

static void rounding_is_to_the_nearest_and_halves_to_even(void **state) {
  (void)state;
  for (int code = 0; code < FP8_LARGEST_CODE; code++)
    for (int sign = 0; sign < 256; sign += 128) {
      float from = fp8_decode((uint8_t)code), to = fp8_decode((uint8_t)(code + 1)), half = (from + to) / 2;
      float factor = sign == 0 ? 1.0f : -1.0f;
      expect_code(factor * half, sign + code + code % 2);
      expect_code(factor * nextafterf(half, 0), sign + code);
      expect_code(factor * nextafterf(half, 1e9f), sign + code + 1);
    }
}

static void what_is_too_large_saturates(void **state) {
  (void)state;
  const float large[] = {449, 463.9f, 464, 465, 480, 1e9f, FLT_MAX, INFINITY};
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
    expect_code(large[i], 0x7E);
    expect_code(-large[i], 0xFE);
  }
  expect_code(FLT_MIN, 0);
  expect_code(-1e-45f, 0x80);
  assert_true(isnan(fp8_decode(fp8_encode(NAN))) && isnan(fp8_decode(fp8_encode(-NAN))));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Quantisation */

typedef void Quantise(uint8_t *codes, float *scales, const float *x, int rows, int k);

static void expect_quantised(const char *name, Quantise *on_gpu, Quantise *on_cpu, const float *x, int rows, int k) {
  size_t codes = rows * fp8_pitch(k), scales = (size_t)rows * fp8_tile_count(k); /* of fp8_tiles() fewer */
  uint8_t *expected = (uint8_t *)xmalloc(codes), *actual = (uint8_t *)xmalloc(codes);
  float *expected_scale = arrays_poison(scales), *actual_scale = arrays_poison(scales);
  float *device_x = arrays_upload(DEVICE_GPU, x, (size_t)rows * k);
  float *device_scale = arrays_upload(DEVICE_GPU, actual_scale, scales);
  memset(actual, 0x55, codes);
  uint8_t *device_codes = (uint8_t *)arrays_upload_bytes(DEVICE_GPU, actual, codes);
  on_cpu(expected, expected_scale, x, rows, k);
  on_gpu(device_codes, device_scale, device_x, rows, k);
  device_download(DEVICE_GPU, actual, device_codes, codes);
  arrays_download(DEVICE_GPU, actual_scale, device_scale, scales, "scales");
  arrays_download(DEVICE_GPU, NULL, device_x, (size_t)rows * k, "x");
  device_free(DEVICE_GPU, device_codes);
  for (size_t i = 0; i < scales; i++)
    if (memcmp(&actual_scale[i], &expected_scale[i], sizeof *actual_scale) != 0)
      fail_msg("%s (%d,%d): scale %zu is %a, expected %a", name, rows, k, i, actual_scale[i], expected_scale[i]);
  for (size_t i = 0; i < codes; i++)
    if (actual[i] != expected[i] && !(isnan(fp8_decode(actual[i])) && isnan(fp8_decode(expected[i]))))
      fail_msg("%s (%d,%d): code %zu is %02x, expected %02x", name, rows, k, i, actual[i], expected[i]);
  free(expected);
  free(actual);
  free(expected_scale);
  free(actual_scale);
}

static void codes_and_scales_are_those_of_the_cpu(void **state) {
  (void)state;
  test_requires_gpu();
  const int shapes[][2] = {{1, 1}, {3, 127}, {5, 128}, {129, 130}, {257, 513}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    int rows = shapes[i][0], k = shapes[i][1];
    size_t n = (size_t)rows * k;
    float *x = arrays_random(n, 11);
    for (size_t j = 0; j < n; j++) x[j] = ldexpf(x[j], (int)(j / k % 40) - 20); /* rows of different size */
    expect_quantised("fp8_rows", fp8_rows, fp8_rows_cpu, x, rows, k);
    expect_quantised("fp8_tiles", fp8_tiles, fp8_tiles_cpu, x, rows, k);
    memset(x, 0, (n + 1) / 2 * sizeof *x);
    x[n / 2] = NAN;
    x[n / 3] = -INFINITY;
    x[n - 1] = 1e-44f;
    expect_quantised("fp8_rows", fp8_rows, fp8_rows_cpu, x, rows, k);
    expect_quantised("fp8_tiles", fp8_tiles, fp8_tiles_cpu, x, rows, k);
    free(x);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Products */

static void expect_right(const char *name, MatmulFp8FloatLauncher *launch, int m, int n, int k) {
  static LessonResult result;
  Lesson lesson = matmul_fp8_lesson();
  LessonVersion version = matmul_fp8_version(name, launch, "");
  LessonShape shape = lesson_shape(&lesson, m, n, k);
  if (lesson_verify(&lesson, &version, &shape, 5, &result) != 0) fail_msg("%s: %s", name, result.message);
}

static void expect_right_everywhere(const char *name, MatmulFp8FloatLauncher *launch) {
  static LessonResult result;
  Lesson lesson = matmul_fp8_lesson();
  LessonVersion version = matmul_fp8_version(name, launch, "");
  if (lesson_verify_all(&lesson, &version, 3, &result) != 0) fail_msg("%s: %s", name, result.message);
#ifndef SIMT_REWRITTEN /* minutes there */
  expect_right(name, launch, 1025, 1032, 1033);
  expect_right(name, launch, 2049, 2563, 520);
  expect_right(name, launch, 4000, 4104, 64);
  expect_right(name, launch, 129, 7, 8193);
#endif
}

/* Tiles of 2^-30 to 2^30 along K. Each element errs by a part of its largest tile. */
static void expect_right_with_scales(const char *name, MatmulFp8FloatLauncher *launch) {
  enum { M = 70, N = 140, K = 700 };
  float *a = arrays_random(M * K, 1), *w = arrays_random(N * K, 2);
  for (int i = 0; i < M * K; i++) a[i] = ldexpf(a[i], i / K % 31 - 15 + i % K / FP8_TILE * 10 - 25);
  for (int i = 0; i < N * K; i++) w[i] = ldexpf(w[i], 10 - i % K / FP8_TILE * 7 + i / K / FP8_TILE * 5);
  a[3 * K + 5] = NAN;
  __nv_bfloat16 *expected = (__nv_bfloat16 *)xmalloc(2 * M * N), *actual = (__nv_bfloat16 *)xmalloc(2 * M * N);
  matmul_fp8_reference(expected, a, w, M, N, K, NULL);
  const int size[3] = {M, N, K};
  void *workspace = device_alloc(DEVICE_GPU, matmul_fp8_lesson_workspace(NULL, size));
  float *device_a = arrays_upload(DEVICE_GPU, a, M * K), *device_w = arrays_upload(DEVICE_GPU, w, N * K);
  __nv_bfloat16 *device_c = (__nv_bfloat16 *)device_alloc(DEVICE_GPU, 2 * M * N);
  launch(device_c, device_a, device_w, M, N, K, workspace);
  device_download(DEVICE_GPU, actual, device_c, 2 * M * N);
  for (int i = 0; i < M * N; i++) {
    float x = __bfloat162float(actual[i]), y = __bfloat162float(expected[i]);
    double largest = 0;
    for (int j = 0; j < K; j++) largest = fmax(largest, fabs((double)a[i / N * K + j] * w[i % N * K + j]));
    if (i / N == 3 ? !isnan(x) : !(fabs(x - y) <= fabs(y) / 128 + largest / 8))
      fail_msg("%s: (%d,%d) is %g, expected %g", name, i / N, i % N, x, y);
  }
  device_free(DEVICE_GPU, workspace);
  device_free(DEVICE_GPU, device_c);
  arrays_download(DEVICE_GPU, NULL, device_a, M * K, "a");
  arrays_download(DEVICE_GPU, NULL, device_w, N * K, "w");
  free(expected);
  free(actual);
  free(a);
  free(w);
}

static void naive_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  expect_right_everywhere("naive", matmul_fp8_float_naive);
  expect_right_with_scales("naive", matmul_fp8_float_naive);
}

static void wgmma_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  if (matmul_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", matmul_wgmma_refusal());
    skip();
  }
  expect_right_everywhere("wgmma", matmul_fp8_float_wgmma);
  expect_right("wgmma", matmul_fp8_float_wgmma, 264, 200, 700); /* more steps than stages; two tiles */
#ifdef SIMT_REWRITTEN
  /* more tiles than clusters, so that a block has two */
  expect_right("wgmma", matmul_fp8_float_wgmma, 2100, 8, 300);
#endif
  expect_right_with_scales("wgmma", matmul_fp8_float_wgmma);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_code_is_cudas_and_survives),
      cmocka_unit_test(rounding_is_to_the_nearest_and_halves_to_even),
      cmocka_unit_test(what_is_too_large_saturates),
      cmocka_unit_test(codes_and_scales_are_those_of_the_cpu),
      cmocka_unit_test(naive_matches_reference),
      cmocka_unit_test(wgmma_matches_reference),
  };
  return TEST_MAIN("matmul_fp8", tests);
}
