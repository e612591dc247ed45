/* conv2d_tf32_op.cu - the operations on TF32 of conv2d_infer_op.cuh: float arrays (N,H,W,C), weights (K,R,S,C). */
#include "phase5_production/04_resnet18_fused/conv2d_infer.cuh"
#include "phase5_production/04_resnet18_fused/conv2d_infer_op.cuh"

static inline void conv2d_tf32_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)a;
  die("%s has no backward pass; open the model for MODEL_INFER", node->name);
}

static inline void conv2d_tf32_run(const Context *context, const OpArrays *a, const float *bias, Conv2dShape s,
                                   bool relu, Conv2dNhwcAdd<float> add) {
  ON_DEVICE(context->device, conv2d_infer_forward(a->y, a->x[0], (const float *)a->param[0], bias, s, relu, add),
            conv2d_forward_nhwc_add_cpu(a->y, a->x[0], (const float *)a->param[0], bias, s, relu, add));
}

static inline void conv2d_tf32_alone(const Context *context, const Node *node, const OpArrays *a, bool relu) {
  Conv2dNhwcAdd<float> nothing;
  nothing.one_order = conv2d_infer_one_order(node);
  conv2d_tf32_run(context, a, a->param[1], conv2d_op_shape(node, a->batch), relu, nothing);
}

static inline void conv2d_tf32_forward(const Context *context, const Node *node, const OpArrays *a) {
  conv2d_tf32_alone(context, node, a, false);
}
static inline void conv2d_relu_tf32_forward(const Context *context, const Node *node, const OpArrays *a) {
  conv2d_tf32_alone(context, node, a, true);
}

static inline void residual_end_tf32_forward(const Context *context, const Node *node, const OpArrays *a) {
  const ResidualEnd end = residual_end_of(node, a->batch);
  Conv2dNhwcAdd<float> add;
  add.one_order = conv2d_infer_one_order(node);
  add.x = a->x[1];
  if (end.added.k > 0) {
    add.w = a->param[RESIDUAL_END_ADDED];
    add.channels = end.added.c;
    add.h = end.added.h;
    add.w_count = end.added.w;
    add.stride = end.added.stride_h;
  } else {
    add.identity = a->param[RESIDUAL_END_ADDED];
  }
  conv2d_tf32_run(context, a, a->param[RESIDUAL_END_BIAS], end.shape, true, add);
}

const Op conv2d_tf32_op = {"Conv", BACKWARD_NEEDS_X, 0, NULL, NULL, conv2d_tf32_forward, conv2d_tf32_backward};
const Op conv2d_relu_tf32_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, NULL, conv2d_relu_tf32_forward, conv2d_tf32_backward};
const Op residual_end_tf32_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, NULL, residual_end_tf32_forward, conv2d_tf32_backward};
