/* gradient_clip.cu - gradients that are clipped by the norm of all of them.
 *
 *     bazel run //phase4_training:gradient_clip
 *
 * Each gradient is read twice and written once, and nothing can be scaled before all squares are added up. All of them
 * go into one number: what counts is how often they meet there. The shape is (tensors, parameters), as in lesson 1. */
#include "common/lesson/main.h"
#include "phase4_training/07_training_loop/training_loop_lesson.cuh"

int main(int argc, char **argv) {
  Lesson clip = clip_lesson();
  const LessonVersion versions[] = {
      lesson_any_order_version(
          clip_version("each", clip_each, "One atomic per element, all at one address; two launches per tensor.")),
      lesson_any_order_version(
          clip_version("warps", clip_warps, "One atomic per warp. The sum still depends on who comes first.")),
      clip_version("partial", clip_partial, "No atomics, and the same bits each time. But 4 bytes per access."),
      clip_version("engine", clip_engine, "16 bytes per access. It works in place, on a copy that is made here."),
      lesson_copy_version("Reads n floats and writes n, where clipping reads 2 n."),
  };
  const LessonTable table = {"Gradients clipped by their norm", versions, 5};
  return lesson_main(argc, argv, &clip, &table, 1);
}
