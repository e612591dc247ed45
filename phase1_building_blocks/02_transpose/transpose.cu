/* transpose.cu - how a warp touches memory decides how fast it is.
 *
 *     bazel run //phase1_building_blocks:transpose
 *
 * A transpose computes nothing. It reads one array along its rows and writes the other down its columns. Memory moves
 * in sectors of 32 bytes, and a thread that goes down a column uses 4 bytes of each sector, so one of the two sides
 * moves eight times what it needs. A tile in shared memory avoids that: the threads of a block fill it along its rows
 * and read it along its columns. Shared memory has 32 banks, and each serves one address at a time; a column of a tile
 * that is 32 floats wide lies in a single bank. Each version removes the problem that the one before it left. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/02_transpose/transpose_lesson.cuh"

int main(int argc, char **argv) {
  Lesson lesson = transpose_lesson();
  const LessonVersion versions[] = {
      transpose_version("naive_rows", transpose_naive_rows,
                        "Each store of a warp touches 32 sectors where 4 would do. Let a warp write along a row."),
      transpose_version("naive_columns", transpose_naive_columns,
                        "Now each load touches 32 sectors; caches absorb a part. Transpose a tile in shared memory."),
      transpose_version("tiled", transpose_tiled,
                        "Loads and stores use whole sectors. A column of the tile is in one bank: pad the rows."),
      transpose_version("padded", transpose_padded,
                        "No bank conflicts. Few bytes are in flight: let each thread move four floats at once."),
      transpose_version("vectorised", transpose_vectorised,
                        "Each thread has 4 loads of 16 bytes in flight: memory bandwidth is the limit."),
      lesson_copy_version("The same number of bytes without a transpose: the speed that can be reached."),
  };
  const LessonTable table = {"Transposing a matrix", versions, sizeof versions / sizeof *versions};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
