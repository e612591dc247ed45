/* map_peaks.cu - the largest value of each map and its place: a reduction of pairs, without atomics.
 *
 *     bazel run //phase3_cnn:map_peaks
 *
 * lenet_mnist --show-excited asks this of each filter and each test image. Only two numbers per map leave the GPU. */
#include "common/lesson/main.h"
#include "phase3_cnn/12_lenet_mnist/map_peaks_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = map_peaks_lesson();
  const LessonVersion versions[] = {
      map_peaks_version("naive", map_peaks_naive,
                        "The 32 lanes of a warp read 32 maps: 32 sectors per load. Use one warp per map."),
      map_peaks_version("warp", map_peaks_gpu,
                        "Full sectors, four loads in flight per lane: memory bandwidth is the limit."),
  };
  const LessonTable tables[] = {{"The largest value of each map", versions, sizeof versions / sizeof *versions}};
  return lesson_main(argc, argv, &lesson, tables, 1);
}
