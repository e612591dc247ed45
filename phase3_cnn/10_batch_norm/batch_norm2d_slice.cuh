/* batch_norm2d_slice.cuh - what a block does with its share of a channel: read it and collect the sums, write the
 * results. The steps that all fast kernels of batch_norm2d.cuh consist of.
 *
 * A slice is a part of the M values of a channel, which lie in N runs of H W floats. Its threads take V neighbouring
 * floats each (4, or 1 where a run's length is no multiple of 4), and each has several loads under way before it needs
 * the first.
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_SLICE_CUH
#define PHASE3_CNN_BATCH_NORM2D_SLICE_CUH

#include <cuda_pipeline_primitives.h>

#include "phase3_cnn/10_batch_norm/batch_norm2d_arrays.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_moments.cuh"

/* Loads under way per thread, of forward and of backward, which reads two arrays. */
enum { BATCH_NORM_LOADS = 4, BATCH_NORM_LOADS_BACK = 2 };

/* count: values. `first`, a multiple of 32, is the number of its first value in the channel. */
typedef struct BatchNorm2dSlice {
  size_t first, channel;
  int count;
} BatchNorm2dSlice;

static __device__ __forceinline__ BatchNorm2dSlice batch_norm2d_slice(BatchNorm2dShape s, int channel, int slice,
                                                                      int slices) {
  const size_t m = (size_t)s.n * s.pixels, each = ((m + slices - 1) / slices + 31) / 32 * 32;
  BatchNorm2dSlice p = {slice * each, (size_t)channel, 0};
  if (p.first < m) p.count = (int)(m - p.first < each ? m - p.first : each);
  return p;
}

/* Where a thread is: `at` in an array (N,C,H,W). One step goes on by as many floats as all threads take at once. */
typedef struct BatchNorm2dWalk {
  size_t at, step_at, next_image;
  int pixel, step_pixel, pixels;
} BatchNorm2dWalk;

template <int V>
static __device__ __forceinline__ BatchNorm2dWalk batch_norm2d_walk(BatchNorm2dShape s, BatchNorm2dSlice p) {
  const size_t i = p.first + threadIdx.x * V;
  const int step = BATCH_NORM_THREADS * V;
  BatchNorm2dWalk w;
  w.pixels = s.pixels;
  w.pixel = (int)(i % s.pixels);
  w.at = (i / s.pixels * s.c + p.channel) * s.pixels + w.pixel;
  w.step_pixel = step % s.pixels;
  w.step_at = (size_t)(step / s.pixels) * s.c * s.pixels + w.step_pixel;
  w.next_image = (size_t)(s.c - 1) * s.pixels;
  return w;
}

static __device__ __forceinline__ void batch_norm2d_step(BatchNorm2dWalk *w) {
  w->at += w->step_at;
  w->pixel += w->step_pixel;
  if (w->pixel >= w->pixels) {
    w->pixel -= w->pixels;
    w->at += w->next_image;
  }
}

template <int V>
static __device__ __forceinline__ void batch_norm2d_load(float *to, const float *from) {
  if (V == 4) {
    const float4 v = *(const float4 *)from;
    to[0] = v.x;
    to[1 % V] = v.y;
    to[2 % V] = v.z;
    to[3 % V] = v.w;
  } else {
    to[0] = *from;
  }
}

template <int V>
static __device__ __forceinline__ void batch_norm2d_store(float *to, const float *from) {
  if (V == 4)
    *(float4 *)to = make_float4(from[0], from[1 % V], from[2 % V], from[3 % V]);
  else
    *to = from[0];
}

template <int V>
static __device__ __forceinline__ void batch_norm2d_copy(float *to, const float *from) {
#pragma unroll
  for (int l = 0; l < V; l++) to[l] = from[l];
}

/* What one channel's values are computed with. */
typedef struct BatchNorm2dLine {
  float mean, inv_std, scale, beta; /* scale: gamma inv_std */
  float share, slope;               /* backward: the means of g and of g t */
} BatchNorm2dLine;

static __device__ __forceinline__ BatchNorm2dLine batch_norm2d_line(const BatchNorm2d *b, int c, float mean,
                                                                    float inv_std) {
  BatchNorm2dLine l = {mean, inv_std, b->gamma[c] * inv_std, b->beta[c], 0, 0};
  return l;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Forward */

/* Copies the first values of a slice of `from` to shared memory, each by the thread that needs it again. A copy takes
 * no register, so all of them are under way at once. The walk ends behind them. */
template <int V>
static __device__ __forceinline__ void batch_norm2d_fetch(float *kept, const float *from, int count,
                                                          BatchNorm2dWalk *w) {
  for (int i = threadIdx.x * V; i < count; i += BATCH_NORM_THREADS * V) {
    __pipeline_memcpy_async(kept + i, from + w->at, V * sizeof(float));
    batch_norm2d_step(w);
  }
  __pipeline_commit();
}

/* The slice's x. The first `room` of its values are kept. */
template <int V>
static __device__ __forceinline__ Moments batch_norm2d_read(float *kept, int room, const BatchNorm2d *b,
                                                            BatchNorm2dSlice p) {
  const int step = BATCH_NORM_THREADS * V, count = min(room, p.count);
  const int rest =
      threadIdx.x * V + (count + step - 1 - threadIdx.x * V) / step * step; /* this thread's first beyond */
  BatchNorm2dWalk w = batch_norm2d_walk<V>(b->shape, p);
  MomentSums sums = {0, 0, 0, 0};
  batch_norm2d_fetch<V>(kept, b->x, count, &w);
  for (int i = rest; i < p.count; i += BATCH_NORM_LOADS * step) {
    float v[BATCH_NORM_LOADS][V] = {};
#pragma unroll
    for (int k = 0; k < BATCH_NORM_LOADS; k++) {
      if (i + k * step < p.count) batch_norm2d_load<V>(v[k], b->x + w.at);
      batch_norm2d_step(&w);
    }
    if (sums.count == 0) sums.shift = v[0][0];
#pragma unroll
    for (int k = 0; k < BATCH_NORM_LOADS; k++) {
      if (i + k * step >= p.count) continue;
      for (int l = 0; l < V; l++) moments_add(&sums, v[k][l]);
      sums.count += V;
    }
  }
  __pipeline_wait_prior(0);
  for (int i = threadIdx.x * V; i < count; i += step) {
    float v[V];
    batch_norm2d_load<V>(v, kept + i);
    if (sums.count == 0) sums.shift = v[0];
    for (int l = 0; l < V; l++) moments_add(&sums, v[l]);
    sums.count += V;
  }
  return moments_of(sums);
}

/* Bits of V values of each lane, 32 to a word; bit l of `bits`: value l of the lane. All lanes call it. */
template <int V>
static __device__ __forceinline__ void batch_norm2d_keep_bits(uint32_t *words, size_t first, uint32_t bits,
                                                              int inside) {
  if (V == 1) {
    bits = __ballot_sync(0xffffffffu, inside && bits);
  } else {
    bits = (inside ? bits : 0) << (threadIdx.x % 8 * 4);
    for (int step = 1; step < 8; step *= 2) bits |= __shfl_xor_sync(0xffffffffu, bits, step);
  }
  if (threadIdx.x % (32 / V) == 0 && inside) words[first / 32] = bits;
}

/* y of the slice, from what is kept and, beyond that, from x again. */
template <int V>
static __device__ __forceinline__ void batch_norm2d_write(const float *kept, int room, const BatchNorm2d *b,
                                                          BatchNorm2dSlice p, BatchNorm2dLine line) {
  const int step = BATCH_NORM_THREADS * V, add = b->after == BATCH_NORM_ADD_RELU;
  const float floor = b->after == BATCH_NORM_ALONE ? -INFINITY : 0;
  uint32_t *words = add ? b->passed + p.channel * batch_norm2d_words(b->shape) : NULL;
  BatchNorm2dWalk w = batch_norm2d_walk<V>(b->shape, p);
  /* The bound is that of the warp's first lane: the bits take all lanes of a warp. */
  for (int i = threadIdx.x * V; i - (int)(threadIdx.x % 32) * V < p.count; i += BATCH_NORM_LOADS * step) {
    float far[BATCH_NORM_LOADS][V] = {}; /* z, or without it what is not kept of x: under way before it is needed */
    size_t at[BATCH_NORM_LOADS];
#pragma unroll
    for (int k = 0; k < BATCH_NORM_LOADS; k++) {
      const int j = i + k * step;
      at[k] = w.at;
      if (j < p.count && (add || j >= room)) batch_norm2d_load<V>(far[k], (add ? b->z : b->x) + w.at);
      batch_norm2d_step(&w);
    }
#pragma unroll
    for (int k = 0; k < BATCH_NORM_LOADS; k++) {
      const int j = i + k * step;
      uint32_t bits = 0;
      if (j < p.count) {
        float v[V];
        if (j < room)
          batch_norm2d_load<V>(v, kept + j);
        else if (add)
          batch_norm2d_load<V>(v, b->x + at[k]);
        else
          batch_norm2d_copy<V>(v, far[k]);
#pragma unroll
        for (int l = 0; l < V; l++) {
          float y = fmaf(v[l] - line.mean, line.scale, line.beta);
          if (add) y += far[k][l];
          v[l] = y < floor ? floor : y; /* false for NaN, so NaN stays */
          bits |= (uint32_t) !(v[l] <= 0) << l;
        }
        batch_norm2d_store<V>(b->y + at[k], v);
      }
      if (add) batch_norm2d_keep_bits<V>(words, p.first + j, bits, j < p.count);
    }
  }
}

/* The statistics of channel c are known: what its values are computed with. One thread of all, which `writes`, stores
 * them and moves the running ones. */
static __device__ __forceinline__ BatchNorm2dLine batch_norm2d_finish(const BatchNorm2d *b, int c, Moments m,
                                                                      int writes) {
  const float values = (float)((size_t)b->shape.n * b->shape.pixels);
  const float inv_std = 1 / sqrtf(m.squares / values + BATCH_NORM_EPSILON);
  if (writes) {
    b->mean[c] = m.mean;
    b->inv_std[c] = inv_std;
    if (b->new_mean) b->new_mean[c] = b->old_mean[c] + BATCH_NORM_MOMENTUM * (m.mean - b->old_mean[c]);
    if (b->new_var) {
      // >>> exercise batch_norm_running_variance: b->new_var[c], the running variance after a batch of `values` values
      // hint: it moves from b->old_var[c] towards the variance of the batch by the fraction BATCH_NORM_MOMENTUM
      // hint: of the unbiased variance: the squares about the batch's own mean are too small by one part in `values`
      // hint: float unbiased = m.squares / (values - 1); old + momentum * (unbiased - old), with old = b->old_var[c]
      float unbiased = m.squares / (values - 1);
      b->new_var[c] = b->old_var[c] + BATCH_NORM_MOMENTUM * (unbiased - b->old_var[c]);
      // <<< exercise
    }
  }
  return batch_norm2d_line(b, c, m.mean, inv_std);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Backward */

/* dy of V values where the ReLU passed them, else 0. i: number of the first in its channel. */
template <int V>
static __device__ __forceinline__ void batch_norm2d_mask(float *g, const float *x, const BatchNorm2d *b,
                                                         const uint32_t *words, size_t i, BatchNorm2dLine line) {
  if (b->after == BATCH_NORM_ADD_RELU) {
    const uint32_t bits = words[i / 32] >> i % 32;
#pragma unroll
    for (int l = 0; l < V; l++) g[l] = bits >> l & 1 ? g[l] : 0;
  } else if (b->after == BATCH_NORM_RELU) {
#pragma unroll
    for (int l = 0; l < V; l++) g[l] = fmaf(x[l] - line.mean, line.scale, line.beta) <= 0 ? 0 : g[l];
  }
}

/* dx of one value: g its gradient, t its place in the distribution. */
static __device__ __forceinline__ float batch_norm2d_dx(float g, float t, BatchNorm2dLine line) {
  float dx;
  // >>> exercise batch_norm_backward_dx: dx, where line.share is the mean of g, line.slope that of g t
  // hint: y depends on x directly, and through the mean and the deviation of the whole channel: three terms
  // hint: what all g have in common moves only the mean, which is subtracted again: g - line.share
  // hint: dx = line.scale * (g - line.share - t * line.slope), where line.scale is gamma inv_std
  dx = line.scale * (g - line.share - t * line.slope);
  // <<< exercise
  return dx;
}

/* g and t of a slice. The first `room` of each are kept: all g, then all t. dz is written, where it is wanted. */
template <int V>
static __device__ __forceinline__ float2 batch_norm2d_read_back(float *kept, int room, const BatchNorm2d *b,
                                                                BatchNorm2dSlice p, BatchNorm2dLine line) {
  const int step = BATCH_NORM_THREADS * V;
  const uint32_t *words = b->after == BATCH_NORM_ADD_RELU ? b->passed + p.channel * batch_norm2d_words(b->shape) : NULL;
  BatchNorm2dWalk w = batch_norm2d_walk<V>(b->shape, p);
  float2 sum = {0, 0};
  for (int i = threadIdx.x * V; i < p.count; i += BATCH_NORM_LOADS_BACK * step) {
    float g[BATCH_NORM_LOADS_BACK][V] = {}, x[BATCH_NORM_LOADS_BACK][V] = {};
    size_t at[BATCH_NORM_LOADS_BACK];
#pragma unroll
    for (int k = 0; k < BATCH_NORM_LOADS_BACK; k++) {
      at[k] = w.at;
      if (i + k * step < p.count) {
        batch_norm2d_load<V>(g[k], b->dy + w.at);
        batch_norm2d_load<V>(x[k], b->x + w.at);
      }
      batch_norm2d_step(&w);
    }
#pragma unroll
    for (int k = 0; k < BATCH_NORM_LOADS_BACK; k++) {
      const int j = i + k * step;
      if (j >= p.count) continue;
      batch_norm2d_mask<V>(g[k], x[k], b, words, p.first + j, line);
#pragma unroll
      for (int l = 0; l < V; l++) {
        x[k][l] = (x[k][l] - line.mean) * line.inv_std; /* t from here on */
        sum.x += g[k][l];
        sum.y += g[k][l] * x[k][l];
      }
      if (b->dz) batch_norm2d_store<V>(b->dz + at[k], g[k]);
      if (j >= room) continue;
      batch_norm2d_store<V>(kept + j, g[k]);
      batch_norm2d_store<V>(kept + room + j, x[k]);
    }
  }
  return sum;
}

/* dx of a slice, from what is kept and, beyond that, from dy and x again. */
template <int V>
static __device__ __forceinline__ void batch_norm2d_write_back(const float *kept, int room, const BatchNorm2d *b,
                                                               BatchNorm2dSlice p, BatchNorm2dLine line) {
  const int step = BATCH_NORM_THREADS * V;
  const uint32_t *words = b->after == BATCH_NORM_ADD_RELU ? b->passed + p.channel * batch_norm2d_words(b->shape) : NULL;
  BatchNorm2dWalk w = batch_norm2d_walk<V>(b->shape, p);
#pragma unroll BATCH_NORM_LOADS_BACK
  for (int i = threadIdx.x * V; i < p.count; i += step) {
    float g[V], t[V];
    if (i < room) {
      batch_norm2d_load<V>(g, kept + i);
      batch_norm2d_load<V>(t, kept + room + i);
    } else {
      batch_norm2d_load<V>(g, b->dy + w.at);
      batch_norm2d_load<V>(t, b->x + w.at);
      batch_norm2d_mask<V>(g, t, b, words, p.first + i, line);
#pragma unroll
      for (int l = 0; l < V; l++) t[l] = (t[l] - line.mean) * line.inv_std;
    }
#pragma unroll
    for (int l = 0; l < V; l++) g[l] = batch_norm2d_dx(g[l], t[l], line);
    batch_norm2d_store<V>(b->dx + w.at, g);
    batch_norm2d_step(&w);
  }
}

#endif /* PHASE3_CNN_BATCH_NORM2D_SLICE_CUH */
