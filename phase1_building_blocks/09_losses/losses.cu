/* losses.cu - the error of a network as one number, and its derivative with respect to every output.
 *
 *     bazel run //phase1_building_blocks:losses
 *
 * The forward pass is a sum over all threads of the GPU: first in each thread, then in its block, then over the blocks,
 * in an order that never changes, so that two runs give the same bits. The backward pass needs no sum, but it reads the
 * same two arrays: a kernel that does both reads them once. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/09_losses/losses_lesson.cuh"

#define TABLE(title, versions, lesson) \
  { title, versions, sizeof(versions) / sizeof *(versions), lesson }

int main(int argc, char **argv) {
  const char *apart = "x and t are read twice. Both directions need the same numbers: read them once.";
  const char *once = "Each array is moved once: memory bandwidth is the limit.";
  const LessonVersion copied = lesson_copy_version("Copies as many bytes as the largest output has, or an input.");
  const Lesson lessons[] = {mse_forward_lesson(), mse_backward_lesson(), mse_lesson(),          bce_lesson(),
                            bce_logits_lesson(),  hinge_lesson(),        cross_entropy_lesson()};
  const LessonVersion mse_forward[] = {
      loss_forward_version("mse_tree", loss_forward_tree<LOSS_MSE>,
                           "One barrier per level of the tree, and half of the threads stop at each: use shuffles."),
      loss_forward_version("mse_shuffle", loss_forward_shuffle<LOSS_MSE>,
                           "4 bytes per load keep too few bytes in flight: load 16, and several at once."),
      loss_forward_version("mse_forward", loss_forward<LOSS_MSE>,
                           "Both arrays are read once: memory bandwidth is the limit."),
  };
  const LessonVersion mse_backward[] = {
      loss_backward_version("mse_backward_scalar", loss_backward_scalar<LOSS_MSE>,
                            "4 bytes per load keep too few bytes in flight: load 16."),
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
                            "Clears dp, then writes one element per row: that sector is written twice."),
      cross_entropy_version("cross_entropy", cross_entropy_fused,
                            "Writes zeros, but for one element per row. Fused with softmax it writes more: lesson 10."),
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
