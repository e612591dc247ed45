/* residual.cu - the end of a residual block: where its two branches meet.
 *
 *     bazel run //phase3_cnn:residual
 *
 * A residual block computes relu(f(x) + x). Sum and ReLU need hardly any arithmetic, so their time is that of the
 * bytes. Two kernels move five arrays, one kernel three. In the backward pass both branches get the same gradient: two
 * kernels move five arrays, one kernel four, and three where both branches read one array. The last table goes on: the
 * classifier behind the last block reads the mean of each plane, and the same kernel can compute it.
 *
 * What the sum is good for is shown by the other program of this lesson, residual_depth. */
#include "common/lesson/main.h"
#include "phase3_cnn/11_residual/residual_cudnn.cuh"
#include "phase3_cnn/11_residual/residual_lesson.cuh"

enum { ROWS = 5 };

/* Adds cuDNN's version, where there is one. */
static int with_cudnn(LessonVersion *versions, int count, int backward) {
#if CUDNN_COMPILED
  Error err;
  if (residual_cudnn(&err) != NULL) {
    const char *limit = "Two calls: each array between them is written and read again.";
    versions[count++] =
        lesson_library_version(backward ? add_relu_backward_version("cuDNN and a copy", add_relu_backward_cudnn, limit)
                                        : add_relu_forward_version("cuDNN", add_relu_forward_cudnn, limit));
  } else {
    fprintf(stderr, "residual: note: no peer: %s\n", err.message);
  }
#else
  (void)versions;
  (void)backward;
#endif
  return count;
}

int main(int argc, char **argv) {
  Lesson forward = add_relu_forward_lesson(), backward = add_relu_backward_lesson(), shared = add_relu_shared_lesson(),
         mean = add_relu_mean_lesson();
  LessonVersion forwards[ROWS] = {
      add_relu_forward_version("two kernels", add_relu_forward_two,
                               "The sum is written and read again: five arrays move, three are needed. Fuse."),
      add_relu_forward_version("one kernel", add_relu_forward_one,
                               "Three arrays. But each thread has 8 bytes in flight: load float4."),
      add_relu_forward_version("add_relu", add_relu_forward_gpu,
                               "32 bytes in flight per thread: memory bandwidth is the limit."),
  };
  LessonVersion backwards[ROWS] = {
      add_relu_backward_version("backward two", add_relu_backward_two,
                                "ReLU's gradient, and a copy of it: five arrays. Write both at once."),
      add_relu_backward_version("backward one", add_relu_backward_one, "Four arrays, 4 bytes per load."),
      add_relu_backward_version("add_relu_backward", add_relu_backward_gpu,
                                "Memory bandwidth is the limit. Must the gradient be stored twice?"),
  };
  const LessonVersion one_array[] = {
      add_relu_backward_version("shared gradient", add_relu_backward_gpu,
                                "Both branches read one array: three arrays, the minimum."),
      lesson_copy_version("Reads one array, where backward reads two: compare GB/s."),
  };
  const LessonVersion means[] = {
      add_relu_mean_version("mean two", add_relu_mean_two, "y is read again for its mean: four arrays."),
      add_relu_mean_version("mean fused", add_relu_mean, "Three arrays, and one float for each plane."),
  };
  const int forward_rows = with_cudnn(forwards, 3, 0), backward_rows = with_cudnn(backwards, 3, 1);
  const LessonTable tables[] = {
      {"Add and ReLU", forwards, forward_rows},
      {"Backward, two arrays of gradients", backwards, backward_rows, &backward},
      {"Backward, one array for both branches", one_array, 2, &shared},
      {"Add, ReLU, and the mean of each plane", means, 2, &mean},
  };
  return lesson_main(argc, argv, &forward, tables, sizeof tables / sizeof *tables);
}
