/* Losses: how many sectors the forward pass, the backward pass and both at once move. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/09_losses/losses_lesson.cuh"

/* 32 blocks with two quads per thread, or 128 blocks with two floats per thread. */
enum { ROWS = 64, COLS = 1024, N = ROWS * COLS, QUAD_BLOCKS = N / 8 / LOSS_BLOCK, BLOCKS = N / 2 / LOSS_BLOCK };

static LessonCounts counts(Lesson lesson, LessonVersion version) {
  return counts_of(&lesson, version, lesson_shape(&lesson, ROWS, COLS));
}

/* One block reads the sums of all blocks, doubles, 4 per sector, and writes the total. */
static void expect_forward(LessonCounts c, int floats, int blocks) {
  assert_count(c.global_load_requests, 2 * N / (32 * floats) + (blocks + 31) / 32);
  assert_count(c.global_load_sectors, 2 * N / 8 + blocks / 4);
  assert_count(c.global_store_sectors, blocks + 1);
}

static void a_sum_reads_everything_once(void **state) {
  (void)state;
  LessonCounts tree = counts(mse_forward_lesson(), loss_forward_version("tree", loss_forward_tree<LOSS_MSE>, ""));
  LessonCounts shuffle =
      counts(mse_forward_lesson(), loss_forward_version("shuffle", loss_forward_shuffle<LOSS_MSE>, ""));
  LessonCounts quads = counts(mse_forward_lesson(), loss_forward_version("quads", loss_forward<LOSS_MSE>, ""));
  counts_required();
  expect_forward(tree, 1, BLOCKS);
  expect_forward(shuffle, 1, BLOCKS);
  expect_forward(quads, 4, QUAD_BLOCKS);
  /* with shuffles a block stores one double per warp and reads them once: nothing else uses shared memory */
  assert_count(shuffle.shared_store_requests, (BLOCKS + 1) * LOSS_WARPS);
  assert_count(shuffle.shared_load_requests, BLOCKS + 1);
  assert_true(tree.shared_load_requests > 10 * shuffle.shared_load_requests);
  assert_count(quads.shared_load_requests, QUAD_BLOCKS + 1);
}

static void expect_both(LessonCounts separate, LessonCounts fused) {
  assert_count(separate.global_load_sectors, 4 * N / 8 + QUAD_BLOCKS / 4);
  assert_count(fused.global_load_sectors, 2 * N / 8 + QUAD_BLOCKS / 4);
  assert_count(separate.global_store_sectors, N / 8 + QUAD_BLOCKS + 1);
  assert_count(fused.global_store_sectors, N / 8 + QUAD_BLOCKS + 1);
}

static void both_directions_at_once_read_half(void **state) {
  (void)state;
  LessonCounts mse[] = {counts(mse_lesson(), loss_both_version("separate", loss_separate<LOSS_MSE>, "")),
                        counts(mse_lesson(), loss_both_version("fused", mse_gpu, ""))};
  LessonCounts bce[] = {counts(bce_lesson(), loss_both_version("separate", loss_separate<LOSS_BCE>, "")),
                        counts(bce_lesson(), loss_both_version("fused", bce_gpu, ""))};
  LessonCounts logits[] = {
      counts(bce_logits_lesson(), loss_both_version("separate", loss_separate<LOSS_BCE_LOGITS>, "")),
      counts(bce_logits_lesson(), loss_both_version("fused", bce_logits_gpu, ""))};
  LessonCounts hinge[] = {counts(hinge_lesson(), loss_both_version("separate", loss_separate<LOSS_HINGE>, "")),
                          counts(hinge_lesson(), loss_both_version("fused", hinge_gpu, ""))};
  counts_required();
  expect_both(mse[0], mse[1]);
  expect_both(bce[0], bce[1]);
  expect_both(logits[0], logits[1]);
  expect_both(hinge[0], hinge[1]);
}

static void cross_entropy_writes_every_sector_once(void **state) {
  (void)state;
  LessonCounts c = counts(cross_entropy_lesson(), cross_entropy_version("fused", cross_entropy_fused, ""));
  counts_required();
  assert_count(c.global_store_requests, N / 128 + 1 + 1); /* and the sum of its one block, and the total */
  assert_count(c.global_store_sectors, N / 8 + 1 + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_sum_reads_everything_once),
                                     cmocka_unit_test(both_directions_at_once_read_half),
                                     cmocka_unit_test(cross_entropy_writes_every_sector_once)};
  return TEST_MAIN("losses_counts", tests);
}
