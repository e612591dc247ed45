/* matmul_naive.cu - a matrix product, a thread an element, and which element.
 *
 *     bazel run //phase1_building_blocks:matmul_naive
 *
 * C = A B, and each element of C is a thread's loop over K. Both versions make the same additions in the same order;
 * they differ in one line, the one that says which row and column a thread has. Threads come in warps of 32 that load
 * together. Do these 32 threads have neighbours in a column, or in a row of C? Count the sectors. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_lesson("matmul_naive");
  const LessonVersion versions[] = {
      matmul_version("naive_columns", matmul_naive_columns,
                     "32 threads load from 32 rows of A, and write to 32 rows of C. Give a warp neighbours in a row."),
      matmul_version(
          "naive", matmul_naive,
          "Whole sectors, but 2 loads for 2 FLOPs: every element is loaded N times. Share it within a block."),
      lesson_library_version(matmul_version("cuBLAS", matmul_cublas, "The vendor's, in float32: what can be reached.")),
  };
  const LessonTable table = {"A thread an element", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
