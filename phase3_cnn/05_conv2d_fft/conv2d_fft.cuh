/* conv2d_fft.cuh - convolution by Fourier transforms of overlapping tiles (overlap-save), on the CPU and on the GPU.
 *
 *     x (N,C,H,W)   w (K,C,R,S)   bias (K)   y (N,K,P,Q),   R and S up to CONV2D_FFT_FILTER
 *     stride 1, dilation 1, one group, any padding
 *
 *   conv2d_forward_fft_cpu           whole images, in double: the convolution theorem line by line
 *   conv2d_forward_fft_tiled         tiles of T x T = 16, 32 or 64: transform, a product per frequency, transform back
 *   conv2d_bias_relu_forward_fft_tiled   the same and ReLU
 *   conv2d_backward_input_fft_tiled  the same kernels, other planes: dy for x, and the product without the conjugate
 *   conv2d_backward_weight_fft_tiled the same; the product sums over tiles instead of channels
 *   conv2d_fft_method                these three as a Conv2dMethod
 *
 * A tile of T x T inputs gives (T - R + 1) x (T - S + 1) outputs that are not reached by the wrap-around; neighbouring
 * tiles overlap by R - 1 rows and S - 1 columns. Per tile, channel and filter the products cost T^2/2 + 2 complex
 * multiply-adds of four real ones each; directly they would be (T - R + 1) (T - S + 1) R S.
 *
 * cuFFT's plans are state with memory of their own, which a launcher of a network may not have. These versions need
 * none: their transforms are kernels (fft_tile.cuh). conv2d_fft_cufft.cuh has the versions with cuFFT.
 */
#ifndef PHASE3_CNN_CONV2D_FFT_CUH
#define PHASE3_CNN_CONV2D_FFT_CUH

#include <stdint.h>
#include <stdlib.h>

#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"
#include "phase3_cnn/05_conv2d_fft/complex_product.cuh"
#include "phase3_cnn/05_conv2d_fft/fft_tile.cuh"

enum {
  CONV2D_FFT_FILTER = 33,         /* rows and columns of the largest filter: half of the largest tile, and one */
  CONV2D_FFT_SPECTRA = 512 << 20, /* bytes: images are transformed together as long as their spectra fit */
};

/* ---- on the CPU ---- */

/* z (count) to its spectrum, or back with sign +1 (times count); z[i] is at z[2 * i * step]. count is a power of 2. The
 * even elements' and the odd elements' transforms, halves of the length, give both halves of the whole. */
static inline void fft_cpu(double *z, int count, int step, int sign, double *scratch) {
  if (count == 1) return;
  const int half = count / 2;
  fft_cpu(z, half, 2 * step, sign, scratch);
  fft_cpu(z + 2 * step, half, 2 * step, sign, scratch);
  for (int k = 0; k < half; k++) {
    const double *even = z + 4 * k * step, *odd = even + 2 * step, angle = sign * 2 * M_PI * k / count;
    const double re = odd[0] * cos(angle) - odd[1] * sin(angle), im = odd[1] * cos(angle) + odd[0] * sin(angle);
    scratch[2 * k] = even[0] + re;
    scratch[2 * k + 1] = even[1] + im;
    scratch[2 * (k + half)] = even[0] - re;
    scratch[2 * (k + half) + 1] = even[1] - im;
  }
  for (int k = 0; k < count; k++) {
    z[2 * k * step] = scratch[2 * k];
    z[2 * k * step + 1] = scratch[2 * k + 1];
  }
}

/* z (rows,cols): rows, then columns. */
static inline void fft_2d_cpu(double *z, int rows, int cols, int sign, double *scratch) {
  for (int row = 0; row < rows; row++) fft_cpu(z + 2 * row * cols, cols, 1, sign, scratch);
  for (int col = 0; col < cols; col++) fft_cpu(z + 2 * col, rows, cols, sign, scratch);
}

/* A plane (h,w) in the middle of zeros (rows,cols), transformed. */
static inline void fft_plane_cpu(double *z, const float *plane, int h, int w, int row0, int col0, int rows, int cols,
                                 double *scratch) {
  for (int i = 0; i < 2 * rows * cols; i++) z[i] = 0;
  for (int i = 0; i < h; i++)
    for (int j = 0; j < w; j++) z[2 * ((row0 + i) * cols + col0 + j)] = plane[i * w + j];
  fft_2d_cpu(z, rows, cols, -1, scratch);
}

/* Stride 1, dilation 1, one group: whole images, padded to powers of 2. The spectra of all filters are kept. */
static inline void conv2d_forward_fft_cpu(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  int rows = 1, cols = 1;
  while (rows < s.h + 2 * s.padding_h) rows *= 2;
  while (cols < s.w + 2 * s.padding_w) cols *= 2;
  const int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  const size_t count = (size_t)rows * cols, numbers = 2 * count;
  double *filters = (double *)xmalloc(numbers * s.k * s.c * sizeof *filters);
  double *image = (double *)xmalloc(numbers * s.c * sizeof *image), *sum = (double *)xmalloc(numbers * sizeof *sum);
  double *scratch = (double *)xmalloc((size_t)(rows + cols) * 2 * sizeof *scratch);

  for (int i = 0; i < s.k * s.c; i++)
    fft_plane_cpu(filters + i * numbers, w + (size_t)i * s.r * s.s, s.r, s.s, 0, 0, rows, cols, scratch);
  for (int n = 0; n < s.n; n++) {
    for (int c = 0; c < s.c; c++)
      fft_plane_cpu(image + c * numbers, x + ((size_t)n * s.c + c) * s.h * s.w, s.h, s.w, s.padding_h, s.padding_w,
                    rows, cols, scratch);
    for (int k = 0; k < s.k; k++) {
      for (size_t i = 0; i < numbers; i++) sum[i] = 0;
      for (int c = 0; c < s.c; c++) { /* conj(W) X */
        const double *a = filters + ((size_t)k * s.c + c) * numbers, *b = image + c * numbers;
        for (size_t f = 0; f < numbers; f += 2) {
          sum[f] += a[f] * b[f] + a[f + 1] * b[f + 1];
          sum[f + 1] += a[f] * b[f + 1] - a[f + 1] * b[f];
        }
      }
      fft_2d_cpu(sum, rows, cols, 1, scratch);
      float *out = y + ((size_t)n * s.k + k) * p_count * q_count; /* the first rows and columns: no wrap-around */
      for (int p = 0; p < p_count; p++)
        for (int q = 0; q < q_count; q++)
          out[p * q_count + q] = (float)(sum[2 * (p * cols + q)] / (double)count + (bias != NULL ? bias[k] : 0));
    }
  }
  free(filters);
  free(image);
  free(sum);
  free(scratch);
}

/* ---- geometry ---- */

/* How an operation cuts its output planes into tiles. */
typedef struct Conv2dFft {
  int tile, frequencies;                /* T, T^2/2 + 2 */
  int step_h, step_w, tiles_h, tiles_w; /* outputs of a tile, and tiles of a plane */
  int images;                           /* at a time */
} Conv2dFft;

static inline int conv2d_fft_frequencies(int tile) { return tile * tile / 2 + 2; }

static inline int conv2d_fft_fits(Conv2dShape s, Error *err) {
  if (s.stride_h == 1 && s.stride_w == 1 && conv2d_is_dense(s) && s.r <= CONV2D_FFT_FILTER && s.s <= CONV2D_FFT_FILTER)
    return 0;
  return error_set(err,
                   "fft computes filters of up to %d x %d with stride 1, dilation 1 and one group; this one is %s: use "
                   "implicit_gemm",
                   CONV2D_FFT_FILTER, CONV2D_FFT_FILTER, conv2d_shape_text(s).text);
}

/* Tiles of T x T for an operation whose output planes are out_h x out_w. */
static inline Conv2dFft conv2d_fft_tiling(Conv2dShape s, int out_h, int out_w, int tile) {
  Conv2dFft t = {tile, conv2d_fft_frequencies(tile), 0, 0, 0, 0, 0};
  // >>> exercise fft_tile_overlap: set step_h, step_w, a tile's outputs, and tiles_h, tiles_w, a plane's tiles
  // hint: output p reads the inputs p ... p + R - 1 of its tile; which p of 0 ... T - 1 do not go beyond the tile?
  // hint: p + R - 1 <= T - 1: T - R + 1 outputs
  // hint: tile i begins at output i * step_h; the last tile may be partly outside the plane
  t.step_h = tile - s.r + 1;
  t.step_w = tile - s.s + 1;
  t.tiles_h = (out_h + t.step_h - 1) / t.step_h;
  t.tiles_w = (out_w + t.step_w - 1) / t.step_w;
  // <<< exercise
  int numbers = fft_pitch(s.c) + fft_pitch(s.k); /* of a tile's frequency, where channels are lanes */
  double bytes = (double)t.tiles_h * t.tiles_w * t.frequencies * numbers * sizeof(float2), most = CONV2D_FFT_SPECTRA;
  t.images = bytes * s.n <= most ? s.n : bytes >= most ? 1 : (int)(most / bytes);
  return t;
}

/* The tile size that takes least. A larger tile has fewer overlaps, but more that lies outside the image, and larger
 * spectra of the filters. The cost of a complex number that is written and read is CONV2D_FFT_MOVED products. It must
 * not depend on N: a workspace for a large batch also serves a smaller one. */
enum { CONV2D_FFT_MOVED = 25, CONV2D_FFT_BATCH = 32 };

static inline Conv2dFft conv2d_fft_choose(Conv2dShape s, int out_h, int out_w) {
  Conv2dFft best = {};
  double least = INFINITY;
  for (int tile = 16; tile <= 64; tile *= 2) {
    if (tile < s.r || tile < s.s) continue;
    Conv2dFft t = conv2d_fft_tiling(s, out_h, out_w, tile);
    double products = (double)s.c * s.k, images = (double)CONV2D_FFT_BATCH * t.tiles_h * t.tiles_w;
    double cost = t.frequencies * (images * (products + CONV2D_FFT_MOVED * (s.c + s.k)) + CONV2D_FFT_MOVED * products);
    if (cost >= least) continue;
    least = cost;
    best = t;
  }
  return best;
}

static inline Conv2dFft conv2d_fft_forward_tiling(Conv2dShape s) {
  return conv2d_fft_choose(s, conv2d_out_h(s), conv2d_out_w(s));
}
static inline Conv2dFft conv2d_fft_backward_input_tiling(Conv2dShape s) { return conv2d_fft_choose(s, s.h, s.w); }

/* ---- planes ---- */

/* n images of `channels` planes h x w in tiles, `extent` rows and columns of each. */
static inline FftPlanes conv2d_fft_planes(Conv2dFft t, int n, int channels, int h, int w, int extent_h, int extent_w) {
  FftPlanes p = {n, channels, h, w, t.tiles_h, t.tiles_w, t.step_h, t.step_w, 0, 0, 0, 0, extent_h, extent_w};
  return p;
}

/* Tiles of x, as far apart as the outputs' ones: neighbours overlap. */
static inline FftPlanes conv2d_fft_x(Conv2dShape s, Conv2dFft t, int n) {
  FftPlanes p = conv2d_fft_planes(t, n, s.c, s.h, s.w, t.tile, t.tile);
  p.padding_h = s.padding_h;
  p.padding_w = s.padding_w;
  return p;
}

/* Each filter is one tile. */
static inline FftPlanes conv2d_fft_w(Conv2dShape s) {
  FftPlanes p = {s.k, s.c, s.r, s.s, 1, 1, 0, 0, 0, 0, 0, 0, s.r, s.s};
  return p;
}

/* Tiles of y, T - R + 1 rows and T - S + 1 columns each: neighbours touch. */
static inline FftPlanes conv2d_fft_y(Conv2dShape s, Conv2dFft t, int n) {
  return conv2d_fft_planes(t, n, s.k, conv2d_out_h(s), conv2d_out_w(s), t.step_h, t.step_w);
}

/* Backward: tiles of dy that begin R - 1 rows and S - 1 columns before the rows and columns of dx they are for. */
static inline FftPlanes conv2d_fft_dy(Conv2dShape s, Conv2dFft t, int n) {
  FftPlanes p = conv2d_fft_planes(t, n, s.k, conv2d_out_h(s), conv2d_out_w(s), t.tile, t.tile);
  p.padding_h = s.r - 1 - s.padding_h;
  p.padding_w = s.s - 1 - s.padding_w;
  return p;
}

/* Of a convolution, which runs backwards through its filter, the first R - 1 rows are reached by the wrap-around. */
static inline FftPlanes conv2d_fft_dx(Conv2dShape s, Conv2dFft t, int n) {
  FftPlanes p = conv2d_fft_planes(t, n, s.c, s.h, s.w, t.step_h, t.step_w);
  p.first_h = s.r - 1;
  p.first_w = s.s - 1;
  return p;
}

/* ---- launchers for one tile size ---- */

static inline void conv2d_fft_transform(int tile, float2 *spectrum, const float *planes, FftPlanes p, FftLayout l) {
  if (tile == 16) fft_tiles_forward<16>(spectrum, planes, p, l);
  if (tile == 32) fft_tiles_forward<32>(spectrum, planes, p, l);
  if (tile == 64) fft_tiles_forward<64>(spectrum, planes, p, l);
}

static inline void conv2d_fft_transform_back(int tile, float *planes, const float2 *spectrum, FftEpilogue epilogue,
                                             FftPlanes p, FftLayout l) {
  if (tile == 16) fft_tiles_inverse<16>(planes, spectrum, epilogue, p, l);
  if (tile == 32) fft_tiles_inverse<32>(planes, spectrum, epilogue, p, l);
  if (tile == 64) fft_tiles_inverse<64>(planes, spectrum, epilogue, p, l);
}

/* C = A^H B or A^T B for each frequency. Blocks compute few rows and columns where there are few. */
template <bool CONJUGATE>
static inline void conv2d_fft_product(float2 *c, const float2 *a, const float2 *b, ComplexProduct p) {
  if (p.n <= 32 && p.m <= 32)
    complex_product_tiled_of<32, 32, 4, 4, 12, CONJUGATE>(c, a, b, p);
  else if (p.n <= 32)
    complex_product_tiled_of<64, 32, 4, 4, 6, CONJUGATE>(c, a, b, p);
  else if (p.m <= 32)
    complex_product_tiled_of<32, 64, 4, 4, 6, CONJUGATE>(c, a, b, p);
  else
    complex_product_tiled_of<64, 64, 8, 4, 4, CONJUGATE>(c, a, b, p);
}

/* dbias[k] = the sum of dy over images and pixels. Frequency 0 of a tile is the sum of its elements. 32 channels per
 * block; threadIdx.y shares out the tiles. */
static __global__ void conv2d_fft_bias_kernel(float *dbias, const float2 *spectrum, FftLayout layout, bool add) {
  __shared__ float sums[32][33];
  int k = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int row = threadIdx.y; row < layout.rows; row += 32) sum += spectrum[(size_t)row * layout.pitch + k].x;
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || k >= layout.lanes) return;
  for (int i = 1; i < 32; i++) sum += sums[i][threadIdx.x];
  dbias[k] = add ? dbias[k] + sum : sum;
}

static inline void conv2d_fft_bias(float *dbias, const float2 *spectrum, FftLayout layout, bool add) {
  conv2d_fft_bias_kernel<<<layout.pitch / 32, dim3(32, 32)>>>(dbias, spectrum, layout, add);
  CUDA_CHECK_LAUNCH();
}

/* ---- workspace ---- */

/* The spectra of an operation, one behind the other: of the filters or their gradient, of some images of x and y. */
typedef struct Conv2dFftSpectra {
  float2 *w, *x, *y;
} Conv2dFftSpectra;

static inline size_t conv2d_fft_numbers(FftLayout l, int frequencies) { return (size_t)frequencies * l.rows * l.pitch; }

/* float4 must lie at multiples of 16 bytes, `workspace` may lie at any multiple of 4. */
static inline Conv2dFftSpectra conv2d_fft_spectra(float *workspace, size_t w, size_t x) {
  float2 *first = (float2 *)(((uintptr_t)workspace + 15) / 16 * 16);
  Conv2dFftSpectra spectra = {first, first + w, first + w + x};
  return spectra;
}

/* Floats for `w` and `x` and `y` complex numbers. */
static inline size_t conv2d_fft_floats(Conv2dShape s, Conv2dFft t, bool by_channel, bool w_by_channel) {
  size_t w = conv2d_fft_numbers(fft_layout(conv2d_fft_w(s), w_by_channel), t.frequencies);
  size_t x = conv2d_fft_numbers(fft_layout(conv2d_fft_x(s, t, t.images), by_channel), t.frequencies);
  size_t y = conv2d_fft_numbers(fft_layout(conv2d_fft_y(s, t, t.images), by_channel), t.frequencies);
  return (w + x + y) * 2 + 3;
}

static inline size_t conv2d_fft_workspace_floats(Conv2dShape s) {
  Conv2dFft forward = conv2d_fft_forward_tiling(s), backward = conv2d_fft_backward_input_tiling(s);
  size_t floats = conv2d_fft_floats(s, forward, false, false), input = conv2d_fft_floats(s, backward, false, true);
  size_t weight = conv2d_fft_floats(s, forward, true, true);
  if (input > floats) floats = input;
  return weight > floats ? weight : floats;
}

static inline size_t conv2d_fft_forward_floats(Conv2dShape s) {
  return conv2d_fft_floats(s, conv2d_fft_forward_tiling(s), false, false);
}

/* ---- launchers ---- */

/* y[n][k] = sum over c of the correlation of x[n][c] with w[k][c]: conj(W) X. */
static inline void conv2d_forward_fft_with(float *y, const float *x, const float *w, FftEpilogue epilogue,
                                           Conv2dShape s, Conv2dFft t, float *workspace) {
  FftPlanes filters = conv2d_fft_w(s);
  FftLayout w_layout = fft_layout(filters, false);
  size_t x_image = (size_t)s.c * s.h * s.w, y_image = (size_t)s.k * conv2d_out_h(s) * conv2d_out_w(s);
  FftLayout x_most = fft_layout(conv2d_fft_x(s, t, t.images), false);
  Conv2dFftSpectra spectra = conv2d_fft_spectra(workspace, conv2d_fft_numbers(w_layout, t.frequencies),
                                                conv2d_fft_numbers(x_most, t.frequencies));
  conv2d_fft_transform(t.tile, spectra.w, w, filters, w_layout);
  for (int first = 0; first < s.n; first += t.images) {
    int n = s.n - first < t.images ? s.n - first : t.images;
    FftPlanes in = conv2d_fft_x(s, t, n), out = conv2d_fft_y(s, t, n);
    FftLayout x_layout = fft_layout(in, false), y_layout = fft_layout(out, false);
    ComplexProduct product = {t.frequencies, s.k, x_layout.lanes, s.c, w_layout.pitch, x_layout.pitch, false};
    conv2d_fft_transform(t.tile, spectra.x, x + first * x_image, in, x_layout);
    conv2d_fft_product<true>(spectra.y, spectra.w, spectra.x, product);
    conv2d_fft_transform_back(t.tile, y + first * y_image, spectra.y, epilogue, out, y_layout);
  }
}

/* dx[n][c] = sum over k of the convolution of dy[n][k] with w[k][c]: W dY. */
static inline void conv2d_backward_input_fft_with(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                  Conv2dFft t, float *workspace) {
  FftPlanes filters = conv2d_fft_w(s);
  FftLayout w_layout = fft_layout(filters, true);
  size_t x_image = (size_t)s.c * s.h * s.w, y_image = (size_t)s.k * conv2d_out_h(s) * conv2d_out_w(s);
  FftLayout x_most = fft_layout(conv2d_fft_dx(s, t, t.images), false);
  Conv2dFftSpectra spectra = conv2d_fft_spectra(workspace, conv2d_fft_numbers(w_layout, t.frequencies),
                                                conv2d_fft_numbers(x_most, t.frequencies));
  FftEpilogue as_it_is = {NULL, -INFINITY};
  conv2d_fft_transform(t.tile, spectra.w, w, filters, w_layout);
  for (int first = 0; first < s.n; first += t.images) {
    int n = s.n - first < t.images ? s.n - first : t.images;
    FftPlanes in = conv2d_fft_dy(s, t, n), out = conv2d_fft_dx(s, t, n);
    FftLayout y_layout = fft_layout(in, false), x_layout = fft_layout(out, false);
    ComplexProduct product = {t.frequencies, s.c, y_layout.lanes, s.k, w_layout.pitch, y_layout.pitch, false};
    conv2d_fft_transform(t.tile, spectra.y, dy + first * y_image, in, y_layout);
    conv2d_fft_product<false>(spectra.x, spectra.w, spectra.y, product);
    conv2d_fft_transform_back(t.tile, dx + first * x_image, spectra.x, as_it_is, out, x_layout);
  }
}

/* dw[k][c] = sum over images and tiles of the correlation of x with dy: conj(dY) X. */
static inline void conv2d_backward_weight_fft_with(float *dw, float *dbias, const float *dy, const float *x,
                                                   Conv2dShape s, Conv2dFft t, float *workspace) {
  FftPlanes filters = conv2d_fft_w(s);
  FftLayout w_layout = fft_layout(filters, true);
  size_t x_image = (size_t)s.c * s.h * s.w, y_image = (size_t)s.k * conv2d_out_h(s) * conv2d_out_w(s);
  FftLayout x_most = fft_layout(conv2d_fft_x(s, t, t.images), true);
  Conv2dFftSpectra spectra = conv2d_fft_spectra(workspace, conv2d_fft_numbers(w_layout, t.frequencies),
                                                conv2d_fft_numbers(x_most, t.frequencies));
  FftEpilogue as_it_is = {NULL, -INFINITY};
  for (int first = 0; first < s.n; first += t.images) {
    int n = s.n - first < t.images ? s.n - first : t.images;
    FftPlanes in = conv2d_fft_x(s, t, n), out = conv2d_fft_y(s, t, n);
    FftLayout x_layout = fft_layout(in, true), y_layout = fft_layout(out, true);
    ComplexProduct product = {t.frequencies, s.k, s.c, y_layout.rows, y_layout.pitch, x_layout.pitch, first > 0};
    conv2d_fft_transform(t.tile, spectra.x, x + first * x_image, in, x_layout);
    conv2d_fft_transform(t.tile, spectra.y, dy + first * y_image, out, y_layout);
    conv2d_fft_product<true>(spectra.w, spectra.y, spectra.x, product);
    if (dbias != NULL) conv2d_fft_bias(dbias, spectra.y, y_layout, first > 0);
  }
  conv2d_fft_transform_back(t.tile, dw, spectra.w, as_it_is, filters, w_layout);
}

static inline void conv2d_forward_fft_tiled(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                            float *workspace) {
  FftEpilogue epilogue = {bias, -INFINITY};
  conv2d_forward_fft_with(y, x, w, epilogue, s, conv2d_fft_forward_tiling(s), workspace);
}

/* y = relu(convolution + bias): the kernel that transforms back does both. */
static inline void conv2d_bias_relu_forward_fft_tiled(float *y, const float *x, const float *w, const float *bias,
                                                      Conv2dShape s, float *workspace) {
  FftEpilogue epilogue = {bias, 0.0f};
  conv2d_forward_fft_with(y, x, w, epilogue, s, conv2d_fft_forward_tiling(s), workspace);
}

static inline void conv2d_backward_input_fft_tiled(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                   float *workspace) {
  conv2d_backward_input_fft_with(dx, dy, w, s, conv2d_fft_backward_input_tiling(s), workspace);
}

static inline void conv2d_backward_weight_fft_tiled(float *dw, float *dbias, const float *dy, const float *x,
                                                    Conv2dShape s, float *workspace) {
  conv2d_backward_weight_fft_with(dw, dbias, dy, x, s, conv2d_fft_forward_tiling(s), workspace);
}

static const Conv2dMethod conv2d_fft_method = {
    "fft",
    conv2d_fft_fits,
    conv2d_fft_workspace_floats,
    conv2d_forward_fft_tiled,
    conv2d_backward_input_fft_tiled,
    conv2d_backward_weight_fft_tiled,
    conv2d_fft_forward_floats,
};

#endif /* PHASE3_CNN_CONV2D_FFT_CUH */
