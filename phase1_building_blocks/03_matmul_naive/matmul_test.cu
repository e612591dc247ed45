/* The reference against numbers worked out by hand; the fast path and the kernels against it, on ragged shapes. */
#include "phase1_building_blocks/03_matmul_naive/matmul.cuh"

#include <omp.h>

#include "common/test_arrays.h"

/* ---- by hand ---- */

static const float a[2 * 3] = {1, 2, 3, 4, 5, 6}, a_turned[3 * 2] = {1, 4, 2, 5, 3, 6};
static const float b[3 * 2] = {7, 8, 9, 10, 11, 12}, b_turned[2 * 3] = {7, 9, 11, 8, 10, 12};
static const float product[2 * 2] = {58, 64, 139, 154}; /* 1*7 + 2*9 + 3*11 = 58, ... */

static void reference_is_right_by_hand(void **state) {
  (void)state;
  for (int transposes = 0; transposes < 4; transposes++) {
    bool transpose_a = transposes & 1, transpose_b = transposes & 2;
    float c[4];
    compare_poison(c, 4);
    matmul_cpu(c, transpose_a ? a_turned : a, transpose_b ? b_turned : b, 2, 2, 3, transpose_a, transpose_b, false);
    assert_matrix_close(c, product, 2, 2, 0, 0);
  }
}

static void reference_accumulates(void **state) {
  (void)state;
  float c[4] = {1, -1, 100, 0.5f}, expected[4] = {59, 63, 239, 154.5f};
  matmul_cpu(c, a, b, 2, 2, 3, false, false, true);
  assert_matrix_close(c, expected, 2, 2, 0, 0);
}

/* ---- against the reference ---- */

static void matmul_on(Device device, float *c, const float *x, const float *y, int m, int n, int k, bool transpose_x,
                      bool transpose_y, bool accumulate) {
  float *device_x = arrays_upload(device, x, (size_t)m * k), *device_y = arrays_upload(device, y, (size_t)k * n);
  float *device_c = arrays_upload(device, c, (size_t)m * n);
  ON_DEVICE(device, matmul_gpu(device_c, device_x, device_y, m, n, k, transpose_x, transpose_y, accumulate),
            matmul_cpu_fast(device_c, device_x, device_y, m, n, k, transpose_x, transpose_y, accumulate));
  arrays_download(device, c, device_c, (size_t)m * n, "c");
  arrays_download(device, NULL, device_x, (size_t)m * k, "a");
  arrays_download(device, NULL, device_y, (size_t)k * n, "b");
}

/* C begins as random numbers where the product is added to it, else as poison. */
static float *start_of_c(size_t n, bool accumulate) { return accumulate ? arrays_random(n, 3) : arrays_poison(n); }

static void check_shape(Device device, int m, int n, int k, bool transpose_x, bool transpose_y, bool accumulate) {
  size_t count = (size_t)m * n;
  float *x = arrays_random((size_t)m * k, 1), *y = arrays_random((size_t)k * n, 2);
  float *expected = start_of_c(count, accumulate);
  float *first = start_of_c(count, accumulate), *second = start_of_c(count, accumulate);
  matmul_cpu(expected, x, y, m, n, k, transpose_x, transpose_y, accumulate);
  matmul_on(device, first, x, y, m, n, k, transpose_x, transpose_y, accumulate);
  matmul_on(device, second, x, y, m, n, k, transpose_x, transpose_y, accumulate);
  Comparison c = compare_arrays(first, expected, m, n, tolerance_dot(k + accumulate, 1));
  if (!c.ok) fail_msg("(%d,%d) K %d transposes %d %d: %s", m, n, k, transpose_x, transpose_y, c.message);
  assert_comparison(compare_runs(first, second, count));
  free(x);
  free(y);
  free(expected);
  free(first);
  free(second);
}

static const int shapes[][3] = {
    {1, 1, 1},
    {1, 31, 3},
    {3, 1, 127},
    {31, 33, 3},
    {33, 3, 31},
    {33, 127, 65},
    {127, 33, 33},
    {64, 64, 64},
    {16, 16, 256},
    {257, 131, 67},
    {1, 600, 1},
    {600, 1, 1},
    {64, 120, 400} /* LeNet's first linear layer: forward, */,
    {64, 400, 120},
    {120, 400, 64} /* backward */,
    {64, 10, 84},
    {10, 84, 64},
    {513, 521, 31} /* large: larger tiles */,
    {512, 512, 16},
};

static void check_all_shapes(Device device) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int flags = 0; flags < 8; flags++)
      check_shape(device, shapes[i][0], shapes[i][1], shapes[i][2], flags & 1, flags & 2, flags & 4);
}

static void fast_matches_reference(void **state) {
  (void)state;
  check_all_shapes(DEVICE_CPU);
}

static void gpu_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_all_shapes(DEVICE_GPU);
}

static void fast_gives_the_same_bits_with_any_number_of_threads(void **state) {
  (void)state;
  int threads_before = omp_get_max_threads();
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    int m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
    float *x = arrays_random((size_t)m * k, 1), *y = arrays_random((size_t)k * n, 2);
    float *alone = start_of_c((size_t)m * n, false), *together = start_of_c((size_t)m * n, false);
    omp_set_num_threads(1);
    matmul_cpu_fast(alone, x, y, m, n, k, false, true, false);
    for (int threads = 2; threads <= 5; threads++) {
      omp_set_num_threads(threads);
      matmul_cpu_fast(together, x, y, m, n, k, false, true, false);
      assert_comparison(compare_runs(alone, together, (size_t)m * n));
    }
    free(x);
    free(y);
    free(alone);
    free(together);
  }
  omp_set_num_threads(threads_before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(reference_accumulates),
      cmocka_unit_test(fast_matches_reference),
      cmocka_unit_test(fast_gives_the_same_bits_with_any_number_of_threads),
      cmocka_unit_test(gpu_matches_reference),
  };
  return TEST_MAIN("matmul", tests);
}
