/* The versions of lesson 15: how many fragments are loaded per product; swizzled tiles have no bank conflicts.
 *
 * A fragment is 16 x 16 elements, 512 bytes. The emulated tensor core loads a fragment of A with 4 requests of 4 bytes
 * per lane. Of B, stored by rows, each lane needs neighbours in a column, so it takes 8 requests of 2 bytes. The sizes
 * are multiples of every tile. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_core_lesson.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma_store.cuh"

enum { M = 128, N = 256, K = 64, PRODUCTS = M / 16 * (N / 16) * (K / 16), A_REQUESTS = 4, B_REQUESTS = 8 };

static LessonCounts counts(MatmulTensorCoreLauncher *launch) {
  Lesson lesson = matmul_tensor_core_lesson();
  return counts_of(&lesson, matmul_tensor_core_version("matmul", launch, ""), lesson_shape(&lesson, M, N, K));
}

static void naive_fetches_two_fragments_for_a_product(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_wmma_naive);
  counts_required();
  assert_count(c.global_load_requests, PRODUCTS * (A_REQUESTS + B_REQUESTS));
  assert_count(c.shared_load_requests, 0);
}

/* Every element of A is loaded once per column of blocks, every element of B once per row of blocks, 8 per thread. */
static void expect_tiles(LessonCounts c, int rows, int cols) {
  assert_count(c.global_load_requests, (N / cols * M * K + M / rows * K * N) / 8 / 32);
  assert_count(c.global_load_sectors, 16 * c.global_load_requests);
  assert_count(c.shared_store_requests, c.global_load_requests);
  assert_count(c.shared_load_conflicts, 0);
  assert_count(c.shared_store_conflicts, 0);
  assert_count(c.global_store_sectors, M * N / 8); /* C, 8 floats per sector, no sector twice */
}

static void tiles_fetch_from_shared_memory_what_naive_fetched_from_global(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_wmma_tiled);
  counts_required();
  expect_tiles(c, 64, 64);
  assert_count(c.shared_load_requests, PRODUCTS * (A_REQUESTS + B_REQUESTS));
}

static void four_by_two_fragments_serve_eight_products(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_wmma_fragments);
  counts_required();
  expect_tiles(c, 128, 128);
  assert_count(c.shared_load_requests, PRODUCTS / 8 * (4 * A_REQUESTS + 2 * B_REQUESTS));
}

/* ldmatrix is one instruction for four matrices; the emulator counts as many requests as for a fragment. */
static void swizzled_tiles_have_no_conflicts_without_padding(void **state) {
  (void)state;
  LessonCounts c = counts(matmul_mma_launch<128, 256, 64, 64, 64, 3>);
  counts_required();
  expect_tiles(c, 128, 256);
  assert_count(c.shared_load_requests, PRODUCTS / 16 * (4 * A_REQUESTS + 4 * B_REQUESTS));
  assert_count(c.global_store_requests, M * N / 4 / 32); /* four floats per lane */
}

/* TMA copies each tile of A once per column of tiles, of B once per row. Warps load nothing from shared memory. */
static void tma_copies_tiles_and_wgmma_reads_them(void **state) {
  (void)state;
  if (matmul_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", matmul_wgmma_refusal());
    skip();
  }
  Lesson lesson = matmul_tensor_core_lesson();
  lesson.checks = 2;
  LessonCounts c =
      counts_of(&lesson, matmul_tensor_core_version("ring", matmul_wgmma_ring, ""), lesson_shape(&lesson, M, N, K));
  counts_required();
  assert_count(c.bulk_bytes, 2 * (N / 256 * M * K + M / 128 * K * N));
  assert_count(c.bulk_copies, K / 64 * (M / 128 * (N / 256)) * 5);
  assert_count(c.wgmma_products, M / 64 * (N / 256) * (K / 16));
  assert_count(c.global_load_requests, 0);
  assert_count(c.shared_load_requests, 0);
  assert_count(c.global_store_sectors, M * N / 8);
}

/* Two rows of tiles: without clusters both blocks copy all of B's tile, in a cluster each copies half of it. */
static void a_cluster_copies_b_once(void **state) {
  (void)state;
  if (matmul_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", matmul_wgmma_refusal());
    skip();
  }
  Lesson lesson = matmul_tensor_core_lesson();
  LessonShape shape = lesson_shape(&lesson, 2 * M, N, K);
  lesson.checks = 2;
  LessonCounts alone = counts_of(&lesson, matmul_tensor_core_version("alone", matmul_wgmma_persistent, ""), shape);
  LessonCounts both = counts_of(&lesson, matmul_tensor_core_version("cluster", matmul_wgmma_cluster, ""), shape);
  counts_required();
  assert_count(alone.bulk_bytes, 2 * (2 * M * K + 2 * K * N));
  assert_count(both.bulk_bytes, 2 * (2 * M * K + K * N));
  assert_count(both.wgmma_products, alone.wgmma_products);
}

/* By registers each of 16 x 8 sums costs stores; by TMA warps write to shared memory only, without a bank conflict. */
static void tma_writes_c(void **state) {
  (void)state;
  if (matmul_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", matmul_wgmma_refusal());
    skip();
  }
  Lesson lesson = matmul_tensor_core_lesson();
  LessonShape shape = lesson_shape(&lesson, 2 * M, N, K);
  lesson.checks = 2;
  LessonCounts cluster = counts_of(&lesson, matmul_tensor_core_version("cluster", matmul_wgmma_cluster, ""), shape);
  LessonCounts store = counts_of(&lesson, matmul_tensor_core_version("wgmma", matmul_wgmma, ""), shape);
  counts_required();
  assert_count(cluster.global_store_sectors, 2 * M * N / 8);
  assert_count(store.global_store_sectors, 0);
  assert_count(store.bulk_bytes, cluster.bulk_bytes + 4 * 2 * M * N);
  assert_count(store.shared_store_requests, 2 * M * N / 2 / 32); /* two floats per lane */
  assert_count(store.shared_store_conflicts, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_fetches_two_fragments_for_a_product),
      cmocka_unit_test(tiles_fetch_from_shared_memory_what_naive_fetched_from_global),
      cmocka_unit_test(four_by_two_fragments_serve_eight_products),
      cmocka_unit_test(swizzled_tiles_have_no_conflicts_without_padding),
      cmocka_unit_test(tma_copies_tiles_and_wgmma_reads_them),
      cmocka_unit_test(a_cluster_copies_b_once),
      cmocka_unit_test(tma_writes_c),
  };
  return TEST_MAIN("matmul_tensor_core_counts", tests);
}
