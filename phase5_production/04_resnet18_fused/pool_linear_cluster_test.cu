/* The head whose blocks are a cluster, on all shapes: the emulated GPU has clusters with compute capability 9.0 alone,
 * with which BUILD runs this test; the other tests have blocks that are by themselves there. */
#include "common/lesson/verify.h"
#include "common/test.h"
#include "phase5_production/04_resnet18_fused/pool_linear_lesson.cuh"

static void the_means_of_a_cluster(void **state) {
  (void)state;
  test_requires_gpu();
#ifdef SIMT_REWRITTEN
  assert_true(pool_linear_clusters()); /* else BUILD has lost SIMT_CAPABILITY */
#else
  if (!pool_linear_clusters()) skip();
#endif
  static LessonResult result; /* large */
  const Lesson lesson = pool_linear_lesson();
  const LessonVersion version = pool_linear_version("cluster", pool_linear_forward_bf16, "");
  if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_means_of_a_cluster)};
  return TEST_MAIN("pool_linear_cluster", tests);
}
