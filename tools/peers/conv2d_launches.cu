/* conv2d_launches.cu - every method of convolution (phase3_cnn/conv2d_methods.h) once per operation that it has, for a
 * comparison of the inspector with a GPU's counters.
 *
 *     simt/test/hardware/measure.sh OUT conv2d conv2d_launches      on a GPU: OUT/conv2d.csv
 *
 * Each on the shape that the lessons count and on a ragged one, if it takes them. With as many multiprocessors as the
 * GPU has (SIMT_MULTIPROCESSORS=132 for an H200) the emulator makes the same launches. */
#include "common/lesson/arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/conv2d_methods.h"

static void launch(const Lesson *lesson, LessonVersion version, LessonShape shape) {
  LessonHost host;
  float *array[LESSON_ARRAYS];
  Error err;
  if (version.launch == NULL || lesson_refuses(lesson, &version, &shape, &err) != 0) return;
  lesson_host_open(lesson, &shape, 99, &host);
  lesson_gpu_open(lesson, &host, 0, array);
  lesson_workspace_open(lesson, &version, shape.size, 0, array);
  lesson->call(version.launch, array, shape.size);
  CUDA_CHECK(cudaDeviceSynchronize());
  lesson_workspace_close(lesson, 0, array);
  lesson_gpu_close(lesson, 0, array);
  lesson_host_close(lesson, &host);
}

int main(void) {
  const Lesson forward = conv2d_forward_lesson("forward"), input = conv2d_backward_input_lesson("input"),
               weight = conv2d_backward_weight_lesson("weight");
  static const char *const shapes[] = {"1x8x16x32x16x3x3:padding=1", "3x5x13x11x7x3x3:padding=1",
                                       "2x6x9x11x6x3x3:stride=2:padding=1:groups=6"};
  for (int m = 0; m < CONV2D_METHODS; m++) {
    const Conv2dMethod *method = conv2d_methods[m];
    if (strstr(method->name, "cublas") != NULL) continue; /* the library chooses its kernels */
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      const LessonShape shape = lesson_shape_of(&forward, shapes[i]);
      launch(&forward, conv2d_forward_version_of("forward", method, ""), shape);
      launch(&input, conv2d_backward_input_version_of("input", method, ""), shape);
      launch(&weight, conv2d_backward_weight_version_of("weight", method, ""), shape);
    }
  }
  return 0;
}
