/* search_kernels.cu - two small kernels of a search: the first step of all trials at once, and the lowest loss of each.
 *
 *     bazel run //phase4_training:search_kernels
 *
 * Trials that differ in the learning rate alone begin with the same weights and the same gradient. Both are read once
 * for all of them, or once for each. */
#include "common/lesson/main.h"
#include "phase4_training/08_train/search_kernels_lesson.cuh"

int main(int argc, char **argv) {
  Lesson steps = trial_steps_lesson(), lowest = lowest_lesson();
  const LessonVersion step_versions[] = {
      trial_steps_version("steps each", trial_steps_each,
                          "Each trial reads weights and gradients again. Read them once, and keep them in registers."),
      trial_steps_version("steps all", trial_steps_all, "The stores are left, one for each result: memory bandwidth."),
  };
  const LessonVersion lowest_versions[] = {
      lowest_version("lowest thread", lowest_thread,
                     "The 32 lanes of a warp read 32 trials: 32 sectors per load. Use one warp per trial."),
      lowest_version("lowest warp", lowest_warp, "Full sectors: memory bandwidth."),
  };
  const LessonTable tables[] = {
      {"The first step of k trials", step_versions, 2},
      {"The lowest finite loss of each trial", lowest_versions, 2, &lowest},
  };
  return lesson_main(argc, argv, &steps, tables, 2);
}
