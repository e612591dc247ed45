/* linear_relu.cuh - a linear layer with ReLU behind it, in two launches: one forward, one backward.
 *
 *   x (B,I) -> y (B,O), with w (O,I) and bias (O)
 *   forward    y[b][o] = max(0, bias[o] + sum over i of x[b][i] * w[o][i])
 *   backward   d = dy where y > 0, else 0;   dx (B,I) = d w,   dw (O,I) = d^T x,   dbias (O) = column sums of d
 *
 * Layer by layer the same takes two launches forward (matmul_bias_gpu, ReLU) and four backward (ReLU, dw, dbias, dx). A
 * launch costs about 1.5 us even in a CUDA graph, as much as the products of a small layer. So ReLU goes into the
 * epilogue; the kernels of backward set d while they fetch dy; the blocks that compute the first columns of dw also add
 * up dbias; and the blocks of dw and of dx, which do not need each other, are one grid.
 *
 * linear_relu_fits() says for which layers: the others are large enough that a launch does not matter. With relu = 0
 * the functions are those of a linear layer without ReLU. Products are added up in the order of matmul_gpu(): the same
 * bits.
 *
 * A layer of many inputs and few outputs has few tiles of y, and each of them a long sum.
 * linear_relu_forward_split_gpu() divides the sums among blocks, and a second launch adds up the parts in their order:
 * linear_relu_splits().
 */
#ifndef PHASE2_MLP_LINEAR_RELU_CUH
#define PHASE2_MLP_LINEAR_RELU_CUH

#include "phase2_mlp/01_perceptron/linear.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum {
  LINEAR_RELU_TILE = 16, /* of an output, TILE x TILE: small, so that a small layer has many blocks */
  LINEAR_RELU_WIDE = 32, /* of dx where that still makes LINEAR_RELU_MANY tiles: fewer loads per product */
  LINEAR_RELU_MANY = 128,
  LINEAR_RELU_GROUPS = 4,  /* of threads, which share out the depth */
  LINEAR_RELU_BLOCK = 256, /* threads: 8 x 8 of a group, each with 2 x 2 outputs, or 4 x 4 */
  LINEAR_RELU_LOADS = 8,   /* of a thread for a tile of A or B, which is DEPTH = 8 * 256 / TILE deep */
  LINEAR_RELU_SHARED =
      2 * LINEAR_RELU_BLOCK * LINEAR_RELU_LOADS / LINEAR_RELU_TILE * (LINEAR_RELU_TILE + 2), /* floats */
  LINEAR_RELU_MOST = 512 * 512, /* numbers of an output; matmul_gpu() takes larger tiles from there on */
  LINEAR_RELU_LONG = 1024,      /* inputs from which on a sum is worth dividing */
  LINEAR_RELU_PART = 256,       /* products of a part, at least */
  LINEAR_RELU_SPLITS = 16,      /* parts at most */
  LINEAR_RELU_SPLIT_BLOCKS = 1024,
};

/* One tile of C (M,N) = op(A) op(B). */
typedef struct LinearTile {
  float *c;
  const float *a, *b;
  const float *gate; /* of A, in its layout: an element counts where its gate is > 0; NULL: all count */
  const float *bias; /* (N), added to each row; NULL: none */
  float *row_sums;   /* (M): the sums of op(A) along K, written with the first columns of C; NULL: not wanted */
  int m, n, k, relu;
  int first, last; /* of K: what is added up */
} LinearTile;

/* Of an operand (rows,K), which lies as (K,rows) with ALONG_ROWS: this thread's share of a tile, as
 * matmul_tile_fetch(); 0 where k is `last` or more. The offsets are short: an operand has fewer than 2^31 numbers. */
template <int SIZE, bool ALONG_ROWS>
static __device__ __forceinline__ void linear_relu_fetch(float (&share)[LINEAR_RELU_LOADS], const float *operand,
                                                         int row0, int k0, int rows, int k, int last) {
  const int depth = LINEAR_RELU_LOADS * LINEAR_RELU_BLOCK / SIZE;
  const int step = LINEAR_RELU_BLOCK / (ALONG_ROWS ? SIZE : depth); /* from one load to the next: columns, or rows */
  const int row = row0 + threadIdx.x % (ALONG_ROWS ? SIZE : LINEAR_RELU_BLOCK) / (ALONG_ROWS ? 1 : depth);
  const int col = k0 + threadIdx.x / (ALONG_ROWS ? SIZE : 1) % depth;
  const int inside = ALONG_ROWS   ? row < rows ? last - col : 0
                     : col < last ? rows - row
                                  : 0; /* columns, or rows, left */
  const float *from = operand + (ALONG_ROWS ? col * rows + row : row * k + col);
#pragma unroll
  for (int i = 0; i < LINEAR_RELU_LOADS; i++, from += step * (ALONG_ROWS ? rows : k))
    share[i] = i * step < inside ? *from : 0.0f;
}

/* In shared memory k is the slow dimension, in rows of SIZE + 2 floats: even, because a thread reads two at a time. */
template <int SIZE, bool ALONG_ROWS>
static __device__ __forceinline__ void linear_relu_store(float *tile, const float (&share)[LINEAR_RELU_LOADS]) {
  const int depth = LINEAR_RELU_LOADS * LINEAR_RELU_BLOCK / SIZE;
#pragma unroll
  for (int i = 0; i < LINEAR_RELU_LOADS; i++) {
    const int element = threadIdx.x + i * LINEAR_RELU_BLOCK;
    const int row = ALONG_ROWS ? element % SIZE : element / depth;
    const int col = ALONG_ROWS ? element / SIZE : element % depth;
    tile[col * (SIZE + 2) + row] = share[i];
  }
}

/* The tile number `tile` of C, by the whole block: see matmul_blocked_kernel(). A lies as (K,M) with TRANSPOSE_A, B as
 * (N,K) with TRANSPOSE_B. shared: LINEAR_RELU_SHARED floats. */
template <int SIZE, bool TRANSPOSE_A, bool TRANSPOSE_B>
static __device__ __forceinline__ void linear_relu_tile(const LinearTile &t, int tile, float *shared) {
  const int depth = LINEAR_RELU_LOADS * LINEAR_RELU_BLOCK / SIZE, groups = LINEAR_RELU_GROUPS, pitch = SIZE + 2;
  const int pairs = SIZE / 16; /* of rows, and of columns, that a thread computes; they are 16 apart */
  const int columns = (t.n + SIZE - 1) / SIZE, row0 = tile / columns * SIZE, col0 = tile % columns * SIZE;
  const int group = threadIdx.x / 64, y = threadIdx.x % 64 / 8 * 2, x = threadIdx.x % 8 * 2;
  const bool sums = t.row_sums != NULL && col0 == 0;
  float *a_tile = shared, *b_tile = shared + depth * pitch;

  float a_share[LINEAR_RELU_LOADS], gate[LINEAR_RELU_LOADS] = {}, b_share[LINEAR_RELU_LOADS];
  float sum[2 * pairs][2 * pairs] = {}, row_sum = 0;
  linear_relu_fetch<SIZE, TRANSPOSE_A>(a_share, t.a, row0, t.first, t.m, t.k, t.last);
  if (t.gate != NULL) linear_relu_fetch<SIZE, TRANSPOSE_A>(gate, t.gate, row0, t.first, t.m, t.k, t.last);
  linear_relu_fetch<SIZE, !TRANSPOSE_B>(b_share, t.b, col0, t.first, t.n, t.k, t.last);
  for (int k0 = t.first; k0 < t.last; k0 += depth) {
    if (t.gate != NULL) /* here: where it is fetched, the thread would wait for it */
#pragma unroll
      for (int i = 0; i < LINEAR_RELU_LOADS; i++) a_share[i] = gate[i] > 0 ? a_share[i] : 0.0f;
    linear_relu_store<SIZE, TRANSPOSE_A>(a_tile, a_share);
    linear_relu_store<SIZE, !TRANSPOSE_B>(b_tile, b_share);
    __syncthreads();
    if (k0 + depth < t.last) {
      linear_relu_fetch<SIZE, TRANSPOSE_A>(a_share, t.a, row0, k0 + depth, t.m, t.k, t.last);
      if (t.gate != NULL) linear_relu_fetch<SIZE, TRANSPOSE_A>(gate, t.gate, row0, k0 + depth, t.m, t.k, t.last);
      linear_relu_fetch<SIZE, !TRANSPOSE_B>(b_share, t.b, col0, k0 + depth, t.n, t.k, t.last);
    }
    const int last = min(depth, t.last - k0); /* beyond it are zeros */
#pragma unroll 4
    for (int i = group; i < last; i += groups) {
      float2 a[pairs], b[pairs];
#pragma unroll
      for (int j = 0; j < pairs; j++) {
        a[j] = *(const float2 *)(a_tile + i * pitch + y + 16 * j);
        b[j] = *(const float2 *)(b_tile + i * pitch + x + 16 * j);
      }
#pragma unroll
      for (int r = 0; r < pairs; r++)
#pragma unroll
        for (int s = 0; s < pairs; s++) {
          sum[2 * r][2 * s] = fmaf(a[r].x, b[s].x, sum[2 * r][2 * s]);
          sum[2 * r][2 * s + 1] = fmaf(a[r].x, b[s].y, sum[2 * r][2 * s + 1]);
          sum[2 * r + 1][2 * s] = fmaf(a[r].y, b[s].x, sum[2 * r + 1][2 * s]);
          sum[2 * r + 1][2 * s + 1] = fmaf(a[r].y, b[s].y, sum[2 * r + 1][2 * s + 1]);
        }
    }
    if (sums) /* a thread adds up every 256 / SIZE-th element of row threadIdx.x % SIZE */
      for (int i = threadIdx.x / SIZE; i < last; i += LINEAR_RELU_BLOCK / SIZE)
        row_sum += a_tile[i * pitch + threadIdx.x % SIZE];
    __syncthreads(); /* the tiles are overwritten next */
  }

  float *partial = shared; /* (groups,SIZE,SIZE), and where they are wanted the row sums of each thread behind it */
#pragma unroll
  for (int r = 0; r < 2 * pairs; r++)
#pragma unroll
    for (int s = 0; s < 2 * pairs; s++)
      partial[(group * SIZE + y + r / 2 * 16 + r % 2) * SIZE + x + s / 2 * 16 + s % 2] = sum[r][s];
  if (sums && SIZE == LINEAR_RELU_TILE) partial[groups * SIZE * SIZE + threadIdx.x] = row_sum;
  __syncthreads();
#pragma unroll
  for (int element = threadIdx.x; element < SIZE * SIZE; element += LINEAR_RELU_BLOCK) {
    const int row = row0 + element / SIZE, col = col0 + element % SIZE;
    if (row >= t.m || col >= t.n) continue;
    float total = partial[element];
    for (int g = 1; g < groups; g++) total += partial[g * SIZE * SIZE + element];
    if (t.bias != NULL) total += t.bias[col];
    t.c[row * t.n + col] = t.relu && total < 0 ? 0.0f : total;
  }
  if (sums && SIZE == LINEAR_RELU_TILE && threadIdx.x < SIZE && row0 + (int)threadIdx.x < t.m) {
    float total = 0;
    for (int part = 0; part < LINEAR_RELU_BLOCK / SIZE; part++)
      total += partial[groups * SIZE * SIZE + part * SIZE + threadIdx.x];
    t.row_sums[row0 + threadIdx.x] = total;
  }
}

static __global__ void __launch_bounds__(LINEAR_RELU_BLOCK, 3) linear_relu_forward_kernel(LinearTile y) {
  __shared__ __align__(16) float shared[LINEAR_RELU_SHARED];
  linear_relu_tile<LINEAR_RELU_TILE, false, true>(y, blockIdx.x, shared);
}

/* Block (tile, part): `depth` products of each sum. The parts (splits,M,N) lie one after the other from y.c on. */
static __global__ void __launch_bounds__(LINEAR_RELU_BLOCK, 3) linear_relu_split_kernel(LinearTile y, int depth) {
  __shared__ __align__(16) float shared[LINEAR_RELU_SHARED];
  y.first = blockIdx.y * depth;
  y.last = min(y.k, y.first + depth);
  y.c += (size_t)blockIdx.y * y.m * y.n;
  linear_relu_tile<LINEAR_RELU_TILE, false, true>(y, blockIdx.x, shared);
}

/* One thread per output. */
static __global__ void linear_relu_sum_kernel(float *y, const float *parts, const float *bias, int splits, int count,
                                              int out, int relu) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = bias[i % out];
#pragma unroll 4
  for (int part = 0; part < splits; part++) sum += parts[(size_t)part * count + i];
  y[i] = relu && sum < 0 ? 0.0f : sum;
}

/* The first `dw_tiles` blocks compute dw and dbias, the others dx. */
template <int DX_SIZE>
static __global__ void __launch_bounds__(LINEAR_RELU_BLOCK, 3)
    linear_relu_backward_kernel(LinearTile dw, LinearTile dx, int dw_tiles) {
  __shared__ __align__(16) float shared[LINEAR_RELU_SHARED];
  if ((int)blockIdx.x < dw_tiles)
    linear_relu_tile<LINEAR_RELU_TILE, true, false>(dw, blockIdx.x, shared);
  else
    linear_relu_tile<DX_SIZE, false, false>(dx, blockIdx.x - dw_tiles, shared);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* Whether the kernels above are the right ones: a larger layer takes linear_*_gpu() and ReLU. */
static inline int linear_relu_fits(int batch, int in, int out) {
  const double most = LINEAR_RELU_MOST;
  return (double)batch * in < most && (double)batch * out < most && (double)in * out < most;
}

/* The same for backward: sums over a small batch are short, so dw may be larger. */
static inline int linear_relu_backward_fits(int batch, int in, int out) {
  if (batch > 64) return linear_relu_fits(batch, in, out);
  return (double)batch * in < LINEAR_RELU_MOST && (double)in * out < 4.0 * LINEAR_RELU_MOST;
}

static inline int linear_relu_tiles(int m, int n, int size) { return (m + size - 1) / size * ((n + size - 1) / size); }

/* How many parts the sums of y are divided into; 1: linear_relu_forward_gpu(), or matmul_gpu(), is the better one. */
static inline int linear_relu_splits(int batch, int in, int out) {
  if (in < LINEAR_RELU_LONG || (double)batch * out >= LINEAR_RELU_MOST) return 1;
  const int tiles = linear_relu_tiles(batch, out, LINEAR_RELU_TILE), room = LINEAR_RELU_SPLIT_BLOCKS / tiles;
  int splits = in / LINEAR_RELU_PART;
  if (splits > LINEAR_RELU_SPLITS) splits = LINEAR_RELU_SPLITS;
  return splits < room ? splits : room > 1 ? room : 1;
}

/* Of the workspace of linear_relu_forward_split_gpu(). */
static inline size_t linear_relu_split_floats(int batch, int in, int out) {
  const int splits = linear_relu_splits(batch, in, out);
  return splits > 1 ? (size_t)splits * batch * out : 0;
}

static inline void linear_relu_forward_split_gpu(float *y, const float *x, const float *w, const float *bias, int batch,
                                                 int in, int out, int relu, float *workspace) {
  const int splits = linear_relu_splits(batch, in, out), count = batch * out;
  const LinearTile tile = {workspace, x, w, NULL, NULL, NULL, batch, out, in, 0, 0, in};
  const dim3 grid((unsigned)linear_relu_tiles(batch, out, LINEAR_RELU_TILE), (unsigned)splits);
  linear_relu_split_kernel<<<grid, LINEAR_RELU_BLOCK>>>(tile, (in + splits - 1) / splits);
  CUDA_CHECK_LAUNCH();
  linear_relu_sum_kernel<<<(count + 255) / 256, 256>>>(y, workspace, bias, splits, count, out, relu);
  CUDA_CHECK_LAUNCH();
}

static inline void linear_relu_forward_gpu(float *y, const float *x, const float *w, const float *bias, int batch,
                                           int in, int out, int relu) {
  const LinearTile tile = {y, x, w, NULL, bias, NULL, batch, out, in, relu, 0, in};
  linear_relu_forward_kernel<<<linear_relu_tiles(batch, out, LINEAR_RELU_TILE), LINEAR_RELU_BLOCK>>>(tile);
  CUDA_CHECK_LAUNCH();
}

/* dx may be NULL. y is not read where relu is 0. */
static inline void linear_relu_backward_gpu(float *dx, float *dw, float *dbias, const float *dy, const float *y,
                                            const float *x, const float *w, int batch, int in, int out, int relu) {
  const float *gate = relu ? y : NULL;
  const LinearTile weight = {dw, dy, x, gate, NULL, dbias, out, in, batch, 0, 0, batch};
  const LinearTile input = {dx, dy, w, gate, NULL, NULL, batch, in, out, 0, 0, out};
  const int wide = dx && linear_relu_tiles(batch, in, LINEAR_RELU_WIDE) >= LINEAR_RELU_MANY;
  const int dw_tiles = linear_relu_tiles(out, in, LINEAR_RELU_TILE);
  const int dx_tiles = dx ? linear_relu_tiles(batch, in, wide ? LINEAR_RELU_WIDE : LINEAR_RELU_TILE) : 0;
  if (wide)
    linear_relu_backward_kernel<LINEAR_RELU_WIDE><<<dw_tiles + dx_tiles, LINEAR_RELU_BLOCK>>>(weight, input, dw_tiles);
  else
    linear_relu_backward_kernel<LINEAR_RELU_TILE><<<dw_tiles + dx_tiles, LINEAR_RELU_BLOCK>>>(weight, input, dw_tiles);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE2_MLP_LINEAR_RELU_CUH */
