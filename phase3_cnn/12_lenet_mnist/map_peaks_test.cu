/* Each version against the loops, on ragged shapes with many equal values, and through the MapPeaks of a Task. */
#include "common/test_arrays.h"
#include "phase3_cnn/12_lenet_mnist/map_peaks_op.cuh"

static void naive(Device device, float *value, int *place, const float *x, int maps, int area) {
  (void)device;
  map_peaks_naive(value, place, x, maps, area);
}

/* Values from -`kinds` to -1: of few kinds many are equal, and all are below zero. */
static void check(MapPeaks *peaks, Device device, int maps, int area, int kinds) {
  const size_t n = (size_t)maps * area;
  float *x = arrays_random(n, 3), *value = arrays_poison(maps), *expected = arrays_poison(maps);
  int *place = (int *)xmalloc(maps * sizeof *place), *expected_place = (int *)xmalloc(maps * sizeof *place);
  for (size_t i = 0; i < n; i++) x[i] = -1 - floorf(fabsf(x[i]) * 0.49f * (float)kinds);
  map_peaks_cpu(expected, expected_place, x, maps, area);
  float *device_x = arrays_upload(device, x, n), *device_value = arrays_upload(device, value, maps);
  int *device_place = (int *)arrays_upload_bytes(device, place, maps * sizeof *place);
  peaks(device, device_value, device_place, device_x, maps, area);
  arrays_download(device, value, device_value, maps, "value");
  arrays_download(device, NULL, device_x, n, "x");
  device_download(device, place, device_place, maps * sizeof *place);
  device_free(device, device_place);
  for (int m = 0; m < maps; m++) {
    if (!(value[m] == expected[m]) || place[m] != expected_place[m])
      fail_msg("(%d,%d), map %d: %g at %d, expected %g at %d", maps, area, m, (double)value[m], place[m],
               (double)expected[m], expected_place[m]);
    assert_in_range(place[m], 0, area - 1);
    assert_true(value[m] == x[(size_t)m * area + place[m]]);
  }
  free(x);
  free(value);
  free(expected);
  free(place);
  free(expected_place);
}

static void check_shapes(MapPeaks *peaks, Device device) {
  const int shapes[][2] = {{1, 1}, {3, 31}, {5, 32}, {33, 33}, {7, 100}, {127, 9}, {131, 25}, {2, 1021}, {64, 784}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int kinds = 1; kinds <= 1000; kinds *= 10) check(peaks, device, shapes[i][0], shapes[i][1], kinds);
}

/* By hand: the largest value twice, and a map below zero. */
static void of_two_equal_values_the_first_is_found(void **state) {
  (void)state;
  const float x[] = {1, 7, 7, 3, -4, -2, -9, -2};
  float value[2];
  int place[2];
  map_peaks(DEVICE_CPU, value, place, x, 2, 4);
  assert_true(value[0] == 7);
  assert_int_equal(place[0], 1);
  assert_true(value[1] == -2);
  assert_int_equal(place[1], 1);
}

static void the_host_finds_the_first_of_the_largest(void **state) {
  (void)state;
  check_shapes(map_peaks, DEVICE_CPU);
}

static void every_kernel_finds_the_first_of_the_largest(void **state) {
  (void)state;
  test_requires_gpu();
  check_shapes(map_peaks, DEVICE_GPU);
  check_shapes(naive, DEVICE_GPU);
}

/* The common one, for tasks without kernels. */
static void the_host_finds_them_on_the_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_shapes(features_map_peaks, DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_two_equal_values_the_first_is_found),
      cmocka_unit_test(the_host_finds_the_first_of_the_largest),
      cmocka_unit_test(every_kernel_finds_the_first_of_the_largest),
      cmocka_unit_test(the_host_finds_them_on_the_gpu),
  };
  return TEST_MAIN("map_peaks", tests);
}
