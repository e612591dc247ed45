#include "phase3_cnn/09_pooling/max_pool2d.cuh"

#include <omp.h>

#include "common/test_arrays.h"

static Pool2dShape with(Pool2dShape shape, int dilation_h, int dilation_w, int ceil_mode) {
  shape.dilation_h = dilation_h;
  shape.dilation_w = dilation_w;
  shape.ceil_mode = ceil_mode;
  return shape;
}

/* ---- by hand ---- */

static void reference_is_right_by_hand(void **state) {
  (void)state;
  const float x[20] = {1, 5, 2,  2, 9,  //
                       4, 3, 2,  2, 9,  //
                       0, 0, -1, 7, 9,  //
                       0, 6, 8,  0, 9};
  const Pool2dShape shape = pool2d_shape(1, 1, 4, 5, 2, 2); /* the fifth column is in no window */
  const float y_expected[4] = {5, 2, 6, 8}, dy[4] = {10, 20, 30, 40};
  const uint8_t argmax_expected[4] = {1, 0, 3, 2}; /* of four equal values the first */
  float y[4], dx[20], dx_expected[20] = {0};
  uint8_t argmax[4];
  max_pool2d_forward_cpu(y, argmax, x, shape);
  assert_close(y, y_expected, 4, 0, 0);
  assert_memory_equal(argmax, argmax_expected, 4);

  dx_expected[1] = 10;
  dx_expected[2] = 20;
  dx_expected[16] = 30;
  dx_expected[17] = 40;
  max_pool2d_backward_cpu(dx, dy, argmax, shape);
  assert_close(dx, dx_expected, 20, 0, 0);
}

static void overlapping_windows_add_up(void **state) {
  (void)state;
  const float x[9] = {1, 2, 3, 4, 9, 5, 6, 7, 8}, dy[4] = {1, 10, 100, 1000};
  const Pool2dShape shape = pool2d_shape(1, 1, 3, 3, 2, 1);
  const float dx_expected[9] = {0, 0, 0, 0, 1111, 0, 0, 0, 0};
  const uint8_t argmax_expected[4] = {3, 2, 1, 0};
  float y[4], dx[9];
  uint8_t argmax[4];
  max_pool2d_forward_cpu(y, argmax, x, shape);
  assert_memory_equal(argmax, argmax_expected, 4);
  max_pool2d_backward_cpu(dx, dy, argmax, shape);
  assert_close(dx, dx_expected, 9, 0, 0);
}

/* Two pixels of padding, 3 x 3, stride 2, and ceil_mode: the corners of the windows lie outside. */
static void padding_never_wins(void **state) {
  (void)state;
  const float x[6] = {-5, -INFINITY, -7, -8, -9, NAN};
  const Pool2dShape shape = with(pool2d_shape_of(1, 1, 2, 3, {3, 3, 2, 2, 1, 1}), 1, 1, 1);
  const float y_expected[4] = {-5, NAN, -8, NAN}, dy[4] = {1, 10, 100, 1000};
  const uint8_t argmax_expected[4] = {4, 7, 1, 1};
  const float dx_expected[6] = {1, 0, 0, 100, 0, 1010};
  float y[4], dx[6];
  uint8_t argmax[4];
  assert_int_equal(pool2d_out_h(shape), 2); /* the second row of windows begins in row 1 */
  assert_int_equal(pool2d_out_w(shape), 2);
  max_pool2d_forward_cpu(y, argmax, x, shape);
  for (int i = 0; i < 4; i++) {
    assert_true(y[i] == y_expected[i] || (isnan(y[i]) && isnan(y_expected[i])));
    assert_int_equal(argmax[i], argmax_expected[i]);
  }
  max_pool2d_backward_cpu(dx, dy, argmax, shape);
  assert_close(dx, dx_expected, 6, 0, 0);
}

/* How many windows there are: PyTorch's rules. */
static void windows_are_counted(void **state) {
  (void)state;
  const struct {
    int size, kernel, stride, pad, dilation, ceil_mode, count;
  } axes[] = {{112, 3, 2, 1, 1, 0, 56}, {112, 3, 2, 0, 1, 0, 55}, {112, 3, 2, 0, 1, 1, 56}, {55, 3, 2, 0, 1, 0, 27},
              {1, 2, 2, 1, 1, 1, 1},    {4, 2, 3, 1, 1, 1, 2},    {3, 2, 3, 1, 1, 1, 2},    {2, 2, 3, 1, 1, 1, 1},
              {7, 3, 2, 1, 2, 0, 3},    {7, 3, 2, 1, 2, 1, 3},    {6, 3, 2, 1, 2, 1, 3},    {5, 5, 1, 2, 1, 0, 5}};
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
    assert_int_equal(
        pool2d_out(axes[i].size, axes[i].kernel, axes[i].stride, axes[i].pad, axes[i].dilation, axes[i].ceil_mode),
        axes[i].count);
}

static void impossible_shapes_are_refused(void **state) {
  (void)state;
  const struct {
    int n, c, h, w;
    Pool2dWindow window;
    int dilation_h, dilation_w;
    const char *words;
  } bad[] = {{0, 1, 4, 4, {2, 2, 2, 2, 0, 0}, 1, 1, "every size must be at least 1"},
             {1, 1, 4, -4, {2, 2, 2, 2, 0, 0}, 1, 1, "every size must be at least 1"},
             {1, 1, 4, 4, {0, 2, 2, 2, 0, 0}, 1, 1, "a window, a stride and a dilation of at least 1"},
             {1, 1, 4, 4, {2, 2, 2, 0, 0, 0}, 1, 1, "a window, a stride and a dilation of at least 1"},
             {1, 1, 4, 4, {2, 2, 2, 2, 0, -1}, 1, 1, "a padding of at least 0"},
             {1, 1, 4, 4, {2, 2, 2, 2, 0, 0}, -2, 1, "dilation of at least 1"},
             {1, 1, 4, 4, {2, 3, 2, 2, 1, 2}, 1, 1, "more than half of the window"},
             {1, 1, 40, 40, {17, 16, 2, 2, 0, 0}, 1, 1, "272 elements"},
             {1, 1, 4, 4, {5, 2, 1, 1, 0, 0}, 1, 1, "the window does not fit"},
             {1, 1, 4, 4, {2, 3, 1, 1, 0, 1}, 1, 3, "the window does not fit"},
             {1, 1, 1, 4, {2, 2, 1, 1, 1, 0}, 2, 1, "window 0 has no pixel"},
             {1, 1, INT_MAX, 1, {2, 1, 1, 1, 0, 0}, 1, 1, "too large"},
             {1, 1, 65536, 65536, {2, 2, 2, 2, 0, 0}, 1, 1, "too large"},
             {65536, 65536, 4, 4, {2, 2, 2, 2, 0, 0}, 1, 1, "too large"}};
  const Pool2dShape good = pool2d_shape(64, 6, 28, 28, 2, 2);
  Error err;
  assert_int_equal(max_pool2d_shape_check(good, &err), 0);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    err.message[0] = '\0';
    const Pool2dShape shape = with(pool2d_shape_of(bad[i].n, bad[i].c, bad[i].h, bad[i].w, bad[i].window),
                                   bad[i].dilation_h, bad[i].dilation_w, 0);
    assert_int_equal(max_pool2d_shape_check(shape, &err), -1);
    assert_memory_equal(err.message, "max pooling", 11);
    if (strstr(err.message, bad[i].words) == NULL) fail_msg("\"%s\" is not in \"%s\"", bad[i].words, err.message);
  }
}

/* The slope of sum(dy * y): the values lie 1 apart, so that a small step changes no maximum. */
static void gradient_matches_central_differences(void **state) {
  (void)state;
  const Pool2dShape shapes[] = {
      pool2d_shape(2, 3, 6, 8, 2, 2),
      pool2d_shape(1, 2, 7, 5, 3, 2),
      pool2d_shape(1, 2, 7, 9, 3, 1),
      pool2d_shape(2, 1, 9, 8, 2, 3),
      pool2d_shape_of(1, 2, 7, 8, {3, 3, 2, 2, 1, 1}),
      with(pool2d_shape_of(2, 1, 8, 7, {3, 2, 2, 1, 1, 0}), 1, 1, 1),
      with(pool2d_shape_of(1, 2, 9, 10, {2, 3, 1, 2, 1, 1}), 3, 2, 0),
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    Pool2dShape s = shapes[i];
    int n_x = s.n * s.c * s.h * s.w, n_y = (int)pool2d_y_count(s);
    double x[512], y[512], dy[512], dx[512];
    uint8_t argmax[512];
    for (int j = 0; j < n_x; j++) x[j] = j * 149 % n_x; /* 149 is prime to n_x: each value once */
    for (int j = 0; j < n_y; j++) dy[j] = j % 11 - 4;
    max_pool2d_forward_cpu(y, argmax, x, s);
    max_pool2d_backward_cpu(dx, dy, argmax, s);
    for (int j = 0; j < n_x; j++) {
      double slope = 0, middle = x[j];
      for (int side = -1; side <= 1; side += 2) {
        x[j] = middle + side * 0.25;
        max_pool2d_forward_cpu(y, argmax, x, s);
        for (int o = 0; o < n_y; o++) slope += side * y[o] * dy[o] / 0.5;
      }
      x[j] = middle;
      if (!(fabs(slope - dx[j]) < 1e-9)) fail_msg("element %d: the slope is %g, the gradient %g", j, slope, dx[j]);
    }
  }
}

/* ---- against the reference ---- */

/* Random values, a third of them equal, one in 50 NaN, infinities. */
static void fill_with_ties(float *x, size_t n) {
  test_random_fill(x, n, 5);
  for (size_t i = 0; i < n; i++) {
    PhiloxBlock block = philox4x32(6, 0, i);
    if (block.word[0] % 3 == 0) x[i] = 0.5f;
    if (block.word[1] % 50 == 0) x[i] = NAN;
    if (block.word[1] % 50 == 1) x[i] = -INFINITY;
    if (block.word[1] % 50 == 2) x[i] = INFINITY;
  }
}

static void assert_guarded(Device device, float *buffer, size_t n, const char *name) {
  Error err;
  if (guard_check(device, buffer, n, name, &err) != 0) fail_msg("%s", err.message);
}

typedef struct PoolText {
  char text[160];
} PoolText;

static PoolText shape_text_of(Pool2dShape s) {
  PoolText t;
  snprintf(t.text, sizeof t.text,
           "(%d,%d,%d,%d), windows of %d x %d, stride %d x %d, padding %d x %d, dilation %d x %d, ceil_mode %d", s.n,
           s.c, s.h, s.w, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.pad_h, s.pad_w, s.dilation_h, s.dilation_w,
           s.ceil_mode);
  return t;
}

static void check_array(const char *name, const float *actual, const float *expected, size_t planes, size_t size,
                        Tolerance tolerance, Pool2dShape s) {
  tolerance.nan_equal = 1;
  Comparison c = compare_arrays(actual, expected, planes, size, tolerance);
  if (!c.ok) fail_msg("%s, %s: %s", name, shape_text_of(s).text, c.message);
}

typedef void Forward(float *y, uint8_t *argmax, const float *x, Pool2dShape s);
typedef void Backward(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s);

/* argmax, too, lies between guard bands: n bytes in a buffer of floats, the last of them filled up with 0xA5. */
static void check_shape(Device device, Forward *forward, Backward *backward, Pool2dShape s) {
  size_t planes = (size_t)s.n * s.c, in = (size_t)s.h * s.w, out = (size_t)pool2d_out_h(s) * pool2d_out_w(s);
  size_t n_x = planes * in, n_y = planes * out, argmax_floats = (n_y + 3) / 4;
  float *x = guard_alloc(DEVICE_CPU, n_x), *dy = guard_alloc(DEVICE_CPU, n_y);
  float *y = guard_alloc(DEVICE_CPU, n_y), *dx = guard_alloc(DEVICE_CPU, n_x);
  float *y_expected = guard_alloc(DEVICE_CPU, n_y), *dx_expected = guard_alloc(DEVICE_CPU, n_x);
  uint8_t *argmax = (uint8_t *)xmalloc(4 * argmax_floats), *argmax_expected = (uint8_t *)xmalloc(n_y);
  float *device_x = guard_alloc(device, n_x), *device_dy = guard_alloc(device, n_y);
  float *device_y = guard_alloc(device, n_y), *device_dx = guard_alloc(device, n_x);
  float *device_argmax = guard_alloc(device, argmax_floats);
  fill_with_ties(x, n_x);
  test_random_fill(dy, n_y, 8);
  memset(argmax, 0xA5, 4 * argmax_floats);
  device_upload(device, device_x, x, n_x * sizeof *x);
  device_upload(device, device_dy, dy, n_y * sizeof *dy);
  device_upload(device, device_argmax, argmax, 4 * argmax_floats);

  max_pool2d_forward_cpu(y_expected, argmax_expected, x, s);
  max_pool2d_backward_cpu(dx_expected, dy, argmax_expected, s);
  forward(device_y, (uint8_t *)device_argmax, device_x, s);
  backward(device_dx, device_dy, (const uint8_t *)device_argmax, s);
  device_download(device, y, device_y, n_y * sizeof *y);
  device_download(device, dx, device_dx, n_x * sizeof *dx);
  device_download(device, argmax, device_argmax, 4 * argmax_floats);

  check_array("y", y, y_expected, planes, out, tolerance_make(0, 0), s);
  for (size_t i = 0; i < n_y; i++)
    if (argmax[i] != argmax_expected[i])
      fail_msg("argmax, %s: %d at %zu, expected %d", shape_text_of(s).text, argmax[i], i, argmax_expected[i]);
  for (size_t i = n_y; i < 4 * argmax_floats; i++) assert_int_equal(argmax[i], 0xA5);
  check_array("dx", dx, dx_expected, planes, in, tolerance_dot(s.kernel_h * s.kernel_w, 1), s);
  assert_guarded(device, device_y, n_y, "y");
  assert_guarded(device, device_dx, n_x, "dx");
  assert_guarded(device, device_argmax, argmax_floats, "argmax");

  float *on_host[] = {x, dy, y, dx, y_expected, dx_expected};
  float *on_device[] = {device_x, device_dy, device_y, device_dx, device_argmax};
  for (int i = 0; i < 6; i++) guard_free(DEVICE_CPU, on_host[i]);
  for (int i = 0; i < 5; i++) guard_free(device, on_device[i]);
  free(argmax);
  free(argmax_expected);
}

/* Square windows, then those that networks use, on widths that are float4s, pairs and neither; and every parameter. */
static void check_shapes(Device device, Forward *forward, Backward *backward) {
  for (int kernel = 1; kernel <= 3; kernel++)
    for (int stride = 1; stride <= 3; stride++)
      for (int h = kernel; h <= 11; h += 1 + h / 4)
        for (int w = kernel; w <= 19; w++)
          check_shape(device, forward, backward, pool2d_shape(3, 2, h, w, kernel, stride));
  for (int h = 3; h <= 9; h += 3)
    for (int w = 3; w <= 17; w++)
      for (int mode = 0; mode < 4; mode++) {
        const Pool2dWindow window = {3, 3, 2, 2, mode % 2, mode % 2};
        check_shape(device, forward, backward, with(pool2d_shape_of(2, 3, h, w, window), 1, 1, mode / 2));
      }
  const Pool2dShape others[] = {
      pool2d_shape(64, 6, 28, 28, 2, 2),
      pool2d_shape(33, 16, 10, 10, 2, 2),
      pool2d_shape(1, 1, 31, 33, 2, 2),
      pool2d_shape(1, 3, 33, 31, 2, 2),
      pool2d_shape(2, 2, 40, 37, 16, 5),
      pool2d_shape(127, 1, 1, 1, 1, 1),
      pool2d_shape(2, 1, 5, 131, 2, 2),
      pool2d_shape(1, 3, 4, 130, 2, 2),
      pool2d_shape(1, 2, 1031, 3, 2, 2),
      with(pool2d_shape(1, 2, 5, 8, 2, 2), 1, 1, 1),
      with(pool2d_shape(1, 2, 4, 7, 2, 2), 1, 1, 1),
      pool2d_shape_of(2, 3, 9, 11, {2, 5, 1, 3, 1, 2}),
      with(pool2d_shape_of(2, 2, 13, 10, {3, 2, 2, 1, 1, 1}), 2, 3, 1),
      pool2d_shape_of(1, 2, 3, 140, {1, 3, 1, 1, 0, 1}),
      pool2d_shape_of(1, 3, 7, 6, {7, 6, 1, 1, 3, 3}),
      pool2d_shape_of(1, 1, 4, 3, {2, 2, INT_MAX, INT_MAX, 1, 1}),
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) check_shape(device, forward, backward, others[i]);
}

static void fast_matches_reference(void **state) {
  (void)state;
  int threads_before = omp_get_max_threads();
  for (int threads = 1; threads <= 3; threads++) {
    omp_set_num_threads(threads);
    check_shapes(DEVICE_CPU, max_pool2d_forward_cpu_fast, max_pool2d_backward_cpu_fast);
  }
  omp_set_num_threads(threads_before);
}

static void gpu_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_shapes(DEVICE_GPU, max_pool2d_forward_naive, max_pool2d_backward_naive);
  check_shapes(DEVICE_GPU, max_pool2d_forward_strip, max_pool2d_backward_strip);
  check_shapes(DEVICE_GPU, max_pool2d_forward_gpu, max_pool2d_backward_gpu);
}

/* ---- of max(0, x) ---- */

/* y as of the ReLU's output; and a gradient where that is above 0, to the same element. */
static void check_relu(Device device, Pool2dShape s) {
  const size_t n_x = (size_t)s.n * s.c * s.h * s.w;
  const size_t n_y = (size_t)s.n * s.c * pool2d_out_h(s) * pool2d_out_w(s);
  float *x = (float *)xmalloc(n_x * sizeof *x), *dy = arrays_random(n_y, 2), *bent = arrays_poison(n_x);
  float *y = arrays_poison(n_y), *dx = arrays_poison(n_x), *got_y = arrays_poison(n_y), *got_dx = arrays_poison(n_x);
  uint8_t *argmax = (uint8_t *)xcalloc(n_y, 1);
  fill_with_ties(x, n_x);
  for (size_t i = 0; i < n_x; i++) bent[i] = x[i] < 0 ? 0 : x[i];
  max_pool2d_forward_cpu(y, argmax, bent, s);
  max_pool2d_backward_cpu(dx, dy, argmax, s);
  for (size_t i = 0; i < n_x; i++)
    if (!(bent[i] > 0)) dx[i] = 0;

  float *device_x = arrays_upload(device, x, n_x), *device_dy = arrays_upload(device, dy, n_y);
  float *device_y = arrays_upload(device, got_y, n_y), *device_dx = arrays_upload(device, got_dx, n_x);
  uint8_t *largest = (uint8_t *)arrays_upload_bytes(device, argmax, n_y);
  ON_DEVICE(device, relu_max_pool2d_forward_gpu(device_y, largest, device_x, s),
            relu_max_pool2d_forward_cpu_fast(device_y, largest, device_x, s));
  ON_DEVICE(device, max_pool2d_backward_gpu(device_dx, device_dy, largest, s),
            max_pool2d_backward_cpu_fast(device_dx, device_dy, largest, s));
  arrays_download(device, got_y, device_y, n_y, "y");
  arrays_download(device, got_dx, device_dx, n_x, "dx");
  arrays_download(device, NULL, device_x, n_x, "x");
  arrays_download(device, NULL, device_dy, n_y, "dy");
  const size_t planes = (size_t)s.n * s.c;
  check_array("y", got_y, y, planes, n_y / planes, tolerance_make(0, 0), s);
  check_array("dx", got_dx, dx, planes, n_x / planes, tolerance_dot(s.kernel_h * s.kernel_w, 1), s);
  device_free(device, largest);
  float *const all[] = {x, dy, bent, y, dx, got_y, got_dx};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  free(argmax);
}

static void check_relus(Device device) {
  const Pool2dShape shapes[] = {pool2d_shape(3, 2, 28, 28, 2, 2), pool2d_shape(1, 3, 7, 9, 2, 2),
                                pool2d_shape(2, 1, 5, 4, 3, 1), pool2d_shape(1, 1, 31, 33, 15, 4),
                                pool2d_shape_of(2, 3, 9, 12, {3, 3, 2, 2, 1, 1})};
  for (int i = 0; i < 5; i++) check_relu(device, shapes[i]);
}

static void relu_before_pooling_fast(void **unused) {
  (void)unused;
  check_relus(DEVICE_CPU);
}

static void relu_before_pooling_gpu(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_relus(DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(overlapping_windows_add_up),
      cmocka_unit_test(padding_never_wins),
      cmocka_unit_test(windows_are_counted),
      cmocka_unit_test(impossible_shapes_are_refused),
      cmocka_unit_test(gradient_matches_central_differences),
      cmocka_unit_test(fast_matches_reference),
      cmocka_unit_test(gpu_matches_reference),
      cmocka_unit_test(relu_before_pooling_fast),
      cmocka_unit_test(relu_before_pooling_gpu),
  };
  return TEST_MAIN("max_pool2d", tests);
}
