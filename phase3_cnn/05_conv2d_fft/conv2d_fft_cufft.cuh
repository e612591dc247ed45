/* conv2d_fft_cufft.cuh - convolution with the transforms of NVIDIA's library; what goes before, between and after them
 * is ours. On the CPU backend simt/fft stands in for cuFFT. Stride 1, dilation 1, one group.
 *
 *   conv2d_forward_fft_whole        each image is one transform, each filter is padded to the image's size; one thread
 *                                   per element of the product
 *   conv2d_forward_fft_whole_tiled  the same with the product in tiles
 *   conv2d_forward_fft_overlap      overlapping tiles of T x T as in conv2d_fft.cuh, transformed by cuFFT
 *
 * cuFFT reads and writes each transform of a batch as one piece by default. With ostride = batch and odist = 1 it
 * writes frequency by frequency, as the products want it: element f of transform b is at f * batch + b.
 */
#ifndef PHASE3_CNN_CONV2D_FFT_CUFFT_CUH
#define PHASE3_CNN_CONV2D_FFT_CUFFT_CUH

#include "common/check_cufft.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_gpu.cuh"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft.cuh"

/* ---- plans ---- */

enum { CONV2D_CUFFT_PLANS = 64 };

typedef struct Conv2dCufftPlan {
  int device, height, width, batch;
  cufftType type;
  cufftHandle plan;
} Conv2dCufftPlan;

/* The plan for `batch` real transforms of height x width. Plans are kept, for each host thread and GPU: making one
 * takes milliseconds, allocates memory, and must not happen while a CUDA graph is captured. */
static inline cufftHandle conv2d_cufft_plan(int height, int width, int batch, cufftType type) {
  static __thread Conv2dCufftPlan plans[CONV2D_CUFFT_PLANS];
  static __thread int count;
  int device, at = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  while (at < count && !(plans[at].device == device && plans[at].height == height && plans[at].width == width &&
                         plans[at].batch == batch && plans[at].type == type))
    at++;
  if (at == count) {
    if (count == CONV2D_CUFFT_PLANS) { /* the oldest one makes room */
      CUFFT_CHECK(cufftDestroy(plans[0].plan));
      for (int i = 1; i < count; i++) plans[i - 1] = plans[i];
      at = --count;
    }
    int real[2] = {height, width}, complex[2] = {height, width / 2 + 1};
    Conv2dCufftPlan made = {device, height, width, batch, type, CUFFT_PLAN_NULL};
    if (type == CUFFT_R2C)
      CUFFT_CHECK(cufftPlanMany(&made.plan, 2, real, real, 1, height * width, complex, batch, 1, CUFFT_R2C, batch));
    else
      CUFFT_CHECK(cufftPlanMany(&made.plan, 2, real, complex, batch, 1, real, 1, height * width, CUFFT_C2R, batch));
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    CUFFT_CHECK(cufftSetStream(made.plan, cudaStreamPerThread));
#endif
    plans[count++] = made;
  }
  return plans[at].plan;
}

/* ---- kernels ---- */

/* How an operation is cut into transforms of height x width. */
typedef struct Conv2dCufft {
  int height, width, frequencies; /* height * (width / 2 + 1) */
  Conv2dFft tiles;                /* of which only the steps, the numbers of tiles and of images count here */
} Conv2dCufft;

/* Tiles (rows * pitch, height, width) of planes, padded with zeros. One thread per element. */
static __global__ void conv2d_cufft_pad_kernel(float *tiles, const float *planes, FftPlanes p, FftLayout layout,
                                               int height, int width) {
  size_t e = (size_t)blockIdx.x * blockDim.x + threadIdx.x, tile = e / (height * width);
  if (tile >= (size_t)layout.rows * layout.pitch) return;
  int i = e / width % height, j = e % width;
  FftOrigin origin = fft_origin(p, layout, (int)(tile / layout.pitch), (int)(tile % layout.pitch));
  int h = origin.row + i, v = origin.col + j;
  bool inside = (unsigned)h < (unsigned)p.h && (unsigned)v < (unsigned)p.w && i < p.extent_h && j < p.extent_w;
  tiles[e] = inside ? planes[origin.plane + h * p.w + v] : 0.0f;
}

/* The other way: planes = what of the tiles is valid / (height * width) + bias of the row. */
static __global__ void conv2d_cufft_crop_kernel(float *planes, const float *tiles, const float *bias, FftPlanes p,
                                                FftLayout layout, int height, int width) {
  size_t e = (size_t)blockIdx.x * blockDim.x + threadIdx.x, tile = e / (height * width);
  int i = e / width % height, j = e % width, row = (int)(tile / layout.pitch);
  if (row >= layout.rows || i >= p.extent_h || j >= p.extent_w) return;
  FftOrigin origin = fft_origin(p, layout, row, (int)(tile % layout.pitch));
  int h = origin.row + i, v = origin.col + j;
  if (h < p.h && v < p.w)
    planes[origin.plane + h * p.w + v] = tiles[e] / (height * width) + (bias != NULL ? bias[row] : 0.0f);
}

/* ---- launchers ---- */

/* Lanes are tiles. The products read pairs of lanes. */
static inline FftLayout conv2d_cufft_layout(FftPlanes p) {
  FftLayout l = fft_layout(p, false);
  l.pitch = (l.lanes + 1) / 2 * 2;
  return l;
}

static inline size_t conv2d_cufft_batch(FftLayout l) { return (size_t)l.rows * l.pitch; }

/* planes -> tiles -> spectrum */
static inline void conv2d_cufft_transform(float2 *spectrum, float *tiles, const float *planes, FftPlanes p, FftLayout l,
                                          Conv2dCufft t) {
  size_t batch = conv2d_cufft_batch(l), elements = batch * t.height * t.width;
  conv2d_cufft_pad_kernel<<<conv2d_blocks(elements), CONV2D_BLOCK>>>(tiles, planes, p, l, t.height, t.width);
  CUDA_CHECK_LAUNCH();
  CUFFT_CHECK(cufftExecR2C(conv2d_cufft_plan(t.height, t.width, (int)batch, CUFFT_R2C), tiles, spectrum));
}

/* spectrum -> tiles -> planes */
static inline void conv2d_cufft_transform_back(float *planes, float *tiles, float2 *spectrum, const float *bias,
                                               FftPlanes p, FftLayout l, Conv2dCufft t) {
  size_t batch = conv2d_cufft_batch(l), elements = batch * t.height * t.width;
  CUFFT_CHECK(cufftExecC2R(conv2d_cufft_plan(t.height, t.width, (int)batch, CUFFT_C2R), spectrum, tiles));
  conv2d_cufft_crop_kernel<<<conv2d_blocks(elements), CONV2D_BLOCK>>>(planes, tiles, bias, p, l, t.height, t.width);
  CUDA_CHECK_LAUNCH();
}

typedef void ComplexProductLaunch(float2 *c, const float2 *a, const float2 *b, ComplexProduct p);

/* The workspace: spectra of the filters, of x and of y; and real tiles, of the filters, x or y in turn. */
static inline size_t conv2d_cufft_floats(Conv2dShape s, Conv2dCufft t, size_t *w, size_t *x, size_t *y) {
  *w = conv2d_cufft_batch(conv2d_cufft_layout(conv2d_fft_w(s)));
  *x = conv2d_cufft_batch(conv2d_cufft_layout(conv2d_fft_x(s, t.tiles, t.tiles.images)));
  *y = conv2d_cufft_batch(conv2d_cufft_layout(conv2d_fft_y(s, t.tiles, t.tiles.images)));
  size_t most = *w > *x ? *w : *x;
  if (*y > most) most = *y;
  return (*w + *x + *y) * t.frequencies * 2 + most * t.height * t.width + 3;
}

static inline void conv2d_cufft_with(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                     Conv2dCufft t, ComplexProductLaunch *multiply, float *workspace) {
  size_t w_batch, x_batch, y_batch, x_image = (size_t)s.c * s.h * s.w;
  size_t y_image = (size_t)s.k * conv2d_out_h(s) * conv2d_out_w(s);
  conv2d_cufft_floats(s, t, &w_batch, &x_batch, &y_batch);
  Conv2dFftSpectra spectra = conv2d_fft_spectra(workspace, w_batch * t.frequencies, x_batch * t.frequencies);
  float *tiles = (float *)(spectra.y + y_batch * t.frequencies);
  FftPlanes filters = conv2d_fft_w(s);
  FftLayout w_layout = conv2d_cufft_layout(filters);
  conv2d_cufft_transform(spectra.w, tiles, w, filters, w_layout, t);
  for (int first = 0; first < s.n; first += t.tiles.images) {
    int n = s.n - first < t.tiles.images ? s.n - first : t.tiles.images;
    FftPlanes in = conv2d_fft_x(s, t.tiles, n), out = conv2d_fft_y(s, t.tiles, n);
    FftLayout x_layout = conv2d_cufft_layout(in), y_layout = conv2d_cufft_layout(out);
    ComplexProduct product = {t.frequencies, s.k, x_layout.lanes, s.c, w_layout.pitch, x_layout.pitch, false};
    conv2d_cufft_transform(spectra.x, tiles, x + first * x_image, in, x_layout, t);
    multiply(spectra.y, spectra.w, spectra.x, product);
    conv2d_cufft_transform_back(y + first * y_image, tiles, spectra.y, bias, out, y_layout, t);
  }
}

/* The next length whose only prime factors are 2, 3, 5 and 7: cuFFT has fast code for these. */
static inline int conv2d_cufft_length(int n) {
  for (;; n++) {
    int rest = n;
    for (int factor = 2; factor <= 7; factor++)
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return n;
  }
}

/* A whole padded image per transform. That is as long as it need be: an output is reached by the wrap-around only if
 * its filter leaves the padded image. */
static inline Conv2dCufft conv2d_cufft_whole(Conv2dShape s) {
  const int height = conv2d_cufft_length(s.h + 2 * s.padding_h), width = conv2d_cufft_length(s.w + 2 * s.padding_w);
  Conv2dFft tiles = {height > width ? height : width, 0, conv2d_out_h(s), conv2d_out_w(s), 1, 1, s.n};
  double bytes = (double)height * width * (s.c + s.k) * sizeof(float), most = CONV2D_FFT_SPECTRA;
  if (bytes * s.n > most) tiles.images = bytes >= most ? 1 : (int)(most / bytes);
  Conv2dCufft t = {height, width, height * (width / 2 + 1), tiles};
  return t;
}

/* Overlapping tiles, of the size that conv2d_fft.cuh takes. */
static inline Conv2dCufft conv2d_cufft_overlap(Conv2dShape s) {
  Conv2dFft tiles = conv2d_fft_forward_tiling(s);
  Conv2dCufft t = {tiles.tile, tiles.tile, tiles.tile * (tiles.tile / 2 + 1), tiles};
  return t;
}

static inline void conv2d_forward_fft_whole(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                            float *workspace) {
  conv2d_cufft_with(y, x, w, bias, s, conv2d_cufft_whole(s), complex_product_naive<true>, workspace);
}

static inline void conv2d_forward_fft_whole_tiled(float *y, const float *x, const float *w, const float *bias,
                                                  Conv2dShape s, float *workspace) {
  conv2d_cufft_with(y, x, w, bias, s, conv2d_cufft_whole(s), conv2d_fft_product<true>, workspace);
}

static inline void conv2d_forward_fft_overlap(float *y, const float *x, const float *w, const float *bias,
                                              Conv2dShape s, float *workspace) {
  conv2d_cufft_with(y, x, w, bias, s, conv2d_cufft_overlap(s), conv2d_fft_product<true>, workspace);
}

static inline size_t conv2d_fft_whole_workspace_floats(Conv2dShape s) {
  size_t w, x, y;
  return conv2d_cufft_floats(s, conv2d_cufft_whole(s), &w, &x, &y);
}

static inline size_t conv2d_fft_overlap_workspace_floats(Conv2dShape s) {
  size_t w, x, y;
  return conv2d_cufft_floats(s, conv2d_cufft_overlap(s), &w, &x, &y);
}

static const Conv2dMethod conv2d_fft_whole_method = {
    "fft_whole", conv2d_fft_fits, conv2d_fft_whole_workspace_floats, conv2d_forward_fft_whole, NULL, NULL};
static const Conv2dMethod conv2d_fft_whole_tiled_method = {
    "fft_whole_tiled", conv2d_fft_fits, conv2d_fft_whole_workspace_floats, conv2d_forward_fft_whole_tiled, NULL, NULL};
static const Conv2dMethod conv2d_fft_overlap_method = {
    "fft_overlap", conv2d_fft_fits, conv2d_fft_overlap_workspace_floats, conv2d_forward_fft_overlap, NULL, NULL};

#endif /* PHASE3_CNN_CONV2D_FFT_CUFFT_CUH */
