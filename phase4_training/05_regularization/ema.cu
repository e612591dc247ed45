/* ema.cu - what an average of the weights costs, beside a step of SGD with momentum.
 *
 *     bazel run //phase4_training:ema
 *
 * The average is updated after each step, for all weights of the network. The shape is (tensors, parameters), as in
 * lesson 1. */
#include "common/lesson/main.h"
#include "phase4_training/05_regularization/regularization_lesson.cuh"

int main(int argc, char **argv) {
  const Lesson ema = ema_lesson();
  const LessonVersion versions[] = {
      ema_version("ema each", ema_each, "A launch per tensor, most of them tiny. One launch for all."),
      ema_version("ema flat", ema_flat, "Eight floats per parameter: the new weight is written, then read again."),
      ema_version("ema fused", ema_fused, "Seven floats, one launch: the weight is in a register."),
      lesson_copy_version("Reads one array and writes one, where the step reads four and writes three: compare GB/s."),
  };
  const LessonTable tables[] = {{"A step of SGD and the average of the weights", versions, 4}};
  return lesson_main(argc, argv, &ema, tables, 1);
}
