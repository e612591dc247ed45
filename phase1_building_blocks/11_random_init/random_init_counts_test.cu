/* Random numbers: nothing is read; how many sectors does a store of a warp touch? */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/11_random_init/random_init_lesson.cuh"

enum { N = 1 << 16, WARPS = N / 32 };

static void assert_stores(Lesson lesson, RandomLauncher *launch, double requests, double sectors_each) {
  LessonCounts c = counts_of(&lesson, random_version("random", launch, ""), lesson_shape(&lesson, N));
  counts_required();
  assert_count(c.global_load_requests, 0);
  assert_count(c.global_store_requests, requests);
  assert_count(c.global_store_sectors, sectors_each * requests);
}

static void one_each_stores_neighbours(void **state) {
  (void)state;
  assert_stores(random_uniform_lesson(), random_uniform_one_each, WARPS, 4);
}

static void four_each_stores_four_times_into_the_same_sectors(void **state) {
  (void)state;
  assert_stores(random_uniform_lesson(), random_uniform_four_each, WARPS, 16); /* a lane has 16 bytes: 512 in all */
}

static void float4_stores_once(void **state) {
  (void)state;
  assert_stores(random_uniform_lesson(), random_uniform_float4, WARPS / 4, 16);
  assert_stores(random_uniform_lesson(), random_uniform_fill_gpu, WARPS / 4, 16);
  assert_stores(random_normal_lesson(), random_normal_quads_double, WARPS / 4, 16);
  assert_stores(random_normal_lesson(), random_normal_quads_float, WARPS / 4, 16);
  assert_stores(random_normal_lesson(), random_normal_quads_gpu, WARPS / 4, 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_each_stores_neighbours),
      cmocka_unit_test(four_each_stores_four_times_into_the_same_sectors),
      cmocka_unit_test(float4_stores_once),
  };
  return TEST_MAIN("random_init_counts", tests);
}
