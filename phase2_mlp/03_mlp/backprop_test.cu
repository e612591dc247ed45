/* The backward pass of a hidden layer: the references against central differences, every kernel against its reference,
 * and how many sectors the fused kernels save. The sizes of the counts are multiples of a warp. */
#include "phase2_mlp/03_mlp/backprop_lesson.cuh"

#include "common/lesson/test_counts.h"
#include "common/lesson/verify.h"

/* The loss sum(r * (ReLU(z) w^T)) has dx and dw by z and by w as the references have them for dy = r, x = ReLU(z). */
enum { BATCH = 5, IN = 7, OUT = 3, Z = 0, W = Z + BATCH * IN, R = W + OUT * IN, ALL = R + BATCH * OUT };

static double loss(const double *v) {
  double x[BATCH * IN], y[BATCH * OUT], sum = 0;
  const double bias[OUT] = {0};
  relu_forward_cpu(x, v + Z, BATCH * IN);
  linear_forward_cpu(y, x, v + W, bias, BATCH, IN, OUT);
  for (int i = 0; i < BATCH * OUT; i++) sum += v[R + i] * y[i];
  return sum;
}

static void references_match_central_differences(void **state) {
  (void)state;
  const double h = 1e-5;
  float random[ALL];
  double v[ALL], x[BATCH * IN], gradient[R];
  int off = 0;
  test_random_fill(random, ALL, 1);
  for (int i = 0; i < ALL; i++) v[i] = random[i];
  relu_forward_cpu(x, v + Z, BATCH * IN);
  hidden_backward_cpu(ACTIVATION_RELU, gradient + Z, v + R, v + W, x, BATCH, IN, OUT);
  backprop_weight_cpu(gradient + W, v + R, x, BATCH, IN, OUT);
  for (int i = 0; i < R; i++) {
    double kept = v[i];
    v[i] = kept + h;
    double up = loss(v);
    v[i] = kept - h;
    double down = loss(v);
    v[i] = kept;
    assert_true(fabs(gradient[i] - (up - down) / (2 * h)) < 1e-8);
    off += i < W && x[i - Z] == 0;
  }
  assert_true(off > 3 && off < BATCH * IN - 3); /* units that are off, and on */
}

static void verify(Lesson lesson, LessonLauncher launch, const char *name) {
  LessonVersion version = lesson_version(name, launch, "");
  static LessonResult result;
  if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s: %s", name, result.message);
}

static void kernels_match_the_loops(void **state) {
  (void)state;
  test_requires_gpu();
  verify(backprop_delta_lesson(), (LessonLauncher)backprop_delta_separate, "backprop_delta_separate");
  verify(backprop_delta_lesson(), (LessonLauncher)backprop_delta_each, "backprop_delta_each");
  verify(backprop_delta_lesson(), (LessonLauncher)backprop_delta_shared, "backprop_delta_shared");
  verify(backprop_weight_lesson(), (LessonLauncher)backprop_weight, "backprop_weight");
  verify(backprop_weight_lesson(), (LessonLauncher)backprop_weight_tiled, "backprop_weight_tiled");
  verify(backprop_bias_lesson(), (LessonLauncher)linear_backward_bias_gpu, "linear_backward_bias_gpu");
  verify(backprop_update_lesson(), (LessonLauncher)sgd_step_copy, "sgd_step_copy");
}

/* ---- counts ---- */

enum { B = 64, I = 128, O = 32, DX_SECTORS = B * I / 8, DX_WARPS = B * I / 32, DW_WARPS = O * I / 32 };

static LessonCounts delta(BackpropDelta *launch) {
  Lesson lesson = backprop_delta_lesson();
  return counts_of(&lesson, lesson_version("delta", (LessonLauncher)launch, ""), lesson_shape(&lesson, B, I, O));
}

static LessonCounts weight(BackpropWeight *launch) {
  Lesson lesson = backprop_weight_lesson();
  return counts_of(&lesson, lesson_version("weight", (LessonLauncher)launch, ""), lesson_shape(&lesson, B, I, O));
}

static void fused_writes_the_delta_once_and_reads_few_weights(void **state) {
  (void)state;
  test_requires_gpu();
  LessonCounts separate = delta(backprop_delta_separate), each = delta(backprop_delta_each);
  LessonCounts shared = delta(backprop_delta_shared);
  counts_required();
  assert_count(separate.global_store_sectors, 2 * DX_SECTORS);
  assert_count(each.global_store_sectors, DX_SECTORS);
  assert_count(shared.global_store_sectors, DX_SECTORS);
  assert_count(shared.global_store_requests, DX_WARPS);
  /* of dy a float for all, of w four sectors, at the end x */
  assert_count(each.global_load_sectors, DX_WARPS * ((1 + 4) * O + 4));
  assert_count(shared.global_load_sectors, DX_WARPS * ((1 + 4 / BACKPROP_SAMPLES) * O + 4));
}

static void tiles_read_less_than_threads_alone(void **state) {
  (void)state;
  test_requires_gpu();
  LessonCounts alone = weight(backprop_weight), tiled = weight(backprop_weight_tiled);
  counts_required();
  assert_count(alone.global_load_sectors, DW_WARPS * (1 + 4) * B);
  assert_count(alone.global_store_sectors, DW_WARPS * 4);
  assert_true(tiled.global_load_sectors * 4 < alone.global_load_sectors);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(references_match_central_differences),
      cmocka_unit_test(kernels_match_the_loops),
      cmocka_unit_test(fused_writes_the_delta_once_and_reads_few_weights),
      cmocka_unit_test(tiles_read_less_than_threads_alone),
  };
  return TEST_MAIN("backprop", tests);
}
