/* preprocess.cu - from a picture to the input of a network: two ways to resize, crop and normalise on a GPU.
 *
 *     bazel run //phase5_production:preprocess
 *     bazel run //phase5_production:preprocess -- --shape=480x640x256x224     480 rows of 640 pixels
 */
#include "common/lesson/main.h"
#include "phase5_production/03_resnet18/preprocess_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = preprocess_lesson();
  const LessonVersion versions[] = {
      preprocess_version("direct", preprocess_direct,
                         "every thread divides all weights of its window again; compute them once, and rows first"),
      preprocess_version("passes", preprocess_gpu, "three launches for a small picture; many pictures fill a GPU")};
  const LessonTable table = {"Resizing, cropping and normalising a picture", versions, 2};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
