/* conv2d_transposed.cu - a convolution that enlarges an image: the gradient of a convolution, used forward.
 *
 *     bazel run //phase3_cnn:conv2d_transposed
 *
 * Each input adds a filter's worth of products to the output, `stride` pixels further for the next input. Written in
 * that way, threads add to the same output and need atomics. Seen from an output, it is a sum over the taps that reach
 * it; with stride 2 these are a quarter of all, and which ones depends on whether row and column are even or odd. */
#include "common/lesson/main.h"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_transposed_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = conv2d_transposed_lesson();
  const LessonVersion versions[] = {
      lesson_any_order_version(
          conv2d_transposed_version("scatter", conv2d_transposed_scatter,
                                    "One atomic addition per product, and sums in any order. Gather instead.")),
      conv2d_transposed_version("gather", conv2d_transposed_gather,
                                "No atomics. But of 16 taps 4 reach an output; the tests of the others cost time."),
      conv2d_transposed_version("phases", conv2d_transposed_phases,
                                "Only taps that count, and a warp of one phase. Two loads per product."),
      conv2d_transposed_version("forward", conv2d_transposed_forward,
                                "An input serves eight filters; their weights are broadcast from shared memory."),
  };
  const LessonTable tables[] = {{"Transposed convolution", versions, sizeof versions / sizeof *versions}};
  return lesson_main(argc, argv, &lesson, tables, 1);
}
