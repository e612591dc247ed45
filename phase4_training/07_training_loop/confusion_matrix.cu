/* confusion_matrix.cu - which classes a network takes for which, as a histogram of pairs.
 *
 *     bazel run //phase4_training:confusion_matrix
 *
 * The shape is (images, classes). An image adds 1 to one of classes^2 numbers: few, so that many threads meet there. */
#include "common/lesson/main.h"
#include "phase4_training/07_training_loop/training_loop_lesson.cuh"

int main(int argc, char **argv) {
  Lesson confusion = confusion_lesson();
  const LessonVersion versions[] = {
      confusion_version("global", confusion_global,
                        "A lane reads its own row, and all blocks add to the same numbers in global memory."),
      confusion_version("shared", confusion_shared,
                        "Up to classes^2 atomics per block in global memory. The rows are still read in stripes."),
      confusion_version("tiled", confusion_tiled, "Whole sectors. What is left is one pass over the logits."),
  };
  const LessonTable table = {"Confusion matrix", versions, 3};
  return lesson_main(argc, argv, &confusion, &table, 1);
}
