/* int8_op.cu - the functions of int8_op.cuh. */
#include "phase5_production/09_int8/int8_op.cuh"

#include "phase5_production/09_int8/linear_int8.cuh"
#include "phase5_production/09_int8/pool_int8.cuh"

/* As the types of 16 bits have it, for the stem, whose outputs are behind a ReLU. */
static __device__ __forceinline__ void conv2d_store_pair(int8_t *to, float a, float b) {
  *(char2 *)to = make_char2(int8_byte(a, true), int8_byte(b, true));
}

#include "phase5_production/09_int8/stem_int8.cuh" /* which includes stem_pool.cuh, which calls it */

static inline void int8_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context, (void)a;
  die("%s computes with int8 and has no backward pass; open the model for MODEL_INFER", node->name);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static inline void int8_quantize_forward(const Context *context, const Node *node, const OpArrays *a) {
  const int c = node->shape.dim[0], pixels = shape_pixels(node->shape), pitch = int8_channels(c);
  const float scale = INT8_OF(Int8Quantize, node)->scale;
  const bool positive = INT8_OF(Int8Quantize, node)->positive != 0;
  ON_DEVICE(context->device, int8_from_nchw((int8_t *)a->y, a->x[0], scale, positive, a->batch, c, pixels, pitch),
            int8_from_nchw_cpu((int8_t *)a->y, a->x[0], scale, positive, a->batch, c, pixels, pitch));
}

static inline void int8_dequantize_forward(const Context *context, const Node *node, const OpArrays *a) {
  const int c = node->shape.dim[0], pixels = shape_pixels(node->shape), pitch = int8_channels(c);
  const float scale = INT8_OF(Int8Quantize, node)->scale;
  const bool positive = INT8_OF(Int8Quantize, node)->positive != 0;
  const int8_t *x = (const int8_t *)a->x[0];
  ON_DEVICE(context->device, int8_to_nchw(a->y, x, scale, positive, a->batch, c, pixels, pitch),
            int8_to_nchw_cpu(a->y, x, scale, positive, a->batch, c, pixels, pitch));
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* 1 x 1 filters on images of one pixel are a product: one row of pixels. */
static inline Conv2dShape int8_conv_shape(const Node *node, int batch) {
  Conv2dShape s = INT8_OF(Int8Conv, node)->shape;
  s.n = batch;
  if (s.h != 1 || s.w != 1 || s.r != 1 || s.s != 1 || s.groups != 1) return s;
  return linear_int8_shape(batch, s.c, s.k);
}

static inline Int8End int8_conv_end(const Node *node, const OpArrays *a) {
  const Int8Conv *own = INT8_OF(Int8Conv, node);
  Int8End end = int8_end_of(a->param[INT8_CONV_SCALE], (const int32_t *)a->param[INT8_CONV_BIAS], own->relu);
  end.added = own->adds ? (const int8_t *)a->x[1] : NULL;
  end.middle = own->middle;
  end.added_scale = own->added_scale;
  end.x_positive = own->x_positive;
  end.y_positive = node->type == DTYPE_UINT8;
  end.added_positive = own->added_positive;
  return end;
}

static inline void int8_conv_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape s = int8_conv_shape(node, a->batch);
  const Int8End end = int8_conv_end(node, a);
  const int8_t *x = (const int8_t *)a->x[0], *w = (const int8_t *)a->param[INT8_CONV_WEIGHT];
  if (node->type != DTYPE_FLOAT32)
    ON_DEVICE(context->device, conv2d_int8_best((int8_t *)a->y, x, w, s, end),
              conv2d_int8_cpu((int8_t *)a->y, x, w, s, end));
  else
    ON_DEVICE(context->device, conv2d_int8_best(a->y, x, w, s, end), conv2d_int8_cpu(a->y, x, w, s, end));
}

/* ---------------------------------------------------------------------------------------------------------------- */

static inline void int8_pool_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Int8Pool *own = INT8_OF(Int8Pool, node);
  const PoolInt8Mean mean = {own->unit, own->include_pad, node->type == DTYPE_UINT8},
                     *given = own->unit != 0 ? &mean : NULL;
  const int8_t *x = (const int8_t *)a->x[0];
  Pool2dShape s = own->shape;
  s.n = a->batch;
  ON_DEVICE(context->device, pool2d_int8_gpu((int8_t *)a->y, x, own->x_positive != 0, s, given),
            pool2d_int8_cpu((int8_t *)a->y, x, own->x_positive != 0, s, given));
}

static inline void int8_add_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Int8Add *own = INT8_OF(Int8Add, node);
  const size_t count = int8_count(node->shape) * (size_t)a->batch;
  const int8_t *left = (const int8_t *)a->x[0], *right = (const int8_t *)a->x[1];
  const AddInt8 add = {own->scale_a,    own->scale_b,    own->relu,
                       own->a_positive, own->b_positive, node->type == DTYPE_UINT8};
  ON_DEVICE(context->device, add_int8_gpu((int8_t *)a->y, left, right, add, count),
            add_int8_cpu((int8_t *)a->y, left, right, add, count));
}

/* ---------------------------------------------------------------------------------------------------------------- */

static inline StemShape int8_stem_shape(const Node *node, int batch) {
  const Conv2dShape c = INT8_OF(Int8Stem, node)->conv;
  return stem_shape(batch, c.h, c.w, c.k, half_channels(3));
}

/* Of int8: the parameters are in the order of every product. */
static inline StemInt8 int8_stem_of(const Node *node, const OpArrays *a) {
  const StemInt8 stem = {(const int8_t *)a->param[INT8_CONV_WEIGHT], a->param[INT8_CONV_SCALE],
                         (const int32_t *)a->param[INT8_CONV_BIAS], INT8_OF(Int8Stem, node)->scale_x};
  return stem;
}

static inline size_t int8_stem_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_GPU || INT8_OF(Int8Stem, node)->scale_x > 0) return 0;
  return shape_count(node->shape) * (size_t)batch + node->param[0].bytes / 2;
}

/* Weights (K,49,8) are fp16 on both. */
static inline void int8_stem_half_cpu(const Node *node, const OpArrays *a) {
  const size_t weights = node->param[0].bytes / 2, outputs = shape_count(node->shape) * (size_t)a->batch;
  float *w = a->workspace, *y = w + weights;
  for (size_t i = 0; i < weights; i++) w[i] = fp16_widen(((const uint16_t *)a->param[0])[i]);
  stem_pool_forward_cpu(y, a->x[0], w, a->param[1], int8_stem_shape(node, a->batch));
  for (size_t i = 0; i < outputs; i++) ((int8_t *)a->y)[i] = int8_byte(y[i], true);
}

static inline void int8_stem_forward(const Context *context, const Node *node, const OpArrays *a) {
  const StemShape s = int8_stem_shape(node, a->batch);
  int8_t *y = (int8_t *)a->y;
  if (INT8_OF(Int8Stem, node)->scale_x > 0)
    ON_DEVICE(context->device, stem_int8_gpu(y, a->x[0], int8_stem_of(node, a), s),
              stem_int8_cpu(y, a->x[0], int8_stem_of(node, a), s));
  else
    ON_DEVICE(context->device, stem_pool_forward_gpu(y, a->x[0], (const __half *)a->param[0], a->param[1], s),
              int8_stem_half_cpu(node, a));
}

/* ---------------------------------------------------------------------------------------------------------------- */

const Op int8_quantize_op = {"QuantizeLinear", 0, 0, NULL, NULL, int8_quantize_forward, int8_backward};
const Op int8_dequantize_op = {"DequantizeLinear", 0, 0, NULL, NULL, int8_dequantize_forward, int8_backward};
const Op int8_conv_op = {"QLinearConv", 0, 0, NULL, NULL, int8_conv_forward, int8_backward};
const Op int8_pool_op = {"QLinearPool", 0, 0, NULL, NULL, int8_pool_forward, int8_backward};
const Op int8_add_op = {"QLinearAdd", 0, 0, NULL, NULL, int8_add_forward, int8_backward};
const Op int8_stem_op = {"QLinearStem", 0, 0, NULL, int8_stem_workspace, int8_stem_forward, int8_backward};
