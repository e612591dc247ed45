/* Where are the wrong elements? */
#include "common/compare_fixture.h"

/* Poisons what lies at or beyond a row, or a column, or an element. */
static Comparison compare_beyond(size_t rows, size_t cols, size_t row, size_t col, size_t element) {
  memcpy(actual, expected, sizeof actual);
  for (size_t i = 0; i < rows * cols; i++)
    if (i / cols >= row || i % cols >= col || i >= element) compare_poison(&actual[i], 1);
  return compare_shape(rows, cols);
}

static void last_partial_tile(void **state) {
  (void)state;
  const size_t sizes[][2] = {{1, 33}, {1, 127}, {1, 1021}, {33, 37}, {33, 31}, {7, 127}, {31, 33}, {5, 9}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (size_t tile = 4; tile <= 256; tile *= 2) {
      size_t rows = sizes[s][0], cols = sizes[s][1], n = rows * cols;
      size_t row = rows / tile * tile, col = cols / tile * tile, element = n / tile * tile;
      if (row > 0 && row < rows)
        assert_diagnosis(compare_beyond(rows, cols, row, cols, n), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_LAST_TILE);
      if (col > 0 && col < cols)
        assert_diagnosis(compare_beyond(rows, cols, rows, col, n), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_LAST_TILE);
      if (row > 0 && row < rows && col > 0 && col < cols)
        assert_diagnosis(compare_beyond(rows, cols, row, col, n), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_LAST_TILE);
      if (element > 0 && element < n)
        assert_diagnosis(compare_beyond(rows, cols, rows, cols, element), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_LAST_TILE);
    }
  assert_non_null(strstr(compare_beyond(33, 31, 32, 31, N).message, "tile of 32"));
}

static void only_the_first_block(void **state) {
  (void)state;
  assert_diagnosis(compare_beyond(ROWS, COLS, 8, COLS, N), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_AFTER_FIRST);
  assert_diagnosis(compare_beyond(ROWS, COLS, 1, COLS, N), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_AFTER_FIRST);
  assert_diagnosis(compare_beyond(ROWS, COLS, ROWS, 16, N), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_AFTER_FIRST);
  assert_diagnosis(compare_beyond(ROWS, COLS, 16, 16, N), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_AFTER_FIRST);
  assert_diagnosis(compare_beyond(ROWS, COLS, ROWS, COLS, 256), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_AFTER_FIRST);
  assert_diagnosis(compare_beyond(1, N, 1, N, 1), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_AFTER_FIRST);
}

/* What ends within a block is a bounds test's doing, not the grid's. */
static void grid_or_bounds_test(void **state) {
  (void)state;
  assert_non_null(strstr(compare_beyond(1, N, 1, N, 256).message, "is blockIdx in the index?"));
  Comparison bounds = compare_beyond(1, N, 1, N, 1001);
  assert_non_null(strstr(bounds.message, "look at the bounds test"));
  assert_null(strstr(bounds.message, "blockIdx"));
}

static void every_kth_element(void **state) {
  (void)state;
  const size_t ks[] = {2, 3, 4, 32, 37, 64, 256};
  for (size_t s = 0; s < sizeof ks / sizeof *ks; s++)
    for (size_t first = 0; first < ks[s]; first += 1 + ks[s] / 3) {
      memcpy(actual, expected, sizeof actual);
      for (size_t i = first; i < N; i += ks[s]) compare_poison(&actual[i], 1);
      assert_diagnosis(compare(), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_EVERY_NTH);
      compare_poison(actual, N);
      for (size_t i = first; i < N; i += ks[s]) actual[i] = expected[i];
      assert_diagnosis(compare(), DIAGNOSIS_NEVER_WRITTEN,
                       ks[s] == 2 ? DIAGNOSIS_EVERY_NTH : DIAGNOSIS_ALL_BUT_EVERY_NTH);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(last_partial_tile),
      CASE(only_the_first_block),
      CASE(grid_or_bounds_test),
      CASE(every_kth_element),
  };
  return TEST_MAIN("compare_places", tests);
}
