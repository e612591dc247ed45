#include "phase2_mlp/01_perceptron/linear.cuh"

#include <omp.h>

#include "common/test_arrays.h"

/* ---- by hand: two samples, three inputs, two outputs ---- */

static void reference_is_right_by_hand(void **state) {
  (void)state;
  const float x[2 * 3] = {1, 2, 3, -1, 0, 4}, w[2 * 3] = {1, 0, -1, 2, 1, 0.5f}, bias[2] = {10, -3};
  const float dy[2 * 2] = {1, 2, -1, 0.5f};
  const float y_expected[2 * 2] = {8, 2.5f, 5, -3};           /* 10 + 1 - 3, -3 + 2 + 2 + 1.5, ... */
  const float dx_expected[2 * 3] = {5, 2, 0, 0, 0.5f, 1.25f}; /* 1*1 + 2*2, 1*0 + 2*1, ... */
  const float dw_expected[2 * 3] = {2, 2, -1, 1.5f, 4, 8};    /* 1*1 - 1*(-1), 1*2 - 1*0, ... */
  const float dbias_expected[2] = {0, 2.5f};
  float y[4], dx[6], dw[6], dbias[2];
  linear_forward_cpu(y, x, w, bias, 2, 3, 2);
  linear_backward_input_cpu(dx, dy, w, 2, 3, 2);
  linear_backward_weight_cpu(dw, dbias, dy, x, 2, 3, 2);
  assert_matrix_close(y, y_expected, 2, 2, 0, 0);
  assert_matrix_close(dx, dx_expected, 2, 3, 0, 0);
  assert_matrix_close(dw, dw_expected, 2, 3, 0, 0);
  assert_close(dbias, dbias_expected, 2, 0, 0);
}

/* The loss sum(r * y) has the gradients that backward gives for dy = r. */
enum {
  BATCH = 5,
  IN = 7,
  OUT = 3,
  X = 0,
  W = X + BATCH * IN,
  BIAS = W + OUT * IN,
  R = BIAS + OUT,
  ALL = R + BATCH * OUT
};

static double loss(const double *v) {
  double y[BATCH * OUT], sum = 0;
  linear_forward_cpu(y, v + X, v + W, v + BIAS, BATCH, IN, OUT);
  for (int i = 0; i < BATCH * OUT; i++) sum += v[R + i] * y[i];
  return sum;
}

static void gradients_match_central_differences(void **state) {
  (void)state;
  const double h = 1e-4;
  float random[ALL];
  double v[ALL], gradient[R];
  test_random_fill(random, ALL, 1);
  for (int i = 0; i < ALL; i++) v[i] = random[i];
  linear_backward_input_cpu(gradient + X, v + R, v + W, BATCH, IN, OUT);
  linear_backward_weight_cpu(gradient + W, gradient + BIAS, v + R, v + X, BATCH, IN, OUT);
  for (int i = 0; i < R; i++) {
    double kept = v[i];
    v[i] = kept + h;
    double up = loss(v);
    v[i] = kept - h;
    double down = loss(v);
    v[i] = kept;
    assert_true(fabs(gradient[i] - (up - down) / (2 * h)) < 1e-9);
  }
}

/* ---- against the reference ---- */

typedef struct Arrays {
  float *y, *dx, *dw, *dbias;
} Arrays;

static Arrays arrays_create(int batch, int in, int out) {
  Arrays a = {arrays_poison(batch * out), arrays_poison(batch * in), arrays_poison(out * in), arrays_poison(out)};
  return a;
}

static void arrays_free(Arrays *a) {
  free(a->y);
  free(a->dx);
  free(a->dw);
  free(a->dbias);
}

/* All three passes, into a new set of outputs. */
static Arrays run(Device device, const float *x, const float *w, const float *bias, const float *dy, int batch, int in,
                  int out) {
  Arrays a = arrays_create(batch, in, out);
  float *device_x = arrays_upload(device, x, batch * in), *device_w = arrays_upload(device, w, out * in);
  float *device_bias = arrays_upload(device, bias, out), *device_dy = arrays_upload(device, dy, batch * out);
  float *y = arrays_upload(device, a.y, batch * out), *dx = arrays_upload(device, a.dx, batch * in);
  float *dw = arrays_upload(device, a.dw, out * in), *dbias = arrays_upload(device, a.dbias, out);
  ON_DEVICE(device, linear_forward_gpu(y, device_x, device_w, device_bias, batch, in, out),
            linear_forward_cpu_fast(y, device_x, device_w, device_bias, batch, in, out));
  ON_DEVICE(device, linear_backward_input_gpu(dx, device_dy, device_w, batch, in, out),
            linear_backward_input_cpu_fast(dx, device_dy, device_w, batch, in, out));
  ON_DEVICE(device, linear_backward_weight_gpu(dw, dbias, device_dy, device_x, batch, in, out),
            linear_backward_weight_cpu_fast(dw, dbias, device_dy, device_x, batch, in, out));
  arrays_download(device, a.y, y, batch * out, "y");
  arrays_download(device, a.dx, dx, batch * in, "dx");
  arrays_download(device, a.dw, dw, out * in, "dw");
  arrays_download(device, a.dbias, dbias, out, "dbias");
  arrays_download(device, NULL, device_x, batch * in, "x");
  arrays_download(device, NULL, device_w, out * in, "w");
  arrays_download(device, NULL, device_bias, out, "bias");
  arrays_download(device, NULL, device_dy, batch * out, "dy");
  return a;
}

static void assert_same_bits(const Arrays *a, const Arrays *b, int batch, int in, int out) {
  assert_comparison(compare_runs(a->y, b->y, batch * out));
  assert_comparison(compare_runs(a->dx, b->dx, batch * in));
  assert_comparison(compare_runs(a->dw, b->dw, out * in));
  assert_comparison(compare_runs(a->dbias, b->dbias, out));
}

static void check_shape(Device device, int batch, int in, int out) {
  float *x = arrays_random(batch * in, 1), *w = arrays_random(out * in, 2);
  float *bias = arrays_random(out, 3), *dy = arrays_random(batch * out, 4);
  Arrays expected = arrays_create(batch, in, out);
  linear_forward_cpu(expected.y, x, w, bias, batch, in, out);
  linear_backward_input_cpu(expected.dx, dy, w, batch, in, out);
  linear_backward_weight_cpu(expected.dw, expected.dbias, dy, x, batch, in, out);

  int threads_before = omp_get_max_threads();
  omp_set_num_threads(1);
  Arrays first = run(device, x, w, bias, dy, batch, in, out);
  assert_comparison(compare_arrays(first.y, expected.y, batch, out, tolerance_dot(in + 1, 1)));
  assert_comparison(compare_arrays(first.dx, expected.dx, batch, in, tolerance_dot(out, 1)));
  assert_comparison(compare_arrays(first.dw, expected.dw, out, in, tolerance_dot(batch, 1)));
  assert_comparison(compare_arrays(first.dbias, expected.dbias, 1, out, tolerance_dot(batch, 1)));
  for (int threads = 1; threads <= 3; threads++) { /* the same bits again, and with any number of threads */
    omp_set_num_threads(threads);
    Arrays again = run(device, x, w, bias, dy, batch, in, out);
    assert_same_bits(&first, &again, batch, in, out);
    arrays_free(&again);
  }
  omp_set_num_threads(threads_before);
  arrays_free(&first);
  arrays_free(&expected);
  free(x);
  free(w);
  free(bias);
  free(dy);
}

static void check_all_shapes(Device device) {
  const int shapes[][3] = {{1, 1, 1},    {1, 31, 3},     {3, 1, 127},   {31, 33, 3},  {33, 3, 31},   {127, 65, 33},
                           {17, 16, 32}, {64, 400, 120}, {64, 120, 84}, {64, 84, 10}, {61, 784, 128}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    check_shape(device, shapes[i][0], shapes[i][1], shapes[i][2]);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(gradients_match_central_differences),
      cmocka_unit_test(fast_matches_reference),
      cmocka_unit_test(gpu_matches_reference),
  };
  return TEST_MAIN("linear", tests);
}
