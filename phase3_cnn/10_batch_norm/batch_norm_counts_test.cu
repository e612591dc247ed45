/* How often each version of batch norm reads and writes its arrays, by the inspector. The counted shape has PIECES
 * pieces of 32 floats, 4 sectors, in each of x, y, dy and dx. Besides, the warps load gamma and beta, mean and inv_std
 * and exchange their sums: fewer than FEW requests, less than a pass has sectors. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/10_batch_norm/batch_norm_nhwc_lesson.cuh"

enum { CHANNELS = 8, PIECES = 4 * CHANNELS * 32 * 32 / 32, WARPS = CHANNELS * BATCH_NORM_WARPS, FEW = 9 * WARPS };

static LessonCounts forward(BatchNorm2dLauncher *launch) {
  const Lesson lesson = batch_norm_forward_lesson();
  return counts_of(&lesson, batch_norm_version("forward", launch, ""), lesson.counted);
}

static LessonCounts backward(BatchNorm2dLauncher *launch) {
  const Lesson lesson = batch_norm_backward_lesson();
  return counts_of(&lesson, batch_norm_version("backward", launch, ""), lesson.counted);
}

/* Arrays are read `reads` times and written once, `quads` floats per thread. */
static void assert_passes(const LessonCounts *c, int reads, int quads) {
  const double loads = c->global_load_requests - reads * PIECES / quads,
               stores = c->global_store_requests - PIECES / quads;
  if (loads < 0 || loads >= FEW) fail_msg("%.0f load requests besides %d reads", loads, reads);
  if (stores < 0 || stores >= FEW) fail_msg("%.0f store requests besides one write", stores);
  if (c->global_load_sectors < 4 * reads * PIECES || c->global_load_sectors >= 4 * reads * PIECES + FEW)
    fail_msg("%.0f sectors loaded; %d reads are %d", c->global_load_sectors, reads, 4 * reads * PIECES);
  assert_count(c->shared_load_conflicts + c->shared_store_conflicts, 0);
}

static void naive_reads_three_times(void **state) {
  (void)state;
  const LessonCounts c = forward(batch_norm2d_forward_naive);
  counts_required();
  assert_passes(&c, 3, 1);
}

static void one_pass_for_both_statistics(void **state) {
  (void)state;
  const LessonCounts c = forward(batch_norm2d_forward_welford);
  counts_required();
  assert_passes(&c, 2, 1);
}

static void slices_ask_four_times_less_often(void **state) {
  (void)state;
  const LessonCounts c = forward(batch_norm2d_forward_slices);
  counts_required();
  assert_passes(&c, 2, 4);
}

/* x goes to shared memory once and comes back once: 4 wavefronts for 32 float4. */
static void on_chip_reads_once(void **state) {
  (void)state;
  const LessonCounts c = forward(batch_norm2d_forward_gpu);
  counts_required();
  assert_passes(&c, 1, 4);
  assert_true(c.shared_store_requests >= PIECES / 4 && c.shared_store_requests < PIECES / 4 + FEW);
}

static void backward_reads_four_times_then_twice(void **state) {
  (void)state;
  const LessonCounts naive = backward(batch_norm2d_backward_naive), slices = backward(batch_norm2d_backward_slices),
                     chip = backward(batch_norm2d_backward_gpu);
  counts_required();
  assert_passes(&naive, 4, 1);
  assert_passes(&slices, 4, 4);
  assert_passes(&chip, 2, 4);
}

static void assert_sectors(const char *what, double sectors, double expected) {
  if (!(sectors >= expected && sectors < expected + FEW))
    fail_msg("%.0f sectors %s; %.0f and fewer than %d others are expected", sectors, what, expected, FEW);
}

/* Neighbouring lanes have other channels. For each of its 4 values a lane of the last kernel of forward loads mean,
 * inv_std, gamma and beta: 16 requests of one sector per warp, which has 4 pieces. */
static void channels_last_reads_x_twice(void **state) {
  (void)state;
  const Lesson lesson = batch_norm_nhwc_forward_lesson();
  const LessonCounts c =
      counts_of(&lesson, batch_norm_version("columns", batch_norm2d_nhwc_forward_gpu, ""), lesson.counted);
  counts_required();
  assert_sectors("loaded", c.global_load_sectors, 2 * 4 * PIECES + 16 * PIECES / 4);
  assert_sectors("stored", c.global_store_sectors, 4 * PIECES);
}

static void channels_last_writes_dx_once(void **state) {
  (void)state;
  const Lesson lesson = batch_norm_nhwc_backward_lesson();
  const LessonCounts c =
      counts_of(&lesson, batch_norm_version("columns", batch_norm2d_nhwc_backward_gpu, ""), lesson.counted);
  counts_required();
  assert_true(c.global_load_sectors >= 4 * 4 * PIECES);
  assert_sectors("stored", c.global_store_sectors, 4 * PIECES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_reads_three_times),
      cmocka_unit_test(one_pass_for_both_statistics),
      cmocka_unit_test(slices_ask_four_times_less_often),
      cmocka_unit_test(on_chip_reads_once),
      cmocka_unit_test(backward_reads_four_times_then_twice),
      cmocka_unit_test(channels_last_reads_x_twice),
      cmocka_unit_test(channels_last_writes_dx_once),
  };
  return TEST_MAIN("batch_norm_counts", tests);
}
