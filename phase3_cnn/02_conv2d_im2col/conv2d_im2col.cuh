/* conv2d_im2col.cuh - convolution (conv2d.cuh) as a product of matrices, float32, NCHW, of any shape.
 *
 * A column of `matrix` holds all that one output pixel reads, so that an output is a row of weights times a column:
 *
 *     matrix (C R S, columns)      row (c,r,s), column (n,p,q): x[n, c, p stride + r dilation - padding, q ...], or 0
 *     columns                      P Q for each of some images, and zeros up to a multiple of 4
 *
 * With groups, the rows of the channels of group g are a matrix of their own, matrix_g. For each g:
 *
 *     forward           product_g (K/groups, columns)    = w_g (K/groups, C/groups R S)  matrix_g
 *     backward_input    matrix_g (C/groups R S, columns) = w_g^T  dy_g (K/groups, columns)
 *     backward_weight   dw_g^T (C/groups R S, K/groups)  = matrix_g  dy_g^T (columns, K/groups)
 *
 * Before and after the products:
 *     im2col       copies x into the matrix, each number up to R S times. _naive: one thread per element; _column: one
 *                  per column of a channel; without a suffix: one per four columns, which it stores as float4
 *     col2im       its transpose: each input adds up the elements of the matrix that are copies of it
 *     images_in    dy (N,K,P,Q) -> (K, columns), the images side by side; images_out the way back, and adds the bias
 *     transpose    of dy, w and dw, because our product takes no transposed operand
 *
 * Versions of the whole, by how many images are in the matrix at a time:
 *     conv2d_im2col_one_method      one: a small matrix, but 3 N launches, and small products
 *     conv2d_im2col_all_method      the batch: the fewest launches, and a matrix up to R S times as large as x
 *     conv2d_im2col_method          as many as fit into CONV2D_IM2COL_FLOATS: the memory is bounded
 *     conv2d_im2col_cublas_method   the same with cuBLAS's product (conv2d_im2col_cublas.cuh)
 *
 * The CPU twins are conv2d_im2col_cpu and conv2d_col2im_cpu. The launchers neither allocate nor wait; no result depends
 * on the order of threads. In networks: --conv=im2col.
 */
#ifndef PHASE3_CNN_CONV2D_IM2COL_CUH
#define PHASE3_CNN_CONV2D_IM2COL_CUH

#include "common/check.h"
#include "common/device.h"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned_kernel.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

/* Pixels of `images` images, and zeros up to a multiple of 4: then the rows of all matrices begin at multiples of 16
 * bytes. */
static inline int conv2d_im2col_columns(Conv2dShape s, int images) {
  return (images * conv2d_out_h(s) * conv2d_out_w(s) + 3) / 4 * 4;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

/* x (N,C,H,W) -> matrix (C R S, columns), of images first ... first + images - 1 */
static inline void conv2d_im2col_cpu(float *matrix, const float *x, Conv2dShape shape, int first, int images) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape), pixels = p_count * q_count;
  int columns = conv2d_im2col_columns(shape, images);
  for (int c = 0; c < shape.c; c++)
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++)
        for (int column = 0; column < columns; column++) {
          int n = column / pixels, p = column % pixels / q_count, q = column % q_count;
          int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
          int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
          bool inside = n < images && h >= 0 && h < shape.h && v >= 0 && v < shape.w;
          *matrix++ = inside ? x[(((size_t)(first + n) * shape.c + c) * shape.h + h) * shape.w + v] : 0.0f;
        }
}

/* matrix -> dx (N,C,H,W) of these images: each element is added to the input that it was read from */
static inline void conv2d_col2im_cpu(float *dx, const float *matrix, Conv2dShape shape, int first, int images) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape), pixels = p_count * q_count;
  int columns = conv2d_im2col_columns(shape, images);
  size_t image = (size_t)shape.c * shape.h * shape.w;
  for (size_t i = 0; i < images * image; i++) dx[first * image + i] = 0;
  for (int c = 0; c < shape.c; c++)
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++, matrix += columns)
        for (int column = 0; column < images * pixels; column++) {
          int n = column / pixels, p = column % pixels / q_count, q = column % q_count;
          int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
          int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
          if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue;
          dx[(((size_t)(first + n) * shape.c + c) * shape.h + h) * shape.w + v] += matrix[column];
        }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum { CONV2D_IM2COL_BLOCK = 256, CONV2D_IM2COL_TILE = 32, CONV2D_IM2COL_TILE_ROWS = 8 };

/* The matrix, one thread per element: neighbouring threads write neighbouring columns, which mostly read neighbouring
 * inputs. Each thread takes its index apart with seven divisions, to copy one number. */
static __global__ void conv2d_im2col_naive_kernel(float *matrix, const float *x, Conv2dShape shape, int p_count,
                                                  int q_count, int images, int columns) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)shape.c * shape.r * shape.s * columns) return;
  int column = i % columns, row = i / columns, n = images, h = -1, v = -1;
  // >>> exercise conv2d_im2col_index: from row and column of the matrix, compute which input x[n, c, h, v] it copies
  // hint: rows are numbered as the weights of a filter: row = (c * R + r) * S + s; columns: (n * P + p) * Q + q
  // hint: tap (r,s) of pixel (p,q) reads row p * stride + r * dilation - padding of the image, and likewise its column
  // hint: int s = row % shape.s, r = row / shape.s % shape.r; h = p * shape.stride_h + r * shape.dilation_h - ...
  int s = row % shape.s, r = row / shape.s % shape.r, q = column % q_count, p = column / q_count % p_count;
  n = column / (q_count * p_count);
  h = p * shape.stride_h + r * shape.dilation_h - shape.padding_h;
  v = q * shape.stride_w + s * shape.dilation_w - shape.padding_w;
  // <<< exercise
  int c = row / (shape.s * shape.r);
  bool inside = n < images && h >= 0 && h < shape.h && v >= 0 && v < shape.w;
  matrix[i] = inside ? x[(((size_t)n * shape.c + c) * shape.h + h) * shape.w + v] : 0.0f;
}

/* One thread per column and channel: it copies all R S inputs of its pixel, down a column of the matrix. Its index is
 * taken apart once, and an input that the next thread reads, too, comes from the L1 cache. blockIdx.y counts channels,
 * as far as a grid goes. */
static __global__ void __launch_bounds__(CONV2D_IM2COL_BLOCK)
    conv2d_im2col_column_kernel(float *matrix, const float *x, Conv2dShape shape, int p_count, int q_count, int images,
                                int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  int q = column % q_count, p = column / q_count % p_count, n = column / (q_count * p_count);
  int h0 = p * shape.stride_h - shape.padding_h, v0 = q * shape.stride_w - shape.padding_w;
  for (int c = blockIdx.y; c < shape.c; c += gridDim.y) {
    const float *plane = x + ((size_t)n * shape.c + c) * shape.h * shape.w;
    float *to = matrix + (size_t)c * shape.r * shape.s * columns + column;
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++, to += columns) {
        int h = h0 + r * shape.dilation_h, v = v0 + s * shape.dilation_w;
        bool inside = n < images && h >= 0 && h < shape.h && v >= 0 && v < shape.w;
        *to = inside ? plane[h * shape.w + v] : 0.0f;
      }
  }
}

/* One thread per four columns and channel: a quarter of the stores, of 16 bytes each. */
static __global__ void __launch_bounds__(CONV2D_IM2COL_BLOCK)
    conv2d_im2col_kernel(float *matrix, const float *x, Conv2dShape shape, int p_count, int q_count, int images,
                         int columns) {
  int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= columns) return;
  int q = column % q_count, p = column / q_count % p_count, n = column / (q_count * p_count);
  int h0[4], v0[4];
  const float *image[4];
  for (int j = 0; j < 4; j++) {
    h0[j] = n < images ? p * shape.stride_h - shape.padding_h : shape.h; /* below the image: no tap is inside */
    v0[j] = q * shape.stride_w - shape.padding_w;
    image[j] = x + (size_t)n * shape.c * shape.h * shape.w;
    q = q + 1 < q_count ? q + 1 : 0; /* the next pixel, of the next row, of the next image */
    p = q > 0 ? p : p + 1 < p_count ? p + 1 : 0;
    n = q > 0 || p > 0 ? n : n + 1;
  }
  for (int c = blockIdx.y; c < shape.c; c += gridDim.y) {
    size_t plane = (size_t)c * shape.h * shape.w;
    float *to = matrix + (size_t)c * shape.r * shape.s * columns + column;
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++, to += columns) {
        float four[4];
        for (int j = 0; j < 4; j++) {
          int h = h0[j] + r * shape.dilation_h, v = v0[j] + s * shape.dilation_w;
          bool inside = (unsigned)h < (unsigned)shape.h && (unsigned)v < (unsigned)shape.w; /* negative: large */
          four[j] = inside ? image[j][plane + h * shape.w + v] : 0.0f;
        }
        *(float4 *)to = make_float4(four[0], four[1], four[2], four[3]);
      }
  }
}

/* One thread per input (n,c,h,v): it gathers the elements of the matrix that are copies of it, at most R S. No two
 * threads add to the same sum, so there are no atomics. blockIdx.y counts channels. UNIT: all strides are 1, so that
 * nothing is to be divided. */
template <bool UNIT>
static __global__ void __launch_bounds__(CONV2D_IM2COL_BLOCK)
    conv2d_col2im_kernel(float *dx, const float *matrix, Conv2dShape shape, int p_count, int q_count, int images,
                         int columns) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= images * shape.h * shape.w) return;
  int v = pixel % shape.w, h = pixel / shape.w % shape.h, n = pixel / (shape.w * shape.h);
  int stride_h = UNIT ? 1 : shape.stride_h, stride_w = UNIT ? 1 : shape.stride_w;
  for (int c = blockIdx.y; c < shape.c; c += gridDim.y) {
    const float *from = matrix + (size_t)c * shape.r * shape.s * columns + (size_t)n * p_count * q_count;
    float sum = 0;
    // >>> exercise conv2d_col2im_gather: add up the elements of the matrix that are copies of x[n, c, h, v]
    // hint: row (c,r,s) of the matrix begins at from + (r * S + s) * columns, with this image's pixel (0,0)
    // hint: tap (r,s) of pixel (p,q) reads the input if p * stride_h = h + padding_h - r * dilation_h
    // hint: skip p < 0, q < 0 and divisions with a remainder; then if (p < p_count && q < q_count) add p * q_count + q
#pragma unroll 3
    for (int r = 0; r < shape.r; r++)
#pragma unroll 3
      for (int s = 0; s < shape.s; s++, from += columns) {
        int p = h + shape.padding_h - r * shape.dilation_h, q = v + shape.padding_w - s * shape.dilation_w;
        if (p < 0 || q < 0 || p % stride_h != 0 || q % stride_w != 0) continue;
        p /= stride_h;
        q /= stride_w;
        if (p < p_count && q < q_count) sum += from[p * q_count + q];
      }
    // <<< exercise
    dx[(((size_t)n * shape.c + c) * shape.h + h) * shape.w + v] = sum;
  }
}

/* product (K, columns) -> y (images,K,P Q), plus the bias: one thread per PER pixels, which lie in one image.
 * blockIdx.y counts filters. */
template <int PER>
static __global__ void __launch_bounds__(CONV2D_IM2COL_BLOCK)
    conv2d_im2col_images_out_kernel(float *y, const float *product, const float *bias, int filters, int pixels,
                                    int images, int columns) {
  int column = PER * (blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= images * pixels) return;
  int n = column / pixels, pixel = column % pixels;
  for (int k = blockIdx.y; k < filters; k += gridDim.y) {
    const float *from = product + (size_t)k * columns + column;
    float *to = y + ((size_t)n * filters + k) * pixels + pixel, add = bias != NULL ? bias[k] : 0.0f;
    if (PER == 4) {
      float4 four = *(const float4 *)from;
      *(float4 *)to = make_float4(four.x + add, four.y + add, four.z + add, four.w + add);
    } else {
      *to = *from + add;
    }
  }
}

/* dy (images,K,P Q) -> gradient (K, columns), with zeros in the columns that belong to no pixel; likewise. */
template <int PER>
static __global__ void __launch_bounds__(CONV2D_IM2COL_BLOCK)
    conv2d_im2col_images_in_kernel(float *gradient, const float *dy, int filters, int pixels, int images, int columns) {
  int column = PER * (blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= columns) return;
  int n = column / pixels, pixel = column % pixels;
  for (int k = blockIdx.y; k < filters; k += gridDim.y) {
    const float *from = dy + ((size_t)n * filters + k) * pixels + pixel;
    float *to = gradient + (size_t)k * columns + column;
    if (PER == 4)
      *(float4 *)to = *(const float4 *)from; /* PER divides all pixels: no column is left over */
    else
      *to = n < images ? *from : 0.0f;
  }
}

/* out (cols,rows) = in (rows,cols)^T, or += if `add`: a tile of 32 x 32 per block through shared memory (phase 1,
 * lesson 2). blockIdx.z counts matrices. Number i = outer * t.inner + inner begins at outer * in_outer + inner *
 * in_inner of `in`, and likewise in `out`. */
typedef struct Conv2dTransposition {
  int rows, cols, inner, first; /* the first matrix of this launch */
  size_t in_outer, in_inner, out_outer, out_inner;
} Conv2dTransposition;

static __global__ void __launch_bounds__(CONV2D_IM2COL_BLOCK)
    conv2d_im2col_transpose_kernel(float *out, const float *in, Conv2dTransposition t, bool add) {
  __shared__ float tile[CONV2D_IM2COL_TILE][CONV2D_IM2COL_TILE + 1];
  int outer = (t.first + blockIdx.z) / t.inner, inner = (t.first + blockIdx.z) % t.inner;
  int col0 = blockIdx.x * CONV2D_IM2COL_TILE, x = threadIdx.x;
  in += outer * t.in_outer + inner * t.in_inner;
  out += outer * t.out_outer + inner * t.out_inner;
  for (int row0 = blockIdx.y * CONV2D_IM2COL_TILE; row0 < t.rows; row0 += gridDim.y * CONV2D_IM2COL_TILE) {
    for (int y = threadIdx.y; y < CONV2D_IM2COL_TILE; y += CONV2D_IM2COL_TILE_ROWS)
      if (row0 + y < t.rows && col0 + x < t.cols) tile[y][x] = in[(size_t)(row0 + y) * t.cols + col0 + x];
    __syncthreads();
    for (int y = threadIdx.y; y < CONV2D_IM2COL_TILE; y += CONV2D_IM2COL_TILE_ROWS) {
      if (col0 + y >= t.cols || row0 + x >= t.rows) continue;
      float *to = &out[(size_t)(col0 + y) * t.rows + row0 + x];
      *to = add ? *to + tile[x][y] : tile[x][y];
    }
    __syncthreads(); /* before the next tile overwrites this one */
  }
}

/* dbias in two steps, so that few filters, too, fill a GPU: block (k, slice) adds up the pixels of filter k of some
 * images, then a thread per filter its slices. */
static __global__ void __launch_bounds__(CONV2D_IM2COL_BLOCK)
    conv2d_im2col_bias_kernel(float *parts, const float *dy, int filters, int pixels, int images) {
  __shared__ float sums[CONV2D_IM2COL_BLOCK];
  float sum = 0;
  for (int n = blockIdx.y; n < images; n += gridDim.y) {
    const float *plane = dy + ((size_t)n * filters + blockIdx.x) * pixels;
    for (int i = threadIdx.x; i < pixels; i += CONV2D_IM2COL_BLOCK) sum += plane[i];
  }
  sums[threadIdx.x] = sum;
  for (int half = CONV2D_IM2COL_BLOCK / 2; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) parts[(size_t)blockIdx.y * filters + blockIdx.x] = sums[0];
}

static __global__ void conv2d_im2col_bias_sum_kernel(float *dbias, const float *parts, int filters, int slices) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= filters) return;
  float sum = 0;
  for (int slice = 0; slice < slices; slice++) sum += parts[(size_t)slice * filters + k];
  dbias[k] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Sizes: how many images at a time, and the workspace for them */

enum {
  CONV2D_IM2COL_FLOATS = 64 << 20,           /* of the matrix, if one image has no more: 256 MiB */
  CONV2D_IM2COL_PRODUCT = 256 << 20,         /* of the product; it is the larger one where K > C R S */
  CONV2D_IM2COL_COLUMNS = INT_MAX - 4 * 256, /* of a matrix: the threads of the last block, too, count in an int */
};

static inline size_t conv2d_im2col_taps(Conv2dShape s) { return (size_t)(s.c / s.groups) * s.r * s.s; } /* of a group */

/* At least one, and no more for a smaller batch. */
static inline int conv2d_im2col_images(Conv2dShape s) {
  size_t outputs = (size_t)conv2d_out_h(s) * conv2d_out_w(s), image = s.groups * conv2d_im2col_taps(s) * outputs;
  size_t images = CONV2D_IM2COL_FLOATS / image, pixels = (size_t)s.h * s.w, most = 1u << 30; /* col2im: a thread each */
  if (images > most / pixels) images = most / pixels;
  if (images > CONV2D_IM2COL_PRODUCT / (s.k * outputs)) images = CONV2D_IM2COL_PRODUCT / (s.k * outputs);
  return images < 1 ? 1 : images < (size_t)s.n ? (int)images : s.n;
}

/* Where the pieces of a workspace for `images` images at a time begin, each at a multiple of 4 floats. The matrix, (C R
 * S, columns), is the first. */
typedef struct Conv2dIm2colRoom {
  size_t product; /* (K, columns): of forward; of the gradients dy or its transpose */
  size_t weights; /* (K, taps), transposed: w, or a sum of dw */
  size_t parts;   /* of tiles, for matmul_tuned; of dbias */
  size_t floats;  /* in all */
} Conv2dIm2colRoom;

static inline size_t conv2d_im2col_parts(Conv2dShape s) {
  const size_t tiles = matmul_tuned_floats(128, 128, 2); /* the most of any tile in conv2d_im2col_matmul */
  return tiles > (size_t)s.k ? tiles : (size_t)s.k;      /* dbias: at least one slice */
}

static inline Conv2dIm2colRoom conv2d_im2col_room(Conv2dShape s, int images) {
  const size_t columns = ((size_t)images * conv2d_out_h(s) * conv2d_out_w(s) + 3) / 4 * 4;
  const size_t taps = conv2d_im2col_taps(s);
  Conv2dIm2colRoom room;
  room.product = s.groups * taps * columns;
  room.weights = room.product + s.k * columns;
  room.parts = room.weights + (s.k * taps + 3) / 4 * 4;
  room.floats = room.parts + conv2d_im2col_parts(s);
  return room;
}

static inline size_t conv2d_im2col_floats(Conv2dShape s, int images) { return conv2d_im2col_room(s, images).floats; }

/* Of all three operations of the method, of this or a smaller batch. */
static inline size_t conv2d_im2col_workspace_floats(Conv2dShape s) {
  return conv2d_im2col_floats(s, conv2d_im2col_images(s));
}

/* -1, with the shapes, where the workspace for `images` images at a time is more than the GPU has. */
static inline int conv2d_im2col_fits_images(Conv2dShape s, int images, Error *err) {
  const double gib = 1073741824.0, taps = (double)s.c * s.r * s.s;
  const double columns = (double)images * conv2d_out_h(s) * conv2d_out_w(s);
  const double memory = device_memory(DEVICE_GPU), bytes = sizeof(float) * (double)conv2d_im2col_floats(s, images);
  if (columns <= CONV2D_IM2COL_COLUMNS && bytes <= memory) return 0;
  return error_set(err,
                   "im2col of %s: the matrix of %d image%s is %.0f x %.0f; with the product it takes %.1f GiB, and the "
                   "GPU has %.1f GiB free; use implicit_gemm, which stores no matrix",
                   conv2d_shape_text(s).text, images, images == 1 ? "" : "s", taps, columns, bytes / gib, memory / gib);
}

static inline int conv2d_im2col_fits(Conv2dShape s, Error *err) {
  return conv2d_im2col_fits_images(s, conv2d_im2col_images(s), err);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers of the parts. x, dx, y and dy begin with the first of `images` images. */

static inline dim3 conv2d_im2col_grid(int columns, int planes) {
  return dim3((columns + CONV2D_IM2COL_BLOCK - 1) / CONV2D_IM2COL_BLOCK, planes < 65535 ? planes : 65535);
}

static inline void conv2d_im2col_naive(float *matrix, const float *x, Conv2dShape s, int images) {
  int columns = conv2d_im2col_columns(s, images);
  size_t blocks = ((size_t)s.c * s.r * s.s * columns + CONV2D_IM2COL_BLOCK - 1) / CONV2D_IM2COL_BLOCK;
  conv2d_im2col_naive_kernel<<<(unsigned)blocks, CONV2D_IM2COL_BLOCK>>>(matrix, x, s, conv2d_out_h(s), conv2d_out_w(s),
                                                                        images, columns);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_im2col_column(float *matrix, const float *x, Conv2dShape s, int images) {
  int columns = conv2d_im2col_columns(s, images);
  conv2d_im2col_column_kernel<<<conv2d_im2col_grid(columns, s.c), CONV2D_IM2COL_BLOCK>>>(
      matrix, x, s, conv2d_out_h(s), conv2d_out_w(s), images, columns);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_im2col(float *matrix, const float *x, Conv2dShape s, int images) {
  int columns = conv2d_im2col_columns(s, images);
  if (!quads_fit(matrix, columns)) { /* a matrix that does not begin at a multiple of 16 bytes */
    conv2d_im2col_column(matrix, x, s, images);
    return;
  }
  conv2d_im2col_kernel<<<conv2d_im2col_grid(columns / 4, s.c), CONV2D_IM2COL_BLOCK>>>(matrix, x, s, conv2d_out_h(s),
                                                                                      conv2d_out_w(s), images, columns);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_col2im(float *dx, const float *matrix, Conv2dShape s, int images) {
  dim3 grid = conv2d_im2col_grid(images * s.h * s.w, s.c);
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s), columns = conv2d_im2col_columns(s, images);
  if (s.stride_h == 1 && s.stride_w == 1)
    conv2d_col2im_kernel<true><<<grid, CONV2D_IM2COL_BLOCK>>>(dx, matrix, s, p_count, q_count, images, columns);
  else
    conv2d_col2im_kernel<false><<<grid, CONV2D_IM2COL_BLOCK>>>(dx, matrix, s, p_count, q_count, images, columns);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_im2col_images_out(float *y, const float *product, const float *bias, Conv2dShape s,
                                            int images) {
  int pixels = conv2d_out_h(s) * conv2d_out_w(s), columns = conv2d_im2col_columns(s, images);
  if (quads_fit(y, pixels) && quads_fit(product, columns))
    conv2d_im2col_images_out_kernel<4><<<conv2d_im2col_grid(images * pixels / 4, s.k), CONV2D_IM2COL_BLOCK>>>(
        y, product, bias, s.k, pixels, images, columns);
  else
    conv2d_im2col_images_out_kernel<1><<<conv2d_im2col_grid(images * pixels, s.k), CONV2D_IM2COL_BLOCK>>>(
        y, product, bias, s.k, pixels, images, columns);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_im2col_images_in(float *gradient, const float *dy, Conv2dShape s, int images) {
  int pixels = conv2d_out_h(s) * conv2d_out_w(s), columns = conv2d_im2col_columns(s, images);
  if (quads_fit(dy, pixels) && quads_fit(gradient, columns))
    conv2d_im2col_images_in_kernel<4>
        <<<conv2d_im2col_grid(columns / 4, s.k), CONV2D_IM2COL_BLOCK>>>(gradient, dy, s.k, pixels, images, columns);
  else
    conv2d_im2col_images_in_kernel<1>
        <<<conv2d_im2col_grid(columns, s.k), CONV2D_IM2COL_BLOCK>>>(gradient, dy, s.k, pixels, images, columns);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_im2col_transpose(float *out, const float *in, Conv2dTransposition t, int matrices, bool add) {
  const int tile = CONV2D_IM2COL_TILE, most = 65535; /* blocks of a grid along y and z */
  int down = (t.rows + tile - 1) / tile;
  for (t.first = 0; t.first < matrices; t.first += most) {
    dim3 grid((t.cols + tile - 1) / tile, down < most ? down : most,
              matrices - t.first < most ? matrices - t.first : most);
    conv2d_im2col_transpose_kernel<<<grid, dim3(tile, CONV2D_IM2COL_TILE_ROWS)>>>(out, in, t, add);
    CUDA_CHECK_LAUNCH();
  }
}

/* dy (images,K,P Q) -> for each group dy_g^T (columns, K/groups), with zeros in the rows that belong to no pixel. */
static inline void conv2d_im2col_transpose_dy(float *turned, const float *dy, Conv2dShape s, int images) {
  int pixels = conv2d_out_h(s) * conv2d_out_w(s), filters = s.k / s.groups;
  size_t columns = conv2d_im2col_columns(s, images), used = (size_t)images * pixels;
  Conv2dTransposition t = {
      filters,          pixels, s.groups, 0, (size_t)s.k * pixels, (size_t)filters * pixels, (size_t)pixels * filters,
      columns * filters};
  conv2d_im2col_transpose(turned, dy, t, images * s.groups, false);
  if (used < columns)
    CUDA_CHECK(cudaMemset2DAsync(turned + used * filters, columns * filters * sizeof *turned, 0,
                                 (columns - used) * filters * sizeof *turned, s.groups, 0));
}

/* Of each group: (rows,cols) -> (cols,rows). */
static inline void conv2d_im2col_transpose_weights(float *out, const float *in, int rows, int cols, int groups,
                                                   bool add) {
  const size_t matrix = (size_t)rows * cols;
  Conv2dTransposition t = {rows, cols, groups, 0, 0, matrix, 0, matrix};
  conv2d_im2col_transpose(out, in, t, groups, add);
}

static inline void conv2d_im2col_bias(float *dbias, const float *dy, Conv2dShape s, float *parts) {
  size_t fit = conv2d_im2col_parts(s) / s.k;
  int most = fit < 32 ? (int)fit : 32, slices = s.n < most ? s.n : most;
  conv2d_im2col_bias_kernel<<<dim3(s.k, slices), CONV2D_IM2COL_BLOCK>>>(parts, dy, s.k,
                                                                        conv2d_out_h(s) * conv2d_out_w(s), s.n);
  CUDA_CHECK_LAUNCH();
  conv2d_im2col_bias_sum_kernel<<<(s.k + CONV2D_IM2COL_BLOCK - 1) / CONV2D_IM2COL_BLOCK, CONV2D_IM2COL_BLOCK>>>(
      dbias, parts, s.k, slices);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The product: matmul_tuned of phase 1, lesson 6, with memory of ours for the parts of its tiles */

typedef void Conv2dIm2colMatmul(float *c, const float *a, const float *b, int m, int n, int k, float *parts);

/* The largest tile that the product has enough work for: a large one needs fewer loads per product, and where tiles
 * are fewer than multiprocessors the steps along k are shared out. Two tiles are narrow, because filters are often few.
 */
static inline void conv2d_im2col_matmul(float *c, const float *a, const float *b, int m, int n, int k, float *parts) {
  const double elements = (double)m * n, work = elements * k;
  if (work < 1 << 26 && elements < 400 * 400)
    matmul_tuned_launch_in<32, 32, 8, 32, 32, 8, 4, 16>(c, a, b, m, n, k, parts);
  else if (work < 1 << 28 && elements < 1000 * 1000)
    matmul_tuned_launch_in<64, 64, 8, 32, 64, 8, 8, 4>(c, a, b, m, n, k, parts);
  else if (m <= 64)
    matmul_tuned_launch_in<64, 128, 8, 64, 64, 16, 8, 4>(c, a, b, m, n, k, parts);
  else if (n <= 64)
    matmul_tuned_launch_in<128, 64, 8, 64, 64, 16, 8, 4>(c, a, b, m, n, k, parts);
  else
    matmul_tuned_launch_in<128, 128, 8, 64, 64, 16, 8, 2>(c, a, b, m, n, k, parts);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The three operations, `images` images at a time, with any product. Workspace: conv2d_im2col_floats(s, images). */

static inline void conv2d_im2col_forward_with(Conv2dIm2colMatmul *matmul, float *y, const float *x, const float *w,
                                              const float *bias, Conv2dShape s, int images, float *workspace) {
  const size_t taps = conv2d_im2col_taps(s), filters = s.k / s.groups;
  const size_t x_image = (size_t)s.c * s.h * s.w, y_image = (size_t)s.k * conv2d_out_h(s) * conv2d_out_w(s);
  const Conv2dIm2colRoom room = conv2d_im2col_room(s, images);
  float *matrix = workspace, *product = workspace + room.product, *parts = workspace + room.parts;
  // >>> exercise conv2d_im2col_chunk: the forward pass, `images` images at a time: matrix, one product per group, y
  // hint: the last time fewer than `images` may be left: `count` images have conv2d_im2col_columns(s, count) columns
  // hint: group g has `taps` rows of the matrix, and `filters` rows of w (each of `taps` weights) and of the product
  // hint: conv2d_im2col(matrix, x + first * x_image, s, count), the products, then conv2d_im2col_images_out()
  // hint: per group matmul(product + g * filters * columns, w + g * filters * taps, matrix + g * taps * columns, ...)
  for (int first = 0; first < s.n; first += images) {
    int count = s.n - first < images ? s.n - first : images;
    size_t columns = conv2d_im2col_columns(s, count);
    conv2d_im2col(matrix, x + first * x_image, s, count);
    for (int g = 0; g < s.groups; g++)
      matmul(product + g * filters * columns, w + g * filters * taps, matrix + g * taps * columns, (int)filters,
             (int)columns, (int)taps, parts);
    conv2d_im2col_images_out(y + first * y_image, product, bias, s, count);
  }
  // <<< exercise
}

static inline void conv2d_im2col_backward_input_with(Conv2dIm2colMatmul *matmul, float *dx, const float *dy,
                                                     const float *w, Conv2dShape s, int images, float *workspace) {
  const size_t taps = conv2d_im2col_taps(s), filters = s.k / s.groups;
  const size_t x_image = (size_t)s.c * s.h * s.w, y_image = (size_t)s.k * conv2d_out_h(s) * conv2d_out_w(s);
  const Conv2dIm2colRoom room = conv2d_im2col_room(s, images);
  float *matrix = workspace, *product = workspace + room.product, *parts = workspace + room.parts;
  float *weights = workspace + room.weights;
  conv2d_im2col_transpose_weights(weights, w, (int)filters, (int)taps, s.groups, false);
  for (int first = 0; first < s.n; first += images) {
    int count = s.n - first < images ? s.n - first : images;
    size_t columns = conv2d_im2col_columns(s, count);
    conv2d_im2col_images_in(product, dy + first * y_image, s, count);
    for (int g = 0; g < s.groups; g++)
      matmul(matrix + g * taps * columns, weights + g * filters * taps, product + g * filters * columns, (int)taps,
             (int)columns, (int)filters, parts);
    conv2d_col2im(dx + first * x_image, matrix, s, count);
  }
}

static inline void conv2d_im2col_backward_weight_with(Conv2dIm2colMatmul *matmul, float *dw, float *dbias,
                                                      const float *dy, const float *x, Conv2dShape s, int images,
                                                      float *workspace) {
  const size_t taps = conv2d_im2col_taps(s), filters = s.k / s.groups;
  const size_t x_image = (size_t)s.c * s.h * s.w, y_image = (size_t)s.k * conv2d_out_h(s) * conv2d_out_w(s);
  const Conv2dIm2colRoom room = conv2d_im2col_room(s, images);
  float *matrix = workspace, *product = workspace + room.product, *parts = workspace + room.parts;
  float *weights = workspace + room.weights;
  for (int first = 0; first < s.n; first += images) {
    int count = s.n - first < images ? s.n - first : images;
    size_t columns = conv2d_im2col_columns(s, count);
    conv2d_im2col(matrix, x + first * x_image, s, count);
    conv2d_im2col_transpose_dy(product, dy + first * y_image, s, count);
    for (int g = 0; g < s.groups; g++)
      matmul(weights + g * taps * filters, matrix + g * taps * columns, product + g * filters * columns, (int)taps,
             (int)filters, (int)columns, parts);
    conv2d_im2col_transpose_weights(dw, weights, (int)taps, (int)filters, s.groups, first > 0);
  }
  if (dbias != NULL) conv2d_im2col_bias(dbias, dy, s, parts);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What networks and the benchmark call */

static inline void conv2d_forward_im2col_one(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                             float *workspace) {
  conv2d_im2col_forward_with(conv2d_im2col_matmul, y, x, w, bias, s, 1, workspace);
}

static inline void conv2d_forward_im2col_all(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                             float *workspace) {
  conv2d_im2col_forward_with(conv2d_im2col_matmul, y, x, w, bias, s, s.n, workspace);
}

static inline void conv2d_forward_im2col(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                         float *workspace) {
  conv2d_im2col_forward_with(conv2d_im2col_matmul, y, x, w, bias, s, conv2d_im2col_images(s), workspace);
}

static inline void conv2d_backward_input_im2col(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                float *workspace) {
  conv2d_im2col_backward_input_with(conv2d_im2col_matmul, dx, dy, w, s, conv2d_im2col_images(s), workspace);
}

static inline void conv2d_backward_weight_im2col(float *dw, float *dbias, const float *dy, const float *x,
                                                 Conv2dShape s, float *workspace) {
  conv2d_im2col_backward_weight_with(conv2d_im2col_matmul, dw, dbias, dy, x, s, conv2d_im2col_images(s), workspace);
}

static inline size_t conv2d_im2col_one_floats(Conv2dShape s) { return conv2d_im2col_floats(s, 1); }
static inline int conv2d_im2col_one_fits(Conv2dShape s, Error *err) { return conv2d_im2col_fits_images(s, 1, err); }

static inline size_t conv2d_im2col_all_floats(Conv2dShape s) { return conv2d_im2col_floats(s, s.n); }
static inline int conv2d_im2col_all_fits(Conv2dShape s, Error *err) { return conv2d_im2col_fits_images(s, s.n, err); }

static const Conv2dMethod conv2d_im2col_one_method = {
    "im2col_one", conv2d_im2col_one_fits, conv2d_im2col_one_floats, conv2d_forward_im2col_one, NULL, NULL};
static const Conv2dMethod conv2d_im2col_all_method = {
    "im2col_all", conv2d_im2col_all_fits, conv2d_im2col_all_floats, conv2d_forward_im2col_all, NULL, NULL};
static const Conv2dMethod conv2d_im2col_method = {
    "im2col",
    conv2d_im2col_fits,
    conv2d_im2col_workspace_floats,
    conv2d_forward_im2col,
    conv2d_backward_input_im2col,
    conv2d_backward_weight_im2col,
};

#endif /* PHASE3_CNN_CONV2D_IM2COL_CUH */
