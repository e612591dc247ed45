/* memory_count.cuh - how much memory is in use, of what, and how much it was at most.
 *
 *     MemoryCount count = memory_count_none();
 *     memory_take(&count, MEMORY_WEIGHTS, 4096);
 *     memory_take(&count, MEMORY_WORKSPACE, 1 << 20);
 *     memory_give(&count, MEMORY_WORKSPACE, 1 << 20);
 *     count.peak                      // 1 MiB + 4096: bytes at the worst moment
 *     count.at_peak[MEMORY_WEIGHTS]   // 4096: what they were of
 *
 * The peak of a sum is not the sum of the peaks: what is needed at different moments shares its bytes. */
#ifndef PHASE5_PRODUCTION_MEMORY_COUNT_CUH
#define PHASE5_PRODUCTION_MEMORY_COUNT_CUH

#include <string.h>

#include "common/check.h"

typedef enum MemoryKind {
  MEMORY_WEIGHTS,     /* parameters, and what batch norm counts */
  MEMORY_GRADIENTS,   /* of the parameters */
  MEMORY_OPTIMIZER,   /* its slots */
  MEMORY_ACTIVATIONS, /* outputs of the layers, inputs of the network */
  MEMORY_SAVED,       /* what forward keeps for backward besides */
  MEMORY_DIFFERENCES, /* gradients of the outputs */
  MEMORY_WORKSPACE,   /* scratch of one operation */
  MEMORY_LOSS,        /* losses, probabilities, labels */
  MEMORY_KINDS
} MemoryKind;

static inline const char *memory_kind_name(int kind) {
  static const char *const names[] = {"weights", "gradients",   "optimizer", "activations",
                                      "saved",   "differences", "workspace", "loss"};
  return names[kind];
}

typedef struct MemoryCount {
  long now[MEMORY_KINDS];     /* bytes */
  long at_peak[MEMORY_KINDS]; /* the same, at the moment of the peak */
  long sum, peak;
} MemoryCount;

static __host__ __device__ inline MemoryCount memory_count_none(void) {
  MemoryCount count;
  for (int i = 0; i < MEMORY_KINDS; i++) count.now[i] = count.at_peak[i] = 0;
  count.sum = count.peak = 0;
  return count;
}

static __host__ __device__ inline void memory_take(MemoryCount *count, int kind, long bytes) {
  // >>> exercise memory_peak: count the bytes; at a new peak, keep how many of each kind there are
  // hint: count->now[kind] and count->sum grow first.
  // hint: A new peak is a sum above count->peak. At an equal one the first stays.
  // hint: Copy all of now[] to at_peak[], not that of this kind alone.
  count->now[kind] += bytes;
  count->sum += bytes;
  if (count->sum > count->peak) {
    count->peak = count->sum;
    for (int i = 0; i < MEMORY_KINDS; i++) count->at_peak[i] = count->now[i];
  }
  // <<< exercise
}

static __host__ __device__ inline void memory_give(MemoryCount *count, int kind, long bytes) {
  count->now[kind] -= bytes;
  count->sum -= bytes;
}

/* ------------------------------------------------------------------------------------------------ for the exercise */

/* Of n programs, each of e events: +bytes takes, -bytes gives back; kinds from 0. peak (n), and at_peak (n,kinds). */
static __host__ __device__ inline void memory_peaks_of(int *peak, int *at_peak, const int *bytes, const int *kind,
                                                       int e, int i) {
  MemoryCount count = memory_count_none();
  for (int j = 0; j < e; j++) {
    const int k = kind[i * e + j], size = bytes[i * e + j];
    if (j % 3 == 2 && count.now[k] >= size)
      memory_give(&count, k, size);
    else
      memory_take(&count, k, size);
  }
  peak[i] = (int)count.peak;
  for (int k = 0; k < MEMORY_KINDS; k++) at_peak[i * MEMORY_KINDS + k] = (int)count.at_peak[k];
}

static inline void memory_peaks_cpu(int *peak, int *at_peak, const int *bytes, const int *kind, int n, int e) {
  for (int i = 0; i < n; i++) memory_peaks_of(peak, at_peak, bytes, kind, e, i);
}

static __global__ void memory_peaks_kernel(int *peak, int *at_peak, const int *bytes, const int *kind, int n, int e) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) memory_peaks_of(peak, at_peak, bytes, kind, e, i);
}

static inline void memory_peaks_gpu(int *peak, int *at_peak, const int *bytes, const int *kind, int n, int e) {
  enum { BLOCK = 64 };
  memory_peaks_kernel<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(peak, at_peak, bytes, kind, n, e);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_MEMORY_COUNT_CUH */
