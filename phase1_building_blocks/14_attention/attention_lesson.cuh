/* attention_lesson.cuh - arrays, shapes, reference and tolerance of attention, forward: for the program, its tests and
 * the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/14_attention/attention.cuh"

/* o (b,h,s,d), lse (b,h,s) from q, k, v (b,h,s,d) */
static inline void attention_call(LessonLauncher launch, float *const *array, const int *size) {
  ((AttentionLauncher *)launch)(array[0], array[1], array[2], array[3], array[4], size[0], size[1], size[2], size[3],
                                false);
}

static inline void attention_causal_call(LessonLauncher launch, float *const *array, const int *size) {
  ((AttentionLauncher *)launch)(array[0], array[1], array[2], array[3], array[4], size[0], size[1], size[2], size[3],
                                true);
}

static inline LessonVersion attention_version(const char *name, AttentionLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The reference in double, for shapes that would take the CPU minutes: one warp per query. Its lanes share the keys for
 * the sums of exponentials, and the columns for the weighted sum, 32 keys at a time. */
static __global__ void attention_reference_kernel(float *o, float *lse, const float *q, const float *k, const float *v,
                                                  int rows, int s, int d, bool causal) {
  int row = (int)(((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32), lane = threadIdx.x % 32;
  if (row >= rows) return;
  size_t first = (size_t)(row / s) * s * d;
  int keys = causal ? row % s + 1 : s;
  double largest = -INFINITY, total = 0, sum[4] = {}, scale = 1 / sqrt((double)d);
  for (int key0 = 0; key0 < keys; key0 += 32) {
    double score = -INFINITY;
    if (key0 + lane < keys) {
      score = 0;
      for (int c = 0; c < d; c++) score += (double)q[(size_t)row * d + c] * k[first + (size_t)(key0 + lane) * d + c];
      score *= scale;
    }
    double most = score;
    for (int other = 16; other > 0; other /= 2) most = fmax(most, __shfl_xor_sync(0xFFFFFFFF, most, other));
    most = fmax(most, largest);
    double rescale = exp(largest - most), p = exp(score - most);
    largest = most;
    total = total * rescale + p;
    for (int c = 0; c < 4; c++) sum[c] *= rescale;
    for (int j = 0; j < 32 && key0 + j < keys; j++) {
      double weight = __shfl_sync(0xFFFFFFFF, p, j);
      for (int c = 0; c < 4; c++)
        if (lane + 32 * c < d) sum[c] += weight * v[first + (size_t)(key0 + j) * d + lane + 32 * c];
    }
  }
  for (int other = 16; other > 0; other /= 2) total += __shfl_xor_sync(0xFFFFFFFF, total, other);
  for (int c = 0; c < 4; c++)
    if (lane + 32 * c < d) o[(size_t)row * d + lane + 32 * c] = (float)(sum[c] / total);
  if (lane == 0) lse[row] = (float)(largest + log(total));
}

static inline void attention_reference_gpu(float *o, float *lse, const float *q, const float *k, const float *v, int b,
                                           int h, int s, int d, bool causal) {
  int rows = b * h * s;
  attention_reference_kernel<<<attention_blocks((size_t)rows * 32, 256), 256>>>(o, lse, q, k, v, rows, s, d, causal);
  CUDA_CHECK_LAUNCH();
}

/* Two products of S x S x D per head; if causal, half of that. */
static inline double attention_flops(const int *size) { return 4.0 * size[0] * size[1] * size[2] * size[2] * size[3]; }
static inline double attention_causal_flops(const int *size) {
  return 2.0 * size[0] * size[1] * size[2] * (size[2] + 1.0) * size[3];
}

/* A score is a sum of d products, times 1/sqrt(d). If all scores of a row have an error of at most e, its p have a
 * relative error of at most 2 e, and a weighted mean of values of magnitude up to 2 an error of 4 e; computing the
 * mean, a sum of s terms that are p times 2, adds 4 sqrt(s) roundings of 2. lse has an error of e. */
static inline Tolerance attention_tolerance(const int *size) {
  Tolerance score = tolerance_dot((size_t)size[3], 1 / sqrt((double)size[3]));
  return tolerance_make(4 * score.relative, 4 * score.absolute + 8 * sqrt((double)size[2]) * FLT_EPSILON);
}

static inline double attention_memory_used(void) { return (double)attention_memory; }

/* The part that all lessons of attention share; the caller adds the arrays. */
static inline Lesson attention_lesson_make(const char *name, void (*call)(LessonLauncher, float *const *, const int *),
                                           LessonLauncher reference, bool causal) {
  Lesson lesson = lesson_make(name, "bhsd", call, reference);
  lesson.flops = causal ? attention_causal_flops : attention_flops;
  lesson.tolerance = attention_tolerance;
  lesson.memory = attention_memory_used;
  lesson.most = lesson_shape(&lesson, 65535, 65535, 1 << 24, 128); /* wider heads do not fit in registers */
  lesson.timed = lesson_shape(&lesson, 2, 16, 4096, 64);
  lesson.counted = lesson_shape(&lesson, 1, 1, 128, 64);
  /* the first shows faults best; a single element; fewer rows than a tile, and one row more; several heads; heads as
   * wide as a template's D, and narrower */
  const int shapes[][4] = {{3, 1, 31, 63},  {1, 1, 1, 1},    {1, 2, 3, 16}, {1, 1, 127, 64},
                           {1, 1, 129, 32}, {1, 2, 65, 128}, {1, 1, 33, 40}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]));
  return lesson;
}

/* For checks of exercises, which should be quick: heads of up to 64 columns, so that one kernel is compiled, and few
 * tiles. */
static inline Lesson attention_narrow(Lesson lesson) {
  const int shapes[][4] = {{3, 1, 31, 63}, {1, 1, 1, 1}, {1, 2, 3, 16}, {1, 2, 65, 64}, {1, 1, 65, 32}, {1, 1, 33, 40}};
  lesson.checks = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]));
  return lesson;
}

static inline Lesson attention_lesson(bool causal) {
  Lesson lesson = attention_lesson_make("attention", causal ? attention_causal_call : attention_call,
                                        (LessonLauncher)attention_forward_cpu<float>, causal);
  lesson_output(&lesson, "o", "bhsd");
  lesson_output(&lesson, "lse", "bhs");
  lesson_input(&lesson, "q", "bhsd");
  lesson_input(&lesson, "k", "bhsd");
  lesson_input(&lesson, "v", "bhsd");
  lesson.reference_gpu = (LessonLauncher)attention_reference_gpu;
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_LESSON_CUH */
