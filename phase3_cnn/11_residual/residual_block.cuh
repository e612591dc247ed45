/* residual_block.cuh - the basic block of a residual network (He, Zhang, Ren, Sun: "Deep residual learning for image
 * recognition", 2015), with torchvision's names: conv1, bn1, conv2, bn2, downsample.0, downsample.1.
 *
 *     x (C,H,W) -> y (filters, H/stride, W/stride) = relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x))
 *
 * The shortcut is x itself where the shapes agree, else a convolution of 1 x 1 with `stride` and batch norm.
 */
#ifndef PHASE3_CNN_RESIDUAL_BLOCK_CUH
#define PHASE3_CNN_RESIDUAL_BLOCK_CUH

#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"
#include "phase3_cnn/11_residual/add_op.cuh"

static inline int residual_shortcut(Graph *g, int x, int filters, int stride) {
  if (stride == 1 && graph_shape(g, x).dim[0] == filters) return x;
  graph_enter(g, "downsample");
  int h = conv2d_no_bias(graph_name(g, "0"), x, filters, 1, stride, 0);
  h = batch_norm2d(graph_name(g, "1"), h);
  graph_leave(g);
  return h;
}

/* `name`: "layer1.0" */
static inline int residual_block(Graph *g, const char *name, int x, int filters, int stride) {
  graph_enter(g, name);
  int h = relu(g, batch_norm2d(g, conv2d_no_bias(g, x, filters, 3, stride, 1)));
  h = batch_norm2d(g, conv2d_no_bias(g, h, filters, 3, 1, 1));
  h = add(g, h, residual_shortcut(g, x, filters, stride));
  h = relu(g, h);
  graph_leave(g);
  return h;
}

#endif /* PHASE3_CNN_RESIDUAL_BLOCK_CUH */
