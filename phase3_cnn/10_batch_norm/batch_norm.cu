/* batch_norm.cu - the mean and the deviation of a channel, and how often the channel is read for them.
 *
 *     bazel run //phase3_cnn:batch_norm
 *     bazel run --config=cuda //phase3_cnn:batch_norm -- --shape=256x256x56x56,32x64x56x56    (on a GPU)
 *
 * Batch norm in training needs two sums over all images before it can write its first result, and backward needs two
 * others. There is little to compute, so the time is that of the memory traffic. The naive kernel reads x three times.
 * Mean and variance in one pass need two reads, and many blocks per channel use the whole GPU. The last version keeps
 * each channel in the shared memory of a group of blocks from its first value to its last result: one read.
 *
 * The last two tables have the same sizes, N x C x H x W, but arrays (N,H,W,C), the layout of tensor cores: a channel
 * is a column of a matrix.
 *
 * All versions apply the ReLU behind batch norm as well; `--shape=64x256x56x56:relu=0` leaves it out. */
#include "common/lesson/main.h"
#include "phase3_cnn/10_batch_norm/batch_norm_cudnn.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm_lesson.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm_nhwc_lesson.cuh"

/* Adds cuDNN's version to a table, where there is a cuDNN. */
static int add_cudnn(LessonVersion *versions, int count, int backward) {
#if CUDNN_COMPILED
  Error err;
  if (cudnn_load(&err) == NULL) return count;
  versions[count] = lesson_peer_version(batch_norm_version(
      backward ? "cuDNN backward" : "cuDNN", backward ? batch_norm_backward_cudnn : batch_norm_forward_cudnn,
      "Two calls: its ReLU is one."));
  return count + 1;
#else
  (void)versions;
  (void)backward;
  return count;
#endif
}

int main(int argc, char **argv) {
  Lesson forward = batch_norm_forward_lesson(), backward = batch_norm_backward_lesson();
  LessonVersion forwards[LESSON_VERSIONS] = {
      batch_norm_version("naive", batch_norm2d_forward_naive,
                         "Three reads, and one block per channel. Mean and variance can share a pass."),
      batch_norm_version("welford", batch_norm2d_forward_welford,
                         "Two reads. One block per channel leaves multiprocessors idle, and loads are 4 bytes each."),
      batch_norm_version("slices", batch_norm2d_forward_slices,
                         "Many blocks per channel, float4. The second kernel reads x again: keep it on the chip."),
      batch_norm_version("on_chip", batch_norm2d_forward_gpu,
                         "One read, one write, one kernel: memory bandwidth is the limit."),
  };
  LessonVersion backwards[LESSON_VERSIONS] = {
      batch_norm_version("naive_backward", batch_norm2d_backward_naive,
                         "dy and x are read twice, by one block per channel."),
      batch_norm_version("slices_backward", batch_norm2d_backward_slices,
                         "Many blocks per channel, float4. Four reads: keep both arrays on the chip."),
      batch_norm_version("on_chip_backward", batch_norm2d_backward_gpu, "Two reads, one write: the least there is."),
  };
  const Lesson forward_nhwc = batch_norm_nhwc_forward_lesson(), backward_nhwc = batch_norm_nhwc_backward_lesson();
  const LessonVersion nhwc = batch_norm_version("columns", batch_norm2d_nhwc_forward_gpu,
                                                "Two reads, by blocks of 32 columns. The second can stay on the chip.");
  const LessonVersion nhwc_back = batch_norm_version("columns_backward", batch_norm2d_nhwc_backward_gpu,
                                                     "Four reads, by blocks of 32 columns. Two can stay on the chip.");
  int forward_count = add_cudnn(forwards, 4, 0), backward_count = add_cudnn(backwards, 3, 1);
  const LessonTable tables[] = {
      {"Batch norm in training, forward", forwards, forward_count},
      {"Batch norm, backward", backwards, backward_count, &backward},
      {"Batch norm in training, channels last, forward", &nhwc, 1, &forward_nhwc},
      {"Batch norm, channels last, backward", &nhwc_back, 1, &backward_nhwc},
  };
  return lesson_main(argc, argv, &forward, tables, 4);
}
