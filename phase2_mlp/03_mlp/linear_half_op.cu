/* linear_half_op.cu - the functions of linear_half_op.cuh. */
#include "phase2_mlp/03_mlp/linear_half_op.cuh"

#include "phase1_building_blocks/07_activations/relu_half.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_half.cuh"

/* Features of a row in arrays of 16 bits. */
static inline int linear_half_in(const Node *node) { return (int)shape_half_count(node->from[0]); }
static inline int linear_half_out(const Node *node) { return half_channels(linear_out(node)); }

/* GPU: dy where y > 0. */
static inline size_t linear_half_op_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_CPU) return lowered_workspace_cpu(context, node, batch);
  return context->training ? ((size_t)batch * linear_half_out(node) + 1) / 2 : 0;
}

template <typename T>
static inline void linear_half_forward_gpu(const Node *node, const OpArrays *a, bool relu) {
  matmul_half<T>((uint16_t *)a->y, (const uint16_t *)a->x[0], a->half[0], a->param[1], linear_out(node), a->batch,
                 linear_half_out(node), linear_half_in(node), relu);
}

template <typename T>
static inline void linear_half_backward_gpu(const Node *node, const OpArrays *a, bool relu) {
  const int in = linear_half_in(node), out = linear_half_out(node);
  const Param *w = &node->param[0];
  const uint16_t *dy = (const uint16_t *)a->dy;
  if (relu) {
    relu_half_backward<T>((uint16_t *)a->workspace, dy, (const uint16_t *)a->y, (size_t)a->batch * out);
    dy = (const uint16_t *)a->workspace;
  }
  if (a->grad[0])
    matmul_half_weight<T>(a->grad[0], a->grad[1], dy, (const uint16_t *)a->x[0], a->batch, out, in, linear_out(node),
                          w->half_channels, w->half_pixels);
  if (a->dx[0]) /* by the turned weights, (in, out) */
    matmul_half<T>((uint16_t *)a->dx[0], dy, a->half[0] + (size_t)out * in, NULL, 0, a->batch, in, out, false);
}

static inline void linear_half_forward_of(const Context *context, const Node *node, const OpArrays *a, bool relu) {
  ON_DEVICE(context->device, HALF_CALL(node->type, linear_half_forward_gpu, node, a, relu),
            lowered_forward_cpu(context, node, a));
}

static inline void linear_half_backward_of(const Context *context, const Node *node, const OpArrays *a, bool relu) {
  ON_DEVICE(context->device, HALF_CALL(node->type, linear_half_backward_gpu, node, a, relu),
            lowered_backward_cpu(context, node, a));
}

static inline void linear_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  linear_half_forward_of(context, node, a, false);
}
static inline void linear_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  linear_half_backward_of(context, node, a, false);
}
static inline void linear_relu_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  linear_half_forward_of(context, node, a, true);
}
static inline void linear_relu_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  linear_half_backward_of(context, node, a, true);
}

const Op linear_half_op = {
    "Gemm", BACKWARD_NEEDS_X, 0, NULL, linear_half_op_workspace, linear_half_op_forward, linear_half_op_backward};
const Op linear_relu_half_op = {"Gemm",
                                BACKWARD_NEEDS_X | BACKWARD_NEEDS_Y,
                                0,
                                NULL,
                                linear_half_op_workspace,
                                linear_relu_half_op_forward,
                                linear_relu_half_op_backward};
