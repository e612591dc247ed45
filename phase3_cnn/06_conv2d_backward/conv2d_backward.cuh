/* conv2d_backward.cuh - the gradients of convolution (01_conv2d_naive) as matrix products whose operands are never in
 * memory: implicit GEMMs. float32, NCHW, every shape.
 *
 *     x (N,C,H,W)   w (K,C/groups,R,S)   dy (N,K,P,Q)      dx as x, dw as w, dbias (K)
 *
 *     dx   M = channels, N = inputs (n,h,v),      K = (k,r,s)     for each group
 *     dw   M = filters,  N = weights (c,r,s),     K = (n,p,q)
 *
 * The reference is conv2d_cpu.cuh; the first version of each gradient is conv2d_backward_naive.cuh. Then
 *
 *   conv2d_backward_input_gather     tiles of 64 x 64 in shared memory; for each input and tap it finds the output that
 *                                    reads the input there, if there is one
 *   conv2d_backward_input_gemm       conv2d_backward_input_gemm.cuh: no such test, one product for each phase of the
 *                                    stride; filters turned first; pipelined; stream-K
 *   conv2d_backward_weight_blocks    one block per tile of 64 x 64, which adds up all pixels: too few blocks
 *   conv2d_backward_weight_atomic    the pixels are split, so that there are enough blocks; each adds its sums to dw
 *                                    with atomicAdd, in the order in which blocks finish
 *   conv2d_backward_weight_split     each writes its sums to the workspace, and a second kernel adds them up in order
 *   conv2d_backward_weight_gemm      conv2d_backward_weight_gemm.cuh: large tiles, pipelined, stream-K
 *   conv2d_backward_weight_gemm_atomic   the same with atomicAdd for the parts of tiles
 *   conv2d_backward_bias             dbias: a sum of dy for each filter, also in a fixed order
 *
 * All but the two with atomicAdd give the same bits in every run.
 */
#ifndef PHASE3_CNN_CONV2D_BACKWARD_CUH
#define PHASE3_CNN_CONV2D_BACKWARD_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_backward_input.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_backward_naive.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_backward_weight.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_input_gemm.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_weight_gemm.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Tiles of 64 x 64, 8 products deep, for blocks of 256 threads */

enum { CONV2D_GRADIENT_TILE = 64, CONV2D_GRADIENT_DEPTH = 8, CONV2D_GRADIENT_THREADS = 256 };

/* A row is 4 floats longer than it needs to be: a warp stores 8 rows of 4 columns, which are then in 32 banks. */
typedef float Conv2dGradientTile[CONV2D_GRADIENT_DEPTH][CONV2D_GRADIENT_TILE + 4];

/* sum += the products of a pair of tiles: thread t has rows 4 (t / 16) ... + 3 and columns 4 (t % 16) ... + 3. */
static __device__ __forceinline__ void conv2d_gradient_products(float (&sum)[4][4], const Conv2dGradientTile &a_tile,
                                                                const Conv2dGradientTile &b_tile) {
  int row = threadIdx.x / 16 * 4, col = threadIdx.x % 16 * 4;
#pragma unroll
  for (int i = 0; i < CONV2D_GRADIENT_DEPTH; i++) {
    float left[4], right[4];
    matmul_fragment<0>(left, &a_tile[i][row]);
    matmul_fragment<0>(right, &b_tile[i][col]);
    matmul_outer_product(sum, left, right);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The gradient of the input: a gather */

/* The output that has read input (h,v) through tap (r,s), as its index in the plane of a filter; -1: there is none. */
static __device__ __forceinline__ int conv2d_output_of(Conv2dShape shape, int p_count, int q_count, int h, int v, int r,
                                                       int s) {
  int index = -1;
  // >>> exercise backward_input_gather: find the output (p,q) that reads input (h,v) at tap (r,s); index = its place
  // hint: output p reads row p * stride_h - padding_h + r * dilation_h; solve that for p
  // hint: there is an output only if the division has no remainder, and if 0 <= p < p_count; the same for q
  // hint: int down = h + shape.padding_h - r * shape.dilation_h; p = down / stride_h, if down >= 0 and no remainder
  int down = h + shape.padding_h - r * shape.dilation_h, right = v + shape.padding_w - s * shape.dilation_w;
  bool meets = down >= 0 && right >= 0 && down % shape.stride_h == 0 && right % shape.stride_w == 0;
  int p = down / shape.stride_h, q = right / shape.stride_w;
  if (meets && p < p_count && q < q_count) index = p * q_count + q;
  // <<< exercise
  return index;
}

/* A block computes 64 channels of 64 inputs. Product number i of the sum belongs to filter i / (R S) and to tap
 * i % (R S). blockIdx.y counts the tiles of channels of all groups. */
static __global__ void __launch_bounds__(CONV2D_GRADIENT_THREADS)
    conv2d_backward_input_gather_kernel(float *dx, const float *dy, const float *w, Conv2dShape shape, int p_count,
                                        int q_count) {
  const int tile = CONV2D_GRADIENT_TILE, deep = CONV2D_GRADIENT_DEPTH;
  __shared__ __align__(16) Conv2dGradientTile a_tile, b_tile;
  int channels = shape.c / shape.groups, filters = shape.k / shape.groups, area = shape.r * shape.s;
  int tile_rows = (channels + tile - 1) / tile, group = blockIdx.y / tile_rows, c0 = blockIdx.y % tile_rows * tile;
  size_t pixels = (size_t)shape.n * shape.h * shape.w, plane = (size_t)shape.h * shape.w;

  /* what this thread loads: of w, product t % 8 of every 32nd channel; of dy, every fourth product of one input */
  int a_deep = threadIdx.x % deep, a_row = threadIdx.x / deep, b_col = threadIdx.x % tile, b_deep = threadIdx.x / tile;
  size_t pixel = (size_t)blockIdx.x * tile + b_col, n = pixel / plane;
  int h = (int)(pixel % plane / shape.w), v = (int)(pixel % shape.w);
  const float *image = dy + (n * shape.k + group * filters) * p_count * q_count;
  const float *first = w + (size_t)group * filters * channels * area;

  float sum[4][4] = {};
  for (int i0 = 0; i0 < filters * area; i0 += deep) {
    int a_i = i0 + a_deep, k = a_i / area;
    for (int row = a_row; row < tile; row += 32) {
      bool inside = a_i < filters * area && c0 + row < channels;
      a_tile[a_deep][row] = inside ? first[((size_t)k * channels + c0 + row) * area + a_i % area] : 0.0f;
    }
    for (int i = b_deep; i < deep; i += 4) {
      int b_i = i0 + i, tap = b_i % area, at = -1;
      if (b_i < filters * area && pixel < pixels)
        at = conv2d_output_of(shape, p_count, q_count, h, v, tap / shape.s, tap % shape.s);
      b_tile[i][b_col] = at >= 0 ? image[(size_t)(b_i / area) * p_count * q_count + at] : 0.0f;
    }
    __syncthreads();
    conv2d_gradient_products(sum, a_tile, b_tile);
    __syncthreads();
  }

  int row = c0 + threadIdx.x / 16 * 4;
  for (int j = 0; j < 4; j++) {
    size_t at = (size_t)blockIdx.x * tile + threadIdx.x % 16 * 4 + j;
    if (at >= pixels) continue;
    float *to = dx + (at / plane * shape.c + group * channels) * plane + at % plane;
    for (int i = 0; i < 4; i++)
      if (row + i < channels) to[(size_t)(row + i) * plane] = sum[i][j];
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The gradient of the filters: one block per tile, or one per tile and split */

/* A block computes 64 filters x 64 weights, of the pixels of split blockIdx.z. Split z writes to `out` + z times the
 * number of weights; ATOMIC: all add to the same. blockIdx.y counts the tiles of filters of all groups. */
template <bool ATOMIC>
static __global__ void __launch_bounds__(CONV2D_GRADIENT_THREADS)
    conv2d_backward_weight_tile_kernel(float *out, const float *dy, const float *x, Conv2dShape shape, int p_count,
                                       int q_count, size_t split_pixels) {
  const int tile = CONV2D_GRADIENT_TILE, deep = CONV2D_GRADIENT_DEPTH;
  __shared__ __align__(16) Conv2dGradientTile a_tile, b_tile;
  int channels = shape.c / shape.groups, filters = shape.k / shape.groups, area = shape.r * shape.s;
  int weights = channels * area, outputs = p_count * q_count;
  int tile_rows = (filters + tile - 1) / tile, group = blockIdx.y / tile_rows, k0 = blockIdx.y % tile_rows * tile;
  size_t pixels = (size_t)shape.n * outputs, first = 0, last = pixels;
  // >>> exercise backward_weight_split: `first` and `last`: this block adds up pixels first ... last - 1 of the batch
  // hint: split number blockIdx.z has split_pixels pixels, those after the splits before it
  // hint: the last split has fewer, where split_pixels does not divide `pixels`
  // hint: first = blockIdx.z * split_pixels; last = the smaller one of first + split_pixels and pixels
  first = blockIdx.z * split_pixels;
  last = min(first + split_pixels, pixels);
  // <<< exercise

  /* this thread loads pixel t % 8 of every 32nd filter and of every 32nd weight (c,r,s), whose places it keeps */
  int i = threadIdx.x % deep, row0 = threadIdx.x / deep, col0 = blockIdx.x * tile + row0;
  size_t n = (first + i) / outputs;
  int pixel = (int)((first + i) % outputs), place[2], down[2], right[2];
  for (int j = 0; j < 2; j++) {
    int col = col0 + 32 * j;
    down[j] = col % area / shape.s * shape.dilation_h;
    right[j] = col % shape.s * shape.dilation_w;
    place[j] = (col / area * shape.h + down[j]) * shape.w + right[j];
    if (col >= weights) down[j] = INT_MIN / 2; /* never inside */
  }

  float sum[4][4] = {};
  for (; first < last; first += deep) {
    bool inside = first + i < last;
    const float *a_from = dy + (n * shape.k + group * filters + k0) * outputs + pixel;
    int h = pixel / q_count * shape.stride_h - shape.padding_h, v = pixel % q_count * shape.stride_w - shape.padding_w;
    const float *b_from = x + (n * shape.c + group * channels) * shape.h * shape.w + h * shape.w + v;
    for (int j = 0; j < 2; j++) {
      int row = row0 + 32 * j;
      bool in_image = (unsigned)(h + down[j]) < (unsigned)shape.h && (unsigned)(v + right[j]) < (unsigned)shape.w;
      a_tile[i][row] = inside && k0 + row < filters ? a_from[(size_t)row * outputs] : 0.0f;
      b_tile[i][row] = inside && in_image ? b_from[place[j]] : 0.0f;
    }
    for (pixel += deep; pixel >= outputs; pixel -= outputs) n++;
    __syncthreads();
    conv2d_gradient_products(sum, a_tile, b_tile);
    __syncthreads();
  }

  float *to = out + (ATOMIC ? 0 : blockIdx.z * (size_t)shape.k * weights) + (size_t)group * filters * weights;
  for (int a = 0; a < 4; a++)
    for (int b = 0; b < 4; b++) {
      int row = k0 + threadIdx.x / 16 * 4 + a, col = blockIdx.x * tile + threadIdx.x % 16 * 4 + b;
      if (row >= filters || col >= weights) continue;
      float *at = &to[(size_t)row * weights + col];
      if (ATOMIC) {
        // >>> exercise backward_weight_atomic: add sum[a][b] to *at, to which the blocks of other splits add, too
        // hint: *at += ... is a load, an addition and a store; what another block stores in between is lost
        // hint: the GPU has one instruction that does all three, and lets no other access come in between
        // hint: atomicAdd(at, ...)
        atomicAdd(at, sum[a][b]);
        // <<< exercise
      } else {
        *at = sum[a][b];
      }
    }
}

/* out[i] = the sum of parts[0][i], parts[1][i], ..., in this order. */
static __global__ void conv2d_sum_parts_kernel(float *out, const float *parts, int count, int splits) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
#pragma unroll 8 /* so that eight loads are in flight at once */
  for (int split = 0; split < splits; split++) sum += parts[(size_t)split * count + i];
  out[i] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The gradient of the bias */

enum { CONV2D_BIAS_WARPS = 8 };

/* parts (slices,K): the sum of dy of filter blockIdx.x over the images of slice blockIdx.y. A warp adds up every eighth
 * image, a lane every 32nd output of it. */
static __global__ void __launch_bounds__(32 * CONV2D_BIAS_WARPS)
    conv2d_backward_bias_kernel(float *parts, const float *dy, int images, int filters, int outputs, int slice_images) {
  __shared__ float sums[CONV2D_BIAS_WARPS];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, k = blockIdx.x;
  int first = blockIdx.y * slice_images, last = min(first + slice_images, images);
  float sum = 0;
  for (int n = first + warp; n < last; n += CONV2D_BIAS_WARPS) {
    const float *from = dy + ((size_t)n * filters + k) * outputs;
#pragma unroll 8
    for (int i = lane; i < outputs; i += 32) sum += from[i];
  }
  // >>> exercise backward_bias_sum: parts[blockIdx.y * filters + k] = the sum of `sum` over all threads of the block
  // hint: first each warp for itself: __shfl_down_sync() with 16, 8, 4, 2, 1; then the warps' sums through `sums`
  // hint: lane 0 of each warp writes sums[warp]; after a barrier one thread adds up CONV2D_BIAS_WARPS numbers
  // hint: for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int i = 0; i < CONV2D_BIAS_WARPS; i++) total += sums[i];
    parts[blockIdx.y * filters + k] = total;
  }
  // <<< exercise
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers. `workspace` has at least conv2d_backward_floats() floats. */

/* How many parts the images or pixels are split into: as many as give every multiprocessor `per_multiprocessor` blocks,
 * if each split has `blocks` of them, but no part of fewer than `least` pixels or images. */
static inline int conv2d_splits(size_t blocks, int per_multiprocessor, size_t count, size_t least) {
  size_t wanted = ((size_t)conv2d_multiprocessors() * per_multiprocessor + blocks - 1) / blocks;
  size_t most = (count + least - 1) / least;
  return (int)(wanted < most ? wanted : most);
}

enum { CONV2D_BIAS_BLOCKS = 8, CONV2D_SPLIT_BLOCKS = 4, CONV2D_SPLIT_PIXELS = 256 };

static inline int conv2d_bias_slices(Conv2dShape s) {
  return conv2d_splits(s.k, CONV2D_BIAS_BLOCKS, s.n, CONV2D_BIAS_WARPS);
}

static inline void conv2d_backward_bias(float *dbias, const float *dy, Conv2dShape s, float *workspace) {
  int slices = conv2d_bias_slices(s), slice_images = (s.n + slices - 1) / slices;
  conv2d_backward_bias_kernel<<<dim3(s.k, slices), 32 * CONV2D_BIAS_WARPS>>>(
      workspace, dy, s.n, s.k, conv2d_out_h(s) * conv2d_out_w(s), slice_images);
  CUDA_CHECK_LAUNCH();
  conv2d_sum_parts_kernel<<<(s.k + 255) / 256, 256>>>(dbias, workspace, s.k, slices);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_backward_input_gather(float *dx, const float *dy, const float *w, Conv2dShape s, float *) {
  const int tile = CONV2D_GRADIENT_TILE;
  size_t pixels = (size_t)s.n * s.h * s.w;
  dim3 grid((unsigned)((pixels + tile - 1) / tile), (s.c / s.groups + tile - 1) / tile * s.groups);
  conv2d_backward_input_gather_kernel<<<grid, CONV2D_GRADIENT_THREADS>>>(dx, dy, w, s, conv2d_out_h(s),
                                                                         conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

/* The grid of conv2d_backward_weight_tile_kernel, but for the splits. */
static inline dim3 conv2d_weight_tiles(Conv2dShape s) {
  const int tile = CONV2D_GRADIENT_TILE;
  return dim3((s.c / s.groups * s.r * s.s + tile - 1) / tile, (s.k / s.groups + tile - 1) / tile * s.groups);
}

static inline int conv2d_weight_splits(Conv2dShape s) {
  dim3 tiles = conv2d_weight_tiles(s);
  return conv2d_splits((size_t)tiles.x * tiles.y, CONV2D_SPLIT_BLOCKS, (size_t)s.n * conv2d_out_h(s) * conv2d_out_w(s),
                       CONV2D_SPLIT_PIXELS);
}

/* The sums of each split to `out`; ATOMIC: added to `out`. */
template <bool ATOMIC>
static inline void conv2d_backward_weight_tiles(float *out, const float *dy, const float *x, Conv2dShape s,
                                                int splits) {
  dim3 grid = conv2d_weight_tiles(s);
  size_t pixels = (size_t)s.n * conv2d_out_h(s) * conv2d_out_w(s);
  grid.z = splits;
  conv2d_backward_weight_tile_kernel<ATOMIC><<<grid, CONV2D_GRADIENT_THREADS>>>(
      out, dy, x, s, conv2d_out_h(s), conv2d_out_w(s), (pixels + splits - 1) / splits);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_backward_weight_blocks(float *dw, float *dbias, const float *dy, const float *x,
                                                 Conv2dShape s, float *workspace) {
  conv2d_backward_weight_tiles<false>(dw, dy, x, s, 1);
  if (dbias != NULL) conv2d_backward_bias(dbias, dy, s, workspace);
}

static inline void conv2d_backward_weight_atomic(float *dw, float *dbias, const float *dy, const float *x,
                                                 Conv2dShape s, float *workspace) {
  CUDA_CHECK(cudaMemsetAsync(dw, 0, conv2d_w_count(s) * sizeof *dw));
  conv2d_backward_weight_tiles<true>(dw, dy, x, s, conv2d_weight_splits(s));
  if (dbias != NULL) conv2d_backward_bias(dbias, dy, s, workspace);
}

static inline void conv2d_backward_weight_split(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s,
                                                float *workspace) {
  int splits = conv2d_weight_splits(s), count = (int)conv2d_w_count(s);
  if (dbias != NULL) conv2d_backward_bias(dbias, dy, s, workspace); /* first: both use the workspace */
  conv2d_backward_weight_tiles<false>(workspace, dy, x, s, splits);
  conv2d_sum_parts_kernel<<<(count + 255) / 256, 256>>>(dw, workspace, count, splits);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_backward_weight_gemm(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s,
                                               float *workspace) {
  if (!conv2d_weight_gemm_fits(s)) {
    conv2d_backward_weight_split(dw, dbias, dy, x, s, workspace);
    return;
  }
  if (dbias != NULL) conv2d_backward_bias(dbias, dy, s, workspace);
  conv2d_backward_weight_products(dw, dy, x, s, workspace, false);
}

/* The same with atomicAdd for the parts of tiles. */
static inline void conv2d_backward_weight_gemm_atomic(float *dw, float *dbias, const float *dy, const float *x,
                                                      Conv2dShape s, float *workspace) {
  if (!conv2d_weight_gemm_fits(s)) {
    conv2d_backward_weight_atomic(dw, dbias, dy, x, s, workspace);
    return;
  }
  if (dbias != NULL) conv2d_backward_bias(dbias, dy, s, workspace);
  conv2d_backward_weight_products(dw, dy, x, s, workspace, true);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Workspaces, of this batch and every smaller one */

static inline size_t conv2d_larger(size_t a, size_t b) { return a > b ? a : b; }

static inline size_t conv2d_bias_floats(Conv2dShape s) { return (size_t)conv2d_bias_slices(s) * s.k; }
static inline size_t conv2d_weight_split_floats(Conv2dShape s) {
  return conv2d_larger(conv2d_weight_splits(s) * conv2d_w_count(s), conv2d_bias_floats(s));
}
static inline size_t conv2d_backward_gemm_weight_floats(Conv2dShape s) {
  if (!conv2d_weight_gemm_fits(s)) return conv2d_weight_split_floats(s);
  return conv2d_larger(conv2d_weight_gemm_floats(s), conv2d_bias_floats(s));
}
static inline size_t conv2d_backward_gemm_floats(Conv2dShape s) {
  return conv2d_larger(conv2d_backward_gemm_weight_floats(s), conv2d_input_gemm_floats(s));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The method of networks: all three operations as implicit GEMMs. Where a dimension of a gradient is so small that most
 * of a tile would be empty, as in LeNet, the kernels of lesson 1 are faster. */

enum { CONV2D_FEW_CHANNELS = 8, CONV2D_FEW_FILTERS = 16 };

static inline void conv2d_method_backward_input(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                float *workspace) {
  if (conv2d_is_dense(s) && s.c <= CONV2D_FEW_CHANNELS)
    conv2d_backward_input_gpu(dx, dy, w, s);
  else
    conv2d_backward_input_gemm(dx, dy, w, s, workspace);
}

static inline void conv2d_method_backward_weight(float *dw, float *dbias, const float *dy, const float *x,
                                                 Conv2dShape s, float *workspace) {
  if (conv2d_is_dense(s) && s.k <= CONV2D_FEW_FILTERS)
    conv2d_backward_weight_gpu(dw, dbias, dy, x, s, workspace);
  else
    conv2d_backward_weight_gemm(dw, dbias, dy, x, s, workspace);
}

static inline size_t conv2d_gemm_method_floats(Conv2dShape s) {
  size_t input = conv2d_is_dense(s) && s.c <= CONV2D_FEW_CHANNELS ? 0 : conv2d_input_gemm_floats(s);
  size_t weight = conv2d_is_dense(s) && s.k <= CONV2D_FEW_FILTERS ? conv2d_workspace_floats_gpu(s)
                                                                  : conv2d_backward_gemm_weight_floats(s);
  return conv2d_larger(conv2d_larger(input, weight), conv2d_implicit_gemm_workspace_floats(s));
}

static const Conv2dMethod conv2d_gemm_method = {"implicit_gemm",
                                                NULL,
                                                conv2d_gemm_method_floats,
                                                conv2d_forward_implicit_gemm,
                                                conv2d_method_backward_input,
                                                conv2d_method_backward_weight,
                                                conv2d_implicit_gemm_workspace_floats};

#endif /* PHASE3_CNN_CONV2D_BACKWARD_CUH */
