/* matmul_tiled.cu - each tile is loaded once per block, and all threads of the block use it.
 *
 *     bazel run //phase1_building_blocks:matmul_tiled
 *
 * The naive kernel loads each element of A once per column of C, N times in all. But the threads of a block need many
 * of the same elements: together they load a tile of A and a tile of B into shared memory, wait for each other, and
 * then each thread multiplies its row of one by its column of the other. With tiles of T x T every load serves T
 * threads, so there are T times fewer loads from global memory. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_lesson("matmul_tiled");
  const LessonVersion versions[] = {
      matmul_version("naive", matmul_naive, "The last lesson's best version: 2 loads from global memory per 2 FLOPs."),
      matmul_version("tiled_16", matmul_tiled_16,
                     "16 times fewer global loads. 32 x 32, the largest block, shares each load among more threads."),
      matmul_version("tiled_32", matmul_tiled,
                     "Shared memory is the limit: still 2 loads from it per 2 FLOPs. Reuse values in registers."),
      lesson_library_version(
          matmul_version("cuBLAS", matmul_cublas, "NVIDIA's library, in float32: the speed that can be reached.")),
  };
  const LessonTable table = {"Tiles in shared memory", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
