/* Every version against the reference, on ragged shapes; the last one with every configuration, and with its work
 * divided in every way: whole tiles only, parts only, and both. */
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned.cuh"

#include "common/shared_memory_limit.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_batched.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_skinny.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_sliced.cuh"

#include "phase1_building_blocks/03_matmul_naive/test_matmul.h"

static void matmul_vectorised_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_vectorised", matmul_vectorised);
}

static void matmul_conflict_free_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_conflict_free", matmul_conflict_free);
}

static void matmul_warp_tiled_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_warp_tiled", matmul_warp_tiled);
}

static void matmul_double_buffered_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_double_buffered", matmul_double_buffered);
}

static void matmul_tuned_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_tuned", matmul_tuned);
}

static void every_configuration_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  for (size_t i = 0; i < sizeof matmul_tuned_configurations / sizeof *matmul_tuned_configurations; i++) {
    const struct MatmulConfiguration *configuration = &matmul_tuned_configurations[i];
    test_matmul(configuration->name, configuration->launch);
    test_matmul_shape(configuration->name, configuration->launch, 300, 700, 230);  /* parts of most tiles */
    test_matmul_shape(configuration->name, configuration->launch, 1028, 1300, 40); /* more tiles than blocks */
    test_matmul_shape(configuration->name, configuration->launch, 31, 37, 3001);   /* one tile, many parts */
  }
}

static void matmul_sliced_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_sliced", matmul_sliced);
  test_matmul_shape("matmul_sliced", matmul_sliced, 64, 700, 230);   /* parts of most tiles */
  test_matmul_shape("matmul_sliced", matmul_sliced, 257, 1300, 40);  /* more tiles than blocks, idle slices */
  test_matmul_shape("matmul_sliced", matmul_sliced, 31, 37, 3001);   /* one tile, many parts */
  test_matmul_shape("matmul_sliced", matmul_sliced, 33, 516, 1100);  /* the same number of blocks for each tile */
  test_matmul_shape("matmul_sliced", matmul_sliced, 30, 1000, 4700); /* with room for them: two chunks per slice */
}

/* Without room for the sums of eight slices of 64 x 64, as on GPUs of compute capability 8.6; for none; by
 * matmul_tuned(), which finds out that A has few rows and B is large. */
static void matmul_sliced_does_with_less_shared_memory(void **state) {
  (void)state;
  test_requires_gpu();
  const int limits[] = {0, 99 << 10, 64 << 10};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    shared_limit_pretended = limits[i];
    test_matmul_shape("matmul_sliced", matmul_sliced, 64, 700, 230);
    test_matmul_shape("matmul_sliced", matmul_sliced, 30, 132, 3100);
    test_matmul_shape("matmul_tuned", matmul_tuned, 33, 2048, 2048);
    shared_limit_pretended = 0;
  }
}

static void matmul_skinny_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_skinny", matmul_skinny);
  for (int m = 1; m <= MATMUL_SKINNY_ROWS + 1; m++) {
    test_matmul_shape("matmul_skinny", matmul_skinny, m, 260, 1100);
    test_matmul_shape("matmul_skinny", matmul_skinny, m, 33, 511);
  }
  test_matmul_shape("matmul_skinny", matmul_skinny, 2, 1604, 36);
  test_matmul_shape("matmul_skinny", matmul_skinny, 1, 3332, 28);
}

static void matmul_batched_one(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_batched(c, a, b, m, n, k, 1);
}

static void matmul_batched_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_batched", matmul_batched_one);
  const int shapes[][3] = {{1, 1, 1}, {64, 64, 64}, {65, 67, 17}, {3, 129, 31}, {36, 20, 80}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    int m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
    size_t count = (size_t)5 * m * n;
    float *a = arrays_random((size_t)5 * m * k, 1), *b = arrays_random((size_t)5 * k * n, 2);
    float *expected = arrays_poison(count), *actual = arrays_poison(count);
    matmul_batched_cpu(expected, a, b, m, n, k, 5);
    float *device_a = arrays_upload(DEVICE_GPU, a, (size_t)5 * m * k);
    float *device_b = arrays_upload(DEVICE_GPU, b, (size_t)5 * k * n);
    float *device_c = arrays_upload(DEVICE_GPU, actual, count);
    matmul_batched(device_c, device_a, device_b, m, n, k, 5);
    arrays_download(DEVICE_GPU, actual, device_c, count, "c");
    arrays_download(DEVICE_GPU, NULL, device_a, (size_t)5 * m * k, "a");
    arrays_download(DEVICE_GPU, NULL, device_b, (size_t)5 * k * n, "b");
    Comparison c = compare_arrays(actual, expected, 5 * m, n, tolerance_dot(k, 1));
    if (!c.ok) fail_msg("5 times (%d,%d) K %d: %s", m, n, k, c.message);
    free(a);
    free(b);
    free(expected);
    free(actual);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matmul_vectorised_matches_reference),
      cmocka_unit_test(matmul_conflict_free_matches_reference),
      cmocka_unit_test(matmul_warp_tiled_matches_reference),
      cmocka_unit_test(matmul_double_buffered_matches_reference),
      cmocka_unit_test(matmul_tuned_matches_reference),
      cmocka_unit_test(every_configuration_matches_reference),
      cmocka_unit_test(matmul_sliced_matches_reference),
      cmocka_unit_test(matmul_skinny_matches_reference),
      cmocka_unit_test(matmul_batched_matches_reference),
      cmocka_unit_test(matmul_sliced_does_with_less_shared_memory),
  };
  return TEST_MAIN("matmul_tuned", tests);
}
