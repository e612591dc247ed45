/* matmul_small.cu - products that large tiles do not suit: of few rows, of few tiles, and many small ones.
 *
 *     bazel run //phase1_building_blocks:matmul_small
 *     bazel run --config=cuda //phase1_building_blocks:matmul_small -- \
 *         --shape=1x1x4096x4096,1x8x4096x4096,1x64x4096x4096,256x64x64x64     # batch x M x N x K
 *
 * Each kernel removes one reason why multiprocessors wait, and is the fastest for one kind of product. On a GPU the
 * tables of several shapes show which. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/06_matmul_tuned/matmul_small_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_small_lesson();
  const LessonVersion versions[] = {
      matmul_small_version("tiled", matmul_each_of<matmul_tuned_tiled>,
                           "Square tiles: many parts per tile. Let each warp of a block have a slice of K."),
      matmul_small_version("sliced", matmul_each_of<matmul_sliced>,
                           "One part per multiprocessor. With 8 rows most of a tile is empty: do without tiles."),
      matmul_small_version("skinny", matmul_each_of<matmul_skinny>,
                           "B goes to registers, once: memory is the limit. Many products: launch them together."),
      matmul_small_version("batched", matmul_batched,
                           "A tile of a product per block, and all its copies at once: latency is the limit."),
      lesson_library_version(
          matmul_small_version("cuBLAS", matmul_cublas_batched, "NVIDIA's library, in float32: the one to beat.")),
  };
  const LessonTable tables[] = {{"Small products", versions, sizeof versions / sizeof *versions}};
  return lesson_main(argc, argv, &lesson, tables, 1);
}
