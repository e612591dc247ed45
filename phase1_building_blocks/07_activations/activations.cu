/* activations.cu - the bends of a network: one element in, one out, and how not to overflow on the way.
 *
 *     bazel run //phase1_building_blocks:activations
 *
 * Between two linear layers something must bend, or they would be one. ReLU is a comparison; sigmoid and tanh are made
 * of exp(), which overflows float at 89, and their textbook formulas then say inf / inf. Here they are written so that
 * they cannot. None of that shows in the time: a float that is read and written takes the memory longer than the
 * multiplications take the rest. What shows is how many bytes a thread asks for at once. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/07_activations/activations_lesson.cuh"

enum { ROWS = 3 };

int main(int argc, char **argv) {
  const char *one = "4 bytes a request leave the memory waiting; ask for 16.";
  const char *four = "The memory itself: nothing but a fused neighbour would save its bytes.";
  const char *copy = "As many bytes, and no computation.", *copy_backward = "Two arrays of the three.";
  const LessonVersion copied = lesson_copy_version(copy), copied_backward = lesson_copy_version(copy_backward);
  const Lesson lessons[] = {relu_forward_lesson(),        relu_backward_lesson(),   leaky_relu_forward_lesson(),
                            leaky_relu_backward_lesson(), sigmoid_forward_lesson(), sigmoid_backward_lesson(),
                            tanh_forward_lesson(),        tanh_backward_lesson()};
  const LessonVersion relu_forward[ROWS] = {
      activation_forward_version("relu_scalar", activation_forward_scalar<ACTIVATION_RELU>, one),
      activation_forward_version("relu", relu_forward_gpu, four), copied};
  const LessonVersion relu_backward[ROWS] = {
      activation_backward_version("relu_backward_scalar", activation_backward_scalar<ACTIVATION_RELU>, one),
      activation_backward_version("relu_backward", relu_backward_gpu, four), copied_backward};
  const LessonVersion leaky_relu_forward[ROWS] = {
      activation_forward_version("leaky_relu_scalar", activation_forward_scalar<ACTIVATION_LEAKY_RELU>, one),
      activation_forward_version("leaky_relu", leaky_relu_forward_gpu, four), copied};
  const LessonVersion leaky_relu_backward[ROWS] = {
      activation_backward_version("leaky_backward_scalar", activation_backward_scalar<ACTIVATION_LEAKY_RELU>, one),
      activation_backward_version("leaky_backward", leaky_relu_backward_gpu, four), copied_backward};
  const LessonVersion sigmoid_forward[ROWS] = {
      activation_forward_version("sigmoid_scalar", activation_forward_scalar<ACTIVATION_SIGMOID>, one),
      activation_forward_version("sigmoid", sigmoid_forward_gpu, four), copied};
  const LessonVersion sigmoid_backward[ROWS] = {
      activation_backward_version("sigmoid_backward_scalar", activation_backward_scalar<ACTIVATION_SIGMOID>, one),
      activation_backward_version("sigmoid_backward", sigmoid_backward_gpu, four), copied_backward};
  const LessonVersion tanh_forward[ROWS] = {
      activation_forward_version("tanh_scalar", activation_forward_scalar<ACTIVATION_TANH>, one),
      activation_forward_version("tanh", tanh_forward_gpu, four), copied};
  const LessonVersion tanh_backward[ROWS] = {
      activation_backward_version("tanh_backward_scalar", activation_backward_scalar<ACTIVATION_TANH>, one),
      activation_backward_version("tanh_backward", tanh_backward_gpu, four), copied_backward};
  const LessonTable tables[] = {
      {"ReLU", relu_forward, ROWS, &lessons[0]},
      {"ReLU, backward", relu_backward, ROWS, &lessons[1]},
      {"Leaky ReLU", leaky_relu_forward, ROWS, &lessons[2]},
      {"Leaky ReLU, backward", leaky_relu_backward, ROWS, &lessons[3]},
      {"Sigmoid", sigmoid_forward, ROWS, &lessons[4]},
      {"Sigmoid, backward", sigmoid_backward, ROWS, &lessons[5]},
      {"Hyperbolic tangent", tanh_forward, ROWS, &lessons[6]},
      {"Hyperbolic tangent, backward", tanh_backward, ROWS, &lessons[7]},
  };
  return lesson_main(argc, argv, &lessons[0], tables, sizeof tables / sizeof *tables);
}
