/* losses.cu - one number for how wrong a network is, and its slope for every output.
 *
 *     bazel run //phase1_building_blocks:losses
 *
 * The forward pass is a sum over all threads of the GPU: first in each thread, then in its block, then over the blocks,
 * in an order that never changes, so that two runs give the same bits. The backward pass needs no sum, but it reads the
 * same two arrays again: whoever wants both reads them once. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/09_losses/losses_lesson.cuh"

#define TABLE(title, versions, lesson) \
  { title, versions, sizeof(versions) / sizeof *(versions), lesson }

int main(int argc, char **argv) {
  const char *apart = "x and t are read twice. Both directions want the same numbers: read them once.";
  const char *once = "Three arrays, each moved once: the memory itself.";
  const LessonVersion copied = lesson_copy_version("As many bytes as the largest output has, or an input's.");
  const Lesson lessons[] = {mse_forward_lesson(), mse_backward_lesson(), mse_lesson(),          bce_lesson(),
                            bce_logits_lesson(),  hinge_lesson(),        cross_entropy_lesson()};
  const LessonVersion mse_forward[] = {
      loss_forward_version("mse_tree", loss_forward_tree<LOSS_MSE>,
                           "A barrier for each level of the tree, and half of the threads idle after each: shuffle."),
      loss_forward_version("mse_shuffle", loss_forward_shuffle<LOSS_MSE>,
                           "4 bytes a request leave the memory waiting; ask for 16, and for several at once."),
      loss_forward_version("mse_forward", loss_forward<LOSS_MSE>, "The memory itself, and it is only read."),
  };
  const LessonVersion mse_backward[] = {
      loss_backward_version("mse_backward_scalar", loss_backward_scalar<LOSS_MSE>,
                            "4 bytes a request leave the memory waiting; ask for 16."),
      loss_backward_version("mse_backward", loss_backward<LOSS_MSE>, once),
      copied,
  };
  const LessonVersion mse[] = {loss_both_version("mse_separate", loss_separate<LOSS_MSE>, apart),
                               loss_both_version("mse_fused", mse_gpu, once), copied};
  const LessonVersion bce[] = {loss_both_version("bce_separate", loss_separate<LOSS_BCE>, apart),
                               loss_both_version("bce_fused", bce_gpu, once), copied};
  const LessonVersion bce_logits[] = {loss_both_version("bce_logits_separate", loss_separate<LOSS_BCE_LOGITS>, apart),
                                      loss_both_version("bce_logits_fused", bce_logits_gpu, once), copied};
  const LessonVersion hinge[] = {loss_both_version("hinge_separate", loss_separate<LOSS_HINGE>, apart),
                                 loss_both_version("hinge_fused", hinge_gpu, once), copied};
  const LessonVersion cross_entropy[] = {
      cross_entropy_version("cross_entropy_cleared", cross_entropy_separate,
                            "A row's one slope is written into what was cleared before: a sector twice."),
      cross_entropy_version("cross_entropy", cross_entropy_fused,
                            "All it writes is zeros. With the softmax before it, it would write something: lesson 10."),
      copied};
  const LessonTable tables[] = {
      TABLE("Mean squared error", mse_forward, &lessons[0]),
      TABLE("Mean squared error, backward", mse_backward, &lessons[1]),
      TABLE("Mean squared error, both directions", mse, &lessons[2]),
      TABLE("Binary cross-entropy, both directions", bce, &lessons[3]),
      TABLE("Binary cross-entropy with logits, both directions", bce_logits, &lessons[4]),
      TABLE("Hinge, both directions", hinge, &lessons[5]),
      TABLE("Cross-entropy of probabilities, both directions", cross_entropy, &lessons[6]),
  };
  return lesson_main(argc, argv, &lessons[0], tables, sizeof tables / sizeof *tables);
}
