/* attention_backward_lesson.cuh - arrays, reference and tolerance of the gradients of attention: for the program, its
 * tests and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_LESSON_CUH

#include "phase1_building_blocks/14_attention/attention_backward.cuh"
#include "phase1_building_blocks/14_attention/attention_lesson.cuh"

/* dq, dk, dv from q, k, v, dout; all (b,h,s,d) */
static inline void attention_gradients_call(LessonLauncher launch, float *const *array, const int *size) {
  ((AttentionGradients *)launch)(array[0], array[1], array[2], array[3], array[4], array[5], array[6], size[0], size[1],
                                 size[2], size[3], false);
}

static inline void attention_causal_gradients_call(LessonLauncher launch, float *const *array, const int *size) {
  ((AttentionGradients *)launch)(array[0], array[1], array[2], array[3], array[4], array[5], array[6], size[0], size[1],
                                 size[2], size[3], true);
}

static inline LessonVersion attention_gradients_version(const char *name, AttentionGradients *launch,
                                                        const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The reference in double, for shapes that would take the CPU minutes: one warp per query, or per key (`keys`), which
 * loops over all others, 32 at a time. delta and lse are float; their error is within the tolerance. */
static __global__ void attention_gradients_reference_kernel(float *dq, float *dk, float *dv, const float *q,
                                                            const float *k, const float *v, const float *dout,
                                                            const float *lse, const float *delta, int rows, int s,
                                                            int d, bool causal, bool keys) {
  int own = (int)(((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32), lane = threadIdx.x % 32;
  if (own >= rows) return;
  int first = own / s * s;
  int begin = causal && keys ? own - first : 0, end = causal && !keys ? own - first + 1 : s;
  double scale = 1 / sqrt((double)d), sum[4] = {}, sum_v[4] = {};
  for (int other0 = begin; other0 < end; other0 += 32) {
    double p = 0, ds = 0;
    if (other0 + lane < end) {
      size_t row = keys ? first + other0 + lane : own, key = keys ? own : first + other0 + lane;
      double score = 0, dp = 0;
      for (int c = 0; c < d; c++) {
        score += (double)q[row * d + c] * k[key * d + c];
        dp += (double)dout[row * d + c] * v[key * d + c];
      }
      p = exp(scale * score - lse[row]);
      ds = p * (dp - delta[row]);
    }
    for (int j = 0; j < 32 && other0 + j < end; j++) {
      double weight = __shfl_sync(0xFFFFFFFF, p, j), gradient = __shfl_sync(0xFFFFFFFF, ds, j);
      size_t at = (size_t)(first + other0 + j) * d;
      for (int c = lane; c < d; c += 32) {
        sum[c / 32] += gradient * (keys ? q : k)[at + c];
        if (keys) sum_v[c / 32] += weight * dout[at + c];
      }
    }
  }
  for (int c = lane; c < d; c += 32) {
    (keys ? dk : dq)[(size_t)own * d + c] = (float)(scale * sum[c / 32]);
    if (keys) dv[(size_t)own * d + c] = (float)sum_v[c / 32];
  }
}

static inline void attention_gradients_reference_gpu(float *dq, float *dk, float *dv, const float *q, const float *k,
                                                     const float *v, const float *dout, int b, int h, int s, int d,
                                                     bool causal) {
  int rows = b * h * s;
  unsigned grid = attention_blocks((size_t)rows * 32, 256);
  float *o = attention_workspace((size_t)rows * (d + 2)), *lse = o + (size_t)rows * d, *delta = lse + rows;
  attention_reference_gpu(o, lse, q, k, v, b, h, s, d, causal);
  attention_delta_kernel<<<grid, 256>>>(delta, dout, o, rows, d);
  CUDA_CHECK_LAUNCH();
  for (int keys = 0; keys < 2; keys++) {
    attention_gradients_reference_kernel<<<grid, 256>>>(dq, dk, dv, q, k, v, dout, lse, delta, rows, s, d, causal,
                                                        keys);
    CUDA_CHECK_LAUNCH();
  }
}

/* The two products of S x S x D of forward, and five more: the scores again, dp, and one for each gradient. */
static inline double attention_gradients_flops(const int *size) { return 3.5 * attention_flops(size); }
static inline double attention_causal_gradients_flops(const int *size) { return 3.5 * attention_causal_flops(size); }

/* p has a relative error of up to 2 e, and so has each term of dv. The p of one key add up to about 1; those of the
 * first keys, if causal, to up to 1 + ln s. ds has the errors of p and of dp, a sum like a score, times 1/sqrt(d). */
static inline Tolerance attention_gradients_tolerance(const int *size) {
  Tolerance forward = attention_tolerance(size);
  double factor = 2 * (1 + log((double)size[2]));
  return tolerance_make(factor * forward.relative, factor * forward.absolute);
}

static inline Lesson attention_gradients_lesson(bool causal) {
  Lesson lesson =
      attention_lesson_make("attention gradients", causal ? attention_causal_gradients_call : attention_gradients_call,
                            (LessonLauncher)attention_gradients_cpu, causal);
  lesson_output(&lesson, "dq", "bhsd");
  lesson_output(&lesson, "dk", "bhsd");
  lesson_output(&lesson, "dv", "bhsd");
  lesson_input(&lesson, "q", "bhsd");
  lesson_input(&lesson, "k", "bhsd");
  lesson_input(&lesson, "v", "bhsd");
  lesson_input(&lesson, "dout", "bhsd");
  lesson.reference_gpu = (LessonLauncher)attention_gradients_reference_gpu;
  lesson.flops = causal ? attention_causal_gradients_flops : attention_gradients_flops;
  lesson.tolerance = attention_gradients_tolerance;
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_LESSON_CUH */
