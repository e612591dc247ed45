/* matmul_lesson.cuh - arrays, shapes, reference and tolerance of a matrix product: for the four lessons, their test and
 * the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/03_matmul_naive/matmul.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_chunk.cuh"

/* C (m,n) = A (m,k) B (k,n) */
typedef void MatmulLauncher(float *c, const float *a, const float *b, int m, int n, int k);

static inline void matmul_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MatmulLauncher *)launch)(array[0], array[1], array[2], size[0], size[1], size[2]);
}

static inline LessonVersion matmul_version(const char *name, MatmulLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void matmul_reference(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_cpu(c, a, b, m, n, k, false, false, false);
}

/* The same sums in double, for shapes that would take the CPU minutes. */
static __global__ void matmul_reference_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || col >= n) return;
  double sum = 0;
  for (int i = 0; i < k; i++) sum += (double)a[(size_t)row * k + i] * b[(size_t)i * n + col];
  c[(size_t)row * n + col] = (float)sum;
}

static inline void matmul_reference_gpu(float *c, const float *a, const float *b, int m, int n, int k) {
  dim3 block(32, 8), grid((n + 31) / 32, (m + 7) / 8);
  matmul_reference_kernel<<<grid, block>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

/* One multiplication and one addition per k and element. */
static inline double matmul_flops(const int *size) { return 2.0 * size[0] * size[1] * size[2]; }

static inline Tolerance matmul_tolerance(const int *size) { return tolerance_dot((size_t)size[2], 1); }

static inline Lesson matmul_lesson(const char *name) {
  Lesson lesson = lesson_make(name, "mnk", matmul_call, (LessonLauncher)matmul_reference);
  lesson_output(&lesson, "c", "mn");
  lesson_input(&lesson, "a", "mk");
  lesson_input(&lesson, "b", "kn");
  lesson.reference_gpu = (LessonLauncher)matmul_reference_gpu;
  lesson.flops = matmul_flops;
  lesson.tolerance = matmul_tolerance;
  /* limited by y of the reference's and the naive grids; K, so that one step or chunk more still fits in an int */
  lesson.most = lesson_shape(&lesson, 65535 * 8, 65535 * 32, INT_MAX - MATMUL_CHUNK);
  lesson.timed = lesson_shape(&lesson, 4096, 4096, 4096);
  lesson.counted = lesson_shape(&lesson, 128, 128, 64);
  /* The first shape shows faults best. The others: one element; an edge in every place of a tile; K shorter than a
   * step; row lengths that are multiples of four, and others. */
  const int shapes[][3] = {{3, 31, 33},   {1, 1, 1},      {31, 3, 1},   {33, 127, 65},
                           {127, 33, 31}, {129, 131, 17}, {64, 64, 64}, {36, 260, 20}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_LESSON_CUH */
