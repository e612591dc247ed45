/* linear_relu_op.cu - the functions of linear_relu_op.cuh. */
#include "phase2_mlp/03_mlp/linear_relu_op.cuh"

#include "phase2_mlp/03_mlp/linear_relu.cuh"

/* Whether the kernels of linear_relu.cuh compute it; else the two operations do, one after the other. */
static inline int linear_relu_op_fits(const Context *context, const Node *node, int batch) {
  return context->device == DEVICE_GPU && linear_relu_fits(batch, linear_in(node), linear_out(node));
}

static inline int linear_relu_op_backward_fits(const Context *context, const Node *node, int batch) {
  return context->device == DEVICE_GPU && linear_relu_backward_fits(batch, linear_in(node), linear_out(node));
}

static inline int linear_relu_op_splits(const Context *context, const Node *node, int batch) {
  if (context->device != DEVICE_GPU || linear_relu_op_fits(context, node, batch)) return 1;
  return linear_relu_splits(batch, linear_in(node), linear_out(node));
}

/* Forward: parts of divided sums. Backward: dy where y > 0, for the two operations. A smaller batch may be divided into
 * more parts, which are smaller. */
static inline size_t linear_relu_op_workspace(const Context *context, const Node *node, int batch) {
  const size_t open = context->training ? (size_t)batch * linear_out(node) : 0;
  size_t parts = 0;
  for (int b = 1; b <= batch && context->device == DEVICE_GPU; b++) {
    const int splits = linear_relu_op_splits(context, node, b);
    const size_t floats = splits > 1 ? (size_t)splits * b * linear_out(node) : 0;
    if (floats > parts) parts = floats;
  }
  return parts > open ? parts : open;
}

static inline void linear_relu_op_forward_if(const Context *context, const Node *node, const OpArrays *a, int relu) {
  const size_t n = (size_t)a->batch * linear_out(node);
  if (linear_relu_op_fits(context, node, a->batch)) {
    linear_relu_forward_gpu(a->y, a->x[0], a->param[0], a->param[1], a->batch, linear_in(node), linear_out(node), relu);
    return;
  }
  if (linear_relu_op_splits(context, node, a->batch) > 1) {
    linear_relu_forward_split_gpu(a->y, a->x[0], a->param[0], a->param[1], a->batch, linear_in(node), linear_out(node),
                                  relu, a->workspace);
    return;
  }
  linear_op.forward(context, node, a);
  if (relu) ON_DEVICE(context->device, relu_forward_gpu(a->y, a->y, n), relu_forward_cpu_fast(a->y, a->y, n));
}

static inline void linear_relu_op_backward_if(const Context *context, const Node *node, const OpArrays *a, int relu) {
  const size_t n = (size_t)a->batch * linear_out(node);
  OpArrays open = *a;
  if (a->grad[0] && linear_relu_op_backward_fits(context, node, a->batch)) {
    linear_relu_backward_gpu(a->dx[0], a->grad[0], a->grad[1], a->dy, a->y, a->x[0], a->param[0], a->batch,
                             linear_in(node), linear_out(node), relu);
    return;
  }
  if (relu) {
    ON_DEVICE(context->device, relu_backward_gpu(a->workspace, a->dy, a->y, n),
              relu_backward_cpu_fast(a->workspace, a->dy, a->y, n));
    open.dy = a->workspace;
  }
  linear_op.backward(context, node, &open);
}

static inline void linear_relu_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  linear_relu_op_forward_if(context, node, a, 1);
}

static inline void linear_relu_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  linear_relu_op_backward_if(context, node, a, 1);
}

static inline void linear_one_launch_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  linear_relu_op_forward_if(context, node, a, 0);
}

static inline void linear_one_launch_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  linear_relu_op_backward_if(context, node, a, 0);
}

const Op linear_relu_op = {"Gemm",
                           BACKWARD_NEEDS_X | BACKWARD_NEEDS_Y,
                           0,
                           NULL,
                           linear_relu_op_workspace,
                           linear_relu_op_forward,
                           linear_relu_op_backward};
const Op linear_one_launch_op = {"Gemm",
                                 BACKWARD_NEEDS_X,
                                 0,
                                 NULL,
                                 linear_relu_op_workspace,
                                 linear_one_launch_op_forward,
                                 linear_one_launch_op_backward};
