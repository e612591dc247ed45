/* rmsprop.cu - a step of RMSprop on all tensors of a network.
 *
 *     bazel run //phase4_training:rmsprop
 *
 * How much an optimizer keeps decides how long it takes: plain RMSprop moves five floats per parameter, centred and
 * with momentum it moves nine. The shape is (tensors, parameters), as in lesson 1. The other programs of this lesson:
 * muon, and optimizer_paths, which draws the paths of all optimizers. */
#include "common/lesson/main.h"
#include "phase4_training/03_rmsprop/rmsprop_lesson.cuh"

int main(int argc, char **argv) {
  const Lesson plain = rmsprop_lesson(), all = rmsprop_all_lesson();
  const LessonVersion plains[] = {
      rmsprop_version("each", rmsprop_each, "A launch per tensor: most tensors take less time than a launch."),
      rmsprop_version("table", rmsprop_table, "One launch. A thread loads 4 bytes at a time."),
      rmsprop_version("table_float4", rmsprop_table_float4, "16 bytes per access but at the ends of tensors."),
      rmsprop_version("flat", rmsprop_flat, "No table, no ends. Five floats per parameter is the limit."),
      lesson_copy_version("Reads one array and writes one, where the step reads three and writes two: compare GB/s."),
  };
  const LessonVersion alls[] = {
      rmsprop_all_version("all_each", rmsprop_all_each, "Nine floats per parameter, and a launch per tensor."),
      rmsprop_all_version("all_table", rmsprop_all_table, "One launch, 16 bytes per access but at the ends."),
      rmsprop_all_version("all_flat", rmsprop_all_flat, "Nine floats per parameter is the limit."),
  };
  const LessonTable tables[] = {{"RMSprop", plains, 5}, {"RMSprop, centred, with momentum", alls, 3, &all}};
  return lesson_main(argc, argv, &plain, tables, 2);
}
