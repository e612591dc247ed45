/* Every version against the reference, on ragged shapes. */
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"

#include "phase1_building_blocks/03_matmul_naive/test_matmul.h"

static void matmul_tiled_16_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_tiled_16", matmul_tiled_16);
}

static void matmul_tiled_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_tiled", matmul_tiled);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matmul_tiled_16_matches_reference),
      cmocka_unit_test(matmul_tiled_matches_reference),
  };
  return TEST_MAIN("matmul_tiled", tests);
}
