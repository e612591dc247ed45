/* augmentation.cu - random changes of a batch of images, and normalising: from one pass per change to one pass.
 *
 *     bazel run //phase4_training:augmentation
 *
 * Every version draws the same numbers for an image and gives the same bits. What differs is how often a value is read
 * and written on its way from a byte to a normalised float, and how often the numbers are drawn. */
#include "common/lesson/main.h"
#include "phase4_training/06_augmentation/augmentation_frame_lesson.cuh"

int main(int argc, char **argv) {
  const Lesson lesson = augmentation_lesson();
  LessonVersion versions[LESSON_VERSIONS] = {
      augmentation_version("passes", augmentation_passes,
                           "Five kernels, floats in between; 3072 threads per image draw the same numbers."),
      augmentation_version("drawn", augmentation_drawn,
                           "Drawn once per image, and read by its threads. Still five passes through memory."),
      augmentation_version("fused", augmentation_fused,
                           "Bytes in, floats out, nothing in between. But a thread loads single bytes, up to 12."),
      augmentation_frame_version("Each byte is loaded once, in words; float4 stores, which are the limit now."),
  };
  const LessonTable tables[] = {{"Augmentation", versions, 4}};
  return lesson_main(argc, argv, &lesson, tables, 1);
}
