/* nd_normalize.cuh - normalisation and quantisation of any rank.
 *
 *     channel    y = (x - mean[c]) scale[c] / sqrt(variance[c] + epsilon) + bias[c]: batch norm that is not trained
 *     rows       the same with the mean and variance of each row: layer norm and instance norm; one block per row
 *     across     LRN: x is divided by a power of the squares of neighbouring channels
 *     quantize   y = round(x / scale) + zero, held within the type of y; dequantize x = (y - zero) scale
 */
#ifndef PHASE5_PRODUCTION_ND_NORMALIZE_CUH
#define PHASE5_PRODUCTION_ND_NORMALIZE_CUH

#include "phase5_production/07_onnx_import/nd_reduce.cuh"
#include "phase5_production/07_onnx_import/nd_window.cuh" /* nd_saturate() */

/* All arrays have the type; channel c of element i is i / inner % channels. */
typedef struct NdChannel {
  unsigned channels, inner;
  float epsilon;
  DType type, parameter_type;
  const void *x, *scale, *bias, *mean, *variance;
  void *y;
} NdChannel;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdChannel &o, size_t i) {
  size_t rest = i;
  nd_split(&rest, o.inner);
  const unsigned c = nd_split(&rest, o.channels);
  const double variance = nd_get<F32, double>(o.variance, o.parameter_type, c);
  const double by = nd_get<F32, double>(o.scale, o.parameter_type, c) / sqrt(variance + (double)o.epsilon);
  const double x = nd_get<F32, double>(o.x, o.type, i) - nd_get<F32, double>(o.mean, o.parameter_type, c);
  nd_set<F32, double>(o.y, o.type, i, x * by + nd_get<F32, double>(o.bias, o.parameter_type, c));
}

/* x (rows, length). The parameter of element j of row r: number j, or number r % channels where channels > 0. */
typedef struct NdRows {
  unsigned length, channels;
  float epsilon;
  DType type;
  const void *x, *scale, *bias; /* NULL: 1, 0 */
  void *y;
} NdRows;

template <bool F32>
static __host__ __device__ inline void nd_row_store(const NdRows &o, size_t row, unsigned j, float mean,
                                                    float inverse) {
  const size_t at = o.channels > 0 ? row % o.channels : j;
  float y = (nd_get<F32, float>(o.x, o.type, row * o.length + j) - mean) * inverse;
  if (o.scale) y *= nd_get<F32, float>(o.scale, o.type, at);
  if (o.bias) y += nd_get<F32, float>(o.bias, o.type, at);
  nd_set<F32, float>(o.y, o.type, row * o.length + j, y);
}

static inline void nd_rows_cpu(const NdRows &o, size_t rows) {
#pragma omp parallel for schedule(static) if (rows * o.length > 16384)
  for (size_t row = 0; row < rows; row++) {
    double sum = 0, squares = 0;
    for (unsigned j = 0; j < o.length; j++) sum += nd_load<double>(o.x, o.type, row * o.length + j);
    const double mean = sum / o.length;
    for (unsigned j = 0; j < o.length; j++) {
      const double d = nd_load<double>(o.x, o.type, row * o.length + j) - mean;
      squares += d * d;
    }
    const float inverse = (float)(1 / sqrt(squares / o.length + (double)o.epsilon));
    for (unsigned j = 0; j < o.length; j++) nd_row_store<false>(o, row, j, (float)mean, inverse);
  }
}

template <bool F32>
static __global__ void nd_rows_kernel(NdRows o) {
  __shared__ float shared[ND_REDUCE_BLOCK];
  const size_t row = blockIdx.x;
  float sum = 0, squares = 0;
  for (unsigned j = threadIdx.x; j < o.length; j += ND_REDUCE_BLOCK)
    sum += nd_get<F32, float>(o.x, o.type, row * o.length + j);
  const float mean = nd_reduce_block<float>(ND_REDUCE_SUM, sum, shared) / (float)o.length;
  for (unsigned j = threadIdx.x; j < o.length; j += ND_REDUCE_BLOCK) {
    const float d = nd_get<F32, float>(o.x, o.type, row * o.length + j) - mean;
    squares += d * d;
  }
  const float variance = nd_reduce_block<float>(ND_REDUCE_SUM, squares, shared) / (float)o.length;
  const float inverse = 1 / sqrtf(variance + o.epsilon);
  for (unsigned j = threadIdx.x; j < o.length; j += ND_REDUCE_BLOCK) nd_row_store<F32>(o, row, j, mean, inverse);
}

template <bool F32>
static inline void nd_rows_launch(const NdRows &o, size_t rows) {
  nd_rows_kernel<F32><<<(unsigned)rows, ND_REDUCE_BLOCK>>>(o);
  CUDA_CHECK_LAUNCH();
}

/* x (N, channels, inner): y = x / (bias + alpha / size * sum of the squares of `size` channels round x's) ^ beta. */
typedef struct NdAcross {
  unsigned channels, inner;
  int size;
  float alpha, beta, bias;
  DType type;
  const void *x;
  void *y;
} NdAcross;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdAcross &o, size_t i) {
  size_t rest = i;
  nd_split(&rest, o.inner);
  const int c = (int)nd_split(&rest, o.channels), before = (o.size - 1) / 2;
  float squares = 0;
  for (int d = -before; d < o.size - before; d++) {
    if (c + d < 0 || c + d >= (int)o.channels) continue;
    const float x = nd_get<F32, float>(o.x, o.type, (size_t)((long long)i + d * (long long)o.inner));
    squares += x * x;
  }
  const float x = nd_get<F32, float>(o.x, o.type, i);
  nd_set<F32, float>(o.y, o.type, i, x / powf(o.bias + o.alpha / (float)o.size * squares, o.beta));
}

/* Both ways. The scale of element i is number i / inner % channels; channels 1: one for all. */
typedef struct NdQuantize {
  int dequantize;
  unsigned channels, inner;
  DType from, to, scale_type, zero_type;
  const void *x, *scale, *zero; /* zero: NULL is 0 */
  void *y;
} NdQuantize;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdQuantize &o, size_t i) {
  size_t rest = i;
  nd_split(&rest, o.inner);
  const unsigned c = nd_split(&rest, o.channels);
  const float scale = nd_load<float>(o.scale, o.scale_type, c);
  const int64_t zero = o.zero ? nd_load<int64_t>(o.zero, o.zero_type, c) : 0;
  if (o.dequantize) {
    nd_store<float>(o.y, o.to, i, (float)(nd_load<int64_t>(o.x, o.from, i) - zero) * scale);
    return;
  }
  const float y = rintf(nd_load<float>(o.x, o.from, i) / scale) + (float)zero;
  nd_store<float>(o.y, o.to, i, nd_saturate(y, o.to));
}

#endif /* PHASE5_PRODUCTION_ND_NORMALIZE_CUH */
