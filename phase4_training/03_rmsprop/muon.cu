/* muon.cu - a step of Muon on weight matrices.
 *
 *     bazel run //phase4_training:muon
 *
 * The other optimizers look at each parameter by itself; Muon looks at a weight as a matrix, and moves it along the
 * orthogonal matrix that is nearest to its momentum. That takes 15 matrix products. The shape is (matrices, rows,
 * cols); by default, on a GPU, 16 convolutions of 512 filters of 256 x 3 x 3. */
#include "common/lesson/main.h"
#include "phase4_training/03_rmsprop/muon_lesson.cuh"

int main(int argc, char **argv) {
  const Lesson lesson = muon_lesson();
  const LessonVersion versions[] = {
      muon_version("each", muon_each,
                   "18 launches per matrix, and each product reads its operands from memory again and again. Tiles."),
      muon_version("all", muon_all, "18 launches in all, and a tile is read once per block: float32 arithmetic."),
  };
  const LessonTable table = {"Muon", versions, 2};
  return lesson_main(argc, argv, &lesson, &table, 1);
}
