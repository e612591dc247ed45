/* Every version against the reference, on ragged shapes. */
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"

#include "phase1_building_blocks/03_matmul_naive/test_matmul.h"

static void matmul_register_1d_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_register_1d", matmul_register_1d);
}

static void matmul_register_2d_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_register_2d", matmul_register_2d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matmul_register_1d_matches_reference),
      cmocka_unit_test(matmul_register_2d_matches_reference),
  };
  return TEST_MAIN("matmul_register_tiled", tests);
}
