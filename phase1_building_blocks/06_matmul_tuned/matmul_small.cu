/* matmul_small.cu - products that large tiles do not suit: few rows, few tiles, many small products.
 *
 *     bazel run //phase1_building_blocks:matmul_small
 *     bazel run --config=cuda //phase1_building_blocks:matmul_small -- \
 *         --shape=1x1x4096x4096,1x8x4096x4096,1x64x4096x4096,256x64x64x64     # batch x M x N x K
 *
 * Three kernels, each for one reason why a multiprocessor has nothing to do. Their sentences say which. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/06_matmul_tuned/matmul_small_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_small_lesson();
  const LessonVersion versions[] = {
      matmul_small_version("tuned", matmul_each_of<matmul_tuned_tiled>,
                           "Square tiles, products one after the other. Divide the steps among a block's warps."),
      matmul_small_version("sliced", matmul_each_of<matmul_sliced>,
                           "A part of a tile per multiprocessor. For 8 rows, tiles are mostly empty: have none."),
      matmul_small_version("skinny", matmul_each_of<matmul_skinny>,
                           "B goes from memory to registers, once. Small products: launch all of them together."),
      matmul_small_version("batched", matmul_batched, "A product per block, whose copies all start at the beginning."),
      lesson_library_version(
          matmul_small_version("cuBLAS", matmul_cublas_batched, "NVIDIA's library, in float32: the one to beat.")),
  };
  const LessonTable tables[] = {{"Small products", versions, sizeof versions / sizeof *versions}};
  return lesson_main(argc, argv, &lesson, tables, 1);
}
