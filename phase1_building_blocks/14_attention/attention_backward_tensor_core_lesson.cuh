/* attention_backward_tensor_core_lesson.cuh - arrays, reference and tolerance of the gradients of attention in
 * bfloat16: for the program, its tests and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_TENSOR_CORE_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_TENSOR_CORE_LESSON_CUH

#include "phase1_building_blocks/14_attention/attention_backward_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_backward_mma.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core_lesson.cuh"

/* dq, dk, dv from q, k, v, dout; all (b,h,s,d), bfloat16 */
static inline void attention_bf16_gradients_calls(LessonLauncher launch, float *const *array, const int *size,
                                                  bool causal) {
  ((AttentionBf16Gradients *)launch)((__nv_bfloat16 *)array[0], (__nv_bfloat16 *)array[1], (__nv_bfloat16 *)array[2],
                                     (const __nv_bfloat16 *)array[3], (const __nv_bfloat16 *)array[4],
                                     (const __nv_bfloat16 *)array[5], (const __nv_bfloat16 *)array[6], size[0], size[1],
                                     size[2], size[3], causal);
}
static inline void attention_bf16_gradients_call(LessonLauncher launch, float *const *array, const int *size) {
  attention_bf16_gradients_calls(launch, array, size, false);
}
static inline void attention_bf16_causal_gradients_call(LessonLauncher launch, float *const *array, const int *size) {
  attention_bf16_gradients_calls(launch, array, size, true);
}

static inline LessonVersion attention_bf16_gradients_version(const char *name, AttentionBf16Gradients *launch,
                                                             const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void attention_bf16_gradients_reference_gpu(__nv_bfloat16 *dq, __nv_bfloat16 *dk, __nv_bfloat16 *dv,
                                                          const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                                          const __nv_bfloat16 *v, const __nv_bfloat16 *dout, int b,
                                                          int h, int s, int d, bool causal) {
  size_t n = (size_t)b * h * s * d;
  unsigned grid = attention_blocks(n, 256);
  float *x; /* not attention_workspace(), which the reference in float32 uses */
  CUDA_CHECK(cudaMalloc((void **)&x, 7 * n * sizeof *x));
  const __nv_bfloat16 *const in[4] = {q, k, v, dout};
  __nv_bfloat16 *const out[3] = {dq, dk, dv};
  for (int a = 0; a < 4; a++) attention_widen_kernel<<<grid, 256>>>(x + a * n, in[a], n);
  attention_gradients_reference_gpu(x + 4 * n, x + 5 * n, x + 6 * n, x, x + n, x + 2 * n, x + 3 * n, b, h, s, d,
                                    causal);
  for (int a = 0; a < 3; a++) attention_narrow_kernel<<<grid, 256>>>(out[a], x + (4 + a) * n, n);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaFree(x));
}

/* Rounding to bfloat16 has a relative error of up to 2^-9: of p and ds as factors, of the results, and of o in
 * delta(i) = dout(i) . o(i). The d errors of delta add up to about sqrt(d) 2^-8 for values up to 2; times the scale,
 * 1/sqrt(d), and q or k up to 2 that is 2^-7 for p = 1. The p of a query add up to 1; those of a key to about 1, of the
 * first keys, if causal, to up to 1 + ln s. */
static inline Tolerance attention_bf16_gradients_tolerance(const int *size) {
  double e = (1 + log((double)size[2])) / 128;
  return tolerance_make(1.0 / 128, 2 * e);
}

static inline Lesson attention_bf16_gradients_lesson(bool causal) {
  Lesson lesson = attention_lesson_make("attention gradients in bfloat16",
                                        causal ? attention_bf16_causal_gradients_call : attention_bf16_gradients_call,
                                        (LessonLauncher)attention_bf16_gradients_cpu, causal);
  const char *const names[] = {"dq", "dk", "dv", "q", "k", "v", "dout"};
  for (int i = 0; i < 7; i++) {
    if (i < 3)
      lesson_output(&lesson, names[i], "bhsd");
    else
      lesson_input(&lesson, names[i], "bhsd");
    lesson_element(&lesson, names[i], LESSON_BFLOAT16);
  }
  lesson.reference_gpu = (LessonLauncher)attention_bf16_gradients_reference_gpu;
  lesson.flops = causal ? attention_causal_gradients_flops : attention_gradients_flops;
  lesson.tolerance = attention_bf16_gradients_tolerance;
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_TENSOR_CORE_LESSON_CUH */
