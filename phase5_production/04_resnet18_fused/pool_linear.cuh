/* pool_linear.cuh - the last two operations of a ResNet in one kernel: the mean of each channel, and the linear layer.
 *
 *     x (N,pixels,pitch) T, C channels of each pixel   w (classes,C) float   bias (classes)   y (N,classes) float
 *
 *   pool_linear_forward_cpu   the loops of the formula, summed in double
 *   pool_linear_forward_gpu   a block computes 64 classes of 8 images: the means of their channels stay in shared
 *                             memory. T is __half, __nv_bfloat16 or float; a pixel is a multiple of 16 bytes
 *
 * All blocks of these images need the same means. From compute capability 9.0 on, eight of them are a cluster, in which
 * each block takes the means of one image and writes them to the shared memory of all. On other GPUs a block takes the
 * means of its eight images by itself.
 *
 * The whole kernel takes microseconds, so what counts is how often a thread waits for memory: it has 8 loads of pixels
 * under way at a time, and 16 of weights, which set out before the means are computed.
 */
#ifndef PHASE5_PRODUCTION_POOL_LINEAR_CUH
#define PHASE5_PRODUCTION_POOL_LINEAR_CUH

#include <cooperative_groups.h>

#include "common/check.h"
#include "common/shared_memory_limit.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"

enum {
  POOL_LINEAR_IMAGES = 8,
  POOL_LINEAR_THREADS = 256,
  POOL_LINEAR_LANES = 8, /* that share the channels of a class */
  POOL_LINEAR_ROWS = 2,  /* classes of such lanes */
  POOL_LINEAR_CLASSES = POOL_LINEAR_THREADS / POOL_LINEAR_LANES * POOL_LINEAR_ROWS,
  POOL_LINEAR_CLUSTER = 8,
  POOL_LINEAR_LOADS = 8, /* of pixels, under way at a time */
  POOL_LINEAR_BATCH = 8, /* of weights, four at a time of each row */
  POOL_LINEAR_STEP = 4 * POOL_LINEAR_LANES,
  POOL_LINEAR_CHANNELS = 2048
};

typedef struct PoolLinearShape {
  int n, pixels, c, pitch, classes; /* pitch: numbers of a pixel in memory */
} PoolLinearShape;

/* Whether the kernel takes so many channels: it reads four weights at a time. */
static inline bool pool_linear_fits(int channels) { return channels % 4 == 0 && channels <= POOL_LINEAR_CHANNELS; }

template <typename T>
static inline void pool_linear_forward_cpu(float *y, const T *x, const float *w, const float *bias, PoolLinearShape s) {
  for (int n = 0; n < s.n; n++)
    for (int k = 0; k < s.classes; k++) {
      double sum = bias[k];
      for (int c = 0; c < s.c; c++) {
        double all = 0;
        for (int i = 0; i < s.pixels; i++) all += conv2d_widen(x[((size_t)n * s.pixels + i) * s.pitch + c]);
        sum += all / s.pixels * w[(size_t)k * s.c + c];
      }
      y[(size_t)n * s.classes + k] = (float)sum;
    }
}

/* Sixteen bytes of T. */
template <typename T>
struct __align__(16) PoolLinearRun {
  T v[16 / sizeof(T)];
};

/* Blocks that share their means: a cluster, or each block alone. */
template <bool CLUSTER>
struct PoolLinearTeam {
  static __device__ __forceinline__ int rank(void) { return 0; }
  static __device__ __forceinline__ int count(void) { return 1; }
  static __device__ __forceinline__ float *at(float *x, int) { return x; }
  static __device__ __forceinline__ void sync(void) { __syncthreads(); }
};
#if defined(SIMT_REWRITTEN) || __CUDA_ARCH__ >= 900
template <>
struct PoolLinearTeam<true> {
  static __device__ __forceinline__ int rank(void) { return (int)cooperative_groups::this_cluster().block_rank(); }
  static __device__ __forceinline__ int count(void) { return (int)cooperative_groups::this_cluster().num_blocks(); }
  /* The same place in the shared memory of another block. */
  static __device__ __forceinline__ float *at(float *x, int rank) {
    return cooperative_groups::this_cluster().map_shared_rank(x, rank);
  }
  static __device__ __forceinline__ void sync(void) { cooperative_groups::this_cluster().sync(); }
};
#endif

/* partial (parts, pitch) = the sums of every parts-th pixel of an image. A thread has 16 bytes of channels, so a warp
 * reads 512 neighbouring bytes of a pixel. */
template <typename T>
static __device__ __forceinline__ void pool_linear_sums(float *partial, const T *x, const PoolLinearShape &s,
                                                        int parts) {
  const int run = 16 / (int)sizeof(T), runs = s.pitch / run;
  for (int i = threadIdx.x; i < runs * parts; i += POOL_LINEAR_THREADS) {
    const int part = i / runs, c = i % runs * run;
    float sum[16 / sizeof(T)] = {};
    for (int p = part; p < s.pixels; p += POOL_LINEAR_LOADS * parts) {
      PoolLinearRun<T> pixel[POOL_LINEAR_LOADS] = {};
#pragma unroll
      for (int j = 0; j < POOL_LINEAR_LOADS; j++)
        if (p + j * parts < s.pixels) pixel[j] = *(const PoolLinearRun<T> *)(x + (size_t)(p + j * parts) * s.pitch + c);
#pragma unroll
      for (int j = 0; j < POOL_LINEAR_LOADS; j++)
#pragma unroll
        for (int e = 0; e < run; e++) sum[e] += conv2d_widen(pixel[j].v[e]);
    }
#pragma unroll
    for (int e = 0; e < run; e++) partial[part * s.pitch + c + e] = sum[e];
  }
}

/* mean (images, channels) of the images from `image0` on, in all blocks of the team; of images that do not exist, 0. */
template <bool CLUSTER, typename T>
static __device__ __forceinline__ void pool_linear_means(float *mean, float *partial, const T *x,
                                                         const PoolLinearShape &s, int image0) {
  typedef PoolLinearTeam<CLUSTER> Team;
  const int runs = s.pitch * (int)sizeof(T) / 16;
  const int parts = runs < POOL_LINEAR_THREADS ? POOL_LINEAR_THREADS / runs : 1;
  for (int image = Team::rank(); image < POOL_LINEAR_IMAGES; image += Team::count()) {
    const bool exists = image0 + image < s.n;
    if (exists) pool_linear_sums(partial, x + (size_t)(image0 + image) * s.pixels * s.pitch, s, parts);
    __syncthreads();
    for (int c = threadIdx.x; c < s.c; c += POOL_LINEAR_THREADS) {
      float sum = 0;
      if (exists)
        for (int part = 0; part < parts; part++) sum += partial[part * s.pitch + c];
      for (int rank = 0; rank < Team::count(); rank++) Team::at(mean, rank)[image * s.c + c] = sum / (float)s.pixels;
    }
    __syncthreads(); /* the next image takes the place of `partial` */
  }
}

/* The lane's weights of a batch, from channel c on; behind the last channel, 0. */
static __device__ __forceinline__ void pool_linear_weights(float4 (&v)[POOL_LINEAR_BATCH][POOL_LINEAR_ROWS],
                                                           const float *const (&row)[POOL_LINEAR_ROWS], int c,
                                                           int channels) {
#pragma unroll
  for (int b = 0; b < POOL_LINEAR_BATCH; b++, c += POOL_LINEAR_STEP)
#pragma unroll
    for (int j = 0; j < POOL_LINEAR_ROWS; j++)
      v[b][j] = c < channels ? *(const float4 *)(row[j] + c) : make_float4(0, 0, 0, 0);
}

static __device__ __forceinline__ float pool_linear_dot(float4 a, float4 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

template <bool CLUSTER, typename T>
static __global__ void __launch_bounds__(POOL_LINEAR_THREADS)
    pool_linear_kernel(float *y, const T *x, const float *w, const float *bias, PoolLinearShape s) {
  extern __shared__ __align__(16) float pool_linear_shared[];
  const int image0 = blockIdx.y * POOL_LINEAR_IMAGES;
  float *mean = pool_linear_shared, *partial = mean + POOL_LINEAR_IMAGES * s.c;
  const int lane = threadIdx.x % POOL_LINEAR_LANES;
  const int k0 = blockIdx.x * POOL_LINEAR_CLASSES + threadIdx.x / POOL_LINEAR_LANES * POOL_LINEAR_ROWS;
  const float *row[POOL_LINEAR_ROWS];
#pragma unroll
  for (int j = 0; j < POOL_LINEAR_ROWS; j++) row[j] = w + (size_t)min(k0 + j, s.classes - 1) * s.c;
  float4 v[POOL_LINEAR_BATCH][POOL_LINEAR_ROWS];
  float sum[POOL_LINEAR_ROWS][POOL_LINEAR_IMAGES] = {};
  pool_linear_weights(v, row, 4 * lane, s.c);
  PoolLinearTeam<CLUSTER>::sync(); /* only blocks that run have shared memory */
  pool_linear_means<CLUSTER>(mean, partial, x, s, image0);
  PoolLinearTeam<CLUSTER>::sync();
  for (int first = 4 * lane; first < s.c; first += POOL_LINEAR_BATCH * POOL_LINEAR_STEP) {
    // >>> exercise pool_linear_product: sum[j][i] += what the batch v gives of the product of row j and image i's means
    // hint: v[b][j] has the weights of channels c to c + 3 of row j, where c = first + b * POOL_LINEAR_STEP
    // hint: *(const float4 *)&mean[i * s.c + c] are the four means of image i; there are s.c channels
    // hint: load these once for all rows: for i: m = ...; for j: sum[j][i] += pool_linear_dot(v[b][j], m)
#pragma unroll
    for (int b = 0; b < POOL_LINEAR_BATCH; b++) {
      const int c = first + b * POOL_LINEAR_STEP;
      if (c >= s.c) break;
#pragma unroll
      for (int i = 0; i < POOL_LINEAR_IMAGES; i++) {
        const float4 m = *(const float4 *)&mean[i * s.c + c];
#pragma unroll
        for (int j = 0; j < POOL_LINEAR_ROWS; j++) sum[j][i] += pool_linear_dot(v[b][j], m);
      }
    }
    // <<< exercise
    pool_linear_weights(v, row, first + POOL_LINEAR_BATCH * POOL_LINEAR_STEP, s.c);
  }
#pragma unroll
  for (int j = 0; j < POOL_LINEAR_ROWS; j++)
#pragma unroll
    for (int i = 0; i < POOL_LINEAR_IMAGES; i++) {
      for (int step = POOL_LINEAR_LANES / 2; step > 0; step /= 2)
        sum[j][i] += __shfl_xor_sync(0xFFFFFFFF, sum[j][i], step);
      if (lane == i % POOL_LINEAR_LANES && image0 + i < s.n && k0 + j < s.classes)
        y[(size_t)(image0 + i) * s.classes + k0 + j] = sum[j][i] + bias[k0 + j];
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */

static inline bool pool_linear_clusters(void) {
  int device, major;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return major >= 9;
}

template <bool CLUSTER, typename T>
static inline void pool_linear_launch(float *y, const T *x, const float *w, const float *bias, PoolLinearShape s) {
  const int blocks = (s.classes + POOL_LINEAR_CLASSES - 1) / POOL_LINEAR_CLASSES;
  const int team = !CLUSTER ? 1 : blocks < POOL_LINEAR_CLUSTER ? blocks : POOL_LINEAR_CLUSTER;
  const int run = 16 / (int)sizeof(T), most = POOL_LINEAR_THREADS * run;
  const int floats = POOL_LINEAR_IMAGES * s.c + (s.pitch > most ? s.pitch : most);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)team;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)((blocks + team - 1) / team * team),
                        (unsigned)(s.n + POOL_LINEAR_IMAGES - 1) / POOL_LINEAR_IMAGES);
  config.blockDim = dim3(POOL_LINEAR_THREADS);
  config.dynamicSmemBytes = floats * sizeof(float);
  config.attrs = &attribute;
  config.numAttrs = CLUSTER ? 1 : 0;
  shared_limit_ask((const void *)pool_linear_kernel<CLUSTER, T>, (int)config.dynamicSmemBytes);
  CUDA_CHECK(cudaLaunchKernelEx(&config, pool_linear_kernel<CLUSTER, T>, y, x, w, bias, s));
}

template <typename T>
static inline void pool_linear_forward_gpu(float *y, const T *x, const float *w, const float *bias, PoolLinearShape s) {
  const int run = 16 / (int)sizeof(T);
  if (!pool_linear_fits(s.c))
    die("pool_linear: %d channels; a multiple of 4 up to %d is expected: use the mean and the linear layer by "
        "themselves",
        s.c, POOL_LINEAR_CHANNELS);
  if (s.pitch % run != 0)
    die("pool_linear: a pixel of %d numbers; a multiple of %d, 16 bytes, is expected", s.pitch, run);
  if (pool_linear_clusters())
    pool_linear_launch<true>(y, x, w, bias, s);
  else
    pool_linear_launch<false>(y, x, w, bias, s);
}

#endif /* PHASE5_PRODUCTION_POOL_LINEAR_CUH */
