/* concat_half.cuh - images of 16 bits, channels last, side by side: what SqueezeNet's fire modules end with.
 *
 *     a (pixels,A), b (pixels,B) -> y (pixels,A+B)      A, B: multiples of 8 (common/half.h)
 *
 * In (N,C,H,W) an image's channels are planes, and the copy is two runs of memory per image. Here it is two runs per
 * pixel: each input is copied by a kernel of its own into its part of every pixel.
 *
 *   concat_half_cpu     the loops
 *   concat_half         one thread per run of eight channels, 16 bytes: reads are contiguous, and the writes of a pixel
 */
#ifndef PHASE5_PRODUCTION_CONCAT_HALF_CUH
#define PHASE5_PRODUCTION_CONCAT_HALF_CUH

#include "common/half.cuh"

static inline void concat_half_cpu(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t pixels, int a_channels,
                                   int b_channels) {
  for (size_t p = 0; p < pixels; p++)
    for (int c = 0; c < a_channels + b_channels; c++)
      *y++ = c < a_channels ? a[p * a_channels + c] : b[p * b_channels + c - a_channels];
}

/* x (pixels, x_runs) to runs first, first + 1, ... of each pixel of y (pixels, y_runs). A run is 16 bytes. */
template <typename T>
static __global__ void concat_half_kernel(HalfRun<T> *y, const HalfRun<T> *x, size_t runs, int x_runs, int y_runs,
                                          int first) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= runs) return;
  // >>> exercise concat_runs: copy run i of x to its place in y
  // hint: x has x_runs runs for each pixel, so run i is run i % x_runs of pixel i / x_runs
  // hint: in y a pixel has y_runs runs, and those of x begin behind the `first` ones
  // hint: y[i / x_runs * y_runs + first + i % x_runs] = x[i];
  y[i / x_runs * y_runs + first + i % x_runs] = x[i];
  // <<< exercise
}

/* Into channels first_channel, ... of y; all counts of channels are multiples of HALF_RUN. */
template <typename T>
static inline void concat_half_one(uint16_t *y, const uint16_t *x, size_t pixels, int x_channels, int y_channels,
                                   int first_channel) {
  const size_t runs = pixels * (size_t)(x_channels / HALF_RUN);
  if (runs == 0) return;
  concat_half_kernel<T><<<half_blocks(runs), HALF_BLOCK>>>((HalfRun<T> *)y, (const HalfRun<T> *)x, runs,
                                                           x_channels / HALF_RUN, y_channels / HALF_RUN,
                                                           first_channel / HALF_RUN);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void concat_half(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t pixels, int a_channels,
                               int b_channels) {
  concat_half_one<T>(y, a, pixels, a_channels, a_channels + b_channels, 0);
  concat_half_one<T>(y, b, pixels, b_channels, a_channels + b_channels, a_channels);
}

#endif /* PHASE5_PRODUCTION_CONCAT_HALF_CUH */
