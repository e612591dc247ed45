/* matmul_fp8.cu - a matrix product of numbers of 8 bits, with a scale per tile.
 *
 *     bazel run //phase1_building_blocks:matmul_fp8
 *
 * Tensor cores multiply twice as many numbers of 8 bits per clock as of 16, and they need half the bytes. But e4m3 has
 * only 4 bits of precision and goes from 2^-9 to 448. A scale for each tile of 128 numbers lets every tile use all of
 * that range, wherever its numbers lie. The scales differ along K, so the sums of each tile are multiplied by theirs
 * before they are added: no tensor core does that.
 *
 * Each version first quantises A and W, which are floats; its time includes that. C is bfloat16. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_fp8_lesson.cuh"

/* Names the version that this machine cannot run, and why. */
static void say_what_is_left_out(void) {
  if (matmul_wgmma_refusal() == NULL) return;
  fprintf(stderr, "The version with wgmma is left out: %s.\n", matmul_wgmma_refusal());
#ifdef SIMT_REWRITTEN
  fprintf(stderr, "SIMT_CAPABILITY=9.0 in the environment gives it 9.0.\n");
#endif
}

int main(int argc, char **argv) {
  Lesson lesson = matmul_fp8_lesson();
  lesson.before = say_what_is_left_out;
  LessonVersion versions[LESSON_VERSIONS];
  int count = 0;
  versions[count++] = matmul_fp8_version("naive", matmul_fp8_float_naive,
                                         "Decodes each number again and again: tensor cores multiply the codes.");
  if (matmul_wgmma_refusal() == NULL)
    versions[count++] =
        matmul_fp8_version("wgmma", matmul_fp8_float_wgmma,
                           "Scales one part of the sums while the tensor cores compute another: power is the limit.");
  const LessonTable table = {"A product of e4m3 matrices", versions, count};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
