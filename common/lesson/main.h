/* main.h - the program of a lesson: checks every version, times or counts it, and prints the ladder.
 *
 *     int main(int argc, char **argv) {
 *       Lesson lesson = transpose_lesson();
 *       const LessonVersion versions[] = {
 *           transpose_version("naive", transpose_naive, "32 sectors per store; write along rows instead"),
 *           transpose_version("tiled", transpose_tiled, "bank conflicts; pad the tile's rows"),
 *           lesson_copy_version("the matrix, copied")};
 *       const LessonTable table = {"Transposing", versions, 3};
 *       return lesson_main(argc, argv, &lesson, &table, 1);
 *     }
 *
 * A version that does not take a shape (lesson.h) stands in the table with the reason, and without figures.
 *
 * A table may be of another lesson of the same sizes: {"Backward", backward, 3, &backward_lesson}. Versions have
 * different names in all tables, so that --only finds them.
 *
 * On a GPU the table has times: against the roof (what the GPU's memory and its multipliers can do, measured in the
 * same minute), against the vendor's version, against the rung before. Without one, where times would say nothing, it
 * has the inspector's counts. `--json` prints the same for programs, `--plot` draws it, and `--only=tiled` runs that
 * version alone, once, for a profiler; `--only=all` runs each version once.
 *
 * Without Bazel, main.cu is compiled with the program:
 *
 *     simt/simtcc --inspect -fopenmp -I. transpose.cu common/lesson/main.cu -o transpose -ljansson -lm
 */
#ifndef COMMON_LESSON_MAIN_H
#define COMMON_LESSON_MAIN_H

#include "common/lesson/lesson.h"

/* Versions that belong together, from the first rung to the last. */
typedef struct LessonTable {
  const char *title;
  const LessonVersion *versions;
  int count;
  const Lesson *lesson = NULL; /* the program's; or another of the same sizes, a backward pass beside a forward one */
} LessonTable;

/* The program's exit status: 0, or 1 where a version is wrong. */
int lesson_main(int argc, char **argv, const Lesson *lesson, const LessonTable *tables, int count);

#endif /* COMMON_LESSON_MAIN_H */
