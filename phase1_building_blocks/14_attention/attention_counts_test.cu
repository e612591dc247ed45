/* The memory traffic of the versions of attention: one head of 128 queries and keys, 64 columns. A float4 per lane is
 * 16 sectors per request, and 512 bytes of shared memory take four wavefronts. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/14_attention/attention_backward_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core_lesson.cuh"

enum {
  S = 128,
  D = 64,
  MATRIX = S * D * 4 / 32,
  SQUARE = S * S * 4 / 32
}; /* sectors of an array, of a head's scores */

static LessonCounts counts(Lesson lesson, LessonVersion version) {
  return counts_of(&lesson, version, lesson_shape(&lesson, 1, 1, S, D));
}

static void three_kernels_move_the_scores_six_times(void **state) {
  (void)state;
  LessonCounts c = counts(attention_lesson(false), attention_version("three_kernels", attention_three_kernels, ""));
  counts_required();
  assert_count(attention_memory, 4.0 * S * S);
  /* stored thrice: the scores, their exponentials, p; o and lse */
  assert_count(c.global_store_sectors, 3 * SQUARE + MATRIX + S);
  assert_count(c.shared_load_requests, 0);
}

static void flash_rows_reads_tiles_once(void **state) {
  (void)state;
  LessonCounts c = counts(attention_lesson(false), attention_version("flash_rows", attention_flash_rows, ""));
  counts_required();
  assert_count(attention_memory, 0);
  /* K and V are read as float4; each lane reads its own row of q and o, so each such request has 32 sectors */
  assert_count(c.global_load_sectors, 2 * MATRIX + 2 * MATRIX);
  assert_count(c.global_load_requests, 2 * MATRIX / 16 + S / 32 * D / 4);
  /* every warp reads every float of K and V, all lanes the same one; nvcc combines four neighbours into a float4 */
  assert_count(c.shared_load_requests, S / 32 * 2 * S * D);
  assert_count(c.shared_load_wavefronts, c.shared_load_requests);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

static void flash_shares_what_it_reads_and_has_no_conflicts(void **state) {
  (void)state;
  LessonCounts c = counts(attention_lesson(false), attention_version("flash", attention_flash, ""));
  counts_required();
  assert_count(attention_memory, 0);
  assert_count(c.global_load_sectors, 3 * MATRIX); /* one block: q, K and V once each, in whole sectors */
  assert_count(c.global_load_requests, 3 * MATRIX / 16);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
  /* a warp has 32 queries: of its 2 * 32 x 128 x 64 products each lane computes 64 from 16 floats, 4 requests */
  assert_count(c.shared_load_requests, S / 32 * 2.0 * 32 * S * D / 32 / 64 * 4);
}

static void the_gradients_need_no_matrix(void **state) {
  (void)state;
  LessonCounts c = counts(attention_gradients_lesson(false),
                          attention_gradients_version("gradients_flash", attention_gradients_flash, ""));
  counts_required();
  assert_count(attention_memory, 4.0 * S * (D + 2));            /* o, lse, delta */
  assert_count(c.global_store_sectors, 4 * MATRIX + S / 4 + S); /* o, dq, dk, dv; lse, 4 rows at a time; delta, one */
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

static void wmma_goes_through_shared_memory_and_mma_does_not(void **state) {
  (void)state;
  Lesson lesson = attention_bf16_lesson(false);
  LessonCounts wmma = counts(lesson, attention_bf16_version("wmma", attention_wmma, ""));
  if (mma_refusal() != NULL) skip();
  LessonCounts mma = counts(lesson, attention_bf16_version("mma", attention_mma, ""));
  counts_required();
  /* mma stores only tiles: q, K, V, 16 bytes per lane, four wavefronts per request */
  assert_count(mma.shared_store_requests, 3 * MATRIX / 2 / 16);
  assert_count(mma.shared_store_wavefronts, 4 * mma.shared_store_requests);
  assert_count(mma.shared_load_conflicts + mma.shared_store_conflicts, 0);
  assert_true(wmma.shared_store_requests > 8 * mma.shared_store_requests);
  assert_true(wmma.shared_load_wavefronts > mma.shared_load_wavefronts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(three_kernels_move_the_scores_six_times),
      cmocka_unit_test(flash_rows_reads_tiles_once),
      cmocka_unit_test(flash_shares_what_it_reads_and_has_no_conflicts),
      cmocka_unit_test(the_gradients_need_no_matrix),
      cmocka_unit_test(wmma_goes_through_shared_memory_and_mma_does_not),
  };
  return TEST_MAIN("attention_counts", tests);
}
