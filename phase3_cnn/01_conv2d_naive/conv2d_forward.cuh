/* conv2d_forward.cuh - the forward pass of convolution (conv2d.cuh) on the GPU, as the networks use it.
 *
 *   conv2d_forward_gpu     a thread loads an input once for eight filters; filters in shared memory; where a batch has
 *                          too few pixels, the threads of a block share out the sum of a pixel
 *   conv2d_relu_forward_gpu    the same of max(0, y), for inference
 */
#ifndef PHASE3_CNN_CONV2D_FORWARD_CUH
#define PHASE3_CNN_CONV2D_FORWARD_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_gpu.cuh"

/* The filters k0 ... k0 + 7 to shared memory: `count` rows of taps from row `first` on, of each CONV2D_COLUMNS columns
 * from s0 on; and for each row where it reads. Row c * R + r of the taps is row r of channel c. */
static __device__ __forceinline__ void conv2d_forward_load(Conv2dFilters *filters, Conv2dRow *rows, const float *w,
                                                           Conv2dShape shape, unsigned taps, unsigned k0, int s0,
                                                           int first, int count) {
  for (int e = threadIdx.y * blockDim.x + threadIdx.x; e < count * CONV2D_COLUMNS; e += CONV2D_BLOCK) {
    int row = first + e / CONV2D_COLUMNS, s = s0 + e % CONV2D_COLUMNS, c = row / shape.r, r = row % shape.r;
    float *to = filters[e / CONV2D_COLUMNS][e % CONV2D_COLUMNS];
    conv2d_load_filters(to, w + (size_t)k0 * taps + row * shape.s + s, taps, s < shape.s ? shape.k - k0 : 0);
    if (s == s0) rows[e / CONV2D_COLUMNS] = {r, (c * shape.h + r) * shape.w + s0, 0};
  }
}

/* A thread computes one pixel of CONV2D_FILTERS filters: it loads an input once for all their products, and the weights
 * of a tap lie side by side in shared memory, where the whole warp reads the same 16 bytes. A small batch has too few
 * pixels to fill a GPU, so threads (x, 0), (x, 1), ... of a block share out the rows of taps of pixel x. blockIdx.y
 * counts the groups of filters. What is below `least` becomes `least`. */
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_forward_kernel(float *y, const float *x, const float *w, const float *bias, Conv2dShape shape, int p_count,
                          int q_count, float least) {
  __shared__ __align__(16) Conv2dFilters filters[CONV2D_ROWS];
  __shared__ Conv2dRow rows[CONV2D_ROWS];
  unsigned pixels = p_count * q_count, taps = shape.c * shape.r * shape.s, k0 = blockIdx.y * CONV2D_FILTERS;
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, total = (size_t)shape.n * pixels;
  size_t here = i < total ? i : total - 1, n = here / pixels; /* threads past the end help to load, but do not store */
  unsigned pixel = here % pixels;
  int h0 = (int)(pixel / q_count) * shape.stride_h - shape.padding_h;
  int v0 = (int)(pixel % q_count) * shape.stride_w - shape.padding_w;
  const float *corner = x + n * shape.c * shape.h * shape.w + h0 * shape.w + v0;

  float sum[CONV2D_FILTERS] = {0};
  for (int s0 = 0; s0 < shape.s; s0 += CONV2D_COLUMNS) {
    bool inside[CONV2D_COLUMNS]; /* of the image and of the filter */
    for (int j = 0; j < CONV2D_COLUMNS; j++) inside[j] = s0 + j < shape.s && v0 + s0 + j >= 0 && v0 + s0 + j < shape.w;

    for (int first = 0; first < shape.c * shape.r; first += CONV2D_ROWS) {
      int count = min(CONV2D_ROWS, shape.c * shape.r - first);
      __syncthreads(); /* all threads have finished with the rows before */
      conv2d_forward_load(filters, rows, w, shape, taps, k0, s0, first, count);
      __syncthreads();

      for (int e = threadIdx.y; e < count; e += blockDim.y) {
        Conv2dRow row = rows[e];
        const float *from = corner + row.offset;
        bool row_inside = (unsigned)(h0 + row.h) < (unsigned)shape.h; /* negative: a large unsigned */
        for (int j = 0; j < CONV2D_COLUMNS; j++) {
          float input = row_inside && inside[j] ? from[j] : 0.0f;
          conv2d_add_products(sum, filters[e][j], input);
        }
      }
    }
  }
  conv2d_add_shares<CONV2D_BLOCK>(sum);
  if (i >= total || threadIdx.y > 0) return;

  float *out = y + (n * shape.k + k0) * pixels + pixel;
  for (int f = 0; f < CONV2D_FILTERS; f++) {
    if ((int)k0 + f >= shape.k) break;
    const float value = sum[f] + (bias != NULL ? bias[k0 + f] : 0.0f);
    out[(size_t)f * pixels] = value < least ? least : value; /* NaN stays */
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void conv2d_forward_least_gpu(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                            float least) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  size_t pixels = (size_t)s.n * p_count * q_count;
  dim3 block = conv2d_block(s.c * s.r, pixels, s.k), grid = conv2d_grid(pixels, s.k, block);
  conv2d_forward_kernel<<<grid, block>>>(y, x, w, bias, s, p_count, q_count, least);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_forward_gpu(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  conv2d_forward_least_gpu(y, x, w, bias, s, -INFINITY);
}

static inline void conv2d_relu_forward_gpu(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  conv2d_forward_least_gpu(y, x, w, bias, s, 0);
}

#endif /* PHASE3_CNN_CONV2D_FORWARD_CUH */
