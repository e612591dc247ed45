/* Activations: float4 needs a quarter of the requests for the same sectors. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/07_activations/activations_lesson.cuh"

static LessonCounts forward(Lesson lesson, ActivationForward *launch, int n) {
  return counts_of(&lesson, activation_forward_version("forward", launch, ""), lesson_shape(&lesson, n));
}

static LessonCounts backward(Lesson lesson, ActivationBackward *launch, int n) {
  return counts_of(&lesson, activation_backward_version("backward", launch, ""), lesson_shape(&lesson, n));
}

/* `read` arrays of n floats are read and one is written; each lane of a request moves `floats` floats. */
static void expect(LessonCounts c, int n, int read, int floats) {
  assert_count(c.global_load_requests, read * n / (32 * floats));
  assert_count(c.global_load_sectors, read * n / 8);
  assert_count(c.global_store_requests, n / (32 * floats));
  assert_count(c.global_store_sectors, n / 8);
}

static void forward_reads_once_and_writes_once(void **state) {
  (void)state;
  enum { N = 8192 };
  LessonCounts scalar = forward(tanh_forward_lesson(), activation_forward_scalar<ACTIVATION_TANH>, N);
  LessonCounts quads[] = {forward(relu_forward_lesson(), relu_forward_gpu, N),
                          forward(leaky_relu_forward_lesson(), leaky_relu_forward_gpu, N),
                          forward(sigmoid_forward_lesson(), sigmoid_forward_gpu, N),
                          forward(tanh_forward_lesson(), tanh_forward_gpu, N)};
  LessonCounts odd = forward(tanh_forward_lesson(), tanh_forward_gpu, N + 3);
  counts_required();
  expect(scalar, N, 1, 1);
  for (int i = 0; i < 4; i++) expect(quads[i], N, 1, 4);
  assert_count(odd.global_load_requests, N / 128 + 1); /* the last three elements are neighbours: one more request */
  assert_count(odd.global_store_sectors, N / 8 + 1);
}

static void backward_reads_two_arrays(void **state) {
  (void)state;
  enum { N = 8192 };
  LessonCounts scalar = backward(tanh_backward_lesson(), activation_backward_scalar<ACTIVATION_TANH>, N);
  LessonCounts quads[] = {backward(relu_backward_lesson(), relu_backward_gpu, N),
                          backward(leaky_relu_backward_lesson(), leaky_relu_backward_gpu, N),
                          backward(sigmoid_backward_lesson(), sigmoid_backward_gpu, N),
                          backward(tanh_backward_lesson(), tanh_backward_gpu, N)};
  counts_required();
  expect(scalar, N, 2, 1);
  for (int i = 0; i < 4; i++) expect(quads[i], N, 2, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forward_reads_once_and_writes_once),
                                     cmocka_unit_test(backward_reads_two_arrays)};
  return TEST_MAIN("activations_counts", tests);
}
