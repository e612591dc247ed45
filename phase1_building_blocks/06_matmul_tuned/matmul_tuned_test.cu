/* Every version against the reference, on ragged shapes; the last one with every configuration, and with its work
 * divided in every way: whole tiles only, parts only, and both. */
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned.cuh"

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matmul_vectorised_matches_reference), cmocka_unit_test(matmul_conflict_free_matches_reference),
      cmocka_unit_test(matmul_warp_tiled_matches_reference), cmocka_unit_test(matmul_double_buffered_matches_reference),
      cmocka_unit_test(matmul_tuned_matches_reference),      cmocka_unit_test(every_configuration_matches_reference),
  };
  return TEST_MAIN("matmul_tuned", tests);
}
