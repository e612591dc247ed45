/* pooling.cu - the largest and the mean of each window, their gradients, and the mean of whole planes.
 *
 *     bazel run //phase3_cnn:pooling
 *     bazel run //phase3_cnn:pooling -- --shape=64x160x112x112      (2 x 2 windows, on a GPU)
 *     bazel run //phase3_cnn:pooling -- --shape=4096x640x7x7        (small planes, for the global average)
 *
 * Pooling does next to no arithmetic: a fast kernel reads each input once, in full sectors, and has enough loads in
 * flight. Windows that overlap share inputs; a thread that has several windows loads what they share once. Backward,
 * each input asks the windows that it is in, so that nothing is added by atomics. */
#include "common/lesson/main.h"
#include "phase3_cnn/09_pooling/pooling_cudnn.cuh"
#include "phase3_cnn/09_pooling/pooling_lesson.cuh"

enum { VERSIONS = 4 };

int main(int argc, char **argv) {
  Lesson lessons[] = {max_pool2d_forward_lesson(),        max_pool2d_backward_lesson(),
                      avg_pool2d_forward_lesson(),        avg_pool2d_backward_lesson(),
                      global_avg_pool2d_forward_lesson(), global_avg_pool2d_backward_lesson()};

  LessonVersion max_y[VERSIONS] = {
      max_pool2d_forward_version("max naive", max_pool2d_forward_naive,
                                 "Nine loads per output, two floats apart. Windows share inputs: compute several."),
      max_pool2d_forward_version("max strip", max_pool2d_forward_strip,
                                 "Four windows below each other: 9 x 3 loads, not 4 x 9. Lanes still skip floats."),
      max_pool2d_forward_version("max tiles", max_pool2d_forward_gpu,
                                 "A float4 of each row, two windows beside each other: memory is the limit."),
  };
  LessonVersion max_dx[VERSIONS] = {
      max_pool2d_backward_version("max dx naive", max_pool2d_backward_naive,
                                  "No atomics: each input asks its windows. It divides to find them."),
      max_pool2d_backward_version("max dx strip", max_pool2d_backward_strip,
                                  "An input knows its windows at compile time, and a thread reads each of them once."),
      max_pool2d_backward_version("max dx tiles", max_pool2d_backward_gpu,
                                  "Rows of dx are stored as float4s: memory is the limit."),
  };
  LessonVersion mean_y[VERSIONS] = {
      avg_pool2d_version("mean naive", avg_pool2d_forward_naive, "As many loads as max naive."),
      avg_pool2d_version("mean tiles", avg_pool2d_forward_gpu,
                         "The loads of max tiles; the sum of a row serves both windows that it is in."),
  };
  LessonVersion mean_dx[VERSIONS] = {
      avg_pool2d_version("mean dx naive", avg_pool2d_backward_naive, "A division for each window of each input."),
      avg_pool2d_version("mean dx tiles", avg_pool2d_backward_gpu,
                         "Rows and columns are counted once per thread; 1/2 and 1/3 are constants: no division."),
  };
  LessonVersion plane_y[VERSIONS] = {
      global_avg_pool2d_version("plane naive", global_avg_pool2d_forward_naive,
                                "One thread per plane: 32 lanes read 32 planes, a sector for each float."),
      global_avg_pool2d_version("plane warp", global_avg_pool2d_forward_warp,
                                "Full sectors. But a lane waits for one load at a time."),
      global_avg_pool2d_version("plane eights", global_avg_pool2d_forward_gpu,
                                "Eight planes per warp, float4s: eight loads of 16 bytes in flight per lane."),
  };
  LessonVersion plane_dx[VERSIONS] = {
      global_avg_pool2d_version("plane dx naive", global_avg_pool2d_backward_naive, "A division per input."),
      global_avg_pool2d_version("plane dx fours", global_avg_pool2d_backward_gpu, "A division per four inputs."),
  };
  const int counts[] = {
      POOLING_CUDNN_ADD(max_y, 3, "cuDNN max", pooling_cudnn_max_forward, 0, "Writes no argmax."),
      POOLING_CUDNN_ADD(max_dx, 3, "cuDNN max dx", pooling_cudnn_max_backward, 0, "Reads x, y and dy: no argmax."),
      POOLING_CUDNN_ADD(mean_y, 2, "cuDNN mean", pooling_cudnn_avg_forward, 1, ""),
      POOLING_CUDNN_ADD(mean_dx, 2, "cuDNN mean dx", pooling_cudnn_avg_backward, 1, ""),
      POOLING_CUDNN_ADD(plane_y, 3, "cuDNN plane", pooling_cudnn_global_forward, 0, "A window as large as the plane."),
      POOLING_CUDNN_ADD(plane_dx, 2, "cuDNN plane dx", pooling_cudnn_global_backward, 0, ""),
  };
  const LessonTable tables[] = {
      {"Max pooling, forward", max_y, counts[0]},
      {"Max pooling, backward", max_dx, counts[1], &lessons[1]},
      {"Average pooling, forward", mean_y, counts[2], &lessons[2]},
      {"Average pooling, backward", mean_dx, counts[3], &lessons[3]},
      {"Average of whole planes, forward", plane_y, counts[4], &lessons[4]},
      {"Average of whole planes, backward", plane_dx, counts[5], &lessons[5]},
  };
  return lesson_main(argc, argv, &lessons[0], tables, 6);
}
