/* conv2d_backward_input.cuh - the gradient of convolution (conv2d.cuh) with respect to its input, on the GPU: dx from
 * dy and w. The kernel is the mirror image of conv2d_forward_kernel.
 */
#ifndef PHASE3_CNN_CONV2D_BACKWARD_INPUT_CUH
#define PHASE3_CNN_CONV2D_BACKWARD_INPUT_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_gpu.cuh"

/* The weights of channels c0 ... c0 + 7 to shared memory: `count` rows of taps from row `first` on, of each
 * CONV2D_COLUMNS columns from s0 on; and for each row where in dy it reads. Row k * R + r of the taps is row r of
 * filter k. */
static __device__ __forceinline__ void conv2d_backward_input_load(Conv2dFilters *filters, Conv2dRow *rows,
                                                                  const float *w, Conv2dShape shape, int stride_h,
                                                                  int p_count, int q_count, unsigned area, unsigned c0,
                                                                  int s0, int first, int count) {
  for (int e = threadIdx.y * blockDim.x + threadIdx.x; e < count * CONV2D_COLUMNS; e += CONV2D_BLOCK) {
    int row = first + e / CONV2D_COLUMNS, s = s0 + e % CONV2D_COLUMNS, k = row / shape.r, r = row % shape.r;
    float *to = filters[e / CONV2D_COLUMNS][e % CONV2D_COLUMNS];
    const float *from = w + ((size_t)k * shape.c + c0) * area + r * shape.s + s;
    conv2d_load_filters(to, from, area, s < shape.s ? shape.c - c0 : 0);
    int up = r / stride_h;
    if (s == s0) rows[e / CONV2D_COLUMNS] = {-up, (k * p_count - up) * q_count, r % stride_h};
  }
}

/* A thread computes one input pixel (n,h,v) of CONV2D_FILTERS channels: it gathers, from every filter, the outputs that
 * the pixel contributed to. Those are p = (h + padding - r) / stride where the division has no remainder: then h +
 * padding and r leave the same remainder, and p is the difference of their quotients. STRIDE 1 is a version of its own,
 * without divisions; STRIDE 0 is for any stride. */
template <int STRIDE>
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_backward_input_kernel(float *dx, const float *dy, const float *w, Conv2dShape shape, int p_count,
                                 int q_count) {
  __shared__ __align__(16) Conv2dFilters filters[CONV2D_ROWS]; /* of several channels */
  __shared__ Conv2dRow rows[CONV2D_ROWS];
  int stride_h = STRIDE > 0 ? STRIDE : shape.stride_h, stride_w = STRIDE > 0 ? STRIDE : shape.stride_w;
  unsigned pixels = shape.h * shape.w, area = shape.r * shape.s, c0 = blockIdx.y * CONV2D_FILTERS;
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, total = (size_t)shape.n * pixels;
  size_t here = i < total ? i : total - 1, n = here / pixels;
  unsigned pixel = here % pixels, h = pixel / shape.w + shape.padding_h, v = pixel % shape.w + shape.padding_w;
  int p0 = h / stride_h, q0 = v / stride_w, h_phase = h % stride_h, v_phase = v % stride_w;
  const float *corner = dy + n * shape.k * p_count * q_count + p0 * q_count + q0;

  float sum[CONV2D_FILTERS] = {0};
  for (int s0 = 0; s0 < shape.s; s0 += CONV2D_COLUMNS) {
    bool inside[CONV2D_COLUMNS];
    int column[CONV2D_COLUMNS];
    for (int j = 0; j < CONV2D_COLUMNS; j++) {
      column[j] = -((s0 + j) / stride_w);
      inside[j] = s0 + j < shape.s && (s0 + j) % stride_w == v_phase && q0 + column[j] >= 0 && q0 + column[j] < q_count;
    }
    for (int first = 0; first < shape.k * shape.r; first += CONV2D_ROWS) {
      int count = min(CONV2D_ROWS, shape.k * shape.r - first);
      __syncthreads();
      conv2d_backward_input_load(filters, rows, w, shape, stride_h, p_count, q_count, area, c0, s0, first, count);
      __syncthreads();

      for (int e = threadIdx.y; e < count; e += blockDim.y) {
        Conv2dRow row = rows[e];
        const float *from = corner + row.offset;
        bool row_inside = row.phase == h_phase && (unsigned)(p0 + row.h) < (unsigned)p_count;
        for (int j = 0; j < CONV2D_COLUMNS; j++) {
          float input = row_inside && inside[j] ? from[column[j]] : 0.0f;
          conv2d_add_products(sum, filters[e][j], input);
        }
      }
    }
  }
  conv2d_add_shares<CONV2D_BLOCK>(sum);
  if (i >= total || threadIdx.y > 0) return;

  float *out = dx + (n * shape.c + c0) * pixels + pixel;
  for (int f = 0; f < CONV2D_FILTERS; f++)
    if ((int)c0 + f < shape.c) out[(size_t)f * pixels] = sum[f];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launcher */

static inline void conv2d_backward_input_gpu(float *dx, const float *dy, const float *w, Conv2dShape s) {
  size_t pixels = (size_t)s.n * s.h * s.w;
  dim3 block = conv2d_block(s.k * s.r, pixels, s.c), grid = conv2d_grid(pixels, s.c, block);
  if (s.stride_h == 1 && s.stride_w == 1)
    conv2d_backward_input_kernel<1><<<grid, block>>>(dx, dy, w, s, conv2d_out_h(s), conv2d_out_w(s));
  else
    conv2d_backward_input_kernel<0><<<grid, block>>>(dx, dy, w, s, conv2d_out_h(s), conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_CONV2D_BACKWARD_INPUT_CUH */
