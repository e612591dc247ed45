/* How many launches, atomics, requests and sectors the versions need; each is right on all shapes before it is
 * counted. */
#include "common/lesson/test_counts.h"
#include "phase4_training/07_training_loop/training_loop_lesson.cuh"

enum { TENSORS = 12, N = 32768, BATCH = 4096, CLASSES = 10 };

static LessonCounts clip(ClipLauncher *launch) {
  const Lesson lesson = clip_lesson();
  return counts_of(&lesson, lesson_any_order_version(clip_version("version", launch, "")),
                   lesson_shape(&lesson, TENSORS, N));
}

static void the_norm_needs_no_atomics(void **state) {
  (void)state;
  const LessonCounts each = clip(clip_each), warps = clip(clip_warps), partial = clip(clip_partial);
  const LessonCounts engine = clip(clip_engine);
  counts_required();
  const int blocks = N / CLIP_BLOCK, quads = N / 4 / CLIP_BLOCK;
  /* Two launches per tensor, where one array has two; a warp of the first adds 32 numbers in one request. */
  assert_true(each.stream_steps - warps.stream_steps == 2 * TENSORS - 2);
  assert_true(each.global_atomic_requests >= N / 32);
  assert_count(warps.global_atomic_requests, N / 32);
  assert_count(partial.global_atomic_requests, 0);
  assert_count(engine.global_atomic_requests, 0);
  /* Each element is read twice and written once; a block of the second launch reads a sum of each of the first, by one
   * warp, or, in the engine, by as many lanes as there are. */
  assert_count(partial.global_load_requests, 2 * N / 32 + blocks * (blocks / 32));
  assert_count(partial.global_store_sectors, N / 8 + blocks + 1);
  assert_count(engine.global_load_requests, 2 * N / 128 + quads * (quads / 32) + 1 + 1);
  assert_true(engine.global_load_sectors >= 2 * N / 8 && engine.global_load_sectors < 2 * N / 8 + quads * quads);
  assert_count(partial.shared_load_conflicts + partial.shared_store_conflicts, 0);
  assert_count(engine.shared_load_conflicts + engine.shared_store_conflicts, 0);
}

static LessonCounts confusion(ConfusionLauncher *launch) {
  const Lesson lesson = confusion_lesson();
  return counts_of(&lesson, confusion_version("version", launch, ""), lesson_shape(&lesson, BATCH, CLASSES));
}

static void a_tile_is_read_in_whole_sectors(void **state) {
  (void)state;
  const LessonCounts global = confusion(confusion_global), shared = confusion(confusion_shared);
  const LessonCounts tiled = confusion(confusion_tiled);
  counts_required();
  const int blocks = BATCH / CONFUSION_BLOCK;
  assert_count(tiled.global_load_requests, BATCH * CLASSES / 32 + BATCH / 32);
  assert_count(tiled.global_load_sectors, BATCH * CLASSES / 8 + BATCH / 8);
  assert_true(global.global_load_sectors > 7 * tiled.global_load_sectors);
  assert_count(global.global_atomic_requests, BATCH / 32);
  assert_true(shared.global_atomic_requests <= blocks * ((CLASSES * CLASSES + 31) / 32));
  assert_count(tiled.global_atomic_requests, shared.global_atomic_requests);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_norm_needs_no_atomics),
                                     cmocka_unit_test(a_tile_is_read_in_whole_sectors)};
  return TEST_MAIN("training_loop_counts", tests);
}
