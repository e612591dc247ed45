/* mlp_one_kernel_tile.cuh - what a block of mlp_one_kernel.cuh keeps in its memory: the weights of 8 hidden units to
 * 112 inputs (a "tile" of w1), these inputs of the images, a few other parameters; and how they are loaded
 * and stored. */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_TILE_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_TILE_CUH

#include <cuda_pipeline.h>

#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_cpu.cuh"

/* What a tile is, and the limits of what is trained with it. */
enum {
  MLP_SLICE = 112, /* inputs of a tile; MNIST's 784 are seven slices */
  MLP_UNITS = 8,   /* hidden units of a tile */
  MLP_BATCH = 64,
  MLP_THREADS = 256,
  MLP_SLICES = 8, /* most of them: 896 inputs */
  MLP_HIDDEN = 128,
  MLP_CLASSES = 16,
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
  int mail;   /* from mail.w2; -1: no other block needs it */
  short a, b; /* the rows: floats from the beginning of the tile */
} MlpSmall;

/* 16-byte accesses everywhere, hence rows of multiples of 4. */
struct MlpTile {
  float x[MLP_SLICE][MLP_X_ROW];          /* an image a column; 0 where there is none, as in the next three */
  float w[MLP_SLICE][MLP_W_ROW];          /* w1: row k has the weights of input k to the 8 units */
  float delta[MLP_UNITS][MLP_X_ROW];      /* by the sums of the 8 units */
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

/* Pixels are copied as bytes, 16 at a time, asynchronously into shared memory, while a step is computed. In the next
 * step thread t reads them from there: 4 images from 4 * (t / 16), 7 inputs of the slice, every 16th from t % 16. */
enum {
  MLP_IMAGES = 4,
  MLP_INPUTS = MLP_SLICE / 16,
  MLP_CHUNK = 16, /* bytes of a copy */
  MLP_CHUNKS = MLP_SLICE / MLP_CHUNK,
  MLP_COPIES = (MLP_BATCH * MLP_CHUNKS + MLP_THREADS - 1) / MLP_THREADS, /* of a thread */
};

/* Which images a thread copies from, and, the last, whose label it reads; -1: none. Called one step ahead. */
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

/* Into the tile, for mlp_update(), which reads them in another order. */
static __device__ __forceinline__ void mlp_x_share(MlpTile *tile, const float4 x[MLP_INPUTS]) {
#pragma unroll
  for (int j = 0; j < MLP_INPUTS; j++)
    *(float4 *)&tile->x[threadIdx.x % 16 + 16 * j][MLP_IMAGES * (threadIdx.x / 16)] = x[j];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Parameters: where the block's own are */

/* w1: thread t < 224 has 4 of the 8 weights of one input, those whose gradients mlp_update() leaves in it. */
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

/* Into the tile, for all threads of the block. */
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

static __device__ __forceinline__ void mlp_small_store(const MlpTile *tile, const MlpEpoch &e, const MlpPlace &p) {
  for (int i = threadIdx.x; i < mlp_small_count(e, p); i += MLP_THREADS) {
    const MlpSmall *small = &tile->small[i];
    if (small->place < 0) continue;
    e.parameters[small->place] = small->value;
    e.velocity[small->place] = small->velocity;
  }
}

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_TILE_CUH */
