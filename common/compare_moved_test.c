/* Right values in wrong elements: is the way in which they were moved recognised? */
#include "common/compare_fixture.h"

static void transpose(void **state) {
  (void)state;
  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < COLS; c++) actual[c * ROWS + r] = expected[r * COLS + c];
  assert_int_equal(compare().values, DIAGNOSIS_TRANSPOSED);
  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < ROWS; c++) actual[c * ROWS + r] = expected[r * ROWS + c];
  assert_int_equal(compare_shape(ROWS, ROWS).values, DIAGNOSIS_TRANSPOSED);
}

static void shifted_by_one(void **state) {
  (void)state;
  memcpy(actual, expected + 1, (N - 1) * sizeof *actual);
  Comparison c = compare();
  assert_int_equal(c.values, DIAGNOSIS_SHIFTED);
  assert_non_null(strstr(c.message, "one column: elements hold the value of their successor"));
  c = compare_shape(N, 1);
  assert_int_equal(c.values, DIAGNOSIS_SHIFTED);
  assert_non_null(strstr(c.message, "one element"));
  memcpy(actual + 1, expected, (N - 1) * sizeof *actual);
  assert_int_equal(compare_shape(1, N).values, DIAGNOSIS_SHIFTED);
  memcpy(actual, expected, COLS * sizeof *actual);
  memcpy(actual + COLS, expected, (N - COLS) * sizeof *actual);
  c = compare();
  assert_int_equal(c.values, DIAGNOSIS_SHIFTED);
  assert_non_null(strstr(c.message, "one row: elements hold the value of their predecessor"));
}

static void rows_exchanged(void **state) {
  (void)state;
  memcpy(actual + 3 * COLS, expected + 20 * COLS, COLS * sizeof *actual);
  memcpy(actual + 20 * COLS, expected + 3 * COLS, COLS * sizeof *actual);
  Comparison c = compare();
  assert_diagnosis(c, DIAGNOSIS_PERMUTED, DIAGNOSIS_SCATTERED);
  assert_non_null(strstr(c.message, "Rows"));
  assert_non_null(strstr(c.message, "Rows are permuted: row 3 holds the values of row 20."));
}

static void columns_reversed(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = expected[i / COLS * COLS + COLS - 1 - i % COLS];
  Comparison c = compare();
  assert_int_equal(c.values, DIAGNOSIS_PERMUTED);
  assert_non_null(strstr(c.message, "Columns"));
}

static void elements_of_other_places(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = 4 * i < N ? expected[4 * i] : -3 - (float)i;
  assert_sentence(compare_shape(1, N), DIAGNOSIS_MOVED,
                  "Each element i holds what belongs into 4 i: the index is multiplied by 4.");
  for (size_t i = 0; i < N; i++) actual[i] = expected[i / 3];
  assert_sentence(compare_shape(1, N), DIAGNOSIS_MOVED, "the index is divided by 3");
  for (size_t i = 0; i < N; i++) actual[i] = expected[i / 4 * 4];
  assert_sentence(compare_shape(1, N), DIAGNOSIS_MOVED, "Each 4 neighbours hold what belongs into the first of them.");
  for (size_t i = 0; i < N; i++) actual[i] = 4 * (i / 4) * 4 + i % 4 < N ? expected[4 * (i / 4) * 4 + i % 4] : -3;
  assert_sentence(compare_shape(1, N), DIAGNOSIS_MOVED, "Each group of four, number i, holds what belongs into 4 i");
}

static void neighbours_exchanged(void **state) {
  (void)state;
  for (size_t i = 0; i + 1 < N; i += 2) {
    actual[i] = expected[i + 1];
    actual[i + 1] = expected[i];
  }
  assert_sentence(compare_shape(1, N), DIAGNOSIS_MOVED, "Neighbours are exchanged: elements 0 and 1, 2 and 3, ...");
}

static void turned_within_tiles(void **state) {
  (void)state;
  enum { TILE = 8 };
  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < COLS; c++) {
      size_t row = r / TILE * TILE + c % TILE, col = c / TILE * TILE + r % TILE;
      actual[r * COLS + c] = row < ROWS && col < COLS ? expected[row * COLS + col] : 0;
    }
  assert_sentence(compare(), DIAGNOSIS_TRANSPOSED, "Rows and columns are exchanged within each tile of 8 x 8.");
}

static void all_added_to_one_place(void **state) {
  (void)state;
  for (int rows = 0; rows < 2; rows++) {
    memset(actual, 0, sizeof actual);
    for (size_t r = 0; r < ROWS; r++)
      for (size_t c = 0; c < COLS; c++)
        actual[rows ? r / 4 * 4 * COLS + c : r * COLS + c / 4 * 4] += expected[r * COLS + c];
    assert_sentence(
        compare(), DIAGNOSIS_GATHERED,
        rows ? "Of each 4 rows the first holds the sum of all" : "Of each 4 columns the first holds the sum");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(transpose),           CASE(shifted_by_one),           CASE(rows_exchanged),
      CASE(columns_reversed),    CASE(elements_of_other_places), CASE(neighbours_exchanged),
      CASE(turned_within_tiles), CASE(all_added_to_one_place),
  };
  return TEST_MAIN("compare_moved", tests);
}
