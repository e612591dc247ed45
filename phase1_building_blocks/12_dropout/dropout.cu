/* dropout.cu - randomness that is asked for twice instead of being kept, and two operations in one pass.
 *
 *     bazel run //phase1_building_blocks:dropout
 *
 * Dropout multiplies by 0 or by a constant: no layer computes less, and it moves as many bytes as any. What was dropped
 * forward must be dropped backward, and the obvious way to know it is a mask, stored and read again. But the cipher of
 * the last lesson gives word i at any time. Asking it again costs arithmetic, and that is what a kernel that waits for
 * memory has left over.
 *
 * For the same reason the fastest dropout is the one behind a softmax in the same kernel: the numbers are in registers
 * already. The last two tables compare one kernel with two. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/12_dropout/dropout_lesson.cuh"
#include "phase1_building_blocks/12_dropout/softmax_dropout_lesson.cuh"

int main(int argc, char **argv) {
  Lesson dropout = dropout_lesson(), step = dropout_step_lesson();
  Lesson fused = softmax_dropout_lesson(), fused_step = softmax_dropout_step_lesson();
  const LessonVersion dropout_versions[] = {
      dropout_version("mask", dropout_mask, "A byte more to write for each 8, and a cipher for each element."),
      dropout_version("one_each", dropout_one_each,
                      "No mask. But each thread drops three words of four: let it take four elements."),
      dropout_version("dropout", dropout_gpu,
                      "A quarter of the ciphers and of the requests: they run while others' loads are on their way."),
      lesson_copy_version("As many bytes: what is there to be reached."),
  };
  const LessonVersion step_versions[] = {
      dropout_step_version("step_mask", dropout_step_mask,
                           "Forward stores a mask, backward reads it: 18 bytes an element instead of 16."),
      dropout_step_version("step_one_each", dropout_step_one_each,
                           "Asked again instead: fewer bytes, twice as many ciphers. Use all four of their words."),
      dropout_step_version("step_dropout", dropout_step_gpu, "Backward is forward, applied to dy."),
  };
  const LessonVersion fused_versions[] = {
      softmax_dropout_version("softmax, dropout", softmax_dropout_separate,
                              "The probabilities go to memory and come back, only to be dropped or scaled."),
      softmax_dropout_version("softmax_dropout", softmax_dropout_forward_gpu,
                              "Dropped while they are in registers: one read, one write."),
      lesson_copy_version("As many bytes: what is there to be reached."),
  };
  const LessonVersion fused_step_versions[] = {
      softmax_dropout_step_version("step, separate", softmax_dropout_step_separate,
                                   "Four kernels, nine times the matrix; the probabilities are kept for backward."),
      softmax_dropout_step_version("step, three passes", softmax_dropout_step_passes,
                                   "Nothing is kept, but backward walks three times over its rows."),
      softmax_dropout_step_version("step_softmax_dropout", softmax_dropout_step_gpu,
                                   "Five times the matrix: x is read again, and its softmax computed again."),
  };
  const LessonTable tables[] = {
      {"Dropout", dropout_versions, sizeof dropout_versions / sizeof *dropout_versions},
      {"Dropout, forward and backward", step_versions, sizeof step_versions / sizeof *step_versions, &step},
      {"Softmax and dropout", fused_versions, sizeof fused_versions / sizeof *fused_versions, &fused},
      {"Softmax and dropout, forward and backward", fused_step_versions,
       sizeof fused_step_versions / sizeof *fused_step_versions, &fused_step},
  };
  return lesson_main(argc, argv, &dropout, tables, 4);
}
