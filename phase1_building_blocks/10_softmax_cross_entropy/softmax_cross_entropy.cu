/* softmax_cross_entropy.cu - the last forward step of a classifier and the first backward step, in one kernel.
 *
 *     bazel run //phase1_building_blocks:softmax_cross_entropy
 *
 * A language model computes a score for each of 50257 tokens: a row of 200 KB per position, with little to compute but
 * exp(). So the time depends on how often the rows are read and written. Two kernels, one forward and one backward,
 * move them six times. But training needs only the loss, one number per row, and the gradient, which is p - 1 at the
 * label and p elsewhere. Two times are enough if the multiprocessor keeps the row until its sum is known. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_kept.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = softmax_cross_entropy_lesson();
  const LessonVersion versions[] = {
      softmax_cross_entropy_version("separate", softmax_cross_entropy_separate,
                                    "Four reads, two writes. Do both directions at once: training does not need p."),
      softmax_cross_entropy_version(
          "online", softmax_cross_entropy_online,
          "Maximum and sum in one pass, the gradient in a second. Keep the row in shared memory."),
      softmax_cross_entropy_version("shared", softmax_cross_entropy_shared,
                                    "One read, 4 bytes at a time. Copy 16 at a time, with the whole row in flight."),
      softmax_cross_entropy_version(
          "quads", softmax_cross_entropy_quads,
          "The L2 cache keeps the gradients, which nothing reads soon: use streaming stores."),
      softmax_cross_entropy_version(
          "fused", softmax_cross_entropy_fused,
          "One read, one write. But 9 exp() for 4 logits: while a block computes, it loads nothing."),
      softmax_cross_entropy_version("kept", softmax_cross_entropy_kept,
                                    "Each exponential is computed once, in few instructions: bandwidth is the limit."),
      lesson_copy_version("Copies the logits: an upper bound."),
  };
  const LessonTable table = {"Softmax and cross-entropy, forward and backward", versions,
                             sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
