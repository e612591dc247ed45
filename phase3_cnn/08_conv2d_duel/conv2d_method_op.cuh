/* conv2d_method_op.cuh - the functions of an Op that a Conv2dMethod computes: see conv2d_choice_op.cuh. Only the .cu
 * files that hold the Ops include it, one file for the kernels of each lesson, so that they are compiled side by
 * side. */
#ifndef PHASE3_CNN_CONV2D_METHOD_OP_CUH
#define PHASE3_CNN_CONV2D_METHOD_OP_CUH

#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"

static inline const Conv2dMethod *conv2d_method_of(const Node *node) {
  return ((const Conv2dMethodOp *)node->op)->method;
}

/* What the method needs; and what the usual version of a gradient needs that the method does not have. */
static inline size_t conv2d_method_workspace(const Context *context, const Node *node, int batch) {
  const Conv2dMethod *method = conv2d_method_of(node);
  const Conv2dShape s = conv2d_op_shape(node, batch);
  if (context->device == DEVICE_GPU && !context->training && method->forward_floats) return method->forward_floats(s);
  const int all = method->backward_input && method->backward_weight;
  size_t usual = context->device == DEVICE_CPU || !all ? conv2d_workspace_floats(context->device, s) : 0, own = 0;
  if (context->device == DEVICE_GPU && method->workspace_floats) own = method->workspace_floats(s);
  return own > usual ? own : usual;
}

static inline void conv2d_method_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dMethod *method = conv2d_method_of(node);
  const Conv2dShape s = conv2d_op_shape(node, a->batch);
  if (context->device == DEVICE_GPU)
    method->forward(a->y, a->x[0], a->param[0], a->param[1], s, a->workspace);
  else
    conv2d_forward(context->device, a->y, a->x[0], a->param[0], a->param[1], s, a->workspace);
}

static inline void conv2d_method_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dMethod *method = conv2d_method_of(node);
  const Conv2dShape s = conv2d_op_shape(node, a->batch);
  const int gpu = context->device == DEVICE_GPU;
  if (a->grad[0] && gpu && method->backward_weight)
    method->backward_weight(a->grad[0], a->grad[1], a->dy, a->x[0], s, a->workspace);
  else if (a->grad[0])
    conv2d_backward_weight(context->device, a->grad[0], a->grad[1], a->dy, a->x[0], s, a->workspace);
  if (a->dx[0] && gpu && method->backward_input)
    method->backward_input(a->dx[0], a->dy, a->param[0], s, a->workspace);
  else if (a->dx[0])
    conv2d_backward_input(context->device, a->dx[0], a->dy, a->param[0], s, a->workspace);
}

/* The Op `name` of --conv=name, from a Conv2dMethod. */
#define CONV2D_METHOD_OP(name, method)                                                                             \
  const Conv2dMethodOp conv2d_##name##_op = {                                                                      \
      {"Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_method_workspace, conv2d_method_forward, conv2d_method_backward}, \
      &method}

#endif /* PHASE3_CNN_CONV2D_METHOD_OP_CUH */
