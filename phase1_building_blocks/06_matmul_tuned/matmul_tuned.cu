/* matmul_tuned.cu - from a good matrix product to the vendor's speed, one change at a time.
 *
 *     bazel run //phase1_building_blocks:matmul_tuned
 *
 * The kernel with 8 x 8 elements per thread has the right plan and loses time in its details: it loads one float at a
 * time, its threads have bank conflicts, and between two tiles all threads wait for memory. Each version changes one of
 * these and leaves the rest alone, so that the counts, or on a GPU the times, show the gain. What helps on one GPU may
 * not help on another: trust the table more than the sentences.
 *
 * The second table is a sweep: the last kernel with other tile sizes. A large tile loads less per product, but fewer
 * tiles fit on the GPU at a time, and a small C has too few of them to keep every multiprocessor busy. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned.cuh"

int main(int argc, char **argv) {
  Lesson lesson = matmul_lesson("matmul_tuned");
  lesson.counted = lesson_shape(&lesson, 512, 512, 32); /* large enough for the large tiles */
  const LessonVersion cublas =
      lesson_library_version(matmul_version("cuBLAS", matmul_cublas, "NVIDIA's library, in float32: the one to beat."));
  const LessonVersion versions[] = {
      matmul_version("register_2d", matmul_register_2d,
                     "The last lesson's best version: it moves 4 bytes per instruction. Load and store float4."),
      matmul_version("vectorised", matmul_vectorised,
                     "A quarter of the load instructions, with bank conflicts. Split a patch into four 4 x 4 pieces."),
      matmul_version("conflict_free", matmul_conflict_free,
                     "No bank conflicts. A warp covers 16 x 128 of the tile; 64 x 32 needs fewer floats."),
      matmul_version("warp_tiled", matmul_warp_tiled,
                     "A warp needs 96 floats per step, not 144. All threads wait for each tile: fetch it early."),
      matmul_version("double_buffered", matmul_double_buffered,
                     "Global loads overlap with products. Fewer shared loads per product: enlarge the patch."),
      matmul_version("tuned", matmul_tuned,
                     "24 floats per 128 products, and equal work per multiprocessor: arithmetic is the limit."),
      cublas,
  };
  LessonVersion sweep[LESSON_VERSIONS];
  int configurations = sizeof matmul_tuned_configurations / sizeof *matmul_tuned_configurations;
  for (int i = 0; i < configurations; i++)
    sweep[i] = matmul_version(matmul_tuned_configurations[i].name, matmul_tuned_configurations[i].launch, "");
  sweep[configurations] = cublas;
  const LessonTable tables[] = {
      {"Step by step", versions, sizeof versions / sizeof *versions},
      {"Tile of C x depth, elements per thread", sweep, configurations + 1},
  };
  return lesson_main(argc, argv, &lesson, tables, 2);
}
