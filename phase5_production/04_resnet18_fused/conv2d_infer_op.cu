/* conv2d_infer_op.cu - the float32 operations of conv2d_infer_op.cuh. */
#include "phase5_production/04_resnet18_fused/conv2d_infer_op.cuh"

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_fused.cuh"

static inline void conv2d_infer_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)a;
  die("%s has no backward pass; open the model for MODEL_INFER", node->name);
}

/* On a CPU all of them are conv2d_relu_op. */
static inline size_t conv2d_relu_gemm_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_CPU) return conv2d_op_workspace(context, node, batch);
  return conv2d_implicit_gemm_workspace_floats(conv2d_op_shape(node, batch));
}
static inline size_t conv2d_relu_winograd_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_CPU) return conv2d_op_workspace(context, node, batch);
  return conv2d_winograd_floats(conv2d_op_shape(node, batch));
}

static inline void conv2d_relu_gemm_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device,
            conv2d_bias_relu_forward_implicit_gemm(a->y, a->x[0], a->param[0], a->param[1],
                                                   conv2d_op_shape(node, a->batch), a->workspace),
            conv2d_relu_op.forward(context, node, a));
}
static inline void conv2d_relu_winograd_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device,
            conv2d_bias_relu_forward_winograd(a->y, a->x[0], a->param[0], a->param[1], conv2d_op_shape(node, a->batch),
                                              a->workspace),
            conv2d_relu_op.forward(context, node, a));
}

const Op conv2d_relu_gemm_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_relu_gemm_workspace, conv2d_relu_gemm_forward, conv2d_infer_backward};
const Op conv2d_relu_winograd_op = {"Conv",
                                    BACKWARD_NEEDS_X,
                                    0,
                                    NULL,
                                    conv2d_relu_winograd_workspace,
                                    conv2d_relu_winograd_forward,
                                    conv2d_infer_backward};

/* ---------------------------------------------------------------------------------------------------------------- */
/* The end of a residual block, one operation after the other: the definition of the kernels that compute it at once. */

static inline size_t residual_end_workspace(const Context *context, const Node *node, int batch) {
  const ResidualEnd end = residual_end_of(node, batch);
  const int scratch = context->device == DEVICE_CPU; /* forward alone: on a GPU none */
  const size_t own = scratch ? conv2d_workspace_floats(context->device, end.shape) : 0;
  const size_t one = scratch && end.added.k > 0 ? conv2d_workspace_floats(context->device, end.added) : 0;
  return (own > one ? own : one) + (end.added.k > 0 ? conv2d_y_count(end.shape) : 0);
}

static inline void residual_end_forward(const Context *context, const Node *node, const OpArrays *a) {
  const ResidualEnd end = residual_end_of(node, a->batch);
  const size_t n = conv2d_y_count(end.shape);
  float *product = a->workspace, *rest = a->workspace + (end.added.k > 0 ? n : 0);
  const float *added = end.added.k > 0 ? product : a->x[1];
  conv2d_forward(context->device, a->y, a->x[0], a->param[RESIDUAL_END_WEIGHT], a->param[RESIDUAL_END_BIAS], end.shape,
                 rest);
  if (end.added.k > 0)
    conv2d_forward(context->device, product, a->x[1], a->param[RESIDUAL_END_ADDED], NULL, end.added, rest);
  ON_DEVICE(context->device, add_relu_forward_gpu(a->y, a->y, added, n),
            add_relu_forward_cpu_fast(a->y, a->y, added, n));
}

const Op residual_end_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, residual_end_workspace, residual_end_forward, conv2d_infer_backward};
