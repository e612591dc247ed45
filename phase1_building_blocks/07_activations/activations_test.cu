#include "phase1_building_blocks/07_activations/activations.cuh"

#include <omp.h>

#include "common/test_arrays.h"
#include "phase1_building_blocks/09_losses/testdata/losses_golden.h"

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

/* The others, by hand: where the textbook formulas overflow, where they lose their digits, and NaN. */
static void the_others_are_right_by_hand(void **state) {
  (void)state;
  enum { N = 9 };
  const float x[N] = {0, -1e4f, 1e4f, -INFINITY, INFINITY, 1e-20f, -100, -1e-40f, 1};
  const float leaky[N] = {0, -1e2f, 1e4f, -INFINITY, INFINITY, 1e-20f, -1, -1e-42f, 1};
  const float sigmoid[N] = {0.5f, 0, 1, 0, 1, 0.5f, 3.7200760e-44f, 0.5f, 0.7310585786f};
  const float hyperbolic[N] = {0, -1, 1, -1, 1, 1e-20f, -1, -1e-40f, 0.7615941560f};
  const float nan[1] = {NAN};
  float y[N];
  leaky_relu_forward_cpu(y, x, N);
  assert_close(y, leaky, N, 1e-6, 1e-44);
  sigmoid_forward_cpu(y, x, N);
  assert_close(y, sigmoid, N, 1e-6, 3e-45);
  tanh_forward_cpu(y, x, N);
  assert_close(y, hyperbolic, N, 1e-6, 0);
  leaky_relu_forward_cpu(y, nan, 1);
  sigmoid_forward_cpu(y + 1, nan, 1);
  tanh_forward_cpu(y + 2, nan, 1);
  assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
}

typedef void Forward(double *y, const double *x, size_t n);
typedef void Backward(double *dx, const double *dy, const double *y, size_t n);

/* The gradient of the loss sum(r * y(x)), away from the kink at 0. */
static void check_gradient(Forward *forward, Backward *backward) {
  enum { N = 33 };
  const double h = 1e-5;
  float random[2 * N];
  double x[N], y[N], r[N], dx[N];
  test_random_fill(random, 2 * N, 1);
  for (int i = 0; i < N; i++) {
    x[i] = random[i] + (random[i] < 0 ? -0.01 : 0.01);
    r[i] = random[N + i];
  }
  forward(y, x, N);
  backward(dx, r, y, N);
  for (int i = 0; i < N; i++) {
    double ends[2] = {x[i] - h, x[i] + h};
    forward(ends, ends, 2);
    assert_true(fabs(dx[i] - r[i] * (ends[1] - ends[0]) / (2 * h)) < 1e-9);
  }
}

static void gradients_match_central_differences(void **state) {
  (void)state;
  check_gradient(relu_forward_cpu, relu_backward_cpu);
  check_gradient(leaky_relu_forward_cpu, leaky_relu_backward_cpu);
  check_gradient(sigmoid_forward_cpu, sigmoid_backward_cpu);
  check_gradient(tanh_forward_cpu, tanh_backward_cpu);
}

/* ---- against the reference: the same bits, because nothing is rounded ---- */

/* The arrays begin `offset` floats into an allocation: not aligned for float4 unless that is a multiple of 4. */
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

static const size_t sizes[] = {1, 3, 4, 31, 33, 127, 1024, 4099, 65537, 1100003};

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

/* ---- every activation, against the reference in double ---- */

typedef struct Case {
  const char *name;
  void (*forward)(float *y, const float *x, size_t n);
  void (*backward)(float *dx, const float *dy, const float *y, size_t n);
  void (*forward_cpu)(float *y, const float *x, size_t n);
  void (*backward_cpu)(float *dx, const float *dy, const float *y, size_t n);
} Case;

static const Case cases[] = {
    {"relu", relu_forward_gpu, relu_backward_gpu, relu_forward_cpu, relu_backward_cpu},
    {"leaky relu", leaky_relu_forward_gpu, leaky_relu_backward_gpu, leaky_relu_forward_cpu, leaky_relu_backward_cpu},
    {"sigmoid", sigmoid_forward_gpu, sigmoid_backward_gpu, sigmoid_forward_cpu, sigmoid_backward_cpu},
    {"tanh", tanh_forward_gpu, tanh_backward_gpu, tanh_forward_cpu, tanh_backward_cpu},
    {"relu_scalar", activation_forward_scalar<ACTIVATION_RELU>, activation_backward_scalar<ACTIVATION_RELU>,
     relu_forward_cpu, relu_backward_cpu},
    {"tanh_scalar", activation_forward_scalar<ACTIVATION_TANH>, activation_backward_scalar<ACTIVATION_TANH>,
     tanh_forward_cpu, tanh_backward_cpu},
};

static const Case fast_cases[] = {
    {"relu", relu_forward_cpu_fast, relu_backward_cpu_fast, relu_forward_cpu, relu_backward_cpu},
    {"leaky relu", leaky_relu_forward_cpu_fast, leaky_relu_backward_cpu_fast, leaky_relu_forward_cpu,
     leaky_relu_backward_cpu},
    {"sigmoid", sigmoid_forward_cpu_fast, sigmoid_backward_cpu_fast, sigmoid_forward_cpu, sigmoid_backward_cpu},
    {"tanh", tanh_forward_cpu_fast, tanh_backward_cpu_fast, tanh_forward_cpu, tanh_backward_cpu},
};

/* Values as networks have them, and a few from every range of float. */
static void check_case(const Case *one, Device device, size_t n, size_t offset) {
  const float corners[] = {0,      -0.0f,   INFINITY, -INFINITY, NAN,    1e-40f, -1e-40f, 1e-20f, 88.8f,
                           -88.8f, -103.9f, 1e30f,    -1e30f,    -1e-3f, 9.1f,   -9.1f,   17.4f,  FLT_MAX};
  const size_t corner_count = sizeof corners / sizeof *corners;
  size_t total = offset + n;
  float *x = arrays_random(total, 1), *dy = arrays_random(total, 2), *y = arrays_poison(total);
  float *dx = arrays_poison(total), *y_expected = arrays_poison(n), *dx_expected = arrays_poison(n);
  for (size_t i = 0; i < total; i++) x[i] *= 6;
  for (size_t i = 0; i < corner_count && i < n; i++)
    x[offset + i * (n / corner_count + (n < corner_count))] = corners[i];
  one->forward_cpu(y_expected, x + offset, n);
  one->backward_cpu(dx_expected, dy + offset, y_expected, n);
  float *device_x = arrays_upload(device, x, total), *device_y = arrays_upload(device, y, total);
  float *device_dy = arrays_upload(device, dy, total), *device_dx = arrays_upload(device, dx, total);
  one->forward(device_y + offset, device_x + offset, n);
  device_download(device, y, device_y, total * sizeof *y);
  device_upload(device, device_y + offset, y_expected, n * sizeof *y); /* the same y for both */
  one->backward(device_dx + offset, device_dy + offset, device_y + offset, n);
  arrays_download(device, NULL, device_y, total, "y");
  arrays_download(device, dx, device_dx, total, "dx");
  arrays_download(device, NULL, device_x, total, "x");
  arrays_download(device, NULL, device_dy, total, "dy");
  Tolerance t = tolerance_make(4 * FLT_EPSILON, 2 * FLT_EPSILON * FLT_MIN); /* a denormal's last two digits */
  t.nan_equal = 1;
  Comparison forward = compare_arrays(y + offset, y_expected, 1, n, t);
  Comparison backward = compare_arrays(dx + offset, dx_expected, 1, n, t);
  if (!forward.ok) fail_msg("%s, %zu, offset %zu: %s", one->name, n, offset, forward.message);
  if (!backward.ok) fail_msg("%s backward, %zu, offset %zu: %s", one->name, n, offset, backward.message);
  free(x);
  free(dy);
  free(y);
  free(dx);
  free(y_expected);
  free(dx_expected);
}

/* The CPU reference and the GPU kernels against PyTorch. PyTorch has y in double; ours was rounded to float, which is a
 * large part of 1 - y where y is nearly 1. */
static void every_activation_matches_pytorch(void **state) {
  (void)state;
  const float *y_golden[] = {golden_relu, golden_leaky_relu, golden_sigmoid, golden_tanh};
  const float *dx_golden[] = {golden_relu_dx, golden_leaky_relu_dx, golden_sigmoid_dx, golden_tanh_dx};
  float y[GOLDEN_N], dx[GOLDEN_N];
  for (int c = 0; c < 4; c++) {
    cases[c].forward_cpu(y, golden_x, GOLDEN_N);
    cases[c].backward_cpu(dx, golden_dy, y, GOLDEN_N);
    assert_close(y, y_golden[c], GOLDEN_N, FLT_EPSILON, FLT_EPSILON * FLT_MIN);
    assert_close(dx, dx_golden[c], GOLDEN_N, FLT_EPSILON, 4 * FLT_EPSILON);
  }
  test_requires_gpu();
  float *gpu_x = arrays_upload(DEVICE_GPU, golden_x, GOLDEN_N),
        *gpu_dy = arrays_upload(DEVICE_GPU, golden_dy, GOLDEN_N);
  for (int c = 0; c < 4; c++) {
    float *gpu_y = guard_alloc(DEVICE_GPU, GOLDEN_N), *gpu_dx = guard_alloc(DEVICE_GPU, GOLDEN_N);
    cases[c].forward(gpu_y, gpu_x, GOLDEN_N);
    cases[c].backward(gpu_dx, gpu_dy, gpu_y, GOLDEN_N);
    arrays_download(DEVICE_GPU, y, gpu_y, GOLDEN_N, "y");
    arrays_download(DEVICE_GPU, dx, gpu_dx, GOLDEN_N, "dx");
    assert_close(y, y_golden[c], GOLDEN_N, 4 * FLT_EPSILON, FLT_EPSILON * FLT_MIN);
    assert_close(dx, dx_golden[c], GOLDEN_N, 4 * FLT_EPSILON, 8 * FLT_EPSILON);
  }
  arrays_download(DEVICE_GPU, NULL, gpu_x, GOLDEN_N, "x");
  arrays_download(DEVICE_GPU, NULL, gpu_dy, GOLDEN_N, "dy");
}

static void every_activation_matches_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  const size_t few[] = {1, 3, 18, 31, 33, 127, 1021, 4099};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
      for (size_t offset = 0; offset < 2; offset++) check_case(&cases[c], DEVICE_GPU, few[i], offset);
}

static void every_fast_activation_matches_the_reference(void **state) {
  (void)state;
  const size_t few[] = {1, 3, 18, 33, 127, 1021, 4099, 65537};
  int threads_before = omp_get_max_threads();
  for (int threads = 1; threads <= 3; threads++) {
    omp_set_num_threads(threads);
    for (size_t c = 0; c < sizeof fast_cases / sizeof *fast_cases; c++)
      for (size_t i = 0; i < sizeof few / sizeof *few; i++) check_case(&fast_cases[c], DEVICE_CPU, few[i], i % 2);
  }
  omp_set_num_threads(threads_before);
}

/* float4 needs every array at a multiple of 16 bytes; here one array at a time is not. */
static void each_array_may_be_misaligned_alone(void **state) {
  (void)state;
  test_requires_gpu();
  enum { N = 131, ALL = N + 1 };
  for (int which = 0; which < 3; which++) {
    const size_t offset[3] = {which == 0, which == 1, which == 2};
    float *dx = arrays_poison(ALL), *dy = arrays_random(ALL, 1), *y = arrays_random(ALL, 2);
    float *expected_dx = arrays_poison(N), *expected_y = arrays_poison(N);
    relu_backward_cpu(expected_dx, dy + offset[1], y + offset[2], N);
    relu_forward_cpu(expected_y, dy + offset[1], N);
    float *device_dx = arrays_upload(DEVICE_GPU, dx, ALL), *device_dy = arrays_upload(DEVICE_GPU, dy, ALL);
    float *device_y = arrays_upload(DEVICE_GPU, y, ALL);
    relu_backward_gpu(device_dx + offset[0], device_dy + offset[1], device_y + offset[2], N);
    device_download(DEVICE_GPU, dx, device_dx, ALL * sizeof *dx);
    assert_close(dx + offset[0], expected_dx, N, 0, 0);
    relu_forward_gpu(device_dx + offset[0], device_dy + offset[1], N);
    arrays_download(DEVICE_GPU, dx, device_dx, ALL, "y");
    assert_close(dx + offset[0], expected_y, N, 0, 0);
    arrays_download(DEVICE_GPU, NULL, device_dy, ALL, "x");
    arrays_download(DEVICE_GPU, NULL, device_y, ALL, "y");
    free(dx);
    free(dy);
    free(y);
    free(expected_dx);
    free(expected_y);
  }
}

/* The first four cases are in the order of enum Activation. */
static void a_kind_is_its_functions_and_its_name(void **state) {
  (void)state;
  enum { N = 33 };
  float *x = arrays_random(N, 1), *dy = arrays_random(N, 2), y[N], dx[N], y_expected[N], dx_expected[N];
  for (int k = 0; k < ACTIVATIONS; k++) {
    Activation kind = (Activation)k, named;
    assert_true(activation_named(activation_name(kind), &named) && named == kind);
    cases[k].forward_cpu(y_expected, x, N);
    cases[k].backward_cpu(dx_expected, dy, y_expected, N);
    activation_forward_cpu(kind, y, x, N);
    activation_backward_cpu(kind, dx, dy, y, N);
    assert_close(y, y_expected, N, 0, 0);
    assert_close(dx, dx_expected, N, 0, 0);
    activation_forward_cpu_fast(kind, y, x, N);
    activation_backward_cpu_fast(kind, dx, dy, y_expected, N);
    assert_close(y, y_expected, N, 4 * FLT_EPSILON, 0);
    assert_close(dx, dx_expected, N, 4 * FLT_EPSILON, 4 * FLT_EPSILON);
  }
  Activation none;
  assert_false(activation_named("Tanh", &none) || activation_named("", &none));
  test_requires_gpu();
  for (int k = 0; k < ACTIVATIONS; k++) {
    float *device_x = arrays_upload(DEVICE_GPU, x, N), *device_dy = arrays_upload(DEVICE_GPU, dy, N);
    float *device_y = guard_alloc(DEVICE_GPU, N), *device_dx = guard_alloc(DEVICE_GPU, N);
    cases[k].forward(device_y, device_x, N);
    cases[k].backward(device_dx, device_dy, device_y, N);
    device_download(DEVICE_GPU, y_expected, device_y, sizeof y_expected);
    device_download(DEVICE_GPU, dx_expected, device_dx, sizeof dx_expected);
    activation_forward_gpu((Activation)k, device_y, device_x, N);
    activation_backward_gpu((Activation)k, device_dx, device_dy, device_y, N);
    arrays_download(DEVICE_GPU, y, device_y, N, "y");
    arrays_download(DEVICE_GPU, dx, device_dx, N, "dx");
    arrays_download(DEVICE_GPU, NULL, device_x, N, "x");
    arrays_download(DEVICE_GPU, NULL, device_dy, N, "dy");
    assert_close(y, y_expected, N, 0, 0);
    assert_close(dx, dx_expected, N, 0, 0);
  }
  free(x);
  free(dy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(the_others_are_right_by_hand),
      cmocka_unit_test(gradients_match_central_differences),
      cmocka_unit_test(fast_matches_reference),
      cmocka_unit_test(every_fast_activation_matches_the_reference),
      cmocka_unit_test(gpu_matches_reference),
      cmocka_unit_test(every_activation_matches_pytorch),
      cmocka_unit_test(every_activation_matches_the_reference),
      cmocka_unit_test(each_array_may_be_misaligned_alone),
      cmocka_unit_test(a_kind_is_its_functions_and_its_name),
  };
  return TEST_MAIN("activations", tests);
}
