/* pool_linear_op.cu - the functions of pool_linear_op.cuh. */
#include "phase5_production/04_resnet18_fused/pool_linear_op.cuh"

#include "phase5_production/04_resnet18_fused/pool_linear.cuh"

int pool_linear_chain_fits(const Graph *g, const int *node, int count) {
  return pool_linear_fits(linear_in(&g->nodes[node[count - 1]]));
}

static inline void pool_linear_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)a;
  die("%s has no backward pass; open the model for MODEL_INFER", node->name);
}

static inline PoolLinearShape pool_linear_shape(const Node *node, int batch, int pitch) {
  const PoolLinearShape s = {batch, pool_linear_of(node).pixels, linear_in(node), pitch, linear_out(node)};
  return s;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* float32, (N,C,H,W): one operation after the other */

static inline size_t pool_linear_workspace(const Context *context, const Node *node, int batch) {
  const size_t own = linear_op.workspace_floats ? linear_op.workspace_floats(context, node, batch) : 0;
  return (size_t)batch * linear_in(node) + own;
}

static inline void pool_linear_forward(const Context *context, const Node *node, const OpArrays *a) {
  const int planes = a->batch * linear_in(node), pixels = pool_linear_of(node).pixels;
  OpArrays second = *a;
  second.x[0] = a->workspace;
  second.workspace = a->workspace + planes;
  ON_DEVICE(context->device, global_avg_pool2d_forward_gpu(a->workspace, a->x[0], planes, pixels),
            global_avg_pool2d_forward_cpu_fast(a->workspace, a->x[0], planes, pixels));
  linear_op.forward(context, node, &second);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static inline size_t pool_linear_half_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_GPU) return 0;
  return pool_linear_workspace(context, node, batch) + (size_t)batch * linear_in(node) * pool_linear_of(node).pixels;
}

template <typename T>
static inline void pool_linear_half_gpu(const Node *node, const OpArrays *a) {
  pool_linear_forward_gpu(a->y, (const T *)a->x[0], (const float *)a->param[0], (const float *)a->param[1],
                          pool_linear_shape(node, a->batch, half_channels(linear_in(node))));
}

static inline void pool_linear_half_cpu(const Context *context, const Node *node, const OpArrays *a) {
  const PoolLinear own = pool_linear_of(node);
  float *left = a->workspace;
  OpArrays full = *a;
  float *x = lowered_take(&left, (size_t)a->batch * linear_in(node) * own.pixels);
  half_to_nchw_cpu(x, (const uint16_t *)a->x[0], a->batch, linear_in(node), own.pixels, own.type);
  full.x[0] = x;
  full.workspace = left;
  pool_linear_forward(context, node, &full);
}

static inline void pool_linear_half_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(pool_linear_of(node).type, pool_linear_half_gpu, node, a),
            pool_linear_half_cpu(context, node, a));
}

static inline void pool_linear_tf32_forward(const Context *context, const Node *node, const OpArrays *a) {
  const PoolLinearShape s = pool_linear_shape(node, a->batch, linear_in(node));
  const float *w = a->param[0], *bias = a->param[1];
  ON_DEVICE(context->device, pool_linear_forward_gpu(a->y, a->x[0], w, bias, s),
            pool_linear_forward_cpu(a->y, a->x[0], w, bias, s));
}

const Op pool_linear_op = {"PoolGemm",          BACKWARD_NEEDS_X,    0, NULL, pool_linear_workspace,
                           pool_linear_forward, pool_linear_backward};
const Op pool_linear_half_op = {
    "PoolGemm", BACKWARD_NEEDS_X, 0, NULL, pool_linear_half_workspace, pool_linear_half_forward, pool_linear_backward};
const Op pool_linear_tf32_op = {"PoolGemm",          BACKWARD_NEEDS_X, 0, NULL, NULL, pool_linear_tf32_forward,
                                pool_linear_backward};
