/* inspect_count_test.c - sectors and wavefronts of single requests, against figures that an H200 counted. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <string.h>

#include "simt/inspect/count.h"

#define ALL 0xffffffffu
#define BASE 0x7f0000000000u /* aligned to everything */

static SimtRequest r;

/* Lane i at BASE + offset + i * stride. */
static void strided(uint32_t mask, int bytes, long offset, long stride) {
  memset(&r, 0, sizeof r);
  r.mask = mask;
  r.bytes = (uint16_t)bytes;
  for (int i = 0; i < 32; i++) r.address[i] = BASE + (uintptr_t)(offset + i * stride);
}

static int sectors(void) {
  int ideal;
  return simt_count_sectors(&r, &ideal);
}

static int ideal_sectors(void) {
  int ideal;
  simt_count_sectors(&r, &ideal);
  return ideal;
}

static int wavefronts(void) {
  int ideal;
  return simt_count_wavefronts(&r, &ideal);
}

static int conflicts(void) {
  int ideal, all = simt_count_wavefronts(&r, &ideal);
  return all - ideal;
}

static void test_sectors_of_strides(void **state) {
  (void)state;
  static const int expected[][2] = {{1, 4}, {2, 8}, {3, 12}, {5, 20}, {8, 32}, {32, 32}, {33, 32}};
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    strided(ALL, 4, 0, 4 * expected[i][0]);
    assert_int_equal(sectors(), expected[i][1]);
    assert_int_equal(ideal_sectors(), 4);
  }
  strided(ALL, 4, 0, 0); /* one word for all */
  assert_int_equal(sectors(), 1);
  assert_int_equal(ideal_sectors(), 1);
}

static void test_sectors_of_sizes_and_offsets(void **state) {
  (void)state;
  for (int bytes = 1; bytes <= 16; bytes *= 2) {
    strided(ALL, bytes, 0, bytes);
    assert_int_equal(sectors(), bytes);
    strided(ALL, bytes, 4096 - 32, bytes);
    assert_int_equal(sectors(), bytes);
    strided(ALL, bytes, 16, bytes); /* straddles one sector more */
    assert_int_equal(sectors(), bytes + 1);
  }
  strided(ALL, 4, 124, 4); /* a copy from x + 31 */
  assert_int_equal(sectors(), 5);
  strided(ALL, 4, 31 * 4, -4); /* downwards */
  assert_int_equal(sectors(), 4);
}

static void test_sectors_of_masks_and_scattered_lanes(void **state) {
  (void)state;
  strided(0x0000ffff, 4, 0, 4);
  assert_int_equal(sectors(), 2);
  strided(0x55555555, 4, 0, 4);
  assert_int_equal(sectors(), 4);
  assert_int_equal(ideal_sectors(), 2);
  strided(1u << 31, 4, 0, 4);
  assert_int_equal(sectors(), 1);
  strided(ALL, 4, 0, 4); /* the same words, in an order that goes up and down */
  for (int i = 0; i < 32; i++) r.address[i] = BASE + 4 * (uintptr_t)((i * 13) % 32);
  assert_int_equal(sectors(), 4);
  for (int i = 0; i < 32; i++) r.address[i] = BASE + 32 * (uintptr_t)((i * 13) % 7);
  assert_int_equal(sectors(), 7);
}

static void test_banks_of_words(void **state) {
  (void)state;
  static const int expected[][2] = {{0, 1}, {1, 1},   {2, 2},  {3, 1},   {4, 4}, {6, 2},
                                    {8, 8}, {16, 16}, {17, 1}, {32, 32}, {33, 1}};
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    strided(ALL, 4, 0, 4 * expected[i][0]);
    assert_int_equal(wavefronts(), expected[i][1]);
    assert_int_equal(conflicts(), expected[i][1] - 1);
  }
  strided(0x00000003, 4, 0, 128); /* two lanes, one bank */
  assert_int_equal(wavefronts(), 2);
  strided(ALL, 1, 0, 1); /* four lanes share a word */
  assert_int_equal(wavefronts(), 1);
  strided(ALL, 2, 0, 6); /* 32 halves 3 apart: words 0 .. 46, a bank has two of them */
  assert_int_equal(wavefronts(), 2);
}

static void test_banks_of_wide_accesses(void **state) {
  (void)state;
  strided(ALL, 8, 0, 8);
  assert_int_equal(wavefronts(), 2);
  assert_int_equal(conflicts(), 0);
  strided(ALL, 8, 0, 16);
  assert_int_equal(wavefronts(), 4);
  assert_int_equal(conflicts(), 2);
  strided(ALL, 8, 0, 24);
  assert_int_equal(wavefronts(), 2);
  strided(ALL, 16, 0, 16);
  assert_int_equal(wavefronts(), 4);
  assert_int_equal(conflicts(), 0);
  strided(ALL, 16, 0, 32);
  assert_int_equal(wavefronts(), 8);
  assert_int_equal(conflicts(), 4);
  strided(ALL, 16, 0, 80);
  assert_int_equal(wavefronts(), 4);
  strided(0x000000ff, 16, 0, 16); /* only one group of lanes */
  assert_int_equal(wavefronts(), 1);
}

static void test_turns_and_addresses(void **state) {
  (void)state;
  strided(ALL, 4, 0, 0);
  assert_int_equal(simt_count_turns(&r), 32);
  assert_int_equal(simt_count_addresses(&r), 1);
  strided(ALL, 4, 0, 4);
  assert_int_equal(simt_count_turns(&r), 1);
  assert_int_equal(simt_count_addresses(&r), 32);
  for (int i = 0; i < 32; i++) r.address[i] = BASE + 4 * (uintptr_t)(i % 5);
  assert_int_equal(simt_count_turns(&r), 7);
  assert_int_equal(simt_count_addresses(&r), 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sectors_of_strides),
      cmocka_unit_test(test_sectors_of_sizes_and_offsets),
      cmocka_unit_test(test_sectors_of_masks_and_scattered_lanes),
      cmocka_unit_test(test_banks_of_words),
      cmocka_unit_test(test_banks_of_wide_accesses),
      cmocka_unit_test(test_turns_and_addresses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
