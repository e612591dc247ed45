/* matmul_fp8_lesson.cuh - arrays, shapes, workspace, reference and tolerance of a product of e4m3 with a scale per
 * tile: for the program and its test. A version quantises A and W, and multiplies. */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_FP8_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_FP8_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_fp8.cuh"

/* C (m,n) = A (m,k) W^T, W (n,k): of codes and scales, and of floats */
typedef void MatmulFp8Launcher(__nv_bfloat16 *c, const uint8_t *a, const float *a_scale, const uint8_t *w,
                               const float *w_scale, int m, int n, int k);
typedef void MatmulFp8FloatLauncher(__nv_bfloat16 *c, const float *a, const float *w, int m, int n, int k,
                                    void *workspace);

typedef struct MatmulFp8Workspace {
  uint8_t *a, *w;
  float *a_scale, *w_scale;
} MatmulFp8Workspace;

/* The pieces of the workspace, and how many bytes it has. */
static inline size_t matmul_fp8_layout(MatmulFp8Workspace *pieces, void *workspace, int m, int n, int k) {
  size_t pitch = fp8_pitch(k), steps = (size_t)fp8_tile_count(k), at = 0;
  char *base = (char *)workspace;
  pieces->a = (uint8_t *)(base + at), at += m * pitch;
  pieces->w = (uint8_t *)(base + at), at += n * pitch;
  pieces->a_scale = (float *)(base + at), at += m * steps * sizeof(float);
  pieces->w_scale = (float *)(base + at), at += fp8_tile_count(n) * steps * sizeof(float);
  return at;
}

static inline size_t matmul_fp8_lesson_workspace(const void *method, const int *size) {
  MatmulFp8Workspace pieces;
  (void)method;
  return matmul_fp8_layout(&pieces, NULL, size[0], size[1], size[2]);
}

static inline void matmul_fp8_quantise_and(MatmulFp8Launcher *multiply, __nv_bfloat16 *c, const float *a,
                                           const float *w, int m, int n, int k, void *workspace) {
  MatmulFp8Workspace pieces;
  matmul_fp8_layout(&pieces, workspace, m, n, k);
  fp8_rows(pieces.a, pieces.a_scale, a, m, k);
  fp8_tiles(pieces.w, pieces.w_scale, w, n, k);
  multiply(c, pieces.a, pieces.a_scale, pieces.w, pieces.w_scale, m, n, k);
}

static inline void matmul_fp8_float_naive(__nv_bfloat16 *c, const float *a, const float *w, int m, int n, int k,
                                          void *workspace) {
  matmul_fp8_quantise_and(matmul_fp8_naive, c, a, w, m, n, k, workspace);
}

static inline void matmul_fp8_float_wgmma(__nv_bfloat16 *c, const float *a, const float *w, int m, int n, int k,
                                          void *workspace) {
  matmul_fp8_quantise_and(matmul_fp8_wgmma, c, a, w, m, n, k, workspace);
}

static inline void matmul_fp8_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MatmulFp8FloatLauncher *)launch)((__nv_bfloat16 *)array[0], array[1], array[2], size[0], size[1], size[2],
                                     array[3]);
}

static inline LessonVersion matmul_fp8_version(const char *name, MatmulFp8FloatLauncher *launch, const char *limit) {
  return lesson_version_of(name, (LessonLauncher)launch, "", limit);
}

static inline void matmul_fp8_reference(__nv_bfloat16 *c, const float *a, const float *w, int m, int n, int k,
                                        void *workspace) {
  MatmulFp8Workspace pieces;
  (void)workspace; /* is on the GPU */
  void *own = xmalloc(matmul_fp8_layout(&pieces, NULL, m, n, k));
  matmul_fp8_layout(&pieces, own, m, n, k);
  fp8_rows_cpu(pieces.a, pieces.a_scale, a, m, k);
  fp8_tiles_cpu(pieces.w, pieces.w_scale, w, n, k);
  matmul_fp8_cpu(c, pieces.a, pieces.a_scale, pieces.w, pieces.w_scale, m, n, k);
  free(own);
}

/* The same sums in double, for shapes that would take the CPU minutes. */
static __global__ void matmul_fp8_reference_kernel(__nv_bfloat16 *c, const uint8_t *a, const float *a_scale,
                                                   const uint8_t *w, const float *w_scale, int m, int n, int steps) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || col >= n) return;
  size_t pitch = (size_t)steps * FP8_TILE;
  double sum = 0;
  for (size_t i = 0; i < pitch; i++) {
    double scale =
        (double)a_scale[row * (size_t)steps + i / FP8_TILE] * w_scale[col / FP8_TILE * (size_t)steps + i / FP8_TILE];
    sum += scale * fp8_decode(a[row * pitch + i]) * fp8_decode(w[col * pitch + i]);
  }
  c[(size_t)row * n + col] = __float2bfloat16((float)sum);
}

static inline void matmul_fp8_multiply_double(__nv_bfloat16 *c, const uint8_t *a, const float *a_scale,
                                              const uint8_t *w, const float *w_scale, int m, int n, int k) {
  dim3 block(32, 8), grid((unsigned)(n + 31) / 32, (unsigned)(m + 7) / 8);
  matmul_fp8_reference_kernel<<<grid, block>>>(c, a, a_scale, w, w_scale, m, n, fp8_tile_count(k));
  CUDA_CHECK_LAUNCH();
}

static inline void matmul_fp8_reference_gpu(__nv_bfloat16 *c, const float *a, const float *w, int m, int n, int k,
                                            void *workspace) {
  MatmulFp8Workspace pieces;
  void *own;
  (void)workspace; /* the reference is given none */
  CUDA_CHECK(cudaMalloc(&own, matmul_fp8_layout(&pieces, NULL, m, n, k)));
  matmul_fp8_quantise_and(matmul_fp8_multiply_double, c, a, w, m, n, k, own);
  CUDA_CHECK(cudaFree(own));
}

static inline double matmul_fp8_flops(const int *size) { return 2.0 * size[0] * size[1] * size[2]; }

/* C is rounded to bfloat16, by either side. Tensor cores cut off what is less than 2^-13 of the largest number that
 * they add, in 33 numbers at a time: half of that from each, and the numbers of a tile add up to 128 at most (a product
 * is 1 in size). The emulated ones are exact. */
static inline Tolerance matmul_fp8_tolerance(const int *size) {
#ifdef SIMT_REWRITTEN
  return tolerance_make(1.0 / 128, 4 * FLT_EPSILON * size[2]);
#else
  return tolerance_make(1.0 / 128, size[2] / 512.0);
#endif
}

static inline Lesson matmul_fp8_lesson(void) {
  Lesson lesson = lesson_make("matmul_fp8", "mnk", matmul_fp8_call, (LessonLauncher)matmul_fp8_reference);
  lesson_output(&lesson, "c", "mn");
  lesson_input(&lesson, "a", "mk");
  lesson_input(&lesson, "w", "nk");
  lesson_element(&lesson, "c", LESSON_BFLOAT16);
  lesson.reference_gpu = (LessonLauncher)matmul_fp8_reference_gpu;
  lesson.workspace = matmul_fp8_lesson_workspace;
  lesson.flops = matmul_fp8_flops;
  lesson.tolerance = matmul_fp8_tolerance;
  lesson.most = lesson_shape(&lesson, 65535 * 8, 65535 * 8, INT_MAX - FP8_TILE);
  lesson.timed = lesson_shape(&lesson, 4096, 4096, 4096);
  lesson.counted = lesson_shape(&lesson, 128, 256, 256);
  /* the first shows faults best; a single element; edges of a tile, a scale; rows of C that begin anywhere */
  const int shapes[][3] = {{3, 31, 33},    {1, 1, 1},     {31, 3, 1},      {33, 127, 65},
                           {17, 130, 129}, {65, 72, 256}, {130, 136, 260}, {1, 8, 264}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_FP8_LESSON_CUH */
