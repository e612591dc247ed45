/* random_init_lesson.cuh - arrays, shapes, reference and tolerance of random numbers: for the program, its test and the
 * exercises. Number i of a seed and stream is defined exactly, so random numbers are checked like any others. */
#ifndef PHASE1_BUILDING_BLOCKS_RANDOM_INIT_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_RANDOM_INIT_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/11_random_init/random_init.cuh"

/* x (n): uniform in [a, b), or normal with mean a and standard deviation b */
typedef void RandomLauncher(float *x, size_t n, float a, float b, uint64_t seed, uint32_t stream);

/* Both halves of the key and the stream are not 0. With this seed, word 2 of block 2 is one of those, one in 2^24, that
 * are 0 as a uniform number: x[10] and x[11] are then the largest normal numbers that exist here. (Found by trying 1.3
 * million seeds.) The interval is not symmetric, the mean is not 0. */
#define RANDOM_LESSON_SEED 0x0123456700141b2du
#define RANDOM_LESSON_STREAM 0xfedcba98u
#define RANDOM_LESSON_LOW (-2.0f)
#define RANDOM_LESSON_HIGH 5.0f
#define RANDOM_LESSON_MEAN 1.0f
#define RANDOM_LESSON_STDDEV 0.5f

/* Each part of the array begins with number 0 of the stream. */
static inline void random_call(LessonLauncher launch, float *x, const int *size, float a, float b, uint64_t seed,
                               uint32_t stream) {
  const size_t n = (size_t)size[0], first = lesson_first_part(n);
  if (first > 0) ((RandomLauncher *)launch)(x, first, a, b, seed, stream);
  ((RandomLauncher *)launch)(x + first, n - first, a, b, seed, stream);
}

static inline void random_uniform_call(LessonLauncher launch, float *const *array, const int *size) {
  random_call(launch, array[0], size, RANDOM_LESSON_LOW, RANDOM_LESSON_HIGH, RANDOM_LESSON_SEED, RANDOM_LESSON_STREAM);
}

static inline void random_normal_call(LessonLauncher launch, float *const *array, const int *size) {
  random_call(launch, array[0], size, RANDOM_LESSON_MEAN, RANDOM_LESSON_STDDEV, RANDOM_LESSON_SEED,
              RANDOM_LESSON_STREAM);
}

/* The most frequent mistakes. */
static inline void random_without_seed_call(LessonLauncher launch, float *const *array, const int *size) {
  random_call(launch, array[0], size, RANDOM_LESSON_LOW, RANDOM_LESSON_HIGH, 0, RANDOM_LESSON_STREAM);
}
static inline void random_without_stream_call(LessonLauncher launch, float *const *array, const int *size) {
  random_call(launch, array[0], size, RANDOM_LESSON_LOW, RANDOM_LESSON_HIGH, RANDOM_LESSON_SEED, 0);
}

static inline LessonVersion random_version(const char *name, RandomLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void random_lesson_shapes(Lesson *lesson) {
  lesson_output(lesson, "x", "n");
  lesson->timed = lesson_shape(lesson, 64 << 20); /* 256 MiB */
  lesson->counted = lesson_shape(lesson, 1 << 16);
  /* the first shows faults best; within a block of Philox; around a warp and a block of 256; more than all threads that
   * the emulated GPU holds */
  const int sizes[] = {31, 1, 2, 3, 4, 5, 33, 127, 1021, 1027, 140011};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) lesson_check_shape(lesson, lesson_shape(lesson, sizes[i]));
}

/* Exact: both sides compute the same integers and round once. */
static inline Lesson random_uniform_lesson(void) {
  Lesson lesson = lesson_make("random_init", "n", random_uniform_call, (LessonLauncher)random_uniform_fill_cpu);
  random_lesson_shapes(&lesson);
  lesson_alternative(&lesson, "the seed were 0: it is not used", random_without_seed_call);
  lesson_alternative(&lesson, "the stream were 0: it is not used", random_without_stream_call);
  return lesson;
}

/* A standard normal in float is at most 3 ulps (random_init.cuh), 6 units of rounding, from the one in double, and no
 * larger than sqrt(-2 log 2^-24) = 5.77. Scaling it and adding the mean is one more rounding on both sides. */
static inline Tolerance random_normal_tolerance(const int *size) {
  (void)size;
  return tolerance_make(FLT_EPSILON, 3 * FLT_EPSILON * 5.77 * RANDOM_LESSON_STDDEV);
}

static inline Lesson random_normal_lesson(void) {
  Lesson lesson = lesson_make("random_init", "n", random_normal_call, (LessonLauncher)random_normal_quads_cpu);
  random_lesson_shapes(&lesson);
  lesson.tolerance = random_normal_tolerance;
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_RANDOM_INIT_LESSON_CUH */
