/* fused_batchnorm_relu_softmax.cu - three kernels, and one that does their work.
 *
 *     bazel run //phase1_building_blocks:fused_batchnorm_relu_softmax
 *
 * Batch normalisation, ReLU, softmax: each of them does a handful of operations an element, and waits for the memory.
 * One after the other they carry the array to the GPU and back three times. Fused, a row is loaded, normalised, bent,
 * reduced and written without leaving the registers: what was three copies becomes one.
 *
 * It works because in inference the normalisation's mean and variance are known: see the header for what is different
 * in training. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/13_fused_batchnorm_relu_softmax/fused_batchnorm_relu_softmax_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = fused_lesson();
  const LessonVersion versions[] = {
      fused_version("separate", batchnorm_relu_softmax_separate,
                    "3 reads, 3 writes, each kernel near the roof: the array goes to and fro three times."),
      fused_version("two", batchnorm_relu_softmax_two,
                    "ReLU costs nothing where the element is. So does the normalisation where the row is."),
      fused_version("online", batchnorm_relu_softmax_online,
                    "One kernel, but a row is read and made twice, with all its parameters. Keep both."),
      fused_version("fused", batchnorm_relu_softmax_gpu,
                    "One read, one write, parameters folded once a block: the memory is the limit."),
      lesson_copy_version("As many bytes, and no arithmetic: what is there to be reached."),
  };
  const LessonTable table = {"Batch normalisation, ReLU, softmax", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
