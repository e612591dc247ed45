/* layer_norm_moments.cuh - layer norm's forward in two passes over the row: the first computes mean and variance
 * together, by merging the moments of parts of the row; the second computes the result. It takes rows of any length.
 *
 * Source: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979.
 */
#ifndef PHASE3_CNN_LAYER_NORM_MOMENTS_CUH
#define PHASE3_CNN_LAYER_NORM_MOMENTS_CUH

#include "phase3_cnn/10_batch_norm/layer_norm_cpu.cuh"
#include "phase3_cnn/10_batch_norm/layer_norm_row.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Moments */

/* Some elements of a row: how many, their mean, and the sum of the squares of their distances from it. */
typedef struct NormMoments {
  float count, mean, squares;
} NormMoments;

static __device__ __forceinline__ NormMoments norm_moments_make(float count, float mean, float squares) {
  NormMoments m;
  m.count = count;
  m.mean = mean;
  m.squares = squares;
  return m;
}

/* The moments of a and b together (Chan, Golub, LeVeque, 1979). No term is larger than the result, so nothing cancels.
 * Either may have no elements. */
static __device__ __forceinline__ NormMoments norm_moments_merge(NormMoments a, NormMoments b) {
  NormMoments all = norm_moments_make(a.count + b.count, 0, 0);
  if (all.count == 0) return all;
  // >>> exercise layer_norm_moments: set all.mean and all.squares to those of the elements of a and of b together
  // hint: the mean moves from a's towards b's by b's share of the elements, share = b.count / all.count
  // hint: each of a's elements is farther from the new mean than from a's own; with distance = b.mean - a.mean ...
  // hint: all.squares = a.squares + b.squares + distance * distance * a.count * share
  float share = b.count / all.count, distance = b.mean - a.mean;
  all.mean = a.mean + distance * share;
  all.squares = a.squares + b.squares + distance * distance * a.count * share;
  // <<< exercise
  return all;
}

static __device__ __forceinline__ NormMoments norm_moments_of_quad(float4 v) {
  float mean = ((v.x + v.y) + (v.z + v.w)) * 0.25f;
  v = make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
  return norm_moments_make(4, mean, (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w));
}

/* The moments of a group of `lanes` neighbouring lanes, in every lane. Both lanes of a pair merge in the same order, so
 * that they get the same bits. */
static __device__ __forceinline__ NormMoments norm_moments_lanes(NormMoments own, int lanes) {
  for (int step = 1; step < lanes; step *= 2) {
    NormMoments other =
        norm_moments_make(__shfl_xor_sync(0xffffffffu, own.count, step), __shfl_xor_sync(0xffffffffu, own.mean, step),
                          __shfl_xor_sync(0xffffffffu, own.squares, step));
    own = threadIdx.x & step ? norm_moments_merge(other, own) : norm_moments_merge(own, other);
  }
  return own;
}

template <int T>
static __device__ __forceinline__ NormMoments norm_moments_block(NormMoments own) {
  const int warps = T / 32;
  __shared__ NormMoments part[warps];
  own = norm_moments_lanes(own, 32);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = own;
  __syncthreads();
  return norm_moments_lanes(part[threadIdx.x % warps], warps);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel and launcher */

/* One block per row. The second pass goes from the end to the beginning, because the caches still hold what was read
 * last. aligned: rows, weight and bias begin at multiples of 16 bytes. */
template <int T, bool BY_COLUMN>
static __global__ void __launch_bounds__(T)
    layer_norm_forward_moments_kernel(float *y, float *saved, const float *x, const float *weight, const float *bias,
                                      int rows, int cols, int channels, bool aligned) {
  const int r = blockIdx.x, t = threadIdx.x, quads = aligned ? cols / 4 : 0;
  x += (size_t)r * cols;
  y += (size_t)r * cols;
  const float4 *in = (const float4 *)x;
  float4 *out = (float4 *)y;
  NormMoments m = norm_moments_make(0, 0, 0);
#pragma unroll 4
  for (int q = t; q < quads; q += T) m = norm_moments_merge(m, norm_moments_of_quad(in[q]));
#pragma unroll 4
  for (int j = 4 * quads + t; j < cols; j += T) m = norm_moments_merge(m, norm_moments_make(1, x[j], 0));
  m = norm_moments_block<T>(m);
  const float mean = m.mean, inv_std = 1 / sqrtf(m.squares / (float)cols + LAYER_NORM_EPSILON);
  if (t == 0) {
    saved[r] = mean;
    saved[rows + r] = inv_std;
  }
#pragma unroll 4
  for (int q = quads - 1 - t; q >= 0; q -= T) {
    const float4 w = norm_affine_quad<BY_COLUMN>(weight, 1, r, channels, q);
    __stcs(&out[q], norm_quad_result(in[q], mean, inv_std, w, norm_affine_quad<BY_COLUMN>(bias, 0, r, channels, q)));
  }
#pragma unroll 4
  for (int j = cols - 1 - t; j >= 4 * quads; j -= T)
    y[j] = (x[j] - mean) * inv_std * norm_affine<BY_COLUMN>(weight, 1, r, channels, j) +
           norm_affine<BY_COLUMN>(bias, 0, r, channels, j);
}

static inline void layer_norm_forward_moments(float *y, float *saved, const float *x, const float *weight,
                                              const float *bias, int rows, int cols) {
  const bool aligned =
      norm_aligned(x, cols) && norm_aligned(y, cols) && norm_aligned(weight, cols) && norm_aligned(bias, cols);
  if (cols <= 4096)
    layer_norm_forward_moments_kernel<256, true><<<rows, 256>>>(y, saved, x, weight, bias, rows, cols, 1, aligned);
  else
    layer_norm_forward_moments_kernel<1024, true><<<rows, 1024>>>(y, saved, x, weight, bias, rows, cols, 1, aligned);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_LAYER_NORM_MOMENTS_CUH */
