/* dnn_describe.cuh - what cuDNN is told about arrays and operations, as plain numbers: dnn_*.cuh hand them over.
 *
 *     DnnTensor        sizes and strides of an array: where its element (n,c,h,w) lies
 *     DnnConvolution   padding, strides, dilation, and whether the filter is turned by 180 degrees
 *     DnnScale         alpha and beta: the output becomes alpha * result + beta * output
 *     DnnAlgorithm     what cuDNN says of a way to compute a convolution; dnn_algorithm_pick() takes one
 *
 * A wrong descriptor is no error to cuDNN where its sizes multiply to something that fits: it computes something else,
 * or reads beyond an array. So the numbers are made in one place, and have tests. */
#ifndef PHASE5_PRODUCTION_DNN_DESCRIBE_CUH
#define PHASE5_PRODUCTION_DNN_DESCRIBE_CUH

#include "common/check.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

/* In elements: (n,c,h,w) lies at n stride[0] + c stride[1] + h stride[2] + w stride[3]. */
typedef struct DnnTensor {
  int dim[4], stride[4];
} DnnTensor;

typedef struct DnnConvolution {
  int padding[2], stride[2], dilation[2]; /* rows, columns */
  int turned;                             /* 1: y(p) = sum of x(p - r) w(r), as mathematicians define a convolution */
} DnnConvolution;

typedef struct DnnScale {
  float alpha, beta;
} DnnScale;

typedef struct DnnAlgorithm {
  int number;           /* cudnnConvolutionFwdAlgo_t, or that of a gradient */
  int works;            /* cuDNN can compute this shape by it */
  int deterministic;    /* the same bits each time: no atomic additions */
  int rounds;           /* inputs are rounded, to TF32 for tensor cores for example */
  unsigned long memory; /* bytes of workspace */
} DnnAlgorithm;

/* ------------------------------------------------------------------------------------------------------ descriptors */

/* Of float32 arrays as all of this course: one image after the other, each channel a plane of h rows. */
static __host__ __device__ inline DnnTensor dnn_tensor_nchw(int n, int c, int h, int w) {
  DnnTensor t;
  // >>> exercise dnn_tensor: the sizes of (n,c,h,w) in t.dim, and in t.stride how far apart neighbours along each lie
  // hint: The last size varies fastest: a step along w is one element.
  // hint: A step along h is a row of w elements, one along c a plane, one along n an image.
  // hint: t.stride[1] = h * w, and t.stride[0] is c times as much. t.dim[2] is the height.
  t.dim[0] = n, t.dim[1] = c, t.dim[2] = h, t.dim[3] = w;
  t.stride[3] = 1;
  t.stride[2] = w;
  t.stride[1] = h * w;
  t.stride[0] = c * h * w;
  // <<< exercise
  return t;
}

/* Channels last: the c numbers of a pixel lie side by side, as tensor cores like them. */
static __host__ __device__ inline DnnTensor dnn_tensor_nhwc(int n, int c, int h, int w) {
  const DnnTensor t = {{n, c, h, w}, {h * w * c, 1, w * c, c}};
  return t;
}

/* y = conv2d(x) of this course, and of every framework: y(p) is the sum of x(p + r) w(r). That is a cross-correlation;
 * cuDNN's CUDNN_CONVOLUTION turns the filter. */
static __host__ __device__ inline DnnConvolution dnn_convolution(Conv2dShape s) {
  DnnConvolution c;
  // >>> exercise dnn_convolution: rows first, then columns; the filter is not turned
  // hint: cudnnSetConvolution2dDescriptor() takes pad_h, pad_w, u (stride of rows), v, dilation_h, dilation_w, mode.
  // hint: c.turned = 0 is CUDNN_CROSS_CORRELATION.
  // hint: c.padding[0] = s.padding_h, c.padding[1] = s.padding_w; and so on for stride and dilation.
  c.padding[0] = s.padding_h, c.padding[1] = s.padding_w;
  c.stride[0] = s.stride_h, c.stride[1] = s.stride_w;
  c.dilation[0] = s.dilation_h, c.dilation[1] = s.dilation_w;
  c.turned = 0;
  // <<< exercise
  return c;
}

/* Of a gradient that comes in parts: the first part replaces what the array held, which may be anything, and each
 * later part is added. `weight`: by how much each part counts. */
static __host__ __device__ inline DnnScale dnn_gradient_scale(int part, float weight) {
  DnnScale scale;
  // >>> exercise dnn_scale: output = alpha * this part's gradient + beta * output
  // hint: alpha is the same in every part.
  // hint: beta = 0 does not read the output: 0 * NaN would be NaN. beta = 1 adds.
  // hint: The first part, and only that, has the number 0.
  scale.alpha = weight;
  scale.beta = part == 0 ? 0 : 1;
  // <<< exercise
  return scale;
}

/* The output is replaced. */
static __host__ __device__ inline DnnScale dnn_replace(void) {
  const DnnScale scale = {1, 0};
  return scale;
}

/* ------------------------------------------------------------------------------------------------------- algorithms */

/* The first of the algorithms, which cuDNN sorts by the time that it expects, that works, gives the same bits each
 * time, rounds nothing and needs at most `room` bytes; -1: none. */
static __host__ __device__ inline int dnn_algorithm_pick(const DnnAlgorithm *algorithm, int count, unsigned long room) {
  // >>> exercise dnn_algorithm: return the index of the first that fulfils all four, or -1
  // hint: A loop from the first on.
  // hint: The workspace may fill the room to the last byte.
  // hint: if (algorithm[i].works && algorithm[i].deterministic && ...) return i;
  for (int i = 0; i < count; i++)
    if (algorithm[i].works && algorithm[i].deterministic && !algorithm[i].rounds && algorithm[i].memory <= room)
      return i;
  return -1;
  // <<< exercise
}

/* ------------------------------------------------------------------------------------------------------- to be seen
 *
 * What follows obeys the descriptors as cuDNN does: it shows what a wrong one would give. Each on the CPU, and as a
 * kernel for the exercises. */

/* y (n,c,h,w): the elements where a descriptor finds them in x; sizes (4): its sizes. */
static __host__ __device__ inline void dnn_tensor_read(float *y, int *sizes, const float *x, int n, int c, int h, int w,
                                                       int i) {
  const DnnTensor t = dnn_tensor_nchw(n, c, h, w);
  const int at[4] = {i / w / h / c, i / w / h % c, i / w % h, i % w};
  size_t place = 0;
  for (int k = 0; k < 4; k++) place += (size_t)at[k] * (size_t)t.stride[k];
  y[i] = x[place];
  if (i < 4) sizes[i] = t.dim[i];
}

/* A gradient (k) from its parts (p,k). */
static __host__ __device__ inline void dnn_gradient_add(float *dw, const float *parts, int p, int k, float weight,
                                                        int i) {
  for (int part = 0; part < p; part++) {
    const DnnScale scale = dnn_gradient_scale(part, weight);
    const float more = scale.alpha * parts[(size_t)part * k + i];
    dw[i] = scale.beta == 0 ? more : more + scale.beta * dw[i];
  }
}

enum { DNN_TABLE_MOST = 8 };

/* What is picked of table i of `a` algorithms. */
static __host__ __device__ inline void dnn_tables_pick(int *picked, const int *works, const int *deterministic,
                                                       const int *rounds, const int *memory, const int *room, int a,
                                                       int i) {
  DnnAlgorithm table[DNN_TABLE_MOST];
  for (int j = 0; j < a; j++) {
    const DnnAlgorithm one = {j, works[i * a + j], deterministic[i * a + j], rounds[i * a + j],
                              (unsigned long)memory[i * a + j]};
    table[j] = one;
  }
  picked[i] = dnn_algorithm_pick(table, a, (unsigned long)room[i]);
}

/* Output i of a convolution of one group, by what the descriptor says; P and Q are the shape's. */
static __host__ __device__ inline void dnn_described_output(float *y, const float *x, const float *w, const float *bias,
                                                            Conv2dShape s, DnnConvolution d, int i) {
  const int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s), q = i % q_count, p = i / q_count % p_count;
  const int k = i / q_count / p_count % s.k, n = i / q_count / p_count / s.k;
  float sum = bias[k];
  for (int c = 0; c < s.c; c++)
    for (int r = 0; r < s.r; r++)
      for (int t = 0; t < s.s; t++) {
        const int h = p * d.stride[0] - d.padding[0] + r * d.dilation[0];
        const int v = q * d.stride[1] - d.padding[1] + t * d.dilation[1];
        const int row = d.turned ? s.r - 1 - r : r, column = d.turned ? s.s - 1 - t : t;
        if (h < 0 || h >= s.h || v < 0 || v >= s.w) continue;
        sum += x[((n * s.c + c) * s.h + h) * s.w + v] * w[((k * s.c + c) * s.r + row) * s.s + column];
      }
  y[i] = sum;
}

static inline void dnn_tensor_read_cpu(float *y, int *sizes, const float *x, int n, int c, int h, int w) {
  for (int i = 0; i < n * c * h * w; i++) dnn_tensor_read(y, sizes, x, n, c, h, w, i);
}
static inline void dnn_gradient_add_cpu(float *dw, const float *parts, int p, int k, float weight) {
  for (int i = 0; i < k; i++) dnn_gradient_add(dw, parts, p, k, weight, i);
}
static inline void dnn_tables_pick_cpu(int *picked, const int *works, const int *deterministic, const int *rounds,
                                       const int *memory, const int *room, int tables, int a) {
  for (int i = 0; i < tables; i++) dnn_tables_pick(picked, works, deterministic, rounds, memory, room, a, i);
}

static __global__ void dnn_tensor_read_kernel(float *y, int *sizes, const float *x, int n, int c, int h, int w) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * c * h * w) dnn_tensor_read(y, sizes, x, n, c, h, w, i);
}
static __global__ void dnn_gradient_add_kernel(float *dw, const float *parts, int p, int k, float weight) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < k) dnn_gradient_add(dw, parts, p, k, weight, i);
}
static __global__ void dnn_tables_pick_kernel(int *picked, const int *works, const int *deterministic,
                                              const int *rounds, const int *memory, const int *room, int tables,
                                              int a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < tables) dnn_tables_pick(picked, works, deterministic, rounds, memory, room, a, i);
}
static __global__ void dnn_described_kernel(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                            int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) dnn_described_output(y, x, w, bias, s, dnn_convolution(s), i);
}

enum { DNN_BLOCK = 128 };

static inline int dnn_blocks(int n) { return (n + DNN_BLOCK - 1) / DNN_BLOCK; }

static inline void dnn_tensor_read_gpu(float *y, int *sizes, const float *x, int n, int c, int h, int w) {
  dnn_tensor_read_kernel<<<dnn_blocks(n * c * h * w), DNN_BLOCK>>>(y, sizes, x, n, c, h, w);
  CUDA_CHECK_LAUNCH();
}
static inline void dnn_gradient_add_gpu(float *dw, const float *parts, int p, int k, float weight) {
  dnn_gradient_add_kernel<<<dnn_blocks(k), DNN_BLOCK>>>(dw, parts, p, k, weight);
  CUDA_CHECK_LAUNCH();
}
static inline void dnn_tables_pick_gpu(int *picked, const int *works, const int *deterministic, const int *rounds,
                                       const int *memory, const int *room, int tables, int a) {
  dnn_tables_pick_kernel<<<dnn_blocks(tables), DNN_BLOCK>>>(picked, works, deterministic, rounds, memory, room, tables,
                                                            a);
  CUDA_CHECK_LAUNCH();
}
static inline void dnn_described_gpu(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                     float *) {
  const int count = (int)conv2d_y_count(s);
  dnn_described_kernel<<<dnn_blocks(count), DNN_BLOCK>>>(y, x, w, bias, s, count);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_DNN_DESCRIBE_CUH */
