/* int8_op.cuh - the kernels of this lesson as Ops of common/nn, for inference. int8_lower.cuh makes a graph of them.
 *
 *   int8_quantize_op     float32 (N,C,H,W) -> int8 or uint8 (node->type), the channels last, filled up with zeros
 *                        to a multiple of 16
 *   int8_dequantize_op   the way back
 *   int8_conv_op         convolution or linear layer, with bias, what a residual block adds, ReLU: y int8; of a
 *                        linear layer also float32
 *   int8_pool_op         max pooling, mean pooling, the mean of each channel
 *   int8_add_op          the sum of two arrays, with ReLU or without
 *   int8_stem_op         the first layers of a ResNet on a GPU, from float32 pictures, with int8 or fp16
 *
 * Parameters are buffers that int8_lower.cuh fills: int8 weights in the order of the kernels, one scale and one int32
 * bias for each filter.
 */
#ifndef PHASE5_PRODUCTION_INT8_OP_CUH
#define PHASE5_PRODUCTION_INT8_OP_CUH

#include "common/nn/graph.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"
#include "phase3_cnn/09_pooling/pool2d_shape.cuh"

enum { INT8_RUN = 16 };

static inline int int8_channels(int channels) { return (channels + INT8_RUN - 1) / INT8_RUN * INT8_RUN; }

/* Bytes of one sample. */
static inline size_t int8_count(Shape s) { return (size_t)int8_channels(s.dim[0]) * (size_t)shape_pixels(s); }

/* Attributes. `scale`: of y, or of x where y is float32. */
typedef struct Int8Quantize {
  float scale;
  int positive; /* uint8 */
} Int8Quantize;

typedef struct Int8Conv {
  Conv2dShape shape; /* of one sample, with the channels as they lie in memory; y float32: filters are not filled up */
  float middle, added_scale; /* as Int8End has them */
  int relu, adds;            /* adds: input 1, of y's shape */
  int x_positive, added_positive;
} Int8Conv;

enum { INT8_CONV_WEIGHT, INT8_CONV_SCALE, INT8_CONV_BIAS };

typedef struct Int8Pool {
  Pool2dShape shape;
  float unit; /* mean pooling: scale_x / scale_y; 0: the largest */
  int include_pad, x_positive;
} Int8Pool;

typedef struct Int8Add {
  float scale_a, scale_b; /* in units of y */
  int relu, a_positive, b_positive;
} Int8Add;

typedef struct Int8Stem {
  Conv2dShape conv;
  Pool2dShape pool;
  float scale;   /* of y, uint8; of fp16: weights and bias are divided by it */
  float scale_x; /* of the pictures; 0: they are not rounded, and products are fp16 */
} Int8Stem;

extern const Op int8_quantize_op, int8_dequantize_op, int8_conv_op, int8_pool_op, int8_add_op, int8_stem_op;

#define INT8_OF(Type, node) ((const Type *)(node)->attributes.bytes)

#endif /* PHASE5_PRODUCTION_INT8_OP_CUH */
