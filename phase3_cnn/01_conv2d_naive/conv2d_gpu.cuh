/* conv2d_gpu.cuh - what the kernels of conv2d_forward.cuh, conv2d_backward_input.cuh and conv2d_backward_weight.cuh
 * share: sizes, loading filters to shared memory, adding up the shares of a block, and the geometry of a launch.
 *
 * Each thread loads an input once and uses it for CONV2D_FILTERS filters, whose weights lie side by side in shared
 * memory: all threads of a warp read the same 16 bytes, a broadcast.
 */
#ifndef PHASE3_CNN_CONV2D_GPU_CUH
#define PHASE3_CNN_CONV2D_GPU_CUH

#include "common/check.h"
#include "common/device.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

enum {
  CONV2D_BLOCK = 256,        /* threads of a block, as dim3: (pixels, shares of the sum of an output) */
  CONV2D_SHARES = 8,         /* at most */
  CONV2D_FILTERS = 8,        /* outputs that a thread computes from one input */
  CONV2D_COLUMNS = 5,        /* inputs that it loads at once: for a row of a 5 x 5 filter */
  CONV2D_ROWS = 96,          /* of filters, in shared memory at once */
  CONV2D_WEIGHT_BLOCK = 512, /* backward_weight: threads, as dim3: (taps, shares), and pixels in shared memory */
  CONV2D_WEIGHT_BLOCKS = 2,  /* backward_weight: for each multiprocessor */
};

/* to[f] = the same element of the next CONV2D_FILTERS filters, `step` floats apart; 0 where fewer are left. */
static __device__ __forceinline__ void conv2d_load_filters(float *to, const float *from, int step, int left) {
  for (int f = 0; f < CONV2D_FILTERS; f++) to[f] = f < left ? from[(size_t)f * step] : 0.0f;
}

/* sum[f] += the weight of filter f times its input, for all filters of the thread. */
static __device__ __forceinline__ void conv2d_add_products(float (&sum)[CONV2D_FILTERS],
                                                           const float (&weights)[CONV2D_FILTERS], float input) {
  for (int f = 0; f < CONV2D_FILTERS; f++) sum[f] += weights[f] * input;
}

/* A block shares out a long sum: sum of thread (x, 0) += the sums of threads (x, 1), (x, 2), ..., in this order,
 * through shared memory. The other threads are done then. */
template <int THREADS>
static __device__ __forceinline__ void conv2d_add_shares(float *sum) {
  __shared__ float sums[CONV2D_FILTERS][THREADS];
  for (int j = 0; j < CONV2D_FILTERS; j++) sums[j][threadIdx.y * blockDim.x + threadIdx.x] = sum[j];
  __syncthreads();
  if (threadIdx.y > 0) return;
#pragma unroll 1
  for (unsigned i = threadIdx.x + blockDim.x; i < blockDim.x * blockDim.y; i += blockDim.x)
    for (int j = 0; j < CONV2D_FILTERS; j++) sum[j] += sums[j][i];
}

/* A row of taps, and what a pixel that lies at (0,0) reads there. */
typedef struct Conv2dRow {
  int h, offset; /* of the row in a plane, and of its first input in the image */
  int phase;     /* backward_input: only pixels of this remainder by the stride meet the row */
} Conv2dRow;

/* What a block has in shared memory of its filters: rows of taps, and a few columns of each. */
typedef float Conv2dFilters[CONV2D_COLUMNS][CONV2D_FILTERS];

/* ---------------------------------------------------------------------------------------------------------------- */
/* Geometry of a launch */

static inline unsigned conv2d_blocks(size_t threads) { return (unsigned)((threads + CONV2D_BLOCK - 1) / CONV2D_BLOCK); }

static inline int conv2d_filter_groups(int filters) { return (filters + CONV2D_FILTERS - 1) / CONV2D_FILTERS; }

static inline int conv2d_multiprocessors(void) {
  int device, count; /* of the thread's device: asked each time, which costs less than a tenth of a launch */
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

/* A block of pixels x shares: as many shares of a sum as it takes to fill the GPU with threads, 2048 per
 * multiprocessor, but at least six rows of taps per share: adding up the shares takes time, too. */
static inline dim3 conv2d_block(int rows, size_t pixels, int filters) {
  size_t threads = pixels * conv2d_filter_groups(filters), room = (size_t)conv2d_multiprocessors() * 2048;
  int shares = 1;
  while (2 * shares <= CONV2D_SHARES && rows >= 6 * 2 * shares && threads * shares < room) shares *= 2;
  return dim3(CONV2D_BLOCK / shares, shares);
}

static inline dim3 conv2d_grid(size_t pixels, int filters, dim3 block) {
  return dim3((unsigned)((pixels + block.x - 1) / block.x), conv2d_filter_groups(filters));
}

#endif /* PHASE3_CNN_CONV2D_GPU_CUH */
