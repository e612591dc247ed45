/* fused_batchnorm_relu_softmax.cu - three kernels, and one kernel that does the same.
 *
 *     bazel run //phase1_building_blocks:fused_batchnorm_relu_softmax
 *
 * Batch normalisation, ReLU and softmax compute a few operations per element and wait for memory. As three kernels they
 * read and write the array three times. Fused, a row is loaded, normalised, clamped, reduced and written without
 * leaving the registers: one read and one write.
 *
 * This works because in inference mean and variance are known: see the header for the difference in training. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/13_fused_batchnorm_relu_softmax/fused_batchnorm_relu_softmax_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = fused_lesson();
  const LessonVersion versions[] = {
      fused_version("separate", batchnorm_relu_softmax_separate,
                    "3 reads, 3 writes. Each kernel is near the roof, but the array moves six times."),
      fused_version("two", batchnorm_relu_softmax_two,
                    "ReLU is free where its element is in a register. Fuse softmax, too, where the row is."),
      fused_version("online", batchnorm_relu_softmax_online,
                    "One kernel, but it loads the row and all parameters twice. Keep both on the chip."),
      fused_version("fused", batchnorm_relu_softmax_fused,
                    "One read, one write. But each block folds all columns before its first row: begin with the rows."),
      fused_version(
          "pairs", batchnorm_relu_softmax_gpu,
          "Parameters come from the L1 cache while the rows are on their way: memory bandwidth is the limit."),
      lesson_copy_version("Copies the same number of bytes without arithmetic: an upper bound."),
  };
  const LessonTable table = {"Batch normalisation, ReLU, softmax", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
