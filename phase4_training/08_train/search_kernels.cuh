/* search_kernels.cuh - what all trials of a search have in common, as kernels.
 *
 *   trial_steps_cpu    out (K,N): the weights of K trials after their first step, w - rate[k] g. They begin with the
 *                      same weights w (N) and the same batch, so with the same gradient g (N); only the rates differ,
 *                      each the same factor from the one before: first, ..., last
 *   trial_steps_each   a launch per trial: each reads all weights and all gradients
 *   trial_steps_all    one launch: a thread reads its weight and its gradient once, and writes K results
 *
 *   lowest_cpu         lowest (T): of each trial's losses (T,E) the lowest that is finite; INFINITY: none is
 *   lowest_thread      a thread per trial
 *   lowest_warp        a warp per trial, whose lanes read neighbours
 *
 * K is 1 to TRIAL_STEPS_MOST; all other sizes are at least 1. train runs its trials one after the other, each in a
 * process of its own: from the second step on they have nothing in common but the images. */
#ifndef PHASE4_TRAINING_SEARCH_KERNELS_CUH
#define PHASE4_TRAINING_SEARCH_KERNELS_CUH

#include <math.h>
#include <stddef.h>

enum { TRIAL_STEPS_BLOCK = 256, TRIAL_STEPS_MOST = 256, LOWEST_BLOCK = 128 };

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void trial_steps_cpu(float *out, const float *w, const float *g, int k, int n, float first, float last) {
  for (int trial = 0; trial < k; trial++) {
    const double rate = k > 1 ? first * pow((double)last / first, trial / (k - 1.0)) : first;
    for (int i = 0; i < n; i++) out[(size_t)trial * n + i] = (float)(w[i] - rate * g[i]);
  }
}

static inline void lowest_cpu(float *lowest, const float *loss, int t, int e) {
  for (int trial = 0; trial < t; trial++) {
    lowest[trial] = INFINITY;
    for (int epoch = 0; epoch < e; epoch++, loss++)
      if (isfinite(*loss) && *loss < lowest[trial]) lowest[trial] = *loss;
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* First steps */

/* The learning rate of trial `trial` of k. */
static __device__ __forceinline__ float trial_rate(int trial, int k, float first, float last) {
  float rate = first;
  if (k == 1) return rate;
  // >>> exercise trial_rate: `rate` of trial 0 is first, that of trial k - 1 last, each the same factor from the next
  // hint: after k - 1 times the same factor, first has become last: the factor is the (k - 1)-th root of last / first
  // hint: so the rate of a trial is first times (last / first) to the power of trial / (k - 1), a number from 0 to 1
  // hint: rate = first * powf(last / first, (float)trial / (float)(k - 1));
  rate = first * powf(last / first, (float)trial / (float)(k - 1));
  // <<< exercise
  return rate;
}

static __global__ void trial_step_kernel(float *out, const float *w, const float *g, int trial, int k, int n,
                                         float first, float last) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = w[i] - trial_rate(trial, k, first, last) * g[i];
}

static __global__ void trial_steps_kernel(float *out, const float *w, const float *g, int k, int n, float first,
                                          float last) {
  __shared__ float rate[TRIAL_STEPS_MOST];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if ((int)threadIdx.x < k) rate[threadIdx.x] = trial_rate(threadIdx.x, k, first, last);
  __syncthreads();
  if (i >= n) return;
  // >>> exercise trial_steps: element i of the weights of all k trials, w[i] - rate[trial] * g[i]; read w and g once
  // hint: the results of a trial stand one behind the other: element i of trial t is out[t * n + i]
  // hint: load w[i] and g[i] into two variables before the loop over the trials: the loop stores and loads nothing
  // hint: for (int t = 0; t < k; t++) out[(size_t)t * n + i] = weight - rate[t] * gradient;
  const float weight = w[i], gradient = g[i];
  for (int t = 0; t < k; t++) out[(size_t)t * n + i] = weight - rate[t] * gradient;
  // <<< exercise
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Lowest losses */

static __global__ void lowest_thread_kernel(float *lowest, const float *loss, int t, int e) {
  const int trial = blockIdx.x * blockDim.x + threadIdx.x;
  if (trial >= t) return;
  float best = INFINITY;
  for (int epoch = 0; epoch < e; epoch++) {
    const float x = loss[(size_t)trial * e + epoch];
    best = isfinite(x) ? fminf(best, x) : best;
  }
  lowest[trial] = best;
}

static __global__ void lowest_warp_kernel(float *lowest, const float *loss, int t, int e) {
  const int trial = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (trial >= t) return; /* all lanes of the warp together */
  float best = INFINITY;
  loss += (size_t)trial * e;
  // >>> exercise lowest_finite: keep in `best` the lowest of this lane's losses; what is not finite does not count
  // hint: the lanes of a warp read 32 neighbours at once: lane l looks at the epochs l, l + 32, l + 64, ...
  // hint: of a trial that has diverged a loss may be NaN, which compares with nothing, or infinite of either sign
  // hint: if (isfinite(x) && x < best) best = x;
  for (int epoch = lane; epoch < e; epoch += 32) {
    const float x = loss[epoch];
    if (isfinite(x) && x < best) best = x;
  }
  // <<< exercise
  for (int step = 16; step > 0; step /= 2) best = fminf(best, __shfl_xor_sync(0xffffffffu, best, step));
  if (lane == 0) lowest[trial] = best;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers; every array lies on the GPU */

static inline int search_blocks(int threads, int block) { return (threads + block - 1) / block; }

static inline void trial_steps_each(float *out, const float *w, const float *g, int k, int n, float first, float last) {
  for (int trial = 0; trial < k; trial++)
    trial_step_kernel<<<search_blocks(n, TRIAL_STEPS_BLOCK), TRIAL_STEPS_BLOCK>>>(out + (size_t)trial * n, w, g, trial,
                                                                                  k, n, first, last);
  CUDA_CHECK_LAUNCH();
}

static inline void trial_steps_all(float *out, const float *w, const float *g, int k, int n, float first, float last) {
  trial_steps_kernel<<<search_blocks(n, TRIAL_STEPS_BLOCK), TRIAL_STEPS_BLOCK>>>(out, w, g, k, n, first, last);
  CUDA_CHECK_LAUNCH();
}

static inline void lowest_thread(float *lowest, const float *loss, int t, int e) {
  lowest_thread_kernel<<<search_blocks(t, LOWEST_BLOCK), LOWEST_BLOCK>>>(lowest, loss, t, e);
  CUDA_CHECK_LAUNCH();
}

static inline void lowest_warp(float *lowest, const float *loss, int t, int e) {
  lowest_warp_kernel<<<search_blocks(t, LOWEST_BLOCK / 32), LOWEST_BLOCK>>>(lowest, loss, t, e);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE4_TRAINING_SEARCH_KERNELS_CUH */
