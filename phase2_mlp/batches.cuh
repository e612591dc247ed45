/* batches.cuh - from a data set in memory to normalised mini-batches in a new order every epoch.
 *
 * The data set stays where the network is, as the bytes it came in (MNIST: 47 MB, a quarter of its floats). A step
 * copies nothing between host and GPU: batch_gather picks its images through `order` and normalises them on the way.
 *
 *   batches_shuffle     order (count) = the permutation of 0..count-1 for (seed, epoch); on the host, then uploaded
 *   batch_gather        x (B,P) = (pixels[order[b]] / 255 - mean) / stddev,  labels (B) = all_labels[order[b]]
 *                       with pixels (N,P) and all_labels (N) uint8, P = pixels_per_image
 *
 * All versions give the same bits, and PyTorch's (ToTensor, Normalize): two divisions and a difference round the same
 * way everywhere, which a multiplication and an addition, fused on one machine and not on another, would not.
 *
 *   batch_gather_cpu       plain loops
 *   batch_gather_cpu_fast  a byte has 256 values: they are normalised once, in a table; images shared among threads
 *   batch_gather_kernel    a block for each image
 */
#ifndef PHASE2_MLP_BATCHES_CUH
#define PHASE2_MLP_BATCHES_CUH

#include <stddef.h>
#include <stdint.h>

#include "common/philox.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Order */

/* Philox streams from here on belong to the shuffles, one for each epoch; those below are for everything else. */
#define BATCHES_SHUFFLE_STREAM 0x80000000u

/* The order of epoch e depends on (seed, e) alone: a run that resumes in epoch 7 sees what it would have seen. */
static inline void batches_shuffle(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch) {
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  philox_shuffle(order, count, seed, BATCHES_SHUFFLE_STREAM + epoch);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

PHILOX_FUNCTION float batch_normalize(uint8_t pixel, float mean, float stddev) {
  return ((float)pixel / 255.0f - mean) / stddev;
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
/* Kernel and launcher */

static __global__ void batch_gather_kernel(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                           const uint32_t *order, int pixels_per_image, float mean, float stddev) {
  uint32_t source = order[blockIdx.x];
  const uint8_t *image = pixels + (size_t)source * pixels_per_image;
  float *out = x + (size_t)blockIdx.x * pixels_per_image;
  for (int i = threadIdx.x; i < pixels_per_image; i += blockDim.x) out[i] = batch_normalize(image[i], mean, stddev);
  if (threadIdx.x == 0) labels[blockIdx.x] = all_labels[source];
}

/* Every array, order too, lies on the GPU. */
static inline void batch_gather_gpu(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                    const uint32_t *order, int batch, int pixels_per_image, float mean, float stddev) {
  batch_gather_kernel<<<batch, 256>>>(x, labels, pixels, all_labels, order, pixels_per_image, mean, stddev);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE2_MLP_BATCHES_CUH */
