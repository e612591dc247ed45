#include "common/test.h"

static int test_lanes; /* the CPU path's vectors: 4 for any processor, 8 for AVX2, 16 for AVX-512 */
#define CONV2D_LANES test_lanes
#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"

#include <omp.h>

#include "common/compare.h"
#include "common/device.h"
#include "common/guard.h"

/* ---- by hand ---- */

static void reference_is_right_by_hand(void **state) {
  (void)state;
  const float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[4] = {1, 10, 100, 1000}, bias[1] = {0.5f};
  const Conv2dShape shape = conv2d_shape(1, 1, 3, 3, 1, 2, 2, 1, 0);
  float y[4], dx[9], dw[4], dbias[1];

  conv2d_forward_cpu(y, x, w, bias, shape); /* 1 + 20 + 400 + 5000 first */
  const float y_expected[4] = {5421.5f, 6532.5f, 8754.5f, 9865.5f};
  assert_close(y, y_expected, 4, 0, 0);

  const float dy[4] = {1, 2, 3, 4};
  conv2d_backward_input_cpu(dx, dy, w, shape); /* corners see one output, the middle all: 4 + 30 + 200 + 1000 */
  const float dx_expected[9] = {1, 12, 20, 103, 1234, 2040, 300, 3400, 4000};
  assert_close(dx, dx_expected, 9, 0, 0);

  conv2d_backward_weight_cpu(dw, dbias, dy, x, shape); /* 1*1 + 2*2 + 3*4 + 4*5 first */
  const float dw_expected[4] = {37, 47, 67, 77}, dbias_expected[1] = {10};
  assert_close(dw, dw_expected, 4, 0, 0);
  assert_close(dbias, dbias_expected, 1, 0, 0);
}

/* Stride, padding, two channels, two filters that are not square: each filter has one weight that is not zero. */
static void reference_strides_and_pads_by_hand(void **state) {
  (void)state;
  const Conv2dShape shape = conv2d_shape(1, 2, 3, 4, 2, 2, 3, 2, 1); /* P = 2, Q = 2 */
  assert_int_equal(conv2d_out_h(shape), 2);
  assert_int_equal(conv2d_out_w(shape), 2);
  float x[24], w[24] = {0}, y[8], dx[24], dw[24];
  for (int i = 0; i < 24; i++) x[i] = (float)(i + 1);
  w[(0 * 2 + 1) * 6 + 1 * 3 + 2] = 2; /* filter 0: channel 1, r = 1, s = 2: rows 0, 2, columns 1, 3 */
  w[(1 * 2 + 0) * 6 + 0 * 3 + 0] = 3; /* filter 1: channel 0, r = 0, s = 0: rows -1, 1, columns -1, 1 */

  conv2d_forward_cpu<float>(y, x, w, NULL, shape);
  const float y_expected[8] = {28, 32, 44, 48, 0, 0, 0, 18};
  assert_close(y, y_expected, 8, 0, 0);

  const float dy[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  conv2d_backward_input_cpu(dx, dy, w, shape);
  float dx_expected[24] = {0};
  dx_expected[5] = 24; /* channel 0, row 1, column 1 */
  dx_expected[13] = 2;
  dx_expected[15] = 4;
  dx_expected[21] = 6;
  dx_expected[23] = 8;
  assert_close(dx, dx_expected, 24, 0, 0);

  conv2d_backward_weight_cpu<float>(dw, NULL, dy, x, shape);
  assert_true(dw[1 * 6 + 1 * 3 + 2] == 14 * 1 + 16 * 2 + 22 * 3 + 24 * 4);
  assert_true(dw[2 * 6] == 6 * 8); /* the other three read the padding */
}

static void check_shape_message(Conv2dShape shape, const char *part) {
  Error err;
  assert_int_equal(conv2d_shape_check(shape, &err), -1);
  if (strstr(err.message, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static void impossible_shapes_are_refused(void **state) {
  (void)state;
  const Conv2dShape good = conv2d_shape(64, 6, 14, 14, 16, 5, 5, 1, 0);
  Error err;
  assert_int_equal(conv2d_shape_check(good, &err), 0);
  Conv2dShape s = good;
  s.k = 0;
  check_shape_message(s, "at least 1");
  s = good;
  s.stride_h = 0;
  check_shape_message(s, "stride 0 x 1");
  s = good;
  s.padding_w = -1;
  check_shape_message(s, "padding 0 x -1");
  s = good;
  s.w = 4;
  check_shape_message(s, "the padded image is 14 x 4");
  s.padding_w = 1;
  assert_int_equal(conv2d_shape_check(s, &err), 0);
  s = good;
  s.padding_h = INT_MAX;
  check_shape_message(s, "hold more than");
  s = good;
  s.c = INT_MAX;
  check_shape_message(s, "hold more than");
  s = good;
  s.dilation_w = 0;
  check_shape_message(s, "dilation 1 x 0");
  s.dilation_w = 4; /* 17 columns */
  check_shape_message(s, "spans 5 x 17");
  s = good;
  s.groups = 4;
  check_shape_message(s, "divide the 6 channels and the 16 filters");
  s.groups = 0;
  check_shape_message(s, "0 groups");
  s.groups = 2;
  assert_int_equal(conv2d_shape_check(s, &err), 0);
  check_shape_message(conv2d_shape(1, 1, 1, 1, 65536, 1, 1, 1, 0), "at most 65535 channels and filters");
  s = conv2d_shape(1, 12000, 3, 3, 12000, 3, 3, 1, 1); /* too many weights without groups */
  check_shape_message(s, "hold more than");
  s.groups = 12000;
  assert_int_equal(conv2d_shape_check(s, &err), 0);
}

static void a_stride_beyond_the_image_is_one_output(void **state) {
  (void)state;
  const Conv2dShape s = conv2d_shape(2, 3, 5, 7, 4, 3, 3, 65536, 1), bounded = conv2d_bounded_stride(s);
  assert_int_equal(bounded.stride_h, 7);
  assert_int_equal(bounded.stride_w, 9);
  assert_int_equal(conv2d_out_h(bounded), conv2d_out_h(s));
  assert_int_equal(conv2d_out_w(bounded), conv2d_out_w(s));
}

/* ---- gradients ---- */

static void random_doubles(double *to, size_t n, uint64_t seed) {
  float *x = (float *)xmalloc(n * sizeof *x);
  test_random_fill(x, n, seed);
  for (size_t i = 0; i < n; i++) to[i] = x[i];
  free(x);
}

static double weighted_output(const double *x, const double *w, const double *bias, const double *dy,
                              Conv2dShape shape) {
  double y[512], loss = 0;
  int n = shape.n * shape.k * conv2d_out_h(shape) * conv2d_out_w(shape);
  conv2d_forward_cpu(y, x, w, bias, shape);
  for (int i = 0; i < n; i++) loss += y[i] * dy[i];
  return loss;
}

/* The slope of sum(dy * y) along each of the n numbers at `at` must be `gradient`. */
static void check_slopes(double *at, const double *gradient, int n, const double *x, const double *w,
                         const double *bias, const double *dy, Conv2dShape shape) {
  const double step = 1e-3; /* the loss is linear in each number: only rounding is left */
  for (int i = 0; i < n; i++) {
    double middle = at[i];
    at[i] = middle + step;
    double above = weighted_output(x, w, bias, dy, shape);
    at[i] = middle - step;
    double below = weighted_output(x, w, bias, dy, shape);
    at[i] = middle;
    double slope = (above - below) / (2 * step);
    if (!(fabs(slope - gradient[i]) <= 1e-9 * (1 + fabs(slope))))
      fail_msg("element %d: the slope is %g, the gradient %g", i, slope, gradient[i]);
  }
}

static void gradients_match_central_differences(void **state) {
  (void)state;
  const Conv2dShape shapes[] = {conv2d_shape(2, 3, 5, 6, 4, 3, 2, 1, 0),    conv2d_shape(2, 2, 7, 5, 3, 3, 3, 2, 1),
                                conv2d_shape(3, 1, 8, 9, 2, 2, 5, 3, 2),    conv2d_shape(1, 2, 1, 1, 3, 1, 1, 1, 0),
                                {1, 4, 7, 8, 6, 3, 2, 2, 1, 1, 0, 2, 3, 2}, {2, 3, 5, 5, 3, 2, 3, 1, 2, 2, 1, 1, 2, 3}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    Conv2dShape s = shapes[i];
    double x[512], w[512], bias[8], dy[512], dx[512], dw[512], dbias[8];
    int n_x = s.n * s.c * s.h * s.w, n_w = (int)conv2d_w_count(s);
    random_doubles(x, n_x, 1);
    random_doubles(w, n_w, 2);
    random_doubles(bias, s.k, 3);
    random_doubles(dy, s.n * s.k * conv2d_out_h(s) * conv2d_out_w(s), 4);
    conv2d_backward_input_cpu(dx, dy, w, s);
    conv2d_backward_weight_cpu(dw, dbias, dy, x, s);
    check_slopes(x, dx, n_x, x, w, bias, dy, s);
    check_slopes(w, dw, n_w, x, w, bias, dy, s);
    check_slopes(bias, dbias, s.k, x, w, bias, dy, s);
  }
}

/* ---- against the reference ---- */

typedef struct Arrays {
  float *x, *w, *bias, *dy, *y, *dx, *dw, *dbias, *workspace;
} Arrays;

enum { ARRAYS = 9, INPUTS = 4 };
typedef struct Sizes {
  size_t of[ARRAYS]; /* in the order of Arrays */
} Sizes;

static const char *const array_names[ARRAYS] = {"x", "w", "bias", "dy", "y", "dx", "dw", "dbias", "workspace"};

static Sizes sizes_of(Device device, Conv2dShape s) {
  size_t x = conv2d_x_count(s), w = conv2d_w_count(s), y = conv2d_y_count(s), k = s.k;
  Sizes sizes = {{x, w, k, y, y, x, w, k, conv2d_workspace_floats(device, s)}};
  return sizes;
}

static float **arrays_list(Arrays *a) { return &a->x; }

/* Inputs random, outputs and workspace poisoned, guard bands round all. */
static Arrays arrays_make(Device device, Conv2dShape shape) {
  Arrays arrays;
  Sizes sizes = sizes_of(device, shape);
  for (int i = 0; i < ARRAYS; i++) {
    float *buffer = guard_alloc(device, sizes.of[i]);
    if (i < INPUTS) {
      float *host = (float *)xmalloc(sizes.of[i] * sizeof *host);
      test_random_fill(host, sizes.of[i], 10 + i);
      device_upload(device, buffer, host, sizes.of[i] * sizeof *host);
      free(host);
    }
    arrays_list(&arrays)[i] = buffer;
  }
  return arrays;
}

static void arrays_check_guards(Device device, Arrays *arrays, Conv2dShape shape) {
  Sizes sizes = sizes_of(device, shape);
  Error err;
  for (int i = 0; i < ARRAYS; i++)
    if (guard_check(device, arrays_list(arrays)[i], sizes.of[i], array_names[i], &err) != 0)
      fail_msg("%s: %s", conv2d_shape_text(shape).text, err.message);
}

static void arrays_free(Device device, Arrays *arrays) {
  for (int i = 0; i < ARRAYS; i++) guard_free(device, arrays_list(arrays)[i]);
}

static void run_all(Device device, Arrays *a, Conv2dShape shape) {
  conv2d_forward(device, a->y, a->x, a->w, a->bias, shape, a->workspace);
  conv2d_backward_weight(device, a->dw, a->dbias, a->dy, a->x, shape, a->workspace);
  conv2d_backward_input(device, a->dx, a->dy, a->w, shape, a->workspace);
}

static void check_array(Device device, const char *name, const float *actual, const float *expected, size_t rows,
                        size_t cols, size_t terms, Conv2dShape s) {
  float *host = (float *)xmalloc(rows * cols * sizeof *host);
  device_download(device, host, actual, rows * cols * sizeof *host);
  Comparison c = compare_arrays(host, expected, rows, cols, tolerance_dot(terms, 1));
  free(host);
  if (!c.ok) fail_msg("%s, %s, %d lanes: %s", name, conv2d_shape_text(s).text, test_lanes, c.message);
}

static void check_shape(Device device, Conv2dShape s) {
  size_t pixels = (size_t)conv2d_out_h(s) * conv2d_out_w(s), taps = conv2d_w_count(s) / s.k;
  Arrays expected = arrays_make(DEVICE_CPU, s), actual = arrays_make(device, s);
  conv2d_forward_cpu(expected.y, expected.x, expected.w, expected.bias, s);
  conv2d_backward_input_cpu(expected.dx, expected.dy, expected.w, s);
  conv2d_backward_weight_cpu(expected.dw, expected.dbias, expected.dy, expected.x, s);

  run_all(device, &actual, s);
  arrays_check_guards(device, &actual, s);
  check_array(device, "y", actual.y, expected.y, s.n * s.k, pixels, taps + 1, s);
  check_array(device, "dx", actual.dx, expected.dx, s.n * s.c, s.h * s.w, (size_t)s.k * s.r * s.s, s);
  check_array(device, "dw", actual.dw, expected.dw, s.k, taps, s.n * pixels, s);
  check_array(device, "dbias", actual.dbias, expected.dbias, 1, s.k, s.n * pixels, s);
  if (device == DEVICE_GPU) {
    conv2d_forward_naive(actual.y, actual.x, actual.w, actual.bias, s);
    conv2d_backward_input_naive(actual.dx, actual.dy, actual.w, s);
    conv2d_backward_weight_naive(actual.dw, actual.dbias, actual.dy, actual.x, s);
    check_array(device, "y, naive", actual.y, expected.y, s.n * s.k, pixels, taps + 1, s);
    conv2d_forward_row(actual.y, actual.x, actual.w, actual.bias, s);
    check_array(device, "y, row", actual.y, expected.y, s.n * s.k, pixels, taps + 1, s);
    conv2d_forward_column(actual.y, actual.x, actual.w, actual.bias, s);
    check_array(device, "y, column", actual.y, expected.y, s.n * s.k, pixels, taps + 1, s);
    check_array(device, "dx, naive", actual.dx, expected.dx, s.n * s.c, s.h * s.w, (size_t)s.k * s.r * s.s, s);
    check_array(device, "dw, naive", actual.dw, expected.dw, s.k, taps, s.n * pixels, s);
    check_array(device, "dbias, naive", actual.dbias, expected.dbias, 1, s.k, s.n * pixels, s);
  }
  arrays_check_guards(device, &actual, s);
  arrays_free(DEVICE_CPU, &expected);
  arrays_free(device, &actual);
}

static const Conv2dShape lenet_shapes[] = {conv2d_shape(19, 1, 28, 28, 6, 5, 5, 1, 2),
                                           conv2d_shape(35, 6, 14, 14, 16, 5, 5, 1, 0)};

static int pick(uint64_t *counter, const int *from, int count) {
  PhiloxBlock block = philox4x32(7, 1, (*counter)++);
  return from[block.word[0] % count];
}

static void check_shapes(Device device) {
  const int n[] = {1, 3, 16, 17, 33}, c[] = {1, 2, 3, 6}, h[] = {1, 2, 3, 4, 5, 7, 8, 13, 31, 33},
            k[] = {1, 4, 5, 7, 16};
  const int side[] = {1, 2, 3, 4, 5}, stride[] = {1, 1, 2, 3}, padding[] = {0, 1, 2};
  const int dilation[] = {1, 1, 1, 2}, groups[] = {1, 1, 1, 2, 3};
  uint64_t counter = 0;
  for (int done = 0; done < 120;) {
    Conv2dShape s = {pick(&counter, n, 5),        pick(&counter, c, 4),       pick(&counter, h, 10),
                     pick(&counter, h, 10),       pick(&counter, k, 5),       pick(&counter, side, 5),
                     pick(&counter, side, 5),     pick(&counter, stride, 4),  pick(&counter, stride, 4),
                     pick(&counter, padding, 3),  pick(&counter, padding, 3), pick(&counter, dilation, 4),
                     pick(&counter, dilation, 4), pick(&counter, groups, 5)};
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((long long)s.n * s.k * s.c * s.h * s.w * s.r * s.s > 2000000) continue; /* keeps the reference short */
    check_shape(device, s);
    done++;
  }
  for (int i = 0; i < 2; i++) check_shape(device, lenet_shapes[i]);
  const Conv2dShape large_filter = conv2d_shape(2, 3, 35, 34, 5, 32, 32, 1, 0),
                    many_channels = conv2d_shape(2, 300, 3, 3, 5, 2, 2, 1, 0);
  const Conv2dShape many_filters = conv2d_shape(2, 3, 3, 3, 300, 2, 2, 1, 1),
                    many_images = conv2d_shape(131, 1, 3, 5, 2, 3, 3, 1, 0);
  check_shape(device, large_filter); /* what does not fit into shared memory at once */
  check_shape(device, many_channels);
  check_shape(device, many_filters);
  check_shape(device, many_images);
  Conv2dShape beyond = conv2d_shape(2, 3, 5, 7, 4, 3, 3, INT_MAX, 1), alone = conv2d_shape(2, 3, 1, 7, 4, 1, 3, 3, 0);
  check_shape(device, beyond); /* one output, whatever the stride is */
  alone.stride_h = alone.dilation_h = INT_MAX;
  check_shape(device, alone);
}

static int lanes_supported(int lanes) {
#if defined(__x86_64__)
  return lanes == 4 || (lanes == 8 && __builtin_cpu_supports("x86-64-v3")) ||
         (lanes == 16 && __builtin_cpu_supports("x86-64-v4"));
#else
  return lanes == 4;
#endif
}

static void fast_matches_reference(void **state) {
  const int *lanes = (const int *)*state;
  if (!lanes_supported(*lanes)) {
    print_message("skipped: this processor has no vectors of %d floats\n", *lanes);
    skip();
  }
  test_lanes = *lanes;
  check_shapes(DEVICE_CPU);
}

static void gpu_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_shapes(DEVICE_GPU);
}

/* ---- reproducible ---- */

static void check_same_bits(Device device, const Arrays *first, Arrays *second, Conv2dShape shape) {
  Sizes sizes = sizes_of(device, shape);
  for (int i = INPUTS; i < ARRAYS - 1; i++) {
    float *a = (float *)xmalloc(sizes.of[i] * sizeof *a), *b = (float *)xmalloc(sizes.of[i] * sizeof *b);
    device_download(device, a, (&first->x)[i], sizes.of[i] * sizeof *a);
    device_download(device, b, (&second->x)[i], sizes.of[i] * sizeof *b);
    Comparison c = compare_runs(a, b, sizes.of[i]);
    free(a);
    free(b);
    if (!c.ok) fail_msg("%s: %s", array_names[i], c.message);
  }
  arrays_free(device, second);
}

static void fast_does_not_depend_on_threads(void **state) {
  (void)state;
  int threads_before = omp_get_max_threads();
  for (test_lanes = 4; test_lanes <= 16; test_lanes *= 2) {
    if (!lanes_supported(test_lanes)) continue;
    for (int i = 0; i < 2; i++) {
      omp_set_num_threads(1);
      Arrays first = arrays_make(DEVICE_CPU, lenet_shapes[i]);
      run_all(DEVICE_CPU, &first, lenet_shapes[i]);
      for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        Arrays again = arrays_make(DEVICE_CPU, lenet_shapes[i]);
        run_all(DEVICE_CPU, &again, lenet_shapes[i]);
        check_same_bits(DEVICE_CPU, &first, &again, lenet_shapes[i]);
      }
      arrays_free(DEVICE_CPU, &first);
    }
  }
  omp_set_num_threads(threads_before);
}

static void gpu_repeats_to_the_bit(void **state) {
  (void)state;
  test_requires_gpu();
  for (int i = 0; i < 2; i++) {
    Arrays first = arrays_make(DEVICE_GPU, lenet_shapes[i]);
    run_all(DEVICE_GPU, &first, lenet_shapes[i]);
    for (int run = 0; run < 5; run++) {
      Arrays again = arrays_make(DEVICE_GPU, lenet_shapes[i]);
      run_all(DEVICE_GPU, &again, lenet_shapes[i]);
      check_same_bits(DEVICE_GPU, &first, &again, lenet_shapes[i]);
    }
    arrays_free(DEVICE_GPU, &first);
  }
}

/* ---- the rest of the contract ---- */

/* A network plans its workspace for the largest batch and then comes with smaller ones. */
static void workspace_grows_with_the_batch(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    Conv2dShape small = lenet_shapes[i], large = lenet_shapes[i];
    for (small.n = 1; small.n < 200; small.n++) {
      large.n = small.n + 1;
      for (int device = DEVICE_CPU; device <= DEVICE_GPU; device++)
        assert_true(conv2d_workspace_floats((Device)device, small) <= conv2d_workspace_floats((Device)device, large));
      size_t slices = conv2d_slices(small).grid.x;
      assert_true(slices * small.k * (small.c * small.r * small.s + 1) <= conv2d_workspace_floats(DEVICE_GPU, small));
    }
  }
}

static void check_without_bias(Device device) {
  const Conv2dShape s = conv2d_shape(3, 2, 6, 5, 5, 3, 2, 1, 1);
  size_t pixels = (size_t)conv2d_out_h(s) * conv2d_out_w(s);
  Arrays expected = arrays_make(DEVICE_CPU, s), actual = arrays_make(device, s);
  float *bias = actual.bias, *dbias = actual.dbias;
  conv2d_forward_cpu<float>(expected.y, expected.x, expected.w, NULL, s);
  conv2d_backward_weight_cpu<float>(expected.dw, NULL, expected.dy, expected.x, s);
  actual.bias = actual.dbias = NULL;
  run_all(device, &actual, s);
  check_array(device, "y", actual.y, expected.y, s.n * s.k, pixels, s.c * s.r * s.s, s);
  check_array(device, "dw", actual.dw, expected.dw, s.k, s.c * s.r * s.s, s.n * pixels, s);
  actual.bias = bias;
  actual.dbias = dbias;
  arrays_free(DEVICE_CPU, &expected);
  arrays_free(device, &actual);
}

static void fast_works_without_bias(void **state) {
  (void)state;
  for (test_lanes = 4; test_lanes <= 16; test_lanes *= 2)
    if (lanes_supported(test_lanes)) check_without_bias(DEVICE_CPU);
}

static void gpu_works_without_bias(void **state) {
  (void)state;
  test_requires_gpu();
  check_without_bias(DEVICE_GPU);
}

int main(void) {
  static int lanes[] = {4, 8, 16};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(reference_strides_and_pads_by_hand),
      cmocka_unit_test(impossible_shapes_are_refused),
      cmocka_unit_test(a_stride_beyond_the_image_is_one_output),
      cmocka_unit_test(gradients_match_central_differences),
      {"fast_4_matches_reference", fast_matches_reference, NULL, NULL, &lanes[0]},
      {"fast_8_matches_reference", fast_matches_reference, NULL, NULL, &lanes[1]},
      {"fast_16_matches_reference", fast_matches_reference, NULL, NULL, &lanes[2]},
      cmocka_unit_test(gpu_matches_reference),
      cmocka_unit_test(fast_does_not_depend_on_threads),
      cmocka_unit_test(gpu_repeats_to_the_bit),
      cmocka_unit_test(workspace_grows_with_the_batch),
      cmocka_unit_test(fast_works_without_bias),
      cmocka_unit_test(gpu_works_without_bias),
  };
  return TEST_MAIN("conv2d", tests);
}
