/* batch_norm2d_nhwc.cuh - batch norm of arrays (N,H,W,C), the layout of tensor cores: the channels of a pixel are
 * neighbours.
 *
 * Such an array is a matrix of N H W rows and C columns, and the statistics are those of its columns. The definition
 * and the versions for the CPU of batch_norm2d.cuh compute it as they are, with the shape {N H W, C, 1}: images of one
 * pixel. Only kernels have to share the work in another way: a block takes 32 columns and a slice of the rows, so that
 * each row is a piece of 128 bytes. Three kernels: sums of slices, sums of columns, results.
 *
 * The bits of `passed` are in the order of the array here: bit i % 32 of word i / 32 is value i.
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_NHWC_CUH
#define PHASE3_CNN_BATCH_NORM2D_NHWC_CUH

#include "phase3_cnn/10_batch_norm/batch_norm2d.cuh"

/* Columns and threads of a block; rows of a slice, at least; slices, at most; values per thread of the last kernel. */
enum { BATCH_NORM_COLUMNS = 32, BATCH_NORM_NHWC_THREADS = 256, BATCH_NORM_ROWS = 512, BATCH_NORM_NHWC_SLICES = 128 };

static inline int batch_norm2d_nhwc_slices(BatchNorm2dShape s) {
  const size_t slices = (batch_norm2d_count(s) + BATCH_NORM_ROWS - 1) / BATCH_NORM_ROWS;
  return slices < BATCH_NORM_NHWC_SLICES ? (int)slices : BATCH_NORM_NHWC_SLICES;
}

/* Three numbers for each column and slice, and two for each column. */
static inline size_t batch_norm2d_nhwc_workspace_floats(BatchNorm2dShape s) {
  return (size_t)s.c * (3 * batch_norm2d_nhwc_slices(s) + 2);
}

/* What a thread of the first kernel does: V columns from `column` on, every `step`-th row from `row` to `end`. */
typedef struct BatchNorm2dColumns {
  size_t row, end;
  int column, step, line; /* line: of the block's rows that are read at once */
} BatchNorm2dColumns;

template <int V>
static __device__ __forceinline__ BatchNorm2dColumns batch_norm2d_columns(BatchNorm2dShape s) {
  const size_t m = batch_norm2d_count(s), each = (m + gridDim.y - 1) / gridDim.y;
  BatchNorm2dColumns k;
  k.line = threadIdx.x / (BATCH_NORM_COLUMNS / V);
  k.step = BATCH_NORM_NHWC_THREADS / (BATCH_NORM_COLUMNS / V);
  k.column = blockIdx.x * BATCH_NORM_COLUMNS + threadIdx.x % (BATCH_NORM_COLUMNS / V) * V;
  k.row = blockIdx.y * each + k.line;
  k.end = (blockIdx.y + 1) * each < m ? (blockIdx.y + 1) * each : m;
  if (k.column >= s.c) k.end = 0;
  return k;
}

/* The threads of a column, one below the other, add up in order; thread t has column t of the block. */
template <int V>
static __global__ void __launch_bounds__(BATCH_NORM_NHWC_THREADS) batch_norm2d_nhwc_moments_kernel(BatchNorm2d b) {
  __shared__ Moments part[BATCH_NORM_NHWC_THREADS * V / BATCH_NORM_COLUMNS][BATCH_NORM_COLUMNS];
  const BatchNorm2dColumns k = batch_norm2d_columns<V>(b.shape);
  MomentSums sums[V] = {};
#pragma unroll 4
  for (size_t row = k.row; row < k.end; row += k.step) {
    float v[V];
    batch_norm2d_load<V>(v, b.x + row * b.shape.c + k.column);
#pragma unroll
    for (int l = 0; l < V; l++) {
      if (sums[l].count == 0) sums[l].shift = v[l];
      moments_add(&sums[l], v[l]);
      sums[l].count++;
    }
  }
#pragma unroll
  for (int l = 0; l < V; l++) part[k.line][k.column % BATCH_NORM_COLUMNS + l] = moments_of(sums[l]);
  __syncthreads();
  const int c = blockIdx.x * BATCH_NORM_COLUMNS + threadIdx.x;
  if (threadIdx.x >= BATCH_NORM_COLUMNS || c >= b.shape.c) return;
  Moments m = part[0][threadIdx.x];
  for (int i = 1; i < k.step; i++) m = moments_merge(m, part[i][threadIdx.x]);
  ((Moments *)b.workspace)[blockIdx.y * b.shape.c + c] = m;
}

/* One thread per column. */
static __global__ void batch_norm2d_nhwc_finish_kernel(BatchNorm2d b, int slices) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= b.shape.c) return;
  Moments m = ((const Moments *)b.workspace)[c];
  for (int i = 1; i < slices; i++) m = moments_merge(m, ((const Moments *)b.workspace)[i * b.shape.c + c]);
  batch_norm2d_finish(&b, c, m, 1);
}

template <int V>
static __global__ void batch_norm2d_nhwc_apply_kernel(BatchNorm2d b, size_t groups) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int add = b.after == BATCH_NORM_ADD_RELU, c = (int)(i * V % b.shape.c);
  const float floor = b.after == BATCH_NORM_ALONE ? -INFINITY : 0;
  uint32_t bits = 0;
  if (i < groups) {
    float v[V], z[V] = {};
    batch_norm2d_load<V>(v, b.x + i * V);
    if (add) batch_norm2d_load<V>(z, b.z + i * V);
#pragma unroll
    for (int l = 0; l < V; l++) {
      const BatchNorm2dLine line = batch_norm2d_line(&b, c + l, b.mean[c + l], b.inv_std[c + l]);
      float y = fmaf(v[l] - line.mean, line.scale, line.beta);
      if (add) y += z[l];
      v[l] = y < floor ? floor : y;
      bits |= (uint32_t) !(v[l] <= 0) << l;
    }
    batch_norm2d_store<V>(b.y + i * V, v);
  }
  if (add) batch_norm2d_keep_bits<V>(b.passed, i * V, bits, i < groups);
}

/* g of V values from number i on, whose columns begin at c; dy comes in and g goes out. */
template <int V>
static __device__ __forceinline__ void batch_norm2d_nhwc_mask(float *g, const float *x, const BatchNorm2d *b, size_t i,
                                                              int c) {
#pragma unroll
  for (int l = 0; l < V; l++) {
    const BatchNorm2dLine line = batch_norm2d_line(b, c + l, b->mean[c + l], b->inv_std[c + l]);
    batch_norm2d_mask<1>(g + l, x + l, b, b->passed, i + l, line);
  }
}

template <int V>
static __global__ void __launch_bounds__(BATCH_NORM_NHWC_THREADS) batch_norm2d_nhwc_sums_kernel(BatchNorm2d b) {
  __shared__ float2 part[BATCH_NORM_NHWC_THREADS * V / BATCH_NORM_COLUMNS][BATCH_NORM_COLUMNS];
  const BatchNorm2dColumns k = batch_norm2d_columns<V>(b.shape);
  float2 sum[V] = {};
  for (size_t row = k.row; row < k.end; row += k.step) {
    const size_t at = row * b.shape.c + k.column;
    float g[V], x[V];
    batch_norm2d_load<V>(g, b.dy + at);
    batch_norm2d_load<V>(x, b.x + at);
    batch_norm2d_nhwc_mask<V>(g, x, &b, at, k.column);
#pragma unroll
    for (int l = 0; l < V; l++) {
      sum[l].x += g[l];
      sum[l].y += g[l] * ((x[l] - b.mean[k.column + l]) * b.inv_std[k.column + l]);
    }
  }
#pragma unroll
  for (int l = 0; l < V; l++) part[k.line][k.column % BATCH_NORM_COLUMNS + l] = sum[l];
  __syncthreads();
  const int c = blockIdx.x * BATCH_NORM_COLUMNS + threadIdx.x;
  if (threadIdx.x >= BATCH_NORM_COLUMNS || c >= b.shape.c) return;
  float2 all = part[0][threadIdx.x];
  for (int i = 1; i < k.step; i++) {
    all.x += part[i][threadIdx.x].x;
    all.y += part[i][threadIdx.x].y;
  }
  ((float2 *)b.workspace)[(blockIdx.y + 1) * b.shape.c + c] = all; /* the first row is for the columns' sums */
}

static __global__ void batch_norm2d_nhwc_total_kernel(BatchNorm2d b, int slices) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  float2 *sums = (float2 *)b.workspace, all = {0, 0};
  if (c >= b.shape.c) return;
  for (int i = 1; i <= slices; i++) {
    all.x += sums[i * b.shape.c + c].x;
    all.y += sums[i * b.shape.c + c].y;
  }
  sums[c] = all;
  if (b.dgamma == NULL) return;
  b.dbeta[c] = all.x;
  b.dgamma[c] = all.y;
}

template <int V>
static __global__ void batch_norm2d_nhwc_dx_kernel(BatchNorm2d b, size_t groups) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int c = (int)(i * V % b.shape.c);
  const float m = (float)batch_norm2d_count(b.shape);
  if (i >= groups) return;
  float g[V], x[V];
  batch_norm2d_load<V>(g, b.dy + i * V);
  batch_norm2d_load<V>(x, b.x + i * V);
  batch_norm2d_nhwc_mask<V>(g, x, &b, i * V, c);
  if (b.dz) batch_norm2d_store<V>(b.dz + i * V, g);
  if (b.dx == NULL) return;
#pragma unroll
  for (int l = 0; l < V; l++) {
    const float2 sum = ((const float2 *)b.workspace)[c + l];
    BatchNorm2dLine line = batch_norm2d_line(&b, c + l, b.mean[c + l], b.inv_std[c + l]);
    line.share = sum.x / m;
    line.slope = sum.y / m;
    g[l] = batch_norm2d_dx(g[l], (x[l] - line.mean) * line.inv_std, line);
  }
  batch_norm2d_store<V>(b.dx + i * V, g);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <int V>
static inline void batch_norm2d_nhwc_forward_of(const BatchNorm2d *b) {
  const int slices = batch_norm2d_nhwc_slices(b->shape), columns = b->shape.c;
  const size_t groups = batch_norm2d_count(b->shape) * columns / V;
  const dim3 grid((unsigned)(columns + BATCH_NORM_COLUMNS - 1) / BATCH_NORM_COLUMNS, (unsigned)slices);
  batch_norm2d_nhwc_moments_kernel<V><<<grid, BATCH_NORM_NHWC_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
  batch_norm2d_nhwc_finish_kernel<<<(unsigned)(columns + 127) / 128, 128>>>(*b, slices);
  CUDA_CHECK_LAUNCH();
  batch_norm2d_nhwc_apply_kernel<V><<<(unsigned)((groups + 255) / 256), 256>>>(*b, groups);
  CUDA_CHECK_LAUNCH();
}

template <int V>
static inline void batch_norm2d_nhwc_backward_of(const BatchNorm2d *b) {
  const int slices = batch_norm2d_nhwc_slices(b->shape), columns = b->shape.c;
  const size_t groups = batch_norm2d_count(b->shape) * columns / V;
  const dim3 grid((unsigned)(columns + BATCH_NORM_COLUMNS - 1) / BATCH_NORM_COLUMNS, (unsigned)slices);
  batch_norm2d_nhwc_sums_kernel<V><<<grid, BATCH_NORM_NHWC_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
  batch_norm2d_nhwc_total_kernel<<<(unsigned)(columns + 127) / 128, 128>>>(*b, slices);
  CUDA_CHECK_LAUNCH();
  if (b->dx == NULL && b->dz == NULL) return;
  batch_norm2d_nhwc_dx_kernel<V><<<(unsigned)((groups + 255) / 256), 256>>>(*b, groups);
  CUDA_CHECK_LAUNCH();
}

/* Whether four channels can be loaded at once. */
static inline int batch_norm2d_nhwc_in_fours(const BatchNorm2d *b) {
  BatchNorm2d as_planes = *b;
  as_planes.shape.pixels = b->shape.c;
  return batch_norm2d_in_fours(&as_planes);
}

static inline void batch_norm2d_nhwc_forward_gpu(const BatchNorm2d *b) {
  if (batch_norm2d_nhwc_in_fours(b))
    batch_norm2d_nhwc_forward_of<4>(b);
  else
    batch_norm2d_nhwc_forward_of<1>(b);
}

static inline void batch_norm2d_nhwc_backward_gpu(const BatchNorm2d *b) {
  if (batch_norm2d_nhwc_in_fours(b))
    batch_norm2d_nhwc_backward_of<4>(b);
  else
    batch_norm2d_nhwc_backward_of<1>(b);
}

#endif /* PHASE3_CNN_BATCH_NORM2D_NHWC_CUH */
