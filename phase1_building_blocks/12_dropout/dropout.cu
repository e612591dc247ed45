/* dropout.cu - random numbers that are computed twice instead of being stored, and two operations in one pass.
 *
 *     bazel run //phase1_building_blocks:dropout
 *
 * Dropout multiplies by 0 or by a constant: it computes very little and moves as many bytes as other layers. Backward
 * must drop what forward dropped, and the obvious way is a mask, stored and read again. But the cipher of the last
 * lesson gives word i at any time. Running it again costs arithmetic, and a kernel that waits for memory has time for
 * arithmetic.
 *
 * For the same reason dropout is cheapest in the same kernel as the softmax before it: the numbers are already in
 * registers. The last two tables compare one kernel with two. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/12_dropout/dropout_lesson.cuh"
#include "phase1_building_blocks/12_dropout/softmax_dropout_lesson.cuh"

int main(int argc, char **argv) {
  Lesson dropout = dropout_lesson(), step = dropout_step_lesson();
  Lesson fused = softmax_dropout_lesson(), fused_step = softmax_dropout_step_lesson();
  const LessonVersion dropout_versions[] = {
      dropout_version("mask", dropout_mask, "Writes one byte more per 8, and runs the cipher for each element."),
      dropout_version("one_each", dropout_one_each,
                      "No mask. But each thread uses one word of four: let it take four elements."),
      dropout_version("dropout", dropout_gpu,
                      "A quarter of the cipher calls and requests; the arithmetic is hidden behind the loads."),
      lesson_copy_version("Copies the same number of bytes: an upper bound."),
  };
  const LessonVersion step_versions[] = {
      dropout_step_version("step_mask", dropout_step_mask,
                           "Forward stores a mask, backward reads it: 18 bytes per element instead of 16."),
      dropout_step_version("step_one_each", dropout_step_one_each,
                           "Runs the cipher again: fewer bytes, twice the cipher calls. Use all four words."),
      dropout_step_version("step_dropout", dropout_step_gpu, "Backward is forward, applied to dy."),
  };
  const LessonVersion fused_versions[] = {
      softmax_dropout_version("softmax, dropout", softmax_dropout_separate,
                              "The probabilities are written and read again, only to be dropped or scaled."),
      softmax_dropout_version("softmax_dropout", softmax_dropout_forward_fused,
                              "One read, one write. But the cipher begins when the row has arrived: run it before."),
      softmax_dropout_version("cipher_first", softmax_dropout_forward_gpu,
                              "The cipher runs while the row is on its way: memory bandwidth is the limit."),
      lesson_copy_version("Copies the same number of bytes: an upper bound."),
  };
  const LessonVersion fused_step_versions[] = {
      softmax_dropout_step_version("step, separate", softmax_dropout_step_separate,
                                   "Four kernels move the matrix nine times, and keep the probabilities for backward."),
      softmax_dropout_step_version("step, three passes", softmax_dropout_step_passes,
                                   "Nothing is kept, but backward makes three passes over its rows."),
      softmax_dropout_step_version("step_softmax_dropout", softmax_dropout_step_gpu,
                                   "Moves the matrix five times: x is read again and its softmax computed again."),
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
