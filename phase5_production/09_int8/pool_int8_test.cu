/* Rounding, layouts, pooling and sums of int8 numbers: kernels give the bits of the loops, and the loops what
 * float64 says. */
#include "phase5_production/09_int8/pool_int8.cuh"

#include "phase5_production/09_int8/test_int8.h"

static void expect_bytes(const char *what, const int8_t *y, const int8_t *expected, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (y[i] != expected[i]) fail_msg("%s: element %zu is %d; %d was expected", what, i, y[i], expected[i]);
}

static void rounding(void **state) {
  (void)state;
  const struct {
    float x;
    int whole, positive;
  } cases[] = {{0, 0, 0},          {0.5f, 0, 0},         {1.5f, 2, 2},        {2.5f, 2, 2},       {-0.5f, 0, 0},
               {-1.5f, -2, 0},     {126.5f, 126, 126},   {127.4f, 127, 127},  {127.5f, 127, 128}, {254.5f, 127, 254},
               {255.5f, 127, 255}, {1e30f, 127, 255},    {-128.4f, -128, 0},  {-128.6f, -128, 0}, {-1e30f, -128, 0},
               {NAN, 0, 0},        {INFINITY, 127, 255}, {-INFINITY, -128, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int whole = int8_byte(cases[i].x, false), positive = int8_value(int8_byte(cases[i].x, true), true);
    if (whole != cases[i].whole || positive != cases[i].positive)
      fail_msg("%g becomes %d and %d; %d and %d were expected", cases[i].x, whole, positive, cases[i].whole,
               cases[i].positive);
  }
}

static void expect_layouts(int n, int c, int pixels, int pitch, bool positive) {
  const size_t wide = (size_t)n * c * pixels, narrow = (size_t)n * pitch * pixels;
  float *x = arrays_random(wide, 3), *back = arrays_poison(wide), *expected_back = arrays_poison(wide);
  int8_t *q = (int8_t *)xmalloc(narrow), *expected = (int8_t *)xmalloc(narrow);
  const float scale = 0.01f;
  float *device_x = arrays_upload(DEVICE_GPU, x, wide), *device_back = arrays_upload(DEVICE_GPU, back, wide);
  int8_t *device_q = (int8_t *)upload_bytes(NULL, narrow, 1);
  int8_from_nchw(device_q, device_x, scale, positive, n, c, pixels, pitch);
  int8_to_nchw(device_back, device_q, scale, positive, n, c, pixels, pitch);
  download_bytes(q, device_q, narrow, 1, "q");
  arrays_download(DEVICE_GPU, back, device_back, wide, "back");
  arrays_download(DEVICE_GPU, NULL, device_x, wide, "x");
  int8_from_nchw_cpu(expected, x, scale, positive, n, c, pixels, pitch);
  int8_to_nchw_cpu(expected_back, expected, scale, positive, n, c, pixels, pitch);
  expect_bytes("from_nchw", q, expected, narrow);
  for (size_t i = 0; i < wide; i++) {
    const float least = positive ? 0 : -128 * scale, most = (positive ? 255 : 127) * scale;
    const float inside = fminf(fmaxf(x[i], least), most);
    if (!(fabsf(back[i] - inside) <= 0.5001f * scale) || back[i] != expected_back[i])
      fail_msg("(%d,%d,%d): element %zu, %g, comes back as %g", n, c, pixels, i, x[i], back[i]);
  }
  void *all[] = {x, back, expected_back, q, expected};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void layouts(void **state) {
  (void)state;
  test_requires_gpu();
  expect_layouts(1, 1, 1, 16, false);
  expect_layouts(2, 3, 35, 16, true);
  expect_layouts(3, 130, 33, 144, false);
  expect_layouts(2, 33, 31, 33, true); /* no quads */
}

static void expect_pool(Pool2dShape s, bool positive, const PoolInt8Mean *mean) {
  const int p = pool2d_out_h(s), q = pool2d_out_w(s);
  const size_t n_x = (size_t)s.n * s.h * s.w * s.c, n_y = (size_t)s.n * p * q * s.c;
  int8_t *x = random_int8(n_x, 5), *y = (int8_t *)xmalloc(n_y), *expected = (int8_t *)xmalloc(n_y);
  int8_t *device_x = (int8_t *)upload_bytes(x, n_x, 1), *device_y = (int8_t *)upload_bytes(NULL, n_y, 1);
  pool2d_int8_gpu(device_y, device_x, positive, s, mean);
  download_bytes(y, device_y, n_y, 1, "y");
  download_bytes(NULL, device_x, n_x, 1, "x");
  pool2d_int8_cpu(expected, x, positive, s, mean);
  expect_bytes(mean ? "mean" : "largest", y, expected, n_y);
  free(x);
  free(y);
  free(expected);
}

static void pools(void **state) {
  (void)state;
  test_requires_gpu();
  const Pool2dShape three = pool2d_shape_of(2, 32, 9, 7, (Pool2dWindow){3, 3, 2, 2, 1, 1});
  const Pool2dShape two = pool2d_shape_of(3, 16, 5, 6, (Pool2dWindow){2, 2, 2, 2, 0, 0});
  const Pool2dShape whole = pool2d_shape_of(2, 48, 7, 5, (Pool2dWindow){7, 5, 1, 1, 0, 0});
  const PoolInt8Mean mean = {0.9f, 0, 0}, padded = {1.1f, 1, 1}, positive = {1, 0, 1};
  for (int sign = 0; sign < 2; sign++) {
    expect_pool(three, sign, NULL);
    expect_pool(two, sign, NULL);
    expect_pool(three, sign, &mean);
    expect_pool(three, sign, &padded);
    expect_pool(whole, sign, sign ? &positive : &mean);
  }
  const int8_t x[4] = {1, 2, 3, 5}; /* 2.75 */
  int8_t y;
  pool2d_int8_cpu(&y, x, false, pool2d_shape_of(1, 1, 2, 2, (Pool2dWindow){2, 2, 1, 1, 0, 0}), &positive);
  assert_int_equal(y, 3);
}

static void sums(void **state) {
  (void)state;
  test_requires_gpu();
  for (int kind = 0; kind < 16; kind++) {
    const size_t n = 16 * 37;
    const AddInt8 add = {0.6f, 0.45f, kind & 1, kind >> 1 & 1, kind >> 2 & 1, kind >> 3 & 1};
    int8_t *a = random_int8(n, 6), *b = random_int8(n, 7), *y = (int8_t *)xmalloc(n), *expected = (int8_t *)xmalloc(n);
    int8_t *device_a = (int8_t *)upload_bytes(a, n, 1), *device_b = (int8_t *)upload_bytes(b, n, 1);
    int8_t *device_y = (int8_t *)upload_bytes(NULL, n, 1);
    add_int8_gpu(device_y, device_a, device_b, add, n);
    download_bytes(y, device_y, n, 1, "y");
    download_bytes(NULL, device_a, n, 1, "a");
    download_bytes(NULL, device_b, n, 1, "b");
    add_int8_cpu(expected, a, b, add, n);
    expect_bytes("sum", y, expected, n);
    for (size_t i = 0; i < n; i++) {
      double sum = 0.6f * (double)int8_value(a[i], add.a_positive) + 0.45f * (double)int8_value(b[i], add.b_positive);
      if (add.relu && sum < 0) sum = 0;
      sum = fmin(fmax(sum, add.y_positive ? 0 : -128), add.y_positive ? 255 : 127);
      if (!(fabs(int8_value(y[i], add.y_positive) - sum) <= 0.5001)) fail_msg("sum %g became %d", sum, y[i]);
    }
    void *all[] = {a, b, y, expected};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rounding),
      cmocka_unit_test(layouts),
      cmocka_unit_test(pools),
      cmocka_unit_test(sums),
  };
  return TEST_MAIN("pool_int8", tests);
}
