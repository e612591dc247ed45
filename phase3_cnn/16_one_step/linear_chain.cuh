/* linear_chain.cuh - linear layers one after another, with ReLU between them, in one kernel forward and two backward.
 *
 *     h[0] = x (B,I);  h[l + 1] = max(0, h[l] w[l]^T + bias[l]), without the 0 in the last layer: y
 *     w[l] (out,in)  bias[l] (out)  in and out: width[l], width[l + 1]
 *
 * Launch by launch each layer waits for the one before, though a sample needs nothing of other samples. Here a block
 * has a sample, and its numbers stay in shared memory:
 *
 *   forward    a warp computes CHAIN_OUTPUTS numbers of a layer: its lanes read along the rows of w, 16 bytes each
 *   backward   deltas: a block has a sample, and goes back from dy to dx; d[l], the gradient of the sums of layer l, is
 *              kept for the other kernel. weights: dw[l] = d[l]^T h[l], the tiles of all layers in one grid
 *              (linear_relu.cuh)
 *
 * Each block reads all weights, so batches above CHAIN_BATCH go layer by layer, as on the CPU: chain_in_turn_*().
 */
#ifndef PHASE3_CNN_LINEAR_CHAIN_CUH
#define PHASE3_CNN_LINEAR_CHAIN_CUH

#include "common/device.h"
#include "phase1_building_blocks/07_activations/activations.cuh"
#include "phase2_mlp/03_mlp/linear_relu.cuh"

enum {
  CHAIN_LAYERS = 3,
  CHAIN_WIDTH = 1024,      /* numbers of a layer, at most */
  CHAIN_WEIGHTS = 1 << 17, /* of all layers, at most: each block reads them */
  CHAIN_THREADS = 1024,    /* of a block */
  CHAIN_OUTPUTS = 4,       /* of a warp at a time */
  CHAIN_BATCH = 256,       /* at most, in one kernel */
};

typedef struct LinearChain {
  int batch, layers, width[CHAIN_LAYERS + 1];
  const float *w[CHAIN_LAYERS], *bias[CHAIN_LAYERS];
} LinearChain;

/* Floats of the hidden layers of a sample: what forward keeps for backward, (B,width[1]) and then (B,width[2]). */
static inline int chain_hidden(const LinearChain *s) {
  int hidden = 0;
  for (int l = 1; l < s->layers; l++) hidden += s->width[l];
  return hidden;
}

/* Array l of the hidden layers, l from 1. */
static inline float *chain_layer(const LinearChain *s, float *hidden, int l) {
  for (int i = 1; i < l; i++) hidden += (size_t)s->batch * s->width[i];
  return hidden;
}

/* Whether the kernels take these widths. */
static inline int chain_fits(const LinearChain *s) {
  double weights = 0;
  if (s->layers < 2 || s->layers > CHAIN_LAYERS) return 0;
  for (int l = 0; l <= s->layers; l++)
    if (s->width[l] > CHAIN_WIDTH || (l < s->layers && s->width[l] % 4 != 0)) return 0;
  for (int l = 0; l < s->layers; l++) weights += (double)s->width[l] * s->width[l + 1];
  return weights <= CHAIN_WEIGHTS;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Layer by layer */

/* The reference. */
static inline void chain_forward_cpu(float *y, float *hidden, const float *x, LinearChain s) {
  for (int l = 0; l < s.layers; l++) {
    float *out = l + 1 < s.layers ? chain_layer(&s, hidden, l + 1) : y;
    linear_forward_cpu(out, x, s.w[l], s.bias[l], s.batch, s.width[l], s.width[l + 1]);
    for (size_t i = 0; l + 1 < s.layers && i < (size_t)s.batch * s.width[l + 1]; i++) out[i] = out[i] < 0 ? 0 : out[i];
    x = out;
  }
}

static inline void chain_in_turn_forward(Device device, float *y, float *hidden, const float *x, LinearChain s) {
  for (int l = 0; l < s.layers; l++) {
    float *out = l + 1 < s.layers ? chain_layer(&s, hidden, l + 1) : y;
    const size_t n = (size_t)s.batch * s.width[l + 1];
    ON_DEVICE(device, linear_forward_gpu(out, x, s.w[l], s.bias[l], s.batch, s.width[l], s.width[l + 1]),
              linear_forward_cpu_fast(out, x, s.w[l], s.bias[l], s.batch, s.width[l], s.width[l + 1]));
    if (l + 1 < s.layers) ON_DEVICE(device, relu_forward_gpu(out, out, n), relu_forward_cpu_fast(out, out, n));
    x = out;
  }
}

/* dw[l] and dbias[l] may be NULL, and dx. deltas: as `hidden`. On a GPU, a layer in one launch where that fits. */
static inline void chain_in_turn_backward(Device device, float *dx, float *const *dw, float *const *dbias,
                                          const float *dy, float *hidden, const float *x, float *deltas,
                                          LinearChain s) {
  for (int l = s.layers - 1; l >= 0; l--) {
    const int in = s.width[l], out = s.width[l + 1];
    const size_t n = (size_t)s.batch * out;
    const float *input = l > 0 ? chain_layer(&s, hidden, l) : x;
    const float *after = l + 1 < s.layers ? chain_layer(&s, hidden, l + 1) : NULL; /* behind the layer's ReLU */
    float *delta = l > 0 ? chain_layer(&s, deltas, l) : dx;
    if (device == DEVICE_GPU && dw[l] && linear_relu_backward_fits(s.batch, in, out)) {
      ON_DEVICE(
          device,
          linear_relu_backward_gpu(delta, dw[l], dbias[l], dy, after, input, s.w[l], s.batch, in, out, after != NULL),
          (void)0);
      dy = delta;
      continue;
    }
    if (after) { /* then dy is deltas of this layer */
      float *gated = chain_layer(&s, deltas, l + 1);
      ON_DEVICE(device, relu_backward_gpu(gated, gated, after, n), relu_backward_cpu_fast(gated, gated, after, n));
    }
    if (dw[l])
      ON_DEVICE(device, linear_backward_weight_gpu(dw[l], dbias[l], dy, input, s.batch, in, out),
                linear_backward_weight_cpu_fast(dw[l], dbias[l], dy, input, s.batch, in, out));
    if (delta)
      ON_DEVICE(device, linear_backward_input_gpu(delta, dy, s.w[l], s.batch, in, out),
                linear_backward_input_cpu_fast(delta, dy, s.w[l], s.batch, in, out));
    dy = delta;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* Four neighbours; QUADS: their address is a multiple of 16 bytes. */
template <bool QUADS>
static __device__ __forceinline__ float4 chain_load(const float *from) {
  return QUADS ? *(const float4 *)from : make_float4(from[0], from[1], from[2], from[3]);
}

static __device__ __forceinline__ float chain_dot(float sum, float4 a, float4 b) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

/* The sum of sum[lane / 8] over the lanes of a warp. Two lanes that exchange halves of what they have each go on with
 * the other half: 2 + 1 + 3 shuffles, where one after the other the four sums would take 20. */
static __device__ __forceinline__ float chain_total(const float sum[CHAIN_OUTPUTS], int lane) {
  const bool upper = lane & 16, odd = lane & 8;
  const float first = (upper ? sum[2] : sum[0]) + __shfl_xor_sync(0xffffffffu, upper ? sum[0] : sum[2], 16);
  const float second = (upper ? sum[3] : sum[1]) + __shfl_xor_sync(0xffffffffu, upper ? sum[1] : sum[3], 16);
  float total = (odd ? second : first) + __shfl_xor_sync(0xffffffffu, odd ? first : second, 8);
  for (int step = 4; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  return total;
}

/* `out` sums of a layer from its `in` inputs, which lie in shared memory, to shared memory and to y: a warp computes
 * CHAIN_OUTPUTS of them at a time. */
template <bool QUADS>
static __device__ __forceinline__ void chain_layer_forward(float *to, float *y, const float *input, const float *w,
                                                           const float *bias, int in, int out, bool relu) {
  const int lane = threadIdx.x % 32, warps = CHAIN_THREADS / 32;
  for (int first = threadIdx.x / 32 * CHAIN_OUTPUTS; first < out; first += warps * CHAIN_OUTPUTS) {
    float sum[CHAIN_OUTPUTS] = {};
    // >>> exercise chain_products: sum[j], this lane's share of the sum of output first + j: input times its row of w
    // hint: `./nn check` counts sectors: 32 lanes that read 32 different rows move 32 bytes for each 4 that they use
    // hint: all lanes read the same row, side by side: lane l takes the inputs 4 l ... 4 l + 3, then 128 further on
    // hint: chain_load<QUADS>(w + row * in + i) is four weights at once; chain_dot() adds their products with inputs
#pragma unroll 2
    for (int i = lane * 4; i < in; i += 128) {
      const float4 four = *(const float4 *)(input + i);
#pragma unroll
      for (int j = 0; j < CHAIN_OUTPUTS; j++) /* beyond the last row: the last one, whose sum is not stored */
        sum[j] = chain_dot(sum[j], chain_load<QUADS>(w + (size_t)min(first + j, out - 1) * in + i), four);
    }
    // <<< exercise
    const int o = first + lane / 8; /* the eight lanes of a group have its total */
    float total = chain_total(sum, lane);
    if (lane % 8 != 0 || o >= out) continue;
    if (bias != NULL) total += bias[o];
    to[o] = y[o] = relu && total < 0 ? 0.0f : total;
  }
}

/* A block per sample. */
template <bool QUADS>
static __global__ void __launch_bounds__(CHAIN_THREADS)
    chain_forward_kernel(float *y, float *hidden, const float *x, LinearChain s) {
  __shared__ __align__(16) float layer[2][CHAIN_WIDTH];
  const int b = blockIdx.x;
  for (int i = threadIdx.x; i < s.width[0]; i += CHAIN_THREADS) layer[0][i] = x[(size_t)b * s.width[0] + i];
#pragma unroll
  for (int l = 0; l < CHAIN_LAYERS; l++) {
    if (l >= s.layers) break;
    const int out = s.width[l + 1];
    const bool last = l + 1 == s.layers;
    __syncthreads(); /* the layer before is there, and nobody reads the one before that */
    chain_layer_forward<QUADS>(layer[(l + 1) % 2], (last ? y : hidden) + (size_t)b * out, layer[l % 2], s.w[l],
                               s.bias[l], s.width[l], out, !last);
    hidden += (size_t)s.batch * out;
  }
}

/* in gradients of a layer's input, from the `out` gradients of its sums, which lie in shared memory. A thread has four
 * neighbouring columns of w and every groups-th row; parts (groups,in). */
template <bool QUADS>
static __device__ __forceinline__ void chain_layer_backward(float *to, const float *gradient, const float *w,
                                                            float *parts, int in, int out) {
  const int quads = in / 4, groups = min(CHAIN_THREADS / quads, 4 * CHAIN_THREADS / in);
  const int group = threadIdx.x / quads, column = threadIdx.x % quads * 4;
  float4 sum = make_float4(0, 0, 0, 0);
  if (group < groups) {
#pragma unroll 8
    for (int o = group; o < out; o += groups) {
      const float4 four = chain_load<QUADS>(w + (size_t)o * in + column);
      const float d = gradient[o];
      sum = make_float4(fmaf(d, four.x, sum.x), fmaf(d, four.y, sum.y), fmaf(d, four.z, sum.z), fmaf(d, four.w, sum.w));
    }
    *(float4 *)(parts + group * in + column) = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < in; i += CHAIN_THREADS) {
    float total = parts[i];
    for (int g = 1; g < groups; g++) total += parts[g * in + i];
    to[i] = total;
  }
}

/* A block per sample: dy -> the gradients of the hidden layers' sums, and dx (NULL: not wanted). between: numbers of
 * all hidden layers. */
template <bool QUADS>
static __global__ void __launch_bounds__(CHAIN_THREADS)
    chain_delta_kernel(float *dx, float *deltas, const float *dy, const float *hidden, size_t between, LinearChain s) {
  __shared__ __align__(16) float layer[2][CHAIN_WIDTH], parts[4 * CHAIN_THREADS];
  const int b = blockIdx.x;
  size_t at = between; /* of the hidden layer in `hidden` and in `deltas` */
  for (int i = threadIdx.x; i < s.width[s.layers]; i += CHAIN_THREADS)
    layer[s.layers % 2][i] = dy[(size_t)b * s.width[s.layers] + i];
#pragma unroll
  for (int l = CHAIN_LAYERS - 1; l >= 0; l--) {
    if (l >= s.layers || (l == 0 && dx == NULL)) continue;
    const int in = s.width[l];
    float *from = layer[l % 2];
    __syncthreads();
    chain_layer_backward<QUADS>(from, layer[(l + 1) % 2], s.w[l], parts, in, s.width[l + 1]);
    if (l > 0) at -= (size_t)s.batch * in;
    for (int i = threadIdx.x; i < in; i += CHAIN_THREADS) { /* what the thread itself has written */
      const size_t place = (l > 0 ? at : 0) + (size_t)b * in + i;
      if (l > 0) from[i] = hidden[place] > 0 ? from[i] : 0.0f;
      (l > 0 ? deltas : dx)[place] = from[i];
    }
  }
}

/* dw[l] = d[l]^T h[l]; those of all layers in one grid: the tiles of layer l end before block end[l]. */
typedef struct ChainTiles {
  LinearTile tile[CHAIN_LAYERS];
  int end[CHAIN_LAYERS], layers;
} ChainTiles;

static __global__ void __launch_bounds__(LINEAR_RELU_BLOCK, 3) chain_weight_kernel(ChainTiles t) {
  __shared__ __align__(16) float shared[LINEAR_RELU_SHARED];
  int begin = 0;
#pragma unroll
  for (int l = 0; l < CHAIN_LAYERS; l++) {
    if (l < t.layers && (int)blockIdx.x >= begin && (int)blockIdx.x < t.end[l])
      linear_relu_tile<LINEAR_RELU_TILE, true, false>(t.tile[l], blockIdx.x - begin, shared);
    begin = t.end[l];
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers; batches of up to CHAIN_BATCH */

/* Whether all rows of all weights begin at a multiple of 16 bytes. */
static inline int chain_quads(const LinearChain *s) {
  int quads = 1;
  for (int l = 0; l < s->layers; l++) quads &= (uintptr_t)s->w[l] % sizeof(float4) == 0;
  return quads;
}

static inline void chain_forward_gpu(float *y, float *hidden, const float *x, LinearChain s) {
  if (chain_quads(&s))
    chain_forward_kernel<true><<<s.batch, CHAIN_THREADS>>>(y, hidden, x, s);
  else
    chain_forward_kernel<false><<<s.batch, CHAIN_THREADS>>>(y, hidden, x, s);
  CUDA_CHECK_LAUNCH();
}

/* All dw[l] are wanted. deltas: scratch, as `hidden`. */
static inline void chain_backward_gpu(float *dx, float *const *dw, float *const *dbias, const float *dy, float *hidden,
                                      const float *x, float *deltas, LinearChain s) {
  const size_t between = (size_t)s.batch * chain_hidden(&s);
  ChainTiles t;
  int blocks = 0;
  memset(&t, 0, sizeof t);
  t.layers = s.layers;
  for (int l = 0; l < s.layers; l++) {
    const float *gradient = l + 1 < s.layers ? chain_layer(&s, deltas, l + 1) : dy;
    const float *input = l > 0 ? chain_layer(&s, hidden, l) : x;
    const LinearTile tile = {dw[l],          gradient,   input,   NULL, NULL, dbias[l],
                             s.width[l + 1], s.width[l], s.batch, 0,    0,    s.batch};
    t.tile[l] = tile;
    t.end[l] = blocks += linear_relu_tiles(tile.m, tile.n, LINEAR_RELU_TILE);
  }
  if (chain_quads(&s))
    chain_delta_kernel<true><<<s.batch, CHAIN_THREADS>>>(dx, deltas, dy, hidden, between, s);
  else
    chain_delta_kernel<false><<<s.batch, CHAIN_THREADS>>>(dx, deltas, dy, hidden, between, s);
  CUDA_CHECK_LAUNCH();
  chain_weight_kernel<<<blocks, LINEAR_RELU_BLOCK>>>(t);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_LINEAR_CHAIN_CUH */
