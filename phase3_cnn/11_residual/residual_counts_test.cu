/* What the versions move, by the inspector: 65536 floats are 8192 sectors, 2048 requests of a float or 512 of a
 * float4. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/11_residual/residual_lesson.cuh"

enum { N = 64 * 1024, SECTORS = N / 8, PLANES = 64 };

static void expect(LessonCounts c, int loads, int stores, int floats) {
  assert_count(c.global_load_sectors, loads * SECTORS);
  assert_count(c.global_store_sectors, stores * SECTORS);
  assert_count(c.global_load_requests, loads * N / (32 * floats));
  assert_count(c.global_store_requests, stores * N / (32 * floats));
}

static LessonCounts forward(AddReluForward *launch) {
  const Lesson lesson = add_relu_forward_lesson();
  return counts_of(&lesson, add_relu_forward_version("forward", launch, ""), lesson.counted);
}

static LessonCounts backward(AddReluBackward *launch) {
  const Lesson lesson = add_relu_backward_lesson();
  return counts_of(&lesson, add_relu_backward_version("backward", launch, ""), lesson.counted);
}

static void one_kernel_moves_three_arrays_of_five(void **state) {
  (void)state;
  const LessonCounts two = forward(add_relu_forward_two), one = forward(add_relu_forward_one),
                     quads = forward(add_relu_forward_gpu);
  counts_required();
  expect(two, 3, 2, 1);
  expect(one, 2, 1, 1);
  expect(quads, 2, 1, 4);
}

static void backward_moves_four_or_three(void **state) {
  (void)state;
  const Lesson lesson = add_relu_shared_lesson();
  const LessonCounts two = backward(add_relu_backward_two), one = backward(add_relu_backward_one),
                     quads = backward(add_relu_backward_gpu);
  const LessonCounts shared =
      counts_of(&lesson, add_relu_backward_version("shared", add_relu_backward_gpu, ""), lesson.counted);
  counts_required();
  expect(two, 3, 2, 1);
  expect(one, 2, 2, 1);
  expect(quads, 2, 2, 4);
  expect(shared, 2, 1, 4);
}

/* The fused kernel does not read y again. Each plane's mean is one store of 4 bytes. */
static void the_mean_costs_no_array(void **state) {
  (void)state;
  const Lesson lesson = add_relu_mean_lesson();
  const LessonCounts two = counts_of(&lesson, add_relu_mean_version("two", add_relu_mean_two, ""), lesson.counted);
  const LessonCounts fused = counts_of(&lesson, add_relu_mean_version("fused", add_relu_mean, ""), lesson.counted);
  counts_required();
  assert_count(two.global_load_sectors, 3 * SECTORS);
  assert_count(fused.global_load_sectors, 2 * SECTORS);
  assert_count(two.global_store_sectors, SECTORS + PLANES);
  assert_count(fused.global_store_sectors, SECTORS + PLANES);
  assert_count(fused.shared_load_conflicts + fused.shared_store_conflicts, 0);
}

/* Both passes, as the exercise counts them. */
static void a_step_has_as_few_requests_as_the_exercise_asks_for(void **state) {
  (void)state;
  const Lesson lesson = add_relu_step_lesson();
  const LessonCounts c =
      counts_of(&lesson, lesson_version("step", (LessonLauncher)add_relu_step_gpu, ""), lesson.counted);
  counts_required();
  expect(c, 4, 3, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_kernel_moves_three_arrays_of_five),
      cmocka_unit_test(backward_moves_four_or_three),
      cmocka_unit_test(the_mean_costs_no_array),
      cmocka_unit_test(a_step_has_as_few_requests_as_the_exercise_asks_for),
  };
  return TEST_MAIN("residual_counts", tests);
}
