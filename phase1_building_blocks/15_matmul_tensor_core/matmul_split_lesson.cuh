/* matmul_split_lesson.cuh - arrays, shapes, workspace, reference and tolerance of a float32 product by tensor cores:
 * for the program and its test. */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_LESSON_CUH

#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split.cuh"

/* C (m,n) = A (m,k) B (k,n); a workspace, or NULL where the version needs none */
typedef void MatmulSplitLauncher(float *c, const float *a, const float *b, int m, int n, int k, void *workspace);

static inline void matmul_split_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MatmulSplitLauncher *)launch)(array[0], array[1], array[2], size[0], size[1], size[2], array[3]);
}

/* Of a version that needs a workspace; `split` lives as long as the version. */
static inline LessonVersion matmul_split_version(const char *name, MatmulSplitLauncher *launch,
                                                 const MatmulSplit *split, const char *limit) {
  return lesson_version_of(name, (LessonLauncher)launch, split, limit);
}

static inline size_t matmul_split_lesson_workspace(const void *split, const int *size) {
  return matmul_split_workspace(*(const MatmulSplit *)split, size[0], size[1], size[2]);
}

static inline void matmul_split_reference(float *c, const float *a, const float *b, int m, int n, int k,
                                          void *workspace) {
  (void)workspace;
  matmul_reference(c, a, b, m, n, k);
}

static inline void matmul_split_reference_gpu(float *c, const float *a, const float *b, int m, int n, int k,
                                              void *workspace) {
  (void)workspace;
  matmul_reference_gpu(c, a, b, m, n, k);
}

static inline void matmul_split_cublas(float *c, const float *a, const float *b, int m, int n, int k, void *workspace) {
  (void)workspace;
  matmul_cublas(c, a, b, m, n, k);
}

/* That of a float32 product: the parts hold 22 bits or more of each factor, which costs 2^-21 of a product; and what
 * tensor cores truncate within a part is less than the roundings of a sum in float32. */
static inline Tolerance matmul_split_tolerance(const int *size) {
  Tolerance tolerance = matmul_tolerance(size);
  tolerance.absolute += 4 * FLT_EPSILON * sqrt((double)size[2]);
  return tolerance;
}

static inline Lesson matmul_split_lesson(void) {
  Lesson lesson = matmul_lesson("matmul_split");
  lesson.call = matmul_split_call;
  lesson.reference = (LessonLauncher)matmul_split_reference;
  lesson.reference_gpu = (LessonLauncher)matmul_split_reference_gpu;
  lesson.workspace = matmul_split_lesson_workspace;
  lesson.most.size[2] = (1 << 28) - 16; /* a row's parts have 8 K bytes, which TMA counts with an int */
  lesson.tolerance = matmul_split_tolerance;
  lesson.timed = lesson_shape(&lesson, 4096, 4096, 4096);
  lesson.counted = lesson_shape(&lesson, 128, 256, 64);
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_LESSON_CUH */
