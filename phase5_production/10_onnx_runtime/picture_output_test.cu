/* picture_output.cuh: the kernels against the loops, and the loops against what can be said in words. */
#include "common/lesson/verify.h"
#include "common/test.h"
#include "phase5_production/10_onnx_runtime/picture_output_lesson.cuh"

static void verify(Lesson lesson, LessonVersion version) {
  static LessonResult result; /* large */
  test_requires_gpu();
  if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s: %s", version.name, result.message);
}

static void a_thread_per_row_finds_the_largest(void **state) {
  (void)state;
  verify(top_k_lesson(), top_k_version("thread", top_k_thread, NULL));
}

static void a_warp_per_row_finds_the_largest(void **state) {
  (void)state;
  verify(top_k_lesson(), top_k_version("warp", top_k_gpu, NULL));
}

static void a_thread_per_byte_makes_the_picture(void **state) {
  (void)state;
  verify(picture_bytes_lesson(), picture_bytes_version("bytes", picture_bytes_gpu, NULL));
}

static void equal_values_come_in_the_order_of_their_labels(void **state) {
  (void)state;
  const float logits[] = {1, 3, 3, 2, 3, -1};
  int label[6];
  float probability[6];
  const int expected[] = {1, 2, 4, 3, 0, 5};
  top_k_cpu(label, probability, logits, 1, 6, 6, 0);
  for (int i = 0; i < 6; i++) assert_int_equal(label[i], expected[i]);
  assert_true(probability[0] == probability[2] && probability[0] > 0.2839f && probability[0] < 0.2841f);
}

static void probabilities_stay_what_they_are(void **state) {
  (void)state;
  const float row[] = {0.25f, 0.75f};
  int label[2];
  float probability[2];
  top_k_cpu(label, probability, row, 1, 2, 2, 1);
  assert_int_equal(label[0], 1);
  assert_true(probability[0] == 0.75f && probability[1] == 0.25f);
}

/* Large logits: exp() of them alone would be infinite. */
static void large_logits_do_not_overflow(void **state) {
  (void)state;
  const float row[] = {500, 501};
  int label[1];
  float probability[1];
  top_k_cpu(label, probability, row, 1, 2, 1, 0);
  assert_int_equal(label[0], 1);
  assert_true(probability[0] > 0.731f && probability[0] < 0.7311f);
}

static void check_strange(void top_k(int *, float *, const float *, int, int, int, int), Device device) {
  const float rows[] = {1, 2, NAN, 0, INFINITY, 3, 1, 2, 3};
  int *label = (int *)device_alloc(device, 3 * sizeof *label), got[3];
  float *probability = (float *)device_alloc(device, 3 * sizeof *probability), p[3];
  float *logits = (float *)device_alloc(device, sizeof rows);
  device_upload(device, logits, rows, sizeof rows);
  top_k(label, probability, logits, 3, 3, 1, 0);
  device_download(device, got, label, sizeof got);
  device_download(device, p, probability, sizeof p);
  assert_int_equal(got[0], -1);
  assert_int_equal(got[1], -1);
  assert_int_equal(got[2], 2);
  assert_true(isnan(p[0]) && isnan(p[1]) && p[2] > 0.6f);
  device_free(device, label);
  device_free(device, probability);
  device_free(device, logits);
}

static void rows_that_are_not_finite_have_no_class(void **state) {
  (void)state;
  check_strange(top_k_cpu, DEVICE_CPU);
  test_requires_gpu();
  check_strange(top_k_gpu, DEVICE_GPU);
  check_strange(top_k_thread, DEVICE_GPU);
}

static void bytes_are_rounded_and_kept_in_range(void **state) {
  (void)state;
  assert_int_equal(picture_byte(0.5f, 1), 128);
  assert_int_equal(picture_byte(127.4f, 255), 127);
  assert_int_equal(picture_byte(127.5f, 255), 128);
  assert_int_equal(picture_byte(-3, 1), 0);
  assert_int_equal(picture_byte(1.001f, 1), 255);
  assert_int_equal(picture_byte(INFINITY, 1), 255);
  assert_int_equal(picture_byte(NAN, 1), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equal_values_come_in_the_order_of_their_labels),
                                     cmocka_unit_test(probabilities_stay_what_they_are),
                                     cmocka_unit_test(large_logits_do_not_overflow),
                                     cmocka_unit_test(rows_that_are_not_finite_have_no_class),
                                     cmocka_unit_test(bytes_are_rounded_and_kept_in_range),
                                     cmocka_unit_test(a_thread_per_row_finds_the_largest),
                                     cmocka_unit_test(a_warp_per_row_finds_the_largest),
                                     cmocka_unit_test(a_thread_per_byte_makes_the_picture)};
  return TEST_MAIN("picture_output", tests);
}
