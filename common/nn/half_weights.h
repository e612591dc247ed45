/* half_weights.h - the weights of a lowered network (lower.h) as 16 bits, made of the float32 ones in one launch.
 *
 * What is trained stays float32: a step of the learning rate 0.001 changes a weight by less than a bf16 can show, 1/256
 * of it, and would often be lost. The products read copies. Each step begins with making them:
 *
 *     master (K,C,pixels) float   ->   half (K',pixels,C'), and behind it its turn (C',pixels,K')
 *
 * K' and C' are K and C filled up to multiples of HALF_RUN by zeros. Forward multiplies by the first, the gradient of
 * the input by the second. The turn of a linear layer that reads pictures is (pixels,C',K'): a row for each number of
 * its input. A table says where the weights lie, so that one launch converts those of the whole network.
 */
#ifndef COMMON_NN_HALF_WEIGHTS_H
#define COMMON_NN_HALF_WEIGHTS_H

#include "common/nn/op.h"

typedef struct HalfWeight {
  const float *from; /* (k, c, pixels) */
  int k, c, pixels;
  int by_pixel;     /* its turn is (pixels,C',K') */
  size_t to, first; /* in runs: place of the copy; runs of the weights before it */
} HalfWeight;

/* Runs of one of the two copies. */
static inline size_t half_weight_runs(int k, int c, int pixels) {
  return (size_t)half_channels(k) * pixels * (half_channels(c) / HALF_RUN);
}

/* Numbers of both copies. */
static inline size_t half_weight_count(int k, int c, int pixels) {
  return 2 * (size_t)half_channels(k) * pixels * half_channels(c);
}

#ifdef __CUDACC__
#include "common/half.cuh"

/* The weight to which run i belongs: the last that begins at or before it. */
static __device__ __forceinline__ int half_weight_find(const HalfWeight *table, int count, size_t i) {
  int low = 0, high = count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table[middle].first <= i)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* One thread per run: eight channels of one row and pixel. */
template <typename T>
static __global__ void half_weights_kernel(T *half, const HalfWeight *table, int count, size_t runs) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= runs) return;
  const HalfWeight w = table[half_weight_find(table, count, i)];
  const int all_k = (w.k + HALF_RUN - 1) / HALF_RUN * HALF_RUN, all_c = (w.c + HALF_RUN - 1) / HALF_RUN * HALF_RUN;
  const size_t each = (size_t)all_k * w.pixels * (all_c / HALF_RUN), own = i - w.first;
  const bool turned = own >= each;
  const size_t at = turned ? own - each : own;
  const int across = (turned ? all_k : all_c) / HALF_RUN; /* runs of a row and pixel */
  const size_t line = at / across;
  const int run = (int)(at % across), by_pixel = turned && w.by_pixel;
  const int pixel = (int)(by_pixel ? line / all_c : line % w.pixels);
  const int row = (int)(by_pixel ? line % all_c : line / w.pixels);
  float v[HALF_RUN];
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) {
    const int column = run * HALF_RUN + e, k = turned ? column : row, c = turned ? row : column;
    v[e] = k < w.k && c < w.c ? w.from[((size_t)k * w.c + c) * w.pixels + pixel] : 0;
  }
  half_store(half + (w.to + own) * HALF_RUN, v);
}

template <typename T>
static inline void half_weights_launch(uint16_t *half, const HalfWeight *table, int count, size_t runs) {
  half_weights_kernel<T><<<half_blocks(runs), HALF_BLOCK>>>((T *)half, table, count, runs);
  CUDA_CHECK_LAUNCH();
}
#endif

#endif /* COMMON_NN_HALF_WEIGHTS_H */
