/* fused_train_op.cu - the functions of fused_train_op.cuh. */
#include "phase5_production/04_resnet18_fused/fused_train_op.cuh"

#include "phase3_cnn/06_conv2d_backward/conv2d_nhwc_backward_wgmma.cuh"

enum { CONV2D_TRAIN_FEW = 32 }; /* channels */

/* Whether wgmma computes the node's layer: channels and filters lie in memory without filling. */
static inline int conv2d_train_by_wgmma(const Context *context, const Node *node) {
  const Conv2dShape s = conv2d_op_shape(node, 1);
  return context->device == DEVICE_GPU && s.c >= CONV2D_TRAIN_FEW && s.c % HALF_RUN == 0 && s.k % HALF_RUN == 0 &&
         conv2d_wgmma_refusal() == NULL;
}

/* The gradient of the weights as 16 bits, and what its kernel needs; filters for mma.sync take as much. */
static inline size_t conv2d_train_gradient_floats(Conv2dShape s) { return (conv2d_w_count(s) + 7) / 8 * 4; }

static inline size_t conv2d_train_workspace(const Context *context, const Node *node, int batch) {
  const Conv2dShape s = conv2d_op_shape(node, batch);
  if (!conv2d_train_by_wgmma(context, node)) return conv2d_half_op.workspace_floats(context, node, batch);
  const size_t floats =
      node->type == DTYPE_FP16 ? conv2d_dw_wgmma_floats<__half>(s) : conv2d_dw_wgmma_floats<__nv_bfloat16>(s);
  return conv2d_train_gradient_floats(s) + floats;
}

template <typename T>
static inline void conv2d_train_forward_gpu(const Node *node, const OpArrays *a) {
  conv2d_forward_nhwc_wgmma((T *)a->y, (const T *)a->x[0], (const T *)a->half[0], a->param[1],
                            conv2d_op_shape(node, a->batch), false);
}

template <typename T>
static inline void conv2d_train_backward_gpu(const Node *node, const OpArrays *a) {
  const Conv2dShape s = conv2d_op_shape(node, a->batch);
  T *gradient = (T *)a->workspace;
  float *rest = a->workspace + conv2d_train_gradient_floats(s);
  if (a->grad[0]) {
    conv2d_backward_weight_nhwc_wgmma(gradient, a->grad[1], (const T *)a->dy, (const T *)a->x[0], s, rest);
    conv2d_to_nchw(a->grad[0], (const T *)gradient, s.k, s.c, s.r * s.s);
  }
  if (a->dx[0]) conv2d_backward_input_nhwc_wgmma((T *)a->dx[0], (const T *)a->dy, (const T *)a->half[0], s, gradient);
}

static inline void conv2d_train_forward(const Context *context, const Node *node, const OpArrays *a) {
  if (conv2d_train_by_wgmma(context, node))
    HALF_CALL(node->type, conv2d_train_forward_gpu, node, a);
  else
    conv2d_half_op.forward(context, node, a);
}

static inline void conv2d_train_backward(const Context *context, const Node *node, const OpArrays *a) {
  if (conv2d_train_by_wgmma(context, node))
    HALF_CALL(node->type, conv2d_train_backward_gpu, node, a);
  else
    conv2d_half_op.backward(context, node, a);
}

const Op conv2d_train_half_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_train_workspace, conv2d_train_forward, conv2d_train_backward};
