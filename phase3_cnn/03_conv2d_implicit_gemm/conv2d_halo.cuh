/* conv2d_halo.cuh - convolution with tiles in shared memory: the first two versions of the lesson. float32, NCHW, any
 * stride, padding, dilation and groups. The reference is conv2d_forward_cpu().
 *
 *   conv2d_forward_halo   a block keeps a patch of one channel, with its halo, and 8 filters in shared memory
 *   conv2d_forward_gemm    tiles of a matrix product; the second matrix is computed, element by element, where it is
 *                          copied to shared memory (an implicit matrix product)
 *
 * conv2d_gemm_register.cuh and conv2d_implicit_gemm.cuh go on from here.
 */
#ifndef PHASE3_CNN_CONV2D_HALO_CUH
#define PHASE3_CNN_CONV2D_HALO_CUH

#include "common/check.h"
#include "common/shared_memory_limit.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_gemm.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* A tile of the image in shared memory */

enum { CONV2D_TILE_ROWS = 8, CONV2D_TILE_COLUMNS = 32, CONV2D_TILE_FILTERS = 8 };

/* The part of a channel that CONV2D_TILE_ROWS x CONV2D_TILE_COLUMNS pixels read: the tile and its halo. */
static __host__ __device__ __forceinline__ long long conv2d_patch_h(Conv2dShape s) {
  return (CONV2D_TILE_ROWS - 1LL) * s.stride_h + conv2d_span_h(s);
}
static __host__ __device__ __forceinline__ long long conv2d_patch_w(Conv2dShape s) {
  return (CONV2D_TILE_COLUMNS - 1LL) * s.stride_w + conv2d_span_w(s);
}

/* One thread per pixel of a tile, for 8 filters; one channel after the other. A pixel of the patch is loaded from x
 * once per block, and read from shared memory by up to R S threads, each time for 8 products. blockIdx.x counts the
 * tiles of an image, then the images; blockIdx.y eights of filters. */
static __global__ void conv2d_halo_kernel(float *y, const float *x, const float *w, const float *bias,
                                          Conv2dShape shape, int p_count, int q_count, int tiles_across,
                                          int tiles_down) {
  extern __shared__ __align__(16) float conv2d_halo_memory[]; /* filters[taps][8], patch[patch_h][patch_w] */
  const int patch_h = (int)conv2d_patch_h(shape), patch_w = (int)conv2d_patch_w(shape), taps = shape.r * shape.s;
  float *filters = conv2d_halo_memory, *patch = filters + taps * CONV2D_TILE_FILTERS;
  int tile = blockIdx.x % (tiles_across * tiles_down), n = blockIdx.x / (tiles_across * tiles_down);
  int p0 = tile / tiles_across * CONV2D_TILE_ROWS, q0 = tile % tiles_across * CONV2D_TILE_COLUMNS;
  int p = p0 + threadIdx.y, q = q0 + threadIdx.x, t = threadIdx.y * CONV2D_TILE_COLUMNS + threadIdx.x;

  int in_group = shape.k / shape.groups, eights = (in_group + CONV2D_TILE_FILTERS - 1) / CONV2D_TILE_FILTERS;
  int group = blockIdx.y / eights, first = blockIdx.y % eights * CONV2D_TILE_FILTERS, channels = shape.c / shape.groups;
  int h0 = p0 * shape.stride_h - shape.padding_h, v0 = q0 * shape.stride_w - shape.padding_w; /* the patch's corner */
  float sum[CONV2D_TILE_FILTERS] = {0};
  for (int c = 0; c < channels; c++) {
    const float *plane = x + ((size_t)n * shape.c + group * channels + c) * shape.h * shape.w;
    for (int i = t; i < patch_h * patch_w; i += CONV2D_TILE_ROWS * CONV2D_TILE_COLUMNS) {
      // >>> exercise conv2d_halo_patch: load element i of the patch; what is outside of the image is 0
      // hint: the patch is patch_w elements wide, and its corner is row h0, column v0 of the image
      // hint: h0 and v0 are negative where the padding begins; h and v may also be shape.h, shape.w or more
      // hint: int h = h0 + i / patch_w, v = v0 + i % patch_w; then patch[i] = inside ? plane[h * shape.w + v] : 0.0f;
      int h = h0 + i / patch_w, v = v0 + i % patch_w;
      patch[i] = h >= 0 && h < shape.h && v >= 0 && v < shape.w ? plane[h * shape.w + v] : 0.0f;
      // <<< exercise
    }
    for (int i = t; i < taps * CONV2D_TILE_FILTERS; i += CONV2D_TILE_ROWS * CONV2D_TILE_COLUMNS) {
      int k = first + i % CONV2D_TILE_FILTERS;
      filters[i] =
          k < in_group ? w[((size_t)(group * in_group + k) * channels + c) * taps + i / CONV2D_TILE_FILTERS] : 0;
    }
    __syncthreads();
    const float *corner = patch + threadIdx.y * shape.stride_h * patch_w + threadIdx.x * shape.stride_w;
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++) {
        float input = corner[r * shape.dilation_h * patch_w + s * shape.dilation_w];
        const float4 *of_tap = (const float4 *)&filters[(r * shape.s + s) * CONV2D_TILE_FILTERS];
        float4 a = of_tap[0], b = of_tap[1]; /* the same address for the whole warp */
        float weight[CONV2D_TILE_FILTERS] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        for (int f = 0; f < CONV2D_TILE_FILTERS; f++) sum[f] = fmaf(weight[f], input, sum[f]);
      }
    __syncthreads(); /* the next channel overwrites the patch */
  }
  if (p >= p_count || q >= q_count) return;
  for (int f = 0; f < CONV2D_TILE_FILTERS && first + f < in_group; f++) {
    int k = group * in_group + first + f;
    y[(((size_t)n * shape.k + k) * p_count + p) * q_count + q] = sum[f] + (bias != NULL ? bias[k] : 0.0f);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The implicit matrix product, the plain way */

/* Element (d, pixel) of the columns of a group: d = (c R + r) S + s is a tap of the filters as they are stored, `pixel`
 * = (n P + p) Q + q. 0 in the padding. */
static __device__ __forceinline__ float conv2d_gemm_element(const float *x, Conv2dShape shape, int p_count, int q_count,
                                                            int group, int d, int pixel) {
  // >>> exercise conv2d_gemm_element: find (c,r,s) and (n,p,q), then the input of this tap at this pixel
  // hint: s runs fastest in d, then r, then c; q runs fastest in pixel, then p, then n: divisions and remainders
  // hint: row p stride_h - padding_h + r dilation_h; the same for the column; outside of the image the element is 0
  // hint: the channel is group * (shape.c / shape.groups) + c; x is (N,C,H,W)
  int s = d % shape.s, r = d / shape.s % shape.r, c = d / (shape.s * shape.r);
  int q = pixel % q_count, p = pixel / q_count % p_count, n = pixel / (q_count * p_count);
  int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
  int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
  if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) return 0.0f;
  return x[(((size_t)n * shape.c + group * (shape.c / shape.groups) + c) * shape.h + h) * shape.w + v];
  // <<< exercise
}

enum { CONV2D_GEMM_SIDE = 32 };

/* matmul_tiled with 32 x 32 threads, one per output: y (filters, pixels) = w (filters, depth) columns (depth, pixels).
 * blockIdx.x counts tiles of pixels, blockIdx.y tiles of filters in a group, then groups. */
static __global__ void conv2d_gemm_kernel(float *y, const float *x, const float *w, const float *bias,
                                          Conv2dShape shape, int p_count, int q_count) {
  __shared__ float w_tile[CONV2D_GEMM_SIDE][CONV2D_GEMM_SIDE], tile[CONV2D_GEMM_SIDE][CONV2D_GEMM_SIDE];
  int filters = shape.k / shape.groups, depth = shape.c / shape.groups * shape.r * shape.s;
  int pixels = shape.n * p_count * q_count, tile_rows = (filters + CONV2D_GEMM_SIDE - 1) / CONV2D_GEMM_SIDE;
  int group = blockIdx.y / tile_rows, k = blockIdx.y % tile_rows * CONV2D_GEMM_SIDE + threadIdx.y;
  int pixel = blockIdx.x * CONV2D_GEMM_SIDE + threadIdx.x;
  float sum = 0.0f;
  for (int d0 = 0; d0 < depth; d0 += CONV2D_GEMM_SIDE) {
    int across = d0 + threadIdx.x, down = d0 + threadIdx.y; /* the elements that this thread copies */
    w_tile[threadIdx.y][threadIdx.x] =
        k < filters && across < depth ? w[(size_t)(group * filters + k) * depth + across] : 0.0f;
    tile[threadIdx.y][threadIdx.x] =
        down < depth && pixel < pixels ? conv2d_gemm_element(x, shape, p_count, q_count, group, down, pixel) : 0.0f;
    __syncthreads();
    for (int i = 0; i < CONV2D_GEMM_SIDE; i++) sum = fmaf(w_tile[threadIdx.y][i], tile[i][threadIdx.x], sum);
    __syncthreads();
  }
  if (k >= filters || pixel >= pixels) return;
  int area = p_count * q_count, at = group * filters + k;
  y[((size_t)(pixel / area) * shape.k + at) * area + pixel % area] = sum + (bias != NULL ? bias[at] : 0.0f);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* In double: the products may not fit into an integer. */
static inline double conv2d_halo_bytes(Conv2dShape s) {
  return ((double)s.r * s.s * CONV2D_TILE_FILTERS + (double)conv2d_patch_h(s) * conv2d_patch_w(s)) * sizeof(float);
}

static inline int conv2d_halo_fits(Conv2dShape s, Error *err) {
  if (conv2d_halo_bytes(s) <= shared_limit()) return 0;
  return error_set(
      err,
      "halo keeps what 8 x 32 pixels read of a channel in shared memory; for %s this takes %.0f bytes, and "
      "a block has at most %d: use implicit_gemm",
      conv2d_shape_text(s).text, conv2d_halo_bytes(s), shared_limit());
}

static inline void conv2d_forward_halo(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                       float *) {
  int p = conv2d_out_h(s), q = conv2d_out_w(s), filters = s.k / s.groups;
  int across = (q + CONV2D_TILE_COLUMNS - 1) / CONV2D_TILE_COLUMNS,
      down = (p + CONV2D_TILE_ROWS - 1) / CONV2D_TILE_ROWS;
  int bytes = (int)conv2d_halo_bytes(s);
  shared_limit_ask((const void *)conv2d_halo_kernel, bytes);
  dim3 grid(s.n * across * down, (filters + CONV2D_TILE_FILTERS - 1) / CONV2D_TILE_FILTERS * s.groups);
  conv2d_halo_kernel<<<grid, dim3(CONV2D_TILE_COLUMNS, CONV2D_TILE_ROWS), bytes>>>(y, x, w, bias, s, p, q, across,
                                                                                   down);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_forward_gemm(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                       float *) {
  const int side = CONV2D_GEMM_SIDE, filters = s.k / s.groups, p = conv2d_out_h(s), q = conv2d_out_w(s);
  Conv2dShape part = s;
  for (int n = 0; n < s.n; n += part.n) {
    part.n = s.n - n < conv2d_gemm_images(s) ? s.n - n : conv2d_gemm_images(s);
    dim3 grid((part.n * p * q + side - 1) / side, (filters + side - 1) / side * s.groups);
    conv2d_gemm_kernel<<<grid, dim3(side, side)>>>(y + (size_t)n * s.k * p * q, x + (size_t)n * s.c * s.h * s.w, w,
                                                   bias, part, p, q);
    CUDA_CHECK_LAUNCH();
  }
}

static const Conv2dMethod conv2d_halo_method = {"halo", conv2d_halo_fits, NULL, conv2d_forward_halo, NULL, NULL};
static const Conv2dMethod conv2d_gemm_tiled_method = {"gemm", NULL, NULL, conv2d_forward_gemm, NULL, NULL};

#endif /* PHASE3_CNN_CONV2D_HALO_CUH */
