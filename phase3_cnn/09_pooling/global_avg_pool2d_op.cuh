/* global_avg_pool2d_op.cuh - global_avg_pool2d.cuh as an Op of common/nn: x (N,C,H,W) -> y (N,C). */
#ifndef PHASE3_CNN_GLOBAL_AVG_POOL2D_OP_CUH
#define PHASE3_CNN_GLOBAL_AVG_POOL2D_OP_CUH

#include "common/nn/graph.h"
#include "phase3_cnn/09_pooling/global_avg_pool2d.cuh"

/* The attribute of a node is the number of pixels of a plane. */
static inline int global_avg_pool2d_op_pixels(const Node *node) { return *(const int *)node->attributes.bytes; }

static inline void global_avg_pool2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const int planes = a->batch * node->shape.dim[0], pixels = global_avg_pool2d_op_pixels(node);
  ON_DEVICE(context->device, global_avg_pool2d_forward_gpu(a->y, a->x[0], planes, pixels),
            global_avg_pool2d_forward_cpu_fast(a->y, a->x[0], planes, pixels));
}

static inline void global_avg_pool2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const int planes = a->batch * node->shape.dim[0], pixels = global_avg_pool2d_op_pixels(node);
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device, global_avg_pool2d_backward_gpu(a->dx[0], a->dy, planes, pixels),
            global_avg_pool2d_backward_cpu_fast(a->dx[0], a->dy, planes, pixels));
}

inline const Op global_avg_pool2d_op = {"GlobalAveragePool",          0, 0, NULL, NULL, global_avg_pool2d_op_forward,
                                        global_avg_pool2d_op_backward};

/* The mean of each channel: (C,H,W) becomes (C). */
static inline int global_avg_pool2d(Graph *g, int x) {
  if (graph_expect_images(g, "global_avg_pool2d", x) != 0) return GRAPH_ERROR;
  const Shape in = graph_shape(g, x);
  const int pixels = in.dim[1] * in.dim[2];
  return graph_node(g, &global_avg_pool2d_op, "avgpool", &x, 1, shape1(in.dim[0]), &pixels, sizeof pixels);
}

#endif /* PHASE3_CNN_GLOBAL_AVG_POOL2D_OP_CUH */
