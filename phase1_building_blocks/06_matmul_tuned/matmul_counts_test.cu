/* The versions of the matrix product: each removes exactly the accesses that it claims to remove.
 *
 * C is M x N, so there are M N K products, and a warp does 32 of them per instruction: W = M N K / 32 is the unit here.
 * The sizes are multiples of every tile, so that no lane is idle. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_small_lesson.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned.cuh"

enum { M = 128, N = 256, K = 32, W = M * N * K / 32 };

static LessonCounts counts(MatmulLauncher *launch) {
  Lesson lesson = matmul_lesson("matmul");
  return counts_of(&lesson, matmul_version("matmul", launch, ""), lesson_shape(&lesson, M, N, K));
}

static void naive_columns_loads_a_sector_a_lane(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_naive_columns);
  counts_required();
  assert_count(c.global_load_requests, 2 * W);
  assert_count(c.global_load_sectors, (32 + 1) * W); /* of A 32 rows, of B one float for all lanes */
  assert_count(c.global_store_sectors, 32 * c.global_store_requests);
}

static void naive_loads_whole_sectors(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_naive);
  counts_required();
  assert_count(c.global_load_requests, 2 * W);
  assert_count(c.global_load_sectors, (1 + 4) * W); /* of A one float for all lanes, of B 32 neighbours */
  assert_count(c.global_store_requests, M * N / 32);
  assert_count(c.global_store_sectors, 4 * c.global_store_requests);
}

/* With tiles of `tile` x `tile`, a global load serves `tile` products; each product still has 2 shared loads. */
static void expect_tiled(LessonCounts c, int tile) {
  assert_count(c.global_load_requests, 2 * W / tile);
  assert_count(c.global_load_sectors, 4 * c.global_load_requests);
  assert_count(c.global_store_sectors, 4 * c.global_store_requests);
  assert_count(c.shared_load_requests, 2 * W);
  assert_count(c.shared_store_requests, 2 * W / tile);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

static void a_tile_divides_the_global_loads_by_its_side(void **state) {
  (void)state;
  LessonCounts c16 = counts(matmul_tiled_16), c32 = counts(matmul_tiled);
  counts_required();
  expect_tiled(c16, 16);
  expect_tiled(c32, 32);
}

static void a_column_in_registers_nearly_halves_the_shared_loads(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_register_1d);
  counts_required();
  assert_count(c.shared_load_requests, 9 * W / 8); /* 8 of A and 1 of B for 8 products, not 16 */
  assert_count(c.global_load_requests, 2 * W / 64);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

static void a_patch_in_registers_needs_an_eighth_of_the_shared_loads(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_register_2d);
  counts_required();
  assert_count(c.shared_load_requests, 16 * W / 64); /* 8 of A and 8 of B for 64 products, not 128 */
  assert_count(c.global_load_requests, 2 * W / 128);
  assert_count(c.global_load_sectors, 4 * c.global_load_requests);
  /* What it leaves to the next versions: a warp's 2 floats of A lie in one bank; its 16 floats of B, 8 floats apart,
   * lie in 4 banks; and the stores of a warp's lanes are 8 floats apart. */
  assert_count(c.shared_load_conflicts, (1 + 3) * c.shared_load_requests / 2);
  assert_count(c.global_store_sectors, 32 * c.global_store_requests);
}

static void float4_quarters_the_requests(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_vectorised);
  counts_required();
  assert_count(c.shared_load_requests, 4 * W / 64);
  assert_count(c.global_load_requests, 2 * W / 128 / 4);
  assert_count(c.global_load_sectors, 16 * c.global_load_requests); /* the same bytes */
  assert_count(c.global_store_requests, M * N / 128);
  /* 8 lanes at a time; B's float4 are 8 floats apart, so two of 8 lanes share a bank: 4 extra turns per request of B */
  assert_count(c.shared_load_conflicts, 4 * c.shared_load_requests / 2);
  /* and where A's tile is stored, lanes are 4 rows of 128 floats apart: in the same bank */
  if (c.shared_store_conflicts == 0) fail_msg("the conflicts that conflict_free removes are not there");
}

/* 8 + 8 floats for 8 x 8 products, four floats per request. Of A, neighbouring lanes load the same float4, so that 16
 * lanes go at a time: two turns per request. Of B they do not: four turns for 512 bytes. */
static void expect_conflict_free(LessonCounts c) {
  assert_count(c.shared_load_requests, 4 * W / 64);
  assert_count(c.shared_load_wavefronts, (2 + 4) * c.shared_load_requests / 2);
  assert_count(c.shared_load_conflicts, 0);
  assert_count(c.shared_store_conflicts, 0);
  assert_count(c.global_load_requests, 2 * W / 128 / 4);
  assert_count(c.global_load_sectors, 16 * c.global_load_requests);
  assert_count(c.global_store_sectors, 16 * c.global_store_requests);
}

static void the_conflict_free_layout_has_none(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_conflict_free);
  counts_required();
  expect_conflict_free(c);
}

static void warp_tiles_and_double_buffers_keep_it_so(void **state) {
  (void)state;
  LessonCounts tiled = counts(matmul_warp_tiled), buffered = counts(matmul_double_buffered);
  counts_required();
  expect_conflict_free(tiled);
  expect_conflict_free(buffered);
}

static void the_tuned_patch_needs_24_floats_for_128_products(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_tuned_launch<128, 256, 8, 64, 64, 16, 8, 1>); /* C is one tile */
  counts_required();
  assert_count(c.shared_load_requests, 24 / 4 * W / 128);
  assert_count(c.shared_load_wavefronts, 2 * c.shared_load_requests); /* lanes i, i ^ 2 share A's; i, i ^ 1 B's */
  assert_count(c.shared_load_conflicts, 0);
  assert_count(c.shared_store_conflicts, 0);
  assert_count(c.global_load_sectors, 4 * (W / 128 + W / 256)); /* of A, shared by 256 columns; of B, by 128 rows */
  assert_count(c.global_load_sectors, 16 * c.global_load_requests);
}

static LessonCounts counts_small(MatmulBatchLauncher *launch, int batch, int m, int n, int k) {
  Lesson lesson = matmul_small_lesson();
  return counts_of(&lesson, matmul_small_version("matmul", launch, ""), lesson_shape(&lesson, batch, m, n, k));
}

/* 8 rows. Each block of 32 columns loads its part of B once, and A, which 8 threads load with one request. */
static void skinny_loads_b_once_and_shares_nothing(void **state) {
  (void)state;
  const int m = 8, n = 256, k = 512;
  LessonCounts c = counts_small(matmul_each_of<matmul_skinny>, 1, m, n, k);
  counts_required();
  assert_count(c.global_load_sectors, k * n / 8 + n / 32 * (m * k / 8));
  assert_count(c.global_load_requests, k * n / 128 + n / 32 * (m * k / 16));
  assert_count(c.global_store_sectors, m * n / 8);
  assert_count(c.shared_load_requests + c.shared_store_requests, n / 32 * (16 * m + 8 * 16)); /* 16 warps' sums alone */
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

/* One tile, whose steps the warps share: what a block of matmul_tuned loads, and every warp's sums through shared
 * memory once. */
static void sliced_loads_a_tile_once(void **state) {
  (void)state;
  const int m = 64, n = 64, k = 64, warps = 8, sums = 16 * 8 / 4; /* float4 of a thread */
  LessonCounts c = counts_small(matmul_each_of<matmul_sliced>, 1, m, n, k);
  counts_required();
  assert_count(c.global_load_sectors, (m * k + k * n) / 8);
  assert_count(c.global_store_sectors, m * n / 8);
  assert_count(c.shared_load_requests, 24 / 4 * (m * n * k / 32) / 128 + warps * sums); /* a tuned patch's, and sums */
  assert_count(c.shared_load_conflicts, 0);
}

static void batched_loads_each_product_once(void **state) {
  (void)state;
  const int batch = 3, m = 64, n = 64, k = 64;
  LessonCounts c = counts_small(matmul_batched, batch, m, n, k);
  counts_required();
  assert_count(c.global_load_sectors, batch * (m * k + k * n) / 8);
  assert_count(c.global_store_sectors, batch * m * n / 8);
  assert_count(c.shared_load_requests, batch * (8 + 4) * (m * n * k / 32) / (4 * 32)); /* 12 for 8 x 4 x 4 products */
  assert_count(c.shared_load_conflicts, 0);
}

static void every_configuration_is_right(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof matmul_tuned_configurations / sizeof *matmul_tuned_configurations; i++)
    counts(matmul_tuned_configurations[i].launch);
  counts(matmul_tuned);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_columns_loads_a_sector_a_lane),
      cmocka_unit_test(naive_loads_whole_sectors),
      cmocka_unit_test(a_tile_divides_the_global_loads_by_its_side),
      cmocka_unit_test(a_column_in_registers_nearly_halves_the_shared_loads),
      cmocka_unit_test(a_patch_in_registers_needs_an_eighth_of_the_shared_loads),
      cmocka_unit_test(float4_quarters_the_requests),
      cmocka_unit_test(the_conflict_free_layout_has_none),
      cmocka_unit_test(warp_tiles_and_double_buffers_keep_it_so),
      cmocka_unit_test(the_tuned_patch_needs_24_floats_for_128_products),
      cmocka_unit_test(skinny_loads_b_once_and_shares_nothing),
      cmocka_unit_test(sliced_loads_a_tile_once),
      cmocka_unit_test(batched_loads_each_product_once),
      cmocka_unit_test(every_configuration_is_right),
  };
  return TEST_MAIN("matmul_counts", tests);
}
