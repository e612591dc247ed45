/* lr_kernels.cu - two loops over the steps of a training run, as kernels: the learning rate of each step, which knows
 * nothing of the step before, and the smoothed loss, which needs it.
 *
 *     bazel run //phase4_training:lr_kernels
 *
 * The first is a kernel at once, if the step can tell which cycle of the schedule it is in. In the second each number
 * is computed from the one before: m[i] = beta m[i-1] + (1 - beta) loss[i]. A scan needs 5 turns for 32 of them. */
#include "common/lesson/main.h"
#include "phase4_training/04_lr_schedules/lr_schedules_lesson.cuh"

int main(int argc, char **argv) {
  Lesson rates = rates_lesson(), smooth = smooth_lesson();
  const LessonVersion rate_versions[] = {
      rates_version("rates one thread", rates_one_thread,
                    "A store of 4 bytes for each request. No step needs another one: one thread per step."),
      rates_version("rates", rates_gpu, "32 steps per store: the launch takes longer than the work."),
  };
  const LessonVersion smooth_versions[] = {
      smooth_version("smooth one thread", smooth_one_thread,
                     "Each step waits for the one before. Join averages of 1, 2, 4, .. steps: a scan."),
      smooth_version("smooth one block", smooth_one_block,
                     "256 steps at a time on one SM. Old losses hardly count: other blocks can begin elsewhere."),
      smooth_version("smooth", smooth_gpu, "All SMs, and an eighth of the losses is read twice."),
      lesson_copy_version("Reads n floats and writes n."),
  };
  const LessonTable tables[] = {
      {"Learning rates of a cosine with restarts", rate_versions, 2},
      {"Smoothed losses", smooth_versions, 4, &smooth},
  };
  return lesson_main(argc, argv, &rates, tables, 2);
}
