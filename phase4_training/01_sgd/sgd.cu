/* sgd.cu - a step of stochastic gradient descent on all tensors of a network.
 *
 *     bazel run //phase4_training:sgd
 *
 * SGD with momentum moves five floats per parameter and does a handful of additions and multiplications: memory
 * bandwidth is its limit, once the launches are not. The shape is (tensors, parameters); by default, on a GPU, that of
 * a ResNet-50, which has 161 tensors and 25.6 million parameters. A third of the tensors are weights, and hold nearly
 * all parameters. */
#include "common/lesson/main.h"
#include "phase4_training/01_sgd/sgd_lesson.cuh"

int main(int argc, char **argv) {
  const Lesson momentum = sgd_momentum_lesson(), nesterov = sgd_nesterov_lesson(), plain = sgd_plain_lesson();
  const char *flat = "One array for all: no table, no ends. Five floats per parameter is the limit.";
  const LessonVersion momentums[] = {
      sgd_version("each", sgd_each, "A launch per tensor: most tensors take less time than a launch. One for all."),
      sgd_version("table", sgd_table,
                  "One launch. But a tensor begins anywhere, and a thread loads 4 bytes at a time."),
      sgd_version("table_float4", sgd_table_float4, "16 bytes per access but at the ends of tensors."),
      sgd_version("flat", sgd_flat, flat),
      lesson_copy_version("Reads one array and writes one, where the step reads three and writes two: compare GB/s."),
  };
  const LessonVersion nesterovs[] = {
      sgd_version("nesterov_table", sgd_table_float4, "The same bytes, one multiplication and one addition more."),
      sgd_version("nesterov_flat", sgd_flat, flat),
  };
  const LessonVersion plains[] = {
      sgd_plain_version("plain_table", sgd_plain_table, "No momentum: three floats per parameter instead of five."),
      sgd_plain_version("plain_flat", sgd_plain_flat, "Three floats per parameter is the limit."),
  };
  const LessonTable tables[] = {
      {"SGD with momentum", momentums, 5},
      {"Nesterov's momentum", nesterovs, 2, &nesterov},
      {"Plain SGD", plains, 2, &plain},
  };
  return lesson_main(argc, argv, &momentum, tables, 3);
}
