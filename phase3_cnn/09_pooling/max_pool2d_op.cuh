/* max_pool2d_op.cuh - max_pool2d.cuh as an Op of common/nn: x (N,C,H,W) -> y (N,C,P,Q). It keeps for each output which
 * input was the largest. */
#ifndef PHASE3_CNN_MAX_POOL2D_OP_CUH
#define PHASE3_CNN_MAX_POOL2D_OP_CUH

#include "phase3_cnn/09_pooling/max_pool2d.cuh"
#include "phase3_cnn/09_pooling/pool2d_op.cuh"

static inline Pool2dShape max_pool2d_op_shape(const Node *node, int batch) {
  Pool2dShape shape = *(const Pool2dShape *)node->attributes.bytes;
  shape.n = batch;
  return shape;
}

static inline size_t max_pool2d_op_saved(const Node *node, int batch) {
  return shape_count(node->shape) * (size_t)batch; /* a byte for each output */
}

/* In max_pool2d_op.cu, where their kernels are compiled once, and not again in every program. relu_max_pool2d_op: of
 * max(0, x), for graph_fuse() (common/nn/fuse.h); windows of at most 255 elements. */
extern const Op max_pool2d_op, relu_max_pool2d_op;

/* A byte counts the places of a window, and one more value says that no place has the gradient. Either of the two nodes
 * is the pooling: the largest of max(0, x) is max(0, the largest of x). */
static inline int relu_max_pool2d_op_fits(const Node *first, const Node *second) {
  const Pool2dShape shape = max_pool2d_op_shape(first->op == &max_pool2d_op ? first : second, 1);
  return shape.kernel_h * shape.kernel_w < POOL2D_POSITIONS;
}

/* The largest of each window of a plane: (C,H,W) becomes (C,P,Q). n, c, h and w of `shape` follow from x. */
static inline int max_pool2d_shaped(Graph *g, int x, Pool2dShape shape) {
  if (graph_expect_images(g, "max_pool2d", x) != 0) return GRAPH_ERROR;
  const Shape in = graph_shape(g, x);
  shape.n = 1;
  shape.c = in.dim[0];
  shape.h = in.dim[1];
  shape.w = in.dim[2];
  Error err;
  if (max_pool2d_shape_check(shape, &err) != 0)
    return graph_fail(g, "max pooling of %s %s: %.800s", g->nodes[x].name, shape_text(in).text, err.message);
  const Shape out = shape3(in.dim[0], pool2d_out_h(shape), pool2d_out_w(shape));
  return graph_window(g, graph_node(g, &max_pool2d_op, "pool", &x, 1, out, &shape, sizeof shape),
                      pool2d_node_window(shape));
}

static inline int max_pool2d_window(Graph *g, int x, Pool2dWindow window) {
  return max_pool2d_shaped(g, x, pool2d_shape_of(1, 1, 1, 1, window));
}

/* Square windows without padding. */
static inline int max_pool2d(Graph *g, int x, int kernel, int stride) {
  return max_pool2d_window(g, x, pool2d_square(kernel, stride));
}

#endif /* PHASE3_CNN_MAX_POOL2D_OP_CUH */
