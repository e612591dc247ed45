/* transpose.cu - how a warp touches memory decides how fast it is.
 *
 *     bazel run //phase1_building_blocks:transpose
 *
 * A transpose computes nothing. It reads one array along its rows and writes the other down its columns, and one of the
 * two must go against the grain: memory hands out sectors of 32 bytes, and of a sector in a column a thread uses four.
 * The way out is to go against the grain where it costs less, in shared memory, which the threads of a block fill
 * together and read as they like. It has 32 banks, though, that serve one address each at a time, and a column of a
 * tile 32 floats wide lies in one of them. Each rung of the ladder mends what the one before it left. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/02_transpose/transpose_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = transpose_lesson();
  const LessonVersion versions[] = {
      transpose_version("naive_rows", transpose_naive_rows,
                        "A store of a warp touches 32 sectors to fill 4. Let the warp write along a row instead."),
      transpose_version("naive_columns", transpose_naive_columns,
                        "Now a load touches 32 sectors; caches forgive some of it. Turn the tile in shared memory."),
      transpose_version("tiled", transpose_tiled,
                        "Both sides move whole sectors, but a column of the tile is one bank: 32 turns. Pad its rows."),
      transpose_version("padded", transpose_padded,
                        "No conflicts. Few bytes are on their way at a time: let a thread move four floats at once."),
      transpose_version("vectorised", transpose_vectorised,
                        "16 bytes a thread and load, 4 loads in flight: the memory itself is the limit."),
      lesson_copy_version("As many bytes, neighbour by neighbour: what is there to be reached."),
  };
  const LessonTable table = {"Transposing a matrix", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
