/* loss_scale.cu - three kernels that training with 16 bits adds to a step: rounding; the gradients without the loss
 * scale and whether they are finite; the next scale.
 *
 *     bazel run //phase4_training:loss_scale
 *
 * All of them do next to nothing per byte. The shape is (numbers, flags). */
#include "common/lesson/main.h"
#include "phase4_training/09_mixed_precision/mixed_precision_lesson.cuh"

int main(int argc, char **argv) {
  const Lesson round = round_lesson(), unscale = unscale_lesson(), scales = scales_lesson();
  const LessonVersion rounds[] = {
      round_version("round_bits", round_bits,
                    "Four integer operations, hidden by the memory. There is an instruction."),
      round_version("round_intrinsic", round_intrinsic, "4 bytes per access. 16 would be a quarter of the requests."),
      round_version("round_float4", round_float4, "The bytes. Stored as 16 bits they would be half as many."),
      lesson_copy_version("Reads n floats and writes n."),
  };
  const LessonVersion unscales[] = {
      unscale_version("two_passes", unscale_two_passes,
                      "All is read twice. Look at the number while it is in a register."),
      unscale_version("one_pass", unscale_one_pass, "One launch, 8 bytes per gradient; 4 bytes per access."),
      unscale_version("float4", unscale_float4, "The bytes. (An optimizer could divide by the scale as it reads.)"),
  };
  const LessonVersion scale[] = {
      scales_version("scales", scales_gpu, "One thread, and the host need not know: that is the point."),
  };
  const LessonTable tables[] = {
      {"Rounding to bf16", rounds, 4},
      {"Gradients divided by the loss scale, and checked", unscales, 3, &unscale},
      {"The loss scale of each step", scale, 1, &scales},
  };
  return lesson_main(argc, argv, &round, tables, 3);
}
