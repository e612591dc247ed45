/* A layer of neurons: values and gradients by hand, and the kernels against the loops (linear_test.cu has the loops'
 * gradients by central differences). */
#include "phase2_mlp/01_perceptron/perceptron_lesson.cuh"

#include "common/lesson/verify.h"
#include "common/test_arrays.h"

/* Two samples, two inputs, two neurons. */
static void a_layer_is_right_by_hand(void **state) {
  (void)state;
  const float x[4] = {1, 2, -3, 5}, w[4] = {10, 1, 0, -2}, bias[2] = {0.5f, 100};
  const float y_expected[4] = {12.5f, 96, -24.5f, 90}, dy[4] = {1, 0, 2, -1};
  const float dw_expected[4] = {1 - 6, 2 + 10, 3, -5}, dbias_expected[2] = {3, -1};
  const float next_expected[4] = {10 + 0.5f * 5, 1 - 0.5f * 12, -1.5f, 0.5f};
  float y[4], dw[4], dbias[2], next[4];
  linear_forward_cpu(y, x, w, bias, 2, 2, 2);
  linear_backward_weight_cpu(dw, dbias, dy, x, 2, 2, 2);
  perceptron_update_cpu(next, w, dw, 4, 0.5f);
  assert_close(y, y_expected, 4, 0, 0);
  assert_close(dw, dw_expected, 4, 0, 0);
  assert_close(dbias, dbias_expected, 2, 0, 0);
  assert_close(next, next_expected, 4, 0, 0);
  test_requires_gpu();
  float *device_x = arrays_upload(DEVICE_GPU, x, 4), *device_w = arrays_upload(DEVICE_GPU, w, 4);
  float *device_bias = arrays_upload(DEVICE_GPU, bias, 2), *device_dy = arrays_upload(DEVICE_GPU, dy, 4);
  float *device_y = guard_alloc(DEVICE_GPU, 4), *device_dw = guard_alloc(DEVICE_GPU, 4);
  float *device_dbias = guard_alloc(DEVICE_GPU, 2);
  perceptron_forward_gpu(device_y, device_x, device_w, device_bias, 2, 2, 2);
  perceptron_backward_weight_gpu(device_dw, device_dbias, device_dy, device_x, 2, 2, 2);
  perceptron_update_gpu(device_w, device_w, device_dw, 4, 0.5f); /* in place */
  arrays_download(DEVICE_GPU, y, device_y, 4, "y");
  arrays_download(DEVICE_GPU, dw, device_dw, 4, "dw");
  arrays_download(DEVICE_GPU, dbias, device_dbias, 2, "dbias");
  arrays_download(DEVICE_GPU, next, device_w, 4, "w");
  arrays_download(DEVICE_GPU, NULL, device_x, 4, "x");
  arrays_download(DEVICE_GPU, NULL, device_bias, 2, "bias");
  arrays_download(DEVICE_GPU, NULL, device_dy, 4, "dy");
  assert_close(y, y_expected, 4, 0, 0);
  assert_close(dw, dw_expected, 4, 0, 0);
  assert_close(dbias, dbias_expected, 2, 0, 0);
  assert_close(next, next_expected, 4, 0, 0);
}

static void verify(Lesson lesson, LessonLauncher launch, const char *name) {
  LessonVersion version = lesson_version(name, launch, "");
  static LessonResult result;
  if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
}

/* On every shape of the lesson, with guard bands, twice; under the inspector what it finds counts, too. */
static void kernels_match_the_loops(void **state) {
  (void)state;
  test_requires_gpu();
  verify(perceptron_forward_lesson(), (LessonLauncher)perceptron_forward_gpu, "perceptron_forward_gpu");
  verify(perceptron_backward_lesson(), (LessonLauncher)perceptron_backward_weight_gpu,
         "perceptron_backward_weight_gpu");
  verify(perceptron_update_lesson(), (LessonLauncher)perceptron_update_gpu, "perceptron_update_gpu");
  perceptron_update_gpu(NULL, NULL, NULL, 0, 1); /* nothing to do */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_layer_is_right_by_hand),
      cmocka_unit_test(kernels_match_the_loops),
  };
  return TEST_MAIN("perceptron", tests);
}
