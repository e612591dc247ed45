/* How much memory traffic a layer of neurons causes, forward and backward, and that its kernels are free of races: the
 * inspector's counts and findings. The sizes are those of the exercises' limits. */
#include "common/lesson/test_counts.h"
#include "phase2_mlp/01_perceptron/perceptron_lesson.cuh"
#include "phase2_mlp/02_xor/hidden_layer_lesson.cuh"

static LessonCounts counted(Lesson lesson, LessonLauncher launch) {
  return counts_of(&lesson, lesson_version(lesson.name, launch, ""), lesson.counted);
}

/* 512 samples, 2 inputs, 4 neurons: 64 warps, each with 8 samples of 4 neurons. */
static void forward_reads_rows(void **state) {
  (void)state;
  enum { WARPS = 512 * 4 / 32 };
  LessonCounts c = counted(perceptron_forward_lesson(), (LessonLauncher)perceptron_forward_gpu);
  counts_required();
  assert_count(c.global_load_requests, WARPS * (1 + 2 * 2)); /* bias; x and w, twice */
  assert_count(c.global_load_sectors, WARPS * (1 + 2 * (2 + 1)));
  assert_count(c.global_store_sectors, WARPS * 4);
}

/* 12 warps, one for each of 8 weights and 4 biases; 16 loads of a column of dy each, and for a weight of x, too. */
static void gradients_read_columns(void **state) {
  (void)state;
  LessonCounts c = counted(perceptron_backward_lesson(), (LessonLauncher)perceptron_backward_weight_gpu);
  counts_required();
  assert_count(c.global_load_sectors,
               12 * 16 * 16 + 8 * 16 * 8); /* a column of 4 spreads over 16 sectors, of 2 over 8 */
  assert_count(c.global_store_requests, 12);
  assert_count(c.shared_load_requests + c.shared_store_requests, 0); /* through registers */
}

static void a_step_reads_and_writes_once(void **state) {
  (void)state;
  LessonCounts c = counted(perceptron_update_lesson(), (LessonLauncher)perceptron_update_gpu);
  counts_required();
  assert_count(c.global_load_sectors, 2 * (1 << 12) * 4 / 32);
  assert_count(c.global_store_sectors, (1 << 12) * 4 / 32);
}

/* 64 samples, 32 hidden neurons, 4 above: a warp has one sample. */
static void the_backward_pass_reads_rows(void **state) {
  (void)state;
  LessonCounts c = counted(hidden_backward_lesson<ACTIVATION_TANH>(), (LessonLauncher)hidden_backward_gpu);
  counts_required();
  assert_count(c.global_load_sectors, 64 * (4 * (1 + 4) + 4)); /* dy for all at once, rows of w, and h */
  assert_count(c.global_store_sectors, 64 * 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forward_reads_rows),
      cmocka_unit_test(gradients_read_columns),
      cmocka_unit_test(a_step_reads_and_writes_once),
      cmocka_unit_test(the_backward_pass_reads_rows),
  };
  return TEST_MAIN("perceptron_counts", tests);
}
