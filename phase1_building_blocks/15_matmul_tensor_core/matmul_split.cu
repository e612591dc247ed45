/* matmul_split.cu - a float32 matrix product on tensor cores, as precise as one without them.
 *
 *     bazel run //phase1_building_blocks:matmul_split
 *
 * A multiprocessor of an H200 does 128 multiply-adds of floats per clock; its tensor cores do 1024 of tf32 and 2048 of
 * float16, which have 11 bits of precision instead of 24. Two such numbers hold 22 bits, and three products of them
 * replace one of floats: a third of 1024 or 2048 is still much more than 128. What is left is to add up as precisely.
 */
#include "common/lesson/main.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split_lesson.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split_wgmma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split_wmma.cuh"

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
  static const MatmulSplit tf32 = MATMUL_SPLIT_TF32, half = MATMUL_SPLIT_HALF;
  Lesson lesson = matmul_split_lesson();
  lesson.before = say_what_is_left_out;
  LessonVersion versions[LESSON_VERSIONS];
  int count = 0;
  versions[count++] =
      matmul_split_version("wmma_tf32", matmul_split_wmma, NULL,
                           "Warps split what they load, each element many times: split once, before the product.");
  if (matmul_wgmma_refusal() == NULL) {
    versions[count++] = matmul_split_version(
        "wgmma_tf32", matmul_split_tf32, &tf32,
        "Tensor cores do twice as many products of float16: scale the rows, then it has the range.");
    versions[count++] = matmul_split_version("wgmma_half", matmul_split_half, &half,
                                             "Three products of float16 for one of float32: power is the limit.");
  }
  versions[count++] = lesson_library_version(matmul_split_version(
      "cuBLAS", matmul_split_cublas, NULL, "The vendor's library in float32, without tensor cores."));
  const LessonTable table = {"A product of float matrices", versions, count};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
