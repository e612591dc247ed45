/* Numbers in a file's byte order, on both devices. */
#include "phase2_mlp/04_idx_files/idx_files.cuh"

#include "common/test_arrays.h"

static void numbers_by_hand(void **state) {
  (void)state;
  const uint8_t images[] = {0x00, 0x00, 0xea, 0x60}, side[] = {0, 0, 0, 28}, largest[] = {255, 255, 255, 255};
  const uint8_t four[] = {0x12, 0x34, 0xab, 0xcd};
  assert_true(idx_big_endian(images) == 60000 && idx_little_endian(images) == 1625948160);
  assert_true(idx_big_endian(side) == 28 && idx_little_endian(side) == 469762048);
  assert_true(idx_big_endian(largest) == UINT32_MAX && idx_little_endian(largest) == UINT32_MAX);
  assert_true(idx_big_endian(four) == 0x1234abcd && idx_little_endian(four) == 0xcdab3412);
}

static void the_gpu_reads_the_same_numbers(void **state) {
  (void)state;
  test_requires_gpu();
  enum { MOST = 1021 };
  const int sizes[] = {1, 3, 127, 256, MOST};
  static uint8_t bytes[4 * MOST];
  static int halves[2 * MOST], expected[2 * MOST];
  for (int i = 0; i < 4 * MOST; i++) bytes[i] = (uint8_t)philox4x32(1, 0, (uint64_t)i).word[0];
  for (int i = 0; i < 4; i++) bytes[i] = 0xff; /* the sign bit of an int */
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    int n = sizes[s];
    uint8_t *device_bytes = (uint8_t *)arrays_upload_bytes(DEVICE_GPU, bytes, 4 * (size_t)n);
    int *device_halves = (int *)guard_alloc(DEVICE_GPU, 2 * (size_t)n);
    idx_numbers(device_halves, device_bytes, n);
    arrays_download(DEVICE_GPU, (float *)halves, (float *)device_halves, 2 * (size_t)n, "halves");
    device_free(DEVICE_GPU, device_bytes);
    idx_numbers_cpu(expected, bytes, n);
    assert_memory_equal(halves, expected, 2 * (size_t)n * sizeof *halves);
    for (int i = 0; i < n; i++)
      assert_true(((uint32_t)expected[2 * i] << 16 | (uint32_t)expected[2 * i + 1]) == idx_big_endian(bytes + 4 * i));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_by_hand),
      cmocka_unit_test(the_gpu_reads_the_same_numbers),
  };
  return TEST_MAIN("idx_files", tests);
}
