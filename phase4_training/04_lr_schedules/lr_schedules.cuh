/* lr_schedules.cuh - learning rates and smoothed losses as kernels. n is at least 1.
 *
 *   rates_cpu          rate (n): the cosine with a warm-up and warm restarts, in the middle of each step
 *   rates_one_thread   the same loop on the GPU
 *   rates_gpu          one thread per step: it finds its cycle without a loop
 *
 *   smooth_cpu         smooth (n): the average that --find-lr draws, from loss (n)
 *   smooth_one_thread  the same loop on the GPU: each step waits for the one before
 *   smooth_one_block   256 steps at a time: a scan
 *   smooth_gpu         many blocks: each begins SMOOTH_WINDOW steps before its part, because what is older is forgotten
 *
 * The schedules that programs train with are in common/nn/schedule.h, and the average is that of common/nn/find_lr.h.
 * Both are computed on the host, in double: for an epoch's few hundred numbers a launch would take longer. */
#ifndef PHASE4_TRAINING_LR_SCHEDULES_CUH
#define PHASE4_TRAINING_LR_SCHEDULES_CUH

#include <math.h>
#include <stddef.h>

/* A cosine with warm restarts, in steps: the rate rises to `highest` over `warmup` steps, then falls to `least` over
 * `cycle` steps, over twice as many, over four times as many, ... */
typedef struct CosineSteps {
  int warmup, cycle;
  float highest, least;
} CosineSteps;

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void rates_cpu(float *rate, int n, CosineSteps s) {
  const double pi = 3.14159265358979323846;
  int begin = s.warmup, length = s.cycle;
  for (int i = 0; i < n; i++) {
    if (i < s.warmup) {
      rate[i] = (float)(s.highest * (i + 0.5) / s.warmup);
      continue;
    }
    while (i - begin >= length) {
      begin += length;
      length *= 2;
    }
    rate[i] = (float)(s.least + (s.highest - s.least) * 0.5 * (1 + cos(pi * (i - begin + 0.5) / length)));
  }
}

static inline void smooth_cpu(float *smooth, const float *loss, int n, float beta) {
  double m = 0;
  for (int i = 0; i < n; i++) {
    m = beta * m + (1 - (double)beta) * loss[i];
    smooth[i] = (float)(m / -expm1((i + 1) * log((double)beta)));
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Learning rates */

static __device__ __forceinline__ float rates_one(int i, CosineSteps s) {
  if (i < s.warmup) return s.highest * ((float)i + 0.5f) / (float)s.warmup;
  int begin, length;
  // >>> exercise schedule_cycle: the cycle that step i is in begins at step `begin` and has `length`; use no loop
  // hint: the first k cycles have (2^k - 1) s.cycle steps, and the next one 2^k s.cycle; the first begins at s.warmup
  // hint: 2^k is the highest power of two in (i - s.warmup) / s.cycle + 1; __clz() counts the zero bits above it
  // hint: k = 31 - __clz((i - s.warmup) / s.cycle + 1); length = s.cycle << k; begin = s.warmup + length - s.cycle;
  const int k = 31 - __clz((i - s.warmup) / s.cycle + 1);
  length = s.cycle << k;
  begin = s.warmup + length - s.cycle;
  // <<< exercise
  float rate;
  // >>> exercise schedule_cosine: the rate in the middle of step i of the cycle that has `length` steps from `begin` on
  // hint: the share t = (i - begin + 0.5) / length of the cycle is over; the cosine of pi t falls from 1 to -1
  // hint: so (1 + cos(pi t)) / 2 falls from 1 to 0; it is what is left of the way from s.least up to s.highest
  // hint: rate = s.least + (s.highest - s.least) * 0.5f * (1 + cospif(t)); cospif(t) is the cosine of pi t
  const float t = ((float)(i - begin) + 0.5f) / (float)length;
  rate = s.least + (s.highest - s.least) * 0.5f * (1 + cospif(t));
  // <<< exercise
  return rate;
}

static __global__ void rates_one_thread_kernel(float *rate, int n, CosineSteps s) {
  for (int i = 0; i < n; i++) rate[i] = rates_one(i, s);
}

static inline void rates_one_thread(float *rate, int n, CosineSteps s) {
  rates_one_thread_kernel<<<1, 1>>>(rate, n, s);
  CUDA_CHECK_LAUNCH();
}

static __global__ void rates_kernel(float *rate, int n, CosineSteps s) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) rate[i] = rates_one(i, s);
}

static inline void rates_gpu(float *rate, int n, CosineSteps s) {
  rates_kernel<<<(n + 255) / 256, 256>>>(rate, n, s);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Smoothed losses */

/* SMOOTH_WINDOW steps back a loss has the weight beta^512: 9e-8 where beta is 31/32, which is rounding. */
enum { SMOOTH_BLOCK = 256, SMOOTH_WARPS = SMOOTH_BLOCK / 32, SMOOTH_WINDOW = 512, SMOOTH_PART = 4096 };

/* The average m of step i, corrected for its start at zero: divided by 1 - beta^(i+1), of which expm1f() keeps all
 * digits where it is small. */
static __device__ __forceinline__ float smooth_corrected(float m, int i, float log_beta) {
  return m / -expm1f((float)(i + 1) * log_beta);
}

static __global__ void smooth_one_thread_kernel(float *smooth, const float *loss, int n, float beta, float log_beta) {
  float m = 0;
  for (int i = 0; i < n; i++) {
    m = beta * m + (1 - beta) * loss[i];
    smooth[i] = smooth_corrected(m, i, log_beta);
  }
}

static inline void smooth_one_thread(float *smooth, const float *loss, int n, float beta) {
  smooth_one_thread_kernel<<<1, 1>>>(smooth, loss, n, beta, logf(beta));
  CUDA_CHECK_LAUNCH();
}

/* One block: the averages of SMOOTH_BLOCK losses in a row, thread t has the one of `loss`. *before is the average in
 * front of them, and becomes the one of the last thread; warp_last (SMOOTH_WARPS) is shared.
 *
 * The average of a row is a sum in which each loss counts beta times as much as the one behind it. Two rows are joined
 * by adding to each sum of the second row the last one of the first, times beta^(steps between them). */
static __device__ __forceinline__ float smooth_row(float loss, float *before, float *warp_last, float beta,
                                                   float log_beta) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float m = (1 - beta) * loss, power = beta;
  // >>> exercise smooth_warp: m becomes the average of the losses of lanes 0 to this one; `power` becomes beta^32
  // hint: before a turn m covers d lanes, and the m of d lanes before covers the d lanes in front of them; d doubles
  // hint: what lies d steps back counts beta^d times: beta, beta^2, beta^4, ..; squaring `power` gives the next one
  // hint: left = __shfl_up_sync(0xffffffff, m, d); if (lane >= d) m += power * left; then power *= power; d = 1 to 16
  for (int d = 1; d < 32; d *= 2) {
    const float left = __shfl_up_sync(0xffffffff, m, d);
    if (lane >= d) m += power * left;
    power *= power;
  }
  // <<< exercise
  if (lane == 31) warp_last[warp] = m;
  __syncthreads();
  float last = *before, carry = 0;
  // >>> exercise smooth_carry: `carry` is the average in front of this thread's warp, `last` that of the whole block
  // hint: `last` starts as the average in front of the block; behind warp w it is beta^32 times that, plus warp_last[w]
  // hint: carry is what `last` is when the loop comes to the thread's own warp; every thread goes through all warps
  // hint: for (int w = 0; w < SMOOTH_WARPS; w++) { if (w == warp) carry = last; last = power * last + warp_last[w]; }
  for (int w = 0; w < SMOOTH_WARPS; w++) {
    if (w == warp) carry = last;
    last = power * last + warp_last[w];
  }
  // <<< exercise
  *before = last;
  __syncthreads(); /* the next row overwrites warp_last */
  return m + expf((float)(lane + 1) * log_beta) * carry;
}

/* One block per part of `part` steps. It begins `window` steps before, as if nothing had been in front of them. */
static __global__ void __launch_bounds__(SMOOTH_BLOCK)
    smooth_kernel(float *smooth, const float *loss, int n, int part, int window, float beta, float log_beta) {
  __shared__ float warp_last[SMOOTH_WARPS];
  const int begin = blockIdx.x * part, end = n - begin < part ? n : begin + part;
  float before = 0;
  for (int row = begin > window ? begin - window : 0; row < end; row += SMOOTH_BLOCK) {
    const int i = row + threadIdx.x;
    const float m = smooth_row(i < end ? loss[i] : 0, &before, warp_last, beta, log_beta);
    if (i >= begin && i < end) smooth[i] = smooth_corrected(m, i, log_beta);
  }
}

static inline void smooth_one_block(float *smooth, const float *loss, int n, float beta) {
  smooth_kernel<<<1, SMOOTH_BLOCK>>>(smooth, loss, n, n, 0, beta, logf(beta));
  CUDA_CHECK_LAUNCH();
}

static inline void smooth_gpu(float *smooth, const float *loss, int n, float beta) {
  const int blocks = (int)(((long)n + SMOOTH_PART - 1) / SMOOTH_PART);
  smooth_kernel<<<blocks, SMOOTH_BLOCK>>>(smooth, loss, n, SMOOTH_PART, SMOOTH_WINDOW, beta, logf(beta));
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE4_TRAINING_LR_SCHEDULES_CUH */
