/* matmul_tensor_core_lesson.cuh - arrays, shapes, reference and tolerance of a matrix product of bfloat16: for the
 * program, its tests and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_TENSOR_CORE_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_TENSOR_CORE_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wmma.cuh"

/* C (m,n) = A (m,k) B (k,n) */
typedef void MatmulTensorCoreLauncher(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k);

static inline void matmul_tensor_core_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MatmulTensorCoreLauncher *)launch)(array[0], (const __nv_bfloat16 *)array[1], (const __nv_bfloat16 *)array[2],
                                       size[0], size[1], size[2]);
}

static inline LessonVersion matmul_tensor_core_version(const char *name, MatmulTensorCoreLauncher *launch,
                                                       const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The reference in double, for shapes that would take the CPU minutes. */
static __global__ void matmul_bfloat16_reference_kernel(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m,
                                                        int n, int k) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || col >= n) return;
  double sum = 0;
  for (int i = 0; i < k; i++)
    sum += (double)__bfloat162float(a[(size_t)row * k + i]) * (double)__bfloat162float(b[(size_t)i * n + col]);
  c[(size_t)row * n + col] = (float)sum;
}

static inline void matmul_bfloat16_reference_gpu(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n,
                                                 int k) {
  dim3 block(32, 8), grid((unsigned)(n + 31) / 32, (unsigned)(m + 7) / 8);
  matmul_bfloat16_reference_kernel<<<grid, block>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

static inline double matmul_tensor_core_flops(const int *size) { return 2.0 * size[0] * size[1] * size[2]; }

/* Products of bfloat16 are exact in float32; only the sums are rounded, or truncated by tensor cores. */
static inline Tolerance matmul_tensor_core_tolerance(const int *size) { return tolerance_dot((size_t)size[2], 1); }

static inline Lesson matmul_tensor_core_lesson(void) {
  Lesson lesson =
      lesson_make("matmul_tensor_core", "mnk", matmul_tensor_core_call, (LessonLauncher)matmul_bfloat16_cpu);
  lesson_output(&lesson, "c", "mn");
  lesson_input(&lesson, "a", "mk");
  lesson_input(&lesson, "b", "kn");
  lesson_element(&lesson, "a", LESSON_BFLOAT16);
  lesson_element(&lesson, "b", LESSON_BFLOAT16);
  lesson.reference_gpu = (LessonLauncher)matmul_bfloat16_reference_gpu;
  lesson.flops = matmul_tensor_core_flops;
  lesson.tolerance = matmul_tensor_core_tolerance;
  /* gridDim.y of the reference and of naive; K plus one step must fit in an int */
  lesson.most = lesson_shape(&lesson, 65535 * 8, 65535 * 8, INT_MAX - 64);
  lesson.timed = lesson_shape(&lesson, 4096, 4096, 4096);
  lesson.counted = lesson_shape(&lesson, 128, 256, 64);
  /* the first shows faults best; a single element; edges inside a fragment and a tile; rows that are a multiple of 16
   * bytes and others; K of several steps, and shorter than one */
  const int shapes[][3] = {{3, 31, 33},  {1, 1, 1},    {31, 3, 1},    {33, 127, 65},  {16, 16, 16},
                           {17, 24, 40}, {65, 72, 72}, {128, 64, 72}, {130, 136, 40}, {1, 8, 264}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_TENSOR_CORE_LESSON_CUH */
