/* mlp_one_kernel_step.cuh - the three parts of a step in mlp_one_kernel.cuh, for one block: forward, sample, update.
 * Between two of them blocks need numbers of other blocks: a kernel ends there, or the blocks wait for them. */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_STEP_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_STEP_CUH

#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_mail.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_tile.cuh"

static __device__ __forceinline__ float4 mlp_fma(float4 x, float w, float4 sum) {
  return make_float4(fmaf(x.x, w, sum.x), fmaf(x.y, w, sum.y), fmaf(x.z, w, sum.z), fmaf(x.w, w, sum.w));
}

/* Of a warp's 16 lanes with the same images, each has 32 sums over every 16th input. Four times every lane gives half
 * of its sums to a neighbour and gets the other half of the neighbour's: then it has two, over all inputs. */
template <int HALF, int BIT>
static __device__ __forceinline__ void mlp_halve(float *sum, int lane) {
  bool upper = lane & BIT;
#pragma unroll
  for (int i = 0; i < HALF; i++) {
    float mine = upper ? sum[i + HALF] : sum[i], other = upper ? sum[i] : sum[i + HALF];
    sum[i] = mine + __shfl_xor_sync(0xFFFFFFFFu, other, BIT);
  }
}

/* forward: the tile's share of the hidden units' sums. 16 lanes have 4 images, all 8 units, and every 16th input. */
template <typename Word>
static __device__ __forceinline__ void mlp_forward(const MlpTile *tile, const float4 x[MLP_INPUTS], const MlpEpoch &e,
                                                   const MlpPlace &p, const MlpMail<Word> &mail, int batch,
                                                   uint32_t step) {
  int lane = threadIdx.x % 16, sample = MLP_IMAGES * (threadIdx.x / 16);
  float4 sums[MLP_UNITS];
#pragma unroll
  for (int u = 0; u < MLP_UNITS; u++) sums[u] = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int j = 0; j < MLP_INPUTS; j++) {
    float4 a = *(const float4 *)&tile->w[lane + 16 * j][0], b = *(const float4 *)&tile->w[lane + 16 * j][4];
    const float w[MLP_UNITS] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
    for (int u = 0; u < MLP_UNITS; u++) sums[u] = mlp_fma(x[j], w[u], sums[u]);
  }
  float sum[4 * MLP_UNITS]; /* (image, unit) */
#pragma unroll
  for (int u = 0; u < MLP_UNITS; u++) {
    sum[u] = sums[u].x;
    sum[MLP_UNITS + u] = sums[u].y;
    sum[2 * MLP_UNITS + u] = sums[u].z;
    sum[3 * MLP_UNITS + u] = sums[u].w;
  }
  mlp_halve<16, 8>(sum, lane);
  mlp_halve<8, 4>(sum, lane);
  mlp_halve<4, 2>(sum, lane);
  mlp_halve<2, 1>(sum, lane);
  sample += lane / 4; /* the two sums that the lane has now */
  int unit = 2 * lane % MLP_UNITS;
  if (sample >= batch) return;
  const MlpSmall *b1 = tile->small + (MLP_UNITS + 1) * mlp_own_classes(e, p);
  Word *to = mail.shares + ((size_t)sample * p.slices + p.slice) * e.hidden + MLP_UNITS * p.group + unit;
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (unit + i < p.units) mlp_send(to + i, sum[i] + (p.slice == 0 ? b1[unit + i].value : 0.0f), step);
}

/* The gradient of the batch's mean loss with respect to one logit of an image: the softmax's probability, less one for
 * the label's class, is that of the image's loss. A class has its power of e; by_total, by_batch: 1 over the sum of all
 * classes' powers, and over the images. */
static __device__ __forceinline__ float mlp_dlogit(float power, float by_total, bool is_label, float by_batch) {
  float dlogit = 0.0f;
  // >>> exercise mlp_fused_delta: dlogit, from the class's power and whether it is the label
  // hint: of one image's loss it is the probability, less one for the label's class
  // hint: power * by_total is the probability; the loss is a mean over the batch's images
  // hint: dlogit = (power * by_total - (is_label ? 1.0f : 0.0f)) * by_batch;
  dlogit = (power * by_total - (is_label ? 1.0f : 0.0f)) * by_batch;
  // <<< exercise
  return dlogit;
}

/* sample: one image, from the shares to delta. Half of the threads have a hidden unit each, the others fetch w2. */
template <typename Word>
static __device__ __forceinline__ void mlp_sample(MlpTile *tile, const MlpEpoch &e, const MlpMail<Word> &mail,
                                                  int slices, int position, int sample, int label, int batch,
                                                  uint32_t step) {
  int unit = threadIdx.x % MLP_HIDDEN, lane = threadIdx.x % 16;
  float w2[MLP_CLASSES] = {};
  if (threadIdx.x < MLP_HIDDEN) {
    Word *from[MLP_SLICES + 1];
#pragma unroll
    for (int r = 0; r < MLP_SLICES; r++)
      from[r] = r < slices && unit < e.hidden ? mail.shares + ((size_t)sample * slices + r) * e.hidden + unit : NULL;
    from[MLP_SLICES] = unit < e.classes ? mail.b2 + unit : NULL;
    float share[MLP_SLICES + 1] = {}, sum = 0.0f;
    mlp_receive<MLP_SLICES + 1>(share, from, step);
#pragma unroll
    for (int r = 0; r < MLP_SLICES; r++) sum += share[r];
    tile->h[unit] = fmaxf(sum, 0.0f);
    if (unit < e.classes) tile->b2[unit] = share[MLP_SLICES];
  } else {
    Word *from[MLP_CLASSES];
#pragma unroll
    for (int c = 0; c < MLP_CLASSES; c++)
      from[c] = c < e.classes && unit < e.hidden ? mail.w2 + (size_t)c * e.hidden + unit : NULL;
    mlp_receive<MLP_CLASSES>(w2, from, step);
#pragma unroll
    for (int c = 0; c < MLP_CLASSES; c++)
      if (c < e.classes) tile->w2[c][unit] = w2[c];
  }
  __syncthreads();

  int c = threadIdx.x / 16; /* a class for each half warp */
  float sum = 0.0f;
  if (c < e.classes)
#pragma unroll
    for (int u = lane; u < MLP_HIDDEN; u += 16) sum = fmaf(tile->h[u], tile->w2[c][u], sum);
#pragma unroll
  for (int bit = 8; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, bit);
  if (lane == 0 && c < e.classes) tile->logits[c] = sum + tile->b2[c];
  __syncthreads();

  /* Every thread computes the softmax by itself, in registers: no further barrier is needed. */
  float power[MLP_CLASSES], most = -INFINITY, total = 0.0f;
#pragma unroll
  for (int j = 0; j < MLP_CLASSES; j++) {
    power[j] = j < e.classes ? tile->logits[j] : -INFINITY;
    most = fmaxf(most, power[j]);
  }
#pragma unroll
  for (int j = 0; j < MLP_CLASSES; j++) {
    power[j] = expf(power[j] - most);
    total += power[j];
  }
  const float by_total = 1.0f / total, by_batch = 1.0f / (float)batch;
  if (threadIdx.x >= MLP_HIDDEN) { /* these threads have w2 of this unit */
    float delta = 0.0f;
#pragma unroll
    for (int j = 0; j < MLP_CLASSES; j++)
      delta = fmaf(mlp_dlogit(power[j], by_total, j == label, by_batch), w2[j], delta);
    if (unit < e.hidden) {
      Word *to = mail.units + 2 * ((size_t)sample * e.hidden + unit);
      mlp_send(to, tile->h[unit], step);
      mlp_send(to + 1, tile->h[unit] > 0.0f ? delta : 0.0f, step);
    }
  } else if ((int)threadIdx.x < e.classes) {
    int c = threadIdx.x;
    float logit = tile->logits[c];
    mlp_send(mail.dlogits + (size_t)sample * e.classes + c,
             mlp_dlogit(expf(logit - most), by_total, c == label, by_batch), step);
    if (c == label) e.losses[position + sample] = logf(total) - (logit - most);
  }
  __syncthreads(); /* the tile is free for the next image */
}

/* update, first part: receives its numbers. Four threads per image: each takes every fourth of the image's 16 numbers
 * for this block's units, so that they read neighbours, and its share of the classes. */
template <typename Word>
static __device__ __forceinline__ void mlp_update_receive(MlpTile *tile, const MlpEpoch &e, const MlpPlace &p,
                                                          const MlpMail<Word> &mail, int batch, uint32_t step) {
  enum { PARTS = 4, UNITS = 2 * MLP_UNITS / PARTS, OWN = MLP_CLASSES / PARTS };
  int sample = threadIdx.x / PARTS, part = threadIdx.x % PARTS, own = mlp_own_classes(e, p);
  Word *units = mail.units + 2 * ((size_t)sample * e.hidden + MLP_UNITS * p.group) + part;
  Word *dlogits = mail.dlogits + (size_t)sample * e.classes + p.slice + p.slices * part;
  Word *from[UNITS + OWN];
  float value[UNITS + OWN] = {};
#pragma unroll
  for (int i = 0; i < UNITS; i++) from[i] = sample < batch && part / 2 + 2 * i < p.units ? units + PARTS * i : NULL;
#pragma unroll
  for (int i = 0; i < OWN; i++)
    from[UNITS + i] = sample < batch && part + PARTS * i < own ? dlogits + p.slices * PARTS * i : NULL;
  mlp_receive<UNITS + OWN>(value, from, step);
  float(*rows)[MLP_X_ROW] = part % 2 == 0 ? tile->hidden : tile->delta;
#pragma unroll
  for (int i = 0; i < UNITS; i++) rows[part / 2 + 2 * i][sample] = value[i];
#pragma unroll
  for (int i = 0; i < OWN; i++)
    if (part + PARTS * i < own) tile->dlogits[part + PARTS * i][sample] = value[UNITS + i];
  __syncthreads();
}

static __device__ __forceinline__ void mlp_sgd(float *w, float *velocity, float gradient, const MlpEpoch &e) {
  *velocity = e.momentum * *velocity + gradient;
  *w -= e.lr * *velocity;
}

static __device__ __forceinline__ float mlp_dot(float4 x, float4 y, float sum) {
  return fmaf(x.x, y.x, fmaf(x.y, y.y, fmaf(x.z, y.z, fmaf(x.w, y.w, sum))));
}

/* In four sums: a single one would be a chain of 64 dependent additions. */
static __device__ __forceinline__ float mlp_dot_rows(const float *a, const float *b) {
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (int i = 0; i < MLP_BATCH; i += 4) {
    float4 x = *(const float4 *)(a + i), y = *(const float4 *)(b + i);
    sum = make_float4(fmaf(x.x, y.x, sum.x), fmaf(x.y, y.y, sum.y), fmaf(x.z, y.z, sum.z), fmaf(x.w, y.w, sum.w));
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

/* update, second part: seven warps update w1 while the eighth updates the other parameters. */
template <typename Word>
static __device__ __forceinline__ void mlp_update(MlpTile *tile, float w[MLP_OWN], float velocity[MLP_OWN],
                                                  const MlpEpoch &e, const MlpPlace &p, const MlpMail<Word> &mail,
                                                  uint32_t next_step) {
  int lane = threadIdx.x % 32;
  if (threadIdx.x < MLP_OWNERS) {
    /* A thread has 4 inputs, all units, and every eighth quad of images: 32 sums for 12 loads of 16 bytes. Which quads
     * is such that 8 neighbouring lanes read from all 32 banks. */
    enum { INPUTS = 4 };
    float gradient[INPUTS * MLP_UNITS] = {}; /* (input, unit) */
    int k = 4 * (threadIdx.x / 32) + lane % 4;
#pragma unroll
    for (int s = 4 * (lane / 8 + (lane & 4)); s < MLP_BATCH; s += 32) {
      float4 x[INPUTS];
#pragma unroll
      for (int i = 0; i < INPUTS; i++) x[i] = *(const float4 *)&tile->x[k + MLP_SLICE / INPUTS * i][s];
#pragma unroll
      for (int u = 0; u < MLP_UNITS; u++) {
        float4 d = *(const float4 *)&tile->delta[u][s];
#pragma unroll
        for (int i = 0; i < INPUTS; i++) gradient[MLP_UNITS * i + u] = mlp_dot(x[i], d, gradient[MLP_UNITS * i + u]);
      }
    }
    mlp_halve<16, 16>(gradient, lane);
    mlp_halve<8, 8>(gradient, lane);
    mlp_halve<4, 4>(gradient, lane);
#pragma unroll
    for (int i = 0; i < MLP_OWN; i++) mlp_sgd(&w[i], &velocity[i], gradient[i], e);
    mlp_w1_share(tile, w);
  } else {
    for (int i = lane; i < mlp_small_count(e, p); i += 32) {
      MlpSmall *small = &tile->small[i];
      if (small->place < 0) continue;
      const float *floats = (const float *)tile;
      mlp_sgd(&small->value, &small->velocity, mlp_dot_rows(floats + small->a, floats + small->b), e);
      if (small->mail >= 0) mlp_send(mail.w2 + small->mail, small->value, next_step);
    }
  }
  __syncthreads();
}

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_STEP_CUH */
