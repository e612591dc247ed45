/* layer_norm_forward.cuh - layer norm's forward on a GPU.
 *
 *   layer_norm_forward_naive      one thread per row, three passes
 *   layer_norm_forward_block      one block per row, three passes
 *   layer_norm_forward_gpu        the row stays in registers: one pass
 *
 * layer_norm_moments.cuh has the version between the last two.
 */
#ifndef PHASE3_CNN_LAYER_NORM_FORWARD_CUH
#define PHASE3_CNN_LAYER_NORM_FORWARD_CUH

#include "common/check.h"
#include "phase1_building_blocks/08_softmax/row_reduce.cuh"
#include "phase3_cnn/10_batch_norm/layer_norm_moments.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Three passes */

enum { LAYER_NORM_THREADS = 256 };

static __global__ void layer_norm_forward_naive_kernel(float *y, float *saved, const float *x, const float *weight,
                                                       const float *bias, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  x += (size_t)r * cols;
  y += (size_t)r * cols;
  float mean = 0, variance = 0;
  // >>> hidden layer_norm_statistics
  for (int j = 0; j < cols; j++) mean += x[j];
  mean /= (float)cols;
  for (int j = 0; j < cols; j++) variance += (x[j] - mean) * (x[j] - mean);
  variance /= (float)cols;
  // <<< hidden
  float inv_std = 1 / sqrtf(variance + LAYER_NORM_EPSILON);
  saved[r] = mean;
  saved[rows + r] = inv_std;
  for (int j = 0; j < cols; j++) y[j] = (x[j] - mean) * inv_std * (weight ? weight[j] : 1.0f) + (bias ? bias[j] : 0.0f);
}

static __global__ void __launch_bounds__(LAYER_NORM_THREADS)
    layer_norm_forward_block_kernel(float *y, float *saved, const float *x, const float *weight, const float *bias,
                                    int rows, int cols) {
  const int T = LAYER_NORM_THREADS, r = blockIdx.x;
  x += (size_t)r * cols;
  y += (size_t)r * cols;
  float mean = 0, variance = 0;
  // >>> hidden layer_norm_statistics
  for (int j = threadIdx.x; j < cols; j += T) mean += x[j];
  mean = row_sum<T>(mean) / (float)cols;
  for (int j = threadIdx.x; j < cols; j += T) variance += (x[j] - mean) * (x[j] - mean);
  __syncthreads(); /* all have read the first sum */
  variance = row_sum<T>(variance) / (float)cols;
  // <<< hidden
  float inv_std = 1 / sqrtf(variance + LAYER_NORM_EPSILON);
  if (threadIdx.x == 0) {
    saved[r] = mean;
    saved[rows + r] = inv_std;
  }
  for (int j = threadIdx.x; j < cols; j += T)
    y[j] = (x[j] - mean) * inv_std * (weight ? weight[j] : 1.0f) + (bias ? bias[j] : 0.0f);
}

static inline void layer_norm_forward_naive(float *y, float *saved, const float *x, const float *weight,
                                            const float *bias, int rows, int cols) {
  layer_norm_forward_naive_kernel<<<(rows + 127) / 128, 128>>>(y, saved, x, weight, bias, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void layer_norm_forward_block(float *y, float *saved, const float *x, const float *weight,
                                            const float *bias, int rows, int cols) {
  layer_norm_forward_block_kernel<<<rows, LAYER_NORM_THREADS>>>(y, saved, x, weight, bias, rows, cols);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One pass */

/* T threads per row, ROWS rows per block (1 if T is more than a warp). All loads of a row are in flight at once. */
template <int T, int QUADS, int ROWS, bool BY_COLUMN>
static __global__ void __launch_bounds__(T *ROWS, 1024 / (T * ROWS))
    layer_norm_forward_kernel(float *y, float *saved, const float *x, const float *weight, const float *bias, int rows,
                              int cols, int channels, bool aligned) {
  const int t = threadIdx.x, r = blockIdx.x * ROWS + threadIdx.y;
  if (ROWS > 1 && r >= rows) return; /* one warp per row then: the whole warp returns */
  x += (size_t)r * cols;
  y += (size_t)r * cols;
  float4 kept[QUADS];
  float mean = 0, variance = 0;
  norm_load<T, QUADS>(kept, x, 0, t, cols, aligned, true);
  // >>> exercise layer_norm_statistics: set mean and variance of the row; kept[0 .. QUADS-1] are this thread's elements
  // hint: row_sum<T>(value) adds up a value of each of the row's T threads; elements of kept[] beyond the row are 0
  // hint: norm_distance<T>(kept[i], mean, t, i, cols, aligned) is kept[i] less the mean, and 0 beyond the row
  // hint: so two sums, over kept[] and over squared distances; if T > 32, a barrier must stand between two row_sum()
#pragma unroll
  for (int i = 0; i < QUADS; i++) mean += norm_quad_sum(kept[i]);
  mean = row_sum<T>(mean) / (float)cols;
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    const float4 d = norm_distance<T>(kept[i], mean, t, i, cols, aligned);
    variance += norm_quad_sum(norm_quad_multiply(d, d));
  }
  if (T > 32) __syncthreads(); /* all have read the first sum */
  variance = row_sum<T>(variance) / (float)cols;
  // <<< exercise
  const float inv_std = 1 / sqrtf(variance + LAYER_NORM_EPSILON);
  if (t == 0) {
    saved[r] = mean;
    saved[rows + r] = inv_std;
  }
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    const float4 w = norm_affine_kept<T, BY_COLUMN>(weight, 1, r, channels, t, i, cols, aligned);
    const float4 b = norm_affine_kept<T, BY_COLUMN>(bias, 0, r, channels, t, i, cols, aligned);
    norm_store<T>(y, norm_quad_result(kept[i], mean, inv_std, w, b), t, i, cols, aligned);
  }
}

/* Instance norm's, too: then weight and bias (channels) belong to row r % channels. */
template <bool BY_COLUMN>
static inline void norm_forward_gpu(float *y, float *saved, const float *x, const float *weight, const float *bias,
                                    int rows, int cols, int channels) {
  const bool aligned = norm_aligned(x, cols) && norm_aligned(y, cols) &&
                       (!BY_COLUMN || (norm_aligned(weight, cols) && norm_aligned(bias, cols)));
  if (cols <= 256)
    layer_norm_forward_kernel<32, 2, 8, BY_COLUMN>
        <<<(rows + 7) / 8, dim3(32, 8)>>>(y, saved, x, weight, bias, rows, cols, channels, aligned);
  else if (cols <= 1024)
    layer_norm_forward_kernel<32, 8, 8, BY_COLUMN>
        <<<(rows + 7) / 8, dim3(32, 8)>>>(y, saved, x, weight, bias, rows, cols, channels, aligned);
  else if (cols <= 4096)
    layer_norm_forward_kernel<256, 4, 1, BY_COLUMN>
        <<<rows, 256>>>(y, saved, x, weight, bias, rows, cols, channels, aligned);
  else if (cols <= 16384)
    layer_norm_forward_kernel<1024, 4, 1, BY_COLUMN>
        <<<rows, 1024>>>(y, saved, x, weight, bias, rows, cols, channels, aligned);
  else
    layer_norm_forward_moments_kernel<1024, BY_COLUMN>
        <<<rows, 1024>>>(y, saved, x, weight, bias, rows, cols, channels, aligned);
  CUDA_CHECK_LAUNCH();
}

static inline void layer_norm_forward_gpu(float *y, float *saved, const float *x, const float *weight,
                                          const float *bias, int rows, int cols) {
  norm_forward_gpu<true>(y, saved, x, weight, bias, rows, cols, 1);
}

#endif /* PHASE3_CNN_LAYER_NORM_FORWARD_CUH */
