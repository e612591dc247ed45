/* matmul_register_tiled.cu - fewer threads that do more each.
 *
 *     bazel run //phase1_building_blocks:matmul_register_tiled
 *
 * Two loads from shared memory for a multiplication and an addition are too many: shared memory hands out 32 floats a
 * cycle, and the multiprocessor could multiply 128 pairs. What is in a register costs nothing, so a thread should use a
 * value it has loaded more than once, and for that it needs more than one element of C. With a column of 8 elements it
 * loads 9 floats for 8 products; with a patch of 8 x 8 it loads 16 for 64, an outer product. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_lesson("matmul_register_tiled");
  const LessonVersion versions[] = {
      matmul_version("tiled_32", matmul_tiled, "The last lesson's best: 2 loads from shared memory for 2 FLOPs."),
      matmul_version("register_1d", matmul_register_1d,
                     "9 loads for 8 products. A patch has more products for its edges: make it two-dimensional."),
      matmul_version(
          "register_2d", matmul_register_2d,
          "16 loads for 64 products. What is left: narrow loads, bank conflicts, waiting for global memory."),
      lesson_library_version(matmul_version("cuBLAS", matmul_cublas, "The vendor's, in float32: what can be reached.")),
  };
  const LessonTable table = {"Patches in registers", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
