/* activations.cu - activation functions: element by element, in formulas that cannot overflow.
 *
 *     bazel run //phase1_building_blocks:activations
 *
 * Two linear layers in a row are one linear layer; with a nonlinear function between them they are not. ReLU is a
 * comparison. Sigmoid and tanh are made of exp(), which overflows float at 89, and the textbook formula of tanh is then
 * inf / inf; here no step overflows. The formulas hardly affect the time: the memory needs longer for
 * a float than the multiprocessor for its arithmetic. How many bytes a thread loads at once does affect it. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/07_activations/activations_lesson.cuh"

enum { ROWS = 3 };

int main(int argc, char **argv) {
  const char *one = "Each thread loads 4 bytes: load a float4, 16 bytes, instead.";
  const char *four = "Memory bandwidth is the limit: only fusing with a neighbouring operation saves bytes.";
  const char *copy = "The same bytes, and no computation.",
             *copy_backward = "One array read and one written, where backward reads two.";
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
