/* The gradients of attention on tensor cores: in bfloat16 against the definition, in float32 against the error of the
 * float32 units. */
#include "common/test_arrays.h"
#include "phase1_building_blocks/14_attention/attention_backward_tensor_core_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_backward_tf32.cuh"
#include "phase1_building_blocks/14_attention/attention_backward_wgmma.cuh"

static const struct {
  const char *name;
  AttentionBf16Gradients *launch;
  bool hopper;
} versions[] = {{"attention_gradients_mma", attention_gradients_mma, false},
                {"attention_gradients_wgmma", attention_gradients_wgmma, true}};

enum { BAND = 8 }; /* elements before and behind an array, which must stay as they are */

/* A version against the definition; arrays that begin `offset` elements behind an address aligned to 16 bytes. */
static void check_bfloat16(size_t version, const int *size, int offset, bool causal, float factor) {
  size_t n = (size_t)size[0] * size[1] * size[2] * size[3], padded = n + 2 * BAND;
  float *random = arrays_random(4 * n, 31), *got = arrays_poison(n), *expected = arrays_poison(n);
  __nv_bfloat16 *host = (__nv_bfloat16 *)xmalloc(7 * padded * sizeof *host); /* dq, dk, dv, q, k, v, dout */
  __nv_bfloat16 *exact = (__nv_bfloat16 *)xmalloc(3 * n * sizeof *exact), *device[7], *at[7];
  for (size_t i = 0; i < 7 * padded; i++) host[i] = __float2bfloat16(NAN);
  for (size_t i = 0; i < 4 * n; i++)
    host[(3 + i / n) * padded + BAND + offset + i % n] = __float2bfloat16(i < n ? factor * random[i] : random[i]);
  for (int a = 0; a < 7; a++) at[a] = host + a * padded + BAND + offset;
  attention_bf16_gradients_cpu(exact, exact + n, exact + 2 * n, at[3], at[4], at[5], at[6], size[0], size[1], size[2],
                               size[3], causal);
  for (int a = 0; a < 7; a++) {
    device[a] = (__nv_bfloat16 *)arrays_upload_bytes(DEVICE_GPU, host + a * padded, padded * sizeof *host);
    at[a] = device[a] + BAND + offset;
  }
  versions[version].launch(at[0], at[1], at[2], at[3], at[4], at[5], at[6], size[0], size[1], size[2], size[3], causal);
  for (int a = 0; a < 3; a++) {
    device_download(DEVICE_GPU, host, device[a], padded * sizeof *host);
    for (size_t i = 0; i < n; i++) {
      got[i] = __bfloat162float(host[BAND + offset + i]);
      expected[i] = __bfloat162float(exact[a * n + i]);
    }
    Tolerance tolerance = attention_bf16_gradients_tolerance(size);
    if (a == 1) tolerance.absolute *= fmax(1, factor); /* dk is a sum of q */
    Comparison c = compare_arrays(got, expected, n / (size_t)size[3], (size_t)size[3], tolerance);
    if (!c.ok)
      fail_msg("%s, (%d,%d,%d,%d), offset %d, causal %d, d%c: %s", versions[version].name, size[0], size[1], size[2],
               size[3], offset, causal, "qkv"[a], c.message);
    for (int i = 0; i < 2 * BAND; i++)
      assert_true(isnan(__bfloat162float(host[i < BAND + offset ? (size_t)i : n + (size_t)i])));
  }
  for (int a = 0; a < 7; a++) device_free(DEVICE_GPU, device[a]);
  free(random), free(got), free(expected), free(host), free(exact);
}

static void check_version(size_t version) {
  const int shapes[][5] = {{1, 1, 1, 1, 0},    {1, 2, 3, 16, 0},    {2, 1, 67, 64, 0},  {1, 1, 127, 32, 0},
                           {1, 1, 33, 128, 0}, {1, 1, 31, 63, 0},   {1, 1, 66, 64, 1},  {1, 2, 131, 40, 0},
                           {1, 1, 258, 64, 0}, {1, 1, 193, 128, 0}, {1, 2, 70, 104, 0}, {1, 1, 35, 128, 3}};
  if (versions[version].hopper && matmul_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", matmul_wgmma_refusal());
    skip();
  }
  for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++)
    check_bfloat16(version, shapes[i / 2], shapes[i / 2][4], i % 2, 1);
}

static void mma_matches_the_definition(void **state) {
  (void)state;
  test_requires_gpu();
  check_version(0);
  const int sizes[][4] = {{1, 1, 67, 64}, {1, 1, 67, 128}};
  for (int i = 0; i < 2; i++) { /* GeForce RTX has 99 KiB */
    shared_limit_pretended = 99 << 10;
    check_bfloat16(0, sizes[i], 0, false, 1);
    shared_limit_pretended = 0;
  }
}

static void wgmma_matches_the_definition(void **state) {
  (void)state;
  test_requires_gpu();
  check_version(1);
}

/* Whatever the scores, p is at most 1. Of a row whose largest score is far above the others, one key has all of p. */
static void large_scores_do_not_overflow(void **state) {
  (void)state;
  test_requires_gpu();
  const int size[] = {1, 1, 70, 64};
  for (size_t version = 0; version < 2; version++) {
    if (versions[version].hopper && matmul_wgmma_refusal() != NULL) continue;
    check_bfloat16(version, size, 0, false, 30);
    check_bfloat16(version, size, 0, true, 30);
  }
}

/* The largest errors of dq, dk and dv, of factors of very different sizes; each relative to the largest result. */
static double worst_error(AttentionGradients *launch, const int *size, const double *expected, const float *in) {
  size_t n = (size_t)size[0] * size[1] * size[2] * size[3];
  float *device[7], *got = arrays_poison(n);
  for (int a = 0; a < 7; a++) device[a] = arrays_upload(DEVICE_GPU, a < 3 ? got : in + (a - 3) * n, n);
  launch(device[0], device[1], device[2], device[3], device[4], device[5], device[6], size[0], size[1], size[2],
         size[3], true);
  double worst = 0;
  for (int a = 0; a < 7; a++) {
    arrays_download(DEVICE_GPU, got, device[a], n, "an array");
    double largest = 0, error = 0;
    for (size_t i = 0; i < n && a < 3; i++) {
      largest = fmax(largest, fabs(expected[a * n + i]));
      error = fmax(error, fabs(got[i] - expected[a * n + i]));
      assert_false(isnan(got[i]));
    }
    if (a < 3) worst = fmax(worst, error / largest);
  }
  free(got);
  return worst;
}

/* Three products of tf32 are as exact as one of float32: tf32 alone has 2^-11 per factor. */
static void three_products_have_the_error_of_float32(void **state) {
  (void)state;
  test_requires_gpu();
  const int sizes[][4] = {{1, 1, 150, 64}, {1, 1, 100, 128}};
  for (int i = 0; i < 2; i++)
    for (int scaled = 0; scaled < 2; scaled++) {
      const int *size = sizes[i];
      size_t rows = (size_t)size[0] * size[1] * size[2], n = rows * size[3];
      float *in = arrays_random(4 * n, 77);
      double *x = (double *)xmalloc((8 * n + rows) * sizeof *x); /* q, k, v, dout, o, dq, dk, dv, lse */
      for (size_t j = 0; j < 4 * n && scaled; j++) in[j] *= ldexpf(1, (int)(j * 7 % 9) - 6); /* from 2^-6 to 4 */
      for (size_t j = 0; j < 4 * n; j++) x[j] = in[j];
      attention_forward_cpu(x + 4 * n, x + 8 * n, x, x + n, x + 2 * n, 1, 1, size[2], size[3], true);
      attention_backward_cpu(x + 5 * n, x + 6 * n, x + 7 * n, x, x + n, x + 2 * n, x + 4 * n, x + 8 * n, x + 3 * n, 1,
                             1, size[2], size[3], true);
      double float32 = worst_error(attention_gradients_flash, size, x + 5 * n, in);
      double tf32 = worst_error(attention_gradients_tf32, size, x + 5 * n, in);
      if (!(tf32 <= 4 * float32) || !(tf32 < 1e-5))
        fail_msg("(%d,%d,%d,%d): an error of %.2g; by the float32 units %.2g", size[0], size[1], size[2], size[3], tf32,
                 float32);
      free(in), free(x);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mma_matches_the_definition),
      cmocka_unit_test(wgmma_matches_the_definition),
      cmocka_unit_test(large_scores_do_not_overflow),
      cmocka_unit_test(three_products_have_the_error_of_float32),
  };
  return TEST_MAIN("attention_backward", tests);
}
