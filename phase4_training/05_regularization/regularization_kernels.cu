/* regularization_kernels.cu - what regularizers cost: soft labels in the loss, mixed samples. A shape is
 * (samples, classes), or (samples, numbers of a sample).
 *
 *     bazel run //phase4_training:regularization_kernels
 *
 * Both do hardly any arithmetic: what counts is how often each number is read and written, and how many launches
 * there are. The best soft loss moves what the plain one does. */
#include "common/lesson/main.h"
#include "phase4_training/05_regularization/regularization_lesson.cuh"

int main(int argc, char **argv) {
  const Lesson soft = soft_lesson(), mixup = mixup_lesson();
  const LessonVersion softs[] = {
      soft_version("soft targets", soft_targets,
                   "Targets are written, and read twice. Compute them where they are needed, from two labels."),
      soft_version("soft separate", soft_separate,
                   "Probabilities go through memory between two kernels. One kernel can do both."),
      soft_version("soft fused", soft_fused,
                   "Three passes over the logits, two of them from the cache. Keep the row in registers."),
      soft_version("soft registers", soft_registers, "Each logit is read once, each gradient written once."),
  };
  const LessonVersion mixups[] = {
      mixup_version("mixup two passes", mixup_two_passes,
                    "Three reads and two writes per number. Read the partner where it lies."),
      mixup_version("mixup samples", mixup_samples,
                    "Each number is read for its sample and again for the partner. A thread can write both."),
      mixup_version("mixup pairs", mixup_pairs, "One read and one write, 4 bytes at a time; and it works in place."),
      mixup_version("mixup", mixup_gpu, "The same bytes in a quarter of the requests."),
      lesson_copy_version("Reads one array and writes one: the same bytes."),
  };
  const LessonTable tables[] = {
      {"Cross-entropy with soft labels", softs, 4},
      {"Mixup", mixups, 5, &mixup},
  };
  return lesson_main(argc, argv, &soft, tables, 2);
}
