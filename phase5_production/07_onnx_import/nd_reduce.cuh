/* nd_reduce.cuh - reductions over any axes, and operations along one axis.
 *
 *     reduce    sum, mean, largest ... over some axes: one block per output; its threads take turns over what is
 *               reduced, and add up in shared memory. On the CPU a loop
 *     line      softmax, log softmax, hardmax, running sums, the place of the largest or smallest, the k largest: one
 *               thread per line; a line is what an axis runs along, (outer, length, inner)
 *
 * Sums of float32 are in float32 on a GPU and in double on the CPU.
 */
#ifndef PHASE5_PRODUCTION_ND_REDUCE_CUH
#define PHASE5_PRODUCTION_ND_REDUCE_CUH

#include "phase5_production/07_onnx_import/nd.cuh"

typedef enum NdReduceKind {
  ND_REDUCE_SUM,
  ND_REDUCE_MEAN,
  ND_REDUCE_MAX,
  ND_REDUCE_MIN,
  ND_REDUCE_PROD,
  ND_REDUCE_L1,
  ND_REDUCE_L2,
  ND_REDUCE_LOG_SUM,
  ND_REDUCE_LOG_SUM_EXP,
  ND_REDUCE_SUM_SQUARE
} NdReduceKind;

enum { ND_REDUCE_BLOCK = 128 };

typedef struct NdReduce {
  NdReduceKind kind;
  NdCompute compute;
  DType from, to;
  NdAxes axes, over; /* of y; of what is reduced, all its sizes are known */
  NdStrides strides, over_strides;
  size_t count; /* what is reduced to one element */
  const void *x;
  void *y;
} NdReduce;

template <typename T>
static __host__ __device__ inline T nd_reduce_start(NdReduceKind kind, T first) {
  return kind == ND_REDUCE_MAX || kind == ND_REDUCE_MIN || kind == ND_REDUCE_LOG_SUM_EXP ? first
         : kind == ND_REDUCE_PROD                                                        ? (T)1
                                                                                         : (T)0;
}

template <typename T>
static __host__ __device__ inline T nd_reduce_join(NdReduceKind kind, T a, T b) {
  if (kind == ND_REDUCE_MAX || kind == ND_REDUCE_LOG_SUM_EXP) return a > b || a != a ? a : b;
  if (kind == ND_REDUCE_MIN) return a < b || a != a ? a : b;
  if (kind == ND_REDUCE_PROD) return a * b;
  return a + b;
}

template <typename T>
static __host__ __device__ inline T nd_reduce_each(NdReduceKind kind, T x) {
  if (kind == ND_REDUCE_L1) return x < 0 ? 0 - x : x;
  if (kind == ND_REDUCE_L2 || kind == ND_REDUCE_SUM_SQUARE) return x * x;
  return x;
}

/* T: float or double. */
static __host__ __device__ inline float nd_root(float x) { return sqrtf(x); }
static __host__ __device__ inline double nd_root(double x) { return sqrt(x); }
static __host__ __device__ inline int64_t nd_root(int64_t x) { return (int64_t)sqrt((double)x); }
static __host__ __device__ inline float nd_logarithm(float x) { return logf(x); }
static __host__ __device__ inline double nd_logarithm(double x) { return log(x); }
static __host__ __device__ inline int64_t nd_logarithm(int64_t x) { return (int64_t)log((double)x); }
static __host__ __device__ inline float nd_exponential(float x) { return expf(x); }
static __host__ __device__ inline double nd_exponential(double x) { return exp(x); }
static __host__ __device__ inline int64_t nd_exponential(int64_t x) { return (int64_t)exp((double)x); }

template <typename T>
static __host__ __device__ inline T nd_reduce_end(NdReduceKind kind, T x, size_t count) {
  if (kind == ND_REDUCE_MEAN) return x / (T)count;
  if (kind == ND_REDUCE_L2) return nd_root(x);
  if (kind == ND_REDUCE_LOG_SUM) return nd_logarithm(x);
  return x;
}

template <bool F32, typename T>
static __host__ __device__ inline T nd_reduce_element(const NdReduce &o, long long base, size_t j) {
  return nd_get<F32, T>(o.x, o.from, (size_t)(base + nd_place(&o.over, &o.over_strides, j)));
}

/* On the CPU. */
template <typename T>
static inline void nd_reduce_cpu(const NdReduce &o, size_t i) {
  const long long base = nd_place(&o.axes, &o.strides, i);
  T result = nd_reduce_start<T>(o.kind, o.count ? nd_reduce_element<false, T>(o, base, 0) : (T)0);
  for (size_t j = 0; j < o.count; j++)
    result = nd_reduce_join<T>(o.kind, result, nd_reduce_each<T>(o.kind, nd_reduce_element<false, T>(o, base, j)));
  if (o.kind == ND_REDUCE_LOG_SUM_EXP) {
    T sum = 0;
    for (size_t j = 0; j < o.count; j++) sum += nd_exponential(nd_reduce_element<false, T>(o, base, j) - result);
    result += nd_logarithm(sum);
  }
  nd_store<T>(o.y, o.to, i, nd_reduce_end<T>(o.kind, result, o.count));
}

/* The same numbers of all threads of a block: `mine` of each, joined. */
template <typename T>
static __device__ T nd_reduce_block(NdReduceKind kind, T mine, T *shared) {
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = ND_REDUCE_BLOCK / 2; half > 0; half /= 2) {
    // >>> exercise nd_reduce_tree: the first `half` threads join their number with that of the thread `half` further
    // hint: shared[threadIdx.x] is a thread's own number, nd_reduce_join<T>(kind, a, b) joins two
    // hint: a thread must not read what another has not written yet: a barrier ends the round, for all threads
    // hint: if ((int)threadIdx.x < half) shared[threadIdx.x] = nd_reduce_join<T>(kind, own, its); then __syncthreads()
    if ((int)threadIdx.x < half)
      shared[threadIdx.x] = nd_reduce_join<T>(kind, shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
    // <<< exercise
  }
  const T all = shared[0];
  __syncthreads();
  return all;
}

template <bool F32, typename T>
static __global__ void nd_reduce_kernel(NdReduce o) {
  __shared__ T shared[ND_REDUCE_BLOCK];
  const size_t i = blockIdx.x;
  const long long base = nd_place(&o.axes, &o.strides, i);
  T result = nd_reduce_start<T>(o.kind, nd_reduce_element<F32, T>(o, base, 0));
  for (size_t j = threadIdx.x; j < o.count; j += ND_REDUCE_BLOCK)
    result = nd_reduce_join<T>(o.kind, result, nd_reduce_each<T>(o.kind, nd_reduce_element<F32, T>(o, base, j)));
  result = nd_reduce_block<T>(o.kind, result, shared);
  if (o.kind == ND_REDUCE_LOG_SUM_EXP) {
    T sum = 0;
    for (size_t j = threadIdx.x; j < o.count; j += ND_REDUCE_BLOCK)
      sum += nd_exponential(nd_reduce_element<F32, T>(o, base, j) - result);
    result += nd_logarithm(nd_reduce_block<T>(ND_REDUCE_SUM, sum, shared));
  }
  if (threadIdx.x == 0) nd_set<F32, T>(o.y, o.to, i, nd_reduce_end<T>(o.kind, result, o.count));
}

template <bool F32, typename T>
static inline void nd_reduce_launch(const NdReduce &o, size_t n) {
  nd_reduce_kernel<F32, T><<<(unsigned)n, ND_REDUCE_BLOCK>>>(o);
  CUDA_CHECK_LAUNCH();
}

/* sums (rows) of x (rows, columns). For the exercise. */
static inline void nd_reduce_rows_gpu(float *sums, const float *x, int rows, int columns) {
  const NdReduce args = {ND_REDUCE_SUM,
                         ND_FLOAT,
                         DTYPE_FLOAT32,
                         DTYPE_FLOAT32,
                         {1, {(unsigned)rows}},
                         {1, {(unsigned)columns}},
                         {0, {columns}},
                         {0, {1}},
                         (size_t)columns,
                         x,
                         sums};
  nd_reduce_launch<true, float>(args, (size_t)rows);
}

static inline void nd_reduce_rows_cpu(float *sums, const float *x, int rows, int columns) {
  for (int r = 0; r < rows; r++) {
    double sum = 0;
    for (int c = 0; c < columns; c++) sum += x[(size_t)r * columns + c];
    sums[r] = (float)sum;
  }
}

/* ------------------------------------------------------------------------------------------------------------ lines */

typedef enum NdLineKind {
  ND_LINE_SOFTMAX,
  ND_LINE_LOG_SOFTMAX,
  ND_LINE_HARDMAX,
  ND_LINE_CUMSUM,
  ND_LINE_ARG,
  ND_LINE_TOP_VALUES,
  ND_LINE_TOP_INDICES,
  ND_LINE_L1_NORM,
  ND_LINE_L2_NORM
} NdLineKind;

/* x (outer, length, inner) -> y (outer, out_length, inner). */
typedef struct NdLine {
  NdLineKind kind;
  NdCompute compute;
  DType from, to;
  unsigned length, out_length, inner;
  int largest, last;      /* ARG, TOP: the largest come first; ARG: of equal ones the last */
  int exclusive, reverse; /* CUMSUM */
  const void *x;
  void *y;
} NdLine;

/* Whether value a at place i comes before value b at place j. */
template <typename T>
static __host__ __device__ inline bool nd_line_before(const NdLine &o, T a, unsigned i, T b, unsigned j) {
  if (a != b) return o.largest ? a > b : a < b;
  return o.last ? i > j : i < j;
}

/* The first place behind (value, place) in the order; `any`: there is none before it. */
template <typename T>
static __host__ __device__ inline unsigned nd_line_next(const NdLine &o, size_t base, T value, unsigned place,
                                                        bool any) {
  unsigned best = o.length;
  T best_value = 0;
  for (unsigned j = 0; j < o.length; j++) {
    const T x = nd_load<T>(o.x, o.from, base + (size_t)j * o.inner);
    if (!any && !nd_line_before<T>(o, value, place, x, j)) continue;
    if (best < o.length && !nd_line_before<T>(o, x, j, best_value, best)) continue;
    best = j;
    best_value = x;
  }
  return best < o.length ? best : o.length - 1;
}

template <typename T>
static __host__ __device__ inline void nd_line_top(const NdLine &o, size_t base, size_t out) {
  T value = 0;
  unsigned place = 0;
  for (unsigned k = 0; k < o.out_length; k++) {
    place = nd_line_next<T>(o, base, value, place, k == 0);
    value = nd_load<T>(o.x, o.from, base + (size_t)place * o.inner);
    const size_t to = out + (size_t)k * o.inner;
    if (o.kind == ND_LINE_TOP_VALUES)
      nd_store<T>(o.y, o.to, to, value);
    else
      nd_store<int64_t>(o.y, o.to, to, (int64_t)place);
  }
}

template <typename T>
static __host__ __device__ inline void nd_line_cumsum(const NdLine &o, size_t base) {
  T sum = 0;
  for (unsigned k = 0; k < o.length; k++) {
    const size_t at = base + (size_t)(o.reverse ? o.length - 1 - k : k) * o.inner;
    const T x = nd_load<T>(o.x, o.from, at);
    nd_store<T>(o.y, o.to, at, o.exclusive ? sum : sum + x);
    sum += x;
  }
}

/* T: float or double. */
template <typename T>
static __host__ __device__ inline void nd_line_softmax(const NdLine &o, size_t base) {
  T most = nd_load<T>(o.x, o.from, base), sum = 0;
  unsigned place = 0;
  for (unsigned j = 1; j < o.length; j++) {
    const T x = nd_load<T>(o.x, o.from, base + (size_t)j * o.inner);
    if (x > most || x != x) most = x, place = j;
  }
  for (unsigned j = 0; j < o.length; j++)
    sum += nd_exponential(nd_load<T>(o.x, o.from, base + (size_t)j * o.inner) - most);
  const T log_sum = nd_logarithm(sum);
  for (unsigned j = 0; j < o.length; j++) {
    const size_t at = base + (size_t)j * o.inner;
    const T x = nd_load<T>(o.x, o.from, at) - most;
    nd_store<T>(o.y, o.to, at,
                o.kind == ND_LINE_HARDMAX       ? (T)(j == place)
                : o.kind == ND_LINE_LOG_SOFTMAX ? x - log_sum
                                                : nd_exponential(x) / sum);
  }
}

template <typename T>
static __host__ __device__ inline void nd_line_norm(const NdLine &o, size_t base) {
  T sum = 0;
  for (unsigned j = 0; j < o.length; j++) {
    const T x = nd_load<T>(o.x, o.from, base + (size_t)j * o.inner);
    sum += o.kind == ND_LINE_L2_NORM ? x * x : x < 0 ? -x : x;
  }
  if (o.kind == ND_LINE_L2_NORM) sum = nd_root(sum);
  for (unsigned j = 0; j < o.length; j++) {
    const size_t at = base + (size_t)j * o.inner;
    nd_store<T>(o.y, o.to, at, sum == 0 ? (T)0 : nd_load<T>(o.x, o.from, at) / sum);
  }
}

/* Line i. */
template <bool F32>
static __host__ __device__ inline void nd_one(const NdLine &o, size_t i) {
  size_t outer = i;
  const unsigned r = nd_split(&outer, o.inner);
  const size_t base = outer * o.length * o.inner + r, out = outer * o.out_length * o.inner + r;
  const bool whole = o.compute == ND_INT || o.compute == ND_UINT;
  switch (o.kind) {
    case ND_LINE_CUMSUM:
      whole ? nd_line_cumsum<int64_t>(o, base) : nd_line_cumsum<double>(o, base);
      break;
    case ND_LINE_ARG:
    case ND_LINE_TOP_VALUES:
    case ND_LINE_TOP_INDICES:
      whole ? nd_line_top<int64_t>(o, base, out) : nd_line_top<double>(o, base, out);
      break;
    case ND_LINE_L1_NORM:
    case ND_LINE_L2_NORM:
      o.compute == ND_DOUBLE ? nd_line_norm<double>(o, base) : nd_line_norm<float>(o, base);
      break;
    default:
      o.compute == ND_DOUBLE ? nd_line_softmax<double>(o, base) : nd_line_softmax<float>(o, base);
      break;
  }
}

#endif /* PHASE5_PRODUCTION_ND_REDUCE_CUH */
