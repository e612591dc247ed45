/* matmul_tensor_core.cu - the matrix product on tensor cores.
 *
 *     bazel run //phase1_building_blocks:matmul_tensor_core
 *
 * A multiprocessor of an H200 does 128 multiply-adds of floats per clock, and 2048 of bfloat16 on its tensor cores.
 * Operands must arrive sixteen times as fast, so the steps of matmul_tuned are taken again with other means. First
 * with CUDA's interface (wmma, for bfloat16 from compute capability 8.0 on); then with the instruction itself
 * (mma.sync), where the program decides which lane holds which element; at last with those of Hopper (wgmma and TMA),
 * where one thread issues the copies, four warps multiply together, and barriers connect the two.
 *
 * Factors are bfloat16, sums float32, in the vendor's version, too. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_cublas_bfloat16.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_core_lesson.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_roof.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma_store.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wmma.cuh"

/* Names the versions that this machine cannot run, and why. */
static void say_what_is_left_out(void) {
  mma_require();
  if (matmul_wgmma_refusal() == NULL) return;
  fprintf(stderr, "The versions with wgmma are left out: %s.\n", matmul_wgmma_refusal());
#ifdef SIMT_REWRITTEN
  fprintf(stderr, "SIMT_CAPABILITY=9.0 in the environment gives it 9.0.\n");
#endif
}

int main(int argc, char **argv) {
  Lesson lesson = matmul_tensor_core_lesson();
  lesson.before = say_what_is_left_out;
  lesson.roof = matmul_tensor_roof;
  LessonVersion versions[LESSON_VERSIONS];
  int count = 0;
  versions[count++] =
      matmul_tensor_core_version("wmma_naive", matmul_wmma_naive,
                                 "Loads two fragments per product from global memory: share tiles in shared memory.");
  versions[count++] =
      matmul_tensor_core_version("wmma_tiled", matmul_wmma_tiled,
                                 "Still two fragments per product, now from shared memory: reuse them in registers.");
  versions[count++] =
      matmul_tensor_core_version("wmma_fragments", matmul_wmma_fragments,
                                 "6 fragments for 8 products. But no copy runs during products: copy asynchronously.");
  versions[count++] = matmul_tensor_core_version(
      "mma", matmul_mma, "Copies run ahead of the products; the loads of fragments by the warps are the limit.");
  if (matmul_wgmma_refusal() == NULL) {
    versions[count++] =
        matmul_tensor_core_version("wgmma_one_stage", matmul_wgmma_one_stage,
                                   "Operands stay in shared memory. But copies and products alternate.");
    versions[count++] = matmul_tensor_core_version("wgmma_ring", matmul_wgmma_ring,
                                                   "Copies run ahead. But every new block starts with an empty ring.");
    versions[count++] =
        matmul_tensor_core_version("wgmma_persistent", matmul_wgmma_persistent,
                                   "Copies the next tile while C is written. Now L2 limits: share tiles in a cluster.");
    versions[count++] =
        matmul_tensor_core_version("wgmma_cluster", matmul_wgmma_cluster,
                                   "Two blocks share their tiles of B. But tensor cores wait while C is written.");
    versions[count++] = matmul_tensor_core_version(
        "wgmma", matmul_wgmma, "TMA writes C during the next products: tensor cores and power are the limit.");
  }
  versions[count++] = lesson_library_version(
      matmul_tensor_core_version("cuBLAS", matmul_cublas_bfloat16, "The vendor's library on tensor cores."));
  const LessonTable table = {"A product of bfloat16 matrices", versions, count};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
