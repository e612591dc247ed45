/* avg_pool2d_op.cuh - avg_pool2d.cuh as an Op of common/nn: x (N,C,H,W) -> y (N,C,P,Q). */
#ifndef PHASE3_CNN_AVG_POOL2D_OP_CUH
#define PHASE3_CNN_AVG_POOL2D_OP_CUH

#include "phase3_cnn/09_pooling/avg_pool2d.cuh"
#include "phase3_cnn/09_pooling/pool2d_op.cuh"

typedef struct AvgPool2dAttributes {
  Pool2dShape shape; /* of one sample */
  int include_pad;
} AvgPool2dAttributes;

static inline Pool2dShape avg_pool2d_op_shape(const Node *node, int batch) {
  Pool2dShape shape = ((const AvgPool2dAttributes *)node->attributes.bytes)->shape;
  shape.n = batch;
  return shape;
}

static inline bool avg_pool2d_op_include_pad(const Node *node) {
  return ((const AvgPool2dAttributes *)node->attributes.bytes)->include_pad != 0;
}

static inline void avg_pool2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Pool2dShape shape = avg_pool2d_op_shape(node, a->batch);
  const bool include_pad = avg_pool2d_op_include_pad(node);
  ON_DEVICE(context->device, avg_pool2d_forward_gpu(a->y, a->x[0], shape, include_pad),
            avg_pool2d_forward_cpu_fast(a->y, a->x[0], shape, include_pad));
}

static inline void avg_pool2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Pool2dShape shape = avg_pool2d_op_shape(node, a->batch);
  const bool include_pad = avg_pool2d_op_include_pad(node);
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device, avg_pool2d_backward_gpu(a->dx[0], a->dy, shape, include_pad),
            avg_pool2d_backward_cpu_fast(a->dx[0], a->dy, shape, include_pad));
}

inline const Op avg_pool2d_op = {"AveragePool", 0, 0, NULL, NULL, avg_pool2d_op_forward, avg_pool2d_op_backward};

/* The mean of each window of a plane: (C,H,W) becomes (C,P,Q). n, c, h and w of `shape` follow from x.
 * count_include_pad: zeros in the padding count. */
static inline int avg_pool2d_shaped(Graph *g, int x, Pool2dShape shape, int count_include_pad) {
  if (graph_expect_images(g, "avg_pool2d", x) != 0) return GRAPH_ERROR;
  const Shape in = graph_shape(g, x);
  shape.n = 1;
  shape.c = in.dim[0];
  shape.h = in.dim[1];
  shape.w = in.dim[2];
  Error err;
  if (avg_pool2d_shape_check(shape, &err) != 0)
    return graph_fail(g, "average pooling of %s %s: %.800s", g->nodes[x].name, shape_text(in).text, err.message);
  const AvgPool2dAttributes attributes = {shape, count_include_pad};
  const Shape out = shape3(in.dim[0], pool2d_out_h(shape), pool2d_out_w(shape));
  return graph_window(g, graph_node(g, &avg_pool2d_op, "avgpool", &x, 1, out, &attributes, sizeof attributes),
                      pool2d_node_window(shape));
}

static inline int avg_pool2d_window(Graph *g, int x, Pool2dWindow window, int count_include_pad) {
  return avg_pool2d_shaped(g, x, pool2d_shape_of(1, 1, 1, 1, window), count_include_pad);
}

/* Square windows without padding. */
static inline int avg_pool2d(Graph *g, int x, int kernel, int stride) {
  return avg_pool2d_window(g, x, pool2d_square(kernel, stride), 0);
}

#endif /* PHASE3_CNN_AVG_POOL2D_OP_CUH */
