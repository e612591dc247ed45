/* batch_norm2d_op.cu - the functions of batch_norm2d_op.cuh. */
#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"

static inline BatchNorm2dShape batch_norm2d_op_shape(const Node *node, int batch) {
  const BatchNorm2dShape shape = {batch, node->shape.dim[0], node->shape.dim[1] * node->shape.dim[2]};
  return shape;
}

/* mean and inv_std */
static inline size_t batch_norm2d_op_saved(const Node *node, int batch) {
  (void)batch;
  return 2 * (size_t)node->shape.dim[0] * sizeof(float);
}

/* and a bit for each value */
static inline size_t batch_norm2d_add_relu_op_saved(const Node *node, int batch) {
  const BatchNorm2dShape s = batch_norm2d_op_shape(node, batch);
  return batch_norm2d_op_saved(node, batch) + s.c * batch_norm2d_words(s) * sizeof(uint32_t);
}

static inline size_t batch_norm2d_op_workspace(const Context *context, const Node *node, int batch) {
  return context->device == DEVICE_GPU && context->training
             ? batch_norm2d_workspace_floats(batch_norm2d_op_shape(node, batch))
             : 0;
}

/* The arrays of a node. */
static inline BatchNorm2d batch_norm2d_op_arrays(const Node *node, const OpArrays *a, BatchNorm2dAfter after) {
  BatchNorm2d b;
  memset(&b, 0, sizeof b);
  b.shape = batch_norm2d_op_shape(node, a->batch);
  b.after = after;
  b.x = a->x[0];
  b.z = after == BATCH_NORM_ADD_RELU ? a->x[1] : NULL;
  b.gamma = a->param[0];
  b.beta = a->param[1];
  b.old_mean = b.new_mean = a->param[2];
  b.old_var = b.new_var = a->param[3];
  b.y = a->y;
  b.mean = (float *)a->saved;
  b.inv_std = b.mean + b.shape.c;
  if (after == BATCH_NORM_ADD_RELU) b.passed = (uint32_t *)(b.inv_std + b.shape.c);
  b.dy = a->dy;
  b.dx = a->dx[0];
  b.dz = after == BATCH_NORM_ADD_RELU ? a->dx[1] : NULL;
  b.dgamma = a->grad[0];
  b.dbeta = a->grad[1];
  b.workspace = a->workspace;
  return b;
}

static inline void batch_norm2d_op_forward_of(const Context *context, const Node *node, const OpArrays *a,
                                              BatchNorm2dAfter after) {
  const BatchNorm2d b = batch_norm2d_op_arrays(node, a, after);
  Error err;
  if (!context->training) {
    ON_DEVICE(context->device, batch_norm2d_evaluate_gpu(&b), batch_norm2d_evaluate_cpu_fast(&b));
    return;
  }
  if (batch_norm2d_shape_check(b.shape, &err) != 0) die("%s: %s", node->name, err.message);
  ON_DEVICE(context->device, batch_norm2d_forward_gpu(&b), batch_norm2d_forward_cpu_fast(&b));
}

static inline void batch_norm2d_op_backward_of(const Context *context, const Node *node, const OpArrays *a,
                                               BatchNorm2dAfter after) {
  const BatchNorm2d b = batch_norm2d_op_arrays(node, a, after);
  ON_DEVICE(context->device, batch_norm2d_backward_gpu(&b), batch_norm2d_backward_cpu_fast(&b));
}

static inline void batch_norm2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_op_forward_of(context, node, a, BATCH_NORM_ALONE);
}
static inline void batch_norm2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_op_backward_of(context, node, a, BATCH_NORM_ALONE);
}
static inline void batch_norm2d_relu_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_op_forward_of(context, node, a, BATCH_NORM_RELU);
}
static inline void batch_norm2d_relu_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_op_backward_of(context, node, a, BATCH_NORM_RELU);
}
static inline void batch_norm2d_add_relu_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_op_forward_of(context, node, a, BATCH_NORM_ADD_RELU);
}
static inline void batch_norm2d_add_relu_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  batch_norm2d_op_backward_of(context, node, a, BATCH_NORM_ADD_RELU);
}

const Op batch_norm2d_op = {BATCH_NORM_OP_NAME,      BACKWARD_NEEDS_X,          OP_STATISTICS,
                            batch_norm2d_op_saved,   batch_norm2d_op_workspace, batch_norm2d_op_forward,
                            batch_norm2d_op_backward};
const Op batch_norm2d_relu_op = {BATCH_NORM_OP_NAME,           BACKWARD_NEEDS_X,          OP_STATISTICS,
                                 batch_norm2d_op_saved,        batch_norm2d_op_workspace, batch_norm2d_relu_op_forward,
                                 batch_norm2d_relu_op_backward};
const Op batch_norm2d_add_relu_op = {BATCH_NORM_OP_NAME,
                                     BACKWARD_NEEDS_FIRST_X,
                                     OP_STATISTICS,
                                     batch_norm2d_add_relu_op_saved,
                                     batch_norm2d_op_workspace,
                                     batch_norm2d_add_relu_op_forward,
                                     batch_norm2d_add_relu_op_backward};
