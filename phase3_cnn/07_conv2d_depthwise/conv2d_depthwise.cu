/* conv2d_depthwise.cu - a filter of its own for each channel: few products, so memory is the limit.
 *
 *     bazel run //phase3_cnn:conv2d_depthwise
 *
 * A convolution mixes neighbours and channels at once: C R S products per output. A depthwise convolution mixes the
 * neighbours of one channel, R S products, and a pointwise one the channels of one pixel, C products; one after the
 * other they do the work of a full one with a fraction of the products. What they do not reduce is the number of
 * bytes. The tables are about the depthwise part: its forward pass and both gradients. */
#include "common/lesson/main.h"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_depthwise_lesson.cuh"

int main(int argc, char **argv) {
  Lesson forward = conv2d_depthwise_forward_lesson(), input = conv2d_depthwise_backward_input_lesson(),
         weight = conv2d_depthwise_backward_weight_lesson();
  const LessonVersion forward_versions[] = {
      conv2d_forward_version(
          "naive", conv2d_depthwise_forward_naive,
          "Two loads per product. The outputs of a column share inputs: compute four with one thread."),
      conv2d_forward_version_of("strip", &conv2d_depthwise_method,
                                "18 loads serve 36 products, and the filter stays in registers. Memory is the limit."),
      lesson_copy_version("Reads and writes y's bytes: no convolution can take less."),
  };
  const LessonVersion input_versions[] = {
      conv2d_backward_input_version("dx naive", conv2d_depthwise_backward_input_naive,
                                    "The same loads, and a test of the stride for each tap."),
      conv2d_backward_input_version_of("dx strip", &conv2d_depthwise_method,
                                       "Stride 1: the forward kernel on dy, with the filter rotated."),
  };
  const LessonVersion weight_versions[] = {
      conv2d_backward_weight_version("dw naive", conv2d_depthwise_backward_weight_naive,
                                     "One thread per weight adds up all pixels of all images: few threads, long sums."),
      conv2d_backward_weight_version_of(
          "dw sliced", &conv2d_depthwise_method,
          "A block per filter and slice of the images; each dy is loaded once for all ten sums."),
  };
  const LessonTable tables[] = {
      {"Depthwise, forward", forward_versions, sizeof forward_versions / sizeof *forward_versions},
      {"Gradient of the input", input_versions, sizeof input_versions / sizeof *input_versions, &input},
      {"Gradient of the filters", weight_versions, sizeof weight_versions / sizeof *weight_versions, &weight},
  };
  return lesson_main(argc, argv, &forward, tables, 3);
}
