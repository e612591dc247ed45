/* Every version against the definition: ragged shapes, misaligned arrays, in place, more rows than blocks, and numbers
 * at the limits of float; the definition against numbers computed by hand. */
#include "phase1_building_blocks/13_fused_batchnorm_relu_softmax/fused_batchnorm_relu_softmax.cuh"

#include "common/test_arrays.h"
#include "phase1_building_blocks/08_softmax/testdata/softmax_golden.h"

typedef void Fused(float *y, const float *x, const float *mean, const float *variance, const float *gamma,
                   const float *beta, int rows, int cols);

static const struct {
  const char *name;
  Fused *fused;
} versions[] = {
    {"separate", batchnorm_relu_softmax_separate}, {"two", batchnorm_relu_softmax_two},
    {"online", batchnorm_relu_softmax_online},     {"fused", batchnorm_relu_softmax_fused},
    {"gpu", batchnorm_relu_softmax_gpu},
};

typedef struct Problem {
  int rows, cols;
  float *x, *column[4]; /* mean, variance, gamma, beta */
} Problem;

static Problem problem_make(int rows, int cols, uint64_t seed) {
  Problem p;
  p.rows = rows;
  p.cols = cols;
  p.x = arrays_random((size_t)rows * cols, seed);
  for (int i = 0; i < 4; i++) p.column[i] = arrays_random((size_t)cols, seed + 10 + i);
  for (int j = 0; j < cols; j++) p.column[1][j] = 0.5f + fabsf(p.column[1][j]);
  return p;
}

static void problem_free(Problem *p) {
  free(p->x);
  for (int i = 0; i < 4; i++) free(p->column[i]);
}

static int misaligned = -1; /* the number of the parameter that does not begin at a multiple of 16 bytes */

/* x begins `offset` floats past an aligned address, y as well, or if `apart` one float more; `in_place`: y is x.
 * `span`: the largest normalised value, whose rounding exp() magnifies. */
static void check(size_t version, const Problem *p, size_t offset, int apart, int in_place, double span,
                  const char *what) {
  size_t n = (size_t)p->rows * p->cols, y_offset = offset + (size_t)apart;
  float *expected = arrays_poison(n), *actual = arrays_poison(n + y_offset), *padded = arrays_random(n + offset, 9);
  memcpy(padded + offset, p->x, n * sizeof *padded);
  batchnorm_relu_softmax_cpu(expected, p->x, p->column[0], p->column[1], p->column[2], p->column[3], p->rows, p->cols);
  float *x = arrays_upload(DEVICE_GPU, padded, n + offset), *y = x, *column[4];
  if (!in_place) y = arrays_upload(DEVICE_GPU, actual, n + y_offset);
  for (int i = 0; i < 4; i++) {
    float *shifted = arrays_random((size_t)p->cols + 1, 8);
    memcpy(shifted + (i == misaligned), p->column[i], (size_t)p->cols * sizeof *shifted);
    column[i] = arrays_upload(DEVICE_GPU, shifted, (size_t)p->cols + 1) + (i == misaligned);
    free(shifted);
  }
  versions[version].fused(y + (in_place ? offset : y_offset), x + offset, column[0], column[1], column[2], column[3],
                          p->rows, p->cols);
  arrays_download(DEVICE_GPU, in_place ? padded : actual, y, in_place ? n + offset : n + y_offset, "y");
  if (!in_place) arrays_download(DEVICE_GPU, NULL, x, n + offset, "x");
  for (int i = 0; i < 4; i++)
    arrays_download(DEVICE_GPU, NULL, column[i] - (i == misaligned), (size_t)p->cols + 1, "a parameter");
  double length = p->cols;
  Tolerance t = tolerance_make(FLT_EPSILON * (16 + 4 * span + fmin(length, 4 * sqrt(length))), FLT_MIN);
  t.nan_equal = 1;
  const float *got = in_place ? padded + offset : actual + y_offset;
  Comparison c = compare_arrays(got, expected, (size_t)p->rows, (size_t)p->cols, t);
  if (!c.ok)
    fail_msg("%s, %s (%d,%d), offset %zu%s%s: %s", versions[version].name, what, p->rows, p->cols, offset,
             apart ? ", apart" : "", in_place ? ", in place" : "", c.message);
  free(expected);
  free(actual);
  free(padded);
}

static void every_version_is_the_definition(void **state) {
  (void)state;
  test_requires_gpu();
  const int shapes[][2] = {{1, 1},    {5, 2},    {33, 3},  {31, 33},  {3, 127},   {700, 5},  {9, 128},
                           {5, 256},  {4, 257},  {3, 509}, {2, 1024}, {40, 1031}, {3, 2052}, {1, 4099},
                           {2, 8192}, {1, 8196}, {5, 512}, {2, 516},  {3, 2048},  {7, 4096}, {1, 4100}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    Problem p = problem_make(shapes[i][0], shapes[i][1], i);
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
      check(v, &p, 0, 0, 0, 8, "random");
      check(v, &p, 1, 0, 0, 8, "random");
      check(v, &p, 3, 0, 1, 8, "random");
      check(v, &p, 2, 1, 0, 8, "random");
    }
    problem_free(&p);
  }
}

static void a_parameter_may_be_misaligned(void **state) {
  (void)state;
  test_requires_gpu();
  Problem p = problem_make(3, 20, 40);
  for (misaligned = 3; misaligned >= 0; misaligned--)
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) check(v, &p, 0, 0, 0, 8, "misaligned parameter");
  problem_free(&p);
}

/* With more rows than the GPU holds at once, a block processes a second and a third row: rows for a warp, and rows for
 * a block. */
static void more_rows_than_the_gpu_holds(void **state) {
  (void)state;
  test_requires_gpu();
  int device, multiprocessors, threads;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device));
  const int threads_of_a_row[] = {32, 256}, cols[] = {5, 1027};
  for (int i = 0; i < 2; i++) {
    Problem p = problem_make(2 * multiprocessors * threads / threads_of_a_row[i] + 7, cols[i], 50 + i);
    for (size_t v = 3; v < sizeof versions / sizeof *versions; v++) check(v, &p, 0, 0, 0, 8, "many rows");
    problem_free(&p);
  }
}

static void numbers_at_the_limits(void **state) {
  (void)state;
  test_requires_gpu();
  const int cols[] = {1, 3, 31, 300, 1100};
  for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
    int n = cols[i];
    Problem p = problem_make(6, n, 77 + i);
    for (int j = 0; j < n; j++) {
      for (int k = 0; k < 4; k++) p.column[k][j] = 1;
      p.column[0][j] = 0;
      p.column[1][j] = j % 3 == 0 ? 0 : 1; /* a column that never changes */
      p.column[3][j] = 0;
      p.x[0 * n + j] = -5;                                /* all below 0: all alike after ReLU */
      p.x[1 * n + j] = j == n / 2 ? 200.0f : 0.1f;        /* exp() of it is infinite as a float */
      p.x[2 * n + j] = j == n / 3 ? NAN : p.x[2 * n + j]; /* NaN in the whole row */
      p.x[3 * n + j] = j == n / 3 ? -INFINITY : 0;        /* 0 after ReLU */
      p.x[4 * n + j] = j == n / 3 ? INFINITY : 0;         /* NaN */
      p.x[5 * n + j] = 1e-40f;
    }
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) check(v, &p, i % 4, 0, 0, 70000, "limits");
    problem_free(&p);
  }
}

/* (3 - 1) / sqrt(4) * 2 + 1 = 3; (1 - 2) / 1 * 1 + 0 = -1, 0 after ReLU; (0.5 - 0) / 0.5 * 1 + 0 = 1. */
static void the_definition_by_hand(void **state) {
  (void)state;
  const float x[] = {3, 1, 0.5f}, mean[] = {1, 2, 0}, gamma[] = {2, 1, 1}, beta[] = {1, 0, 0};
  const float variance[] = {4 - BATCHNORM_EPSILON, 1 - BATCHNORM_EPSILON, 0.25f - BATCHNORM_EPSILON};
  const double z[] = {3, 0, 1}, sum = exp(3) + exp(0) + exp(1);
  float y[3];
  batchnorm_relu_softmax_cpu(y, x, mean, variance, gamma, beta, 1, 3);
  for (int j = 0; j < 3; j++)
    if (!(fabs(y[j] - exp(z[j]) / sum) < 1e-6)) fail_msg("element %d: %.9g, not %.9g", j, y[j], exp(z[j]) / sum);
}

static void the_definition_is_that_of_pytorch(void **state) {
  (void)state;
  float y[GOLDEN_ROWS * GOLDEN_COLS];
  batchnorm_relu_softmax_cpu(y, golden_features, golden_mean, golden_variance, golden_gamma, golden_beta, GOLDEN_ROWS,
                             GOLDEN_COLS);
  Comparison c = compare_arrays(y, golden_fused, GOLDEN_ROWS, GOLDEN_COLS, tolerance_make(FLT_EPSILON, 0));
  if (!c.ok) fail_msg("%s", c.message);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definition_is_that_of_pytorch),
      cmocka_unit_test(every_version_is_the_definition),
      cmocka_unit_test(a_parameter_may_be_misaligned),
      cmocka_unit_test(more_rows_than_the_gpu_holds),
      cmocka_unit_test(numbers_at_the_limits),
      cmocka_unit_test(the_definition_by_hand),
  };
  return TEST_MAIN("fused_batchnorm_relu_softmax", tests);
}
