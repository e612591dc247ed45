/* norms.cu - layer norm and instance norm: statistics of a row, and the sums along columns that their gradients need.
 *
 *     bazel run //phase3_cnn:norms
 *     bazel run //phase3_cnn:norms -- --shape=65536x1024,8192x8192,4096x50176:channels=64    (on a GPU)
 *
 * Batch norm takes its statistics over a channel of all images. Layer norm takes them over a sample, and instance norm
 * over a channel of one image: in memory both are rows, which lie in one piece. So a row can stay in the registers of
 * the threads that reduce it, and x is read once. The gradients of weight and bias of layer norm are sums along
 * columns; they are added up beside the gradient of x, so that x and dy are read once, too. */
#include "common/lesson/main.h"
#include "phase3_cnn/10_batch_norm/norms_lesson.cuh"

int main(int argc, char **argv) {
  Lesson forward = layer_norm_forward_lesson(), backward = layer_norm_backward_lesson(),
         instance_forward = instance_norm_forward_lesson(), instance_backward = instance_norm_backward_lesson();
  const LessonVersion forwards[] = {
      layer_norm_forward_version("naive", layer_norm_forward_naive,
                                 "The 32 lanes of a warp read 32 rows: 32 sectors per load. Use one block per row."),
      layer_norm_forward_version("block", layer_norm_forward_block,
                                 "Full sectors, but three passes. Mean and variance can share one."),
      layer_norm_forward_version("moments", layer_norm_forward_moments,
                                 "Two passes, 16 bytes per load. A row fits into registers: read it once."),
      layer_norm_forward_version("registers", layer_norm_forward_gpu,
                                 "One read, one write: memory bandwidth is the limit."),
      lesson_copy_version("Copies the same number of bytes without arithmetic: an upper bound."),
  };
  const LessonVersion backwards[] = {
      layer_norm_backward_version("naive_backward", layer_norm_backward_naive, &norms_no_workspace,
                                  "One thread per row, then one thread per column: long sums in few threads."),
      layer_norm_backward_version("sliced_backward", layer_norm_backward_sliced, &layer_norm_slices_method,
                                  "Slices of the rows give more threads. But x and dy are read three times."),
      layer_norm_backward_version("registers_backward", layer_norm_backward_gpu, &layer_norm_slices_method,
                                  "dx and the sums of columns from one read of x and dy: bandwidth is the limit."),
  };
  const LessonVersion instances[] = {
      instance_norm_forward_version("instance", instance_norm_forward_gpu,
                                    "The same kernel with one weight per row, which takes no bandwidth."),
  };
  const LessonVersion instance_backwards[] = {
      instance_norm_backward_version("instance_backward", instance_norm_backward_gpu,
                                     "The two sums of a row are its part of dweight and dbias."),
  };
  const LessonTable tables[] = {
      {"Layer norm, forward", forwards, sizeof forwards / sizeof *forwards},
      {"Layer norm, backward", backwards, sizeof backwards / sizeof *backwards, &backward},
      {"Instance norm, forward", instances, 1, &instance_forward},
      {"Instance norm, backward", instance_backwards, 1, &instance_backward},
  };
  return lesson_main(argc, argv, &forward, tables, sizeof tables / sizeof *tables);
}
