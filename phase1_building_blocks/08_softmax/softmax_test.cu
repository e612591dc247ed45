/* Every version against the definition, on ragged shapes, misaligned arrays and scores at the limits of float; the
 * definition's gradient against central differences, and both against vectors from PyTorch. */
#include "phase1_building_blocks/08_softmax/softmax.cuh"

#include "common/test_arrays.h"
#include "phase1_building_blocks/08_softmax/testdata/softmax_golden.h"

typedef void Forward(float *y, const float *x, int rows, int cols);
typedef void Backward(float *dx, const float *dy, const float *y, int rows, int cols);

static const struct {
  const char *name;
  Forward *forward;
} forwards[] = {
    {"naive", softmax_forward_naive},   {"shared", softmax_forward_shared}, {"shuffle", softmax_forward_shuffle},
    {"online", softmax_forward_online}, {"staged", softmax_forward_staged}, {"gpu", softmax_forward_gpu},
};

static const struct {
  const char *name;
  Backward *backward;
} backwards[] = {
    {"jacobian", softmax_backward_jacobian},
    {"naive", softmax_backward_naive},
    {"shuffle", softmax_backward_shuffle},
    {"gpu", softmax_backward_gpu},
};

/* A probability is a quotient by a sum of `cols` terms, each with the error of an exp() whose argument was rounded: 2
 * units for exp() itself, and half a unit times the magnitude of its argument. */
static Tolerance tolerance_softmax(int cols, double span) {
  double n = cols;
  Tolerance t = tolerance_make(FLT_EPSILON * (8 + fmin(n, 4 * sqrt(n)) + span), FLT_MIN);
  t.nan_equal = 1;
  return t;
}

/* Compares a version with the definition; on the GPU x begins `in` floats past an aligned address, y `out` floats. */
static void check_forward(size_t version, const float *x, int rows, int cols, size_t in, size_t out, double span,
                          const char *what) {
  size_t n = (size_t)rows * cols;
  float *expected = arrays_poison(n), *actual = arrays_poison(n + out), *padded = arrays_random(n + in, 9);
  memcpy(padded + in, x, n * sizeof *x);
  softmax_forward_cpu(expected, x, rows, cols);
  float *device_x = arrays_upload(DEVICE_GPU, padded, n + in);
  float *device_y = arrays_upload(DEVICE_GPU, actual, n + out);
  forwards[version].forward(device_y + out, device_x + in, rows, cols);
  arrays_download(DEVICE_GPU, actual, device_y, n + out, "y");
  arrays_download(DEVICE_GPU, NULL, device_x, n + in, "x");
  Comparison c = compare_arrays(actual + out, expected, rows, cols, tolerance_softmax(cols, span));
  if (!c.ok)
    fail_msg("softmax_forward_%s, %s (%d,%d), offsets %zu, %zu: %s", forwards[version].name, what, rows, cols, in, out,
             c.message);
  for (size_t i = 0; i < out; i++)
    if (!compare_is_poison(&actual[i])) fail_msg("%s, (%d,%d): wrote before y", forwards[version].name, rows, cols);
  free(expected);
  free(actual);
  free(padded);
}

/* A single element, around a warp and its float4s, primes, around what fits in the registers of a warp and a block. */
static const int shapes[][2] = {{1, 1},    {3, 1},    {5, 2},    {33, 3},   {7, 5},    {31, 33},   {2, 127},
                                {9, 128},  {3, 131},  {2, 255},  {5, 256},  {4, 257},  {3, 509},   {2, 1024},
                                {3, 1025}, {2, 1031}, {1, 4096}, {2, 4099}, {1, 8192}, {1, 16381}, {130, 10},
                                {2, 260},  {2, 516},  {2, 1028}, {1, 2052}, {1, 4100}, {1, 8196},  {1, 16388}};

static void every_forward_is_the_definition(void **state) {
  (void)state;
  test_requires_gpu();
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    int rows = shapes[i][0], cols = shapes[i][1];
    float *x = arrays_random((size_t)rows * cols, 1 + i);
    for (size_t v = 0; v < sizeof forwards / sizeof *forwards; v++) {
      check_forward(v, x, rows, cols, 0, 0, 8, "random");
      check_forward(v, x, rows, cols, 1, 1, 8, "random");
      check_forward(v, x, rows, cols, 3, 2, 8, "random");
    }
    free(x);
  }
}

/* Longer than the registers of a block, and than its shared memory. */
static void long_rows(void **state) {
  (void)state;
  test_requires_gpu();
  const int cols[] = {32771, 50257, 120001};
  for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
    float *x = arrays_random((size_t)2 * cols[i], 1 + i);
    for (int j = 0; j < 5000; j++) x[2 * cols[i] - 1 - j] += 500.0f; /* exp() of these is infinite as a float */
    for (size_t v = 4; v < sizeof forwards / sizeof *forwards; v++)
      check_forward(v, x, 2, cols[i], i, i, 500, "long rows");
    for (int j = 0; j < cols[i]; j++) x[j] = j == cols[i] / 2 ? 2.0f : -INFINITY; /* all threads but one have nothing */
    x[cols[i] + 7] = NAN;
    for (size_t v = 4; v < sizeof forwards / sizeof *forwards; v++)
      check_forward(v, x, 2, cols[i], i, i, 500, "long rows at the limits");
    free(x);
  }
}

static void scores_at_the_limits(void **state) {
  (void)state;
  test_requires_gpu();
  enum { ROWS = 12 };
  const int cols[] = {1, 2, 3, 31, 100, 257, 1100, 4097};
  for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
    int n = cols[i];
    float *x = arrays_random((size_t)ROWS * n, 5);
    for (int j = 0; j < n; j++) {
      x[0 * n + j] = 3.25f;                                 /* all equal */
      x[1 * n + j] = -FLT_MAX;                              /* all equal, and far below */
      x[2 * n + j] = j == n / 2 ? 1e30f : x[2 * n + j];     /* one huge: it is 1, the others 0 */
      x[3 * n + j] = j % 3 == 1 ? -INFINITY : x[3 * n + j]; /* some ruled out */
      x[4 * n + j] = j == n - 1 ? 2.0f : -INFINITY;         /* all but the last */
      x[5 * n + j] = -INFINITY;                             /* nothing left: NaN */
      x[6 * n + j] = j == n / 3 ? NAN : x[6 * n + j];
      x[7 * n + j] = j == n / 3 ? INFINITY : x[7 * n + j];  /* NaN */
      x[8 * n + j] *= 1e-40f;                               /* denormals: all alike */
      x[9 * n + j] = 80.0f * (float)j / (float)n + 1000.0f; /* ever higher, from 1 to e^80 */
      x[10 * n + j] = -80.0f * (float)j / (float)n - 1000.0f;
      x[11 * n + j] = j == 0 ? FLT_MAX : -FLT_MAX;
    }
    for (size_t v = 0; v < sizeof forwards / sizeof *forwards; v++)
      check_forward(v, x, ROWS, n, i % 4, i % 4, 100, "limits");
    free(x);
  }
}

static void rows_add_up_to_one(void **state) {
  (void)state;
  test_requires_gpu();
  enum { ROWS = 7, COLS = 1021 };
  float *x = arrays_random((size_t)ROWS * COLS, 3), *y = arrays_poison((size_t)ROWS * COLS);
  float *device_x = arrays_upload(DEVICE_GPU, x, (size_t)ROWS * COLS);
  float *device_y = arrays_upload(DEVICE_GPU, y, (size_t)ROWS * COLS);
  softmax_forward_gpu(device_y, device_x, ROWS, COLS);
  arrays_download(DEVICE_GPU, y, device_y, (size_t)ROWS * COLS, "y");
  arrays_download(DEVICE_GPU, NULL, device_x, (size_t)ROWS * COLS, "x");
  for (int row = 0; row < ROWS; row++) {
    double sum = 0;
    for (int j = 0; j < COLS; j++) sum += y[row * COLS + j];
    if (!(fabs(sum - 1) < 1e-5)) fail_msg("row %d adds up to %.9g", row, sum);
  }
  free(x);
  free(y);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void check_backward(size_t version, int rows, int cols, const size_t offset[3]) {
  size_t n = (size_t)rows * cols;
  float *x = arrays_random(n, 2), *dy = arrays_random(n + offset[1], 3), *y = arrays_random(n + offset[2], 4);
  softmax_forward_cpu(y + offset[2], x, rows, cols);
  float *expected = arrays_poison(n), *actual = arrays_poison(n + offset[0]);
  softmax_backward_cpu(expected, dy + offset[1], y + offset[2], rows, cols);
  float *device_dx = arrays_upload(DEVICE_GPU, actual, n + offset[0]);
  float *device_dy = arrays_upload(DEVICE_GPU, dy, n + offset[1]),
        *device_y = arrays_upload(DEVICE_GPU, y, n + offset[2]);
  backwards[version].backward(device_dx + offset[0], device_dy + offset[1], device_y + offset[2], rows, cols);
  arrays_download(DEVICE_GPU, actual, device_dx, n + offset[0], "dx");
  arrays_download(DEVICE_GPU, NULL, device_dy, n + offset[1], "dy");
  arrays_download(DEVICE_GPU, NULL, device_y, n + offset[2], "y");
  /* The dot product adds up terms of the size y |dy|, their y being 1 in all: its error is that of |dy|, about 1, and
   * it is multiplied by y, which is not more than 1, and 1/cols on average. */
  double length = cols, error = FLT_EPSILON * (4 + fmin(length, 4 * sqrt(length)));
  Comparison c =
      compare_arrays(actual + offset[0], expected, rows, cols, tolerance_make(error, error / fmin(length, 8)));
  if (!c.ok)
    fail_msg("softmax_backward_%s (%d,%d), offsets %zu %zu %zu: %s", backwards[version].name, rows, cols, offset[0],
             offset[1], offset[2], c.message);
  free(x);
  free(dy);
  free(y);
  free(expected);
  free(actual);
}

static void every_backward_is_the_definition(void **state) {
  (void)state;
  test_requires_gpu();
  const size_t offsets[][3] = {{0, 0, 0}, {1, 1, 1}, {0, 1, 2}, {3, 0, 0}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t v = shapes[i][1] > 4500 ? 2 : 0; v < sizeof backwards / sizeof *backwards; v++)
      for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++)
        check_backward(v, shapes[i][0], shapes[i][1], offsets[o]);
  const size_t aligned[3] = {0, 0, 0};
  check_backward(3, 2, 16390, aligned); /* too long for the registers */
}

/* The definition of backward: the gradient of f(x) = sum of c[j] y[j](x) is what backward computes from c. */
static void the_gradient_is_a_difference(void **state) {
  (void)state;
  const int cols[] = {1, 2, 7, 33};
  const double h = 1e-5;
  for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
    int n = cols[i];
    double x[40], c[40], y[40], dx[40];
    float random[80];
    test_random_fill(random, 80, 11 + i);
    for (int j = 0; j < n; j++) x[j] = 2 * random[j], c[j] = random[40 + j];
    softmax_forward_cpu(y, x, 1, n);
    softmax_backward_cpu(dx, c, y, 1, n);
    for (int j = 0; j < n; j++) {
      double side[2];
      for (int s = 0; s < 2; s++) {
        double was = x[j];
        x[j] += s == 0 ? h : -h;
        softmax_forward_cpu(y, x, 1, n);
        x[j] = was;
        side[s] = 0;
        for (int k = 0; k < n; k++) side[s] += c[k] * y[k];
      }
      double slope = (side[0] - side[1]) / (2 * h);
      if (!(fabs(slope - dx[j]) < 1e-9)) fail_msg("%d scores, element %d: %.12g, but slope %.12g", n, j, dx[j], slope);
    }
  }
}

/* The results equal PyTorch's. */
static void the_definition_is_that_of_pytorch(void **state) {
  (void)state;
  enum { N = GOLDEN_ROWS * GOLDEN_COLS };
  float y[N], dx[N];
  softmax_forward_cpu(y, golden_x, GOLDEN_ROWS, GOLDEN_COLS);
  softmax_backward_cpu(dx, golden_dy, golden_y, GOLDEN_ROWS, GOLDEN_COLS);
  Comparison c = compare_arrays(y, golden_y, GOLDEN_ROWS, GOLDEN_COLS, tolerance_make(FLT_EPSILON, 0));
  if (!c.ok) fail_msg("y: %s", c.message);
  c = compare_arrays(dx, golden_dx, GOLDEN_ROWS, GOLDEN_COLS, tolerance_make(FLT_EPSILON, FLT_EPSILON)); /* y rounded */
  if (!c.ok) fail_msg("dx: %s", c.message);
}

/* Works in place: y is x, dx is dy. */
static void in_place(void **state) {
  (void)state;
  test_requires_gpu();
  const int cols[] = {5, 200, 1000, 1031, 3000, 16400, 33000};
  for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
    size_t n = (size_t)3 * cols[i];
    float *x = arrays_random(n, 21), *y = arrays_poison(n), *dy = arrays_random(n, 22), *dx = arrays_poison(n);
    softmax_forward_cpu(y, x, 3, cols[i]);
    softmax_backward_cpu(dx, dy, y, 3, cols[i]);
    float *device_x = arrays_upload(DEVICE_GPU, x, n), *device_dy = arrays_upload(DEVICE_GPU, dy, n);
    softmax_forward_gpu(device_x, device_x, 3, cols[i]);
    softmax_backward_gpu(device_dy, device_dy, device_x, 3, cols[i]);
    arrays_download(DEVICE_GPU, x, device_x, n, "x");
    arrays_download(DEVICE_GPU, dy, device_dy, n, "dy");
    Comparison c = compare_arrays(x, y, 3, (size_t)cols[i], tolerance_softmax(cols[i], 8));
    if (!c.ok) fail_msg("y, %d columns: %s", cols[i], c.message);
    double length = cols[i], error = FLT_EPSILON * (8 + fmin(length, 4 * sqrt(length)));
    c = compare_arrays(dy, dx, 3, (size_t)cols[i], tolerance_make(error, error / fmin(length, 8)));
    if (!c.ok) fail_msg("dx, %d columns: %s", cols[i], c.message);
    free(x);
    free(y);
    free(dy);
    free(dx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_is_that_of_pytorch),
      cmocka_unit_test(in_place),
      cmocka_unit_test(every_forward_is_the_definition),
      cmocka_unit_test(long_rows),
      cmocka_unit_test(scores_at_the_limits),
      cmocka_unit_test(rows_add_up_to_one),
      cmocka_unit_test(every_backward_is_the_definition),
      cmocka_unit_test(the_gradient_is_a_difference),
  };
  return TEST_MAIN("softmax", tests);
}
