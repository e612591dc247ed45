/* matmul_tiled.cu - what a block loads once, all its threads use.
 *
 *     bazel run //phase1_building_blocks:matmul_tiled
 *
 * The naive kernel loads each element of A once for every column of C, N times in all. But the threads of a block need
 * the same ones: together they load a tile of A and a tile of B into shared memory, wait for each other, and then each
 * multiplies its row by its column out of there. With tiles of T x T every load serves T threads, so global memory is
 * asked T times less often. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_lesson("matmul_tiled");
  const LessonVersion versions[] = {
      matmul_version("naive", matmul_naive, "The last lesson's best: 2 loads from global memory for 2 FLOPs."),
      matmul_version(
          "tiled_16", matmul_tiled_16,
          "16 times fewer loads. A larger tile shares more: 32 x 32 is as many threads as a block may have."),
      matmul_version(
          "tiled_32", matmul_tiled,
          "Now shared memory is the limit: still 2 loads from it for 2 FLOPs. Keep what is loaded in registers."),
      lesson_library_version(matmul_version("cuBLAS", matmul_cublas, "The vendor's, in float32: what can be reached.")),
  };
  const LessonTable table = {"Tiles in shared memory", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
