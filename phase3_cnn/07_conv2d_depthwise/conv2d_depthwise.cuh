/* conv2d_depthwise.cuh - depthwise convolution: each channel has filters of its own. float32, NCHW.
 *
 * It is a convolution with as many groups as channels (conv2d_shape.cuh): w (K,1,R,S), K = M C, and filter k reads
 * channel k / M alone. So an output is the sum of R S products instead of C R S. An H200 can do about 30 multiply-adds
 * per float that it moves, and here it does R S for two floats: the bytes of x and y are the limit, not the products.
 *
 *     x (N,C,H,W)   w (K,1,R,S)   bias (K)   y (N,K,P,Q)
 *
 *   conv2d_forward_naive            lesson 1: one thread per output, R S loads of x and of w for R S products
 *   conv2d_depthwise_forward          a thread computes DEPTHWISE_STRIP outputs below each other. Their inputs overlap:
 *                                     it loads each row of inputs once. The filter stays in registers
 *   conv2d_depthwise_backward_input   stride 1 and M = 1: the same kernel, with the filter rotated by 180 degrees;
 *                                     other shapes: one thread per input, which gathers
 *   conv2d_depthwise_backward_weight  a block per filter and slice of the images. Each thread keeps the R S sums of its
 *                                     pixels in registers; the block adds them up; a second kernel adds up the slices
 *
 * Filters of 3 x 3 and 5 x 5 with stride 1 or 2 and dilation 1 are templates, whose loops are unrolled; other shapes
 * run through the same kernels with loops. No result depends on the order of threads. MobileNetV2 (Sandler et al.,
 * 2018) is built of depthwise and pointwise (1 x 1) convolutions: together they need 1 / K + 1 / (R S) of the products
 * of a full convolution.
 */
#ifndef PHASE3_CNN_CONV2D_DEPTHWISE_CUH
#define PHASE3_CNN_CONV2D_DEPTHWISE_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"

enum {
  DEPTHWISE_BLOCK = 256,
  DEPTHWISE_STRIP = 4,   /* outputs of a thread, below each other */
  DEPTHWISE_TAPS = 32,   /* of a filter, in the registers of backward_weight: more taps take several rounds */
  DEPTHWISE_SLICES = 64, /* of the images, in backward_weight, at most */
};

/* -1 unless every channel is a group. */
static inline int conv2d_depthwise_fits(Conv2dShape s, Error *err) {
  if (s.groups == s.c) return 0;
  return error_set(err, "depthwise convolution has as many groups as channels; this one is %s: use implicit_gemm",
                   conv2d_shape_text(s).text);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference: the loops of conv2d_cpu.cuh without those over channels */

/* x (N,C,H,W), w (K,1,R,S), bias (K) or NULL -> y (N,K,P,Q) */
static inline void conv2d_depthwise_forward_cpu(float *y, const float *x, const float *w, const float *bias,
                                                Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape), multiplier = shape.k / shape.c;
  for (int n = 0; n < shape.n; n++)
    for (int k = 0; k < shape.k; k++) {
      const float *plane = x + ((size_t)n * shape.c + k / multiplier) * shape.h * shape.w;
      for (int p = 0; p < p_count; p++)
        for (int q = 0; q < q_count; q++) {
          double sum = bias != NULL ? bias[k] : 0;
          for (int r = 0; r < shape.r; r++)
            for (int s = 0; s < shape.s; s++) {
              int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
              int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
              if (h >= 0 && h < shape.h && v >= 0 && v < shape.w)
                sum += (double)w[(k * shape.r + r) * shape.s + s] * plane[(size_t)h * shape.w + v];
            }
          *y++ = (float)sum;
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: forward, and the gradient of the input where it is the forward pass with rotated filters */

/* One thread per column of DEPTHWISE_STRIP outputs of a plane. Threads are numbered along the columns, then the strips,
 * then the planes, so that the loads of a warp are neighbours. Their number fits in 32 bits: a 64-bit division costs
 * as much as all the products of the strip. Of R = S = 0 (any filter, stride and dilation) the loops
 * are not unrolled and weights are loaded for each product. ROTATED: tap (r,s) has the weight of (R-1-r, S-1-s). */
template <int R, int S, int STRIDE, bool ROTATED>
static __global__ void __launch_bounds__(DEPTHWISE_BLOCK)
    conv2d_depthwise_kernel(float *y, const float *x, const float *w, const float *bias, Conv2dShape shape, int p_count,
                            int q_count) {
  unsigned strips = (p_count + DEPTHWISE_STRIP - 1) / DEPTHWISE_STRIP, multiplier = shape.k / shape.c;
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, columns = i / q_count,
           out_plane = columns / strips; /* n * K + k */
  if (out_plane >= (unsigned)(shape.n * shape.k)) return;
  int q = i % q_count, p0 = columns % strips * DEPTHWISE_STRIP;
  unsigned n = out_plane / shape.k, k = out_plane % shape.k;
  const float *plane = x + (size_t)(n * shape.c + k / multiplier) * shape.h * shape.w;
  const float *filter = w + k * shape.r * shape.s;
  float start = bias != NULL ? bias[k] : 0.0f, sum[DEPTHWISE_STRIP];
  for (int t = 0; t < DEPTHWISE_STRIP; t++) sum[t] = start;

  if (R > 0) {
    const int taps_h = R > 0 ? R : 1, taps_w = S > 0 ? S : 1, stride = STRIDE > 0 ? STRIDE : 1;
    float weight[taps_h][taps_w];
    for (int r = 0; r < R; r++)
      for (int s = 0; s < S; s++) weight[r][s] = filter[ROTATED ? R * S - 1 - (r * S + s) : r * S + s];

    int h0 = p0 * stride - shape.padding_h, v0 = q * stride - shape.padding_w;
    // >>> exercise depthwise_strip: go once through the rows of inputs of the strip, and use each for all its outputs
    // hint: the strip reads rows h0 to h0 + (DEPTHWISE_STRIP - 1) * stride + R - 1; load the S inputs of a row once
    // hint: row h0 + row is tap r = row - t * stride of output t, if 0 <= r < R
    // hint: input s of a row is plane[(h0 + row) * shape.w + v0 + s], or 0 outside; sum[t] += weight[r][s] * input s
#pragma unroll
    for (int row = 0; row < (DEPTHWISE_STRIP - 1) * stride + R; row++) {
      float input[taps_w];
      for (int s = 0; s < S; s++) {
        bool inside = (unsigned)(h0 + row) < (unsigned)shape.h && (unsigned)(v0 + s) < (unsigned)shape.w;
        input[s] = inside ? plane[(h0 + row) * shape.w + v0 + s] : 0.0f;
      }
      for (int t = 0; t < DEPTHWISE_STRIP; t++) {
        int r = row - t * stride;
        if (r < 0 || r >= R) continue;
        for (int s = 0; s < S; s++) sum[t] += weight[r][s] * input[s];
      }
    }
    // <<< exercise
  } else {
    for (int t = 0; t < DEPTHWISE_STRIP; t++)
      for (int r = 0; r < shape.r; r++) {
        int h = (p0 + t) * shape.stride_h - shape.padding_h + r * shape.dilation_h;
        if (h < 0 || h >= shape.h) continue;
        for (int s = 0; s < shape.s; s++) {
          int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w, tap = r * shape.s + s;
          if (v < 0 || v >= shape.w) continue;
          sum[t] += filter[ROTATED ? shape.r * shape.s - 1 - tap : tap] * plane[(size_t)h * shape.w + v];
        }
      }
  }
  float *out = y + ((size_t)out_plane * p_count + p0) * q_count + q;
  for (int t = 0; t < DEPTHWISE_STRIP && p0 + t < p_count; t++) out[(size_t)t * q_count] = sum[t];
}

/* One thread per input (n,c,h,v): it gathers from the outputs of its channel's filters that read it. STRIDE and the
 * filter's size are constants, so that the tests for a remainder are cheap; 0: any stride, size and dilation. */
template <int R, int S, int STRIDE>
static __global__ void __launch_bounds__(DEPTHWISE_BLOCK)
    conv2d_depthwise_gather_kernel(float *dx, const float *dy, const float *w, Conv2dShape shape, int p_count,
                                   int q_count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, rows = i / shape.w, plane = rows / shape.h; /* n * C + c */
  if (plane >= (unsigned)(shape.n * shape.c)) return;
  int v = i % shape.w, h = rows % shape.h, multiplier = shape.k / shape.c;
  unsigned n = plane / shape.c, c = plane % shape.c;
  const int taps_h = R > 0 ? R : shape.r, taps_w = S > 0 ? S : shape.s;
  const int stride_h = STRIDE > 0 ? STRIDE : shape.stride_h, stride_w = STRIDE > 0 ? STRIDE : shape.stride_w;
  const int dilation_h = R > 0 ? 1 : shape.dilation_h, dilation_w = S > 0 ? 1 : shape.dilation_w;
  float sum = 0;
  for (int m = 0; m < multiplier; m++) {
    int k = c * multiplier + m;
    const float *gradient = dy + (size_t)(n * shape.k + k) * p_count * q_count;
#pragma unroll
    for (int r = 0; r < taps_h; r++) {
      int p = h + shape.padding_h - r * dilation_h; /* times the stride */
      if (p < 0 || p % stride_h != 0 || p / stride_h >= p_count) continue;
#pragma unroll
      for (int s = 0; s < taps_w; s++) {
        int q = v + shape.padding_w - s * dilation_w;
        if (q < 0 || q % stride_w != 0 || q / stride_w >= q_count) continue;
        sum += w[(k * taps_h + r) * taps_w + s] * gradient[p / stride_h * q_count + q / stride_w];
      }
    }
  }
  dx[i] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: the gradient of the filters */

/* A block adds up one filter's gradient over the `images` images of slice blockIdx.y: thread t takes the pixels t, t +
 * DEPTHWISE_BLOCK, ... of each image, and keeps a sum for each tap. Then the lanes of a warp add up their sums by
 * shuffles, and the first threads those of the warps. partial (slices,K,R*S+1); the last of a filter is its bias.
 * R = S = 0: any filter, DEPTHWISE_TAPS taps at a time. */
template <int R, int S>
static __global__ void __launch_bounds__(DEPTHWISE_BLOCK)
    conv2d_depthwise_weight_kernel(float *partial, const float *dy, const float *x, Conv2dShape shape, int p_count,
                                   int q_count, int images) {
  const int held = R > 0 ? R * S + 1 : DEPTHWISE_TAPS, warps = DEPTHWISE_BLOCK / 32;
  __shared__ float sums[warps][held];
  int area = shape.r * shape.s, k = blockIdx.x, c = k / (shape.k / shape.c), pixels = p_count * q_count;
  int first = blockIdx.y * images, last = min(first + images, shape.n);
  float *out = partial + ((size_t)blockIdx.y * shape.k + k) * (area + 1);
  int down = DEPTHWISE_BLOCK / q_count, across = DEPTHWISE_BLOCK % q_count; /* to the thread's next pixel */

  for (int tap0 = 0; tap0 <= area; tap0 += held) {
    float sum[held];
    for (int t = 0; t < held; t++) sum[t] = 0;
    for (int n = first; n < last; n++) {
      const float *gradient = dy + ((size_t)n * shape.k + k) * pixels;
      const float *plane = x + ((size_t)n * shape.c + c) * shape.h * shape.w;
      int p = threadIdx.x / q_count, q = threadIdx.x % q_count; /* of pixel i; 32 lanes are mostly one row */
      for (int i = threadIdx.x; i < pixels; i += DEPTHWISE_BLOCK) {
        float g = gradient[i];
        int h0 = p * shape.stride_h - shape.padding_h, v0 = q * shape.stride_w - shape.padding_w;
        p += down;
        q += across;
        if (q >= q_count) q -= q_count, p++;
        // >>> exercise depthwise_weight: add this pixel's gradient times what each tap read to the tap's sum
        // hint: tap0 + t is tap (r,s) = ((tap0 + t) / S, (tap0 + t) % S); tap R * S is the bias, which always reads 1
        // hint: tap (r,s) read plane (h0 + r * dilation_h, v0 + s * dilation_w), or 0 if that lies outside of the image
        // hint: for t < held: tap = tap0 + t; tap < area: r = tap / width ...; sum[t] += g * input
        const int width = S > 0 ? S : shape.s;
#pragma unroll
        for (int t = 0; t < held; t++) {
          int tap = tap0 + t, h = h0 + tap / width * shape.dilation_h, v = v0 + tap % width * shape.dilation_w;
          bool inside = tap < area && (unsigned)h < (unsigned)shape.h && (unsigned)v < (unsigned)shape.w;
          float input = inside ? plane[h * shape.w + v] : tap == area ? 1.0f : 0.0f;
          sum[t] += g * input;
        }
        // <<< exercise
      }
    }
    for (int t = 0; t < held; t++) {
      for (int step = 16; step > 0; step /= 2) sum[t] += __shfl_xor_sync(0xffffffffu, sum[t], step);
      if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32][t] = sum[t];
    }
    __syncthreads();
    for (int t = threadIdx.x; t < held && tap0 + t <= area; t += DEPTHWISE_BLOCK) {
      float total = 0;
      for (int warp = 0; warp < warps; warp++) total += sums[warp][t];
      out[tap0 + t] = total;
    }
    __syncthreads(); /* before the next round writes to the sums */
  }
}

/* One thread per weight and bias adds up the slices, in their order. */
static __global__ void conv2d_depthwise_weight_sum_kernel(float *dw, float *dbias, const float *partial, int filters,
                                                          int area, int slices) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = i / (area + 1), tap = i % (area + 1);
  if (k >= filters) return;
  float sum = 0;
  for (int slice = 0; slice < slices; slice++) sum += partial[(size_t)slice * filters * (area + 1) + i];
  if (tap < area)
    dw[k * area + tap] = sum;
  else if (dbias != NULL)
    dbias[k] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* The side of a filter that has a template: 3 or 5; otherwise 0. The templates have stride 1 and 2. */
static inline int conv2d_depthwise_side(Conv2dShape s) {
  const bool square = s.r == s.s && s.stride_h == s.stride_w && s.dilation_h == 1 && s.dilation_w == 1;
  return square && (s.r == 3 || s.r == 5) && s.stride_h <= 2 ? s.r : 0;
}

/* As many images at a time as have less than 2^31 threads and planes of y; conv2d_shape_check() grants one. */
static inline int conv2d_depthwise_at_once(Conv2dShape s, size_t threads_per_image) {
  const size_t most = threads_per_image > (size_t)s.k ? threads_per_image : (size_t)s.k;
  const size_t images = (INT_MAX - DEPTHWISE_BLOCK) / most;
  return images < (size_t)s.n ? (int)images : s.n;
}

template <bool ROTATED>
static inline void conv2d_depthwise_launch(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  s = conv2d_bounded_stride(s); /* the last rows of a strip are no outputs, but their inputs' rows are computed */
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s), strips = (p_count + DEPTHWISE_STRIP - 1) / DEPTHWISE_STRIP;
  const size_t threads = (size_t)s.k * strips * q_count;
  const int images = s.n, at_once = conv2d_depthwise_at_once(s, threads), side = conv2d_depthwise_side(s);
  for (int n = 0; n < images; n += at_once) {
    s.n = images - n < at_once ? images - n : at_once;
    const unsigned blocks = conv2d_blocks(threads * s.n);
    float *to = y + (size_t)n * s.k * p_count * q_count;
    const float *from = x + (size_t)n * s.c * s.h * s.w;
    if (side == 3 && s.stride_h == 1)
      conv2d_depthwise_kernel<3, 3, 1, ROTATED><<<blocks, DEPTHWISE_BLOCK>>>(to, from, w, bias, s, p_count, q_count);
    else if (side == 3)
      conv2d_depthwise_kernel<3, 3, 2, ROTATED><<<blocks, DEPTHWISE_BLOCK>>>(to, from, w, bias, s, p_count, q_count);
    else if (side == 5 && s.stride_h == 1)
      conv2d_depthwise_kernel<5, 5, 1, ROTATED><<<blocks, DEPTHWISE_BLOCK>>>(to, from, w, bias, s, p_count, q_count);
    else if (side == 5)
      conv2d_depthwise_kernel<5, 5, 2, ROTATED><<<blocks, DEPTHWISE_BLOCK>>>(to, from, w, bias, s, p_count, q_count);
    else
      conv2d_depthwise_kernel<0, 0, 0, ROTATED><<<blocks, DEPTHWISE_BLOCK>>>(to, from, w, bias, s, p_count, q_count);
    CUDA_CHECK_LAUNCH();
  }
}

static inline void conv2d_depthwise_forward(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                            float *workspace) {
  (void)workspace;
  conv2d_depthwise_launch<false>(y, x, w, bias, s);
}

/* With stride 1 and one filter per channel, input h contributed to the outputs p = h + padding - r * dilation. That is
 * a convolution of dy whose tap R-1-r has the weight of r, padded by what is left of the filter's span. */
static inline void conv2d_depthwise_backward_input(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                   float *workspace) {
  (void)workspace;
  Conv2dShape mirror = s;
  mirror.h = conv2d_out_h(s);
  mirror.w = conv2d_out_w(s);
  mirror.padding_h = conv2d_span_h(s) - 1 - s.padding_h;
  mirror.padding_w = conv2d_span_w(s) - 1 - s.padding_w;
  if (s.stride_h == 1 && s.stride_w == 1 && s.k == s.c && mirror.padding_h >= 0 && mirror.padding_w >= 0) {
    conv2d_depthwise_launch<true>(dx, dy, w, NULL, mirror);
    return;
  }
  const int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s), side = s.stride_h == 2 ? conv2d_depthwise_side(s) : 0;
  const size_t threads = (size_t)s.c * s.h * s.w;
  const int images = s.n, at_once = conv2d_depthwise_at_once(s, threads);
  for (int n = 0; n < images; n += at_once) {
    s.n = images - n < at_once ? images - n : at_once;
    const unsigned blocks = conv2d_blocks(threads * s.n);
    float *to = dx + (size_t)n * threads;
    const float *from = dy + (size_t)n * s.k * p_count * q_count;
    if (side == 3)
      conv2d_depthwise_gather_kernel<3, 3, 2><<<blocks, DEPTHWISE_BLOCK>>>(to, from, w, s, p_count, q_count);
    else if (side == 5)
      conv2d_depthwise_gather_kernel<5, 5, 2><<<blocks, DEPTHWISE_BLOCK>>>(to, from, w, s, p_count, q_count);
    else
      conv2d_depthwise_gather_kernel<0, 0, 0><<<blocks, DEPTHWISE_BLOCK>>>(to, from, w, s, p_count, q_count);
    CUDA_CHECK_LAUNCH();
  }
}

/* One block per filter fills a GPU only with many filters; with fewer, each block takes a slice of the images. */
static inline int conv2d_depthwise_images(Conv2dShape s) {
  int slices = (4 * conv2d_multiprocessors() + s.k - 1) / s.k;
  if (slices > DEPTHWISE_SLICES) slices = DEPTHWISE_SLICES;
  return s.n > slices ? (s.n + slices - 1) / slices : 1;
}

static inline size_t conv2d_depthwise_workspace_floats(Conv2dShape s) {
  size_t slices = s.n < DEPTHWISE_SLICES ? s.n : DEPTHWISE_SLICES;
  return slices * s.k * (s.r * s.s + 1);
}

static inline void conv2d_depthwise_backward_weight(float *dw, float *dbias, const float *dy, const float *x,
                                                    Conv2dShape s, float *workspace) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s), area = s.r * s.s, images = conv2d_depthwise_images(s);
  if (s.r == 1) s.dilation_h = 1; /* one tap has no gaps, and the kernel multiplies by what is given */
  if (s.s == 1) s.dilation_w = 1;
  dim3 grid(s.k, (s.n + images - 1) / images);
  if (s.r == 3 && s.s == 3)
    conv2d_depthwise_weight_kernel<3, 3><<<grid, DEPTHWISE_BLOCK>>>(workspace, dy, x, s, p_count, q_count, images);
  else if (s.r == 5 && s.s == 5)
    conv2d_depthwise_weight_kernel<5, 5><<<grid, DEPTHWISE_BLOCK>>>(workspace, dy, x, s, p_count, q_count, images);
  else
    conv2d_depthwise_weight_kernel<0, 0><<<grid, DEPTHWISE_BLOCK>>>(workspace, dy, x, s, p_count, q_count, images);
  CUDA_CHECK_LAUNCH();
  conv2d_depthwise_weight_sum_kernel<<<conv2d_blocks((size_t)s.k * (area + 1)), CONV2D_BLOCK>>>(dw, dbias, workspace,
                                                                                                s.k, area, (int)grid.y);
  CUDA_CHECK_LAUNCH();
}

static const Conv2dMethod conv2d_depthwise_method = {"depthwise",
                                                     conv2d_depthwise_fits,
                                                     conv2d_depthwise_workspace_floats,
                                                     conv2d_depthwise_forward,
                                                     conv2d_depthwise_backward_input,
                                                     conv2d_depthwise_backward_weight,
                                                     conv2d_no_floats};

#endif /* PHASE3_CNN_CONV2D_DEPTHWISE_CUH */
