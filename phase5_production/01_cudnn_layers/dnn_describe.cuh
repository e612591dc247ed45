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
  // hint: cudnnSetConvolution2dDescriptor() takes pad_h, pad_w, u (the stride of rows), v, dilation_h, dilation_w, mode.
  // hint: c.turned = 0 is CUDNN_CROSS_CORRELATION.
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
  // hint: A loop from the first on. The workspace may fill the room to the last byte.
  for (int i = 0; i < count; i++)
    if (algorithm[i].works && algorithm[i].deterministic && !algorithm[i].rounds && algorithm[i].memory <= room)
      return i;
  return -1;
  // <<< exercise
}

#endif /* PHASE5_PRODUCTION_DNN_DESCRIBE_CUH */
