/* confusion_matrix.cuh - which classes a network takes for which: a histogram of pairs, in three versions.
 *
 * counts (classes, classes): of images with the true class `row`, how many got the answer `column`. The answer is the
 * class with the largest of an image's logits, the first of equals. From logits (batch, classes), labels (batch).
 *
 *   confusion_global  one thread per image reads its row, and adds 1 in global memory
 *   confusion_shared  each block counts in shared memory, and adds its counts once
 *   confusion_tiled   the block loads its rows as one piece, so that neighbouring threads read neighbouring floats
 *
 * Whole numbers: whatever the order of the atomics, the counts are the same. Up to CONFUSION_MOST classes. */
#ifndef PHASE4_TRAINING_CONFUSION_MATRIX_CUH
#define PHASE4_TRAINING_CONFUSION_MATRIX_CUH

#include <stddef.h>
#include <string.h>

#include "common/check.h"

enum { CONFUSION_MOST = 32, CONFUSION_BLOCK = 128 };

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void confusion_cpu(int *counts, const float *logits, const int *labels, int batch, int classes) {
  memset(counts, 0, (size_t)classes * classes * sizeof *counts);
  for (int b = 0; b < batch; b++) {
    const float *row = logits + (size_t)b * classes;
    int best = 0;
    for (int c = 1; c < classes; c++)
      if (row[c] > row[best]) best = c;
    counts[labels[b] * classes + best]++;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* The class with the largest of the row's logits, the first of equals. */
static __device__ __forceinline__ int confusion_answer(const float *row, int classes) {
  int answer = 0;
  // >>> exercise confusion_answer: answer becomes the place of the largest of row[0] to row[classes - 1]
  // hint: go through the row and keep the place of the largest value so far
  // hint: begin with place 0; a value that is larger than the one at `answer` takes its place
  // hint: for (int c = 1; c < classes; c++) if (row[c] > row[answer]) answer = c;
  for (int c = 1; c < classes; c++)
    if (row[c] > row[answer]) answer = c;
  // <<< exercise
  return answer;
}

static __global__ void confusion_global_kernel(int *counts, const float *logits, const int *labels, int batch,
                                               int classes) {
  const int b = blockIdx.x * CONFUSION_BLOCK + threadIdx.x;
  if (b >= batch) return;
  atomicAdd(&counts[labels[b] * classes + confusion_answer(logits + (size_t)b * classes, classes)], 1);
}

/* The block's counts, all 0. */
static __device__ __forceinline__ void confusion_begin(int *bins, int classes) {
  for (int i = threadIdx.x; i < classes * classes; i += CONFUSION_BLOCK) bins[i] = 0;
  __syncthreads();
}

/* The block's counts are added to those of all. */
static __device__ __forceinline__ void confusion_end(int *counts, const int *bins, int classes) {
  // >>> exercise confusion_end: once all threads have counted, add each of the classes * classes bins to `counts`
  // hint: another thread may still be counting: a barrier first; then the bins are shared out among the threads
  // hint: other blocks add to the same counts: atomicAdd(); a bin that is 0 needs none
  // hint: __syncthreads(); for (int i = threadIdx.x; i < classes * classes; i += CONFUSION_BLOCK) if (bins[i]) ...
  __syncthreads();
  for (int i = threadIdx.x; i < classes * classes; i += CONFUSION_BLOCK)
    if (bins[i] > 0) atomicAdd(&counts[i], bins[i]);
  // <<< exercise
}

static __global__ void confusion_shared_kernel(int *counts, const float *logits, const int *labels, int batch,
                                               int classes) {
  __shared__ int bins[CONFUSION_MOST * CONFUSION_MOST];
  const int b = blockIdx.x * CONFUSION_BLOCK + threadIdx.x;
  confusion_begin(bins, classes);
  if (b < batch) atomicAdd(&bins[labels[b] * classes + confusion_answer(logits + (size_t)b * classes, classes)], 1);
  confusion_end(counts, bins, classes);
}

/* Rows lie `pitch` floats apart in shared memory, an odd number: 32 lanes that read the same class of 32 rows then use
 * 32 banks. */
static __global__ void confusion_tiled_kernel(int *counts, const float *logits, const int *labels, int batch,
                                              int classes) {
  __shared__ int bins[CONFUSION_MOST * CONFUSION_MOST];
  __shared__ float tile[CONFUSION_BLOCK * (CONFUSION_MOST + 1)];
  const int first = blockIdx.x * CONFUSION_BLOCK, b = first + threadIdx.x, pitch = classes | 1;
  const int rows = batch - first < CONFUSION_BLOCK ? batch - first : CONFUSION_BLOCK;
  for (int i = threadIdx.x; i < rows * classes; i += CONFUSION_BLOCK)
    tile[i / classes * pitch + i % classes] = logits[(size_t)first * classes + i];
  confusion_begin(bins, classes); /* its barrier is that of the tile, too */
  if (b < batch) atomicAdd(&bins[labels[b] * classes + confusion_answer(tile + threadIdx.x * pitch, classes)], 1);
  confusion_end(counts, bins, classes);
}

typedef void ConfusionKernel(int *counts, const float *logits, const int *labels, int batch, int classes);

static inline void confusion_launch(ConfusionKernel *kernel, int *counts, const float *logits, const int *labels,
                                    int batch, int classes) {
  CUDA_CHECK(cudaMemsetAsync(counts, 0, (size_t)classes * classes * sizeof *counts));
  kernel<<<(batch + CONFUSION_BLOCK - 1) / CONFUSION_BLOCK, CONFUSION_BLOCK>>>(counts, logits, labels, batch, classes);
  CUDA_CHECK_LAUNCH();
}

static inline void confusion_global(int *counts, const float *logits, const int *labels, int batch, int classes) {
  confusion_launch(confusion_global_kernel, counts, logits, labels, batch, classes);
}

static inline void confusion_shared(int *counts, const float *logits, const int *labels, int batch, int classes) {
  confusion_launch(confusion_shared_kernel, counts, logits, labels, batch, classes);
}

static inline void confusion_tiled(int *counts, const float *logits, const int *labels, int batch, int classes) {
  confusion_launch(confusion_tiled_kernel, counts, logits, labels, batch, classes);
}

#endif /* PHASE4_TRAINING_CONFUSION_MATRIX_CUH */
