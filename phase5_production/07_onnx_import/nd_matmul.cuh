/* nd_matmul.cuh - matrix products with leading axes, broadcast as MatMul says: for what linear_op does not compute.
 *
 *     y[..., m, n] = alpha sum over k of a[..., m, k] b[..., k, n] + beta c[m, n]
 *
 * The kernel computes a tile of 16 x 16 results per block from tiles of both matrices in shared memory, as
 * phase1_building_blocks/03_matmul_tiled does, with strides in the place of leading dimensions: a transposed matrix is
 * one whose strides are exchanged.
 */
#ifndef PHASE5_PRODUCTION_ND_MATMUL_CUH
#define PHASE5_PRODUCTION_ND_MATMUL_CUH

#include "phase5_production/07_onnx_import/nd_window.cuh" /* NdQuantized */

enum { ND_MATMUL_TILE = 16 };

typedef struct NdMatmul {
  int m, n, k;
  NdAxes axes; /* the leading ones */
  NdStrides a_strides, b_strides;
  long long a_row, a_column, b_row, b_column, c_row, c_column;
  float alpha, beta;
  NdQuantized quantized; /* a: zero points of rows; b: of columns */
  NdCompute compute;
  DType a_type, b_type, c_type, y_type;
  const void *a, *b, *c;
  void *y;
} NdMatmul;

template <bool F32, typename T>
static __host__ __device__ inline T nd_matmul_a(const NdMatmul &o, long long base, int m, int k) {
  return nd_get<F32, T>(o.a, o.a_type, (size_t)(base + m * o.a_row + k * o.a_column)) -
         (T)nd_zero(o.quantized.a_zero, o.a_type, o.quantized.a_many, m);
}

template <bool F32, typename T>
static __host__ __device__ inline T nd_matmul_b(const NdMatmul &o, long long base, int k, int n) {
  return nd_get<F32, T>(o.b, o.b_type, (size_t)(base + k * o.b_row + n * o.b_column)) -
         (T)nd_zero(o.quantized.b_zero, o.b_type, o.quantized.b_many, n);
}

template <bool F32, typename T>
static __host__ __device__ inline void nd_matmul_store(const NdMatmul &o, size_t matrix, int m, int n, T sum) {
  const size_t i = (matrix * o.m + m) * o.n + n;
  if (o.quantized.is) {
    nd_store_quantized(o.quantized, o.y, o.y_type, i, (int64_t)sum, m, n);
    return;
  }
  sum = (T)(o.alpha * sum);
  if (o.c) sum += (T)o.beta * nd_get<F32, T>(o.c, o.c_type, (size_t)(m * o.c_row + n * o.c_column));
  nd_set<F32, T>(o.y, o.y_type, i, sum);
}

template <bool F32, typename T>
static inline void nd_matmul_cpu(const NdMatmul &o, size_t matrices) {
#pragma omp parallel for schedule(static) if ((double)matrices * o.m * o.n * o.k > 65536)
  for (size_t row = 0; row < matrices * (size_t)o.m; row++) {
    const size_t matrix = row / o.m;
    const int m = (int)(row % o.m);
    long long a, b;
    nd_places(&o.axes, &o.a_strides, &o.b_strides, matrix, &a, &b);
    for (int n = 0; n < o.n; n++) {
      T sum = 0;
      for (int k = 0; k < o.k; k++) sum += nd_matmul_a<F32, T>(o, a, m, k) * nd_matmul_b<F32, T>(o, b, k, n);
      nd_matmul_store<F32, T>(o, matrix, m, n, sum);
    }
  }
}

/* Grid: tiles of columns, tiles of rows, matrices. */
template <bool F32, typename T>
static __global__ void nd_matmul_kernel(NdMatmul o, size_t matrices) {
  __shared__ T a_tile[ND_MATMUL_TILE][ND_MATMUL_TILE], b_tile[ND_MATMUL_TILE][ND_MATMUL_TILE];
  const int m = blockIdx.y * ND_MATMUL_TILE + threadIdx.y, n = blockIdx.x * ND_MATMUL_TILE + threadIdx.x;
  for (size_t matrix = blockIdx.z; matrix < matrices; matrix += gridDim.z) {
    long long a, b;
    nd_places(&o.axes, &o.a_strides, &o.b_strides, matrix, &a, &b);
    T sum = 0;
    for (int k0 = 0; k0 < o.k; k0 += ND_MATMUL_TILE) {
      const int a_k = k0 + threadIdx.x, b_k = k0 + threadIdx.y;
      a_tile[threadIdx.y][threadIdx.x] = m < o.m && a_k < o.k ? nd_matmul_a<F32, T>(o, a, m, a_k) : (T)0;
      b_tile[threadIdx.y][threadIdx.x] = b_k < o.k && n < o.n ? nd_matmul_b<F32, T>(o, b, b_k, n) : (T)0;
      __syncthreads();
      for (int k = 0; k < ND_MATMUL_TILE; k++) sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
      __syncthreads();
    }
    if (m < o.m && n < o.n) nd_matmul_store<F32, T>(o, matrix, m, n, sum);
  }
}

template <bool F32, typename T>
static inline void nd_matmul_gpu(const NdMatmul &o, size_t matrices) {
  const dim3 block(ND_MATMUL_TILE, ND_MATMUL_TILE);
  const dim3 grid((o.n + ND_MATMUL_TILE - 1) / ND_MATMUL_TILE, (o.m + ND_MATMUL_TILE - 1) / ND_MATMUL_TILE,
                  (unsigned)(matrices < 65535 ? matrices : 65535));
  nd_matmul_kernel<F32, T><<<grid, block>>>(o, matrices);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_ND_MATMUL_CUH */
