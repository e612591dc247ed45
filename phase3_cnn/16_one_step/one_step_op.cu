/* one_step_op.cu - the functions of one_step_op.cuh. */
#include "phase3_cnn/16_one_step/one_step_op.cuh"

#include "phase3_cnn/16_one_step/conv_pool.cuh"
#include "phase3_cnn/16_one_step/linear_chain.cuh"
#include "phase3_cnn/16_one_step/loss_step.cuh"

/* ---------------------------------------------------------------------------------- convolution, ReLU, max pooling */

static inline ConvPool conv_pool_op_shape(const Node *node, int batch) {
  return conv_pool_batch(*(const ConvPool *)node->attributes.bytes, batch);
}

/* Of the convolution and the pooling one after the other: the convolution's output, and what its kernels need. */
static inline size_t conv_pool_op_in_turn_floats(Device device, ConvPool s) {
  return conv2d_y_count(s.conv) + conv2d_workspace_floats(device, s.conv);
}

static inline size_t conv_pool_op_workspace(const Context *context, const Node *node, int batch) {
  const ConvPool s = conv_pool_op_shape(node, batch);
  if (context->device == DEVICE_GPU && !context->training) return 0;
  const size_t in_turn = conv_pool_op_in_turn_floats(context->device, s), fused = conv_pool_workspace_floats(s);
  return context->device == DEVICE_CPU || in_turn > fused ? in_turn : fused;
}

static inline void conv_pool_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const ConvPool s = conv_pool_op_shape(node, a->batch);
  uint8_t *argmax = (uint8_t *)a->saved;
  ON_DEVICE(context->device, conv_pool_forward_gpu(a->y, argmax, a->x[0], a->param[0], a->param[1], s),
            conv_pool_forward_cpu_fast(a->y, argmax, a->x[0], a->param[0], a->param[1], s, a->workspace));
}

/* With dx, one after the other on the GPU, too: of LeNet's conv2 that takes 18 us on an H200, and one kernel 26. */
static inline void conv_pool_op_backward_gpu(const OpArrays *a, const uint8_t *argmax, ConvPool s) {
  float *dsums = a->workspace, *more = a->workspace + conv2d_y_count(s.conv);
  if (a->dx[0] == NULL) {
    conv_pool_backward_gpu(NULL, a->grad[0], a->grad[1], a->dy, argmax, a->x[0], a->param[0], s, a->workspace);
    return;
  }
  max_pool2d_backward_gpu(dsums, a->dy, argmax, s.pool);
  if (a->grad[0]) conv2d_backward_weight(DEVICE_GPU, a->grad[0], a->grad[1], dsums, a->x[0], s.conv, more);
  conv2d_backward_input(DEVICE_GPU, a->dx[0], dsums, a->param[0], s.conv, more);
}

static inline void conv_pool_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const ConvPool s = conv_pool_op_shape(node, a->batch);
  const uint8_t *argmax = (const uint8_t *)a->saved;
  ON_DEVICE(context->device, conv_pool_op_backward_gpu(a, argmax, s),
            conv_pool_backward_cpu_fast(a->dx[0], a->grad[0], a->grad[1], a->dy, argmax, a->x[0], a->param[0], s,
                                        a->workspace));
}

const Op conv_pool_op = {"Conv+Relu+MaxPool",  BACKWARD_NEEDS_X,     0, max_pool2d_op_saved, conv_pool_op_workspace,
                         conv_pool_op_forward, conv_pool_op_backward};

/* Of the convolution and the pooling that it begins and ends with. */
static inline ConvPool conv_pool_op_join(const Graph *g, const int *node, int count) {
  const ConvPool s = {conv2d_op_shape(&g->nodes[node[0]], 1), max_pool2d_op_shape(&g->nodes[node[count - 1]], 1)};
  return s;
}

int conv_pool_op_fits(const Graph *g, const int *node, int count) {
  return conv_pool_fits(conv_pool_op_join(g, node, count));
}

void conv_pool_op_attributes(Node *last, const Graph *g, const int *node, int count) {
  const ConvPool s = conv_pool_op_join(g, node, count);
  static_assert(sizeof s <= NODE_ATTRIBUTE_BYTES, "raise NODE_ATTRIBUTE_BYTES");
  memcpy(last->attributes.bytes, &s, sizeof s);
}

/* ------------------------------------------------------------------------------------------------ a chain of layers */

/* Its parameters are weight, bias, weight, bias, ... */
static inline LinearChain chain_op_shape(const Node *node, int batch) {
  LinearChain s;
  memset(&s, 0, sizeof s);
  s.batch = batch;
  s.layers = node->params / 2;
  for (int l = 0; l < s.layers; l++) {
    s.width[l] = (int)node->param[2 * l].dim[1];
    s.width[l + 1] = (int)node->param[2 * l].dim[0];
  }
  return s;
}

static inline LinearChain chain_op_of(const Node *node, const OpArrays *a) {
  LinearChain s = chain_op_shape(node, a->batch);
  for (int l = 0; l < s.layers; l++) {
    s.w[l] = a->param[2 * l];
    s.bias[l] = a->param[2 * l + 1];
  }
  return s;
}

static inline size_t chain_op_saved(const Node *node, int batch) {
  const LinearChain s = chain_op_shape(node, batch);
  return (size_t)batch * chain_hidden(&s) * sizeof(float);
}

static inline size_t chain_op_workspace(const Context *context, const Node *node, int batch) {
  if (!context->training) return 0;
  return chain_op_saved(node, batch) / sizeof(float);
}

static inline void chain_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const LinearChain s = chain_op_of(node, a);
  float *hidden = (float *)a->saved;
  if (context->device == DEVICE_CPU || a->batch > CHAIN_BATCH)
    chain_in_turn_forward(context->device, a->y, hidden, a->x[0], s);
  else
    chain_forward_gpu(a->y, hidden, a->x[0], s);
}

/* Layer by layer: for 64 images, on an H200, the kernels of chain_backward_gpu() take 12 us, those of the layers 9. */
static inline void chain_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const LinearChain s = chain_op_of(node, a);
  float *hidden = (float *)a->saved, *dw[CHAIN_LAYERS] = {NULL}, *dbias[CHAIN_LAYERS] = {NULL};
  for (int l = 0; l < s.layers; l++) {
    dw[l] = a->grad[2 * l];
    dbias[l] = a->grad[2 * l + 1];
  }
  chain_in_turn_backward(context->device, a->dx[0], dw, dbias, a->dy, hidden, a->x[0], a->workspace, s);
}

const Op chain_op = {"Gemm+Relu+Gemm", BACKWARD_NEEDS_X, 0, chain_op_saved, chain_op_workspace,
                     chain_op_forward, chain_op_backward};

int chain_op_fits(const Graph *g, const int *node, int count) {
  LinearChain s;
  memset(&s, 0, sizeof s);
  for (int i = 0; i < count; i++) {
    const Node *layer = &g->nodes[node[i]];
    if (layer->params == 0) continue; /* ReLU */
    if (s.layers == CHAIN_LAYERS || layer->params != 2) return 0;
    s.width[s.layers] = linear_in(layer);
    s.width[++s.layers] = linear_out(layer);
  }
  return chain_fits(&s);
}

/* ------------------------------------------------------------------------------------------------------------- loss */

static inline void loss_step_op(const Context *context, float *losses, float *probabilities, double *totals,
                                float *dlogits, const float *logits, const void *targets, float scale, int batch,
                                Shape shape) {
  const int *labels = (const int *)targets, classes = (int)shape_count(shape);
  if (context->device == DEVICE_GPU && softmax_cross_entropy_is_soft(context)) {
    loss_step_soft_gpu(losses, probabilities, dlogits, totals, logits, labels, softmax_cross_entropy_soft(context),
                       scale, batch, classes);
    return;
  }
  if (context->device == DEVICE_GPU) {
    loss_step_gpu(losses, probabilities, dlogits, totals, logits, labels, scale, batch, classes);
    return;
  }
  cross_entropy_loss.forward(context, losses, probabilities, logits, targets, batch, shape);
  cross_entropy_loss.score(context, totals, losses, probabilities, targets, batch, shape);
  cross_entropy_loss.backward(context, dlogits, probabilities, logits, targets, scale, batch, shape);
}

const Loss cross_entropy_step_loss = {"softmax_cross_entropy",
                                      softmax_cross_entropy_targets,
                                      shape_count,
                                      softmax_cross_entropy_op_forward,
                                      softmax_cross_entropy_op_score,
                                      softmax_cross_entropy_op_backward,
                                      0,
                                      loss_step_op,
                                      1};
