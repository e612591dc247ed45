/* softmax_cross_entropy.cu - the last step of a classifier and the first one back, in one kernel.
 *
 *     bazel run //phase1_building_blocks:softmax_cross_entropy
 *
 * A language model says for each of 50257 tokens how likely it comes next: a row of 200 KB for each token of a batch,
 * and nothing to compute but exp(). So it is a question of how often the rows go through the memory. Two kernels, one
 * forward and one back, as a framework calls them, need six times; but training wants only the loss, a number a row,
 * and the gradient, which is p - 1 at the label and p elsewhere. Two times are enough, if the row waits on the
 * multiprocessor for its sum to be known. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = softmax_cross_entropy_lesson();
  const LessonVersion versions[] = {
      softmax_cross_entropy_version("separate", softmax_cross_entropy_separate,
                                    "Four reads, two writes. Do both directions at once, for nobody asks for p."),
      softmax_cross_entropy_version(
          "online", softmax_cross_entropy_online,
          "Maximum and sum in one pass, a second for the gradient. Keep the row where the first has read it."),
      softmax_cross_entropy_version("shared", softmax_cross_entropy_shared,
                                    "One read, 4 bytes at a time; copy 16, and all of the row at once."),
      softmax_cross_entropy_version("quads", softmax_cross_entropy_quads,
                                    "The cache keeps what is written, which nobody reads soon: tell it so."),
      softmax_cross_entropy_version("fused", softmax_cross_entropy_fused,
                                    "One read, one write: the memory. Short rows are a warp's, in its registers."),
      lesson_copy_version("The logits, copied."),
  };
  const LessonTable table = {"Softmax and cross-entropy, forward and backward", versions,
                             sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
