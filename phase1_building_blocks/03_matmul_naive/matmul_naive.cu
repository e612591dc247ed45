/* matmul_naive.cu - a matrix product with one thread per element, and which thread takes which element.
 *
 *     bazel run //phase1_building_blocks:matmul_naive
 *
 * C = A B; one thread computes one element of C, in a loop over K. Both versions do the same additions in the same
 * order; they differ in which row and column a thread takes. The 32 threads of a warp load together: if their elements
 * are neighbours in a column of C, they read 32 rows of A; if they are neighbours in a row of C, they read one float of
 * A and 32 neighbours of B. The sectors show the difference. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_lesson("matmul_naive");
  const LessonVersion versions[] = {
      matmul_version("naive_columns", matmul_naive_columns,
                     "A warp loads from 32 rows of A and stores to 32 rows of C. Give it neighbours in a row of C."),
      matmul_version("naive", matmul_naive,
                     "Whole sectors, but 2 loads per 2 FLOPs: A's elements are loaded N times. Share them in a block."),
      lesson_library_version(
          matmul_version("cuBLAS", matmul_cublas, "NVIDIA's library, in float32: the speed that can be reached.")),
  };
  const LessonTable table = {"One thread per element", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
