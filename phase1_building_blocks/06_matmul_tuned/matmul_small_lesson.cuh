/* matmul_small_lesson.cuh - arrays, shapes, reference and tolerance of a batch of matrix products,
 * C (batch,M,N) = A (batch,M,K) B (batch,K,N), and NVIDIA's version of it: for the program and the test of counts. */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_SMALL_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_SMALL_LESSON_CUH

#include "common/check_cublas.h"
#include "common/lesson/lesson.h"
#include "phase1_building_blocks/06_matmul_tuned/matmul_batched.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned.cuh"

/* One product after the other. */
static inline void matmul_each(MatmulLauncher *launch, float *c, const float *a, const float *b, int m, int n, int k,
                               int batch) {
  for (int i = 0; i < batch; i++) launch(c + (size_t)i * m * n, a + (size_t)i * m * k, b + (size_t)i * k * n, m, n, k);
}

template <MatmulLauncher *LAUNCH>
static inline void matmul_each_of(float *c, const float *a, const float *b, int m, int n, int k, int batch) {
  matmul_each(LAUNCH, c, a, b, m, n, k, batch);
}

/* Row-major, as in matmul_cublas(); float32 throughout. */
static inline void matmul_cublas_batched(float *c, const float *a, const float *b, int m, int n, int k, int batch) {
  static cublasHandle_t handle; /* created once: that takes a tenth of a second */
  const float one = 1.0f, zero = 0.0f;
  if (handle == NULL) {
    handle = cublas_handle();
    CUBLAS_CHECK(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH));
  }
  if (batch == 1)
    CUBLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n));
  else
    CUBLAS_CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, (long long)k * n, a,
                                           k, (long long)m * k, &zero, c, n, (long long)m * n, batch));
}

/* Sums in double, for shapes that would take the CPU minutes. */
static __global__ void matmul_small_reference_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  int row = blockIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x, product = blockIdx.z;
  if (col >= n) return;
  a += ((size_t)product * m + row) * k;
  b += (size_t)product * k * n;
  double sum = 0;
  for (int i = 0; i < k; i++) sum += (double)a[i] * b[(size_t)i * n + col];
  c[((size_t)product * m + row) * n + col] = (float)sum;
}

static inline void matmul_small_reference_gpu(float *c, const float *a, const float *b, int m, int n, int k,
                                              int batch) {
  matmul_small_reference_kernel<<<dim3((n + 127) / 128, m, batch), 128>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

static inline void matmul_small_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MatmulBatchLauncher *)launch)(array[0], array[1], array[2], size[1], size[2], size[3], size[0]);
}

static inline LessonVersion matmul_small_version(const char *name, MatmulBatchLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline double matmul_small_flops(const int *size) { return 2.0 * size[0] * size[1] * size[2] * size[3]; }

static inline Tolerance matmul_small_tolerance(const int *size) { return tolerance_dot((size_t)size[3], 1); }

static inline Lesson matmul_small_lesson(void) {
  Lesson lesson = lesson_make("matmul_small", "bmnk", matmul_small_call, (LessonLauncher)matmul_batched_cpu);
  lesson_output(&lesson, "c", "bmn");
  lesson_input(&lesson, "a", "bmk");
  lesson_input(&lesson, "b", "bkn");
  lesson.reference_gpu = (LessonLauncher)matmul_small_reference_gpu;
  lesson.flops = matmul_small_flops;
  lesson.tolerance = matmul_small_tolerance;
  lesson.most = lesson_shape(&lesson, 65535, 65535, 65535 * 32, INT_MAX - MATMUL_CHUNK);
  lesson.timed = lesson_shape(&lesson, 1, 8, 4096, 4096);
  lesson.counted = lesson_shape(&lesson, 4, 8, 256, 256);
  const int shapes[][4] = {{2, 3, 31, 33},  {1, 1, 1, 1},    {3, 9, 65, 70},
                           {1, 8, 132, 68}, {2, 64, 64, 64}, {1, 17, 36, 1100}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]));
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_SMALL_LESSON_CUH */
