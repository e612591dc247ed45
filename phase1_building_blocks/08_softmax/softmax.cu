/* softmax.cu - a reduction per row, and what it costs to read the row three times.
 *
 *     bazel run //phase1_building_blocks:softmax
 *     bazel run //phase1_building_blocks:softmax -- --shape=65536x1024,4096x50257,128x200    (on a GPU)
 *
 * Softmax needs two numbers of a row, its maximum and a sum, before it can write the first result. The threads that
 * share a row compute them together: first through shared memory, then by exchanging registers. That is the first half
 * of the lesson. The second half is memory traffic. Three passes read a row three times; the online sum needs two; a
 * kernel that keeps the row in shared memory or in registers reads it once, which is the minimum.
 *
 * In the backward pass the derivative of a row is a matrix. Only its product with a vector is needed, and that is a dot
 * product and a multiplication. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/08_softmax/softmax_lesson.cuh"

int main(int argc, char **argv) {
  Lesson forward = softmax_forward_lesson(), backward = softmax_backward_lesson();
  const LessonVersion forwards[] = {
      softmax_forward_version(
          "naive", softmax_forward_naive,
          "The 32 lanes of a warp read 32 rows: 32 sectors per load. Use one block per row instead."),
      softmax_forward_version("shared", softmax_forward_shared,
                              "Full sectors. Each tree needs nine barriers; lanes of a warp can shuffle without one."),
      softmax_forward_version("shuffle", softmax_forward_shuffle,
                              "Two barriers per row. It is still read three times: maximum and sum can share a pass."),
      softmax_forward_version(
          "online", softmax_forward_online,
          "Two passes over global memory. A row fits in the shared memory of a block: keep it there."),
      softmax_forward_version(
          "staged", softmax_forward_staged,
          "One read. But each float is stored to shared memory once and loaded twice: use registers."),
      softmax_forward_version(
          "registers", softmax_forward_gpu,
          "All loads of a row are in flight at once, 16 bytes each: memory bandwidth is the limit."),
      lesson_copy_version("Copies the same number of bytes without arithmetic: an upper bound."),
  };
  const LessonVersion backwards[] = {
      softmax_backward_version("jacobian", softmax_backward_jacobian,
                               "cols steps per element. The sum over j is the same for all elements of a row."),
      softmax_backward_version("naive_backward", softmax_backward_naive,
                               "One dot product per row. Again 32 lanes read 32 rows: use one block per row."),
      softmax_backward_version("shuffle_backward", softmax_backward_shuffle,
                               "Reads both arrays twice. Keep both rows in registers."),
      softmax_backward_version("registers_backward", softmax_backward_gpu,
                               "Two reads, one write: memory bandwidth is the limit."),
      lesson_copy_version("Moves two arrays and not three: compare GB/s, not the times."),
  };
  const LessonTable tables[] = {
      {"Softmax, forward", forwards, sizeof forwards / sizeof *forwards},
      {"Softmax, backward", backwards, sizeof backwards / sizeof *backwards, &backward},
  };
  return lesson_main(argc, argv, &forward, tables, 2);
}
