/* conv2d_infer_half_op.cu - the operations of 16 bits of conv2d_infer_op.cuh. */
#include "phase3_cnn/06_conv2d_backward/conv2d_half_op.cuh"
#include "phase5_production/04_resnet18_fused/add_relu_half.cuh"
#include "phase5_production/04_resnet18_fused/conv2d_infer.cuh"
#include "phase5_production/04_resnet18_fused/conv2d_infer_op.cuh"

static inline void conv2d_infer_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)a;
  die("%s has no backward pass; open the model for MODEL_INFER", node->name);
}

static inline size_t conv2d_infer_workspace(const Context *context, const Node *node, int batch) {
  return context->device == DEVICE_CPU ? lowered_workspace_cpu(context, node, batch) : 0;
}

/* Channels and filters as they lie in memory; behind the last bias nothing may be read, so these must be whole. */
static inline Conv2dShape conv2d_infer_shape(Conv2dShape s) {
  s.c = half_channels(s.c);
  s.k = half_channels(s.k);
  return s;
}

/* The kernels read a bias of every filter that they compute. */
static inline void conv2d_infer_expect_filters(const Node *node, Conv2dShape s) {
  if (s.k % HALF_RUN != 0)
    die("%s has %d filters; a multiple of %d is expected in half precision", node->name, s.k, HALF_RUN);
}

template <typename T>
static inline void conv2d_infer_half_gpu(const Node *node, const OpArrays *a, bool relu) {
  const Conv2dShape s = conv2d_op_shape(node, a->batch);
  Conv2dNhwcAdd<T> nothing;
  nothing.one_order = conv2d_infer_one_order(node);
  conv2d_infer_expect_filters(node, s);
  conv2d_infer_forward((T *)a->y, (const T *)a->x[0], (const T *)a->half[0], a->param[1], conv2d_infer_shape(s), relu,
                       nothing);
}

/* Few channels are what conv2d_half_op is for. */
static inline void conv2d_infer_half_forward(const Context *context, const Node *node, const OpArrays *a) {
  if (context->device == DEVICE_GPU && conv2d_op_shape(node, 1).c < CONV2D_INFER_FEW)
    conv2d_half_op.forward(context, node, a);
  else
    ON_DEVICE(context->device, HALF_CALL(node->type, conv2d_infer_half_gpu, node, a, false),
              lowered_forward_cpu(context, node, a));
}
static inline void conv2d_relu_half_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, conv2d_infer_half_gpu, node, a, true),
            lowered_forward_cpu(context, node, a));
}

template <typename T>
static inline void residual_end_half_gpu(const Node *node, const OpArrays *a) {
  const ResidualEnd end = residual_end_of(node, a->batch);
  const T *added = (const T *)a->half[RESIDUAL_END_ADDED];
  Conv2dNhwcAdd<T> add;
  add.one_order = conv2d_infer_one_order(node);
  add.x = (const T *)a->x[1];
  if (end.added.k > 0) {
    add.w = added;
    add.channels = half_channels(end.added.c);
    add.h = end.added.h;
    add.w_count = end.added.w;
    add.stride = end.added.stride_h;
  } else {
    add.identity = added;
  }
  conv2d_infer_expect_filters(node, end.shape);
  conv2d_infer_forward((T *)a->y, (const T *)a->x[0], (const T *)a->half[RESIDUAL_END_WEIGHT],
                       a->param[RESIDUAL_END_BIAS], conv2d_infer_shape(end.shape), true, add);
}

static inline void residual_end_half_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, residual_end_half_gpu, node, a),
            lowered_forward_cpu(context, node, a));
}

static inline void add_relu_one_half_forward(const Context *context, const Node *node, const OpArrays *a) {
  const size_t count = (size_t)a->batch * shape_half_count(node->shape);
  ON_DEVICE(context->device,
            HALF_CALL(node->type, add_relu_half, (uint16_t *)a->y, (const uint16_t *)a->x[0], (const uint16_t *)a->x[1],
                      count),
            lowered_forward_cpu(context, node, a));
}

const Op conv2d_infer_half_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_infer_workspace, conv2d_infer_half_forward, conv2d_infer_backward};
const Op conv2d_relu_half_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_infer_workspace, conv2d_relu_half_forward, conv2d_infer_backward};
const Op residual_end_half_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_infer_workspace, residual_end_half_forward, conv2d_infer_backward};
const Op add_relu_one_half_op = {"Add",
                                 BACKWARD_NEEDS_Y,
                                 OP_IN_PLACE,
                                 NULL,
                                 conv2d_infer_workspace,
                                 add_relu_one_half_forward,
                                 conv2d_infer_backward};
