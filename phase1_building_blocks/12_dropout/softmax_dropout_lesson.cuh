/* softmax_dropout_lesson.cuh - arrays, shapes, reference and tolerance of softmax and dropout together: for the
 * program, its test and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_SOFTMAX_DROPOUT_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_SOFTMAX_DROPOUT_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/12_dropout/softmax_dropout.cuh"

/* All (rows,cols): y from x; in a step also dx from x and dy. */
typedef void SoftmaxDropoutLauncher(float *y, const float *x, int rows, int cols, float p, uint64_t seed,
                                    uint32_t stream);
typedef void SoftmaxDropoutStepLauncher(float *y, float *dx, const float *x, const float *dy, int rows, int cols,
                                        float p, uint64_t seed, uint32_t stream);

#define SOFTMAX_DROPOUT_LESSON_P 0.4f
#define SOFTMAX_DROPOUT_LESSON_SEED 0x0123456789abcdefu
#define SOFTMAX_DROPOUT_LESSON_STREAM 0xfedcba98u

static inline void softmax_dropout_call(LessonLauncher launch, float *const *array, const int *size) {
  ((SoftmaxDropoutLauncher *)launch)(array[0], array[1], size[0], size[1], SOFTMAX_DROPOUT_LESSON_P,
                                     SOFTMAX_DROPOUT_LESSON_SEED, SOFTMAX_DROPOUT_LESSON_STREAM);
}
static inline void softmax_dropout_step_call(LessonLauncher launch, float *const *array, const int *size) {
  ((SoftmaxDropoutStepLauncher *)launch)(array[0], array[1], array[2], array[3], size[0], size[1],
                                         SOFTMAX_DROPOUT_LESSON_P, SOFTMAX_DROPOUT_LESSON_SEED,
                                         SOFTMAX_DROPOUT_LESSON_STREAM);
}

static inline LessonVersion softmax_dropout_version(const char *name, SoftmaxDropoutLauncher *launch,
                                                    const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion softmax_dropout_step_version(const char *name, SoftmaxDropoutStepLauncher *launch,
                                                         const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* Matrix `which` (0 or 1) between two kernels; it grows when a larger one is requested. */
static inline float *softmax_dropout_lesson_scratch(int which, size_t n) {
  static float *scratch[2];
  static size_t size[2];
  if (n > size[which]) {
    CUDA_CHECK(cudaFree(scratch[which]));
    CUDA_CHECK(cudaMalloc((void **)&scratch[which], n * sizeof(float)));
    size[which] = n;
  }
  return scratch[which];
}

/* The probabilities are stored in y: dropout works in place. */
static inline void softmax_dropout_separate(float *y, const float *x, int rows, int cols, float p, uint64_t seed,
                                            uint32_t stream) {
  softmax_dropout_forward_separate(y, y, x, rows, cols, p, seed, stream);
}

static inline void softmax_dropout_step_separate(float *y, float *dx, const float *x, const float *dy, int rows,
                                                 int cols, float p, uint64_t seed, uint32_t stream) {
  float *s = softmax_dropout_lesson_scratch(0, (size_t)rows * cols);
  float *g = softmax_dropout_lesson_scratch(1, (size_t)rows * cols);
  softmax_dropout_forward_separate(y, s, x, rows, cols, p, seed, stream);
  softmax_dropout_backward_separate(dx, g, s, dy, rows, cols, p, seed, stream);
}
static inline void softmax_dropout_step_passes(float *y, float *dx, const float *x, const float *dy, int rows, int cols,
                                               float p, uint64_t seed, uint32_t stream) {
  softmax_dropout_forward_gpu(y, x, rows, cols, p, seed, stream);
  softmax_dropout_backward_passes(dx, x, dy, rows, cols, p, seed, stream);
}
static inline void softmax_dropout_step_gpu(float *y, float *dx, const float *x, const float *dy, int rows, int cols,
                                            float p, uint64_t seed, uint32_t stream) {
  softmax_dropout_forward_gpu(y, x, rows, cols, p, seed, stream);
  softmax_dropout_backward_gpu(dx, x, dy, rows, cols, p, seed, stream);
}
static inline void softmax_dropout_step_cpu(float *y, float *dx, const float *x, const float *dy, int rows, int cols,
                                            float p, uint64_t seed, uint32_t stream) {
  softmax_dropout_forward_cpu(y, x, rows, cols, p, seed, stream);
  softmax_dropout_backward_cpu(dx, x, dy, rows, cols, p, seed, stream);
}

/* The relative error of a probability: a few roundings (exp: 2 units, its argument, the quotient), and those of a sum
 * of `cols` terms. */
static inline double softmax_dropout_error(const int *size) {
  return (16 + fmin(size[1], 4 * sqrt((double)size[1]))) * FLT_EPSILON;
}

static inline Tolerance softmax_dropout_forward_tolerance(const int *size) {
  return tolerance_make(softmax_dropout_error(size), FLT_MIN);
}

/* s (g - dot): |g| and |dot| are at most 2 / 0.6, each probability errs relatively by the error above, once as a factor
 * and once within dot. No probability is above exp(3) / cols, the scores being in [-128, -125). */
static inline Tolerance softmax_dropout_backward_tolerance(const int *size) {
  double largest = fmin(1, exp(3) / size[1]);
  return tolerance_make(0, 3 * softmax_dropout_error(size) * largest * 2 / 0.6);
}

/* x is read twice, forward and backward. */
static inline double softmax_dropout_step_bytes(const int *size) { return 20.0 * size[0] * size[1]; }

static inline void softmax_dropout_lesson_inputs(Lesson *lesson) {
  lesson_input(lesson, "x", "rc");
  lesson_range(lesson, "x", -128, -125); /* exp() of these is 0: without the maximum the quotients are 0/0 */
  lesson->timed = lesson_shape(lesson, 32768, 1024);
  lesson->counted = lesson_shape(lesson, 128, 512);
  /* the first shows faults best; a single element, around a warp and a float4, primes, so that rows begin at any
   * alignment; each size of kernel, and longer rows */
  const int shapes[][2] = {{7, 31},  {1, 1},   {3, 2},    {5, 3},    {2, 4},    {5, 33},
                           {4, 127}, {6, 260}, {3, 1021}, {3, 1028}, {2, 4097}, {1, 20003}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(lesson, lesson_shape(lesson, shapes[i][0], shapes[i][1]));
}

static inline Lesson softmax_dropout_lesson(void) {
  Lesson lesson =
      lesson_make("dropout", "rc", softmax_dropout_call, (LessonLauncher)softmax_dropout_forward_cpu<float>);
  lesson_output(&lesson, "y", "rc");
  softmax_dropout_lesson_inputs(&lesson);
  lesson.tolerance = softmax_dropout_forward_tolerance;
  return lesson;
}

static inline Lesson softmax_dropout_step_lesson(void) {
  Lesson lesson = lesson_make("dropout", "rc", softmax_dropout_step_call, (LessonLauncher)softmax_dropout_step_cpu);
  lesson_output(&lesson, "y", "rc");
  lesson_output(&lesson, "dx", "rc");
  softmax_dropout_lesson_inputs(&lesson);
  lesson_input(&lesson, "dy", "rc");
  lesson.tolerance = softmax_dropout_forward_tolerance;
  lesson_tolerance(&lesson, "dx", softmax_dropout_backward_tolerance);
  lesson.bytes = softmax_dropout_step_bytes;
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_DROPOUT_LESSON_CUH */
