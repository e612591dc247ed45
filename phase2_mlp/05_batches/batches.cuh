/* batches.cuh - from a data set in memory to normalised mini-batches, in the order of batch_order.cuh.
 *
 * The data set stays in the memory of the network's device, as bytes (MNIST: 47 MB, a quarter of its size in floats). A
 * step copies nothing between host and GPU: batch_gather reads its images through `order` and normalises them.
 *
 *   batches_steps       batches of an epoch, the last of which may be smaller
 *   batch_gather        x (B,P) = (pixels[order[b]] / 255 - mean) / stddev,  labels (B) = all_labels[order[b]]
 *                       with pixels (N,P) and all_labels (N) uint8, P = pixels_per_image
 *
 * All versions give the same bits, and the same as PyTorch (ToTensor, Normalize): two divisions and a difference round
 * the same way everywhere. A multiplication and an addition would not: some machines fuse them.
 *
 *   batch_gather_cpu       plain loops
 *   batch_gather_cpu_fast  a byte has 256 values: they are normalised once, in a table; images shared among threads
 *   batch_gather_rows      one thread per image: neighbouring threads read bytes an image apart
 *   batch_gather_elements  one thread per pixel: neighbouring threads read neighbouring bytes
 *   batch_gather_blocks    one block per image: no thread divides to find the image of its pixel
 *   batch_gather_warps     one warp per image, four pixels per lane: 4 bytes per load, 16 bytes per store
 *   batch_gather_gpu       the same loads and stores, and a table in shared memory instead of two divisions per pixel
 */
#ifndef PHASE2_MLP_BATCHES_CUH
#define PHASE2_MLP_BATCHES_CUH

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/philox.h"
#include "phase2_mlp/05_batches/batch_order.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Batches of an epoch */

/* 60000 images are 938 batches of 64, the last of 32. */
static inline int batches_steps(int count, int batch) { return (int)(((size_t)count + batch - 1) / batch); }

/* The batch that begins with image `start` of the order: a whole one, or what is left. */
static inline int batches_size_at(int count, int batch, int start) {
  return count - start < batch ? count - start : batch;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

PHILOX_FUNCTION float batch_normalize(uint8_t pixel, float mean, float stddev) {
  float value = 0;
  // >>> exercise batch_normalize: scale the pixel, 0 to 255, to 0 to 1; then its distance from the mean, in deviations
  // hint: which type has uint8_t / int in C? Convert to float before the division loses the fraction
  // hint: 255 must become 1, not 256; divide, do not multiply by 1 / 255: that rounds differently for some pixels
  // hint: value = ((float)pixel / 255.0f - mean) / stddev;
  value = ((float)pixel / 255.0f - mean) / stddev;
  // <<< exercise
  return value;
}

static inline void batch_gather_cpu(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                    const uint32_t *order, int batch, int pixels_per_image, float mean, float stddev) {
  for (int b = 0; b < batch; b++) {
    const uint8_t *image = pixels + (size_t)order[b] * pixels_per_image;
    for (int i = 0; i < pixels_per_image; i++)
      x[(size_t)b * pixels_per_image + i] = batch_normalize(image[i], mean, stddev);
    labels[b] = all_labels[order[b]];
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU fast path */

enum { BATCH_GATHER_CPU_SERIAL = 16384 }; /* below this many pixels, waking a second thread costs more than it saves */

static inline void batch_gather_cpu_fast(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                         const uint32_t *order, int batch, int pixels_per_image, float mean,
                                         float stddev) {
  float normalized[256];
  for (int value = 0; value < 256; value++) normalized[value] = batch_normalize((uint8_t)value, mean, stddev);
#pragma omp parallel for schedule(static) if ((size_t)batch * pixels_per_image > BATCH_GATHER_CPU_SERIAL)
  for (int b = 0; b < batch; b++) {
    const uint8_t *image = pixels + (size_t)order[b] * pixels_per_image;
    float *out = x + (size_t)b * pixels_per_image;
    for (int i = 0; i < pixels_per_image; i++) out[i] = normalized[image[i]];
    labels[b] = all_labels[order[b]];
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum { BATCH_GATHER_BLOCK = 256 }; /* threads; a table of as many values */

static __global__ void batch_gather_rows_kernel(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                                const uint32_t *order, int batch, int pixels_per_image, float mean,
                                                float stddev) {
  int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b >= batch) return;
  const uint8_t *image = pixels + (size_t)order[b] * pixels_per_image;
  float *out = x + (size_t)b * pixels_per_image;
  for (int i = 0; i < pixels_per_image; i++) out[i] = batch_normalize(image[i], mean, stddev);
  labels[b] = all_labels[order[b]];
}

static __global__ void batch_gather_elements_kernel(float *x, int *labels, const uint8_t *pixels,
                                                    const uint8_t *all_labels, const uint32_t *order, int batch,
                                                    int pixels_per_image, float mean, float stddev) {
  size_t element = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= (size_t)batch * pixels_per_image) return;
  int b = (int)(element / pixels_per_image), i = (int)(element % pixels_per_image);
  uint32_t source = order[b];
  x[element] = batch_normalize(pixels[(size_t)source * pixels_per_image + i], mean, stddev);
  if (i == 0) labels[b] = all_labels[source];
}

static __global__ void batch_gather_blocks_kernel(float *x, int *labels, const uint8_t *pixels,
                                                  const uint8_t *all_labels, const uint32_t *order,
                                                  int pixels_per_image, float mean, float stddev) {
  uint32_t source = order[blockIdx.x];
  const uint8_t *image = pixels + (size_t)source * pixels_per_image;
  float *out = x + (size_t)blockIdx.x * pixels_per_image;
  for (int i = threadIdx.x; i < pixels_per_image; i += blockDim.x) out[i] = batch_normalize(image[i], mean, stddev);
  if (threadIdx.x == 0) labels[blockIdx.x] = all_labels[source];
}

/* For images of a multiple of 4 pixels that begin at a multiple of 4, x at one of 16: batch_gather_fits(). */
static __global__ void batch_gather_warps_kernel(float *x, int *labels, const uint8_t *pixels,
                                                 const uint8_t *all_labels, const uint32_t *order, int batch,
                                                 int pixels_per_image, float mean, float stddev) {
  int b = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, quads = pixels_per_image / 4;
  // >>> exercise batch_gather_warps: warp b fills row b of x, four pixels per lane and step, and sets its label
  // hint: warps beyond the batch do nothing; image order[b] begins at pixels + (size_t)order[b] * pixels_per_image
  // hint: lane l takes the quads l, l + 32, ...: one uchar4 of the image becomes one float4 of the row
  // hint: uchar4 p = ((const uchar4 *)image)[q]; ((float4 *)row)[q] = make_float4(batch_normalize(p.x, ...), ...);
  if (b >= batch) return;
  uint32_t source = order[b];
  const uchar4 *image = (const uchar4 *)(pixels + (size_t)source * pixels_per_image);
  float4 *row = (float4 *)(x + (size_t)b * pixels_per_image);
  for (int q = lane; q < quads; q += 32) {
    uchar4 p = image[q];
    row[q] = make_float4(batch_normalize(p.x, mean, stddev), batch_normalize(p.y, mean, stddev),
                         batch_normalize(p.z, mean, stddev), batch_normalize(p.w, mean, stddev));
  }
  if (lane == 0) labels[b] = all_labels[source];
  // <<< exercise
}

/* One loop over the quads of all images of the batch, so that no lane is idle at the end of an image. The grid-stride
 * loop lets each block make its table once. `quads`: of one image. */
static __global__ void batch_gather_kernel(float4 *x, int *labels, const uchar4 *pixels, const uint8_t *all_labels,
                                           const uint32_t *order, uint32_t batch, uint32_t quads, float mean,
                                           float stddev) {
  __shared__ float normalized[BATCH_GATHER_BLOCK];
  normalized[threadIdx.x] = batch_normalize((uint8_t)threadIdx.x, mean, stddev);
  __syncthreads();
  for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < batch * quads; at += gridDim.x * blockDim.x) {
    uint32_t b = at / quads, q = at % quads, source = order[b];
    uchar4 p = pixels[(size_t)source * quads + q];
    x[at] = make_float4(normalized[p.x], normalized[p.y], normalized[p.z], normalized[p.w]);
    if (q == 0) labels[b] = all_labels[source];
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers; every array, order too, lies on the GPU */

static inline unsigned batch_gather_grid(size_t threads) {
  return (unsigned)((threads + BATCH_GATHER_BLOCK - 1) / BATCH_GATHER_BLOCK);
}

/* Are the images aligned to 4 bytes, and the rows to 16, so that a lane may load and store that many at once? */
static inline bool batch_gather_fits(const float *x, const uint8_t *pixels, int pixels_per_image) {
  return pixels_per_image % 4 == 0 && (uintptr_t)pixels % sizeof(uchar4) == 0 && (uintptr_t)x % sizeof(float4) == 0;
}

static inline void batch_gather_rows(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                     const uint32_t *order, int batch, int pixels_per_image, float mean, float stddev) {
  batch_gather_rows_kernel<<<batch_gather_grid(batch), BATCH_GATHER_BLOCK>>>(x, labels, pixels, all_labels, order,
                                                                             batch, pixels_per_image, mean, stddev);
  CUDA_CHECK_LAUNCH();
}

static inline void batch_gather_elements(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                         const uint32_t *order, int batch, int pixels_per_image, float mean,
                                         float stddev) {
  batch_gather_elements_kernel<<<batch_gather_grid((size_t)batch * pixels_per_image), BATCH_GATHER_BLOCK>>>(
      x, labels, pixels, all_labels, order, batch, pixels_per_image, mean, stddev);
  CUDA_CHECK_LAUNCH();
}

static inline void batch_gather_blocks(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                       const uint32_t *order, int batch, int pixels_per_image, float mean,
                                       float stddev) {
  batch_gather_blocks_kernel<<<batch, BATCH_GATHER_BLOCK>>>(x, labels, pixels, all_labels, order, pixels_per_image,
                                                            mean, stddev);
  CUDA_CHECK_LAUNCH();
}

static inline void batch_gather_warps(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                      const uint32_t *order, int batch, int pixels_per_image, float mean,
                                      float stddev) {
  if (!batch_gather_fits(x, pixels, pixels_per_image)) {
    batch_gather_blocks(x, labels, pixels, all_labels, order, batch, pixels_per_image, mean, stddev);
    return;
  }
  batch_gather_warps_kernel<<<batch_gather_grid((size_t)batch * 32), BATCH_GATHER_BLOCK>>>(
      x, labels, pixels, all_labels, order, batch, pixels_per_image, mean, stddev);
  CUDA_CHECK_LAUNCH();
}

enum { BATCH_GATHER_MOST_BLOCKS = 1056 }; /* 8 per multiprocessor of 132: as many threads as they hold */

static inline void batch_gather_gpu(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                    const uint32_t *order, int batch, int pixels_per_image, float mean, float stddev) {
  size_t quads = (size_t)batch * (pixels_per_image / 4);
  if (!batch_gather_fits(x, pixels, pixels_per_image) || quads > UINT32_MAX / 2) { /* 32 bits divide faster than 64 */
    batch_gather_blocks(x, labels, pixels, all_labels, order, batch, pixels_per_image, mean, stddev);
    return;
  }
  unsigned blocks = batch_gather_grid(quads);
  if (blocks > BATCH_GATHER_MOST_BLOCKS) blocks = BATCH_GATHER_MOST_BLOCKS;
  batch_gather_kernel<<<blocks, BATCH_GATHER_BLOCK>>>((float4 *)x, labels, (const uchar4 *)pixels, all_labels, order,
                                                      (uint32_t)batch, (uint32_t)pixels_per_image / 4, mean, stddev);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE2_MLP_BATCHES_CUH */
