/* layer_norm_backward.cuh - layer norm's gradients on a GPU.
 *
 *   layer_norm_backward_naive     one thread per row for dx, one thread per column for dweight and dbias
 *   layer_norm_backward_sliced    one block per row for dx, slices of the rows for dweight and dbias
 *   layer_norm_backward_gpu       x and dy are read once
 */
#ifndef PHASE3_CNN_LAYER_NORM_BACKWARD_CUH
#define PHASE3_CNN_LAYER_NORM_BACKWARD_CUH

#include "common/check.h"
#include "phase3_cnn/10_batch_norm/layer_norm_row.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Several passes */

static __global__ void layer_norm_backward_naive_kernel(float *dx, const float *dy, const float *x, const float *weight,
                                                        const float *saved, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  dx += (size_t)r * cols;
  dy += (size_t)r * cols;
  x += (size_t)r * cols;
  const float mean = saved[r], inv_std = saved[rows + r];
  float product = 0, sum = 0;
  for (int j = 0; j < cols; j++) {
    const float g = dy[j] * (weight ? weight[j] : 1.0f);
    product += g * ((x[j] - mean) * inv_std);
    sum += g;
  }
  product /= (float)cols;
  sum /= (float)cols;
  for (int j = 0; j < cols; j++)
    dx[j] = inv_std * (dy[j] * (weight ? weight[j] : 1.0f) - sum - (x[j] - mean) * inv_std * product);
}

/* One thread per column: 32 lanes read 32 neighbours of a row, but there are few threads, and each has a long sum. */
static __global__ void layer_norm_weight_naive_kernel(float *dweight, float *dbias, const float *dy, const float *x,
                                                      const float *saved, int rows, int cols) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= cols) return;
  float product = 0, sum = 0;
  // >>> hidden layer_norm_weight_gradient
  for (int r = 0; r < rows; r++) {
    const float slope = dy[(size_t)r * cols + j];
    product += slope * ((x[(size_t)r * cols + j] - saved[r]) * saved[rows + r]);
    sum += slope;
  }
  // <<< hidden
  if (dweight) dweight[j] = product;
  if (dbias) dbias[j] = sum;
}

/* dx of one row for each block of T threads; the row's sums of dy t and of dy, which instance norm needs, go to
 * sums (2,rows) unless that is NULL. Rows of any length: they are read twice, the second time from the end. */
template <int T, bool BY_COLUMN>
static __global__ void __launch_bounds__(T)
    layer_norm_backward_block_kernel(float *dx, float *sums, const float *dy, const float *x, const float *weight,
                                     const float *saved, int rows, int cols, int channels) {
  const int r = blockIdx.x, t = threadIdx.x;
  dy += (size_t)r * cols;
  x += (size_t)r * cols;
  const float mean = saved[r], inv_std = saved[rows + r];
  const float row_weight = BY_COLUMN ? 1 : norm_affine<false>(weight, 1, r, channels, 0);
  float2 own = make_float2(0, 0);
#pragma unroll 4
  for (int j = t; j < cols; j += T) {
    const float g = BY_COLUMN && weight ? dy[j] * weight[j] : dy[j];
    own.x += g * ((x[j] - mean) * inv_std);
    own.y += g;
  }
  own = norm_pair_sum<T>(own, 0);
  if (sums && t == 0) {
    sums[r] = own.x;
    sums[rows + r] = own.y;
  }
  if (dx == NULL) return;
  dx += (size_t)r * cols;
  const float product = own.x / (float)cols, sum = own.y / (float)cols, scale = row_weight * inv_std;
#pragma unroll 4
  for (int j = cols - 1 - t; j >= 0; j -= T) {
    const float g = BY_COLUMN && weight ? dy[j] * weight[j] : dy[j];
    dx[j] = scale * (g - sum - (x[j] - mean) * inv_std * product);
  }
}

/* Sums over a slice of the rows: block (32,8), 32 columns; threadIdx.y takes every eighth row of the slice.
 * partial (slices,2,cols): of dweight and of dbias. */
enum { NORM_SLICE_WARPS = 8 };

static __global__ void __launch_bounds__(32 * NORM_SLICE_WARPS)
    layer_norm_weight_sliced_kernel(float *partial, const float *dy, const float *x, const float *saved, int rows,
                                    int cols, int slice_rows) {
  __shared__ float2 part[NORM_SLICE_WARPS][32];
  const int j = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * slice_rows, last = min(first + slice_rows, rows);
  float2 own = make_float2(0, 0);
  if (j < cols) {
#pragma unroll 4
    for (int r = first + threadIdx.y; r < last; r += NORM_SLICE_WARPS) {
      const float slope = dy[(size_t)r * cols + j];
      own.x += slope * ((x[(size_t)r * cols + j] - saved[r]) * saved[rows + r]);
      own.y += slope;
    }
  }
  part[threadIdx.y][threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.y > 0 || j >= cols) return;
  for (int w = 1; w < NORM_SLICE_WARPS; w++) {
    own.x += part[w][threadIdx.x].x;
    own.y += part[w][threadIdx.x].y;
  }
  partial += (size_t)blockIdx.y * 2 * cols;
  partial[j] = own.x;
  partial[cols + j] = own.y;
}

/* Adds up the slices of partial (slices,2,cols), 32 of the 2 cols columns per block, and always in the same order. */
enum { NORM_SUM_WARPS = 16 };

static __global__ void __launch_bounds__(32 * NORM_SUM_WARPS)
    layer_norm_slices_kernel(float *dweight, float *dbias, const float *partial, int slices, int cols) {
  __shared__ float part[NORM_SUM_WARPS][32];
  const int j = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (j < 2 * cols) {
#pragma unroll 8
    for (int s = threadIdx.y; s < slices; s += NORM_SUM_WARPS) sum += partial[(size_t)s * 2 * cols + j];
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || j >= 2 * cols) return;
  for (int w = 1; w < NORM_SUM_WARPS; w++) sum += part[w][threadIdx.x];
  float *to = j < cols ? dweight : dbias;
  if (to) to[j < cols ? j : j - cols] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One pass */

/* Group g of T threads, one of gridDim.x ROWS, takes rows g, g + gridDim.x ROWS, ... It keeps a row of x and dy in
 * registers, and beside them its sums of dweight and dbias, because a thread has the same columns in every row. At the
 * end the ROWS groups of a block add up their sums in shared memory, and the block writes one slice of partial
 * (gridDim.x,2,cols). dx and partial may be NULL. */
template <int T, int QUADS, int ROWS>
static __global__ void __launch_bounds__(T *ROWS)
    layer_norm_backward_kernel(float *dx, float *partial, const float *dy, const float *x, const float *weight,
                               const float *saved, int rows, int cols, bool aligned) {
  const int t = threadIdx.x;
  float4 w[QUADS], product[QUADS], sum[QUADS]; /* product and sum: of dweight and dbias */
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    w[i] = norm_affine_kept<T, true>(weight, 1, 0, 1, t, i, cols, aligned);
    product[i] = sum[i] = norm_quad(0);
  }
  int turn = 0;
  for (int r = blockIdx.x * ROWS + threadIdx.y; r < rows; r += gridDim.x * ROWS, turn ^= 1) {
    const float mean = saved[r], inv_std = saved[rows + r];
    float4 kept[QUADS], slope[QUADS]; /* of x, then t; of dy, then g */
    norm_load<T, QUADS>(kept, x + (size_t)r * cols, mean, t, cols, aligned, true);
    norm_load<T, QUADS>(slope, dy + (size_t)r * cols, 0, t, cols, aligned, true);
    float2 own = make_float2(0, 0);
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      const float4 normal = norm_quad_normal(kept[i], mean, inv_std);
      // >>> exercise layer_norm_weight_gradient: add this row's part of dweight and dbias to the sums of four columns
      // hint: product[i] is the sum of dweight and sum[i] that of dbias, of the same four columns in each row
      // hint: slope[i] has four elements of dy; `normal` those of the normalised x, which dweight multiplies with dy
      // hint: norm_quad_add() and norm_quad_multiply() work on four elements; the sums go on from row to row
      product[i] = norm_quad_add(product[i], norm_quad_multiply(slope[i], normal));
      sum[i] = norm_quad_add(sum[i], slope[i]);
      // <<< exercise
      kept[i] = normal;
      slope[i] = norm_quad_multiply(slope[i], w[i]);
      own.x += norm_quad_sum(norm_quad_multiply(slope[i], kept[i]));
      own.y += norm_quad_sum(slope[i]);
    }
    if (dx == NULL) continue;
    own = norm_pair_sum<T>(own, turn);
    const float by_t = -inv_std * own.x / (float)cols, all = -inv_std * own.y / (float)cols;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      const float4 rest = norm_quad_add(norm_quad_multiply(kept[i], norm_quad(by_t)), norm_quad(all));
      norm_store<T>(dx + (size_t)r * cols, norm_quad_add(norm_quad_multiply(slope[i], norm_quad(inv_std)), rest), t, i,
                    cols, aligned);
    }
  }
  if (partial == NULL) return;
  partial += (size_t)blockIdx.x * 2 * cols;
  if (ROWS > 1) {
    __shared__ float4 all[ROWS][2 * QUADS][T];
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      all[threadIdx.y][2 * i][t] = product[i];
      all[threadIdx.y][2 * i + 1][t] = sum[i];
    }
    __syncthreads();
    if (threadIdx.y > 0) return;
    for (int other = 1; other < ROWS; other++)
#pragma unroll
      for (int i = 0; i < QUADS; i++) {
        product[i] = norm_quad_add(product[i], all[other][2 * i][t]);
        sum[i] = norm_quad_add(sum[i], all[other][2 * i + 1][t]);
      }
  }
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    norm_store<T>(partial, product[i], t, i, cols, aligned);
    norm_store<T>(partial + cols, sum[i], t, i, cols, aligned);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* Blocks of `layer_norm_backward_gpu`, six for each of the 132 multiprocessors of an H200, and slices of `sliced`. */
enum { LAYER_NORM_BLOCKS = 792, LAYER_NORM_SLICES = 64, LAYER_NORM_ROWS = 8, LAYER_NORM_SHORT = 256 };

static inline int layer_norm_blocks(int rows, int cols) {
  const int each = 4 * (cols <= LAYER_NORM_SHORT ? LAYER_NORM_ROWS : 1), blocks = rows / each + (rows % each != 0);
  return blocks < LAYER_NORM_BLOCKS ? blocks : LAYER_NORM_BLOCKS;
}

static inline int layer_norm_slice_rows(int rows) {
  const int least = 4 * NORM_SLICE_WARPS, each = rows / LAYER_NORM_SLICES + (rows % LAYER_NORM_SLICES != 0);
  return each > least ? each : least;
}

/* Of the slices' sums, for either launcher, and for fewer rows. */
static inline size_t layer_norm_workspace_floats(int rows, int cols) {
  const int least = 4 * NORM_SLICE_WARPS, most = rows / least + (rows % least != 0);
  const int slices = most < LAYER_NORM_SLICES ? most : LAYER_NORM_SLICES;
  const int blocks = cols <= 4096 ? layer_norm_blocks(rows, cols) : 0;
  return (size_t)(blocks > slices ? blocks : slices) * 2 * cols;
}

static inline void layer_norm_slices(float *dweight, float *dbias, const float *partial, int slices, int cols) {
  layer_norm_slices_kernel<<<(2 * cols + 31) / 32, dim3(32, NORM_SUM_WARPS)>>>(dweight, dbias, partial, slices, cols);
  CUDA_CHECK_LAUNCH();
}

/* workspace: layer_norm_workspace_floats(); naive needs none. Any of dx, dweight and dbias may be NULL. */
static inline void layer_norm_backward_naive(float *dx, float *dweight, float *dbias, const float *dy, const float *x,
                                             const float *weight, const float *saved, int rows, int cols,
                                             float *workspace) {
  (void)workspace;
  if (dx) layer_norm_backward_naive_kernel<<<(rows + 127) / 128, 128>>>(dx, dy, x, weight, saved, rows, cols);
  if (dweight || dbias)
    layer_norm_weight_naive_kernel<<<(cols + 127) / 128, 128>>>(dweight, dbias, dy, x, saved, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void layer_norm_backward_sliced(float *dx, float *dweight, float *dbias, const float *dy, const float *x,
                                              const float *weight, const float *saved, int rows, int cols,
                                              float *workspace) {
  if (dx && cols <= 4096)
    layer_norm_backward_block_kernel<256, true><<<rows, 256>>>(dx, NULL, dy, x, weight, saved, rows, cols, 1);
  if (dx && cols > 4096)
    layer_norm_backward_block_kernel<1024, true><<<rows, 1024>>>(dx, NULL, dy, x, weight, saved, rows, cols, 1);
  CUDA_CHECK_LAUNCH();
  if (!dweight && !dbias) return;
  const int each = layer_norm_slice_rows(rows), slices = rows / each + (rows % each != 0);
  layer_norm_weight_sliced_kernel<<<dim3((unsigned)(cols + 31) / 32, (unsigned)slices), dim3(32, NORM_SLICE_WARPS)>>>(
      workspace, dy, x, saved, rows, cols, each);
  CUDA_CHECK_LAUNCH();
  layer_norm_slices(dweight, dbias, workspace, slices, cols);
}

static inline void layer_norm_backward_gpu(float *dx, float *dweight, float *dbias, const float *dy, const float *x,
                                           const float *weight, const float *saved, int rows, int cols,
                                           float *workspace) {
  if (cols > 4096) {
    layer_norm_backward_sliced(dx, dweight, dbias, dy, x, weight, saved, rows, cols, workspace);
    return;
  }
  const int blocks = layer_norm_blocks(rows, cols);
  float *partial = dweight || dbias ? workspace : NULL;
  const bool aligned = norm_aligned(x, cols) && norm_aligned(dy, cols) && norm_aligned(dx, cols) &&
                       norm_aligned(weight, cols) && norm_aligned(partial, cols);
  if (cols <= LAYER_NORM_SHORT)
    layer_norm_backward_kernel<32, 2, LAYER_NORM_ROWS>
        <<<blocks, dim3(32, LAYER_NORM_ROWS)>>>(dx, partial, dy, x, weight, saved, rows, cols, aligned);
  else if (cols <= 1024)
    layer_norm_backward_kernel<256, 1, 1><<<blocks, 256>>>(dx, partial, dy, x, weight, saved, rows, cols, aligned);
  else
    layer_norm_backward_kernel<256, 4, 1><<<blocks, 256>>>(dx, partial, dy, x, weight, saved, rows, cols, aligned);
  CUDA_CHECK_LAUNCH();
  if (partial) layer_norm_slices(dweight, dbias, partial, blocks, cols);
}

#endif /* PHASE3_CNN_LAYER_NORM_BACKWARD_CUH */
