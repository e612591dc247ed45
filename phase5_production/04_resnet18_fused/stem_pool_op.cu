/* stem_pool_op.cu - the functions of stem_pool_op.cuh. */
#include "phase5_production/04_resnet18_fused/stem_pool_op.cuh"

#include "phase5_production/04_resnet18_fused/stem_pool.cuh"

int stem_pool_chain_fits(const Graph *g, const int *node, int count) {
  return g->nodes[node[0]].params == 2 &&
         stem_pool_fits(*(const Conv2dShape *)g->nodes[node[0]].attributes.bytes,
                        *(const Pool2dShape *)g->nodes[node[count - 1]].attributes.bytes);
}

static inline void stem_pool_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)a;
  die("%s has no backward pass; open the model for MODEL_INFER", node->name);
}

static inline StemShape stem_pool_shape(const Node *node, int batch, int pitch) {
  const Conv2dShape c = stem_pool_of(node, batch).conv;
  return stem_shape(batch, c.h, c.w, c.k, pitch);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* float32: one operation after the other, the definition of the others */

static inline size_t stem_pool_workspace(const Context *context, const Node *node, int batch) {
  const StemPool stem = stem_pool_of(node, batch);
  const size_t largest = shape_count(node->shape) * (size_t)batch / sizeof(float) + 1; /* a byte for each output */
  const size_t scratch = context->device == DEVICE_CPU ? conv2d_workspace_floats(context->device, stem.conv) : 0;
  return conv2d_y_count(stem.conv) + largest + scratch;
}

static inline void stem_pool_forward(const Context *context, const Node *node, const OpArrays *a) {
  const StemPool stem = stem_pool_of(node, a->batch);
  float *y = a->workspace, *largest = y + conv2d_y_count(stem.conv);
  OpArrays first = *a;
  first.y = y;
  first.workspace = largest + shape_count(node->shape) * (size_t)a->batch / sizeof(float) + 1;
  conv2d_relu_op.forward(context, node, &first);
  ON_DEVICE(context->device, max_pool2d_forward_gpu(a->y, (unsigned char *)largest, y, stem.pool),
            max_pool2d_forward_cpu_fast(a->y, (unsigned char *)largest, y, stem.pool));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* 16 bits: y alone */

static inline size_t stem_pool_half_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_GPU) return 0;
  return lowered_workspace_cpu(context, node, batch) + conv2d_x_count(stem_pool_of(node, batch).conv);
}

template <typename T>
static inline void stem_pool_half_gpu(const Node *node, const OpArrays *a) {
  stem_pool_forward_gpu((T *)a->y, a->x[0], (const T *)a->half[0], a->param[1],
                        stem_pool_shape(node, a->batch, half_channels(3)));
}

/* Pixels and weights are rounded, then the float32 operation. */
static inline void stem_pool_half_cpu(const Context *context, const Node *node, const OpArrays *a) {
  const size_t pixels = conv2d_x_count(stem_pool_of(node, a->batch).conv);
  float *left = a->workspace, *x = lowered_take(&left, pixels);
  OpArrays full = *a;
  full.param[0] = lowered_take(&left, node->param[0].count);
  full.y = lowered_take(&left, shape_count(node->shape) * (size_t)a->batch);
  for (size_t i = 0; i < pixels; i++) x[i] = half_round(node->type, a->x[0][i]);
  for (size_t i = 0; i < node->param[0].count; i++) full.param[0][i] = half_round(node->type, a->param[0][i]);
  full.x[0] = x;
  full.workspace = left;
  stem_pool_forward(context, node, &full);
  lowered_narrow(a->y, full.y, a->batch, node->shape, node->type);
}

static inline void stem_pool_half_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, stem_pool_half_gpu, node, a), stem_pool_half_cpu(context, node, a));
}

/* ---------------------------------------------------------------------------------------------------------------- */

static inline void stem_pool_tf32_forward(const Context *context, const Node *node, const OpArrays *a) {
  const StemShape s = stem_pool_shape(node, a->batch, 3);
  ON_DEVICE(context->device, stem_pool_forward_gpu(a->y, a->x[0], (const float *)a->param[0], a->param[1], s),
            stem_pool_forward_cpu(a->y, a->x[0], a->param[0], a->param[1], s));
}

const Op stem_pool_op = {"StemPool",        BACKWARD_NEEDS_X,  0, NULL, stem_pool_workspace,
                         stem_pool_forward, stem_pool_backward};
const Op stem_pool_half_op = {
    "StemPool", BACKWARD_NEEDS_X, 0, NULL, stem_pool_half_workspace, stem_pool_half_forward, stem_pool_backward};
const Op stem_pool_tf32_op = {"StemPool", BACKWARD_NEEDS_X, 0, NULL, NULL, stem_pool_tf32_forward, stem_pool_backward};
