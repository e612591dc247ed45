/* Softmax and dropout in one pass: against the loops, the loops against central differences; rows of all kinds. */
#include "phase1_building_blocks/12_dropout/softmax_dropout.cuh"

#include "common/test_arrays.h"

#define P 0.4f
enum { SEED = 7, STREAM = 3 };

/* Of a probability: see softmax_dropout_lesson.cuh. */
static double probability_error(int cols) { return (16 + fmin(cols, 4 * sqrt((double)cols))) * FLT_EPSILON; }

/* Compares forward (kernels 0 and 1) and backward (2 and 3) on the GPU with the loops. Arrays begin `offset` floats past an aligned address; with
 * an offset only the fallback kernels can run. */
static void check(const float *x, const float *dy, int rows, int cols, size_t offset) {
  size_t n = (size_t)rows * cols;
  float *expected = arrays_poison(n), *actual = arrays_poison(n + offset), *padded = arrays_poison(n + offset);
  memcpy(padded + offset, x, n * sizeof *x);
  float *device_x = arrays_upload(DEVICE_GPU, padded, n + offset);
  memcpy(padded + offset, dy, n * sizeof *dy);
  float *device_dy = arrays_upload(DEVICE_GPU, padded, n + offset);
  double error = probability_error(cols), largest = 0;
  for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(dy[i]) / (1 - P));
  static const char *const names[] = {"forward, fused", "forward", "backward", "backward, passes"};
  for (int kernel = 0; kernel < 4; kernel++) {
    const int backward = kernel >= 2;
    compare_poison(actual, n + offset);
    float *device_y = arrays_upload(DEVICE_GPU, actual, n + offset);
    if (!backward) {
      (kernel == 0 ? softmax_dropout_forward_fused : softmax_dropout_forward_gpu)(device_y + offset, device_x + offset,
                                                                                  rows, cols, P, SEED, STREAM);
      softmax_dropout_forward_cpu(expected, x, rows, cols, P, SEED, STREAM);
    } else {
      (kernel == 2 ? softmax_dropout_backward_gpu : softmax_dropout_backward_passes)(
          device_y + offset, device_x + offset, device_dy + offset, rows, cols, P, SEED, STREAM);
      softmax_dropout_backward_cpu(expected, x, dy, rows, cols, P, SEED, STREAM);
    }
    arrays_download(DEVICE_GPU, actual, device_y, n + offset, "y");
    Tolerance tolerance = tolerance_make(error, backward ? 3 * error * largest : FLT_MIN);
    tolerance.nan_equal = 1;
    Comparison c = compare_arrays(actual + offset, expected, rows, cols, tolerance);
    if (!c.ok) fail_msg("%s, (%d,%d), offset %zu: %s", names[kernel], rows, cols, offset, c.message);
    for (size_t i = 0; i < offset; i++) assert_true(compare_is_poison(&actual[i]));
  }
  arrays_download(DEVICE_GPU, NULL, device_x, n + offset, "x");
  arrays_download(DEVICE_GPU, NULL, device_dy, n + offset, "dy");
  free(expected);
  free(actual);
  free(padded);
}

static void kernels_match_the_loops(void **state) {
  (void)state;
  test_requires_gpu();
  /* each size of kernel, whole and cut off, rows that begin anywhere, and rows too long for the registers */
  const int shapes[][2] = {{1, 1},     {3, 2},     {9, 3},     {5, 4},     {2, 31},   {7, 33},   {3, 127},  {5, 256},
                           {3, 257},   {6, 512},   {2, 1021},  {5, 1024},  {3, 1025}, {2, 4096}, {2, 4099}, {1, 8191},
                           {2, 16384}, {1, 16387}, {2, 32768}, {1, 32771}, {3, 2048}, {7, 512}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    size_t n = (size_t)shapes[i][0] * shapes[i][1];
    float *x = arrays_random(n, 1), *dy = arrays_random(n, 2);
    for (size_t offset = 0; offset < 2; offset++) check(x, dy, shapes[i][0], shapes[i][1], offset);
    free(x);
    free(dy);
  }
}

/* All equal, one huge, ruled out by -inf, denormals, nothing but -inf (NaN, but for what is dropped), NaN. */
static void rows_of_extremes(void **state) {
  (void)state;
  test_requires_gpu();
  enum { ROWS = 7, COLS = 101 };
  float x[ROWS][COLS], dy[ROWS][COLS];
  test_random_fill(&x[0][0], ROWS * COLS, 1);
  test_random_fill(&dy[0][0], ROWS * COLS, 2);
  for (int c = 0; c < COLS; c++) {
    x[0][c] = -1e30f;
    x[2][c] = c % 3 == 0 ? -INFINITY : x[2][c];
    x[3][c] = 1e-41f * c;
    x[4][c] = -INFINITY;
  }
  x[1][70] = 3e38f;
  x[5][100] = NAN;
  x[6][0] = INFINITY;
  check(&x[0][0], &dy[0][0], ROWS, COLS, 0);
  check(&x[0][0], &dy[0][0], ROWS, COLS, 1);
}

/* dx against (L(x + h) - L(x - h)) / 2h, L the sum of y dy, all in double. */
static void backward_is_the_derivative(void **state) {
  (void)state;
  enum { ROWS = 3, COLS = 17, N = ROWS * COLS };
  double x[N], dy[N], dx[N], above[N], below[N];
  const double h = 1e-6;
  float random[2 * N];
  test_random_fill(random, 2 * N, 5);
  for (int i = 0; i < N; i++) x[i] = 2 * random[i], dy[i] = random[N + i];
  softmax_dropout_backward_cpu(dx, x, dy, ROWS, COLS, P, SEED, STREAM);
  for (int i = 0; i < N; i++) {
    double saved = x[i], slope = 0;
    x[i] = saved + h;
    softmax_dropout_forward_cpu(above, x, ROWS, COLS, P, SEED, STREAM);
    x[i] = saved - h;
    softmax_dropout_forward_cpu(below, x, ROWS, COLS, P, SEED, STREAM);
    x[i] = saved;
    for (int j = 0; j < N; j++) slope += (above[j] - below[j]) * dy[j] / (2 * h);
    assert_true(fabs(slope - dx[i]) < 1e-8); /* h^2 times a third derivative, and 1e-16 / h of rounding */
  }
}

/* One kernel gives the results of two: the mask is the same, p = 0 is a softmax, and p = 1 gives zeros. */
static void fused_is_separate(void **state) {
  (void)state;
  test_requires_gpu();
  enum { ROWS = 5, COLS = 333, N = ROWS * COLS };
  const float ps[] = {0, 0.1f, 0.999f, 1};
  float *x = arrays_random(N, 1), y[N], both[N];
  for (size_t k = 0; k < sizeof ps / sizeof *ps; k++) {
    float *device_x = arrays_upload(DEVICE_GPU, x, N), *device_y = guard_alloc(DEVICE_GPU, N);
    float *device_both = guard_alloc(DEVICE_GPU, N), *device_s = guard_alloc(DEVICE_GPU, N);
    softmax_dropout_forward_gpu(device_y, device_x, ROWS, COLS, ps[k], SEED, STREAM);
    softmax_dropout_forward_separate(device_both, device_s, device_x, ROWS, COLS, ps[k], SEED, STREAM);
    arrays_download(DEVICE_GPU, y, device_y, N, "y");
    arrays_download(DEVICE_GPU, both, device_both, N, "y of two kernels");
    arrays_download(DEVICE_GPU, NULL, device_s, N, "s");
    arrays_download(DEVICE_GPU, NULL, device_x, N, "x");
    assert_comparison(compare_arrays(y, both, ROWS, COLS, tolerance_make(probability_error(COLS), 0)));
    for (int i = 0; i < N; i++) {
      assert_true((y[i] == 0) == (both[i] == 0));
      if (ps[k] == 0) assert_true(y[i] > 0);
      if (ps[k] == 1) assert_true(y[i] == 0);
    }
  }
  free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_match_the_loops),
      cmocka_unit_test(rows_of_extremes),
      cmocka_unit_test(backward_is_the_derivative),
      cmocka_unit_test(fused_is_separate),
  };
  return TEST_MAIN("softmax_dropout", tests);
}
