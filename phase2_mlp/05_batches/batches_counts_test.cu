/* What the versions of a batch and of an order ask of memory. 64 images of 256 pixels: 8 warps an image of bytes, 2 of
 * quads; in the orders 8192 images. */
#include "common/lesson/test_counts.h"
#include "phase2_mlp/05_batches/batches_lesson.cuh"

enum { BATCH = 64, PIXELS = 256, IMAGES = 8192, WARPS = BATCH * PIXELS / 32 };
enum { LABELS = BATCH }; /* one lane of a warp stores an int: a sector */

static LessonCounts gather(BatchGatherLauncher *launch) {
  Lesson lesson = batch_gather_lesson();
  return counts_of(&lesson, batch_gather_version("gather", launch, ""), lesson_shape(&lesson, BATCH, PIXELS, IMAGES));
}
static LessonCounts order(BatchOrderLauncher *launch, BatchOrderLauncher *reference) {
  Lesson lesson = batch_order_lesson(reference);
  return counts_of(&lesson, batch_order_version("order", launch, ""), lesson_shape(&lesson, 1, 1, IMAGES));
}

/* 32 images lie 32 rows apart: a sector each, of which one float is written. */
static void a_thread_an_image_touches_a_sector_a_pixel(void **state) {
  (void)state;
  LessonCounts c = gather(batch_gather_rows);
  counts_required();
  assert_count(c.global_store_requests, BATCH / 32 * (PIXELS + 1));
  assert_count(c.global_store_sectors, BATCH * PIXELS + BATCH * 4 / 32);
  assert_true(c.global_load_sectors > 0.9 * BATCH * PIXELS); /* but where two lanes picked the same image */
}

/* 32 pixels are a sector, their floats four; and each warp asks for its image's number. */
static void neighbours_share_sectors(void **state) {
  (void)state;
  BatchGatherLauncher *const versions[] = {batch_gather_elements, batch_gather_blocks};
  for (int i = 0; i < 2; i++) {
    LessonCounts c = gather(versions[i]);
    counts_required();
    assert_count(c.global_load_sectors, WARPS + WARPS + LABELS);
    assert_count(c.global_load_requests, WARPS + WARPS + LABELS);
    assert_count(c.global_store_sectors, 4 * WARPS + LABELS);
    assert_count(c.global_store_requests, WARPS + LABELS);
  }
}

/* A warp moves 128 pixels with one load and one store: a quarter of the requests, and one number an image. */
static void quads_ask_four_times_less_often(void **state) {
  (void)state;
  LessonCounts c = gather(batch_gather_warps);
  counts_required();
  assert_count(c.global_load_requests, BATCH + WARPS / 4 + LABELS);
  assert_count(c.global_load_sectors, BATCH + WARPS + LABELS);
  assert_count(c.global_store_requests, WARPS / 4 + LABELS);
  assert_count(c.global_store_sectors, 4 * WARPS + LABELS);
}

/* The table is made by 8 warps of each block, without a conflict, and read four times for a quad. What it saves, two
 * divisions for each pixel, are no accesses. Random pixels lie in random banks: the reads have conflicts. */
static void the_table_costs_only_shared_memory(void **state) {
  (void)state;
  LessonCounts c = gather(batch_gather_gpu);
  counts_required();
  const int quad_warps = WARPS / 4, blocks = quad_warps * 32 / BATCH_GATHER_BLOCK;
  assert_count(c.global_load_requests, 2 * quad_warps + LABELS);
  assert_count(c.global_load_sectors, (1 + 4) * quad_warps + LABELS);
  assert_count(c.global_store_requests, quad_warps + LABELS);
  assert_count(c.global_store_sectors, 16 * quad_warps + LABELS);
  assert_count(c.shared_store_requests, blocks * BATCH_GATHER_BLOCK / 32);
  assert_count(c.shared_store_conflicts, 0);
  assert_count(c.shared_load_requests, 4 * quad_warps);
  assert_true(c.shared_load_conflicts > 0);
}

/* One thread: for every image a store at first, then two loads and two stores, a sector each. */
static void one_thread_moves_a_sector_an_access(void **state) {
  (void)state;
  LessonCounts c = order(batches_shuffle_gpu, batches_shuffle);
  counts_required();
  assert_count(c.global_store_sectors, c.global_store_requests);
  assert_count(c.global_load_sectors, c.global_load_requests);
  assert_count(c.global_store_requests, IMAGES + 2 * (IMAGES - 1));
}

static void a_cipher_reads_nothing(void **state) {
  (void)state;
  LessonCounts c = order(batches_cipher_gpu, batches_cipher_cpu);
  counts_required();
  assert_count(c.global_load_requests, 0);
  assert_count(c.global_store_requests, IMAGES / 32);
  assert_count(c.global_store_sectors, IMAGES / 8);
  LessonCounts sorted = order(batches_sort_lesson, batches_sort_cpu);
  assert_true(sorted.global_load_sectors + sorted.global_store_sectors > 40 * c.global_store_sectors);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_an_image_touches_a_sector_a_pixel),
      cmocka_unit_test(neighbours_share_sectors),
      cmocka_unit_test(quads_ask_four_times_less_often),
      cmocka_unit_test(the_table_costs_only_shared_memory),
      cmocka_unit_test(one_thread_moves_a_sector_an_access),
      cmocka_unit_test(a_cipher_reads_nothing),
  };
  return TEST_MAIN("batches_counts", tests);
}
