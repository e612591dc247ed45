/* instance_norm.cuh - instance normalisation (Ulyanov, Vedaldi, Lempitsky, 2016), as PyTorch's nn.InstanceNorm2d
 * computes it without running statistics: each channel of each image gets mean 0 and variance 1.
 *
 *     y[n,c,p] = weight[c] * t[n,c,p] + bias[c]      t[n,c,p] = (x[n,c,p] - mean[n,c]) * inv_std[n,c]
 *
 *     x, y, dx, dy (N,C,pixels)   weight, bias, dweight, dbias (C)   saved (2,N,C): mean, 1 / sqrt(variance + 1e-5)
 *
 * A plane is a row of N C rows, so the statistics and the kernels are those of layer_norm.cuh; only weight and bias are
 * different: one number for the whole row. They may be NULL, which is PyTorch's default. It is batch normalisation with
 * one image per batch.
 *
 * backward, with the sums of each plane over dy t and over dy:
 *
 *     dx[n,c,p] = weight[c] * inv_std[n,c] * (dy[n,c,p] - mean of dy - t[n,c,p] * mean of dy t)
 *     dweight[c] = the sum over n of the planes' sums of dy t        dbias[c] = those of dy
 *
 * dx needs the same two sums as dweight and dbias, so these cost nothing but the addition over n.
 *
 *   instance_norm_*_cpu         plain loops, sums in double
 *   instance_norm_*_cpu_fast    planes shared among threads
 *   instance_norm_*_gpu         a warp or a block keeps a plane in registers; a second kernel adds up dweight and dbias
 */
#ifndef PHASE3_CNN_INSTANCE_NORM_CUH
#define PHASE3_CNN_INSTANCE_NORM_CUH

#include "phase3_cnn/10_batch_norm/layer_norm.cuh"

typedef struct InstanceNormShape {
  int n, c, pixels;
} InstanceNormShape;

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void instance_norm_forward_cpu(T *y, T *saved, const T *x, const T *weight, const T *bias,
                                             InstanceNormShape s) {
  const int planes = s.n * s.c;
  for (int i = 0; i < planes; i++, x += s.pixels, y += s.pixels) {
    const double w = weight ? weight[i % s.c] : 1, b = bias ? bias[i % s.c] : 0;
    double mean, inv_std;
    layer_norm_statistics_cpu(&mean, &inv_std, x, s.pixels);
    saved[i] = (T)mean;
    saved[planes + i] = (T)inv_std;
    for (int p = 0; p < s.pixels; p++) y[p] = (T)(w * ((x[p] - mean) * inv_std) + b);
  }
}

/* Any of dx, dweight and dbias may be NULL. */
template <typename T>
static inline void instance_norm_backward_cpu(T *dx, T *dweight, T *dbias, const T *dy, const T *x, const T *weight,
                                              const T *saved, InstanceNormShape s) {
  const int planes = s.n * s.c;
  for (int c = 0; c < s.c; c++) {
    double all_sums = 0, all_products = 0;
    for (int i = c; i < planes; i += s.c) {
      const T *plane = x + (size_t)i * s.pixels, *slope = dy + (size_t)i * s.pixels;
      const double mean = saved[i], inv_std = saved[planes + i], scale = (weight ? weight[c] : 1) * inv_std;
      double sum = 0, product = 0;
      for (int p = 0; p < s.pixels; p++) {
        sum += slope[p];
        product += slope[p] * ((plane[p] - mean) * inv_std);
      }
      for (int p = 0; dx && p < s.pixels; p++)
        dx[(size_t)i * s.pixels + p] =
            (T)(scale * (slope[p] - sum / s.pixels - (plane[p] - mean) * inv_std * product / s.pixels));
      all_sums += sum;
      all_products += product;
    }
    if (dweight) dweight[c] = (T)all_products;
    if (dbias) dbias[c] = (T)all_sums;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU, fast */

static inline void instance_norm_forward_cpu_fast(float *y, float *saved, const float *x, const float *weight,
                                                  const float *bias, InstanceNormShape s) {
  const int planes = s.n * s.c;
#pragma omp parallel for schedule(static) if ((size_t)planes * s.pixels > 32768)
  for (int i = 0; i < planes; i++) {
    const float *plane = x + (size_t)i * s.pixels;
    float *out = y + (size_t)i * s.pixels, mean, inv_std;
    norm_statistics_fast(&mean, &inv_std, plane, s.pixels);
    saved[i] = mean;
    saved[planes + i] = inv_std;
    const float scale = weight ? weight[i % s.c] * inv_std : inv_std, b = bias ? bias[i % s.c] : 0;
    for (int p = 0; p < s.pixels; p++) out[p] = (plane[p] - mean) * scale + b;
  }
}

/* workspace: 2 N C floats, the planes' sums. */
static inline void instance_norm_backward_cpu_fast(float *dx, float *dweight, float *dbias, const float *dy,
                                                   const float *x, const float *weight, const float *saved,
                                                   InstanceNormShape s, float *workspace) {
  const int planes = s.n * s.c;
#pragma omp parallel for schedule(static) if ((size_t)planes * s.pixels > 32768)
  for (int i = 0; i < planes; i++) {
    const float *plane = x + (size_t)i * s.pixels, *slope = dy + (size_t)i * s.pixels;
    const float mean = saved[i], inv_std = saved[planes + i], scale = weight ? weight[i % s.c] * inv_std : inv_std;
    float sums[2];
    norm_gradient_sums_fast(sums, slope, plane, NULL, mean, inv_std, s.pixels);
    workspace[i] = sums[0];
    workspace[planes + i] = sums[1];
    const float product = sums[0] / (float)s.pixels, sum = sums[1] / (float)s.pixels;
    for (int p = 0; dx && p < s.pixels; p++)
      dx[(size_t)i * s.pixels + p] = scale * (slope[p] - sum - (plane[p] - mean) * inv_std * product);
  }
  for (int c = 0; (dweight || dbias) && c < s.c; c++) {
    double product = 0, sum = 0;
    for (int i = c; i < planes; i += s.c) product += workspace[i], sum += workspace[planes + i];
    if (dweight) dweight[c] = (float)product;
    if (dbias) dbias[c] = (float)sum;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* dx, and the plane's sums of dy t and of dy to sums (2,planes): T threads per plane keep x and dy in registers. */
template <int T, int QUADS, int ROWS>
static __global__ void __launch_bounds__(T *ROWS)
    instance_norm_backward_kernel(float *dx, float *sums, const float *dy, const float *x, const float *weight,
                                  const float *saved, int planes, int pixels, int channels, bool aligned) {
  const int t = threadIdx.x, r = blockIdx.x * ROWS + threadIdx.y;
  if (ROWS > 1 && r >= planes) return;
  const float mean = saved[r], inv_std = saved[planes + r];
  const float scale = inv_std * norm_affine<false>(weight, 1, r, channels, 0);
  float4 kept[QUADS], slope[QUADS]; /* of x, then t; of dy */
  norm_load<T, QUADS>(kept, x + (size_t)r * pixels, mean, t, pixels, aligned, true);
  norm_load<T, QUADS>(slope, dy + (size_t)r * pixels, 0, t, pixels, aligned, true);
  float2 own = make_float2(0, 0);
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    kept[i] = norm_quad_normal(kept[i], mean, inv_std);
    own.x += norm_quad_sum(norm_quad_multiply(slope[i], kept[i]));
    own.y += norm_quad_sum(slope[i]);
  }
  own = norm_pair_sum<T>(own, 0);
  if (t == 0) {
    sums[r] = own.x;
    sums[planes + r] = own.y;
  }
  if (dx == NULL) return;
  const float by_t = -scale * own.x / (float)pixels, all = -scale * own.y / (float)pixels;
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    const float4 rest = norm_quad_add(norm_quad_multiply(kept[i], norm_quad(by_t)), norm_quad(all));
    norm_store<T>(dx + (size_t)r * pixels, norm_quad_add(norm_quad_multiply(slope[i], norm_quad(scale)), rest), t, i,
                  pixels, aligned);
  }
}

/* One warp per channel: its planes' sums over n, always in the same order. */
static __global__ void instance_norm_channels_kernel(float *dweight, float *dbias, const float *sums, int n,
                                                     int channels) {
  const int c = blockIdx.x, planes = n * channels;
  float2 own = make_float2(0, 0);
  for (int i = threadIdx.x; i < n; i += 32) {
    own.x += sums[i * channels + c];
    own.y += sums[planes + i * channels + c];
  }
  own = norm_pair_sum<32>(own, 0);
  if (threadIdx.x > 0) return;
  if (dweight) dweight[c] = own.x;
  if (dbias) dbias[c] = own.y;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void instance_norm_forward_gpu(float *y, float *saved, const float *x, const float *weight,
                                             const float *bias, InstanceNormShape s) {
  norm_forward_gpu<false>(y, saved, x, weight, bias, s.n * s.c, s.pixels, s.c);
}

static inline size_t instance_norm_workspace_floats(InstanceNormShape s) { return 2 * (size_t)s.n * s.c; }

static inline void instance_norm_backward_gpu(float *dx, float *dweight, float *dbias, const float *dy, const float *x,
                                              const float *weight, const float *saved, InstanceNormShape s,
                                              float *workspace) {
  const int planes = s.n * s.c, pixels = s.pixels;
  const bool aligned = norm_aligned(x, pixels) && norm_aligned(dy, pixels) && norm_aligned(dx, pixels);
  if (pixels <= 256)
    instance_norm_backward_kernel<32, 2, 8>
        <<<(planes + 7) / 8, dim3(32, 8)>>>(dx, workspace, dy, x, weight, saved, planes, pixels, s.c, aligned);
  else if (pixels <= 1024)
    instance_norm_backward_kernel<256, 1, 1>
        <<<planes, 256>>>(dx, workspace, dy, x, weight, saved, planes, pixels, s.c, aligned);
  else if (pixels <= 4096)
    instance_norm_backward_kernel<256, 4, 1>
        <<<planes, 256>>>(dx, workspace, dy, x, weight, saved, planes, pixels, s.c, aligned);
  else
    layer_norm_backward_block_kernel<1024, false>
        <<<planes, 1024>>>(dx, workspace, dy, x, weight, saved, planes, pixels, s.c);
  CUDA_CHECK_LAUNCH();
  if (!dweight && !dbias) return;
  instance_norm_channels_kernel<<<s.c, 32>>>(dweight, dbias, workspace, s.n, s.c);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_INSTANCE_NORM_CUH */
