/* Rounding to bfloat16, and every version against the reference: on ragged shapes, on unaligned matrices, and where
 * several tiles and rounds of a ring are needed. */
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma_store.cuh"

#include "common/lesson/verify.h"
#include "common/test_arrays.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_core_lesson.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* bfloat16 */

static void rounding_is_to_the_nearest_and_halves_to_even(void **state) {
  (void)state;
  const struct {
    uint32_t from;
    uint16_t to;
  } cases[] = {
      {0x3F800000, 0x3F80}, {0x3F807FFF, 0x3F80}, {0x3F808000, 0x3F80}, {0x3F808001, 0x3F81}, {0x3F818000, 0x3F82},
      {0x3F81FFFF, 0x3F82}, {0xBF818000, 0xBF82}, {0x3FFFFFFF, 0x4000}, {0x00000000, 0x0000}, {0x80000000, 0x8000},
      {0x00000001, 0x0000}, {0x00008000, 0x0000}, {0x00008001, 0x0001}, {0x00018000, 0x0002}, {0x7F7FFFFF, 0x7F80},
      {0x7F7F7FFF, 0x7F7F}, {0x7F800000, 0x7F80}, {0xFF800000, 0xFF80},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    float x;
    memcpy(&x, &cases[i].from, sizeof x);
    if (bfloat16_round(x) != cases[i].to)
      fail_msg("%08x rounds to %04x, expected %04x", cases[i].from, bfloat16_round(x), cases[i].to);
  }
  const uint32_t nans[] = {0x7F800001, 0x7F807FFF, 0x7F808000, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800001, COMPARE_POISON};
  for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
    float x;
    memcpy(&x, &nans[i], sizeof x);
    if (!isnan(bfloat16_widen(bfloat16_round(x)))) fail_msg("%08x, a NaN, becomes a number", nans[i]);
  }
}

/* Equals CUDA's own conversion, also for floats halfway between two bfloat16. */
static void rounding_is_cudas(void **state) {
  (void)state;
  for (uint32_t upper = 0; upper < 0x10000; upper++)
    for (uint32_t lower = 0x7FFF; lower <= 0x8001; lower++) {
      uint32_t bits = upper << 16 | lower;
      float x;
      uint16_t cudas;
      memcpy(&x, &bits, sizeof x);
      __nv_bfloat16 rounded = __float2bfloat16(x);
      memcpy(&cudas, &rounded, sizeof cudas);
      if (isnan(x) ? !isnan(bfloat16_widen(bfloat16_round(x))) : bfloat16_round(x) != cudas)
        fail_msg("%08x rounds to %04x, CUDA's to %04x", bits, bfloat16_round(x), cudas);
    }
}

static void every_bfloat16_survives(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float wide = bfloat16_widen((uint16_t)bits);
    if (!isnan(wide) && bfloat16_round(wide) != bits) fail_msg("%04x comes back otherwise", bits);
  }
}

static void means_are_rounded_to_even(void **state) {
  (void)state;
  test_requires_gpu();
  enum { COUNT = 128 * 128 };
  static uint16_t x[COUNT], y[COUNT], expected[COUNT], actual[COUNT];
  for (int i = 0; i < COUNT; i++) { /* from 1 to 2, and minus that */
    x[i] = (uint16_t)(0x3F80 + i % 128 + i % 3 / 2 * 0x8000);
    y[i] = (uint16_t)(0x3F80 + i / 128 + i % 3 / 2 * 0x8000);
  }
  bfloat16_mean_cpu(expected, x, y, COUNT);
  uint16_t *device_x = (uint16_t *)arrays_upload_bytes(DEVICE_GPU, x, sizeof x);
  uint16_t *device_y = (uint16_t *)arrays_upload_bytes(DEVICE_GPU, y, sizeof y);
  uint16_t *device_out = (uint16_t *)device_alloc(DEVICE_GPU, sizeof actual);
  bfloat16_mean(device_out, device_x, device_y, COUNT);
  device_download(DEVICE_GPU, actual, device_out, sizeof actual);
  for (int i = 0; i < COUNT; i++)
    if (actual[i] != expected[i]) fail_msg("mean of %04x and %04x: %04x, not %04x", x[i], y[i], actual[i], expected[i]);
  device_free(DEVICE_GPU, device_x);
  device_free(DEVICE_GPU, device_y);
  device_free(DEVICE_GPU, device_out);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Products */

static void expect_right(const char *name, MatmulTensorCoreLauncher *launch, int m, int n, int k) {
  static LessonResult result;
  Lesson lesson = matmul_tensor_core_lesson();
  LessonVersion version = matmul_tensor_core_version(name, launch, "");
  LessonShape shape = lesson_shape(&lesson, m, n, k);
  if (lesson_verify(&lesson, &version, &shape, 5, &result) != 0) fail_msg("%s: %s", name, result.message);
}

/* The matrices begin `offset` elements past an aligned address. */
static void expect_right_unaligned(const char *name, MatmulTensorCoreLauncher *launch, int m, int n, int k,
                                   int a_offset, int b_offset, int c_offset) {
  size_t a_count = (size_t)m * k + a_offset, b_count = (size_t)k * n + b_offset, count = (size_t)m * n;
  __nv_bfloat16 *a = (__nv_bfloat16 *)xmalloc(a_count * sizeof *a), *b = (__nv_bfloat16 *)xmalloc(b_count * sizeof *b);
  float *wide = arrays_random(a_count > b_count ? a_count : b_count, 7);
  for (size_t i = 0; i < a_count; i++) a[i] = __float2bfloat16(wide[i]);
  for (size_t i = 0; i < b_count; i++) b[i] = __float2bfloat16(wide[b_count - 1 - i]);
  float *expected = arrays_poison(count), *c = arrays_poison(count + c_offset);
  matmul_bfloat16_cpu(expected, a + a_offset, b + b_offset, m, n, k);
  __nv_bfloat16 *device_a = (__nv_bfloat16 *)arrays_upload_bytes(DEVICE_GPU, a, a_count * sizeof *a);
  __nv_bfloat16 *device_b = (__nv_bfloat16 *)arrays_upload_bytes(DEVICE_GPU, b, b_count * sizeof *b);
  float *device_c = arrays_upload(DEVICE_GPU, c, count + c_offset);
  launch(device_c + c_offset, device_a + a_offset, device_b + b_offset, m, n, k);
  arrays_download(DEVICE_GPU, c, device_c, count + c_offset, "c");
  device_free(DEVICE_GPU, device_a);
  device_free(DEVICE_GPU, device_b);
  for (int i = 0; i < c_offset; i++)
    if (!compare_is_poison(&c[i])) fail_msg("%s: wrote before c", name);
  Comparison result = compare_arrays(c + c_offset, expected, m, n, tolerance_dot(k, 1));
  if (!result.ok)
    fail_msg("%s (%d,%d) K %d, offsets %d, %d, %d: %s", name, m, n, k, a_offset, b_offset, c_offset, result.message);
  free(a);
  free(b);
  free(wide);
  free(expected);
  free(c);
}

static void expect_right_everywhere(const char *name, MatmulTensorCoreLauncher *launch) {
  static LessonResult result;
  test_requires_gpu();
  Lesson lesson = matmul_tensor_core_lesson();
  LessonVersion version = matmul_tensor_core_version(name, launch, "");
  if (lesson_verify_all(&lesson, &version, 3, &result) != 0) fail_msg("%s: %s", name, result.message);
  expect_right(name, launch, 127, 129, 31);
  expect_right(name, launch, 64, 512, 200);
  expect_right(name, launch, 300, 24, 8);
  expect_right_unaligned(name, launch, 48, 40, 32, 1, 0, 0);
  expect_right_unaligned(name, launch, 48, 40, 32, 0, 1, 0);
  expect_right_unaligned(name, launch, 48, 40, 32, 0, 0, 1);
  expect_right_unaligned(name, launch, 48, 40, 32, 8, 8, 4); /* a multiple of 16 bytes, but not of 32 */
  expect_right_unaligned(name, launch, 48, 40, 32, 8, 8, 0);
#ifndef SIMT_REWRITTEN /* minutes there */
  expect_right(name, launch, 1025, 1032, 1032);
  expect_right(name, launch, 2049, 2560, 520);
  expect_right(name, launch, 4000, 4104, 64);
  expect_right(name, launch, 129, 8, 4096);
#endif
}

static void wmma_naive_matches_reference(void **state) {
  (void)state;
  expect_right_everywhere("wmma_naive", matmul_wmma_naive);
}

static void wmma_tiled_matches_reference(void **state) {
  (void)state;
  expect_right_everywhere("wmma_tiled", matmul_wmma_tiled);
}

static void wmma_fragments_matches_reference(void **state) {
  (void)state;
  expect_right_everywhere("wmma_fragments", matmul_wmma_fragments);
}

static void mma_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  if (mma_refusal() != NULL) {
    print_message("skipped: %s\n", mma_refusal());
    skip();
  }
  expect_right_everywhere("mma", matmul_mma);
  expect_right_everywhere("mma_small", matmul_mma_small);
  if (shared_limit() >= 144 << 10) expect_right_everywhere("mma 128x256", matmul_mma_launch<128, 256, 64, 64, 64, 3>);
  shared_limit_pretended = 99 << 10;                  /* what many GPUs have */
  int multiprocessors = matmul_mma_multiprocessors(); /* so large a C is not left to small tiles */
  expect_right("mma, little shared memory", matmul_mma, 1032, 16 * multiprocessors, 40);
  shared_limit_pretended = 0;
}

static void wgmma_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  if (matmul_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", matmul_wgmma_refusal());
    skip();
  }
  expect_right_everywhere("wgmma_one_stage", matmul_wgmma_one_stage);
  expect_right_everywhere("wgmma", matmul_wgmma);
#ifdef SIMT_REWRITTEN /* these share their kernel; the last shape has more tiles than multiprocessors */
  expect_right("wgmma_cluster", matmul_wgmma_cluster, 300, 264, 72);
  expect_right("wgmma, the buffers of the tile before", matmul_wgmma, 2100, 232, 16);
  expect_right("wgmma_ring", matmul_wgmma_ring, 64, 512, 328);
  expect_right("wgmma_persistent", matmul_wgmma_persistent, 2200, 8, 72);
#else
  expect_right_everywhere("wgmma_cluster", matmul_wgmma_cluster);
  expect_right_everywhere("wgmma_ring", matmul_wgmma_ring);
  expect_right_everywhere("wgmma_persistent", matmul_wgmma_persistent);
#endif
}

/* c = max(0, a b + bias); bias_offset floats before bias are another array's. */
static void expect_bias_relu(int m, int n, int k, int bias_offset) {
  size_t a_count = (size_t)m * k, b_count = (size_t)k * n, count = (size_t)m * n;
  __nv_bfloat16 *a = (__nv_bfloat16 *)xmalloc(a_count * sizeof *a), *b = (__nv_bfloat16 *)xmalloc(b_count * sizeof *b);
  float *wide = arrays_random(a_count + b_count, 11), *bias = arrays_random(n + bias_offset, 12);
  for (size_t i = 0; i < a_count; i++) a[i] = __float2bfloat16(wide[i]);
  for (size_t i = 0; i < b_count; i++) b[i] = __float2bfloat16(wide[a_count + i]);
  float *expected = arrays_poison(count), *c = arrays_poison(count);
  matmul_bfloat16_cpu(expected, a, b, m, n, k);
  for (size_t i = 0; i < count; i++) expected[i] = fmaxf(expected[i] + bias[bias_offset + i % n], 0.0f);
  __nv_bfloat16 *device_a = (__nv_bfloat16 *)arrays_upload_bytes(DEVICE_GPU, a, a_count * sizeof *a);
  __nv_bfloat16 *device_b = (__nv_bfloat16 *)arrays_upload_bytes(DEVICE_GPU, b, b_count * sizeof *b);
  float *device_bias = (float *)arrays_upload_bytes(DEVICE_GPU, bias, (n + bias_offset) * sizeof *bias);
  float *device_c = arrays_upload(DEVICE_GPU, c, count);
  matmul_wgmma_bias_relu(device_c, device_a, device_b, device_bias + bias_offset, m, n, k);
  arrays_download(DEVICE_GPU, c, device_c, count, "c");
  device_free(DEVICE_GPU, device_a);
  device_free(DEVICE_GPU, device_b);
  device_free(DEVICE_GPU, device_bias);
  Comparison result = compare_arrays(c, expected, m, n, tolerance_dot(k + 1, 1));
  if (!result.ok) fail_msg("bias + ReLU (%d,%d) K %d, offset %d: %s", m, n, k, bias_offset, result.message);
  free(a);
  free(b);
  free(wide);
  free(bias);
  free(expected);
  free(c);
}

static void bias_and_relu_are_applied_to_the_sums(void **state) {
  (void)state;
  test_requires_gpu();
  if (matmul_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", matmul_wgmma_refusal());
    skip();
  }
  expect_bias_relu(130, 264, 72, 0);
  expect_bias_relu(70, 40, 136, 1);  /* a bias that is not aligned to 8 bytes */
  expect_bias_relu(33, 127, 65, 0);  /* rows that TMA cannot copy */
  expect_bias_relu(2200, 16, 64, 0); /* more tiles than multiprocessors of the emulated GPU */
#ifndef SIMT_REWRITTEN
  expect_bias_relu(1100, 2056, 520, 0);
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The order of tiles */

static void every_tile_has_one_place(void **state) {
  (void)state;
  const int sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {8, 5}, {16, 3}, {19, 7}, {32, 32}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int rows = sizes[i][0], cols = sizes[i][1], seen[32][32] = {};
    for (int tile = 0; tile < rows * cols; tile++) {
      int row = -1, col = -1;
      matmul_tile_place(tile, rows, cols, &row, &col);
      if (row < 0 || row >= rows || col < 0 || col >= cols || seen[row][col]++)
        fail_msg("tile %d of %d x %d is put at (%d,%d): outside, or taken", tile, rows, cols, row, col);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rounding_is_to_the_nearest_and_halves_to_even),
      cmocka_unit_test(rounding_is_cudas),
      cmocka_unit_test(every_bfloat16_survives),
      cmocka_unit_test(means_are_rounded_to_even),
      cmocka_unit_test(every_tile_has_one_place),
      cmocka_unit_test(wmma_naive_matches_reference),
      cmocka_unit_test(wmma_tiled_matches_reference),
      cmocka_unit_test(wmma_fragments_matches_reference),
      cmocka_unit_test(mma_matches_reference),
      cmocka_unit_test(wgmma_matches_reference),
      cmocka_unit_test(bias_and_relu_are_applied_to_the_sums),
  };
  return TEST_MAIN("matmul_tensor_core", tests);
}
