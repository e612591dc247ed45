/* linear_op.cu - the functions of linear_op.cuh. */
#include "phase2_mlp/03_mlp/linear_op.cuh"

static inline void linear_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const int in = linear_in(node), out = linear_out(node);
  ON_DEVICE(context->device, linear_forward_gpu(a->y, a->x[0], a->param[0], a->param[1], a->batch, in, out),
            linear_forward_cpu_fast(a->y, a->x[0], a->param[0], a->param[1], a->batch, in, out));
}

static inline void linear_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const int in = linear_in(node), out = linear_out(node);
  if (a->grad[0])
    ON_DEVICE(context->device, linear_backward_weight_gpu(a->grad[0], a->grad[1], a->dy, a->x[0], a->batch, in, out),
              linear_backward_weight_cpu_fast(a->grad[0], a->grad[1], a->dy, a->x[0], a->batch, in, out));
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device, linear_backward_input_gpu(a->dx[0], a->dy, a->param[0], a->batch, in, out),
            linear_backward_input_cpu_fast(a->dx[0], a->dy, a->param[0], a->batch, in, out));
}

const Op linear_op = {"Gemm", BACKWARD_NEEDS_X, 0, NULL, NULL, linear_op_forward, linear_op_backward};
