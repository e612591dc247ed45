/* Wrong orders, words of bytes, and masks: are they recognised? */
#include "common/compare_fixture.h"

/* An order of 0 to N - 1, none of them where it was. */
static void make_order(void) {
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] = (float)((7 * i + 5) % N); /* 7 does not divide N */
}

static void order_with_a_number_twice(void **state) {
  (void)state;
  make_order();
  actual[4] = actual[2];
  assert_sentence(compare_shape(1, N), DIAGNOSIS_REPEATED,
                  "The number 19 stands there twice, in elements 2 and 4: each from 0 to 1220 must stand there once.");
  make_order();
  actual[8] = N;
  assert_sentence(compare_shape(1, N), DIAGNOSIS_REPEATED,
                  "Element 8 is 1221: each number from 0 to 1220 must stand there once.");
}

static void another_order(void **state) {
  (void)state;
  make_order();
  for (size_t i = 0; i < N; i++) actual[i] = (float)((5 * i + 1) % N);
  Comparison c = compare_shape(1, N);
  assert_int_equal(c.values, DIAGNOSIS_REORDERED);
  make_order(); /* what is no order is not said to be one */
  expected[3] = expected[4];
  actual[9] = 0.5f;
  assert_int_not_equal(compare_shape(1, N).values, DIAGNOSIS_REPEATED);
}

static void zeros_in_wrong_places(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) {
    if (i % 3 == 0) expected[i] = 0;
    actual[i] = i % 3 == 0 ? 2 : 0;
  }
  assert_sentence(compare(), DIAGNOSIS_WRONG_ZEROS, "It is zero exactly where it should not be");
  for (size_t i = 0; i < N; i++) actual[i] = i % 5 == 0 ? 0 : i % 3 == 0 ? 2 : expected[i];
  assert_sentence(compare(), DIAGNOSIS_WRONG_ZEROS, "the choice of the zeros is wrong");
  for (size_t i = 0; i < N; i++) actual[i] = i % 3 == 0 ? 2 + (float)i : expected[i];
  assert_sentence(compare(), DIAGNOSIS_WRONG_ZEROS, "All wrong elements should be zero; all others are right.");
  for (size_t i = 0; i < N; i++) actual[i] = i % 3 == 0 ? 2 + (float)i : 0.5f * expected[i];
  assert_sentence(compare(), DIAGNOSIS_WRONG_ZEROS,
                  "407 elements should be zero, and the others are 0.5 times what they should be.");
  test_random_fill(actual, N, 2);
  for (size_t i = 0; i < N; i += 7) actual[i] = 0;
  assert_int_equal(compare().values, DIAGNOSIS_WRONG_VALUES);
}

static void bytes_in_reverse(void **state) {
  (void)state;
  for (size_t i = 0; i < 64; i++) expected[i] = (float)((uint32_t)i * 2654435761u >> 16);
  for (size_t i = 0; i < 64; i += 2) {
    uint32_t number = (uint32_t)expected[i] << 16 | (uint32_t)expected[i + 1], reversed = __builtin_bswap32(number);
    actual[i] = (float)(reversed >> 16);
    actual[i + 1] = (float)(reversed & 0xFFFF);
  }
  assert_sentence(compare_shape(32, 2), DIAGNOSIS_BYTES, "The four bytes of each number are in the reverse order.");
}

/* Put together by hand, so that compare_bytes() has an opinion from outside. */
static void bytes_in_other_ways(void **state) {
  (void)state;
  for (size_t i = 0; i < 64; i++) expected[i] = (float)((uint32_t)i * 2654435761u >> 16);
  for (int kind = 0; kind < 3; kind++) {
    static const char *const says[] = {"in the order 0, 2, 1, 3", "7 bits apart; a byte has 8.",
                                       "Bytes of 128 and more are taken for negative numbers"};
    for (size_t i = 0; i < 64; i += 2) {
      uint32_t a = (uint32_t)expected[i] >> 8, b = (uint32_t)expected[i] & 255;
      uint32_t c = (uint32_t)expected[i + 1] >> 8, d = (uint32_t)expected[i + 1] & 255;
      uint32_t number = a << 24 | c << 16 | b << 8 | d;
      if (kind == 1) number = a << 21 | b << 14 | c << 7 | d;
      if (kind == 2) number = a << 24 | b << 16 | c << 8 | (uint32_t)(int32_t)(int8_t)d;
      actual[i] = (float)(number >> 16);
      actual[i + 1] = (float)(number & 0xFFFF);
    }
    assert_sentence(compare_shape(32, 2), DIAGNOSIS_BYTES, says[kind]);
  }
  test_random_fill(actual, N, 2);
  assert_int_not_equal(compare_shape(32, 2).values, DIAGNOSIS_BYTES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(order_with_a_number_twice), CASE(another_order),       CASE(zeros_in_wrong_places),
      CASE(bytes_in_reverse),          CASE(bytes_in_other_ways),
  };
  return TEST_MAIN("compare_structured", tests);
}
