/* What the versions move, by the inspector. */
#include "common/lesson/test_counts.h"
#include "phase4_training/05_regularization/regularization_lesson.cuh"

enum { ROWS = 64, COLS = 1024, N = ROWS * COLS };

static LessonCounts soft(SoftLauncher *launch) {
  const Lesson lesson = soft_lesson();
  return counts_of(&lesson, soft_version("soft", launch, ""), lesson.counted);
}

static LessonCounts mixup(MixupLauncher *launch) {
  const Lesson lesson = mixup_lesson();
  return counts_of(&lesson, mixup_version("mixup", launch, ""), lesson.counted);
}

static LessonCounts ema(EmaLauncher *launch) {
  const Lesson lesson = ema_lesson();
  return counts_of(&lesson, ema_version("ema", launch, ""), lesson.counted);
}

/* In sectors of 8 floats. One warp per row also reads two labels, and, for the loss, the logits at both. */
static void registers_read_each_logit_once(void **state) {
  (void)state;
  const LessonCounts targets = soft(soft_targets), fused = soft(soft_fused), registers = soft(soft_registers);
  counts_required();
  assert_count(registers.global_load_sectors, N / 8 + 4 * ROWS);
  assert_count(fused.global_load_sectors, 3 * (N / 8) + 4 * ROWS);
  assert_count(registers.global_store_sectors, N / 8 + ROWS);
  assert_count(targets.global_store_sectors, 2 * (N / 8) + ROWS);
}

static void pairs_read_and_write_each_number_once(void **state) {
  (void)state;
  const LessonCounts two = mixup(mixup_two_passes), samples = mixup(mixup_samples), pairs = mixup(mixup_pairs);
  const LessonCounts quads = mixup(mixup_gpu);
  counts_required();
  assert_count(two.global_load_sectors, 3 * N / 8);
  assert_count(two.global_store_sectors, 2 * N / 8);
  assert_count(samples.global_load_sectors, 2 * N / 8);
  assert_count(pairs.global_load_sectors, N / 8);
  assert_count(pairs.global_store_sectors, N / 8);
  assert_count(pairs.global_load_requests, N / 32);
  assert_count(quads.global_load_requests, N / 128);
  assert_count(quads.global_load_sectors, N / 8);
}

/* The fused step does not read the new weights again. */
static void the_fused_average_saves_a_read(void **state) {
  (void)state;
  const LessonCounts flat = ema(ema_flat), fused = ema(ema_fused);
  const int n = ema_lesson().counted.size[1];
  counts_required();
  assert_count(flat.global_load_sectors, 5 * n / 8);
  assert_count(fused.global_load_sectors, 4 * n / 8);
  assert_count(fused.global_store_sectors, 3 * n / 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(registers_read_each_logit_once),
      cmocka_unit_test(pairs_read_and_write_each_number_once),
      cmocka_unit_test(the_fused_average_saves_a_read),
  };
  return TEST_MAIN("regularization_counts", tests);
}
