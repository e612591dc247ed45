/* attention_tensor_core_lesson.cuh - arrays, reference and tolerance of attention in bfloat16: for the program, its
 * tests and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_TENSOR_CORE_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_TENSOR_CORE_LESSON_CUH

#include "phase1_building_blocks/14_attention/attention_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core.cuh"

/* o (b,h,s,d), lse (b,h,s) from q, k, v (b,h,s,d); lse is float */
static inline void attention_bf16_calls(LessonLauncher launch, float *const *array, const int *size, bool causal) {
  ((AttentionBf16Launcher *)launch)((__nv_bfloat16 *)array[0], array[1], (const __nv_bfloat16 *)array[2],
                                    (const __nv_bfloat16 *)array[3], (const __nv_bfloat16 *)array[4], size[0], size[1],
                                    size[2], size[3], causal);
}
static inline void attention_bf16_call(LessonLauncher launch, float *const *array, const int *size) {
  attention_bf16_calls(launch, array, size, false);
}
static inline void attention_bf16_causal_call(LessonLauncher launch, float *const *array, const int *size) {
  attention_bf16_calls(launch, array, size, true);
}

static inline LessonVersion attention_bf16_version(const char *name, AttentionBf16Launcher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static __global__ void attention_widen_kernel(float *to, const __nv_bfloat16 *from, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = __bfloat162float(from[i]);
}

static __global__ void attention_narrow_kernel(__nv_bfloat16 *to, const float *from, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = __float2bfloat16(from[i]);
}

static inline void attention_bf16_reference_gpu(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q,
                                                const __nv_bfloat16 *k, const __nv_bfloat16 *v, int b, int h, int s,
                                                int d, bool causal) {
  size_t n = (size_t)b * h * s * d;
  unsigned grid = attention_blocks(n, 256);
  float *x = attention_workspace(4 * n);
  attention_widen_kernel<<<grid, 256>>>(x, q, n);
  attention_widen_kernel<<<grid, 256>>>(x + n, k, n);
  attention_widen_kernel<<<grid, 256>>>(x + 2 * n, v, n);
  attention_reference_gpu(x + 3 * n, lse, x, x + n, x + 2 * n, b, h, s, d, causal);
  attention_narrow_kernel<<<grid, 256>>>(o, x + 3 * n, n);
  CUDA_CHECK_LAUNCH();
}

/* Rounding to bfloat16 has a relative error of up to 2^-8: of each p, so that a mean of values up to 2 has an error of
 * 2^-7; and of o, here and in the reference. The errors of the sums in float32 are much smaller; lse is such a sum. */
static inline Tolerance attention_bf16_tolerance(const int *size) {
  (void)size;
  return tolerance_make(1.0 / 128, 1.0 / 128);
}

static inline Lesson attention_bf16_lesson(bool causal) {
  Lesson lesson =
      attention_lesson_make("attention in bfloat16", causal ? attention_bf16_causal_call : attention_bf16_call,
                            (LessonLauncher)attention_bf16_forward_cpu, causal);
  lesson_output(&lesson, "o", "bhsd");
  lesson_output(&lesson, "lse", "bhs");
  lesson_input(&lesson, "q", "bhsd");
  lesson_input(&lesson, "k", "bhsd");
  lesson_input(&lesson, "v", "bhsd");
  const char *const narrow[] = {"o", "q", "k", "v"};
  for (int i = 0; i < 4; i++) lesson_element(&lesson, narrow[i], LESSON_BFLOAT16);
  lesson_tolerance(&lesson, "o", attention_bf16_tolerance);
  lesson.reference_gpu = (LessonLauncher)attention_bf16_reference_gpu;
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_TENSOR_CORE_LESSON_CUH */
