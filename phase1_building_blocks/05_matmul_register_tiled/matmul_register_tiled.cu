/* matmul_register_tiled.cu - fewer threads, and several elements of C per thread.
 *
 *     bazel run //phase1_building_blocks:matmul_register_tiled
 *
 * Two loads from shared memory per multiply-add are too many: shared memory delivers 32 floats per cycle, and the
 * multiprocessor could do 128 multiply-adds in it. Registers are fast enough, so a thread should use a value that it
 * has loaded more than once, and for that it needs more than one element of C. With a column of 8 elements it loads 9
 * floats for 8 products; with a patch of 8 x 8 elements it loads 16 for 64, an outer product. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_lesson("matmul_register_tiled");
  const LessonVersion versions[] = {
      matmul_version("tiled_32", matmul_tiled,
                     "The last lesson's best version: 2 loads from shared memory per 2 FLOPs."),
      matmul_version("register_1d", matmul_register_1d,
                     "9 loads per 8 products. Give each thread a square patch: more products per load."),
      matmul_version("register_2d", matmul_register_2d,
                     "16 loads per 64 products. Left to do: wider loads, bank conflicts, waits for global memory."),
      lesson_library_version(
          matmul_version("cuBLAS", matmul_cublas, "NVIDIA's library, in float32: the speed that can be reached.")),
  };
  const LessonTable table = {"Patches in registers", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
