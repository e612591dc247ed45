/* What the versions load and store, by the inspector. The counted shapes have planes of 16 x 32 pixels, so that the 32
 * lanes of a warp are the columns of one row. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_depthwise_lesson.cuh"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_transposed_lesson.cuh"

enum { PLANES = 2 * 4, ROWS = 16, WARPS = PLANES * ROWS }; /* warps, where a thread computes one output */

/* A row of the filter lies outside of the image for the first and the last row of outputs; their warps skip it. */
static void naive_loads_twice_per_product(void **state) {
  (void)state;
  const Lesson lesson = conv2d_depthwise_forward_lesson();
  const LessonCounts c =
      counts_of(&lesson, conv2d_forward_version("naive", conv2d_depthwise_forward_naive, ""), lesson.counted);
  counts_required();
  assert_count(c.global_load_requests, WARPS * 1 + PLANES * (ROWS * 3 - 2) * 3 * 2); /* the bias; x and w per tap */
  assert_count(c.global_store_requests, WARPS);
}

/* A strip of four rows reads six rows of three inputs, its bias and its nine weights once. The first and the last strip
 * of a plane have one row outside of the image. */
static void a_strip_loads_each_row_once(void **state) {
  (void)state;
  const Lesson lesson = conv2d_depthwise_forward_lesson();
  const LessonCounts c =
      counts_of(&lesson, conv2d_forward_version_of("strip", &conv2d_depthwise_method, ""), lesson.counted);
  counts_required();
  const int strips = ROWS / DEPTHWISE_STRIP;
  assert_count(c.global_load_requests, PLANES * (strips * (1 + 9 + 6 * 3) - 2 * 3));
  assert_count(c.global_store_requests, WARPS);
  assert_count(c.global_store_sectors, 4 * c.global_store_requests);
}

/* The gradient of the input is the same kernel on dy, without a bias. */
static void the_gradient_of_the_input_loads_as_little(void **state) {
  (void)state;
  const Lesson lesson = conv2d_depthwise_backward_input_lesson();
  const LessonCounts c =
      counts_of(&lesson, conv2d_backward_input_version_of("strip", &conv2d_depthwise_method, ""), lesson.counted);
  counts_required();
  assert_count(c.global_load_requests, PLANES * (ROWS / DEPTHWISE_STRIP * (9 + 6 * 3) - 2 * 3));
}

/* Gathering needs no atomics, and of 4 x 4 taps with stride 2 a quarter reaches an output. */
static void phases_visit_a_quarter_of_the_taps(void **state) {
  (void)state;
  const Lesson lesson = conv2d_transposed_lesson();
  const LessonCounts scatter =
      counts_of(&lesson, lesson_any_order_version(conv2d_transposed_version("scatter", conv2d_transposed_scatter, "")),
                lesson.counted);
  const LessonCounts gather =
      counts_of(&lesson, conv2d_transposed_version("gather", conv2d_transposed_gather, ""), lesson.counted);
  const LessonCounts phases =
      counts_of(&lesson, conv2d_transposed_version("phases", conv2d_transposed_phases, ""), lesson.counted);
  const LessonCounts tiled =
      counts_of(&lesson, conv2d_transposed_version("forward", conv2d_transposed_forward, ""), lesson.counted);
  counts_required();
  if (scatter.global_atomic_requests == 0) fail_msg("scatter has no atomics");
  assert_count(gather.global_atomic_requests + phases.global_atomic_requests + tiled.global_atomic_requests, 0);
  /* 8 filters share an input: per filter, phases loads an input and a weight for each product. */
  if (!(8 * tiled.global_load_requests < 2 * phases.global_load_requests))
    fail_msg("forward has %.0f load requests, phases %.0f", tiled.global_load_requests, phases.global_load_requests);
  if (!(phases.global_load_requests < gather.global_load_requests))
    fail_msg("phases has %.0f load requests, gather %.0f", phases.global_load_requests, gather.global_load_requests);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_loads_twice_per_product),
      cmocka_unit_test(a_strip_loads_each_row_once),
      cmocka_unit_test(the_gradient_of_the_input_loads_as_little),
      cmocka_unit_test(phases_visit_a_quarter_of_the_taps),
  };
  return TEST_MAIN("conv2d_depthwise_counts", tests);
}
