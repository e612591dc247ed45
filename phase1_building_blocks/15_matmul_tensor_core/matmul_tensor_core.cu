/* matmul_tensor_core.cu - the matrix product once more, by the units that were built for it.
 *
 *     bazel run //phase1_building_blocks:matmul_tensor_core
 *
 * A multiprocessor of an H200 does 128 multiply-adds of floats a cycle, and 2048 of bfloat16 on its tensor cores.
 * What it takes to keep those busy grows with them: the ladder of matmul_tuned begins again, at sixteen times the
 * speed. First in CUDA's own words (wmma), which compute capability 8.0 knows for bfloat16; then with the instructions
 * below (mma.sync), which make the layout of every register one's own business; at last with those of Hopper alone
 * (wgmma and the copy engine), where one thread fetches, four warps multiply as one, and the program is about who waits
 * for whom.
 *
 * Factors are bfloat16, sums float32, for the vendor as for us. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_cublas_bfloat16.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_core_lesson.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_roof.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wmma.cuh"

/* The rungs that this machine cannot run, and why. */
static void say_what_is_left_out(void) {
  mma_require();
  if (matmul_wgmma_refusal() != NULL)
    fprintf(stderr, "The rungs with wgmma are left out: %s.\n", matmul_wgmma_refusal());
}

int main(int argc, char **argv) {
  Lesson lesson = matmul_tensor_core_lesson();
  lesson.before = say_what_is_left_out;
  lesson.roof = matmul_tensor_roof;
  LessonVersion versions[LESSON_VERSIONS];
  int count = 0;
  versions[count++] = matmul_tensor_core_version(
      "wmma_naive", matmul_wmma_naive, "A fragment of A and one of B for a product: share them in shared memory.");
  versions[count++] = matmul_tensor_core_version(
      "wmma_tiled", matmul_wmma_tiled, "Still two fragments a product, from shared memory: keep several in registers.");
  versions[count++] =
      matmul_tensor_core_version("wmma_fragments", matmul_wmma_fragments,
                                 "6 fragments for 8 products. All wait at each tile: fetch ahead, without registers.");
  versions[count++] = matmul_tensor_core_version(
      "mma", matmul_mma, "Tiles arrive while others are multiplied; the warps' own fetches are the limit.");
  if (matmul_wgmma_refusal() == NULL) {
    versions[count++] = matmul_tensor_core_version("wgmma_one_stage", matmul_wgmma_one_stage,
                                                   "No registers for operands. But copies and products take turns.");
    versions[count++] = matmul_tensor_core_version("wgmma_ring", matmul_wgmma_ring,
                                                   "Copies run ahead. A new block begins with nothing fetched.");
    versions[count++] =
        matmul_tensor_core_version("wgmma_persistent", matmul_wgmma_persistent,
                                   "A block's next tile is on its way while it writes C. The L2 cache is asked most.");
    versions[count++] = matmul_tensor_core_version(
        "wgmma", matmul_wgmma, "Two blocks share what they fetch of B: the tensor cores, and power, are the limit.");
  }
  versions[count++] = lesson_library_version(
      matmul_tensor_core_version("cuBLAS", matmul_cublas_bfloat16, "The vendor's, on tensor cores: the one to beat."));
  const LessonTable table = {"A product of bfloat16 matrices", versions, count};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
