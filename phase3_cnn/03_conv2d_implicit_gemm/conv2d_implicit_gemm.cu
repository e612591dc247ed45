/* conv2d_implicit_gemm.cu - from one thread per output to a matrix product whose second matrix is never stored.
 *
 *     bazel run //phase3_cnn:conv2d_implicit_gemm
 *     bazel run //phase3_cnn:conv2d_implicit_gemm -- --shape=4x16x28x28x32x5x5:stride=2:padding=2
 *
 * The first table is the ladder. The second one is a sweep: the last version with other tile sizes. The third one is
 * about what comes after a convolution in a network. */
#include "common/lesson/main.h"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = conv2d_forward_lesson("conv2d_implicit_gemm"), bias_relu = conv2d_bias_relu_lesson();
  lesson.counted = bias_relu.counted;
  const LessonVersion versions[] = {
      conv2d_forward_version_of("naive", &conv2d_naive_method,
                                "One thread per output: two loads per product. Keep what neighbours share in a tile."),
      conv2d_forward_version_of("halo", &conv2d_halo_method,
                                "Three shared loads serve 8 products. A matrix product has patches of 64 and 128."),
      conv2d_forward_version_of("gemm", &conv2d_gemm_tiled_method,
                                "No matrix in memory, but divisions for each element of a tile: compute them earlier."),
      conv2d_forward_version_of("gemm_register", &conv2d_gemm_register_method,
                                "A table of offsets, patches of 8 x 8; copies and products take turns: overlap them."),
      conv2d_forward_version_of("implicit_gemm", &conv2d_implicit_gemm_method,
                                "Copies without registers, during the products: arithmetic is the limit."),
  };
  LessonVersion sweep[LESSON_VERSIONS];
  for (int i = 0; i < CONV2D_GEMM_CONFIGURATIONS; i++) sweep[i] = conv2d_configuration_version(i);
  const LessonVersion fused[] = {
      conv2d_forward_version_of(conv2d_then_bias_relu_method.name, &conv2d_then_bias_relu_method,
                                "The second kernel reads y from memory and writes it again."),
      conv2d_forward_version_of(conv2d_bias_relu_method.name, &conv2d_bias_relu_method,
                                "The sums are still in registers when the bias and ReLU come."),
  };
  const LessonTable tables[] = {
      {"Step by step", versions, sizeof versions / sizeof *versions, NULL},
      {"Tile of filters x pixels, outputs per thread", sweep, CONV2D_GEMM_CONFIGURATIONS, NULL},
      {"With bias and ReLU", fused, sizeof fused / sizeof *fused, &bias_relu},
  };
  return lesson_main(argc, argv, &lesson, tables, sizeof tables / sizeof *tables);
}
