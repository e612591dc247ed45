#include "phase2_mlp/03_mlp/sgd.cuh"

#include <omp.h>

#include "common/test_arrays.h"

/* Two steps worked by hand, lr 0.1, momentum 0.9, weight decay 0.01, from w = 1, velocity = 0:
 *   grad  0.5: velocity =             0.5 + 0.01 * 1     = 0.51      w = 1     - 0.051    = 0.949
 *   grad -0.2: velocity = 0.9 * 0.51 - 0.2 + 0.01 * 0.949 = 0.26849  w = 0.949 - 0.026849 = 0.922151 */
static void reference_is_right_by_hand(void **state) {
  (void)state;
  double w = 1, velocity = 0, grad = 0.5;
  sgd_step_cpu(&w, &velocity, &grad, 1, 0.1, 0.9, 0.01);
  assert_true(fabs(velocity - 0.51) < 1e-12 && fabs(w - 0.949) < 1e-12);
  grad = -0.2;
  sgd_step_cpu(&w, &velocity, &grad, 1, 0.1, 0.9, 0.01);
  assert_true(fabs(velocity - 0.26849) < 1e-12 && fabs(w - 0.922151) < 1e-12);
}

static void without_momentum_and_decay_it_is_plain_descent(void **state) {
  (void)state;
  float w[2] = {1, -2}, velocity[2] = {100, 100}, expected[2] = {0.75f, -1.5f};
  const float grad[2] = {0.5f, -1};
  sgd_step_cpu(w, velocity, grad, 2, 0.5f, 0.0f, 0.0f);
  assert_close(w, expected, 2, 0, 0);
}

/* A minimum is found: of (w - 3)^2 / 2, whose gradient is w - 3. */
static void it_descends(void **state) {
  (void)state;
  double w = -5, velocity = 0;
  for (int step = 0; step < 500; step++) {
    double grad = w - 3;
    sgd_step_cpu(&w, &velocity, &grad, 1, 0.1, 0.9, 0.0);
  }
  assert_true(fabs(w - 3) < 1e-9);
}

typedef struct Outcome {
  float *w, *velocity;
} Outcome;

enum { STEPS = 3 };

static Outcome run(Device device, const float *w, const float *velocity, const float *grad, size_t n) {
  Outcome o = {arrays_poison(n), arrays_poison(n)};
  float *device_w = arrays_upload(device, w, n), *device_velocity = arrays_upload(device, velocity, n);
  float *device_grad = arrays_upload(device, grad, n);
  for (int step = 0; step < STEPS; step++)
    ON_DEVICE(device, sgd_step_gpu(device_w, device_velocity, device_grad, n, 0.1f, 0.9f, 0.01f),
              sgd_step_cpu_fast(device_w, device_velocity, device_grad, n, 0.1f, 0.9f, 0.01f));
  arrays_download(device, o.w, device_w, n, "w");
  arrays_download(device, o.velocity, device_velocity, n, "velocity");
  arrays_download(device, NULL, device_grad, n, "grad");
  return o;
}

/* Everything here is below 6 in size and each step rounds four times, a fused multiply-add fewer. */
static void check_size(Device device, size_t n) {
  float *w = arrays_random(n, 1), *velocity = arrays_random(n, 2), *grad = arrays_random(n, 3);
  int threads_before = omp_get_max_threads();
  omp_set_num_threads(1);
  Outcome first = run(device, w, velocity, grad, n);
  for (int threads = 1; threads <= 3; threads++) {
    omp_set_num_threads(threads);
    Outcome again = run(device, w, velocity, grad, n);
    assert_comparison(compare_runs(first.w, again.w, n));
    assert_comparison(compare_runs(first.velocity, again.velocity, n));
    free(again.w);
    free(again.velocity);
  }
  omp_set_num_threads(threads_before);
  for (int step = 0; step < STEPS; step++) sgd_step_cpu(w, velocity, grad, n, 0.1f, 0.9f, 0.01f);
  double tolerance = STEPS * 4 * 6 * (double)FLT_EPSILON;
  assert_close(first.w, w, n, 0, tolerance);
  assert_close(first.velocity, velocity, n, 0, tolerance);
  free(first.w);
  free(first.velocity);
  free(w);
  free(velocity);
  free(grad);
}

static void check_all_sizes(Device device) {
  const size_t sizes[] = {1, 3, 31, 33, 127, 256, 257, 61706, 200003};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_size(device, sizes[i]);
}

static void fast_matches_reference(void **state) {
  (void)state;
  check_all_sizes(DEVICE_CPU);
}

static void gpu_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_all_sizes(DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(without_momentum_and_decay_it_is_plain_descent),
      cmocka_unit_test(it_descends),
      cmocka_unit_test(fast_matches_reference),
      cmocka_unit_test(gpu_matches_reference),
  };
  return TEST_MAIN("sgd", tests);
}
