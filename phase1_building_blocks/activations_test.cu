#include "phase1_building_blocks/activations.cuh"

#include <omp.h>

#include "phase1_building_blocks/test_arrays.h"

/* ---- by hand ---- */

static void reference_is_right_by_hand(void **state) {
  (void)state;
  const float x[6] = {-2, 0, 3, -INFINITY, INFINITY, 1e-30f}, y_expected[6] = {0, 0, 3, 0, INFINITY, 1e-30f};
  const float dy[6] = {10, 20, 30, 40, 50, 60}, dx_expected[6] = {0, 0, 30, 0, 50, 60};
  float y[6], dx[6];
  relu_forward_cpu(y, x, 6);
  assert_close(y, y_expected, 6, 0, 0);
  relu_backward_cpu(dx, dy, y, 6);
  assert_close(dx, dx_expected, 6, 0, 0);
}

/* The slope of the loss sum(r * relu(x)), away from the bend at 0. */
static void gradient_matches_central_differences(void **state) {
  (void)state;
  enum { N = 33 };
  const double h = 1e-4;
  float random[2 * N];
  double x[N], y[N], r[N], dx[N];
  test_random_fill(random, 2 * N, 1);
  for (int i = 0; i < N; i++) {
    x[i] = random[i] + (random[i] < 0 ? -0.01 : 0.01);
    r[i] = random[N + i];
  }
  relu_forward_cpu(y, x, N);
  relu_backward_cpu(dx, r, y, N);
  for (int i = 0; i < N; i++) {
    double ends[2] = {x[i] - h, x[i] + h};
    relu_forward_cpu(ends, ends, 2);
    assert_true(fabs(dx[i] - r[i] * (ends[1] - ends[0]) / (2 * h)) < 1e-10);
  }
}

/* ---- against the reference: the same bits, since nothing is rounded ---- */

/* Arrays that begin `offset` floats into an allocation: not aligned for float4 unless offset is a multiple of 4. */
static void check_size(Device device, size_t n, size_t offset, bool in_place) {
  size_t total = offset + n;
  float *x = arrays_random(total, 1), *dy = arrays_random(total, 2);
  float *y = arrays_poison(total), *dx = arrays_poison(total);
  float *y_expected = arrays_poison(n), *dx_expected = arrays_poison(n);
  x[offset + n / 2] = 0;
  if (n > 2) x[offset + n / 3] = NAN;
  if (n > 4) dy[offset + n - 1] = NAN;
  relu_forward_cpu(y_expected, x + offset, n);
  relu_backward_cpu(dx_expected, dy + offset, y_expected, n);

  float *device_x = arrays_upload(device, x, total), *device_y = in_place ? device_x : arrays_upload(device, y, total);
  float *device_dy = arrays_upload(device, dy, total);
  float *device_dx = in_place ? device_dy : arrays_upload(device, dx, total);
  ON_DEVICE(device, relu_forward_gpu(device_y + offset, device_x + offset, n),
            relu_forward_cpu_fast(device_y + offset, device_x + offset, n));
  ON_DEVICE(device, relu_backward_gpu(device_dx + offset, device_dy + offset, device_y + offset, n),
            relu_backward_cpu_fast(device_dx + offset, device_dy + offset, device_y + offset, n));
  arrays_download(device, y, device_y, total, "y");
  arrays_download(device, dx, device_dx, total, "dx");
  if (!in_place) {
    for (size_t i = 0; i < offset; i++) assert_true(compare_is_poison(&y[i]) && compare_is_poison(&dx[i]));
    arrays_download(device, NULL, device_x, total, "x");
    arrays_download(device, NULL, device_dy, total, "dy");
  }
  Tolerance exact = tolerance_make(0, 0);
  exact.nan_equal = 1;
  assert_comparison(compare_arrays(y + offset, y_expected, 1, n, exact));
  assert_comparison(compare_arrays(dx + offset, dx_expected, 1, n, exact));
  free(x);
  free(dy);
  free(y);
  free(dx);
  free(y_expected);
  free(dx_expected);
}

static const size_t sizes[] = {1, 3, 4, 31, 33, 127, 1024, 4099, 65537, 1100003 /* more than the grid's threads */};

static void check_all_sizes(Device device) {
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t offset = 0; offset < 2; offset++)
      for (int in_place = 0; in_place < 2; in_place++) check_size(device, sizes[i], offset, in_place);
}

static void fast_matches_reference(void **state) {
  (void)state;
  int threads_before = omp_get_max_threads();
  for (int threads = 1; threads <= 3; threads++) {
    omp_set_num_threads(threads);
    check_all_sizes(DEVICE_CPU);
  }
  omp_set_num_threads(threads_before);
}

static void gpu_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_all_sizes(DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(gradient_matches_central_differences),
      cmocka_unit_test(fast_matches_reference),
      cmocka_unit_test(gpu_matches_reference),
  };
  return TEST_MAIN("activations", tests);
}
