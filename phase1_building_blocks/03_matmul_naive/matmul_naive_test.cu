/* Every version against the reference, on ragged shapes. */
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"

#include "phase1_building_blocks/03_matmul_naive/test_matmul.h"

static void matmul_naive_columns_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_naive_columns", matmul_naive_columns);
}

static void matmul_naive_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  test_matmul("matmul_naive", matmul_naive);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matmul_naive_columns_matches_reference),
      cmocka_unit_test(matmul_naive_matches_reference),
  };
  return TEST_MAIN("matmul_naive", tests);
}
