/* conv2d_transposed.cuh - transposed convolution: it enlarges an image with learned filters. float32, NCHW.
 *
 *     x (N,C,H,W)   w (C,K/groups,R,S)   bias (K)   y (N,K,P,Q)
 *     P = (H - 1) stride_h - 2 padding_h + dilation_h (R - 1) + 1 + output_padding_h, Q likewise
 *
 * Each input is multiplied by a whole filter, and the product is added to R x S places of the output, `stride` further
 * for the next input:
 *
 *     y[n, k, h * stride - padding + r * dilation, v * stride - padding + s * dilation] += w[c,k,r,s] * x[n,c,h,v]
 *
 * Compare conv2d_cpu.cuh: that is how an output's gradient spreads to the inputs of a convolution. So this operation is
 * the gradient of a convolution, its mirror: the mirror reads images like y (K channels, P x Q) and writes images like
 * x (C filters, H x W), with the same w. conv2d_transposed_mirror() returns its shape, and
 *
 *     forward of the transposed convolution          = gradient of the mirror's input, plus bias
 *     gradient of the input of the transposed one    = forward of the mirror
 *     gradient of its weights                        = gradient of the mirror's weights: x is its dy, dy is its x
 *
 * It does not undo a convolution: the matrix of the linear map is transposed, not inverted. output_padding tells apart
 * the sizes P that the mirror maps to the same H: it adds rows and columns at the end. (As PyTorch's ConvTranspose2d.)
 *
 * Versions of the forward pass:
 *   conv2d_transposed_scatter   one thread per input and filter of a group adds its R S products to y, by atomicAdd:
 *                               the order of the sums differs from run to run, and so do the last bits
 *   conv2d_transposed_gather    one thread per output, all taps: with stride 2 three of four tests fail
 *   conv2d_transposed_phases    outputs of one remainder by the stride, a phase, read the same taps: a thread visits
 *                               only those, and the threads of a warp are of one phase
 *   conv2d_transposed_forward   phases, and each input that is loaded serves TRANSPOSED_FILTERS filters, whose weights
 *                               lie side by side in shared memory
 * The gradients are those of lesson 1, of the mirror. Dumoulin and Visin, "A guide to convolution arithmetic", 2016.
 */
#ifndef PHASE3_CNN_CONV2D_TRANSPOSED_CUH
#define PHASE3_CNN_CONV2D_TRANSPOSED_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"

enum { TRANSPOSED_FILTERS = 8, TRANSPOSED_WEIGHTS = 512 }; /* outputs of a thread; taps in shared memory at once */

/* The mirror of a transposed convolution of x (n,c,h,w) with k filters: a convolution of (n,k,P,Q) to (n,c,h,w). `like`
 * has r, s, stride, padding, dilation and groups. */
static inline int conv2d_transposed_mirror(Conv2dShape *mirror, int n, int c, int h, int w, int k, Conv2dShape like,
                                           int output_padding_h, int output_padding_w, Error *err) {
  if (like.stride_h < 1 || like.stride_w < 1)
    return error_set(err, "transposed convolution with stride %d x %d: the stride must be at least 1", like.stride_h,
                     like.stride_w);
  *mirror = like;
  mirror->n = n;
  mirror->c = k;
  mirror->k = c;
  const double height =
      (h - 1.0) * like.stride_h - 2.0 * like.padding_h + like.dilation_h * (like.r - 1.0) + 1 + output_padding_h;
  const double width =
      (w - 1.0) * like.stride_w - 2.0 * like.padding_w + like.dilation_w * (like.s - 1.0) + 1 + output_padding_w;
  if (output_padding_h < 0 || output_padding_w < 0 || output_padding_h >= like.stride_h ||
      output_padding_w >= like.stride_w)
    return error_set(
        err,
        "transposed convolution with output padding %d x %d and stride %d x %d: the output padding must be "
        "at least 0 and less than the stride",
        output_padding_h, output_padding_w, like.stride_h, like.stride_w);
  if (height < 1 || width < 1)
    return error_set(err,
                     "transposed convolution of a %d x %d image, filters %d x %d, padding %d x %d: the output would be "
                     "%.0f x %.0f; use less padding or a larger filter",
                     h, w, like.r, like.s, like.padding_h, like.padding_w, height, width);
  if (height > INT_MAX || width > INT_MAX)
    return error_set(err,
                     "transposed convolution of a %d x %d image with stride %d x %d: the output would be %.0f x %.0f; "
                     "use a smaller image or stride",
                     h, w, like.stride_h, like.stride_w, height, width);
  mirror->h = (int)height;
  mirror->w = (int)width;
  Error reason;
  if (conv2d_shape_check(*mirror, &reason) == 0) return 0;
  return error_set(err, "transposed convolution of (%d,%d,%d,%d), mirror of a %.700s", n, c, h, w, reason.message);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference, summed in double; T is float, or double for tests of gradients by differences */

/* x (N,C,H,W), w (C,K/groups,R,S), bias (K) or NULL -> y (N,K,P,Q); m is the mirror */
template <typename T>
static inline void conv2d_transposed_forward_cpu(T *y, const T *x, const T *w, const T *bias, Conv2dShape m) {
  conv2d_backward_input_cpu(y, x, w, m);
  const size_t pixels = (size_t)m.h * m.w, planes = (size_t)m.n * m.c;
  for (size_t plane = 0; plane < planes && bias != NULL; plane++)
    for (size_t i = 0; i < pixels; i++) y[plane * pixels + i] += bias[plane % m.c];
}

/* dy (N,K,P,Q), w -> dx (N,C,H,W) */
template <typename T>
static inline void conv2d_transposed_backward_input_cpu(T *dx, const T *dy, const T *w, Conv2dShape m) {
  conv2d_forward_cpu(dx, dy, w, (const T *)NULL, m);
}

/* dy (N,K,P,Q), x (N,C,H,W) -> dw (C,K/groups,R,S), dbias (K) or NULL */
template <typename T>
static inline void conv2d_transposed_backward_weight_cpu(T *dw, T *dbias, const T *dy, const T *x, Conv2dShape m) {
  conv2d_backward_weight_cpu(dw, (T *)NULL, x, dy, m);
  const size_t pixels = (size_t)m.h * m.w;
  for (int k = 0; k < m.c && dbias != NULL; k++) {
    double sum = 0;
    for (int n = 0; n < m.n; n++)
      for (size_t i = 0; i < pixels; i++) sum += dy[((size_t)n * m.c + k) * pixels + i];
    dbias[k] = (T)sum;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels. All names are those of the transposed convolution; m is its mirror: K = m.c, P = m.h, Q = m.w, C = m.k. */

/* y[i] = bias: what scatter adds to. */
static __global__ void conv2d_transposed_bias_kernel(float *y, const float *bias, Conv2dShape m) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)m.n * m.c * m.h * m.w) return;
  y[i] = bias != NULL ? bias[i / ((size_t)m.h * m.w) % m.c] : 0.0f;
}

/* One thread per (n,c,h,v) and filter of the group: it reads one input and adds to R S outputs. */
static __global__ void conv2d_transposed_scatter_kernel(float *y, const float *x, const float *w, Conv2dShape m,
                                                        int height, int width) {
  int filters = m.c / m.groups, channels = m.k / m.groups; /* of a group */
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, inputs = (size_t)m.n * m.k * height * width;
  if (i >= inputs * filters) return;
  size_t input = i % inputs;
  int v = input % width, h = input / width % height, c = input / ((size_t)width * height) % m.k;
  int n = input / ((size_t)width * height * m.k), f = i / inputs, k = c / channels * filters + f;
  float *plane = y + ((size_t)n * m.c + k) * m.h * m.w;
  const float *filter = w + ((size_t)c * filters + f) * m.r * m.s;
  // >>> exercise transposed_scatter: add the products of this input and its filter where they belong
  // hint: tap (r,s) goes to row h * stride_h - padding_h + r * dilation_h of the output; columns likewise, with v and s
  // hint: rows outside of 0 ... m.h - 1 and columns outside of 0 ... m.w - 1 are not stored: the padding cuts them off
  // hint: other threads add to the same output: atomicAdd(&plane[(size_t)p * m.w + q], filter[r * m.s + s] * x[input])
  for (int r = 0; r < m.r; r++)
    for (int s = 0; s < m.s; s++) {
      int p = h * m.stride_h - m.padding_h + r * m.dilation_h, q = v * m.stride_w - m.padding_w + s * m.dilation_w;
      if (p < 0 || p >= m.h || q < 0 || q >= m.w) continue;
      atomicAdd(&plane[(size_t)p * m.w + q], filter[r * m.s + s] * x[input]);
    }
  // <<< exercise
}

/* One thread per output: of every tap, the input that this tap would have brought here, if there is one. */
static __global__ void conv2d_transposed_gather_kernel(float *y, const float *x, const float *w, const float *bias,
                                                       Conv2dShape m, int height, int width) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)m.n * m.c * m.h * m.w) return;
  int q = i % m.w, p = i / m.w % m.h, k = i / ((size_t)m.w * m.h) % m.c, n = i / ((size_t)m.w * m.h * m.c);
  int filters = m.c / m.groups, channels = m.k / m.groups, first = k / filters * channels;
  float sum = bias != NULL ? bias[k] : 0.0f;
  for (int c = first; c < first + channels; c++)
    for (int r = 0; r < m.r; r++)
      for (int s = 0; s < m.s; s++) {
        int h = p + m.padding_h - r * m.dilation_h, v = q + m.padding_w - s * m.dilation_w; /* times the stride */
        if (h < 0 || v < 0 || h % m.stride_h != 0 || v % m.stride_w != 0) continue;
        h /= m.stride_h;
        v /= m.stride_w;
        if (h >= height || v >= width) continue;
        sum += w[(((size_t)c * filters + k % filters) * m.r + r) * m.s + s] *
               x[(((size_t)n * m.k + c) * height + h) * width + v];
      }
  y[i] = sum;
}

/* The taps r that reach row p: those for which p + padding - r * dilation is a multiple of the stride. They are `step`
 * apart, and from one to the next the input's row decreases by `up`. */
typedef struct TransposedTaps {
  int first, step, up, input; /* the first tap, taps from one to the next; rows; the row that the first one reads */
} TransposedTaps;

static __host__ __device__ inline int conv2d_transposed_gcd(int a, int b) {
  while (b != 0) {
    int rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* first = taps: there is none. */
static __device__ __forceinline__ TransposedTaps conv2d_transposed_taps(int p, int taps, int stride, int padding,
                                                                        int dilation, int divisor) {
  TransposedTaps t = {0, stride / divisor, dilation / divisor, 0};
  int at = p + padding;
  while (t.first < taps && t.first < t.step && (at - t.first * dilation) % stride != 0) t.first++;
  if (t.first >= t.step) t.first = taps;
  t.input = (at - t.first * dilation) / stride; /* exact where there is a tap */
  return t;
}

/* Output i of a plane, in an order in which those of one phase are neighbours: by p % stride_h and q % stride_w first,
 * then by the rows and columns of the phase. */
static __device__ __forceinline__ void conv2d_transposed_place(int i, Conv2dShape m, int *p, int *q) {
  int rows = 0, cols = 0, phase = 0;
  for (;; phase++) {
    rows = (m.h - phase / m.stride_w + m.stride_h - 1) / m.stride_h;
    cols = (m.w - phase % m.stride_w + m.stride_w - 1) / m.stride_w;
    if (i < rows * cols) break;
    i -= rows * cols;
  }
  *p = i / cols * m.stride_h + phase / m.stride_w;
  *q = i % cols * m.stride_w + phase % m.stride_w;
}

/* One thread per output, in the order of phases; divisor_h and divisor_w are gcd(stride, dilation). */
static __global__ void conv2d_transposed_phases_kernel(float *y, const float *x, const float *w, const float *bias,
                                                       Conv2dShape m, int height, int width, int divisor_h,
                                                       int divisor_w) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, pixels = (size_t)m.h * m.w;
  if (i >= (size_t)m.n * m.c * pixels) return;
  int p, q, k = i / pixels % m.c, n = i / pixels / m.c;
  conv2d_transposed_place(i % pixels, m, &p, &q);
  TransposedTaps rows = conv2d_transposed_taps(p, m.r, m.stride_h, m.padding_h, m.dilation_h, divisor_h);
  TransposedTaps cols = conv2d_transposed_taps(q, m.s, m.stride_w, m.padding_w, m.dilation_w, divisor_w);
  int filters = m.c / m.groups, channels = m.k / m.groups, first = k / filters * channels;
  float sum = bias != NULL ? bias[k] : 0.0f;
  for (int c = first; c < first + channels; c++) {
    const float *plane = x + ((size_t)n * m.k + c) * height * width;
    const float *filter = w + ((size_t)c * filters + k % filters) * m.r * m.s;
    // >>> exercise transposed_phases: add the products of the taps that reach this output, and visit no others
    // hint: rows.first, rows.first + rows.step, ... are the taps r; the first reads row rows.input of x
    // hint: the next tap reads row rows.input - rows.up, and so on; skip rows outside of 0 ... height - 1
    // hint: for (int r = rows.first, h = rows.input; r < m.r; r += rows.step, h -= rows.up) and columns in the same way
    for (int r = rows.first, h = rows.input; r < m.r; r += rows.step, h -= rows.up) {
      if (h < 0 || h >= height) continue;
      for (int s = cols.first, v = cols.input; s < m.s; s += cols.step, v -= cols.up)
        if (v >= 0 && v < width) sum += filter[r * m.s + s] * plane[h * width + v];
    }
    // <<< exercise
  }
  y[((size_t)n * m.c + k) * pixels + (size_t)p * m.w + q] = sum;
}

/* A thread computes one output pixel of TRANSPOSED_FILTERS filters of a group: an input is loaded once for all of them.
 * Their weights, of as many channels as fit, lie in shared memory, the filters side by side. blockIdx.y: group of
 * filters; blockIdx.z: image. A plane's pixels are in the order of phases, so that the lanes of a warp read the same
 * weights, except where a phase ends. */
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_transposed_kernel(float *y, const float *x, const float *w, const float *bias, Conv2dShape m, int height,
                             int width, int divisor_h, int divisor_w) {
  __shared__ __align__(16) float weights[TRANSPOSED_WEIGHTS][TRANSPOSED_FILTERS];
  int filters = m.c / m.groups, channels = m.k / m.groups, area = m.r * m.s, pixels = m.h * m.w;
  int tiles = (filters + TRANSPOSED_FILTERS - 1) / TRANSPOSED_FILTERS; /* of a group */
  int group = blockIdx.y / tiles, f0 = blockIdx.y % tiles * TRANSPOSED_FILTERS, n = blockIdx.z;
  int i = blockIdx.x * blockDim.x + threadIdx.x, p, q;
  conv2d_transposed_place(min(i, pixels - 1), m, &p, &q); /* threads past the end help to load, but do not store */
  TransposedTaps rows = conv2d_transposed_taps(p, m.r, m.stride_h, m.padding_h, m.dilation_h, divisor_h);
  TransposedTaps cols = conv2d_transposed_taps(q, m.s, m.stride_w, m.padding_w, m.dilation_w, divisor_w);

  float sum[TRANSPOSED_FILTERS] = {0};
  int taps = channels * area; /* tap c * area + r * S + s */
  for (int tap0 = 0; tap0 < taps; tap0 += TRANSPOSED_WEIGHTS) {
    int count = min(TRANSPOSED_WEIGHTS, taps - tap0);
    __syncthreads(); /* all threads have finished with the weights before */
    for (int e = threadIdx.x; e < count * TRANSPOSED_FILTERS; e += CONV2D_BLOCK) {
      int f = f0 + e / count, tap = tap0 + e % count, c = group * channels + tap / area;
      weights[e % count][e / count] = f < filters ? w[((size_t)c * filters + f) * area + tap % area] : 0.0f;
    }
    __syncthreads();
    for (int c = tap0 / area; c * area < tap0 + count; c++) {
      const float *plane = x + ((size_t)n * m.k + group * channels + c) * height * width;
      // >>> hidden transposed_phases
      for (int r = rows.first, h = rows.input; r < m.r; r += rows.step, h -= rows.up) {
        if (h < 0 || h >= height) continue;
        for (int s = cols.first, v = cols.input; s < m.s; s += cols.step, v -= cols.up) {
          int tap = c * area + r * m.s + s - tap0;
          if (v < 0 || v >= width || tap < 0 || tap >= count) continue; /* a channel may lie in two portions */
          float input = plane[h * width + v];
          for (int f = 0; f < TRANSPOSED_FILTERS; f++) sum[f] += weights[tap][f] * input;
        }
      }
      // <<< hidden
    }
  }
  if (i >= pixels) return;
  int k0 = group * filters + f0;
  float *out = y + ((size_t)n * m.c + k0) * pixels + (size_t)p * m.w + q;
  for (int f = 0; f < TRANSPOSED_FILTERS; f++)
    if (f0 + f < filters) out[(size_t)f * pixels] = sum[f] + (bias != NULL ? bias[k0 + f] : 0.0f);
}

/* One block per filter: dbias[k] is the sum of dy over images and pixels, in an order that does not change. */
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_transposed_bias_gradient_kernel(float *dbias, const float *dy, Conv2dShape m) {
  __shared__ float sums[CONV2D_BLOCK / 32];
  size_t pixels = (size_t)m.h * m.w;
  float sum = 0;
  for (int n = 0; n < m.n; n++)
    for (size_t i = threadIdx.x; i < pixels; i += CONV2D_BLOCK) sum += dy[((size_t)n * m.c + blockIdx.x) * pixels + i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int warp = 1; warp < CONV2D_BLOCK / 32; warp++) sum += sums[warp];
  dbias[blockIdx.x] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers; m is the mirror */

typedef void Conv2dTransposedForward(float *y, const float *x, const float *w, const float *bias, Conv2dShape m);

static inline void conv2d_transposed_scatter(float *y, const float *x, const float *w, const float *bias,
                                             Conv2dShape m) {
  conv2d_transposed_bias_kernel<<<conv2d_blocks(conv2d_x_count(m)), CONV2D_BLOCK>>>(y, bias, m);
  CUDA_CHECK_LAUNCH();
  size_t threads = conv2d_y_count(m) * (m.c / m.groups);
  conv2d_transposed_scatter_kernel<<<conv2d_blocks(threads), CONV2D_BLOCK>>>(y, x, w, m, conv2d_out_h(m),
                                                                             conv2d_out_w(m));
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_transposed_gather(float *y, const float *x, const float *w, const float *bias,
                                            Conv2dShape m) {
  conv2d_transposed_gather_kernel<<<conv2d_blocks(conv2d_x_count(m)), CONV2D_BLOCK>>>(y, x, w, bias, m, conv2d_out_h(m),
                                                                                      conv2d_out_w(m));
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_transposed_phases(float *y, const float *x, const float *w, const float *bias,
                                            Conv2dShape m) {
  m = conv2d_bounded_stride(m); /* a range of threads for each phase */
  conv2d_transposed_phases_kernel<<<conv2d_blocks(conv2d_x_count(m)), CONV2D_BLOCK>>>(
      y, x, w, bias, m, conv2d_out_h(m), conv2d_out_w(m), conv2d_transposed_gcd(m.stride_h, m.dilation_h),
      conv2d_transposed_gcd(m.stride_w, m.dilation_w));
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_transposed_forward(float *y, const float *x, const float *w, const float *bias,
                                             Conv2dShape m) {
  m = conv2d_bounded_stride(m);
  int tiles = (m.c / m.groups + TRANSPOSED_FILTERS - 1) / TRANSPOSED_FILTERS;
  for (int n = 0; n < m.n; n += 65535) { /* the most that grid.z can be */
    int images = m.n - n < 65535 ? m.n - n : 65535;
    dim3 grid(conv2d_blocks((size_t)m.h * m.w), m.groups * tiles, images);
    conv2d_transposed_kernel<<<grid, CONV2D_BLOCK>>>(
        y + (size_t)n * m.c * m.h * m.w, x + (size_t)n * m.k * conv2d_out_h(m) * conv2d_out_w(m), w, bias, m,
        conv2d_out_h(m), conv2d_out_w(m), conv2d_transposed_gcd(m.stride_h, m.dilation_h),
        conv2d_transposed_gcd(m.stride_w, m.dilation_w));
    CUDA_CHECK_LAUNCH();
  }
}

/* On any device: workspace of conv2d_workspace_floats(device, m). */
static inline void conv2d_transposed_backward_input(Device device, float *dx, const float *dy, const float *w,
                                                    Conv2dShape m, float *workspace) {
  conv2d_forward(device, dx, dy, w, NULL, m, workspace);
}

static inline void conv2d_transposed_backward_weight(Device device, float *dw, float *dbias, const float *dy,
                                                     const float *x, Conv2dShape m, float *workspace) {
  conv2d_backward_weight(device, dw, NULL, x, dy, m, workspace);
  if (dbias == NULL) return;
  if (device == DEVICE_GPU) {
    conv2d_transposed_bias_gradient_kernel<<<m.c, CONV2D_BLOCK>>>(dbias, dy, m);
    CUDA_CHECK_LAUNCH();
    return;
  }
  const size_t pixels = (size_t)m.h * m.w;
#pragma omp parallel for
  for (int k = 0; k < m.c; k++) {
    double sum = 0;
    for (int n = 0; n < m.n; n++)
      for (size_t i = 0; i < pixels; i++) sum += dy[((size_t)n * m.c + k) * pixels + i];
    dbias[k] = (float)sum;
  }
}

/* The CPU's fast forward pass; workspace as above. */
static inline void conv2d_transposed_forward_cpu_fast(float *y, const float *x, const float *w, const float *bias,
                                                      Conv2dShape m, float *workspace) {
  conv2d_backward_input_cpu_fast(y, x, w, m, workspace);
  const size_t pixels = (size_t)m.h * m.w;
#pragma omp parallel for collapse(2)
  for (int n = 0; n < m.n; n++)
    for (int k = 0; k < m.c; k++) {
      float *plane = y + ((size_t)n * m.c + k) * pixels;
      for (size_t i = 0; i < pixels && bias != NULL; i++) plane[i] += bias[k];
    }
}

#endif /* PHASE3_CNN_CONV2D_TRANSPOSED_CUH */
