/* onnx_pads.cuh - the padding of a window as ONNX writes it.
 *
 * The networks of this course pad both sides of an axis alike: (h, w). ONNX has a number for each side, so that padding
 * can differ between them, and lists all beginnings before all ends: pads = top, left, bottom, right.
 */
#ifndef PHASE5_PRODUCTION_ONNX_PADS_CUH
#define PHASE5_PRODUCTION_ONNX_PADS_CUH

#include <stdint.h>

#include "common/check.h"

/* pads (4) of the padding (h, w). */
static inline __host__ __device__ void onnx_pads(int *pads, int h, int w) {
  // >>> exercise onnx_pads: fill the four numbers of `pads` as ONNX orders them
  // hint: rows are padded above and below, both by h; columns on the left and on the right, both by w
  // hint: ONNX does not list axis by axis: first the beginnings of all axes, then the ends of all axes
  // hint: the axes stand in the order height, width: top, left, bottom, right
  pads[0] = h;
  pads[1] = w;
  pads[2] = h;
  pads[3] = w;
  // <<< exercise
}

/* ------------------------------------------------------------------------------------------------------- for checks */

/* pads (n,4) of padding (n,2). */
static inline void onnx_pads_cpu(int *pads, const uint8_t *padding, int n) {
  for (int i = 0; i < n; i++) onnx_pads(pads + 4 * i, padding[2 * i], padding[2 * i + 1]);
}

static __global__ void onnx_pads_kernel(int *pads, const uint8_t *padding, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) onnx_pads(pads + 4 * i, padding[2 * i], padding[2 * i + 1]);
}

static inline void onnx_pads_gpu(int *pads, const uint8_t *padding, int n) {
  onnx_pads_kernel<<<(n + 127) / 128, 128>>>(pads, padding, n);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_ONNX_PADS_CUH */
