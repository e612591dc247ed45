/* matmul_tuned.cu - from a good matrix product to the vendor's speed, one change at a time.
 *
 *     bazel run //phase1_building_blocks:matmul_tuned
 *
 * The kernel of 8 x 8 elements a thread has the right plan, and loses time in its details: it loads float by float, its
 * threads meet in the same banks, and between two tiles everybody waits for memory. Each rung mends one of these and
 * leaves the rest alone, so that the counts, or on a GPU the times, tell what it was worth. What helps on one GPU may
 * do nothing on the next: believe the table, not the sentence.
 *
 * The second table is a sweep: the last kernel with other tiles. A large tile loads less for each product, but fewer of
 * them fit into the GPU at a time, and a small C has not enough of them to keep every multiprocessor busy. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_lesson("matmul_tuned");
  lesson.counted = lesson_shape(&lesson, 512, 512, 32); /* as large as it takes for the large tiles */
  const LessonVersion cublas =
      lesson_library_version(matmul_version("cuBLAS", matmul_cublas, "The vendor's, in float32: the one to beat."));
  const LessonVersion versions[] = {
      matmul_version("register_2d", matmul_register_2d,
                     "The last lesson's best: 4 bytes an instruction, from either memory. Load float4."),
      matmul_version(
          "vectorised", matmul_vectorised,
          "A quarter of the load instructions, but neighbours skip banks: lay the patch out in four pieces."),
      matmul_version("conflict_free", matmul_conflict_free,
                     "No conflicts. A warp is a long strip of the tile and shares little: make it a compact corner."),
      matmul_version("warp_tiled", matmul_warp_tiled,
                     "A step needs 96 floats for a warp, not 144. All wait at each tile: fetch the next one early."),
      matmul_version("double_buffered", matmul_double_buffered,
                     "Loads hide behind products. 16 floats for 64 products is still much: enlarge the patch."),
      matmul_version("tuned", matmul_tuned,
                     "24 floats for 128 products, even work for all multiprocessors: the multipliers are the limit."),
      cublas,
  };
  LessonVersion sweep[LESSON_VERSIONS];
  int configurations = sizeof matmul_tuned_configurations / sizeof *matmul_tuned_configurations;
  for (int i = 0; i < configurations; i++)
    sweep[i] = matmul_version(matmul_tuned_configurations[i].name, matmul_tuned_configurations[i].launch, "");
  sweep[configurations] = cublas;
  const LessonTable tables[] = {
      {"Step by step", versions, sizeof versions / sizeof *versions},
      {"Tile of C x depth, elements a thread", sweep, configurations + 1},
  };
  return lesson_main(argc, argv, &lesson, tables, 2);
}
