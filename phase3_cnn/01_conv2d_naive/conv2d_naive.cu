/* conv2d_naive.cu - a convolution with one thread per output, and how often each number is read.
 *
 *     bazel run //phase3_cnn:conv2d_naive
 *
 * Each output of a convolution is a sum of C x R x S products. With one thread per output each product needs two loads:
 * an input, which K x R x S products share, and a weight, which N x P x Q share. The versions after it give a thread
 * four neighbouring outputs, in a row or in a column. Both have 9 loads for 12 products, not 24; but in a row the lanes
 * of a warp read floats that lie four apart. The last version lets a thread compute eight filters of one pixel, from
 * weights in shared memory. */
#include "common/lesson/main.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive_method.cuh"

int main(int argc, char **argv) {
  Lesson lesson = conv2d_forward_lesson("conv2d_naive");
  const Conv2dMethod tiled = {"tiled", conv2d_tiled_fits, NULL, conv2d_tiled_forward, NULL, NULL}; /* no workspace */
  const LessonVersion versions[] = {
      conv2d_forward_version_of("naive", &conv2d_naive_method,
                                "Two loads per product. Compute neighbouring outputs in one thread, which share both."),
      conv2d_forward_version_of(
          "row", &conv2d_row_method,
          "9 loads per 12 products, but the lanes are four floats apart. Take neighbours in a column."),
      conv2d_forward_version_of("column", &conv2d_column_method,
                                "9 loads per 12 products in whole sectors. Filters, too, can share an input."),
      conv2d_forward_version_of("tiled", &tiled,
                                "One input for 8 products, weights from shared memory. Next: a matrix product."),
  };
  const LessonTable table = {"Convolution, one thread per output", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
