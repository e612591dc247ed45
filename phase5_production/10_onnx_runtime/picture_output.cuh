/* picture_output.cuh - what becomes of a network's answer: the likeliest classes, or a picture.
 *
 *   top_k           logits (N,C) -> label (N,K), probability (N,K): the K largest, the largest first; of equal ones the
 *                   lower label. probability = exp(logit - maximum) / sum, or the number itself where the rows of the
 *                   network are probabilities already.
 *   picture_bytes   planes y (N,C,H,W) -> bytes (N,H,W,C), each 255 y / range, rounded and kept within 0..255
 *
 * A row with a number that is not finite has the labels -1 and the probabilities NaN; of a picture with one, strange
 * is 1.
 *
 *   top_k_cpu, picture_bytes_cpu     plain loops: the definition
 *   top_k_thread                     one thread per row
 *   top_k_gpu                        one warp per row
 *   picture_bytes_gpu                one thread per byte
 */
#ifndef PHASE5_PRODUCTION_PICTURE_OUTPUT_CUH
#define PHASE5_PRODUCTION_PICTURE_OUTPUT_CUH

#include <math.h>

#include "common/check.h"

enum { PICTURE_OUTPUT_BLOCK = 256, TOP_K_MOST = 100 };

/* A place in a row, for comparing. */
typedef struct TopCandidate {
  float value;
  int label; /* INT_MAX-like: none */
} TopCandidate;

enum { TOP_NONE = 0x7fffffff };

static inline __host__ __device__ TopCandidate top_candidate(float value, int label) {
  TopCandidate candidate;
  candidate.value = value;
  candidate.label = label;
  return candidate;
}

/* Whether a stands before b in the order of the answer; TOP_NONE stands behind all. */
static inline __host__ __device__ int top_before(TopCandidate a, TopCandidate b) {
  int before = 0;
  // >>> exercise top_k_before: does `a` come before `b`: a larger value, or of equal values the lower label
  // hint: three cases: a.value is larger, smaller, or equal
  // hint: where the values are equal, the labels decide: the lower one comes first
  // hint: before = a.value > b.value || (a.value == b.value && a.label < b.label);
  before = a.value > b.value || (a.value == b.value && a.label < b.label);
  // <<< exercise
  return before;
}

/* The share of a value in its row. `sum`: of exp(value - most); 0: the row holds probabilities. */
static inline __host__ __device__ float top_share(float value, float most, float sum) {
  return sum > 0 ? expf(value - most) / sum : value;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void top_k_row_cpu(int *label, float *probability, const float *row, int classes, int k,
                                 int are_probabilities) {
  float most = -INFINITY, sum = 0;
  int finite = 1;
  for (int c = 0; c < classes; c++) {
    finite &= isfinite(row[c]) != 0;
    most = fmaxf(most, row[c]);
  }
  for (int c = 0; c < classes && !are_probabilities; c++) sum += expf(row[c] - most);
  TopCandidate last = top_candidate(INFINITY, -1); /* before all */
  for (int i = 0; i < k; i++) {
    TopCandidate best = top_candidate(-INFINITY, TOP_NONE);
    for (int c = 0; c < classes; c++) {
      const TopCandidate here = top_candidate(row[c], c);
      if (top_before(last, here) && top_before(here, best)) best = here;
    }
    label[i] = finite ? best.label : -1;
    probability[i] = finite ? top_share(best.value, most, sum) : NAN;
    last = best;
  }
}

/* k is at most `classes`. */
static inline void top_k_cpu(int *label, float *probability, const float *logits, int n, int classes, int k,
                             int are_probabilities) {
  for (int i = 0; i < n; i++)
    top_k_row_cpu(label + (size_t)i * k, probability + (size_t)i * k, logits + (size_t)i * classes, classes, k,
                  are_probabilities);
}

/* A byte of the picture: 255 y / range, rounded. What is not a number becomes 0. fmaf() has one rounding everywhere, so
 * that CPU and GPU give the same bytes. */
static inline __host__ __device__ uint8_t picture_byte(float y, float range) {
  const float value = fmaf(y, 255.0f / range, 0.5f);
  return value >= 255.0f ? 255 : value >= 0.0f ? (uint8_t)value : 0;
}

static inline void picture_bytes_cpu(uint8_t *bytes, int *strange, const float *y, int n, int channels, int height,
                                     int width, float range) {
  const size_t plane = (size_t)height * width;
  for (int i = 0; i < n; i++) {
    strange[i] = 0;
    for (int c = 0; c < channels; c++)
      for (size_t p = 0; p < plane; p++) {
        const float value = y[((size_t)i * channels + c) * plane + p];
        if (!isfinite(value)) strange[i] = 1;
        // >>> hidden picture_bytes
        bytes[((size_t)i * plane + p) * channels + c] = picture_byte(value, range);
        // <<< hidden
      }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One thread per row */

static __global__ void top_k_thread_kernel(int *label, float *probability, const float *logits, int n, int classes,
                                           int k, int are_probabilities) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float *row = logits + (size_t)i * classes;
  float most = -INFINITY, sum = 0, check = 0;
  for (int c = 0; c < classes; c++) most = fmaxf(most, row[c]);
  for (int c = 0; c < classes; c++) sum += expf(row[c] - most), check += row[c] * 0.0f;
  const int finite = check == 0;
  TopCandidate last = top_candidate(INFINITY, -1);
  for (int j = 0; j < k; j++) {
    TopCandidate best = top_candidate(-INFINITY, TOP_NONE);
    for (int c = 0; c < classes; c++) {
      const TopCandidate here = top_candidate(row[c], c);
      if (top_before(last, here) && top_before(here, best)) best = here;
    }
    label[(size_t)i * k + j] = finite ? best.label : -1;
    probability[(size_t)i * k + j] = finite ? top_share(best.value, most, are_probabilities ? 0 : sum) : NAN;
    last = best;
  }
}

static inline void top_k_thread(int *label, float *probability, const float *logits, int n, int classes, int k,
                                int are_probabilities) {
  const int block = 32;
  top_k_thread_kernel<<<(n + block - 1) / block, block>>>(label, probability, logits, n, classes, k, are_probabilities);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One warp per row */

static __device__ __forceinline__ float top_warp_most(float value) {
  for (int d = 16; d > 0; d /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, d));
  return value;
}

static __device__ __forceinline__ float top_warp_sum(float value) {
  for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffffu, value, d);
  return value;
}

/* The first of the 32 lanes' candidates, in all lanes. */
static __device__ __forceinline__ TopCandidate top_warp_first(TopCandidate best) {
  for (int d = 16; d > 0; d /= 2) {
    const float value = __shfl_xor_sync(0xffffffffu, best.value, d);
    const int label = __shfl_xor_sync(0xffffffffu, best.label, d);
    const TopCandidate other = top_candidate(value, label);
    if (top_before(other, best)) best = other;
  }
  return best;
}

/* Lane l of a warp reads columns l, l + 32, ... of the row. In each of the K rounds it seeks, of its columns, the first
 * behind the one that was taken last; then the 32 compare. Nothing is written between rounds. */
static __global__ void top_k_kernel(int *label, float *probability, const float *logits, int n, int classes, int k,
                                    int are_probabilities) {
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (warp >= n) return; /* the whole warp */
  const float *row = logits + (size_t)warp * classes;
  float most = -INFINITY, sum = 0, check = 0;
  for (int c = lane; c < classes; c += 32) most = fmaxf(most, row[c]);
  most = top_warp_most(most);
  for (int c = lane; c < classes; c += 32) sum += expf(row[c] - most), check += row[c] * 0.0f; /* NaN, unless finite */
  sum = top_warp_sum(sum);
  const int finite = top_warp_sum(check) == 0;
  TopCandidate last = top_candidate(INFINITY, -1);
  for (int j = 0; j < k; j++) {
    TopCandidate best = top_candidate(-INFINITY, TOP_NONE);
    for (int c = lane; c < classes; c += 32) {
      const TopCandidate here = top_candidate(row[c], c);
      if (top_before(last, here) && top_before(here, best)) best = here;
    }
    last = top_warp_first(best);
    if (lane == 0) {
      label[(size_t)warp * k + j] = finite ? last.label : -1;
      probability[(size_t)warp * k + j] = finite ? top_share(last.value, most, are_probabilities ? 0 : sum) : NAN;
    }
  }
}

static inline void top_k_gpu(int *label, float *probability, const float *logits, int n, int classes, int k,
                             int are_probabilities) {
  const int block = 128, rows = block / 32;
  top_k_kernel<<<(n + rows - 1) / rows, block>>>(label, probability, logits, n, classes, k, are_probabilities);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Pictures */

/* One thread per byte: neighbours are the channels of a pixel, then the next pixel, so that stores lie side by side. */
static __global__ void picture_bytes_kernel(uint8_t *bytes, int *strange, const float *y, int n, int channels,
                                            int plane, float range) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * plane * channels) return;
  const int picture = (int)(i / ((long long)plane * channels)), c = (int)(i % channels);
  const int p = (int)(i / channels % plane); /* which pixel of its picture */
  // >>> exercise picture_bytes: byte i, of channel c of pixel p; strange[picture] becomes 1 where y is not finite there
  // hint: y has a plane of `plane` numbers for each channel, `channels` planes for each picture
  // hint: picture_byte(value, range) rounds it; isfinite(value) says whether it is a number at all
  // hint: y[((size_t)picture * channels + c) * plane + p] is read; strange is 0 before; atomicOr(strange + picture, 1)
  const float value = y[((size_t)picture * channels + c) * plane + p];
  bytes[i] = picture_byte(value, range);
  if (!isfinite(value)) atomicOr(strange + picture, 1);
  // <<< exercise
}

static inline void picture_bytes_gpu(uint8_t *bytes, int *strange, const float *y, int n, int channels, int height,
                                     int width, float range) {
  const long long count = (long long)n * channels * height * width;
  const int block = PICTURE_OUTPUT_BLOCK;
  CUDA_CHECK(cudaMemsetAsync(strange, 0, (size_t)n * sizeof *strange));
  picture_bytes_kernel<<<(unsigned)((count + block - 1) / block), block>>>(bytes, strange, y, n, channels,
                                                                           height * width, range);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_PICTURE_OUTPUT_CUH */
