/* layer_norm.cuh - layer normalisation (Ba, Kiros, Hinton, 2016), as PyTorch's nn.LayerNorm computes it: each row of x
 * gets mean 0 and variance 1, then a weight and a bias for each column.
 *
 *     y[r,j] = weight[j] * t[r,j] + bias[j]      t[r,j] = (x[r,j] - mean[r]) * inv_std[r]
 *
 *     x, y, dx, dy (rows,cols)   weight, bias, dweight, dbias (cols)   saved (2,rows): mean, 1 / sqrt(variance + 1e-5)
 *
 * The statistics are those of a row alone: a batch of one gives the same result as a batch of 1000, and training and
 * evaluation do not differ. weight and bias may be NULL: 1 and 0. The variance divides by cols, and is summed around
 * the mean: E[x^2] - E[x]^2 would lose all digits where the mean is large.
 *
 * backward, with g = dy * weight:
 *
 *     dx[r,j] = inv_std[r] * (g[r,j] - mean of g[r] - t[r,j] * mean of (g t)[r])
 *     dweight[j] = sum over r of dy[r,j] t[r,j]        dbias[j] = sum over r of dy[r,j]
 *
 * So dx needs two sums along each row and the other gradients need sums along each column. The first are like softmax;
 * for the second a block adds up a slice of the rows, and another kernel adds up the slices in a fixed order.
 *
 *   layer_norm_*_cpu              plain loops, sums in double
 *   layer_norm_*_cpu_fast         rows shared among threads, four sums of four lanes
 *
 *   layer_norm_forward_naive      one thread per row, three passes; the 32 lanes of a warp read 32 rows
 *   layer_norm_forward_block      one block per row, three passes: mean, variance, result
 *   layer_norm_forward_moments    mean and variance in one pass, by merging the moments of parts: two passes
 *   layer_norm_forward_gpu        a warp or a block keeps the row in registers, as float4: one read; longer rows than
 *                                 16384 go to `moments`
 *
 *   layer_norm_backward_naive     one thread per row for dx, one thread per column for dweight and dbias
 *   layer_norm_backward_sliced    one block per row for dx; slices of the rows for dweight and dbias: x and dy are read
 *                                 three times
 *   layer_norm_backward_gpu       each block walks through rows and adds up its slice of dweight and dbias in
 *                                 registers: x and dy are read once; longer rows than 4096 go to `sliced`
 *
 * instance_norm.cuh uses the same kernels with weight and bias of a row: BY_COLUMN is false.
 */
#ifndef PHASE3_CNN_LAYER_NORM_CUH
#define PHASE3_CNN_LAYER_NORM_CUH

#include "common/check.h"
#include "phase1_building_blocks/08_softmax/row_reduce.cuh"

#define LAYER_NORM_EPSILON 1e-5f

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

/* Mean and 1 / standard deviation of a row. */
template <typename T>
static inline void layer_norm_statistics_cpu(double *mean, double *inv_std, const T *x, int cols) {
  double sum = 0, squares = 0;
  // >>> hidden layer_norm_statistics
  for (int j = 0; j < cols; j++) sum += x[j];
  *mean = sum / cols;
  for (int j = 0; j < cols; j++) squares += (x[j] - *mean) * (x[j] - *mean);
  *inv_std = 1 / sqrt(squares / cols + (double)LAYER_NORM_EPSILON);
  // <<< hidden
}

template <typename T>
static inline void layer_norm_forward_cpu(T *y, T *saved, const T *x, const T *weight, const T *bias, int rows,
                                          int cols) {
  for (int r = 0; r < rows; r++, x += cols, y += cols) {
    double mean, inv_std;
    layer_norm_statistics_cpu(&mean, &inv_std, x, cols);
    saved[r] = (T)mean;
    saved[rows + r] = (T)inv_std;
    for (int j = 0; j < cols; j++) {
      const double t = (x[j] - mean) * inv_std;
      y[j] = (T)((weight ? weight[j] : 1) * t + (bias ? bias[j] : 0));
    }
  }
}

/* Any of dx, dweight and dbias may be NULL. */
template <typename T>
static inline void layer_norm_backward_cpu(T *dx, T *dweight, T *dbias, const T *dy, const T *x, const T *weight,
                                           const T *saved, int rows, int cols) {
  for (int r = 0; dx && r < rows; r++) {
    const T *row = x + (size_t)r * cols, *slope = dy + (size_t)r * cols;
    const double mean = saved[r], inv_std = saved[rows + r];
    double sum = 0, product = 0;
    for (int j = 0; j < cols; j++) {
      const double g = (double)slope[j] * (weight ? weight[j] : 1);
      sum += g;
      product += g * (row[j] - mean) * inv_std;
    }
    for (int j = 0; j < cols; j++) {
      const double g = (double)slope[j] * (weight ? weight[j] : 1), t = (row[j] - mean) * inv_std;
      dx[(size_t)r * cols + j] = (T)(inv_std * (g - sum / cols - t * product / cols));
    }
  }
  for (int j = 0; (dweight || dbias) && j < cols; j++) {
    double sum = 0, product = 0;
    for (int r = 0; r < rows; r++) {
      // >>> hidden layer_norm_weight_gradient
      sum += dy[(size_t)r * cols + j];
      product += (double)dy[(size_t)r * cols + j] * (x[(size_t)r * cols + j] - saved[r]) * saved[rows + r];
      // <<< hidden
    }
    if (dweight) dweight[j] = (T)product;
    if (dbias) dbias[j] = (T)sum;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU, fast: sixteen sums side by side, in four vectors of four */

typedef float NormLanes __attribute__((vector_size(16), aligned(4), may_alias));

enum { NORM_VECTORS = 4, NORM_STEP = 4 * NORM_VECTORS };

static inline float norm_lanes_total(const NormLanes lanes[NORM_VECTORS]) {
  const NormLanes all = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  return (all[0] + all[1]) + (all[2] + all[3]);
}

static inline void norm_statistics_fast(float *mean, float *inv_std, const float *x, int cols) {
  NormLanes lanes[NORM_VECTORS] = {{0}}, squares[NORM_VECTORS] = {{0}};
  const int whole = cols / NORM_STEP * NORM_STEP;
  float rest = 0, m;
  for (int j = 0; j < whole; j += NORM_STEP)
    for (int v = 0; v < NORM_VECTORS; v++) lanes[v] += *(const NormLanes *)(x + j + 4 * v);
  for (int j = whole; j < cols; j++) rest += x[j];
  m = (norm_lanes_total(lanes) + rest) / (float)cols;
  rest = 0;
  for (int j = 0; j < whole; j += NORM_STEP)
    for (int v = 0; v < NORM_VECTORS; v++) {
      const NormLanes d = *(const NormLanes *)(x + j + 4 * v) - m;
      squares[v] += d * d;
    }
  for (int j = whole; j < cols; j++) rest += (x[j] - m) * (x[j] - m);
  *mean = m;
  *inv_std = 1 / sqrtf((norm_lanes_total(squares) + rest) / (float)cols + LAYER_NORM_EPSILON);
}

static inline void layer_norm_forward_cpu_fast(float *y, float *saved, const float *x, const float *weight,
                                               const float *bias, int rows, int cols) {
#pragma omp parallel for schedule(static) if ((size_t)rows * cols > 32768)
  for (int r = 0; r < rows; r++) {
    const float *row = x + (size_t)r * cols;
    float *out = y + (size_t)r * cols, mean, inv_std;
    norm_statistics_fast(&mean, &inv_std, row, cols);
    saved[r] = mean;
    saved[rows + r] = inv_std;
    if (weight && bias)
      for (int j = 0; j < cols; j++) out[j] = (row[j] - mean) * inv_std * weight[j] + bias[j];
    else
      for (int j = 0; j < cols; j++)
        out[j] = (row[j] - mean) * inv_std * (weight ? weight[j] : 1.0f) + (bias ? bias[j] : 0.0f);
  }
}

/* sums[0]: of g t, sums[1]: of g, with g = dy * weight; weight NULL: 1. */
static inline void norm_gradient_sums_fast(float sums[2], const float *dy, const float *x, const float *weight,
                                           float mean, float inv_std, int cols) {
  NormLanes product[NORM_VECTORS] = {{0}}, sum[NORM_VECTORS] = {{0}};
  const int whole = cols / NORM_STEP * NORM_STEP;
  sums[0] = sums[1] = 0;
  for (int j = 0; j < whole; j += NORM_STEP)
    for (int v = 0; v < NORM_VECTORS; v++) {
      NormLanes g = *(const NormLanes *)(dy + j + 4 * v);
      if (weight) g *= *(const NormLanes *)(weight + j + 4 * v);
      product[v] += g * ((*(const NormLanes *)(x + j + 4 * v) - mean) * inv_std);
      sum[v] += g;
    }
  for (int j = whole; j < cols; j++) {
    const float g = weight ? dy[j] * weight[j] : dy[j];
    sums[0] += g * ((x[j] - mean) * inv_std);
    sums[1] += g;
  }
  sums[0] += norm_lanes_total(product);
  sums[1] += norm_lanes_total(sum);
}

/* A thread takes blocks of NORM_COLUMNS columns and walks through all rows, so the sums have one order. */
static inline void layer_norm_weight_gradient_fast(float *dweight, float *dbias, const float *dy, const float *x,
                                                   const float *saved, int rows, int cols) {
  enum { NORM_COLUMNS = 64 };
#pragma omp parallel for schedule(static) if ((size_t)rows * cols > 32768)
  for (int first = 0; first < cols; first += NORM_COLUMNS) {
    double product[NORM_COLUMNS] = {0}, sum[NORM_COLUMNS] = {0};
    const int count = cols - first < NORM_COLUMNS ? cols - first : NORM_COLUMNS;
    for (int r = 0; r < rows; r++) {
      const float *row = x + (size_t)r * cols + first, *slope = dy + (size_t)r * cols + first;
      const float mean = saved[r], inv_std = saved[rows + r];
      // >>> hidden layer_norm_weight_gradient
      for (int j = 0; j < count; j++) {
        product[j] += slope[j] * ((row[j] - mean) * inv_std);
        sum[j] += slope[j];
      }
      // <<< hidden
    }
    for (int j = 0; j < count; j++) {
      if (dweight) dweight[first + j] = (float)product[j];
      if (dbias) dbias[first + j] = (float)sum[j];
    }
  }
}

static inline void layer_norm_backward_cpu_fast(float *dx, float *dweight, float *dbias, const float *dy,
                                                const float *x, const float *weight, const float *saved, int rows,
                                                int cols) {
#pragma omp parallel for schedule(static) if ((size_t)rows * cols > 32768)
  for (int r = 0; r < (dx ? rows : 0); r++) {
    const float *row = x + (size_t)r * cols, *slope = dy + (size_t)r * cols;
    const float mean = saved[r], inv_std = saved[rows + r];
    float *out = dx + (size_t)r * cols, sums[2];
    norm_gradient_sums_fast(sums, slope, row, weight, mean, inv_std, cols);
    const float product = sums[0] / (float)cols, sum = sums[1] / (float)cols;
    for (int j = 0; j < cols; j++) {
      const float g = weight ? slope[j] * weight[j] : slope[j];
      out[j] = inv_std * (g - sum - (row[j] - mean) * inv_std * product);
    }
  }
  if (dweight || dbias) layer_norm_weight_gradient_fast(dweight, dbias, dy, x, saved, rows, cols);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Forward: several passes */

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

/* ---------------------------------------------------------------------------------------------------------------- */
/* Forward: two passes */

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

/* ---- four elements at a time ---- */

static __device__ __forceinline__ float4 norm_quad(float v) { return make_float4(v, v, v, v); }
static __device__ __forceinline__ float norm_quad_sum(float4 v) { return (v.x + v.y) + (v.z + v.w); }
static __device__ __forceinline__ float4 norm_quad_add(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
static __device__ __forceinline__ float4 norm_quad_multiply(float4 a, float4 b) {
  return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

/* Weight or bias of an element: of its column, or of its row r, which is a plane of channel r % channels. */
template <bool BY_COLUMN>
static __device__ __forceinline__ float norm_affine(const float *values, float without, int r, int channels, int j) {
  return values ? values[BY_COLUMN ? j : r % channels] : without;
}
template <bool BY_COLUMN>
static __device__ __forceinline__ float4 norm_affine_quad(const float *values, float without, int r, int channels,
                                                          int q) {
  if (BY_COLUMN && values) return ((const float4 *)values)[q];
  return norm_quad(norm_affine<BY_COLUMN>(values, without, r, channels, 0));
}

/* (v - mean) * inv_std; then times w, plus b. */
static __device__ __forceinline__ float4 norm_quad_normal(float4 v, float mean, float inv_std) {
  return make_float4((v.x - mean) * inv_std, (v.y - mean) * inv_std, (v.z - mean) * inv_std, (v.w - mean) * inv_std);
}
static __device__ __forceinline__ float4 norm_quad_result(float4 v, float mean, float inv_std, float4 w, float4 b) {
  return norm_quad_add(norm_quad_multiply(norm_quad_normal(v, mean, inv_std), w), b);
}

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

/* ---------------------------------------------------------------------------------------------------------------- */
/* Forward: one pass */

/* T threads keep a row in registers, QUADS float4 each. Where rows are aligned, thread t has the quads t, t + T, ...;
 * otherwise it has the elements t, t + T, ..., four of which make a float4. The column of element k of its quad i: */
template <int T>
static __device__ __forceinline__ int norm_column(int t, int i, int k, bool aligned) {
  return aligned ? 4 * (t + i * T) + k : t + (4 * i + k) * T;
}

/* Elements beyond the row become `outside`. once: nobody reads them again, so they may leave the caches first. */
template <int T, int QUADS>
static __device__ __forceinline__ void norm_load(float4 *kept, const float *x, float outside, int t, int cols,
                                                 bool aligned, bool once) {
  if (aligned) {
    const float4 *in = (const float4 *)x;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      const int q = t + i * T;
      kept[i] = 4 * q >= cols ? norm_quad(outside) : once ? __ldcs(&in[q]) : in[q];
    }
  } else {
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      const int j = t + 4 * i * T;
      kept[i].x = j < cols ? x[j] : outside;
      kept[i].y = j + T < cols ? x[j + T] : outside;
      kept[i].z = j + 2 * T < cols ? x[j + 2 * T] : outside;
      kept[i].w = j + 3 * T < cols ? x[j + 3 * T] : outside;
    }
  }
}

/* Stores quad i of the thread. */
template <int T>
static __device__ __forceinline__ void norm_store(float *y, float4 v, int t, int i, int cols, bool aligned) {
  const int j = norm_column<T>(t, i, 0, aligned);
  if (aligned) {
    if (j < cols) __stcs((float4 *)(y + j), v);
    return;
  }
  if (j < cols) y[j] = v.x;
  if (j + T < cols) y[j + T] = v.y;
  if (j + 2 * T < cols) y[j + 2 * T] = v.z;
  if (j + 3 * T < cols) y[j + 3 * T] = v.w;
}

/* Quad i of the thread less the mean; 0 beyond the row. */
template <int T>
static __device__ __forceinline__ float4 norm_distance(float4 v, float mean, int t, int i, int cols, bool aligned) {
  v.x = norm_column<T>(t, i, 0, aligned) < cols ? v.x - mean : 0;
  v.y = norm_column<T>(t, i, 1, aligned) < cols ? v.y - mean : 0;
  v.z = norm_column<T>(t, i, 2, aligned) < cols ? v.z - mean : 0;
  v.w = norm_column<T>(t, i, 3, aligned) < cols ? v.w - mean : 0;
  return v;
}

/* Weight or bias of quad i of the thread. */
template <int T, bool BY_COLUMN>
static __device__ __forceinline__ float4 norm_affine_kept(const float *values, float without, int r, int channels,
                                                          int t, int i, int cols, bool aligned) {
  const int ahead = 4 * i * T;
  float4 quad = norm_quad(without);
  if (!BY_COLUMN) return norm_quad(norm_affine<BY_COLUMN>(values, without, r, channels, 0));
  if (values) norm_load<T, 1>(&quad, values + ahead, without, t, cols - ahead, aligned, false);
  return quad;
}

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

/* ---------------------------------------------------------------------------------------------------------------- */
/* Backward: several passes */

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

/* Sums of two values over T threads, in every thread. If T is more than a warp, consecutive calls in a loop pass 0 and
 * 1 in turn: a slow thread still reads part[turn] while others write the other one, so one barrier per call is enough.
 * */
template <int T>
static __device__ __forceinline__ float2 norm_pair_sum(float2 own, int turn) {
  for (int step = 16; step > 0; step /= 2) {
    own.x += __shfl_xor_sync(0xffffffffu, own.x, step);
    own.y += __shfl_xor_sync(0xffffffffu, own.y, step);
  }
  if (T == 32) return own;
  const int warps = T / 32;
  __shared__ float2 part[2][warps];
  if (threadIdx.x % 32 == 0) part[turn][threadIdx.x / 32] = own;
  __syncthreads();
  own = part[turn][threadIdx.x % warps];
  for (int step = warps / 2; step > 0; step /= 2) {
    own.x += __shfl_xor_sync(0xffffffffu, own.x, step);
    own.y += __shfl_xor_sync(0xffffffffu, own.y, step);
  }
  return own;
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
/* Backward: one pass */

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

/* Whether every row of `cols` floats of an array begins at a multiple of 16 bytes; NULL: yes. */
static inline bool norm_aligned(const float *array, int cols) {
  return (uintptr_t)array % sizeof(float4) == 0 && cols % 4 == 0;
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
  const int blocks = layer_norm_blocks(rows, cols);
  float *partial = dweight || dbias ? workspace : NULL;
  const bool aligned = norm_aligned(x, cols) && norm_aligned(dy, cols) && norm_aligned(dx, cols) &&
                       norm_aligned(weight, cols) && norm_aligned(partial, cols);
  if (cols <= LAYER_NORM_SHORT)
    layer_norm_backward_kernel<32, 2, LAYER_NORM_ROWS>
        <<<blocks, dim3(32, LAYER_NORM_ROWS)>>>(dx, partial, dy, x, weight, saved, rows, cols, aligned);
  else if (cols <= 1024)
    layer_norm_backward_kernel<256, 1, 1><<<blocks, 256>>>(dx, partial, dy, x, weight, saved, rows, cols, aligned);
  else if (cols <= 4096)
    layer_norm_backward_kernel<256, 4, 1><<<blocks, 256>>>(dx, partial, dy, x, weight, saved, rows, cols, aligned);
  else {
    layer_norm_backward_sliced(dx, dweight, dbias, dy, x, weight, saved, rows, cols, workspace);
    return;
  }
  CUDA_CHECK_LAUNCH();
  if (partial) layer_norm_slices(dweight, dbias, partial, blocks, cols);
}

#endif /* PHASE3_CNN_LAYER_NORM_CUH */
