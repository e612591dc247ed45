/* mlp_one_kernel.cuh - one epoch of a network with one hidden layer, from fourteen launches a step to one an epoch.
 *
 *     x (B,I) -> hidden = relu(x w1ᵀ + b1) (B,H) -> logits = hidden w2ᵀ + b2 (B,C) -> softmax cross-entropy -> SGD
 *
 * trains on `count` images in the order `order`, B = `batch` of them a step, the last step with what is left. A step of
 * 784-128-10 and 64 images is 26 million floating point operations, half a microsecond for a GPU: what takes time is
 * everything around them. Each version does away with some of it; all compute the same.
 *
 *   mlp_epoch_cpu           plain loops, sums in double
 *   mlp_epoch_layers        (mlp_one_kernel_layers.cuh) the layers of network.cuh, each kernel launched by the host
 *   mlp_epoch_step_graph    (there, too) the same kernels; the host launches a graph of a step, the GPU counts steps
 *   mlp_epoch_fused         a graph of three kernels, cut where all blocks must have finished before any goes on:
 *                             forward  a block has 8 hidden units and 112 inputs of each image (a "tile" of w1): its
 *                                      share of the sums x w1ᵀ
 *                             sample   a block has an image: adds the shares up; relu, logits, softmax, loss; the
 *                                      gradient with respect to the hidden units' sums ("delta")
 *                             update   a block has its tile again: gradient and update in one; none is ever stored
 *   mlp_epoch_graph         the three kernels of all steps in one graph: one launch an epoch
 *   mlp_epoch_grid_sync     one kernel: blocks keep their tile of w1 in shared memory, its velocity in registers, and
 *                           fetch the next images meanwhile; twice a step the whole grid meets, by grid.sync()
 *   mlp_epoch_barrier       the same with a barrier of our own
 *   mlp_epoch_flags         no barrier: each number travels with the number of its step, and who needs it waits for it
 *
 * The last three need all their blocks on the GPU at the same time: a cooperative launch. They and the fused ones take
 * networks and batches up to the limits below.
 */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_CUH

#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda/atomic>

#include "common/check.h"
#include "common/error.h"
#include "phase2_mlp/batches.cuh"

enum {
  MLP_SLICE = 112, /* inputs of a tile; MNIST's 784 are seven slices */
  MLP_UNITS = 8,   /* hidden units of a tile */
  MLP_BATCH = 64,
  MLP_THREADS = 256,
  MLP_SLICES = 8, /* most of them: 896 inputs */
  MLP_HIDDEN = 128,
  MLP_CLASSES = 16,
};

/* What is trained, on what, and how. All pointers are on one device. */
typedef struct MlpEpoch {
  int inputs, hidden, classes, batch, count;
  const uint8_t *images, *labels; /* (count, inputs), (count) */
  const uint32_t *order;          /* (count) */
  float mean, stddev, lr, momentum;
  float *parameters, *velocity; /* flat, as in network.cuh: w1 (H,I), b1 (H), w2 (C,H), b2 (C) */
  float *losses;                /* (count): of each image in the order, before the step that learns from it */
} MlpEpoch;

static inline size_t mlp_parameter_count(const MlpEpoch *e) {
  return (size_t)e->hidden * e->inputs + e->hidden + (size_t)e->classes * e->hidden + e->classes;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

/* One image: hidden (H), dlogits (C) and delta (H), the gradients of the mean loss of `batch` images, its own loss. */
static inline float mlp_image_cpu(const MlpEpoch *e, const float *x, int label, int batch, float *hidden,
                                  float *dlogits, float *delta) {
  const int I = e->inputs, H = e->hidden, C = e->classes;
  const float *w1 = e->parameters, *b1 = w1 + (size_t)H * I, *w2 = b1 + H, *b2 = w2 + (size_t)C * H;
  double logits[256], most = -INFINITY, total = 0;
  for (int u = 0; u < H; u++) {
    double sum = b1[u];
    for (int i = 0; i < I; i++) sum += (double)w1[(size_t)u * I + i] * x[i];
    hidden[u] = sum > 0 ? (float)sum : 0.0f;
  }
  for (int c = 0; c < C; c++) {
    logits[c] = b2[c];
    for (int u = 0; u < H; u++) logits[c] += (double)w2[c * H + u] * hidden[u];
    most = fmax(most, logits[c]);
  }
  for (int c = 0; c < C; c++) total += exp(logits[c] - most);
  for (int c = 0; c < C; c++) dlogits[c] = (float)((exp(logits[c] - most) / total - (c == label)) / batch);
  for (int u = 0; u < H; u++) {
    double sum = 0;
    for (int c = 0; c < C; c++) sum += (double)w2[c * H + u] * dlogits[c];
    delta[u] = hidden[u] > 0 ? (float)sum : 0.0f;
  }
  return (float)(log(total) - (logits[label] - most));
}

static inline void mlp_sgd_cpu(const MlpEpoch *e, size_t i, double gradient) {
  e->velocity[i] = e->momentum * e->velocity[i] + (float)gradient;
  e->parameters[i] -= e->lr * e->velocity[i];
}

/* A layer's w (outputs, inputs) and, behind it, bias (outputs), from the batch's dy (B, outputs) and x (B, inputs). */
static inline void mlp_update_cpu(const MlpEpoch *e, size_t w, int outputs, int inputs, const float *dy, const float *x,
                                  int batch) {
  for (int o = 0; o < outputs; o++) {
    for (int i = 0; i <= inputs; i++) { /* x[inputs] is 1 */
      double sum = 0;
      for (int b = 0; b < batch; b++) sum += (double)dy[b * outputs + o] * (i < inputs ? x[(size_t)b * inputs + i] : 1);
      mlp_sgd_cpu(e, i < inputs ? w + (size_t)o * inputs + i : w + (size_t)outputs * inputs + o, sum);
    }
  }
}

static inline void mlp_epoch_cpu(const MlpEpoch *e) {
  const int I = e->inputs, H = e->hidden, C = e->classes;
  float *x = (float *)xcalloc((size_t)e->batch * (I + 2 * H + C), sizeof(float)), *hidden = x + (size_t)e->batch * I;
  float *delta = hidden + e->batch * H, *dlogits = delta + e->batch * H;
  for (int position = 0; position < e->count; position += e->batch) {
    int batch = batches_size_at(e->count, e->batch, position);
    for (int b = 0; b < batch; b++) {
      size_t image = e->order[position + b];
      for (int i = 0; i < I; i++) x[b * I + i] = batch_normalize(e->images[image * I + i], e->mean, e->stddev);
      e->losses[position + b] =
          mlp_image_cpu(e, x + b * I, e->labels[image], batch, hidden + b * H, dlogits + b * C, delta + b * H);
    }
    mlp_update_cpu(e, 0, H, I, delta, x, batch);
    mlp_update_cpu(e, (size_t)H * (I + 1), C, H, dlogits, hidden, batch);
  }
  free(x);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What goes from block to block */

/* Between kernels, or on both sides of a barrier, it is a float. Without a barrier it is a float and the number of its
 * step, in 8 bytes that are written and read as one: who reads the right step reads the right float. */
typedef unsigned long long MlpWord;
typedef cuda::atomic_ref<MlpWord, cuda::thread_scope_device> MlpWordRef;

static __device__ __forceinline__ void mlp_send(float *to, float value, uint32_t step) {
  (void)step;
  *to = value;
}

static __device__ __forceinline__ void mlp_send(MlpWord *to, float value, uint32_t step) {
  MlpWordRef(*to).store((MlpWord)step << 32 | __float_as_uint(value), cuda::memory_order_relaxed);
}

/* value[i] = *from[i], where from[i] is not NULL. From the L2 cache: what L1 has may be a step old. */
template <int N>
static __device__ __forceinline__ void mlp_receive(float *value, float *const *from, uint32_t step) {
  (void)step;
#pragma unroll
  for (int i = 0; i < N; i++)
    if (from[i] != NULL) value[i] = __ldcg(from[i]);
}

/* All loads are on their way before the first is looked at: otherwise each would cost a journey to L2. */
template <int N>
static __device__ __forceinline__ void mlp_receive(float *value, MlpWord *const *from, uint32_t step) {
  MlpWord word[N] = {};
  bool all;
  do {
    all = true;
#pragma unroll
    for (int i = 0; i < N; i++)
      if (from[i] != NULL) word[i] = MlpWordRef(*from[i]).load(cuda::memory_order_relaxed);
#pragma unroll
    for (int i = 0; i < N; i++)
      if (from[i] != NULL && (uint32_t)(word[i] >> 32) != step) all = false;
  } while (!all);
#pragma unroll
  for (int i = 0; i < N; i++)
    if (from[i] != NULL) value[i] = __uint_as_float((uint32_t)word[i]);
}

/* Where it lies meanwhile. R slices of the inputs, H hidden units, C classes. */
template <typename Word>
struct MlpMail {
  Word *shares;  /* (B,R,H)  the slices' shares of the hidden units' sums, the first one with the bias */
  Word *units;   /* (B,H,2)  a hidden unit, and the gradient with respect to its sum ("delta") */
  Word *dlogits; /* (B,C) */
  Word *w2, *b2; /* (C,H), (C): this step's */
};

/* ---------------------------------------------------------------------------------------------------------------- */
/* A block's memory */

enum {
  MLP_X_ROW = MLP_BATCH + 4,                             /* of floats; 4 more, so that rows begin in other banks */
  MLP_W_ROW = MLP_UNITS + 4,                             /* as well */
  MLP_W2_ROW = MLP_HIDDEN + 16,                          /* two rows: the two halves of the banks */
  MLP_SMALL = MLP_CLASSES * (MLP_UNITS + 1) + MLP_UNITS, /* parameters beside w1, at most: w2, b2, b1 */
};

/* One of the few parameters beside w1. Its gradient is the product of two rows of the tile. */
typedef struct MlpSmall {
  float value, velocity;
  int place;  /* among the parameters; -1: there is none */
  int mail;   /* from mail.w2; -1: nobody asks for it */
  short a, b; /* the rows: floats from the beginning of the tile */
} MlpSmall;

/* 16-byte accesses everywhere, hence rows of multiples of 4. */
struct MlpTile {
  float x[MLP_SLICE][MLP_X_ROW];          /* an image a column; 0 where there is none, as in the next three */
  float w[MLP_SLICE][MLP_W_ROW];          /* w1: row k has the weights of input k to the 8 units */
  float delta[MLP_UNITS][MLP_X_ROW];      /* */
  float hidden[MLP_UNITS + 1][MLP_X_ROW]; /* the last row is ones, for the biases' gradients */
  float dlogits[MLP_CLASSES][MLP_X_ROW];  /* of the classes whose w2 is ours */
  float w2[MLP_CLASSES][MLP_W2_ROW], b2[MLP_CLASSES], logits[MLP_CLASSES], h[MLP_HIDDEN]; /* for a sample */
  MlpSmall small[MLP_SMALL];
  uint8_t pixels[MLP_BATCH][MLP_SLICE]; /* of the next step's images */
  int label[2][MLP_BATCH];              /* of this step's, and of theirs */
};

static_assert(sizeof(MlpTile) <= 65536, "GPUs of compute capability 7.5 give a block no more");

/* A block of the persistent kernels and of the fused ones: tile (slice, group) of the grid (slices, groups). */
struct MlpPlace {
  int slice, group, slices; /* inputs from 112 * slice, units from 8 * group */
  int inputs, units;        /* so many there are; the last tiles are not full */
};

static __device__ __forceinline__ MlpPlace mlp_place(const MlpEpoch &e) {
  MlpPlace p;
  p.slice = blockIdx.x;
  p.group = blockIdx.y;
  p.slices = gridDim.x;
  p.inputs = min(MLP_SLICE, e.inputs - MLP_SLICE * p.slice);
  p.units = min(MLP_UNITS, e.hidden - MLP_UNITS * p.group);
  return p;
}

static __device__ __forceinline__ int mlp_batch(const MlpEpoch &e, int position) {
  return min(e.batch, e.count - position);
}

static __device__ __forceinline__ void mlp_tile_clear(MlpTile *tile) {
  for (int i = threadIdx.x; i < MLP_X_ROW; i += MLP_THREADS) tile->hidden[MLP_UNITS][i] = 1.0f;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Images */

/* Pixels come as they are, 16 bytes at a time and past the registers, while a step is at work. The next step's threads
 * take them from there: 4 images each, from 4 * (t / 16), and 7 of the slice's inputs, every 16th from t % 16. */
enum {
  MLP_IMAGES = 4,
  MLP_INPUTS = MLP_SLICE / 16,
  MLP_CHUNK = 16, /* bytes of a copy */
  MLP_CHUNKS = MLP_SLICE / MLP_CHUNK,
  MLP_COPIES = (MLP_BATCH * MLP_CHUNKS + MLP_THREADS - 1) / MLP_THREADS, /* of a thread */
};

/* Which images a thread copies from, and, the last, whose label it reads; -1: none. They are asked for a step before
 * they are needed. */
static __device__ __forceinline__ void mlp_fetch_order(int source[MLP_COPIES + 1], const MlpEpoch &e, int position) {
  int batch = position < e.count ? mlp_batch(e, position) : 0;
#pragma unroll
  for (int i = 0; i <= MLP_COPIES; i++) {
    int sample = i == MLP_COPIES ? threadIdx.x : (threadIdx.x + MLP_THREADS * i) / MLP_CHUNKS;
    source[i] = sample < batch ? (int)e.order[position + sample] : -1;
  }
}

/* Begins the copies. */
static __device__ __forceinline__ void mlp_fetch(MlpTile *tile, int buffer, const int source[MLP_COPIES + 1],
                                                 const MlpEpoch &e, const MlpPlace &p) {
#pragma unroll
  for (int i = 0; i < MLP_COPIES; i++) {
    int sample = (threadIdx.x + MLP_THREADS * i) / MLP_CHUNKS;
    int k = (threadIdx.x + MLP_THREADS * i) % MLP_CHUNKS * MLP_CHUNK;
    if (source[i] < 0 || k >= p.inputs) continue;
    const uint8_t *from = e.images + (size_t)source[i] * e.inputs + MLP_SLICE * p.slice + k;
    if (e.inputs % MLP_CHUNK == 0)
      __pipeline_memcpy_async(&tile->pixels[sample][k], from, MLP_CHUNK);
    else
      for (int j = 0; j < min(MLP_CHUNK, p.inputs - k); j++) tile->pixels[sample][k + j] = from[j];
  }
  __pipeline_commit();
  if (threadIdx.x < MLP_BATCH)
    tile->label[buffer][threadIdx.x] = source[MLP_COPIES] < 0 ? -1 : e.labels[source[MLP_COPIES]];
}

/* Waits for the copies. Normalised by one multiply-add, where batch_gather() divides twice: the last bit may differ. */
static __device__ __forceinline__ void mlp_normalize(float4 x[MLP_INPUTS], const MlpTile *tile, const MlpEpoch &e,
                                                     const MlpPlace &p, int batch) {
  const float scale = 1.0f / (255.0f * e.stddev), shift = -e.mean / e.stddev;
  const int first = MLP_IMAGES * (threadIdx.x / 16);
  __pipeline_wait_prior(0);
  __syncthreads();
#pragma unroll
  for (int j = 0; j < MLP_INPUTS; j++) {
    int k = threadIdx.x % 16 + 16 * j;
    float value[MLP_IMAGES];
#pragma unroll
    for (int i = 0; i < MLP_IMAGES; i++)
      value[i] = k < p.inputs && first + i < batch ? fmaf((float)tile->pixels[first + i][k], scale, shift) : 0.0f;
    x[j] = make_float4(value[0], value[1], value[2], value[3]);
  }
}

/* Into the tile, where update() finds them in its order. */
static __device__ __forceinline__ void mlp_x_share(MlpTile *tile, const float4 x[MLP_INPUTS]) {
#pragma unroll
  for (int j = 0; j < MLP_INPUTS; j++)
    *(float4 *)&tile->x[threadIdx.x % 16 + 16 * j][MLP_IMAGES * (threadIdx.x / 16)] = x[j];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Parameters: where the block's own are */

/* w1: thread t < 224 has 4 of the 8 weights of one input; who has which is how mlp_update() leaves the gradients. */
enum { MLP_OWN = 4, MLP_OWNERS = MLP_SLICE * MLP_UNITS / MLP_OWN };

static __device__ __forceinline__ int mlp_own_input(void) {
  int lane = threadIdx.x % 32;
  return 4 * (threadIdx.x / 32) + lane % 4 + MLP_SLICE / 4 * (lane / 8);
}
static __device__ __forceinline__ int mlp_own_unit(void) { return threadIdx.x & 4 ? MLP_OWN : 0; }

static __device__ __forceinline__ void mlp_w1_load(float own[MLP_OWN], const float *from, const MlpEpoch &e,
                                                   const MlpPlace &p) {
  int k = mlp_own_input(), unit = mlp_own_unit();
#pragma unroll
  for (int i = 0; i < MLP_OWN; i++) {
    bool there = threadIdx.x < MLP_OWNERS && k < p.inputs && unit + i < p.units;
    own[i] = there ? from[(size_t)(MLP_UNITS * p.group + unit + i) * e.inputs + MLP_SLICE * p.slice + k] : 0.0f;
  }
}

static __device__ __forceinline__ void mlp_w1_store(float *to, const float own[MLP_OWN], const MlpEpoch &e,
                                                    const MlpPlace &p) {
  int k = mlp_own_input(), unit = mlp_own_unit();
#pragma unroll
  for (int i = 0; i < MLP_OWN; i++)
    if (threadIdx.x < MLP_OWNERS && k < p.inputs && unit + i < p.units)
      to[(size_t)(MLP_UNITS * p.group + unit + i) * e.inputs + MLP_SLICE * p.slice + k] = own[i];
}

/* Into the tile, where all threads find it. */
static __device__ __forceinline__ void mlp_w1_share(MlpTile *tile, const float own[MLP_OWN]) {
  int k = mlp_own_input(), unit = mlp_own_unit();
  if (threadIdx.x < MLP_OWNERS) *(float4 *)&tile->w[k][unit] = make_float4(own[0], own[1], own[2], own[3]);
}

/* The other parameters are few. The slices of a group share out the classes: a slice has w2 of every slices-th class
 * for the group's units (and group 0 their b2): 9 numbers a class. After them slice 0 has b1 of the 8 units. */
static __device__ __forceinline__ int mlp_own_classes(const MlpEpoch &e, const MlpPlace &p) {
  return p.slice < e.classes ? (e.classes - p.slice + p.slices - 1) / p.slices : 0;
}
static __device__ __forceinline__ int mlp_small_count(const MlpEpoch &e, const MlpPlace &p) {
  return (MLP_UNITS + 1) * mlp_own_classes(e, p) + (p.slice == 0 ? MLP_UNITS : 0);
}

static __device__ __forceinline__ short mlp_offset(const MlpTile *tile, const float *row) {
  return (short)(row - (const float *)tile);
}

static __device__ __forceinline__ MlpSmall mlp_small_make(int i, const MlpTile *tile, const MlpEpoch &e,
                                                          const MlpPlace &p) {
  const int own_classes = mlp_own_classes(e, p), b1 = e.hidden * e.inputs, w2 = b1 + e.hidden;
  int own = i / (MLP_UNITS + 1), unit = i % (MLP_UNITS + 1), c = p.slice + p.slices * own;
  MlpSmall small;
  small.value = small.velocity = 0.0f;
  small.place = small.mail = -1;
  if (own >= own_classes) { /* b1 */
    unit = i - (MLP_UNITS + 1) * own_classes;
    small.a = mlp_offset(tile, tile->delta[unit]);
    small.b = mlp_offset(tile, tile->hidden[MLP_UNITS]);
    if (unit < p.units) small.place = b1 + MLP_UNITS * p.group + unit;
  } else {
    small.a = mlp_offset(tile, tile->dlogits[own]);
    small.b = mlp_offset(tile, tile->hidden[unit]);
    if (unit < p.units)
      small.mail = c * e.hidden + MLP_UNITS * p.group + unit;
    else if (unit == MLP_UNITS && p.group == 0)
      small.mail = e.classes * e.hidden + c; /* b2 lies behind w2 */
    if (small.mail >= 0) small.place = w2 + small.mail;
  }
  if (small.place >= 0) {
    small.value = e.parameters[small.place];
    small.velocity = e.velocity[small.place];
  }
  return small;
}

static __device__ __forceinline__ void mlp_small_load(MlpTile *tile, const MlpEpoch &e, const MlpPlace &p) {
  for (int i = threadIdx.x; i < mlp_small_count(e, p); i += MLP_THREADS) tile->small[i] = mlp_small_make(i, tile, e, p);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The three parts of a step */

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

  /* Now every thread does the softmax by itself, out of its registers: nobody has to wait for another. */
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
  if (threadIdx.x >= MLP_HIDDEN) { /* who has w2 of this unit */
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

/* update: what it needs comes in ... Four threads have an image: of its 16 numbers for our units every fourth, so that
 * they read neighbours; and its share of the classes. */
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

/* In four sums: one would wait for itself 64 times. */
static __device__ __forceinline__ float mlp_dot_rows(const float *a, const float *b) {
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (int i = 0; i < MLP_BATCH; i += 4) {
    float4 x = *(const float4 *)(a + i), y = *(const float4 *)(b + i);
    sum = make_float4(fmaf(x.x, y.x, sum.x), fmaf(x.y, y.y, sum.y), fmaf(x.z, y.z, sum.z), fmaf(x.w, y.w, sum.w));
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

/* ... and seven warps learn w1 while the eighth has the other parameters. */
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

static __device__ __forceinline__ void mlp_small_store(const MlpTile *tile, const MlpEpoch &e, const MlpPlace &p) {
  for (int i = threadIdx.x; i < mlp_small_count(e, p); i += MLP_THREADS) {
    const MlpSmall *small = &tile->small[i];
    if (small->place < 0) continue;
    e.parameters[small->place] = small->value;
    e.velocity[small->place] = small->velocity;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The fused kernels */

/* Which step it is, where the host does not say: nobody may write what a block of the same kernel reads. So the sample
 * kernel copies `next` to `now`, and the update kernel, which reads `now`, moves `next` on. */
typedef struct MlpCounter {
  int next, now;
} MlpCounter;

/* Grid (slices, groups). position: of the step's first image; -1: ask the counter, here and below. */
static __global__ void __launch_bounds__(MLP_THREADS)
    mlp_forward_kernel(MlpEpoch e, MlpMail<float> mail, int position, const MlpCounter *counter) {
  extern __shared__ float4 mlp_memory[];
  MlpTile *tile = (MlpTile *)mlp_memory;
  const MlpPlace p = mlp_place(e);
  if (position < 0) position = counter->next;
  const int batch = mlp_batch(e, position);
  int source[MLP_COPIES + 1];
  mlp_fetch_order(source, e, position);
  mlp_fetch(tile, 0, source, e, p);
  float w[MLP_OWN];
  float4 x[MLP_INPUTS];
  mlp_tile_clear(tile);
  mlp_w1_load(w, e.parameters, e, p);
  mlp_w1_share(tile, w);
  mlp_small_load(tile, e, p);
  mlp_normalize(x, tile, e, p, batch);
  mlp_forward(tile, x, e, p, mail, batch, 0);
}

/* Grid (batch); slices: of the other two kernels' grid */
static __global__ void __launch_bounds__(MLP_THREADS)
    mlp_sample_kernel(MlpEpoch e, MlpMail<float> mail, int slices, int position, MlpCounter *counter) {
  extern __shared__ float4 mlp_memory[];
  MlpTile *tile = (MlpTile *)mlp_memory;
  // >>> exercise mlp_step_counter: ask the counter where the step is given as -1, and leave it to the update kernel
  // hint: this kernel's blocks all read counter->next; one of them copies it to counter->now
  // hint: counter->next itself stays: another block may not have read it yet
  // hint: if (position < 0) { position = counter->next; then thread 0 of block 0: counter->now = position; }
  if (position < 0) {
    position = counter->next;
    if (blockIdx.x == 0 && threadIdx.x == 0) counter->now = position;
  }
  // <<< exercise
  int batch = mlp_batch(e, position), sample = blockIdx.x;
  if (sample >= batch) return; /* the last step has fewer images */
  int label = e.labels[e.order[position + sample]];
  mlp_sample(tile, e, mail, slices, position, sample, label, batch, 0);
}

/* Grid (slices, groups) */
static __global__ void __launch_bounds__(MLP_THREADS)
    mlp_update_kernel(MlpEpoch e, MlpMail<float> mail, int position, MlpCounter *counter) {
  extern __shared__ float4 mlp_memory[];
  MlpTile *tile = (MlpTile *)mlp_memory;
  const MlpPlace p = mlp_place(e);
  if (position < 0) {
    position = counter->now;
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) counter->next = position + e.batch;
  }
  const int batch = mlp_batch(e, position);
  int source[MLP_COPIES + 1];
  mlp_fetch_order(source, e, position);
  mlp_fetch(tile, 0, source, e, p);
  float w[MLP_OWN], velocity[MLP_OWN];
  float4 x[MLP_INPUTS];
  mlp_tile_clear(tile);
  mlp_w1_load(w, e.parameters, e, p);
  mlp_w1_load(velocity, e.velocity, e, p);
  mlp_small_load(tile, e, p);
  mlp_normalize(x, tile, e, p, batch);
  mlp_x_share(tile, x);
  mlp_update_receive(tile, e, p, mail, batch, 0);
  mlp_update(tile, w, velocity, e, p, mail, 0);
  mlp_w1_store(e.parameters, w, e, p);
  mlp_w1_store(e.velocity, velocity, e, p);
  mlp_small_store(tile, e, p);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The persistent kernels */

enum { MLP_GRID_SYNC, MLP_BARRIER, MLP_FLAGS };

/* All threads of all blocks have come, and see what any of them wrote before. `arrived` (1) counts the blocks that ever
 * came; `all`: as many as there are when the last one of this time has come. */
static __device__ __forceinline__ void mlp_grid_barrier(unsigned *arrived, unsigned all) {
  // >>> exercise mlp_grid_barrier: wait until `all` blocks have been counted, and let writes and reads keep to it
  // hint: the block's threads meet; one of them counts the block, waits, and then the block's threads meet again
  // hint: atomicAdd(arrived, 1), then read it as a volatile unsigned until it is `all`; memory has an order, too
  // hint: __threadfence() before the count, so that the block's writes are seen first, and after the wait
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*(volatile unsigned *)arrived < all) continue;
    __threadfence();
  }
  __syncthreads();
  // <<< exercise
}

template <int MEETING>
static __device__ __forceinline__ void mlp_meet(unsigned *arrived, unsigned all) {
  if (MEETING == MLP_GRID_SYNC)
    cooperative_groups::this_grid().sync();
  else if (MEETING == MLP_BARRIER)
    mlp_grid_barrier(arrived, all);
}

/* Grid (slices, groups), cooperative. A whole epoch. */
template <int MEETING, typename Word>
static __global__ void __launch_bounds__(MLP_THREADS, 1)
    mlp_epoch_kernel(MlpEpoch e, MlpMail<Word> mail, unsigned *arrived) {
  extern __shared__ float4 mlp_memory[];
  MlpTile *tile = (MlpTile *)mlp_memory;
  const MlpPlace p = mlp_place(e);
  const int block = p.group * p.slices + p.slice, blocks = p.slices * gridDim.y;
  float w[MLP_OWN], velocity[MLP_OWN];
  float4 x[MLP_INPUTS];
  int source[MLP_COPIES + 1];
  mlp_fetch_order(source, e, 0);
  mlp_fetch(tile, 1, source, e, p);
  mlp_fetch_order(source, e, e.batch);
  mlp_tile_clear(tile);
  mlp_w1_load(w, e.parameters, e, p);
  mlp_w1_load(velocity, e.velocity, e, p);
  mlp_w1_share(tile, w);
  mlp_small_load(tile, e, p);
  mlp_normalize(x, tile, e, p, mlp_batch(e, 0));
  __syncthreads();          /* the pixels are free for the next images */
  if (MEETING == MLP_FLAGS) /* otherwise they are in place */
    for (int i = threadIdx.x; i < mlp_small_count(e, p); i += MLP_THREADS)
      if (tile->small[i].mail >= 0) mlp_send(mail.w2 + tile->small[i].mail, tile->small[i].value, 1);

  uint32_t step = 1;
  unsigned all = 0;
  for (int position = 0; position < e.count; position += e.batch, step++) {
    int batch = mlp_batch(e, position), buffer = step % 2;
    mlp_forward(tile, x, e, p, mail, batch, step);
    mlp_x_share(tile, x); /* while the shares are on their way; and the next images set out */
    mlp_fetch(tile, 1 - buffer, source, e, p);
    mlp_fetch_order(source, e, position + 2 * e.batch);
    mlp_meet<MEETING>(arrived, all += blocks);
    for (int sample = block; sample < batch; sample += blocks)
      mlp_sample(tile, e, mail, p.slices, position, sample, tile->label[buffer][sample], batch, step);
    mlp_normalize(x, tile, e, p, mlp_batch(e, position + e.batch)); /* while delta is on its way */
    mlp_meet<MEETING>(arrived, all += blocks);
    mlp_update_receive(tile, e, p, mail, batch, step);
    mlp_update(tile, w, velocity, e, p, mail, step + 1);
  }
  mlp_w1_store(e.parameters, w, e, p);
  mlp_w1_store(e.velocity, velocity, e, p);
  mlp_small_store(tile, e, p);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The host's side */

/* What a version keeps from epoch to epoch. */
typedef struct MlpRun {
  MlpEpoch epoch;
  cudaStream_t stream;
  int slices, groups;
  MlpMail<float> mail;
  MlpMail<MlpWord> words;
  size_t mail_count;
  void *memory; /* of mail and words */
  MlpCounter *counter;
  unsigned *arrived;
  cudaGraphExec_t graph, tail; /* of a step, and of the last one if it is smaller; or of an epoch */
  size_t nodes;                /* kernels in the graph that was captured last */
  struct Mlp *layers;          /* of mlp_one_kernel_layers.cuh, NULL until it is used */
  void (*layers_free)(struct MlpRun *run);
} MlpRun;

/* 0; or -1 and a sentence: what the fused and the persistent kernels cannot do. */
static inline int mlp_check(const MlpEpoch *e, Error *err) {
  if (e->inputs > MLP_SLICE * MLP_SLICES || e->hidden > MLP_HIDDEN || e->classes > MLP_CLASSES || e->batch > MLP_BATCH)
    return error_set(err,
                     "%d-%d-%d with batches of %d is too large: these kernels are made for networks up to %d-%d-%d "
                     "and for batches of up to %d",
                     e->inputs, e->hidden, e->classes, e->batch, MLP_SLICE * MLP_SLICES, MLP_HIDDEN, MLP_CLASSES,
                     MLP_BATCH);
  return 0;
}

template <typename Word>
static inline MlpMail<Word> mlp_mail(const MlpRun *run, Word *at) {
  const MlpEpoch *e = &run->epoch;
  const size_t B = MLP_BATCH;
  MlpMail<Word> mail;
  mail.shares = at;
  mail.units = mail.shares + B * run->slices * e->hidden;
  mail.dlogits = mail.units + 2 * B * e->hidden;
  mail.w2 = mail.dlogits + B * e->classes;
  mail.b2 = mail.w2 + (size_t)e->classes * e->hidden;
  return mail;
}

/* The arrays of `epoch` are the caller's; they may have other contents each time, but stay where they are. */
static inline void mlp_open(MlpRun *run, const MlpEpoch *epoch) {
  Error err;
  if (mlp_check(epoch, &err) != 0) die("%s", err.message);
  memset((void *)run, 0, sizeof *run);
  run->epoch = *epoch;
  run->slices = (epoch->inputs + MLP_SLICE - 1) / MLP_SLICE;
  run->groups = (epoch->hidden + MLP_UNITS - 1) / MLP_UNITS;
  run->mail_count = (size_t)(mlp_mail<float>(run, NULL).b2 - (float *)NULL) + epoch->classes;
  CUDA_CHECK(cudaMalloc(&run->memory, run->mail_count * sizeof(MlpWord)));
  CUDA_CHECK(cudaMalloc((void **)&run->counter, sizeof *run->counter));
  CUDA_CHECK(cudaMalloc((void **)&run->arrived, sizeof *run->arrived));
  CUDA_CHECK(cudaStreamCreate(&run->stream));
  run->words = mlp_mail(run, (MlpWord *)run->memory);
  run->mail = mlp_mail(run, (float *)run->memory);
  run->mail.w2 = run->epoch.parameters + (size_t)epoch->hidden * (epoch->inputs + 1); /* floats are read in place */
  run->mail.b2 = run->mail.w2 + (size_t)epoch->classes * epoch->hidden;
}

static inline void mlp_close(MlpRun *run) {
  if (run->layers != NULL) run->layers_free(run);
  if (run->graph != NULL) CUDA_CHECK(cudaGraphExecDestroy(run->graph));
  if (run->tail != NULL) CUDA_CHECK(cudaGraphExecDestroy(run->tail));
  CUDA_CHECK(cudaStreamDestroy(run->stream));
  CUDA_CHECK(cudaFree(run->memory));
  CUDA_CHECK(cudaFree(run->counter));
  CUDA_CHECK(cudaFree(run->arrived));
}

/* More than 48 KB of shared memory a block, a kernel must be allowed to ask for. */
static inline void mlp_allow_shared(const void *kernel) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(MlpTile)));
}

/* What is launched into `stream` between these two becomes a graph; nothing of it runs yet. */
static inline void mlp_capture_begin(cudaStream_t stream) {
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}
static inline cudaGraphExec_t mlp_capture_end(MlpRun *run, cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphGetNodes(graph, NULL, &run->nodes));
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  return executable;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers: each trains one epoch and returns when the host has done its part */

/* The three kernels of the step at `position`, or at the counter's */
static inline void mlp_launch_step(MlpRun *run, int position) {
  const dim3 tiles(run->slices, run->groups);
  const size_t bytes = sizeof(MlpTile);
  const int batch = run->epoch.batch, slices = run->slices;
  cudaStream_t stream = run->stream;
  MlpCounter *counter = run->counter;
  // >>> exercise mlp_step_launch: launch the three kernels of a step into the stream
  // hint: forward and update have the grid `tiles`, sample a block for each image of a batch; all MLP_THREADS threads
  // hint: each needs `bytes` of shared memory, and all go into the stream that a graph may be captured from, in order
  // hint: mlp_forward_kernel<<<tiles, MLP_THREADS, bytes, stream>>>(run->epoch, run->mail, position, counter);
  mlp_forward_kernel<<<tiles, MLP_THREADS, bytes, stream>>>(run->epoch, run->mail, position, counter);
  CUDA_CHECK_LAUNCH();
  mlp_sample_kernel<<<batch, MLP_THREADS, bytes, stream>>>(run->epoch, run->mail, slices, position, counter);
  CUDA_CHECK_LAUNCH();
  mlp_update_kernel<<<tiles, MLP_THREADS, bytes, stream>>>(run->epoch, run->mail, position, counter);
  CUDA_CHECK_LAUNCH();
  // <<< exercise
}

static inline void mlp_allow_steps(void) {
  mlp_allow_shared((const void *)mlp_forward_kernel);
  mlp_allow_shared((const void *)mlp_sample_kernel);
  mlp_allow_shared((const void *)mlp_update_kernel);
}

static inline void mlp_epoch_fused(MlpRun *run) {
  if (run->graph == NULL) {
    mlp_allow_steps();
    mlp_capture_begin(run->stream);
    mlp_launch_step(run, -1);
    run->graph = mlp_capture_end(run, run->stream);
  }
  CUDA_CHECK(cudaMemsetAsync(run->counter, 0, sizeof *run->counter, run->stream));
  for (int position = 0; position < run->epoch.count; position += run->epoch.batch)
    CUDA_CHECK(cudaGraphLaunch(run->graph, run->stream));
}

static inline void mlp_epoch_graph(MlpRun *run) {
  if (run->graph == NULL) {
    mlp_allow_steps();
    mlp_capture_begin(run->stream);
    for (int position = 0; position < run->epoch.count; position += run->epoch.batch) mlp_launch_step(run, position);
    run->graph = mlp_capture_end(run, run->stream);
  }
  CUDA_CHECK(cudaGraphLaunch(run->graph, run->stream));
}

/* 0; or -1 and a sentence: this GPU does not give a block so much shared memory. */
static inline int mlp_fits_shared(const MlpRun *run, Error *err) {
  int device, shared;
  (void)run;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if ((size_t)shared < sizeof(MlpTile))
    return error_set(err, "a block needs %zu bytes of shared memory, and this GPU gives it at most %d", sizeof(MlpTile),
                     shared);
  return 0;
}

/* Blocks that wait for each other must all be there. 0; or -1 and a sentence: they do not fit at once. */
template <int MEETING, typename Word>
static inline int mlp_fits(const MlpRun *run, Error *err) {
  const void *kernel = (const void *)mlp_epoch_kernel<MEETING, Word>;
  int device, cooperative, multiprocessors, blocks;
  if (mlp_fits_shared(run, err) != 0) return -1;
  mlp_allow_shared(kernel);
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
  if (!cooperative) return error_set(err, "this GPU cannot launch blocks that wait for each other");
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, MLP_THREADS, sizeof(MlpTile)));
  const int room = blocks * multiprocessors, units = room / run->slices * MLP_UNITS;
  if (room < run->slices * run->groups)
    return error_set(
        err,
        "%d-%d-%d takes %d blocks that must run at the same time, and this GPU has room for %d: enough for "
        "%d hidden units",
        run->epoch.inputs, run->epoch.hidden, run->epoch.classes, run->slices * run->groups, room, units);
  return 0;
}

template <int MEETING, typename Word>
static inline void mlp_launch_epoch(MlpRun *run, void **arguments) {
  const dim3 tiles(run->slices, run->groups);
  Error err;
  if (mlp_fits<MEETING, Word>(run, &err) != 0) die("%s", err.message);
  CUDA_CHECK(cudaLaunchCooperativeKernel((const void *)mlp_epoch_kernel<MEETING, Word>, tiles, dim3(MLP_THREADS),
                                         arguments, sizeof(MlpTile), run->stream));
}

static inline void mlp_epoch_grid_sync(MlpRun *run) {
  void *arguments[] = {&run->epoch, &run->mail, &run->arrived};
  mlp_launch_epoch<MLP_GRID_SYNC, float>(run, arguments);
}

static inline void mlp_epoch_barrier(MlpRun *run) {
  void *arguments[] = {&run->epoch, &run->mail, &run->arrived};
  CUDA_CHECK(cudaMemsetAsync(run->arrived, 0, sizeof *run->arrived, run->stream));
  mlp_launch_epoch<MLP_BARRIER, float>(run, arguments);
}

/* Steps count from 1 in each epoch: what the last one left is forgotten. */
static inline void mlp_epoch_flags(MlpRun *run) {
  void *arguments[] = {&run->epoch, &run->words, &run->arrived};
  CUDA_CHECK(cudaMemsetAsync(run->memory, 0, run->mail_count * sizeof(MlpWord), run->stream));
  mlp_launch_epoch<MLP_FLAGS, MlpWord>(run, arguments);
}

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_CUH */
