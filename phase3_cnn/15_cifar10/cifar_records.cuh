/* cifar_records.cuh - the records of CIFAR's binary files (common/cifar.h), taken apart on the GPU: what a file holds,
 * byte by byte, becomes normalised pictures and labels.
 *
 *     records (N, L + 3 P) uint8    L label bytes, of which the last is the class; P red, P green and P blue pixels
 *     x (N,3,P) = (pixel / 255 - mean[channel]) / stddev[channel]      labels (N)
 *
 * CIFAR-10 has L = 1, CIFAR-100 L = 2, both P = 32 * 32.
 *
 *   cifar_records_cpu   plain loops
 *   cifar_records_gpu   one thread per pixel. A record has 3073 or 3074 bytes, so a picture begins at any address and
 *                       loads of four bytes would not be aligned. Neighbouring threads read neighbouring bytes, so
 *                       that a warp still needs one or two sectors.
 */
#ifndef PHASE3_CNN_CIFAR_RECORDS_CUH
#define PHASE3_CNN_CIFAR_RECORDS_CUH

#include "common/check.h"
#include "phase2_mlp/05_batches/batches.cuh"

/* Of each channel. */
typedef struct CifarNorm {
  float mean[3], stddev[3];
} CifarNorm;

static inline void cifar_records_cpu(float *x, int *labels, const uint8_t *records, int count, int label_bytes,
                                     int plane, CifarNorm norm) {
  for (int n = 0; n < count; n++, records += label_bytes + 3 * plane) {
    const uint8_t *from = records + label_bytes;
    labels[n] = from[-1];
    for (int c = 0; c < 3; c++)
      for (int p = 0; p < plane; p++) *x++ = batch_normalize(*from++, norm.mean[c], norm.stddev[c]);
  }
}

/* One thread per element i of x. */
static __global__ void cifar_records_kernel(float *x, int *labels, const uint8_t *records, int count, int label_bytes,
                                            int plane, CifarNorm norm) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, pixels = 3 * (size_t)plane;
  if (i >= count * pixels) return;
  // >>> exercise cifar_record_pixel: normalise element i of x; one thread per picture also writes its label
  // hint: a record is label_bytes + pixels long; element i is of picture i / pixels, and is its pixel i % pixels
  // hint: the planes follow each other, so a pixel's channel is its place in the picture divided by `plane`
  // hint: with two label bytes the class is the second: the byte right before the pixels
  // hint: record = records + i / pixels * (label_bytes + pixels); x[i] = batch_normalize(record[label_bytes + at], ...)
  const uint8_t *record = records + i / pixels * (label_bytes + pixels);
  const size_t at = i % pixels, c = at / plane;
  x[i] = batch_normalize(record[label_bytes + at], norm.mean[c], norm.stddev[c]);
  if (at == 0) labels[i / pixels] = record[label_bytes - 1];
  // <<< exercise
}

static inline void cifar_records_gpu(float *x, int *labels, const uint8_t *records, int count, int label_bytes,
                                     int plane, CifarNorm norm) {
  const size_t n = 3 * (size_t)count * plane;
  if (n == 0) return;
  cifar_records_kernel<<<(unsigned)((n + 255) / 256), 256>>>(x, labels, records, count, label_bytes, plane, norm);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_CIFAR_RECORDS_CUH */
