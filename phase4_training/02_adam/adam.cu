/* adam.cu - a step of Adam, and of AdamW, on all tensors of a network.
 *
 *     bazel run //phase4_training:adam
 *
 * Adam moves seven floats per parameter, and computes a root and a division besides: still, memory bandwidth is its
 * limit, once the launches are not. The shape is (tensors, parameters), as in lesson 1. */
#include "common/lesson/main.h"
#include "phase4_training/02_adam/adam_lesson.cuh"

int main(int argc, char **argv) {
  const Lesson adam = adam_lesson(), adamw = adamw_lesson();
  const char *flat = "One array for all: no table, no ends. Seven floats per parameter is the limit.";
  const LessonVersion adams[] = {
      adam_version("each", adam_each, "A launch per tensor: most tensors take less time than a launch. One for all."),
      adam_version("table", adam_table,
                   "One launch. But a tensor begins anywhere, and a thread loads 4 bytes at a time."),
      adam_version("table_float4", adam_table_float4, "16 bytes per access but at the ends of tensors."),
      adam_version("flat", adam_flat, flat),
      lesson_copy_version("Reads one array and writes one, where the step reads four and writes three: compare GB/s."),
  };
  const LessonVersion adamws[] = {
      adam_version("adamw_table", adam_table_float4,
                   "The same bytes: the decay acts on the weight, not on the gradient."),
      adam_version("adamw_flat", adam_flat, flat),
  };
  const LessonTable tables[] = {{"Adam", adams, 5}, {"AdamW", adamws, 2, &adamw}};
  return lesson_main(argc, argv, &adam, tables, 2);
}
