/* lesson.h: a version that is right passes, and each way of being wrong is called by its name. */
#include "common/lesson/table.h"
#include "common/test.h"

/* y (r,c) = 2 x (r,c), the lesson of this test. */
static void scale_cpu(float *y, const float *x, int rows, int cols) {
  for (int i = 0; i < rows * cols; i++) y[i] = 2 * x[i];
}

enum Mistake { NONE, NO_EDGE, PAST_THE_END, INTO_THE_INPUT, RACE, ADD_A_BIT, TRAP };

static __global__ void scale_kernel(float *y, float *x, int n, Mistake mistake, float bit) {
  __shared__ float last;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (mistake == NO_EDGE && blockIdx.x == gridDim.x - 1 && n % blockDim.x != 0) return;
  if (mistake == RACE) last = (float)i; /* by all threads: harmless here, and no less wrong */
  if (i < n + (mistake == PAST_THE_END)) y[i] = 2 * (i < n ? x[i] : 1) + bit;
  if (mistake == INTO_THE_INPUT && i == 2) x[i] = 0;
  if (mistake == TRAP) __trap();
  if (mistake == RACE && last < -1) y[0] = last;
}

static void scale_with(Mistake mistake, float *y, const float *x, int rows, int cols, float bit) {
  int n = rows * cols;
  scale_kernel<<<(n + 31) / 32 + (mistake == PAST_THE_END), 32>>>(y, (float *)x, n, mistake, bit);
  CUDA_CHECK_LAUNCH();
}

static int runs; /* of a version that changes from run to run */
static void scale(float *y, const float *x, int rows, int cols) { scale_with(NONE, y, x, rows, cols, 0); }
static void scale_nothing(float *, const float *, int, int) {}
static void scale_whole_blocks(float *y, const float *x, int r, int c) { scale_with(NO_EDGE, y, x, r, c, 0); }
static void scale_too_far(float *y, const float *x, int r, int c) { scale_with(PAST_THE_END, y, x, r, c, 0); }
static void scale_too_far_and_wrong(float *y, const float *x, int r, int c) { scale_with(PAST_THE_END, y, x, r, c, 1); }
static void scale_input(float *y, const float *x, int r, int c) { scale_with(INTO_THE_INPUT, y, x, r, c, 0); }
static void scale_race(float *y, const float *x, int r, int c) { scale_with(RACE, y, x, r, c, 0); }
#ifdef SIMT_REWRITTEN
static void scale_trap(float *y, const float *x, int r, int c) { scale_with(TRAP, y, x, r, c, 0); }
#endif
static void scale_shaky(float *y, const float *x, int r, int c) { scale_with(ADD_A_BIT, y, x, r, c, 1e-3f * runs++); }
static void scale_once(float *y, const float *x, int r, int c) {
  if (runs++ % 2 == 0) scale(y, x, r, c);
}
static void scale_but_large(float *y, const float *x, int r, int c) {
  if (r < 50) scale(y, x, r, c);
}

typedef void ScaleLauncher(float *y, const float *x, int rows, int cols);

static void scale_call(LessonLauncher launch, float *const *array, const int *size) {
  ((ScaleLauncher *)launch)(array[0], array[1], size[0], size[1]);
}

static Lesson scale_lesson(void) {
  Lesson lesson = lesson_make("scale", "rc", scale_call, (LessonLauncher)scale_cpu);
  lesson_output(&lesson, "y", "rc");
  lesson_input(&lesson, "x", "rc");
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1, 1));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 7, 13));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 64, 32));
  return lesson;
}

/* picked (b) = x (b, labels[b]), total = their number; x and picked are bfloat16: the kinds of elements. */
enum PickMistake { PICK_RIGHT, PICK_TWICE, PICK_PAST_THE_END, PICK_NO_TOTAL, PICK_INTO_LABELS };

static __global__ void pick_kernel(__nv_bfloat16 *picked, int *total, const __nv_bfloat16 *x, int *labels, int batch,
                                   int classes, PickMistake mistake) {
  int b = threadIdx.x;
  if (b < batch) picked[b] = __float2bfloat16((mistake == PICK_TWICE ? 2 : 1) * (float)x[b * classes + labels[b]]);
  if (b == batch && mistake == PICK_PAST_THE_END) picked[b] = x[0];
  if (b == 0 && mistake != PICK_NO_TOTAL) *total = batch;
  if (b == 0 && mistake == PICK_INTO_LABELS) labels[0] = classes;
}

template <int MISTAKE>
static void pick(__nv_bfloat16 *picked, int *total, const __nv_bfloat16 *x, const int *labels, int batch, int classes) {
  pick_kernel<<<1, 64>>>(picked, total, x, (int *)labels, batch, classes, (PickMistake)MISTAKE);
  CUDA_CHECK_LAUNCH();
}

static void pick_cpu(__nv_bfloat16 *picked, int *total, const __nv_bfloat16 *x, const int *labels, int batch, int c) {
  for (int b = 0; b < batch; b++) picked[b] = x[b * c + labels[b]];
  *total = batch;
}

typedef void PickLauncher(__nv_bfloat16 *picked, int *total, const __nv_bfloat16 *x, const int *labels, int, int);

static void pick_call(LessonLauncher launch, float *const *array, const int *size) {
  ((PickLauncher *)launch)((__nv_bfloat16 *)array[0], (int *)array[1], (const __nv_bfloat16 *)array[2],
                           (const int *)array[3], size[0], size[1]);
}

static Lesson pick_lesson(void) {
  Lesson lesson = lesson_make("pick", "bc", pick_call, (LessonLauncher)pick_cpu);
  lesson_output(&lesson, "picked", "b");
  lesson_element(&lesson, "picked", LESSON_BFLOAT16);
  lesson_output(&lesson, "total", "");
  lesson_element(&lesson, "total", LESSON_INT);
  lesson_input(&lesson, "x", "bc");
  lesson_element(&lesson, "x", LESSON_BFLOAT16);
  lesson_range(&lesson, "x", 5, 7);
  lesson_extreme(&lesson, "x", 1e30f);
  lesson_labels(&lesson, "labels", "b", 'c');
  return lesson;
}

static LessonResult result; /* large */

static int verify(const Lesson *lesson, ScaleLauncher *launch, int rows, int cols) {
  LessonVersion version = lesson_version("scaled", (LessonLauncher)launch, "");
  LessonShape shape = lesson_shape(lesson, rows, cols);
  runs = 0;
  return lesson_verify(lesson, &version, &shape, 7, &result);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void sizes_come_from_the_letters(void **state) {
  (void)state;
  Lesson lesson = lesson_make("product", "mnk", NULL, NULL);
  lesson_output(&lesson, "c", "mn");
  lesson_input(&lesson, "a", "mk");
  lesson_input(&lesson, "b", "kn");
  LessonShape shape = lesson_shape(&lesson, 3, 5, 7);
  char text[LESSON_TEXT];
  assert_int_equal(lesson_elements(&lesson, &lesson.array[1], shape.size), 21);
  assert_int_equal(lesson_columns(&lesson, &lesson.array[2], shape.size), 5);
  assert_true(lesson_bytes(&lesson, shape.size) == 4 * (15 + 21 + 35));
  assert_true(lesson_flops(&lesson, shape.size) == 0);
  assert_string_equal(lesson_shape_text(&lesson, &shape, text), "3x5x7");
}

/* The sum of products, but for one mistake. */
enum SumMistake {
  SUM_LAST_MISSING,
  SUM_FIRST_ONLY,
  SUM_EACH_FOURTH,
  SUM_TWICE,
  SUM_EXCHANGED,
  SUM_ROWS,
  SUM_NO_B,
  SUMS
};

static float sum_wrong(const float *a, const float *b, int row, int col, const int *size, int mistake) {
  const int n = size[1], k = size[2];
  float sum = 0;
  for (int i = 0; i < k; i++) {
    if (mistake == SUM_LAST_MISSING && i == k - 1) continue;
    if (mistake == SUM_FIRST_ONLY && i > 0) continue;
    if (mistake == SUM_EACH_FOURTH && i % 4 != 1) continue;
    float x = a[mistake == SUM_ROWS ? row * n + i : row * k + i];
    float y = mistake == SUM_NO_B ? 1 : b[mistake == SUM_EXCHANGED ? col * k + i : i * n + col];
    sum += (mistake == SUM_TWICE && i == 2 ? 2 : 1) * x * y;
  }
  return sum;
}

static Tolerance sum_tolerance(const int *size) { return tolerance_dot((size_t)size[2], 1); }

static void a_wrong_sum_is_recognised(void **state) {
  (void)state;
  static const char *const says[SUMS] = {"without the last: the loop ends too early",
                                         "of the first term alone",
                                         "of each 4th term alone, from term 1 on",
                                         "with term 2 twice",
                                         "with b read as if it were (n,k) and not (k,n)",
                                         "with a read as if its rows had n = 5 elements",
                                         "with b left out of the products"};
  Lesson lesson = lesson_make("product", "mnk", NULL, NULL);
  lesson_output(&lesson, "c", "mn");
  lesson_input(&lesson, "a", "mk");
  lesson_input(&lesson, "b", "kn");
  lesson_input(&lesson, "h", "mn");
  lesson.tolerance = sum_tolerance;
  LessonShape shape = lesson_shape(&lesson, 3, 5, 7);
  const int *size = shape.size;
  for (int slope = 0; slope < 2; slope++) /* also where the sum is but a factor of the result */
    for (int mistake = 0; mistake < SUMS; mistake++) {
      LessonHost host;
      float wrong[15];
      lesson_host_open(&lesson, &shape, 3, &host);
      for (int i = 0; i < 15; i++) {
        float factor = slope ? 1 + host.array[3][i] * host.array[3][i] : 1;
        host.array[0][i] = factor * sum_wrong(host.array[1], host.array[2], i / 5, i % 5, size, SUMS);
        wrong[i] = factor * sum_wrong(host.array[1], host.array[2], i / 5, i % 5, size, mistake);
      }
      void *const got[] = {wrong, host.array[1], host.array[2], host.array[3]};
      LessonOutcome outcome = lesson_outcome_open(&lesson, size, &host, got);
      Comparison compared[LESSON_ARRAYS];
      memset(compared, 0, sizeof compared);
      memset(&result, 0, sizeof result);
      compared[0] = compare_arrays(wrong, host.array[0], 3, 5, sum_tolerance(size));
      lesson_fail_outputs(&outcome, compared, &result);
      if (strstr(result.message, says[mistake]) == NULL) fail_msg("%s: %s", says[mistake], result.message);
      assert_non_null(strstr(result.message, "In all wrong elements your sum over k (7 terms) is the one "));
      assert_non_null(strstr(result.message, "element"));
      assert_non_null(strstr(result.message, mistake == SUM_ROWS ? "c[1][0]" : "c[0][0]")); /* row 0 is right */
      for (int i = 0; i < 13; i++) outcome.computed[0][i] = outcome.right[0][i];            /* two say nothing */
      compared[0] = compare_arrays(outcome.computed[0], host.array[0], 3, 5, sum_tolerance(size));
      memset(&result, 0, sizeof result);
      lesson_fail_outputs(&outcome, compared, &result);
      assert_null(strstr(result.message, "your sum over k"));
      lesson_outcome_close(&outcome);
      lesson_host_close(&lesson, &host);
    }
}

/* dx = y dy - r y, with an r of each row that is in no array: r is wrong. */
static void a_wrong_rest_is_recognised(void **state) {
  (void)state;
  static const char *const says[] = {
      "What your value adds to dy * y has the opposite sign.",
      "What your value adds to dy * y is 0.2 times what it should be.",
      "What your value adds to dy * y has a wrong factor in each row (row 0: 2, row 1: 3)."};
  Lesson lesson = lesson_make("rest", "rc", NULL, NULL);
  lesson_output(&lesson, "dx", "rc");
  lesson_input(&lesson, "dy", "rc");
  lesson_input(&lesson, "y", "rc");
  LessonShape shape = lesson_shape(&lesson, 7, 5);
  for (int mistake = 0; mistake < 3; mistake++) {
    LessonHost host;
    float wrong[35];
    lesson_host_open(&lesson, &shape, 3, &host);
    for (int i = 0; i < 35; i++) {
      int row = i / 5;
      float y = host.array[2][i], product = host.array[1][i] * y, rest = (float)(3 + row * row % 11) * y * y;
      host.array[0][i] = product - rest;
      wrong[i] = product - (mistake == 0 ? -rest : mistake == 1 ? 0.2f * rest : (float)(2 + row) * rest);
    }
    void *const got[] = {wrong, host.array[1], host.array[2]};
    LessonOutcome outcome = lesson_outcome_open(&lesson, shape.size, &host, got);
    Comparison compared[LESSON_ARRAYS];
    memset(compared, 0, sizeof compared);
    memset(&result, 0, sizeof result);
    compared[0] = compare_arrays(wrong, host.array[0], 7, 5, lesson.tolerance(shape.size));
    lesson_fail_outputs(&outcome, compared, &result);
    if (strstr(result.message, says[mistake]) == NULL) fail_msg("%s: %s", says[mistake], result.message);
    lesson_outcome_close(&outcome);
    lesson_host_close(&lesson, &host);
  }
}

/* y (r,c) = the sum of exp(x (r,k)) w (k,c), of the rows up to r, times the factor of the row that `order` names: no
 * formula and no sum of products knows that, and the mistakes are those of indices and loops. */
enum IndexMistake {
  INDEX_FIRST_COLUMNS,
  INDEX_TILE_TURNED,
  INDEX_TILES_EXCHANGED,
  INDEX_FIRST_OF_FOUR,
  INDEX_SECOND_AND_THIRD,
  INDEX_STEP_TOO_LARGE,
  INDEX_STOPS,
  INDEX_NO_LOOKUP,
  INDEX_NO_ROOT,
  INDEX_BACKWARDS,
  INDEX_ALTERNATIVE,
  INDEX_RIGHT
};

static void index_wrong(float *y, const float *x, const float *w, const float *factor, const int *order,
                        const int *size, int mistake, float scale) {
  const int rows = size[0], cols = size[1], n = size[2];
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < cols; c++) {
      double sum = 0;
      for (int from = 0; from < rows; from++)
        for (int k = 0; k < n; k++) {
          int row = from, i = k, j = k, column = c;
          if (mistake == INDEX_BACKWARDS ? from < r : from > r) continue;
          if (mistake == INDEX_STEP_TOO_LARGE && k / 8 % 2 != 0) continue;
          if (mistake == INDEX_STOPS && k >= 16) continue;
          if (mistake == INDEX_FIRST_COLUMNS) i = k % 4;
          if (mistake == INDEX_FIRST_OF_FOUR) row = from / 4 * 4;
          if (mistake == INDEX_SECOND_AND_THIRD) i = k % 4 == 1 ? k + 1 : k % 4 == 2 ? k - 1 : k;
          if (mistake == INDEX_TILE_TURNED) j = k / 4 * 4 + c % 4, column = c / 4 * 4 + k % 4;
          if (mistake == INDEX_TILES_EXCHANGED) j = c / 4 * 4 + k % 4, column = k / 4 * 4 + c % 4;
          float root = mistake == INDEX_NO_ROOT ? sqrtf((float)n) : 1;
          sum += j < n && column < cols ? expf(scale * root * x[row * n + i]) * w[j * cols + column] : 0;
        }
      y[r * cols + c] = (float)sum * factor[mistake == INDEX_NO_LOOKUP ? r : order[r]];
    }
}

static void index_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  index_wrong(array[0], array[1], array[2], array[3], (const int *)array[4], size, INDEX_RIGHT, 0.25f);
}
static void index_plain_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  index_wrong(array[0], array[1], array[2], array[3], (const int *)array[4], size, INDEX_RIGHT, 1);
}
static Tolerance index_tolerance(const int *size) {
  (void)size;
  return tolerance_make(1e-5, 1e-5);
}

static void inputs_that_would_make_it_right_are_named(void **state) {
  (void)state;
  static const char *const says[INDEX_RIGHT] = {"if the first 4 columns of x stood for all others, too",
                                                "if within each tile of 4 x 4 of w rows and columns were exchanged.",
                                                "if the tiles of 4 x 4 of w were exchanged",
                                                "if each 4 rows of x were the first of these",
                                                "if of each four columns of x the second and the third were exchanged.",
                                                "if every second 8 rows of w did not count",
                                                "if only the first 16 rows of w counted",
                                                "if order[i] were i: it is not looked up.",
                                                "if x were multiplied by 4.472 (the root of k).",
                                                "if r ran backwards",
                                                "if nothing were scaled."};
  Lesson lesson = lesson_make("indices", "rck", index_call, (LessonLauncher)scale_nothing);
  lesson_output(&lesson, "y", "rc");
  lesson_input(&lesson, "x", "rk");
  lesson_input(&lesson, "w", "kc");
  lesson_input(&lesson, "factor", "r");
  lesson_labels(&lesson, "order", "r", 'r');
  lesson.tolerance = index_tolerance;
  lesson_alternative(&lesson, "nothing were scaled", index_plain_call);
  LessonShape shape = lesson_shape(&lesson, 9, 7, 20);
  for (int mistake = 0; mistake <= INDEX_RIGHT; mistake++) {
    const int unknown = mistake == INDEX_RIGHT; /* and noise, which nothing explains */
    LessonHost host;
    float wrong[9 * 7];
    lesson_host_open(&lesson, &shape, 3, &host);
    index_call(NULL, host.array, shape.size);
    index_wrong(wrong, host.array[1], host.array[2], host.array[3], (const int *)host.array[4], shape.size, mistake,
                mistake == INDEX_ALTERNATIVE ? 1 : 0.25f);
    for (int i = 0; i < 9 * 7 && unknown; i++) wrong[i] += (float)(i * i % 17);
    void *const got[] = {wrong, host.array[1], host.array[2], host.array[3], host.array[4]};
    LessonOutcome outcome = lesson_outcome_open(&lesson, shape.size, &host, got);
    char text[1024] = "";
    const int said = lesson_whatif(&outcome, 0, index_tolerance(shape.size), text, sizeof text);
    if (unknown ? said != 0 : strstr(text, says[mistake]) == NULL)
      fail_msg("expected \"%s\", got \"%s\"", unknown ? "" : says[mistake], text);
    lesson_outcome_close(&outcome);
    lesson_host_close(&lesson, &host);
  }
}

/* What a right output depends on is not the cause. */
static void a_right_output_is_named(void **state) {
  (void)state;
  Lesson lesson = lesson_make("two", "n", NULL, NULL);
  lesson_output(&lesson, "p", "n");
  lesson_output(&lesson, "q", "n");
  LessonShape shape = lesson_shape(&lesson, 5);
  LessonHost host;
  lesson_host_open(&lesson, &shape, 3, &host);
  float wrong[5] = {1, 4, 9, 2, 3};
  for (int i = 0; i < 5; i++) host.array[0][i] = host.array[1][i] = (float)i + 0.5f;
  void *const got[] = {wrong, host.array[1]};
  LessonOutcome outcome = lesson_outcome_open(&lesson, shape.size, &host, got);
  Comparison compared[LESSON_ARRAYS];
  memset(compared, 0, sizeof compared);
  memset(&result, 0, sizeof result);
  compared[0] = compare_arrays(wrong, host.array[0], 1, 5, tolerance_make(0, 0));
  compared[1] = compare_arrays(host.array[1], host.array[1], 1, 5, tolerance_make(0, 0));
  lesson_fail_outputs(&outcome, compared, &result);
  assert_non_null(strstr(result.message, "p: 5 of 5 elements are wrong"));
  assert_non_null(strstr(result.message, "\nq is right."));
  lesson_outcome_close(&outcome);
  lesson_host_close(&lesson, &host);
}

/* An output that is written in steps is no grid with an edge; and what was never written comes before what is wrong. */
static void a_missing_step_is_named(void **state) {
  (void)state;
  Lesson lesson = lesson_make("steps", "nb", NULL, NULL);
  lesson_output(&lesson, "weights", "n");
  lesson_output(&lesson, "losses", "n");
  lesson_steps(&lesson, "losses", 'b');
  LessonShape shape = lesson_shape(&lesson, 7, 2);
  LessonHost host;
  lesson_host_open(&lesson, &shape, 3, &host);
  float weights[7], losses[7];
  for (int i = 0; i < 7; i++) host.array[0][i] = host.array[1][i] = losses[i] = (float)i + 0.5f;
  for (int i = 0; i < 7; i++) weights[i] = -host.array[0][i];
  compare_poison(losses + 4, 3);
  void *const got[] = {weights, losses};
  LessonOutcome outcome = lesson_outcome_open(&lesson, shape.size, &host, got);
  Comparison compared[LESSON_ARRAYS];
  memset(compared, 0, sizeof compared);
  memset(&result, 0, sizeof result);
  for (int a = 0; a < 2; a++)
    compared[a] = compare_arrays((const float *)got[a], host.array[a], 1, 7, tolerance_make(0, 0));
  assert_int_equal(compared[1].places, DIAGNOSIS_LAST_TILE);
  lesson_fail_outputs(&outcome, compared, &result);
  assert_string_equal(
      result.message,
      "weights: 7 of 7 elements are wrong, which may follow from losses.\n"
      "losses: 3 of 7 elements are wrong, worst at element 4: NaN where 4.5 was expected (tolerance 0). "
      "3 elements were never written. The first of them is element 4, in step 2, counted from 0: each "
      "step writes 2, and there are 4 steps.");
  lesson_outcome_close(&outcome);
  lesson_host_close(&lesson, &host);
}

static void declare_unknown_letter(void) {
  Lesson lesson = lesson_make("wrong", "rc", NULL, NULL);
  lesson_input(&lesson, "x", "rz");
}

static void an_unknown_letter_is_refused(void **state) {
  (void)state;
  char output[1024];
  assert_int_equal(test_fork(declare_unknown_letter, output, sizeof output), 1);
  assert_non_null(strstr(output, "lesson wrong: array x is (rz), but the sizes are (rc)"));
}

static void what_is_right_passes(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
  LessonVersion version = lesson_version("scaled", (LessonLauncher)scale, "");
  if (verify(&lesson, scale, 5, 9) != 0) fail_msg("%s", result.message);
  assert_true(result.ok && result.fault == LESSON_RIGHT && result.findings == 0);
  assert_string_equal(result.message, "scaled on 5x9: right, error 0, tolerance 0");
  assert_int_equal(lesson_verify_all(&lesson, &version, 1, &result), 0);
  assert_non_null(strstr(result.message, "right on 3 shapes"));
#ifdef SIMT_INSPECT
  /* 1 + 3 + 64 warps: each loads once, stores once; 1, 91 and 2048 floats in sectors of 8 */
  assert_true(result.inspected);
  assert_true(result.counts.global_load_requests == 1 + 3 + 64);
  assert_true(result.counts.global_store_sectors == 1 + 12 + 256);
  assert_true(result.counts.launched_blocks == 1 + 3 + 64 && result.counts.launched_threads == 32 * (1 + 3 + 64));
  assert_true(result.counts.working_blocks == 1 + 3 + 64 && result.counts.working_warps == 1 + 3 + 64);
  assert_true(result.counts.working_threads == 1 + 91 + 2048);
#else
  assert_false(result.inspected);
#endif
}

static void assert_found(const char *names) {
  char text[DIAGNOSES_TEXT];
  assert_string_equal(diagnoses_text(&result.found, text, sizeof text), names);
}

/* y (r,o): columns in steps of `step`, times `by`; o follows: a shape with parameters, versions that refuse it, and a
 * workspace, through which the values go. */
typedef struct StepMethod {
  int most_columns; /* 0: any */
  int floats_less;  /* of the workspace than it needs */
} StepMethod;

static int step_at(const int *size) { return size[LESSON_SIZES]; }
static int step_out(const int *size) { return (size[1] - 1) / step_at(size) + 1; }

static int step_check(const int *size, Error *err) {
  if (step_at(size) == 0) return error_set(err, "the step is 0; 1 takes every column");
  return 0;
}

static int step_fits(const void *method, const int *size, Error *err) {
  const int most = ((const StepMethod *)method)->most_columns;
  if (most > 0 && size[1] > most) return error_set(err, "%d columns are more than %d", size[1], most);
  return 0;
}

static size_t step_workspace(const void *method, const int *size) {
  const size_t floats = (size_t)size[0] * (size_t)size[1];
  return (floats - (size_t)((const StepMethod *)method)->floats_less) * sizeof(float);
}

typedef void StepLauncher(float *y, const float *x, int rows, int cols, int step, int by, int more, float *workspace);

static void step_call(LessonLauncher launch, float *const *array, const int *size) {
  const int *given = size + LESSON_SIZES;
  ((StepLauncher *)launch)(array[0], array[1], size[0], size[1], given[0], given[1], given[2], array[2]);
}

static void step_cpu(float *y, const float *x, int rows, int cols, int step, int by, int more, float *workspace) {
  assert_null(workspace);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < cols; c += step) *y++ = (float)(by * more) * x[r * cols + c];
}

static __global__ void step_copy_kernel(float *to, const float *from, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i];
}

static __global__ void step_kernel(float *y, const float *x, int rows, int cols, int step, float factor) {
  int out = (cols - 1) / step + 1;
  for (int i = threadIdx.x; i < rows * out; i += blockDim.x) y[i] = factor * x[i / out * cols + i % out * step];
}

static void steps(float *y, const float *x, int rows, int cols, int step, int by, int more, float *workspace) {
  step_copy_kernel<<<1, 64>>>(workspace, x, rows * cols);
  CUDA_CHECK_LAUNCH();
  step_kernel<<<1, 64>>>(y, workspace, rows, cols, step, (float)(by * more));
  CUDA_CHECK_LAUNCH();
}

/* Reads the workspace before anything is there. */
static void steps_unwritten(float *y, const float *, int rows, int cols, int step, int by, int more, float *workspace) {
  step_kernel<<<1, 64>>>(y, workspace, rows, cols, step, (float)(by * more));
  CUDA_CHECK_LAUNCH();
}

static Lesson step_lesson(void) {
  Lesson lesson = lesson_make("steps", "rc", step_call, (LessonLauncher)step_cpu);
  lesson_parameter(&lesson, "step", 1, 1);
  lesson_parameter(&lesson, "by", 2, 3);
  lesson_derived(&lesson, 'o', step_out);
  lesson.shape_check = step_check;
  lesson.fits = step_fits;
  lesson.workspace = step_workspace;
  lesson_output(&lesson, "y", "ro");
  lesson_input(&lesson, "x", "rc");
  lesson.counted = lesson_shape(&lesson, 4, 10);
  lesson_check_shape(&lesson, lesson_shape_of(&lesson, "3x50:step=7"));
  lesson_check_shape(&lesson, lesson_shape_of(&lesson, "2x9:step=2:by=1x5"));
  lesson_check_shape(&lesson, lesson_shape_of(&lesson, "5x40"));
  return lesson;
}

static void shapes_have_parameters(void **state) {
  (void)state;
  static const char *const good[][2] = {
      {"3x9", "3x9"},     {"3x9:step=1", "3x9"},        {"3x9:by=2x2:step=2,", "3x9:step=2:by=2"},
      {"3x9:by=2", NULL}, {"3x9:by=4x3", "3x9:by=4x3"}, {"3x9:by=3x3,7x7", "3x9"}};
  static const char *const bad[][2] = {
      {"3",
       "2 sizes of at least 1 are expected, rxc, as in 4x10; then, each after a colon, the parameters that are not "
       "step=1, by=3; or"},
      {"3x0", "2 sizes of at least 1"},
      {"3x9x1", "2 sizes of at least 1"},
      {"3x99999999999", "a size is at most 2147483647"},
      {"3x9:", "\"\" is no parameter of this lesson; they are by default step=1, by=3"},
      {"3x9:ste=2", "\"ste=2\" is no parameter"},
      {"3x9:step", "\"step\" is no parameter"},
      {"3x9:step=", "step=: a number of at least 0 is expected"},
      {"3x9:step=-1", "step=-1: a number of at least 0 is expected"},
      {"3x9:step=1x2", "step=1x2: a number of at least 0"},
      {"3x9:by=1x2x3", "by=1x2x3: a number of at least 0 is expected, or one for each axis, as in 2x1"},
      {"3x9:by=1x", "by=1x: a number"},
      {"3x9:step=2:step=2", "step is given twice"},
      {"3x9:step=99999999999", "step: a number is at most 2147483647"},
      {"3x9:step=0", "the step is 0; 1 takes every column"}};
  Lesson lesson = step_lesson();
  LessonShape shape;
  char text[LESSON_TEXT];
  Error err;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    const char *at = good[i][0];
    if (lesson_parse_shape(&lesson, &at, &shape, &err) != 0) fail_msg("%s: %s", good[i][0], err.message);
    assert_int_equal(*at, strchr(good[i][0], ',') != NULL ? ',' : '\0');
    lesson_shape_text(&lesson, &shape, text);
    assert_string_equal(text, good[i][1] != NULL ? good[i][1] : good[i][0]);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const char *at = bad[i][0];
    if (lesson_parse_shape(&lesson, &at, &shape, &err) == 0) fail_msg("%s is taken", bad[i][0]);
    if (strncmp(err.message, bad[i][1], strlen(bad[i][1])) != 0) fail_msg("%s: %s", bad[i][0], err.message);
  }
  static LessonOptions options;
  options.common.device = DEVICE_GPU;
  shape = lesson_shape_of(&lesson, "3x50:step=7");
  if (lesson_fits(&lesson, &options, &shape, 0, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(lesson_elements(&lesson, &lesson.array[0], shape.size), 3 * 8);
  assert_int_equal(lesson_columns(&lesson, &lesson.array[0], shape.size), 8);
  assert_non_null(
      strstr(lesson_shape_help(&lesson), "rxc; then, each after a colon, the parameters that are not step=1"));
}

static void a_workspace_is_watched_and_a_refusal_is_no_fault(void **state) {
  (void)state;
  static const StepMethod any = {0, 0}, narrow = {20, 0}, none = {1, 0}, small = {0, 1};
  Lesson lesson = step_lesson();
  LessonVersion version = lesson_version_of("steps", (LessonLauncher)steps, &any, "");
  if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
  assert_non_null(strstr(result.message, "right on 3 shapes"));
  version.method = &narrow; /* takes one of the three */
  if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
  assert_non_null(strstr(result.message, "right on 1 shapes"));
  assert_int_equal(lesson_verify(&lesson, &version, &lesson.check[2], 1, &result), -1);
  assert_int_equal(result.fault, LESSON_REFUSED);
  assert_non_null(strstr(result.message, "steps on 5x40: 40 columns are more than 20"));
  version.method = &none; /* takes not one */
  assert_int_equal(lesson_verify_all(&lesson, &version, 1, &result), -1);
  assert_non_null(strstr(result.message, "steps takes not one of the shapes to check: 40 columns are more than 1"));
  version.method = NULL; /* then the lesson's */
  lesson.method = &narrow;
  assert_int_equal(lesson_verify(&lesson, &version, &lesson.check[2], 1, &result), -1);
  assert_int_equal(result.fault, LESSON_REFUSED);

  version.method = &small; /* one float less than the version writes */
  assert_int_equal(lesson_verify(&lesson, &version, &lesson.check[0], 1, &result), -1);
  assert_int_equal(result.fault, LESSON_OUTSIDE);
  assert_non_null(strstr(result.message, "Outside its workspace: bytes of workspace (596 elements): 4 written past"));
  assert_found("out_of_bounds");
  version = lesson_version_of("unwritten", (LessonLauncher)steps_unwritten, &any, "");
  assert_int_equal(lesson_verify(&lesson, &version, &lesson.check[0], 1, &result), -1);
#ifdef SIMT_INSPECT
  assert_found("uninitialised_read");
#else
  assert_int_equal(result.fault, LESSON_WRONG); /* the workspace is full of NaN */
  assert_non_null(strstr(result.message, "NaN"));
#endif
}

/* In the table and in the JSON a refusal has a reason and no figures, and nothing is wrong. */
static void a_refused_version_has_no_figures(void **state) {
  (void)state;
  static const StepMethod any = {0, 0}, narrow = {20, 0};
  static LessonOptions options;
  static LessonRun run;
  static LessonRow rows[2];
  Lesson lesson = step_lesson();
  const LessonVersion versions[] = {lesson_version_of("narrow", (LessonLauncher)steps, &narrow, ""),
                                    lesson_version_of("any", (LessonLauncher)steps, &any, "")};
  const LessonTable table = {"Steps", versions, 2};
  const LessonShape shape = lesson_shape_of(&lesson, "3x30:by=2");
  memset(rows, 0, sizeof rows);
  for (int i = 0; i < 2; i++) rows[i].version = &versions[i];
  run.lesson = &lesson;
  run.options = &options;
  run.rows = json_array();
  lesson_check_rows(&run, &shape, rows, 2);
  assert_int_equal(run.wrong, 0);
  assert_true(rows[0].refused && !rows[0].checked && rows[1].checked && rows[1].check.ok && !rows[1].refused);
  assert_true(rows[1].memory == 3 * 30 * sizeof(float));
#ifndef SIMT_REWRITTEN
  lesson_time_rows(&run, &table, &shape, rows);
  assert_true(rows[0].seconds == 0 && rows[0].rate == 0 && rows[1].seconds > 0);
#endif
  lesson_json_rows(&run, &table, &shape, rows);
  const json_t *refused = json_array_get(run.rows, 0), *right = json_array_get(run.rows, 1);
  assert_string_equal(json_string_value(json_object_get(refused, "refused")), "30 columns are more than 20");
  assert_string_equal(json_string_value(json_object_get(refused, "shape")), "3x30:by=2");
  assert_int_equal(json_object_size(refused), 4); /* version, table, shape, refused */
  assert_null(json_object_get(right, "refused"));
  assert_true(json_is_true(json_object_get(right, "ok")));
  assert_int_equal(json_integer_value(json_object_get(right, "memory_bytes")), 360);
  json_decref(run.rows);
}

static void a_workspace_larger_than_the_memory_is_refused(void **state) {
  (void)state;
  static const StepMethod any = {0, 0};
  Lesson lesson = step_lesson();
  const LessonVersion version = lesson_version_of("steps", (LessonLauncher)steps, &any, "");
  const LessonShape shape = lesson_shape_of(&lesson, "1000000x1000000:step=1000000");
  Error err;
  assert_int_equal(lesson_refuses(&lesson, &version, &shape, &err), -1);
  assert_non_null(strstr(err.message, "on 1000000x1000000:step=1000000 it needs a workspace of 3725.29 GiB beside"));
}

static void what_is_wrong_is_diagnosed(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
  assert_int_equal(verify(&lesson, scale_nothing, 5, 9), -1);
  assert_int_equal(result.fault, LESSON_WRONG);
  assert_int_equal(result.values, DIAGNOSIS_NEVER_WRITTEN);
  assert_non_null(strstr(result.message, "scaled on 5x9: y: 45 of 45 elements are wrong"));
  assert_found("never_written everywhere");
  assert_int_equal(verify(&lesson, scale_whole_blocks, 20, 5), -1);
  assert_int_equal(result.places, DIAGNOSIS_LAST_TILE);
  assert_found("never_written last_tile");
  assert_int_equal(verify(&lesson, scale_whole_blocks, 32, 5), 0); /* and where there is no edge it is right */
  assert_found("");
}

static void a_failing_shape_is_named(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
  LessonVersion version = lesson_version("scaled", (LessonLauncher)scale_but_large, "");
  assert_int_equal(lesson_verify_all(&lesson, &version, 1, &result), -1);
  assert_non_null(strstr(result.message, "scaled on 64x32: "));
}

static void writing_outside_is_noticed(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
  assert_int_equal(verify(&lesson, scale_too_far, 5, 9), -1);
  assert_int_equal(result.fault, LESSON_OUTSIDE);
  assert_non_null(strstr(result.message, "y (45 floats): 1 written past its end"));
  assert_found("out_of_bounds");
#ifdef SIMT_INSPECT
  assert_non_null(strstr(result.finding, "out of bounds"));
  assert_non_null(strstr(result.finding, "common/lesson/lesson_test.cu:"));
#endif
}

/* Values read from a wrong address follow no formula, so none is suggested beside a finding of the inspector. */
static void a_finding_comes_before_a_formula(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
  assert_int_equal(verify(&lesson, scale_too_far_and_wrong, 5, 9), -1);
#ifdef SIMT_INSPECT
  assert_non_null(
      strstr(result.message, "scaled on 5x9: 45 of 45 elements of y are wrong.\nThe inspector found:\n==="));
  assert_null(strstr(result.message, "where x is expected"));
  assert_null(strstr(result.message, "The first:"));
  assert_found("out_of_bounds");
#else
  assert_non_null(strstr(result.message, "The values are x + 1 where x is expected"));
  assert_found("offset everywhere");
#endif
}

static void writing_the_input_is_noticed(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
  assert_int_equal(verify(&lesson, scale_input, 5, 9), -1);
  assert_int_equal(result.fault, LESSON_INPUT_CHANGED);
  assert_non_null(strstr(result.message, "into its input x"));
  assert_found("input_changed");
}

static void inputs_are_what_was_asked_for(void **state) {
  (void)state;
  Lesson lesson = pick_lesson();
  LessonShape shape = lesson_shape(&lesson, 63, 10);
  LessonHost host;
  lesson_host_open(&lesson, &shape, 5, &host);
  int seen[10] = {0}, extremes[2] = {0};
  for (int b = 0; b < 63; b++) {
    int label = ((int *)host.array[3])[b];
    assert_true(label >= 0 && label < 10);
    seen[label]++;
  }
  for (int label = 0; label < 10; label++) assert_true(seen[label] > 0);
  float x[630];
  lesson_to_floats(x, host.array[2], LESSON_BFLOAT16, 630);
  for (int i = 0; i < 630; i++) {
    int extreme = fabsf(x[i]) > 0.99e30f && fabsf(x[i]) < 1.01e30f;
    assert_true(extreme || (x[i] >= 5 && x[i] <= 7)); /* rounded, perhaps up */
    if (extreme) extremes[x[i] < 0]++;
  }
  assert_true(extremes[0] > 0 && extremes[1] > 0 && extremes[0] + extremes[1] < 63);
  assert_true(lesson_bytes(&lesson, shape.size) == 2 * 63 + 4 + 2 * 630 + 4 * 63);
  lesson_host_close(&lesson, &host);
}

static void declare_bytes_as_output(void) {
  Lesson lesson = scale_lesson();
  lesson_element(&lesson, "y", LESSON_BYTE);
}

/* As outputs they are NaN until they are written; as inputs they are below a size. */
static void indices_are_bytes(void **state) {
  (void)state;
  Lesson lesson = lesson_make("pick", "bk", NULL, NULL);
  lesson_output(&lesson, "argmax", "b");
  lesson_element(&lesson, "argmax", LESSON_INDEX);
  lesson_indices(&lesson, "positions", "b", 'k');
  LessonShape shape = lesson_shape(&lesson, 1001, 7);
  LessonHost host;
  float floats[1001];
  int seen[7] = {0};
  lesson_host_open(&lesson, &shape, 5, &host);
  assert_int_equal(host.bytes[0], 1001);
  assert_true(lesson_bytes(&lesson, shape.size) == 2002);
  ((uint8_t *)host.array[0])[3] = 254;
  lesson_to_floats(floats, host.array[0], LESSON_INDEX, 1001);
  for (int i = 0; i < 1001; i++) assert_true(i == 3 ? floats[i] == 254 : isnan(floats[i]));
  lesson_to_floats(floats, host.array[1], LESSON_INDEX, 1001);
  for (int i = 0; i < 1001; i++) {
    assert_true(floats[i] >= 0 && floats[i] < 7);
    seen[(int)floats[i]]++;
  }
  for (int value = 0; value < 7; value++) assert_in_range(seen[value], 90, 200); /* 143 on average, +- 11 */
  lesson_host_close(&lesson, &host);
}

/* Every value comes, none often; an array of bytes takes a byte each, between its guards too. Outputs are refused. */
static void bytes_are_inputs(void **state) {
  (void)state;
  char output[1024];
  assert_int_equal(test_fork(declare_bytes_as_output, output, sizeof output), 1);
  assert_non_null(strstr(output, "lesson scale: output y of bytes"));
  Lesson lesson = scale_lesson();
  lesson_element(&lesson, "x", LESSON_BYTE);
  LessonShape shape = lesson_shape(&lesson, 100, 101);
  LessonHost host;
  lesson_host_open(&lesson, &shape, 5, &host);
  assert_int_equal(host.bytes[1], 10100);
  assert_true(lesson_bytes(&lesson, shape.size) == 5 * 10100);
  int seen[256] = {0};
  for (int i = 0; i < 10100; i++) seen[((uint8_t *)host.array[1])[i]]++;
  for (int value = 0; value < 256; value++) assert_in_range(seen[value], 10, 80); /* 39 on average, +- 6.3 */
  float *array[LESSON_ARRAYS];
  Error err;
  for (int guarded = 0; guarded < 2; guarded++) {
    lesson_gpu_open(&lesson, &host, guarded, array);
    uint8_t back[10100];
    device_download(DEVICE_GPU, back, array[1], sizeof back);
    assert_memory_equal(back, host.array[1], sizeof back);
    if (guarded) {
      assert_int_equal(guard_check_elements(DEVICE_GPU, array[1], 10100, 1, "x", &err), 0);
      device_upload(DEVICE_GPU, (uint8_t *)array[1] + 10100, back, 1);
      assert_int_equal(guard_check_elements(DEVICE_GPU, array[1], 10100, 1, "x", &err), -1);
    }
    lesson_gpu_close(&lesson, guarded, array);
  }
  lesson_host_close(&lesson, &host);
}

static void floats_become_bfloat16_and_back(void **state) {
  (void)state;
  const float x[] = {0, -1, 1.00390625f, 1.01171875f, 3e38f, 3.4e38f, INFINITY, -INFINITY, 1e-40f, 1 / 3.0f};
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
    float expected = __bfloat162float(__float2bfloat16(x[i])), back;
    uint16_t half = lesson_to_bfloat16(x[i]);
    lesson_to_floats(&back, &half, LESSON_BFLOAT16, 1);
    assert_memory_equal(&back, &expected, sizeof back);
  }
  uint16_t half = lesson_to_bfloat16(NAN);
  float back;
  lesson_to_floats(&back, &half, LESSON_BFLOAT16, 1);
  assert_true(isnan(back) && !compare_is_poison(&back));
  lesson_poison(&half, LESSON_BFLOAT16, 1);
  lesson_to_floats(&back, &half, LESSON_BFLOAT16, 1);
  assert_true(compare_is_poison(&back));
}

static int verify_pick(const Lesson *lesson, PickLauncher *launch, int batch, int classes) {
  LessonVersion version = lesson_version("picked", (LessonLauncher)launch, "");
  LessonShape shape = lesson_shape(lesson, batch, classes);
  return lesson_verify(lesson, &version, &shape, 7, &result);
}

static Tolerance twice(const int *) { return tolerance_make(1, 0); }

static void other_elements_are_checked_as_floats_are(void **state) {
  (void)state;
  Lesson lesson = pick_lesson();
  if (verify_pick(&lesson, pick<PICK_RIGHT>, 31, 10) != 0) fail_msg("%s", result.message);
  assert_int_equal(verify_pick(&lesson, pick<PICK_TWICE>, 31, 10), -1);
  assert_int_equal(result.values, DIAGNOSIS_FACTOR);
  assert_int_equal(verify_pick(&lesson, pick<PICK_NO_TOTAL>, 31, 10), -1);
  assert_int_equal(result.values, DIAGNOSIS_NEVER_WRITTEN);
  assert_non_null(strstr(result.message, "total: 1 of 1 elements is wrong"));
  assert_int_equal(verify_pick(&lesson, pick<PICK_PAST_THE_END>, 31, 10), -1);
  assert_int_equal(result.fault, LESSON_OUTSIDE);
  assert_non_null(strstr(result.message, "picked (31 elements): 1 written past its end, 1 to 1 elements away"));
  assert_int_equal(verify_pick(&lesson, pick<PICK_INTO_LABELS>, 31, 10), -1);
  assert_int_equal(result.fault, LESSON_INPUT_CHANGED);
  lesson_tolerance(&lesson, "total", twice); /* another array's tolerance does not help */
  assert_int_equal(verify_pick(&lesson, pick<PICK_TWICE>, 31, 10), -1);
  lesson_tolerance(&lesson, "picked", twice);
  assert_int_equal(verify_pick(&lesson, pick<PICK_TWICE>, 31, 10), 0);
}

static void a_copy_moves_the_largest_output(void **state) {
  (void)state;
  int to, from;
  Lesson lesson = lesson_make("copied", "rc", NULL, NULL);
  lesson_output(&lesson, "sums", "r");
  lesson_output(&lesson, "y", "rc");
  LessonShape shape = lesson_shape(&lesson, 4, 8);
  assert_int_equal(lesson_copied_bytes(&lesson, shape.size, &to, &from), 64); /* half of y into the other half */
  assert_true(to == 1 && from == 1);
  lesson_input(&lesson, "x", "rc");
  assert_int_equal(lesson_copied_bytes(&lesson, shape.size, &to, &from), 128);
  assert_true(to == 1 && from == 2);
}

static Tolerance generous(const int *size) {
  (void)size;
  return tolerance_make(0, 1);
}

static void other_bits_in_the_second_run_are_noticed(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
  lesson.tolerance = generous;
  assert_int_equal(verify(&lesson, scale_shaky, 5, 9), -1);
  assert_int_equal(result.fault, LESSON_NOT_REPEATED);
  assert_non_null(strstr(result.message, "45 of 45 elements differ between two runs"));
  lesson.any_order = 1; /* sums by atomics may differ, and must be right */
  assert_int_equal(verify(&lesson, scale_shaky, 5, 9), 0);
  lesson.any_order = 0;
  assert_int_equal(verify(&lesson, scale_once, 5, 9), -1);
  assert_int_equal(result.fault, LESSON_WRONG);
  assert_non_null(strstr(result.message, "That was the second run"));
}

static void a_race_is_found_though_nothing_is_wrong_yet(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
#ifdef SIMT_INSPECT
  assert_int_equal(verify(&lesson, scale_race, 5, 9), -1);
  assert_int_equal(result.fault, LESSON_FINDING);
  assert_non_null(strstr(result.message, "The inspector found:"));
  assert_non_null(strstr(result.finding, "data race"));
  assert_int_equal(verify(&lesson, scale, 5, 9), 0); /* the next version is not blamed for it */
#else
  assert_int_equal(verify(&lesson, scale_race, 5, 9), 0);
#endif
}

static double huge(const int *size) {
  (void)size;
  return 1e12;
}

static void a_large_shape_is_compared_on_the_gpu(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
  lesson.reference = (LessonLauncher)scale_nothing; /* as if it took minutes */
  assert_int_equal(verify(&lesson, scale, 5, 9), -1);
  lesson.reference_gpu = (LessonLauncher)scale;
  assert_int_equal(verify(&lesson, scale, 5, 9), -1); /* not large */
  lesson.flops = huge;
  assert_int_equal(verify(&lesson, scale, 5, 9), 0);
  assert_int_equal(verify(&lesson, scale_nothing, 5, 9), -1);
}

static void a_shape_that_is_too_large_is_refused(void **state) {
  (void)state;
  static LessonOptions options;
  Error err;
  Lesson lesson = scale_lesson();
  options.common.device = DEVICE_GPU;
  lesson.counted = lesson_shape(&lesson, 20, 30);
  lesson.most = lesson_shape(&lesson, INT_MAX, 5000);
  const LessonShape reached = lesson_shape(&lesson, 3000, 5000), beyond = lesson_shape(&lesson, 3, 5001);
  const LessonShape all_sizes = lesson_shape(&lesson, INT_MAX, 5000), patient = lesson_shape(&lesson, 5000, 5000);
  if (lesson_fits(&lesson, &options, &reached, 0, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(lesson_fits(&lesson, &options, &beyond, 0, &err), -1);
  assert_non_null(
      strstr(err.message, "3x5001 is too large a shape: 5001 is more than 5000, the most that all versions"));
  assert_non_null(strstr(err.message, "try --shape=20x30"));
  assert_int_equal(lesson_fits(&lesson, &options, &all_sizes, 1, &err), -1); /* 2 arrays, 2 runs: 4 x 4 x 5000 x 2^31 */
  assert_non_null(strstr(err.message, "it needs 160000.0 GiB of memory"));
  assert_int_equal(lesson_fits(&lesson, &options, &patient, 0, &err), -1);
  assert_non_null(strstr(err.message, "25000000 elements take minutes (at most 16777216)"));
  lesson.flops = huge;
  assert_int_equal(lesson_fits(&lesson, &options, &reached, 0, &err), -1);
  assert_non_null(strstr(err.message, "1e+12 FLOPs take minutes (at most 1.07e+09)"));

  options.common.device = DEVICE_CPU; /* no grid, no inspector, one copy */
  if (lesson_fits(&lesson, &options, &patient, 0, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(lesson_fits(&lesson, &options, &all_sizes, 0, &err), -1);
  assert_non_null(strstr(err.message, "it needs 80000.0 GiB of memory"));
}

static void versions_and_roofs_are_timed(void **state) {
  (void)state;
#ifdef SIMT_REWRITTEN
  print_message("skipped: times mean nothing on an emulated GPU\n");
  skip();
#else
  Lesson lesson = scale_lesson();
  const LessonVersion versions[] = {lesson_version("scaled", (LessonLauncher)scale, ""), lesson_copy_version("")};
  LessonShape small = lesson_shape(&lesson, 64, 64), large = lesson_shape(&lesson, 8192, 8192);
  LessonTimes few, many;
  lesson_time(&lesson, versions, 2, &small, 1, &few);
  lesson_time(&lesson, versions, 2, &large, 1, &many);
  assert_true(few.seconds[0] > 0 && few.seconds[0] < many.seconds[0]);
  assert_int_equal(many.short_launches, 0);
  if (few.seconds[0] < LESSON_SHORT / 4) assert_int_equal(few.short_launches, 2); /* more under compute-sanitizer */
  double copied = 2.0 * 4 * 8192 * 8192 / many.seconds[1];
  assert_true(copied > 0.5 * many.copy_bytes_per_second && copied < 1.5 * many.copy_bytes_per_second);
  assert_true(many.slowest_clock > 0 && many.fastest_clock < 1e10 && many.slowest_clock <= many.fastest_clock);
  assert_true(many.flops_per_second > 1e11 && many.copy_bytes_per_second > 1e10); /* the least of GPUs */
#endif
}

static void pictures_are_drawn(void **state) {
  (void)state;
  static LessonPlot plot;
  char path[PATH_MAX];
  Error err;
  const char *const names[] = {"naive", "it's tiled", "cuBLAS"};
  snprintf(plot.title, sizeof plot.title, "A lesson's \"title\"");
  for (int i = 0; i < 3; i++) {
    LessonBar *bar = &plot.bar[plot.bars++];
    bar->name = names[i];
    bar->library = i == 2;
    bar->rate = 1e12 * (1 + 20 * i);
    bar->intensity = 682;
    bar->sectors = 1000 >> i;
  }
  plot.flops_per_second = 60e12;
  plot.copy_bytes_per_second = 4e12;
  for (int kind = 0; kind < 6; kind++) {
    plot.timed = kind / 2 > 0;
    plot.flops = kind / 2 == 2;
    test_path(path, sizeof path, kind % 2 ? "lesson.svg" : "lesson.png");
    if (lesson_plot(&plot, path, &err) == 0) continue;
    if (strstr(err.message, "gnuplot is not installed") == NULL) fail_msg("%s", err.message);
    print_message("skipped: %s\n", err.message);
    skip();
  }
}

static void read_text(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, size - 1, file)] = '\0';
  fclose(file);
}

static void a_panel_without_data_is_left_out(void **state) {
  (void)state;
  static LessonPlot plot;
  static char script[16384];
  char path[PATH_MAX];
  test_path(path, sizeof path, "script");
  plot.bars = 1;
  plot.bar[0].name = "naive";
  plot.bar[0].sectors = 1000;
  for (int wavefronts = 0; wavefronts < 2; wavefronts++) {
    plot.bar[0].wavefronts = wavefronts;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    lesson_plot_print(file, &plot, 0);
    fclose(file);
    read_text(path, script, sizeof script);
    assert_non_null(strstr(script, "sectors of global memory"));
    assert_int_equal(strstr(script, "wavefronts of shared memory") != NULL, wavefronts);
    assert_non_null(strstr(script, wavefronts ? "layout 1,2 " : "layout 1,1 "));
    assert_null(strstr(script, "background")); /* a dark page has a dark one */
  }
}

static void what_prevents_a_picture_is_known_before(void **state) {
  (void)state;
  char path[PATH_MAX], old_path[4096];
  Error err;
  test_path(path, sizeof path, "missing/lesson.svg");
  assert_int_equal(lesson_plot_possible(path, &err), -1);
  assert_non_null(strstr(err.message, "check that its directory exists"));

  test_path(path, sizeof path, "possible.svg");
  snprintf(old_path, sizeof old_path, "%s", getenv("PATH"));
  setenv("PATH", "/nonexistent", 1);
  int status = lesson_plot_possible(path, &err);
  setenv("PATH", old_path, 1);
  assert_int_equal(status, -1);
  assert_non_null(strstr(err.message, "gnuplot is not installed; apt install gnuplot-nox"));
  if (lesson_plot_possible(path, &err) != 0) assert_non_null(strstr(err.message, "gnuplot is not installed"));
  assert_int_equal(access(path, F_OK), -1); /* asking leaves no file */
}

#ifdef SIMT_REWRITTEN /* the last: on a GPU nothing works after a fault */
static void a_fault_is_explained(void **state) {
  (void)state;
  Lesson lesson = scale_lesson();
  assert_int_equal(verify(&lesson, scale_trap, 5, 9), -1);
  assert_int_equal(result.fault, LESSON_CUDA_ERROR);
  assert_non_null(strstr(result.message, "scaled on 5x9: "));
  assert_non_null(strstr(result.message, "cudaError"));
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_unknown_letter_is_refused), /* these two fork, before CUDA is there */
      cmocka_unit_test(indices_are_bytes),
      cmocka_unit_test(bytes_are_inputs),
      cmocka_unit_test(sizes_come_from_the_letters),
      cmocka_unit_test(a_wrong_sum_is_recognised),
      cmocka_unit_test(a_wrong_rest_is_recognised),
      cmocka_unit_test(inputs_that_would_make_it_right_are_named),
      cmocka_unit_test(a_right_output_is_named),
      cmocka_unit_test(a_missing_step_is_named),
      cmocka_unit_test(what_is_right_passes),
      cmocka_unit_test(shapes_have_parameters),
      cmocka_unit_test(a_workspace_is_watched_and_a_refusal_is_no_fault),
      cmocka_unit_test(a_refused_version_has_no_figures),
      cmocka_unit_test(a_workspace_larger_than_the_memory_is_refused),
      cmocka_unit_test(what_is_wrong_is_diagnosed),
      cmocka_unit_test(a_failing_shape_is_named),
      cmocka_unit_test(writing_outside_is_noticed),
      cmocka_unit_test(a_finding_comes_before_a_formula),
      cmocka_unit_test(writing_the_input_is_noticed),
      cmocka_unit_test(inputs_are_what_was_asked_for),
      cmocka_unit_test(floats_become_bfloat16_and_back),
      cmocka_unit_test(other_elements_are_checked_as_floats_are),
      cmocka_unit_test(a_copy_moves_the_largest_output),
      cmocka_unit_test(other_bits_in_the_second_run_are_noticed),
      cmocka_unit_test(a_race_is_found_though_nothing_is_wrong_yet),
      cmocka_unit_test(a_large_shape_is_compared_on_the_gpu),
      cmocka_unit_test(a_shape_that_is_too_large_is_refused),
      cmocka_unit_test(versions_and_roofs_are_timed),
      cmocka_unit_test(pictures_are_drawn),
      cmocka_unit_test(a_panel_without_data_is_left_out),
      cmocka_unit_test(what_prevents_a_picture_is_known_before),
#ifdef SIMT_REWRITTEN
      cmocka_unit_test(a_fault_is_explained),
#endif
  };
  return TEST_MAIN("lesson", tests);
}
