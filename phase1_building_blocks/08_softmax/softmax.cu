/* softmax.cu - a reduction, and what it costs to look at a row three times.
 *
 *     bazel run //phase1_building_blocks:softmax
 *     bazel run //phase1_building_blocks:softmax -- --shape=65536x1024,4096x50257,128x200    (on a GPU)
 *
 * Softmax needs two numbers of a row, its maximum and a sum, before it can write the first of its results. The threads
 * that share a row have to find them together, and this is the first half of the lesson: through shared memory, then
 * through each other's registers. The second half is the memory. Three passes read a row three times. The online sum
 * makes one pass of two; and who keeps the row where the threads are, in registers and in shared memory, reads it once,
 * which is the least there is.
 *
 * Going backward the derivative is a matrix for every row. Nobody builds it: its product with a vector is all that is
 * wanted, and that is a dot product. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/08_softmax/softmax_lesson.cuh"

int main(int argc, char **argv) {
  Lesson forward = softmax_forward_lesson(), backward = softmax_backward_lesson();
  const LessonVersion forwards[] = {
      softmax_forward_version(
          "naive", softmax_forward_naive,
          "32 lanes read in 32 rows, three times. Give a row to a block: neighbours read neighbours."),
      softmax_forward_version("shared", softmax_forward_shared,
                              "Whole sectors. Two trees of nine barriers each: lanes of a warp could ask each other."),
      softmax_forward_version("shuffle", softmax_forward_shuffle,
                              "Two barriers a row. But it is read three times: maximum and sum could share a pass."),
      softmax_forward_version("online", softmax_forward_online,
                              "Two passes, and the second reads what was just here. Keep it: a row fits a block."),
      softmax_forward_version(
          "staged", softmax_forward_staged,
          "One read. Every float passes through shared memory three times: registers hold more, and nearer."),
      softmax_forward_version("registers", softmax_forward_gpu,
                              "Every load of a row is on its way at once, 16 bytes each: the memory is the limit."),
      lesson_copy_version("As many bytes, and no arithmetic: what is there to be reached."),
  };
  const LessonVersion backwards[] = {
      softmax_backward_version("jacobian", softmax_backward_jacobian,
                               "cols steps for each of cols elements. The sum over j is the same for all of them."),
      softmax_backward_version("naive_backward", softmax_backward_naive,
                               "One dot product a row. Again 32 lanes in 32 rows: give a row to a block."),
      softmax_backward_version("shuffle_backward", softmax_backward_shuffle, "Reads both arrays twice. Keep them."),
      softmax_backward_version("registers_backward", softmax_backward_gpu,
                               "Two reads, one write: the memory is the limit."),
      lesson_copy_version("Two arrays moved, not three: compare GB/s."),
  };
  const LessonTable tables[] = {
      {"Softmax, forward", forwards, sizeof forwards / sizeof *forwards},
      {"Softmax, backward", backwards, sizeof backwards / sizeof *backwards, &backward},
  };
  return lesson_main(argc, argv, &forward, tables, 2);
}
