/* batch_norm2d_half_op.cu - the functions of batch_norm2d_half_op.cuh. */
#include "phase3_cnn/10_batch_norm/batch_norm2d_half_op.cuh"

#include "phase3_cnn/10_batch_norm/batch_norm2d_half.cuh"

static inline size_t batch_norm2d_half_rows(const Node *node, int batch) {
  return (size_t)batch * shape_pixels(node->shape);
}

/* mean and inv_std */
static inline size_t batch_norm2d_half_op_saved(const Node *node, int batch) {
  return lowered_saved_bytes(node, batch, 2 * (size_t)node->shape.dim[0] * sizeof(float));
}

/* and a byte for each run of channels */
static inline size_t batch_norm2d_add_relu_half_op_saved(const Node *node, int batch) {
  const size_t bits = (size_t)batch * shape_half_count(node->shape) / HALF_RUN;
  return lowered_saved_bytes(node, batch, 2 * (size_t)node->shape.dim[0] * sizeof(float) + bits);
}

static inline size_t batch_norm2d_half_op_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_CPU) return lowered_workspace_cpu(context, node, batch);
  return !context->training ? 0 : batch_norm_half_floats(batch_norm2d_half_rows(node, batch), node->shape.dim[0]);
}

template <typename T>
static inline BatchNormHalf<T> batch_norm2d_half_arrays(const Node *node, const OpArrays *a, BatchNorm2dAfter after) {
  BatchNormHalf<T> b;
  memset(&b, 0, sizeof b);
  b.rows = batch_norm2d_half_rows(node, a->batch);
  b.channels = node->shape.dim[0];
  b.runs = half_channels(b.channels) / HALF_RUN;
  b.after = after;
  b.x = (const T *)a->x[0];
  b.y = (T *)a->y;
  b.dy = (const T *)a->dy;
  b.dx = (T *)a->dx[0];
  b.gamma = a->param[0];
  b.beta = a->param[1];
  b.running_mean = a->param[2];
  b.running_var = a->param[3];
  b.mean = (float *)a->saved;
  b.inv_std = b.mean + b.channels;
  b.dgamma = a->grad[0];
  b.dbeta = a->grad[1];
  b.workspace = a->workspace;
  if (after != BATCH_NORM_ADD_RELU) return b;
  b.z = (const T *)a->x[1];
  b.dz = (T *)a->dx[1];
  b.passed = (unsigned char *)(b.inv_std + b.channels);
  return b;
}

template <typename T>
static inline void batch_norm2d_half_forward_gpu(const Context *context, const Node *node, const OpArrays *a,
                                                 BatchNorm2dAfter after) {
  const BatchNormHalf<T> b = batch_norm2d_half_arrays<T>(node, a, after);
  if (context->training)
    batch_norm_half_forward(&b);
  else
    batch_norm_half_evaluate(&b);
}

template <typename T>
static inline void batch_norm2d_half_backward_gpu(const Node *node, const OpArrays *a, BatchNorm2dAfter after) {
  const BatchNormHalf<T> b = batch_norm2d_half_arrays<T>(node, a, after);
  batch_norm_half_backward(&b);
}

static inline void batch_norm2d_half_forward_of(const Context *context, const Node *node, const OpArrays *a,
                                                BatchNorm2dAfter after) {
  ON_DEVICE(context->device, HALF_CALL(node->type, batch_norm2d_half_forward_gpu, context, node, a, after),
            lowered_forward_cpu(context, node, a));
}

static inline void batch_norm2d_half_backward_of(const Context *context, const Node *node, const OpArrays *a,
                                                 BatchNorm2dAfter after) {
  ON_DEVICE(context->device, HALF_CALL(node->type, batch_norm2d_half_backward_gpu, node, a, after),
            lowered_backward_cpu(context, node, a));
}

static inline void batch_norm2d_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_half_forward_of(context, node, a, BATCH_NORM_ALONE);
}
static inline void batch_norm2d_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_half_backward_of(context, node, a, BATCH_NORM_ALONE);
}
static inline void batch_norm2d_relu_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_half_forward_of(context, node, a, BATCH_NORM_RELU);
}
static inline void batch_norm2d_relu_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_half_backward_of(context, node, a, BATCH_NORM_RELU);
}
static inline void batch_norm2d_add_relu_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_half_forward_of(context, node, a, BATCH_NORM_ADD_RELU);
}
static inline void batch_norm2d_add_relu_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_half_backward_of(context, node, a, BATCH_NORM_ADD_RELU);
}

const Op batch_norm2d_half_op = {BATCH_NORM_OP_NAME,
                                 BACKWARD_NEEDS_X,
                                 OP_STATISTICS,
                                 batch_norm2d_half_op_saved,
                                 batch_norm2d_half_op_workspace,
                                 batch_norm2d_half_op_forward,
                                 batch_norm2d_half_op_backward};
const Op batch_norm2d_relu_half_op = {BATCH_NORM_OP_NAME,
                                      BACKWARD_NEEDS_X,
                                      OP_STATISTICS,
                                      batch_norm2d_half_op_saved,
                                      batch_norm2d_half_op_workspace,
                                      batch_norm2d_relu_half_op_forward,
                                      batch_norm2d_relu_half_op_backward};
const Op batch_norm2d_add_relu_half_op = {BATCH_NORM_OP_NAME,
                                          BACKWARD_NEEDS_FIRST_X,
                                          OP_STATISTICS,
                                          batch_norm2d_add_relu_half_op_saved,
                                          batch_norm2d_half_op_workspace,
                                          batch_norm2d_add_relu_half_op_forward,
                                          batch_norm2d_add_relu_half_op_backward};
